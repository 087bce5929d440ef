//! The body of the request being served, and whether its caller is still there.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use tokio::time::Instant;

use super::{Connection, Limits};
use crate::{
    http1::{body::BodyError, framing::Framing, pool::BUFFER_BYTES, write},
    refusal::{Failure, Refusal},
    server::held::{
        API_FORMS, FormMemory, HeldBody, PAGE_BYTES, PAGE_FORMS, PAGE_MEMORY, Reservation,
    },
    transport::{
        deadline::Elapsed,
        input::Input,
        stream::{Stream, poll_drain},
    },
};

impl Connection {
    /// Moves a piece of the body into `sink`, at most what one read brings; `chunked` encodes it as a chunk.
    /// `Ready(Ok(false))`: the body is at its end.
    ///
    /// # Errors
    /// A broken or cut-off body.
    pub fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut Vec<u8>,
        chunked: bool,
    ) -> Poll<Result<bool, BodyError>> {
        self.poll_piece(context, sink, chunked, Input::consume)
    }

    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut Vec<u8>,
        chunked: bool,
        consume: fn(&mut Input, usize),
    ) -> Poll<Result<bool, BodyError>> {
        loop {
            if self.body.is_done() {
                return Poll::Ready(Ok(false));
            }
            let piece = self.body.next(self.input.unread())?;
            if piece.consumed > 0 {
                self.awaits_continue = false;
                let data = &self.input.unread()[piece.data.clone()];
                let any = !data.is_empty();
                if chunked {
                    write::chunk(sink, data);
                } else {
                    sink.extend_from_slice(data);
                }
                consume(&mut self.input, piece.consumed);
                if any {
                    return Poll::Ready(Ok(true));
                }
                continue;
            }
            if self.awaits_continue {
                self.awaits_continue = false;
                self.out
                    .buffer()
                    .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            if !self.out.is_empty() {
                match poll_drain(&mut self.stream, context, &mut self.out) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(BodyError::Truncated)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            match self.input.poll_fill(&mut self.stream, context) {
                Poll::Ready(Ok(0)) => self.body.end_of_stream()?,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(BodyError::Truncated)),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Moves what has already arrived of the body into `sink`, framed as it came; `true`: that was all of it. The first
    /// bytes then leave together with the head, and a fault among them is found before anything is forwarded.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] for a broken chunked coding.
    pub fn take_arrived_body(&mut self, sink: &mut Vec<u8>) -> Result<bool, Refusal> {
        let chunked = self.framing == Framing::Chunked;
        while !self.body.is_done() {
            let piece = self.body.next(self.input.unread());
            let piece = piece.map_err(|error| Refusal::Malformed(error.to_string().into()))?;
            if piece.consumed == 0 {
                return Ok(false);
            }
            self.awaits_continue = false;
            let data = &self.input.unread()[piece.data];
            if chunked {
                write::chunk(sink, data);
            } else {
                sink.extend_from_slice(data);
            }
            self.input.consume(piece.consumed);
        }
        if chunked {
            sink.extend_from_slice(write::LAST_CHUNK);
        }
        Ok(true)
    }

    /// Whether the caller has gone while it is being served. What it sends ahead of time is kept, up to one buffer;
    /// past that nobody looks.
    pub fn poll_gone(&mut self, context: &mut Context<'_>) -> bool {
        while self.body.is_done() && self.input.unread().len() < BUFFER_BYTES {
            match self.input.poll_fill(&mut self.stream, context) {
                Poll::Ready(Ok(0) | Err(_)) => return true,
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return false,
            }
        }
        false
    }

    /// An answer is about to be written: no `100 (Continue)` may follow it.
    pub fn begin_answer(&mut self) {
        self.awaits_continue = false;
    }

    /// Whether the caller has broken its stream off. Nothing is read: over HTTP/1, only writing tells.
    pub fn poll_broken_off(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.stream {
            Stream::Http2(stream) => stream.poll_reset(context).is_ready(),
            Stream::Tcp(_) | Stream::Tls(_) | Stream::Unix(_) => false,
        }
    }

    /// Reads the whole body, for a form or a hash that is proved before anything is forwarded.
    ///
    /// # Errors
    /// [`Refusal::BodyTooLarge`] past `form_bytes`, [`Refusal::Busy`] where the caller or all callers together are past
    /// their part of `form_memory`, [`Refusal::TooSlow`] past `form_timeout`, and [`Refusal::Malformed`] for a broken
    /// chunked coding. A caller who left is [`Failure::CallerGone`].
    pub async fn read_whole_body(&mut self) -> Result<HeldBody, Failure> {
        let Limits {
            form_bytes,
            form_memory,
            ..
        } = self.limits;
        self.hold_body(&API_FORMS, form_bytes, form_memory).await
    }

    /// Reads the form of a page, which has memory of its own.
    ///
    /// # Errors
    /// As [`Connection::read_whole_body`], with [`PAGE_BYTES`] and [`PAGE_MEMORY`] as bounds.
    pub async fn read_page_form(&mut self) -> Result<HeldBody, Failure> {
        self.hold_body(&PAGE_FORMS, PAGE_BYTES, PAGE_MEMORY).await
    }

    /// Memory for the parameters of the request being served.
    pub fn reserve_parameters(&self) -> Reservation {
        API_FORMS.reserve(self.caller)
    }

    /// Reads the whole body, of at most `limit` bytes, as one of those that may take `all` bytes of `memory`.
    async fn hold_body(
        &mut self,
        memory: &'static FormMemory,
        limit: usize,
        all: usize,
    ) -> Result<HeldBody, Failure> {
        if self.body.left().is_some_and(|left| left > limit as u64) {
            return Err(Refusal::BodyTooLarge.into());
        }
        // A buffer that grows would leave copies of what it held, perhaps a password, behind.
        let expected = self.body.left().unwrap_or(limit as u64);
        let room = usize::try_from(expected).unwrap_or(limit).min(limit);
        let mut whole = HeldBody::with_room(room, memory.reserve(self.caller));
        let at = Instant::now() + self.limits.form_timeout;
        poll_fn(|context| {
            loop {
                match self.poll_piece(context, whole.buffer(), false, Input::consume_secret) {
                    Poll::Ready(Ok(true)) if whole.len() > limit => {
                        return Poll::Ready(Err(Refusal::BodyTooLarge.into()));
                    }
                    Poll::Ready(Ok(true)) => whole.count(all)?,
                    Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                    Poll::Ready(Err(BodyError::Truncated)) => {
                        return Poll::Ready(Err(Failure::CallerGone));
                    }
                    Poll::Ready(Err(BodyError::Chunked(error))) => {
                        let reason = error.to_string();
                        return Poll::Ready(Err(Refusal::Malformed(reason.into()).into()));
                    }
                    Poll::Pending => {
                        self.deadline.set_at(at);
                        return self
                            .deadline
                            .poll(context)
                            .map(|Elapsed| Err(Refusal::TooSlow.into()));
                    }
                }
            }
        })
        .await?;
        Ok(whole)
    }
}
