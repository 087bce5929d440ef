//! The files: what a start accepts, rejects, and takes for lost.

use std::{io, os::unix::fs::PermissionsExt};

use super::{
    super::{MARK_EVERY, journal::FEW_RECORDS, next_high_water_mark, was_used},
    *,
};

/// A machine whose window has had 5,000 nonces of five seconds and was closed.
fn used() -> Machine {
    let machine = Machine::new();
    let window = machine.start();
    let fresh = |number| insert(&window, NOW.0 + number % 5, number) == Insertion::Fresh;
    assert!((0..5_000).all(fresh));
    machine
}

fn has_all(window: &LocalWindow) -> bool {
    (0..5_000).all(|number| insert(window, NOW.0 + number % 5, number) == Insertion::Used)
}

#[test]
fn a_clean_stop_loses_nothing_even_over_a_boot() {
    let mut machine = used();
    machine.boot = "second";
    let window = machine.start();
    assert_eq!(window.entries(), 5_000);
    assert!(has_all(&window));
}

#[test]
fn a_killed_process_loses_nothing() {
    let machine = used();
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 5_000), Insertion::Fresh);
    let killed = machine.killed().start();
    assert_eq!(killed.entries(), 5_001);
    assert!(has_all(&killed) && has_all(&window));
    assert_eq!(insert(&killed, NOW.0, 5_000), Insertion::Used);
}

#[test]
fn another_process_can_look_a_nonce_up_in_a_window_in_use() {
    let machine = used();
    let _window = machine.start();
    let was_used = |timestamp, number: u64, consumer: &[u8]| {
        let nonce = NonceUse {
            timestamp,
            consumer,
            token: b"token",
            nonce: &number.to_be_bytes(),
        };
        was_used(&machine.path(), nonce)
    };
    for number in (0..5_000).step_by(97) {
        let second = NOW.0 + number % 5;
        assert_eq!(was_used(second, number, b"consumer"), Some(true));
        assert_eq!(was_used(second + 1, number, b"consumer"), Some(false));
        assert_eq!(was_used(second, number, b"consume"), Some(false));
    }
    fs::write(machine.path(), b"SQLite format 3\0").unwrap();
    assert_eq!(was_used(NOW.0, 0, b"consumer"), None);
    fs::remove_file(machine.path()).unwrap();
    assert_eq!(was_used(NOW.0, 0, b"consumer"), None);
}

#[test]
fn a_power_loss_rejects_up_to_the_mark_until_it_is_waived() {
    let machine = used();
    let mark = next_high_water_mark(NOW, WINDOW);
    let window = machine.start();
    window.note_high_water_mark(mark).unwrap();
    let mut lost = machine.killed();
    lost.boot = "second";
    // A start that goes no further changes nothing.
    assert!(lost.is_lost() && lost.is_lost());
    // A store that was restored from a backup has an older mark.
    let window = lost.start_after(Some(UnixTime(NOW.0 - 1_000)));
    assert_eq!((window.entries(), window.lost_until()), (0, mark));
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Lost);
    assert_eq!(insert(&window, mark.0, 1), Insertion::Lost);
    assert_eq!(insert(&window, mark.0 + 1, 1), Insertion::Fresh);
    // The loss is noted: a restart keeps it, and the nonces accepted since.
    let again = lost.killed().start_after(Some(mark));
    assert_eq!(insert(&again, mark.0, 1), Insertion::Lost);
    assert_eq!(insert(&again, mark.0 + 1, 1), Insertion::Used);
    again.waive().unwrap();
    assert_eq!(insert(&again, NOW.0, 1), Insertion::Fresh);
    assert_eq!(insert(&again, mark.0 + 1, 1), Insertion::Used);
    drop(window);
    // The next start does not begin the outage again.
    let opened = lost.open().unwrap();
    drop(opened.start(NOW, Some(mark), OnLost::Accept).unwrap());
    assert_eq!(
        insert(&lost.start_after(Some(mark)), NOW.0, 1),
        Insertion::Fresh
    );
}

#[test]
fn files_older_than_the_version_that_the_store_knows_are_a_copy() {
    let machine = Machine::new();
    let mark = next_high_water_mark(NOW, WINDOW);
    let lost = |machine: &Machine, known| {
        let opened = machine.killed().open().unwrap().after_version(known);
        let window = opened.start(NOW, Some(mark), OnLost::Refuse).unwrap();
        window.lost_until()
    };
    let window = machine.start();
    window.note_high_water_mark(mark).unwrap();
    let (running, first) = (machine.killed(), window.files().unwrap().version);
    // A process that was killed, with the files that it left.
    assert_eq!(lost(&running, Some(first)), UnixTime(0));
    drop(window);
    let stopped = machine.killed();
    let window = machine.start();
    window.note_high_water_mark(mark).unwrap();
    let version = window.files().unwrap().version;
    // The store is behind if a process was killed between its two writes, or if it was restored from a backup.
    for known in [None, Some(first), Some(version)] {
        assert_eq!(lost(&machine, known), UnixTime(0), "{known:?}");
    }
    for old in [&running, &stopped] {
        assert_eq!(lost(old, Some(version)), mark);
    }
    drop(window);
    // The copy of a running process differs from the files after its clean stop.
    let closed = machine.open().unwrap().files().unwrap().version;
    assert!(closed > version);
    assert_eq!(lost(&machine, Some(closed)), UnixTime(0));
    // A copy that was put back is accounted for, and counts on from there.
    let opened = stopped.open().unwrap().after_version(Some(closed));
    let window = opened.start(NOW, Some(mark), OnLost::Refuse).unwrap();
    let again = window.files().unwrap().version;
    assert!(again > closed);
    drop(window);
    assert_eq!(lost(&machine, Some(again)), mark);
    // What is noted after the end is in memory alone, and no version.
    let window = machine.start();
    window.close().unwrap();
    let closed = window.files().unwrap();
    window.note_high_water_mark(mark).unwrap();
    assert_eq!(window.files().unwrap(), closed);
    assert_eq!(anonymous(1).files(), None);
}

#[test]
fn a_file_that_is_missing_or_old_is_told_by_the_mark() {
    let machine = Machine::new();
    assert_eq!(machine.continuity(), Continuity::New);
    let window = machine.start();
    let first = next_high_water_mark(NOW, WINDOW);
    window.note_high_water_mark(first).unwrap();
    let old = machine.killed();
    let lost = |machine: &Machine, mark| machine.killed().start_after(Some(mark)).lost_until();
    assert_eq!(lost(&old, first), UnixTime(0));
    // Another process on the same store may have written it a little later.
    let later = next_high_water_mark(NOW.after(MARK_EVERY), WINDOW);
    assert_eq!(lost(&old, later), UnixTime(0));
    let mark = next_high_water_mark(NOW.after(3 * MARK_EVERY), WINDOW);
    window.note_high_water_mark(mark).unwrap();
    window.note_high_water_mark(first).unwrap();
    assert_eq!(lost(&machine, mark), UnixTime(0));
    assert_eq!(lost(&old, mark), mark);
    drop(window);
    // Without the state the log is not used.
    fs::remove_file(machine.path()).unwrap();
    let window = machine.start_after(Some(mark));
    assert_eq!(window.lost_until(), mark);
    assert_eq!(window.closed_until(), mark.after(WINDOW));
    drop(window);
    assert_eq!(machine.start().closed_until(), mark.after(WINDOW));
    assert_eq!(Machine::new().start().closed_until(), UnixTime(0));
}

#[test]
fn an_unknown_boot_is_another_one() {
    let mut machine = Machine::new();
    machine.boot = "";
    let window = machine.start();
    assert!(machine.killed().is_lost());
    drop(window);
    assert_eq!(machine.continuity(), Continuity::Continued);
}

#[test]
fn a_second_process_is_locked_out() {
    let machine = Machine::new();
    let window = machine.start();
    let error = LocalWindow::open(&machine.params).err().unwrap();
    assert!(matches!(error, WindowOpenError::Locked { .. }));
    assert!(error.to_string().contains("window.nonces"));
    assert!(error.to_string().contains("nonce.path"));
    drop(window);
    assert!(machine.open().is_ok());
}

#[test]
fn a_foreign_file_is_left_alone() {
    let machine = Machine::new();
    for content in [&b"x"[..], b"SQLite format 3\0 and more", &[0; 10_000]] {
        fs::write(machine.path(), content).unwrap();
        let error = machine.open().err().unwrap();
        assert!(matches!(error, WindowOpenError::NotAWindow { .. }));
        assert!(error.to_string().contains("window.nonces"));
        assert_eq!(fs::read(machine.path()).unwrap(), content);
    }
    let mut directory = Machine::new();
    directory.params.path = Some(directory.directory.path().into());
    assert!(matches!(directory.open(), Err(WindowOpenError::Io { .. })));
    let mut missing = Machine::new();
    missing.params.path = Some(missing.directory.path().join("no/such/file"));
    let error = missing.open().err().unwrap();
    assert!(error.to_string().contains("no/such/file"));
}

#[test]
fn the_files_are_for_their_owner_only() {
    let machine = used();
    for path in machine.logs().into_iter().chain([machine.path()]) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

type Damage = fn(&Machine) -> io::Result<()>;

#[test]
fn damaged_files_and_first_version_files_are_a_lost_window() {
    let cases: [(&str, Damage); 6] = [
        ("a broken state", |machine| {
            let mut state = fs::read(machine.path())?;
            state[100] ^= 1;
            fs::write(machine.path(), state)
        }),
        ("a cut state", |machine| {
            fs::write(machine.path(), &fs::read(machine.path())?[..100])
        }),
        ("the first version", |machine| {
            fs::write(
                machine.path(),
                [b"countersignonce\n", &[1; 4096][..]].concat(),
            )
        }),
        ("a file is missing", |machine| {
            fs::remove_file(&machine.logs()[0])
        }),
        ("a cut file", |machine| {
            let log = &machine.logs()[0];
            fs::write(log, &fs::read(log)?[..1_000])
        }),
        ("a broken record", |machine| {
            let log = &machine.logs()[0];
            let mut records = fs::read(log)?;
            records[4_100] ^= 1;
            fs::write(log, records)
        }),
    ];
    for (case, damage) in cases {
        let machine = used();
        damage(&machine).unwrap();
        assert!(machine.is_lost(), "{case}");
        let window = machine.start();
        assert_eq!(window.entries(), 0, "{case}");
        // The high-water mark is unknown: all that the window accepts now may have been accepted.
        let lost = NOW.after(WINDOW);
        assert_eq!(window.lost_until(), lost, "{case}");
        assert_eq!(insert(&window, NOW.0, 1), Insertion::Lost, "{case}");
        assert_eq!(insert(&window, lost.0 + 1, 1), Insertion::Fresh, "{case}");
        drop(window);
        let again = machine.start();
        // The file with the nonce and the current one.
        assert_eq!((again.entries(), machine.logs().len()), (1, 2), "{case}");
    }
}

#[test]
fn a_stop_between_two_steps_leaves_no_file_that_counts() {
    let machine = used();
    let (first, next) = (machine.logs()[0].clone(), machine.logs().len() + 1);
    let number = |number: usize| {
        let name = format!("window.nonces.{number}.log");
        machine.directory.path().join(name)
    };
    // A file that was made and is not in the state yet, and one that is out of it and was not deleted yet.
    fs::write(number(next), b"made").unwrap();
    fs::write(number(0), b"out of use").unwrap();
    let window = machine.start();
    assert!(has_all(&window) && first.exists() && !number(0).exists());
    assert_eq!(insert(&window, NOW.0, 5_000), Insertion::Fresh);
    assert_eq!(machine.killed().start().entries(), 5_001);
}

#[test]
fn files_without_nonces_are_removed_at_a_start() {
    let mut machine = Machine::new();
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    for is_killed in [true, false, true] {
        machine = machine.killed();
        let window = machine.start();
        // The one with the nonce and the current one.
        assert_eq!((window.entries(), machine.logs().len()), (1, 2));
        if is_killed {
            machine = machine.killed();
        }
    }
}

#[test]
fn the_next_file_is_made_before_the_current_one_is_full() {
    let machine = Machine::new();
    let window = machine.start();
    let mut inserted = 0;
    let mut insert_some = |second| {
        for _ in 0..FEW_RECORDS / 4 {
            assert_eq!(insert(&window, NOW.0, inserted), Insertion::Fresh);
            inserted += 1;
        }
        maintain(&window, NOW.0, second);
        machine.logs().len()
    };
    // Half of the file is room for two seconds more, and only for these.
    assert_eq!([insert_some(1), insert_some(2)], [1, 2]);
    drop(window);
    let window = machine.start();
    assert_eq!(window.entries(), FEW_RECORDS as u64 / 4 * 2);
}

#[test]
fn a_file_that_is_filled_is_followed_by_larger_ones_up_to_1_mib() {
    let machine = Machine::new();
    let window = machine.start();
    let mut numbers = 0..;
    let mut largest = || {
        let fresh = |number| insert(&window, NOW.0, number) == Insertion::Fresh;
        assert!(numbers.by_ref().take(100_000).all(fresh));
        let sizes = machine.logs().into_iter();
        sizes.map(|path| fs::metadata(path).unwrap().len()).max()
    };
    let sizes = [largest(), largest()];
    assert_eq!(sizes, [Some(1 << 20); 2]);
    let killed = machine.killed().start();
    assert_eq!(killed.entries(), 200_000);
}

#[test]
fn a_lower_limit_keeps_what_is_there_and_takes_nothing() {
    let mut machine = used();
    machine.params.max_entries = 100;
    let window = machine.start();
    assert!(has_all(&window));
    assert_eq!(insert(&window, NOW.0, 9_999), Insertion::Full);
}
