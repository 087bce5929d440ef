//! Measures the parts of a request.

use std::{cell::Cell, time::Duration};

use tokio::time::Instant;

/// A stopwatch. The clock is read once where one part ends and the next begins.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    last: Cell<Instant>,
}

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            last: Cell::new(now),
        }
    }

    /// Ends a part and returns its duration.
    pub fn lap(&self) -> Duration {
        let now = Instant::now();
        now.duration_since(self.last.replace(now))
    }

    /// The time at which the last part ended.
    pub fn last(&self) -> Instant {
        self.last.get()
    }

    /// The time from the beginning to the end of the last part.
    pub fn total(&self) -> Duration {
        self.last().duration_since(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn parts_make_up_the_whole() {
        let stopwatch = Stopwatch::start();
        for seconds in [3, 0, 4] {
            let part = Duration::from_secs(seconds);
            tokio::time::advance(part).await;
            assert_eq!(stopwatch.lap(), part);
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(stopwatch.total(), Duration::from_secs(7));
        assert_eq!(stopwatch.last().elapsed(), Duration::from_secs(5));
    }
}
