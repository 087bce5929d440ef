//! Follows the frames of HTTP/2, for the fuzz targets alone.

use super::frames::Position;

/// The frames after the preface in bytes that arrive in pieces, by type, flags and length; and whether one is unfinished.
pub fn frames(pieces: &[&[u8]]) -> (Vec<(u8, u8, usize)>, bool) {
    let mut position = Position::default();
    let mut found = Vec::new();
    for piece in pieces {
        position.follow(piece, |kind, flags, length| {
            found.push((kind, flags, length));
        });
    }
    (found, position.is_unfinished())
}
