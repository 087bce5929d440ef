//! The byte streams under hyper, and what a connection has to know of them: what has arrived, and whether a write waits.

use std::{
    cell::{Cell, RefCell},
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
    /// The other side no longer takes what is written.
    refused: Cell<bool>,
    /// What was written, where it may have to be written again.
    written: RefCell<Option<Vec<u8>>>,
    /// What is written in place of what comes next.
    instead: RefCell<Vec<u8>>,
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
            refused: Cell::new(false),
            written: RefCell::new(None),
            instead: RefCell::new(Vec::new()),
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

    /// Whether the other side no longer takes what is written.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.refused.get()
    }

    /// From now on what is written is kept, or is not.
    pub fn keep_written(&self, keep: bool) {
        let mut written = self.written.borrow_mut();
        match (&mut *written, keep) {
            (Some(written), true) => written.clear(),
            (none, true) => *none = Some(Vec::with_capacity(2048)),
            (_, false) => *written = None,
        }
    }

    /// What was written since [`Watch::keep_written`].
    #[must_use]
    pub fn take_written(&self) -> Vec<u8> {
        self.written.take().unwrap_or_default()
    }

    /// Has `bytes` written in place of what is written next.
    pub fn write_instead(&self, bytes: Vec<u8>) {
        self.instead.replace(bytes);
    }

    fn keep(&self, bytes: &[u8]) {
        if let Some(written) = &mut *self.written.borrow_mut() {
            written.extend_from_slice(bytes);
        }
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
    again: Bytes,
    /// What cannot be written is thrown away: the other side may still have something to say.
    writes_in_vain: bool,
    watch: Rc<Watch>,
}

impl Wire {
    /// Watches a stream, of which `again` has been read already.
    #[must_use]
    pub fn new(stream: Stream, again: Bytes) -> Self {
        let watch = Watch::new();
        if !again.is_empty() {
            watch.read(again.len());
        }
        Self {
            stream,
            again,
            writes_in_vain: false,
            watch: Rc::new(watch),
        }
    }

    /// From now on a failed write is no error: an API may respond and close before it has read the whole request, and the
    /// response counts.
    #[must_use]
    pub const fn writing_in_vain(mut self) -> Self {
        self.writes_in_vain = true;
        self
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
        let Some(stream) = self.stream.tcp().filter(|_| self.again.is_empty()) else {
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
        debug_assert!(self.again.is_empty());
        self.again = bytes;
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

impl Wire {
    fn poll_bytes(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.watch.refused.get() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written =
            each!(&mut self.stream, stream => Pin::new(stream).poll_write(context, bytes));
        self.watch.wrote(&written);
        if self.writes_in_vain && matches!(written, Poll::Ready(Err(_))) {
            self.watch.refused.set(true);
            return Poll::Ready(Ok(bytes.len()));
        }
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let count = this.again.len().min(buffer.remaining());
        if count > 0 {
            buffer.put_slice(&this.again[..count]);
            this.again.advance(count);
        }
        if count > 0 && (!this.again.is_empty() || buffer.remaining() == 0) {
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
        let mut instead = this.watch.instead.take();
        while !instead.is_empty() {
            let Poll::Ready(written) = this.poll_bytes(context, &instead) else {
                this.watch.instead.replace(instead);
                return Poll::Pending;
            };
            instead.drain(..written?);
            if instead.is_empty() {
                return Poll::Ready(Ok(bytes.len()));
            }
        }
        let written = this.poll_bytes(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            this.watch.keep(&bytes[..count]);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = each!(&mut this.stream, stream => Pin::new(stream).poll_flush(context));
        this.watch.flushed.set(flushed.is_ready());
        if this.writes_in_vain && matches!(flushed, Poll::Ready(Err(_))) {
            this.watch.refused.set(true);
            return Poll::Ready(Ok(()));
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_shutdown(context))
    }
}
