//! The one stream that hyper reads and writes, for connections of callers and to the API: it counts its bytes, notices
//! whether a write waits, and can be looked at while hyper has it.

use std::{
    cell::{Cell, RefCell},
    fmt, io,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{
    frames::Frames,
    raw_target::RawTarget,
    stream::{Stream, Unread},
    written_head::WrittenHead,
};

/// After the last response, keep reading and discarding for this long. Closing at once would reset the connection and could
/// destroy the response in flight (RFC 9112 §9.6).
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// A stream for hyper.
#[derive(Debug)]
pub struct WatchedStream {
    /// Shared with [`Watch`], which never keeps it open.
    stream: Rc<RefCell<Stream>>,
    /// Bytes that were read too early; they are read first.
    unread: Bytes,
    watch: Rc<Watch>,
    /// The frames that arrive are counted.
    frames: Option<Rc<Frames>>,
    /// A write that fails counts as done.
    ignores_write_errors: bool,
}

/// The head of another request is not written yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the head of the last request is not written")]
pub struct HeadWaits;

/// Observes a stream, and limits what is read from it.
#[derive(Default)]
pub struct Watch {
    stream: Weak<RefCell<Stream>>,
    /// Bytes that have arrived.
    arrived: Cell<u64>,
    /// The number of bytes after which reading fails.
    read_limit: Cell<Option<u64>>,
    /// Bytes that have been written.
    written: Cell<u64>,
    /// A write has failed, and that was ignored.
    write_failed: Cell<bool>,
    /// The time since which a write has been blocked.
    blocked_since: Cell<Option<Instant>>,
    /// The other side has ended its half.
    ended: Cell<bool>,
    /// The last flush has not come to its end.
    unflushed: Cell<bool>,
    /// Written instead of its stand-in, which hyper writes next.
    head: RefCell<Option<WrittenHead>>,
    /// The memory of the last head.
    head_memory: Cell<Vec<u8>>,
    /// The next bytes that arrive begin the head of a request.
    expects_request: Cell<bool>,
    /// The target of that request, if hyper was to read another one.
    raw_target: Cell<Option<RawTarget>>,
}

impl fmt::Debug for Watch {
    /// Shows nothing: a head may have credentials in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
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

    /// Whether all that was written has left, so that nothing is lost if the stream is not polled.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !self.unflushed.get() && self.blocked_since.get().is_none()
    }

    /// Whether the other side has ended its half of the connection.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Whether a write has failed, which [`WatchedStream::ignore_write_errors`] hides.
    #[must_use]
    pub fn write_failed(&self) -> bool {
        self.write_failed.get()
    }

    /// What has arrived on the connection and was not read, [`Unread::End`] if it is closed.
    #[must_use]
    pub fn unread_now(&self) -> Unread {
        let stream = self.stream.upgrade();
        stream.map_or(Unread::End, |stream| stream.borrow().unread_now())
    }

    /// Ready once bytes, an end or an error have arrived on a connection without TLS that others no longer poll for
    /// reading. Nothing is read.
    pub(super) fn poll_unread(&self, context: &mut Context<'_>) -> Poll<Unread> {
        let stream = self.stream.upgrade();
        let Some(stream) = stream.as_deref().map(RefCell::borrow) else {
            return Poll::Ready(Unread::End);
        };
        let Some(socket) = stream.tcp() else {
            return Poll::Pending;
        };
        poll_peek(socket, context).map(|peeked| match peeked {
            Ok(1..) => Unread::Bytes,
            Ok(0) | Err(_) => Unread::End,
        })
    }

    /// From now on reading fails after this many bytes; `None`: after any number it does not.
    pub fn limit_reading(&self, bytes: Option<u64>) {
        let limit = bytes.map(|bytes| self.arrived.get() + bytes);
        self.read_limit.set(limit);
    }

    /// The next bytes that arrive begin the head of a request, if hyper has not read the beginning of one before.
    pub(super) fn expect_request(&self) {
        self.expects_request.set(true);
        self.raw_target.set(None);
    }

    /// The target as it was sent of the request that hyper has read, if it has read another one.
    pub(super) fn take_raw_target(&self) -> Option<RawTarget> {
        self.raw_target.take()
    }

    /// Memory for the next head.
    pub fn head_memory(&self) -> Vec<u8> {
        self.head_memory.take()
    }

    /// Writes `head` when hyper writes its stand-in, the next bytes that it writes.
    ///
    /// # Errors
    /// The last head is not written: this one would go on in the middle of it.
    pub fn write_head(&self, head: WrittenHead) -> Result<(), HeadWaits> {
        if self.has_head() {
            return Err(HeadWaits);
        }
        self.head.replace(Some(head));
        Ok(())
    }

    /// Whether a head is not written, or not whole: the API may respond before it has read it.
    #[must_use]
    pub fn has_head(&self) -> bool {
        self.head.borrow().is_some()
    }

    fn read(&self, count: usize) -> io::Result<()> {
        self.ended.set(count == 0);
        let arrived = self.arrived.get() + count as u64;
        self.arrived.set(arrived);
        match self.read_limit.get() {
            Some(limit) if arrived > limit => Err(io::Error::other("too many interim responses")),
            _ => Ok(()),
        }
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

/// Looks at the next byte of a socket, as readiness alone may be left over from an earlier read.
fn poll_peek(socket: &TcpStream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    socket.poll_peek(context, &mut ReadBuf::new(&mut [0]))
}

impl WatchedStream {
    /// Watches a stream.
    pub fn new(stream: Stream) -> Self {
        let stream = Rc::new(RefCell::new(stream));
        let watch = Watch {
            stream: Rc::downgrade(&stream),
            ..Watch::default()
        };
        Self {
            stream,
            unread: Bytes::new(),
            watch: Rc::new(watch),
            frames: None,
            ignores_write_errors: false,
        }
    }

    /// Counts HTTP/2 frames from now on; reading fails when there are too many.
    pub(super) fn count_frames(&mut self) -> Rc<Frames> {
        Rc::clone(self.frames.get_or_insert_default())
    }

    /// Whether a write that fails counts as done: the other side may have responded and closed before it read the whole
    /// request, and the response counts.
    pub fn ignore_write_errors(&mut self, ignores: bool) {
        self.ignores_write_errors = ignores;
    }

    /// Whether ALPN agreed on HTTP/2; `None` without TLS.
    pub fn alpn_http2(&self) -> Option<bool> {
        self.stream.borrow().alpn_http2()
    }

    /// Makes the connection end with a reset, so that a response that was cut off cannot look whole.
    pub fn reset(&self) {
        // Under TLS too: not every caller notices that close_notify is missing.
        if let Some(stream) = self.stream.borrow().tcp() {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// The observations of the stream.
    pub fn watch(&self) -> Rc<Watch> {
        Rc::clone(&self.watch)
    }

    /// Whether it is TCP without TLS, so that [`Watch::poll_unread`] sees the end.
    #[must_use]
    pub(super) fn is_plain(&self) -> bool {
        matches!(&*self.stream.borrow(), Stream::Tcp(_))
    }

    /// Whether [`WatchedStream::poll_arrival`] can wait.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.stream.borrow().tcp().is_some()
    }

    /// Ready once bytes, an end or an error have arrived. Nothing is read.
    pub fn poll_arrival(&self, context: &mut Context<'_>) -> Poll<()> {
        let stream = self.stream.borrow();
        let Some(stream) = stream.tcp().filter(|_| self.unread.is_empty()) else {
            return Poll::Ready(());
        };
        poll_peek(stream, context).map(drop)
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

    /// Writes the head of a request, for which `stand_in` stands.
    fn poll_write_head(
        &self,
        context: &mut Context<'_>,
        stand_in: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut waiting = self.watch.head.borrow_mut();
        while let Some(head) = waiting.as_mut() {
            if !head.stands_in(stand_in) {
                let reason = "something else is written instead of the head of a request";
                return Poll::Ready(Err(io::Error::other(reason)));
            }
            let stream = &mut *self.stream.borrow_mut();
            let written = Pin::new(stream).poll_write(context, head.rest());
            self.watch.wrote(&written);
            match ready!(written) {
                Ok(count @ 1..) => head.wrote(count),
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                failed => {
                    *waiting = None;
                    return self.ignoring(Poll::Ready(failed), stand_in.len());
                }
            }
            if head.rest().is_empty()
                && let Some(head) = waiting.take()
            {
                self.watch.head_memory.set(head.into_memory());
            }
        }
        Poll::Ready(Ok(stand_in.len()))
    }

    /// `done`, and `count` where an error is ignored.
    fn ignoring<T>(&self, done: Poll<io::Result<T>>, count: T) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(Err(_)) if self.ignores_write_errors => {
                self.watch.write_failed.set(true);
                Poll::Ready(Ok(count))
            }
            done => done,
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if this.unread.is_empty() {
            let stream = &mut *this.stream.borrow_mut();
            ready!(Pin::new(stream).poll_read(context, buffer))?;
        } else {
            let count = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(count));
            if this.watch.expects_request.get() && this.unread.is_empty() {
                // These were the first bytes of a connection, and mostly the whole head has arrived.
                let stream = &mut *this.stream.borrow_mut();
                if let Poll::Ready(read) = Pin::new(stream).poll_read(context, buffer) {
                    read?;
                }
            }
        }
        let read = &mut buffer.filled_mut()[before..];
        if !read.is_empty() && this.watch.expects_request.replace(false) {
            this.watch.raw_target.set(RawTarget::hide(read));
        }
        this.watch.read(read.len())?;
        Poll::Ready(match &this.frames {
            Some(frames) => frames.arrived(read),
            None => Ok(()),
        })
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.ignores_write_errors && this.watch.write_failed() {
            return Poll::Ready(Ok(bytes.len()));
        }
        if this.watch.has_head() {
            return this.poll_write_head(context, bytes);
        }
        let written = Pin::new(&mut *this.stream.borrow_mut()).poll_write(context, bytes);
        this.watch.wrote(&written);
        if let (Some(frames), Poll::Ready(Ok(count))) = (&this.frames, &written) {
            frames.written(*count);
        }
        this.ignoring(written, bytes.len())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut *this.stream.borrow_mut()).poll_flush(context);
        this.watch.unflushed.set(flushed.is_pending());
        this.ignoring(flushed, ())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(context)
    }
}
