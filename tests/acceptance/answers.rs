//! Section 4 of the contract: every status and code, what goes with it, and the order of the checks.

use std::time::Duration;

use crate::support::has;
use crate::support::{
    Call, Caller, Placement, Proxy, Scene, Token, Upstream, Visitor,
    legs::{REQUEST_TOKEN, asks, exchanges, token_of},
    now,
    proxy::{Builder, Consumer},
    within,
};

/// A token that no store knows.
fn unknown_token() -> Token {
    Token {
        token: "nothing".into(),
        secret: "nothing".into(),
    }
}

/// A consumer that no store knows.
fn unknown_consumer() -> Consumer {
    Consumer {
        key: "nobody".into(),
        secret: "nothing".into(),
    }
}

#[test]
fn requests_of_a_wrong_shape_are_400_and_name_the_parameter() {
    let Scene { api, proxy, caller } = Scene::start();
    let call = || Call::get("/x?y=1").of(&caller);
    for name in [
        "oauth_consumer_key",
        "oauth_signature_method",
        "oauth_timestamp",
        "oauth_nonce",
        "oauth_signature",
    ] {
        for placement in [Placement::Header, Placement::Query] {
            let answer = proxy.send(call().placed(placement).without(name));
            answer.is(400, "parameter_absent");
            assert_eq!(
                answer.form("oauth_parameters_absent").as_deref(),
                Some(name),
                "{answer:?}"
            );
            assert!(
                !answer.fields.has("www-authenticate"),
                "that goes with a 401: {answer:?}"
            );
            let answer = proxy.send(call().placed(placement).spoiled(name, ""));
            assert_eq!(answer.status, 400, "{name} empty: {answer:?}");
        }
    }
    let answer = proxy.send(call().without("oauth_nonce").without("oauth_timestamp"));
    let mut absent: Vec<String> = answer
        .form("oauth_parameters_absent")
        .unwrap()
        .split('&')
        .map(str::to_owned)
        .collect();
    absent.sort();
    assert_eq!(
        absent,
        ["oauth_nonce", "oauth_timestamp"],
        "all of them at once"
    );

    for (name, value) in [
        ("oauth_timestamp", "abc"),
        ("oauth_timestamp", "0"),
        ("oauth_timestamp", "-1"),
        ("oauth_timestamp", "+1"),
        ("oauth_timestamp", " 1"),
        ("oauth_timestamp", "1.5"),
        ("oauth_timestamp", "0123456789"),
        ("oauth_timestamp", "99999999999999999999999"),
        ("oauth_nonce", "a b"),
        ("oauth_nonce", "a\nb"),
        ("oauth_nonce", "\u{e9}"),
    ] {
        let answer = proxy.send(call().parameter(name, value));
        answer.is(400, "parameter_rejected");
        assert_eq!(
            answer.form("oauth_parameters_rejected").as_deref(),
            Some(name),
            "{value}"
        );
    }
    proxy
        .send(call().parameter("oauth_nonce", &"n".repeat(256)))
        .is(400, "parameter_rejected");
    proxy
        .send(call().parameter("oauth_nonce", &"n".repeat(255)))
        .has_status(200);

    let answer = proxy.send(call().parameter("oauth_version", "2.0"));
    answer.is(400, "version_rejected");
    assert_eq!(
        answer.form("oauth_acceptable_versions").as_deref(),
        Some("1.0-1.0")
    );
    proxy
        .send(call().parameter("oauth_version", "1.0a"))
        .has_status(200);
    proxy.send(call().without("oauth_version")).has_status(200);

    proxy
        .send(call().parameter("oauth_signature_method", "HMAC-SHA3-256"))
        .is(400, "signature_method_rejected");
    proxy
        .send(call().method("PLAINTEXT"))
        .is(400, "signature_method_rejected");
    assert_eq!(api.count(), 3);
}

#[test]
fn credentials_that_do_not_hold_are_401_and_say_which() {
    let (_api, proxy, caller) = Scene::start().into_parts();
    let call = || Call::get("/x").of(&caller);
    proxy.send(Call::get("/x")).is(401, "parameter_absent");
    proxy
        .send(Call::get("/x").header("Authorization", "Basic YTpi"))
        .is(401, "parameter_absent");
    proxy
        .send(Call::get("/x").header("Authorization", "Bearer x"))
        .is(401, "parameter_absent");
    proxy
        .send(Call::get("/x").by(&unknown_consumer()).with(&caller.token))
        .is(401, "consumer_key_unknown");
    proxy
        .send(Call::get("/x").by(&caller.consumer).with(&unknown_token()))
        .is(401, "token_rejected");
    proxy
        .send(Call::get("/x").by(&caller.consumer))
        .is(401, "token_rejected");
    for forged in [
        call().key("wrong&wrong"),
        call().key(&format!("{}&", caller.consumer.secret)),
        call().key(&caller.consumer.secret),
        call().signs_target("/y"),
        call().signs_method("POST"),
        call().signs_target("/x?added=1"),
        call().for_origin("https://else.test"),
        call().spoiled("oauth_nonce", "other"),
        call().spoiled("oauth_timestamp", &(now() - 1).to_string()),
        call().spoiled("oauth_signature_method", "HMAC-SHA256"),
        call().spoiled("oauth_version", "1.0a"),
        call().spoiled("oauth_signature", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        call().spoiled("oauth_signature", "AAAA"),
        call().spoiled("oauth_signature_method", "RSA-SHA1"),
    ] {
        proxy.send(forged).is(401, "signature_invalid");
    }
    for (time, word) in [(now() - 400, "old"), (now() + 400, "ahead")] {
        let answer = proxy.send(call().parameter("oauth_timestamp", &time.to_string()));
        answer.is(401, "timestamp_refused");
        let range = answer
            .form("oauth_acceptable_timestamps")
            .expect("the acceptable ones");
        let (low, high) = range.split_once('-').expect("low-high");
        let (low, high): (u64, u64) = (low.parse().unwrap(), high.parse().unwrap());
        assert!(
            low < now() && now() < high && !(low..=high).contains(&time),
            "{word}: {range}"
        );
    }
    for time in [now() - 280, now() + 280] {
        proxy
            .send(call().parameter("oauth_timestamp", &time.to_string()))
            .has_status(200);
    }
    proxy
        .command(&["token", "revoke", &caller.token.token])
        .done();
    within(Duration::from_secs(1), "the revocation is seen", || {
        (proxy.send(call()).status == 401).then_some(())
    });
    proxy.send(call()).is(401, "token_revoked");
    proxy
        .send(call().key("wrong&wrong"))
        .is(401, "signature_invalid");
    let second = proxy.token(&caller.consumer, &caller.user);
    proxy
        .command(&["consumer", "disable", &caller.consumer.key])
        .done();
    let call = || Call::get("/x").by(&caller.consumer).with(&second);
    within(Duration::from_secs(1), "the disabling is seen", || {
        (proxy.send(call()).status == 401).then_some(())
    });
    proxy.send(call()).is(401, "consumer_key_refused");
    proxy
        .send(call().key("wrong&wrong"))
        .is(401, "signature_invalid");
    proxy
        .command(&["consumer", "enable", &caller.consumer.key])
        .done();
    within(Duration::from_secs(1), "the enabling is seen", || {
        (proxy.send(call()).status == 200).then_some(())
    });
}

#[test]
fn a_challenge_goes_with_every_401() {
    let Scene { proxy, caller, .. } = Scene::with("service.realm = 'The \"Shop\"'");
    for (call, problem) in [
        (Call::get("/"), "parameter_absent"),
        (Call::get("/").of(&caller).key("x"), "signature_invalid"),
        (asks(&caller.consumer, "oob").key("x"), "signature_invalid"),
    ] {
        let answer = proxy.send(call);
        let challenge = answer.header("www-authenticate").expect("a challenge");
        assert!(
            challenge.starts_with("OAuth realm=\"The \\\"Shop\\\"\", "),
            "{challenge}"
        );
        has(challenge, &[&format!("oauth_problem=\"{problem}\"")]);
    }
}

#[test]
fn problems_are_json_or_a_page_where_the_caller_prefers_it() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let form = "application/x-www-form-urlencoded";
    let json = "application/problem+json";
    let html = "text/html";
    let chromium =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    for (accept, kind) in [
        (None, form),
        (Some("*/*"), form),
        (Some(form), form),
        (Some("application/json"), json),
        (Some("application/problem+json"), json),
        (Some("application/json, */*;q=0.5"), json),
        (Some("application/json, text/plain, */*"), json),
        (Some("APPLICATION/JSON"), json),
        (
            Some("application/x-www-form-urlencoded, application/json;q=0.5"),
            form,
        ),
        (
            Some("application/json;q=0.1, application/x-www-form-urlencoded"),
            form,
        ),
        (Some("application/json;q=0"), form),
        (Some("text/html"), html),
        (Some(chromium), html),
        (Some("TEXT/HTML;q=0.3"), html),
        (Some("text/html, */*"), html),
        (Some("text/html, application/json"), json),
        (Some("text/html;q=0.9, application/json"), json),
        (Some("text/html, application/json;q=0.9"), html),
        (
            Some("text/html;q=0.9, application/x-www-form-urlencoded"),
            form,
        ),
        (Some("text/html;q=0.5, */*"), form),
        (Some("text/html;q=0"), form),
        (Some("text/htmlx"), form),
        // A consumer on Java's HttpURLConnection.
        (
            Some("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"),
            form,
        ),
        (Some(";;;,,q=,"), form),
    ] {
        let call = accept
            .iter()
            .fold(Call::get("/"), |call, accept| call.header("Accept", accept));
        let answer = proxy.send(call);
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with(kind), "{accept:?}: {content_type}");
        answer.is(401, "parameter_absent");
    }
}

#[test]
fn checks_come_in_the_order_of_the_contract() {
    let Scene { api, proxy, caller } = Scene::with(
        "operation = [{ path = '/open', permission = 'p' }]\npermission = [{ name = 'p', title = 'P' }]",
    );
    let nobody = unknown_consumer();
    let old = (now() - 4_000).to_string();
    // Host, then shape.
    proxy
        .send(
            Call::get("/open")
                .by(&caller.consumer)
                .without("oauth_nonce")
                .host("else.test"),
        )
        .has_status(421);
    // Shape, then timestamp.
    proxy
        .send(
            Call::get("/open")
                .by(&nobody)
                .parameter("oauth_timestamp", &old)
                .parameter("oauth_version", "9"),
        )
        .is(400, "version_rejected");
    // Timestamp, then consumer.
    proxy
        .send(
            Call::get("/open")
                .by(&nobody)
                .parameter("oauth_timestamp", &old),
        )
        .is(401, "timestamp_refused");
    // Consumer, then token.
    proxy
        .send(Call::get("/open").by(&nobody).with(&unknown_token()))
        .is(401, "consumer_key_unknown");
    // Token, then signature.
    proxy
        .send(
            Call::get("/open")
                .by(&caller.consumer)
                .with(&unknown_token())
                .key("x"),
        )
        .is(401, "token_rejected");
    // Signature, then nonce.
    let (time, nonce) = (now().to_string(), "n1");
    let stamped = |call: Call, nonce: &str| {
        call.parameter("oauth_timestamp", &time)
            .parameter("oauth_nonce", nonce)
    };
    let call = || Call::get("/open").of(&caller);
    proxy
        .send(stamped(call(), nonce))
        .is(404, "permission_denied");
    proxy
        .send(stamped(call().key("x"), nonce))
        .is(401, "signature_invalid");
    proxy.send(stamped(call(), nonce)).is(401, "nonce_used");
    // Nonce, then states: a refused state has used its nonce up.
    proxy
        .command(&["token", "revoke", &caller.token.token])
        .done();
    within(Duration::from_secs(1), "the revocation is seen", || {
        (proxy.send(call()).problem().as_deref() == Some("token_revoked")).then_some(())
    });
    proxy.send(stamped(call(), "n2")).is(401, "token_revoked");
    proxy.send(stamped(call(), "n2")).is(401, "nonce_used");
    // States, then permission.
    proxy.send(call()).is(401, "token_revoked");
    // Undecided, then verifier.
    let request_token = proxy.request_token(&caller.consumer, "oob");
    proxy
        .send(exchanges(&caller.consumer, &request_token, "wrong"))
        .is(401, "permission_unknown");
    let verifier = proxy
        .decision(&request_token, &caller.user, "allow")
        .element("verifier")
        .unwrap();
    proxy
        .send(exchanges(&caller.consumer, &request_token, "wrong"))
        .is(401, "verifier_invalid");
    token_of(&proxy.send(exchanges(&caller.consumer, &request_token, &verifier)));
    // Used, then verifier.
    proxy
        .send(exchanges(&caller.consumer, &request_token, "wrong"))
        .is(401, "token_used");
    api.saw_nothing();
}

#[test]
fn an_access_token_expires() {
    let Scene { proxy, caller, .. } = Scene::with("tokens.access_ttl = '1s'");
    let call = || Call::get("/x").of(&caller);
    within(Duration::from_secs(10), "the token expires", || {
        (proxy.send(call()).problem().as_deref() == Some("token_expired")).then_some(())
    });
    proxy.send(call().key("x")).is(401, "signature_invalid");
}

#[test]
fn a_request_token_expires() {
    let proxy = Proxy::with(&Upstream::start(), "tokens.request_ttl = '1s'");
    let consumer = proxy.consumer("Shop");
    let request_token = proxy.request_token(&consumer, "oob");
    within(Duration::from_secs(10), "the token expires", || {
        let answer = proxy.send(exchanges(&consumer, &request_token, "wrong"));
        (answer.problem().as_deref() == Some("token_expired")).then_some(())
    });
    let page = Visitor::to(&proxy).open(&crate::support::legs::authorization(&request_token));
    assert!((400..500).contains(&page.answer.status), "{page:?}");
}

/// Each clock here is read once, so that the seconds told are those sent, and one more where the second turns.
#[test]
fn a_refused_timestamp_is_told_by_how_much_it_is_off() {
    let Scene { proxy, caller, .. } = Scene::start();
    let time = now();
    for (sent, told) in [
        (
            time - 412,
            ["your clock is 412 s behind", "your clock is 413 s behind"],
        ),
        (
            time + 500,
            ["your clock is 500 s ahead", "your clock is 499 s ahead"],
        ),
        (time - 3600, ["exactly one hour, as with a time zone"; 2]),
        (time + 7200, ["exactly 2 hours, as with a time zone"; 2]),
        (time * 1000, ["oauth_timestamp is in milliseconds"; 2]),
        (time - 1_000_000_000, ["counts the seconds since 1970"; 2]),
    ] {
        let call = Call::get("/x").of(&caller);
        let answer = proxy.send(call.parameter("oauth_timestamp", &sent.to_string()));
        answer.is(401, "timestamp_refused");
        let advice = answer.form("oauth_problem_advice").unwrap();
        assert!(told.iter().any(|told| advice.contains(told)), "{advice}");
    }
}

#[test]
fn a_wrong_signature_is_advised_on_as_configured() {
    let api = Upstream::start();
    for (level, base_string) in [("off", false), ("hint", false), ("full", true)] {
        let proxy = Proxy::with(&api, &format!("signature.advice = '{level}'"));
        let caller = proxy.somebody();
        let answer = proxy.send(Call::get("/x?y=1").of(&caller).signs_target("/x"));
        answer.is(401, "signature_invalid");
        let advice = answer.form("oauth_problem_advice").unwrap_or_default();
        assert_eq!(
            advice.contains("GET&http%3A%2F%2F"),
            base_string,
            "{level}: {advice}"
        );
        if level == "off" {
            assert_eq!(advice, "");
        }
        assert!(
            !answer.text().contains(&caller.consumer.secret)
                && !answer.text().contains(&caller.token.secret)
        );
    }
}

/// A diagnosis makes every known mistake of all that was sent: what is large would keep a worker busy for seconds.
#[test]
fn only_small_requests_are_diagnosed() {
    let (_api, proxy, caller) = Scene::with("signature.advice = 'full'").into_parts();
    let many: Vec<String> = (0..100).map(|number| format!("p{number}")).collect();
    let few = many[..20].join("&");
    for (query, form, told) in [
        (few.clone(), few, true),
        (many.join("&"), String::new(), false),
        ("a".to_owned(), many.join("&"), false),
        (format!("a={}", "x".repeat(5_000)), String::new(), false),
        ("a".to_owned(), format!("a={}", "x".repeat(5_000)), false),
    ] {
        let call = Call::post(&format!("/x?{query}"))
            .form(&form)
            .of(&caller)
            .key(&format!("{}&", caller.consumer.secret));
        let answer = proxy.send(call);
        answer.is(401, "signature_invalid");
        let advice = answer.form("oauth_problem_advice").unwrap();
        assert_eq!(advice.contains("put the token secret"), told, "{advice}");
        let has_base = advice.contains("the base string here is POST&");
        assert_eq!(has_base, told, "{advice}");
    }
}

#[test]
fn plaintext_is_on_only_by_name_and_only_over_tls() {
    let api = Upstream::start();
    let on =
        "signature.methods = ['HMAC-SHA1', 'PLAINTEXT']\nservice.base_url = 'https://api.test'";
    let plain = |builder: Builder| {
        let proxy = builder.start();
        let caller = proxy.somebody();
        let call = Call::get("/x").of(&caller).method("PLAINTEXT");
        let call = call
            .without("oauth_nonce")
            .without("oauth_timestamp")
            .header("X-Forwarded-Proto", "https");
        proxy.send(call)
    };
    let refused = plain(Proxy::in_front_of(&api).config(on));
    assert!(
        (400..500).contains(&refused.status),
        "in clear: {refused:?}"
    );
    api.saw_nothing();
    let trusted = Proxy::in_front_of(&api)
        .config(on)
        .config("listen.trusted_proxies = ['127.0.0.1/32']");
    plain(trusted).has_status(200);
}

#[test]
fn token_calls_answer_as_the_table_says() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let Caller {
        consumer,
        user,
        token: access_token,
    } = proxy.somebody();
    let answer = proxy.send(Call::post(REQUEST_TOKEN).by(&consumer));
    answer.is(400, "parameter_absent");
    assert_eq!(
        answer.form("oauth_parameters_absent").as_deref(),
        Some("oauth_callback")
    );
    proxy.send(asks(&consumer, "")).has_status(400);
    proxy
        .send(Call::post(REQUEST_TOKEN))
        .is(401, "parameter_absent");
    proxy
        .send(asks(&unknown_consumer(), "oob"))
        .is(401, "consumer_key_unknown");
    proxy
        .send(asks(&consumer, "oob").key("x"))
        .is(401, "signature_invalid");
    proxy
        .send(exchanges(&consumer, &unknown_token(), "x"))
        .is(401, "token_rejected");
    // An access token is no request token, and the other way round.
    proxy
        .send(exchanges(&consumer, &access_token, "x"))
        .is(401, "token_rejected");
    let request_token = proxy.request_token(&consumer, "oob");
    proxy
        .send(Call::get("/x").by(&consumer).with(&request_token))
        .is(401, "token_rejected");
    let absent = Call::post(crate::support::legs::ACCESS_TOKEN)
        .by(&consumer)
        .with(&request_token);
    let answer = proxy.send(absent);
    answer.is(400, "parameter_absent");
    assert_eq!(
        answer.form("oauth_parameters_absent").as_deref(),
        Some("oauth_verifier")
    );
    // Superfluous parameters are signed and otherwise ignored.
    let verifier = proxy
        .decision(&request_token, &user, "allow")
        .element("verifier")
        .unwrap();
    let exchange = exchanges(&consumer, &request_token, &verifier);
    token_of(
        &proxy.send(
            exchange
                .parameter("oauth_callback", "oob")
                .parameter("oauth_extra", "1"),
        ),
    );
    proxy
        .send(
            Call::new("DELETE", REQUEST_TOKEN)
                .by(&consumer)
                .parameter("oauth_callback", "oob"),
        )
        .has_status(405);
}
