//! Queries and form bodies are read as the model reads them, in memory that was used before.

#![no_main]

use std::cell::RefCell;

use countersign::oauth::{LocationRule, MethodSet, Parameters, Selection};
use countersign_fuzz as model;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static PARAMETERS: RefCell<Parameters> = RefCell::default();
}

fuzz_target!(|input: &[u8]| {
    PARAMETERS.with_borrow_mut(|parameters| {
        parameters.clear();
        let read = parameters.read_body(input);
        match model::form(input) {
            None => {
                assert!(read.is_err());
                assert!(
                    parameters
                        .protocol(MethodSet::ALL, LocationRule::OneLocation)
                        .is_err()
                );
            }
            Some(expected) => {
                assert!(read.is_ok());
                let found: Vec<model::Pair> = parameters
                    .iter()
                    .map(|parameter| (parameter.name.to_vec(), parameter.value.to_vec()))
                    .collect();
                assert_eq!(found, expected);
                assert_eq!(
                    parameters.normalized(Selection::Rfc5849),
                    model::normalized(&expected)
                );
                if let Ok(protocol) = parameters.protocol(MethodSet::ALL, LocationRule::OneLocation)
                {
                    let nonces: Vec<_> = expected
                        .iter()
                        .filter(|(name, _)| name == b"oauth_nonce")
                        .collect();
                    assert!(nonces.len() <= 1);
                    assert_eq!(
                        protocol.nonce.map(|nonce| nonce.as_bytes()),
                        nonces.first().map(|(_, value)| &value[..])
                    );
                }
            }
        }
    });
});
