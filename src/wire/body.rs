//! A body in either direction.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A whole body is passed on in pieces of this many bytes: hyper takes a piece before it knows whether the connection has
/// room for it, and over HTTP/1.1 copies it.
const PIECE_BYTES: usize = 16 * 1024;

/// A body in either direction.
#[derive(Default)]
pub enum Pieces<S> {
    /// Nothing, or nothing more.
    #[default]
    Empty,
    /// Bytes that are there as a whole, or the rest of them.
    Whole(Bytes),
    /// Bytes that go on while they arrive.
    Streamed(S),
}

impl<S: Body<Data = Bytes> + Unpin> Body for Pieces<S> {
    type Data = Bytes;
    type Error = S::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, S::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
                if bytes.is_empty() {
                    *this = Self::Empty;
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Self::Streamed(stream) => Pin::new(stream).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Streamed(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streamed(stream) => stream.size_hint(),
        }
    }
}
