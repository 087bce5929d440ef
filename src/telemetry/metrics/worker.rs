//! The counters of one worker.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    histogram::{Histogram, REQUEST_BOUNDS, SKEW_BOUNDS, VERIFY_BOUNDS, clamped},
    verdict::Verdict,
};
use crate::oauth::diagnosis::Mistake;

/// Why a TLS handshake of a caller failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The caller has no certificate that `listen.tls.client_ca` accepts.
    CallerCertificate,
    /// The caller does not accept our certificate.
    OurCertificate,
    /// It took longer than `limits.handshake_timeout`.
    TooSlow,
    /// Anything else, such as plain HTTP or no common version.
    Other,
}

impl HandshakeFailure {
    /// Every failure and its word.
    pub const ALL: [(Self, &str); 4] = [
        (Self::CallerCertificate, "caller_certificate"),
        (Self::OurCertificate, "our_certificate"),
        (Self::TooSlow, "too_slow"),
        (Self::Other, "other"),
    ];
}

/// The counters of one worker, on cache lines of their own.
///
/// Each method is meant for the worker's own thread: a count is then a plain load and store, no locked instruction.
/// Called from two threads at once nothing breaks, but a count may be lost.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    pub(super) requests: [AtomicU64; Verdict::COUNT],
    pub(super) observed: [AtomicU64; Verdict::COUNT],
    pub(super) diagnoses: [AtomicU64; Mistake::COUNT],
    pub(super) previous_secrets: AtomicU64,
    pub(super) verify: Histogram,
    pub(super) upstream: Histogram,
    pub(super) request: Histogram,
    pub(super) clock_skew: Histogram,
    pub(super) handshakes: [AtomicU64; HandshakeFailure::ALL.len()],
    pub(super) connections: AtomicU64,
}

impl WorkerMetrics {
    pub(super) fn new() -> Self {
        Self {
            requests: [const { AtomicU64::new(0) }; Verdict::COUNT],
            observed: [const { AtomicU64::new(0) }; Verdict::COUNT],
            diagnoses: [const { AtomicU64::new(0) }; Mistake::COUNT],
            previous_secrets: AtomicU64::new(0),
            verify: Histogram::new(VERIFY_BOUNDS),
            upstream: Histogram::new(REQUEST_BOUNDS),
            request: Histogram::new(REQUEST_BOUNDS),
            clock_skew: Histogram::new(SKEW_BOUNDS),
            handshakes: [const { AtomicU64::new(0) }; HandshakeFailure::ALL.len()],
            connections: AtomicU64::new(0),
        }
    }

    /// Counts a request that is done.
    pub fn request(&self, verdict: Verdict) {
        count(&self.requests[verdict.index()]);
    }

    /// Counts what would have rejected a request that `observe` let through. The request
    /// itself counts as [`Verdict::Observed`].
    pub fn observed(&self, verdict: Verdict) {
        count(&self.observed[verdict.index()]);
    }

    /// Counts a TLS handshake that failed.
    pub fn handshake_failed(&self, failure: HandshakeFailure) {
        count(&self.handshakes[failure as usize]);
    }

    /// Counts the mistake that makes a wrong signature.
    pub fn diagnosed(&self, mistake: Mistake) {
        count(&self.diagnoses[mistake.index()]);
    }

    /// Counts a call that was signed with a replaced secret during its grace.
    pub fn previous_secret(&self) {
        count(&self.previous_secrets);
    }

    /// Counts the time that verification took, in nanoseconds.
    pub fn verify_nanoseconds(&self, nanoseconds: u64) {
        self.verify.record(clamped(nanoseconds));
    }

    /// Counts the time from the request sent to the API to the head of its response, in nanoseconds.
    pub fn upstream_nanoseconds(&self, nanoseconds: u64) {
        self.upstream.record(clamped(nanoseconds));
    }

    /// Counts the time from a request's head to the end of its response, in nanoseconds.
    pub fn request_nanoseconds(&self, nanoseconds: u64) {
        self.request.record(clamped(nanoseconds));
    }

    /// Counts how far a consumer's clock is ahead of ours; below zero it is behind. Anybody can send any timestamp, so what
    /// is more than a day counts as a day: the sum stays of use.
    pub fn clock_skew_seconds(&self, seconds: i64) {
        let seconds = seconds.clamp(-86_400, 86_400);
        self.clock_skew.record(seconds * 1_000_000_000);
    }

    /// Counts a connection that was accepted, from any thread.
    pub fn connection_opened(&self) {
        // A lost count would stay wrong for good, and a connection is rare beside its requests: so a locked one.
        self.connections.fetch_add(1, Relaxed);
    }

    /// Counts a connection that was closed, from any thread; once for each that was opened.
    pub fn connection_closed(&self) {
        self.connections
            .update(Relaxed, Relaxed, |open| open.saturating_sub(1));
    }
}

/// One more, by the only writer.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}
