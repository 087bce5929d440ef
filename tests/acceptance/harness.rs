//! The harness itself: an oracle that is wrong proves nothing.

use serde_json::Value;

use crate::support::{
    Connection, Reply, Upstream,
    http::Framing,
    signer::{self, Pair},
};

/// The published examples: their base strings and, where the secrets are known, their signatures.
#[test]
fn signer_makes_the_published_base_strings_and_signatures() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/published.json")).unwrap();
    let text = |vector: &Value, name: &str| vector[name].as_str().unwrap_or_default().to_owned();
    let mut signatures = 0;
    for vector in &vectors {
        let (id, method) = (text(vector, "id"), text(vector, "signature_method"));
        let parameters: Vec<Pair> = vector["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| {
                (
                    pair[0].as_str().unwrap().into(),
                    pair[1].as_str().unwrap().into(),
                )
            })
            .collect();
        let uri = signer::base_uri(&text(vector, "url"));
        let base = signer::base_string(&text(vector, "method"), &uri, &parameters);
        if vector["base_string"].is_string() {
            assert_eq!(base, text(vector, "base_string"), "{id}");
        }
        if vector["signature"].is_string() && !method.starts_with("RSA") {
            let (consumer, token) = (
                text(vector, "consumer_secret"),
                text(vector, "token_secret"),
            );
            let key = format!("{}&{}", signer::encode(consumer), signer::encode(token));
            assert_eq!(
                signer::signature(&method, &key, &base),
                text(vector, "signature"),
                "{id}"
            );
            signatures += 1;
        }
    }
    assert_eq!((vectors.len(), signatures), (22, 17));
}

#[test]
fn rsa_signature_verifies_under_the_public_key() {
    let directory = tempfile::tempdir().unwrap();
    let (private, public) = signer::rsa_key_pair(directory.path());
    let signature = signer::rsa_signature("RSA-SHA256", &private, "base");
    use base64::{Engine, engine::general_purpose::STANDARD};
    let file = directory.path().join("signature");
    std::fs::write(&file, STANDARD.decode(signature).unwrap()).unwrap();
    std::fs::write(directory.path().join("base"), "base").unwrap();
    let verified = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-verify"])
        .arg(&public)
        .arg("-signature")
        .arg(&file)
        .arg(directory.path().join("base"))
        .status()
        .unwrap();
    assert!(verified.success());
}

#[test]
fn upstream_records_what_the_wire_carried() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/chunks" => Reply::ok("").chunked(&["one", "two"]),
        "/close" => Reply::ok("").until_close("till the end"),
        _ => Reply::status("201 Created")
            .header("Location", "/made")
            .body("made"),
    });
    let address = api.authority().parse().unwrap();
    let mut kept = Connection::to(address);
    kept.send(
        b"POST /a%2fb?x=%7e HTTP/1.1\r\nHost: h\r\nX-One:  a b \r\nContent-Length: 3\r\n\r\nabc",
    );
    let made = kept.answer("POST");
    assert_eq!(
        (made.status, made.header("location"), made.text().as_str()),
        (201, Some("/made"), "made")
    );
    kept.send(b"PUT /chunks HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n");
    let chunks = kept.answer("PUT");
    assert_eq!(
        (chunks.framing, chunks.text().as_str()),
        (Framing::Chunked, "onetwo")
    );
    kept.send(b"GET /close HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(kept.answer("GET").text(), "till the end");

    let seen = api.requests();
    assert_eq!(
        seen.iter()
            .map(|seen| seen.target.as_str())
            .collect::<Vec<_>>(),
        ["/a%2fb?x=%7e", "/chunks", "/close"]
    );
    assert_eq!(
        (seen[0].header("x-one"), seen[0].body.as_slice()),
        (Some("a b"), b"abc".as_slice())
    );
    assert_eq!(
        (seen[1].framing, seen[1].text().as_str()),
        (Framing::Chunked, "hello")
    );
    assert!(
        seen[0]
            .head
            .starts_with(b"POST /a%2fb?x=%7e HTTP/1.1\r\nHost: h\r\nX-One:  a b \r\n")
    );
    assert_eq!(api.connections(), 1);
}
