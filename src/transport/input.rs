//! Bytes that have arrived and are not used up yet.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncReadExt};
use zeroize::Zeroize;

use crate::http1::pool::{BUFFER_BYTES, Buffer};

/// What has arrived on a stream. It holds a buffer only while there are bytes in it.
#[derive(Debug, Default)]
pub struct Input {
    buffer: Buffer,
    start: usize,
}

impl Input {
    /// The bytes not used up yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Uses up bytes from the front; gives the buffer back when none are left.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.buffer.len());
        if self.start >= self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
    }

    /// Uses up bytes from the front and wipes them: the buffer is lent out again.
    pub fn consume_secret(&mut self, count: usize) {
        self.buffer[self.start..self.start + count].zeroize();
        self.consume(count);
    }

    /// Splits the first `count` bytes off, in a buffer of their own; what follows stays.
    #[must_use]
    pub fn split(&mut self, count: usize) -> Buffer {
        let behind = self.unread().len() - count;
        // The shorter part is the one that moves.
        if self.start > 0 || behind > count {
            let mut front = Buffer::take();
            front.extend_from_slice(&self.unread()[..count]);
            self.consume(count);
            return front;
        }
        let mut front = std::mem::take(&mut self.buffer);
        if behind > 0 {
            self.buffer = Buffer::take();
            self.buffer.extend_from_slice(&front[count..]);
            // What follows a head may be a form with a password, and the head's buffer is lent out again.
            front[count..].zeroize();
            front.truncate(count);
        }
        front
    }

    /// Reads once; 0 is the end of the stream. While nothing arrives and nothing is held, no buffer is either.
    pub fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() == 0 {
            self.buffer = Buffer::take();
        } else if self.buffer.len() == self.buffer.capacity() {
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            } else {
                self.buffer.reserve(BUFFER_BYTES);
            }
        }
        let read = pin!(Pin::new(stream).get_mut().read_buf(&mut *self.buffer)).poll(context);
        if read.is_pending() && self.buffer.is_empty() {
            self.buffer = Buffer::none();
        }
        read
    }

    /// Gives the buffer back if it is empty.
    pub fn release(&mut self) {
        if self.unread().is_empty() {
            self.buffer = Buffer::none();
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However it is split off and used up, every byte comes once and in order.
        #[test]
        fn nothing_is_lost_or_doubled(
            sent in prop::collection::vec(any::<u8>(), 1..200),
            steps in prop::collection::vec((any::<bool>(), 0usize..60), 0..20),
        ) {
            let mut input = Input { buffer: Buffer::take(), start: 0 };
            input.buffer.extend_from_slice(&sent);
            let mut taken = Vec::new();
            for (split, count) in steps {
                let count = count.min(input.unread().len());
                if split {
                    taken.extend_from_slice(&input.split(count));
                } else {
                    taken.extend_from_slice(&input.unread()[..count]);
                    input.consume(count);
                }
                prop_assert_eq!(&[&taken, input.unread()].concat(), &sent);
            }
        }
    }
}
