//! The byte streams of connections to the API. The pool can look at them while hyper has them.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::wire::stream::{Unread, Wire};

/// The stream of a connection, for hyper.
#[derive(Debug)]
pub(super) struct SharedWire(Rc<RefCell<Wire>>);

/// The same stream, for the pool.
#[derive(Debug, Clone)]
pub(super) struct Probe(Weak<RefCell<Wire>>);

impl SharedWire {
    pub(super) fn new(wire: Wire) -> Self {
        Self(Rc::new(RefCell::new(wire)))
    }

    pub(super) fn probe(&self) -> Probe {
        Probe(Rc::downgrade(&self.0))
    }

    /// The stream itself; `None` while hyper uses it.
    pub(super) fn into_inner(self) -> Option<Wire> {
        Rc::into_inner(self.0).map(RefCell::into_inner)
    }
}

impl Probe {
    /// What has arrived on the connection and hyper has not read.
    pub(super) fn unread_now(&self) -> Unread {
        let wire = self.0.upgrade();
        wire.map_or(Unread::End, |wire| wire.borrow().unread_now())
    }
}

impl AsyncRead for SharedWire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(context, buffer)
    }
}

impl AsyncWrite for SharedWire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(context)
    }
}

/// The instructions of an exchange over HTTP/1.1 to the stream below it.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// A write failed. The API may have responded and closed before it read the whole request, and the response counts.
    write_failed: Cell<bool>,
    /// The number of bytes that may still arrive; `None`: any number.
    readable: Cell<Option<usize>>,
}

impl Control {
    /// Whether the API has stopped reading.
    #[must_use]
    pub(super) fn write_failed(&self) -> bool {
        self.write_failed.get()
    }

    /// From now on reading fails after this many bytes.
    pub(super) fn limit_reading(&self, bytes: Option<usize>) {
        self.readable.set(bytes);
    }
}

/// The stream of one connection over HTTP/1.1.
#[derive(Debug)]
pub(super) struct ApiStream {
    /// The stream itself.
    pub(super) wire: SharedWire,
    /// The exchange's instructions to it.
    pub(super) control: Rc<Control>,
}

impl AsyncRead for ApiStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.wire).poll_read(context, buffer))?;
        if let Some(readable) = this.control.readable.get() {
            let left = readable.checked_sub(buffer.filled().len() - before);
            let left = left.ok_or_else(|| io::Error::other("too many interim responses"))?;
            this.control.readable.set(Some(left));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ApiStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.control.write_failed() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut this.wire).poll_write(context, bytes));
        Poll::Ready(Ok(written.unwrap_or_else(|_| {
            this.control.write_failed.set(true);
            bytes.len()
        })))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if ready!(Pin::new(&mut this.wire).poll_flush(context)).is_err() {
            this.control.write_failed.set(true);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_shutdown(context)
    }
}
