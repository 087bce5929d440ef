//! Forms that did not come from our own page in this browser, and forged logins.
//!
//! Promise (Flow and pages): A form is valid only for its session, token and purpose, by POST from the same site, and decides
//! once. Also in `tests/acceptance/provider/flow.rs`, `tests/acceptance/provider/sessions.rs`,
//! `tests/acceptance/provider/pages_in_browser.rs`.
//! Promise (Flow and pages): Unknown, imported and disabled accounts and wrong passwords get the same page after the same work.
//! Also in `src/provider/login/local.rs`, `src/provider/login/password.rs`, `tests/acceptance/provider/passwords.rs`.

use crate::support::{
    Call, Caller, Proxy, Token, Upstream, User, Visitor,
    call::form as encoded,
    has,
    legs::{APPLICATIONS, LOGIN, LOGOUT, PASSWORD, authorization, exchanges, pages_not_among},
    visitor::{Form, Page},
};

/// A user with an application, and with a request token to decide about.
struct Site {
    _api: Upstream,
    proxy: Proxy,
    caller: Caller,
    request: Token,
}

impl Site {
    fn new() -> Self {
        let operations = "[[operation]]\npath = '/account'\naccess = ['user', 'consumer']";
        let api = Upstream::start();
        let proxy = Proxy::in_front_of(&api).config(operations).start();
        let caller = proxy.somebody();
        let request = proxy.request_token(&caller.consumer, "oob");
        Self {
            _api: api,
            proxy,
            caller,
            request,
        }
    }

    fn logged_in(&self, user: &User) -> Visitor<'_> {
        let mut visitor = Visitor::to(&self.proxy);
        let login = visitor.open(LOGIN);
        visitor.log_in(&login, user).answer.has_status(200);
        visitor
    }

    /// Every form that a browser with a session sees, filled in by `user`.
    fn forms(&self, visitor: &mut Visitor<'_>, user: &User) -> Vec<Form> {
        let consent = visitor.open(&authorization(&self.request));
        let applications = visitor.open(APPLICATIONS);
        let withdraw = visitor.open(&format!(
            "{APPLICATIONS}&withdraw={}",
            self.caller.consumer.key
        ));
        let password = visitor.open(PASSWORD).form_with("new_password");
        let everywhere = visitor.open(&format!("{LOGOUT}&which=all"));
        let elsewhere = visitor.open(&format!("{LOGOUT}&which=others"));
        let is_logout = |form: &Form| form.action.contains("mode=logout");
        let logout = applications.forms().into_iter().find(is_logout);
        vec![
            consent.form_with("decision").press("decision", "allow"),
            consent.form_with("decision").press("decision", "deny"),
            consent.form_with("switch").press("switch", "user"),
            withdraw
                .form_with("revoke")
                .press("revoke", &self.caller.consumer.key),
            logout.unwrap(),
            everywhere.form_with("everywhere").press("everywhere", "1"),
            elsewhere.form_with("others").press("others", "1"),
            password
                .set("current_password", &user.password)
                .set("new_password", "another-password")
                .set("new_password_again", "another-password"),
        ]
    }

    /// The login forms that a browser without a session sees, filled in by `user`.
    fn logins(&self, visitor: &mut Visitor<'_>, user: &User) -> Vec<Form> {
        let targets = [LOGIN, APPLICATIONS, PASSWORD, &authorization(&self.request)];
        let filled = targets.map(|target| {
            let form = visitor.open(target).form_with("password");
            form.set("username", &user.name)
                .set("password", &user.password)
        });
        filled.into()
    }

    /// Nothing was decided, withdrawn, ended or changed.
    #[track_caller]
    fn is_unchanged(&self, visitor: &mut Visitor<'_>) {
        let session = Call::get("/account").header("Sec-Fetch-Site", "same-origin");
        visitor.send(session).has_status(200);
        let call = Call::get("/account").of(&self.caller);
        self.proxy.send(call).has_status(200);
        self.proxy
            .send(exchanges(&self.caller.consumer, &self.request, "12345678"))
            .is(401, "permission_unknown");
        self.logged_in(&self.caller.user);
    }
}

fn csrf(form: &Form) -> &str {
    let field = form.fields.iter().find(|(name, _)| name == "csrf");
    &field.expect("a value of its own").1
}

/// The status of a form that is posted with these fields.
fn post(visitor: &mut Visitor<'_>, form: &Form, headers: &[(&str, &str)]) -> u16 {
    let call = Call::post(&form.action).form(&encoded(&form.fields));
    let call = headers
        .iter()
        .fold(call, |call, (name, value)| call.header(name, value));
    let kept = visitor.cookies.clone();
    let status = visitor.send(call).status;
    visitor.cookies = kept;
    status
}

#[test]
fn form_is_valid_only_for_its_browser_purpose_and_subject() {
    let site = Site::new();
    let other = site.proxy.user("mallory");
    site.proxy.token(&site.caller.consumer, &other);
    let mut visitor = site.logged_in(&site.caller.user);
    let mut attacker = site.logged_in(&other);
    let mut newcomer = Visitor::to(&site.proxy);
    let mut other_newcomer = Visitor::to(&site.proxy);
    let forms = site.forms(&mut visitor, &site.caller.user);
    let foreign = site.forms(&mut attacker, &other);
    let logins = site.logins(&mut newcomer, &site.caller.user);
    let foreign_logins = site.logins(&mut other_newcomer, &other);
    let another = site.proxy.request_token(&site.caller.consumer, "oob");
    let another = visitor.open(&authorization(&another)).form_with("decision");
    let every = || {
        forms
            .iter()
            .chain(&foreign)
            .chain(&logins)
            .chain(&foreign_logins)
    };
    let values = || every().map(csrf).chain([csrf(&another)]);
    let actions = Vec::from_iter(every().map(|form| form.action.clone()));
    // The form of a developer changes nothing.
    assert_eq!(pages_not_among(&site.proxy, &actions), ["developer"]);
    for (browser, own) in [(&mut visitor, &forms), (&mut newcomer, &logins)] {
        for form in own {
            let right = csrf(form);
            let damaged = format!("{}A", &right[..right.len() - 2]);
            for wrong in values().chain(["", &damaged, "undefined"]) {
                if wrong != right {
                    let forged = form.clone().set("csrf", wrong);
                    assert_eq!(post(browser, &forged, &[]), 403, "{forged:?}");
                }
            }
            let without = form.clone().without("csrf");
            assert_eq!(post(browser, &without, &[]), 403, "{without:?}");
        }
    }
    // The forged logins did not count as failures either.
    site.is_unchanged(&mut visitor);
}

#[test]
fn cross_site_form_is_rejected_even_with_the_right_value() {
    let site = Site::new();
    let mut visitor = site.logged_in(&site.caller.user);
    let mut newcomer = Visitor::to(&site.proxy);
    let own = site.proxy.origin();
    let below = format!("{own}.evil");
    let foreign: [&[(&str, &str)]; 11] = [
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", &own)],
        &[("Sec-Fetch-Site", "same-site"), ("Origin", &own)],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "Same-Origin"), ("Origin", &own)],
        &[("Sec-Fetch-Site", ""), ("Origin", &own)],
        &[
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", "https://evil.example"),
        ],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Origin", "")],
        &[("Origin", "http://127.0.0.1")],
        &[("Origin", &below)],
    ];
    let forms = site.forms(&mut visitor, &site.caller.user);
    let logins = site.logins(&mut newcomer, &site.caller.user);
    for (browser, forms) in [(&mut visitor, &forms), (&mut newcomer, &logins)] {
        for (form, headers) in forms
            .iter()
            .flat_map(|form| foreign.iter().map(move |headers| (form, headers)))
        {
            assert_eq!(post(browser, form, headers), 403, "{form:?} {headers:?}");
        }
    }
    site.is_unchanged(&mut visitor);
    // No other method decides, nor do the fields in the query.
    for form in &forms {
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
            let call = Call::new(method, &form.action).form(&encoded(&form.fields));
            let answer = visitor.send(call);
            assert_eq!(
                (answer.status, answer.header("allow")),
                (405, Some("GET, HEAD, POST"))
            );
        }
        let query = encoded(&form.fields);
        visitor.open(&format!("{}&{query}", form.action));
    }
    site.is_unchanged(&mut visitor);
    // A browser that sends neither field depends on the form's own value.
    for headers in [&[][..], &[("Sec-Fetch-Site", "none")], &[("Origin", &*own)]] {
        assert_eq!(post(&mut visitor, &forms[0], headers), 303, "{headers:?}");
    }
}

#[test]
fn two_session_cookies_are_rejected() {
    let site = Site::new();
    let mut visitor = site.logged_in(&site.caller.user);
    let id = visitor.cookies["countersign"].clone();
    for target in [
        APPLICATIONS,
        PASSWORD,
        &authorization(&site.request),
        "/account",
    ] {
        let call = Call::get(target).header("Sec-Fetch-Site", "same-origin");
        let twice = call.header("Cookie", &format!("countersign={id}; countersign={id}"));
        let answer = site.proxy.send(twice.header("Accept", "text/html"));
        assert!((400..=401).contains(&answer.status), "{target}: {answer:?}");
    }
    site.is_unchanged(&mut visitor);
}

#[test]
fn login_opens_a_session_with_a_new_id_and_ends_the_previous() {
    let site = Site::new();
    let mut visitor = Visitor::to(&site.proxy);
    let first_tab = visitor.open(LOGIN);
    let second_tab = visitor.open(APPLICATIONS);
    let login_cookies = visitor.cookies.clone();
    // A planted session id is not adopted.
    let planted = "a".repeat(43);
    visitor
        .cookies
        .insert("countersign".to_owned(), planted.clone());
    visitor.log_in(&first_tab, &site.caller.user);
    let first = visitor.cookies["countersign"].clone();
    visitor.cookies.extend(login_cookies);
    visitor.log_in(&second_tab, &site.caller.user);
    let second = visitor.cookies["countersign"].clone();
    assert!(planted != first && first != second);
    for (id, status) in [(&second, 200), (&first, 401), (&planted, 401)] {
        let call = Call::get("/account").header("Sec-Fetch-Site", "same-origin");
        let call = call.header("Cookie", &format!("countersign={id}"));
        site.proxy.send(call).has_status(status);
    }
}

#[test]
fn form_of_another_session_gets_the_reason_and_a_link() {
    let site = Site::new();
    let target = authorization(&site.request);
    let mut visitor = site.logged_in(&site.caller.user);
    let consent = visitor.open(&target);
    let mut attacker = Visitor::to(&site.proxy);
    let login = attacker.open(&target);
    let mut out = site.logged_in(&site.caller.user);
    let form = out.open(LOGOUT).form_with("here").press("here", "1");
    let page = out.open(LOGOUT);
    out.submit(&page, &form);
    let again = site.logged_in(&site.caller.user).cookies;
    let ended = visitor.cookies.clone();
    for (cookies, cause) in [
        (again, "You have logged in again"),
        (out.cookies.clone(), "You have been logged out"),
        (Default::default(), "The page was open for too long."),
    ] {
        visitor.cookies = cookies.clone();
        let stale = visitor.decide(&consent, "allow");
        assert_eq!(stale.answer.status, 403);
        let button = format!(
            "<a class=\"button\" href=\"{}\"",
            target.replace('&', "&#38;")
        );
        has(&stale.answer.text(), &[cause, &button, "Start again"]);
        // A login form of the same time; without a cookie the response says that it needs one.
        attacker.cookies = cookies;
        let cause = match attacker.cookies.is_empty() {
            true => "Your browser sent no cookie",
            false => cause,
        };
        let stale = attacker.log_in(&login, &site.caller.user);
        assert_eq!(stale.answer.status, 403);
        has(&stale.answer.text(), &[cause, &button]);
    }
    // The session was ended elsewhere.
    let name = &site.caller.user.name;
    site.proxy.run(&format!("user disable {name}"));
    visitor.cookies = ended;
    let stale = visitor.decide(&consent, "allow");
    has(&stale.answer.text(), &["You have been logged out"]);
}

#[test]
fn unknown_wrong_and_disabled_users_get_the_same_login_page() {
    let site = Site::new();
    let disabled = site.proxy.user("disabled");
    site.proxy.run(&format!("user disable {}", disabled.name));
    let attempt = |name: &str, password: &str| -> Page {
        let mut visitor = Visitor::to(&site.proxy);
        let page = visitor.open(LOGIN);
        let form = page.form_with("password").set("username", name);
        visitor.submit(&page, &form.set("password", password))
    };
    let text = |page: Page, name: &str| {
        let value = csrf(&page.form_with("password")).to_owned();
        assert_eq!(page.answer.status, 403);
        page.answer.text().replace(name, "NAME").replace(&value, "")
    };
    let wrong = text(
        attempt(&site.caller.user.name, "wrong"),
        &site.caller.user.name,
    );
    for (name, password) in [
        ("nobody-knows", "wrong"),
        (&disabled.name, "wrong"),
        (&disabled.name, &disabled.password),
    ] {
        assert_eq!(text(attempt(name, password), name), wrong, "{name}");
    }
    // Typed text cannot bring HTML into the form.
    let escaped = attempt("\"><script>alert(1)</script>", "x").answer.text();
    assert!(!escaped.contains("<script"), "{escaped}");
}
