//! Connections to the API: opened, kept by the worker that opened them, and used again.

use std::{
    cell::RefCell,
    io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::{TcpStream, UnixStream, lookup_host},
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use crate::{
    refusal::Fault,
    transport::{
        input::Input,
        stream::{Outgoing, Stream},
    },
};

/// Where the API is.
#[derive(Debug, Clone)]
pub enum Address {
    /// A host, resolved anew for each connection, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// How to connect to the API.
#[derive(Clone)]
pub struct Params {
    /// Where it is.
    pub address: Address,
    /// With TLS: the configuration and the name that its certificate must have.
    pub tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
    /// For resolving, connecting and the TLS handshake together.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// How many unused ones are kept.
    pub max_idle: usize,
}

/// A connection to the API.
#[derive(Debug)]
pub struct UpstreamConnection {
    /// The byte stream.
    pub stream: Stream,
    /// What has arrived and is not used up.
    pub input: Input,
    /// What is to be written.
    pub out: Outgoing,
    /// It has served a request before: it may have been closed at the other end in the meantime.
    pub reused: bool,
}

/// One worker's connections to the API.
pub struct Upstream {
    params: Params,
    idle: RefCell<Vec<(UpstreamConnection, Instant)>>,
}

impl Upstream {
    /// A pool without connections.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            idle: RefCell::default(),
        }
    }

    /// The most recently used connection that is still open `now`, if there is any.
    pub fn reuse(&self, now: Instant) -> Option<UpstreamConnection> {
        let mut idle = self.idle.borrow_mut();
        while let Some((mut connection, since)) = idle.pop() {
            let unused = now.duration_since(since);
            if unused < self.params.idle_timeout && is_quiet(&mut connection.stream) {
                return Some(connection);
            }
        }
        None
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`Fault::Unreachable`], or [`Fault::ApiTooSlow`] past `connect_timeout`.
    pub async fn connect(&self) -> Result<UpstreamConnection, Fault> {
        let stream = timeout(self.params.connect_timeout, self.open())
            .await
            .map_err(|_| Fault::ApiTooSlow)?
            .map_err(Fault::Unreachable)?;
        Ok(UpstreamConnection {
            stream,
            input: Input::default(),
            out: Outgoing::default(),
            reused: false,
        })
    }

    async fn open(&self) -> io::Result<Stream> {
        let (host, port) = match &self.params.address {
            Address::Unix(path) => return Ok(Stream::Unix(UnixStream::connect(path).await?)),
            Address::Tcp(host, port) => (host.as_str(), *port),
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in lookup_host((host, port)).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let Some((config, name)) = &self.params.tls else {
                        return Ok(Stream::Tcp(stream));
                    };
                    let connector = TlsConnector::from(Arc::clone(config));
                    let stream = connector.connect(name.clone(), stream).await?;
                    return Ok(Stream::Tls(Box::new(stream.into())));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Keeps a connection for the next request, unused since `since`; the one unused for longest makes room.
    pub fn keep(&self, mut connection: UpstreamConnection, since: Instant) {
        connection.reused = true;
        connection.input.release();
        connection.out.release();
        let mut idle = self.idle.borrow_mut();
        if self.params.max_idle == 0 {
            return;
        }
        if idle.len() >= self.params.max_idle {
            idle.remove(0);
        }
        idle.push((connection, since));
    }

    /// Lets go of connections that were unused for too long or closed at the other end.
    pub fn tidy(&self) {
        self.idle.borrow_mut().retain_mut(|(connection, since)| {
            since.elapsed() < self.params.idle_timeout && is_quiet(&mut connection.stream)
        });
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("address", &self.params.address)
            .finish_non_exhaustive()
    }
}

/// Whether nothing has arrived: neither an end nor bytes that belong to no request.
fn is_quiet(stream: &mut Stream) -> bool {
    let mut byte = [0; 1];
    let mut buffer = ReadBuf::new(&mut byte);
    let mut context = Context::from_waker(Waker::noop());
    matches!(
        Pin::new(stream).poll_read(&mut context, &mut buffer),
        Poll::Pending
    )
}
