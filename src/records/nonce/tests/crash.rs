//! The files of a killed process, and a full disk. `segment` tests a stop between any two stores.

use std::{
    env,
    io::{Read, Write},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{super::journal::FEW_RECORDS, *};

/// The variable that gives a child process its file.
const CHILD_PATH: &str = "COUNTERSIGN_NONCE_TEST_CHILD";

/// The process that [`kill_nine_loses_nothing_that_was_answered`] kills; does nothing in an ordinary run.
#[test]
fn child_that_inserts_until_killed() {
    let Ok(path) = env::var(CHILD_PATH) else {
        return;
    };
    let params = WindowParams {
        path: Some(path.into()),
        window: WINDOW,
        max_entries: 10_000_000,
    };
    let opened = LocalWindow::open(&params).unwrap();
    assert!(!matches!(opened.continuity, Continuity::Lost { .. }));
    let window = opened.start(NOW, None, OnLost::Refuse).unwrap();
    let round = window.entries();
    thread::scope(|scope| {
        for thread in 0..2u64 {
            let window = &window;
            scope.spawn(move || {
                for number in 0.. {
                    let number = round << 32 | thread << 31 | number;
                    assert_eq!(insert(window, NOW.0 + number % 3, number), Insertion::Fresh);
                    // One write, which a pipe takes whole or not at all.
                    std::io::stderr().write_all(&number.to_ne_bytes()).unwrap();
                }
            });
        }
    });
}

/// The name of a test of this module, as the test program takes it.
fn test_named(name: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{name}")
}

#[test]
fn kill_nine_loses_nothing_that_was_answered() {
    let machine = Machine::new();
    let mut answered: Vec<u64> = Vec::new();
    for round in 0..20u64 {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg(test_named("child_that_inserts_until_killed"))
            .env(CHILD_PATH, machine.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut reports = child.stderr.take().unwrap();
        let (enough, wait) = mpsc::channel();
        // Killed in the middle of its work, after another number of answers each time.
        let quota = 500 + round * 977 % 9_000;
        let reader = thread::spawn(move || {
            let mut numbers = Vec::new();
            let mut bytes = [0; 8];
            while reports.read_exact(&mut bytes).is_ok() {
                numbers.push(u64::from_ne_bytes(bytes));
                if numbers.len() as u64 == quota {
                    enough.send(()).unwrap();
                }
            }
            numbers
        });
        wait.recv().expect("the child ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        answered.extend(reader.join().unwrap());

        let params = WindowParams {
            max_entries: 10_000_000,
            ..machine.params.clone()
        };
        let opened = patiently(|| LocalWindow::open(&params)).unwrap();
        assert_eq!(opened.continuity, Continuity::Continued, "round {round}");
        let window = opened.start(NOW, None, OnLost::Refuse).unwrap();
        let entries = window.entries();
        // Each thread may have been killed between an insertion and its report.
        assert!(entries >= answered.len() as u64);
        assert!(entries <= answered.len() as u64 + 2 * (round + 1));
        for number in &answered {
            let insertion = insert(&window, NOW.0 + number % 3, *number);
            assert_eq!(insertion, Insertion::Used, "round {round}, {number:#x}");
        }
    }
}

/// The process that [`a_full_disk_refuses_and_recovers`] starts under a limit; does nothing in an ordinary run.
#[test]
fn child_that_fills_its_disk() {
    let Ok(path) = env::var(CHILD_PATH) else {
        return;
    };
    let params = WindowParams {
        path: Some(path.into()),
        window: WINDOW,
        max_entries: 10_000_000,
    };
    let opened = LocalWindow::open(&params).unwrap();
    let window = opened.start(NOW, None, OnLost::Refuse).unwrap();
    // The file that is there takes its records, and no other one can be made.
    limit_files(Some(4096));
    let mut answered = Vec::new();
    let mut refused = 0;
    for number in 0..1_000_000 {
        match insert(&window, NOW.0, number) {
            Insertion::Fresh => answered.push(number),
            Insertion::Full => refused += 1,
            other => panic!("{other:?}"),
        }
        if refused == 1_000 {
            break;
        }
    }
    assert_eq!(refused, 1_000, "the disk never was full");
    assert_eq!(answered.len(), FEW_RECORDS);
    // No nonce is forgotten for it, and time makes room again.
    for number in &answered {
        assert_eq!(insert(&window, NOW.0, *number), Insertion::Used);
    }
    // There is room for small files only.
    limit_files(Some(100 << 10));
    maintain(&window, NOW.0 + 301, 400);
    maintain(&window, NOW.0 + 301, 800);
    for number in 0..2 * answered.len() as u64 {
        assert_eq!(insert(&window, NOW.0 + 301, number), Insertion::Fresh);
    }
}

/// The machine of a child process that was started for its test; `None` in an ordinary run.
fn child_machine() -> Option<Machine> {
    let path = PathBuf::from(env::var_os(CHILD_PATH)?);
    let mut machine = Machine::new();
    machine.directory = tempfile::tempdir_in(path.parent().unwrap()).unwrap();
    machine.params.path = Some(machine.directory.path().join("window.nonces"));
    Some(machine)
}

/// Inserts new nonces, and returns the number of the next one.
fn insert_fresh(window: &LocalWindow, from: u64, count: usize) -> u64 {
    let to = from + count as u64;
    for number in from..to {
        assert_eq!(insert(window, NOW.0, number), Insertion::Fresh, "{number}");
    }
    to
}

/// All nonces below this number survive a restart.
fn assert_kept(machine: &Machine, window: LocalWindow, numbers: u64) {
    drop(window);
    let window = machine.start();
    assert_eq!(window.entries(), numbers);
    for number in 0..numbers {
        assert_eq!(insert(&window, NOW.0, number), Insertion::Used);
    }
}

/// The process that [`a_file_with_room_is_kept_while_no_other_can_be_made`] starts; does nothing in an ordinary run.
#[test]
fn child_that_gets_no_file() {
    let Some(machine) = child_machine() else {
        return;
    };
    let window = machine.start();
    limit_files(Some(4096));
    let half = FEW_RECORDS / 2;
    let mut next = insert_fresh(&window, 0, FEW_RECORDS - half);
    // The current file is old, and has room.
    for second in 200..205 {
        maintain(&window, NOW.0, second);
        next = insert_fresh(&window, next, half / 10);
    }
    next = insert_fresh(&window, next, half - half / 10 * 5);
    for second in 205..210 {
        assert_eq!(insert(&window, NOW.0, next), Insertion::Full);
        maintain(&window, NOW.0, second);
    }
    assert_eq!(machine.logs().len(), 1);
    limit_files(None);
    let killed = machine.killed();
    assert_kept(&killed, killed.start(), next);
    maintain(&window, NOW.0, 210);
    next = insert_fresh(&window, next, 2 * FEW_RECORDS);
    assert_kept(&machine, window, next);
}

/// The process that [`a_window_begins_once_there_is_room`] starts; does nothing in an ordinary run.
#[test]
fn child_that_starts_without_room() {
    let Some(machine) = child_machine() else {
        return;
    };
    limit_files(Some(4096));
    let window = machine.start();
    for second in 0..5 {
        maintain(&window, NOW.0, second);
        assert_eq!(insert(&window, NOW.0, 1), Insertion::Full);
        assert_eq!(machine.logs(), Vec::<PathBuf>::new());
    }
    limit_files(None);
    maintain(&window, NOW.0, 5);
    let next = insert_fresh(&window, 0, 2 * FEW_RECORDS);
    assert_kept(&machine, window, next);
}

/// The process that [`a_small_file_is_made_if_there_is_no_room_for_a_large_one`] starts; does nothing in an ordinary run.
#[test]
fn child_that_gets_small_files() {
    let Some(machine) = child_machine() else {
        return;
    };
    limit_files(Some(100 << 10));
    let window = machine.start();
    let next = insert_fresh(&window, 0, 20 * FEW_RECORDS);
    limit_files(None);
    assert_kept(&machine, window, next);
}

/// Has the system make no file of more bytes; `None`: as before.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
}

#[test]
fn a_file_with_room_is_kept_while_no_other_can_be_made() {
    run_child("child_that_gets_no_file");
}

#[test]
fn a_window_begins_once_there_is_room() {
    run_child("child_that_starts_without_room");
}

#[test]
fn a_small_file_is_made_if_there_is_no_room_for_a_large_one() {
    run_child("child_that_gets_small_files");
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    run_child("child_that_fills_its_disk");
}

fn run_child(name: &str) {
    let machine = Machine::new();
    // The shell ignores the signal of a file that grows too large, and a program that it starts does as well: it gets an
    // error, as it does from a full disk.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "--test-threads=1"])
        .arg(test_named(name))
        .env(CHILD_PATH, machine.path())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
