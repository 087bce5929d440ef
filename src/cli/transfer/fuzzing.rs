//! Reading an import and writing an export, for the fuzz targets alone.

use super::{line::Defaults, read::Contents, write as write_export};
use crate::{
    base::clock::UnixTime,
    records::store::transfer::{Export, Origin, Record},
};

/// The records of a file of JSON Lines, or its problems.
///
/// # Errors
/// The text of each problem.
pub fn read(text: &[u8], now: UnixTime) -> Result<Vec<Record>, Vec<String>> {
    let mut contents = Contents::new(Defaults {
        now,
        ..Defaults::default()
    });
    if let Err(error) = contents.read_lines(text) {
        return Err(vec![error.to_string()]);
    }
    match contents.problems.is_empty() {
        true => Ok(contents
            .take_records()
            .into_iter()
            .map(|(_, record)| record)
            .collect()),
        false => Err(contents
            .problems
            .into_iter()
            .map(|(_, problem)| problem)
            .collect()),
    }
}

/// The export of these records, made at `now`.
pub fn write(records: Vec<Record>, now: UnixTime) -> Vec<u8> {
    let origin = Origin {
        store: "store".to_owned(),
        accepted_until: now,
    };
    let mut text = Vec::new();
    // Writing to a vector never fails.
    let _ = write_export(&mut text, Export { origin, records });
    text
}
