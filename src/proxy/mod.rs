//! The way of a request through this program, on one screen: route, parse, verify, authorize, forward.

mod exchange;
mod laps;
mod live;
mod permission;

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use crate::{
    endpoints::Call,
    forward::{
        relay::{self},
        request_head,
        upstream::Upstream,
    },
    http1::head::RequestHead,
    parse::{
        signed::{self},
        target::{self, Target},
    },
    policy::{conventions, permit::Permit},
    refusal::{Failure, Refusal},
    respond::{self, Answer, Format},
    route::{self, Route},
    server::connection::{Connection, Handler, Limits},
    telemetry::{
        lines::ACCESS,
        metrics::{Metrics, Verdict},
    },
    verify::Verifier,
};

pub use self::live::{Conventions, Live};
use self::{laps::Laps, permission::Way};

/// What the workers share.
pub struct Shared {
    /// What a reload swaps.
    pub live: ArcSwap<Live>,
    /// Counted up with each reload, after `live`.
    pub generation: AtomicU64,
    /// Verifies signed calls.
    pub verifier: Arc<Verifier>,
    /// How many requests are being served.
    pub under_way: AtomicUsize,
    /// The metrics of all workers.
    pub metrics: Arc<Metrics>,
    /// Set when the end is announced: not ready any more.
    pub draining_announced: std::sync::atomic::AtomicBool,
    /// Set when draining begins.
    pub draining: std::sync::atomic::AtomicBool,
    /// Tells idle connections that draining has begun.
    pub drain: Notify,
    /// The moment that monotonic times are counted from.
    pub started: Instant,
}

/// A worker: its part of the connections, and its own connections to the API.
pub struct Worker {
    shared: Arc<Shared>,
    index: usize,
    current: RefCell<(u64, Rc<Current>)>,
}

/// The live configuration as one worker uses it.
struct Current {
    live: Arc<Live>,
    upstream: Upstream,
}

impl Current {
    fn of(shared: &Shared) -> (u64, Rc<Self>) {
        let generation = shared.generation.load(Ordering::Acquire);
        let live = shared.live.load_full();
        let upstream = Upstream::new(live.upstream.clone());
        (generation, Rc::new(Self { live, upstream }))
    }
}

/// What is told about a request once it is answered.
struct Outcome {
    verdict: Verdict,
    status: u16,
    /// As whom it went to the API, if it did.
    permit: Option<Permit>,
    upstream: Option<Duration>,
}

impl Outcome {
    const fn of(verdict: Verdict, status: u16) -> Self {
        Self {
            verdict,
            status,
            permit: None,
            upstream: None,
        }
    }
}

/// A request that is being served, among all workers'.
struct UnderWay<'c> {
    counter: &'c AtomicUsize,
    count: usize,
}

impl<'c> UnderWay<'c> {
    fn begin(counter: &'c AtomicUsize) -> Self {
        let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
        Self { counter, count }
    }

    /// How many there were when this one began, itself among them.
    const fn count(&self) -> usize {
        self.count
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Worker {
    /// A worker without connections.
    #[must_use]
    pub fn new(shared: Arc<Shared>, index: usize) -> Self {
        let current = RefCell::new(Current::of(&shared));
        Self {
            shared,
            index,
            current,
        }
    }

    /// Lets go of connections to the API that are no longer of use.
    pub fn tidy(&self) {
        self.current().upstream.tidy();
    }

    fn current(&self) -> Rc<Current> {
        let generation = self.shared.generation.load(Ordering::Relaxed);
        let mut current = self.current.borrow_mut();
        if current.0 != generation {
            *current = Current::of(&self.shared);
        }
        Rc::clone(&current.1)
    }

    /// The straight way.
    async fn answer(
        &self,
        current: &Current,
        connection: &mut Connection,
        head: &RequestHead,
        laps: &Laps,
    ) -> Result<Outcome, Failure> {
        let live = &*current.live;
        if request_head::is_back(head, &live.forward) {
            return Err(Refusal::LoopDetected.into());
        }
        // In small letters they are other methods (RFC 9110 §9.1), but not to every API, and a signature covers both alike.
        let method = head.method();
        if method.eq_ignore_ascii_case(b"CONNECT") || method.eq_ignore_ascii_case(b"TRACE") {
            return Err(Refusal::MethodNotAllowed {
                allow: KNOWN_METHODS.to_owned(),
            }
            .into());
        }
        let target = Target::parse(head.target())
            .map_err(|error| Refusal::Malformed(error.to_string().into()))?;
        let received = live
            .origins
            .receive(head, &target, connection.peer)
            .map_err(Refusal::from)?;
        connection.caller = received.address;
        match route::route(&live.route, &live.origins, &received, &target)? {
            Route::Endpoint(endpoint) => {
                let call = Call {
                    head,
                    target: &target,
                    received: &received,
                };
                // Boxed: calls to the API need not carry the room that pages take.
                let answer = Box::pin(live.endpoints.answer(endpoint, &call, connection)).await?;
                self.send(connection, head, &answer).await
            }
            Route::Api(call) => {
                if !live.forward.api_path.is_empty() && target::climbs(call.path) {
                    return Err(
                        Refusal::Malformed("the path leads out of what is public".into()).into(),
                    );
                }
                check_conventions(live, call.path)?;
                let found = live.operations.find(call.path, head.method())?;
                let mut collected = signed::collect(head, &target, connection).await?;
                let way = Way {
                    live,
                    head,
                    target: &target,
                    received: &received,
                    call,
                    found,
                    laps,
                };
                let permit = self.permit(&way, &mut collected, connection).await?;
                self.forward(current, &way, permit, collected, connection)
                    .await
            }
        }
    }

    /// Sends an answer of our own.
    async fn send(
        &self,
        connection: &mut Connection,
        head: &RequestHead,
        answer: &Answer,
    ) -> Result<Outcome, Failure> {
        connection.keep_alive &= connection.body.is_done() && !self.is_draining();
        let to_head = head.method() == b"HEAD";
        answer.write(
            connection.out.buffer(),
            to_head,
            connection.keep_alive,
            connection.version,
        );
        connection.flush().await.map_err(relay::caller_gone)?;
        Ok(Outcome::of(answer.verdict, answer.status))
    }

    fn metrics(&self) -> &crate::telemetry::metrics::WorkerMetrics {
        self.shared.metrics.worker(self.index)
    }

    /// Counts and logs an answered request.
    fn record(
        &self,
        live: &Live,
        connection: &Connection,
        head: &RequestHead,
        outcome: &Outcome,
        took: Duration,
    ) {
        self.metrics().request(outcome.verdict);
        self.metrics().request_nanoseconds(nanoseconds(took));
        if !live.access_log {
            return;
        }
        let permit = outcome.permit.as_ref();
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        // The path alone: an absolute target may have a name and a password in it.
        let path = Target::parse(head.target()).map_or(&b"-"[..], |target| target.path);
        tracing::info!(
            target: ACCESS,
            method = %String::from_utf8_lossy(head.method()),
            path = %String::from_utf8_lossy(path),
            status = outcome.status,
            verdict = outcome.verdict.as_str(),
            consumer = permit.and_then(Permit::consumer).map(tracing::field::display),
            user = permit.and_then(Permit::user).map(tracing::field::display),
            peer = connection.peer.address.map(tracing::field::display),
            ms = milliseconds(took),
            upstream_ms = outcome.upstream.map(milliseconds),
        );
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What the allowed methods are where no operation lists any.
const KNOWN_METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

fn check_conventions(live: &Live, path: &[u8]) -> Result<(), Refusal> {
    if live.conventions == Conventions::Off {
        return Ok(());
    }
    match conventions::broken_rule(path) {
        Some(rule) if live.conventions == Conventions::Enforce => {
            Err(Refusal::ParameterRejected(Vec::new(), rule))
        }
        Some(rule) => {
            tracing::info!(path = %String::from_utf8_lossy(path), rule, "path convention broken");
            Ok(())
        }
        None => Ok(()),
    }
}

impl Handler for Worker {
    fn limits(&self) -> Limits {
        self.current().live.limits
    }

    fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }

    async fn drained(&self) {
        self.shared.drain.notified().await;
    }

    fn opened(&self) {
        self.metrics().connection_opened();
    }

    fn closed(&self) {
        self.metrics().connection_closed();
    }

    async fn handle(&self, connection: &mut Connection, head: RequestHead) {
        let laps = Laps::begin();
        let current = self.current();
        let under_way = UnderWay::begin(&self.shared.under_way);
        let answered = if under_way.count() > current.live.concurrent_requests {
            Err(Refusal::Busy.into())
        } else {
            self.answer(&current, connection, &head, &laps).await
        };
        let outcome = match answered {
            Ok(outcome) => Ok(outcome),
            Err(Failure::CallerGone) => Err(Failure::CallerGone),
            Err(failure) => {
                let request_id = log_failure(&failure);
                // Whoever sends what two recipients could read differently may have sent more of it.
                let malformed = matches!(failure, Failure::Refusal(Refusal::Malformed(_)));
                connection.keep_alive &= !malformed;
                let format = Format::preferred_by(&head);
                let answer = respond::failure(&failure, &current.live.realm, format, &request_id);
                self.send(connection, &head, &answer).await
            }
        };
        let outcome = outcome.unwrap_or_else(|_| {
            connection.keep_alive = false;
            Outcome::of(Verdict::Aborted, 0)
        });
        drop(under_way);
        laps.lap();
        connection.idle_since = laps.last();
        self.record(&current.live, connection, &head, &outcome, laps.whole());
    }

    async fn refuse(&self, connection: &mut Connection, refusal: Refusal) {
        let current = self.current();
        let failure = Failure::Refusal(refusal);
        let answer = respond::failure(&failure, &current.live.realm, Format::Form, "");
        answer.write(connection.out.buffer(), false, false, connection.version);
        let _ = connection.flush().await;
        self.metrics().request(answer.verdict);
        if current.live.access_log {
            tracing::info!(
                target: ACCESS, status = answer.status, verdict = answer.verdict.as_str(),
                peer = connection.peer.address.map(tracing::field::display), reason = %failure,
            );
        }
    }
}

/// Logs what is not the caller's doing, whole; returns the id by which an operator finds it.
fn log_failure(failure: &Failure) -> String {
    let Failure::Fault(fault) = failure else {
        return String::new();
    };
    let id = crate::issue::random::identifier().unwrap_or_default();
    let error: &dyn std::error::Error = fault;
    tracing::error!(request_id = %id, error, "request failed");
    id
}
