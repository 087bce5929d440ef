//! A permitted call's exchange with the API.

use std::{mem, rc::Rc};

use http::{Request, Response, StatusCode, request, response::Parts};

use super::{
    Current, Worker,
    record::{InFlight, RequestRecord},
};
use crate::{
    forward::{
        self, Fault,
        body::UpstreamBody,
        exchange,
        pool::Lease,
        request::{Changes, ReceivedAs, rewrite},
        response, tunnel,
        websocket::Handshake,
    },
    parse::origin::PublicUrl,
    policy::{operations::Kind, permit::Permit},
    respond::Failure,
    server::{caller::Caller, response::ResponseBody},
    telemetry::metrics::Verdict,
};

/// A permitted call on its way to the API.
pub(super) struct Call<'o> {
    pub(super) permit: Permit,
    pub(super) body: UpstreamBody,
    pub(super) received: ReceivedAs,
    pub(super) changes: Changes,
    pub(super) handshake: Option<Handshake>,
    /// The public URL of the request.
    pub(super) url: &'o PublicUrl,
}

impl Worker {
    /// Sends a permitted call to the API; the response goes on as it comes. The fields of `parts` go to the API.
    pub(super) async fn forward(
        &self,
        current: &Current,
        caller: &Rc<Caller>,
        parts: &mut request::Parts,
        call: Call<'_>,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let live = &*current.live;
        let params = &live.forward;
        let (url, handshake) = (call.url, call.handshake);
        rewrite(
            parts,
            params,
            &call.received,
            &call.changes,
            &call.body,
            &call.permit,
        )?;
        let kind = call.permit.kind();
        record.permit = Some(call.permit);
        record.dropped_upgrade &= handshake.is_none();
        let request = &mut Request::new(call.body);
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = mem::take(&mut parts.uri);
        *request.headers_mut() = mem::take(&mut parts.headers);
        *request.extensions_mut() = mem::take(&mut parts.extensions);
        let (pool, upgrade) = (&current.pool, handshake.is_some());
        let (timeout, now) = (params.response_timeout, record.stopwatch.last());
        let sent = exchange::send(pool, caller, timeout, upgrade, now, request).await;
        let took = record.stopwatch.lap();
        record.upstream = Some(took);
        let (answered, lease) = sent?;
        self.metrics().upstream.observe(took.as_secs_f64());
        let (mut response, incoming) = answered.into_parts();
        response::check_framing(&response)?;
        let context = response::Context {
            url,
            origins: &live.origins,
            of_user: kind == Some(Kind::User),
        };
        record.status = response.status.as_u16();
        record.verdict = match kind {
            None => Verdict::Observed,
            Some(Kind::Anonymous) => Verdict::Anonymous,
            Some(_) => Verdict::Forwarded,
        };
        if response.status != StatusCode::SWITCHING_PROTOCOLS {
            response::rewrite(&mut response, params, &context);
            let method = &parts.method;
            return Ok(response::with_body(
                response, method, incoming, lease, pool, caller,
            ));
        }
        let in_flight = record.in_flight.take();
        let switched = switch(handshake, lease, &response, caller, params, in_flight);
        Box::pin(switched).await?;
        response::rewrite_switching(&mut response, params, &context);
        Ok(Response::from_parts(response, ResponseBody::none()))
    }
}

/// Has the caller's connection become a tunnel once the 101 of `response` has been written.
#[cold]
#[inline(never)]
async fn switch(
    handshake: Option<Handshake>,
    lease: Lease,
    response: &Parts,
    caller: &Caller,
    params: &forward::Params,
    in_flight: Option<InFlight>,
) -> Result<(), Fault> {
    let (Some(handshake), Lease::Http1(http1)) = (handshake, lease) else {
        let reason = "101 (Switching Protocols) that nobody asked for".into();
        return Err(Fault::BrokenResponse(reason));
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
