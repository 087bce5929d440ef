//! One caller's HTTP/1.1 connection: hyper reads requests and writes responses, and every wait that hyper leaves open has
//! a deadline here.

use std::{
    cell::Cell,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout},
};

use super::{
    caller::{Caller, HeaderCase, Limits, Upload},
    deadline::Elapsed,
    guard::PREFACE,
    http2,
    request::RequestBody,
    response::{Follow, Gone, ResponseBody},
    wire::{Stream, Watch, Wire},
};
use crate::{memory, peer::Peer, telemetry::metrics::HandshakeFailure};

/// What answers the requests of a connection.
pub trait Handler: 'static {
    /// The bounds to keep now.
    fn limits(&self) -> Limits;
    /// Whether responses are to say `Connection: close`, and connections without a request are to be closed soon.
    fn is_draining(&self) -> bool {
        false
    }
    /// Ready once [`Handler::is_draining`] may have become true.
    fn drained(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
    /// A connection has begun.
    fn opened(&self) {}
    /// A connection has ended.
    fn closed(&self) {}
    /// A TLS handshake has failed; there is no connection.
    fn handshake_failed(&self, _failure: HandshakeFailure) {}
    /// Answers a request.
    ///
    /// # Errors
    /// [`Gone`] where there is nobody to answer: the connection is reset.
    fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Gone>>;
    /// What came was no request, or took too long: it was answered with `status` and the connection is closed.
    fn rejected(&self, _peer: Peer, _status: u16, _reason: &str) {}
}

/// What a caller still sends behind the last response is read on for so long, however much it is: closed at once, the
/// connection would be reset, and the response with it (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(5);

/// While draining, a connection without a request is kept so much longer. Its caller may have sent the next one before it
/// could learn of the end, and HTTP/1.1 has no way to tell it but a response with `Connection: close`; closed at once, that
/// request would be lost (RFC 9112 §9.3.1 lets callers repeat only some). A head that has begun has as long to come whole.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// After so long without a request a connection gives its buffers back; it is as good as any other.
const ASLEEP_AFTER: Duration = Duration::from_millis(500);

/// hyper reads at most so much ahead and holds back at most so much of a response, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// The response to a head that took too long; hyper has none.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Tells the handler how long a connection is open, however it ends.
pub(super) struct Open<H: Handler>(Rc<H>);

impl<H: Handler> Open<H> {
    pub(super) fn new(handler: &Rc<H>) -> Self {
        handler.opened();
        Self(Rc::clone(handler))
    }
}

impl<H: Handler> Drop for Open<H> {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// Serves the requests of a connection, in the version of HTTP that the caller speaks.
pub async fn serve<H: Handler>(mut stream: Stream, peer: Peer, handler: Rc<H>) {
    let open = Open::new(&handler);
    let limits = handler.limits();
    let since = Instant::now();
    let (speaks_http2, begun) = match &mut stream {
        Stream::Tls(tls) => (tls.get_ref().1.alpn_protocol() == Some(b"h2"), Bytes::new()),
        // Without TLS a caller says that it speaks HTTP/2 by beginning with it (RFC 9113 §3.3).
        stream if limits.streams.is_some() => {
            let Some(begun) = first_bytes(stream, &limits, &*handler).await else {
                return;
            };
            (begun == PREFACE[..], begun)
        }
        _ => (false, Bytes::new()),
    };
    let wire = Wire::new(stream, begun);
    if speaks_http2 && limits.streams.is_some() {
        // Boxed: few connections are, and none should be as large as the largest.
        Box::pin(http2::serve(wire, peer, handler)).await;
    } else {
        serve_http1(wire, peer, since, handler).await;
    }
    drop(open);
}

/// Reads until it is clear whether HTTP/2's preface begins the connection; `None` if nothing comes.
async fn first_bytes<H: Handler>(
    stream: &mut Stream,
    limits: &Limits,
    handler: &H,
) -> Option<Bytes> {
    let mut drained = pin!(handler.drained());
    let mut until = Instant::now() + limits.head_timeout;
    let mut begun = [0; PREFACE.len()];
    let mut length = 0;
    let mut draining = handler.is_draining();
    loop {
        tokio::select! {
            biased;
            read = read_some(stream, &mut begun[length..]) => length += read.ok().filter(|&read| read > 0)?,
            () = &mut drained, if !draining => draining = true,
            () = sleep_until(until) => return None,
        }
        if length == PREFACE.len() || !PREFACE.starts_with(&begun[..length]) {
            return Some(Bytes::copy_from_slice(&begun[..length]));
        }
        if draining {
            until = until.min(Instant::now() + LAST_REQUEST);
        }
    }
}

async fn read_some(stream: &mut Stream, buffer: &mut [u8]) -> io::Result<usize> {
    match stream {
        Stream::Tcp(stream) => stream.read(buffer).await,
        Stream::Tls(stream) => stream.read(buffer).await,
        Stream::Unix(stream) => stream.read(buffer).await,
        #[cfg(any(test, fuzzing))]
        Stream::Memory(stream) => stream.read(buffer).await,
    }
}

/// The requests of a connection, one at a time.
struct Requests {
    under_way: Cell<bool>,
    /// When the last one ended; before the first, when the connection began.
    idle_since: Cell<Instant>,
    /// How long the next one may take to begin.
    first: Cell<bool>,
    watch: Rc<Watch>,
}

/// A request that is being served; it ends when this is dropped.
struct RequestGuard(Rc<Requests>);

impl RequestGuard {
    fn begin(requests: &Rc<Requests>) -> Self {
        requests.under_way.set(true);
        requests.first.set(false);
        Self(Rc::clone(requests))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.under_way.set(false);
        self.0.idle_since.set(Instant::now());
        self.0.watch.expect_bytes();
    }
}

impl Follow for RequestGuard {}

/// How hyper's part of a connection ended.
enum ConnectionEnd {
    /// By hyper itself.
    Hyper(hyper::Result<()>),
    /// Nobody asked for anything.
    Idle,
    /// A head took too long.
    HeadTooSlow,
    /// The caller does not take what it is sent.
    Stalled,
    /// Not at all: it has only been quiet for so long that its buffers are given back.
    Asleep,
}

async fn serve_http1<H: Handler>(mut wire: Wire, peer: Peer, since: Instant, handler: Rc<H>) {
    let limits = handler.limits();
    let watch = wire.watch();
    let has_socket = wire.has_socket();
    let caller = Rc::new(Caller::new(peer, limits));
    let requests = Rc::new(Requests {
        under_way: Cell::new(false),
        idle_since: Cell::new(since),
        first: Cell::new(true),
        watch: Rc::clone(&watch),
    });
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .preserve_header_case(limits.header_case == HeaderCase::Preserve)
        .title_case_headers(true)
        .max_header_size(limits.head_bytes)
        .max_buf_size(BUFFER_BYTES.max(limits.head_bytes))
        .writev(false);
    if limits.head_fields != USUAL_FIELDS {
        builder.max_headers(limits.head_fields);
    }
    let service = |request: Request<Incoming>| {
        let guard = RequestGuard::begin(&requests);
        caller.begin(handler.limits(), !request.body().is_end_stream());
        let caller = Rc::clone(&caller);
        let request = request.map(|incoming| RequestBody::new(incoming, Rc::clone(&caller)));
        let handler = Rc::clone(&handler);
        // hyper keeps it in a box of the connection.
        async move {
            let mut response = Rc::clone(&handler).answer(request).await?;
            // Nothing in a body that was not read is to be taken for a request.
            if handler.is_draining() || caller.upload() != Upload::Done {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Gone>(response.map(|body| body.followed_by(guard)))
        }
    };
    let mut drained = pin!(handler.drained());
    let mut draining_since = None;
    // Waits as long as there is no request.
    let mut poll_idle = |context: &mut Context<'_>, may_sleep: bool| {
        if draining_since.is_none()
            && (drained.as_mut().poll(context).is_ready() || handler.is_draining())
        {
            draining_since = Some(Instant::now());
        }
        let limits = caller.limits();
        let idle_since = requests.idle_since.get();
        let (since, limit, ended) = match (watch.arrived_at(), requests.first.get()) {
            (Some(begun), _) => (begun, limits.head_timeout, ConnectionEnd::HeadTooSlow),
            (None, true) => (idle_since, limits.head_timeout, ConnectionEnd::Idle),
            (None, false) if may_sleep && limits.idle_timeout > ASLEEP_AFTER => {
                (idle_since, ASLEEP_AFTER, ConnectionEnd::Asleep)
            }
            (None, false) => (idle_since, limits.idle_timeout, ConnectionEnd::Idle),
        };
        let (at, ended) = match draining_since {
            // What is cut short by draining its caller may send elsewhere: there is nothing to answer.
            Some(draining) => (
                draining.max(idle_since) + limit.min(LAST_REQUEST),
                ConnectionEnd::Idle,
            ),
            None => (since + limit, ended),
        };
        caller.poll_deadline(context, at).map(|Elapsed| ended)
    };
    let (ended, mut wire, read_ahead) = loop {
        let mut connection = builder.serve_connection(TokioIo::new(wire), service_fn(&service));
        let ended = poll_fn(|context| {
            if let Poll::Ready(result) = Pin::new(&mut connection).poll(context) {
                return Poll::Ready(ConnectionEnd::Hyper(result));
            }
            if let Some(since) = watch.blocked_since() {
                let at = since + caller.limits().body_timeout;
                return caller
                    .poll_deadline(context, at)
                    .map(|Elapsed| ConnectionEnd::Stalled);
            }
            if requests.under_way.get() {
                return Poll::Pending;
            }
            poll_idle(context, has_socket && watch.is_at_rest())
        })
        .await;
        let parts = connection.into_parts();
        let (mut returned, read_ahead) = (parts.io.into_inner(), parts.read_buf);
        if !matches!(ended, ConnectionEnd::Asleep) {
            break (ended, returned, read_ahead);
        }
        // hyper's buffers are 8 KiB and more. While nothing comes, the socket alone is watched.
        if read_ahead.is_empty() {
            // Even empty it holds the whole buffer.
            drop(read_ahead);
        } else {
            // The next head has begun behind the last request.
            watch.note_arrival();
            returned.unread(read_ahead);
        }
        memory::connection_fell_asleep();
        let woken = poll_fn(|context| {
            if returned.poll_arrival(context).is_ready() {
                return Poll::Ready(None);
            }
            poll_idle(context, false).map(Some)
        });
        match woken.await {
            None => wire = returned,
            Some(ended) => break (ended, returned, Bytes::new()),
        }
    };
    match ended {
        ConnectionEnd::Hyper(Ok(())) => match caller.takeover() {
            Some(takeover) => {
                wire.unread(read_ahead);
                takeover(wire, caller.limits().body_timeout).await;
            }
            None => {
                drop(read_ahead);
                Box::pin(linger(wire)).await;
            }
        },
        ConnectionEnd::Hyper(Err(error)) => {
            if error.is_parse() || error.is_parse_too_large() {
                let status = if error.is_parse_too_large() { 431 } else { 400 };
                handler.rejected(peer, status, &error.to_string());
                Box::pin(linger(wire)).await;
            } else if error.is_user() || error.is_body_write_aborted() {
                wire.reset();
            }
        }
        ConnectionEnd::HeadTooSlow => {
            handler.rejected(peer, 408, "the head took too long");
            if let Ok(Ok(())) = timeout(LINGER, wire.write_all(TOO_SLOW)).await {
                Box::pin(linger(wire)).await;
            }
        }
        ConnectionEnd::Idle | ConnectionEnd::Asleep => {
            // Under TLS an end without close_notify looks cut off (RFC 8446 §6.1); nobody waits until it is taken.
            poll_fn(|context| {
                let _ = Pin::new(&mut wire).poll_shutdown(context);
                Poll::Ready(())
            })
            .await;
        }
        ConnectionEnd::Stalled => wire.reset(),
    }
}

/// hyper takes so many fields without looking for memory.
const USUAL_FIELDS: usize = 100;

/// Ends the writing side and reads on, without looking at what comes, until the caller has ended as well.
async fn linger(mut wire: Wire) {
    let mut buffer = vec![0; 16 * 1024];
    let _ = timeout(LINGER, async {
        // hyper leaves this to others where a request had `Upgrade` or CONNECT in it. That it is done twice does no harm.
        let _ = wire.shutdown().await;
        while wire.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    })
    .await;
}
