//! The harness itself: an oracle that is wrong proves nothing.

use serde_json::Value;

use crate::support::signer::{self, Pair};

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
