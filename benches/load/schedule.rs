//! The times at which requests are due in an open loop.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mio::Waker;

/// Times drawn beforehand, and a thread that wakes the loop at each.
pub(crate) struct Schedule {
    start: Instant,
    due: Vec<Duration>,
    shared: Arc<Shared>,
}

struct Shared {
    /// The number of requests that the loop knows to be due: it need not be woken for them.
    known: AtomicUsize,
    /// Lives as long as the loop: if the sending thread closed it, the last call to wake might be lost.
    waker: Waker,
}

impl Schedule {
    /// Arrivals of a Poisson process, the same ones in every run.
    pub(crate) fn start(rate: f64, requests: usize, start: Instant, waker: Waker) -> Self {
        let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut at = 0.0;
        let due: Vec<Duration> = (0..requests)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let uniform = ((random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
                at -= uniform.ln() / rate;
                Duration::from_secs_f64(at)
            })
            .collect();
        // Otherwise the kernel may wake the thread 50 µs late.
        _ = fs::write("/proc/self/timerslack_ns", "1");
        let times = due.clone();
        let shared = Arc::new(Shared {
            known: AtomicUsize::new(0),
            waker,
        });
        let loops = Arc::clone(&shared);
        thread::spawn(move || {
            let mut next = 0;
            while let Some(due) = times.get(next) {
                // Also wakes when this thread is late: the loop may have looked just before the time.
                thread::sleep((start + *due).saturating_duration_since(Instant::now()));
                next += 1;
                let known = loops.known.load(Ordering::Relaxed);
                if known < next {
                    loops.waker.wake().expect("the loop is there");
                }
                next = next.max(known);
            }
        });
        Self { start, due, shared }
    }

    /// The time when the request of this number was due, if that time has come.
    pub(crate) fn due(&self, number: usize) -> Option<Instant> {
        let due = self.start + *self.due.get(number)?;
        if due > Instant::now() {
            return None;
        }
        self.shared.known.store(number + 1, Ordering::Relaxed);
        Some(due)
    }
}
