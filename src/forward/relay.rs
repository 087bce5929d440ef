//! One exchange with the API: the request out, the answer back, both bodies streamed with back-pressure.
//!
//! Both directions run in one task, so that an API may answer before it has read the whole body. Each direction reads
//! only when what it read before has been written: a slow reader slows its writer down, and nothing is collected.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};

use super::{upstream::UpstreamConnection, websocket::Handshake};
use crate::{
    http1::{
        body::{Body, BodyError},
        framing::{self, Framing},
        head::{HeadLimits, HeadLines, ResponseHead},
        write,
    },
    refusal::{Failure, Fault, Refusal},
    server::connection::Connection,
    transport::stream::poll_drain,
};

/// Interim answers that are read past at most; an API that sends more is broken.
const MAX_INTERIM: usize = 16;

/// So many bytes are gathered at most before they are written.
const GATHER_BYTES: usize = 64 * 1024;

/// The half of an exchange that goes to the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The rest of the caller's body is still to be streamed.
    streaming: bool,
    chunked: bool,
    /// The API no longer takes what is sent; its answer may still be read.
    refused: bool,
}

/// How an exchange failed before the head of the answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The connection ended before a byte of the answer: if it was a reused one, the API may never have seen the request.
    ClosedUnanswered,
    /// Anything else.
    Failed(Failure),
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Fault> for NoAnswer {
    fn from(fault: Fault) -> Self {
        Self::Failed(Failure::Fault(fault))
    }
}

impl Sending {
    /// A request whose head, and body if it was held back, is already in `out`; `framing` is that of a body still to
    /// be streamed.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            streaming: framing != Framing::None,
            chunked: framing == Framing::Chunked,
            refused: false,
        }
    }

    /// Whether a body is streamed that cannot be sent a second time.
    #[must_use]
    pub const fn is_streaming(self) -> bool {
        self.streaming
    }

    /// Sends what can be sent now. `Ready`: everything has been sent, or the API takes no more.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        caller: &mut Connection,
        upstream: &mut UpstreamConnection,
        progress: &mut bool,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            if !upstream.out.is_empty() && !self.refused {
                let before = upstream.out.written();
                let drained = poll_drain(&mut upstream.stream, context, &mut upstream.out);
                *progress |= upstream.out.written() != before;
                match drained {
                    Poll::Ready(Ok(())) => *progress = true,
                    Poll::Ready(Err(_)) => self.refused = true,
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.refused {
                self.streaming = false;
            }
            if !self.streaming {
                return Poll::Ready(Ok(()));
            }
            match caller.poll_body(context, upstream.out.buffer(), self.chunked) {
                Poll::Ready(Ok(true)) => *progress = true,
                Poll::Ready(Ok(false)) => {
                    self.streaming = false;
                    if self.chunked {
                        upstream.out.buffer().extend_from_slice(write::LAST_CHUNK);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Sends the request and reads the head of the answer; 101 only where it answers `upgrade`.
///
/// # Errors
/// [`NoAnswer`]
pub async fn request(
    caller: &mut Connection,
    upstream: &mut UpstreamConnection,
    sending: &mut Sending,
    limits: &HeadLimits,
    response_timeout: Duration,
    upgrade: Option<&Handshake>,
) -> Result<ResponseHead, NoAnswer> {
    let body_timeout = caller.limits.body_timeout;
    for _ in 0..MAX_INTERIM {
        let mut lines = HeadLines::default();
        let mut sent = false;
        let mut armed = false;
        let length = poll_fn(|context| {
            let mut progress = !armed;
            armed = true;
            if !sent {
                match sending.poll(context, caller, upstream, &mut progress) {
                    Poll::Ready(Ok(())) => {
                        sent = true;
                        caller.deadline.set(response_timeout);
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(callers_fault(error))),
                    Poll::Pending if progress => caller.deadline.set(body_timeout),
                    Poll::Pending => {}
                }
            }
            loop {
                let unread = upstream.input.unread();
                match lines.find(unread, limits) {
                    Ok(Some(length)) => return Poll::Ready(Ok(length)),
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(Err(broken(&error).into())),
                }
                let any = !unread.is_empty();
                match upstream.input.poll_fill(&mut upstream.stream, context) {
                    // In TLS 1.3 an API refuses our certificate only after the handshake has ended for us.
                    Poll::Ready(Err(error)) if is_of_tls(&error) => {
                        return Poll::Ready(Err(Fault::Unreachable(error).into()));
                    }
                    Poll::Ready(Ok(0) | Err(_)) if any => {
                        let reason = "the connection ended within the head".into();
                        return Poll::Ready(Err(Fault::BrokenAnswer(reason).into()));
                    }
                    Poll::Ready(Ok(0) | Err(_)) => {
                        return Poll::Ready(Err(NoAnswer::ClosedUnanswered));
                    }
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => break,
                }
            }
            if caller.poll_broken_off(context) || sent && caller.poll_gone(context) {
                return Poll::Ready(Err(NoAnswer::Failed(Failure::CallerGone)));
            }
            caller.deadline.poll(context).map(|_| {
                // Before everything was sent, either side may be the slow one: the API is, if it does not take what is there.
                Err(if sent || !upstream.out.is_empty() {
                    Fault::ApiTooSlow.into()
                } else {
                    NoAnswer::Failed(Refusal::TooSlow.into())
                })
            })
        })
        .await?;
        let bytes = upstream.input.split(length);
        let head = ResponseHead::of(lines, bytes).map_err(|error| broken(&error))?;
        match (head.status, upgrade) {
            (101, Some(handshake)) => {
                handshake.check(&head)?;
                return Ok(head);
            }
            (101, None) => {
                let reason = "101 (Switching Protocols) that nobody asked for".into();
                return Err(Fault::BrokenAnswer(reason).into());
            }
            (100..=199, _) => {}
            _ => return Ok(head),
        }
    }
    Err(Fault::BrokenAnswer("too many interim answers".into()).into())
}

/// Whether TLS failed, rather than the connection below it.
fn is_of_tls(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|error| error.is::<rustls::Error>())
}

fn broken(error: &dyn std::error::Error) -> Fault {
    Fault::BrokenAnswer(error.to_string().into())
}

fn callers_fault(error: BodyError) -> NoAnswer {
    NoAnswer::Failed(match error {
        BodyError::Chunked(error) => Refusal::Malformed(error.to_string().into()).into(),
        BodyError::Truncated => Failure::CallerGone,
    })
}

/// How an answer's body came to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Whole.
    Whole,
    /// The API broke off or sent garbage: the caller must see that it is not whole.
    Broken,
    /// The caller went away or reads too slowly.
    CallerGone,
}

/// Streams the answer's body, what stands in `caller.out` first.
pub async fn answer(
    caller: &mut Connection,
    upstream: &mut UpstreamConnection,
    sending: &mut Sending,
    framing: Framing,
    chunked: bool,
) -> Delivered {
    let body_timeout = caller.limits.body_timeout;
    let mut body = Body::new(framing);
    let mut last_chunk_due = chunked;
    let mut armed = false;
    poll_fn(|context| {
        let mut progress = !armed;
        armed = true;
        // What the API no longer reads of the request is not worth an error: its answer counts.
        if sending.streaming
            && matches!(
                sending.poll(context, caller, upstream, &mut progress),
                Poll::Ready(Err(_))
            )
        {
            sending.streaming = false;
            sending.refused = true;
        }
        loop {
            let mut arrived_nothing = false;
            while !body.is_done() && caller.out.len() < GATHER_BYTES {
                match take_piece(&mut body, upstream, caller.out.buffer(), chunked) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(_) => return Poll::Ready(Delivered::Broken),
                }
                // What is there is written before more is read.
                if body.is_done() || !caller.out.is_empty() {
                    break;
                }
                match upstream.input.poll_fill(&mut upstream.stream, context) {
                    Poll::Ready(Ok(0)) => {
                        if body.end_of_stream().is_err() {
                            return Poll::Ready(Delivered::Broken);
                        }
                    }
                    Poll::Ready(Ok(_)) => progress = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(Delivered::Broken),
                    Poll::Pending => {
                        arrived_nothing = true;
                        break;
                    }
                }
            }
            if body.is_done() && last_chunk_due {
                caller.out.buffer().extend_from_slice(write::LAST_CHUNK);
                last_chunk_due = false;
            }
            let before = caller.out.written();
            match poll_drain(&mut caller.stream, context, &mut caller.out) {
                Poll::Ready(Ok(())) if body.is_done() => return Poll::Ready(Delivered::Whole),
                Poll::Ready(Ok(())) if !arrived_nothing => {
                    progress = true;
                    continue;
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Delivered::CallerGone),
                Poll::Pending => progress |= caller.out.written() != before,
            }
            // A caller of HTTP/2 has its place for another request at once: it must not leave exchanges behind.
            if caller.poll_broken_off(context) {
                return Poll::Ready(Delivered::CallerGone);
            }
            if progress {
                caller.deadline.set(body_timeout);
            }
            return caller.deadline.poll(context).map(|_| {
                if caller.out.is_empty() {
                    Delivered::Broken
                } else {
                    Delivered::CallerGone
                }
            });
        }
    })
    .await
}

/// Moves the next piece of the answer's body to where it is written from; `false`: more must arrive.
fn take_piece(
    body: &mut Body,
    upstream: &mut UpstreamConnection,
    out: &mut Vec<u8>,
    chunked: bool,
) -> Result<bool, BodyError> {
    let piece = body.next(upstream.input.unread())?;
    if piece.consumed == 0 {
        return Ok(false);
    }
    let data = &upstream.input.unread()[piece.data];
    if chunked {
        write::chunk(out, data);
    } else {
        out.extend_from_slice(data);
    }
    upstream.input.consume(piece.consumed);
    Ok(true)
}

/// Whether the connection may serve another request: the answer allows it, everything was sent, nothing came behind.
#[must_use]
pub fn is_reusable(
    head: &ResponseHead,
    answer: Framing,
    upstream: &UpstreamConnection,
    sending: Sending,
) -> bool {
    let persistent = framing::persistence(&head.fields, head.version)
        .is_ok_and(|persistence| persistence.keep_alive);
    persistent
        && answer != Framing::UntilClose
        && !sending.streaming
        && !sending.refused
        && upstream.out.is_empty()
        && upstream.input.unread().is_empty()
}

/// An error of the caller's stream, as a failure.
#[must_use]
pub fn caller_gone(_: io::Error) -> Failure {
    Failure::CallerGone
}
