//! The pages in a real Chromium.

use crate::support::{
    Call, Proxy, Reply, Upstream, Visitor,
    browser::Browser,
    legs::{APPLICATIONS, LOGIN, LOGOUT, authorization, exchanges, query_value, token_of},
};

#[test]
fn the_harness_really_runs_no_script_when_it_says_so() {
    let api = Upstream::replying(|_| {
        let page = "<title>no script</title><p id=told>no</p><script>document.getElementById('told').textContent='yes'</script>";
        Reply::ok(page).header("Content-Type", "text/html")
    });
    for (browser, told) in [
        (Browser::start(), "yes"),
        (Browser::without_javascript(), "no"),
    ] {
        browser.open(api.url());
        assert_eq!(browser.text("#told"), told);
    }
}

#[test]
fn session_opens_the_api_to_its_origin_not_to_a_neighbours_form() {
    let api = Upstream::replying(|_| {
        Reply::ok("<p id=account>yours</p>").header("Content-Type", "text/html")
    });
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/account', access = ['user'] }, { path = '/favicon.ico', access = ['anonymous'] }]",
    );
    let user = proxy.user("alice");
    let browser = Browser::start();
    browser.open(&format!("{}/service.oauth?mode=login", proxy.origin()));
    browser.log_in(&user);
    crate::support::until("logged in", || {
        !browser.source().contains("name=\"password\"")
    });
    browser.open(&format!("{}/account", proxy.origin()));
    assert_eq!(browser.text("#account"), "yours");
    let opened = || {
        api.requests()
            .iter()
            .filter(|seen| seen.target == "/account")
            .count()
    };
    assert_eq!(opened(), 1);

    // Another port of the same host is the same site to the cookie, and another origin to us.
    let target = proxy.origin();
    let neighbour = Upstream::replying(move |_| {
        Reply::ok(format!(
            "<form method=post action='{target}/account'><button>press</button></form>"
        ))
        .header("Content-Type", "text/html")
    });
    browser.open(neighbour.url());
    browser.click("button");
    crate::support::until("the form was sent", || {
        browser.url().starts_with(&proxy.origin())
    });
    assert!(!browser.source().contains("yours"));
    assert_eq!(opened(), 1);
}

#[test]
fn the_consent_page_cannot_be_framed() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    let address = format!(
        "{}{}",
        proxy.origin(),
        authorization(&proxy.request_token(&consumer, "oob"))
    );
    let page = proxy.send(Call::get(&authorization(
        &proxy.request_token(&consumer, "oob"),
    )));
    page.has_status(200);
    let framing = Upstream::replying(move |_| {
        Reply::ok(format!(
            "<p id=outside>outside</p><iframe id=inside src='{address}'></iframe>"
        ))
        .header("Content-Type", "text/html")
    });
    let browser = Browser::start();
    browser.open(framing.url());
    assert_eq!(browser.text("#outside"), "outside");
    assert!(
        !browser.frame_source("#inside").contains("password"),
        "the form does not show in a frame"
    );
}

#[test]
fn navigation_without_a_session_leads_to_the_login_and_back() {
    let api = Upstream::replying(|_| {
        Reply::ok("<p id=account>yours</p>").header("Content-Type", "text/html")
    });
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/account', access = ['user'] }]",
    );
    let user = proxy.user("alice");
    let browser = Browser::without_javascript();
    browser.open(&format!("{}/else", proxy.origin()));
    browser.click("summary");
    assert_eq!(browser.text("#oauth_problem"), "parameter_absent");
    browser.open(&format!("{}/account?x=1", proxy.origin()));
    browser.log_in(&user);
    crate::support::until("led back", || browser.url().ends_with("/account?x=1"));
    assert_eq!(browser.text("#account"), "yours");
}

#[test]
fn second_click_on_a_slow_connection_keeps_the_verifier() {
    let shop = Upstream::replying(|_| {
        Reply::ok("<p id=back>back</p>").header("Content-Type", "text/html")
    });
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let callback = format!("{}/back", shop.url());
    let consumer = proxy.consumer_with("Shop", &format!("--callback {callback}"));
    let user = proxy.user("alice");
    let browser = Browser::start();
    let request_token = proxy.request_token(&consumer, &callback);
    browser.open(&format!(
        "{}{}",
        proxy.origin(),
        authorization(&request_token)
    ));
    browser.log_in(&user);
    browser.text("button[value=allow]");
    browser.slow(1500);
    browser.script(
        "const allow = document.querySelector('button[value=allow]');
        allow.click(); setTimeout(() => allow.click(), 300);",
    );
    assert_eq!(browser.text("#back"), "back");
    let verifier = query_value(&browser.url(), "oauth_verifier").unwrap();
    token_of(&proxy.send(exchanges(&consumer, &request_token, &verifier)));
}

#[test]
fn second_click_on_a_slow_connection_gets_the_firsts_notice() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let caller = proxy.somebody();
    let browser = Browser::start();
    let page = |target: &str| browser.open(&format!("{}{target}", proxy.origin()));
    page(LOGIN);
    browser.log_in(&caller.user);
    browser.text("section");
    let mut elsewhere = Visitor::logged_in(&proxy, &caller.user);
    browser.slow(1000);
    for (target, button, notice) in [
        (
            format!("{APPLICATIONS}&withdraw={}", caller.consumer.key),
            "button[name=revoke]",
            "can no longer act for you",
        ),
        (
            format!("{LOGOUT}&which=others"),
            "button[name=others]",
            "logged out everywhere else",
        ),
        (LOGOUT.to_owned(), "button[name=here]", ""),
    ] {
        page(&target);
        browser.text(button);
        browser.script(&format!(
            "const it = document.querySelector('{button}'); it.click(); setTimeout(() => it.click(), 300);"
        ));
        let shown = match notice {
            "" => browser.text("#username"),
            _ => browser.text("[role=status]"),
        };
        assert!(shown.contains(notice), "{target}: {shown}");
    }
    let page = elsewhere.open(APPLICATIONS);
    assert!(page.answer.text().contains("id=\"password\""), "{page:?}");
}
