//! What all workers share, and the phases of the process.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{AnonymousCalls, Live};
use crate::{
    request::verify::Verifier,
    telemetry::{
        calls::{previous_secrets::PreviousSecrets, rejections::Rejections},
        conditions::Conditions,
        metrics::Metrics,
        traces::Traces,
    },
};

/// The state that all workers share.
pub struct Shared {
    /// The configuration that a reload replaces.
    pub live: ArcSwap<Live>,
    /// Counted up with each reload, after `live`.
    pub generation: AtomicU64,
    /// Verifies signed calls.
    pub verifier: Arc<Verifier>,
    /// The requests that are permitted and have proved nothing.
    pub anonymous: AnonymousCalls,
    /// The metrics of all workers.
    pub metrics: Arc<Metrics>,
    /// The conditions that last, such as a full disk.
    pub conditions: Arc<Conditions>,
    /// The last calls that were rejected or failed.
    pub rejections: Arc<Rejections>,
    /// The traces; `None`: there are none.
    pub traces: Option<Arc<Traces>>,
    /// The consumers that have signed with a previous secret.
    pub previous_secrets: PreviousSecrets,
    /// The phase of the process.
    pub phase: watch::Receiver<Phase>,
    /// The phase as a number, set before `phase`: reading it writes nothing that workers share.
    pub reached: AtomicU8,
}

impl Shared {
    /// Enters a phase; `sender` is the one of `phase`.
    pub fn enter(&self, phase: Phase, sender: &watch::Sender<Phase>) {
        self.reached.store(phase as u8, Ordering::Relaxed);
        // Without a receiver no task waits for it.
        let _ = sender.send(phase);
    }

    /// Whether the process is in that phase or a later one.
    pub fn has_reached(&self, phase: Phase) -> bool {
        self.reached.load(Ordering::Relaxed) >= phase as u8
    }
}

/// The phases of the process, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It serves.
    Serving,
    /// It serves but is not ready, so that a load balancer notices.
    NotReady,
    /// It no longer accepts connections and finishes what it has.
    Draining,
    /// It no longer takes requests; those that came are decided.
    DecidingLast,
    /// It no longer decides, and gives up what another process needs; responses and tunnels go on.
    HandedOver,
    /// It drops what is left.
    Ended,
}
