//! Accepts connections: one listener for each worker, a bounded number, TLS first where it is configured.

pub(in crate::wire::server) mod proxied;

use std::{
    io,
    net::{self, IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    task::spawn_local,
    time::{sleep, timeout},
};

use super::{
    bounds::{Bounds, Caller, Full},
    connection,
    handler::{ConnectionEvent, Handler},
    tls::{HandshakeFailure, Tls, handshake_failure},
};
use crate::{
    base::network::peer::Peer,
    wire::{
        server::caller::connection_table::{ConnectionGuard, ConnectionTable, Newcomer},
        stream::Stream,
        watched::WatchedStream,
    },
};

/// The kernel's queue of connections not yet accepted.
const BACKLOG: i32 = 4096;

/// The pause in accepting when the process has run out of descriptors: long enough not to spin, short enough not to be
/// noticed.
const PAUSE: Duration = Duration::from_millis(50);

/// Binds a listener. `shared`: several listeners may have the address, and the kernel spreads the connections over them.
///
/// # Errors
/// The system's, such as an address in use.
pub fn bind(address: SocketAddr, shared: bool) -> io::Result<net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The response to one connection too many.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A listener in the runtime.
enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Accepting {
    fn new(listener: Socket) -> io::Result<Self> {
        Ok(match listener.local_addr()?.is_unix() {
            true => Self::Unix(UnixListener::from_std(listener.into())?),
            false => Self::Tcp(TcpListener::from_std(listener.into())?),
        })
    }

    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                (Stream::Tcp(stream), Some(address))
            }
            Self::Unix(listener) => (Stream::Unix(listener.accept().await?.0), None),
        })
    }

    /// Takes a connection that the kernel has queued, which the runtime may not know of yet.
    fn accept_now(&self) -> io::Result<Accepted> {
        let listener = match self {
            Self::Tcp(listener) => SockRef::from(listener),
            Self::Unix(listener) => SockRef::from(listener),
        };
        let (stream, address) = listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?;
        Ok(match address.as_socket() {
            None => (Stream::Unix(UnixStream::from_std(stream.into())?), None),
            address => (Stream::Tcp(TcpStream::from_std(stream.into())?), address),
        })
    }
}

/// An accepted connection, with the address of its other end; `None` for a Unix socket.
type Accepted = (Stream, Option<SocketAddr>);

/// The rules by which a listener accepts connections.
pub struct AcceptRules {
    /// The limits on connections.
    pub bounds: Arc<Bounds>,
    /// The connections of this worker under these limits.
    pub connections: Rc<ConnectionTable>,
    /// TLS over TCP, read again for each connection so that certificates can change. A listener that began with TLS never
    /// falls back to plain HTTP.
    pub tls: Option<Arc<ArcSwap<Tls>>>,
    /// The socket outlives this process: when accepting stops, the connections in its queue are left to the next one.
    pub is_passed: bool,
    /// Each connection comes from a trusted proxy and begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
}

/// Accepts on a non-blocking listener, of TCP or a Unix socket, until `stop` is ready. Connections continue after it returns.
pub async fn accept<H: Handler>(
    listener: impl Into<Socket>,
    rules: AcceptRules,
    handler: Rc<H>,
    stop: impl Future<Output = ()>,
) {
    let listener = match Accepting::new(listener.into()) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "a listener cannot be used");
            return;
        }
    };
    let _listening = rules.bounds.listen();
    let rules = Rc::new(rules);
    let mut stop = pin!(stop);
    let mut pause = Pause::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => {
                pause.end();
                serve(&rules, accepted, Rc::clone(&handler));
            }
            Err(error) if is_callers(&error) => {}
            Err(error) => pause.wait(&error).await,
        }
    }
    if !rules.is_passed {
        accept_queued(&listener, &rules, &handler);
    }
}

/// Accepts what the kernel has queued: closing the listener resets those connections, and their requests would be lost.
/// Callers that keep connecting meanwhile do not keep it busy: it accepts one backlog at most.
fn accept_queued<H: Handler>(listener: &Accepting, rules: &Rc<AcceptRules>, handler: &Rc<H>) {
    for _ in 0..BACKLOG {
        match listener.accept_now() {
            Ok(accepted) => serve(rules, accepted, Rc::clone(handler)),
            Err(error) if is_callers(&error) => {}
            Err(_) => return,
        }
    }
}

/// A pause in accepting while the system has no descriptors. It is logged once.
#[derive(Default)]
struct Pause {
    logged: bool,
}

impl Pause {
    async fn wait(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.logged, true) {
            tracing::error!(%error, "accepting pauses");
        }
        sleep(PAUSE).await;
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.logged) {
            tracing::info!("accepting goes on");
        }
    }
}

/// Whether the caller left before it was accepted.
fn is_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

impl AcceptRules {
    /// A slot for one more connection; if there is none, that of a connection that waits, which is closed. The caller is
    /// known unless a proxy passes the connection on.
    fn admit(&self, caller: Option<Caller>) -> Option<ConnectionGuard> {
        let slot = match (self.bounds.enter(caller), caller) {
            (Ok(slot), _) => slot,
            (Err(Full::Share), Some(caller)) => {
                let newcomer = Newcomer::WithShare(caller);
                self.connections.evict(newcomer, &self.bounds)?
            }
            (Err(_), _) => {
                let newcomer = Newcomer::Other(caller);
                let mut slot = self.connections.evict(newcomer, &self.bounds)?;
                slot.hand_on();
                // Another worker may have taken the last one of its share meanwhile.
                if caller.is_some_and(|caller| !slot.count_for(caller)) {
                    return None;
                }
                slot
            }
        };
        Some(self.connections.add(slot, caller))
    }

    /// Tells a caller that its connection is one too many; under TLS that would take a handshake.
    fn refuse<H: Handler>(&self, stream: Stream, handler: &H) {
        handler.note(ConnectionEvent::Refused);
        if self.tls.is_some() {
            return;
        }
        if let Some(slot) = self.bounds.refuse() {
            spawn_local(async move {
                let mut wire = WatchedStream::new(stream);
                if wire.write_all(TOO_MANY).await.is_ok() {
                    wire.linger().await;
                }
                drop(slot);
            });
        }
    }
}

/// Serves a connection, if there is room for it.
fn serve<H: Handler>(rules: &Rc<AcceptRules>, accepted: Accepted, handler: Rc<H>) {
    let (stream, address) = accepted;
    let caller = match address.map(|address| address.ip()) {
        // If a proxy passes the connection on, the caller is not known yet.
        Some(_) if rules.proxy_protocol => None,
        Some(address) => Some(Caller::new(address, handler.is_trusted(address))),
        // The connections of a Unix socket count as one address's.
        None => Some(Caller::new(Ipv4Addr::UNSPECIFIED.into(), true)),
    };
    let Some(guard) = rules.admit(caller) else {
        return rules.refuse(stream, &*handler);
    };
    let rules = Rc::clone(rules);
    spawn_local(async move {
        let serving = pin!(async {
            let opened = match (stream, address) {
                (Stream::Tcp(stream), Some(address)) => {
                    open(&rules, stream, address, &guard, &*handler).await
                }
                (stream, _) => Some((stream, Peer::default())),
            };
            if let Some((stream, peer)) = opened {
                let (wire, serves) = (WatchedStream::new(stream), Rc::clone(&handler));
                connection::serve(wire, peer, serves, &guard.0).await;
            }
        });
        if guard.unless_evicted(serving).await {
            handler.note(ConnectionEvent::Evicted);
        }
    });
}

/// The stream of a connection over TCP once its caller is known and TLS is spoken; `None` if it is closed.
async fn open<H: Handler>(
    rules: &AcceptRules,
    mut stream: TcpStream,
    address: SocketAddr,
    guard: &ConnectionGuard,
    handler: &H,
) -> Option<(Stream, Peer)> {
    stream.set_nodelay(true).ok()?;
    let mut peer = Peer {
        address: Some(address.ip()),
        secure: rules.tls.is_some(),
        is_relay: false,
    };
    if rules.proxy_protocol {
        // Boxed: the future of the connection stays small.
        let caller = Box::pin(proxied_caller(&mut stream, address, handler)).await?;
        peer.is_relay = caller.is_none();
        let caller = caller.unwrap_or(address.ip());
        let is_trusted = peer.is_relay || handler.is_trusted(caller);
        let counted = Caller::new(caller, is_trusted);
        if !guard.locate(&rules.connections, &rules.bounds, counted) {
            rules.refuse(Stream::Tcp(stream), handler);
            return None;
        }
        peer.address = Some(caller);
    }
    let stream = match rules.tls.as_ref().map(|tls| tls.load_full()) {
        None => Stream::Tcp(stream),
        // Boxed: the future of the connection stays small.
        Some(tls) => Box::pin(handshake(&tls, stream, address, handler)).await?,
    };
    Some((stream, peer))
}

/// Reads the address of the caller whose connection a trusted proxy passes on, if the proxy names one. Returns `None`
/// and logs the reason if the connection is closed.
async fn proxied_caller<H: Handler>(
    stream: &mut TcpStream,
    proxy: SocketAddr,
    handler: &H,
) -> Option<Option<IpAddr>> {
    let problem = if handler.is_trusted(proxy.ip()) {
        match timeout(handler.limits().handshake_timeout, proxied::read(stream)).await {
            Ok(Ok(caller)) => return Some(caller),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its PROXY header took too long".to_owned(),
        }
    } else {
        "it is not one of listen.trusted_proxies".to_owned()
    };
    tracing::info!(peer = %proxy, problem, "connection closed: listen.proxy_protocol");
    None
}

/// Performs the TLS handshake of a connection; `None` if it fails.
async fn handshake<H: Handler>(
    tls: &Tls,
    stream: TcpStream,
    address: SocketAddr,
    handler: &H,
) -> Option<Stream> {
    let limit = handler.limits().handshake_timeout;
    let failure = match timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(Stream::Tls(Box::new(stream.into()))),
        Ok(Err(error)) => {
            let failure = handshake_failure(&error);
            // The owner of a certificate will ask about it.
            if failure == HandshakeFailure::CallerCertificate {
                tracing::info!(%error, peer = %address, "client certificate refused");
            } else {
                tracing::debug!(%error, peer = %address, "TLS handshake failed");
            }
            failure
        }
        Err(_) => {
            tracing::debug!(peer = %address, "TLS handshake too slow");
            HandshakeFailure::TooSlow
        }
    };
    handler.note(ConnectionEvent::HandshakeFailed(failure));
    None
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        io::{Read as _, Write as _},
    };

    use http::{Request, Response};
    use tokio::task::{LocalSet, spawn_blocking};

    use super::*;
    use crate::wire::server::{
        caller::stream::Limits,
        request::RequestBody,
        response::{Gone, ResponseBody},
    };

    struct Empty;

    impl Handler for Empty {
        fn limits(&self) -> Rc<Limits> {
            Rc::new(Limits::SMALL)
        }

        async fn answer(
            self: Rc<Self>,
            _: Request<RequestBody>,
        ) -> Result<Response<ResponseBody>, Gone> {
            Ok(Response::new(ResponseBody::none()))
        }
    }

    #[tokio::test]
    async fn a_listener_that_stops_accepts_its_queue_first() {
        let listener = bind(([127, 0, 0, 1], 0).into(), false).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut queued: Vec<_> = (0..3)
            .map(|_| net::TcpStream::connect(address).expect("the queue has room"))
            .collect();
        for caller in &mut queued {
            caller.write_all(request).expect("the connection is open");
        }
        let rules = AcceptRules {
            bounds: Arc::new(Bounds::new(10, None)),
            connections: Rc::default(),
            tls: None,
            is_passed: false,
            proxy_protocol: false,
        };
        let serving = LocalSet::new();
        serving.spawn_local(async {
            accept(listener, rules, Rc::new(Empty), ready(())).await;
        });
        let answers = spawn_blocking(move || {
            queued
                .into_iter()
                .map(|mut caller| {
                    let mut answer = String::new();
                    caller.read_to_string(&mut answer).map(|_| answer)
                })
                .collect::<io::Result<Vec<_>>>()
        });
        let answers = serving
            .run_until(answers)
            .await
            .expect("no panic")
            .expect("no reset");
        assert!(
            answers
                .iter()
                .all(|answer| answer.starts_with("HTTP/1.1 200")),
            "{answers:?}"
        );
    }
}
