//! What stands between a caller that awaits and a thread that works: one answer, at the latest when time is up.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::Trouble;
use crate::store::StoreError;

/// A caller that waits for an answer of some type.
pub(super) trait Waiter: Send + Sync {
    /// Whether nobody has answered yet and the caller still listens.
    fn is_waiting(&self) -> bool;
    /// Answers with a fault, unless there is an answer already.
    fn fail(&self, error: StoreError);
}

/// The place of one answer.
pub(super) struct Slot<T>(Mutex<Option<oneshot::Sender<Result<T, StoreError>>>>);

impl<T> Slot<T> {
    /// A place, and where the answer comes out.
    pub(super) fn new() -> (Arc<Self>, oneshot::Receiver<Result<T, StoreError>>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Self(Mutex::new(Some(sender)))), receiver)
    }

    /// Answers, unless there is an answer already.
    pub(super) fn answer(&self, result: Result<T, StoreError>) {
        let sender = lock(&self.0).take();
        if let Some(sender) = sender {
            // A caller that has gone away needs no answer.
            let _ = sender.send(result);
        }
    }
}

impl<T: Send> Waiter for Slot<T> {
    fn is_waiting(&self) -> bool {
        lock(&self.0)
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }

    fn fail(&self, error: StoreError) {
        self.answer(Err(error));
    }
}

/// How often callers are looked through while any waits.
const TICK: Duration = Duration::from_millis(250);

/// Tells callers when their time is up, whatever the threads that should answer are stuck in.
///
/// This is a thread and not a timer of tokio's, because a caller's runtime may have no timers, and under a paused
/// clock they would fire while a thread is at work.
#[derive(Default)]
pub(super) struct Watchdog {
    state: Mutex<Watched>,
    wake: Condvar,
}

#[derive(Default)]
struct Watched {
    callers: Vec<(Instant, Weak<dyn Waiter>)>,
    is_closed: bool,
}

impl Watchdog {
    /// Fails `waiter` if it has no answer within `patience`.
    pub(super) fn watch(&self, waiter: &Arc<dyn Waiter>, patience: Duration) {
        let mut state = lock(&self.state);
        state
            .callers
            .push((Instant::now() + patience, Arc::downgrade(waiter)));
        let is_first = state.callers.len() == 1;
        drop(state);
        if is_first {
            self.wake.notify_one();
        }
    }

    /// Watches until [`Self::close`].
    pub(super) fn run(&self) {
        let mut state = lock(&self.state);
        while !state.is_closed {
            state = if state.callers.is_empty() {
                self.wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner)
            } else {
                let (state, _) = self
                    .wake
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                state
            };
            let now = Instant::now();
            state.callers.retain(|(deadline, waiter)| {
                let Some(waiter) = waiter.upgrade().filter(|waiter| waiter.is_waiting()) else {
                    return false;
                };
                if now >= *deadline {
                    waiter.fail(Trouble::TimedOut.into());
                }
                now < *deadline
            });
        }
    }

    /// Ends [`Self::run`].
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.wake.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn fails_whoever_waits_too_long_and_nobody_else() {
        let watchdog = Watchdog::default();
        thread::scope(|scope| {
            scope.spawn(|| watchdog.run());
            let (late, late_answer) = Slot::<u8>::new();
            let (early, early_answer) = Slot::<u8>::new();
            watchdog.watch(&(Arc::clone(&late) as _), Duration::ZERO);
            watchdog.watch(&(Arc::clone(&early) as _), Duration::from_secs(3600));
            assert!(matches!(
                late_answer.blocking_recv(),
                Ok(Err(StoreError::Unavailable(_)))
            ));
            assert!(!late.is_waiting());
            early.answer(Ok(7));
            assert!(matches!(early_answer.blocking_recv(), Ok(Ok(7))));
            watchdog.close();
        });
    }

    #[test]
    fn knows_when_the_caller_has_gone_away() {
        let (slot, receiver) = Slot::<u8>::new();
        assert!(slot.is_waiting());
        drop(receiver);
        assert!(!slot.is_waiting());
    }
}
