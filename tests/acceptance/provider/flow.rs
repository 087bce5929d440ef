//! The three-legged flow over sockets.
//!
//! Promise (Flow and pages): A request token is exchanged once, by its consumer, with its verifier, which only the user who
//! agreed sees. Also in `tests/store_contract/exchange.rs`.
//! Promise (Flow and pages): Pages, also with the operator's style, cannot be framed, run no script, are not cached, and escape
//! every name. Also in `tests/acceptance/provider/pages_in_browser.rs`, `tests/acceptance/provider/sessions.rs`,
//! `tests/acceptance/provider/appearance.rs`.

use std::{collections::HashSet, thread};

use crate::support::{
    Answer, Call, Consumer, Proxy, Token, Upstream, Visitor,
    call::FORM,
    fresh, has,
    legs::{
        APPLICATIONS, LOGIN, REQUEST_TOKEN, asks, authorization, exchanges, query_value, token_of,
    },
    proxy::{CALLBACK, race},
    signer::encode,
    until,
    visitor::{Page, unescape},
    words,
};

#[test]
fn the_three_legs_lead_to_a_call_with_the_users_identity() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();

    let answer = proxy.send(asks(&consumer, CALLBACK));
    let request_token = token_of(&answer);
    assert_eq!(answer.header("content-type"), Some(FORM));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.tells("oauth_callback_confirmed", "true");

    let redirect = proxy.decision(&request_token, &user, "allow").redirect();
    assert!(redirect.starts_with(&format!("{CALLBACK}&")), "{redirect}");
    let value = |name| query_value(&redirect, name).unwrap();
    assert_eq!(value("oauth_token"), request_token.token);

    let exchange = exchanges(&consumer, &request_token, &value("oauth_verifier"));
    let answer = proxy.send(exchange);
    let access_token = token_of(&answer);
    assert_ne!(access_token.token, request_token.token);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer
        .tells("user_id", &user.id)
        .tells("screen_name", "alice");

    api.saw_nothing();
    proxy.passes(Call::get("/members/1").by(&consumer).with(&access_token));
    let seen = api.only_request();
    assert_eq!(seen.header("x-auth-user"), Some(user.id.as_str()));
    assert_eq!(seen.header("x-auth-consumer"), Some(consumer.key.as_str()));
}

#[test]
fn the_authorization_page_has_an_alias() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    let token = encode(proxy.request_token(&consumer, CALLBACK).token);
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&format!("/oauth/authorize?oauth_token={token}"));
    let consent = visitor.log_in(&login, &user);
    has(&consent.answer.text(), &["Shop"]);
    let decided = visitor.decide(&consent, "allow");
    // A page shows the redirect's address to a browser that does not follow it, and links to the applications.
    let (next, page) = (decided.redirect(), unescape(&decided.answer.text()));
    let links = [next.as_str(), APPLICATIONS].map(|target| format!(" href=\"{target}\">"));
    has(&page, &[&links[0], &links[1]]);
}

#[test]
fn scope_narrows_the_permissions_of_the_token() {
    let api = Upstream::start();
    let config = "permission = [{ name = 'read', title = 'See your orders' },
            { name = 'write', title = 'Change your orders' }, { name = 'admin', title = 'Everything' }]
        operation = [{ path = '/read', permission = 'read' }, { path = '/write', permission = 'write' }]";
    let proxy = Proxy::with(&api, config);
    let options = format!("--callback {CALLBACK} --permission read --permission write");
    let (consumer, user) = (proxy.consumer_with("Shop", &options), proxy.user("alice"));
    let call = |target: &str, token: &Token| Call::get(target).by(&consumer).with(token);
    let permissions = || {
        api.last_request()
            .header("x-auth-permissions")
            .unwrap()
            .to_owned()
    };

    let narrowed = asks(&consumer, CALLBACK).form("scope=read++read");
    let request_token = token_of(&proxy.send(narrowed));
    let (mut visitor, consent) = proxy.consent(&request_token, &user);
    let text = consent.answer.text();
    has(&text, &["See your orders"]);
    assert!(!text.contains("Change your orders"), "{text}");
    let redirect = visitor.decide(&consent, "allow").redirect();
    let verifier = query_value(&redirect, "oauth_verifier").unwrap();
    let token = token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
    proxy.passes(call("/read", &token));
    assert_eq!(permissions(), "read");
    proxy.rejects(call("/write", &token), 404, "permission_denied");

    let all = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&all, &user);
    let token = token_of(&proxy.send(exchanges(&consumer, &all, &verifier)));
    proxy.passes(call("/write", &token));
    assert_eq!(permissions(), "read write");

    // A scope that the signature does not cover is ignored.
    let scoped = |scope: &str| {
        let call = Call::post(&format!("{REQUEST_TOKEN}&scope={scope}")).by(&consumer);
        call.parameter("oauth_callback", CALLBACK)
    };
    let spoiled = asks(&consumer, CALLBACK).spoiled("scope", "unknown");
    for call in [spoiled, scoped("unknown")] {
        token_of(&proxy.send(call.signed_as_described()));
    }
    let none = "admin unknown read%20admin READ rea read%09write r%E9ad %FF %20 %20%20";
    for scope in words(none).into_iter().chain([""]) {
        proxy.rejects(scoped(scope), 400, "parameter_rejected");
    }
}

#[test]
fn consumer_requests_permissions_by_its_old_providers_names() {
    let permissions =
        "permission = [{ name = 'books', title = 'Books' }, { name = 'loans', title = 'Loans' }]";
    let mut proxy = Proxy::with(&Upstream::start(), permissions);
    let options = format!("--callback {CALLBACK} --permission books --permission loans");
    let (consumer, user) = (proxy.consumer_with("Reader", &options), proxy.user("alice"));
    let asked = |proxy: &Proxy, call: Call| {
        let request_token = token_of(&proxy.send(call));
        let text = proxy.consent(&request_token, &user).1.answer.text();
        ["Books", "Loans"].map(|title| text.contains(title))
    };
    let with = |query: &str| {
        let call = Call::post(&format!("{REQUEST_TOKEN}{query}")).by(&consumer);
        call.parameter("oauth_callback", CALLBACK)
    };
    assert_eq!(asked(&proxy, with("&scope=loans,books")), [true; 2]);
    assert_eq!(asked(&proxy, with("&scope=,loans")), [false, true]);
    // A realm is a wish only if it names a permission of the consumer.
    for (realm, expected) in [
        ("books", [true, false]),
        ("loans books", [true; 2]),
        ("https://api.example/", [true; 2]),
        ("", [true; 2]),
    ] {
        assert_eq!(asked(&proxy, with("").realm(realm)), expected, "{realm}");
    }
    assert_eq!(
        asked(&proxy, with("&scope=loans").realm("books")),
        [false, true]
    );
    let answer = proxy.rejects(with("").realm("books fines"), 400, "parameter_rejected");
    assert_eq!(
        answer.form("oauth_parameters_rejected").as_deref(),
        Some("realm")
    );

    proxy.reload("scope = { names = ['scopes', 'perms'], separators = '|' }");
    assert_eq!(asked(&proxy, with("&scopes=loans%7Cbooks")), [true; 2]);
    assert_eq!(asked(&proxy, with("&perms=books")), [true, false]);
    assert_eq!(asked(&proxy, with("&scope=none")), [true; 2]);
    for wrong in [
        "&perms=books,loans",
        "&perms=books&perms=books",
        "&perms=books&scopes=books",
        "&scopes=",
    ] {
        proxy.rejects(with(wrong), 400, "parameter_rejected");
    }
}

#[test]
fn the_address_of_the_page_narrows_the_permissions() {
    let api = Upstream::start();
    let permissions =
        "permission = [{ name = 'read', title = 'Look' }, { name = 'write', title = 'Upload' },
            { name = 'delete', title = 'Remove' }]\n";
    let mut proxy = Proxy::with(
        &api,
        &format!("{permissions}scope = {{ names = ['perms', 'scopes'], separators = '|' }}"),
    );
    let options = format!("--callback {CALLBACK} --permission read --permission write");
    let (consumer, user) = (proxy.consumer_with("Frames", &options), proxy.user("alice"));
    let titles = |page: &Page| {
        let text = page.answer.text();
        ["Look", "Upload", "Remove"].map(|title| text.contains(title))
    };
    let asked = |token: &Token, query: &str| {
        let mut visitor = Visitor::to(&proxy);
        let login = visitor.open(&format!("{}{query}", authorization(token)));
        let consent = visitor.log_in(&login, &user);
        (visitor, consent)
    };

    let token = proxy.request_token(&consumer, CALLBACK);
    let (mut visitor, consent) = asked(&token, "&perms=read");
    assert_eq!(titles(&consent), [true, false, false]);
    // Also after a change of language.
    let language = format!("{}&perms=read&ui_locales=de", authorization(&token));
    assert_eq!(titles(&visitor.open(&language)), [true, false, false]);
    has(&consent.answer.text(), &["perms=read&#38;ui_locales=de"]);
    let redirect = visitor.decide(&consent, "allow").redirect();
    let verifier = query_value(&redirect, "oauth_verifier").unwrap();
    let access = token_of(&proxy.send(exchanges(&consumer, &token, &verifier)));
    proxy.passes(Call::get("/").by(&consumer).with(&access));
    let seen = api.last_request();
    assert_eq!(seen.header("x-auth-permissions"), Some("read"));

    // A request token that asks for less is not widened.
    let narrow = asks(&consumer, CALLBACK).parameter("perms", "write");
    let narrow = token_of(&proxy.send(narrow));
    assert_eq!(titles(&asked(&narrow, "").1), [false, true, false]);
    let token = proxy.request_token(&consumer, CALLBACK);
    for (query, expected) in [
        ("&perms=read%7Cwrite", [true, true, false]),
        ("&scopes=write", [false, true, false]),
        // None of these is a permission of the consumer.
        ("&perms=delete", [true, true, false]),
        ("&perms=", [true, true, false]),
        ("&scope=read", [true, true, false]),
    ] {
        assert_eq!(titles(&asked(&token, query).1), expected, "{query}");
    }
    let mut visitor = Visitor::to(&proxy);
    for query in [
        "&perms=read%7Cdelete",
        "&perms=read&perms=read",
        "&perms=read&scopes=read",
    ] {
        let page = visitor.open(&format!("{}{query}", authorization(&token)));
        page.answer.has_status(400);
    }
    proxy.reload(&format!("{permissions}scope.names = ['scopes']"));
    let (_, consent) = proxy.consent(&token, &user);
    assert_eq!(titles(&consent), [true, true, false]);
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
fn a_denial_reaches_the_consumer() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer_with("Shop", &format!("--callback {CALLBACK} --callback oob"));
    let user = proxy.user("alice");

    let request_token = proxy.request_token(&consumer, CALLBACK);
    let redirect = proxy.decision(&request_token, &user, "deny").redirect();
    assert!(redirect.starts_with(CALLBACK), "{redirect}");
    let value = |name| query_value(&redirect, name);
    assert_eq!(value("oauth_token").as_ref(), Some(&request_token.token));
    assert_eq!(value("denied").as_ref(), Some(&request_token.token));
    assert_eq!(value("oauth_problem").as_deref(), Some("permission_denied"));
    assert_eq!(value("oauth_verifier"), None);
    let guess = exchanges(&consumer, &request_token, "guess");
    proxy.rejects(guess, 401, "permission_denied");

    let request_token = proxy.request_token(&consumer, "oob");
    let page = proxy.decision(&request_token, &user, "deny");
    page.answer.has_status(200);
    assert_eq!(page.element("verifier"), None);
    let guess = exchanges(&consumer, &request_token, "12345678");
    proxy.rejects(guess, 401, "permission_denied");
}

#[test]
fn a_request_token_is_exchanged_once_when_twenty_calls_race() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let exchange = || exchanges(&consumer, &request_token, &verifier);
    let calls: Vec<_> = (0..20).map(|_| (&proxy, proxy.wire(&exchange()))).collect();
    let answers = race(calls);
    let won = answers.iter().filter(|answer| answer.status == 200);
    let used = |answer: &&Answer| answer.problem().as_deref() == Some("token_used");
    let counts = (won.count(), answers.iter().filter(used).count());
    assert_eq!(counts, (1, 19), "{answers:#?}");
    proxy.rejects(exchange(), 401, "token_used");
    let tokens = proxy.run("token list --json").json_lines();
    assert_eq!(tokens.len(), 1, "{tokens:?}");
}

#[test]
fn the_fifth_wrong_verifier_voids_the_request_token() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    for wrong in [4, 5] {
        let request_token = proxy.request_token(&consumer, CALLBACK);
        let verifier = proxy.verifier(&request_token, &user);
        let exchange = |verifier: &str| exchanges(&consumer, &request_token, verifier);
        for _ in 0..wrong {
            proxy.rejects(exchange("wrong"), 401, "verifier_invalid");
        }
        // Calls with a wrong signature do not count.
        for _ in 0..10 {
            let forged = exchange("wrong").key("guess&guess");
            proxy.rejects(forged, 401, "signature_invalid");
        }
        if wrong == 4 {
            proxy.passes(exchange(&verifier));
        } else {
            proxy.rejects(exchange(&verifier), 401, "token_rejected");
        }
    }
}

#[test]
fn tokens_and_verifiers_are_random() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = proxy.shop();
    let mut words = HashSet::new();
    for _ in 0..5 {
        let asked = proxy.request_token(&consumer, CALLBACK);
        let verifier = proxy.verifier(&asked, &user);
        let access = token_of(&proxy.send(exchanges(&consumer, &asked, &verifier)));
        for word in [
            asked.token,
            asked.secret,
            verifier,
            access.token,
            access.secret,
        ] {
            // 128 bits are at least 20 characters of any alphabet that survives a URL.
            assert!(word.len() >= 20, "{word} is too short to be random");
            assert!(words.insert(word), "no word comes twice");
        }
    }
}

#[test]
fn pages_have_the_header_fields_that_protect_them() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("<b>Shop & \"Co\"</b>");
    let request_token = proxy.request_token(&consumer, "oob");
    let login = Visitor::to(&proxy).open(&authorization(&request_token));
    let (mut visitor, consent) = proxy.consent(&request_token, &proxy.user("alice"));
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
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("text/html"), "{content_type}");
    }
}

#[test]
fn a_forged_or_stale_decision_is_403_and_decides_nothing() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("alice"));
    let request_token = proxy.request_token(&consumer, "oob");
    let (mut visitor, consent) = proxy.consent(&request_token, &user);
    let form = consent.form_with("decision").press("decision", "allow");
    let forged = fresh("forged");
    for wrong in [
        form.clone().set("csrf", &forged),
        form.clone().without("csrf"),
    ] {
        let answer = visitor.submit(&consent, &wrong).answer;
        assert_eq!(answer.status, 403, "{wrong:?}: {answer:?}");
    }
    // Another person's browser cannot send it either.
    let answer = Visitor::to(&proxy).submit(&consent, &form).answer;
    assert_eq!(answer.status, 403, "{answer:?}");
    let guess = exchanges(&consumer, &request_token, "12345678");
    proxy.rejects(guess, 401, "permission_unknown");
    visitor.submit(&consent, &form).answer.has_status(200);
    let other = visitor.decide(&consent, "deny").answer;
    assert_eq!(other.status, 403, "a decision stands: {other:?}");
}

#[test]
fn the_same_decision_sent_again_gets_the_same_response() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer_with("Shop", "--callback https://shop.test/back");
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let ask = || proxy.request_token(&consumer, "https://shop.test/back");
    for (decision, otherwise) in [("allow", "deny"), ("deny", "allow")] {
        let request_token = ask();
        let target = authorization(&request_token);
        let (mut visitor, consent) = proxy.consent(&request_token, &user);
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
            let mut attacker = Visitor::logged_in(&proxy, &other);
            assert_eq!(attacker.open(&target).answer.status, 401);
            let verifier = query_value(first, "oauth_verifier").unwrap();
            token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
            assert_eq!(visitor.decide(&consent, "allow").answer.status, 403);
        }
    }
    let decided = |line: &&String| line.contains("event=\"consent_");
    until("each decision is recorded once", || {
        proxy.log().lines().iter().filter(decided).count() == 2
    });
}

#[test]
fn an_undecidable_request_redirects_nowhere() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
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
        let consumer = proxy.consumer_with("Shop", &format!("--callback {callback}"));
        let target = authorization(&proxy.request_token(&consumer, callback));
        let consent = visitor.open(&target);
        change(&consumer, command);
        let is_told = |answer: Answer| {
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            let told = answer.status == status && challenge.contains(problem);
            // A user who comes from a disabled application has to learn which one, and the way back.
            let is_named = answer.text().contains("<bdi>Shop</bdi>");
            let is_disabled = problem == "consumer_key_refused";
            told && is_named == is_disabled && !answer.fields.has("location")
        };
        until(problem, || is_told(visitor.open(&target).answer));
        assert!(
            is_told(Visitor::to(&proxy).open(&target).answer),
            "{problem}"
        );
        assert!(
            is_told(visitor.decide(&consent, "allow").answer),
            "{problem}"
        );
    }
    for (query, told) in [
        ("", "The link is incomplete."),
        ("&oauth_token=", "The link is incomplete."),
        ("&oauth_token=a&oauth_token=b", "It names something twice."),
        ("&oauth_token=%ff", "<h1>"),
    ] {
        let target = format!("/service.oauth?mode=auth_req_token{query}");
        let answer = visitor.open(&target).answer;
        assert!((400..=401).contains(&answer.status), "{query}: {answer:?}");
        assert!(answer.text().contains(told), "{query}: {answer:?}");
    }
}

#[test]
fn only_its_user_can_reload_the_oob_page_until_the_exchange() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let request_token = proxy.request_token(&consumer, "oob");
    let target = authorization(&request_token);
    let (mut visitor, consent) = proxy.consent(&request_token, &user);
    let page = visitor.decide(&consent, "allow");
    assert_eq!(page.target, target, "a page of its own: {page:?}");
    let verifier = page.element("verifier").unwrap();
    let again = visitor.open(&target);
    assert_eq!(again.element("verifier").as_ref(), Some(&verifier));
    assert_eq!(again.answer.header("cache-control"), Some("no-store"));
    let twice = visitor.decide(&consent, "allow");
    assert_eq!(twice.element("verifier").as_ref(), Some(&verifier));

    let mut attacker = Visitor::logged_in(&proxy, &other);
    for page in [attacker.open(&target), Visitor::to(&proxy).open(&target)] {
        assert_eq!((page.answer.status, page.element("verifier")), (401, None));
    }
    token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
    // It is no error for the user, and says nothing else.
    let used = visitor.open(&target);
    assert_eq!((used.answer.status, used.element("verifier")), (200, None));
    let text = used.answer.text();
    has(
        &text,
        &[
            "<bdi>Shop</bdi> has taken the code",
            "You can close this page.",
        ],
    );
    assert!(
        !text.contains(&verifier) && !text.contains("<form"),
        "{text}"
    );
}

#[test]
fn a_browser_without_cookies_gets_an_explanation() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let (consumer, user) = (proxy.consumer("Shop"), proxy.user("alice"));
    let target = authorization(&proxy.request_token(&consumer, "oob"));
    for target in [LOGIN, &target] {
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
