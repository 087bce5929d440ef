//! The pages in a real Chromium, for people who need contrast, a screen reader, the keyboard or a narrow window: axe-core
//! looks at each of them.
//!
//! With COUNTERSIGN_SCREENSHOTS the pictures of all pages are written to that directory.
//!
//! Promise (Flow and pages): axe-core finds no fault on any page, in any colour scheme, width or writing direction; the
//! keyboard suffices.

use std::{cell::RefCell, process::Stdio, time::Instant};

use serde_json::{Value, json};

use crate::support::{
    Call, Proxy, Upstream,
    browser::{Browser, ENTER, SPACE, TAB},
    legs::{
        APPLICATIONS, LOGIN, LOGOUT, PASSWORD, REVOKE_TOKEN, authorization, exchanges,
        pages_not_among, token_of,
    },
    program::{Log, program},
    proxy::{CALLBACK, Consumer, User},
    until,
    upstream::refusing_address,
};

pub(crate) const AXE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/clients/node/node_modules/axe-core/axe.min.js"
);

const CONFIG: &str = "
login.max_failures = '2 per 15m'
service.docs_url = 'https://example.com/errors'
tokens.access_idle = '30d'
consent.remember = 'same'

[pages]
terms_url = 'https://example.com/terms'
privacy_url = 'https://example.com/privacy'
help_url = 'https://example.com/help'
recovery_url = 'https://example.com/forgot'
permission_language = 'en'

[[permission]]
name = 'photos.read'
title = 'See your photos'
description = 'All albums and captions, also those that you do not share.'

[[permission]]
name = 'photos.print'
title = 'Print your photos'
sensitive = true
";

/// The most bytes of a page, with its style.
pub(crate) const MAX_PAGE: u64 = 13 * 1024;

/// Fills its row on the page of applications.
const NAME: &str =
    "Photo Printer of the Corner Shop, for Prints, Albums and Calendars of All Sizes";

struct Audit {
    browser: Browser,
    axe: String,
    language: &'static str,
    /// The most bytes of a page.
    most: u64,
    /// Whether the colours are the built-in ones.
    has_own_colours: bool,
    opened: RefCell<Vec<String>>,
}

impl Audit {
    fn with(browser: Browser, language: &'static str) -> Self {
        let axe = std::fs::read_to_string(AXE)
            .unwrap_or_else(|error| panic!("{AXE}: {error}; tests/run installs it"));
        Self {
            browser,
            axe,
            language,
            most: MAX_PAGE,
            has_own_colours: true,
            opened: RefCell::default(),
        }
    }

    /// Checks the page that is shown, in every window.
    fn look(&self, name: &str) {
        let body = format!(
            "return axe.run(document, {{rules: {{'color-contrast-enhanced': {{enabled: {}}}}}}}).then(found => found.violations.concat(found.incomplete)
            .map(rule => rule.id + ': ' + rule.nodes.map(node => node.html + ' ' + node.failureSummary).join('; ')))",
            self.has_own_colours
        );
        // Its size as it came over the network, without the fields.
        let size = "return performance.getEntriesByType('navigation')[0].decodedBodySize";
        let size = self.browser.script(size).as_u64().unwrap();
        assert!(
            (1..=self.most).contains(&size),
            "{name}, {}: {size} bytes",
            self.language
        );
        for (width, dark) in [(320, false), (360, true), (768, true), (1280, false)] {
            self.browser.emulate(width, dark);
            let place = format!("{name}, {}, {width} pixels, dark: {dark}", self.language);
            let found = self.browser.script(&format!("{}\n{body}", self.axe));
            assert_eq!(found, Value::Array(Vec::new()), "{place}");
            let overflow = self.browser.script(
                "return document.documentElement.scrollWidth > document.documentElement.clientWidth",
            );
            assert_eq!(
                overflow,
                Value::Bool(false),
                "{place} has to be scrolled sideways"
            );
            let tall = self.browser.script(
                "return [...document.querySelectorAll('button, .button')].filter(it => it.offsetHeight > 72).length",
            );
            assert_eq!(tall, 0, "{place} has a button of more than two lines");
            let narrow = self.browser.script(
                "return [...document.querySelectorAll('.row > div')].filter(it => 2 * it.offsetWidth < it.parentNode.offsetWidth).length",
            );
            assert_eq!(narrow, 0, "{place} squeezes the text of a row");
            let language = self.browser.script("return document.documentElement.lang");
            assert_eq!(language, self.language, "{place}");
            if let Some(directory) = std::env::var_os("COUNTERSIGN_SCREENSHOTS") {
                let scheme = if dark { "dark" } else { "light" };
                let file = format!("{name}-{}-{width}-{scheme}.png", self.language);
                let path = std::path::Path::new(&directory).join(file);
                std::fs::write(path, self.browser.screenshot()).unwrap();
            }
        }
    }

    fn open(&self, proxy: &Proxy, target: &str) {
        self.opened.borrow_mut().push(target.to_owned());
        self.browser.open(&format!("{}{target}", proxy.origin()));
    }

    /// Waits for the page that has this element.
    fn at(&self, selector: &str, name: &str) {
        self.browser.text(selector);
        self.look(name);
    }

    /// Every page and error page, in the order in which a user sees them.
    fn every_page(&self, proxy: &Proxy) {
        let user = proxy.user(&format!("user-{}", self.language));
        let granted = "--permission photos.read --permission photos.print";
        let description = "Sends your photos to a shop that prints them.";
        let website = "--website https://printer.example/";
        let consumer = proxy.consumer_with(NAME, &format!("{granted} {website}"));
        let update = [
            "consumer",
            "update",
            &consumer.key,
            "--description",
            description,
        ];
        proxy.command(&update).done();
        let plain = proxy.consumer_with("A", "--permission photos.read");
        // A second permission is new to the user.
        proxy.token_with(&plain, &user, "--permission photos.read");
        proxy.run(&format!(
            "consumer update {} --permission photos.print --permission photos.read",
            plain.key
        ));
        proxy.token_with(&consumer, &user, granted);
        let authorize = |consumer: &Consumer| authorization(&proxy.request_token(consumer, "oob"));
        self.open(proxy, LOGIN);
        self.at("#username", "login");
        for name in ["login-wrong", "login-wrong-again", "login-throttled"] {
            self.attempt("nobody");
            if name != "login-wrong-again" {
                self.look(name);
            }
        }

        let asked = authorize(&consumer);
        self.open(proxy, &asked);
        self.at("#username", "login-to-decide");
        self.browser.log_in(&user);
        self.at("button[name=decision]", "consent");
        self.browser.click("button[value=allow]");
        self.at("#verifier", "verifier");
        let denied = authorize(&plain);
        self.open(proxy, &denied);
        self.at("button[name=decision]", "consent-plain");
        self.browser.click("button[value=deny]");
        until("denied", || {
            !self.browser.source().contains("name=\"decision\"")
        });
        self.look("denied");
        self.open(proxy, &not_asked_again(proxy));
        self.at("input[name=shown]", "consent-once");

        self.open(proxy, PASSWORD);
        self.at("#new_password", "password");
        let fill = |current: &str, new: &str| {
            for (field, text) in [
                ("#current_password", current),
                ("#new_password", new),
                ("#new_password_again", new),
            ] {
                self.browser.fill(field, text);
            }
            self.send();
        };
        fill(&user.password, "password1");
        self.at("#new_password[aria-invalid]", "password-common");
        fill("wrong", "tr7-kQp9-new");
        self.at("#current_password[aria-invalid]", "password-wrong");
        fill(&user.password, "tr7-kQp9-new");
        self.at("[role=status]", "password-changed");

        self.open(proxy, APPLICATIONS);
        self.at("a.button", "applications");
        for _ in 0..2 {
            self.browser.click("li a.button");
            self.at("button[name=revoke]", "withdraw");
            self.browser.click("button[name=revoke]");
            self.at("[role=status]", "applications-withdrawn");
        }
        self.open(proxy, LOGOUT);
        self.at("button[name=here]", "logout");
        self.open(proxy, &format!("{LOGOUT}&which=all"));
        self.at("button[name=everywhere]", "logout-all");

        for (target, name) in [
            ("/protected?oauth_token=x", "error-signed"),
            ("/elsewhere", "error-unsigned"),
            (
                "/service.oauth?mode=auth_req_token&oauth_token=unknown",
                "error-token",
            ),
            (REVOKE_TOKEN, "error-method"),
            ("/service.oauth?mode=auth_req_token", "error-malformed"),
            (&denied, "error-used"),
        ] {
            self.open(proxy, target);
            self.at("h1", name);
        }
        // A form that is no longer valid.
        let asked = authorize(&consumer);
        self.open(proxy, &asked);
        self.browser
            .script("document.querySelector('input[name=csrf]').value = 'x'");
        self.browser.click("button[value=allow]");
        until("stale", || {
            !self.browser.source().contains("name=\"decision\"")
        });
        self.look("error-stale");
        // A row that this program never wrote.
        let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
        store
            .execute("UPDATE sessions SET created_at = -1", [])
            .unwrap();
        self.open(proxy, APPLICATIONS);
        self.at("#request-id", "error-fault");
        // The page of a developer has a test of its own.
        assert_eq!(pages_not_among(proxy, &self.opened.borrow()), ["developer"]);
    }

    /// Sends the form that is shown, and waits for the page that comes.
    fn send(&self) {
        self.browser.script("document.body.id = 'before'");
        self.browser.click("button.main");
        self.browser.text("body:not(#before)");
    }

    fn attempt(&self, name: &str) {
        self.browser
            .script("document.querySelectorAll('form input:not([type=hidden])').forEach(field => field.value = '')");
        self.browser.fill("#username", name);
        self.browser.fill("#password", "wrong");
        self.send();
        self.browser.text("#problem");
    }
}

/// The page of a consumer for which the user is not asked again.
fn not_asked_again(proxy: &Proxy) -> String {
    let options = format!("--permission photos.read --callback {CALLBACK}");
    let consumer = proxy.consumer_with(NAME, &options);
    authorization(&proxy.request_token(&consumer, CALLBACK))
}

/// Checks the pages of `proxy`, and the page shown where passwords cannot be checked.
fn check(proxy: &Proxy, audit: &Audit) {
    audit.every_page(proxy);
    let unavailable = Proxy::with(
        &Upstream::start(),
        &format!(
            "[login]\nbackend = 'http'\nurl = 'http://{}'",
            refusing_address()
        ),
    );
    audit.open(&unavailable, LOGIN);
    audit.browser.text("#username");
    audit.attempt("somebody");
    audit.look("login-unavailable");
}

#[test]
fn axe_finds_nothing_on_any_page() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    check(&proxy, &Audit::with(Browser::in_language("en"), "en"));
}

#[test]
fn the_main_pages_fit_in_every_other_language() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let user = proxy.user("ada");
    let granted = "--permission photos.read --permission photos.print";
    let consumer = proxy.consumer_with(NAME, granted);
    let mut audit = Audit::with(Browser::in_language("tlh"), "en");
    let languages = [
        "de", "es", "fr", "ja", "ko", "pt-BR", "pt-PT", "zh-Hans", "zh-Hant",
    ];
    for language in languages {
        audit.language = language;
        audit.open(&proxy, &format!("{LOGIN}&ui_locales={language}"));
        audit.at("#username", "login");
    }
    audit.browser.log_in(&user);
    audit.browser.text("section");
    let withdraw = format!("{APPLICATIONS}&withdraw={}", consumer.key);
    for language in languages {
        audit.language = language;
        proxy.token_with(&consumer, &user, granted);
        let asked = authorization(&proxy.request_token(&consumer, "oob"));
        let once = not_asked_again(&proxy);
        for (target, selector, name) in [
            (&*asked, "button[name=decision]", "consent"),
            (&*once, "input[name=shown]", "consent-once"),
            (APPLICATIONS, "li a.button", "applications"),
            (&withdraw, "button[name=revoke]", "withdraw"),
            (PASSWORD, "#new_password", "password"),
            (
                "/service.oauth?mode=logout&which=others",
                "button[name=others]",
                "logout",
            ),
            ("/protected?oauth_token=x", "#request-id", "error-signed"),
        ] {
            audit.open(&proxy, &format!("{target}&ui_locales={language}"));
            audit.at(selector, name);
        }
        let breaks = "return getComputedStyle(document.querySelector('h1')).wordBreak";
        let expected = match language {
            "ja" => "auto-phrase",
            "ko" => "keep-all",
            _ => "normal",
        };
        assert_eq!(audit.browser.script(breaks), expected, "{language}");
    }
}

#[test]
fn axe_finds_nothing_on_the_page_of_a_developer() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let (consumer, user) = (proxy.consumer(NAME), proxy.user("ada"));
    let token = proxy.token(&consumer, &user);
    let url = proxy.run(&format!("consumer link {} --json", consumer.key));
    let url = url.json()["url"].as_str().unwrap().to_owned();
    let link = &url[url.find("/service.oauth").unwrap()..];
    let mut audit = Audit::with(Browser::in_language("tlh"), "en");
    // It is for developers, who have a few reasons and base strings to read.
    audit.most = 3 * MAX_PAGE;
    audit.open(&proxy, link);
    audit.at("#request", "developer-none");
    let wrong = || -> Call {
        let call = Call::get("/members/1?a=b&c=d").by(&consumer).with(&token);
        call.signs_target("/members/1")
    };
    proxy.send(wrong()).has_status(401);
    proxy
        .send(Call::get("/a").by(&Consumer::new(&consumer.key, "wrong")))
        .has_status(401);
    for language in ["en", "ar", "de", "ja"] {
        audit.language = language;
        audit.open(&proxy, &format!("{link}&ui_locales={language}"));
        audit
            .browser
            .script("document.querySelectorAll('details').forEach(it => it.open = true)");
        audit.at("mark", "developer");
        let wire = String::from_utf8(proxy.wire(&wrong())).unwrap();
        audit.browser.fill("#request", &wire);
        audit.send();
        audit.at("div.note.bad", "developer-checked");
        audit.browser.text("mark");
    }
}

/// The walk of a developer from the login to a signed call is the first part.
#[test]
fn axe_finds_nothing_on_the_pages_of_own_keys() {
    let (api, config) = (
        Upstream::start(),
        format!("registration.mode = 'open'\nregistration.own_token = true\n{CONFIG}"),
    );
    let proxy = Proxy::with(&api, &config);
    let user = proxy.user("dora");
    let mut audit = Audit::with(Browser::in_language("tlh"), "en");
    // A developer has a form, and nothing to wait for.
    audit.most = 2 * MAX_PAGE;
    let begun = Instant::now();
    let browser = &audit.browser;
    browser.open(&format!("{}/oauth/register", proxy.origin()));
    browser.log_in(&user);
    browser.fill("#name", "Photo Printer of the Corner Shop");
    browser.fill(
        "#description",
        "Sends your photos to a shop that prints them.",
    );
    browser.fill("#contact", "dev@shop.example");
    browser.click("input[name='permission photos.read']");
    browser.click("button.main");
    let (key, secret) = (browser.text("#key-value"), browser.text("#secret-value"));
    let consumer = Consumer::new(key.trim(), secret.trim());
    let request = proxy.request_token(&consumer, "oob");
    browser.open(&format!("{}{}", proxy.origin(), authorization(&request)));
    browser.click("button[value=allow]");
    let verifier = browser.text("#verifier");
    let token = token_of(&proxy.send(exchanges(&consumer, &request, verifier.trim())));
    proxy.passes(Call::get("/photos").by(&consumer).with(&token));
    println!("from the login to a signed call: {:?}", begun.elapsed());
    let list = "/service.oauth?mode=register";
    let languages = [
        "en", "ar", "de", "es", "fr", "ja", "ko", "pt-BR", "pt-PT", "zh-Hans", "zh-Hant",
    ];
    for language in languages {
        audit.language = language;
        let open = |target: &str| audit.open(&proxy, &format!("{target}&ui_locales={language}"));
        open(list);
        audit.at("#description", "register");
        open(&format!("{list}&of={}", consumer.key));
        audit.at("#callbacks", "register-own");
        open(&format!("{list}&token={}", consumer.key));
        audit.at("button[value=token]", "register-token");
        if !["en", "ar", "de"].contains(&language) {
            continue;
        }
        open(&format!("{list}&end={}", consumer.key));
        audit.at("button[value=end]", "register-end");
        open(&format!("{list}&token={}", consumer.key));
        audit.browser.click("button[value=token]");
        audit.at("#token-value", "registered-token");
        open(&format!("{list}&of={}", consumer.key));
        audit.browser.click("button[value=rotate]");
        audit.at("#secret-value", "registered");
        open(list);
        audit
            .browser
            .fill("#name", "Photo Printer of the Corner Shop");
        audit.browser.fill("#description", "Another one");
        audit.browser.fill("#contact", "dev@shop.example");
        audit.browser.click("button.main");
        audit.at("#problem", "register-taken");
    }
}

#[test]
fn axe_finds_nothing_right_to_left_and_in_the_operators_colours() {
    let builder = Proxy::in_front_of(&Upstream::start());
    let logo = builder.directory().join("logo.svg");
    let picture = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 96 32'><rect width='96' height='32' rx='8' fill='#7a1f5c'/></svg>";
    std::fs::write(&logo, picture).unwrap();
    let look = format!(
        "pages.name = 'Photos & More'\npages.logo = '{}'\npages.accent = '#ffcc00'\npages.background = '#fdf7fb'\n\
         pages.background_dark = '#999999'",
        logo.display()
    );
    let proxy = builder.config(&look).config(CONFIG).start();
    let mut audit = Audit::with(Browser::in_language("ar"), "ar");
    audit.has_own_colours = false;
    check(&proxy, &audit);
}

/// Presses Tab until the focus is on the element, and checks that the focus is visible.
#[track_caller]
pub(crate) fn tab_to(browser: &Browser, selector: &str) {
    browser.text(selector);
    for _ in 0..24 {
        let on = format!("return document.activeElement.matches({selector:?})");
        if browser.script(&on) == Value::Bool(true) {
            let outline = "return getComputedStyle(document.activeElement).outlineStyle";
            assert_eq!(
                browser.script(outline),
                "solid",
                "{selector} shows the focus"
            );
            return;
        }
        browser.keys(&TAB.to_string());
    }
    panic!("Tab does not lead to {selector}: {}", browser.source());
}

/// Login, consent, revocation and logout on the keyboard alone.
fn by_keyboard(proxy: &Proxy, browser: &Browser, user: &User) {
    let consumer = proxy.consumer("Shop");
    proxy.token(&consumer, user);
    let token = proxy.request_token(&consumer, "oob");
    browser.open(&format!("{}{}", proxy.origin(), authorization(&token)));
    // The focus is where the person has to type.
    tab_to(browser, "#username");
    browser.keys(&format!("{}{TAB}{}{ENTER}", user.name, user.password));
    tab_to(browser, "button[value=allow]");
    browser.keys(&ENTER.to_string());
    assert_eq!(browser.text("#verifier").len(), "1234 5678".len());
    tab_to(browser, "main a");
    browser.keys(&ENTER.to_string());
    tab_to(browser, "li a.button");
    browser.keys(&ENTER.to_string());
    tab_to(browser, "button[name=revoke]");
    browser.keys(&SPACE.to_string());
    assert!(
        browser
            .text("[role=status]")
            .contains("can no longer act for you")
    );
    tab_to(browser, "section a[href*=password]");
    browser.keys(&ENTER.to_string());
    tab_to(browser, "#current_password");
    let new = "tr7-kQp9-new";
    browser.keys(&format!("{}{TAB}{new}{TAB}{new}{ENTER}", user.password));
    assert!(
        browser
            .text("[role=status]")
            .contains("password is changed")
    );
    tab_to(browser, ".account button");
    browser.keys(&ENTER.to_string());
    browser.text("#username");
}

#[test]
fn the_keyboard_alone_is_enough_with_and_without_javascript() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    for (name, browser) in [
        ("ada", Browser::start()),
        ("bob", Browser::without_javascript()),
    ] {
        by_keyboard(&proxy, &browser, &proxy.user(name));
    }
}

#[test]
fn forced_colours_and_paper_show_what_matters() {
    let proxy = Proxy::with(&Upstream::start(), CONFIG);
    let user = proxy.user("ada");
    let options = "--permission photos.print --website https://shop.example/about";
    let consumer = proxy.consumer_with("Shop", options);
    let browser = Browser::start();
    let asked = authorization(&proxy.request_token(&consumer, "oob"));
    browser.open(&format!("{}{asked}", proxy.origin()));
    browser.log_in(&user);
    browser.text("button[name=decision]");
    // Both parties, a warning, and the next step directly above the buttons.
    let shown = "
        const box = element => element.getBoundingClientRect();
        const all = selector => [...document.querySelectorAll(selector)].filter(it => box(it).width >= 16);
        const form = document.querySelector('button[value=allow]').form;
        const next = form.previousElementSibling;
        return [all('.parties .sign').map(it => it.textContent).join(), all('.can .warn').length,
            next.innerText, box(next).bottom <= box(form).top];";
    let next = "If you allow it, you get a code to type into the application.";
    let expected = json!(["S,C", 2, next, true]);
    assert_eq!(browser.script(shown), expected);
    let style = |selector: &str, property: &str| {
        browser.script(&format!(
            "return getComputedStyle(document.querySelector({selector:?})).{property}"
        ))
    };
    browser.media("screen", "forced-colors", "active");
    // The main button differs in more than its colour.
    assert_eq!(style("button[value=allow]", "borderTopWidth"), "3px");
    assert_eq!(style("button[value=deny]", "borderTopWidth"), "1px");
    browser.media("print", "forced-colors", "none");
    for gone in ["button[value=allow]", "nav"] {
        assert_eq!(style(gone, "display"), "none");
    }
    let printed = "return getComputedStyle(document.querySelector('.about a'), '::after').content";
    let printed = browser.script(printed).to_string();
    assert!(printed.contains("https://shop.example/about"), "{printed}");
}

#[test]
fn the_demo_leads_through_the_flow_in_the_same_look() {
    let mut demo = program();
    let demo = demo.args(["demo", "--listen", "127.0.0.1:0"]);
    let mut demo = demo
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = Log::read_from(demo.stdout.take().unwrap());
    let password = told.wait_for("a password", |line| {
        let rest = line.split("with the password ").nth(1)?;
        Some(rest.trim_end_matches("):").to_owned())
    });
    let url = told.wait_for("an address", |line| {
        Some(
            line.strip_prefix("  ")
                .filter(|url| url.starts_with("http"))?
                .to_owned(),
        )
    });
    let audit = Audit::with(Browser::in_language("en"), "en");
    let browser = &audit.browser;
    browser.open(&url);
    browser.fill("#username", "ada");
    browser.fill("#password", &password);
    browser.click("button.main");
    audit.at("button[value=allow]", "demo-consent");
    browser.click("button[value=allow]");
    audit.at("table", "demo");
    let table = browser.text("table");
    assert!(
        table.contains("x-auth-user") && table.contains("x-auth-consumer"),
        "{table}"
    );
    browser.click("summary");
    let seen = browser.text("pre");
    assert!(
        seen.contains("/members/1") && !seen.contains("oauth_"),
        "{seen}"
    );
    browser.click("a[href='/']");
    browser.click("button[value=deny]");
    until("denied", || browser.source().contains("You denied access"));
    audit.look("demo-denied");
    demo.kill().unwrap();
    demo.wait().unwrap();
}

#[test]
fn the_demo_of_a_launch_shows_the_tool_and_each_failure() {
    let mut demo = program();
    let demo = demo.args(["demo", "--lti", "--listen", "127.0.0.1:0"]);
    let demo = demo.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = demo.spawn().unwrap();
    let told = Log::read_from(demo.stdout.take().unwrap());
    let course = told.wait_for("the address of the course", |line| {
        let url = line.strip_prefix("  ")?;
        url.starts_with("http").then(|| url.to_owned())
    });
    let audit = Audit::with(Browser::in_language("en"), "en");
    let browser = &audit.browser;
    browser.open(&course);
    let shows = |parts: &[&str]| {
        until(&format!("the frame has {parts:?}"), || {
            let source = browser.frame_source("iframe");
            parts.iter().all(|part| source.contains(part))
        });
    };
    let press = |number: u32| browser.click(&format!("form:nth-of-type({number}) button"));
    press(1);
    shows(&[
        "Hello Ada Lovelace",
        "x-auth-consumer",
        "demo-school",
        "Biology 101",
    ]);
    assert!(!browser.frame_source("iframe").contains("oauth_"));
    press(1);
    shows(&["The activity did not open", "nonce_used"]);
    press(2);
    shows(&["Hello Ada Lovelace"]);
    press(2);
    shows(&[
        "Back at the platform",
        "lti_errormsg",
        "The activity did not open.",
    ]);
    press(3);
    shows(&["The activity did not open", "signature_invalid"]);
    press(4);
    shows(&["The activity did not open", "timestamp_refused"]);
    // In a window of its own.
    browser.script("document.forms[2].target = '_top'; document.forms[2].submit()");
    audit.at("#request-id", "launch");
    browser.click("summary");
    audit.look("launch-details");
    demo.kill().unwrap();
    demo.wait().unwrap();
}
