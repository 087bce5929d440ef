//! One caller's HTTP/2 connection (RFC 9113): hyper serves its requests concurrently, and the effects of a caller on
//! the connection itself are bounded here.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    num::NonZeroU32,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{task::spawn_local, time::Instant};

use crate::{
    base::network::peer::Peer,
    wire::{
        frames::Frames,
        server::{
            caller::{
                connection_table::{ConnectionEntry, Stage},
                deadline::Deadline,
                stream::CallerStream,
            },
            handler::Handler,
            request::RequestBody,
            response::{Follow, Gone, ResponseBody},
        },
        watched::{Watch, WatchedStream},
    },
};

/// Bytes of all bodies of a connection together that may be on their way to us and not yet be passed on.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The same, of one body.
const STREAM_WINDOW: u32 = 256 * 1024;
/// h2 buffers this many bytes of one response, and one piece more.
const SEND_BUFFER: usize = 32 * 1024;
/// The most bytes of all responses of a connection that h2 is given before everything that it may send has left.
const UNSENT_BYTES: usize = 256 * 1024;
/// The most bytes of whole bodies of a connection that wait for the caller's window. Further requests wait too.
const WAITING_BYTES: usize = 256 * 1024;
/// The most requests of a connection that wait for that. Further ones get 503.
const WAITING_REQUESTS: usize = 100;
/// A body of at most this many bytes is kept in any case: the response may be one that cannot be asked for again.
const SMALL_BODY: usize = 1024;
/// The time limit of the last frames of an ending connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests of a connection that are being served.
#[derive(Default)]
struct Streams {
    watch: Rc<Watch>,
    entry: Rc<ConnectionEntry>,
    /// A request has come.
    begun: Cell<bool>,
    count: Cell<usize>,
    /// Wakes the connection when one ends, since it may be idle then.
    waker: RefCell<Option<Waker>>,
    /// The request that hyper executes next.
    next: RefCell<Option<Rc<ServedStream>>>,
    /// Bytes of bodies that were given to h2 since all that it may send had left.
    unsent: Cell<usize>,
    /// Bodies that wait until all that h2 may send has left.
    waiting: RefCell<Vec<Waker>>,
    /// Bytes of the whole bodies of responses that may not leave yet.
    buffered: Cell<usize>,
    /// Requests that wait until there are fewer.
    postponed: RefCell<Vec<Waker>>,
}

impl Streams {
    fn begin(self: &Rc<Self>, caller: &Rc<CallerStream>) -> Rc<ServedStream> {
        let stream = Rc::new(ServedStream {
            streams: Rc::clone(self),
            caller: Rc::clone(caller),
            given_at: Cell::new(None),
            waits_for_others: Cell::new(false),
            buffered: Cell::new(0),
        });
        self.begun.set(true);
        self.count.set(self.count.get() + 1);
        self.next.replace(Some(Rc::clone(&stream)));
        stream
    }

    fn wake_connection(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A request that is being served, and its response.
struct ServedStream {
    streams: Rc<Streams>,
    caller: Rc<CallerStream>,
    /// The time at which hyper was given the last piece of the response, if it has not asked for another since.
    given_at: Cell<Option<Instant>>,
    /// Its next piece waits until pieces of other responses have left.
    waits_for_others: Cell<bool>,
    /// Its part of [`Streams::buffered`].
    buffered: Cell<usize>,
}

impl ServedStream {
    /// Waits until the connection may have another response, for as long as a caller may take to read one. `false`: too many
    /// requests wait already.
    async fn may_begin(&self) -> bool {
        let streams = &self.streams;
        poll_fn(|context| {
            let mut postponed = streams.postponed.borrow_mut();
            if streams.buffered.get() < WAITING_BYTES {
                self.given_at.set(None);
                self.caller.proceed();
                return Poll::Ready(true);
            }
            if self.given_at.get().is_none() {
                if postponed.len() >= WAITING_REQUESTS {
                    return Poll::Ready(false);
                }
                let now = Instant::now();
                self.given_at.set(Some(now));
                self.caller.rest(Stage::Waiting, now);
            }
            postponed.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The response as it may wait: without its body if too much is waiting, since other requests were under way.
    fn buffer(self: Rc<Self>, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        let (bytes, buffered) = (
            response.body().unshared_bytes(),
            self.streams.buffered.get(),
        );
        if bytes > SMALL_BODY && buffered >= WAITING_BYTES {
            return unavailable();
        }
        self.buffered.set(bytes);
        self.streams.buffered.set(buffered + bytes);
        response.body_mut().followed_by(self);
        response
    }
}

/// 503 without a body, which no window holds up.
fn unavailable() -> Response<ResponseBody> {
    tracing::debug!("a caller of HTTP/2 does not take its responses");
    let mut response = Response::new(ResponseBody::none());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let fields = response.headers_mut();
    fields.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

impl Drop for ServedStream {
    fn drop(&mut self) {
        let streams = &self.streams;
        self.caller.rest(Stage::Waiting, Instant::now());
        if self.buffered.get() > 0 {
            streams
                .buffered
                .set(streams.buffered.get() - self.buffered.get());
            let postponed = streams.postponed.take();
            postponed.into_iter().for_each(Waker::wake);
        }
        streams.count.set(streams.count.get() - 1);
        streams.wake_connection();
    }
}

impl Follow for ServedStream {
    fn in_full(&self) -> bool {
        true
    }

    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let streams = &self.streams;
        self.given_at.set(None);
        let has_room =
            streams.watch.blocked_since().is_none() && streams.unsent.get() < UNSENT_BYTES;
        self.waits_for_others.set(!has_room);
        if has_room {
            return Poll::Ready(());
        }
        streams.waiting.borrow_mut().push(context.waker().clone());
        // Pieces that wait for the caller's window do not wake it.
        streams.wake_connection();
        Poll::Pending
    }

    fn given(&self, bytes: usize) {
        self.streams.unsent.set(self.streams.unsent.get() + bytes);
        self.given_at.set(Some(Instant::now()));
    }
}

/// Runs hyper's task of each request, and ends it when its caller does not read the response for too long, or where others
/// want its place.
#[derive(Clone)]
struct Exec {
    streams: Rc<Streams>,
    timeout: Duration,
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Exec {
    fn execute(&self, task: F) {
        let stream = self.streams.next.take();
        let timeout = self.timeout;
        spawn_local(async move {
            let mut task = pin!(task);
            let mut deadline = Deadline::default();
            let mut stalls = false;
            poll_fn(|context| {
                if task.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                let Some(stream) = &stream else {
                    return Poll::Pending;
                };
                let given_at = stream.given_at.get();
                if given_at.is_some() || stream.waits_for_others.get() {
                    stalls = true;
                    if stream.caller.wait(context).is_err() {
                        return Poll::Ready(());
                    }
                } else if std::mem::take(&mut stalls) {
                    stream.caller.proceed();
                }
                match given_at {
                    Some(given_at) => deadline.poll(context, given_at + timeout),
                    None => Poll::Pending,
                }
            })
            .await;
        });
    }
}

/// Why the connection itself ends.
enum End {
    /// It no longer takes requests, and ends after those that are being served.
    Draining,
    /// It ends now.
    Now,
}

/// Serves the requests of a connection until it ends.
pub(in crate::wire::server) async fn serve<H: Handler>(
    mut wire: WatchedStream,
    peer: Peer,
    handler: Rc<H>,
    entry: &Rc<ConnectionEntry>,
) {
    let limits = handler.limits();
    let streams = Rc::new(Streams {
        watch: wire.watch(),
        entry: Rc::clone(entry),
        ..Streams::default()
    });
    let mut waits = Waits {
        handler: &*handler,
        streams: &streams,
        frames: wire.count_frames(),
        deadline: Deadline::default(),
        idle_since: None,
        draining: false,
    };
    let service = service_fn(|request: Request<Incoming>| {
        let caller = CallerStream::new(peer, Rc::clone(&limits), Rc::clone(entry));
        let caller = Rc::new(caller);
        let stream = streams.begin(&caller);
        caller.begin(handler.limits(), !request.body().is_end_stream());
        let request = request.map(|incoming| RequestBody::new(incoming, caller));
        let handler = Rc::clone(&handler);
        Box::pin(async move {
            if !stream.may_begin().await {
                return Ok(unavailable());
            }
            let response = handler.answer(request).await?;
            stream.caller.respond();
            Ok::<_, Gone>(stream.buffer(response))
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
                if let Err(error) = ended {
                    tracing::debug!(%error, "an HTTP/2 connection failed");
                }
                return Poll::Ready(End::Now);
            }
            if !waits.draining && draining.as_mut().poll(context).is_ready() {
                return Poll::Ready(End::Draining);
            }
            waits.poll(context)
        });
        match end.await {
            End::Now => return,
            End::Draining => {
                waits.draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The deadlines of the connection itself; the waits of a request have their own.
struct Waits<'c, H> {
    handler: &'c H,
    streams: &'c Streams,
    frames: Rc<Frames>,
    deadline: Deadline,
    idle_since: Option<Instant>,
    draining: bool,
}

impl<H: Handler> Waits<'_, H> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        *self.streams.waker.borrow_mut() = Some(context.waker().clone());
        let limits = self.handler.limits();
        let blocked_since = self.streams.watch.blocked_since();
        if blocked_since.is_none() {
            // All that h2 may send has left.
            self.streams.unsent.set(0);
            self.streams
                .waiting
                .take()
                .into_iter()
                .for_each(Waker::wake);
        }
        let begun = self.streams.begun.get();
        let unfinished_since = self.frames.unfinished_since();
        let idle_limit = match (self.draining, begun) {
            (true, _) => SHUTDOWN_TIMEOUT,
            (false, true) => limits.idle_timeout,
            (false, false) => limits.head_timeout,
        };
        self.idle_since = match (self.streams.count.get(), self.idle_since) {
            (0, None) => {
                let since = Instant::now();
                self.streams.entry.enter(Stage::Idle, since);
                Some(since)
            }
            (0, since) => since,
            _ => None,
        };
        let waits = [
            (self.idle_since, idle_limit, None),
            (
                unfinished_since,
                limits.head_timeout,
                Some("a frame took too long"),
            ),
            (
                blocked_since,
                limits.body_timeout,
                Some("the caller does not read"),
            ),
        ];
        let waits = waits
            .into_iter()
            .filter_map(|(since, limit, reason)| Some((since? + limit, reason)));
        let Some((at, reason)) = waits.min_by_key(|(at, _)| *at) else {
            return Poll::Pending;
        };
        ready!(self.deadline.poll(context, at));
        Poll::Ready(match reason {
            Some(reason) => {
                tracing::debug!(reason, "an HTTP/2 connection is closed");
                End::Now
            }
            // The head of the first request is not whole: there is nothing to finish.
            None if self.draining || !begun && unfinished_since.is_some() => End::Now,
            None => {
                self.idle_since = None;
                End::Draining
            }
        })
    }
}
