//! Connections to the API: opened, kept by the worker that opened them, and used again.
//!
//! A task of the worker drives each connection. One over HTTP/2 serves all requests of its worker at once.

use std::{
    cell::{Cell, RefCell},
    fmt, io,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use http::{HeaderMap, HeaderName};
use hyper::{
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncReadExt as _,
    net::UnixStream,
    sync::Mutex,
    task::spawn_local,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::ForwardFault;
use crate::{
    base::{
        clock::spread,
        network::http_fields::{all, list},
    },
    wire::{
        body::Pieces,
        outbound::{Dialer, tls::ClientTls},
        server::{caller::stream::HeaderCase, request::RequestBody},
        stream::{HTTP2, HandshakeError, Stream, Unread},
        watched::{Watch, WatchedStream},
    },
};

/// The time for which [`Pool::probe`] waits after a handshake: more than a round trip.
const PROBE: Duration = Duration::from_millis(500);

/// The address of the API.
#[derive(Debug, Clone)]
pub enum Address {
    /// A host, resolved for each connection, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
    /// The memory of a fuzz target, which gets the other end of each connection.
    #[cfg(fuzzing)]
    Memory(tokio::sync::mpsc::UnboundedSender<tokio::io::DuplexStream>),
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(host, port), Self::Tcp(other, at)) => (host, port) == (other, at),
            (Self::Unix(path), Self::Unix(other)) => path == other,
            #[cfg(fuzzing)]
            (Self::Memory(api), Self::Memory(other)) => api.same_channel(other),
            _ => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            #[cfg(fuzzing)]
            Self::Memory(_) => f.write_str("memory"),
        }
    }
}

/// The rules by which the API is connected to. Pools with equal ones are the same.
#[derive(Clone, PartialEq)]
pub struct PoolParams {
    /// The address.
    pub address: Address,
    /// How its host is connected to.
    pub dialer: Dialer,
    /// TLS, if it is spoken.
    pub tls: Option<ClientTls>,
    /// HTTP/2: where ALPN agrees, and without TLS by prior knowledge.
    pub http2: bool,
    /// The spelling of field names over HTTP/1.1.
    pub header_case: HeaderCase,
    /// For resolving, connecting and the TLS handshake together.
    pub connect_timeout: Duration,
    /// The time for which an unused connection is kept; [`Pool::evict_idle`] closes it.
    pub idle_timeout: Duration,
    /// The age at which a connection no longer gets requests, less up to a tenth: it may lead to an address that the host no
    /// longer has.
    pub max_age: Duration,
    /// The number of unused ones that are kept.
    pub max_idle: usize,
    /// The most fields of a response over HTTP/1.1.
    pub head_fields: usize,
}

/// Says for how long its sender keeps the connection (RFC 2068 §19.7.1.1).
pub static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// hyper parses responses of up to this many fields on the stack.
const STACK_FIELDS: usize = 100;
/// Bytes of a response's head.
const HEAD_BYTES: usize = 64 * 1024;
/// The same, as HTTP/2 counts it.
const HEAD_LIST_BYTES: u32 = 64 * 1024;
/// A connection keeps the memory of up to this many fields; usual heads have fewer.
const ROOM_FIELDS: usize = 48;
/// An API over HTTP/2 is asked by a PING this often whether it is still there, while it owes a response.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Without a response to a PING for this long the connection ends.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of one response over HTTP/2 that may be on their way to us and not yet be passed on.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same, of all responses of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;

/// The body of a request to the API.
pub type UpstreamBody = Pieces<RequestBody>;

/// A connection over HTTP/1.1. Its task ends when this is dropped.
pub struct Http1 {
    pub(super) sender: http1::SendRequest<UpstreamBody>,
    task: AbortOnDropHandle<hyper::Result<WatchedStream>>,
    pub(super) watch: Rc<Watch>,
    /// The time from which it no longer gets requests.
    expires_at: Instant,
    /// The time at which [`Pool::evict_idle`] first saw it unused.
    unused_since: Option<Instant>,
    /// The time from which the API may close it unused, as it said with its last response.
    pub(super) kept_until: Option<Instant>,
    /// The API has responded in HTTP/1.0. hyper would send the next request in that version, and one whose length is not
    /// known without its body.
    pub(super) outdated: bool,
    /// The memory of a request's fields, for those of the next response.
    pub(super) room: HeaderMap,
}

impl Http1 {
    /// Whether hyper has seen the API end the connection, or stop reading from it.
    fn is_over(&self) -> bool {
        self.sender.is_closed() || self.watch.write_failed()
    }

    /// Whether it no longer gets requests at `now`.
    fn has_expired(&self, now: Instant) -> bool {
        self.expires_at <= now || self.kept_until.is_some_and(|until| until <= now)
    }

    /// Whether the API ended the connection, or sent bytes that no request asked for, and hyper has not seen it yet.
    ///
    /// This asks the system. The event loop learns of it up to 61 tasks later; until then, bytes that follow a response would be
    /// taken for the response to the next request.
    fn is_ending(&self) -> bool {
        self.watch.unread_now() != Unread::Nothing
    }

    /// The stream of a connection that has switched to another protocol.
    ///
    /// # Errors
    /// [`ForwardFault::BrokenResponse`]
    pub async fn into_wire(self) -> Result<WatchedStream, ForwardFault> {
        match self.task.await {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(error)) => Err(ForwardFault::BrokenResponse(error.to_string().into())),
            Err(_) => Err(ForwardFault::Internal("the task of a connection ended")),
        }
    }
}

/// A place on a connection over HTTP/2.
#[derive(Clone)]
pub struct Http2 {
    pub(super) sender: http2::SendRequest<UpstreamBody>,
    pub(super) watch: Rc<Watch>,
    /// As with HTTP/1.1.
    expires_at: Instant,
    /// The time at which a place was last taken or given back. The pool and each place share it.
    used_at: Rc<Cell<Instant>>,
}

impl Http2 {
    fn is_over(&self, now: Instant) -> bool {
        !self.sender.is_ready() || self.expires_at <= now
    }

    /// As with HTTP/1.1; unread bytes may be frames.
    fn is_ending(&self) -> bool {
        self.watch.unread_now() == Unread::End
    }

    fn is_idle_for(&self, time: Duration) -> bool {
        Rc::strong_count(&self.used_at) == 1 && self.used_at.get().elapsed() >= time
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.used_at.set(Instant::now());
    }
}

/// A connection to the API while it serves a request.
pub enum Lease {
    /// The whole connection.
    Http1(Box<Http1>),
    /// A place on it.
    Http2(Box<Http2>),
}

impl Lease {
    /// Reads the time for which the API keeps the connection, from its response of `now`: `Keep-Alive: timeout=5`, in
    /// seconds. The connection is given up a second earlier, or a request could meet its end.
    pub fn read_keep_alive(&mut self, headers: &HeaderMap, now: Instant) {
        let Self::Http1(http1) = self else {
            return;
        };
        let mut parameters = all(headers, &KEEP_ALIVE).flat_map(list);
        let seconds = parameters.find_map(|parameter| {
            let (name, seconds) = str::from_utf8(parameter).ok()?.split_once('=')?;
            let is_timeout = name.trim_end().eq_ignore_ascii_case("timeout");
            is_timeout.then(|| seconds.trim().trim_matches('"').parse::<u32>().ok())?
        });
        http1.kept_until = seconds.map(|seconds| {
            let kept = Duration::from_secs(seconds.into());
            now + kept.saturating_sub(Duration::from_secs(1)).max(kept / 2)
        });
    }

    /// Keeps the memory of the fields of a request that has its response.
    pub fn keep_room(&mut self, mut fields: HeaderMap) {
        if let Self::Http1(http1) = self
            && fields.capacity() <= ROOM_FIELDS
        {
            fields.clear();
            http1.room = fields;
        }
    }
}

/// One worker's connections to the API.
pub struct Pool {
    params: PoolParams,
    #[expect(clippy::vec_box, reason = "they are lent boxed")]
    idle: RefCell<Vec<Box<Http1>>>,
    http2: RefCell<Option<Http2>>,
    /// Held while the first connection over HTTP/2 is opened: waiting requests share it.
    opening: Mutex<()>,
    /// ALPN agreed on HTTP/1.1 last time.
    speaks_http1: Cell<bool>,
}

/// Runs hyper's tasks of HTTP/2 on the worker itself.
#[derive(Debug, Clone, Copy)]
struct OnWorker;

impl<F: Future<Output = ()> + 'static> Executor<F> for OnWorker {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

impl Pool {
    /// A pool without connections.
    pub fn new(params: PoolParams) -> Self {
        Self {
            params,
            idle: RefCell::default(),
            http2: RefCell::default(),
            opening: Mutex::default(),
            speaks_http1: Cell::new(false),
        }
    }

    /// Whether the API is reached by TLS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.params.tls.is_some()
    }

    /// Whether the spelling of the caller's field names goes on to the API.
    #[must_use]
    pub fn keeps_case(&self) -> bool {
        self.params.header_case == HeaderCase::Preserve
    }

    /// The most recently used connection that is still open, if there is any; `upgrade`: one over
    /// HTTP/1.1, which alone can switch to another protocol.
    pub fn reuse(&self, upgrade: bool, now: Instant) -> Option<Lease> {
        if !upgrade && let Some(lease) = self.reuse_http2(now) {
            return Some(lease);
        }
        let mut idle = self.idle.borrow_mut();
        for at in (0..idle.len()).rev() {
            let connection = &idle[at];
            let is_dead = connection.has_expired(now) || connection.is_over();
            if !is_dead && !connection.sender.is_ready() {
                continue;
            }
            let connection = idle.remove(at);
            if !is_dead && !connection.is_ending() {
                return Some(Lease::Http1(connection));
            }
        }
        None
    }

    fn reuse_http2(&self, now: Instant) -> Option<Lease> {
        let mut http2 = self.http2.borrow_mut();
        http2.take_if(|http2| http2.is_over(now) || http2.is_ending());
        http2.clone().map(|http2| Lease::Http2(Box::new(http2)))
    }

    /// Opens a connection of the kind that [`Pool::reuse`] finds.
    ///
    /// # Errors
    /// [`ForwardFault::Unreachable`], or [`ForwardFault::ApiTooSlow`] past `connect_timeout`.
    pub async fn connect(&self, upgrade: bool) -> Result<Lease, ForwardFault> {
        let http2 = self.params.http2 && !upgrade;
        let deadline = Instant::now() + self.params.connect_timeout;
        let connected = timeout_at(deadline, async {
            let mut first = None;
            if http2 && !self.speaks_http1.get() {
                first = Some(self.opening.lock().await);
                if let Some(lease) = self.reuse_http2(Instant::now()) {
                    return Ok(lease);
                }
            }
            let stream = self.open(http2, deadline).await?;
            let lease = self
                .handshake(stream, http2)
                .await
                .map_err(io::Error::other);
            drop(first);
            lease
        });
        connected
            .await
            .map_err(|_| ForwardFault::ApiTooSlow)?
            .map_err(ForwardFault::Unreachable)
    }

    /// Connects, and with TLS waits for a moment: with TLS 1.3 the API ends a connection without a certificate of ours only
    /// after the handshake.
    ///
    /// # Errors
    /// [`ForwardFault::Unreachable`], or [`ForwardFault::ApiTooSlow`] past `connect_timeout`.
    pub async fn probe(&self) -> Result<(), ForwardFault> {
        let deadline = Instant::now() + self.params.connect_timeout;
        let opened = timeout_at(deadline, self.open(self.params.http2, deadline)).await;
        let opened = opened.map_err(|_| ForwardFault::ApiTooSlow)?;
        let mut stream = opened.map_err(ForwardFault::Unreachable)?;
        // A server that says nothing waits for a request.
        if let Stream::Tls(stream) = &mut stream
            && let Ok(Err(error)) = timeout(PROBE, stream.read_u8()).await
        {
            return Err(ForwardFault::Unreachable(HandshakeError::named(error)));
        }
        Ok(())
    }

    /// Closes the connection of `lease` to further requests.
    pub fn forget(&self, lease: &Http2) {
        self.http2
            .borrow_mut()
            .take_if(|http2| Rc::ptr_eq(&http2.watch, &lease.watch));
    }

    async fn open(&self, http2: bool, deadline: Instant) -> io::Result<Stream> {
        let (host, port) = match &self.params.address {
            Address::Unix(path) => return Ok(Stream::Unix(UnixStream::connect(path).await?)),
            Address::Tcp(host, port) => (host.as_str(), *port),
            #[cfg(fuzzing)]
            Address::Memory(api) => {
                let (ours, theirs) = tokio::io::duplex(16 * 1024);
                api.send(theirs).map_err(io::Error::other)?;
                return Ok(Stream::Memory(ours));
            }
        };
        let stream = self.params.dialer.connect(host, port, deadline).await?;
        let Some(ClientTls { config, name, .. }) = &self.params.tls else {
            return Ok(Stream::Tcp(stream));
        };
        let mut config = Arc::clone(config);
        if self.params.http2 && !http2 {
            Arc::make_mut(&mut config)
                .alpn_protocols
                .retain(|protocol| protocol != HTTP2);
        }
        Stream::secure(stream, &config, name).await
    }

    async fn handshake(&self, stream: Stream, http2: bool) -> hyper::Result<Lease> {
        let mut wire = WatchedStream::new(stream);
        let speaks_http2 = wire.alpn_http2().unwrap_or(http2);
        let watch = wire.watch();
        let expires_at = Instant::now() + spread(self.params.max_age, 10);
        if http2 {
            self.speaks_http1.set(!speaks_http2);
        }
        if speaks_http2 {
            let (sender, connection) = http2::Builder::new(OnWorker)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_header_list_size(HEAD_LIST_BYTES)
                // Until the API's SETTINGS announce how many streams it takes: it would refuse the others.
                .initial_max_send_streams(1)
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .handshake(TokioIo::new(wire))
                .await?;
            spawn_local(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "an HTTP/2 connection to the API broke off");
                }
            });
            let http2 = Http2 {
                sender,
                watch,
                expires_at,
                used_at: Rc::new(Cell::new(Instant::now())),
            };
            *self.http2.borrow_mut() = Some(http2.clone());
            return Ok(Lease::Http2(Box::new(http2)));
        }
        wire.ignore_write_errors(true);
        let mut builder = http1::Builder::new();
        builder
            .preserve_header_case(self.keeps_case())
            .title_case_headers(true)
            .max_buf_size(HEAD_BYTES)
            .max_header_size(HEAD_BYTES)
            // RFC 9112 §5.1: "A proxy MUST remove any such whitespace from a response message".
            .allow_spaces_after_header_name_in_responses(true)
            .writev(false);
        if self.params.head_fields != STACK_FIELDS {
            builder.max_headers(self.params.head_fields);
        }
        let (sender, mut connection) = builder.handshake(TokioIo::new(wire)).await?;
        let task = spawn_local(async move {
            (&mut connection).await?;
            let parts = connection.into_parts();
            let mut wire = parts.io.into_inner();
            wire.ignore_write_errors(false);
            wire.unread(parts.read_buf);
            Ok(wire)
        });
        Ok(Lease::Http1(Box::new(Http1 {
            sender,
            task: AbortOnDropHandle::new(task),
            watch,
            expires_at,
            unused_since: None,
            kept_until: None,
            outdated: false,
            room: HeaderMap::new(),
        })))
    }

    /// Keeps a connection whose request and response are over for the next request; the one unused for longest makes room.
    pub fn give_back(&self, lease: Lease) {
        let Lease::Http1(mut connection) = lease else {
            return;
        };
        let is_over = connection.is_over() || connection.watch.has_head();
        if self.params.max_idle == 0 || connection.outdated || is_over {
            return;
        }
        connection.unused_since = None;
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= self.params.max_idle {
            idle.remove(0);
        }
        idle.push(connection);
    }

    /// Closes connections that are too old, were unused for too long or were closed at the other end.
    pub fn evict_idle(&self) {
        let now = Instant::now();
        self.http2
            .borrow_mut()
            .take_if(|http2| http2.is_over(now) || http2.is_idle_for(self.params.idle_timeout));
        self.idle.borrow_mut().retain_mut(|connection| {
            let since = *connection.unused_since.get_or_insert(now);
            now.duration_since(since) < self.params.idle_timeout
                && !connection.has_expired(now)
                && !connection.is_over()
        });
    }
}
