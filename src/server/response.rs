//! The body of a response, and who is told how it ended.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;

/// The body cannot be sent whole; the caller must see that.
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
    /// Whoever made it broke off.
    Cut,
    /// The caller went away or read too slowly.
    CallerGone,
}

/// A body that is made while it is sent.
pub type Stream = Pin<Box<dyn Body<Data = Bytes, Error = Cut>>>;

enum Content {
    Nothing,
    /// The length that HEAD or 304 tells without sending it (RFC 9110 §8.6), in bytes.
    Announced(u64),
    Whole(Bytes),
    Streamed(Stream),
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

    /// No body where one of so many bytes is announced: for HEAD and 304.
    #[must_use]
    pub const fn announced(bytes: u64) -> Self {
        Self::of(Content::Announced(bytes))
    }

    /// A body that is there.
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

    /// Calls `ended` once, when the body has been taken or is dropped.
    #[must_use]
    pub fn when_ended(mut self, ended: impl FnOnce(BodyEnd) + 'static) -> Self {
        self.ended = Some(Box::new(ended));
        self
    }

    /// Has `follower` told how the body goes, and kept until it is over.
    pub(super) const fn followed_by<F: Follow>(self, follower: F) -> Followed<F> {
        Followed {
            body: self,
            follower,
        }
    }

    fn end(&mut self, how: BodyEnd) {
        self.content = Content::Nothing;
        if let Some(ended) = self.ended.take() {
            ended(how);
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // hyper never polls a body that is empty from the beginning.
        let how = match self.content {
            Content::Nothing | Content::Announced(_) => BodyEnd::Whole,
            Content::Whole(_) | Content::Streamed(_) => BodyEnd::CallerGone,
        };
        self.end(how);
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
            Content::Nothing | Content::Announced(_) => {
                this.end(BodyEnd::Whole);
                Poll::Ready(None)
            }
            Content::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                this.end(BodyEnd::Whole);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Content::Streamed(stream) => {
                let frame = stream.as_mut().poll_frame(context);
                let ended = match &frame {
                    Poll::Ready(Some(Ok(_))) if stream.is_end_stream() => Some(BodyEnd::Whole),
                    Poll::Ready(None) => Some(BodyEnd::Whole),
                    Poll::Ready(Some(Err(Cut))) => Some(BodyEnd::Cut),
                    Poll::Ready(Some(Ok(_))) | Poll::Pending => None,
                };
                if let Some(ended) = ended {
                    this.end(ended);
                }
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Nothing => true,
            Content::Announced(_) | Content::Whole(_) => false,
            Content::Streamed(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Nothing => SizeHint::with_exact(0),
            Content::Announced(length) => SizeHint::with_exact(*length),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Streamed(stream) => stream.size_hint(),
        }
    }
}

/// Follows the body of a response for the connection that sends it.
pub(super) trait Follow: Unpin {
    /// The connection asks for another piece.
    fn asked(&self) {}
    /// It was given one.
    fn given(&self) {}
}

/// A body that is followed.
pub(super) struct Followed<F> {
    body: ResponseBody,
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
        this.follower.asked();
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_ready() {
            this.follower.given();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
