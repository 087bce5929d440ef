//! One timer a connection, armed lazily.
//!
//! A request passes through half a dozen waits, each with a limit of its own. Setting a timer for each would cost more
//! than the waits; so the timer stays armed for an earlier deadline, and when it fires too early it is armed again for
//! the remaining time.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of a connection.
#[derive(Debug, Default)]
pub struct Deadline(Option<Pin<Box<Sleep>>>);

impl Deadline {
    /// Ready once `at` has passed. The timer is armed only by the first poll that has to wait.
    pub fn poll(&mut self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= at || Instant::now() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use tokio::{task::coop, time::timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_a_wait_at_its_own_limit_whatever_was_armed_before() {
        let mut deadline = Deadline::default();
        for limit in [60, 5, 60, 1, 10] {
            let limit = Duration::from_secs(limit);
            let start = Instant::now();
            poll_fn(|context| deadline.poll(context, start + limit)).await;
            let took = start.elapsed();
            assert!(
                took >= limit && took < limit + Duration::from_millis(5),
                "{took:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn later_deadline_counts_though_an_earlier_timer_is_armed() {
        let mut deadline = Deadline::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        poll_fn(|context| {
            assert!(deadline.poll(context, later(2)).is_pending());
            Poll::Ready(())
        })
        .await;
        poll_fn(|context| deadline.poll(context, later(60))).await;
        assert!(start.elapsed() >= Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_takes_over_is_woken() {
        let mut deadline = Deadline::default();
        let at = Instant::now() + Duration::from_secs(5);
        let waits = tokio::spawn(async move {
            poll_fn(|context| {
                assert!(deadline.poll(context, at).is_pending());
                Poll::Ready(())
            })
            .await;
            deadline
        });
        let mut deadline = waits.await.unwrap();
        let ends = poll_fn(|context| deadline.poll(context, at));
        timeout(Duration::from_secs(60), ends).await.unwrap();
        assert!(Instant::now() >= at);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_done_too_much_at_once_is_woken_too() {
        let mut deadline = Deadline::default();
        let at = Instant::now() + Duration::from_secs(5);
        poll_fn(|context| {
            while let Poll::Ready(step) = coop::poll_proceed(context) {
                step.made_progress();
            }
            assert!(deadline.poll(context, at).is_pending());
            Poll::Ready(())
        })
        .await;
        let ends = poll_fn(|context| deadline.poll(context, at));
        timeout(Duration::from_secs(60), ends).await.unwrap();
        assert!(Instant::now() >= at);
    }
}
