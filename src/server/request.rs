//! The body of a request: streamed on, or read whole before it is proved.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{
    caller::{Caller, Upload, UploadError},
    deadline::Elapsed,
    held::HeldBody,
};
use crate::refusal::{Failure, Refusal};

/// The body of the request being served. Trailers are dropped: nothing has proved them, and some APIs read them as fields.
pub struct RequestBody {
    incoming: Incoming,
    caller: Rc<Caller>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, caller: Rc<Caller>) -> Self {
        Self { incoming, caller }
    }

    /// Whose request it is.
    #[must_use]
    pub const fn caller(&self) -> &Rc<Caller> {
        &self.caller
    }

    /// Reads the whole body, for a form or a hash that is proved before anything is forwarded.
    ///
    /// # Errors
    /// [`Refusal::BodyTooLarge`] past `form_bytes`, [`Refusal::Busy`] where all such bodies together are past
    /// `form_memory`, [`Refusal::TooSlow`] past `form_timeout`, and [`Refusal::Malformed`] for a broken chunked coding.
    /// A caller who left is [`Failure::CallerGone`].
    pub async fn read_whole(&mut self) -> Result<HeldBody, Failure> {
        let limits = self.caller.limits();
        let announced = self.incoming.size_hint().lower();
        if announced > limits.form_bytes as u64 {
            return Err(Refusal::BodyTooLarge.into());
        }
        let room = usize::try_from(announced).unwrap_or(limits.form_bytes);
        let mut whole = HeldBody::with_room(room);
        let until = Instant::now() + limits.form_timeout;
        loop {
            let frame = poll_fn(|context| {
                if let Poll::Ready(frame) = Pin::new(&mut *self).poll_frame(context) {
                    return Poll::Ready(Ok(frame));
                }
                let elapsed = self.caller.poll_deadline(context, until);
                elapsed.map(|Elapsed| Err(Failure::from(Refusal::TooSlow)))
            })
            .await?;
            match frame {
                None => return Ok(whole),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if whole.len() + data.len() > limits.form_bytes {
                        return Err(Refusal::BodyTooLarge.into());
                    }
                    whole.buffer().extend_from_slice(&data);
                    whole.count(limits.form_memory)?;
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }
}

impl From<UploadError> for Failure {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Malformed => Refusal::Malformed(error.to_string().into()).into(),
            UploadError::Truncated => Self::CallerGone,
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
        let this = self.get_mut();
        loop {
            let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(context) else {
                if !matches!(this.caller.upload(), Upload::Awaited(_)) {
                    this.caller.set_upload(Upload::Awaited(Instant::now()));
                }
                return Poll::Pending;
            };
            return Poll::Ready(match frame {
                Some(Ok(frame)) if frame.is_data() => {
                    this.caller.set_upload(if this.incoming.is_end_stream() {
                        Upload::Done
                    } else {
                        Upload::Taken(Instant::now())
                    });
                    Some(Ok(frame))
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => {
                    let error = reason(&error);
                    this.caller.set_upload(Upload::Failed(error));
                    Some(Err(error))
                }
                None => {
                    this.caller.set_upload(Upload::Done);
                    None
                }
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// hyper tells a broken coding and an early end by the kind of the error below its own.
fn reason(error: &hyper::Error) -> UploadError {
    let below = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    match below.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => UploadError::Malformed,
        _ => UploadError::Truncated,
    }
}
