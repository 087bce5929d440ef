//! The reader of a window's files, for the fuzz targets alone.

use std::{io, path::Path};

use super::{key::Key, segment, state};

/// The key of the logs that are read.
const KEY: Key = Key([1, 2]);

/// Reads a state and a log, whatever they are; returns the records of the log.
///
/// # Errors
/// The log is damaged.
pub fn read(state: &Path, log: &Path) -> io::Result<Vec<(u64, u64)>> {
    let _ = state::read(state);
    let mut records = Vec::new();
    segment::replay(log, 1, KEY, |second, fingerprint| {
        records.push((second, fingerprint));
    })?;
    Ok(records)
}

/// The bytes of a log with these records.
pub fn log(records: &[(u64, u64)]) -> Vec<u8> {
    let head = KEY.seal(1, records.len() as u64);
    let records = records
        .iter()
        .map(|&(second, fingerprint)| KEY.seal(second, fingerprint));
    let words = std::iter::once(head).chain(records).flatten();
    words.flat_map(u64::to_ne_bytes).collect()
}
