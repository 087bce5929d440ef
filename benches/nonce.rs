//! The nonce window: the cost of an insertion, the cost of a nonce, and the longest time that anything blocks others.
//!
//! Times leave out the time for which the thread waited for a core, so that other load on the machine does not count. They
//! count the time for which it waited for a lock or the disk.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot begin ends")]

use std::{
    fs,
    hint::black_box,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use countersign::{
    base::clock::UnixTime,
    records::nonce::{Insertion, LocalWindow, NonceUse, OnLost, WindowParams},
};
use divan::Bencher;

const WINDOW: Duration = Duration::from_secs(300);
const START: u64 = 1_700_000_000;
const ENTRIES: u64 = 10_000_000;
/// The insertions that are timed one by one, all with one timestamp: a second at the rate that the window should bear.
const TIMED: usize = 5_000_000;
/// Batches of timed insertions in which the thread waited longer for a core are left out.
const MOST_WAITED: Duration = Duration::from_micros(100);

/// Opens a window for many entries.
fn window(path: Option<&Path>) -> LocalWindow {
    let params = WindowParams {
        path: path.map(Into::into),
        window: WINDOW,
        max_entries: 50_000_000,
    };
    LocalWindow::open(&params)
        .and_then(|opened| opened.start(UnixTime(START), None, OnLost::Refuse))
        .expect("the window opens")
}

/// Inserts requests of one consumer with a token, each with another nonce of 32 bytes.
struct Requests {
    made: u64,
    nonce: [u8; 32],
}

impl Requests {
    fn new() -> Self {
        Self {
            made: 0,
            nonce: [b'n'; 32],
        }
    }

    #[inline]
    fn insert(&mut self, window: &LocalWindow, timestamp: u64) {
        self.made += 1;
        self.nonce[..8].copy_from_slice(&self.made.to_ne_bytes());
        let insertion = window.insert(&NonceUse {
            timestamp,
            consumer: b"dpf43f3p2l4k3l03",
            token: b"nnch734d00sl2jdknnch734d00sl2jdk",
            nonce: &self.nonce,
        });
        assert_eq!(black_box(insertion), Insertion::Fresh);
    }
}

/// The order of the timestamps of successive requests.
#[derive(Clone, Copy)]
enum Order {
    /// In order of arrival: nearly all of this second or the last, one in eight up to a minute off.
    Live,
    /// Anywhere in the window, which no cache can follow.
    Scattered,
}

impl Order {
    fn timestamp(self, at: u64) -> u64 {
        let random = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let second = at * WINDOW.as_secs() / ENTRIES;
        match self {
            Self::Live if random.is_multiple_of(8) => START + 60 + second - (random >> 3) % 60,
            Self::Live => START + 60 + second - (random >> 3) % 2,
            Self::Scattered => START + random % WINDOW.as_secs(),
        }
    }
}

/// The time that this thread has spent waiting for a core, by the kernel scheduler's account.
fn waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let field = text.split_whitespace().nth(1).map(str::parse);
    Duration::from_nanos(field.and_then(Result::ok).unwrap_or(0))
}

/// The time that `work` takes, less the time that it waited for a core: other processes do not count.
fn time(work: impl FnOnce()) -> Duration {
    let before = waited();
    let began = Instant::now();
    work();
    let elapsed = began.elapsed();
    elapsed.saturating_sub(waited() - before)
}

fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

fn fill(medium: &str, path: Option<&Path>, order: Order) {
    let resident = resident_bytes();
    let window = window(path);
    let mut requests = Requests::new();
    let filling = time(|| {
        for at in 0..ENTRIES {
            requests.insert(&window, order.timestamp(at));
        }
    });
    assert_eq!(window.entries(), ENTRIES);
    let bytes = window.bytes() as f64 / ENTRIES as f64;
    // Nothing where the memory of the run before is used again.
    let resident = resident_bytes().saturating_sub(resident) as f64 / ENTRIES as f64;

    // A window later: each second one second is dropped and as many nonces are inserted.
    let mut worst_maintain = Duration::ZERO;
    let mut refilling = Duration::ZERO;
    let per_second = ENTRIES / WINDOW.as_secs();
    let seconds = 2 * WINDOW.as_secs() + 100;
    for second in 0..seconds {
        let now = UnixTime(START + 60 + WINDOW.as_secs() + second);
        let since_open = Duration::from_secs(WINDOW.as_secs() + second);
        worst_maintain = worst_maintain.max(time(|| {
            let maintained = window.maintain_at(now, since_open);
            maintained.expect("the disk has room");
        }));
        refilling += time(|| {
            for _ in 0..per_second {
                requests.insert(&window, now.0);
            }
        });
    }

    // The time of a single insertion, clock included, while another thread drops the old seconds one after the other.
    let now = START + 60 + WINDOW.as_secs() + seconds;
    let mut times = Vec::with_capacity(TIMED);
    let worst_beside = thread::scope(|scope| {
        let maintaining = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            for second in 0..WINDOW.as_secs() {
                let since_open = Duration::from_secs(WINDOW.as_secs() + seconds + second);
                worst = worst.max(time(|| {
                    let maintained = window.maintain_at(UnixTime(now + second), since_open);
                    maintained.expect("the disk has room");
                }));
                thread::sleep(Duration::from_millis(3));
            }
            worst
        });
        let mut batch = Vec::with_capacity(1_000);
        while times.len() < TIMED {
            let before = waited();
            batch.extend((0..1_000).map(|_| {
                let began = Instant::now();
                requests.insert(&window, now);
                began.elapsed()
            }));
            if waited() - before < MOST_WAITED {
                times.append(&mut batch);
            }
            batch.clear();
        }
        maintaining.join().expect("maintenance ends")
    });
    let worst_maintain = worst_maintain.max(worst_beside);
    times.sort_unstable();
    let order = match order {
        Order::Live => "live",
        Order::Scattered => "scattered",
    };
    println!(
        "{medium:9}  {order:9}  {:5.1} ns {:5.1} M/s  {:5.1} ns {:5.1} M/s  {bytes:6.2} B  {resident:6.2} B  {worst_maintain:9.1?}  {:9.1?}  {:9.1?}",
        filling.as_secs_f64() * 1e9 / ENTRIES as f64,
        ENTRIES as f64 / filling.as_secs_f64() / 1e6,
        refilling.as_secs_f64() * 1e9 / (per_second * seconds) as f64,
        (per_second * seconds) as f64 / refilling.as_secs_f64() / 1e6,
        times[times.len() - times.len() / 10_000],
        times[times.len() - 1],
    );
}

fn report() {
    println!("10 million entries, window 300 s, one thread");
    println!(
        "medium     order      filling               steady               file      memory    expire     insertion\n                                                                  a nonce   a nonce   worst      p99.99     worst"
    );
    let disk = tempfile::tempdir().expect("there is room for temporary files");
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    for order in [Order::Live, Order::Scattered] {
        fill("anonymous", None, order);
        if let Some(memory) = &memory {
            fill("tmpfs", Some(&memory.path().join("w")), order);
            _ = fs::remove_file(memory.path().join("w"));
        }
        fill("disk", Some(&disk.path().join("w")), order);
        _ = fs::remove_file(disk.path().join("w"));
    }
}

#[divan::bench]
fn insert_ten_thousand_fresh(bencher: Bencher) {
    let mut requests = Requests::new();
    bencher
        .with_inputs(|| window(None))
        .bench_local_refs(|window| {
            for at in 0..10_000 {
                requests.insert(window, START + at / 1_000);
            }
        });
}

#[divan::bench]
fn insert_used(bencher: Bencher) {
    let window = window(None);
    let used = NonceUse {
        timestamp: START,
        consumer: b"consumer",
        token: b"token",
        nonce: b"nonce",
    };
    _ = window.insert(&used);
    bencher.bench_local(|| window.insert(&used));
}

fn main() {
    report();
    divan::main();
}
