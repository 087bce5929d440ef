//! The 74 templates of `tests/vectors/negative.json` against the running server: malformed requests and odd but legal
//! ones. The API behind the proxy is the oracle: it must not see a refused request, and must see a legal one.
//!
//! Promise (Signatures): A malformed request gets the response that RFC 5849 requires; no rejected request reaches the API.
//! Also in `tests/acceptance/request/rejections.rs`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::support::{
    Answer, Scene, Token, fresh,
    http::latin1,
    legs::asks,
    now,
    signer::{self, Pair, encode},
};

#[test]
fn every_negative_vector_is_answered_as_the_rfc_asks() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/negative.json")).unwrap();
    assert_eq!(vectors.len(), 74);
    let scene = Scene::start();

    let (mut refused, mut accepted, mut failures) = (0, 0, Vec::new());
    for vector in &vectors {
        let before = scene.api.count();
        let answer = send(&scene, vector);
        let reached = scene.api.count() - before;
        match judge(vector, &answer, reached) {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(fault) => failures.push(format!("{}: {fault}\n  {answer:?}", vector["id"])),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of 74:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert_eq!(refused + accepted, 74);
    assert!(accepted >= 15, "the legal ones pass: {accepted}");
}

/// Whether the request was rightly accepted; an error describes a wrong response.
fn judge(vector: &Value, answer: &Answer, reached: usize) -> Result<bool, String> {
    let list = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let status = Value::from(answer.status);
    let mut statuses = list(&vector["expect"]["status"]);
    statuses.extend(list(&vector["tolerate"]));
    if !statuses.contains(&status) {
        return Err(format!("status {status} is not one of {statuses:?}"));
    }
    let accepted = answer.status == 200;
    let protected = vector["endpoint"] == "protected";
    if reached != usize::from(accepted && protected) {
        return Err(format!("{reached} requests reached the API"));
    }
    if accepted {
        return Ok(true);
    }
    let problems = list(&vector["expect"]["problem"]);
    let problem = answer.problem();
    if !problems.is_empty() && !problems.contains(&Value::from(problem.clone())) {
        return Err(format!("problem {problem:?} is not one of {problems:?}"));
    }
    if [400, 401].contains(&answer.status) && problem.is_none() {
        return Err("no oauth_problem".to_owned());
    }
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    if answer.status == 401 && !challenge.starts_with("OAuth realm=") {
        return Err(format!("a 401 with WWW-Authenticate {challenge:?}"));
    }
    Ok(false)
}

/// Fills in the template, signs it as it says, and sends it.
fn send(scene: &Scene, vector: &Value) -> Answer {
    let text = |name: &str| vector[name].as_str().map(str::to_owned);
    let template = vector.to_string();
    let request_token = template.contains("$REQ").then(|| {
        crate::support::legs::token_of(&scene.proxy.send(asks(&scene.caller.consumer, "oob")))
    });
    let fill = filler(scene, request_token.as_ref());

    let method = text("method").unwrap();
    let target = fill(&text("target").unwrap());
    let authorization = text("authorization").map(|value| fill(&value));
    let body = text("body").map(|value| fill(&value));
    let mut fields: Vec<(String, String)> = vector["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pair| {
            (
                pair[0].as_str().unwrap().to_owned(),
                fill(pair[1].as_str().unwrap()),
            )
        })
        .collect();
    if let Some(content_type) = text("content_type") {
        fields.push(("Content-Type".to_owned(), content_type));
    }

    let mut signed: Vec<Pair> = authorization
        .as_deref()
        .map(signer::header_pairs)
        .unwrap_or_default();
    let signed_target = text("sign_target").unwrap_or_else(|| target.clone());
    if let Some((_, query)) = signed_target.split_once('?') {
        signed.extend(signer::form_pairs(query.as_bytes()));
    }
    if text("content_type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"))
    {
        signed.extend(signer::form_pairs(
            body.as_deref().unwrap_or_default().as_bytes(),
        ));
    }
    let uri = signer::base_uri(&format!("{}{signed_target}", scene.proxy.origin()));
    let base = signer::base_string(&method, &uri, &signed);
    let secret = match text("token_secret").as_deref() {
        Some("$REQSECRET") => request_token.as_ref().unwrap().secret.clone(),
        Some(secret) => secret.to_owned(),
        None => scene.caller.token.secret.clone(),
    };
    let key = match text("sign_key") {
        Some(key) => key
            .replace("$TS_SECRET", &encode(&scene.caller.token.secret))
            .replace("$CS", &encode(&scene.caller.consumer.secret)),
        None => format!(
            "{}&{}",
            encode(&scene.caller.consumer.secret),
            encode(&secret)
        ),
    };
    let signature = signer::signature(
        &text("sign_with").unwrap_or("HMAC-SHA1".to_owned()),
        &key,
        &base,
    );
    let hex: String = STANDARD
        .decode(&signature)
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let stamp = |value: &str| {
        value
            .replace("$SIGNOPAD", &encode(signature.trim_end_matches('=')))
            .replace("$SIGHEX", &hex)
            .replace("$SIG", &encode(&signature))
    };

    let mut wire = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\n",
        stamp(&target),
        scene.proxy.host()
    );
    if let Some(value) = &authorization {
        wire.push_str(&format!("Authorization: {}\r\n", stamp(value)));
    }
    for (name, value) in &fields {
        wire.push_str(&format!("{name}: {}\r\n", stamp(value)));
    }
    let body = body.map(|body| stamp(&body));
    if let Some(body) = &body {
        wire.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    wire.push_str("\r\n");
    wire.push_str(body.as_deref().unwrap_or_default());
    assert!(
        !wire.contains('$'),
        "everything is filled in: {}",
        latin1(wire.as_bytes())
    );
    let mut connection = scene.proxy.connect();
    connection.send(wire.as_bytes());
    connection.answer(&method)
}

/// The replacements of one request; all places of the nonce get the same one.
fn filler(scene: &Scene, request_token: Option<&Token>) -> impl Fn(&str) -> String {
    let (time, nonce) = (now(), fresh("n"));
    let (key, token) = (
        encode(&scene.caller.consumer.key),
        encode(&scene.caller.token.token),
    );
    let request_token = request_token
        .map(|token| encode(&token.token))
        .unwrap_or_default();
    move |text| {
        text.replace("$CK", &key)
            .replace("$TOKEN", &token)
            .replace("$REQTOKEN", &request_token)
            .replace("$TS-86400", &(time - 86_400).to_string())
            .replace("$TS+86400", &(time + 86_400).to_string())
            .replace("$TS", &time.to_string())
            .replace("$NONCE", &nonce)
    }
}
