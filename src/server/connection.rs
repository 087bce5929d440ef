//! One caller's connection: heads in, answers out, one after the other (RFC 9112 §9.3), each wait with a deadline.

mod body;

use std::{
    future::poll_fn, io, net::IpAddr, num::NonZeroU32, pin::Pin, rc::Rc, task::Poll, time::Duration,
};

use tokio::{io::AsyncWrite, time::Instant};

use super::http2;
use crate::{
    http1::{
        body::Body,
        framing::{self, Framing},
        head::{HeadLimits, HeadLines, RequestHead, Version},
        name::Name,
        pool::Buffer,
    },
    refusal::Refusal,
    transport::{
        deadline::{Deadline, Elapsed},
        input::Input,
        peer::Peer,
        stream::{Outgoing, Stream, poll_drain},
    },
};

/// Bounds and deadlines of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bounds of a request's head.
    pub head: HeadLimits,
    /// A TLS handshake.
    pub handshake_timeout: Duration,
    /// A whole head, from its first byte; for a new connection, also for that first byte.
    pub head_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// A body, either way, without progress.
    pub body_timeout: Duration,
    /// A whole form or hashed body that is read before it is verified.
    pub form_timeout: Duration,
    /// The size of such a body, in bytes.
    pub form_bytes: usize,
    /// The size of all such bodies of the process and of their parameters together, in bytes.
    pub form_memory: usize,
    /// How many fields a form may have.
    pub form_fields: usize,
    /// Requests at once on one HTTP/2 connection; `None`: HTTP/2 is not spoken.
    pub streams: Option<NonZeroU32>,
}

/// Of a refused request's body so much is read at most before the connection is closed, so that the answer arrives.
const DRAIN_BYTES: usize = 64 * 1024;
/// And for so long at most.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// While draining, a connection without a request is kept so much longer. Its caller may have sent the next one before it
/// could learn of the end, and HTTP/1.1 has no way to tell it but an answer with `Connection: close`; closed at once, that
/// request would be lost (RFC 9112 §9.3.1 lets callers repeat only some). A head that has begun has as long to come whole.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// What answers the requests of a connection.
pub trait Handler {
    /// The bounds to keep now.
    fn limits(&self) -> Limits;
    /// Whether answers are to say `Connection: close`, and connections without a request are to be closed soon.
    fn is_draining(&self) -> bool;
    /// Ready once [`Handler::is_draining`] may have become true.
    fn drained(&self) -> impl Future<Output = ()>;
    /// A connection has begun.
    fn opened(&self) {}
    /// A connection has ended.
    fn closed(&self) {}
    /// Answers a request; its body is in `connection`.
    fn handle(&self, connection: &mut Connection, head: RequestHead) -> impl Future<Output = ()>;
    /// Answers what was no request.
    fn refuse(&self, connection: &mut Connection, refusal: Refusal) -> impl Future<Output = ()>;
}

/// What a connection turned out to be.
enum Spoken {
    /// HTTP/1, up to a last answer.
    Http1,
    /// HTTP/2: it begins with that preface.
    Http2,
    /// Nothing more to answer.
    Nothing,
}

/// What begins on a connection.
enum Begun {
    Request(RequestHead),
    Http2,
}

/// Tells the handler how long a connection is open, however it ends.
pub(super) struct Open<'h, H: Handler>(&'h H);

impl<'h, H: Handler> Open<'h, H> {
    pub(super) fn new(handler: &'h H) -> Self {
        handler.opened();
        Self(handler)
    }
}

impl<H: Handler> Drop for Open<'_, H> {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// A caller's connection.
#[derive(Debug)]
pub struct Connection {
    /// The byte stream.
    pub stream: Stream,
    /// What has arrived and is not used up.
    pub input: Input,
    /// What is to be written.
    pub out: Outgoing,
    /// The timer of all its waits.
    pub deadline: Deadline,
    /// When the last request was answered; before the first, when it began.
    pub idle_since: Instant,
    /// Where it comes from.
    pub peer: Peer,
    /// The caller that the memory of the request being served is counted for: the peer, or whom a trusted proxy names.
    pub caller: Option<IpAddr>,
    /// The bounds for the request being served.
    pub limits: Limits,
    /// The rest of the body of the request being served.
    pub body: Body,
    /// How that body is framed.
    pub framing: Framing,
    /// The caller waits for `100 (Continue)` before it sends the body.
    awaits_continue: bool,
    /// The connection serves another request after this one.
    pub keep_alive: bool,
    /// The version of the request being served.
    pub version: Version,
    /// The connection is to be reset rather than closed, so that a cut answer cannot look whole.
    pub abort: bool,
}

impl Connection {
    /// A new connection.
    #[must_use]
    pub fn new(stream: Stream, peer: Peer, limits: Limits) -> Self {
        Self {
            stream,
            input: Input::default(),
            out: Outgoing::default(),
            deadline: Deadline::default(),
            idle_since: Instant::now(),
            peer,
            caller: peer.address,
            limits,
            body: Body::new(Framing::None),
            framing: Framing::None,
            awaits_continue: false,
            keep_alive: false,
            version: Version::Http11,
            abort: false,
        }
    }

    /// Serves the requests of a connection, in the version of HTTP that the caller speaks.
    pub async fn serve<H: Handler + 'static>(mut self, handler: Rc<H>) {
        let open = Open::new(&*handler);
        let spoken = self.serve_http1(&*handler).await;
        drop(open);
        match spoken {
            Spoken::Http1 => self.close().await,
            Spoken::Http2 => {
                // Boxed: few connections are, and none should be as large as the largest.
                Box::pin(http2::serve(self.stream, self.input, self.peer, handler)).await;
            }
            Spoken::Nothing => self.end().await,
        }
    }

    /// Serves the one request of an HTTP/2 stream, whose head has been brought into the form of HTTP/1.1.
    pub(super) async fn serve_stream<H: Handler>(
        mut self,
        handler: &H,
        head: Result<Buffer, Refusal>,
    ) {
        let parsed = head.and_then(|bytes| Ok(RequestHead::parse(bytes, &self.limits.head)?));
        let begun = parsed.and_then(|mut head| {
            head.version = Version::Http2;
            self.begin(&head).map(|()| head)
        });
        match begun {
            Ok(head) => handler.handle(&mut self, head).await,
            Err(refusal) => handler.refuse(&mut self, refusal).await,
        }
        self.close().await;
    }

    /// Serves requests until the connection ends.
    async fn serve_http1<H: Handler>(&mut self, handler: &H) -> Spoken {
        let mut drained = std::pin::pin!(handler.drained());
        let mut first = true;
        loop {
            self.limits = handler.limits();
            let head = match self.read_head(handler, first, drained.as_mut()).await {
                Ok(Some(Begun::Request(head))) => head,
                Ok(Some(Begun::Http2)) => return Spoken::Http2,
                Ok(None) => return Spoken::Nothing,
                Err(refusal) => {
                    self.keep_alive = false;
                    handler.refuse(self, refusal).await;
                    return Spoken::Http1;
                }
            };
            first = false;
            if let Err(refusal) = self.begin(&head) {
                self.keep_alive = false;
                drop(head);
                handler.refuse(self, refusal).await;
                return Spoken::Http1;
            }
            // Boxed, so that a connection between two requests holds only what it needs to wait: a request's own state is
            // several times as large as all of that.
            Box::pin(handler.handle(self, head)).await;
            // Not because of draining: whoever was told that the connection stays may have sent the next request.
            if !self.keep_alive || !self.body.is_done() {
                return Spoken::Http1;
            }
            self.input.release();
            self.out.release();
        }
    }

    /// Prepares for the body of a request.
    fn begin(&mut self, head: &RequestHead) -> Result<(), Refusal> {
        let malformed = |error: framing::FramingError| Refusal::Malformed(error.to_string().into());
        self.version = head.version;
        self.caller = self.peer.address;
        self.body = Body::new(Framing::None);
        self.framing = framing::request(head).map_err(malformed)?;
        self.keep_alive = framing::persistence(&head.fields, head.version)
            .map_err(malformed)?
            .keep_alive;
        if let Stream::Http2(stream) = &mut self.stream {
            let has_length = head.fields.has(Name::ContentLength);
            self.framing = stream.framing(self.framing, has_length);
        }
        self.body = Body::new(self.framing);
        self.awaits_continue = false;
        for expectation in head.fields.all(Name::Expect) {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal::Malformed(
                    "an expectation other than 100-continue".into(),
                ));
            }
            self.awaits_continue = head.version != Version::Http10;
        }
        Ok(())
    }

    /// Waits for the next head: `None` if the connection ended, was idle for too long, or is drained.
    async fn read_head<H: Handler>(
        &mut self,
        handler: &H,
        first: bool,
        mut drained: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<Begun>, Refusal> {
        let mut lines = HeadLines::default();
        let mut begun = false;
        let mut armed = false;
        let mut draining = false;
        let mut empty_line_allowed = true;
        let limits = self.limits;
        // Without TLS a caller says that it speaks HTTP/2 by beginning with it (RFC 9113 §3.3); under TLS, by ALPN.
        let speaks_http2 = limits.streams.is_some() && matches!(self.stream, Stream::Tcp(_));
        let found = poll_fn(|context| {
            loop {
                // RFC 9112 §2.2: "a server ... SHOULD ignore at least one empty line (CRLF) received prior to the request-line".
                if empty_line_allowed && self.input.unread().starts_with(b"\r\n") {
                    self.input.consume(2);
                    empty_line_allowed = false;
                }
                let unread = self.input.unread();
                if first && speaks_http2 && unread.starts_with(http2::PREFACE) {
                    return Poll::Ready(Ok(Some(0)));
                }
                let may_be_http2 = first && speaks_http2 && http2::PREFACE.starts_with(unread);
                if !unread.is_empty() && unread != b"\r" && !may_be_http2 {
                    match lines.find(unread, &limits.head) {
                        Ok(Some(length)) => return Poll::Ready(Ok(Some(length))),
                        Ok(None) => {}
                        Err(error) => {
                            // A target that alone exceeds its bound is told as such.
                            let first = &unread[..unread.len().min(limits.head.head_bytes)];
                            let long =
                                !first.contains(&b'\n') && first.len() > limits.head.target_bytes;
                            let refusal = if long {
                                Refusal::TargetTooLong
                            } else {
                                error.into()
                            };
                            return Poll::Ready(Err(refusal));
                        }
                    }
                }
                if !unread.is_empty() && !begun {
                    begun = true;
                    armed = false;
                }
                match self.input.poll_fill(&mut self.stream, context) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ok(None)),
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Pending => {}
                }
                // Polled first: whoever begins draining sets the flag and then wakes those that have polled.
                if !draining && (drained.as_mut().poll(context).is_ready() || handler.is_draining())
                {
                    draining = true;
                    armed = false;
                }
                if !armed {
                    armed = true;
                    let limit = if begun || first {
                        limits.head_timeout
                    } else {
                        limits.idle_timeout
                    };
                    self.deadline.set_at(if draining {
                        Instant::now() + limit.min(LAST_REQUEST)
                    } else if begun {
                        Instant::now() + limit
                    } else {
                        self.idle_since + limit
                    });
                }
                // Silence is no request, and what is cut short by draining its caller may send elsewhere: nothing to answer.
                return self.deadline.poll(context).map(|Elapsed| {
                    if begun && !draining {
                        Err(Refusal::TooSlow)
                    } else {
                        Ok(None)
                    }
                });
            }
        })
        .await?;
        match found {
            Some(0) => Ok(Some(Begun::Http2)),
            Some(length) => {
                let bytes = self.input.split(length);
                let head = RequestHead::of(lines, bytes, &self.limits.head)?;
                Ok(Some(Begun::Request(head)))
            }
            None => Ok(None),
        }
    }

    /// Writes everything in `out`.
    ///
    /// # Errors
    /// The stream's error, or [`io::ErrorKind::TimedOut`] without progress for `body_timeout`.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.deadline.set(self.limits.body_timeout);
        let mut written = self.out.written();
        poll_fn(
            |context| match poll_drain(&mut self.stream, context, &mut self.out) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => {
                    if self.out.written() != written {
                        written = self.out.written();
                        self.deadline.set(self.limits.body_timeout);
                    }
                    self.deadline
                        .poll(context)
                        .map(|Elapsed| Err(io::ErrorKind::TimedOut.into()))
                }
            },
        )
        .await
    }

    /// Closes where nothing is under way. Under TLS an end without close_notify looks cut off (RFC 8446 §6.1); nobody waits
    /// until it is taken.
    async fn end(mut self) {
        if matches!(self.stream, Stream::Tls(_)) {
            poll_fn(|context| {
                let _ = Pin::new(&mut self.stream).poll_shutdown(context);
                Poll::Ready(())
            })
            .await;
        }
    }

    /// Closes in a way that lets the last answer arrive: ends the writing side, reads a bounded part of what still
    /// comes without looking at it, and only then lets go.
    async fn close(mut self) {
        if self.abort {
            // Under TLS as well: not every caller minds that no close_notify came.
            if let Some(stream) = self.stream.tcp() {
                let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
            } else if let Stream::Http2(stream) = &mut self.stream {
                stream.reset();
            }
            return;
        }
        if matches!(self.stream, Stream::Http2(_)) {
            // Its end is a flag of its last frame; what the caller still sends of it, the connection throws away.
            let _ = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await;
            return;
        }
        let Self {
            stream,
            input,
            deadline,
            ..
        } = &mut self;
        let lingering = async {
            let shut = poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context)).await;
            if shut.is_err() {
                return;
            }
            let mut drained = 0;
            while drained < DRAIN_BYTES {
                input.consume(input.unread().len());
                match poll_fn(|context| input.poll_fill(stream, context)).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => drained += count,
                }
            }
        };
        let _ = deadline.within(DRAIN_TIME, lingering).await;
    }
}
