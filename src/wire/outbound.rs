//! Connections to other hosts, and requests of our own to other services: one connection for each, with TLS where the URL
//! asks for it.

mod dial;
mod resolve;

use std::{
    convert::Infallible,
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;

pub use self::{dial::Dialer, resolve::addresses};
use crate::wire::origin::Origin;

/// The longest head and the longest body of a response, in bytes each.
const MAX_BYTES: usize = 64 * 1024;

/// Another service.
#[derive(Debug, Clone)]
pub struct Target {
    /// The origin.
    pub origin: Origin,
    /// With TLS: the configuration and the name that its certificate must have.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// A connection, with TLS or without.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Transport for S {}

/// Why there is no response.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The connection broke, or the response is not HTTP.
    #[error("no response")]
    NoResponse(#[from] hyper::Error),
    /// The body is too long.
    #[error("the response is longer than 64 KiB")]
    TooLong,
}

impl Target {
    /// Connects, and sends nothing.
    ///
    /// # Errors
    /// It cannot be reached until `deadline`, or is another one by its certificate.
    pub async fn connect(&self, deadline: Instant) -> io::Result<Box<dyn Transport>> {
        let connecting = async {
            let (host, port) = (self.origin.bare_host(), self.origin.port);
            let stream = Dialer::default().connect(host, port, deadline).await?;
            let Some((config, name)) = &self.tls else {
                return Ok(Box::new(stream) as Box<dyn Transport>);
            };
            let connector = TlsConnector::from(Arc::clone(config));
            Ok(Box::new(connector.connect(name.clone(), stream).await?))
        };
        let connected = timeout_at(deadline, connecting).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Sends the request on a connection of its own; the body is read only for a 200. Redirects are not followed.
///
/// # Errors
/// [`ExchangeError`]
pub async fn exchange(
    stream: Box<dyn Transport>,
    request: Request<Bytes>,
) -> Result<(StatusCode, Vec<u8>), ExchangeError> {
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_BYTES)
        .handshake(TokioIo::new(stream))
        .await?;
    let mut exchange = pin!(async move {
        let response = sender.send_request(request.map(Whole)).await?;
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

/// A body that is here as a whole.
struct Whole(Bytes);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

async fn read_body(mut body: Incoming) -> Result<Vec<u8>, ExchangeError> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if read.len() + data.len() > MAX_BYTES {
            return Err(ExchangeError::TooLong);
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
