//! One timer a connection, armed lazily.
//!
//! A request passes through half a dozen waits, each with a limit of its own. Setting a timer for each would cost
//! more than the waits; so the timer stays armed for an earlier deadline, and when it fires too early it is armed
//! again for what is left.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A wait took longer than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// The timer of a connection.
#[derive(Debug)]
pub struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    at: Instant,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            timer: None,
            at: Instant::now(),
        }
    }
}

impl Deadline {
    /// Sets the deadline to `limit` from now; the timer is armed only by the first poll that has to wait.
    pub fn set(&mut self, limit: Duration) {
        self.at = Instant::now() + limit;
    }

    /// Sets the deadline to a point in time.
    pub fn set_at(&mut self, at: Instant) {
        self.at = at;
    }

    /// Ready once the deadline has passed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Elapsed> {
        let timer = match &mut self.timer {
            Some(timer) if timer.deadline() <= self.at => timer,
            Some(timer) => {
                timer.as_mut().reset(self.at);
                timer
            }
            none => none.insert(Box::pin(sleep_until(self.at))),
        };
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= self.at || Instant::now() >= self.at {
                return Poll::Ready(Elapsed);
            }
            timer.as_mut().reset(self.at);
        }
        Poll::Pending
    }

    /// Runs `wait` for at most `limit`.
    ///
    /// # Errors
    /// [`Elapsed`] if `wait` was not ready in time; it is dropped then.
    pub async fn within<F: Future>(
        &mut self,
        limit: Duration,
        wait: F,
    ) -> Result<F::Output, Elapsed> {
        let mut wait = std::pin::pin!(wait);
        let mut set = false;
        std::future::poll_fn(|context| {
            if let Poll::Ready(output) = wait.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if !set {
                self.set(limit);
                set = true;
            }
            self.poll(context).map(Err)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_a_wait_at_its_own_limit_whatever_was_armed_before() {
        let mut deadline = Deadline::default();
        for limit in [60, 5, 60, 1, 10] {
            let limit = Duration::from_secs(limit);
            let start = Instant::now();
            let waited = deadline.within(limit, std::future::pending::<()>()).await;
            assert_eq!(waited, Err(Elapsed));
            let took = start.elapsed();
            assert!(
                took >= limit && took < limit + Duration::from_millis(5),
                "{took:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_is_returned_though_a_shorter_timer_is_armed() {
        let mut deadline = Deadline::default();
        let short = deadline.within(Duration::from_secs(2), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
        assert_eq!(short.await, Ok(()));
        let long = deadline.within(Duration::from_secs(60), async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            7
        });
        assert_eq!(long.await, Ok(7));
    }
}
