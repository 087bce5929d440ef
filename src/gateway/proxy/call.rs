//! A call to the API: it is decided, rewritten, sent, and its response goes on as it comes.

use std::{borrow::Cow, pin::Pin, rc::Rc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts, response,
    uri::PathAndQuery,
};
use http_body::Body as _;

use super::{
    Conventions, Current, Live, Worker,
    record::{InFlight, RequestRecord, Served},
};
use crate::{
    base::{cold, http_fields::NameFilter},
    gateway::{
        authorize::{DecidedCall, Subject},
        launch::Launch,
    },
    oauth::{Deviation, LocationRule, ParameterLocation},
    provider::respond::Failure,
    request::{
        forward::{
            ForwardFault, ForwardParams, ForwardRejection,
            credentials::Rewriting,
            download, exchange,
            pool::{Lease, UpstreamBody},
            request::{Outgoing, ReceivedAs, UpstreamCall, path_and_query},
            response::{self as api_response, ResponseContext},
            tunnel,
            websocket::Handshake,
        },
        identity::AssertedCall,
        parse::{
            claimed::Claimed,
            head::{FieldNames, Head},
            origin::PublicUrl,
            signed::{Collected, is_form, is_multipart},
            target,
            unseen_body::UnseenBody,
        },
        policy::{
            self,
            access::CallerKind,
            conventions,
            permit::{JudgedCall, Permit},
        },
        route::{self, ApiCall},
        verify::UnreadBody,
    },
    telemetry::traces::Trace,
    wire::server::{
        buffered::{API_FORMS, BufferedBody},
        caller_stream::CallerStream,
        rejection::BodyRejection,
        request::RequestBody,
        response::ResponseBody,
    },
};

/// A call that is permitted.
pub struct Permitted {
    /// The proof.
    pub permit: Permit,
    /// The value of the field with the assertion, if it has one.
    pub assertion: Option<HeaderValue>,
    /// The handshake of WebSocket that it begins, where its operation admits one.
    pub handshake: Option<Handshake>,
    /// Its parameters, and its body where that was read.
    collected: Collected,
}

/// A permitted call that is to be sent to the API.
pub(super) struct Admitted {
    /// What the API gets, the body aside.
    upstream: UpstreamCall,
    handshake: Option<Handshake>,
    body: UpstreamBody,
}

/// A call that is to be decided.
pub struct IncomingCall<'a> {
    /// Its head.
    pub head: &'a Head<'a>,
    /// The public URL and the path.
    pub call: ApiCall<'a, 'a>,
    /// The names of its fields.
    pub names: &'a FieldNames,
    /// The connection that it came by.
    pub caller: &'a CallerStream,
    /// Its body.
    pub body: CallBody<'a>,
    /// Its parameters, where they were needed to find that it is for the API.
    pub collected: Option<Collected>,
}

/// The body of a call.
pub enum CallBody<'a> {
    /// This process received it, and forwards it if the call is permitted.
    Received(&'a mut RequestBody),
    /// Another proxy describes the call and forwards it; the description came with the whole body.
    Shown(&'a mut RequestBody),
    /// Another proxy describes the call and forwards it, without the body or with one that may not be the whole.
    Unseen(UnseenBody),
}

impl CallBody<'_> {
    /// The body, if it can be read here.
    fn readable(&mut self) -> Option<&mut RequestBody> {
        match self {
            Self::Received(body) | Self::Shown(body) => Some(body),
            Self::Unseen(_) => None,
        }
    }

    /// Whether there are bytes that were not read. A description without a body does not say whether the request has one: it
    /// counts as one where it has a type, and where the method gives a body a meaning (RFC 9110 §9.3).
    fn is_present(&self, parts: &Parts) -> bool {
        match self {
            Self::Received(body) | Self::Shown(body) => !body.is_end_stream(),
            Self::Unseen(_) => {
                let is_bodiless = matches!(
                    parts.method,
                    Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS
                );
                !is_bodiless || parts.headers.contains_key(header::CONTENT_TYPE)
            }
        }
    }

    /// The handshake of WebSocket that a call with this body begins.
    fn handshake(&self, parts: &Parts) -> Result<Option<Handshake>, ForwardRejection> {
        match self {
            Self::Received(body) => Handshake::begun_by(parts, !body.is_end_stream()),
            Self::Shown(_) => Handshake::described_by(parts, true),
            Self::Unseen(unseen) => {
                Handshake::described_by(parts, !matches!(unseen, UnseenBody::Absent))
            }
        }
    }
}

/// Takes a call through the steps up to the decision, which it notes in the record.
///
/// # Errors
/// Why it is not permitted.
pub async fn decide(
    live: &Live,
    incoming: IncomingCall<'_>,
    record: &mut RequestRecord,
) -> Result<Permitted, Failure> {
    let IncomingCall {
        head, call, names, ..
    } = incoming;
    let (authorizer, parts, mut body) = (&live.authorizer, head.parts, incoming.body);
    check_path(live, &call, &body)?;
    let method = parts.method.as_str().as_bytes();
    let found = authorizer.operations.find(call.path, method)?;
    record.operation = Served::by(&found);
    record.launch = Launch::begun_by(parts, &found);
    let handshake = match found.operation() {
        Some(operation) if operation.websocket => body.handshake(parts)?,
        _ => None,
    };
    let judged = JudgedCall {
        operations: &authorizer.operations,
        found: &found,
        caller: head.received.facts,
    };
    let caller = incoming.caller;
    let (memory, limits) = (caller.reserve(&API_FORMS), caller.limits());
    let mut collected = match incoming.collected {
        Some(collected) => collected,
        None => Collected::of_head(&parts.headers, &head.target, memory, &limits)?,
    };
    if let Some(body) = body.readable()
        && let Err(failure) = read_body(live, head, &judged, &mut collected, body).await
    {
        record.facts.claimed = Claimed::by_signed(&collected);
        if collected.signed {
            let known = live
                .authorizer
                .verifier
                .names_registered(&collected.parameters);
            record.facts.sender.is_registered = cold::boxed(known).await;
        }
        return Err(failure);
    }
    if let Some(launch) = &mut record.launch {
        launch.read_locale(&collected);
    }
    if collected.held.is_some() {
        // The time until now was spent on the body.
        record.stopwatch.lap();
    }
    let signed_path = call.signed_path(head.target.path);
    let subject = Subject {
        head,
        judged,
        url: call.url,
        path: Cow::Borrowed(&signed_path),
        collected: &collected,
        has_body: body.is_present(parts),
        is_described: !matches!(body, CallBody::Received(_)),
        unseen: match body {
            CallBody::Unseen(unseen) => Some(unseen),
            CallBody::Received(_) | CallBody::Shown(_) => None,
        },
    };
    // A caller that waits for `100 Continue` is not asked for a body that would be dropped.
    let is_readable = subject.has_body && !names.present.has(&parts.headers, &header::EXPECT);
    let mut unsigned = body.readable().map(|body| UnsignedBody {
        body,
        headers: &parts.headers,
        held: None,
    });
    let unread = unsigned.as_mut().filter(|_| is_readable);
    let unread = unread.map(|unread| unread as &mut dyn UnreadBody);
    let deciding = authorizer.decide(&subject, unread, &record.stopwatch);
    let DecidedCall { permitted, facts } = deciding.await;
    if facts.verify.is_none() {
        // The time until now is not the API's.
        record.stopwatch.lap();
    }
    if let (Some(launch), Some(operation)) = (&mut record.launch, found.operation())
        && facts.sender.is_verified()
        && let Err(failure) = &permitted
    {
        launch.read_return_url(&collected, operation, failure);
    }
    record.facts = facts;
    // In observe mode the call goes on to the API: with its whole body, or not at all.
    if let Some(held) = unsigned.and_then(|unsigned| unsigned.held) {
        collected.held = Some(held?);
    }
    let permit = permitted?;
    let asserted = AssertedCall {
        method: &parts.method,
        origin: &call.url.origin,
        path: &signed_path,
    };
    let assertion = live.forward.identity.assertion(&permit, &asserted)?;
    Ok(Permitted {
        permit,
        assertion,
        handshake,
        collected,
    })
}

/// Checks that the path stays below what is public, and that it keeps the conventions.
fn check_path(live: &Live, call: &ApiCall<'_, '_>, body: &CallBody<'_>) -> Result<(), Failure> {
    // The path of the API, or that of the public URL where the other proxy keeps it.
    let below = match body {
        CallBody::Received(_) => &live.forward.api_path,
        CallBody::Shown(_) | CallBody::Unseen(_) => &call.url.prefix,
    };
    if !below.is_empty() && target::climbs(call.path) {
        return Err(route::RouteRejection::PathAbovePrefix.into());
    }
    if live.conventions != Conventions::Off
        && let Some(rule) = conventions::broken_rule(call.path)
    {
        if live.conventions == Conventions::Enforce {
            return Err(policy::PolicyRejection::Convention(rule).into());
        }
        let path = String::from_utf8_lossy(call.path);
        tracing::info!(%path, rule, "path convention broken");
    }
    Ok(())
}

/// Takes a call through the steps before it is forwarded.
pub(super) async fn admit(
    live: &Live,
    head: &Head<'_>,
    call: ApiCall<'_, '_>,
    names: FieldNames,
    (mut body, collected): (RequestBody, Option<Collected>),
    record: &mut RequestRecord,
) -> Result<Admitted, Failure> {
    let (params, parts) = (&live.forward, head.parts);
    let caller = Rc::clone(body.caller());
    let incoming = IncomingCall {
        head,
        call,
        names: &names,
        caller: &caller,
        body: CallBody::Received(&mut body),
        collected,
    };
    let deciding = decide(live, incoming, record);
    let Permitted {
        permit,
        assertion,
        handshake,
        collected,
    } = deciding.await?;
    // An observed call goes on as if this program were not there.
    let rewriting = Rewriting {
        strips_credentials: collected.signed
            && permit.kind().is_some()
            && !params.forwards_authorization(&permit),
        drops_repeats: permit.kind().is_some()
            && record.facts.deviations.contains(Deviation::RepeatsOnce),
    };
    record.permit = Some(permit);
    let upstream = UpstreamCall {
        received: ReceivedAs::new(&head.received, &parts.headers, &caller, params)?,
        target: target_of(params, head, call.path, &collected, rewriting)?,
        names,
        request_id: record.request_id.value().clone(),
        trace: record.trace.as_ref().and_then(Trace::to_api),
        assertion,
    };
    Ok(Admitted {
        upstream,
        handshake,
        body: body_of(collected, body, rewriting),
    })
}

/// Reads the body if the signature covers it: a form, or one with a hash.
async fn read_body(
    live: &Live,
    head: &Head<'_>,
    call: &JudgedCall<'_>,
    collected: &mut Collected,
    body: &mut RequestBody,
) -> Result<(), Failure> {
    let authorizer = &live.authorizer;
    if !body.is_end_stream() && is_form(&head.parts.headers)? {
        authorizer.check_before_form(collected, call).await?;
        let form = body.read_whole().await?;
        collected.hold_form(form, &body.caller().limits())?;
    // Malformed parameters are rejected without the body.
    } else if collected.needs_body(
        authorizer.verify.signature.methods,
        LocationRule::OneLocation,
    ) == Ok(true)
    {
        collected.held = Some(body.read_whole().await?);
    }
    Ok(())
}

/// A body that the signature does not cover.
struct UnsignedBody<'b> {
    body: &'b mut RequestBody,
    headers: &'b HeaderMap,
    /// The body, if it was read for the advice: it is missing from `body` then.
    held: Option<Result<BufferedBody, BodyRejection>>,
}

impl UnreadBody for UnsignedBody<'_> {
    fn is_multipart(&self) -> bool {
        is_multipart(self.headers)
    }

    fn read(&mut self, limit: usize) -> Pin<Box<dyn Future<Output = Option<&[u8]>> + '_>> {
        Box::pin(async move {
            let length = usize::try_from(self.body.size_hint().exact()?).ok()?;
            if length > limit {
                return None;
            }
            let held = self.held.insert(self.body.read_whole().await);
            held.as_deref().ok()
        })
    }
}

/// The path and query that the API is asked for, without what `rewriting` takes out.
fn target_of(
    params: &ForwardParams,
    head: &Head<'_>,
    path: &[u8],
    collected: &Collected,
    rewriting: Rewriting,
) -> Result<PathAndQuery, ForwardFault> {
    let (sent, query) = (&head.parts.uri, head.target.query);
    let is_changed = rewriting.drops_repeats
        || rewriting.strips_credentials
            && collected
                .parameters
                .has_oauth_name_in(ParameterLocation::Query);
    let form = collected.held.as_deref().filter(|_| collected.form);
    let stripped = query
        .filter(|_| is_changed)
        .and_then(|query| rewriting.query(query, form.unwrap_or_default()));
    match (sent.path_and_query(), &stripped) {
        (Some(target), None) if params.api_path.is_empty() && sent.path().len() == path.len() => {
            Ok(target.clone())
        }
        _ => {
            let path = [params.api_path.as_bytes(), path];
            path_and_query(&path, stripped.as_deref().or(query))
        }
    }
}

/// The body that the API gets, without what `rewriting` takes out of a form.
fn body_of(collected: Collected, body: RequestBody, rewriting: Rewriting) -> UpstreamBody {
    let is_changed = rewriting.drops_repeats
        || rewriting.strips_credentials
            && collected
                .parameters
                .has_oauth_name_in(ParameterLocation::Body);
    match collected.held {
        Some(mut held) => {
            if is_changed
                && collected.form
                && let Some(form) = rewriting.form(&held)
            {
                held.replace(form);
            }
            UpstreamBody::Whole(Bytes::from_owner(held))
        }
        None if body.is_end_stream() => UpstreamBody::Empty,
        None => UpstreamBody::Streamed(body),
    }
}

impl Worker {
    /// Sends a permitted call to the API.
    pub(super) async fn forward(
        &self,
        current: &Current,
        caller: &Rc<CallerStream>,
        parts: &Parts,
        call: Admitted,
        url: &PublicUrl,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let (live, pool) = (&current.live, current.pool.as_ref());
        let (params, pool) = (
            &live.forward,
            pool.ok_or(route::RouteRejection::NotFound(None))?,
        );
        let Admitted {
            upstream,
            handshake,
            body,
        } = call;
        record.dropped_upgrade =
            handshake.is_none() && upstream.names.present.has(&parts.headers, &header::UPGRADE);
        let unpermitted = || ForwardFault::Internal("a call without a permit");
        let permit = record.permit.as_ref().ok_or_else(unpermitted)?;
        let outgoing = Outgoing {
            parts,
            params,
            permit,
            call: &upstream,
            websocket: handshake.is_some(),
        };
        let kind = permit.kind();
        let now = record.stopwatch.last();
        let sent = exchange::send(pool, caller, now, &outgoing, body).await;
        let took = record.stopwatch.lap();
        record.upstream = Some(took);
        let (answered, lease) = sent?;
        self.metrics().upstream.observe(took.as_secs_f64());
        let (mut response, incoming) = answered.into_parts();
        let names = NameFilter::new(&response.headers);
        api_response::check_framing(&response, names)?;
        record.passed(response.status.as_u16());
        let context = ResponseContext {
            url,
            origins: &live.origins,
            by_user: kind == Some(CallerKind::User),
        };
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            let in_flight = record.in_flight.take();
            let switched = switch(handshake, lease, &response, caller, params, in_flight);
            cold::boxed(switched).await?;
            api_response::rewrite_switching(&mut response, names, params, &context);
            return Ok(Response::from_parts(response, ResponseBody::none()));
        }
        api_response::rewrite(&mut response, names, params, &context);
        let method = &parts.method;
        Ok(download::with_body(
            response, method, incoming, lease, pool, caller,
        ))
    }
}

/// Has the caller's connection become a tunnel once the 101 of `response` has been written.
async fn switch(
    handshake: Option<Handshake>,
    lease: Lease,
    response: &response::Parts,
    caller: &CallerStream,
    params: &ForwardParams,
    in_flight: Option<InFlight>,
) -> Result<(), ForwardFault> {
    let (Some(handshake), Lease::Http1(http1)) = (handshake, lease) else {
        let reason = "101 (Switching Protocols) that nobody asked for".into();
        return Err(ForwardFault::BrokenResponse(reason));
    };
    handshake.check(response)?;
    let upstream = http1.into_wire().await?;
    let idle = params.tunnel_timeout;
    caller.switch(Box::new(move |wire, stalled| {
        Box::pin(async move {
            tunnel::run(wire, upstream, idle, stalled).await;
            drop(in_flight);
        })
    }));
    Ok(())
}
