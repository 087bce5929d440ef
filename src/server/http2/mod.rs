//! One caller's HTTP/2 connection (RFC 9113): its requests run beside each other, each like one on a connection of its
//! own, and what a caller can do to the connection itself is bounded.

#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod request;

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{Builder, SendResponse},
};
use http::{Method, Request};
use tokio::{
    task::spawn_local,
    time::{Instant, timeout},
};

use self::guard::{Guarded, Watch};
use super::connection::{Connection, Handler, Limits, Open};
use crate::transport::{
    deadline::Deadline, http2::Http2Stream, input::Input, peer::Peer, stream::Stream,
};

pub use self::guard::PREFACE;

/// Of all bodies on a connection together so much may be on its way to us and not yet passed on, in bytes.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Of one body.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Of one answer so much waits for the connection to take it.
const SEND_BUFFER: usize = 64 * 1024;
/// How long the last frames of an ending connection may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The requests under way on a connection.
#[derive(Debug, Default)]
struct Active {
    count: Cell<usize>,
    /// Wakes the connection when one ends, since only then it may be idle.
    waker: RefCell<Option<Waker>>,
}

struct UnderWay(Rc<Active>);

impl UnderWay {
    fn begin(active: &Rc<Active>) -> Self {
        active.count.set(active.count.get() + 1);
        Self(Rc::clone(active))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

/// What a connection has to do next.
enum Event {
    Request(Box<(Request<RecvStream>, SendResponse<Bytes>)>),
    /// It is over.
    Closed,
    /// It takes no more requests and ends with those under way.
    Retire,
    /// It ends now.
    Abandon(&'static str),
}

/// Serves the requests of a connection, of which `before` has been read already, until it ends.
pub async fn serve<H: Handler + 'static>(
    stream: Stream,
    before: Input,
    peer: Peer,
    handler: Rc<H>,
) {
    let limits = handler.limits();
    let Some(streams) = limits.streams else {
        return;
    };
    let _open = Open::new(&*handler);
    let watch = Rc::new(Watch::default());
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(streams.get())
        .max_header_list_size(u32::try_from(limits.head.head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER);
    let guarded = Guarded::new(stream, before, Rc::clone(&watch));
    let Ok(Ok(mut connection)) = timeout(limits.head_timeout, builder.handshake(guarded)).await
    else {
        return;
    };

    let active = Rc::new(Active::default());
    let mut waits = Waits::new();
    let mut drained = pin!(handler.drained());
    loop {
        let event = poll_fn(|context| {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok(accepted))) => {
                    return Poll::Ready(Event::Request(Box::new(accepted)));
                }
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(%error, "an HTTP/2 connection broke off");
                    return Poll::Ready(Event::Closed);
                }
                Poll::Ready(None) => return Poll::Ready(Event::Closed),
                Poll::Pending => {}
            }
            *active.waker.borrow_mut() = Some(context.waker().clone());
            if watch.is_flooded() {
                return Poll::Ready(Event::Abandon("too many frames that ask for nothing"));
            }
            if !waits.retiring
                && (drained.as_mut().poll(context).is_ready() || handler.is_draining())
            {
                return Poll::Ready(Event::Retire);
            }
            waits.poll(context, &handler.limits(), &watch, active.count.get())
        })
        .await;
        match event {
            Event::Request(accepted) => {
                let (request, response) = *accepted;
                waits.begun = true;
                let under_way = UnderWay::begin(&active);
                let handler = Rc::clone(&handler);
                spawn_local(async move {
                    answer(request, response, peer, &*handler).await;
                    drop(under_way);
                });
            }
            Event::Retire => {
                waits.retiring = true;
                connection.graceful_shutdown();
            }
            Event::Abandon(reason) => {
                tracing::debug!(reason, "an HTTP/2 connection is ended");
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                let farewell = poll_fn(|context| connection.poll_closed(context));
                let _ = timeout(FAREWELL, farewell).await;
                return;
            }
            Event::Closed => return,
        }
    }
}

/// The deadlines of the connection itself; those of a request's own waits are with the request.
struct Waits {
    deadline: Deadline,
    idle_since: Option<Instant>,
    /// A request has come.
    begun: bool,
    retiring: bool,
}

impl Waits {
    fn new() -> Self {
        Self {
            deadline: Deadline::default(),
            idle_since: None,
            begun: false,
            retiring: false,
        }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        limits: &Limits,
        watch: &Watch,
        active: usize,
    ) -> Poll<Event> {
        let idle_limit = match (self.retiring, self.begun) {
            (true, _) => FAREWELL,
            (false, true) => limits.idle_timeout,
            (false, false) => limits.head_timeout,
        };
        let idle_until = if active == 0 {
            let since = *self.idle_since.get_or_insert_with(Instant::now);
            Some(since + idle_limit)
        } else {
            self.idle_since = None;
            None
        };
        let unfinished_until = watch
            .unfinished_since()
            .map(|since| since + limits.head_timeout);
        let Some(at) = [idle_until, unfinished_until].into_iter().flatten().min() else {
            return Poll::Pending;
        };
        self.deadline.set_at(at);
        if self.deadline.poll(context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(if unfinished_until == Some(at) {
            Event::Abandon("a frame took too long")
        } else if self.retiring {
            Event::Closed
        } else {
            self.idle_since = None;
            Event::Retire
        })
    }
}

/// Serves one request.
async fn answer<H: Handler>(
    request: Request<RecvStream>,
    response: SendResponse<Bytes>,
    peer: Peer,
    handler: &H,
) {
    let (parts, body) = request.into_parts();
    let head = request::head(&parts);
    let stream = Http2Stream::new(body, response, parts.method == Method::HEAD);
    drop(parts);
    Connection::new(Stream::Http2(Box::new(stream)), peer, handler.limits())
        .serve_stream(handler, head)
        .await;
}
