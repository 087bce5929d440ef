//! One exchange with the API: the request out, the head of the response back.

use std::{
    error::Error as _,
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, Version};
use http_body::Body as _;
use hyper::{body::Incoming, client::conn::TrySendError};
use tokio::time::Instant;

use super::{
    ForwardError, ForwardFault,
    pool::{Lease, Pool, UpstreamBody},
    request::UpstreamHead,
};
use crate::{
    base::cold,
    telemetry::log::causes::causes,
    wire::{
        server::{
            caller::stream::{CallerStream, Upload},
            rejection::BodyRejection,
        },
        written_head::stand_in,
    },
};

/// This many bytes may come before the head of the response is there: interim responses (RFC 9110 §15.2) are passed over,
/// and an API that sends nothing else is broken.
const MAX_BEFORE_RESPONSE: u64 = 256 * 1024;

/// The response of the API, whose body is still to come, and the connection that it comes by.
pub type Answered = (Response<Incoming>, Lease);

/// Why an attempt has no response.
enum NoResponse {
    /// hyper has written nothing of the request and has given its body back.
    Unwritten,
    Failed(ForwardError),
}

/// Sends a request on an idle connection or a new one. It is sent again only if nothing of it was written: the API may act
/// on a request without a response.
///
/// # Errors
/// [`ForwardFault::Unreachable`], [`ForwardFault::ApiTooSlow`], [`ForwardFault::BrokenResponse`], [`ForwardFault::Internal`] and
/// each [`BodyRejection`].
pub async fn send(
    pool: &Rc<Pool>,
    caller: &CallerStream,
    now: Instant,
    head: &UpstreamHead<'_>,
    body: &mut UpstreamBody,
) -> Result<Answered, ForwardError> {
    if let Some(lease) = pool.reuse(head.websocket, now) {
        let wait = Wait::new(&lease, caller, head.response_timeout, now);
        match pin!(attempt(pool, lease, wait, head, body)).await {
            Ok(answered) => return Ok(answered),
            Err(NoResponse::Failed(failure)) => return Err(failure),
            Err(NoResponse::Unwritten) => {}
        }
    }
    let lease = cold::boxed(pool.connect(head.websocket)).await?;
    let wait = Wait::new(&lease, caller, head.response_timeout, Instant::now());
    match cold::boxed(attempt(pool, lease, wait, head, body)).await {
        Ok(answered) => Ok(answered),
        Err(NoResponse::Failed(failure)) => Err(failure),
        Err(NoResponse::Unwritten) => Err(unanswered().into()),
    }
}

fn unanswered() -> ForwardFault {
    ForwardFault::BrokenResponse("the connection ended before a response".into())
}

async fn attempt(
    pool: &Pool,
    mut lease: Lease,
    mut wait: Wait<'_>,
    head: &UpstreamHead<'_>,
    body: &mut UpstreamBody,
) -> Result<Answered, NoResponse> {
    let internal = |fault: ForwardFault| NoResponse::Failed(fault.into());
    let answered = match &mut lease {
        Lease::Http1(http1) => {
            let request = if body.is_end_stream() && !head.websocket && !pool.keeps_case() {
                let written = head.written_head(http1.watch.head_memory());
                let waiting = http1.watch.write_head(written.map_err(internal)?);
                waiting.map_err(|_| internal(unanswered()))?;
                stand_in(&head.parts.method, mem::take(&mut http1.room))
            } else {
                head.over_http1(mem::take(body)).map_err(internal)?
            };
            http1.watch.limit_reading(Some(MAX_BEFORE_RESPONSE));
            let sent = pin!(http1.sender.try_send_request(request));
            wait.for_response(sent).await
        }
        Lease::Http2(http2) => {
            let request = head.over_http2(mem::take(body), pool.is_secure());
            let request = request.map_err(internal)?;
            let sent = pin!(http2.sender.try_send_request(request));
            wait.for_response(sent).await
        }
    };
    match answered {
        Ok(Ok(response)) => {
            if let Lease::Http1(http1) = &mut lease {
                http1.watch.limit_reading(None);
                http1.kept_until = None;
                http1.outdated = response.version() != Version::HTTP_11;
            }
            Ok((response, lease))
        }
        Ok(Err(error)) => Err(wait.explain(&lease, error, body)),
        Err(failure) => {
            // The connection may be dead: other requests would wait as long on it.
            if let Lease::Http2(http2) = &lease
                && http2.watch.arrived() == wait.arrived_before
            {
                pool.forget(http2);
            }
            Err(NoResponse::Failed(failure))
        }
    }
}

/// The deadlines of an exchange before the head of the response.
struct Wait<'c> {
    caller: &'c CallerStream,
    response_timeout: Duration,
    /// The number of bytes that had arrived on the connection before.
    arrived_before: u64,
    sent_at: Option<Instant>,
}

impl<'c> Wait<'c> {
    fn new(
        lease: &Lease,
        caller: &'c CallerStream,
        response_timeout: Duration,
        now: Instant,
    ) -> Self {
        Self {
            caller,
            response_timeout,
            arrived_before: arrived(lease),
            sent_at: (caller.upload() == Upload::Done).then_some(now),
        }
    }

    async fn for_response<T>(
        &mut self,
        mut sent: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, ForwardError> {
        poll_fn(|context| match sent.as_mut().poll(context) {
            Poll::Ready(answered) => Poll::Ready(Ok(answered)),
            Poll::Pending => self.poll(context).map(Err),
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ForwardError> {
        let body_timeout = self.caller.limits().body_timeout;
        if matches!(self.caller.upload(), Upload::Awaited(_) | Upload::Taken(_)) {
            // The time for the response begins at the end of the upload.
            self.caller.wake_at_upload_end(context);
        }
        let (at, failure): (_, fn() -> ForwardError) = match self.caller.upload() {
            Upload::Awaited(since) => (since + body_timeout, || BodyRejection::TooSlow.into()),
            Upload::Taken(since) => (since + body_timeout, || ForwardFault::ApiTooSlow.into()),
            Upload::Done | Upload::Failed(_) => {
                let sent_at = *self.sent_at.get_or_insert_with(Instant::now);
                (sent_at + self.response_timeout, || {
                    ForwardFault::ApiTooSlow.into()
                })
            }
        };
        self.caller.poll_deadline(context, at).map(|()| failure())
    }

    /// Finds out why there is no response.
    fn explain(
        &self,
        lease: &Lease,
        mut error: TrySendError<Request<UpstreamBody>>,
        body: &mut UpstreamBody,
    ) -> NoResponse {
        if let Upload::Failed(error) = self.caller.upload() {
            return NoResponse::Failed(error.into());
        }
        if let Some(request) = error.take_message() {
            *body = request.into_body();
            return NoResponse::Unwritten;
        }
        let error = error.into_error();
        // In TLS 1.3 an API rejects our certificate after the handshake has ended for us.
        if let Some(tls) = tls_error(&error) {
            return NoResponse::Failed(ForwardFault::Unreachable(tls).into());
        }
        if error.is_parse_too_large() {
            let reason =
                "its head has more fields than upstream.response_fields, or more than 64 KiB";
            return NoResponse::Failed(ForwardFault::BrokenResponse(reason.into()).into());
        }
        let nothing_arrived = arrived(lease) == self.arrived_before;
        NoResponse::Failed(if nothing_arrived && !error.is_parse() {
            unanswered().into()
        } else {
            ForwardFault::BrokenResponse(causes(&error).into()).into()
        })
    }
}

fn arrived(lease: &Lease) -> u64 {
    match lease {
        Lease::Http1(http1) => http1.watch.arrived(),
        Lease::Http2(http2) => http2.watch.arrived(),
    }
}

/// The error of TLS, rather than of the connection below it.
fn tls_error(error: &hyper::Error) -> Option<io::Error> {
    let below = error.source()?.downcast_ref::<io::Error>()?;
    let tls = below.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(io::Error::new(below.kind(), tls.clone()))
}
