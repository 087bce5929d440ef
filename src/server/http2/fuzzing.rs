//! What follows frames and writes heads, for the fuzz targets alone.

use http::request::Parts;

use super::{guard::Frames, request};
use crate::http1::pool::Buffer;

/// The frames that begin in bytes that arrive in pieces, by type, flags and length; and whether one is unfinished.
#[must_use]
pub fn frames(pieces: &[&[u8]]) -> (Vec<(u8, u8, usize)>, bool) {
    let mut frames = Frames::default();
    let mut found = Vec::new();
    for piece in pieces {
        frames.follow(piece, |kind, flags, length| {
            found.push((kind, flags, length));
        });
    }
    (found, frames.is_unfinished())
}

/// The head that HTTP/1.1 would have sent; `None` where it is refused.
#[must_use]
pub fn head(parts: &Parts) -> Option<Buffer> {
    request::head(parts).ok()
}
