//! What an import reads, an export writes so that it is read as the same; no file panics.

#![no_main]

use std::io::Write;

use countersign::{cli::transfer::format, clock::UnixTime, store::transfer::Record};
use libfuzzer_sys::fuzz_target;

const NOW: UnixTime = UnixTime(1_700_000_000);

fn read(text: &[u8]) -> Result<Vec<Record>, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    let checked = format::check(file, NOW, |_| {}).unwrap();
    let checked = checked.map_err(|error| error.to_string())?;
    let mut records = Vec::new();
    let each = checked.each(|(_, record)| {
        records.push(record);
        Ok(())
    });
    each.unwrap();
    Ok(records)
}

fuzz_target!(|input: &[u8]| {
    // Without the line that begins every export, hardly any input would get further than to that.
    let text = [b"{\"kind\":\"export\",\"version\":1}\n", input].concat();
    match read(&text) {
        Ok(records) => {
            let mut written = format::head(Some(records.len() as u64));
            written.extend(records.iter().map(format::line));
            assert_eq!(read(written.as_bytes()).as_ref(), Ok(&records));
        }
        Err(problem) => assert_eq!(problem.lines().count(), 1, "{problem:?}"),
    }
    let _ = read(input);
});
