//! A directly logged-in user: the other kind of caller.
//!
//! Promise (Flow and pages): The session cookie is `HttpOnly`, `SameSite=Lax`, under https `Secure` and `__Host-`, and never
//! reaches or comes from the API. Also in `src/provider/pages/browser/cookies.rs`.
//! Promise (Flow and pages): A login opens a new session, at most `limits.sessions_per_user`; users can end sessions and
//! consumers' access. Also in `tests/store_contract/sessions.rs`, `tests/acceptance/provider/forged_forms.rs`,
//! `tests/acceptance/provider/header_login.rs`, `tests/acceptance/provider/sessions/applications.rs`,
//! `tests/store_contract/tokens.rs`.

mod applications;
mod failed_logins;
mod navigations;

use crate::support::{
    Call, Proxy, Reply, Token, Upstream, Visitor, has, in_order,
    legs::{APPLICATIONS, LOGIN, LOGOUT, PASSWORD, REVOKE_TOKEN, authorization, exchanges},
    proxy::Builder,
    until,
    visitor::Form,
};

fn with_user_operations(api: &Upstream) -> Builder {
    Proxy::in_front_of(api).config(
        r#"
        [[operation]]
        path = "/account"
        access = ["user", "consumer"]
        [[operation]]
        path = "/orders"
        access = ["consumer"]
        [[operation]]
        path = "/open"
        access = ["anonymous", "user"]
        "#,
    )
}

fn get(target: &str) -> Call {
    Call::get(target).header("Sec-Fetch-Site", "same-origin")
}

#[test]
fn session_opens_operations_of_access_user_with_the_identity() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    visitor
        .send(
            get("/account")
                .header("X-Auth-User", "root")
                .header("X-Auth-Consumer", "forged"),
        )
        .has_status(200);
    let seen = api.only_request();
    assert_eq!(seen.fields.all("x-auth-user"), [user.id.as_str()]);
    assert_eq!(
        (seen.header("x-auth-kind"), seen.header("x-auth-consumer")),
        (Some("user"), None)
    );
    assert!(
        !seen
            .header("cookie")
            .unwrap_or_default()
            .contains(visitor.cookies.values().next().unwrap().as_str())
    );
    // Operations for consumers alone are denied.
    visitor.send(get("/orders")).is(404, "permission_denied");
    assert_eq!(api.count(), 1);
}

#[test]
fn our_cookie_is_removed_and_the_others_are_forwarded() {
    let api = Upstream::replying(|seen| {
        let cookie = seen.header("x-set").unwrap_or("a=b").to_owned();
        Reply::ok("x")
            .header("Set-Cookie", &cookie)
            .header("Set-Cookie", "kept=1")
    });
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let (name, value) = visitor
        .cookies
        .iter()
        .next()
        .map(|(n, v)| (n.clone(), v.clone()))
        .unwrap();
    visitor.cookies.insert("aaa".to_owned(), "1".to_owned());
    visitor.cookies.insert("zzz".to_owned(), "2".to_owned());
    let answer = visitor.send(get("/account").header("X-Set", &format!("{name}=evil; Path=/")));
    let cookies = api
        .only_request()
        .header("cookie")
        .unwrap_or_default()
        .to_owned();
    has(&cookies, &["aaa=1", "zzz=2"]);
    assert!(
        !cookies.contains(&name) && !cookies.contains(&value),
        "{cookies}"
    );
    assert_eq!(
        answer.fields.all("set-cookie"),
        ["kept=1"],
        "the API cannot set our cookie"
    );
}

#[test]
fn session_counts_on_anonymous_operations_and_must_be_valid() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    visitor.send(get("/open")).has_status(200);
    assert_eq!(api.last_request().header("x-auth-kind"), Some("user"));
    for value in visitor.cookies.values_mut() {
        *value = "forged".to_owned();
    }
    let count = api.count();
    let answer = visitor.send(get("/open"));
    assert!(
        (400..500).contains(&answer.status),
        "a failed check is not tried again as anonymous: {answer:?}"
    );
    assert_eq!(api.count(), count);
}

#[test]
fn other_sites_cannot_use_a_session() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let origin = proxy.origin();
    let bare = |method: &str| Call::new(method, "/account");
    let site = |method: &str, site: &str| bare(method).header("Sec-Fetch-Site", site);
    for (what, call, opens) in [
        ("our own page", site("GET", "same-origin"), true),
        ("a typed address", site("GET", "none"), true),
        (
            "our own form",
            site("POST", "same-origin").header("Origin", &origin),
            true,
        ),
        ("another site's link", site("GET", "cross-site"), false),
        (
            "another site's form",
            site("POST", "cross-site").header("Origin", "https://evil.example"),
            false,
        ),
        ("a sibling site", site("GET", "same-site"), false),
        ("an old browser's GET", bare("GET"), true),
        ("an old browser's HEAD", bare("HEAD"), true),
        ("an old browser's POST", bare("POST"), false),
        (
            "an old browser's own POST",
            bare("POST").header("Origin", &origin),
            true,
        ),
        (
            "an old browser's foreign POST",
            bare("POST").header("Origin", "https://evil.example"),
            false,
        ),
        (
            "a POST from nowhere",
            bare("POST").header("Origin", "null"),
            false,
        ),
        ("an old browser's DELETE", bare("DELETE"), false),
    ] {
        let count = api.count();
        let answer = visitor.send(call);
        let expected = if opens { 200 } else { 403 };
        assert_eq!(answer.status, expected, "{what}: {answer:?}");
        assert_eq!(api.count() - count, usize::from(opens), "{what}");
    }
}

#[test]
fn logout_is_a_post_and_ends_the_session() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let kept = visitor.cookies.clone();
    // A GET ends no session.
    visitor.send(get("/service.oauth?mode=logout"));
    visitor.cookies.clone_from(&kept);
    visitor.send(get("/account")).has_status(200);

    let page = visitor.open(APPLICATIONS);
    let logout = page
        .forms()
        .into_iter()
        .find(|form| form.action.contains("mode=logout"))
        .expect("a form to log out");
    assert_eq!(logout.method, "POST");
    visitor.submit(&page, &logout);
    visitor.cookies = kept;
    let answer = visitor.send(get("/account"));
    assert!(
        (400..500).contains(&answer.status),
        "the session is over, not the cookie alone: {answer:?}"
    );
    assert_eq!(api.count(), 1);
}

#[test]
fn log_out_everywhere_ends_all_sessions_of_this_user_alone() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let mut elsewhere = Visitor::logged_in(&proxy, &user);
    let mut another = Visitor::logged_in(&proxy, &other);
    // The first click asks, and changes nothing.
    let page = visitor.open(&format!("{LOGOUT}&which=all"));
    let everywhere = page.form_with("everywhere").press("everywhere", "1");
    assert_eq!(everywhere.method, "POST");
    // The value of the button that ends one session does not end all, nor does another user's.
    let mut forged = visitor.open(LOGOUT).form_with("here");
    forged
        .fields
        .push(everywhere.fields.last().unwrap().clone());
    assert_eq!(visitor.submit(&page, &forged).answer.status, 403);
    assert_eq!(another.submit(&page, &everywhere).answer.status, 403);
    for browser in [&mut visitor, &mut elsewhere, &mut another] {
        browser.send(get("/account")).has_status(200);
    }

    let kept = visitor.cookies.clone();
    let after = visitor.submit(&page, &everywhere);
    assert!(
        after
            .forms()
            .iter()
            .any(|form| form.action.contains("mode=login")),
        "{after:?}"
    );
    visitor.cookies = kept;
    for browser in [&mut visitor, &mut elsewhere] {
        let answer = browser.send(get("/account"));
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    another.send(get("/account")).has_status(200);
    Visitor::logged_in(&proxy, &user)
        .send(get("/account"))
        .has_status(200);
}

#[test]
fn user_ends_one_or_all_other_sessions_of_that_user_alone() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36";
    let mut office = Visitor::to(&proxy);
    let login = office.open(LOGIN);
    let form = login
        .form_with("password")
        .set("username", &user.name)
        .set("password", &user.password);
    let posted = Call::post(&form.action)
        .header("User-Agent", chrome)
        .header("Sec-Fetch-Site", "same-origin")
        .form(&crate::support::call::form(&form.fields));
    office.send(posted).has_status(303);
    let mut phone = Visitor::logged_in(&proxy, &user);
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let mut another = Visitor::logged_in(&proxy, &other);
    let is_in = |browser: &mut Visitor<'_>| browser.send(get("/account")).status == 200;

    let page = visitor.open(APPLICATIONS);
    let text = page.answer.text();
    has(
        &text,
        &["Chrome on Windows", "This browser", "Unknown browser"],
    );
    let ends = || {
        page.forms()
            .into_iter()
            .filter(|form| form.buttons.iter().any(|(name, _)| name == "session"))
    };
    assert_eq!(ends().count(), 2, "none for this browser: {text}");
    let pressed = |mut form: Form| {
        form.fields.append(&mut form.buttons);
        form
    };
    for end in ends() {
        assert_eq!(another.submit(&page, &pressed(end)).answer.status, 403);
    }
    // The value for one session ends no other one.
    let [one, two] = ends().map(pressed).collect::<Vec<_>>().try_into().unwrap();
    let mut forged = one.clone();
    *forged.fields.last_mut().unwrap() = two.fields.last().unwrap().clone();
    assert_eq!(visitor.submit(&page, &forged).answer.status, 403);
    assert!(is_in(&mut office) && is_in(&mut phone) && is_in(&mut visitor));
    // The label says which one it is.
    let label = text.find("Log out: Chrome on Windows").unwrap();
    let first = text.find("name=\"session\"").unwrap();
    let of_office = if label < text[first + 1..].find("name=\"session\"").unwrap() + first {
        one
    } else {
        two
    };
    let after = visitor.submit(&page, &of_office);
    has(&after.answer.text(), &["That browser is logged out."]);
    assert!(!is_in(&mut office) && is_in(&mut phone) && is_in(&mut visitor));
    // A second click is not an error.
    assert_eq!(visitor.submit(&page, &of_office).answer.status, 200);

    let question = visitor.open(&format!("{LOGOUT}&which=others"));
    assert!(is_in(&mut phone), "the question ends nothing");
    let others = question.form_with("others").press("others", "1");
    assert_eq!(another.submit(&question, &others).answer.status, 403);
    let after = visitor.submit(&question, &others);
    has(
        &after.answer.text(),
        &["You are logged out everywhere else."],
    );
    assert!(!is_in(&mut phone) && is_in(&mut visitor) && is_in(&mut another));
}

#[test]
fn notices_are_shown_after_the_action_and_not_by_a_link() {
    let proxy = with_user_operations(&Upstream::start()).start();
    let caller = proxy.somebody();
    let mut visitor = Visitor::logged_in(&proxy, &caller.user);
    let mut victim = Visitor::logged_in(&proxy, &caller.user);
    let question = visitor.open(&format!("{APPLICATIONS}&withdraw={}", caller.consumer.key));
    let revoke = question
        .form_with("revoke")
        .press("revoke", &caller.consumer.key);
    let page = visitor.submit(&question, &revoke);
    has(
        &page.answer.text(),
        &[
            "role=\"status\"",
            "\u{2068}Shop\u{2069} can no longer act for you.",
        ],
    );
    // Neither in another browser, nor with another notice, nor without the proof.
    let shows = |browser: &mut Visitor<'_>, target: &str| {
        browser
            .open(target)
            .answer
            .text()
            .contains("role=\"status\"")
    };
    assert!(!shows(&mut victim, &page.target), "{page:?}");
    let bare = page.target.split("&proof").next().unwrap();
    let other = page
        .target
        .replace("applications-withdrawn", "password-changed");
    for target in [
        bare,
        &other,
        &format!("{APPLICATIONS}&notice=password-changed"),
    ] {
        assert!(!shows(&mut visitor, target), "{target}");
    }
    // After a reload too, but not once it is wrong.
    assert!(shows(&mut visitor, &page.target), "{page:?}");
    proxy.token(&caller.consumer, &caller.user);
    assert!(!shows(&mut visitor, &page.target), "{page:?}");
    let out = visitor.open(LOGOUT).form_with("here").press("here", "1");
    let login = visitor.submit(&page, &out);
    has(&login.answer.text(), &["You are logged out."]);
    let mut attacker = Visitor::to(&proxy);
    attacker.open(LOGIN);
    assert!(!shows(&mut attacker, &login.target), "{login:?}");
}

#[test]
fn disabling_a_user_ends_sessions_and_tokens() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let caller = proxy.somebody();
    let mut visitor = Visitor::logged_in(&proxy, &caller.user);
    visitor.send(get("/account")).has_status(200);
    proxy.send(Call::get("/orders").of(&caller)).has_status(200);
    proxy.run(&format!("user disable {}", caller.user.name));
    until("token and session end", || {
        let token = proxy.send(Call::get("/orders").of(&caller)).status;
        let session = visitor.send(get("/account")).status;
        token == 401 && (400..500).contains(&session)
    });
    let mut again = Visitor::to(&proxy);
    let page = again.open(LOGIN);
    let form = page
        .form_with("password")
        .set("username", &caller.user.name)
        .set("password", &caller.user.password);
    again.submit(&page, &form);
    let answer = again.send(get("/account"));
    assert!((400..500).contains(&answer.status), "{answer:?}");
}

/// A cache in front must not share responses between users: the API saw no cookie and cannot add `Vary`.
#[test]
fn responses_to_users_vary_by_cookie_unless_the_api_decides() {
    let api = Upstream::replying(|seen| {
        let fields = seen.header("x-set").unwrap_or_default();
        let status = seen.header("x-status").unwrap_or("200 OK");
        let fields = fields.split('|').filter_map(|field| field.split_once(": "));
        fields.fold(Reply::status(status), |reply, (name, value)| {
            reply.header(name, value)
        })
    });
    let proxy = with_user_operations(&api).start();
    let caller = proxy.somebody();
    let mut visitor = Visitor::logged_in(&proxy, &caller.user);
    for (fields, vary) in [
        ("", &["Cookie"][..]),
        ("ETag: \"1\"", &["Cookie"]),
        ("Vary: Accept-Encoding", &["Accept-Encoding", "Cookie"]),
        ("Expires: Thu, 01 Jan 2037 00:00:00 GMT", &["Cookie"]),
        ("Pragma: no-cache", &["Cookie"]),
        ("Cache-Control: ", &["Cookie"]),
        // A field that is removed on the way has no effect.
        (
            "Connection: Cache-Control|Cache-Control: private",
            &["Cookie"],
        ),
        // These say nothing of shared caches.
        ("Cache-Control: max-age=600", &["Cookie"]),
        (
            "Cache-Control: no-cache|Cache-Control: must-revalidate, max-age=600",
            &["Cookie"],
        ),
        ("Cache-Control: stale-if-error=60, immutable", &["Cookie"]),
        ("Cache-Control: private=\"Set-Cookie\"", &["Cookie"]),
        ("Cache-Control: no-cache=\"a, public, b\"", &["Cookie"]),
        ("Cache-Control: not-public, s-maxage", &["Cookie"]),
        ("Cache-Control: private", &[]),
        ("Cache-Control: max-age=600|Cache-Control: ,PRIVATE ,x", &[]),
        ("cache-control: public, max-age=60", &[]),
        ("Cache-Control: max-age=0, S-MaxAge=600", &[]),
        ("CACHE-CONTROL: no-store|Vary: Accept", &["Accept"]),
    ] {
        for path in ["/account", "/open"] {
            let answer = visitor
                .send(get(path).header("X-Set", fields))
                .has_status(200)
                .clone();
            assert_eq!(answer.fields.all("vary"), vary, "{path}: {fields}");
        }
    }
    for status in [
        "204 No Content",
        "304 Not Modified",
        "404 Not Found",
        "500 Oops",
    ] {
        let answer = visitor.send(get("/account").header("X-Status", status));
        assert_eq!(answer.fields.all("vary"), ["Cookie"], "{status}");
    }
    let head = visitor.send(Call::new("HEAD", "/account").header("Sec-Fetch-Site", "same-origin"));
    assert_eq!(head.fields.all("vary"), ["Cookie"]);
    // The answers of others are the API's own.
    for call in [Call::get("/account").of(&caller), Call::get("/open")] {
        assert!(!proxy.send(call).has_status(200).fields.has("vary"));
    }
}

/// The audit log has one line of each act, with these fields and no others.
#[test]
fn each_action_on_a_page_is_one_line_of_the_audit_log() {
    let api = Upstream::start();
    let permission = "permission = [{ name = 'read', title = 'Read' }]";
    let proxy = Proxy::with(&api, permission);
    let consumer = proxy.consumer_with("Shop", "--callback oob --permission read");
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let asked = [
        proxy.request_token(&consumer, "oob"),
        proxy.request_token(&consumer, "oob"),
    ];
    let page = visitor.open(LOGIN);
    let wrong = page
        .form_with("password")
        .set("username", &user.name)
        .set("password", "x");
    visitor.submit(&page, &wrong).answer.has_status(403);
    let page = visitor.open(&authorization(&asked[0]));
    let consent = visitor.log_in(&page, &user);
    let granted = visitor.decide(&consent, "allow");
    let verifier = granted.element("verifier").unwrap();
    proxy.passes(exchanges(&consumer, &asked[0], &verifier));
    let consent = visitor.open(&authorization(&asked[1]));
    visitor.decide(&consent, "deny");
    let question = visitor.open(&format!("{APPLICATIONS}&withdraw={}", consumer.key));
    let revoke = question.form_with("revoke").press("revoke", &consumer.key);
    visitor.submit(&question, &revoke).answer.has_status(200);
    let page = visitor.open(PASSWORD);
    let form = page
        .form_with("new_password")
        .set("current_password", &user.password);
    let form = form
        .set("new_password", "another phrase 7")
        .set("new_password_again", "another phrase 7");
    visitor.submit(&page, &form).answer.has_status(200);
    let page = visitor.open(APPLICATIONS);
    let forms = page.forms().into_iter();
    let mut logout = forms.filter(|form| form.action.contains("mode=logout"));
    visitor.submit(&page, &logout.next().unwrap());

    let (id, key) = (&user.id, &consumer.key);
    let shown = |token: &Token| format!("{}…", &token.token[..8]);
    let by = format!("user={id} address=127.0.0.1");
    let decided = |event: &str, token, permissions: &str| {
        let token = shown(token);
        format!(
            "event=\"{event}\" consumer={key} user={id} token={token} permissions=\"{permissions}\" address=127.0.0.1"
        )
    };
    let expected = [
        format!("event=\"login_failed\" user=\"{id}\" address=127.0.0.1"),
        format!("event=\"login_succeeded\" {by}"),
        decided("consent_granted", &asked[0], "read"),
        decided("consent_denied", &asked[1], "read"),
        format!("event=\"tokens_revoked\" consumer={key} user={id} count=1 address=127.0.0.1"),
        format!("event=\"password_changed\" {by}"),
        format!("event=\"logged_out\" {by}"),
    ];
    proxy.logs(&["logged_out"]);
    let lines = proxy.log().lines();
    let audits = lines.iter().filter_map(|line| line.split_once(" audit: "));
    let of_pages = audits
        .filter(|(_, fields)| fields.contains("address=127.0.0.1") && !fields.contains("_issued"));
    let found: Vec<&str> = of_pages.map(|(_, fields)| fields).collect();
    assert_eq!(found, expected);
}
