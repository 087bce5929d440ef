//! What an import reads, an export writes so that it is read as the same; no file panics.

#![no_main]

use countersign::{cli::transfer::format, clock::UnixTime, store::transfer::Record};
use libfuzzer_sys::fuzz_target;

fn read(text: &[u8], now: UnixTime) -> Result<Vec<Record>, String> {
    match format::read(text, now) {
        Ok(Ok(lines)) => Ok(lines.into_iter().map(|(_, record)| record).collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fuzz_target!(|input: &[u8]| {
    let now = UnixTime(1_700_000_000);
    // Without the line that begins every export, hardly any input would get further than to that.
    let text = [b"{\"kind\":\"export\",\"version\":1}\n", input].concat();
    match read(&text, now) {
        Ok(records) => {
            let written = format::write(&records);
            assert_eq!(read(written.as_bytes(), now).as_ref(), Ok(&records));
        }
        Err(problem) => assert_eq!(problem.lines().count(), 1, "{problem:?}"),
    }
    let _ = read(input, now);
});
