//! Frames are counted alike in whatever pieces they arrive.

#![no_main]

use countersign::wire::fuzzing;
use countersign_fuzz::{http as model, service::PREFACE};
use libfuzzer_sys::fuzz_target;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

fuzz_target!(|input: &[u8]| {
    // The first two bytes give the sizes of the pieces in which the rest arrives.
    let Some((cuts, input)) = input.split_at_checked(2) else {
        return;
    };
    let bytes = [PREFACE, input].concat();
    let whole = fuzzing::frames(&[&bytes]);
    assert_eq!(fuzzing::frames(&model::pieces(&bytes, cuts)), whole);

    let (mut rest, mut expected, mut open, mut unfinished) = (input, Vec::new(), false, false);
    while let Some((head, behind)) = rest.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        expected.push((kind, flags, length));
        if matches!(kind, HEADERS | CONTINUATION) {
            open = flags & END_HEADERS == 0;
        }
        unfinished = length > behind.len() && kind != DATA;
        rest = &behind[length.min(behind.len())..];
    }
    assert_eq!(whole, (expected, open || unfinished || !rest.is_empty()));
});
