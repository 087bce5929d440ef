//! One type for all kinds of stream, so that the code above is compiled once.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsStream;

use super::http2::Http2Stream;
use crate::http1::pool::Buffer;

/// A connection to a caller or to the API.
#[derive(Debug)]
pub enum Stream {
    /// TCP without TLS.
    Tcp(TcpStream),
    /// TLS over TCP; boxed, since its state is large and the other kinds are not.
    Tls(Box<TlsStream<TcpStream>>),
    /// A Unix socket.
    Unix(UnixStream),
    /// One stream of an HTTP/2 connection.
    Http2(Box<Http2Stream>),
}

impl Stream {
    /// The TCP connection below, if there is one.
    #[must_use]
    pub fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.get_ref().0),
            Self::Unix(_) | Self::Http2(_) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Http2(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Http2(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Http2(stream) => Pin::new(&mut **stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Http2(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}

/// Writes from the front of `pending` until it is empty; what is written is taken off.
pub fn poll_drain(
    stream: &mut Stream,
    context: &mut Context<'_>,
    pending: &mut Outgoing,
) -> Poll<io::Result<()>> {
    while pending.position < pending.bytes.len() {
        let rest = &pending.bytes[pending.position..];
        match Pin::new(&mut *stream).poll_write(context, rest) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(written)) => pending.position += written,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    pending.bytes.clear();
    pending.position = 0;
    // TLS keeps records back until it is flushed; for the other kinds this does nothing.
    Pin::new(stream).poll_flush(context)
}

/// Bytes on their way out.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Buffer,
    position: usize,
}

impl Outgoing {
    /// Where to append what is to be written.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = Buffer::take();
        }
        &mut self.bytes
    }

    /// How many bytes there are, written or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes `bytes` to be written in place of those that have been.
    pub fn set(&mut self, bytes: Buffer) {
        debug_assert!(self.is_empty());
        self.bytes = bytes;
        self.position = 0;
    }

    /// Whether everything has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// How many bytes have been written of what is there now.
    #[must_use]
    pub fn written(&self) -> usize {
        self.position
    }

    /// Gives the buffer back to the pool, if everything has been written.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.bytes = Buffer::none();
            self.position = 0;
        }
    }
}
