//! Every signature vector against the core: published examples, primitives, and requests that third-party libraries signed.
//!
//! `tests/vectors/README.md` lists their sources.
//!
//! Promise (Signatures): Every published and generated signature vector verifies; a changed vector does not. Also in
//! `tests/acceptance/harness.rs`.

use std::collections::BTreeMap;

use countersign::{
    base::secret::Secret,
    oauth::{
        BaseString, DeviationSet, EncodedOrigin, LocationRule, MethodSet, ParameterLocation,
        Parameters, ProtocolParameter, RequestUri, RsaPublicKey, Selection, SignatureMethod,
        SigningKey, is_body_hash, percent, sign, verify,
    },
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Primitives {
    percent_encode: Vec<PercentVector>,
    normalize: Vec<NormalizeVector>,
    hmac: Vec<HmacVector>,
    authorization_header_parse: Vec<HeaderVector>,
}

#[derive(Deserialize)]
struct PercentVector {
    #[serde(rename = "in")]
    plain: String,
    out: String,
}

#[derive(Deserialize)]
struct NormalizeVector {
    parameters: Vec<(String, String)>,
    normalized: String,
}

#[derive(Deserialize)]
struct HmacVector {
    signature_method: String,
    base_string: String,
    consumer_secret: String,
    token_secret: String,
    signature: String,
}

#[derive(Deserialize)]
struct HeaderVector {
    header: String,
    realm: String,
    parameters: Vec<(String, String)>,
}

/// A request of `published.json` or `generated.json`.
#[derive(Deserialize)]
struct Vector {
    id: String,
    method: String,
    url: String,
    authorization_header: Option<String>,
    content_type: Option<String>,
    body: Option<String>,
    consumer_secret: Option<String>,
    token_secret: Option<String>,
    signature_method: String,
    rsa_public_key: Option<String>,
    parameters: Vec<(String, String)>,
    normalized_parameters: String,
    base_string: String,
    signature: Option<String>,
    base_string_uri: Option<String>,
    body_hash: Option<String>,
}

#[test]
fn primitives() {
    let vectors: Primitives = serde_json::from_str(include_str!("primitives.json")).unwrap();

    assert_eq!(vectors.percent_encode.len(), 14);
    for vector in vectors.percent_encode {
        assert_eq!(percent::encode(vector.plain.as_bytes()), vector.out);
        assert_eq!(
            &*percent::decode(vector.out.as_bytes()).unwrap(),
            vector.plain.as_bytes()
        );
    }

    assert_eq!(vectors.normalize.len(), 6);
    for vector in vectors.normalize {
        let mut parameters = Parameters::new();
        parameters
            .read_query(form(&vector.parameters).as_bytes())
            .unwrap();
        assert_eq!(normalized(&parameters), vector.normalized);
    }

    assert_eq!(vectors.hmac.len(), 3);
    for vector in vectors.hmac {
        let key = key(Some(&vector.consumer_secret), Some(&vector.token_secret));
        let made = sign(
            method(&vector.signature_method),
            &key,
            &vector.base_string.as_bytes(),
        )
        .unwrap();
        assert_eq!(made, vector.signature);
    }

    assert_eq!(vectors.authorization_header_parse.len(), 1);
    for vector in vectors.authorization_header_parse {
        let mut parameters = Parameters::new();
        parameters.read_header(vector.header.as_bytes()).unwrap();
        assert_eq!(parameters.realm(), Some(vector.realm.as_bytes()));
        assert_eq!(pairs(&parameters), vector.parameters);
    }
}

#[test]
fn published_examples() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("published.json")).unwrap();
    let done: Tally = vectors.iter().map(run).sum();
    let expected = Tally {
        vectors: 22,
        headers: 13,
        forms: 4,
        uris: 2,
        verified: 13,
        made: 17,
        unsigned: 4,
        body_hashes: 2,
        by_method: counts(&[("HMAC-SHA1", 16), ("PLAINTEXT", 5), ("RSA-SHA1", 1)]),
    };
    assert_eq!(done, expected);
}

#[test]
fn requests_signed_by_client_libraries() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("generated.json")).unwrap();
    let done: Tally = vectors.iter().map(run).sum();
    let expected = Tally {
        vectors: 685,
        headers: 545,
        forms: 163,
        uris: 0,
        verified: 685,
        made: 630,
        unsigned: 0,
        body_hashes: 61,
        by_method: counts(&[
            ("HMAC-SHA1", 461),
            ("PLAINTEXT", 126),
            ("RSA-SHA1", 47),
            ("HMAC-SHA256", 36),
            ("HMAC-SHA512", 7),
            ("RSA-SHA256", 7),
            ("RSA-SHA512", 1),
        ]),
    };
    assert_eq!(done, expected);
}

fn counts(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts
        .iter()
        .map(|&(method, count)| (method.to_owned(), count))
        .collect()
}

/// Counts of the checks made, so that no vector is skipped unnoticed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Tally {
    vectors: usize,
    headers: usize,
    forms: usize,
    uris: usize,
    /// The signature came with the request and was checked as a server checks it.
    verified: usize,
    /// The signature was made here and compared.
    made: usize,
    /// The document gives no secrets, so there is no signature to compare.
    unsigned: usize,
    body_hashes: usize,
    by_method: BTreeMap<String, usize>,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut sum, next| {
            sum.vectors += next.vectors;
            sum.headers += next.headers;
            sum.forms += next.forms;
            sum.uris += next.uris;
            sum.verified += next.verified;
            sum.made += next.made;
            sum.unsigned += next.unsigned;
            sum.body_hashes += next.body_hashes;
            for (method, count) in next.by_method {
                *sum.by_method.entry(method).or_default() += count;
            }
            sum
        })
    }
}

fn run(vector: &Vector) -> Tally {
    let id = &vector.id;
    let mut tally = Tally {
        vectors: 1,
        by_method: BTreeMap::from([(vector.signature_method.clone(), 1)]),
        ..Tally::default()
    };

    // The request as it was sent.
    let uri = RequestUri::parse(&vector.url).unwrap();
    let mut parameters = Parameters::new();
    if let Some(header) = &vector.authorization_header {
        parameters.read_header(header.as_bytes()).unwrap();
        tally.headers += 1;
    }
    if let Some(query) = uri.query {
        parameters.read_query(query.as_bytes()).unwrap();
    }
    if let (Some("application/x-www-form-urlencoded"), Some(body)) =
        (vector.content_type.as_deref(), &vector.body)
    {
        parameters.read_body(body.as_bytes()).unwrap();
        tally.forms += 1;
    }
    // Some documents give the oauth_ parameters of a request without placing them.
    let placed = parameters.has_protocol_parameter();
    if !placed {
        let (oauth, _): (Vec<_>, Vec<_>) = vector
            .parameters
            .iter()
            .cloned()
            .partition(|(name, _)| name.starts_with("oauth_"));
        parameters.read_header(header(&oauth).as_bytes()).unwrap();
    }

    // The signed data.
    let mut expected = vector.parameters.clone();
    let mut found = pairs(&parameters);
    found.retain(|(name, _)| name != "oauth_signature");
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{id}: parameters");
    assert_eq!(
        normalized(&parameters),
        vector.normalized_parameters,
        "{id}: normalized parameters"
    );
    let origin = uri.origin();
    let base = BaseString {
        method: vector.method.as_bytes(),
        origin: &origin,
        path: uri.path.as_bytes(),
        parameters: &parameters,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
    };
    assert_eq!(text(base.to_vec()), vector.base_string, "{id}: base string");
    if let Some(expected) = &vector.base_string_uri {
        let path = if uri.path.is_empty() { "/" } else { uri.path };
        assert_eq!(
            text(percent::decode(origin.as_bytes()).unwrap().into_owned()) + path,
            *expected,
            "{id}: base string URI"
        );
        tally.uris += 1;
    }

    // The protocol parameters.
    let signature_method = method(&vector.signature_method);
    let protocol = parameters
        .protocol(MethodSet::ALL, LocationRule::OneLocation)
        .unwrap();
    let value_of = |name: &str| {
        vector
            .parameters
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_bytes())
    };
    assert_eq!(
        protocol.value(ProtocolParameter::ConsumerKey),
        value_of("oauth_consumer_key"),
        "{id}"
    );
    assert_eq!(
        protocol.value(ProtocolParameter::Token),
        value_of("oauth_token"),
        "{id}"
    );
    assert_eq!(
        protocol.value(ProtocolParameter::Callback),
        value_of("oauth_callback"),
        "{id}"
    );
    assert_eq!(
        protocol.value(ProtocolParameter::Verifier),
        value_of("oauth_verifier"),
        "{id}"
    );
    assert_eq!(
        protocol.nonce.map(|nonce| nonce.as_bytes()),
        value_of("oauth_nonce"),
        "{id}"
    );
    let timestamp = protocol
        .timestamp
        .map(|timestamp| timestamp.seconds().to_string());
    assert_eq!(
        timestamp.as_deref().map(str::as_bytes),
        value_of("oauth_timestamp"),
        "{id}"
    );
    assert_eq!(
        protocol.value(ProtocolParameter::BodyHash),
        value_of("oauth_body_hash"),
        "{id}"
    );
    assert!(
        protocol
            .signature_method
            .is_none_or(|sent| sent == signature_method),
        "{id}"
    );
    // `placement` is where the library was asked to put them; python-oauth2 chooses by the method instead.
    let location = match (&vector.authorization_header, uri.query) {
        (None, Some(query)) if query.contains("oauth_consumer_key=") => ParameterLocation::Query,
        (None, _) if placed => ParameterLocation::Body,
        _ => ParameterLocation::Header,
    };
    assert!(
        parameters
            .iter()
            .filter(|parameter| parameter.is_oauth())
            .all(|parameter| parameter.location == location),
        "{id}"
    );

    // The signature.
    let key = key(
        vector.consumer_secret.as_deref(),
        vector.token_secret.as_deref(),
    );
    let rsa = vector
        .rsa_public_key
        .as_deref()
        .map(|pem| RsaPublicKey::from_pem(pem).unwrap());
    let holds = |sent: &[u8]| verify(signature_method, &key, rsa.as_ref(), &base, sent).is_ok();
    match &vector.signature {
        None => tally.unsigned += 1,
        Some(expected) => {
            assert!(
                holds(expected.as_bytes()),
                "{id}: the signature does not verify"
            );
            assert_no_other_holds(id, expected, &holds);
            assert_bound_to_request(
                id,
                &base,
                &|base| {
                    verify(
                        signature_method,
                        &key,
                        rsa.as_ref(),
                        base,
                        expected.as_bytes(),
                    )
                    .is_ok()
                },
                signature_method,
            );
            if !signature_method.is_rsa() {
                assert_eq!(
                    sign(signature_method, &key, &base).unwrap(),
                    *expected,
                    "{id}"
                );
                tally.made += 1;
            }
            if let Some(sent) = protocol.value(ProtocolParameter::Signature) {
                assert_eq!(sent, expected.as_bytes(), "{id}: the signature as sent");
                let credentials = protocol.demand(&[]).unwrap();
                assert!(holds(credentials.signature), "{id}");
                tally.verified += 1;
            }
        }
    }

    // The body hash: where the document shows one, and where a library sent one.
    if let Some(sent) = protocol.value(ProtocolParameter::BodyHash) {
        if let Some(documented) = &vector.body_hash {
            assert_eq!(sent, documented.as_bytes(), "{id}");
        }
        tally.body_hashes += 1;
        let hash = |body: &str| is_body_hash(signature_method, sent, body.as_bytes());
        let body = vector.body.as_deref().unwrap_or_default();
        assert!(hash(body), "{id}: body hash");
        assert!(
            !hash(&format!("{body} ")),
            "{id}: body hash of another body"
        );
    }
    tally
}

/// Each change to a right signature makes it wrong.
fn assert_no_other_holds(id: &str, signature: &str, holds: &dyn Fn(&[u8]) -> bool) {
    for at in 0..signature.len() {
        let mut tampered = signature.as_bytes().to_vec();
        tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
        assert!(
            !holds(&tampered),
            "{id}: byte {at} of the signature does not count"
        );
    }
    for tampered in [
        "",
        signature.trim_end_matches(['=', '&']),
        &format!("{signature}="),
        &format!("{signature} "),
        &format!(" {signature}"),
        &format!("{signature}\n"),
        &format!("{signature}{signature}"),
    ] {
        if tampered != signature {
            assert!(!holds(tampered.as_bytes()), "{id}: {tampered:?}");
        }
    }
}

/// The right signature is wrong for every other request.
fn assert_bound_to_request(
    id: &str,
    base: &BaseString<'_>,
    holds: &dyn Fn(&BaseString<'_>) -> bool,
    method: SignatureMethod,
) {
    if method == SignatureMethod::Plaintext {
        return;
    }
    let mut more = Parameters::new();
    more.read_query(b"added=1").unwrap();
    let origin = EncodedOrigin::new(countersign::oauth::Scheme::Http, "elsewhere.example", None);
    for tampered in [
        BaseString {
            method: b"TRACE",
            ..*base
        },
        BaseString {
            path: b"/other",
            ..*base
        },
        BaseString {
            origin: &origin,
            ..*base
        },
        BaseString {
            parameters: &more,
            ..*base
        },
    ] {
        assert!(!holds(&tampered), "{id}: {tampered:?}");
    }
}

fn method(name: &str) -> SignatureMethod {
    SignatureMethod::from_wire(name.as_bytes()).unwrap()
}

fn key(consumer_secret: Option<&str>, token_secret: Option<&str>) -> SigningKey {
    let secret = |secret: Option<&str>| Secret::from(secret.unwrap_or_default());
    SigningKey::new(&secret(consumer_secret), &secret(token_secret))
}

fn pairs(parameters: &Parameters) -> Vec<(String, String)> {
    parameters
        .iter()
        .map(|parameter| {
            (
                text(parameter.name.to_vec()),
                text(parameter.value.to_vec()),
            )
        })
        .collect()
}

fn normalized(parameters: &Parameters) -> String {
    text(parameters.normalized(Selection::Rfc5849))
}

fn form(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape_all(name), escape_all(value)))
        .collect();
    pairs.join("&")
}

fn header(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escape_all(value)))
        .collect();
    format!("OAuth {}", pairs.join(", "))
}

/// Escapes every byte, so that these tests depend on no encoder.
fn escape_all(plain: &str) -> String {
    plain.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
