//! Heartbeats: each worker shows that it runs, so that a hung one is noticed.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// A worker whose last heartbeat is older than this hangs.
pub const HUNG_AFTER: Duration = Duration::from_secs(5);

/// The last heartbeat of each worker.
#[derive(Debug)]
pub struct Heartbeats {
    started: Instant,
    /// In milliseconds since `started`, in the order of the workers.
    last: Box<[AtomicU64]>,
}

/// A worker that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hung {
    /// Its number, from 0.
    pub worker: usize,
    /// The time since its last heartbeat.
    pub silent_for: Duration,
}

impl fmt::Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, seconds) = (self.worker, self.silent_for.as_secs());
        write!(f, "worker {worker} has not run for {seconds} s")
    }
}

impl Heartbeats {
    /// This many workers, which all run now.
    pub fn new(workers: usize) -> Self {
        Self {
            started: Instant::now(),
            last: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Notes that a worker runs.
    pub fn beat(&self, worker: usize) {
        if let Some(last) = self.last.get(worker) {
            let now = u64::try_from(self.started.elapsed().as_millis());
            last.store(now.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// The worker that has not run for the longest time, if that is longer than `limit`.
    pub fn hung(&self, limit: Duration) -> Option<Hung> {
        let last = |last: &AtomicU64| Duration::from_millis(last.load(Ordering::Relaxed));
        let workers = self.last.iter().map(last).enumerate();
        let (worker, last) = workers.min_by_key(|(_, last)| *last)?;
        let silent_for = self.started.elapsed().saturating_sub(last);
        (silent_for > limit).then_some(Hung { worker, silent_for })
    }
}
