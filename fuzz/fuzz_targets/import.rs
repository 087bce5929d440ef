//! Records that an import reads, an export writes so that they are read as the same; no file panics.

#![no_main]

use countersign::{
    base::clock::UnixTime,
    cli::transfer::fuzzing::{read, write},
};
use libfuzzer_sys::fuzz_target;

const NOW: UnixTime = UnixTime(1_700_000_000);

fuzz_target!(|input: &[u8]| {
    // Without the line that begins every export, few inputs would get past the check for it.
    let text = [b"{\"kind\":\"export\",\"version\":1}\n", input].concat();
    match read(&text, NOW) {
        Ok(records) => assert_eq!(read(&write(records.clone(), NOW), NOW), Ok(records)),
        Err(problems) => {
            for problem in problems {
                assert_eq!(problem.lines().count(), 1, "{problem:?}");
            }
        }
    }
    let _ = read(input, NOW);
});
