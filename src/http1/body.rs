//! A message body, taken out of its framing piece by piece.

use std::ops::Range;

use thiserror::Error;

use super::{
    chunked::{ChunkError, Decoder},
    framing::Framing,
};

/// Why a body is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The chunked coding is broken.
    #[error(transparent)]
    Chunked(#[from] ChunkError),
    /// The connection ended before the body did.
    #[error("the connection ended before the body did")]
    Truncated,
}

/// Follows a body to its end.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Length(u64),
    Chunked(Decoder),
    UntilClose,
    Ended,
}

/// A piece of a body at the front of the bytes that have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// How many of the bytes are used up.
    pub consumed: usize,
    /// The data among them; empty if more bytes must arrive or the body is at its end.
    pub data: Range<usize>,
}

impl Body {
    /// A body of the given framing, of which nothing has been read yet.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => Kind::Ended,
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(Decoder::default()),
            Framing::UntilClose => Kind::UntilClose,
        })
    }

    /// Whether the whole body has been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            Kind::Length(left) => *left == 0,
            Kind::Chunked(decoder) => decoder.is_done(),
            Kind::UntilClose => false,
            Kind::Ended => true,
        }
    }

    /// How many bytes are still to come, where the framing tells.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        match &self.0 {
            Kind::Length(left) => Some(*left),
            Kind::Ended => Some(0),
            Kind::Chunked(_) | Kind::UntilClose => None,
        }
    }

    /// Takes the next piece off the front of `input`.
    ///
    /// # Errors
    /// [`BodyError::Chunked`] for a broken chunked coding.
    pub fn next(&mut self, input: &[u8]) -> Result<Piece, BodyError> {
        match &mut self.0 {
            Kind::Length(left) => {
                let length = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                *left -= length as u64;
                Ok(Piece {
                    consumed: length,
                    data: 0..length,
                })
            }
            Kind::Chunked(decoder) => {
                let decoded = decoder.decode(input)?;
                Ok(Piece {
                    consumed: decoded.consumed,
                    data: decoded.data,
                })
            }
            Kind::UntilClose => Ok(Piece {
                consumed: input.len(),
                data: 0..input.len(),
            }),
            Kind::Ended => Ok(Piece {
                consumed: 0,
                data: 0..0,
            }),
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// [`BodyError::Truncated`] if the body was to go on.
    pub fn end_of_stream(&mut self) -> Result<(), BodyError> {
        if matches!(self.0, Kind::UntilClose) {
            self.0 = Kind::Ended;
        }
        if self.is_done() {
            Ok(())
        } else {
            Err(BodyError::Truncated)
        }
    }
}
