//! The files of the nonce window are read back complete or count as damaged: no nonce is lost unnoticed.

#![no_main]

use std::fs;

use countersign::records::nonce::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // In memory, where files are made in microseconds.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let directory = directory.expect("there is room for temporary files");
    let (state, log) = (directory.path().join("state"), directory.path().join("log"));
    fs::write(&state, [b"countersignonce\n", input].concat()).expect("room");
    fs::write(&log, input).expect("room");
    let _ = fuzzing::read(&state, &log);

    let Some((&[place, value], rest)) = input.split_first_chunk() else {
        return;
    };
    let records: Vec<(u64, u64)> = rest
        .chunks_exact(3)
        .map(|bytes| {
            (
                1 + u64::from(bytes[0]) << bytes[1] % 32,
                u64::from(bytes[2]),
            )
        })
        .collect();
    fuzzing::write(&log, &records).expect("room");
    let mut bytes = fs::read(&log).expect("a file");
    assert_eq!(fuzzing::read(&state, &log).expect("whole"), records);
    // One byte is replaced, or the end is cut off.
    let at = usize::from(place) * bytes.len() / 256;
    if value == 0 {
        bytes.truncate(at);
    } else {
        bytes[at] ^= value;
    }
    fs::write(&log, &bytes).expect("room");
    if let Ok(read) = fuzzing::read(&state, &log) {
        assert_eq!(read, records, "taken for whole");
    }
});
