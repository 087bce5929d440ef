//! A permitted call's exchange with the API.

use std::rc::Rc;

use http::{Request, Response, StatusCode, request::Parts};

use super::{Current, Worker, nanoseconds, permission::Outgoing, record::Record};
use crate::{
    forward::{Fault, exchange, pool::Lease, request, response, tunnel},
    policy::operations::Kind,
    respond::Failure,
    server::{caller::Caller, response::ResponseBody},
    telemetry::metrics::Verdict,
};

impl Worker {
    /// Sends a permitted call to the API; the response goes on as it comes.
    pub(super) async fn forward(
        &self,
        current: &Current,
        caller: &Rc<Caller>,
        mut parts: Parts,
        outgoing: Outgoing<'_>,
        record: &mut Record,
    ) -> Result<Response<ResponseBody>, Failure> {
        let live = &*current.live;
        let params = &live.forward;
        let Outgoing {
            permit,
            body,
            origin,
            outline,
            handshake,
            url,
            unsigned,
        } = outgoing;
        if unsigned {
            record.stopwatch.lap();
        }
        let method = parts.method.clone();
        request::rewrite(&mut parts, params, &origin, &outline, &body, &permit)?;
        let verdict = match permit.kind() {
            None => Verdict::Observed,
            Some(Kind::Anonymous) => Verdict::Anonymous,
            Some(_) => Verdict::Forwarded,
        };
        let of_user = permit.kind() == Some(Kind::User);
        record.permit = Some(permit);
        let request = Request::from_parts(parts, body);
        let sent = exchange::send(&current.pool, caller, params.response_timeout, request).await;
        let took = record.stopwatch.lap();
        record.upstream = Some(took);
        let (answered, lease) = sent?;
        self.metrics().upstream_nanoseconds(nanoseconds(took));
        let (mut parts, incoming) = answered.into_parts();
        response::check_framing(&parts)?;
        let outline = response::Outline {
            url,
            origins: &live.origins,
            of_user,
        };
        (record.verdict, record.status) = (verdict, parts.status.as_u16());
        if parts.status != StatusCode::SWITCHING_PROTOCOLS {
            response::rewrite(&mut parts, params, &outline);
            return Ok(response::with_body(
                parts,
                &method,
                incoming,
                lease,
                &current.pool,
                caller,
            ));
        }
        let (Some(handshake), Lease::Http1(http1)) = (handshake, lease) else {
            let reason = "101 (Switching Protocols) that nobody asked for".into();
            return Err(Fault::BrokenResponse(reason).into());
        };
        handshake.check(&parts)?;
        let upstream = http1.into_wire().await;
        let upstream = upstream.map_err(|error| Fault::BrokenResponse(error.to_string().into()))?;
        let idle = params.tunnel_timeout;
        let in_flight = record.in_flight.take();
        caller.switch(Box::new(move |wire, stalled| {
            Box::pin(async move {
                tunnel::run(wire, upstream, idle, stalled).await;
                drop(in_flight);
            })
        }));
        response::rewrite_switching(&mut parts, params, &outline);
        Ok(Response::from_parts(parts, ResponseBody::none()))
    }
}
