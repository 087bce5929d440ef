//! The requests that are being served, of which the process has at most `limits.concurrent_requests`.

use std::{rc::Rc, sync::atomic::Ordering::Relaxed};

use super::Current;

/// A request that is being served. It counts until this is dropped.
pub struct InFlight(Rc<Current>);

impl InFlight {
    /// Counts one more request; `None`: there are as many as the limit.
    pub(super) fn begin(current: &Rc<Current>) -> Option<Self> {
        let counted = Self(Rc::clone(current));
        let others = current.shared.in_flight.fetch_add(1, Relaxed);
        // Dropping it takes the count back.
        (others < current.live.concurrent_requests).then_some(counted)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.shared.in_flight.fetch_sub(1, Relaxed);
    }
}
