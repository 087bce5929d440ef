//! A permitted call: it is rewritten, sent, and its response goes on as it comes.

use std::{mem, rc::Rc};

use bytes::Bytes;
use http::{Response, StatusCode, header, request::Parts, response, uri::PathAndQuery};
use http_body::Body as _;

use super::{Current, Permitted, Worker, in_flight::InFlight, record::RequestRecord};
use crate::{
    base::{cold, http_fields::NameFilter},
    oauth::{Deviation, ParameterLocation},
    provider::respond::Failure,
    request::{
        forward::{
            ForwardFault, ForwardParams,
            credentials::Rewriting,
            download, exchange,
            pool::{Lease, UpstreamBody},
            request::{Outgoing, ReceivedAs, UpstreamCall, path_and_query},
            response::{self as api_response, ResponseContext},
            tunnel,
            websocket::Handshake,
        },
        parse::{
            head::{FieldNames, Head},
            origin::PublicUrl,
            signed::Collected,
        },
        policy::access::CallerKind,
        route,
    },
    telemetry::traces::Trace,
    wire::server::{caller_stream::CallerStream, request::RequestBody, response::ResponseBody},
};

/// A permitted call that is to be sent to the API.
pub(super) struct Admitted {
    /// What the API gets, the body aside.
    upstream: UpstreamCall,
    handshake: Option<Handshake>,
    body: UpstreamBody,
}

impl Admitted {
    /// A permitted call with its path, as the API gets it. The record has its permit from now on.
    pub(super) fn new(
        params: &ForwardParams,
        head: &Head<'_>,
        path: &[u8],
        names: FieldNames,
        permitted: Permitted,
        body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Self, Failure> {
        let Permitted {
            permit,
            assertion,
            handshake,
            collected,
        } = permitted;
        // An observed call goes on as if this program were not there.
        let rewriting = Rewriting {
            strips_credentials: collected.signed
                && permit.kind().is_some()
                && !params.forwards_authorization(&permit),
            drops_repeats: permit.kind().is_some()
                && record.facts.deviations.contains(Deviation::RepeatsOnce),
        };
        record.permit = Some(permit);
        let (headers, caller) = (&head.parts.headers, body.caller());
        let upstream = UpstreamCall {
            received: ReceivedAs::new(&head.received, headers, caller, params)?,
            target: target_of(params, head, path, &collected, rewriting)?,
            names,
            trace: record.trace.as_ref().and_then(Trace::to_api),
            assertion,
        };
        Ok(Self {
            upstream,
            handshake,
            body: body_of(collected, body, rewriting),
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
    #[expect(
        clippy::manual_async_fn,
        reason = "an async function has its arguments twice"
    )]
    pub(super) fn forward(
        &self,
        current: &Current,
        caller: &Rc<CallerStream>,
        parts: &mut Parts,
        call: &mut Admitted,
        url: &PublicUrl,
        record: &mut RequestRecord,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Failure>> {
        async move {
            let pool = current.pool.as_ref();
            let pool = pool.ok_or(route::RouteRejection::NotFound(None))?;
            let is_handshake = call.handshake.is_some();
            let present = call.upstream.names.present;
            record.dropped_upgrade = !is_handshake && present.has(&parts.headers, &header::UPGRADE);
            let unpermitted = || ForwardFault::Internal("a call without a permit");
            let permit = record.permit.as_ref().ok_or_else(unpermitted)?;
            let outgoing = Outgoing {
                parts,
                params: &current.live.forward,
                permit,
                request_id: record.request_id.value(),
                call: &call.upstream,
                websocket: is_handshake,
            };
            let now = record.stopwatch.last();
            let sent = exchange::send(pool, caller, now, &outgoing, &mut call.body).await;
            let by_user = permit.kind() == Some(CallerKind::User);
            let live = &current.live;
            let params = &live.forward;
            let took = record.stopwatch.lap();
            record.upstream = Some(took);
            let (answered, mut lease) = sent?;
            self.metrics().upstream.observe(took.as_secs_f64());
            let (mut response, incoming) = answered.into_parts();
            let names = NameFilter::new(&response.headers);
            api_response::check_framing(&response, names)?;
            record.passed(response.status.as_u16());
            let context = ResponseContext {
                url,
                origins: &live.origins,
                by_user,
            };
            if response.status == StatusCode::SWITCHING_PROTOCOLS {
                let in_flight = record.in_flight.take();
                let switched = switch(
                    call.handshake.take(),
                    lease,
                    &response,
                    caller,
                    params,
                    in_flight,
                );
                cold::boxed(switched).await?;
                api_response::rewrite_switching(&mut response, names, params, &context);
                return Ok(Response::from_parts(response, ResponseBody::none()));
            }
            api_response::rewrite(&mut response, names, params, &context);
            lease.keep_room(mem::take(&mut parts.headers));
            let method = &parts.method;
            Ok(download::with_body(
                response, method, incoming, lease, pool, caller,
            ))
        }
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
