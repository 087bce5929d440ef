//! One HTTP/2 stream (RFC 9113 §8.1) read and written like a connection of its own.
//!
//! What is read is the request's body. What is written is an answer as HTTP/1.1 writes it, head first and its body
//! without a coding: the head becomes a HEADERS frame and the body DATA frames. So everything above serves both
//! versions of HTTP by the same code, and under the same rules.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http1::{
    framing::{self, Framing},
    head::{HeadLimits, HeadLines, ResponseHead},
    name::Name,
    pool::Buffer,
};

/// Our own answers are within any bound: they are parsed to be sent in the other form, not to be judged.
const LIMITS: HeadLimits = HeadLimits {
    head_bytes: usize::MAX,
    head_fields: usize::MAX,
    target_bytes: usize::MAX,
};

/// Of an answer's body so much is given to the connection at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What is left of an answer, if it is no more than that, is given to the connection whether its caller takes it now or
/// not: the connection keeps it in far less than a request under way takes, which a caller who gives no window could
/// otherwise make wait by the hundred.
const LAST_BYTES: usize = 1024;

/// A stream of an HTTP/2 connection.
#[derive(Debug)]
pub struct Http2Stream {
    incoming: RecvStream,
    /// What has arrived and is not read yet.
    arrived: Bytes,
    /// The end of the body is told once, as the end of a connection is: it has no length that would tell it.
    end_due: bool,
    outgoing: Outgoing,
    to_head: bool,
}

/// How far the answer has come.
#[derive(Debug)]
enum Outgoing {
    /// The head, as far as it has been written.
    Head {
        response: SendResponse<Bytes>,
        bytes: Buffer,
        lines: HeadLines,
    },
    /// The body; what is still to come of it, if its length was told.
    Body {
        stream: SendStream<Bytes>,
        left: Option<u64>,
    },
    /// All of it.
    Ended { stream: SendStream<Bytes> },
    /// Broken off.
    Reset,
}

impl Http2Stream {
    /// The stream of a request. `to_head`: the request is a HEAD, so the answer has no body whatever its head says.
    #[must_use]
    pub fn new(incoming: RecvStream, response: SendResponse<Bytes>, to_head: bool) -> Self {
        Self {
            end_due: false,
            incoming,
            arrived: Bytes::new(),
            outgoing: Outgoing::Head {
                response,
                bytes: Buffer::none(),
                lines: HeadLines::default(),
            },
            to_head,
        }
    }

    /// How the body ends, given what the head says of it: without a length, where the stream does.
    pub fn framing(&mut self, told: Framing, has_length: bool) -> Framing {
        if has_length || self.incoming.is_end_stream() {
            return told;
        }
        self.end_due = true;
        Framing::UntilClose
    }

    /// Breaks the stream off, so that a cut answer cannot look whole.
    pub fn reset(&mut self) {
        match std::mem::replace(&mut self.outgoing, Outgoing::Reset) {
            Outgoing::Head { mut response, .. } => response.send_reset(Reason::INTERNAL_ERROR),
            Outgoing::Body { mut stream, .. } => stream.send_reset(Reason::INTERNAL_ERROR),
            ended => self.outgoing = ended,
        }
    }

    /// Ready when the caller has broken the stream off.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let reset = match &mut self.outgoing {
            Outgoing::Head { response, .. } => response.poll_reset(context),
            Outgoing::Body { stream, .. } | Outgoing::Ended { stream } => {
                stream.poll_reset(context)
            }
            Outgoing::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        };
        reset.map(|_| Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// Sends the head that has been written; whatever follows is the body.
    fn send_head(&mut self) -> io::Result<()> {
        let Outgoing::Head {
            response,
            bytes,
            lines,
        } = &mut self.outgoing
        else {
            return Ok(());
        };
        let (lines, bytes) = (std::mem::take(lines), std::mem::take(bytes));
        let head = ResponseHead::of(lines, bytes).map_err(invalid)?;
        let framing = framing::response(&head, self.to_head).map_err(invalid)?;
        let interim = (100..200).contains(&head.status);
        let message = message(&head)?;
        if interim {
            return response.send_informational(message).map_err(broken);
        }
        let left = match framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::UntilClose => None,
            Framing::Chunked => return Err(io::ErrorKind::InvalidData.into()),
        };
        let ended = left == Some(0);
        let stream = response.send_response(message, ended).map_err(broken)?;
        self.outgoing = if ended {
            Outgoing::Ended { stream }
        } else {
            Outgoing::Body { stream, left }
        };
        Ok(())
    }
}

/// The head in the other form. What is about the connection does not exist there (RFC 9113 §8.2.2).
fn message(head: &ResponseHead) -> io::Result<Response<()>> {
    let mut message = Response::new(());
    *message.status_mut() = StatusCode::from_u16(head.status).map_err(invalid)?;
    for field in head.fields.iter() {
        if field.known.is_hop_by_hop() {
            continue;
        }
        let name = HeaderName::from_bytes(field.name).map_err(invalid)?;
        let value = HeaderValue::from_bytes(field.value).map_err(invalid)?;
        message
            .headers_mut()
            .try_append(name, value)
            .map_err(invalid)?;
    }
    // RFC 9110 §8.6: none in what has no body by its status.
    if head.fields.has(Name::ContentLength) && matches!(head.status, 100..=199 | 204) {
        message.headers_mut().remove(http::header::CONTENT_LENGTH);
    }
    Ok(message)
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl AsyncRead for Http2Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.arrived.is_empty() {
                let count = this.arrived.len().min(buffer.remaining());
                buffer.put_slice(&this.arrived[..count]);
                this.arrived.advance(count);
                // Only what has been taken makes room for more: a slow reader slows its writer down.
                let flow = this.incoming.flow_control();
                return Poll::Ready(flow.release_capacity(count).map_err(broken));
            }
            match ready!(this.incoming.poll_data(context)) {
                Some(Ok(data)) => this.arrived = data,
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None if this.end_due => {
                    this.end_due = false;
                    return Poll::Ready(Ok(()));
                }
                // The body is over, the caller still there: nothing comes any more but that it leaves.
                None => return this.poll_reset(context),
            }
        }
    }
}

impl AsyncWrite for Http2Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match &mut this.outgoing {
            Outgoing::Head {
                bytes: head, lines, ..
            } => {
                let before = head.len();
                head.extend_from_slice(bytes);
                let Some(length) = lines.find(head, &LIMITS).map_err(invalid)? else {
                    return Poll::Ready(Ok(bytes.len()));
                };
                head.truncate(length);
                this.send_head()?;
                Poll::Ready(Ok(length - before))
            }
            Outgoing::Body { stream, left } => {
                let most = left.map_or(PIECE_BYTES, |left| {
                    usize::try_from(left).unwrap_or(PIECE_BYTES)
                });
                let wanted = bytes.len().min(most).min(PIECE_BYTES);
                if wanted == 0 {
                    // More than the head announced.
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                let count = if wanted <= LAST_BYTES && *left == Some(wanted as u64) {
                    wanted
                } else {
                    stream.reserve_capacity(wanted);
                    while stream.capacity() == 0 {
                        match ready!(stream.poll_capacity(context)) {
                            Some(Ok(_)) => {}
                            Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                            None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                        }
                    }
                    wanted.min(stream.capacity())
                };
                let rest = left.map(|left| left - count as u64);
                let piece = Bytes::copy_from_slice(&bytes[..count]);
                stream.send_data(piece, rest == Some(0)).map_err(broken)?;
                *left = rest;
                if rest == Some(0) {
                    this.finish();
                }
                Poll::Ready(Ok(count))
            }
            Outgoing::Ended { .. } => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            Outgoing::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection's own task writes its frames.
        Poll::Ready(Ok(()))
    }

    /// Ends the answer. One that is shorter than announced, or has no head yet, is broken off.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match &mut this.outgoing {
            Outgoing::Body { stream, left: None } => {
                stream.send_data(Bytes::new(), true).map_err(broken)?;
                this.finish();
            }
            Outgoing::Head { .. } | Outgoing::Body { .. } => this.reset(),
            Outgoing::Ended { .. } | Outgoing::Reset => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl Http2Stream {
    fn finish(&mut self) {
        if let Outgoing::Body { stream, .. } =
            std::mem::replace(&mut self.outgoing, Outgoing::Reset)
        {
            self.outgoing = Outgoing::Ended { stream };
        }
    }
}
