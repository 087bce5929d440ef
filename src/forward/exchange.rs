//! One exchange with the API: the request out, the head of the response back.

use std::{
    error::Error as _,
    future::poll_fn,
    io,
    pin::pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use hyper::{body::Incoming, client::conn::TrySendError};
use tokio::time::Instant;

use super::{
    body::UpstreamBody,
    pool::{Lease, Pool},
    request::into_http2,
};
use crate::{
    refusal::{Failure, Fault, Refusal},
    server::{
        caller::{Caller, Upload},
        deadline::Elapsed,
    },
};

/// So many bytes may come before the head of the response is there: interim responses (RFC 9110 §15.2) are passed over,
/// and an API that sends nothing else is broken.
const MAX_BEFORE_RESPONSE: u64 = 256 * 1024;

/// How an exchange failed.
enum NoResponse {
    /// The API cannot have seen the request, which is given back if it has not been used up.
    Unseen(Option<Box<Request<UpstreamBody>>>),
    Failed(Failure),
}

/// Sends a request on a kept connection or a new one. One retry, if the kept one was closed before a byte of the response
/// and a second sending can do no harm (RFC 9110 §9.2.2).
///
/// # Errors
/// [`Fault::Unreachable`], [`Fault::ApiTooSlow`], [`Fault::BrokenAnswer`]; what the caller did wrong with its body; and
/// [`Refusal::TooSlow`] where it is the caller who stopped.
pub async fn send(
    pool: &Rc<Pool>,
    caller: &Caller,
    response_timeout: Duration,
    request: Request<UpstreamBody>,
) -> Result<(Response<Incoming>, Lease), Failure> {
    let mut request = request;
    if let Some(lease) = pool.reuse() {
        let spare = spare(&request);
        match attempt(pool, lease, caller, response_timeout, request).await {
            Ok(answered) => return Ok(answered),
            Err(NoResponse::Failed(failure)) => return Err(failure),
            Err(NoResponse::Unseen(given_back)) => {
                match given_back.map(|given_back| *given_back).or(spare) {
                    Some(again) => request = again,
                    None => return Err(unanswered().into()),
                }
            }
        }
    }
    let lease = Box::pin(pool.connect()).await?;
    match attempt(pool, lease, caller, response_timeout, request).await {
        Ok(answered) => Ok(answered),
        Err(NoResponse::Failed(failure)) => Err(failure),
        Err(NoResponse::Unseen(_)) => Err(unanswered().into()),
    }
}

fn unanswered() -> Fault {
    Fault::BrokenAnswer("the connection ended before a response".into())
}

fn flooded() -> Fault {
    Fault::BrokenAnswer("too many interim responses".into())
}

/// The request once more, if it may be sent twice.
fn spare(request: &Request<UpstreamBody>) -> Option<Request<UpstreamBody>> {
    let repeatable = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
    );
    if !repeatable || !matches!(request.body(), UpstreamBody::Empty) {
        return None;
    }
    let mut spare = Request::new(request.body().again()?);
    *spare.method_mut() = request.method().clone();
    *spare.uri_mut() = request.uri().clone();
    *spare.version_mut() = request.version();
    *spare.headers_mut() = request.headers().clone();
    *spare.extensions_mut() = request.extensions().clone();
    Some(spare)
}

async fn attempt(
    pool: &Pool,
    mut lease: Lease,
    caller: &Caller,
    response_timeout: Duration,
    mut request: Request<UpstreamBody>,
) -> Result<(Response<Incoming>, Lease), NoResponse> {
    let mut wait = Wait::new(&lease, caller, response_timeout);
    let answered = match &mut lease {
        Lease::Http1(http1) => {
            let mut answered = pin!(http1.sender.try_send_request(request));
            poll_fn(|context| {
                match lease.poll(context, |context| answered.as_mut().poll(context)) {
                    Poll::Ready(answered) => Poll::Ready(Ok(answered)),
                    Poll::Pending => wait.poll(context, &lease).map(Err),
                }
            })
            .await
        }
        Lease::Http2(sender) => {
            if let Err(fault) = into_http2(&mut request, pool.is_secure()) {
                return Err(NoResponse::Failed(fault.into()));
            }
            let mut answered = pin!(sender.try_send_request(request));
            poll_fn(|context| match answered.as_mut().poll(context) {
                Poll::Ready(answered) => Poll::Ready(Ok(answered)),
                Poll::Pending => wait.poll(context, &lease).map(Err),
            })
            .await
        }
    };
    match answered {
        // They may have come in one go with the response.
        Ok(Ok(_)) if wait.is_flooded(&lease) => Err(NoResponse::Failed(flooded().into())),
        Ok(Ok(response)) => Ok((response, lease)),
        Ok(Err(error)) => Err(wait.explain(&lease, error)),
        Err(failure) => Err(NoResponse::Failed(failure)),
    }
}

/// The deadlines of an exchange before the head of the response.
struct Wait<'c> {
    caller: &'c Caller,
    response_timeout: Duration,
    /// How many bytes had arrived on the connection before.
    arrived_before: u64,
    sent_at: Option<Instant>,
}

impl<'c> Wait<'c> {
    fn new(lease: &Lease, caller: &'c Caller, response_timeout: Duration) -> Self {
        Self {
            caller,
            response_timeout,
            arrived_before: arrived(lease),
            sent_at: None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, lease: &Lease) -> Poll<Failure> {
        if self.is_flooded(lease) {
            return Poll::Ready(flooded().into());
        }
        let body_timeout = self.caller.limits().body_timeout;
        let blocked_since = match lease {
            Lease::Http1(http1) => http1.watch.blocked_since(),
            Lease::Http2(_) => None,
        };
        let (at, failure): (_, fn() -> Failure) = match (blocked_since, self.caller.upload()) {
            (Some(since), _) => (since + body_timeout, || Fault::ApiTooSlow.into()),
            (None, Upload::Awaited(since)) => (since + body_timeout, || Refusal::TooSlow.into()),
            (None, Upload::Taken(since)) => (since + body_timeout, || Fault::ApiTooSlow.into()),
            (None, Upload::Done | Upload::Failed(_)) => {
                let sent_at = *self.sent_at.get_or_insert_with(Instant::now);
                (sent_at + self.response_timeout, || Fault::ApiTooSlow.into())
            }
        };
        self.caller
            .poll_deadline(context, at)
            .map(|Elapsed| failure())
    }

    fn is_flooded(&self, lease: &Lease) -> bool {
        arrived(lease) - self.arrived_before > MAX_BEFORE_RESPONSE
    }

    /// Whose doing it is that there is no response.
    fn explain(&self, lease: &Lease, mut error: TrySendError<Request<UpstreamBody>>) -> NoResponse {
        if let Upload::Failed(error) = self.caller.upload() {
            return NoResponse::Failed(error.into());
        }
        if let Some(request) = error.take_message() {
            return NoResponse::Unseen(Some(Box::new(request)));
        }
        let error = error.into_error();
        // In TLS 1.3 an API rejects our certificate only after the handshake has ended for us.
        if let Some(tls) = of_tls(&error) {
            return NoResponse::Failed(Fault::Unreachable(tls).into());
        }
        let nothing_arrived = arrived(lease) == self.arrived_before;
        let reused = matches!(lease, Lease::Http1(http1) if http1.reused);
        if reused && nothing_arrived {
            return NoResponse::Unseen(None);
        }
        NoResponse::Failed(if nothing_arrived && !error.is_parse() {
            unanswered().into()
        } else {
            Fault::BrokenAnswer(chain(&error).into()).into()
        })
    }
}

fn arrived(lease: &Lease) -> u64 {
    match lease {
        Lease::Http1(http1) => http1.watch.arrived(),
        Lease::Http2(_) => 0,
    }
}

/// The error of TLS, rather than of the connection below it.
fn of_tls(error: &hyper::Error) -> Option<io::Error> {
    let below = error.source()?.downcast_ref::<io::Error>()?;
    let tls = below.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(io::Error::new(below.kind(), tls.clone()))
}

/// An error with its causes, for the log.
fn chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
