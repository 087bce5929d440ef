//! Percent-coding equals the model's, and decoding undoes encoding.

#![no_main]

use countersign::oauth::percent;
use countersign_fuzz as model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let encoded = percent::encode(input);
    assert_eq!(encoded.as_bytes(), model::encode(input));
    assert_eq!(percent::decode(encoded.as_bytes()).as_deref(), Ok(input));
    assert_eq!(
        percent::decode(input).ok().as_deref(),
        model::decode(input, false).as_deref()
    );
    assert_eq!(
        percent::decode_form(input).ok().as_deref(),
        model::decode(input, true).as_deref()
    );
});
