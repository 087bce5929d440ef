//! The task that an event wakes.

use std::task::{Context, Waker};

use tokio::task::coop;

/// The task that a future of tokio wakes. That task need not poll the future again before it is woken: each poll would store
/// its waker again, with several locks and atomic operations.
#[derive(Debug, Default)]
pub struct NotedTask(Option<Waker>);

impl NotedTask {
    /// Whether the task of `context` is the one that was noted.
    #[must_use]
    pub fn is(&self, context: &Context<'_>) -> bool {
        let noted = self.0.as_ref();
        noted.is_some_and(|waker| waker.will_wake(context.waker()))
    }

    /// Notes the task of `context`, in which a future has just been pending.
    pub fn note(&mut self, context: &Context<'_>) {
        if !coop::has_budget_remaining() {
            // tokio has the task polled again soon, and the future has not stored its waker.
            self.0 = None;
        } else if !self.is(context) {
            self.0 = Some(context.waker().clone());
        }
    }
}
