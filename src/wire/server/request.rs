//! The body of a request: forwarded as it arrives, or read whole before it is verified.

use std::{
    cell::{OnceCell, RefCell},
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::rejection::{BodyRejection, UploadError};
use crate::{
    oauth::BodyNames,
    wire::server::caller::{
        buffered::{
            ADMIN_BODIES, API_FORMS, BufferedBody, FormMemory, PAGE_BYTES, PAGE_FORMS, PAGE_SHARES,
            Shares,
        },
        stream::{CallerStream, Upload},
    },
};

/// The body of the request being served. Trailers are dropped: nothing has proved them, and some APIs read them as fields.
///
/// A body that a signature covers, or that the advice needs, is read whole once and stays here until it goes on.
pub struct RequestBody {
    incoming: RefCell<Incoming>,
    caller: Rc<CallerStream>,
    held: OnceCell<Result<BufferedBody, BodyRejection>>,
    /// What was read of a body that is too large, the end first: it goes on if the call does.
    beginning: RefCell<Vec<Bytes>>,
    /// The names of a body that goes on and is not verified, with the error if one is that of a protocol parameter.
    names: RefCell<Option<Box<(BodyNames, UploadError)>>>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, caller: Rc<CallerStream>) -> Self {
        Self {
            incoming: RefCell::new(incoming),
            caller,
            held: OnceCell::new(),
            beginning: RefCell::default(),
            names: RefCell::default(),
        }
    }

    /// The caller of the request.
    pub const fn caller(&self) -> &Rc<CallerStream> {
        &self.caller
    }

    /// Reads the whole body, for a form or a hash that is proved before anything is forwarded, and holds it.
    ///
    /// # Errors
    /// [`BodyRejection::TooLarge`] past `form_bytes`, [`BodyRejection::Busy`] where there is no memory for it,
    /// [`BodyRejection::TooSlow`] past `form_timeout`, and [`BodyRejection::Upload`] for a broken chunked coding and a
    /// caller who left. A body that is too large can still be streamed, any other one is unusable.
    pub async fn hold(&self) -> Result<&[u8], BodyRejection> {
        if self.held.get().is_none() {
            let read = self.read_in(&API_FORMS).await;
            if matches!(read, Err(BodyRejection::TooLarge)) {
                return Err(BodyRejection::TooLarge);
            }
            let _ = self.held.set(read);
        }
        Ok(self.held()?.unwrap_or_default())
    }

    /// Lets a form that is too large to be verified go on, as one that is not signed: it fails as soon as it shows a name of a
    /// protocol parameter, so that the API never gets the whole of a form that it could take for a signed one.
    ///
    /// # Errors
    /// [`UploadError::Signed`], if the part that was read has one.
    pub fn go_on_unsigned(&self) -> Result<(), BodyRejection> {
        self.go_on_without(BodyNames::for_form, UploadError::Signed)
    }

    /// Lets a body of this type go on that no signature covers, or a hash alone, as [`RequestBody::go_on_unsigned`] does.
    ///
    /// # Errors
    /// [`UploadError::Credentials`], if the part that was read has a name of a protocol parameter.
    pub fn go_on_without_credentials(
        &self,
        content_type: Option<&[u8]>,
    ) -> Result<(), BodyRejection> {
        self.go_on_without(
            || BodyNames::for_type(content_type),
            UploadError::Credentials,
        )
    }

    fn go_on_without(
        &self,
        names: impl Fn() -> BodyNames,
        error: UploadError,
    ) -> Result<(), BodyRejection> {
        let mut read_names = names();
        let held = self.held()?.unwrap_or_default();
        let beginning = self.beginning.borrow();
        let mut read = [held]
            .into_iter()
            .chain(beginning.iter().rev().map(|it| &**it));
        if read.any(|read| read_names.has_protocol_name(read)) {
            return Err(error.into());
        }
        self.names.replace(Some(Box::new((names(), error))));
        Ok(())
    }

    /// The body, if it was read.
    ///
    /// # Errors
    /// Those of [`RequestBody::hold`], if that failed.
    pub fn held(&self) -> Result<Option<&[u8]>, BodyRejection> {
        match self.held.get() {
            None => Ok(None),
            Some(Ok(body)) => Ok(Some(body)),
            Some(Err(rejection)) => Err(*rejection),
        }
    }

    /// Takes the body out, if it was read.
    pub fn take_held(&mut self) -> Option<BufferedBody> {
        self.held.take()?.ok()
    }

    /// Reads the form of a page, which has memory of its own.
    ///
    /// # Errors
    /// As [`RequestBody::hold`], with [`PAGE_BYTES`], [`PAGE_SHARES`] and `page_form_timeout` as bounds.
    pub async fn read_page_form(&self) -> Result<BufferedBody, BodyRejection> {
        let limits = self.caller.limits();
        let timeout = limits.page_form_timeout;
        self.buffer(&PAGE_FORMS, PAGE_BYTES, PAGE_SHARES, timeout)
            .await
    }

    /// Reads the body of a request to the admin API, which has memory of its own.
    ///
    /// # Errors
    /// As [`RequestBody::hold`].
    pub async fn read_admin_body(&self) -> Result<BufferedBody, BodyRejection> {
        self.read_in(&ADMIN_BODIES).await
    }

    /// Reads the rest of the body and drops it, for at most this long, so that the connection can be used again.
    pub async fn discard(&self, within: Duration) {
        let until = Instant::now() + within;
        poll_fn(|context| {
            loop {
                match self.poll_data(context) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                    Poll::Pending => return self.caller.poll_deadline(context, until),
                }
            }
        })
        .await;
    }

    async fn read_in(&self, memory: &'static FormMemory) -> Result<BufferedBody, BodyRejection> {
        let limits = self.caller.limits();
        let (bytes, shares) = (limits.form_bytes, limits.form_shares);
        self.buffer(memory, bytes, shares, limits.form_timeout)
            .await
    }

    /// Reads the whole body, of at most `limit` bytes.
    async fn buffer(
        &self,
        memory: &'static FormMemory,
        limit: usize,
        shares: Shares,
        timeout: Duration,
    ) -> Result<BufferedBody, BodyRejection> {
        let expected = self.size_hint();
        if expected.lower() > limit as u64 {
            return Err(BodyRejection::TooLarge);
        }
        let room = expected
            .exact()
            .map_or(limit, |exact| usize::try_from(exact).unwrap_or(limit));
        let mut whole = BufferedBody::with_room(room, self.caller.reserve(memory));
        let until = Instant::now() + timeout;
        loop {
            let frame = poll_fn(|context| {
                if let Poll::Ready(frame) = self.poll_data(context) {
                    return Poll::Ready(Ok(frame));
                }
                whole.reservation.await_more(context)?;
                let elapsed = self.caller.poll_deadline(context, until);
                elapsed.map(|()| Err(BodyRejection::TooSlow))
            })
            .await?;
            match frame {
                None => break,
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    let read = match whole.len() + data.len() > limit {
                        true => Err(BodyRejection::TooLarge),
                        false => whole.reservation.resize(whole.len() + data.len(), shares),
                    };
                    match read {
                        Ok(()) => whole.push(&data),
                        Err(BodyRejection::TooLarge) => {
                            whole.reservation.arrived()?;
                            *self.beginning.borrow_mut() = vec![data, Bytes::from_owner(whole)];
                            return Err(BodyRejection::TooLarge);
                        }
                        Err(rejection) => return Err(rejection),
                    }
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
        whole.reservation.arrived()?;
        Ok(whole)
    }

    /// The next data of the body.
    fn poll_data(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let polled = self.poll_any_data(context);
        if let Some((names, error)) = self.names.borrow_mut().as_deref_mut()
            && let Poll::Ready(Some(Ok(frame))) = &polled
            && frame
                .data_ref()
                .is_some_and(|data| names.has_protocol_name(data))
        {
            self.caller.set_upload(Upload::Failed(*error));
            return Poll::Ready(Some(Err(*error)));
        }
        polled
    }

    fn poll_any_data(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Some(read) = self.beginning.borrow_mut().pop() {
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        let mut incoming = self.incoming.borrow_mut();
        loop {
            let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(context) else {
                if self.caller.wait(context).is_err() {
                    let error = UploadError::Dropped;
                    self.caller.set_upload(Upload::Failed(error));
                    return Poll::Ready(Some(Err(error)));
                }
                if !matches!(self.caller.upload(), Upload::Awaited(_)) {
                    self.caller.set_upload(Upload::Awaited(Instant::now()));
                }
                return Poll::Pending;
            };
            self.caller.upload_proceeds();
            return Poll::Ready(match frame {
                Some(Ok(frame)) if frame.is_data() => {
                    self.caller.set_upload(if incoming.is_end_stream() {
                        Upload::Done
                    } else {
                        Upload::Taken(Instant::now())
                    });
                    Some(Ok(frame))
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => {
                    let error = reason(&error);
                    self.caller.set_upload(Upload::Failed(error));
                    Some(Err(error))
                }
                None => {
                    self.caller.set_upload(Upload::Done);
                    None
                }
            });
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        self.poll_data(context)
    }

    fn is_end_stream(&self) -> bool {
        self.beginning.borrow().is_empty() && self.incoming.borrow().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut size = self.incoming.borrow().size_hint();
        let beginning = self.beginning.borrow();
        if !beginning.is_empty() {
            let read = beginning
                .iter()
                .map(|bytes| bytes.len() as u64)
                .sum::<u64>();
            if let Some(upper) = size.upper() {
                size.set_upper(upper + read);
            }
            size.set_lower(size.lower() + read);
        }
        size
    }
}

/// The kind of the error below hyper's own distinguishes a broken coding from an early end.
fn reason(error: &hyper::Error) -> UploadError {
    let below = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    match below.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => UploadError::Malformed,
        _ => UploadError::Truncated,
    }
}
