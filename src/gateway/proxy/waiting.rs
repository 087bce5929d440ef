//! The wait for a decision, which ends with the process.

use std::{
    cell::Cell,
    pin::{Pin, pin},
};

use tokio::sync::watch;

use super::Phase;
use crate::{base::cold, provider::respond::Failure};

/// The decisions of a worker that wait. They may still use nonces and the store.
pub struct Waiting {
    phase: watch::Receiver<Phase>,
    count: Cell<usize>,
}

impl Waiting {
    /// No decision waits yet.
    pub(super) const fn new(phase: watch::Receiver<Phase>) -> Self {
        Self {
            phase,
            count: Cell::new(0),
        }
    }

    /// The number of decisions that wait.
    pub(super) const fn count(&self) -> usize {
        self.count.get()
    }

    /// Waits for a decision or a part of it, unless this process has handed over before that is done.
    ///
    /// # Errors
    /// [`Failure::Ending`].
    pub fn decided<'w, T: 'w>(
        &'w self,
        decision: impl Future<Output = T> + 'w,
    ) -> Pin<Box<dyn Future<Output = Result<T, Failure>> + 'w>> {
        // Most decisions never wait.
        cold::boxed(async move {
            let _counted = Counted::begin(&self.count);
            let mut phase = self.phase.clone();
            let decision = pin!(decision);
            tokio::select! {
                biased;
                decided = decision => Ok(decided),
                // An error means that the process is gone.
                _ = phase.wait_for(|phase| *phase >= Phase::HandedOver) => Err(Failure::Ending),
            }
        })
    }
}

/// A decision that waits.
struct Counted<'w>(&'w Cell<usize>);

impl<'w> Counted<'w> {
    fn begin(count: &'w Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
