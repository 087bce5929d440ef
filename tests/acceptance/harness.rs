//! The harness itself: an oracle that is wrong proves nothing.

use serde_json::Value;

use crate::support::{
    Answer, http,
    signer::{self, Pair},
    visitor::Page,
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
fn reads_forms_as_a_browser_does() {
    let html = r#"<form method=post action="/a?b=1&amp;c=2"><input type="hidden" name="t" value="x&quot;&#39;y">
        <input name=username><button name="decision" value="allow">Yes</button></form><p id="verifier"> 1234 5678 </p>"#;
    let answer = Answer {
        status: 200,
        fields: http::Fields::default(),
        body: html.as_bytes().to_vec(),
        framing: http::Framing::Empty,
        interim: Vec::new(),
    };
    let page = Page {
        target: "/".to_owned(),
        answer,
    };
    let form = page.form_with("decision");
    assert_eq!(
        (form.method.as_str(), form.action.as_str()),
        ("POST", "/a?b=1&c=2")
    );
    assert_eq!(
        form.fields,
        [
            ("t".to_owned(), "x\"'y".to_owned()),
            ("username".to_owned(), String::new())
        ]
    );
    assert_eq!(form.buttons, [("decision".to_owned(), "allow".to_owned())]);
    assert_eq!(page.element("verifier").as_deref(), Some("1234 5678"));
}
