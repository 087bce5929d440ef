//! One caller's HTTP/2 connection (RFC 9113): hyper serves its requests concurrently, and what a caller can do to the
//! connection itself is bounded here.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    num::NonZeroU32,
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
    caller::Caller,
    connection::Handler,
    deadline::{Deadline, Elapsed},
    guard::Frames,
    request::RequestBody,
    response::{Follow, Gone},
    wire::{Watch, Wire},
};
use crate::peer::Peer;

/// Bytes of all bodies of a connection together that may be on their way to us and not yet be passed on.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The same, of one body.
const STREAM_WINDOW: u32 = 256 * 1024;
/// h2 buffers this many bytes of one response, and one piece more.
const SEND_BUFFER: usize = 32 * 1024;
/// Bytes of all responses of a connection together that h2 is given before what it may send has left.
const UNSENT_BYTES: usize = 256 * 1024;
/// How long the last frames of an ending connection may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests of a connection that are being served.
#[derive(Default)]
struct Streams {
    /// A request has come.
    begun: Cell<bool>,
    count: Cell<usize>,
    /// Wakes the connection when one ends, since it may be idle then.
    waker: RefCell<Option<Waker>>,
    /// The request that hyper executes next.
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

/// The progress of a response.
#[derive(Default)]
struct Progress {
    /// When hyper was given the last piece, if it has not asked for another since.
    given_at: Cell<Option<Instant>>,
}

/// A request that is being served, and its response.
struct Stream {
    streams: Rc<Streams>,
    progress: Rc<Progress>,
    watch: Rc<Watch>,
}

impl Stream {
    fn begin(streams: &Rc<Streams>, watch: &Rc<Watch>) -> Self {
        let progress = Rc::<Progress>::default();
        streams.begun.set(true);
        streams.count.set(streams.count.get() + 1);
        streams.next.replace(Some(Rc::clone(&progress)));
        Self {
            streams: Rc::clone(streams),
            progress,
            watch: Rc::clone(watch),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.streams.count.set(self.streams.count.get() - 1);
        self.streams.wake_connection();
    }
}

impl Follow for Stream {
    const IN_FULL: bool = true;

    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.progress.given_at.set(None);
        if self.watch.blocked_since().is_none() && self.streams.unsent.get() < UNSENT_BYTES {
            return Poll::Ready(());
        }
        let mut waiting = self.streams.waiting.borrow_mut();
        waiting.push(context.waker().clone());
        // Pieces that wait for the caller's window do not wake it.
        self.streams.wake_connection();
        Poll::Pending
    }

    fn given(&self, bytes: usize) {
        self.streams.unsent.set(self.streams.unsent.get() + bytes);
        self.progress.given_at.set(Some(Instant::now()));
    }
}

/// Runs hyper's task of each request, and ends it when its caller does not read the response.
#[derive(Clone)]
struct Exec {
    streams: Rc<Streams>,
    timeout: Duration,
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Exec {
    fn execute(&self, stream: F) {
        let progress = self.streams.next.take().unwrap_or_default();
        let timeout = self.timeout;
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
                deadline.set_at(given_at + timeout);
                deadline.poll(context).map(|Elapsed| ())
            })
            .await;
        });
    }
}

/// Why the connection itself ends.
enum End {
    /// It is over.
    Closed,
    /// It takes no more requests, and ends after those that are being served.
    Draining,
    /// It ends now.
    Abandoned(&'static str),
}

/// Serves the requests of a connection until it ends.
pub(super) async fn serve<H: Handler>(mut wire: Wire, peer: Peer, handler: Rc<H>) {
    let limits = handler.limits();
    let streams = Rc::new(Streams::default());
    let mut waits = Waits {
        handler: &*handler,
        streams: &streams,
        frames: wire.count_frames(),
        watch: wire.watch(),
        deadline: Deadline::default(),
        idle_since: None,
        draining: false,
    };
    let watch = wire.watch();
    let service = service_fn(|request: Request<Incoming>| {
        let stream = Stream::begin(&streams, &watch);
        let caller = Rc::new(Caller::new(peer, limits));
        caller.begin(handler.limits(), !request.body().is_end_stream());
        let request = request.map(|incoming| RequestBody::new(incoming, caller));
        let handler = Rc::clone(&handler);
        Box::pin(async move {
            let response = handler.answer(request).await?;
            Ok::<_, Gone>(response.map(|body| body.followed_by(stream)))
        })
    });
    let exec = Exec {
        streams: Rc::clone(&streams),
        timeout: limits.body_timeout,
    };
    let mut builder = http2::Builder::new(exec);
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(limits.streams.map_or(0, NonZeroU32::get))
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(wire), service));
    let mut draining = pin!(handler.draining());
    loop {
        let end = poll_fn(|context| {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(match ended {
                    Ok(()) => End::Closed,
                    Err(error) => {
                        tracing::debug!(%error, "an HTTP/2 connection failed");
                        End::Closed
                    }
                });
            }
            if !waits.draining && draining.as_mut().poll(context).is_ready() {
                return Poll::Ready(End::Draining);
            }
            waits.poll(context)
        })
        .await;
        match end {
            End::Draining => {
                waits.draining = true;
                connection.as_mut().graceful_shutdown();
            }
            End::Abandoned(reason) => {
                tracing::debug!(reason, "an HTTP/2 connection is closed");
                return;
            }
            End::Closed => return,
        }
    }
}

/// The deadlines of the connection itself; the waits of a request have their own.
struct Waits<'c, H> {
    handler: &'c H,
    streams: &'c Streams,
    frames: Rc<Frames>,
    watch: Rc<Watch>,
    deadline: Deadline,
    idle_since: Option<Instant>,
    draining: bool,
}

impl<H: Handler> Waits<'_, H> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        *self.streams.waker.borrow_mut() = Some(context.waker().clone());
        let limits = self.handler.limits();
        let blocked_since = self.watch.blocked_since();
        if blocked_since.is_none() {
            self.streams.sent();
        }
        let idle_limit = match (self.draining, self.streams.begun.get()) {
            (true, _) => SHUTDOWN_TIMEOUT,
            (false, true) => limits.idle_timeout,
            (false, false) => limits.head_timeout,
        };
        self.idle_since = match self.streams.count.get() {
            0 => self.idle_since.or_else(|| Some(Instant::now())),
            _ => None,
        };
        let idle = self.idle_since.map(|since| since + idle_limit);
        let unfinished = self.frames.unfinished_since();
        let unfinished = unfinished.map(|since| since + limits.head_timeout);
        let blocked = blocked_since.map(|since| since + limits.body_timeout);
        let Some(at) = [idle, unfinished, blocked].into_iter().flatten().min() else {
            return Poll::Pending;
        };
        self.deadline.set_at(at);
        self.deadline.poll(context).map(|Elapsed| {
            if unfinished == Some(at) {
                End::Abandoned("a frame took too long")
            } else if blocked == Some(at) {
                End::Abandoned("the caller does not read")
            } else if self.draining {
                End::Closed
            } else {
                self.idle_since = None;
                End::Draining
            }
        })
    }
}
