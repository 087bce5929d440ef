//! The steps of a request, on one screen: route, parse, verify, authorize, forward.

mod call;
mod live;
mod record;

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    net::IpAddr,
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
};

use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Request, Response, header, request::Parts};
use http_body::Body as _;
use tokio::sync::watch;

use crate::{
    base::{cold, http_fields::SEC_FETCH_MODE, peer::Peer, random},
    provider::respond::{self, Failure, Format, OwnResponse, frame::Frame},
    request::{
        forward::{ForwardRejection, pool::Pool, request},
        parse::{
            self,
            head::{self, FieldNames, Head},
            origin::RequestOrigin,
            signed::Collected,
        },
        route::{self, ApiCall, Page, Route, TokenCall},
        verify::Verifier,
    },
    telemetry::{
        conditions::Conditions,
        lines::ACCESS,
        metrics::{HandshakeFailure, Metrics, OperationCounters, Verdict},
        previous_secrets::PreviousSecrets,
        rejections::{RecordedRejection, Rejections},
        request_id::{self, RequestId, RequestIds, X_REQUEST_ID},
        traces::Traces,
    },
    wire::server::{
        caller_stream::{CallerStream, Limits},
        handler::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
};

use self::record::InFlight;
pub use self::{
    call::{CallBody, IncomingCall, Permitted, decide},
    live::{Conventions, Live},
    record::{RequestRecord, Served},
};

/// The state that all workers share.
pub struct Shared {
    /// The configuration that a reload replaces.
    pub live: ArcSwap<Live>,
    /// Counted up with each reload, after `live`.
    pub generation: AtomicU64,
    /// Verifies signed calls.
    pub verifier: Arc<Verifier>,
    /// The number of requests being served.
    pub in_flight: AtomicUsize,
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
        // Without a receiver nobody waits for it.
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
    /// It accepts no more connections and finishes what it has.
    Draining,
    /// It takes no more requests; those that came are decided.
    DecidingLast,
    /// It decides nothing any more, and gives up what another process needs; responses and tunnels go on.
    HandedOver,
    /// It drops what is left.
    Ended,
}

/// A worker: its part of the connections, and its own connections to the API.
pub struct Worker {
    shared: Arc<Shared>,
    request_ids: Rc<RequestIds>,
    current: RefCell<(u64, Rc<Current>)>,
    /// Requests that are not decided yet: they may still use nonces and the store.
    undecided: Cell<usize>,
}

/// The live configuration as one worker uses it.
pub struct Current {
    /// The configuration of requests.
    pub live: Arc<Live>,
    /// Its bounds and deadlines, which the connections of the worker share.
    limits: Rc<Limits>,
    /// `None` where there is no API.
    pool: Option<Rc<Pool>>,
    /// The counters of its operations, by their index.
    operations: RefCell<Vec<OperationCounters>>,
}

impl Current {
    /// The configuration of now; connections to the API stay if `before` opened them by the same rules.
    fn load(shared: &Shared, before: Option<&Self>) -> (u64, Rc<Self>) {
        let generation = shared.generation.load(Ordering::Acquire);
        let live = shared.live.load_full();
        let pool = match before {
            Some(before) if before.live.upstream == live.upstream => before.pool.clone(),
            _ => {
                let params = live.upstream.clone();
                params.map(|params| Rc::new(Pool::new(params)))
            }
        };
        let limits = Rc::new(live.limits.clone());
        let listed = live.authorizer.operations.labels().len();
        let operations = (0..listed).map(|_| OperationCounters::default());
        let current = Self {
            operations: RefCell::new(operations.collect()),
            live,
            limits,
            pool,
        };
        (generation, Rc::new(current))
    }

    /// Counts a request by its operation.
    fn count_operation(&self, metrics: &Metrics, operation: Served, status: u16) {
        let label = operation.label(&self.live.authorizer.operations);
        let mut known = self.operations.borrow_mut();
        let known = match operation {
            Served::Operation(index) => known.get_mut(index),
            _ => None,
        };
        let mut unknown = OperationCounters::default();
        metrics.operation(label, status, known.unwrap_or(&mut unknown));
    }
}

impl Worker {
    /// A worker without connections.
    pub fn new(shared: Arc<Shared>) -> Self {
        let current = RefCell::new(Current::load(&shared, None));
        Self {
            shared,
            // Without randomness nothing else starts; the ids of workers would only look alike.
            request_ids: RequestIds::new(&random::identifier().unwrap_or_default()),
            current,
            undecided: Cell::new(0),
        }
    }

    /// Closes connections to the API that are no longer usable.
    pub fn evict_idle(&self) {
        if let Some(pool) = &self.current().pool {
            pool.evict_idle();
        }
    }

    /// Whether no request is left that may use nonces or the store, and none will come.
    pub fn has_left(&self) -> bool {
        self.shared.has_reached(Phase::DecidingLast) && self.undecided.get() == 0
    }

    /// Decides on a request, unless this process has left before that is done.
    ///
    /// # Errors
    /// Those of the decision, and [`Failure::Ending`].
    pub async fn deciding<T>(
        &self,
        mut decision: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<T, Failure> {
        let _undecided = Undecided::begin(&self.undecided);
        // Made when it is first polled: most decisions never wait.
        let mut handed_over = pin!(async {
            let mut phase = self.shared.phase.clone();
            // An error means that the process is gone.
            let _ = phase.wait_for(|phase| *phase >= Phase::HandedOver).await;
        });
        poll_fn(|context| match decision.as_mut().poll(context) {
            Poll::Pending => handed_over
                .as_mut()
                .poll(context)
                .map(|()| Err(Failure::Ending)),
            decided => decided,
        })
        .await
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

    /// Passes a request through the steps, in their order.
    async fn pass(
        &self,
        current: &Current,
        parts: &mut Parts,
        mut body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let live = &*current.live;
        let caller = Rc::clone(body.caller());
        let body_bytes = body.size_hint().lower();
        let is_last = match parts.method == Method::OPTIONS {
            true if parts.uri == "*" => {
                head::check(parts, body_bytes, &live.limits)?;
                live.origins.receive(parts, &ASTERISK, caller.peer)?;
                return Ok(options(&parts.method, record));
            }
            true => head::is_last_hop(&mut parts.headers)?,
            false => false,
        };
        let receive = |target: &_| live.origins.receive(parts, target, caller.peer);
        let (names, head, target) = routed(live, parts, body_bytes, &caller, record, receive)?;
        let (call, collected) = match target {
            Route::Api(_) | Route::TokenOrApi(_) if is_last => {
                return Ok(options(&parts.method, record));
            }
            Route::Api(call) if current.pool.is_some() => (call, None),
            Route::TokenOrApi(call) if current.pool.is_some() => {
                let responding = self.respond_or_collect(live, &head, &call, &mut body, record);
                match cold::boxed(responding).await? {
                    Ok(response) => return Ok(response),
                    Err(collected) => (call, Some(collected)),
                }
            }
            // Without an API, all that comes to this path is a token call.
            Route::TokenOrApi(_) => {
                let token = Route::Token(None);
                return cold::boxed(self.respond_itself(live, token, &head, body, record)).await;
            }
            other => {
                return cold::boxed(self.respond_itself(live, other, &head, body, record)).await;
            }
        };
        let url = call.url;
        let call = {
            // It is large, and stays where it is.
            let received = (body, collected);
            let admitting = pin!(call::admit(live, &head, call, names, received, record));
            self.deciding(admitting).await?
        };
        self.forward(current, &caller, parts, call, url, record)
            .await
    }

    /// Responds to a token call that its parameters or its form name; the parameters of a call to the API come back.
    async fn respond_or_collect(
        &self,
        live: &Live,
        head: &Head<'_>,
        call: &ApiCall<'_, '_>,
        body: &mut RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Result<Response<ResponseBody>, Collected>, Failure> {
        let method = head.parts.method.as_str().as_bytes();
        let found = live.authorizer.operations.find(call.path, method);
        // A call to the API that is only observed goes on, whatever its head has.
        let is_enforced = found.map_or(true, |found| live.authorizer.is_enforced(&found));
        let responded = {
            let responding = pin!(token(live, None, head, (body, is_enforced), record));
            self.deciding(responding).await?
        };
        Ok(responded.map(|response| own_response(response, &head.parts.method, record)))
    }

    /// Responds to a request that does not go to the API.
    async fn respond_itself(
        &self,
        live: &Live,
        target: Route<'_, '_>,
        head: &Head<'_>,
        body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let parts = head.parts;
        match target {
            // Somebody has typed the address of the token endpoint.
            Route::Token(None)
                if head.target.query.is_none()
                    && !parts.headers.contains_key(header::AUTHORIZATION)
                    && parts.headers.contains_key(&SEC_FETCH_MODE)
                    && respond::is_navigation(&parts.method, &parts.headers) =>
            {
                page(live, Page::Home, head, body, record).await
            }
            Route::Token(named) => {
                let mut body = body;
                let responded = {
                    let responding = pin!(token(live, named, head, (&mut body, true), record));
                    self.deciding(responding).await?
                };
                let response = responded.map_err(|_| route::RouteRejection::ModeNotOnce)?;
                Ok(own_response(response, &parts.method, record))
            }
            Route::JwkSet => {
                record.operation = Served::Page;
                let set = jwk_set(live).ok_or(route::RouteRejection::NotFound(None))?;
                Ok(own_response(set, &parts.method, record))
            }
            Route::Page(page) => {
                let responding = pin!(self::page(live, page, head, body, record));
                self.deciding(responding).await
            }
            Route::Api(_) | Route::TokenOrApi(_) => {
                Err(route::RouteRejection::NotFound(None).into())
            }
        }
    }

    /// Logs a failure and responds to it, in this format or else in the one that the request prefers.
    #[cold]
    #[inline(never)]
    pub fn respond_to_failure(
        &self,
        failure: Failure,
        headers: &HeaderMap,
        format: Option<Format>,
        record: &mut RequestRecord,
    ) -> OwnResponse {
        let request_id = record.request_id.as_str();
        log_failure(&failure, request_id, &self.shared.conditions);
        let format = match (&failure, record.operation) {
            _ if let Some(format) = format => format,
            // A page would take memory for a request that is not counted.
            (Failure::Busy | Failure::Ending, _) => Format::Form,
            (_, Served::Page) => Format::Html,
            _ if record.launch.is_some() => Format::Launch,
            _ => Format::preferred_by(headers),
        };
        // A GET to the same target shows a page, or is the same request.
        let is_shown = matches!(record.operation, Served::Page) || record.method == Method::GET;
        let (target, language) = match format {
            Format::Html => (
                Some(&record.target).filter(|_| is_shown),
                headers.get(header::ACCEPT_LANGUAGE),
            ),
            Format::Launch => (None, headers.get(header::ACCEPT_LANGUAGE)),
            Format::Form | Format::Json | Format::Challenge => (None, None),
        };
        let current = self.current();
        let frame = Frame::new(&current.live.theme, target, language);
        let response = match record.launch() {
            Some((launch, operation)) if format == Format::Launch => {
                launch.failed(&failure, frame, operation, request_id)
            }
            _ => respond::failure(&failure, frame, format, request_id),
        };
        (record.verdict, record.status) = (response.verdict, response.status);
        record.failure = Some(Box::new(failure));
        response
    }

    /// Begins the record of a request that came from `peer`, which may be a trusted proxy.
    ///
    /// # Errors
    /// [`Failure::Ending`] and [`Failure::Busy`], with the record.
    pub fn begin(
        self: &Rc<Self>,
        current: &Rc<Current>,
        parts: &Parts,
        peer: Option<IpAddr>,
        is_trusted: bool,
    ) -> (Box<RequestRecord>, Result<(), Failure>) {
        let (in_flight, count) = InFlight::begin(self);
        let forwarded_id = is_trusted.then(|| request_id::acceptable(&parts.headers));
        let request_id = RequestId::new(&self.request_ids, forwarded_id.flatten());
        let mut record = RequestRecord::begin(self, current, parts, peer, request_id, in_flight);
        if self.shared.traces.is_some() {
            record.trace = Some(Traces::begin(&parts.headers, is_trusted));
        }
        let admitted = if self.is_leaving() {
            Err(Failure::Ending)
        } else if count > current.live.concurrent_requests {
            Err(Failure::Busy)
        } else {
            Ok(())
        };
        (record, admitted)
    }

    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

/// A request of a worker that is not decided yet.
struct Undecided<'w>(&'w Cell<usize>);

impl<'w> Undecided<'w> {
    fn begin(count: &'w Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Checks the head of a request and finds what it is for. `receive` finds the origin of the request.
///
/// # Errors
/// The rejections of [`head::check`], `receive` and [`route::route`], and [`ForwardRejection::LoopDetected`].
pub fn routed<'l, 'r>(
    live: &'l Live,
    parts: &'r Parts,
    body_bytes: u64,
    caller: &CallerStream,
    record: &mut RequestRecord,
    receive: impl FnOnce(
        &parse::target::RequestTarget<'r>,
    ) -> Result<RequestOrigin<'r>, parse::ParseRejection>,
) -> Result<(FieldNames, Head<'r>, Route<'l, 'r>), Failure> {
    let names = head::check(parts, body_bytes, &live.limits)?;
    if request::is_back(&parts.headers, &names, &live.forward) {
        return Err(ForwardRejection::LoopDetected.into());
    }
    let head = Head::read(parts, receive)?;
    caller.count_as(head.received.nearest_address);
    record.address = head.received.nearest_address;
    let target = route::route(&live.route, &live.origins, &head)?;
    Ok((names, head, target))
}

/// Responds to a token call; the parameters of a request that is none come back. The flag: it may be rejected before its form
/// is read.
async fn token(
    live: &Live,
    named: Option<TokenCall>,
    head: &Head<'_>,
    body: (&mut RequestBody, bool),
    record: &mut RequestRecord,
) -> Result<Result<OwnResponse, Collected>, Failure> {
    let endpoints = &live.endpoints;
    let mut call = None;
    let noted = (&mut call, &mut record.facts);
    let responded = endpoints.token(&live.route, named, head, body, noted).await;
    record.operation = call.map_or(Served::Unknown, Served::Token);
    responded
}

/// The target of a request with OPTIONS that is for the server as a whole (RFC 9110 §9.3.7).
const ASTERISK: parse::target::RequestTarget<'static> = parse::target::RequestTarget {
    absolute: None,
    path: b"*",
    query: None,
};

/// Responds to OPTIONS for this process itself. It tells nothing of the API or its operations, so it needs no credentials.
fn options(method: &Method, record: &mut RequestRecord) -> Response<ResponseBody> {
    let response = OwnResponse::empty(204, Verdict::Page).field("Allow", head::KNOWN_METHODS);
    own_response(response, method, record)
}

/// The public keys with which others verify our signatures, if anything is signed here.
pub fn jwk_set(live: &Live) -> Option<OwnResponse> {
    let set = live.jwk_set.clone()?;
    let set = OwnResponse::new(200, "application/jwk-set+json", set, Verdict::Page);
    Some(set.field("Cache-Control", "max-age=300"))
}

/// Responds with a page.
async fn page(
    live: &Live,
    page: Page,
    head: &Head<'_>,
    mut body: RequestBody,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    record.operation = Served::Page;
    let pages = &live.authorizer.pages;
    let page = pages.respond(&live.route, page, head, &mut body);
    Ok(own_response(page.await?, &head.parts.method, record))
}

/// A response of this program as HTTP, and in the record.
fn own_response(
    mut response: OwnResponse,
    method: &Method,
    record: &mut RequestRecord,
) -> Response<ResponseBody> {
    (record.verdict, record.status) = (response.verdict, response.status);
    if response.status >= 400 {
        let id = record.request_id.as_str().to_owned();
        response.fields.push((X_REQUEST_ID.as_str(), id));
    }
    response.into_response(method)
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

    fn opened(&self) {
        self.metrics().connections.inc();
    }

    fn handshake_failed(&self, failure: HandshakeFailure) {
        self.metrics().handshake_failed(failure);
    }

    fn closed(&self) {
        self.metrics().connections.dec();
    }

    fn evicted(&self) {
        self.metrics().connections_evicted.inc();
    }

    fn refused(&self) {
        self.metrics().connections_refused.inc();
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let current = self.current();
        let (mut parts, body) = request.into_parts();
        let peer = body.caller().peer;
        let (is_trusted, peer) = (current.live.origins.trusts(peer), peer.address);
        let (mut record, admitted) = self.begin(&current, &parts, peer, is_trusted);
        let outcome = match admitted {
            Ok(()) => self.pass(&current, &mut parts, body, &mut record).await,
            Err(failure) => Err(failure),
        };
        let response = match outcome {
            Ok(response) => response,
            Err(failure) if failure.is_caller_gone() => return Err(Gone),
            Err(failure) => self
                .respond_to_failure(failure, &parts.headers, None, &mut record)
                .into_response(&parts.method),
        };
        Ok(record.respond(response))
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
        self.shared.rejections.add(RecordedRejection {
            operation: operation.to_owned(),
            verdict: verdict.as_str(),
            reason: verdict.as_str(),
            status,
            address: peer.address.map(|address| address.to_string()),
            ..RecordedRejection::default()
        });
        if current.live.access_log {
            tracing::info!(
                target: ACCESS, status, verdict = verdict.as_str(),
                peer = peer.address.map(tracing::field::display), reason,
            );
        }
    }
}

/// Logs a fault with its causes, unless the beginning and the end of its cause are logged.
fn log_failure(failure: &Failure, request_id: &str, conditions: &Conditions) {
    if !failure.is_fault() {
        return;
    }
    let condition = failure.condition();
    let is_logged = condition.is_some() || failure.is_of_logged_outage();
    if let Some((condition, text)) = condition {
        conditions.set(condition, Some(text));
    }
    let error: &(dyn std::error::Error + 'static) = failure;
    if is_logged {
        tracing::debug!(%request_id, error, "request failed");
    } else {
        tracing::error!(%request_id, error, "request failed");
    }
}
