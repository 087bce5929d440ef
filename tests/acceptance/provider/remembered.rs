//! Consent once: `consent.remember`, `tokens.reuse` and `limits.tokens_per_user`.
//!
//! Promise (Flow and pages): With `consent.remember = "same"` a user is not asked again for the same; all else needs a click.
//! Also in `tests/attacks/remembered.rs`, `tests/store_contract/flow.rs`.

use crate::support::{
    Call, Consumer, Proxy, Token, Upstream, User, Visitor,
    browser::Browser,
    has,
    legs::{APPLICATIONS, authorization, exchanges, query_value, token_of},
    proxy::CALLBACK,
    signer::encode,
    until,
    visitor::Page,
};

const CONFIG: &str = "consent.remember = 'same'
    tokens.access_ttl = '90d'
    permission = [{ name = 'read', title = 'Look' }, { name = 'write', title = 'Change' },
        { name = 'pay', title = 'Pay', sensitive = true }]\n";

/// The sentence of the page.
const PROMISE: &str = "Until then you are not asked again for the same access.";

/// A request for these permissions.
fn asks(proxy: &Proxy, consumer: &Consumer, callback: &str, scope: &str) -> Token {
    let call = Call::post("/oauth/request_token").by(consumer);
    let call = call.parameter("oauth_callback", callback);
    token_of(&proxy.served(call.parameter("scope", scope)))
}

/// Exchanges what the user allows, or has allowed, on this page.
#[track_caller]
fn gets(proxy: &Proxy, consumer: &Consumer, request: &Token, decided: &Page) -> Token {
    let verifier = query_value(&decided.redirect(), "oauth_verifier").expect("a verifier");
    token_of(&proxy.served(exchanges(consumer, request, &verifier)))
}

/// Walks the flow with the question.
#[track_caller]
fn allows(proxy: &Proxy, consumer: &Consumer, user: &User, callback: &str, scope: &str) -> Token {
    let request = asks(proxy, consumer, callback, scope);
    let mut visitor = Visitor::logged_in(proxy, user);
    let page = visitor.open(&format!("{}&prompt=consent", authorization(&request)));
    let decided = visitor.decide(&page, "allow");
    gets(proxy, consumer, &request, &decided)
}

/// Whether the user is asked at this page.
#[track_caller]
fn is_asked(page: &Page) -> bool {
    match page.answer.status {
        200 => {
            page.form_with("decision");
            true
        }
        status => {
            assert_eq!(status, 303, "{page:?}");
            page.redirect();
            false
        }
    }
}

fn shop(proxy: &Proxy) -> (Consumer, User) {
    let options =
        format!("--callback {CALLBACK} --permission read --permission write --permission pay");
    (proxy.consumer_with("Shop", &options), proxy.user("alice"))
}

#[test]
fn a_user_who_allowed_the_same_goes_back_without_the_question() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, CONFIG);
    let (consumer, user) = shop(&proxy);
    let request = asks(&proxy, &consumer, CALLBACK, "read write");
    let (mut visitor, page) = proxy.consent(&request, &user);
    has(&page.answer.text(), &[PROMISE]);
    let decided = visitor.decide(&page, "allow");
    let first = gets(&proxy, &consumer, &request, &decided);

    for (scope, path) in [
        ("read write", "/oauth/authenticate?"),
        ("read", "/oauth/authorize?"),
        ("write", "/service.oauth?mode=auth_req_token&"),
    ] {
        let request = asks(&proxy, &consumer, CALLBACK, scope);
        let target = format!("{path}oauth_token={}", encode(&request.token));
        // The login is demanded, and then leads back at once.
        let mut other = Visitor::to(&proxy);
        let login = other.open(&target);
        login.form_with("password");
        let page = other.log_in(&login, &user);
        assert!(!is_asked(&page), "{target}");
        assert_eq!(page.answer.header("cache-control"), Some("no-store"));
        let token = gets(&proxy, &consumer, &request, &page);
        assert_ne!(token, first);
        proxy.passes(Call::get("/").by(&consumer).with(&token));
        let seen = api.last_request();
        assert_eq!(seen.header("x-auth-permissions"), Some(scope));
        assert_eq!(seen.header("x-auth-user"), Some(user.id.as_str()));
        // The page again says what was decided, and gives nothing twice.
        other.open(&target).answer.has_status(401);
    }
    proxy.logs(&[
        "consent_repeated",
        &consumer.key,
        &user.id,
        "permissions=\"write\"",
    ]);
    assert_eq!(proxy.logged(&["consent_repeated"]), 3);

    // One row for all of them, whose button ends all.
    let page = visitor.open(APPLICATIONS);
    assert_eq!(page.answer.text().matches("withdraw=").count(), 1);
    let withdraw = visitor.open(&format!("{APPLICATIONS}&withdraw={}", consumer.key));
    let form = withdraw.form_with("revoke").press("revoke", &consumer.key);
    visitor.submit(&withdraw, &form).answer.has_status(200);
    proxy.rejects(
        Call::get("/").by(&consumer).with(&first),
        401,
        "token_revoked",
    );
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    assert!(is_asked(&visitor.open(&authorization(&request))));

    // By default every request is asked, and nothing is promised.
    allows(&proxy, &consumer, &user, CALLBACK, "read");
    assert!(!is_asked(&visitor.open(&authorization(&request))));
    proxy.reload(&CONFIG.replace("same", "never"));
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    let page = Visitor::logged_in(&proxy, &user).open(&authorization(&request));
    assert!(is_asked(&page) && !page.answer.text().contains(PROMISE));
}

#[test]
fn a_user_is_asked_for_more_and_for_what_changed() {
    let mut proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (consumer, user) = shop(&proxy);
    allows(&proxy, &consumer, &user, CALLBACK, "read");
    allows(&proxy, &consumer, &user, CALLBACK, "pay");
    let asked = |proxy: &Proxy, user: &User, scope: &str| {
        let request = asks(proxy, &consumer, CALLBACK, scope);
        is_asked(&Visitor::logged_in(proxy, user).open(&authorization(&request)))
    };
    assert!(!asked(&proxy, &user, "read"));
    assert!(asked(&proxy, &user, "read write"), "one more permission");
    assert!(asked(&proxy, &user, "pay"), "a sensitive one");
    let other = proxy.user("bob");
    assert!(asked(&proxy, &other, "read"), "another user");

    let key = &consumer.key;
    for (change, back) in [
        ("--name Bank", "--name Shop"),
        (
            "--callback https://shop.example/ready --callback https://evil.example/",
            "--callback https://shop.example/ready?from=us&x=%20",
        ),
        (
            "--permission read --permission write",
            "--permission read --permission write --permission pay",
        ),
    ] {
        proxy.run(&format!("consumer update {key} {change}"));
        assert!(asked(&proxy, &user, "read"), "{change}");
        proxy.run(&format!("consumer update {key} {back}"));
        assert!(!asked(&proxy, &user, "read"), "{back}");
    }
    // Once the user has seen the new name, that counts.
    proxy.run(&format!("consumer update {key} --name Bank"));
    allows(&proxy, &consumer, &user, CALLBACK, "read");
    assert!(!asked(&proxy, &user, "read"));
    // A change while the page is open: the user has not seen it.
    let request = asks(&proxy, &consumer, CALLBACK, "write");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = visitor.open(&authorization(&request));
    proxy.run(&format!("consumer update {key} --name Casino"));
    let decided = visitor.decide(&page, "allow");
    gets(&proxy, &consumer, &request, &decided);
    assert!(asked(&proxy, &user, "write"));

    // A permission that is marked later, and a fact that the consumer has not learnt.
    allows(&proxy, &consumer, &user, CALLBACK, "read");
    assert!(!asked(&proxy, &user, "read"));
    proxy.reload(&CONFIG.replace("title = 'Look'", "sensitive = true"));
    assert!(asked(&proxy, &user, "read"));
    proxy.reload(&format!("{CONFIG}tokens.profile = ['display_name']"));
    assert!(asked(&proxy, &user, "read"));
    // Tokens that an operator issues were not allowed by the user.
    proxy.reload(CONFIG);
    proxy.token(&consumer, &other);
    assert!(asked(&proxy, &other, "read"));
}

#[test]
fn programs_on_a_device_and_plain_http_always_ask() {
    let proxy = Proxy::with(&Upstream::start(), "consent.remember = 'same'");
    let user = proxy.user("alice");
    for (registered, callback) in [
        ("--callback oob", "oob"),
        (
            "--callback oob --callback https://shop.example/",
            "https://shop.example/",
        ),
        ("--callback app.example:/back", "app.example:/back"),
        ("--callback http://shop.example/", "http://shop.example/"),
        ("--callback http://127.0.0.1/", "http://127.0.0.1:8000/"),
        ("--callback https://localhost/", "https://localhost:8000/"),
    ] {
        let consumer = proxy.consumer_with("Console", registered);
        for _ in 0..2 {
            let request = proxy.request_token(&consumer, callback);
            let (mut visitor, page) = proxy.consent(&request, &user);
            assert!(is_asked(&page), "{registered}");
            assert!(!page.answer.text().contains(PROMISE), "{registered}");
            let decided = visitor.decide(&page, "allow");
            let verifier = match decided.answer.status {
                200 => decided.element("verifier").unwrap(),
                _ => query_value(&decided.redirect(), "oauth_verifier").unwrap(),
            };
            token_of(&proxy.served(exchanges(&consumer, &request, &verifier)));
        }
    }
}

#[test]
fn a_consumer_can_demand_the_question() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (consumer, user) = shop(&proxy);
    allows(&proxy, &consumer, &user, CALLBACK, "read");
    for (query, expected) in [
        ("prompt=consent", true),
        ("prompt=login%20consent", true),
        ("force_login=true", true),
        ("interactivity=confirm_user", true),
        ("prompt=none", false),
        ("force_login=false", false),
        ("interactivity=minimal", false),
        ("other=consent", false),
    ] {
        let request = asks(&proxy, &consumer, CALLBACK, "read");
        let mut visitor = Visitor::to(&proxy);
        let login = visitor.open(&format!("{}&{query}", authorization(&request)));
        // The demand outlives the login, and a change of language.
        let page = visitor.log_in(&login, &user);
        assert_eq!(is_asked(&page), expected, "{query}");
        if expected {
            let text = page.answer.text();
            has(&text, &[&format!("{query}&#38;ui_locales=de")]);
            let decided = visitor.decide(&page, "allow");
            gets(&proxy, &consumer, &request, &decided);
        }
    }
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    let twice = format!("{}&prompt=none&prompt=consent", authorization(&request));
    let page = Visitor::logged_in(&proxy, &user).open(&twice);
    page.answer.has_status(400);
}

#[test]
fn a_token_is_given_out_again_and_its_number_has_a_limit() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, &format!("{CONFIG}tokens.reuse = true"));
    let (consumer, user) = shop(&proxy);
    let first = allows(&proxy, &consumer, &user, CALLBACK, "read");
    assert_eq!(allows(&proxy, &consumer, &user, CALLBACK, "read"), first);
    proxy.logs(&[
        "access_token_reused",
        &consumer.key,
        &user.id,
        &first.token[..8],
    ]);
    let more = allows(&proxy, &consumer, &user, CALLBACK, "read write");
    assert_ne!(more, first);
    // Without the question too.
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    let page = Visitor::logged_in(&proxy, &user).open(&authorization(&request));
    assert_eq!(gets(&proxy, &consumer, &request, &page), first);

    proxy.reload(&format!(
        "{CONFIG}tokens.reuse = false\nlimits.tokens_per_user = 2"
    ));
    let third = allows(&proxy, &consumer, &user, CALLBACK, "read");
    let call = |token: &Token| Call::get("/").by(&consumer).with(token);
    let passes = [&first, &more, &third].map(|token| proxy.status(call(token)) == 200);
    assert_eq!(passes.iter().filter(|passes| **passes).count(), 2);
    assert!(passes[2]);
}

#[test]
fn a_browser_goes_back_without_a_click() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (consumer, user) = shop(&proxy);
    let browser = Browser::without_javascript();
    let url = |request: &Token| format!("{}{}", proxy.origin(), authorization(request));
    // No machine has the name of the callback: the address is shown all the same.
    let is_back = || browser.url().starts_with("https://shop.example/ready?");
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    browser.open(&url(&request));
    browser.log_in(&user);
    browser.text("button[value=allow]");
    browser.click("button[value=allow]");
    until("the browser is back", is_back);
    let verifier = query_value(&browser.url(), "oauth_verifier").unwrap();
    token_of(&proxy.served(exchanges(&consumer, &request, &verifier)));

    let request = asks(&proxy, &consumer, CALLBACK, "read");
    let asked = asks(&proxy, &consumer, CALLBACK, "read");
    // A page of another site sends the browser here, as a consumer does.
    let (silent, demanding) = (url(&request), format!("{}&prompt=consent", url(&asked)));
    let site = Upstream::replying(move |_| {
        let links = format!("<a id=go href='{silent}'>go</a> <a id=ask href='{demanding}'>ask</a>");
        crate::support::Reply::ok(links).header("Content-Type", "text/html")
    });
    browser.open(site.url());
    browser.click("#ask");
    browser.text("button[value=allow]");
    browser.open(site.url());
    browser.click("#go");
    until("the browser is back without a click", || {
        is_back() && browser.url().contains(&encode(&request.token))
    });
    let verifier = query_value(&browser.url(), "oauth_verifier").unwrap();
    token_of(&proxy.served(exchanges(&consumer, &request, &verifier)));

    // In a browser without a session the login itself leads back.
    let other = Browser::without_javascript();
    let request = asks(&proxy, &consumer, CALLBACK, "read");
    other.open(&url(&request));
    other.log_in(&user);
    until("the login leads back", || {
        other.url().contains(&format!(
            "oauth_token={}&oauth_verifier=",
            encode(&request.token)
        ))
    });
}
