//! Every page of the console in a real Chromium.
//!
//! With COUNTERSIGN_SCREENSHOTS the pictures of all pages are written to that directory.
//!
//! Promise (Console): A page works without JavaScript, with the keyboard, from 320 pixels, and axe finds no fault.

use super::*;

struct Look {
    browser: Browser,
    axe: String,
}

impl Look {
    fn new(browser: Browser) -> Self {
        let axe = std::fs::read_to_string(AXE)
            .unwrap_or_else(|error| panic!("{AXE}: {error}; tests/run installs it"));
        Self { browser, axe }
    }

    /// Checks the page that is shown, in every window.
    fn look(&self, name: &str) {
        let body = "return Promise.all(document.getAnimations().map(it => it.finished)).then(() => axe.run(document, {iframes: false, rules: {'color-contrast-enhanced': {enabled: true}, 'frame-tested': {enabled: false}}})).then(found => found.violations.concat(found.incomplete)
            .map(rule => rule.id + ': ' + rule.nodes.map(node => node.html + ' ' + node.failureSummary).join('; ')))";
        let overflows =
            "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
        for (width, dark) in [
            (320, false),
            (320, true),
            (768, false),
            (1280, false),
            (1280, true),
        ] {
            self.browser.emulate(width, dark);
            let place = format!("{name}, {width} pixels, dark: {dark}");
            let found = self.browser.script(&format!("{}\n{body}", self.axe));
            assert_eq!(found, Value::Array(Vec::new()), "{place}");
            assert_eq!(
                self.browser.script(overflows),
                Value::Bool(false),
                "{place} has to be scrolled sideways"
            );
            if let Some(directory) = std::env::var_os("COUNTERSIGN_SCREENSHOTS") {
                let scheme = if dark { "dark" } else { "light" };
                let path = std::path::Path::new(&directory)
                    .join(format!("console-{name}-{width}-{scheme}.png"));
                std::fs::write(&path, self.browser.screenshot()).unwrap();
                // The part below the first screen.
                self.browser.script("(document.querySelector('figure') || document.querySelector('.compare') || document.body).scrollIntoView()");
                std::fs::write(path.with_extension("below.png"), self.browser.screenshot())
                    .unwrap();
                self.browser.script("window.scrollTo(0, 0)");
            }
        }
    }
}

#[test]
fn axe_finds_nothing_in_the_console_in_any_window() {
    let (_api, mut proxy) = console(OPERATIONS);
    let (consumer, user, token) = caller(
        &proxy,
        "A_consumer_with_a_long_name_and_no_space_in_it_at_all",
        "--permission members.read --callback https://a.test/a-long-path/that-goes-on/and-on",
    );
    for _ in 0..3 {
        proxy
            .send(
                Call::get("/members/1")
                    .by(&Consumer::new(&consumer.key, "wrong"))
                    .with(&token),
            )
            .has_status(401);
        proxy.passes(Call::get("/members/1").by(&consumer).with(&token));
    }
    proxy.run(&format!(
        "consumer rotate-secret {} --grace 1h",
        consumer.key
    ));
    let look = Look::new(Browser::start());
    let origin = format!("http://{}", proxy.admin());
    let browser = &look.browser;
    browser.open(&origin);
    browser.text("#token");
    look.look("login");
    browser.fill("#token", "wrong");
    browser.click("button.main");
    browser.text(".note.bad");
    look.look("login-wrong");
    browser.fill("#token", WRITE);
    browser.click("button.main");
    browser.text("nav a[aria-current]");
    look.look("overview");
    let key = format!("key={}", consumer.key);
    for (name, path) in [
        ("overview-day", "/?span=day"),
        ("consumers", "/consumers"),
        ("consumer", &*format!("/consumer?{key}")),
        ("consumer-add", "/consumer/add"),
        ("consumer-edit", &format!("/consumer/edit?{key}")),
        ("consumer-rotate", &format!("/consumer/rotate?{key}")),
        ("consumer-remove", &format!("/consumer/remove?{key}")),
        ("consumer-end-grace", &format!("/consumer/end-grace?{key}")),
        ("consumer-link", &format!("/consumer/link?{key}")),
        (
            "consumer-consent",
            &format!("/consumer/consent?{key}&language=ar"),
        ),
        ("users", "/users"),
        ("user-add", "/user/add"),
        ("user-password", &format!("/user/password?id={}", user.id)),
        ("user", &format!("/user?id={}", user.id)),
        ("user-disable", &format!("/user/disable?id={}", user.id)),
        (
            "user-end-sessions",
            &format!("/user/end-sessions?id={}", user.id),
        ),
        (
            "token-revoke",
            &format!("/token/revoke?token={}", token.token),
        ),
        ("tokens", "/tokens"),
        ("tokens-revoke", &format!("/tokens/revoke?user={}", user.id)),
        ("rejections", "/rejections"),
        ("operations", "/operations?path=/members/1"),
        ("audit", "/audit"),
        ("signature", "/signature"),
        ("configuration", "/configuration"),
        ("not-found", "/nothing"),
    ] {
        browser.open(&format!("{origin}{path}"));
        browser.text("h1");
        look.look(name);
    }
    browser.open(&format!("{origin}/consumer/consent?{key}&language=de"));
    let shown = browser.frame_source("iframe");
    assert!(shown.contains("bittet um Zugriff"), "{shown}");
    browser.open(&format!("{origin}/consumer/link?{key}"));
    browser.click("button.main");
    browser.text("pre.copy");
    look.look("new-link");

    browser.open(&format!("{origin}/signature"));
    let call = Call::get("/members/1?a=b&c=d")
        .by(&consumer)
        .with(&token)
        .signs_target("/members/1");
    let wire = String::from_utf8(proxy.wire(&call)).unwrap();
    browser.fill("#request", &wire);
    browser.click("button.main");
    browser.text("mark");
    look.look("signature-wrong");

    browser.open(&format!("{origin}/consumer/disable?{key}"));
    proxy.run(&format!("consumer update {} --name Other", consumer.key));
    browser.click("button.danger");
    browser.text("main a[href^='/consumer/disable?']");
    look.look("stale");
    browser.open(&format!("{origin}/consumer/rotate?{key}"));
    browser.click("button.main");
    browser.text("form:has(input[name=confirmed]) button");
    browser.click("button.main");
    browser.text(".note.warn");
    look.look("new-secret");

    let tokens = (100..201).map(|number| {
        format!("{{\"kind\":\"token\",\"token\":\"imported-{number}\",\"token_secret\":\"s\",\"consumer\":\"{}\",\"user\":\"{}\"}}\n", consumer.key, user.id)
    });
    let lines = format!(
        "{{\"kind\":\"export\",\"version\":1}}\n{}",
        tokens.collect::<String>()
    );
    proxy.command_with(&["import", "-"], &lines).done();
    proxy.reload("signature.enforcement = 'observe'");
    proxy.passes(Call::get("/members/1").by(&Consumer::new(&consumer.key, "wrong")));
    for (name, path, part) in [
        ("tokens-next", "/tokens", "Next page"),
        ("rejections-observed", "/rejections?kind=observed", "1 call"),
    ] {
        browser.open(&format!("{origin}{path}"));
        has(&browser.text("main"), &[part]);
        look.look(name);
    }
}

#[test]
fn console_menu_is_one_line_in_a_wide_window_folded_on_a_phone() {
    let (_api, proxy) = console("pages.name = 'Example Photos'");
    let browser = Browser::start();
    browser.open(&format!("http://{}", proxy.admin()));
    browser.fill("#token", WRITE);
    browser.click("button.main");
    browser.text("nav a[aria-current]");
    let rows = |selector: &str| {
        let tops = format!(
            "return new Set(Array.from(document.querySelectorAll('{selector}'), it => it.offsetTop)).size"
        );
        browser.script(&tops)
    };
    browser.emulate(1440, false);
    assert_eq!(rows("header > nav a"), 1);
    assert_eq!(rows(".tiles li"), 1);
    browser.emulate(390, false);
    assert_eq!(rows(".tiles li"), 2);
    let height = browser.script("return document.querySelector('header').offsetHeight");
    assert!(height.as_u64().unwrap() <= 120, "{height}");
    browser.click(".menu summary");
    browser.click(".menu a[href='/tokens']");
    browser.text(".menu a[href='/tokens'][aria-current]");
}

#[test]
fn keyboard_alone_changes_a_consumer_without_javascript() {
    let (_api, proxy) = console("");
    let consumer = proxy.consumer("Shop");
    let browser = Browser::without_javascript();
    browser.open(&format!("http://{}", proxy.admin()));
    tab_to(&browser, "#token");
    browser.keys(&format!("{WRITE}{ENTER}"));
    tab_to(&browser, "nav a[href='/consumers']");
    browser.keys(&ENTER.to_string());
    browser.text("#q");
    tab_to(&browser, "#q");
    browser.keys(&format!("Sho{ENTER}"));
    until("the search is done", || browser.url().contains("q=Sho"));
    browser.open(&format!(
        "http://{}/consumer/disable?key={}",
        proxy.admin(),
        consumer.key
    ));
    tab_to(&browser, "button.danger");
    browser.keys(&ENTER.to_string());
    browser.text(".note.good");
    assert!(
        proxy
            .run(&format!("consumer show {} --json", consumer.key))
            .stdout
            .contains("\"enabled\":false")
    );
}
