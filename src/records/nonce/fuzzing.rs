//! The files of a window, for the fuzz targets alone.

use std::{io, path::Path};

use super::{
    key::Key,
    segment::{self, Segment},
    state,
};

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

/// Writes a log with these records.
///
/// # Errors
/// The system's.
pub fn write(log: &Path, records: &[(u64, u64)]) -> io::Result<()> {
    let segment = Segment::create(log, 1, records.len(), KEY)?;
    for &(second, fingerprint) in records {
        segment.append(second, KEY.seal(second, fingerprint));
    }
    Ok(())
}
