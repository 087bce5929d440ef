//! Counts and logs a request once it is over, however it ends.

use std::{net::IpAddr, rc::Rc, sync::Arc, sync::atomic::Ordering, time::Duration};

use http::{Method, Uri};

use super::{Current, Shared, Worker, nanoseconds, stopwatch::Stopwatch};
use crate::{
    policy::permit::Permit,
    server::response::Ended,
    telemetry::{lines::ACCESS, metrics::Verdict, request_id::RequestId},
};

/// A request that is being served, among all workers'.
pub(super) struct InFlight(Arc<Shared>);

impl InFlight {
    /// Counts one more; and how many there are now.
    pub(super) fn begin(shared: &Arc<Shared>) -> (Self, usize) {
        let before = shared.in_flight.fetch_add(1, Ordering::Relaxed);
        (Self(Arc::clone(shared)), before + 1)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The record of a request; it is written when this is dropped.
pub(super) struct Record {
    worker: Rc<Worker>,
    current: Rc<Current>,
    method: Method,
    target: Option<Uri>,
    peer: Option<IpAddr>,
    /// Its id.
    pub(super) request_id: RequestId,
    /// How long its parts took.
    pub(super) stopwatch: Stopwatch,
    /// The outcome; until there is a response, that the caller has gone.
    pub(super) verdict: Verdict,
    /// The status of the response, 0 where there is none.
    pub(super) status: u16,
    /// The permit, if it went to the API.
    pub(super) permit: Option<Permit>,
    /// How long the API took for the head of its response.
    pub(super) upstream: Option<Duration>,
    /// Handed to a tunnel, which outlives the response.
    pub(super) in_flight: Option<InFlight>,
}

impl Record {
    pub(super) fn begin(
        worker: &Rc<Worker>,
        current: &Rc<Current>,
        parts: &http::request::Parts,
        peer: Option<IpAddr>,
        request_id: RequestId,
        in_flight: InFlight,
    ) -> Self {
        Self {
            worker: Rc::clone(worker),
            current: Rc::clone(current),
            method: parts.method.clone(),
            target: current.live.access_log.then(|| parts.uri.clone()),
            peer,
            request_id,
            stopwatch: Stopwatch::start(),
            verdict: Verdict::Aborted,
            status: 0,
            permit: None,
            upstream: None,
            in_flight: Some(in_flight),
        }
    }

    /// Notes how the response's body ended.
    pub(super) fn end(mut self, how: Ended) {
        match how {
            Ended::Whole => {}
            Ended::Cut => self.verdict = Verdict::BadGateway,
            Ended::CallerGone => self.verdict = Verdict::Aborted,
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.stopwatch.lap();
        let took = self.stopwatch.total();
        let metrics = self.worker.metrics();
        metrics.request(self.verdict);
        metrics.request_nanoseconds(nanoseconds(took));
        if !self.current.live.access_log {
            return;
        }
        let permit = self.permit.as_ref();
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(
            target: ACCESS,
            method = self.method.as_str(),
            // The path alone: an absolute target may have a name and a password in it.
            path = self.target.as_ref().map(Uri::path),
            status = self.status,
            verdict = self.verdict.as_str(),
            consumer = permit.and_then(Permit::consumer).map(tracing::field::display),
            user = permit.and_then(Permit::user).map(tracing::field::display),
            peer = self.peer.map(tracing::field::display),
            request_id = self.request_id.known().map(tracing::field::display),
            ms = milliseconds(took),
            upstream_ms = self.upstream.map(milliseconds),
        );
    }
}
