//! The caller of a request: its limits, its deadline, and the progress of its body.

use std::{
    cell::{Cell, OnceCell, RefCell},
    net::IpAddr,
    num::NonZeroU32,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::HeaderValue;
use tokio::time::Instant;

use super::{
    buffered::{FormMemory, Reservation, Shares},
    connection_table::{ConnectionEntry, Stage, Work},
    deadline::Deadline,
    unproved::Place,
};
use crate::{
    base::network::peer::Peer,
    wire::{
        server::rejection::{BodyRejection, UploadError},
        watched::WatchedStream,
    },
};

/// The spelling of field names over HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeaderCase {
    /// In Title-Case.
    Title,
    /// As received.
    Preserve,
}

/// Bounds and deadlines of a connection.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Fields of a request's head.
    pub head_fields: usize,
    /// Bytes of the request target.
    pub target_bytes: usize,
    /// A TLS handshake.
    pub handshake_timeout: Duration,
    /// A whole head, from its first byte; for a new connection, also for that first byte.
    pub head_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// A body, either way, without progress.
    pub body_timeout: Duration,
    /// A whole form or hashed body that is read before it is verified.
    pub form_timeout: Duration,
    /// The size of such a body, in bytes.
    pub form_bytes: usize,
    /// A whole form of a page.
    pub page_form_timeout: Duration,
    /// The size of all such bodies and of their parameters: of the process together, and of one caller.
    pub form_shares: Shares,
    /// Fields of a form.
    pub form_fields: usize,
    /// The spelling of field names in responses over HTTP/1.1.
    pub header_case: HeaderCase,
    /// Requests at once on one HTTP/2 connection; `None`: HTTP/2 is not spoken.
    pub streams: Option<NonZeroU32>,
}

impl Limits {
    /// For a listener of small requests, such as that of health and metrics.
    pub const SMALL: Self = Self {
        head_bytes: 16 << 10,
        head_fields: 100,
        target_bytes: 4 << 10,
        handshake_timeout: Duration::from_secs(10),
        head_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(60),
        body_timeout: Duration::from_secs(5),
        form_timeout: Duration::from_secs(5),
        form_bytes: 64 << 10,
        page_form_timeout: Duration::from_secs(5),
        form_shares: Shares {
            all: 1 << 20,
            each: 256 << 10,
        },
        form_fields: 100,
        header_case: HeaderCase::Title,
        streams: None,
    };
}

/// The progress of the body of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upload {
    /// The request has no body, or all of it was taken.
    Done,
    /// A part was taken at that time, and no other has been asked for.
    Taken(Instant),
    /// More was asked for at that time and has not arrived.
    Awaited(Instant),
    /// It will never be whole.
    Failed(UploadError),
}

/// What a request has shown of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is not permitted, or not yet.
    Unknown,
    /// It is permitted, and has proved nothing.
    Anonymous,
    /// It has proved its sender.
    Proved,
}

/// Runs a connection once it has switched to another protocol.
pub type Takeover = Box<dyn FnOnce(WatchedStream, Duration) -> Pin<Box<dyn Future<Output = ()>>>>;

/// The caller of an HTTP/1.1 connection, one request at a time, or of an HTTP/2 stream.
pub struct CallerStream {
    /// The connection that it came by.
    pub peer: Peer,
    /// The address of the other end as fields have it.
    address: OnceCell<HeaderValue>,
    limits: RefCell<Rc<Limits>>,
    counted_as: Cell<Option<IpAddr>>,
    connection: Rc<ConnectionEntry>,
    standing: Cell<Standing>,
    /// What is done on its connection for it.
    work: Cell<Work>,
    place: Cell<Place>,
    upload: Cell<Upload>,
    timer: RefCell<Deadline>,
    takeover: Cell<Option<Takeover>>,
    /// Woken at the end of the upload.
    awaiting_end: Cell<Option<Waker>>,
}

impl CallerStream {
    /// The caller at the other end of a new connection or stream.
    pub(in crate::wire::server) fn new(
        peer: Peer,
        limits: Rc<Limits>,
        connection: Rc<ConnectionEntry>,
    ) -> Self {
        Self {
            peer,
            address: OnceCell::new(),
            limits: RefCell::new(limits),
            counted_as: Cell::new(peer.address),
            connection,
            standing: Cell::new(Standing::Unknown),
            work: Cell::default(),
            place: Cell::default(),
            upload: Cell::new(Upload::Done),
            timer: RefCell::default(),
            takeover: Cell::new(None),
            awaiting_end: Cell::new(None),
        }
    }

    /// The address of the other end as fields have it, an IPv4-mapped IPv6 address as the IPv4 address.
    pub fn address(&self) -> Option<HeaderValue> {
        let address = self.peer.address?;
        let written = self.address.get_or_init(|| {
            let text = address.to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
        });
        Some(written.clone())
    }

    /// The bounds of the request being served.
    pub fn limits(&self) -> Rc<Limits> {
        Rc::clone(&self.limits.borrow())
    }

    /// Begins another request.
    pub(in crate::wire::server) fn begin(&self, limits: Rc<Limits>, has_body: bool) {
        self.limits.replace(limits);
        self.counted_as.set(self.peer.address);
        self.standing.set(Standing::Unknown);
        self.upload.set(if has_body {
            Upload::Taken(Instant::now())
        } else {
            Upload::Done
        });
        self.set_work(Work::Decides);
    }

    /// The request is permitted, and has proved nothing.
    pub fn permit_anonymous(&self) {
        self.standing.set(Standing::Anonymous);
        self.proceed();
    }

    /// The request has proved its sender: it is not dropped for others.
    pub fn prove(&self) {
        self.standing.set(Standing::Proved);
        self.connection.prove();
        self.proceed();
    }

    /// The request waits for its caller or for the store. As long as it has proved nothing, it may be dropped for others,
    /// which wakes the task of `context`, and its connection may be closed for others.
    ///
    /// # Errors
    /// [`BodyRejection::Busy`] if it was dropped.
    pub fn wait(&self, context: &Context<'_>) -> Result<(), BodyRejection> {
        if self.standing.get() == Standing::Proved {
            return Ok(());
        }
        if self.work.get() != Work::Rests {
            self.rest(Stage::Waiting, Instant::now());
        }
        let place = self.place.get().wait(self.counted_as.get(), context)?;
        self.place.set(place);
        Ok(())
    }

    /// The request no longer waits.
    pub fn proceed(&self) {
        self.place.set(self.place.get().proceed());
        self.set_work(match self.standing.get() {
            Standing::Unknown => Work::Decides,
            Standing::Anonymous | Standing::Proved => Work::Works,
        });
    }

    /// A part of an upload that goes on to the API has arrived.
    pub(in crate::wire::server) fn upload_proceeds(&self) {
        if self.standing.get() == Standing::Anonymous {
            self.proceed();
        }
    }

    /// Takes a place among the requests that are being served, of which there are at most `most`. `false`: there is none.
    #[must_use]
    pub fn take_place(&self, most: usize) -> bool {
        self.give_place_back();
        self.place.set(Place::take(most));
        self.place.get() == Place::Serving
    }

    /// Gives the place of the request back.
    pub fn give_place_back(&self) {
        self.place.take().give_back();
    }

    /// The response is there. That to a request which is not permitted needs nothing but its caller.
    pub(in crate::wire::server) fn respond(&self) {
        match self.standing.get() {
            Standing::Unknown => self.rest(Stage::Waiting, Instant::now()),
            Standing::Anonymous | Standing::Proved => self.proceed(),
        }
    }

    /// The request is over; its connection is in that stage from then on, unless it serves others.
    pub(in crate::wire::server) fn rest(&self, stage: Stage, since: Instant) {
        self.set_work(Work::Rests);
        self.connection.enter(stage, since);
    }

    fn set_work(&self, work: Work) {
        let before = self.work.replace(work);
        if before != work {
            self.connection.change_work(before, work);
        }
    }

    /// Counts the memory of the request as that of `address`: the peer's, or the one that a trusted proxy names.
    pub fn count_as(&self, address: Option<IpAddr>) {
        self.counted_as.set(address);
    }

    /// The address that the request counts for.
    pub const fn counts_for(&self) -> Option<IpAddr> {
        self.counted_as.get()
    }

    /// A reservation in `memory` for the request being served.
    pub fn reserve(&self, memory: &'static FormMemory) -> Reservation {
        memory.reserve(self.counted_as.get())
    }

    /// The progress of the body of the request.
    pub const fn upload(&self) -> Upload {
        self.upload.get()
    }

    pub(in crate::wire::server) fn set_upload(&self, upload: Upload) {
        self.upload.set(upload);
        if matches!(upload, Upload::Done | Upload::Failed(_))
            && let Some(waker) = self.awaiting_end.take()
        {
            waker.wake();
        }
    }

    /// Wakes the task of `context` when the upload has come to its end.
    pub fn wake_at_upload_end(&self, context: &Context<'_>) {
        self.awaiting_end.set(Some(context.waker().clone()));
    }

    /// Ready once `at` has passed. One timer serves all waits of a connection.
    pub fn poll_deadline(&self, context: &mut Context<'_>, at: Instant) -> Poll<()> {
        self.timer.borrow_mut().poll(context, at)
    }

    /// Has `takeover` run the connection as soon as the 101 (Switching Protocols) has been written.
    pub fn switch(&self, takeover: Takeover) {
        self.takeover.set(Some(takeover));
    }

    pub(in crate::wire::server) fn takeover(&self) -> Option<Takeover> {
        self.takeover.take()
    }
}

impl Drop for CallerStream {
    fn drop(&mut self) {
        self.give_place_back();
        self.set_work(Work::Rests);
    }
}
