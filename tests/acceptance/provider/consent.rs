//! The consent page names the consumer, the user, the permissions and how long the access lasts.
//!
//! Promise (Flow and pages): The consent page names both parties, the account, the permissions and the next host; a denial
//! names remaining access. Also in `tests/acceptance/operator/console/truth.rs`.

use crate::support::{
    Consumer, PATIENCE, Proxy, Upstream, Visitor, has, in_order,
    legs::{authorization, exchanges, token_of},
    proxy::User,
    within,
};

const CONFIG: &str = "
pages.name = 'Example Photos'

[[permission]]
name = 'orders.pay'
title = 'Pay <orders>'
sensitive = true

[[permission]]
name = 'photos.read'
title = 'See your photos'
description = 'All & every.'

[[permission]]
name = 'photos.print'
title = 'Print your photos'
";

/// The consent page for a consumer, without its style.
fn consent(proxy: &Proxy, consumer: &Consumer, user: &User, callback: &str) -> String {
    let token = proxy.request_token(consumer, callback);
    let text = proxy.consent(&token, user).1.answer.text();
    let (head, body) = text.split_once("<style>").unwrap();
    format!("{head}{}", body.split_once("</style>").unwrap().1)
}

#[test]
fn consent_page_names_account_consumer_permissions_and_host() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let user = proxy.user("ada");
    let options = "--callback https://printer.example:8443/back --permission orders.pay --permission photos.read \
        --website https://www.printer.example/about?a=b";
    let consumer = proxy.consumer_with("Printer", options);
    let description = ["--description", "We print <b>all</b>."];
    let update = ["consumer", "update", &consumer.key];
    proxy.command(&[&update[..], &description].concat()).done();
    let text = consent(
        &proxy,
        &consumer,
        &user,
        "https://printer.example:8443/back",
    );
    has(
        &text,
        &["<title>Printer asks for access to your Example Photos account · Example Photos</title>"],
    );
    in_order(
        &text,
        &[
            "<bdi>Printer</bdi> asks for access to your <bdi>Example Photos</bdi> account",
            "Logged in as <bdi>ada</bdi>",
            "name=\"switch\"",
            "If you allow it, it will be able to <span class=\"soft small\">(2 permissions, 1 sensitive)</span>",
            "See who you are",
            "your user name and id",
            "See your photos",
            "All &#38; every.",
            "Pay &#60;orders&#62;",
            "sensitive",
            "<q><bdi>We print &#60;b&#62;all&#60;/b&#62;.</bdi></q>",
            "not checked by <bdi>Example Photos</bdi>",
            "<bdi class=\"host\" dir=\"ltr\">www.printer.example</bdi>",
            "registered on",
            "you return to <bdi>printer.example:8443</bdi>",
            "value=\"deny\"",
            "value=\"allow\"",
            "never sees your password",
            "until you remove it in <a href=\"/service.oauth?mode=applications\">Connected applications</a>",
        ],
    );
    assert!(
        !text.contains("class=\"badge\""),
        "nothing is new to a first visit: {text}"
    );
    assert!(
        !text.contains("style="),
        "no style beside the sheet: {text}"
    );
}

#[test]
fn consent_page_marks_permissions_that_an_earlier_grant_lacks() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (user, other) = (proxy.user("ada"), proxy.user("bob"));
    let consumer = proxy.consumer_with("Printer", "--permission photos.read --callback oob");
    // What an operator issues, the user was not asked for.
    let given = proxy.token(&consumer, &user);
    assert!(!consent(&proxy, &consumer, &user, "oob").contains("already allowed"));
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let applications = |visitor: &mut Visitor<'_>| {
        visitor
            .open("/service.oauth?mode=applications")
            .answer
            .text()
    };
    has(&applications(&mut visitor), &["Given by the operator on "]);
    let allows = || {
        let request = proxy.request_token(&consumer, "oob");
        let verifier = proxy.verifier(&request, &user);
        token_of(&proxy.served(exchanges(&consumer, &request, &verifier)))
    };
    let token = allows();
    has(&applications(&mut visitor), &["Allowed on "]);
    let update = "--permission photos.read --permission photos.print";
    proxy.run(&format!("consumer update {} {update}", consumer.key));
    let news = |user: &User| {
        consent(&proxy, &consumer, user, "oob")
            .matches("class=\"badge\"")
            .count()
    };
    // The service takes up what a command has changed within a second.
    let text = within(PATIENCE, "the service asks for both", || {
        let text = consent(&proxy, &consumer, &user, "oob");
        text.contains("Print your photos").then_some(text)
    });
    in_order(
        &text,
        &[
            // Green is the colour of nothing to do.
            "<p class=\"note warn\">You already allowed it on ",
            "It now asks for 1 more thing, marked “new”.",
            "See your photos",
            "Print your photos",
            "class=\"badge\"",
        ],
    );
    assert_eq!((news(&user), news(&other)), (1, 0));
    let newer = allows();
    has(
        &consent(&proxy, &consumer, &user, "oob"),
        &["<p class=\"note good\">", "It asks for nothing new."],
    );
    proxy.run(&format!("token revoke {}", newer.token));
    assert_eq!(news(&user), 1);
    for token in [token, given] {
        proxy.run(&format!("token revoke {}", token.token));
    }
    assert!(!consent(&proxy, &consumer, &user, "oob").contains("already allowed"));
    let began = proxy.run(&format!("token list --user {} --json", user.name));
    for word in ["consent", "issued"] {
        has(&began.stdout, &[&format!("\"began\":\"{word}\"")]);
    }
}

#[test]
fn consent_page_names_the_scheme_of_an_application_on_a_device() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let user = proxy.user("ada");
    let callback = "com.pocket.album:/back";
    let options = format!("--callback {callback} --permission orders.pay --permission photos.read");
    let consumer = proxy.consumer_with("Album", &options);
    let text = consent(&proxy, &consumer, &user, callback);
    in_order(
        &text,
        &[
            "If you allow it, it will be able to <span class=\"soft small\">(2 permissions, 1 sensitive)</span>",
            "Its name comes from its developer",
            "1 of these is sensitive.",
            "an app on this device that opens <bdi>com.pocket.album:</bdi> links is next.",
            "value=\"deny\"",
        ],
    );
}

#[test]
fn consent_page_shows_the_lifetime_and_facts_about_the_user() {
    let config =
        "tokens.access_ttl = '90d'\ntokens.access_idle = '36h'\ntokens.profile = ['display_name']";
    let proxy = Proxy::with(&Upstream::start(), config);
    let (consumer, user) = (proxy.consumer("Printer"), proxy.user("ada"));
    let text = consent(&proxy, &consumer, &user, "oob");
    has(
        &text,
        &["your name, user name and id", "Do things in your name"],
    );
    has(
        &text,
        &[
            "lasts <bdi>90 days</bdi>, or until you remove it in <a href=",
            "It ends earlier after 36 hours without use.",
        ],
    );
}

#[test]
fn facts_about_the_user_that_a_consumer_has_not_learnt_are_new() {
    let mut proxy = Proxy::with(&Upstream::start(), "");
    let (consumer, user) = (proxy.consumer("Printer"), proxy.user("ada"));
    let allows = |proxy: &Proxy| {
        let request = proxy.request_token(&consumer, "oob");
        let verifier = proxy.verifier(&request, &user);
        token_of(&proxy.served(exchanges(&consumer, &request, &verifier)))
    };
    allows(&proxy);
    let nothing = ["<p class=\"note good\">", "It asks for nothing new."];
    has(&consent(&proxy, &consumer, &user, "oob"), &nothing);
    proxy.reload("tokens.profile = ['display_name']");
    in_order(
        &consent(&proxy, &consumer, &user, "oob"),
        &[
            "<p class=\"note warn\">You already allowed it on ",
            "It now asks for 1 more thing, marked “new”.",
            "See who you are",
            "your name, user name and id",
            "<span class=\"badge\">new</span>",
            "Do things in your name",
        ],
    );
    allows(&proxy);
    has(&consent(&proxy, &consumer, &user, "oob"), &nothing);
    // A restart forgets none of it.
    let exported = proxy.run("export -").stdout;
    assert_eq!(
        exported.matches("\"with_display_name\":true").count(),
        1,
        "{exported}"
    );
}

#[test]
fn consent_page_marks_the_language_of_untranslated_permissions() {
    let builder = Proxy::in_front_of(&Upstream::start());
    let directory = builder.directory().join("messages");
    std::fs::create_dir(&directory).unwrap();
    let korean = "permission-photos-read = 사진 보기\nconsumer-printer = 사진을 인쇄합니다.\n";
    std::fs::write(directory.join("ko.ftl"), korean).unwrap();
    let key = format!(
        "pages.permission_language = 'en'\npages.messages = '{}'\n",
        directory.display()
    );
    let proxy = builder.config(&key).config(CONFIG).start();
    let user = proxy.user("ada");
    let options = "--key printer --permission photos.read --permission photos.print";
    let consumer = proxy.consumer_with("Printer", options);
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let mut page = |tag: &str| {
        let token = proxy.request_token(&consumer, "oob");
        let page = visitor.open(&format!("{}&ui_locales={tag}", authorization(&token)));
        page.answer.text()
    };
    let text = page("ko");
    has(
        &text,
        &[
            "<bdi>사진 보기</bdi>",
            "<bdi lang=\"en\">All &#38; every.</bdi>",
        ],
    );
    has(
        &text,
        &[
            "<bdi lang=\"en\">Print your photos</bdi>",
            "사진을 인쇄합니다.",
        ],
    );
    let text = page("en");
    has(
        &text,
        &["<bdi>See your photos</bdi>", "<bdi>Print your photos</bdi>"],
    );
}

#[test]
fn only_its_user_can_reload_the_page_of_an_out_of_band_denial() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (consumer, user) = (proxy.consumer("Printer"), proxy.user("ada"));
    let token = proxy.request_token(&consumer, "oob");
    let (mut visitor, page) = proxy.consent(&token, &user);
    let denied = visitor.decide(&page, "deny");
    for page in [&denied, &visitor.open(&denied.target)] {
        has(&page.answer.text(), &["You have denied <bdi>Printer</bdi>"]);
    }
    let mut other = Visitor::logged_in(&proxy, &user);
    let bare = authorization(&token);
    for page in [other.open(&denied.target), visitor.open(&bare)] {
        assert_eq!(page.answer.status, 401, "{page:?}");
    }
}
