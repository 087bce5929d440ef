//! A permitted call's exchange with the API.

use std::{mem, rc::Rc};

use http::{Method, Request, Response, StatusCode, request::Parts};

use super::{Current, Worker, nanoseconds, permission::Outgoing, record::RequestRecord};
use crate::{
    forward::{
        self, Fault, body::UpstreamBody, exchange, pool::Lease, request, response, tunnel,
        websocket::Handshake,
    },
    parse::origin::PublicUrl,
    policy::operations::Kind,
    respond::Failure,
    server::{caller::Caller, response::ResponseBody},
    telemetry::metrics::Verdict,
};

/// What the response to a forwarded call depends on.
pub(super) struct Forwarded<'o> {
    method: Method,
    verdict: Verdict,
    of_user: bool,
    handshake: Option<Handshake>,
    url: &'o PublicUrl,
}

impl Worker {
    /// Makes the request that the API sees; `parts` is used up.
    pub(super) fn prepare<'o>(
        params: &forward::Params,
        parts: &mut Parts,
        outgoing: Outgoing<'o>,
        record: &mut RequestRecord,
    ) -> Result<(Request<UpstreamBody>, Forwarded<'o>), Failure> {
        let Outgoing {
            permit,
            body,
            origin,
            changes,
            handshake,
            url,
            unsigned,
        } = outgoing;
        if unsigned {
            record.stopwatch.lap();
        }
        request::rewrite(parts, params, &origin, &changes, &body, &permit)?;
        let verdict = match permit.kind() {
            None => Verdict::Observed,
            Some(Kind::Anonymous) => Verdict::Anonymous,
            Some(_) => Verdict::Forwarded,
        };
        let forwarded = Forwarded {
            method: parts.method.clone(),
            verdict,
            of_user: permit.kind() == Some(Kind::User),
            handshake,
            url,
        };
        record.permit = Some(permit);
        record.dropped_upgrade &= forwarded.handshake.is_none();
        let mut request = Request::new(body);
        *request.method_mut() = forwarded.method.clone();
        *request.uri_mut() = mem::take(&mut parts.uri);
        *request.headers_mut() = mem::take(&mut parts.headers);
        *request.extensions_mut() = mem::take(&mut parts.extensions);
        Ok((request, forwarded))
    }

    /// Sends a permitted call to the API; the response goes on as it comes. `request` is taken.
    pub(super) async fn forward(
        &self,
        current: &Current,
        caller: &Rc<Caller>,
        request: &mut Request<UpstreamBody>,
        forwarded: &mut Forwarded<'_>,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let live = &*current.live;
        let params = &live.forward;
        let sent = exchange::send(&current.pool, caller, params.response_timeout, request).await;
        let took = record.stopwatch.lap();
        record.upstream = Some(took);
        let (answered, lease) = sent?;
        self.metrics().upstream_nanoseconds(nanoseconds(took));
        let (mut parts, incoming) = answered.into_parts();
        response::check_framing(&parts)?;
        let context = response::Context {
            url: forwarded.url,
            origins: &live.origins,
            of_user: forwarded.of_user,
        };
        (record.verdict, record.status) = (forwarded.verdict, parts.status.as_u16());
        if parts.status != StatusCode::SWITCHING_PROTOCOLS {
            response::rewrite(&mut parts, params, &context);
            return Ok(response::with_body(
                parts,
                &forwarded.method,
                incoming,
                lease,
                &current.pool,
                caller,
            ));
        }
        let (Some(handshake), Lease::Http1(http1)) = (forwarded.handshake.take(), lease) else {
            let reason = "101 (Switching Protocols) that nobody asked for".into();
            return Err(Fault::BrokenResponse(reason).into());
        };
        handshake.check(&parts)?;
        let upstream = Box::pin(http1.into_wire()).await;
        let upstream = upstream.map_err(|error| Fault::BrokenResponse(error.to_string().into()))?;
        let idle = params.tunnel_timeout;
        let in_flight = record.in_flight.take();
        caller.switch(Box::new(move |wire, stalled| {
            Box::pin(async move {
                tunnel::run(wire, upstream, idle, stalled).await;
                drop(in_flight);
            })
        }));
        response::rewrite_switching(&mut parts, params, &context);
        Ok(Response::from_parts(parts, ResponseBody::none()))
    }
}
