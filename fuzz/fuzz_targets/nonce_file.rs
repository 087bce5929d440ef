//! What the nonce window's file holds is found again whole, or the file counts as damaged: never is a nonce lost in silence.

#![no_main]

use std::collections::BTreeMap;

use countersign::nonce::fuzzing::{Part, read_back, read_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    read_header(input);
    read_header(&[b"countersignonce\n", input].concat());

    let Some((&floor, rest)) = input.split_first() else {
        return;
    };
    let floor = u64::from(floor % 4);
    let parts: Vec<Part> = rest
        .chunks_exact(2)
        .take(24)
        .map(|bytes| {
            let depth = u32::from(bytes[0] >> 3) % 3;
            Part {
                second: u64::from(bytes[0] % 3) + 1,
                shard: (bytes[0] >> 2 & 1) * 9,
                depth,
                prefix: u32::from(bytes[1]) % (1 << depth),
                flipped: (bytes[0] & 0xe0 == 0xe0).then_some(u32::from(bytes[1] >> 1)),
            }
        })
        .collect();

    let mut covered: BTreeMap<(u64, u8), [u32; 4]> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.second > floor) {
        let quarters = covered.entry((part.second, part.shard)).or_default();
        for quarter in part.quarters() {
            quarters[quarter as usize] += 1;
        }
    }
    let flipped = parts.iter().any(|part| part.flipped.is_some());
    let complete = covered.values().flatten().all(|&count| count > 0);
    let exact = covered.values().flatten().all(|&count| count == 1);
    match read_back(&parts, floor) {
        Some(is_all_there) => {
            assert!(!flipped && complete, "taken for whole: {parts:?}");
            assert!(is_all_there, "lost: {parts:?}");
        }
        None => assert!(flipped || !exact, "taken for damaged: {parts:?}"),
    }
});
