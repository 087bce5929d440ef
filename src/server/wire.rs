//! The byte streams under hyper, and what a connection has to know of them: what has arrived, and whether a write waits.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    time::Instant,
};
use tokio_rustls::TlsStream;

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
    #[must_use]
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

/// What has been seen of a stream.
#[derive(Debug)]
pub struct Watch {
    /// Bytes that have arrived.
    arrived: Cell<u64>,
    /// When bytes arrived that [`Watch::expect_bytes`] waits for.
    arrived_at: Cell<Option<Instant>>,
    expecting: Cell<bool>,
    /// Since when a write has not gone on.
    blocked_since: Cell<Option<Instant>>,
    /// The other side has ended its half.
    ended: Cell<bool>,
    /// The last flush has come to its end.
    flushed: Cell<bool>,
    /// When bytes last moved, where somebody keeps account of it.
    moved_at: Cell<Option<Instant>>,
}

impl Watch {
    const fn new() -> Self {
        Self {
            arrived: Cell::new(0),
            arrived_at: Cell::new(None),
            expecting: Cell::new(true),
            blocked_since: Cell::new(None),
            ended: Cell::new(false),
            flushed: Cell::new(true),
            moved_at: Cell::new(None),
        }
    }

    /// From now on the arrival of the next bytes is noted.
    pub fn expect_bytes(&self) {
        self.arrived_at.set(None);
        self.expecting.set(true);
    }

    /// When the first of the expected bytes arrived.
    #[must_use]
    pub fn arrived_at(&self) -> Option<Instant> {
        self.arrived_at.get()
    }

    /// How many bytes have arrived in all.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.arrived.get()
    }

    /// Since when a write has been waiting for the other side to take bytes.
    #[must_use]
    pub fn blocked_since(&self) -> Option<Instant> {
        self.blocked_since.get()
    }

    /// Whether all that was written has left, so that nothing is lost if nobody polls the stream.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.flushed.get() && self.blocked_since.get().is_none()
    }

    /// Whether the other side has ended its half of the connection.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Keeps account of when bytes move, beginning now.
    pub fn follow_movement(&self) {
        self.moved_at.set(Some(Instant::now()));
    }

    /// When bytes last moved, since [`Watch::follow_movement`].
    #[must_use]
    pub fn moved_at(&self) -> Option<Instant> {
        self.moved_at.get()
    }

    fn read(&self, count: usize) {
        if count == 0 {
            self.ended.set(true);
            return;
        }
        self.arrived.set(self.arrived.get() + count as u64);
        self.note_arrival();
        self.moved();
    }

    /// Bytes are there, whoever has read them.
    pub fn note_arrival(&self) {
        if self.expecting.replace(false) {
            self.arrived_at.set(Some(Instant::now()));
        }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(_) => {
                if self.blocked_since.get().is_some() {
                    self.blocked_since.set(None);
                }
                self.moved();
            }
            Poll::Pending if self.blocked_since.get().is_none() => {
                self.blocked_since.set(Some(Instant::now()));
            }
            Poll::Pending => {}
        }
    }

    fn moved(&self) {
        if self.moved_at.get().is_some() {
            self.moved_at.set(Some(Instant::now()));
        }
    }
}

/// A stream and what is seen of it.
#[derive(Debug)]
pub struct Wire {
    stream: Stream,
    /// Bytes that were read before and are to be read again.
    unread: Bytes,
    watch: Rc<Watch>,
}

impl Wire {
    /// Watches a stream, of which `unread` has been read already.
    #[must_use]
    pub fn new(stream: Stream, unread: Bytes) -> Self {
        let watch = Watch::new();
        if !unread.is_empty() {
            watch.read(unread.len());
        }
        Self {
            stream,
            unread,
            watch: Rc::new(watch),
        }
    }

    /// Has the connection reset rather than closed, so that what was cut off cannot look whole.
    pub fn reset(&self) {
        // Under TLS as well: not every caller minds that no close_notify came.
        if let Some(stream) = self.stream.tcp() {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// What is seen of the stream.
    #[must_use]
    pub fn watch(&self) -> Rc<Watch> {
        Rc::clone(&self.watch)
    }

    /// Whether [`Wire::poll_arrival`] can wait.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.stream.tcp().is_some()
    }

    /// Ready once something has arrived: bytes, an end or an error. Nothing is read.
    pub fn poll_arrival(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = self.stream.tcp().filter(|_| self.unread.is_empty()) else {
            return Poll::Ready(());
        };
        // A mere readiness may be left over from what was read before.
        let mut byte = [0];
        stream
            .poll_peek(context, &mut ReadBuf::new(&mut byte))
            .map(drop)
    }

    /// Puts bytes that a reader took too many in front of what comes next.
    pub fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.unread.is_empty());
        self.unread = bytes;
    }
}

/// Does the same with the stream of every kind.
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
        let count = this.unread.len().min(buffer.remaining());
        if count > 0 {
            buffer.put_slice(&this.unread[..count]);
            this.unread.advance(count);
        }
        if count > 0 && (!this.unread.is_empty() || buffer.remaining() == 0) {
            return Poll::Ready(Ok(()));
        }
        // Together with what has come since: for a head in two reads hyper takes a buffer of twice the size.
        let before = buffer.filled().len();
        let read = each!(&mut this.stream, stream => Pin::new(stream).poll_read(context, buffer));
        if let Poll::Ready(Ok(())) = read {
            this.watch.read(buffer.filled().len() - before);
        }
        if count > 0 {
            // An end or an error comes again with the next read.
            return Poll::Ready(Ok(()));
        }
        read
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
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = each!(&mut this.stream, stream => Pin::new(stream).poll_flush(context));
        this.watch.flushed.set(flushed.is_ready());
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_shutdown(context))
    }
}
