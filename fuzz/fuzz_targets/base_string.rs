//! The base string equals the model's, and its signature verifies for it alone.

#![no_main]

use countersign::{
    base::secret::Secret,
    oauth::{
        BaseString, DeviationSet, EncodedOrigin, Parameters, Scheme, Selection, SignatureMethod,
        SigningKey, sign, verify,
    },
};
use countersign_fuzz as model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Lines: method, path, query, form body, Authorization value without its scheme.
    let mut lines = input.splitn(5, |&byte| byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (method, path, query, body) = (line(), line(), line(), line());
    let header = [b"OAuth ", line()].concat();

    let mut parameters = Parameters::new();
    let read = [
        parameters.read_header(&header),
        parameters.read_query(query),
        parameters.read_body(body),
    ];
    let (Some(in_header), Some(in_query), Some(in_body)) = (
        model::header(&header),
        model::form(query),
        model::form(body),
    ) else {
        assert!(read.iter().any(Result::is_err));
        return;
    };
    assert!(read.iter().all(Result::is_ok));

    let origin = EncodedOrigin::new(Scheme::Https, "API.example.com", Some(8443));
    let right = BaseString {
        method,
        origin: &origin,
        path,
        parameters: &parameters,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
    };
    let described = BaseString {
        selection: Selection::Description,
        ..right
    };
    let oauth = |pairs: &[model::Pair]| -> Vec<model::Pair> {
        pairs
            .iter()
            .filter(|(name, _)| name.starts_with(b"oauth_"))
            .cloned()
            .collect()
    };
    let all = [&in_header[..], &in_query, &in_body].concat();
    let signed = [oauth(&in_header), oauth(&in_query), in_body].concat();
    let uri = "https://api.example.com:8443";
    assert_eq!(right.to_vec(), model::base_string(method, uri, path, &all));
    assert_eq!(
        described.to_vec(),
        model::base_string(method, uri, path, &signed)
    );

    let key = SigningKey::new(&Secret::from("consumer"), &Secret::from("token"));
    let method = SignatureMethod::HmacSha1;
    let signature = sign(method, &key, &right).expect("HMAC needs no private key");
    assert!(verify(method, &key, None, &right, signature.as_bytes()).is_ok());
    let same = right.to_vec() == described.to_vec();
    assert_eq!(
        verify(method, &key, None, &described, signature.as_bytes()).is_ok(),
        same
    );
});
