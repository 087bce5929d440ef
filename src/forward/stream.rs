//! The byte stream of a connection to the API over HTTP/1.1.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::server::wire::Wire;

/// The instructions of an exchange to the stream below it.
#[derive(Debug, Default)]
pub(super) struct Control {
    replay: RefCell<Replay>,
    /// A write failed. The API may have responded and closed before it read the whole request, and the response counts.
    write_failed: Cell<bool>,
    /// The number of bytes that may still arrive; `None`: any number.
    readable: Cell<Option<usize>>,
}

/// The head of a request as hyper wrote it.
#[derive(Debug, Default)]
enum Replay {
    #[default]
    Off,
    Recording(Vec<u8>),
    /// Written in place of hyper's next write.
    Replacing(Vec<u8>),
}

impl Control {
    /// Whether the API has stopped reading.
    #[must_use]
    pub(super) fn write_failed(&self) -> bool {
        self.write_failed.get()
    }

    /// Begins or stops recording the bytes that are written.
    pub(super) fn record(&self, on: bool) {
        match &mut *self.replay.borrow_mut() {
            Replay::Recording(written) if on => written.clear(),
            replay if on => *replay = Replay::Recording(Vec::with_capacity(2048)),
            replay => *replay = Replay::Off,
        }
    }

    /// The bytes written since [`Control::record`].
    pub(super) fn recorded(&self) -> Vec<u8> {
        match self.replay.take() {
            Replay::Recording(written) => written,
            Replay::Off | Replay::Replacing(_) => Vec::new(),
        }
    }

    /// Writes `bytes` in place of the next write.
    pub(super) fn replace_next_write(&self, bytes: Vec<u8>) {
        self.replay.replace(Replay::Replacing(bytes));
    }

    /// From now on reading fails after this many bytes.
    pub(super) fn limit_reading(&self, bytes: Option<usize>) {
        self.readable.set(bytes);
    }
}

/// The stream of one connection.
#[derive(Debug)]
pub(super) struct ApiStream {
    /// The stream itself.
    pub(super) wire: Wire,
    /// The exchange's instructions to it.
    pub(super) control: Rc<Control>,
}

impl ApiStream {
    fn poll_bytes(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.control.write_failed() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut self.wire).poll_write(context, bytes));
        Poll::Ready(Ok(written.unwrap_or_else(|_| {
            self.control.write_failed.set(true);
            bytes.len()
        })))
    }
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
        let control = Rc::clone(&this.control);
        let mut replay = control.replay.borrow_mut();
        if let Replay::Replacing(other) = &mut *replay {
            while !other.is_empty() {
                let written = ready!(this.poll_bytes(context, other))?;
                other.drain(..written);
            }
            *replay = Replay::Off;
            return Poll::Ready(Ok(bytes.len()));
        }
        let count = ready!(this.poll_bytes(context, bytes))?;
        if let Replay::Recording(written) = &mut *replay {
            written.extend_from_slice(&bytes[..count]);
        }
        Poll::Ready(Ok(count))
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
