//! The languages of the pages, built in and by the operator.
//!
//! Promise (Flow and pages): Pages are in the requested language; no language lacks a message or a term of the glossary. Also
//! in `src/base/language/tests.rs`.

use rustix::process::Signal;

use crate::support::{
    Call, Proxy, Upstream, Visitor, has, legs::APPLICATIONS, legs::authorization, proxy::Builder,
    rows, until,
};

/// A page as a browser of this language gets it.
fn page(proxy: &Proxy, target: &str, language: &str) -> String {
    let call = Call::get(target)
        .header("Accept", "text/html,*/*;q=0.8")
        .header("Accept-Language", language);
    proxy.send(call).text()
}

/// The service with a directory for messages.
fn with_messages(api: &Upstream, files: &[(&str, &str)]) -> Builder {
    let builder = Proxy::in_front_of(api);
    let directory = builder.directory().join("messages");
    std::fs::create_dir(&directory).unwrap();
    for (name, text) in files {
        std::fs::write(directory.join(name), text).unwrap();
    }
    let key = format!("pages.messages = '{}'", directory.display());
    builder.config(&key)
}

#[test]
fn pages_and_errors_are_in_the_language_of_the_request() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let consumer = proxy.consumer("Shop");
    for (tag, words) in [
        ("en", "Connected applications"),
        ("de", "Verbundene Anwendungen"),
        ("es", "Aplicaciones conectadas"),
        ("fr", "Applications connectées"),
        ("pt-BR", "Aplicativos conectados"),
        ("pt-PT", "Aplicações ligadas"),
        ("zh-Hans", "已连接的应用"),
        ("zh-Hant", "已連結的應用程式"),
        ("ar", "التطبيقات المتصلة"),
        ("ja", "連携中のアプリケーション"),
        ("ko", "연결된 앱"),
    ] {
        let user = proxy.user(&format!("user-{tag}"));
        let direction = if tag == "ar" { "rtl" } else { "ltr" };
        let start = format!("<!doctype html>\n<html lang=\"{tag}\" dir=\"{direction}\">");
        let error = page(&proxy, "/protected", &format!("tlh, {tag}"));
        assert!(
            error.starts_with(&start) && error.contains("oauth_problem_advice"),
            "{error}"
        );
        let mut visitor = Visitor::to(&proxy);
        let token = proxy.request_token(&consumer, "oob");
        let login = visitor.open(&format!("{}&ui_locales=tlh%20{tag}", authorization(&token)));
        assert!(login.answer.text().starts_with(&start), "{login:?}");
        let consent = visitor.log_in(&login, &user);
        assert!(consent.answer.text().starts_with(&start), "{consent:?}");
        let verifier = visitor.decide(&consent, "allow");
        assert!(verifier.answer.text().starts_with(&start), "{verifier:?}");
        assert!(verifier.element("verifier").is_some(), "{verifier:?}");
        let applications = visitor.open(&format!("{APPLICATIONS}&ui_locales={tag}"));
        has(&applications.answer.text(), &[words]);
    }
}

#[test]
fn operators_messages_are_shown_and_a_reload_reads_them_again() {
    let api = Upstream::start();
    let builder = with_messages(
        &api,
        &[
            ("en.ftl", "login-title = Sign in <b>here</b>\n"),
            (
                "nl.ftl",
                "login-title = Inloggen\nlanguage-name = Nederlands\n",
            ),
        ],
    );
    let found = builder.run(&["check"], "").done();
    assert!(found.stdout.contains("zh-Hans, zh-Hant, nl"), "{found:?}");
    let proxy = builder.start();
    let english = page(&proxy, APPLICATIONS, "en");
    has(&english, &["<h1>Sign in &#60;b&#62;here&#60;/b&#62;</h1>"]);
    let dutch = page(&proxy, APPLICATIONS, "nl-BE");
    has(
        &dutch,
        &["<html lang=\"nl\" dir=\"ltr\">", "<h1>Inloggen</h1>"],
    );
    has(&dutch, &["Password"]);
    // Each language links to the others, under their own names.
    has(&dutch, &["<b aria-current=\"true\">Nederlands</b>"]);
    has(
        &dutch,
        &["<a href=\"?mode=applications&#38;ui_locales=ja\" lang=\"ja\">日本語</a>"],
    );
    let chosen = page(&proxy, &format!("{APPLICATIONS}&ui_locales=ja"), "nl");
    has(
        &chosen,
        &[
            "<html lang=\"ja\"",
            "<a href=\"?mode=applications&#38;ui_locales=nl\"",
        ],
    );

    let file = proxy.directory().join("messages/nl.ftl");
    std::fs::write(&file, "login-title = Aanmelden\n").unwrap();
    proxy.signal(Signal::HUP);
    until("the new messages are shown", || {
        let page = page(&proxy, APPLICATIONS, "nl");
        page.contains("<h1>Aanmelden</h1>")
    });
    std::fs::write(&file, "login-title = a\nlogin-titel = b\n").unwrap();
    proxy.signal(Signal::HUP);
    let line = proxy.logs(&["login-titel"]);
    has(&line, &["nl.ftl line 2", "pages.messages"]);
    assert!(page(&proxy, APPLICATIONS, "nl").contains("Aanmelden"));
}

#[test]
fn unusable_operator_messages_are_an_invalid_configuration() {
    for [name, text, place] in rows(
        r"
        nl.ftl         | \nlogin-titel = a\n | nl.ftl line 2: no page shows `login-titel`
        nl.ftl         | login-title a\n     | nl.ftl line 1: not a Fluent message
        to-day.txt.ftl | login-title = a\n   | the name is not a language
        no language.ftl | login-title = a\n  | the name is not a language
        nl.ftl | login-title = a { $b }\n | nl.ftl line 1: `login-title` has no variable $b
        nl.ftl | login-title = a\nduration-hours = { $count ->\n   *[other] { $hours }\n}\n | nl.ftl line 2: `duration-hours` has no variable $hours
        nl.ftl | login-title =\n    .a = b\n | `login-title`
    ",
    ) {
        let builder = with_messages(&Upstream::start(), &[(name, text)]);
        for ended in [builder.run(&["check"], ""), builder.serve_fails()] {
            assert_eq!(ended.code(), Some(2), "{ended:?}");
            assert!(ended.stderr.contains(place), "{ended:?}");
        }
    }
}
