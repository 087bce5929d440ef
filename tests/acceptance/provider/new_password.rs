//! A user of a local account sets another password.
//!
//! Promise (Flow and pages): A new password is not a common one, and ends every other session and login under way. Also in
//! `tests/store_contract/sessions.rs`, `src/provider/login/new_password.rs`.
//! Promise (Flow and pages): After a login with an operator's password, a user can only choose another one or log out, unless
//! it is permanent.

use crate::support::{
    Call, Operator, Proxy, Upstream, User, Visitor,
    call::form,
    has,
    legs::APPLICATIONS,
    legs::LOGIN,
    legs::PASSWORD,
    legs::REVOKE_TOKEN,
    legs::authorization,
    operator::WRITE,
    proxy::Builder,
    visitor::{Form, Page},
};

const NEW: &str = "näwe Loosung 7";

fn with_account(api: &Upstream) -> Builder {
    Proxy::in_front_of(api).config("operation = [{ path = '/account', access = ['user'] }]")
}

fn filled(page: &Page, current: &str, new: &str) -> Form {
    let form = page.form_with("new_password");
    form.set("current_password", current)
        .set("new_password", new)
        .set("new_password_again", new)
}

fn change(visitor: &mut Visitor<'_>, current: &str, new: &str) -> Page {
    let page = visitor.open(PASSWORD);
    visitor.submit(&page, &filled(&page, current, new))
}

/// Whether the session opens the API.
fn is_open(visitor: &mut Visitor<'_>) -> bool {
    let answer = visitor.send(Call::get("/account").header("Sec-Fetch-Site", "same-origin"));
    assert!(matches!(answer.status, 200 | 401), "{answer:?}");
    answer.status == 200
}

fn opens(proxy: &Proxy, user: &User, password: &str) -> bool {
    let mut visitor = Visitor::to(proxy);
    let page = visitor.open(LOGIN);
    let user = User {
        id: user.id.clone(),
        name: user.name.clone(),
        password: password.to_owned(),
    };
    let after = visitor.log_in(&page, &user).answer.status;
    assert!(matches!(after, 200 | 403), "{after}");
    after == 200
}

#[test]
fn after_a_new_password_only_this_browser_stays_logged_in() {
    let api = Upstream::start();
    let proxy = with_account(&api).start();
    let caller = proxy.somebody();
    let other = proxy.user("other");
    let (mut visitor, mut elsewhere) = (
        Visitor::logged_in(&proxy, &caller.user),
        Visitor::logged_in(&proxy, &caller.user),
    );
    let mut another = Visitor::logged_in(&proxy, &other);
    let applications = visitor.open(APPLICATIONS);
    assert!(applications.answer.text().contains("mode=password"));
    let page = visitor.open(PASSWORD);
    let form = page.form_with("new_password");
    let named = ("username".to_owned(), caller.user.name.clone());
    assert!(form.fields.contains(&named));
    let before = visitor.cookies.clone();
    let after = visitor.submit(&page, &filled(&page, &caller.user.password, NEW));
    after.answer.has_status(200);
    assert!(after.target.starts_with(APPLICATIONS), "{after:?}");
    has(&after.answer.text(), &["Your password is changed"]);
    assert!(after.answer.text().contains("1 browser"), "{after:?}");
    // This browser has another session, and the user's other sessions have ended.
    assert!(is_open(&mut visitor) && !is_open(&mut elsewhere) && is_open(&mut another));
    let mut thief = Visitor::to(&proxy);
    thief.cookies = before;
    assert!(!is_open(&mut thief));
    assert!(
        !opens(&proxy, &caller.user, &caller.user.password) && opens(&proxy, &caller.user, NEW)
    );
    // Granted access stays.
    let token_call = Call::post(REVOKE_TOKEN);
    proxy.send(token_call.of(&caller)).has_status(200);
    let line = proxy.logs(&["password_changed"]);
    has(&line, &[&caller.user.id, "127.0.0.1"]);
    assert!(!line.contains(NEW) && !line.contains(&caller.user.password));
}

#[test]
fn a_rejected_new_password_changes_nothing() {
    let api = Upstream::start();
    let proxy = with_account(&api).start();
    let user = proxy.user("somebody@example.org");
    let (mut visitor, mut elsewhere) = (
        Visitor::logged_in(&proxy, &user),
        Visitor::logged_in(&proxy, &user),
    );
    let long = "é".repeat(513);
    for (current, new, status, message) in [
        (user.password.as_str(), "7 chars", 400, "too short"),
        (&user.password, "ÄÖÜäöüß", 400, "too short"),
        (&user.password, &long, 400, "too long"),
        (&user.password, "Iloveyou1", 400, "most common"),
        (
            &user.password,
            "SomeBody@example.org",
            400,
            "must not be your name",
        ),
        (&user.password, &user.id, 400, "must not be your name"),
        (&user.password, &user.password, 400, "is the current one"),
        ("wrong", NEW, 403, "current password is wrong"),
        ("", NEW, 400, "all three fields"),
    ] {
        let after = change(&mut visitor, current, new);
        assert_eq!(after.answer.status, status, "{new}: {after:?}");
        let told = after.element("problem").unwrap();
        assert!(told.contains(message), "{new}: {told}");
        let title = "<title>Error: Change your password · ";
        has(&after.answer.text(), &[title]);
    }
    let page = visitor.open(PASSWORD);
    let differs = filled(&page, &user.password, NEW).set("new_password_again", "another");
    let after = visitor.submit(&page, &differs);
    assert_eq!(after.answer.status, 400, "{after:?}");
    // Not from this page, nor from this session, nor with another form's value.
    let right = filled(&page, &user.password, NEW);
    let applications = visitor.open(APPLICATIONS);
    let logout = applications.form_with("csrf").fields[0].1.clone();
    let theirs = elsewhere.open(PASSWORD).form_with("csrf").fields[0]
        .1
        .clone();
    for forged in [
        right.clone().without("csrf"),
        right.clone().set("csrf", &logout),
        right.clone().set("csrf", &theirs),
    ] {
        assert_eq!(visitor.submit(&page, &forged).answer.status, 403);
    }
    let from_elsewhere = Call::post(PASSWORD)
        .header("Origin", "https://evil.example")
        .form(&form(&right.fields));
    visitor.send(from_elsewhere).has_status(403);
    let mut logged_out = Visitor::to(&proxy);
    assert_eq!(logged_out.submit(&page, &right).answer.status, 403);
    assert!(
        logged_out
            .open(PASSWORD)
            .form_with("password")
            .action
            .contains("mode=password")
    );

    assert!(is_open(&mut visitor) && is_open(&mut elsewhere));
    assert!(opens(&proxy, &user, &user.password) && !opens(&proxy, &user, NEW));
}

#[test]
fn guesses_of_the_current_password_are_throttled_as_logins_are() {
    let api = Upstream::start();
    let proxy = with_account(&api)
        .config("login.max_failures = '3 per 15m'")
        .start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    assert_eq!(change(&mut visitor, "a guess", NEW).answer.status, 403);
    assert!(!opens(&proxy, &user, "a guess"));
    assert_eq!(change(&mut visitor, "a guess", NEW).answer.status, 403);
    let after = change(&mut visitor, &user.password, NEW);
    assert_eq!(after.answer.status, 429, "{after:?}");
    let wait = after.answer.header("Retry-After").expect("a time to wait");
    assert!((1..=30).contains(&wait.parse::<u32>().unwrap()), "{wait}");
    assert!(
        after
            .element("problem")
            .unwrap()
            .contains("too many failed attempts")
    );
    let page = Visitor::to(&proxy).open(LOGIN);
    let mut login = Visitor::to(&proxy);
    let again = login.open(LOGIN);
    assert_eq!(page.target, again.target);
    assert_eq!(login.log_in(&again, &user).answer.status, 429);
    assert!(is_open(&mut visitor));
}

#[test]
fn without_local_accounts_there_is_no_page_for_a_new_password() {
    let api = Upstream::start();
    let system = Upstream::replying(|_| crate::support::Reply::ok(r#"{"id":"ada"}"#));
    let http = with_account(&api)
        .config(&format!(
            "[login]\nbackend = 'http'\nurl = '{}'",
            system.url()
        ))
        .start();
    let header = with_account(&api)
        .config("listen.trusted_proxies = ['127.0.0.1']\n[login]\nbackend = 'header'\nuser_header = 'Remote-User'")
        .start();
    let mut ada = Visitor::to(&http);
    let page = ada.open(LOGIN);
    let user = User::new("ada", "enchantress");
    assert_eq!(ada.log_in(&page, &user).answer.status, 200);
    let mut named = Visitor::to(&header);
    for (visitor, name) in [(&mut ada, None), (&mut named, Some("ada"))] {
        let named = |call: Call| match name {
            Some(name) => call.header("Remote-User", name),
            None => call,
        };
        let applications = visitor.send(named(Call::get(APPLICATIONS)));
        applications.has_status(200);
        assert!(!applications.text().contains("mode=password"));
        visitor.send(named(Call::get(PASSWORD))).has_status(404);
        let fields = [("new_password".to_owned(), NEW.to_owned())];
        visitor
            .send(named(Call::post(PASSWORD).form(&form(&fields))))
            .has_status(404);
    }
}

/// Whether the next login has to choose another password.
fn must_change(proxy: &Proxy, user: &User) -> bool {
    let shown = proxy.run(&format!("user show {} --json", user.name)).json();
    shown["must_change_password"].as_bool().unwrap()
}

#[test]
fn an_operators_password_is_changed_before_anything_else() {
    let api = Upstream::start();
    let proxy = with_account(&api).with_console().start();
    let consumer = proxy.consumer("Shop");
    let given = "from the operator";
    let user = User::new("dora", given);
    let add = ["user", "add", "dora", "--password-stdin"];
    let told = proxy.command_with(&add, given).done().stdout;
    has(&told, &["The user has to choose another one"]);
    assert!(must_change(&proxy, &user));
    let request_token = proxy.request_token(&consumer, "oob");
    let authorize = authorization(&request_token);
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(&authorize);
    let page = visitor.log_in(&login, &user);
    assert!(page.target.starts_with(PASSWORD), "{}", page.target);
    let text = page.answer.has_status(200).text();
    has(&text, &["An operator has set your password."]);
    // The session opens nothing else.
    assert!(!is_open(&mut visitor));
    for target in [APPLICATIONS, LOGIN, &authorize] {
        let login = visitor.open(target);
        let page = visitor.log_in(&login, &user);
        assert!(page.target.starts_with(PASSWORD), "{}", page.target);
    }
    let login = visitor.open(&authorize);
    let page = visitor.log_in(&login, &user);
    let weak = visitor.submit(&page, &filled(&page, given, "short"));
    weak.answer.has_status(400);
    let same = visitor.submit(&page, &filled(&page, given, given));
    same.answer.has_status(400);
    assert!(must_change(&proxy, &user) && !is_open(&mut visitor));
    let consent = visitor.submit(&page, &filled(&page, given, NEW));
    visitor
        .decide(&consent, "allow")
        .element("verifier")
        .unwrap();
    assert!(!must_change(&proxy, &user) && is_open(&mut visitor));
    assert!(opens(&proxy, &user, NEW));
    // Set again, by each tool; the page leads on to the applications.
    let passwd = ["user", "passwd", "dora", "--password-stdin"];
    let by_command = |options: &[&str]| {
        let passwd = [&passwd[..], options].concat();
        proxy.command_with(&passwd, given).done();
    };
    let id = proxy.run("user show dora --json").json()["id"].clone();
    let by_api = |body: &str| {
        let put = Call::new(
            "PUT",
            &format!("/v1/users/{}/password", id.as_str().unwrap()),
        );
        let put = put.bearer(WRITE).json(body);
        Operator::at(&proxy).send(put).has_status(204);
    };
    let by_console = |is_kept: bool| {
        let operator = Operator::with(&proxy, WRITE);
        let page = operator.open(&format!("/user/password?id={}", id.as_str().unwrap()));
        let mut form = page.form_to("/user/password");
        form = form.set("password", given).set("again", given);
        if is_kept {
            form = form.without("must_change_password");
        }
        operator.submit(&page, &form).answer.has_status(200);
    };
    let given_by: [(&dyn Fn(), bool); 6] = [
        (&|| by_command(&[]), true),
        (&|| by_command(&["--permanent"]), false),
        (&|| by_api(r#"{"password":"from the operator"}"#), true),
        (
            &|| by_api(r#"{"password":"from the operator","must_change_password":false}"#),
            false,
        ),
        (&|| by_console(false), true),
        (&|| by_console(true), false),
    ];
    for (index, (set, expected)) in given_by.into_iter().enumerate() {
        set();
        assert_eq!(must_change(&proxy, &user), expected, "{index}");
        let mut visitor = Visitor::to(&proxy);
        let login = visitor.open(LOGIN);
        let page = visitor.log_in(&login, &user);
        assert_eq!(page.target.starts_with(PASSWORD), expected, "{index}");
        assert_eq!(is_open(&mut visitor), !expected, "{index}");
    }
}

#[test]
fn a_user_who_has_to_change_the_password_can_log_out() {
    let api = Upstream::start();
    let proxy = with_account(&api).start();
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    assert!(is_open(&mut visitor));
    // An open session ends in effect.
    proxy.run("user update dora --must-change-password");
    assert!(!is_open(&mut visitor));
    let page = visitor.open(PASSWORD);
    has(
        &page.answer.text(),
        &["An operator has set your password.", "mode=logout"],
    );
    let asked = visitor.open("/service.oauth?mode=logout");
    visitor.submit(&asked, &asked.form_with("csrf").press("here", "1"));
    visitor.open(PASSWORD).form_with("username");
    proxy.run("user update dora --no-must-change-password");
    Visitor::logged_in(&proxy, &user);
}
