//! A permitted call: it is rewritten, sent, and its response goes on as it comes.

use std::{mem, pin::pin, rc::Rc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode, header, request::Parts, response, uri::PathAndQuery,
};
use http_body::Body as _;

use crate::{
    base::{cold, network::http_fields::NameFilter},
    gateway::{
        live::{Current, InFlight},
        record::RequestRecord,
    },
    oauth::ParameterLocation,
    provider::respond::Failure,
    request::{
        forward::{
            ForwardFault, ForwardParams,
            credentials::Rewriting,
            exchange::{self, Answered},
            pool::{KEEP_ALIVE, Lease, UpstreamBody},
            request::{ReceivedAs, UpstreamHead, path_and_query},
            response::{self as api_response, ResponseContext, download, location::PublicPlaces},
            tunnel,
            websocket::Handshake,
        },
        parse::{origin::PublicUrl, signed::Collected},
        policy::{access::CallerKind, call::Call, permit::Permit},
        route::RouteRejection,
    },
    telemetry::traces::Trace,
    wire::server::{caller::stream::CallerStream, request::RequestBody, response::ResponseBody},
};

/// The response of the API, whose body is still to come.
pub(super) struct ApiResponse {
    answered: Answered,
    /// The handshake that it has to answer.
    handshake: Option<Handshake>,
    /// The time for which it may be silent.
    silence_timeout: Duration,
}

/// Sends a permitted call to the API. The record has its permit from now on.
///
/// # Errors
/// Those of [`exchange::send`], and [`ForwardFault::Internal`]: the call cannot be described to the API.
pub(super) async fn send(
    current: &Current,
    call: &mut Call<'_>,
    permit: Permit,
    caller: &CallerStream,
    handshake: Option<Handshake>,
    record: &mut RequestRecord,
) -> Result<ApiResponse, Failure> {
    let pool = current.pool.as_ref();
    let pool = pool.ok_or(RouteRejection::NotFound(None))?;
    let (params, parts) = (&current.live.forward, call.head.parts);
    record.dropped_upgrade =
        handshake.is_none() && call.names.present.has(&parts.headers, &header::UPGRADE);
    let rules = call.found.rules();
    let response_timeout = rules.and_then(|it| it.response_timeout);
    let silence_timeout = rules.and_then(|it| it.silence_timeout);
    if params.shows_credentials(call, &permit) {
        check_no_credentials_hide(call)?;
    }
    let permit = &*record.permit.insert(permit);
    let rewriting = Rewriting::new(call, permit, record.facts.deviations, params);
    let target = target_of(call, params, rewriting)?;
    let assertion = params.identity.assertion(permit, call)?;
    let received = ReceivedAs::new(&call.head.received, &parts.headers, caller, params)?;
    let body = call.take_body();
    let mut body = body.map_or(UpstreamBody::Empty, |body| {
        body_of(body, &call.collected, rewriting)
    });
    let head = UpstreamHead {
        parts,
        names: call.names,
        params,
        permit,
        request_id: record.request_id.value(),
        target,
        received,
        assertion,
        prefix: current
            .live
            .origins
            .removed_prefix(call.url)
            .filter(|_| params.api_path.is_empty()),
        trace: record.trace.as_ref().and_then(Trace::to_api),
        response_timeout: response_timeout.unwrap_or(params.response_timeout),
        websocket: handshake.is_some(),
    };
    let begun = record.stopwatch.last();
    let sent = pin!(exchange::send(pool, caller, begun, &head, &mut body)).await;
    let took = record.stopwatch.lap();
    record.upstream = Some(took);
    let answered = sent?;
    current.shared.metrics.upstream.observe(took.as_secs_f64());
    Ok(ApiResponse {
        answered,
        handshake,
        silence_timeout: silence_timeout.unwrap_or(params.silence_timeout),
    })
}

/// Checks that an API that verifies the call itself finds no credentials in it but those that were verified here, in a body
/// that is still to come either.
fn check_no_credentials_hide(call: &Call<'_>) -> Result<(), Failure> {
    call.collected.parameters.check_header_hides_none()?;
    if let Some(body) = call.body.readable()
        && !call.collected.form
    {
        let content_type = call.head.parts.headers.get(&header::CONTENT_TYPE);
        body.go_on_without_credentials(content_type.map(HeaderValue::as_bytes))?;
    }
    Ok(())
}

/// The response to the caller of a call at this public URL; `parts` are the head of the request, whose memory the next
/// response of the API gets.
///
/// # Errors
/// [`ForwardFault::BrokenResponse`].
pub(super) async fn respond(
    current: &Current,
    sent: ApiResponse,
    url: &PublicUrl,
    parts: &mut Parts,
    caller: &Rc<CallerStream>,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    let pool = current.pool.as_ref();
    let pool = pool.ok_or(RouteRejection::NotFound(None))?;
    let params = &current.live.forward;
    let (response, mut lease) = sent.answered;
    let (mut response, incoming) = response.into_parts();
    let names = NameFilter::new(&response.headers);
    api_response::check_framing(&response, names)?;
    if names.may_have(&KEEP_ALIVE) {
        lease.read_keep_alive(&response.headers, record.stopwatch.last());
    }
    record.passed(response.status.as_u16());
    let kind = record.permit.as_ref().and_then(Permit::kind);
    let context = ResponseContext {
        places: PublicPlaces {
            url,
            origins: &current.live.origins,
            flow: &current.live.route.flow,
        },
        by_user: kind == Some(CallerKind::User),
    };
    if response.status == StatusCode::SWITCHING_PROTOCOLS {
        let in_flight = record.in_flight.take();
        let switched = switch(sent.handshake, lease, &response, caller, params, in_flight);
        cold::boxed(switched).await?;
        api_response::rewrite_switching(&mut response, names, params, &context);
        return Ok(Response::from_parts(response, ResponseBody::none()));
    }
    api_response::rewrite(&mut response, names, params, &context);
    lease.keep_room(mem::take(&mut parts.headers));
    let method = &parts.method;
    Ok(download::with_body(
        response,
        method,
        incoming,
        lease,
        pool,
        caller,
        sent.silence_timeout,
    ))
}

/// The path and query that the API is asked for, without what `rewriting` takes out.
fn target_of(
    call: &Call<'_>,
    params: &ForwardParams,
    rewriting: Rewriting,
) -> Result<PathAndQuery, Failure> {
    let (sent, query) = (&call.head.parts.uri, call.head.target.query);
    let form = call.held()?.filter(|_| call.collected.form);
    let stripped = query
        .filter(|_| rewriting.concerns(&call.collected.parameters, ParameterLocation::Query))
        .and_then(|query| rewriting.without(query, form.unwrap_or_default()));
    match (sent.path_and_query(), &stripped) {
        (Some(target), None)
            if params.api_path.is_empty() && sent.path().len() == call.path.len() =>
        {
            Ok(target.clone())
        }
        _ => {
            let path = [params.api_path.as_bytes(), call.path];
            Ok(path_and_query(&path, stripped.as_deref().or(query))?)
        }
    }
}

/// The body that the API gets, without what `rewriting` takes out of a form.
fn body_of(mut body: RequestBody, collected: &Collected, rewriting: Rewriting) -> UpstreamBody {
    match body.take_held() {
        Some(mut held) => {
            if collected.form
                && rewriting.concerns(&collected.parameters, ParameterLocation::Body)
                && let Some(form) = rewriting.without(&held, b"")
            {
                held.replace(form);
            }
            UpstreamBody::Whole(Bytes::from_owner(held))
        }
        None if body.is_end_stream() => UpstreamBody::Empty,
        None => UpstreamBody::Streamed(body),
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
        let reason = "101 (Switching Protocols) that was not asked for".into();
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
