//! Authorization values are accepted and read as the model does it.

#![no_main]

use countersign::oauth::{LocationRule, MethodSet, Parameters, is_oauth_scheme};
use countersign_fuzz as model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    check(input);
    // Most inputs have another scheme, and nothing after it is read.
    check(&[b"OAuth ", input].concat());
});

fn check(value: &[u8]) {
    let mut parameters = Parameters::new();
    let read = parameters.read_header(value);
    match model::header(value) {
        None => {
            assert!(read.is_err());
            assert!(
                parameters
                    .protocol(MethodSet::ALL, LocationRule::OneLocation)
                    .is_err()
            );
        }
        Some(expected) => {
            assert!(is_oauth_scheme(value));
            assert!(read.is_ok());
            let found: Vec<model::Pair> = parameters
                .iter()
                .map(|parameter| (parameter.name.to_vec(), parameter.value.to_vec()))
                .collect();
            assert_eq!(found, expected);
            let signed_call = expected.iter().any(|(name, _)| KNOWN.contains(&&name[..]));
            assert_eq!(parameters.has_protocol_parameter(), signed_call);
        }
    }
}

const KNOWN: [&[u8]; 10] = [
    b"oauth_consumer_key",
    b"oauth_token",
    b"oauth_signature_method",
    b"oauth_signature",
    b"oauth_timestamp",
    b"oauth_nonce",
    b"oauth_version",
    b"oauth_callback",
    b"oauth_verifier",
    b"oauth_body_hash",
];
