//! Why calls were rejected, and what is wrong with a signature.
//!
//! Promise (Admin API): `/v1/explain` finds the mistake in a signature and never shows an expected signature or a secret.

use super::*;

#[test]
fn the_last_rejections_are_listed_with_their_diagnosis() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let wrong = Call::get("/x").by(&consumer).with(&token);
    for _ in 0..3 {
        proxy.send(Call::get("/unsigned")).has_status(401);
    }
    let wrong = String::from_utf8(proxy.wire(&wrong)).unwrap();
    let mut connection = proxy.connect();
    connection.send(wrong.replacen("GET ", "PUT ", 1).as_bytes());
    connection.answer("PUT").is(401, "signature_invalid");
    let list = |path: &str| get(&proxy, path).has_status(200).json();
    until("all are listed", || {
        list("/v1/rejections")["items"].as_array().unwrap().len() == 4
    });
    let all = list("/v1/rejections");
    let newest = &all["items"][0];
    for (member, value) in [
        ("consumer", json!(consumer.key)),
        ("proof", json!("secrets")),
        ("token", json!(token.token[..8])),
        ("verdict", json!("signature_invalid")),
        ("diagnosis", json!("other_method")),
        ("status", json!(401)),
    ] {
        assert_eq!(newest[member], value, "{newest}");
    }
    assert_eq!(all["items"][1]["verdict"], "parameter_absent");
    assert_eq!(all["items"][1]["parameters"], Value::Null);
    let first = list("/v1/rejections?limit=3");
    let next = format!("/v1/rejections?limit=3&cursor={}", text(&first["next"]));
    // A call that is rejected meanwhile does not change the later pages.
    proxy.send(Call::get("/unsigned")).has_status(401);
    let rest = list(&next);
    assert_eq!(rest["items"], json!([all["items"][3]]));
    assert_eq!(rest["next"], Value::Null);
}

#[test]
fn rejection_names_parameter_reason_and_a_skipped_diagnosis() {
    let proxy = with_api(&Upstream::start(), "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let call = |target: &str| Call::get(target).by(&consumer).with(&token);
    let newest = |verdict: &str| {
        within(PATIENCE, "it is listed", || {
            let all = get(&proxy, "/v1/rejections").has_status(200).json();
            let newest = all["items"][0].clone();
            (newest["verdict"] == verdict).then_some(newest)
        })
    };
    let later = format!("{}000", now());
    for (call, verdict, parameters, problem) in [
        (
            call("/x").parameter("oauth_timestamp", &later),
            "timestamp_refused",
            "oauth_timestamp",
            "oauth_timestamp is in milliseconds: send whole seconds since 1970",
        ),
        (
            call("/x").parameter("oauth_nonce", "ä secret"),
            "parameter_rejected",
            "oauth_nonce",
            "",
        ),
    ] {
        assert_eq!(proxy.send(call).status / 100, 4);
        let newest = newest(verdict);
        assert_eq!(newest["parameters"], parameters, "{newest}");
        let told = text(&newest["problem"]);
        has(told, &[problem]);
        assert!(!told.is_empty() && !told.contains("secret") && !told.contains(&later));
        proxy.logs(&[
            &format!("verdict=\"{verdict}\""),
            &format!("parameters={parameters}"),
            &format!("problem={told:?}"),
        ]);
    }
    let large = format!("/x?a={}", "x".repeat(5_000));
    let wrong = call(&large).key("wrong&wrong");
    proxy.send(wrong).is(401, "signature_invalid");
    assert_eq!(newest("signature_invalid")["diagnosis"], "skipped");
    proxy.logs(&["signature_invalid", "diagnosis=\"skipped\""]);
    let counted = "countersign_signature_diagnoses_total{diagnosis=\"skipped\"}";
    assert!(proxy.metric(counted) >= 1.0);
}

#[test]
fn explain_finds_the_mistake_and_shows_no_expected_signature() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let wire = |call: &Call| String::from_utf8(proxy.wire(call)).unwrap();
    let explain =
        |request: &str| done(&proxy, "POST", "/v1/explain", json!({ "request": request }));
    let right = wire(&Call::get("/a?b=c").by(&consumer).with(&token));
    let told = explain(&right);
    assert_eq!(
        (&told["matches"], &told["diagnosis"]),
        (&json!(true), &Value::Null)
    );
    assert!(
        told["parameters"]
            .as_array()
            .unwrap()
            .contains(&json!(["b", "c"]))
    );
    let base = text(&told["base_string"]);
    assert!(base.starts_with("GET&http%3A%2F%2F"), "{base}");
    assert!(
        base.contains(
            &text(&told["normalized_parameters"])
                .replace('=', "%3D")
                .replace('&', "%26")
        )
    );
    let members: Vec<_> = told.as_object().unwrap().keys().cloned().collect();
    assert!(
        !members.iter().any(|name| name.contains("signature")),
        "{members:?}"
    );
    // Signed for GET, pasted as PUT: neither the response nor the log has the signature that would be right.
    let wrong = right.replacen("GET ", "PUT ", 1);
    let told = explain(&wrong);
    assert_eq!(told["matches"], false);
    has(text(&told["diagnosis"]), &["other_method: "]);
    let arguments = ["explain", "--json", "--request", "-"];
    let expected = proxy.command_with(&arguments, &wrong).stdout;
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let expected = text(&expected["expected_signature"]);
    assert!(!told.to_string().contains(expected), "{told}");
    for secret in [&consumer.secret, &token.secret] {
        assert!(!told.to_string().contains(secret.as_str()), "{told}");
    }
    let unknown = right.replace(&consumer.key, "nobody");
    has(
        text(&explain(&unknown)["diagnosis"]),
        &["consumer_key_unknown: "],
    );
}
