//! The wait for a decision, which ends with the process.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    task::Poll,
};

use tokio::sync::watch;

use super::Phase;
use crate::{base::cold, provider::respond::Failure, wire::server::caller::stream::CallerStream};

/// The decisions of a worker that wait. They may still use nonces and the store.
pub struct Waiting {
    phase: watch::Receiver<Phase>,
    /// Each of them has a clone.
    token: Rc<()>,
}

impl Waiting {
    /// No decision waits yet.
    pub(crate) fn new(phase: watch::Receiver<Phase>) -> Self {
        Self {
            phase,
            token: Rc::new(()),
        }
    }

    /// The number of decisions that wait.
    pub(crate) fn count(&self) -> usize {
        Rc::strong_count(&self.token) - 1
    }

    /// Waits for a decision on a request of `caller` or a part of it, unless this process has handed over before that is
    /// done, or the request has proved nothing and is dropped for others.
    ///
    /// # Errors
    /// [`Failure::Ending`], and [`Failure::Body`] if it was dropped.
    pub fn decided<'w, T: 'w>(
        &'w self,
        caller: &'w CallerStream,
        decision: impl Future<Output = T> + 'w,
    ) -> Pin<Box<dyn Future<Output = Result<T, Failure>> + 'w>> {
        // Most decisions never wait.
        cold::boxed(async move {
            let _counted = Rc::clone(&self.token);
            let mut phase = self.phase.clone();
            let mut decision = pin!(decision);
            let decided = poll_fn(|context| match decision.as_mut().poll(context) {
                Poll::Ready(decided) => {
                    caller.proceed();
                    Poll::Ready(Ok(decided))
                }
                Poll::Pending => match caller.wait(context) {
                    Ok(()) => Poll::Pending,
                    Err(dropped) => Poll::Ready(Err(dropped.into())),
                },
            });
            tokio::select! {
                biased;
                decided = decided => decided,
                // An error means that the process is gone.
                _ = phase.wait_for(|phase| *phase >= Phase::HandedOver) => Err(Failure::Ending),
            }
        })
    }
}
