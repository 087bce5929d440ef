//! The task that an event wakes.

use std::task::{Context, Waker};

/// The task that polled a future last. What has told its event to wake that task need not be polled by it again before the
/// event: each poll would store the waker anew, with several locks and atomic operations.
#[derive(Debug, Default)]
pub struct NotedTask(Option<Waker>);

impl NotedTask {
    /// Whether the task of `context` is the one that was noted.
    #[must_use]
    pub fn is(&self, context: &Context<'_>) -> bool {
        let noted = self.0.as_ref();
        noted.is_some_and(|waker| waker.will_wake(context.waker()))
    }

    /// Notes the task of `context`.
    pub fn note(&mut self, context: &Context<'_>) {
        if !self.is(context) {
            self.0 = Some(context.waker().clone());
        }
    }
}
