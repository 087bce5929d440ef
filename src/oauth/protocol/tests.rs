use super::*;
use crate::text::words;

const ALL_BUT_PLAINTEXT: [SignatureMethod; 8] = [
    SignatureMethod::HmacSha1,
    SignatureMethod::HmacMd5,
    SignatureMethod::HmacSha256,
    SignatureMethod::HmacSha512,
    SignatureMethod::RsaSha1,
    SignatureMethod::RsaSha256,
    SignatureMethod::RsaSha512,
    SignatureMethod::RsaPss,
];

fn read(header: &str) -> Parameters {
    let mut parameters = Parameters::new();
    parameters
        .read_header(format!("OAuth {header}").as_bytes())
        .unwrap();
    parameters
}

fn shape(header: &str) -> Result<(), ShapeError> {
    read(header)
        .protocol(
            ALL_BUT_PLAINTEXT.into_iter().collect(),
            LocationRule::OneLocation,
        )
        .map(|_| ())
}

fn missing(header: &str, also: &[ProtocolParameter]) -> String {
    let parameters = read(header);
    match parameters
        .protocol(MethodSet::ALL, LocationRule::OneLocation)
        .unwrap()
        .demand(also)
    {
        Ok(_) => String::new(),
        Err(ShapeError::Absent(names)) => names.to_string(),
        Err(other) => panic!("{other:?}"),
    }
}

const COMPLETE: &str = "oauth_consumer_key=\"k%20\", oauth_token=\"t\", oauth_signature_method=\"hmac_sha1\", \
                        oauth_timestamp=\"137131200\", oauth_nonce=\"n\", oauth_version=\"1.0\", oauth_signature=\"s%3D\"";

#[test]
fn a_complete_request_gives_its_credentials_decoded() {
    let parameters = read(COMPLETE);
    let credentials = parameters
        .protocol(MethodSet::ALL, LocationRule::OneLocation)
        .unwrap()
        .demand(&[])
        .unwrap();
    assert_eq!(credentials.consumer_key, b"k ");
    assert_eq!(credentials.token, Some(&b"t"[..]));
    assert_eq!(credentials.signature_method, SignatureMethod::HmacSha1);
    assert_eq!(credentials.signature, b"s=");
    let freshness = credentials.freshness.unwrap();
    assert_eq!(freshness.timestamp.seconds(), 137_131_200);
    assert_eq!(freshness.nonce.as_bytes(), b"n");
    assert_eq!(
        (
            credentials.callback,
            credentials.verifier,
            credentials.body_hash
        ),
        (None, None, None)
    );
}

#[test]
fn plaintext_needs_neither_timestamp_nor_nonce() {
    let plaintext =
        "oauth_consumer_key=\"k\", oauth_signature_method=\"PLAINTEXT\", oauth_signature=\"s%26\"";
    assert_eq!(missing(plaintext, &[]), "");
    let parameters = read(plaintext);
    assert!(
        parameters
            .protocol(MethodSet::ALL, LocationRule::OneLocation)
            .unwrap()
            .demand(&[])
            .unwrap()
            .freshness
            .is_none()
    );
    assert_eq!(
        missing("oauth_signature_method=\"PLAINTEXT\"", &[]),
        "oauth_consumer_key&oauth_signature"
    );
    let stamped = read(&COMPLETE.replace("hmac_sha1", "PLAINTEXT"));
    assert!(
        stamped
            .protocol(MethodSet::ALL, LocationRule::OneLocation)
            .unwrap()
            .demand(&[])
            .unwrap()
            .freshness
            .is_some()
    );
}

#[test]
fn only_methods_of_the_set_are_taken() {
    assert_eq!(shape(COMPLETE), Ok(()));
    for name in words("PLAINTEXT HMAC-SHA3-256 SHA1 RSA-SHA1%00 HMAC-SHA1%20") {
        assert_eq!(
            shape(&COMPLETE.replace("hmac_sha1", name)),
            Err(ShapeError::MethodRejected {
                accepted: ALL_BUT_PLAINTEXT.into_iter().collect()
            }),
            "{name}"
        );
    }
    assert!(
        read(COMPLETE)
            .protocol(MethodSet::EMPTY, LocationRule::OneLocation)
            .is_err()
    );
}

#[test]
fn what_is_not_a_timestamp_is_told_apart() {
    for (sent, expected) in [
        ("1371312.25", "without the fraction"),
        ("2026-01-31T12%3A00%3A00Z", "a date"),
        ("-1371312", "not a positive number"),
        ("0", "not a positive number"),
        (".5", "not a positive number"),
        ("now", "not a positive number"),
    ] {
        match shape(&COMPLETE.replace("137131200", sent)) {
            Err(ShapeError::Rejected { reason, .. }) => {
                assert!(reason.contains(expected), "{sent}: {reason}")
            }
            other => panic!("{sent}: {other:?}"),
        }
    }
}

#[test]
fn debug_prints_neither_signature_nor_verifier() {
    let parameters =
        read(&format!("{COMPLETE}, oauth_verifier=\"hunter2\"").replace("s%3D", "hunter3"));
    let protocol = parameters
        .protocol(MethodSet::ALL, LocationRule::OneLocation)
        .unwrap();
    let printed = format!("{protocol:?} {:?}", protocol.demand(&[]).unwrap());
    assert!(!printed.contains("hunter"), "{printed}");
}
