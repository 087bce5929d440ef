//! The byte streams of connections, to callers and to the API, as hyper reads and writes them: what moves is counted.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::{TcpStream, UnixStream},
    time::{Instant, timeout},
};
use tokio_rustls::TlsStream;

use super::frames::Frames;

/// The name of HTTP/2 in ALPN (RFC 9113 §3.2).
pub const HTTP2: &[u8] = b"h2";

/// After the last response, keep reading and discarding for this long. Closing at once would reset the connection and could
/// destroy the response in flight (RFC 9112 §9.6).
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// A connection to a caller or to the API; one type, so that the code above is compiled once.
#[derive(Debug)]
pub enum Stream {
    /// TCP without TLS.
    Tcp(TcpStream),
    /// TLS over TCP; boxed, since its state is large and the other kinds are not.
    Tls(Box<TlsStream<TcpStream>>),
    /// A Unix socket.
    Unix(UnixStream),
    /// The memory of a test.
    #[cfg(any(test, fuzzing))]
    Memory(tokio::io::DuplexStream),
}

impl Stream {
    /// The TCP connection below, if there is one.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.get_ref().0),
            Self::Unix(_) => None,
            #[cfg(any(test, fuzzing))]
            Self::Memory(_) => None,
        }
    }
}

/// What has arrived on a connection and was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Nothing; the connection is open.
    Nothing,
    /// Bytes, and no end so far.
    Bytes,
    /// The end or an error, perhaps after bytes.
    End,
}

/// Observes the bytes of a stream.
#[derive(Debug, Default)]
pub struct Watch {
    /// Bytes that have arrived.
    arrived: Cell<u64>,
    /// Bytes that have been written.
    written: Cell<u64>,
    /// The time since which a write has been blocked.
    blocked_since: Cell<Option<Instant>>,
    /// The other side has ended its half.
    ended: Cell<bool>,
    /// The last flush has not come to its end.
    unflushed: Cell<bool>,
}

impl Watch {
    /// The number of bytes that have arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived.get()
    }

    /// The number of bytes that have arrived or been written.
    pub fn moved(&self) -> u64 {
        self.arrived.get() + self.written.get()
    }

    /// The time since which a write has been waiting for the other side to take bytes.
    pub fn blocked_since(&self) -> Option<Instant> {
        self.blocked_since.get()
    }

    /// Whether all that was written has left, so that nothing is lost if nobody polls the stream.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !self.unflushed.get() && self.blocked_since.get().is_none()
    }

    /// Whether the other side has ended its half of the connection.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    fn read(&self, count: usize) {
        self.ended.set(count == 0);
        self.arrived.set(self.arrived.get() + count as u64);
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(written) => {
                self.blocked_since.set(None);
                let count = *written.as_ref().unwrap_or(&0);
                self.written.set(self.written.get() + count as u64);
            }
            Poll::Pending if self.blocked_since.get().is_none() => {
                self.blocked_since.set(Some(Instant::now()));
            }
            Poll::Pending => {}
        }
    }
}

/// A stream under hyper.
#[derive(Debug)]
pub struct Wire {
    stream: Stream,
    /// Bytes that were read too early; they are read first.
    unread: Bytes,
    watch: Rc<Watch>,
    /// The frames that arrive are counted.
    frames: Option<Rc<Frames>>,
}

impl Wire {
    /// Watches a stream.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            unread: Bytes::new(),
            watch: Rc::default(),
            frames: None,
        }
    }

    /// Counts HTTP/2 frames from now on; reading fails when there are too many.
    pub(super) fn count_frames(&mut self) -> Rc<Frames> {
        Rc::clone(self.frames.get_or_insert_default())
    }

    /// Whether ALPN agreed on HTTP/2; `None` without TLS.
    pub fn alpn_http2(&self) -> Option<bool> {
        match &self.stream {
            Stream::Tls(stream) => Some(stream.get_ref().1.alpn_protocol() == Some(HTTP2)),
            _ => None,
        }
    }

    /// Makes the connection end with a reset, so that a response that was cut off cannot look whole.
    pub fn reset(&self) {
        // Under TLS too: not every caller notices that close_notify is missing.
        if let Some(stream) = self.stream.tcp() {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// The observations of the stream.
    pub fn watch(&self) -> Rc<Watch> {
        Rc::clone(&self.watch)
    }

    /// Whether [`Wire::poll_arrival`] can wait.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.stream.tcp().is_some()
    }

    /// Ready once bytes, an end or an error have arrived. Nothing is read.
    pub fn poll_arrival(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = self.stream.tcp().filter(|_| self.unread.is_empty()) else {
            return Poll::Ready(());
        };
        // Readiness alone may be left over from an earlier read.
        let mut byte = [0];
        stream
            .poll_peek(context, &mut ReadBuf::new(&mut byte))
            .map(drop)
    }

    /// Asks the system what has arrived, since a task that reads may not have run yet. Nothing is read, and nothing waits.
    #[must_use]
    pub fn unread_now(&self) -> Unread {
        let flags = PollFlags::IN | PollFlags::RDHUP;
        let mut socket = [match &self.stream {
            Stream::Tcp(stream) => PollFd::new(stream, flags),
            Stream::Tls(stream) => PollFd::new(stream.get_ref().0, flags),
            Stream::Unix(stream) => PollFd::new(stream, flags),
            #[cfg(any(test, fuzzing))]
            Stream::Memory(_) => return Unread::Nothing,
        }];
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let found = poll(&mut socket, Some(&no_wait)).map(|_| socket[0].revents());
        match found {
            Ok(events) if events.is_empty() => Unread::Nothing,
            Ok(events) if events == PollFlags::IN => Unread::Bytes,
            _ => Unread::End,
        }
    }

    /// Puts bytes that were read too early in front of the stream.
    pub fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.unread.is_empty());
        self.unread = bytes;
    }

    /// Ends the writing side, and reads and discards until the caller has ended as well.
    pub(super) async fn linger(mut self) {
        let mut buffer = vec![0; 16 * 1024];
        let _ = timeout(LINGER, async {
            // hyper does not do this after a request with `Upgrade` or CONNECT. Doing it twice does no harm.
            let _ = self.shutdown().await;
            while self.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        })
        .await;
    }
}

/// The same call for each kind of stream.
macro_rules! each {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) => $call,
            Stream::Tls($inner) => $call,
            Stream::Unix($inner) => $call,
            #[cfg(any(test, fuzzing))]
            Stream::Memory($inner) => $call,
        }
    };
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if this.unread.is_empty() {
            ready!(each!(&mut this.stream, stream => Pin::new(stream).poll_read(context, buffer)))?;
        } else {
            let count = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(count));
        }
        let read = &buffer.filled()[before..];
        this.watch.read(read.len());
        Poll::Ready(match &this.frames {
            Some(frames) => frames.arrived(read),
            None => Ok(()),
        })
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written =
            each!(&mut this.stream, stream => Pin::new(stream).poll_write(context, bytes));
        this.watch.wrote(&written);
        if let (Some(frames), Poll::Ready(Ok(count))) = (&this.frames, &written) {
            frames.written(*count);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = each!(&mut this.stream, stream => Pin::new(stream).poll_flush(context));
        this.watch.unflushed.set(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_shutdown(context))
    }
}
