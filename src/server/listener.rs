//! Accepts connections: one listener for each worker, a bounded number, TLS first where it is configured.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener},
    task::spawn_local,
    time::{sleep, timeout},
};

use super::{
    connection::{self, Handler},
    tls::{Tls, handshake_failure},
    wire::{Stream, Wire},
};
use crate::{
    peer::{Peer, network},
    telemetry::metrics::HandshakeFailure,
};

/// The kernel's queue of connections not yet accepted.
const BACKLOG: i32 = 4096;

/// How long accepting pauses when the process has run out of descriptors: long enough not to spin, short enough that
/// nobody notices.
const PAUSE: Duration = Duration::from_millis(50);

/// Binds a listener. `shared`: several listeners may have the address, and the kernel spreads the connections over them.
///
/// # Errors
/// The system's, such as an address in use.
pub fn bind(address: SocketAddr, shared: bool) -> io::Result<std::net::TcpListener> {
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

/// Limits the number of connections.
#[derive(Debug)]
pub struct Bounds(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    /// The most connections.
    limit: usize,
    /// The most connections of one address, or one /64 of IPv6.
    limit_per_address: Option<u32>,
    open: usize,
    by_address: HashMap<IpAddr, u32>,
    /// Listeners that may still accept a connection.
    listening: usize,
}

impl Bounds {
    /// Bounds for all workers together.
    pub fn new(limit: usize, limit_per_address: Option<u32>) -> Self {
        Self(Mutex::new(Counts {
            limit,
            limit_per_address,
            open: 0,
            by_address: HashMap::new(),
            listening: 0,
        }))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets other bounds. Connections that are open stay.
    pub fn set(&self, limit: usize, limit_per_address: Option<u32>) {
        let mut counts = self.counts();
        counts.limit = limit;
        counts.limit_per_address = limit_per_address;
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.counts().open
    }

    /// Whether no connection is open, and no listener is left that could accept one.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let counts = self.counts();
        counts.listening == 0 && counts.open == 0
    }

    /// Counts one more connection, if it is allowed.
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let mut counts = self.counts();
        let of_address = counts.by_address.get(&address).copied().unwrap_or(0);
        let is_too_many = |limit| of_address >= limit;
        if counts.open >= counts.limit || counts.limit_per_address.is_some_and(is_too_many) {
            return None;
        }
        counts.open += 1;
        counts.by_address.insert(address, of_address + 1);
        Some(Place {
            bounds: Arc::clone(self),
            address: Some(address),
        })
    }

    /// Counts one more listener.
    fn listen(self: &Arc<Self>) -> Place {
        self.counts().listening += 1;
        Place {
            bounds: Arc::clone(self),
            address: None,
        }
    }
}

/// The place of a connection, or of a listener, which has no address; given back when dropped.
#[derive(Debug)]
struct Place {
    bounds: Arc<Bounds>,
    address: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.bounds.counts();
        let Some(address) = self.address else {
            counts.listening -= 1;
            return;
        };
        counts.open -= 1;
        if let Entry::Occupied(mut count) = counts.by_address.entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// The response to one connection too many.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The rules by which a TCP listener accepts connections.
pub struct Tcp {
    /// The limits on connections.
    pub bounds: Arc<Bounds>,
    /// TLS, read again for each connection so that certificates can change. A listener that began with TLS never falls
    /// back to plain HTTP.
    pub tls: Option<Arc<ArcSwap<Tls>>>,
    /// The socket outlives this process: when accepting stops, the connections in its queue are left to the next one.
    pub is_passed: bool,
}

/// Accepts until `stop` is ready. Connections continue after it returns.
pub async fn accept<H: Handler>(
    listener: TcpListener,
    tcp: Tcp,
    handler: Rc<H>,
    stop: impl Future<Output = ()>,
) {
    let _listening = tcp.bounds.listen();
    let mut stop = std::pin::pin!(stop);
    let mut pause = Pause::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                pause.end();
                serve(&tcp, stream, address, Rc::clone(&handler));
            }
            Err(error) if is_callers(&error) => {}
            Err(error) => pause.wait(&error).await,
        }
    }
    if !tcp.is_passed {
        accept_queued(listener, &tcp, &handler);
    }
}

/// Accepts what the kernel has queued and closes the listener: closing alone would reset those connections, and their
/// requests would be lost. Callers that keep connecting meanwhile do not keep it busy: it accepts one backlog at most.
fn accept_queued<H: Handler>(listener: TcpListener, tcp: &Tcp, handler: &Rc<H>) {
    let Ok(listener) = listener.into_std() else {
        return;
    };
    for _ in 0..BACKLOG {
        match listener.accept() {
            Ok((stream, address)) => {
                let stream = stream.set_nonblocking(true).map(|()| stream);
                if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                    serve(tcp, stream, address, Rc::clone(handler));
                }
            }
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
    let peer = Peer {
        address: Some(address.ip()),
        secure: tcp.tls.is_some(),
    };
    let tls = tcp.tls.as_ref().map(|tls| tls.load_full());
    spawn_local(async move {
        let stream = match tls {
            None => Some(Stream::Tcp(stream)),
            // Boxed: the future of the connection stays small.
            Some(tls) => Box::pin(handshake(&tls, stream, address, &*handler)).await,
        };
        if let Some(stream) = stream {
            connection::serve(Wire::new(stream), peer, handler).await;
        }
        drop(place);
    });
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
    handler.handshake_failed(failure);
    None
}

/// Accepts on a Unix socket until `stop` is ready. Connections continue after it returns.
pub async fn accept_unix<H: Handler>(
    listener: UnixListener,
    handler: Rc<H>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut pause = Pause::default();
    let peer = Peer {
        address: None,
        secure: false,
    };
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                pause.end();
                let wire = Wire::new(Stream::Unix(stream));
                spawn_local(connection::serve(wire, peer, Rc::clone(&handler)));
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
