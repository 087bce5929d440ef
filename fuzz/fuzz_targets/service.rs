//! The whole service on streams in memory: the API sees only verified requests, each nonce once, under the identity
//! that belongs to it; and every connection ends.

#![no_main]

use countersign_fuzz::service;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: service::check(),
    |input: &[u8]| {
        service::run(input);
    }
);
