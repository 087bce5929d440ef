//! A permitted call's exchange with the API.

use crate::{
    forward::{
        credentials,
        relay::{self, Delivered, NoAnswer, Sending},
        request_head, response_head,
        response_head::Delivery,
        tunnel,
        upstream::{Upstream, UpstreamConnection},
        websocket::Handshake,
    },
    http1::{
        framing::{self, Framing},
        head::HeadLimits,
        name::Name,
        pool::Buffer,
    },
    oauth::Place,
    parse::{origin::PrefixMode, signed::Collected},
    policy::{
        operations::{Found, Kind},
        permit::Permit,
    },
    refusal::{Failure, Fault},
    server::connection::{Connection, Handler},
    telemetry::metrics::Verdict,
};

use super::{Current, Outcome, Worker, nanoseconds, permission::Way};

impl Worker {
    /// Sends a permitted call to the API and its answer back.
    pub(super) async fn forward(
        &self,
        current: &Current,
        way: &Way<'_>,
        permit: Permit,
        collected: Collected,
        connection: &mut Connection,
    ) -> Result<Outcome, Failure> {
        let params = &way.live.forward;
        let Collected {
            parameters,
            signed,
            held: mut body,
            form,
        } = collected;
        let strip = signed && permit.kind().is_some() && !params.forward_authorization;
        let strip_in = |place| strip && parameters.has_oauth_name_in(place);
        let query = way.target.query;
        let stripped = query
            .filter(|_| strip_in(Place::Query))
            .and_then(credentials::strip);
        if strip_in(Place::Body)
            && form
            && let Some(body) = &mut body
            && let Some(form) = credentials::strip(body)
        {
            body.replace(form);
        }
        // The exchange lasts as long as the API and the caller make it last.
        drop(parameters);
        let framing = match &body {
            Some(body) if body.is_empty() => Framing::None,
            Some(body) => Framing::Length(body.len() as u64),
            // Where a stream of HTTP/2 ends, the API is told by chunks.
            None if connection.framing == Framing::UntilClose => Framing::Chunked,
            None => connection.framing,
        };
        let upgrade = match way.found {
            Found::Operation(operation) if operation.websocket => {
                Handshake::begun_by(way.head, connection.framing)?
            }
            _ => None,
        };
        let outline = request_head::Outline {
            head: way.head,
            path: way.call.path,
            query: stripped.as_deref().or(query),
            received: way.received,
            url: way.call.url,
            peer: connection.peer.address,
            framing,
            explicit_empty: body.is_some() || way.head.fields.has(Name::ContentLength),
            websocket: upgrade.is_some(),
        };
        let compose = || {
            let mut request = Buffer::take();
            request_head::write(&mut request, params, &outline, &permit);
            request
        };
        let mut request = compose();
        if let Some(body) = &mut body {
            body.move_into(&mut request);
        }
        let mut streamed = if body.is_some() {
            Framing::None
        } else {
            framing
        };
        if streamed != Framing::None && connection.take_arrived_body(&mut request)? {
            streamed = Framing::None;
        }

        if !signed {
            // Whatever was waited for, it was not the API.
            way.laps.lap();
        }
        let (mut upstream, mut sending, answer_head) = exchange(
            &current.upstream,
            way,
            connection,
            Request {
                first: request,
                again: &compose,
                streamed,
                upgrade: upgrade.as_ref(),
            },
        )
        .await?;
        let upstream_time = way.laps.lap();
        self.metrics()
            .upstream_nanoseconds(nanoseconds(upstream_time));

        let of_user = permit.kind() == Some(Kind::User);
        let verdict = match permit.kind() {
            None => Verdict::Observed,
            Some(Kind::Anonymous) => Verdict::Anonymous,
            Some(_) => Verdict::Forwarded,
        };
        let outcome = Outcome {
            verdict,
            status: answer_head.status,
            permit: Some(permit),
            upstream: Some(upstream_time),
        };
        if answer_head.status == 101 {
            connection.keep_alive = false;
            response_head::write_switching(connection.out.buffer(), params, &answer_head);
            drop(answer_head);
            let ended = tunnel::run(connection, &mut upstream, params.tunnel_timeout).await;
            connection.abort = ended == tunnel::Ended::Broken;
            return Ok(outcome);
        }

        connection.begin_answer();
        let to_head = way.head.method() == b"HEAD";
        let answer_framing = framing::response(&answer_head, to_head)
            .map_err(|error| Fault::BrokenAnswer(error.to_string().into()))?;
        let delivery = response_head::delivery(answer_framing, connection.version);
        connection.keep_alive &=
            delivery != Delivery::UntilClose && connection.body.is_done() && !self.is_draining();
        let outline = response_head::Outline {
            url: way.call.url,
            strip: way.live.origins.prefix_mode != PrefixMode::Keep,
            version: connection.version,
            keep_alive: connection.keep_alive,
            of_user,
        };
        response_head::write(
            connection.out.buffer(),
            params,
            &outline,
            &answer_head,
            delivery,
        );
        let delivered = relay::answer(
            connection,
            &mut upstream,
            &mut sending,
            answer_framing,
            delivery == Delivery::Chunked,
        )
        .await;
        match delivered {
            Delivered::Whole => {
                if relay::is_reusable(&answer_head, answer_framing, &upstream, sending) {
                    current.upstream.keep(upstream, way.laps.last());
                }
                Ok(outcome)
            }
            Delivered::Broken => {
                tracing::warn!(status = answer_head.status, "the API broke off its answer");
                connection.keep_alive = false;
                connection.abort = true;
                Ok(Outcome {
                    verdict: Verdict::BadGateway,
                    ..outcome
                })
            }
            Delivered::CallerGone => {
                connection.keep_alive = false;
                connection.abort = true;
                Ok(Outcome {
                    verdict: Verdict::Aborted,
                    ..outcome
                })
            }
        }
    }
}

/// A request to the API.
struct Request<'r, C: Fn() -> Buffer> {
    /// Its head, and what there is of its body.
    first: Buffer,
    /// Makes its head again, for a request without a body.
    again: &'r C,
    /// How the rest of its body goes on.
    streamed: Framing,
    /// The handshake that it begins.
    upgrade: Option<&'r Handshake>,
}

/// Sends a request on a kept connection or a new one. One retry, if the kept one was closed before a byte of the answer
/// and a second sending can do no harm.
async fn exchange<C: Fn() -> Buffer>(
    pool: &Upstream,
    way: &Way<'_>,
    connection: &mut Connection,
    request: Request<'_, C>,
) -> Result<
    (
        UpstreamConnection,
        Sending,
        crate::http1::head::ResponseHead,
    ),
    Failure,
> {
    let repeatable = request.streamed == Framing::None
        && connection.framing == Framing::None
        && matches!(
            way.head.method(),
            b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE"
        );
    let mut kept = pool.reuse(way.laps.last());
    let mut first = Some(request.first);
    loop {
        let mut upstream = match kept.take() {
            Some(upstream) => upstream,
            None => Box::pin(pool.connect()).await?,
        };
        let bytes = first.take().unwrap_or_else(request.again);
        upstream.out.set(bytes);
        let mut sending = Sending::new(request.streamed);
        let limits = &way.live.limits.head;
        let limits = HeadLimits {
            head_bytes: limits.head_bytes.max(ANSWER_HEAD_BYTES),
            ..*limits
        };
        let answer = relay::request(
            connection,
            &mut upstream,
            &mut sending,
            &limits,
            way.live.forward.response_timeout,
            request.upgrade,
        )
        .await;
        match answer {
            Ok(head) => return Ok((upstream, sending, head)),
            Err(NoAnswer::ClosedUnanswered) if upstream.reused && repeatable => {}
            Err(NoAnswer::ClosedUnanswered) => {
                let reason = "the connection ended before an answer".into();
                return Err(Fault::BrokenAnswer(reason).into());
            }
            Err(NoAnswer::Failed(failure)) => return Err(failure),
        }
    }
}

/// An answer's head may be so large at least, whatever the bound of callers' heads.
const ANSWER_HEAD_BYTES: usize = 64 * 1024;
