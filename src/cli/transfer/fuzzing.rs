//! The format of exports, for the fuzz targets alone.

use super::format;
use crate::{clock::UnixTime, store::transfer::Record};

/// Reads an export; the error is the line that the command would print.
///
/// # Errors
/// The file is refused.
pub fn read(text: &[u8], now: UnixTime) -> Result<Vec<Record>, String> {
    match format::read(text, now) {
        Ok(Ok(lines)) => Ok(lines.into_iter().map(|line| line.record).collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes an export.
#[must_use]
pub fn write(records: &[Record]) -> String {
    format::write(records)
}
