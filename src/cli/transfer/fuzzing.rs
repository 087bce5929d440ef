//! Reading an import and writing an export, for the fuzz targets alone.

use super::{
    ExportWriter,
    contents::{Contents, ImportWarnings},
    input::Input,
    rows::Format,
};
use crate::{
    base::clock::UnixTime,
    operator::manage::transfer::export_line::Defaults,
    records::values::transfer::{ExportOrigin, Exported, Record},
};

/// The records of a file of JSON Lines, in the order of an import, or its problems.
///
/// # Errors
/// The text of each problem.
pub fn read(text: &[u8], now: UnixTime) -> Result<Vec<Record>, Vec<String>> {
    let defaults = Defaults {
        now,
        ..Defaults::default()
    };
    let failed = |error: std::io::Error| vec![error.to_string()];
    let input = Input::from_bytes(text).map_err(failed)?;
    let contents = Contents::check(&input, Format::Lines, defaults, ImportWarnings::default());
    let contents = contents.map_err(failed)?;
    let problems: Vec<_> = contents.problems.first().collect();
    if !problems.is_empty() {
        return Err(problems
            .into_iter()
            .map(|(_, problem)| problem.to_owned())
            .collect());
    }
    let records = contents.records(&input, Format::Lines);
    records
        .map(|read| Ok(read.map_err(failed)?.record))
        .collect()
}

/// The export of these records, made at `now`.
pub fn write(records: Vec<Record>, now: UnixTime) -> Vec<u8> {
    let origin = ExportOrigin {
        store: "store".to_owned(),
        accepted_until: now,
    };
    let mut text = Vec::new();
    let mut writer = ExportWriter::new(&mut text);
    for part in [
        Exported::Head(origin, records.len() as u64),
        Exported::Records(records),
    ] {
        // Writing to a vector never fails.
        let _ = writer.write(part, now);
    }
    text
}
