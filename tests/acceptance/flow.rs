//! The three-legged flow over sockets: contract sections 3 and 5.

use std::{collections::HashSet, thread};

use crate::support::has;
use crate::support::{
    Answer, Call, Connection, Consumer, PATIENCE, Proxy, Upstream, Visitor, fresh,
    legs::{REQUEST_TOKEN, asks, authorization, exchanges, query_value, token_of},
    signer::encode,
    visitor::unescape,
    within,
};

const CALLBACK: &str = "https://shop.example/ready?from=us&x=%20";

#[test]
fn the_three_legs_lead_to_a_call_with_the_users_identity() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let consumer = proxy.consumer_with("Shop", &["--callback", CALLBACK]);
    let user = proxy.user("alice");

    let answer = proxy.send(asks(&consumer, CALLBACK));
    let request_token = token_of(&answer);
    assert_eq!(
        answer.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(
        answer.form("oauth_callback_confirmed").as_deref(),
        Some("true")
    );

    let redirect = proxy.decision(&request_token, &user, "allow").redirect();
    assert!(
        redirect.starts_with("https://shop.example/ready?from=us&x=%20&"),
        "the callback's own query stays: {redirect}"
    );
    assert_eq!(
        query_value(&redirect, "oauth_token").as_ref(),
        Some(&request_token.token)
    );
    let verifier = query_value(&redirect, "oauth_verifier").unwrap();

    let answer = proxy.send(exchanges(&consumer, &request_token, &verifier));
    let access_token = token_of(&answer);
    assert_ne!(access_token.token, request_token.token);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.form("user_id").as_ref(), Some(&user.id));
    assert_eq!(answer.form("screen_name").as_deref(), Some("alice"));

    api.saw_nothing();
    proxy
        .send(Call::get("/members/1").by(&consumer).with(&access_token))
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(seen.header("x-auth-user"), Some(user.id.as_str()));
    assert_eq!(seen.header("x-auth-consumer"), Some(consumer.key.as_str()));
}

#[test]
fn authorization_page_by_its_alias() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("Shop", &["--callback", CALLBACK]),
        proxy.user("alice"),
    );
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&format!(
        "/oauth/authorize?oauth_token={}",
        encode(&request_token.token)
    ));
    let consent = visitor.log_in(&login, &user);
    has(&consent.answer.text(), &["Shop"]);
    let decided = visitor.decide(&consent, "allow");
    // Whoever does not follow the redirect is shown where it leads, and to the applications.
    let (next, page) = (decided.redirect(), unescape(&decided.answer.text()));
    for target in [next.as_str(), "/service.oauth?mode=applications"] {
        assert!(page.contains(&format!("<a href=\"{target}\">")), "{page}");
    }
}

#[test]
fn scope_narrows_the_permissions_of_the_token() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        r#"
            [[permission]]
            name = "read"
            title = "See your orders"
            [[permission]]
            name = "write"
            title = "Change your orders"
            [[permission]]
            name = "admin"
            title = "Everything"
            [[operation]]
            path = "/read"
            methods = ["GET"]
            permission = "read"
            [[operation]]
            path = "/write"
            methods = ["GET"]
            permission = "write"
            "#,
    );
    let options = [
        "--callback",
        CALLBACK,
        "--permission",
        "read",
        "--permission",
        "write",
    ];
    let (consumer, user) = (proxy.consumer_with("Shop", &options), proxy.user("alice"));

    let narrowed = asks(&consumer, CALLBACK).form("scope=read");
    let request_token = token_of(&proxy.send(narrowed));
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&authorization(&request_token));
    let consent = visitor.log_in(&login, &user);
    let text = consent.answer.text();
    assert!(
        text.contains("See your orders") && !text.contains("Change your orders"),
        "{text}"
    );
    let redirect = visitor.decide(&consent, "allow").redirect();
    let verifier = query_value(&redirect, "oauth_verifier").unwrap();
    let token = token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
    proxy
        .send(Call::get("/read").by(&consumer).with(&token))
        .has_status(200);
    assert_eq!(
        api.only_request().header("x-auth-permissions"),
        Some("read")
    );
    proxy
        .send(Call::get("/write").by(&consumer).with(&token))
        .is(404, "permission_denied");

    let all = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&all, &user);
    let token = token_of(&proxy.send(exchanges(&consumer, &all, &verifier)));
    proxy
        .send(Call::get("/write").by(&consumer).with(&token))
        .has_status(200);
    assert_eq!(
        api.last_request().header("x-auth-permissions"),
        Some("read write")
    );

    // A scope that the signature does not cover is anybody's word, wherever it stands.
    for call in [
        asks(&consumer, CALLBACK).spoiled("scope", "unknown"),
        Call::post(&format!("{REQUEST_TOKEN}&scope=unknown"))
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK),
    ] {
        token_of(&proxy.send(call.signed_as_described()));
    }

    for scope in ["admin", "unknown", "read%20admin"] {
        let refused = Call::post(&format!("{REQUEST_TOKEN}&scope={scope}")).by(&consumer);
        proxy
            .send(refused.parameter("oauth_callback", CALLBACK))
            .is(400, "parameter_rejected");
    }
}

#[test]
fn oob_shows_a_verifier_that_is_taken_with_spaces_and_hyphens() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (proxy.consumer("Console"), proxy.user("alice"));
    for typed in [
        |v: &str| v.to_owned(),
        |v: &str| v.replace(' ', ""),
        |v: &str| v.replace(' ', "-"),
        |v: &str| format!(" {} ", v.replace(' ', " - ")),
    ] {
        let request_token = proxy.request_token(&consumer, "oob");
        let page = proxy.decision(&request_token, &user, "allow");
        page.answer.has_status(200);
        let verifier = page
            .element("verifier")
            .expect("an element with id=verifier");
        let shape: String = verifier
            .chars()
            .map(|c| if c.is_ascii_digit() { '9' } else { c })
            .collect();
        assert_eq!(shape, "9999 9999");
        token_of(&proxy.send(exchanges(&consumer, &request_token, &typed(&verifier))));
    }
}

#[test]
fn denial_reaches_the_consumer() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("Shop", &["--callback", CALLBACK, "--callback", "oob"]),
        proxy.user("alice"),
    );

    let request_token = proxy.request_token(&consumer, CALLBACK);
    let redirect = proxy.decision(&request_token, &user, "deny").redirect();
    assert!(redirect.starts_with(CALLBACK), "{redirect}");
    assert_eq!(
        query_value(&redirect, "oauth_token").as_ref(),
        Some(&request_token.token)
    );
    assert_eq!(
        query_value(&redirect, "oauth_problem").as_deref(),
        Some("permission_denied")
    );
    assert_eq!(
        query_value(&redirect, "denied").as_ref(),
        Some(&request_token.token)
    );
    assert_eq!(query_value(&redirect, "oauth_verifier"), None);
    proxy
        .send(exchanges(&consumer, &request_token, "guess"))
        .is(401, "permission_denied");

    let request_token = proxy.request_token(&consumer, "oob");
    let page = proxy.decision(&request_token, &user, "deny");
    page.answer.has_status(200);
    assert_eq!(page.element("verifier"), None);
    proxy
        .send(exchanges(&consumer, &request_token, "12345678"))
        .is(401, "permission_denied");
}

#[test]
fn a_request_token_is_exchanged_once_when_twenty_calls_race() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("Shop", &["--callback", CALLBACK]),
        proxy.user("alice"),
    );
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let mut connections: Vec<Connection> = (0..20).map(|_| proxy.connect()).collect();
    let calls: Vec<Vec<u8>> = connections
        .iter()
        .map(|_| proxy.wire(&exchanges(&consumer, &request_token, &verifier)))
        .collect();
    // All but the last byte first, so that the twenty end together.
    for (connection, call) in connections.iter_mut().zip(&calls) {
        connection.send(&call[..call.len() - 1]);
    }
    for (connection, call) in connections.iter_mut().zip(&calls) {
        connection.send(&call[call.len() - 1..]);
    }
    let answers: Vec<_> = connections
        .iter_mut()
        .map(|connection| connection.answer("POST"))
        .collect();
    let won = answers.iter().filter(|answer| answer.status == 200).count();
    let used = answers
        .iter()
        .filter(|answer| answer.problem().as_deref() == Some("token_used"))
        .count();
    assert_eq!((won, used), (1, 19), "{answers:#?}");
    proxy
        .send(exchanges(&consumer, &request_token, &verifier))
        .is(401, "token_used");
    let tokens = proxy
        .command(&["token", "list", "--json"])
        .done()
        .json_lines();
    assert_eq!(tokens.len(), 1, "{tokens:?}");
}

#[test]
fn the_fifth_wrong_verifier_voids_the_request_token() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("Shop", &["--callback", CALLBACK]),
        proxy.user("alice"),
    );

    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    for _ in 0..4 {
        proxy
            .send(exchanges(&consumer, &request_token, "wrong"))
            .is(401, "verifier_invalid");
    }
    // What is not rightly signed counts for nothing.
    for _ in 0..10 {
        let forged = exchanges(&consumer, &request_token, "wrong").key("guess&guess");
        proxy.send(forged).is(401, "signature_invalid");
    }
    token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));

    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    for _ in 0..5 {
        proxy
            .send(exchanges(&consumer, &request_token, "wrong"))
            .is(401, "verifier_invalid");
    }
    proxy
        .send(exchanges(&consumer, &request_token, &verifier))
        .is(401, "token_rejected");
}

#[test]
fn tokens_and_verifiers_are_random() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("Shop", &["--callback", CALLBACK]),
        proxy.user("alice"),
    );
    let mut words = HashSet::new();
    for _ in 0..5 {
        let request_token = proxy.request_token(&consumer, CALLBACK);
        let verifier = proxy.verifier(&request_token, &user);
        let access_token = token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
        for word in [
            request_token.token,
            request_token.secret,
            verifier,
            access_token.token,
            access_token.secret,
        ] {
            // 128 bits are at least 20 characters of any alphabet that survives a URL.
            assert!(word.len() >= 20, "{word} is too short to be random");
            assert!(words.insert(word), "no word comes twice");
        }
    }
}

#[test]
fn pages_carry_their_protection() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (
        proxy.consumer_with("<b>Shop & \"Co\"</b>", &[]),
        proxy.user("alice"),
    );
    let request_token = proxy.request_token(&consumer, "oob");
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&authorization(&request_token));
    let consent = visitor.log_in(&login, &user);
    let text = consent.answer.text();
    assert!(
        !text.contains("<b>Shop") && text.contains("Shop &amp;") || text.contains("Shop &#38;"),
        "{text}"
    );
    let verifier = visitor.decide(&consent, "allow");
    let unknown =
        Visitor::to(&proxy).open("/service.oauth?mode=auth_req_token&oauth_token=unknown");
    assert!((400..500).contains(&unknown.answer.status), "{unknown:?}");
    for page in [&login, &consent, &verifier, &unknown] {
        let answer = &page.answer;
        let policy = answer.header("content-security-policy").expect("a policy");
        has(policy, &["default-src 'none'", "frame-ancestors 'none'"]);
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/html")
        );
    }
}

#[test]
fn a_forged_or_stale_decision_is_403_and_decides_nothing() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("alice"));
    let request_token = proxy.request_token(&consumer, "oob");
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&authorization(&request_token));
    let consent = visitor.log_in(&login, &user);
    let form = consent.form_with("decision").press("decision", "allow");
    // Each hidden field is there for a reason; what identifies the form cannot be guessed or left out.
    let mut refused = 0;
    for (name, value) in &form.fields {
        if name == "decision" || *value == request_token.token || value.len() < 16 {
            continue;
        }
        let mut forged = form.clone();
        forged
            .fields
            .iter_mut()
            .filter(|(n, _)| n == name)
            .for_each(|(_, v)| *v = fresh("forged"));
        assert_eq!(
            visitor.submit(&consent, &forged).answer.status,
            403,
            "{name} forged"
        );
        assert_eq!(
            visitor
                .submit(&consent, &form.clone().without(name))
                .answer
                .status,
            403,
            "{name} left out"
        );
        refused += 1;
    }
    assert!(refused > 0, "the form has a secret of its own: {form:?}");
    // Another person's browser cannot send it either.
    let mut stranger = Visitor::to(&proxy);
    let answer = stranger.submit(&consent, &form).answer;
    assert_eq!(answer.status, 403, "{answer:?}");
    proxy
        .send(exchanges(&consumer, &request_token, "12345678"))
        .is(401, "permission_unknown");

    visitor.submit(&consent, &form).answer.has_status(200);
    let other = visitor.decide(&consent, "deny").answer;
    assert_eq!(other.status, 403, "a decision stands: {other:?}");
}

#[test]
fn the_same_decision_sent_again_gets_the_same_response() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer_with("Shop", &["--callback", "https://shop.test/back"]);
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let ask = || proxy.request_token(&consumer, "https://shop.test/back");
    for (decision, otherwise) in [("allow", "deny"), ("deny", "allow")] {
        let request_token = ask();
        let target = authorization(&request_token);
        let mut visitor = Visitor::to(&proxy);
        let login = visitor.open(&target);
        let consent = visitor.log_in(&login, &user);
        // Clicks that overtake each other, as on a slow line.
        let cookies = visitor.cookies.clone();
        let click = || {
            let mut visitor = Visitor::to(&proxy);
            visitor.cookies.clone_from(&cookies);
            visitor.decide(&consent, decision).redirect()
        };
        let clicks: Vec<String> = thread::scope(|scope| {
            let clicks: Vec<_> = (0..6).map(|_| scope.spawn(click)).collect();
            clicks.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let first = &clicks[0];
        assert!(clicks.iter().all(|click| click == first), "{clicks:?}");
        assert_eq!(visitor.decide(&consent, otherwise).answer.status, 403);
        if decision == "allow" {
            let page = visitor.open(&target).answer;
            let link = first.replace('&', "&#38;");
            assert!(
                page.status == 200 && page.text().contains(&link),
                "{page:?}"
            );
            let mut stranger = Visitor::to(&proxy);
            let login = stranger.open("/service.oauth?mode=login");
            stranger.log_in(&login, &other);
            assert_eq!(stranger.open(&target).answer.status, 401);
            let verifier = query_value(first, "oauth_verifier").unwrap();
            token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
            assert_eq!(visitor.decide(&consent, "allow").answer.status, 403);
        }
    }
    let decided = |line: &&String| line.contains("event=\"consent_");
    within(PATIENCE, "each decision is recorded once", || {
        (proxy.log().lines().iter().filter(decided).count() == 2).then_some(())
    });
}

#[test]
fn a_request_that_cannot_be_decided_leads_nowhere() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open("/service.oauth?mode=login");
    visitor.log_in(&login, &user);
    let callback = "https://shop.test/back";
    let change = |consumer: &Consumer, arguments: &[&str]| {
        let (verb, options) = arguments.split_first().unwrap();
        let command = [&["consumer", verb, &consumer.key], options].concat();
        proxy.command(&command).done();
    };
    let cases: [(&[&str], u16, &str); 3] = [
        (&["disable"], 401, "consumer_key_refused"),
        (
            &["update", "--callback", "https://shop.test/other"],
            400,
            "",
        ),
        (&["remove", "--yes"], 401, "token_rejected"),
    ];
    for (command, status, problem) in cases {
        let consumer = proxy.consumer_with("Shop", &["--callback", callback]);
        let target = authorization(&proxy.request_token(&consumer, callback));
        let consent = visitor.open(&target);
        change(&consumer, command);
        let is_told = |answer: Answer| {
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            let told = answer.status == status && challenge.contains(problem);
            told && !answer.text().contains("Shop") && !answer.fields.has("location")
        };
        within(PATIENCE, problem, || {
            is_told(visitor.open(&target).answer).then_some(())
        });
        assert!(
            is_told(Visitor::to(&proxy).open(&target).answer),
            "{problem}"
        );
        assert!(
            is_told(visitor.decide(&consent, "allow").answer),
            "{problem}"
        );
    }
    for query in [
        "",
        "&oauth_token=",
        "&oauth_token=a&oauth_token=b",
        "&oauth_token=%ff",
    ] {
        let target = format!("/service.oauth?mode=auth_req_token{query}");
        let answer = visitor.open(&target).answer;
        assert!((400..=401).contains(&answer.status), "{query}: {answer:?}");
    }
    let brief = Proxy::in_front_of(&Upstream::start())
        .config("[tokens]\nrequest_ttl = '1s'")
        .start();
    let consumer = brief.consumer("Shop");
    let target = authorization(&brief.request_token(&consumer, "oob"));
    within(PATIENCE, "expired", || {
        let answer = Visitor::to(&brief).open(&target).answer;
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        challenge.contains("token_expired").then_some(())
    });
}

#[test]
fn the_oob_page_can_be_loaded_again_by_its_user_alone_until_the_exchange() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let request_token = proxy.request_token(&consumer, "oob");
    let target = authorization(&request_token);
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&target);
    let consent = visitor.log_in(&login, &user);
    let page = visitor.decide(&consent, "allow");
    assert_eq!(page.target, target, "a page of its own: {page:?}");
    let verifier = page.element("verifier").unwrap();
    let again = visitor.open(&target);
    assert_eq!(again.element("verifier").as_ref(), Some(&verifier));
    assert_eq!(again.answer.header("cache-control"), Some("no-store"));

    let mut stranger = Visitor::to(&proxy);
    for page in [stranger.open(&target), {
        let login = stranger.open("/service.oauth?mode=login");
        stranger.log_in(&login, &other);
        stranger.open(&target)
    }] {
        assert_eq!((page.answer.status, page.element("verifier")), (401, None));
    }
    token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
    let used = visitor.open(&target);
    assert_eq!((used.answer.status, used.element("verifier")), (401, None));
}

#[test]
fn a_browser_without_cookies_is_told_so() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("alice"));
    let target = authorization(&proxy.request_token(&consumer, "oob"));
    for target in ["/service.oauth?mode=login", &target] {
        let mut visitor = Visitor::to(&proxy);
        let login = visitor.open(target);
        visitor.cookies.clear();
        let page = visitor.log_in(&login, &user);
        assert_eq!(page.answer.status, 403, "{page:?}");
        let text = page.answer.text();
        assert!(text.contains("Allow cookies for this site"), "{text}");
        assert!(visitor.cookies.is_empty(), "{page:?}");
    }
}
