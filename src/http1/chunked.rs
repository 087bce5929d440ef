//! The chunked transfer coding (RFC 9112 §7.1), decoded strictly.

use std::ops::Range;

use thiserror::Error;

use super::token::is_token_byte;

/// What is wrong with a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// The size is no hexadecimal number of 1 to 15 digits.
    #[error("a chunk size is malformed")]
    Size,
    /// A line ends with LF alone or a CR stands alone, or data does not end where its size says.
    #[error("a chunk does not end with CRLF")]
    LineEnd,
    /// Chunk extensions or trailers are larger than allowed, have control bytes or an open quote, or are no fields.
    #[error("chunk extensions or trailers are too large or malformed")]
    Extension,
}

/// Extensions and trailers of one body may have so many bytes in all; nothing is done with them.
const MAX_EXTENSION_BYTES: u32 = 16 * 1024;

/// A chunk size has at most so many hexadecimal digits, so that no recipient's 64-bit integer overflows.
const MAX_SIZE_DIGITS: u8 = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    Quoted { size: u64, escaped: bool },
    SizeLineFeed { size: u64 },
    Data { left: u64 },
    DataCarriageReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerLineFeed,
    LastLineFeed,
    Done,
}

/// What [`Decoder::decode`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// How many bytes of the input are used up.
    pub consumed: usize,
    /// The next piece of data among them; empty if more input is needed or the body is at its end.
    pub data: Range<usize>,
}

/// Decodes a chunked body that arrives piece by piece. Extensions and trailers are checked and dropped.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    extension_bytes: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            state: State::Size { size: 0, digits: 0 },
            extension_bytes: 0,
        }
    }
}

impl Decoder {
    /// Whether the last chunk and the trailers have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Decodes from the front of `input` up to the end of the next piece of data.
    ///
    /// # Errors
    /// [`ChunkError`]; the body is worthless from there on.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ChunkError> {
        let mut position = 0;
        while position < input.len() && self.state != State::Done {
            if let State::Data { left } = self.state {
                let available = (input.len() - position) as u64;
                #[expect(clippy::cast_possible_truncation, reason = "at most input.len()")]
                let length = left.min(available) as usize;
                self.state = match left - length as u64 {
                    0 => State::DataCarriageReturn,
                    left => State::Data { left },
                };
                let data = position..position + length;
                return Ok(Decoded {
                    consumed: data.end,
                    data,
                });
            }
            self.state = self.step(input[position])?;
            position += 1;
        }
        Ok(Decoded {
            consumed: position,
            data: position..position,
        })
    }

    fn step(&mut self, byte: u8) -> Result<State, ChunkError> {
        Ok(match (self.state, byte) {
            (State::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == MAX_SIZE_DIGITS {
                    return Err(ChunkError::Size);
                }
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    _ => (byte | 0x20) - b'a' + 10,
                };
                State::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (State::Size { digits: 0, .. }, _) => return Err(ChunkError::Size),
            (State::Size { size, .. } | State::Extension { size }, b'\r') => {
                State::SizeLineFeed { size }
            }
            (State::Size { size, .. }, b';') => State::Extension { size },
            (State::Size { .. }, b'\n') => return Err(ChunkError::LineEnd),
            (State::Size { .. }, _) => return Err(ChunkError::Size),
            (State::Extension { size }, b'"') => {
                self.count_extension(byte)?;
                State::Quoted {
                    size,
                    escaped: false,
                }
            }
            (State::Extension { size }, byte) => {
                self.count_extension(byte)?;
                State::Extension { size }
            }
            // A line end within quotes is a control byte there: some reader would take it for a part of the value.
            (State::Quoted { size, escaped }, byte) => {
                self.count_extension(byte)?;
                match byte {
                    b'"' if !escaped => State::Extension { size },
                    byte => State::Quoted {
                        size,
                        escaped: byte == b'\\' && !escaped,
                    },
                }
            }
            (State::SizeLineFeed { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLineFeed { size }, b'\n') => State::Data { left: size },
            (State::DataCarriageReturn, b'\r') => State::DataLineFeed,
            (State::DataLineFeed, b'\n') => State::Size { size: 0, digits: 0 },
            (State::TrailerStart, b'\r') => State::LastLineFeed,
            (State::Trailer, b'\r') => {
                self.count_extension(b' ')?;
                State::TrailerLineFeed
            }
            // A line that is no field is what some reader takes for the next request.
            (State::TrailerStart | State::TrailerName, byte) if is_token_byte(byte) => {
                self.count_extension(byte)?;
                State::TrailerName
            }
            (State::TrailerName, b':') => {
                self.count_extension(byte)?;
                State::Trailer
            }
            (State::TrailerStart | State::TrailerName, b'\n') => return Err(ChunkError::LineEnd),
            (State::TrailerStart | State::TrailerName, _) => return Err(ChunkError::Extension),
            (State::Trailer, byte) => {
                self.count_extension(byte)?;
                State::Trailer
            }
            (State::TrailerLineFeed, b'\n') => State::TrailerStart,
            (State::LastLineFeed, b'\n') => State::Done,
            (
                State::SizeLineFeed { .. }
                | State::DataCarriageReturn
                | State::DataLineFeed
                | State::TrailerLineFeed
                | State::LastLineFeed,
                _,
            ) => return Err(ChunkError::LineEnd),
            (state @ (State::Data { .. } | State::Done), _) => state,
        })
    }

    fn count_extension(&mut self, byte: u8) -> Result<(), ChunkError> {
        if byte == b'\n' {
            return Err(ChunkError::LineEnd);
        }
        self.extension_bytes += 1;
        if self.extension_bytes > MAX_EXTENSION_BYTES
            || byte < b' ' && byte != b'\t'
            || byte == 0x7f
        {
            return Err(ChunkError::Extension);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `input` in pieces of `step` bytes; returns the data and what was not consumed.
    fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, Option<Vec<u8>>), ChunkError> {
        let mut decoder = Decoder::default();
        let mut data = Vec::new();
        let mut rest = Vec::new();
        for piece in input.chunks(step) {
            rest.extend_from_slice(piece);
            loop {
                let decoded = decoder.decode(&rest)?;
                data.extend_from_slice(&rest[decoded.data.clone()]);
                rest.drain(..decoded.consumed);
                if decoded.data.is_empty() {
                    break;
                }
            }
        }
        Ok((data, decoder.is_done().then_some(rest)))
    }

    #[test]
    fn decodes_whatever_the_pieces() {
        let input = b"4\r\nWiki\r\n6;name=\"v\"\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\nNEXT";
        for step in 1..input.len() {
            let (data, rest) = decode(input, step).expect("well-formed");
            assert_eq!(data, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!(rest.as_deref(), Some(&b"NEXT"[..]));
        }
    }

    #[test]
    fn refuses_what_two_readers_could_split_differently() {
        for (input, error) in [
            (&b"\r\n"[..], ChunkError::Size),
            (b" 1\r\na\r\n", ChunkError::Size),
            (b"1 \r\na\r\n", ChunkError::Size),
            (b"0x1\r\na\r\n", ChunkError::Size),
            (b"+1\r\na\r\n", ChunkError::Size),
            (b"-1\r\na\r\n", ChunkError::Size),
            (b"1_0\r\n", ChunkError::Size),
            (b"1000000000000000\r\n", ChunkError::Size),
            (b"1\na\r\n", ChunkError::LineEnd),
            (b"1\r\na\n", ChunkError::LineEnd),
            (b"1\r\nab\r\n", ChunkError::LineEnd),
            (b"1\r\r\na", ChunkError::LineEnd),
            (b"1;a\nb\r\na\r\n", ChunkError::LineEnd),
            (b"1;a\x00\r\na\r\n", ChunkError::Extension),
            (b"1;a=\"\r\na\r\n", ChunkError::Extension),
            (b"1;a=\"b\\\"\r\na\r\n", ChunkError::Extension),
            (b"0\r\nGET / HTTP/1.1\r\n\r\n", ChunkError::Extension),
            (b"0\r\n X: y\r\n\r\n", ChunkError::Extension),
            (b"0\r\nX : y\r\n\r\n", ChunkError::Extension),
            (b"0\r\n: y\r\n\r\n", ChunkError::Extension),
            (b"0\r\nX\r\n\r\n", ChunkError::Extension),
            (b"0\r\nX: y\n\r\n", ChunkError::LineEnd),
            (b"0\r\n\n", ChunkError::LineEnd),
            (b"0\r\n\rX", ChunkError::LineEnd),
        ] {
            assert_eq!(decode(input, 64), Err(error), "{input:?}");
        }
    }

    #[test]
    fn bounds_extensions_and_trailers() {
        let long = [b"1;".to_vec(), vec![b'a'; 17 * 1024]].concat();
        assert_eq!(decode(&long, 1024), Err(ChunkError::Extension));
        let long = [b"0\r\n".to_vec(), b"X: y\r\n".repeat(4096)].concat();
        assert_eq!(decode(&long, 1024), Err(ChunkError::Extension));
    }

    proptest! {
        #[test]
        fn round_trips(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8), step in 1usize..40) {
            let mut wire = Vec::new();
            for piece in &pieces {
                wire.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
                wire.extend_from_slice(piece);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(decode(&wire, step), Ok((pieces.concat(), Some(Vec::new()))));
        }

        #[test]
        fn never_panics(input in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..40) {
            let _ = decode(&input, step);
        }
    }
}
