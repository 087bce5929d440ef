//! Accepting connections: one listener a worker, bounded in number, TLS first where it is configured.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener},
    task::spawn_local,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    connection::{self, Handler},
    tls::{Tls, handshake_failure},
    wire::Stream,
};
use crate::{
    peer::{Peer, network},
    telemetry::metrics::HandshakeFailure,
};

/// The kernel's queue of connections not yet accepted.
const BACKLOG: i32 = 4096;

/// How long accepting pauses when the process has run out of descriptors: long enough not to spin, short enough not to
/// be noticed.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a listener that takes no new connections waits for handshakes that have begun: a round trip.
const HANDSHAKES: Duration = Duration::from_millis(250);

/// Binds a listener that shares its address with those of the other workers.
///
/// # Errors
/// The system's, such as an address in use.
pub fn bind_shared(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Makes sure that no other process has the address: with a shared one the kernel would give each a part of the calls.
///
/// # Errors
/// The system's, such as an address in use.
pub fn bind_exclusive(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// How many connections there may be.
#[derive(Debug)]
pub struct Bounds {
    /// In all.
    connections: AtomicUsize,
    /// From one address, or one /64 of IPv6; 0: no limit.
    per_address: AtomicU32,
    open: AtomicUsize,
    /// Listeners that may still let somebody in.
    listening: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, u32>>,
}

impl Bounds {
    /// Bounds for all workers together.
    #[must_use]
    pub fn new(connections: usize, per_address: Option<u32>) -> Self {
        Self {
            connections: AtomicUsize::new(connections),
            per_address: AtomicU32::new(per_address.unwrap_or(0)),
            open: AtomicUsize::new(0),
            listening: AtomicUsize::new(0),
            by_address: Mutex::default(),
        }
    }

    /// Sets other bounds. Connections that are open stay; those that were let in while there was no limit for one address
    /// do not count against one.
    pub fn set(&self, connections: usize, per_address: Option<u32>) {
        self.connections.store(connections, Ordering::Relaxed);
        let per_address = per_address.unwrap_or(0);
        self.per_address.store(per_address, Ordering::Relaxed);
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether no connection is open, and no listener is left that could let one in.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // In this order: a listener gives its last connections their places before it ends.
        self.listening.load(Ordering::Acquire) == 0 && self.open.load(Ordering::Acquire) == 0
    }

    /// A place for one more connection, if there is one.
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.connections.load(Ordering::Relaxed) {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut counted = None;
        let limit = self.per_address.load(Ordering::Relaxed);
        if limit > 0 {
            let address = network(address);
            let mut by_address = self
                .by_address
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let count = by_address.entry(address).or_default();
            if *count >= limit {
                drop(by_address);
                self.open.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
            *count += 1;
            counted = Some(address);
        }
        Some(ConnectionSlot {
            bounds: Arc::clone(self),
            counted,
        })
    }
}

/// A connection's place; given back when dropped.
#[derive(Debug)]
struct ConnectionSlot {
    bounds: Arc<Bounds>,
    counted: Option<IpAddr>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.bounds.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(address) = self.counted {
            let mut by_address = self
                .bounds
                .by_address
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = by_address.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    by_address.remove(&address);
                }
            }
        }
    }
}

/// A listener at work; counted until dropped.
#[derive(Debug)]
struct Listening(Arc<Bounds>);

impl Listening {
    fn new(bounds: &Arc<Bounds>) -> Self {
        bounds.listening.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(bounds))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listening.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The answer to one connection too many.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What a TCP listener needs besides its handler.
pub struct Tcp {
    /// The listener.
    pub listener: TcpListener,
    /// How many connections there may be.
    pub bounds: Arc<Bounds>,
    /// TLS, looked at anew for each connection so that certificates can change. A listener that was begun with TLS never
    /// falls back to plain HTTP.
    pub tls: Option<Arc<ArcSwap<Tls>>>,
}

/// Accepts until `stop` is ready. From then on the kernel drops new handshakes, and those that had begun are still accepted.
/// Connections go on after it returns.
pub async fn accept<H: Handler>(tcp: Tcp, handler: Rc<H>, stop: impl Future<Output = ()>) {
    let _listening = Listening::new(&tcp.bounds);
    let mut stop = std::pin::pin!(stop);
    let mut stopped: Option<Instant> = None;
    let mut pause = Pause::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop, if stopped.is_none() => {
                let lingers = refuse_new_handshakes(&tcp.listener).is_ok();
                stopped = Some(Instant::now() + if lingers { HANDSHAKES } else { Duration::ZERO });
                continue;
            }
            accepted = tcp.listener.accept() => accepted,
            () = sleep_until(stopped.unwrap_or_else(Instant::now)), if stopped.is_some() => return,
        };
        match accepted {
            Ok((stream, address)) => {
                pause.end();
                serve(&tcp, stream, address, Rc::clone(&handler));
            }
            // A caller that left before it was accepted is nobody's fault.
            Err(error) if is_callers(&error) => {}
            Err(error) => pause.wait(&error).await,
        }
    }
}

/// What a listener does while the system gives it no connection: it waits, and tells the log once and not twenty times a
/// second.
#[derive(Default)]
struct Pause {
    told: bool,
}

impl Pause {
    async fn wait(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::error!(%error, "accepting pauses");
        }
        sleep(PAUSE).await;
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.told) {
            tracing::info!("accepting goes on");
        }
    }
}

/// Drops segments that would begin a connection and lets all others through, by a classic BPF program, which sees a segment
/// from its TCP header on. A listener that is merely closed resets the connections that wait to be accepted, and their
/// requests. A dropped caller tries again within a second and finds the port closed, or the next process.
fn refuse_new_handshakes(listener: &TcpListener) -> io::Result<()> {
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(0x30, 0, 0, FLAGS), // load the byte of the flags
        SockFilter::new(0x54, 0, 0, SYN | ACK), // keep these two
        SockFilter::new(0x15, 0, 1, SYN),   // is it SYN alone?
        SockFilter::new(0x06, 0, 0, 0),     // drop
        SockFilter::new(0x06, 0, 0, u32::MAX), // let through
    ])
}

fn is_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

fn serve<H: Handler>(tcp: &Tcp, stream: TcpStream, address: SocketAddr, handler: Rc<H>) {
    let Some(place) = tcp.bounds.enter(address.ip()) else {
        if tcp.tls.is_none() {
            let _ = stream.try_write(TOO_MANY);
        }
        return;
    };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let secure = tcp.tls.is_some();
    let peer = Peer {
        address: Some(address.ip()),
        secure,
    };
    let Some(tls) = tcp.tls.as_ref().map(|tls| tls.load_full()) else {
        spawn_local(async move {
            connection::serve(Stream::Tcp(stream), peer, handler).await;
            drop(place);
        });
        return;
    };
    let handshake_timeout = handler.limits().handshake_timeout;
    spawn_local(async move {
        match timeout(handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let stream = Stream::Tls(Box::new(stream.into()));
                connection::serve(stream, peer, handler).await;
            }
            Ok(Err(error)) => {
                let failure = handshake_failure(&error);
                handler.handshake_failed(failure);
                // The owner of a certificate will ask about it.
                if failure == HandshakeFailure::CallerCertificate {
                    tracing::info!(%error, peer = %address, "client certificate refused");
                } else {
                    tracing::debug!(%error, peer = %address, "TLS handshake failed");
                }
            }
            Err(_) => {
                handler.handshake_failed(HandshakeFailure::TooSlow);
                tracing::debug!(peer = %address, "TLS handshake too slow");
            }
        }
        drop(place);
    });
}

/// Accepts on a Unix socket until dropped.
pub async fn accept_unix<H: Handler>(listener: UnixListener, handler: Rc<H>) {
    let mut pause = Pause::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                pause.end();
                let handler = Rc::clone(&handler);
                spawn_local(async move {
                    let peer = Peer {
                        address: None,
                        secure: false,
                    };
                    connection::serve(Stream::Unix(stream), peer, handler).await;
                });
            }
            Err(error) => pause.wait(&error).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_ipv6_has_no_more_connections_than_one_address() {
        let bounds = Arc::new(Bounds::new(10, Some(2)));
        let enter = |address: &str| bounds.enter(address.parse().expect("an address"));
        let first = enter("2001:db8:1:2::1");
        let second = enter("2001:db8:1:2:ffff::2");
        assert!(first.is_some() && second.is_some());
        assert!(enter("2001:db8:1:2::3").is_none());
        assert!(enter("2001:db8:1:3::1").is_some());
        drop(first);
        assert!(enter("2001:db8:1:2::3").is_some());
    }
}
