//! The body of a response, and a report of its end.

use std::{
    mem,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::time::Instant;

use crate::wire::body::Pieces;

/// Why the body cannot be sent whole, which the caller must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Cut {
    /// Its source broke off.
    #[error("the body of the response is cut off")]
    Broken,
    /// Nothing of it came for this long.
    #[error("nothing of the body came for {} s", .0.as_secs_f64())]
    Silent(Duration),
}

/// The caller has gone, or its connection can no longer carry a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the caller has gone")]
pub struct Gone;

/// The end of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// It was taken whole.
    Whole,
    /// Its source broke off, or was silent.
    Cut(Cut),
    /// The caller went away or read too slowly.
    CallerGone,
}

/// A body that is made while it is sent.
pub type StreamedBody = Pin<Box<dyn Body<Data = Bytes, Error = Cut>>>;

/// A last piece of at least this many bytes is passed on without its last byte, if [`Follow::in_full`] says so.
const LARGE_PIECE: usize = 1024;

/// The body of a response.
pub struct ResponseBody {
    pieces: Pieces<StreamedBody>,
    /// The length that a response to HEAD, or a 304, announces (RFC 9110 §8.6), in bytes.
    announced: Option<u64>,
    /// The last byte of the body, where all before it has been passed on.
    last: Bytes,
    cut: Option<Cut>,
    follower: Option<Rc<dyn Follow>>,
    watcher: Option<Box<dyn BodyWatcher>>,
}

/// Gets to know how the body of a response ended.
pub trait BodyWatcher {
    /// The connection has taken the body or has dropped it; returns the time of that.
    fn finish(self: Box<Self>, response: BodyEnd) -> Instant;
}

impl ResponseBody {
    const fn new(pieces: Pieces<StreamedBody>, announced: Option<u64>) -> Self {
        Self {
            pieces,
            announced,
            last: Bytes::new(),
            cut: None,
            follower: None,
            watcher: None,
        }
    }

    /// No body.
    pub const fn none() -> Self {
        Self::new(Pieces::Empty, None)
    }

    /// No body where one of this many bytes is announced: for HEAD and 304.
    pub const fn announced(bytes: u64) -> Self {
        Self::new(Pieces::Empty, Some(bytes))
    }

    /// A whole body. It is not copied.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        match bytes.into() {
            bytes if bytes.is_empty() => Self::none(),
            bytes => Self::new(Pieces::Whole(bytes), None),
        }
    }

    /// A body that is made while it is sent.
    pub const fn streamed(stream: StreamedBody) -> Self {
        Self::new(Pieces::Streamed(stream), None)
    }

    /// The bytes of a whole body that only this response has.
    pub(super) fn unshared_bytes(&self) -> usize {
        match &self.pieces {
            Pieces::Whole(bytes) if bytes.is_unique() => bytes.len(),
            _ => 0,
        }
    }

    /// Informs `watcher` of the end.
    pub fn watched_by(&mut self, watcher: Box<dyn BodyWatcher>) {
        self.watcher = Some(watcher);
    }

    /// Passes the body on as `follower` allows, which is kept until the connection drops the body.
    pub(super) fn followed_by(&mut self, follower: Rc<dyn Follow>) {
        self.follower = Some(follower);
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let how = match &self.pieces {
            _ if let Some(cut) = self.cut => BodyEnd::Cut(cut),
            Pieces::Empty if self.last.is_empty() => BodyEnd::Whole,
            _ => BodyEnd::CallerGone,
        };
        let ended = self.watcher.take().map(|watcher| watcher.finish(how));
        if let Some(follower) = &self.follower {
            follower.dropped(ended);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        if let Some(follower) = &this.follower {
            ready!(follower.poll_room(context));
        }
        let mut frame = match mem::take(&mut this.last) {
            last if last.is_empty() => ready!(Pin::new(&mut this.pieces).poll_frame(context)),
            last => Some(Ok(Frame::data(last))),
        };
        if let Some(Err(cut)) = &frame {
            this.cut = Some(*cut);
        }
        if this.cut.is_some() || frame.is_none() || this.pieces.is_end_stream() {
            this.pieces = Pieces::Empty;
        }
        if let Some(follower) = &this.follower
            && let Some(Ok(frame)) = &mut frame
            && let Some(data) = frame.data_mut()
        {
            follower.given(data.len());
            if follower.in_full() && data.len() >= LARGE_PIECE && this.pieces.is_end_stream() {
                this.last = data.split_off(data.len() - 1);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.announced.is_none() && self.last.is_empty() && self.pieces.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let announced = self.announced.map(SizeHint::with_exact);
        announced.unwrap_or_else(|| self.pieces.size_hint())
    }
}

/// Follows the body of a response for the connection that sends it.
pub(super) trait Follow {
    /// Whether the last byte of a body is kept until the connection has room for all bytes before it. Otherwise HTTP/2 takes
    /// a whole piece once the caller's window has a single byte, and forgets the request.
    fn in_full(&self) -> bool {
        false
    }
    /// Ready when the connection may be given another piece.
    fn poll_room(&self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
    /// The connection was given a piece of this many bytes.
    fn given(&self, _bytes: usize) {}
    /// The connection has taken the body or has dropped it, just now; `at` is that time if it is known.
    fn dropped(&self, _at: Option<Instant>) {}
}
