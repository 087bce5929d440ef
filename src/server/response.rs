//! The body of a response, and a report of its end.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;

/// The body cannot be sent whole, and the caller must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the body of the response is cut off")]
pub struct Cut;

/// The caller has gone, or its connection is beyond a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the caller has gone")]
pub struct Gone;

/// How the body of a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// It was taken whole.
    Whole,
    /// Its source broke off.
    Cut,
    /// The caller went away or read too slowly.
    CallerGone,
}

/// A body that is made while it is sent.
pub type Stream = Pin<Box<dyn Body<Data = Bytes, Error = Cut>>>;

/// A whole body is passed on in pieces of this many bytes: hyper takes a piece before it knows whether the connection has
/// room for it, and over HTTP/1.1 copies it.
pub const PIECE_BYTES: usize = 16 * 1024;

/// A last piece of at least this many bytes is passed on without its last byte, if [`Follow::IN_FULL`] is set.
const LARGE_PIECE: usize = 1024;

enum Content {
    /// Nothing, or nothing more.
    Nothing,
    /// The length that a response to HEAD, or a 304, announces (RFC 9110 §8.6), in bytes.
    Announced(u64),
    Whole(Bytes),
    Streamed(Stream),
    Cut,
}

/// The body of a response.
pub struct ResponseBody {
    content: Content,
    ended: Option<Box<dyn FnOnce(BodyEnd)>>,
}

impl ResponseBody {
    /// No body.
    #[must_use]
    pub const fn none() -> Self {
        Self::of(Content::Nothing)
    }

    /// No body where one of this many bytes is announced: for HEAD and 304.
    #[must_use]
    pub const fn announced(bytes: u64) -> Self {
        Self::of(Content::Announced(bytes))
    }

    /// A whole body. It is not copied.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() {
            Self::none()
        } else {
            Self::of(Content::Whole(bytes))
        }
    }

    /// A body that is made while it is sent.
    #[must_use]
    pub fn streamed(stream: Stream) -> Self {
        Self::of(Content::Streamed(stream))
    }

    const fn of(content: Content) -> Self {
        Self {
            content,
            ended: None,
        }
    }

    /// Calls `ended` once, when the connection has taken the body or has dropped it.
    #[must_use]
    pub fn when_ended(mut self, ended: impl FnOnce(BodyEnd) + 'static) -> Self {
        self.ended = Some(Box::new(ended));
        self
    }

    /// Passes the body on as `follower` allows, which is kept until the connection drops the body.
    pub(super) const fn followed_by<F: Follow>(self, follower: F) -> Followed<F> {
        Followed {
            body: self,
            last: Bytes::new(),
            follower,
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let how = match self.content {
            Content::Nothing | Content::Announced(_) => BodyEnd::Whole,
            Content::Cut => BodyEnd::Cut,
            Content::Whole(_) | Content::Streamed(_) => BodyEnd::CallerGone,
        };
        if let Some(ended) = self.ended.take() {
            ended(how);
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
        match &mut this.content {
            Content::Nothing | Content::Announced(_) | Content::Cut => Poll::Ready(None),
            Content::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
                if bytes.is_empty() {
                    this.content = Content::Nothing;
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Content::Streamed(stream) => {
                let frame = ready!(stream.as_mut().poll_frame(context));
                match &frame {
                    Some(Err(Cut)) => this.content = Content::Cut,
                    Some(Ok(_)) if !stream.is_end_stream() => {}
                    Some(Ok(_)) | None => this.content = Content::Nothing,
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Nothing => true,
            Content::Announced(_) | Content::Whole(_) | Content::Cut => false,
            Content::Streamed(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Nothing | Content::Cut => SizeHint::with_exact(0),
            Content::Announced(length) => SizeHint::with_exact(*length),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Streamed(stream) => stream.size_hint(),
        }
    }
}

/// Follows the body of a response for the connection that sends it.
pub(super) trait Follow: Unpin {
    /// Keeps the last byte of a body until the connection has room for all bytes before it. Otherwise HTTP/2 takes a whole
    /// piece once the caller's window has a single byte, and forgets the request.
    const IN_FULL: bool = false;
    /// Ready when the connection may be given another piece.
    fn poll_room(&self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
    /// The connection was given a piece of this many bytes.
    fn given(&self, _bytes: usize) {}
}

/// A body that is followed.
pub(super) struct Followed<F> {
    body: ResponseBody,
    /// The last byte of the body, where all before it has been passed on.
    last: Bytes,
    follower: F,
}

impl<F: Follow> Body for Followed<F> {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        ready!(this.follower.poll_room(context));
        if !this.last.is_empty() {
            let last = std::mem::take(&mut this.last);
            this.follower.given(last.len());
            return Poll::Ready(Some(Ok(Frame::data(last))));
        }
        let mut frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let data = frame
            .as_mut()
            .and_then(|frame| frame.as_mut().ok()?.data_mut());
        let bytes = data.as_ref().map_or(0, |data| data.len());
        if let Some(data) = data
            && F::IN_FULL
            && bytes >= LARGE_PIECE
            && this.body.is_end_stream()
        {
            this.last = data.split_off(bytes - 1);
        }
        this.follower.given(bytes);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<F> Drop for Followed<F> {
    fn drop(&mut self) {
        if !self.last.is_empty() {
            self.body.content = Content::Whole(std::mem::take(&mut self.last));
        }
    }
}
