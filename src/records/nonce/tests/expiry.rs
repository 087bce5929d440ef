//! Expiry: nothing early, nothing for ever, and clocks that jump.

use super::{
    super::{segment::Segment, state},
    *,
};

/// Expires once a second, the wall clock and the steady clock together.
fn run(window: &LocalWindow, from: u64, seconds: u64) {
    for second in from..from + seconds {
        maintain(window, NOW.0 + second, second);
    }
}

#[test]
fn drops_a_second_once_the_window_has_passed() {
    let window = anonymous(10_000);
    run(&window, 0, 1);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 9, 1), Insertion::Fresh);
    run(&window, 1, 301);
    assert_eq!(window.entries(), 2);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Used);
    run(&window, 302, 1);
    assert_eq!(window.entries(), 1);
    assert_eq!(window.dropped_until(), NOW);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0, 2), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 9, 1), Insertion::Used);
    run(&window, 303, 7);
    assert_eq!(window.entries(), 1);
    run(&window, 310, 1);
    assert_eq!(window.entries(), 0);
}

#[test]
fn keeps_a_second_a_window_from_its_last_insertion() {
    let window = anonymous(10_000);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    run(&window, 1, 300);
    // A consumer whose clock is late.
    assert_eq!(insert(&window, NOW.0, 2), Insertion::Fresh);
    run(&window, 301, 301);
    assert_eq!(window.entries(), 2);
    run(&window, 602, 1);
    assert_eq!(window.entries(), 0);
}

#[test]
fn a_clock_that_jumps_ahead_and_is_put_right_loses_nothing() {
    let window = anonymous(10_000);
    run(&window, 0, 60);
    assert_eq!(insert(&window, NOW.0 + 60, 1), Insertion::Fresh);
    for second in 61..200 {
        maintain(&window, NOW.0 + 1_000_000, second);
    }
    assert_eq!(insert(&window, NOW.0 + 60, 1), Insertion::Used);
    assert_eq!(insert(&window, NOW.0 + 60, 2), Insertion::Fresh);
    assert_eq!(window.dropped_until(), UnixTime(0));
    run(&window, 200, 150);
    assert_eq!(insert(&window, NOW.0 + 60, 1), Insertion::Used);
}

#[test]
fn clock_that_stays_ahead_drops_only_seconds_with_nonces() {
    let window = anonymous(10_000);
    run(&window, 0, 60);
    assert_eq!(insert(&window, NOW.0 + 60, 1), Insertion::Fresh);
    for second in 61..1_000 {
        maintain(&window, NOW.0 + 1_000_000, second);
    }
    assert_eq!(window.entries(), 0);
    assert_eq!(window.dropped_until(), UnixTime(NOW.0 + 60));
    // The clock is right again, too late: dropped timestamps stay rejected, later ones are accepted.
    assert_eq!(insert(&window, NOW.0 + 60, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 61, 1), Insertion::Fresh);
}

#[test]
fn a_clock_that_goes_back_never_admits_again_what_was_dropped() {
    let window = anonymous(10_000);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    run(&window, 1, 400);
    assert_eq!(window.entries(), 0);
    run(&window, 0, 1);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 - 100, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 1, 1), Insertion::Fresh);
}

#[test]
fn nonces_of_a_wrong_clock_stay_until_it_gets_there() {
    let window = anonymous(10_000);
    let far = NOW.0 + 10_000_000;
    assert_eq!(insert(&window, far, 1), Insertion::Fresh);
    run(&window, 0, 2_000);
    assert_eq!(insert(&window, far, 1), Insertion::Used);
    assert_eq!(insert(&window, NOW.0 + 2_000, 1), Insertion::Fresh);
}

#[test]
fn wider_window_never_admits_what_had_left_the_narrower_one() {
    let mut machine = Machine::new();
    machine.params.window = Duration::from_secs(10);
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Fresh);
    run(&window, 1, 12);
    assert_eq!(window.entries(), 1);
    drop(window);
    machine.params.window = Duration::from_secs(3_600);
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 1, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Used);
    run(&window, 0, 3_000);
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Used);
}

#[test]
fn window_widened_in_a_run_keeps_out_what_had_left_it() {
    let mut machine = Machine::new();
    machine.params.window = Duration::from_secs(10);
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0 + 1, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 9, 1), Insertion::Fresh);
    let later = UnixTime(NOW.0 + 15);
    window
        .set_length(later, Duration::from_secs(3_600))
        .unwrap();
    assert_eq!(window.length(), Duration::from_secs(3_600));
    // Killed at once: the file says the same.
    let mut killed = machine.killed();
    killed.params.window = Duration::from_secs(3_600);
    for window in [&window, &killed.start()] {
        assert_eq!(window.dropped_until(), UnixTime(NOW.0 + 4));
        // Neither a used nonce nor a new one is accepted.
        assert_eq!(insert(window, NOW.0 + 1, 1), Insertion::Forgotten);
        assert_eq!(insert(window, NOW.0 + 4, 2), Insertion::Forgotten);
        assert_eq!(insert(window, NOW.0 + 9, 1), Insertion::Used);
        assert_eq!(insert(window, NOW.0 + 5, 2), Insertion::Fresh);
        run(window, 15, 3_000);
        assert_eq!(insert(window, NOW.0 + 9, 1), Insertion::Used);
        assert_eq!(insert(window, NOW.0 + 5, 2), Insertion::Used);
        // A second below the floor that is dropped late does not lower it.
        assert_eq!(window.dropped_until(), UnixTime(NOW.0 + 4));
    }
}

#[test]
fn window_narrowed_in_a_run_drops_sooner_and_forgets_nothing() {
    let window = anonymous(10_000);
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 200, 1), Insertion::Fresh);
    run(&window, 0, 20);
    window
        .set_length(UnixTime(NOW.0 + 20), Duration::from_secs(10))
        .unwrap();
    run(&window, 20, 1);
    assert_eq!(window.entries(), 1);
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Forgotten);
    window.set_length(UnixTime(NOW.0 + 21), WINDOW).unwrap();
    assert_eq!(insert(&window, NOW.0 + 5, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 10, 1), Insertion::Forgotten);
    assert_eq!(insert(&window, NOW.0 + 11, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 200, 1), Insertion::Used);
}

#[test]
fn a_call_drops_a_bounded_number_of_seconds() {
    let window = anonymous(10_000);
    for second in 0..200 {
        assert_eq!(insert(&window, NOW.0 + second, 1), Insertion::Fresh);
    }
    run(&window, 0, 1);
    let much_later = |seconds: u64| maintain(&window, NOW.0 + 10_000, seconds);
    much_later(1);
    assert_eq!(window.entries(), 200);
    let mut left = Vec::new();
    for second in 0..5 {
        much_later(1_000 + second);
        left.push(window.entries());
    }
    assert_eq!(left, [136, 72, 8, 0, 0]);
}

#[test]
fn memory_of_dropped_seconds_is_used_again() {
    let window = anonymous(1_000_000);
    let mut number = 0;
    let mut bytes = Vec::new();
    for second in 0..2_000 {
        for _ in 0..100 {
            number += 1;
            assert_eq!(insert(&window, NOW.0 + second, number), Insertion::Fresh);
        }
        run(&window, second, 1);
        bytes.push(window.bytes());
    }
    assert!(window.entries() <= 100 * 303);
    assert!(bytes[1_999] < bytes[500] * 3 / 2, "{bytes:?}");
}

#[test]
fn after_a_restart_all_counts_from_the_start() {
    let machine = Machine::new();
    assert_eq!(insert(&machine.start(), NOW.0, 1), Insertion::Fresh);
    let window = machine.start();
    for second in 0..=300 {
        maintain(&window, NOW.0 + 1_000_000, second);
    }
    assert_eq!(window.entries(), 1);
    maintain(&window, NOW.0 + 1_000_000, 302);
    assert_eq!(window.entries(), 0);
}

#[test]
fn log_file_is_deleted_whole_once_its_seconds_are_dropped() {
    let machine = Machine::new();
    let window = machine.start();
    let mut most = 0;
    for second in 0..3_000 {
        assert_eq!(insert(&window, NOW.0 + second, second), Insertion::Fresh);
        run(&window, second, 1);
        most = most.max(machine.logs().len());
    }
    // A window, two minutes of each file, and two minutes until it is noticed.
    assert!((3..=6).contains(&most), "{most}");
    run(&window, 3_000, 600);
    assert_eq!((window.entries(), machine.logs().len()), (0, 1));
}

#[test]
fn nonces_of_a_wrong_clock_keep_no_file_but_their_own() {
    let mut machine = Machine::new();
    let mut window = machine.start();
    let far = NOW.0 + 10_000_000;
    assert_eq!(insert(&window, far, 1), Insertion::Fresh);
    for second in 0..3_000 {
        assert_eq!(insert(&window, NOW.0 + second, second), Insertion::Fresh);
        run(&window, second, 1);
        assert!(machine.logs().len() <= 7, "{second}: {:?}", machine.logs());
        if second % 1_000 == 999 {
            assert_eq!(insert(&window, far, 1), Insertion::Used);
            let killed = machine.killed();
            drop((window, machine));
            (window, machine) = (killed.start(), killed);
            // Time passes by the clock of this start.
            run(&window, 0, 1);
        }
    }
    assert_eq!(insert(&window, far, 1), Insertion::Used);
}

#[test]
fn a_file_without_nonces_waits_for_the_one_before_it() {
    let machine = Machine::new();
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    drop(window);
    // Two more files, the first of which was sealed before it took a nonce.
    let file = state::open(&machine.path()).unwrap();
    let mut state = state::read(&machine.path()).unwrap().unwrap().unwrap();
    assert_eq!(state.logs, 1..2);
    state.logs = 1..4;
    for number in 2..4 {
        let path = format!("{}.{number}.log", machine.path().display());
        let log = Segment::create(path.as_ref(), number, 10, state.key).unwrap();
        assert!(number == 2 || log.append(NOW.0, state.key.seal(NOW.0, number)));
    }
    state.write(&file).unwrap();
    drop(file);
    let window = machine.start();
    let logs = machine.logs();
    // These three and the current one.
    assert_eq!((window.entries(), logs.len()), (2, 4));
    run(&window, 0, 300);
    assert_eq!(machine.logs(), logs);
    run(&window, 300, 2);
    assert_eq!((window.entries(), machine.logs().len()), (0, 1));
}

#[test]
fn damaged_file_keeps_no_other_and_is_a_lost_log_at_restart() {
    let damages: [fn(&Path); 2] = [
        |path| fs::remove_file(path).unwrap(),
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[4096] ^= 1;
            fs::write(path, bytes).unwrap();
        },
    ];
    for damage in damages {
        let machine = Machine::new();
        let window = machine.start();
        let far = NOW.0 + 10_000_000;
        assert_eq!(insert(&window, far, 1), Insertion::Fresh);
        run(&window, 0, 130);
        damage(&machine.logs()[0]);
        for second in 200..2_000 {
            assert_eq!(insert(&window, NOW.0 + second, second), Insertion::Fresh);
            run(&window, second, 1);
            assert!(machine.logs().len() <= 7, "{second}: {:?}", machine.logs());
        }
        assert_eq!(insert(&window, far, 1), Insertion::Used);
        window.close().unwrap();
        drop(window);
        assert!(machine.is_lost());
        // From then on the log is whole again.
        drop(machine.start());
        assert!(!machine.is_lost());
    }
}
