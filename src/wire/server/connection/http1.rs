//! One caller's HTTP/1.1 connection: hyper reads requests and writes responses, and each wait has a deadline here.

use std::{
    cell::Cell,
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Version, header};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncWrite as _, AsyncWriteExt as _},
    time::{Instant, timeout},
};

use crate::{
    base::{memory, network::peer::Peer},
    wire::{
        server::{
            caller::{
                connection_table::{ConnectionEntry, Stage, Work},
                stream::{CallerStream, HeaderCase, Limits, Upload},
            },
            handler::{Handler, LAST_REQUEST},
            request::RequestBody,
            response::{Follow, Gone},
        },
        stream::Unread,
        watched::{LINGER, Watch, WatchedStream},
    },
};

/// Idle time after which a connection releases its buffers. Callers that send one request after the other keep them; those
/// that come back later pay for new ones.
const PARK_AFTER: Duration = Duration::from_millis(500);

/// hyper's read and write buffer size, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// hyper parses heads of up to this many fields on the stack.
const STACK_FIELDS: usize = 100;

/// The response to a head that took too long; hyper has none.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The state of a connection over HTTP/1.1.
#[derive(Clone, Copy)]
enum State {
    /// It waits for a request; `arrived` bytes had arrived before. After a while it is parked: its buffers are released,
    /// and only its socket is watched.
    Idle {
        since: Instant,
        arrived: u64,
        is_first: bool,
    },
    /// A head has begun to arrive.
    Reading { since: Instant },
    /// A request is being served; its own waits have deadlines of their own. `is_watched`: the caller's end is looked for
    /// here, and not by hyper.
    Serving { is_watched: bool },
    /// hyper has the whole response, and may not have written all of it. `since` is set until it turns out that it has not.
    Served { since: Option<Instant> },
}

/// The state, which hyper's calls change.
struct Shared {
    state: Cell<State>,
    watch: Rc<Watch>,
}

impl Follow for Shared {
    fn dropped(&self, at: Option<Instant>) {
        self.state.set(State::Served { since: at });
        self.watch.expect_request();
    }
}

/// Why hyper stops serving a connection.
enum End {
    /// hyper itself ended it.
    Hyper(hyper::Result<()>),
    /// No request came.
    Idle,
    /// A head took too long.
    HeadTooSlow,
    /// The caller does not read its response.
    Stalled,
    /// The caller has ended its half while its request is being served.
    Gone,
    /// Requests are no longer taken.
    Left,
    /// It does not end: its buffers are released until more arrives.
    Parked,
}

/// The progress of a connection, and the deadline of each state.
struct Progress<'c, H> {
    handler: &'c H,
    caller: &'c CallerStream,
    entry: &'c ConnectionEntry,
    shared: Rc<Shared>,
    draining_since: Option<Instant>,
    /// The caller does not take the response to a call without proof.
    stalls: bool,
}

impl<H: Handler> Progress<'_, H> {
    /// Ready when the connection has been in its state for too long. Call it after the connection has been polled.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        draining: Pin<&mut impl Future<Output = ()>>,
        may_park: bool,
    ) -> Poll<End> {
        let state = self.shared.state.get();
        if matches!(state, State::Serving { is_watched: true })
            && self.caller.upload() == Upload::Done
            && let Poll::Ready(arrived) = self.shared.watch.poll_unread(context)
        {
            if arrived == Unread::End {
                return Poll::Ready(End::Gone);
            }
            // The next request has begun to arrive: the end comes after it. One that came together with this request is in
            // hyper's buffer and not seen here: the caller's end ends both.
            self.shared.state.set(State::Serving { is_watched: false });
        }
        let is_blocked = self.shared.watch.blocked_since().is_some();
        if is_blocked && matches!(state, State::Serving { .. }) {
            self.stalls = true;
            if self.caller.wait(context).is_err() {
                return Poll::Ready(End::Stalled);
            }
        } else if std::mem::take(&mut self.stalls) {
            self.caller.proceed();
        }
        if !matches!(state, State::Serving { .. }) && !is_blocked {
            if self.draining_since.is_none() && draining.poll(context).is_ready() {
                self.draining_since = Some(Instant::now());
            }
            let arrived = self.shared.watch.arrived();
            match state {
                State::Served { since } => {
                    let since = since.unwrap_or_else(Instant::now);
                    self.caller.rest(Stage::Idle, since);
                    self.shared.state.set(State::Idle {
                        since,
                        arrived,
                        is_first: false,
                    });
                }
                State::Idle {
                    arrived: before, ..
                } if arrived > before => self.reads(),
                _ => {}
            }
        } else if matches!(state, State::Served { .. }) {
            self.shared.state.set(State::Served { since: None });
        }
        match self.deadline(may_park) {
            Some((at, end)) => self.caller.poll_deadline(context, at).map(|()| end),
            None => Poll::Pending,
        }
    }

    /// A head has just begun to arrive.
    fn reads(&self) {
        self.entry.enter(Stage::Arriving, Instant::now());
        self.shared.state.set(State::Reading {
            since: Instant::now(),
        });
    }

    /// The deadline of the state, and the end of the connection at the deadline.
    fn deadline(&self, may_park: bool) -> Option<(Instant, End)> {
        let limits = self.caller.limits();
        if let Some(since) = self.shared.watch.blocked_since() {
            return Some((since + limits.body_timeout, End::Stalled));
        }
        let may_park = may_park
            && limits.idle_timeout > PARK_AFTER
            && self.draining_since.is_none()
            && self.shared.watch.is_at_rest();
        let (since, limit, end) = match self.shared.state.get() {
            State::Serving { .. } | State::Served { .. } => return None,
            State::Reading { since } => (since, limits.head_timeout, End::HeadTooSlow),
            State::Idle {
                since,
                is_first: true,
                ..
            } => (since, limits.head_timeout, End::Idle),
            State::Idle { since, .. } if may_park => (since, PARK_AFTER, End::Parked),
            State::Idle { since, .. } => (since, limits.idle_timeout, End::Idle),
        };
        Some(match self.draining_since {
            Some(draining) if self.handler.is_leaving() => (draining, End::Left),
            // The caller can send the request elsewhere: no response is sent.
            Some(draining) => (draining.max(since) + limit.min(LAST_REQUEST), End::Idle),
            None => (since + limit, end),
        })
    }
}

/// Serves the requests of a connection, which began at `since`, until it ends.
pub(in crate::wire::server) async fn serve<H: Handler>(
    mut wire: WatchedStream,
    peer: Peer,
    since: Instant,
    handler: Rc<H>,
    entry: &Rc<ConnectionEntry>,
) {
    let caller = CallerStream::new(peer, handler.limits(), Rc::clone(entry));
    let caller = Rc::new(caller);
    let is_plain = wire.is_plain();
    let watch = wire.watch();
    watch.expect_request();
    let shared = Rc::new(Shared {
        state: Cell::new(State::Idle {
            since,
            arrived: 0,
            is_first: true,
        }),
        watch: Rc::clone(&watch),
    });
    let service = |mut request: Request<Incoming>| {
        let raw_target = watch.take_raw_target();
        let restored = raw_target.map_or(Ok(()), |it| it.restore(request.uri_mut()));
        shared.state.set(State::Serving {
            is_watched: is_plain,
        });
        let shared = Rc::clone(&shared);
        caller.begin(handler.limits(), !request.body().is_end_stream());
        let caller = Rc::clone(&caller);
        let request = request.map(|incoming| RequestBody::new(incoming, Rc::clone(&caller)));
        let is_old = request.version() == Version::HTTP_10;
        let handler = Rc::clone(&handler);
        // In a box of its own: hyper copies the future into a box of the connection, whose memory has left the processor's
        // caches. The box is made first: `Box::pin` copies what it gets.
        let answering = Box::write(Box::new_uninit(), Rc::clone(&handler).answer(request));
        let answering = Box::into_pin(answering);
        async move {
            restored.map_err(|_| Gone)?;
            let mut response = answering.await?;
            caller.respond();
            // HTTP/1.0 has no chunks: without a length the body ends with the connection (RFC 9112 §6.3).
            let ends_body = is_old && response.body().size_hint().exact().is_none();
            // A body that was not read must not be taken for a request.
            if handler.is_draining() || caller.upload() != Upload::Done || ends_body {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            if is_old && response.headers().contains_key(header::CONNECTION) {
                // To one in HTTP/1.1 hyper would add `keep-alive`.
                *response.version_mut() = Version::HTTP_10;
            }
            response.body_mut().followed_by(shared);
            Ok::<_, Gone>(response)
        }
    };
    let mut progress = Progress {
        handler: &*handler,
        caller: &caller,
        entry,
        shared: Rc::clone(&shared),
        draining_since: None,
        stalls: false,
    };
    let mut builder = http1_builder(&caller.limits());
    // Otherwise hyper tries to read whenever it is polled, and gets a new buffer for that while the head is in use.
    builder.half_close(is_plain);
    let mut draining = pin!(handler.draining());
    let (end, wire, read_ahead) = loop {
        let may_park = wire.has_socket();
        let mut connection = builder.serve_connection(TokioIo::new(wire), service_fn(&service));
        let end = poll_fn(|context| match Pin::new(&mut connection).poll(context) {
            Poll::Ready(result) => Poll::Ready(End::Hyper(result)),
            Poll::Pending => progress.poll(context, draining.as_mut(), may_park),
        })
        .await;
        let parts = connection.into_parts();
        let (mut parked, read_ahead) = (parts.io.into_inner(), parts.read_buf);
        if !matches!(end, End::Parked) {
            break (end, parked, read_ahead);
        }
        if read_ahead.is_empty() {
            // Even empty it holds the whole buffer.
            drop(read_ahead);
        } else {
            // The next head began to arrive with the last request.
            progress.reads();
            parked.unread(read_ahead);
        }
        memory::connection_parked();
        let end = poll_fn(|context| match parked.poll_arrival(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => progress.poll(context, draining.as_mut(), false).map(Some),
        })
        .await;
        match end {
            None => wire = parked,
            Some(end) => break (end, parked, Bytes::new()),
        }
    };
    Box::pin(finish(end, wire, read_ahead, &caller, &*handler, entry)).await;
}

fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .preserve_header_case(limits.header_case == HeaderCase::Preserve)
        .title_case_headers(true)
        .max_header_size(limits.head_bytes)
        .max_buf_size(BUFFER_BYTES.max(limits.head_bytes))
        .writev(false);
    if limits.head_fields != STACK_FIELDS {
        builder.max_headers(limits.head_fields);
    }
    builder
}

/// Ends a connection that hyper no longer serves; `read_ahead` was read from it and not used.
async fn finish<H: Handler>(
    end: End,
    mut wire: WatchedStream,
    read_ahead: Bytes,
    caller: &CallerStream,
    handler: &H,
    entry: &ConnectionEntry,
) {
    caller.rest(Stage::Lingering, Instant::now());
    match end {
        End::Hyper(Ok(())) => match caller.takeover() {
            Some(takeover) => {
                entry.change_work(Work::Rests, Work::Works);
                wire.unread(read_ahead);
                takeover(wire, caller.limits().body_timeout).await;
            }
            None => wire.linger().await,
        },
        End::Hyper(Err(error)) if error.is_parse() || error.is_parse_too_large() => {
            let status = if error.is_parse_too_large() { 431 } else { 400 };
            handler.rejected(caller.peer, status, &error.to_string());
            wire.linger().await;
        }
        End::Hyper(Err(error)) => {
            if error.is_user() || error.is_body_write_aborted() {
                wire.reset();
            }
        }
        // A request may have arrived after the last response, which a reset could destroy.
        End::Left => wire.linger().await,
        End::HeadTooSlow => {
            handler.rejected(caller.peer, 408, "the head took too long");
            if let Ok(Ok(())) = timeout(LINGER, wire.write_all(TOO_SLOW)).await {
                wire.linger().await;
            }
        }
        End::Idle | End::Parked => {
            // Under TLS an end without close_notify looks cut off (RFC 8446 §6.1). It is sent without waiting.
            poll_fn(|context| {
                let _ = Pin::new(&mut wire).poll_shutdown(context);
                Poll::Ready(())
            })
            .await;
        }
        End::Stalled => wire.reset(),
        End::Gone => {}
    }
}
