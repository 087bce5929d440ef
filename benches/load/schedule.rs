//! When requests are due in an open loop.

use std::{
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use mio::Waker;

/// Times drawn beforehand, and a thread that wakes the loop at each.
pub(crate) struct Schedule {
    start: Instant,
    due: Vec<Duration>,
    /// Kept with the loop: closed by the thread that sent it, the last call to wake might be lost.
    _waker: Arc<Waker>,
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
        // The kernel may else wake the thread 50 µs late.
        _ = fs::write("/proc/self/timerslack_ns", "1");
        let times = due.clone();
        let waker = Arc::new(waker);
        let caller = Arc::clone(&waker);
        thread::spawn(move || {
            for due in times {
                // Woken for each, also when this thread comes late: the loop may have looked just before the time.
                thread::sleep((start + due).saturating_duration_since(Instant::now()));
                caller.wake().expect("the loop is there");
            }
        });
        Self {
            start,
            due,
            _waker: waker,
        }
    }

    /// When the request of this number was due, if it is by now.
    pub(crate) fn due(&self, number: usize) -> Option<Instant> {
        let due = self.start + *self.due.get(number)?;
        (due <= Instant::now()).then_some(due)
    }
}
