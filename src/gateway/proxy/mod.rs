//! The steps of a request: `Worker::answer` calls `Worker::admit`, which calls `routed` and `decide`, and then `Worker::forward`.

mod call;
mod current;
mod decision;
mod failure;
mod in_flight;
mod live;
mod record;
mod service;
mod shared;

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    net::IpAddr,
    pin::{Pin, pin},
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    task::Poll,
};

use http::{Method, Request, Response, request::Parts};
use http_body::Body as _;

use crate::{
    base::{cold, noted_task::NotedTask, peer::Peer, random},
    provider::respond::Failure,
    request::{
        forward::{ForwardRejection, request},
        parse::{
            self,
            head::{self, FieldNames, Head},
            origin::{PublicUrl, RequestOrigin},
        },
        rejections::RecordedRejection,
        route::{self, ApiCall, Route},
    },
    telemetry::{
        lines::ACCESS,
        metrics::{HandshakeFailure, Metrics, Verdict},
        request_id::{self, RequestId, RequestIds},
        traces::Traces,
    },
    wire::server::{
        caller_stream::{CallerStream, Limits},
        handler::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
};

use self::{
    call::Admitted,
    in_flight::WorkerPlaces,
    service::{ASTERISK, options},
};
pub use self::{
    current::Current,
    decision::{CallBody, IncomingCall, Permitted, decide},
    in_flight::Places,
    live::{Conventions, Live},
    record::{RequestRecord, Served},
    service::jwk_set,
    shared::{Phase, Shared},
};

/// A worker: its part of the connections, and its own connections to the API.
pub struct Worker {
    shared: Arc<Shared>,
    places: Rc<WorkerPlaces>,
    request_ids: Rc<RequestIds>,
    current: RefCell<(u64, Rc<Current>)>,
    /// Requests that are not decided yet: they may still use nonces and the store.
    undecided: Cell<usize>,
}

impl Worker {
    /// A worker without connections.
    pub fn new(shared: Arc<Shared>) -> Self {
        let current = RefCell::new(Current::load(&shared, None));
        Self {
            places: WorkerPlaces::new(Arc::clone(&shared.places)),
            shared,
            // Without randomness nothing else starts; the ids of workers would only look alike.
            request_ids: RequestIds::new(&random::identifier().unwrap_or_default()),
            current,
            undecided: Cell::new(0),
        }
    }

    /// Closes connections to the API that are no longer usable, and drops old credentials and unused places of this worker.
    pub fn evict_idle(&self) {
        self.places.give_back_unused();
        self.shared.verifier.credentials().drop_old_at_hand();
        if let Some(pool) = &self.current().pool {
            pool.evict_idle();
        }
    }

    /// Whether no request is left that may use nonces or the store, and none will come.
    pub fn has_left(&self) -> bool {
        self.shared.has_reached(Phase::DecidingLast) && self.undecided.get() == 0
    }

    /// Waits for a decision or a part of it, unless this process has left before that is done.
    ///
    /// # Errors
    /// [`Failure::Ending`].
    pub fn deciding<'w, T: 'w>(
        &'w self,
        decision: impl Future<Output = T> + 'w,
    ) -> Pin<Box<dyn Future<Output = Result<T, Failure>> + 'w>> {
        // Most decisions never wait.
        cold::boxed(async move {
            let _undecided = Undecided::begin(&self.undecided);
            let mut decision = pin!(decision);
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
                Poll::Ready(decided) => Poll::Ready(Ok(decided)),
            })
            .await
        })
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

    /// Takes a request through the steps up to the decision, in their order. What does not go to the API is answered.
    async fn admit<'c>(
        &self,
        current: &'c Current,
        parts: &mut Parts,
        mut body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Passed<'c>, Failure> {
        let live = &*current.live;
        let caller = Rc::clone(body.caller());
        let body_bytes = body.size_hint().lower();
        let is_last = match parts.method == Method::OPTIONS {
            true if parts.uri == "*" => {
                head::check(parts, body_bytes, &live.limits)?;
                live.origins.receive(parts, &ASTERISK, caller.peer)?;
                return Ok(Passed::answered(options(&parts.method, record)));
            }
            true => head::is_last_hop(&mut parts.headers)?,
            false => false,
        };
        let receive = |target: &_| live.origins.receive(parts, target, caller.peer);
        let (names, head, target) = routed(live, parts, body_bytes, &caller, record, receive)?;
        let (call, collected) = match target {
            Route::Api(_) | Route::TokenOrApi(_) if is_last => {
                return Ok(Passed::answered(options(&parts.method, record)));
            }
            Route::Api(call) if current.pool.is_some() => (call, None),
            Route::TokenOrApi(call) if current.pool.is_some() => {
                let responding = self.respond_or_collect(live, &head, &call, &mut body, record);
                match cold::boxed(responding).await? {
                    Ok(response) => return Ok(Passed::answered(response)),
                    Err(collected) => (call, Some(Box::new(collected))),
                }
            }
            other => {
                let target = match other {
                    // Without an API, all that comes to this path is a token call.
                    Route::TokenOrApi(_) => Route::Token(None),
                    other => other,
                };
                let responding = self.respond_itself(live, target, &head, body, record);
                return cold::boxed(responding).await.map(Passed::answered);
            }
        };
        let ApiCall { url, path, .. } = call;
        let incoming = IncomingCall {
            head: &head,
            call,
            names: &names,
            caller: &caller,
            body: CallBody::Received(&mut body),
            collected,
        };
        let permitted = decide(live, incoming, record).await?;
        let admitted = Admitted::new(&live.forward, &head, path, names, permitted, body, record)?;
        Ok(Passed::Admitted(Box::new(admitted), url))
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
        let in_flight = self.places.take(current.live.concurrent_requests);
        let is_busy = in_flight.is_none();
        let forwarded_id = is_trusted.then(|| request_id::acceptable(&parts.headers));
        let request_id = RequestId::new(&self.request_ids, forwarded_id.flatten());
        let mut record = RequestRecord::begin(self, current, parts, peer, request_id, in_flight);
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

    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

/// A request that no step has rejected.
enum Passed<'c> {
    /// It does not go to the API: this is the response.
    Answered(Box<Response<ResponseBody>>),
    /// It goes to the API, below this public URL.
    Admitted(Box<Admitted>, &'c PublicUrl),
}

impl Passed<'_> {
    fn answered(response: Response<ResponseBody>) -> Self {
        Self::Answered(Box::new(response))
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
        let mut drains = pin!(phase.wait_for(|phase| *phase >= Phase::Draining));
        let mut task = NotedTask::default();
        poll_fn(|context| {
            // Connections poll this for each request. Until the phase first changes, one registration of the task is enough.
            if !self.shared.has_reached(Phase::NotReady) && task.is(context) {
                return Poll::Pending;
            }
            // An error means that the process is gone.
            let drains = drains.as_mut().poll(context).map(drop);
            task.note(context);
            drains
        })
        .await;
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

    fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Gone>> {
        let current = self.current();
        let (mut parts, body) = request.into_parts();
        let peer = body.caller().peer;
        let (is_trusted, peer) = (current.live.origins.trusts(peer), peer.address);
        let (mut record, admitted) = self.begin(&current, &parts, peer, is_trusted);
        let (caller, refused) = (Rc::clone(body.caller()), admitted.err().map(Box::new));
        // Not an async function, whose future would have the request twice.
        async move {
            let passed = match refused {
                None => self.admit(&current, &mut parts, body, &mut record).await,
                Some(failure) => Err(*failure),
            };
            let outcome = match passed {
                Ok(Passed::Admitted(mut call, url)) => {
                    self.forward(&current, &caller, &mut parts, &mut call, url, &mut record)
                        .await
                }
                Ok(Passed::Answered(response)) => Ok(*response),
                Err(failure) => Err(failure),
            };
            let mut response = match outcome {
                Ok(response) => response,
                Err(failure) if failure.is_caller_gone() => return Err(Gone),
                Err(failure) => self
                    .respond_to_failure(failure, &parts.headers, None, &mut record)
                    .into_response(&parts.method),
            };
            record.respond(&mut response);
            Ok(response)
        }
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

#[cfg(test)]
mod tests {
    use super::{Handler, Worker, decision::deciding};

    /// The allocator of glibc gives out memory of up to this many bytes again at once, last freed first.
    const LAST_FREED_FIRST: usize = 1032;

    fn size<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_futures_of_a_call_are_in_memory_that_the_one_before_has_just_used() {
        assert!(size(|worker, request, ()| Worker::answer(worker, request)) <= LAST_FREED_FIRST);
        assert!(size(deciding) <= LAST_FREED_FIRST);
    }
}
