//! Looking a nonce up in the file of a window that another process may be serving.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
    sync::atomic::AtomicU64,
};

use super::{
    NonceUse,
    fingerprint::fingerprint,
    header::{HEADER_BLOCKS, Header},
    map::{BLOCK_BYTES, Block},
    segment::Segment,
};

/// Whether a nonce was used, by the file of a local window; `None` if the file cannot be read. It takes no lock and
/// reads the whole file, so it is for people who ask about one request. Each word is written whole, so that what is
/// found was inserted; a nonce that is inserted meanwhile may be missed.
#[must_use]
pub fn was_used(path: &Path, nonce: NonceUse<'_>) -> Option<bool> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut page = [0; HEADER_BLOCKS * BLOCK_BYTES];
    file.read_exact(&mut page).ok()?;
    let key = Header::parse(&page).ok()?.key;
    let wanted = fingerprint(&key, nonce.consumer, nonce.token, nonce.nonce);
    for number in HEADER_BLOCKS.. {
        let mut bytes = [0; BLOCK_BYTES];
        match file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(_) => return None,
        }
        let (words, _) = bytes.as_chunks();
        let block: Block = std::array::from_fn(|at| AtomicU64::new(u64::from_ne_bytes(words[at])));
        let segment = Segment(&block);
        // A label that does not hold is being written.
        if let Ok(Some(label)) = segment.label(&key, number)
            && label.second == nonce.timestamp
            && label.covers(wanted)
            && segment.fingerprints().any(|held| held == wanted)
        {
            return Some(true);
        }
    }
    Some(false)
}
