use super::*;

const ALL_BUT_PLAINTEXT: [SignatureMethod; 7] = [
    SignatureMethod::HmacSha1,
    SignatureMethod::HmacMd5,
    SignatureMethod::HmacSha256,
    SignatureMethod::HmacSha512,
    SignatureMethod::RsaSha1,
    SignatureMethod::RsaSha256,
    SignatureMethod::RsaSha512,
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
        .protocol(ALL_BUT_PLAINTEXT.into_iter().collect())
        .map(|_| ())
}

fn missing(header: &str, also: &[ProtocolParameter]) -> String {
    let parameters = read(header);
    match parameters.protocol(MethodSet::ALL).unwrap().demand(also) {
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
        .protocol(MethodSet::ALL)
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
fn lists_all_that_is_missing() {
    assert_eq!(missing(COMPLETE, &[]), "");
    assert_eq!(
        missing("", &[]),
        "oauth_consumer_key&oauth_signature_method&oauth_signature&oauth_timestamp&oauth_nonce"
    );
    assert_eq!(
        missing("oauth_nonce=\"n\", oauth_signature=\"s\"", &[]),
        "oauth_consumer_key&oauth_signature_method&oauth_timestamp"
    );
    let also = [
        ProtocolParameter::Verifier,
        ProtocolParameter::Token,
        ProtocolParameter::Callback,
    ];
    assert_eq!(missing(COMPLETE, &also), "oauth_callback&oauth_verifier");
    let other_token = COMPLETE.replace("oauth_token=\"t\"", "oauth_token=\"\"");
    assert_eq!(
        missing(&other_token, &also[..2]),
        "oauth_token&oauth_verifier"
    );
    assert_eq!(missing(&other_token, &[]), "");
}

#[test]
fn each_name_is_demanded_when_it_is_absent() {
    for name in [
        "consumer_key",
        "signature_method",
        "timestamp",
        "nonce",
        "signature",
    ] {
        let without: Vec<&str> = COMPLETE
            .split(", ")
            .filter(|pair| !pair.starts_with(&format!("oauth_{name}=")))
            .collect();
        assert_eq!(missing(&without.join(", "), &[]), format!("oauth_{name}"));
    }
}

#[test]
fn plaintext_needs_neither_timestamp_nor_nonce() {
    let plaintext =
        "oauth_consumer_key=\"k\", oauth_signature_method=\"PLAINTEXT\", oauth_signature=\"s%26\"";
    assert_eq!(missing(plaintext, &[]), "");
    let parameters = read(plaintext);
    assert!(
        parameters
            .protocol(MethodSet::ALL)
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
            .protocol(MethodSet::ALL)
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
    for name in [
        "PLAINTEXT",
        "HMAC-SHA3-256",
        "SHA1",
        "RSA-SHA1%00",
        "HMAC-SHA1%20",
    ] {
        assert_eq!(
            shape(&COMPLETE.replace("hmac_sha1", name)),
            Err(ShapeError::MethodRejected {
                accepted: ALL_BUT_PLAINTEXT.into_iter().collect()
            }),
            "{name}"
        );
    }
    assert!(read(COMPLETE).protocol(MethodSet::EMPTY).is_err());
}

#[test]
fn the_version_is_1_0_if_there_is_one() {
    for version in ["1.0", "1.0a", "1.0A", "%31%2E0"] {
        assert_eq!(
            shape(&format!("oauth_version=\"{version}\"")),
            Ok(()),
            "{version}"
        );
    }
    for version in ["2.0", "1", "1.0%20", "1.0b", "01.0"] {
        assert_eq!(
            shape(&format!("oauth_version=\"{version}\"")),
            Err(ShapeError::VersionRejected),
            "{version}"
        );
    }
    assert_eq!(shape("oauth_nonce=\"n\""), Ok(()));
}

#[test]
fn a_timestamp_is_a_positive_decimal_number() {
    for (value, seconds) in [
        ("1", 1),
        ("1795229418", 1_795_229_418),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(
            Timestamp::from_wire(value.as_bytes()).map(Timestamp::seconds),
            Some(seconds)
        );
    }
    let wrong = [
        "",
        "0",
        "00",
        "01",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e9",
        "0x5f",
        "abc",
        "١٢٣",
        "18446744073709551616",
        "99999999999999999999999999999999",
    ];
    for value in wrong {
        assert_eq!(Timestamp::from_wire(value.as_bytes()), None, "{value}");
    }
    assert_eq!(
        shape("oauth_timestamp=\"01\""),
        Err(rejected(
            ProtocolParameter::Timestamp,
            "not a positive number of seconds"
        ))
    );
}

#[test]
fn a_nonce_is_255_visible_characters_at_most() {
    for value in ["n", "!~", &"n".repeat(255)] {
        assert_eq!(
            Nonce::from_wire(value.as_bytes()).map(Nonce::as_bytes),
            Some(value.as_bytes())
        );
    }
    for value in [
        "",
        " ",
        "a b",
        "a\0b",
        "a\u{7f}",
        "é",
        "\u{c0}\u{af}",
        &"n".repeat(256),
    ] {
        assert_eq!(Nonce::from_wire(value.as_bytes()), None, "{value:?}");
    }
    assert_eq!(
        shape("oauth_nonce=\"a%00b\""),
        Err(rejected(
            ProtocolParameter::Nonce,
            "not 1 to 255 visible ASCII characters"
        ))
    );
}

#[test]
fn debug_prints_neither_signature_nor_verifier() {
    let parameters =
        read(&format!("{COMPLETE}, oauth_verifier=\"hunter2\"").replace("s%3D", "hunter3"));
    let protocol = parameters.protocol(MethodSet::ALL).unwrap();
    let printed = format!("{protocol:?} {:?}", protocol.demand(&[]).unwrap());
    assert!(!printed.contains("hunter"), "{printed}");
}
