//! Connections to other hosts, and requests of our own to other services: one connection for each, with TLS where the URL
//! asks for it.

mod dial;
mod resolve;
mod shared;
pub mod tls;

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header, request};
use http_body::Body as _;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    net::UnixStream,
    time::{Instant, timeout_at},
};

pub use self::{
    dial::Dialer,
    resolve::addresses,
    shared::{MAX_REQUESTS, SharedService},
};
use super::{address::TcpOrUnix, body::Pieces, stream::Stream};
use crate::wire::url::origin::Origin;

/// The longest head and the longest body of a response, in bytes each.
const MAX_BYTES: usize = 64 * 1024;

/// Another service.
#[derive(Debug, Clone)]
pub struct RemoteService {
    /// Where it is.
    pub server: TcpOrUnix<Origin>,
    /// With TLS: the configuration and the name that its certificate must have.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// Why there is no response.
#[derive(Debug, Error)]
pub enum OutboundError {
    /// It has not seen the request.
    #[error("cannot be reached")]
    Unreachable(#[source] io::Error),
    /// It has not seen the request, since others took the time.
    #[error("{MAX_REQUESTS} other requests took the time for this one")]
    Busy,
    /// The time is over.
    #[error("took longer than its time")]
    TooSlow,
    /// The connection broke, or the response is not HTTP.
    #[error("no response")]
    NoResponse(#[from] hyper::Error),
    /// The body is too long.
    #[error("the response is longer than 64 KiB")]
    TooLong,
}

impl RemoteService {
    /// Connects, and sends nothing.
    ///
    /// # Errors
    /// It cannot be reached until `deadline`, or is another one by its certificate.
    pub async fn connect(&self, deadline: Instant) -> io::Result<Stream> {
        let connecting = async {
            let origin = match &self.server {
                TcpOrUnix::Tcp(origin) => origin,
                TcpOrUnix::Unix(path) => {
                    return UnixStream::connect(path).await.map(Stream::Unix);
                }
            };
            let (host, port) = (origin.bare_host(), origin.port);
            let stream = Dialer::default().connect(host, port, deadline).await?;
            match &self.tls {
                Some((config, name)) => Stream::secure(stream, config, name).await,
                None => Ok(Stream::Tcp(stream)),
            }
        };
        let connected = timeout_at(deadline, connecting).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The value of Host.
    #[must_use]
    pub fn host(&self) -> String {
        let origin = self.server.tcp();
        origin.map_or_else(|| "localhost".to_owned(), Origin::authority)
    }

    /// Begins a request to it, on a connection of its own, whose response is asked for as JSON.
    pub fn request(&self, method: Method, path: &str) -> request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.host())
            .header(header::USER_AGENT, "countersign")
            .header(header::ACCEPT, "application/json")
            .header(header::CONNECTION, "close")
    }

    /// Sends the request on a connection of its own, and reads the response until `deadline`; the body is read only for a 200.
    /// Redirects are not followed.
    ///
    /// # Errors
    /// [`OutboundError`]
    pub async fn ask(
        &self,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<(StatusCode, Vec<u8>), OutboundError> {
        let stream = self.connect(deadline).await;
        let stream = stream.map_err(OutboundError::Unreachable)?;
        let response = timeout_at(deadline, exchange(stream, request)).await;
        response.unwrap_or(Err(OutboundError::TooSlow))
    }
}

async fn exchange(
    stream: Stream,
    request: Request<Bytes>,
) -> Result<(StatusCode, Vec<u8>), OutboundError> {
    let (mut sender, connection) = http1::Builder::new()
        // A body is written from where it is. Hyper would copy it, with a password in it, to a buffer that it does not wipe.
        .writev(true)
        .max_buf_size(MAX_BYTES)
        .handshake(TokioIo::new(stream))
        .await?;
    let mut exchange = pin!(async move {
        let response = sender
            .send_request(request.map(Pieces::<Incoming>::Whole))
            .await?;
        let status = response.status();
        let body = match status {
            StatusCode::OK => read_body(response.into_body()).await?,
            _ => Vec::new(),
        };
        Ok((status, body))
    });
    tokio::select! {
        done = &mut exchange => done,
        // Bytes that arrived before its end can still be read.
        _ = connection => exchange.await,
    }
}

async fn read_body(mut body: Incoming) -> Result<Vec<u8>, OutboundError> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if read.len() + data.len() > MAX_BYTES {
            return Err(OutboundError::TooLong);
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
