//! One timer a connection, armed lazily.
//!
//! A request passes through half a dozen waits, each with a limit of its own. Setting a timer for each would cost
//! more than the waits; so the timer stays armed for an earlier deadline, and when it fires too early it is armed
//! again for what is left.

use std::{
    pin::Pin,
    task::{Context, Poll},
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
    /// Sets the deadline to a point in time; the timer is armed only by the first poll that has to wait.
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
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_a_wait_at_its_own_limit_whatever_was_armed_before() {
        let mut deadline = Deadline::default();
        for limit in [60, 5, 60, 1, 10] {
            let limit = Duration::from_secs(limit);
            let start = Instant::now();
            deadline.set_at(start + limit);
            poll_fn(|context| deadline.poll(context)).await;
            let took = start.elapsed();
            assert!(
                took >= limit && took < limit + Duration::from_millis(5),
                "{took:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_deadline_counts_though_the_timer_is_armed_for_an_earlier_one() {
        let mut deadline = Deadline::default();
        let start = Instant::now();
        deadline.set_at(start + Duration::from_secs(2));
        poll_fn(|context| {
            assert!(deadline.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        deadline.set_at(start + Duration::from_secs(60));
        poll_fn(|context| deadline.poll(context)).await;
        assert!(start.elapsed() >= Duration::from_secs(60));
    }
}
