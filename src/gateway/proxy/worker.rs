//! A worker and the steps of its requests: `answer` calls `serve`, which calls `admit`, and then `forward::respond`.
//!
//! A step is pinned before it is awaited: it is made where it stays then, and is not copied there.

use std::{
    cell::RefCell,
    net::IpAddr,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
};

use http::{Method, Request, Response, request::Parts};
use http_body::Body as _;

use super::{
    forward::{self, ApiResponse},
    service::{self, ASTERISK, options, own_response},
};
use crate::{
    base::{cold, network::peer::Peer, secret::random},
    gateway::{
        decision::{Received, begin, decide, handshake, receive},
        live::{Current, InFlight, Phase, Served, Shared, Waiting},
        record::RequestRecord,
    },
    provider::{endpoints::TokenOutcome, respond::Failure},
    request::{
        parse::{head, origin::PublicUrl},
        policy::{call::CallBody, permit::Permit},
        route::{Route, RouteRejection, ServiceCall},
    },
    telemetry::{
        calls::{facts::Reason, record::CallRecord},
        metrics::{Metrics, Verdict},
        request_id::{self, RequestId, RequestIds},
        traces::Traces,
    },
    wire::server::{
        caller::stream::{CallerStream, Limits},
        handler::{ConnectionEvent, Handler},
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
};

/// A worker: its part of the connections, and its own connections to the API.
pub struct Worker {
    shared: Arc<Shared>,
    request_ids: Rc<RequestIds>,
    current: RefCell<(u64, Rc<Current>)>,
    /// Its decisions that wait.
    pub waiting: Waiting,
}

/// The result of the steps up to the response of the API.
enum Step<'c> {
    /// The request does not go to the API: this is the response.
    Responded(Response<ResponseBody>),
    /// The API has responded to a call at this public URL.
    Forwarded(ApiResponse, &'c PublicUrl),
}

impl Worker {
    /// A worker without connections.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            current: RefCell::new(Current::load(&shared, None)),
            waiting: Waiting::new(shared.phase.clone()),
            // Without randomness nothing else starts; the ids of workers would only look alike.
            request_ids: RequestIds::new(&random::identifier().unwrap_or_default()),
            shared,
        }
    }

    /// Closes connections to the API that are no longer usable, and drops old credentials of this worker.
    pub fn evict_idle(&self) {
        self.shared.verifier.credentials().drop_old_at_hand();
        if let Some(pool) = &self.current().pool {
            pool.evict_idle();
        }
    }

    /// Whether no request is left that may use nonces or the store, and none will come.
    pub fn has_left(&self) -> bool {
        self.shared.has_reached(Phase::DecidingLast) && self.waiting.count() == 0
    }

    /// The live configuration.
    pub fn current(&self) -> Rc<Current> {
        let generation = self.shared.generation.load(Ordering::Relaxed);
        let mut current = self.current.borrow_mut();
        if current.0 != generation {
            *current = Current::load(&self.shared, Some(&current.1));
        }
        Rc::clone(&current.1)
    }

    /// Begins the record of a request of `caller`, which may be a trusted proxy.
    ///
    /// # Errors
    /// [`Failure::Ending`] and [`Failure::Busy`], with the record.
    pub fn begin(
        &self,
        current: &Rc<Current>,
        parts: &Parts,
        caller: &Rc<CallerStream>,
        is_trusted: bool,
    ) -> (Box<RequestRecord>, Result<(), Failure>) {
        let in_flight = InFlight::begin(current, caller);
        let peer = caller.peer.address;
        let is_busy = in_flight.is_none();
        let forwarded_id = is_trusted.then(|| request_id::acceptable(&parts.headers));
        let request_id = RequestId::new(&self.request_ids, forwarded_id.flatten());
        let mut record = RequestRecord::begin(current, parts, peer, request_id, in_flight);
        if self.shared.traces.is_some() {
            record.trace = Some(Traces::begin(&parts.headers, is_trusted));
        }
        let admitted = if self.is_leaving() {
            Err(Failure::Ending)
        } else if is_busy {
            Err(Failure::Busy)
        } else {
            Ok(())
        };
        (record, admitted)
    }

    /// Takes a request through all steps.
    async fn serve(
        &self,
        current: &Current,
        parts: &mut Parts,
        body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let (live, caller) = (&*current.live, Rc::clone(body.caller()));
        let is_last = match parts.method == Method::OPTIONS {
            true if parts.uri == "*" => {
                head::check(parts, body.size_hint().lower(), &live.limits)?;
                live.origins.receive(parts, &ASTERISK, caller.peer)?;
                return Ok(options(&parts.method, record));
            }
            true => head::is_last_hop(&mut parts.headers)?,
            false => false,
        };
        let step = pin!(self.admit(current, parts, is_last, body, record)).await?;
        match step {
            Step::Responded(response) => Ok(response),
            Step::Forwarded(answered, url) => {
                let responding = pin!(forward::respond(
                    current, answered, url, parts, &caller, record
                ));
                responding.await
            }
        }
    }

    /// Takes a request through the steps up to the response of the API, in their order. What does not go to the API is answered.
    async fn admit<'c>(
        &self,
        current: &'c Current,
        parts: &Parts,
        is_last_hop: bool,
        body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Step<'c>, Failure> {
        let (live, caller) = (&*current.live, Rc::clone(body.caller()));
        let origin = |target: &_| live.origins.receive(parts, target, caller.peer);
        let body_bytes = body.size_hint().lower();
        let received = receive(live, parts, body_bytes, &caller, record, origin);
        if parts.method == Method::OPTIONS
            && is_for_token_calls(&received)
            && let Some(response) = live.cors.preflight(parts)
        {
            let response = own_response(response, &parts.method, record);
            return Ok(Step::Responded(response));
        }
        let (received, route) = received?;
        let head = &received.head;
        let (api, collected) = match route {
            Route::Api(_) | Route::TokenOrApi(_) if is_last_hop => {
                return Ok(Step::Responded(options(&parts.method, record)));
            }
            Route::Api(api) if current.pool.is_some() => (api, None),
            Route::TokenOrApi(api) if current.pool.is_some() => {
                let waiting = &self.waiting;
                let responding =
                    service::respond_or_collect(live, waiting, head, &api, &body, record);
                match cold::boxed(responding).await? {
                    TokenOutcome::Responded(response) => {
                        let response = own_response(response, &parts.method, record);
                        return Ok(Step::Responded(response));
                    }
                    TokenOutcome::NotTokenCall(collected) => (api, Some(collected)),
                }
            }
            route => {
                let responding = service::respond(live, &self.waiting, route, head, body, record);
                return cold::boxed(responding).await.map(Step::Responded);
            }
        };
        let body = CallBody::Received(body);
        let mut call = begin(live, &received, api, &caller, body, collected, record)?;
        let handshake = handshake(&call)?;
        let permit = pin!(decide(live, &mut call, &caller, &self.waiting, record)).await?;
        note_sender(&permit, &caller, record)?;
        let call = &mut call;
        let sending = pin!(forward::send(
            current, call, permit, &caller, handshake, record
        ));
        Ok(Step::Forwarded(sending.await?, api.url))
    }

    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

/// Counts the call as its sender's: that of a sender who is known, or one of the anonymous calls in flight.
///
/// # Errors
/// [`Failure::Busy`]: as many anonymous calls as may be are in flight.
fn note_sender(
    permit: &Permit,
    caller: &CallerStream,
    record: &mut RequestRecord,
) -> Result<(), Failure> {
    if !permit.is_anonymous() || record.facts.sender.is_verified() {
        caller.prove();
        return Ok(());
    }
    caller.permit_anonymous();
    let in_flight = record.in_flight.as_mut();
    match in_flight.is_none_or(InFlight::count_anonymous) {
        true => Ok(()),
        false => Err(Failure::Busy),
    }
}

/// Whether a request with OPTIONS is for a path of token calls.
const fn is_for_token_calls(received: &Result<(Received<'_>, Route<'_, '_>), Failure>) -> bool {
    matches!(
        received,
        Ok((_, Route::Token(_) | Route::TokenOrApi(_)))
            | Err(Failure::Route(RouteRejection::MethodNotAllowed {
                call: ServiceCall::Token(_)
            }))
    )
}

impl Handler for Worker {
    fn limits(&self) -> Rc<Limits> {
        Rc::clone(&self.current().limits)
    }

    fn is_draining(&self) -> bool {
        self.shared.has_reached(Phase::Draining)
    }

    fn is_leaving(&self) -> bool {
        self.shared.has_reached(Phase::DecidingLast)
    }

    fn is_trusted(&self, peer: IpAddr) -> bool {
        self.current().live.origins.is_trusted(peer)
    }

    async fn draining(&self) {
        let mut phase = self.shared.phase.clone();
        // An error means that the process is gone.
        let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
    }

    fn note(&self, event: ConnectionEvent) {
        let metrics = self.metrics();
        match event {
            ConnectionEvent::Opened => drop(metrics.connections.inc()),
            ConnectionEvent::Closed => drop(metrics.connections.dec()),
            ConnectionEvent::Evicted => drop(metrics.connections_evicted.inc()),
            ConnectionEvent::Refused => drop(metrics.connections_refused.inc()),
            ConnectionEvent::HandshakeFailed(failure) => {
                let reason = [("reason", failure.into())];
                metrics.handshakes.get_or_create(&reason).inc();
            }
        }
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let current = self.current();
        let (mut parts, body) = request.into_parts();
        let caller = body.caller();
        let is_trusted = current.live.origins.trusts(caller.peer);
        let (mut record, admitted) = self.begin(&current, &parts, caller, is_trusted);
        let outcome = match admitted {
            Ok(()) => pin!(self.serve(&current, &mut parts, body, &mut record)).await,
            Err(failure) => Err(failure),
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(failure) if failure.is_caller_gone() => return Err(Gone),
            Err(failure) => record
                .fail(failure, &parts.headers, None)
                .into_response(&parts.method),
        };
        record.respond(&mut response, &parts.headers);
        Ok(response)
    }

    fn rejected(&self, peer: Peer, status: u16, reason: &str) {
        let verdict = match status {
            408 => Verdict::RequestTimeout,
            431 => Verdict::HeadersTooLarge,
            _ => Verdict::BadRequest,
        };
        self.metrics().request(verdict);
        let current = self.current();
        let operations = &current.live.authorizer.operations;
        let operation = Served::Unknown.label(operations);
        current.count_operation(self.metrics(), Served::Unknown, status);
        let mut call = CallRecord {
            status,
            verdict,
            peer: peer.address,
            reason: Some(Reason::Unreadable(reason.into())),
            ..CallRecord::default()
        };
        if current.live.access_log {
            call.log();
        }
        call.operation = Some(operation.into());
        self.shared.rejections.add(call.into());
    }
}
