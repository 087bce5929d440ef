//! The destinations of a base string: a buffer, or a hash that is fed as the string is made.

/// Takes bytes one piece after the other.
pub trait Sink {
    /// Takes the next piece.
    fn write(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The text that is hashed.
pub trait Message {
    /// Hands the bytes over, in pieces.
    fn feed(&self, receive: impl FnMut(&[u8]));
}

impl Message for &[u8] {
    fn feed(&self, mut receive: impl FnMut(&[u8])) {
        receive(self);
    }
}

/// A base string has pieces of a few bytes, and each call of a hash has a cost: this many are handed over at once.
const CHUNK_BYTES: usize = 512;

/// Gathers small pieces on the stack and hands them on in chunks.
pub(super) struct Chunked<F: FnMut(&[u8])> {
    chunk: [u8; CHUNK_BYTES],
    filled: usize,
    receive: F,
}

impl<F: FnMut(&[u8])> Chunked<F> {
    pub(super) fn new(receive: F) -> Self {
        Self {
            chunk: [0; CHUNK_BYTES],
            filled: 0,
            receive,
        }
    }

    /// Hands on the remaining bytes; without it they are lost.
    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        (self.receive)(&self.chunk[..self.filled]);
        self.filled = 0;
    }
}

impl<F: FnMut(&[u8])> Sink for Chunked<F> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.filled + bytes.len();
        match self.chunk.get_mut(self.filled..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.filled = end;
            }
            None => {
                self.flush();
                (self.receive)(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_on_every_byte_in_order_whatever_the_pieces() {
        for step in [1, 7, 64, 511, 512, 513, 2000] {
            let sent: Vec<u8> = (0..=250).cycle().take(5000).collect();
            let mut received = Vec::new();
            let mut sink = Chunked::new(|chunk: &[u8]| received.extend_from_slice(chunk));
            for piece in sent.chunks(step) {
                sink.write(piece);
            }
            sink.finish();
            assert_eq!(received, sent, "pieces of {step}");
        }
    }
}
