//! The body of a response of the API, and the return of its connection to the pool.

use std::{
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Response, StatusCode, header, response::Parts};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::{
    request::forward::{
        pool::{Lease, Pool},
        response::drop_fields,
    },
    wire::server::{
        caller::stream::{CallerStream, Upload},
        response::{Cut, ResponseBody},
    },
};

/// The response with its body, if it has one, which ends where the API is silent for `silence_timeout`; the connection goes
/// back to its pool where nothing more is to come.
pub fn with_body(
    parts: Parts,
    method: &Method,
    incoming: Incoming,
    lease: Lease,
    pool: &Rc<Pool>,
    caller: &Rc<CallerStream>,
    silence_timeout: Duration,
) -> Response<ResponseBody> {
    let body = if incoming.is_end_stream() {
        if caller.upload() == Upload::Done {
            pool.give_back(lease);
        }
        let announces = *method == Method::HEAD || parts.status == StatusCode::NOT_MODIFIED;
        let length = || {
            parts
                .headers
                .get(header::CONTENT_LENGTH)?
                .to_str()
                .ok()?
                .parse()
                .ok()
        };
        match announces.then(length).flatten() {
            Some(length) => ResponseBody::announced(length),
            None => ResponseBody::none(),
        }
    } else {
        ResponseBody::streamed(Box::pin(Download {
            incoming,
            lease: Some(lease),
            pool: Rc::clone(pool),
            caller: Rc::clone(caller),
            silence_timeout,
            waiting_since: None,
        }))
    };
    Response::from_parts(parts, body)
}

/// The body of a response of the API. At its end it gives the connection back to its pool.
struct Download {
    incoming: Incoming,
    lease: Option<Lease>,
    pool: Rc<Pool>,
    caller: Rc<CallerStream>,
    silence_timeout: Duration,
    waiting_since: Option<Instant>,
}

impl Body for Download {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(context) else {
            let since = *this.waiting_since.get_or_insert_with(Instant::now);
            let until = since + this.silence_timeout;
            ready!(this.caller.poll_deadline(context, until));
            return Poll::Ready(Some(Err(Cut::Silent(this.silence_timeout))));
        };
        this.waiting_since = None;
        let frame = frame.transpose().map_err(|error| {
            tracing::warn!(%error, "upstream closed the connection mid-response");
            Cut::Broken
        });
        Poll::Ready(
            frame
                .map(|mut frame| {
                    if let Some(trailers) = frame.as_mut().and_then(Frame::trailers_mut) {
                        drop_fields(trailers);
                    }
                    if (frame.is_none() || this.incoming.is_end_stream())
                        && this.caller.upload() == Upload::Done
                        && let Some(lease) = this.lease.take()
                    {
                        this.pool.give_back(lease);
                    }
                    frame
                })
                .transpose(),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
