//! What follows an upgrade: bytes both ways, until either side ends it or a limit does.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::io::AsyncWrite as _;

use super::upstream::UpstreamConnection;
use crate::{
    server::connection::Connection,
    transport::{
        input::Input,
        stream::{Outgoing, Stream, poll_drain},
    },
};

/// How a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Both sides closed.
    Closed,
    /// A side broke off, or came to a limit.
    Broken,
}

/// One direction of a tunnel.
#[derive(Debug, Default)]
struct Direction {
    /// The side it comes from has said that nothing more comes.
    ended: bool,
    /// So has the side it goes to been told.
    told: bool,
}

/// What a direction waits for.
#[derive(Debug, PartialEq, Eq)]
enum Waits {
    /// Bytes to arrive.
    Bytes,
    /// The other side to take what is there.
    Room,
    /// Nothing: it has ended.
    Nothing,
}

impl Direction {
    /// Moves what can be moved now, one buffer at a time: a slow reader slows its writer down.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        (from, input): (&mut Stream, &mut Input),
        (to, out): (&mut Stream, &mut Outgoing),
        progress: &mut bool,
    ) -> io::Result<Waits> {
        loop {
            if !input.unread().is_empty() {
                out.buffer().extend_from_slice(input.unread());
                input.consume(input.unread().len());
                input.release();
            }
            if !out.is_empty() {
                let before = out.written();
                match poll_drain(to, context, out) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => {
                        *progress |= out.written() != before;
                        return Ok(Waits::Room);
                    }
                }
                *progress = true;
                out.release();
            }
            if self.told {
                return Ok(Waits::Nothing);
            }
            if self.ended {
                match Pin::new(&mut *to).poll_shutdown(context) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => return Ok(Waits::Room),
                }
                self.told = true;
                return Ok(Waits::Nothing);
            }
            match input.poll_fill(from, context) {
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => *progress = true,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(Waits::Bytes),
            }
        }
    }
}

/// Passes bytes on both ways. A side that takes nothing, or stays open when the other has closed, is given the limit for
/// bodies; both may be silent for `idle`.
pub async fn run(
    caller: &mut Connection,
    upstream: &mut UpstreamConnection,
    idle: Duration,
) -> Ended {
    let stalled = caller.limits.body_timeout;
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let mut limit = None;
    poll_fn(|context| {
        let mut progress = false;
        let sent = up.poll(
            context,
            (&mut caller.stream, &mut caller.input),
            (&mut upstream.stream, &mut upstream.out),
            &mut progress,
        );
        let received = down.poll(
            context,
            (&mut upstream.stream, &mut upstream.input),
            (&mut caller.stream, &mut caller.out),
            &mut progress,
        );
        let now = match (sent, received) {
            (Err(_), _) | (_, Err(_)) => return Poll::Ready(Ended::Broken),
            (Ok(Waits::Nothing), Ok(Waits::Nothing)) => return Poll::Ready(Ended::Closed),
            (Ok(Waits::Bytes), Ok(Waits::Bytes)) => idle,
            _ => stalled,
        };
        if progress || limit != Some(now) {
            limit = Some(now);
            caller.deadline.set(now);
        }
        caller.deadline.poll(context).map(|_| Ended::Broken)
    })
    .await
}
