//! How a thread answers a caller that awaits: once, or with a fault when the time-out is over.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::SqliteFault;
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

    fn lock(&self) -> MutexGuard<'_, Option<oneshot::Sender<Result<T, StoreError>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers, unless there is an answer already.
    pub(super) fn answer(&self, result: Result<T, StoreError>) {
        let sender = self.lock().take();
        if let Some(sender) = sender {
            // A caller that has gone away needs no answer.
            let _ = sender.send(result);
        }
    }
}

impl<T: Send> Waiter for Slot<T> {
    fn is_waiting(&self) -> bool {
        self.lock()
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
pub(super) struct Watchdog(mpsc::Sender<Watched>);

type Watched = (Instant, Weak<dyn Waiter>);

impl Watchdog {
    /// Starts the thread, which ends when this is dropped.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, callers) = mpsc::channel();
        let thread = thread::Builder::new().name("store-watch".to_owned());
        thread.spawn(move || watch(&callers))?;
        Ok(Self(sender))
    }

    /// Fails `waiter` if it has no answer within `timeout`.
    pub(super) fn watch(&self, waiter: &Arc<dyn Waiter>, timeout: Duration) {
        // The thread has not ended before.
        let _ = self
            .0
            .send((Instant::now() + timeout, Arc::downgrade(waiter)));
    }
}

fn watch(callers: &mpsc::Receiver<Watched>) {
    while let Ok(first) = callers.recv() {
        let mut waiting = vec![first];
        while !waiting.is_empty() {
            thread::sleep(TICK);
            waiting.extend(callers.try_iter());
            let now = Instant::now();
            waiting.retain(|(deadline, waiter)| {
                let Some(waiter) = waiter.upgrade().filter(|waiter| waiter.is_waiting()) else {
                    return false;
                };
                if now >= *deadline {
                    waiter.fail(SqliteFault::TimedOut.into());
                }
                now < *deadline
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_whoever_waits_too_long_and_nobody_else() {
        let watchdog = Watchdog::start().unwrap();
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
    }

    #[test]
    fn knows_when_the_caller_has_gone_away() {
        let (slot, receiver) = Slot::<u8>::new();
        assert!(slot.is_waiting());
        drop(receiver);
        assert!(!slot.is_waiting());
    }
}
