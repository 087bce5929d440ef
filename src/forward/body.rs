//! Bodies on their way: the request's to the API, and the response's from it.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{
    pool::{Lease, Pool},
    response::drop_fields,
};
use crate::server::{
    caller::{Caller, Upload, UploadError},
    request::RequestBody,
    response::{Cut, PIECE_BYTES},
};

/// The body of a request to the API.
#[derive(Default)]
pub enum UpstreamBody {
    /// None.
    #[default]
    Empty,
    /// One that was held back until it was proved.
    Held(Bytes),
    /// One that goes on while it arrives.
    Streamed(RequestBody),
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Held(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
                if bytes.is_empty() {
                    *this = Self::Empty;
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Self::Streamed(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Held(bytes) => bytes.is_empty(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Held(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streamed(body) => body.size_hint(),
        }
    }
}

/// The body of a response of the API. At its end it gives the connection back to its pool.
pub struct Download {
    incoming: Incoming,
    lease: Option<Lease>,
    pool: Rc<Pool>,
    caller: Rc<Caller>,
    waiting_since: Option<Instant>,
}

impl Download {
    /// The body that comes by `lease`.
    #[must_use]
    pub fn new(incoming: Incoming, lease: Lease, pool: Rc<Pool>, caller: Rc<Caller>) -> Self {
        Self {
            incoming,
            lease: Some(lease),
            pool,
            caller,
            waiting_since: None,
        }
    }

    fn poll_whole(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) else {
            let since = *self.waiting_since.get_or_insert_with(Instant::now);
            let until = since + self.caller.limits().body_timeout;
            ready!(self.caller.poll_deadline(context, until));
            tracing::warn!("upstream stalled mid-response");
            return Poll::Ready(Some(Err(Cut)));
        };
        self.waiting_since = None;
        match frame {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    drop_fields(trailers);
                }
                if self.incoming.is_end_stream() {
                    self.give_back();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.give_back();
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "upstream closed the connection mid-response");
                Poll::Ready(Some(Err(Cut)))
            }
        }
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take()
            && self.caller.upload() == Upload::Done
        {
            self.pool.give_back(lease);
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        self.get_mut().poll_whole(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
