//! One caller's HTTP/2 connection (RFC 9113): hyper serves its requests beside each other, and what a caller can do to the
//! connection itself is bounded here.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Request;
use http_body::Body as _;
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{task::spawn_local, time::Instant};

use super::{
    caller::{Caller, Limits},
    connection::Handler,
    deadline::{Deadline, Elapsed},
    guard::{Frames, Guarded},
    request::RequestBody,
    response::{Follow, Gone},
    wire::{Watch, Wire},
};
use crate::peer::Peer;

/// Of all bodies on a connection together so much may be on its way to us and not yet passed on, in bytes.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Of one body.
const STREAM_WINDOW: u32 = 256 * 1024;
/// h2 buffers at most this much of one response, in bytes, and one piece more.
const SEND_BUFFER: usize = 32 * 1024;
/// All responses of a connection together may be given to h2 up to this many bytes before what it may send has left.
const UNSENT_BYTES: usize = 256 * 1024;
/// How long the last frames of an ending connection may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The requests under way on a connection.
#[derive(Default)]
struct Streams {
    count: Cell<usize>,
    /// Wakes the connection when one ends, since only then it may be idle.
    waker: RefCell<Option<Waker>>,
    /// The request that hyper is about to have executed.
    next: RefCell<Option<Rc<Progress>>>,
    /// Bytes of bodies that were given to h2 since all that it may send had left.
    unsent: Cell<usize>,
    /// Bodies that wait until it has.
    waiting: RefCell<Vec<Waker>>,
}

impl Streams {
    fn wake_connection(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// All that h2 may send has left.
    fn sent(&self) {
        self.unsent.set(0);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }
}

/// How far the response of a stream has come.
#[derive(Default)]
struct Progress {
    /// When hyper was given the last piece, if it has not come back for another.
    given_at: Cell<Option<Instant>>,
}

/// A request that is being served.
struct StreamGuard(Rc<Streams>);

impl StreamGuard {
    fn begin(streams: &Rc<Streams>) -> Self {
        streams.count.set(streams.count.get() + 1);
        Self(Rc::clone(streams))
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        self.0.wake_connection();
    }
}

/// Follows the response of a stream, and keeps its request under way.
struct Following {
    progress: Rc<Progress>,
    watch: Rc<Watch>,
    under_way: StreamGuard,
}

impl Follow for Following {
    const IN_FULL: bool = true;

    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.progress.given_at.set(None);
        let streams = &self.under_way.0;
        if self.watch.blocked_since().is_none() && streams.unsent.get() < UNSENT_BYTES {
            return Poll::Ready(());
        }
        streams.waiting.borrow_mut().push(context.waker().clone());
        // Pieces that wait for the caller's window do not wake it.
        streams.wake_connection();
        Poll::Pending
    }

    fn given(&self, bytes: usize) {
        let streams = &self.under_way.0;
        streams.unsent.set(streams.unsent.get() + bytes);
        self.progress.given_at.set(Some(Instant::now()));
    }
}

/// Runs what hyper makes of a request, and ends it where its caller takes nothing of the response for too long.
#[derive(Clone)]
struct Exec {
    streams: Rc<Streams>,
    patience: Duration,
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Exec {
    fn execute(&self, stream: F) {
        let progress = self.streams.next.take().unwrap_or_default();
        let patience = self.patience;
        spawn_local(async move {
            let mut stream = pin!(stream);
            let mut deadline = Deadline::default();
            poll_fn(|context| {
                if stream.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                let Some(given_at) = progress.given_at.get() else {
                    return Poll::Pending;
                };
                deadline.set_at(given_at + patience);
                deadline.poll(context).map(|Elapsed| ())
            })
            .await;
        });
    }
}

/// What a connection has to do next.
enum Event {
    /// It is over.
    Closed,
    /// It takes no more requests and ends with those under way.
    Retire,
    /// It ends now.
    Abandon(&'static str),
}

/// Serves the requests of a connection until it ends.
pub(super) async fn serve<H: Handler>(wire: Wire, peer: Peer, handler: Rc<H>) {
    let limits = handler.limits();
    let Some(most) = limits.streams else {
        return;
    };
    let watch = wire.watch();
    let frames = Rc::new(Frames::default());
    let streams = Rc::new(Streams::default());
    let begun = Rc::new(Cell::new(false));
    let service = service_fn(|request: Request<Incoming>| {
        begun.set(true);
        let under_way = StreamGuard::begin(&streams);
        let progress = Rc::new(Progress::default());
        streams.next.replace(Some(Rc::clone(&progress)));
        let caller = Rc::new(Caller::new(peer, limits));
        caller.begin(handler.limits(), !request.body().is_end_stream());
        let request = request.map(|incoming| RequestBody::new(incoming, caller));
        let (handler, watch) = (Rc::clone(&handler), Rc::clone(&watch));
        Box::pin(async move {
            let response = handler.answer(request).await?;
            Ok::<_, Gone>(response.map(|body| {
                body.followed_by(Following {
                    progress,
                    watch,
                    under_way,
                })
            }))
        })
    });
    let exec = Exec {
        streams: Rc::clone(&streams),
        patience: limits.body_timeout,
    };
    let mut builder = http2::Builder::new(exec);
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(most.get())
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER);
    let guarded = TokioIo::new(Guarded::new(wire, Rc::clone(&frames)));
    let mut connection = pin!(builder.serve_connection(guarded, service));
    let mut waits = Waits::new();
    let mut drained = pin!(handler.drained());
    loop {
        let event = poll_fn(|context| {
            match connection.as_mut().poll(context) {
                Poll::Ready(Ok(())) => return Poll::Ready(Event::Closed),
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "an HTTP/2 connection broke off");
                    return Poll::Ready(Event::Closed);
                }
                Poll::Pending => {}
            }
            *streams.waker.borrow_mut() = Some(context.waker().clone());
            if watch.blocked_since().is_none() {
                streams.sent();
            }
            if frames.is_flooded() {
                return Poll::Ready(Event::Abandon("too many frames that ask for nothing"));
            }
            if !waits.retiring
                && (drained.as_mut().poll(context).is_ready() || handler.is_draining())
            {
                return Poll::Ready(Event::Retire);
            }
            waits.begun = begun.get();
            waits.poll(
                context,
                &handler.limits(),
                &frames,
                &watch,
                streams.count.get(),
            )
        })
        .await;
        match event {
            Event::Retire => {
                waits.retiring = true;
                connection.as_mut().graceful_shutdown();
            }
            Event::Abandon(reason) => {
                tracing::debug!(reason, "an HTTP/2 connection is closed");
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
        frames: &Frames,
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
        let unfinished_until = frames
            .unfinished_since()
            .map(|since| since + limits.head_timeout);
        let blocked_until = watch
            .blocked_since()
            .map(|since| since + limits.body_timeout);
        let waits = [idle_until, unfinished_until, blocked_until];
        let Some(at) = waits.into_iter().flatten().min() else {
            return Poll::Pending;
        };
        self.deadline.set_at(at);
        if self.deadline.poll(context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(if unfinished_until == Some(at) {
            Event::Abandon("a frame took too long")
        } else if blocked_until == Some(at) {
            Event::Abandon("the caller takes nothing")
        } else if self.retiring {
            Event::Closed
        } else {
            self.idle_since = None;
            Event::Retire
        })
    }
}
