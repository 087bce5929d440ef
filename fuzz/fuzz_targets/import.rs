//! What an import reads, an export writes so that it is read as the same; no file panics.

#![no_main]

use countersign::{cli::transfer::fuzzing, clock::UnixTime};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let now = UnixTime(1_700_000_000);
    // Without the line that begins every export, hardly any input would get further than to that.
    let text = [b"{\"kind\":\"export\",\"version\":1}\n", input].concat();
    match fuzzing::read(&text, now) {
        Ok(records) => {
            let written = fuzzing::write(&records);
            assert_eq!(fuzzing::read(written.as_bytes(), now).as_ref(), Ok(&records));
        }
        Err(problem) => assert_eq!(problem.lines().count(), 1, "{problem:?}"),
    }
    let _ = fuzzing::read(input, now);
});
