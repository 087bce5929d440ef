//! The operator's console: its responses and its changes, as an operator meets them, and in a real Chromium.
//!
//! With COUNTERSIGN_SCREENSHOTS the pictures of all pages are written to that directory.
//!
//! Promise (Console): Two clicks from the overview lead to: why a consumer gets 401 and the advice for its developer, which consumer
//! uses a previous secret, which calls `enforce` would reject, and the revocation of unused tokens.
//! Promise (Console): The overview says whether the process is ready, since when and why not, how full the nonce window is, and which
//! certificate ends soon.
//! Promise (Console): A page works without JavaScript, with the keyboard, from 320 pixels, in light and dark mode, and axe finds no
//! fault.
//! Promise (Console): No address of the console contains a whole access token, and the encrypted value of one session is invalid in
//! another one. Also in `src/operator/admin/console/session.rs`.
//! Promise (Console): A secret is shown once; no page shows a password of the configuration or an expected signature. Also in
//! `src/base/settings/value.rs`.
//! Promise (Console): Rejections of strangers and of other consumers do not replace the last rejections of a registered consumer; each
//! one says whether a right signature proves its consumer. Also in `src/request/rejections/tests.rs`.
//! Promise (Console): While the grace of a previous secret lasts, wrong signatures are diagnosed under both secrets, and no page says
//! that it is not accepted.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    provider::accessibility::{AXE, tab_to},
    support::{
        Call, Consumer, Operator, PATIENCE, Proxy, Token, Upstream,
        browser::{Browser, ENTER},
        has,
        operator::{READ, WRITE},
        proxy::{Builder, User},
        tls::Certificate,
        until,
        visitor::Page,
        within,
    },
};

const OPERATIONS: &str = "
[[permission]]
name = 'members.read'

[[operation]]
path = '/members/{id}'
methods = ['GET']
permission = 'members.read'
access = ['consumer', 'application']

[[operation]]
path = '/open'
access = ['anonymous']

[[operation]]
path = '/launch'
access = ['application']
body_hash = 'required'
timestamp_window = '90m'
forward_authorization = true
from = ['127.0.0.0/8', '2001:db8::/32']
headers = { X-LTI-Context = 'context_id' }
launch = true
framed_by = ['https://lms.example', 'https://*.lms.test']
";

fn console(config: &str) -> (Upstream, Proxy) {
    let api = Upstream::start();
    let proxy = builder(&api, config).start();
    (api, proxy)
}

fn builder(api: &Upstream, config: &str) -> Builder {
    Proxy::in_front_of(api).config(config).with_console()
}

/// A consumer with a token.
fn caller(proxy: &Proxy, name: &str, options: &str) -> (Consumer, User, Token) {
    let consumer = proxy.consumer_with(name, options);
    let user = proxy.user(&format!("user-of-{name}"));
    let token = proxy.token(&consumer, &user);
    (consumer, user, token)
}

/// A page with another key in the hidden form that asks for it.
fn typed(page: &Page, key: &str) -> Page {
    let html = page
        .answer
        .text()
        .replace("name=\"typed\"", &format!("name=\"typed\" value=\"{key}\""));
    let mut answer = page.answer.clone();
    answer.body = html.into_bytes();
    Page {
        target: page.target.clone(),
        answer,
    }
}

/// The page that a link on a page leads to.
#[track_caller]
fn click(operator: &Operator<'_>, page: &Page, text: &str) -> Page {
    let html = page.answer.text();
    let ending = format!(">{text}</a>");
    let before = html
        .split(&ending)
        .next()
        .filter(|before| before.len() < html.len());
    let before = before.unwrap_or_else(|| panic!("a link {text:?} on {html}"));
    let href = before.rsplit("href=\"").next().unwrap();
    let href = crate::support::visitor::unescape(href.split('"').next().unwrap());
    operator.open(&href)
}

#[test]
fn an_admin_token_opens_a_console_session_and_its_replacement_ends_it() {
    let (_api, proxy) = console("");
    let mut operator = Operator::at(&proxy);
    let to_login = operator.open("/rejections?kind=observed");
    assert_eq!(
        to_login.redirect(),
        "/login?to=%2Frejections%3Fkind%3Dobserved"
    );
    operator.log_in("wrong").has_status(403);
    assert_eq!(operator.cookie, None);
    let opened = operator.log_in(WRITE);
    opened.has_status(303);
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.starts_with("countersign-console="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=28800"),
        "{cookie}"
    );
    let page = operator.open("/");
    let policy = page.answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    has(
        policy,
        &[
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
        ],
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.answer.header(name), Some(value));
    }
    proxy.logs(&[
        "audit",
        "event=\"console_login\"",
        "by=\"console\"",
        "admin_token=\"write\"",
        "address=127.0.0.1",
    ]);
    // A second session, which ends by its button alone.
    let other = Operator::with(&proxy, WRITE);
    let page = other.open("/");
    let logout = page.form_to("/logout");
    other.send(other.call_of(&page, &logout)).has_status(303);
    other.open("/").answer.has_status(303);
    let (reader, idle) = (Operator::with(&proxy, READ), Operator::with(&proxy, WRITE));
    operator.text("/");
    std::fs::write(
        proxy.directory().join("admin.token"),
        "another-token-0123456789-0123456789",
    )
    .unwrap();
    proxy.signal(Signal::HUP);
    until("the session is ended", || {
        operator.open("/").answer.status == 303
    });
    // The other token was not replaced.
    reader.text("/");
    Operator::at(&proxy).log_in(WRITE).has_status(403);
    Operator::at(&proxy)
        .log_in("another-token-0123456789-0123456789")
        .has_status(303);
    // The old token again does not reopen a session that it opened, even one that was idle meanwhile.
    std::fs::write(proxy.directory().join("admin.token"), WRITE).unwrap();
    proxy.signal(Signal::HUP);
    until("both changes are read", || {
        proxy.logged(&["configuration_reloaded"]) == 2
    });
    Operator::with(&proxy, WRITE);
    for ended in [&operator, &idle] {
        ended.open("/").answer.has_status(303);
    }
}

#[test]
fn two_clicks_lead_to_why_a_consumer_gets_401_and_what_to_tell_its_developer() {
    let (_api, proxy) = console("");
    let (consumer, _, token) = caller(&proxy, "Shop", "");
    let swapped = || {
        let call = Call::get("/x").by(&Consumer::new(&consumer.key, &token.secret));
        proxy.send(call.with(&Token::new(&token.token, &consumer.secret)))
    };
    let rejected = swapped();
    rejected.has_status(401);
    let id = rejected.header("x-request-id").unwrap();
    // By the id from the response.
    let found = Operator::with(&proxy, READ).text(&format!("/rejections?request_id={id}"));
    has(
        &found,
        &[
            "The newest 1 of 1",
            id,
            &token.token[..8],
            "signature_invalid",
        ],
    );
    assert!(!found.contains(&token.token), "{found}");
    assert!(!found.contains(&consumer.secret), "{found}");
    // Retries until there is another one in a later second.
    let first = within(PATIENCE, "two times", || {
        swapped().has_status(401);
        let call = Call::get("/v1/rejections?limit=1000");
        let call = call.header("Authorization", &format!("Bearer {READ}"));
        let list = Operator::at(&proxy).send(call).has_status(200).json();
        let list = list["items"].as_array().unwrap();
        let time = |one: &Value| one["time"].as_str().unwrap().replace('T', " ");
        let (first, later) = (time(list.last()?), time(list.first()?));
        (first != later).then_some(first)
    });
    let right = || {
        Call::get("/x")
            .by(&consumer)
            .with(&token)
            .parameter("oauth_nonce", "once")
    };
    let right = proxy.wire(&right());
    let mut connection = proxy.connect();
    connection.send(&right);
    connection.answer("GET").has_status(200);
    connection.send(&right);
    connection.answer("GET").is(401, "nonce_used");
    let operator = Operator::with(&proxy, READ);
    let overview = operator.open("/");
    has(
        &overview.answer.text(),
        &[
            "<strong>Ready</strong>",
            "<strong>Secrets swapped</strong>",
            "secrets_swapped",
            "nonce_used",
        ],
    );
    let html = overview.answer.text();
    let row = html
        .split("<tr ")
        .find(|row| row.contains(">secrets_swapped<"));
    let (row, first) = (row.unwrap(), first.trim_end_matches('Z'));
    let cells = Vec::from_iter(row.split("<td "));
    let (last, since) = cells[4].split_once(">since ").unwrap();
    has(since, &[first]);
    assert!(!last.contains(first), "the last one is later: {row}");
    // By its name: nobody says a key on the telephone.
    let page = click(&operator, &overview, "Shop").answer.text();
    has(
        &page,
        &[
            "secrets_swapped",
            "put the consumer secret before the",
            "signature wrong, but made with its secrets",
            "make a new oauth_nonce",
            "signature right",
        ],
    );
}

#[test]
fn the_overview_says_since_when_the_process_is_not_ready_and_how_full_it_is() {
    let (_api, proxy) = console("nonce.max_entries = 10");
    let caller = proxy.somebody();
    until("the window is full", || {
        proxy.send(Call::get("/x").of(&caller)).status == 503
    });
    let overview = Operator::with(&proxy, READ).text("/");
    has(
        &overview,
        &[
            "Not ready since 20",
            "nonce_window_full: ",
            "raise nonce.max_entries",
            "Degraded since 20",
            "nonce_window_filling: 10 of 10 nonces",
            "<strong>100.00 %</strong> <span>10 of 10 nonces",
            "<strong>Not ready</strong>",
        ],
    );
    assert!(!overview.contains("<strong>Ready</strong>"));
    // Our own fault needs no person at the consumer.
    has(
        &overview,
        &["No consumer’s calls were rejected since this process started"],
    );
}

#[test]
fn the_overview_marks_a_certificate_that_ends_soon() {
    let api = Upstream::start();
    for (days, state) in [(10, "days left; renew it<"), (60, "days left<")] {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(days);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = Certificate {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        let proxy = builder(&api, "").at_https_localhost(&certificate).start();
        let overview = Operator::with(&proxy, READ).text("/");
        let rows = Vec::from_iter(overview.split("<tr "));
        let row = rows.iter().find(|row| row.contains("certificate.pem"));
        has(row.unwrap(), &["listen.tls.certificate", state]);
    }
}

#[test]
fn the_overview_names_who_uses_a_secret_in_its_grace() {
    let (_api, proxy) = console("");
    let (old, _, token) = caller(&proxy, "Shop", "");
    let silent = proxy.consumer("Silent");
    for key in [&old.key, &silent.key] {
        proxy.run(&format!("consumer rotate-secret {key} --grace 1h"));
    }
    proxy.passes(Call::get("/x").by(&old).with(&token));
    let operator = Operator::with(&proxy, WRITE);
    let overview = operator.text("/");
    let row = |key: &str| {
        let rows = overview.split("<tr ");
        let row = rows
            .filter(|row| row.contains("key=") && row.contains(key))
            .last();
        row.unwrap_or_else(|| panic!("{key} in {overview}"))
            .to_owned()
    };
    assert!(
        row(&old.key).contains("1 call, the last <time"),
        "{}",
        row(&old.key)
    );
    assert!(
        row(&silent.key).contains("not used"),
        "{}",
        row(&silent.key)
    );
    let at = format!("/consumer/end-grace?key={}", old.key);
    let asked = operator.open(&at);
    has(&asked.answer.text(), &["ends at once", "1 call with it"]);
    has(
        &operator.text(&format!("/consumer?key={}", old.key)),
        &[
            "The previous secret also verifies; it ends <time",
            "This process has seen 1 call with it",
        ],
    );
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/x").by(&old).with(&token),
        401,
        "signature_invalid",
    );
}

#[test]
fn two_clicks_lead_to_the_calls_that_enforce_would_reject() {
    let (_api, proxy) = console("signature.enforcement = 'observe'");
    let (consumer, ..) = caller(&proxy, "Shop", "");
    let stranger = Consumer::new(&consumer.key, "wrong");
    proxy.passes(
        Call::get("/x")
            .by(&stranger)
            .with(&Token::new("unknown-token-x", "")),
    );
    let operator = Operator::with(&proxy, READ);
    let overview = operator.open("/");
    has(&overview.answer.text(), &["only observed"]);
    let page = click(&operator, &overview, "What enforcing would break (1)")
        .answer
        .text();
    has(
        &page,
        &[
            "The newest 1 of 1",
            "token_rejected",
            "observed",
            "obtain one through the authorization flow",
        ],
    );
}

#[test]
fn two_clicks_lead_to_unused_tokens_and_revoke_them() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    proxy.token(&consumer, &user);
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    let old = "UPDATE access_tokens SET issued_at = issued_at - 91 * 86400 WHERE token = ?1";
    store.execute(old, [&token.token]).unwrap();
    let operator = Operator::with(&proxy, WRITE);
    let unused = click(&operator, &operator.open("/"), "Tokens unused for 90 days");
    has(&unused.answer.text(), &[&token.token[..8]]);
    let asked = click(&operator, &unused, "Revoke all of these");
    has(
        &asked.answer.text(),
        &["It revokes 1 access token unused for 90d"],
    );
    let done = operator.confirm(&asked);
    has(&done.answer.text(), &["Revoked: 1 access token."]);
    proxy.rejects(
        Call::get("/x").by(&consumer).with(&token),
        401,
        "token_revoked",
    );
    proxy.logs(&[
        "event=\"tokens_revoked\"",
        "by=\"console\"",
        "admin_token=\"write\"",
        "revoked=1",
    ]);
}

#[test]
fn a_consumer_is_made_changed_and_removed_in_the_console_and_its_secret_is_shown_once() {
    let (_api, proxy) = console(OPERATIONS);
    let operator = Operator::with(&proxy, WRITE);
    let form = operator.open("/consumer/add");
    let sent = |name: &str, permissions: &str| {
        let filled = form.form_with("name").set("name", name);
        let mut filled = filled.set("permissions", permissions);
        for (field, value) in [
            ("callbacks", "https://a.test/x\r\noob"),
            ("dialect", "legacy"),
        ] {
            filled.fields.push((field.to_owned(), value.to_owned()));
        }
        operator.submit(&form, &filled)
    };
    has(&sent("", "").answer.text(), &["name: it is empty"]);
    // The configuration has members.read alone.
    has(
        &sent("x", "members.reed").answer.text(),
        &["Permission members.reed: the configuration has no [[permission]] of that name"],
    );
    has(
        &sent("x", "a b c\"").answer.text(),
        &["permission &#34;c\\&#34;&#34;: a name has only"],
    );
    let asked = sent("Shop <b>&", "members.read");
    has(
        &asked.answer.text(),
        &[
            "Shop &#60;b&#62;&#38;",
            "<dt>Callbacks</dt><dd><bdi>https://a.test/x, oob<",
            "<dt>Permissions</dt><dd><bdi>members.read<",
        ],
    );
    assert!(!asked.answer.text().contains("no [[permission]]"));
    let shown = operator.confirm(&asked);
    let text = shown.answer.has_status(200).text();
    has(&text, &["never shown again"]);
    let fact = |name: &str| {
        let rest = text.split(&format!("{name}: <span>")).nth(1).unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    let consumer = Consumer::new(fact("Consumer key"), fact("Consumer secret"));
    for (name, url) in [
        ("Request token URL", "/oauth/request_token"),
        ("Authorization URL", "/oauth/authorize"),
        ("Access token URL", "/oauth/access_token"),
        ("API", ""),
    ] {
        assert_eq!(fact(name), format!("{}{url}", proxy.origin()));
    }
    proxy.passes(Call::get("/members/1").by(&consumer));
    let at = |page: &str| format!("/consumer{page}?key={}", consumer.key);
    assert!(!operator.text(&at("")).contains(&consumer.secret));
    // The same form again registers nothing.
    has(
        &operator.confirm(&asked).answer.has_status(409).text(),
        &["there is a consumer with the key"],
    );

    let form = operator.open(&at("/edit"));
    let filled = form.form_with("name").set("name", "Shop");
    let filled = filled.set("permission.members.read", "1");
    let filled = filled.without("permission.members.read");
    let asked = operator.submit(&form, &filled);
    has(
        &asked.answer.text(),
        &[
            "<dt>Name</dt><dd><bdi>Shop<",
            "<dt>Permissions</dt><dd><bdi>none<",
            "It ends members.read for its 0 access tokens",
        ],
    );
    operator.confirm(&asked).answer.has_status(200);
    assert_eq!(proxy.status(Call::get("/members/1").by(&consumer)), 404);
    // The record has changed since it was shown.
    has(
        &operator.confirm(&asked).answer.has_status(403).text(),
        &["no longer valid"],
    );

    let form = operator.open(&at("/rotate"));
    let mut filled = form.form_with("key");
    filled.fields.push(("grace".to_owned(), "1h".to_owned()));
    let asked = operator.submit(&form, &filled);
    has(&asked.answer.text(), &["also verifies until"]);
    let rotated = operator.confirm(&asked);
    has(
        &rotated.answer.has_status(200).text(),
        &["New secret of Shop"],
    );
    // A second click must not rotate again.
    operator.confirm(&asked).answer.has_status(403);

    for (page, status) in [("/disable", "disabled"), ("/enable", "enabled")] {
        let asked = operator.open(&at(page));
        has(
            &operator.confirm(&asked).answer.text(),
            &[&format!(">{status}</span>")],
        );
    }
    let asked = operator.open(&at("/remove"));
    has(&asked.answer.text(), &["never used again"]);
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/members/1").by(&consumer),
        401,
        "consumer_key_unknown",
    );
    for event in [
        "consumer_registered",
        "consumer_changed",
        "consumer_secret_rotated",
        "consumer_removed",
    ] {
        proxy.logs(&[
            &format!("event=\"{event}\""),
            "by=\"console\"",
            "address=127.0.0.1",
        ]);
    }
}

#[test]
fn a_confirmation_in_the_console_says_what_the_change_ends() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    proxy.token(&consumer, &user);
    let operator = Operator::with(&proxy, WRITE);
    let ends_one = format!(
        "It ends the access of Shop to {} by this token within a second, for good.",
        user.name
    );
    for (page, name, effect) in [
        (
            "/consumer/disable?key",
            &consumer.key,
            "All its calls get 401 within a second",
        ),
        (
            "/consumer/enable?key",
            &consumer.key,
            "accepted again, with its 2 access tokens.",
        ),
        (
            "/consumer/disable?key",
            &consumer.key,
            "It keeps 2 access tokens for the time",
        ),
        ("/token/revoke?token", &token.token, &*ends_one),
        (
            "/consumer/remove?key",
            &consumer.key,
            "It ends 1 access token, and every authorization",
        ),
        (
            "/user/disable?id",
            &user.id,
            "The user cannot log in until the account is enabled.",
        ),
        (
            "/user/enable?id",
            &user.id,
            "The user can log in again. Tokens and sessions that were ended stay",
        ),
    ] {
        let asked = operator.open(&format!("{page}={name}"));
        has(&asked.answer.has_status(200).text(), &[effect]);
        if page.starts_with("/consumer/remove") {
            // A consumer with tokens is not removed by one careless Enter.
            let again = operator.confirm(&typed(&asked, "another"));
            has(
                &again.answer.text(),
                &["This is another key. Nothing was changed."],
            );
            operator
                .confirm(&typed(&again, name))
                .answer
                .has_status(200);
            operator
                .open(&format!("/consumer?key={name}"))
                .answer
                .has_status(404);
        } else {
            operator.confirm(&asked).answer.has_status(200);
        }
    }
}

#[test]
fn charts_of_the_last_hour_and_day_are_described_in_words() {
    let (_api, proxy) = console("");
    let caller = proxy.somebody();
    for _ in 0..2 {
        proxy.passes(Call::get("/x").of(&caller));
    }
    proxy.send(Call::get("/x")).has_status(401);
    let operator = Operator::with(&proxy, READ);
    for (target, period) in [("/", "minute"), ("/?span=day", "quarter of an hour")] {
        until("the calls are counted", || {
            let text = operator.text(target);
            let is_counted = text.contains("2 served, 0 observed, 1 rejected");
            let described = format!("Each bar is a {period}");
            assert!(
                !is_counted || text.matches(&described).count() == 2,
                "{text}"
            );
            is_counted
        });
    }
}

#[test]
fn users_are_disabled_and_their_sessions_ended_in_the_console() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let mut visitor = crate::support::Visitor::logged_in(&proxy, &user);
    let operator = Operator::with(&proxy, WRITE);
    let page = click(&operator, &operator.open("/users"), &user.name);
    has(&page.answer.text(), &["1 open session, the newest first"]);
    let session = proxy
        .run(&format!("user sessions {} --json", user.id))
        .json();
    let members = Vec::from_iter(session.as_object().unwrap().keys());
    assert_eq!(members, ["created_at", "expires_at", "browser", "system"]);
    let asked = click(&operator, &page, "End all sessions");
    has(&asked.answer.text(), &["It ends 1 open session:"]);
    operator.confirm(&asked).answer.has_status(200);
    let applications = visitor.open("/service.oauth?mode=applications");
    applications.form_with("password");
    let asked = click(&operator, &page, "Disable");
    has(&asked.answer.text(), &["revokes 1 access token;"]);
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/x").by(&consumer).with(&token),
        401,
        "token_revoked",
    );
}

#[test]
fn a_form_about_a_user_who_changed_since_changes_nothing_and_links_to_that_user() {
    let (_api, proxy) = console("");
    let user = proxy.user("ada");
    let operator = Operator::with(&proxy, WRITE);
    for page in ["/user/disable", "/user/end-sessions"] {
        let asked = operator.open(&format!("{page}?id={}", user.id));
        let name = page.replace('/', " ");
        let update = ["user", "update", "ada", "--display-name", name.trim()];
        proxy.command(&update).done();
        let stale = operator.confirm(&asked);
        stale.answer.has_status(403);
        let again = click(&operator, &stale, "Begin again");
        assert_eq!(again.target, format!("{page}?id={}", user.id));
        again.answer.has_status(200);
    }
    // A login may replace the hash of the password, which must not prevent disabling the account.
    let asked = operator.open(&format!("/user/disable?id={}", user.id));
    let passwd = ["user", "passwd", "ada", "--password-stdin"];
    proxy
        .command_with(&passwd, "another long pass phrase\n")
        .done();
    operator.confirm(&asked).answer.has_status(200);
    assert!(operator.text("/users").contains(">disabled</span>"));
}

#[test]
fn no_url_of_the_console_contains_a_whole_token() {
    let (_api, proxy) = console("");
    let (consumer, user, _) = caller(&proxy, "Shop", "");
    let mut lines = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
    for number in 100..250 {
        lines += &format!(
            "{{\"kind\":\"token\",\"token\":\"imported-{number}\",\"token_secret\":\"s\",\"consumer\":\"{}\",\"user\":\"{}\"}}\n",
            consumer.key, user.id
        );
    }
    std::fs::write(proxy.directory().join("tokens"), lines).unwrap();
    let file = proxy.directory().join("tokens").display().to_string();
    proxy.command(&["import", &file]).done();
    let operator = Operator::with(&proxy, WRITE);
    let mut page = operator.open("/tokens");
    let first = operator.open("/tokens");
    let mut rows = 0;
    for _ in 0..2 {
        let text = page.answer.has_status(200).text();
        assert!(!text.contains("imported-1"), "{text}");
        rows += text.matches(">imported…<").count();
        assert_eq!(text.contains(">First page</a>"), rows == 150, "{text}");
        if rows == 100 || rows == 99 {
            page = click(&operator, &page, "Next page");
        }
    }
    assert_eq!(rows, 150);
    // The link of one session is not valid in another.
    let other = Operator::with(&proxy, WRITE);
    let html = first.answer.text();
    let revoke = html
        .split("href=\"")
        .find(|rest| rest.contains("/token/revoke"));
    let revoke = revoke.unwrap().split('"').next().unwrap();
    other.open(revoke).answer.has_status(404);
    let asked = operator.open(revoke);
    // The link back from a form that is no longer valid leads to the same token.
    let forged = asked.form_with("confirmed").set("csrf", "x");
    let stale = operator.submit(&asked, &forged);
    assert!(!stale.answer.has_status(403).text().contains("imported-1"));
    let asked = click(&operator, &stale, "Begin again");
    let done = operator.confirm(&asked);
    assert!(done.answer.has_status(200).text().contains("Revoked: 1"));
}

#[test]
fn a_session_of_the_read_token_shows_everything_and_changes_nothing() {
    let (_api, proxy) = console(OPERATIONS);
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let (reader, writer) = (Operator::with(&proxy, READ), Operator::with(&proxy, WRITE));
    let at = |page: &str| {
        format!(
            "{page}?key={0}&id={1}&token={2}&user={1}",
            consumer.key, user.id, token.token
        )
    };
    for page in [
        "/",
        "/consumers",
        "/consumer",
        "/users",
        "/user",
        "/tokens",
        "/rejections",
        "/operations",
        "/audit",
        "/configuration",
    ] {
        let text = reader.text(&at(page));
        assert!(!text.contains("/signature"), "{page}");
        for change in [
            "/edit",
            "/rotate",
            "/disable",
            "/remove",
            "/revoke",
            "/end-sessions",
            "/consumer/add",
        ] {
            assert!(
                !text.contains(&format!("{change}?")) && !text.contains(&format!("{change}\"")),
                "{page}: {change}"
            );
        }
    }
    for page in [
        "/consumer/add",
        "/consumer/edit",
        "/consumer/rotate",
        "/consumer/end-grace",
        "/consumer/disable",
        "/consumer/enable",
        "/consumer/remove",
        "/user/disable",
        "/user/enable",
        "/user/end-sessions",
        "/token/revoke",
        "/tokens/revoke",
        "/signature",
    ] {
        reader.open(&at(page)).answer.has_status(403);
        // The form of a user who may write, sent in the reader's session.
        let page = writer.open(&at(page));
        let form = page.forms().into_iter().next_back().unwrap();
        let answer = reader.send(reader.call_of(&page, &form));
        answer.has_status(403);
    }
    proxy.passes(Call::get("/open"));
    assert!(
        proxy
            .run(&format!("consumer show {}", consumer.key))
            .stdout
            .contains("Shop")
    );
}

#[test]
fn the_console_shows_the_operation_of_a_path_and_who_may_call_it() {
    let (_api, proxy) = console(OPERATIONS);
    let operator = Operator::with(&proxy, READ);
    let table = operator.text("/operations");
    has(
        &table,
        &[
            "/members/{id}",
            "members.read",
            ">consumer</span>",
            ">application</span>",
            ">anonymous</span>",
            ">nobody</span>",
        ],
    );
    for (query, parts) in [
        ("path=/members/%252565", &["Rejected with 400"][..]),
        (
            "path=/members/7%3Fx=y",
            &[
                "GET /members/7: forwarded for consumer or application with the permission members.read, rejected for anybody else.",
                "<dt>Operation</dt><dd><bdi>/members/{id}",
                "members.read, of the consumer",
            ],
        ),
        (
            "path=members/7&method=post",
            &["listed with other methods", "GET, HEAD"],
        ),
        (
            "path=/else",
            &[
                "none lists this path: forwarded for nobody",
                ">nobody</span>",
            ],
        ),
        (
            "path=/launch",
            &[
                "only from 127.0.0.0/8 or 2001:db8::/32",
                "needs oauth_body_hash",
                "within 5400s",
                "the credentials go on",
                "x-lti-context has context_id",
                "which https://lms.example https://*.lms.test may frame",
            ],
        ),
    ] {
        has(&operator.text(&format!("/operations?{query}")), parts);
    }
}

#[test]
fn the_console_shows_the_source_of_each_setting_and_no_password() {
    let api = Upstream::start();
    let proxy = builder(
        &api,
        "service.realm = 'My <realm>'\npages.terms_url = 'https://example.com/terms?a=b'",
    )
    .environment("COUNTERSIGN__LIMITS__FORM_FIELDS", "77")
    .start();
    let operator = Operator::with(&proxy, READ);
    let text = operator.text("/configuration");
    has(&text, &["<bdi>service.realm</bdi>"]);
    // Those that have their defaults are one click away.
    assert!(!text.contains("<bdi>listen.http2</bdi>"));
    let text = operator.text("/configuration?which=all");
    let rows = Vec::from_iter(text.split("<tr "));
    let row = |key: &str| {
        *rows
            .iter()
            .find(|row| row.contains(&format!("<bdi>{key}</bdi>")))
            .unwrap()
    };
    has(
        row("service.realm"),
        &["My &#60;realm&#62;", "<bdi>file</bdi>"],
    );
    has(
        row("limits.form_fields"),
        &["<bdi>77</bdi>", "COUNTERSIGN__LIMITS__FORM_FIELDS"],
    );
    has(
        row("listen.http2"),
        &["<bdi>true</bdi>", "<bdi>default</bdi>"],
    );
    has(
        row("listen.workers"),
        &["the processors of the quota, at most 4"],
    );
    has(row("[[operation]]"), &["0 entries"]);
    for secret in [READ, WRITE] {
        assert!(!text.contains(secret));
    }
}

#[test]
fn the_console_explains_a_pasted_request_without_its_expected_signature() {
    let (_api, proxy) = console(
        "operation = [{ path = '/x', headers = { X-A = 'a', X-B = 'b' }, forward_authorization = false }]",
    );
    let (consumer, _, token) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let check = |call: Call| {
        let page = operator.open("/signature");
        let mut form = page.form_to("/signature");
        let wire = String::from_utf8(proxy.wire(&call)).unwrap();
        form.fields.push(("request".to_owned(), wire));
        operator.submit(&page, &form).answer.has_status(200).text()
    };
    let right = check(Call::get("/x?a=b").by(&consumer).with(&token));
    has(
        &right,
        &[
            "The signature is right.",
            "Not checked here: the nonce",
            "Signature base string",
            "a%3Db",
            "If it is accepted, the API gets: x-a: b; no x-b: the signature covers no b,",
            "the credentials are taken out.",
        ],
    );
    // Signed without the query.
    let wrong = check(
        Call::get("/x?a=b")
            .by(&consumer)
            .with(&token)
            .signs_target("/x"),
    );
    has(
        &wrong,
        &[
            "query_unsigned",
            "Right base string",
            "What the consumer signed",
            "<mark>",
        ],
    );
    // Its log has the signed data.
    let page = operator.open("/signature");
    let mut form = page.form_to("/signature");
    let wire = proxy.wire(&Call::get("/x").by(&consumer).with(&token).key("other"));
    for (name, value) in [
        ("request", String::from_utf8(wire).unwrap()),
        ("signed", "POST&http%3A&<b>".to_owned()),
    ] {
        form.fields.push((name.to_owned(), value));
    }
    let own = operator.submit(&page, &form).answer.text();
    has(
        &own,
        &[
            "no known mistake makes it",
            "<mark>POST</mark>",
            "<mark>&#38;&#60;b&#62;</mark>",
        ],
    );
    for secret in [&consumer.secret, &token.secret] {
        assert!(!wrong.contains(secret) && !right.contains(secret));
    }
    let page = operator.open("/signature");
    let mut form = page.form_to("/signature");
    form.fields
        .push(("request".to_owned(), "nonsense <b>".to_owned()));
    let text = operator.submit(&page, &form).answer.text();
    has(&text, &["neither with curl", "nonsense &#60;b&#62;"]);
}

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
        (
            "rejections-observed",
            "/rejections?kind=observed",
            "The newest 1 of 1",
        ),
    ] {
        browser.open(&format!("{origin}{path}"));
        has(&browser.text("main"), &[part]);
        look.look(name);
    }
}

#[test]
fn the_keyboard_alone_changes_a_consumer_in_the_console_without_javascript() {
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

#[test]
fn a_search_leads_to_the_page_of_its_only_hit() {
    let (_api, proxy) = console("");
    let (consumer, user) = (proxy.consumer("Wall calendar"), proxy.user("ada"));
    let token = proxy.token(&consumer, &user);
    let other = proxy.consumer("Wall clock");
    let stranger = Consumer::new(&consumer.key, "wrong");
    let rejected = proxy.send(Call::get("/x").by(&stranger).with(&token));
    let id = rejected.header("x-request-id").unwrap().to_owned();
    let operator = Operator::with(&proxy, READ);
    let search = |text: &str| {
        let page = operator.open("/");
        let form = page.form_to("/search").set("q", text);
        operator.submit(&page, &form)
    };
    for (text, target) in [
        (&*consumer.key, format!("/consumer?key={}", consumer.key)),
        ("wall cal", format!("/consumer?key={}", consumer.key)),
        (&user.id, format!("/user?id={}", user.id)),
        (&user.name, format!("/user?id={}", user.id)),
        (&id, format!("/rejections?request_id={id}")),
        (
            &token.token[..8],
            format!("/tokens?consumer={}&user={}", consumer.key, user.id),
        ),
    ] {
        let found = search(text);
        assert_eq!(found.target, target, "{text}");
        found.answer.has_status(200);
    }
    let tokens = operator.text("/tokens?consumer=wall+cal&user=ad");
    has(&tokens, &[&format!("{}…", &token.token[..8])]);
    let both = search("wall").answer.text();
    has(&both, &[&consumer.key, &other.key]);
    has(
        &search("nothing <b>").answer.text(),
        &["“<bdi>nothing &#60;b&#62;</bdi>”"],
    );
    // A whole token is found as well, and no address has it.
    assert!(!search(&token.token).target.contains(&token.token));
}

#[test]
fn strangers_push_no_rejection_of_a_consumer_out_and_each_says_what_it_proves() {
    let (_api, proxy) = console(OPERATIONS);
    let (consumer, _, token) = caller(&proxy, "Shop", "--permission members.read");
    let swapped = Call::get("/x").by(&Consumer::new(&consumer.key, &token.secret));
    let swapped = proxy.send(swapped.with(&Token::new(&token.token, &consumer.secret)));
    swapped.has_status(401);
    let wrong = Call::get("/x").by(&Consumer::new(&consumer.key, "wrong"));
    proxy.send(wrong.with(&token)).has_status(401);
    let late = Call::get("/x").by(&consumer).with(&token);
    let late = proxy.send(late.parameter("oauth_timestamp", "1000000000"));
    late.has_status(401);
    // It names its key and lacks a parameter: nothing is proved, and it is the consumer's all the same.
    let key = ("oauth_consumer_key", &*consumer.key);
    let absent = format!("/x?{}={}&oauth_signature_method=HMAC-SHA1", key.0, key.1);
    proxy.send(Call::get(&absent)).has_status(400);
    let mut connection = proxy.connect();
    for _ in 0..1_100 {
        connection.send(format!("GET /x HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.address()).as_bytes());
        connection.answer("GET").has_status(401);
    }
    let operator = Operator::with(&proxy, READ);
    let rows = |text: &str| {
        let rows = text.split("<tr ").skip(1).map(str::to_owned);
        rows.filter(|row| row.contains(&consumer.key) || text.contains("By reason"))
            .collect::<Vec<_>>()
    };
    for page in ["/", &format!("/consumer?key={}", consumer.key)] {
        let rows = rows(&operator.text(page));
        for (word, proof) in [
            (
                "secrets_swapped",
                "signature wrong, but made with its secrets",
            ),
            ("signature_invalid", "not proved: anybody can send its key"),
            ("timestamp_refused", "signature right"),
            ("parameter_absent", "not proved: anybody can send its key"),
        ] {
            let row = rows
                .iter()
                .find(|row| row.contains(&format!(">{word}</a>")));
            has(
                row.unwrap_or_else(|| panic!("{page} {word}: {rows:?}")),
                &[proof],
            );
        }
    }
    let summary = Call::get("/v1/rejections/summary");
    let summary = summary.header("Authorization", &format!("Bearer {READ}"));
    let summary = Operator::at(&proxy).send(summary).has_status(200).json();
    let items = summary["items"].as_array().unwrap();
    assert_eq!(items.len(), 4, "{summary}");
    for one in items {
        let (verified, secrets) = (&one["proof"]["verified"], &one["proof"]["secrets"]);
        let expected = match one["reason"].as_str().unwrap() {
            "secrets_swapped" => (0, 1),
            "timestamp_refused" => (1, 0),
            _ => (0, 0),
        };
        assert_eq!(
            (verified.as_i64(), secrets.as_i64()),
            (Some(expected.0), Some(expected.1))
        );
        assert_eq!(one["consumer"], consumer.key);
        assert_eq!(one["count"], 1);
    }
    proxy.logs(&["diagnosis=\"secrets_swapped\"", "proof=\"secrets\""]);
    proxy.logs(&["verdict=\"timestamp_refused\"", "proof=\"verified\""]);
}

#[test]
fn a_secret_that_ended_at_once_is_said_to_have_ended() {
    let (_api, proxy) = console("");
    let (shop, ..) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let rotated = |grace: &str| {
        proxy.run(&format!("consumer rotate-secret {} {grace}", shop.key));
        let page = operator.open(&format!("/consumer/rotate?key={}", shop.key));
        let form = page.form_to("/consumer/rotate");
        let confirmation = operator.submit(&page, &form).answer.has_status(200).text();
        let consumer = operator.text(&format!("/consumer?key={}", shop.key));
        [
            consumer.contains("the previous one also verifies until"),
            confirmation.contains("The previous secret, which is in its grace, ends at once."),
        ]
    };
    assert_eq!(rotated("--grace 1h"), [true; 2]);
    // It is kept for the diagnosis of signatures.
    assert_eq!(rotated("--json"), [false; 2]);
}

#[test]
fn a_wrong_signature_by_the_previous_secret_is_diagnosed_while_its_grace_lasts() {
    let (_api, proxy) = console("");
    let (old, _, token) = caller(&proxy, "Shop", "");
    proxy.run(&format!("consumer rotate-secret {} --grace 1h", old.key));
    let unsigned = || Call::get("/x?a=b").by(&old).with(&token).signs_target("/x");
    let rejected = proxy.send(unsigned());
    rejected.is(401, "signature_invalid");
    let advice = rejected.text().replace("%20", " ");
    has(
        &advice,
        &[
            "sign the parameters of the query",
            "the previous consumer secret was used",
        ],
    );
    proxy.logs(&[
        "diagnosis=\"query_unsigned\"",
        "secret=\"previous\"",
        "proof=\"secrets\"",
    ]);
    let operator = Operator::with(&proxy, WRITE);
    for page in ["/", &format!("/consumer?key={}", old.key)] {
        has(
            &operator.text(page),
            &[
                "query_unsigned",
                "It signs with its previous secret, whose grace lasts.",
            ],
        );
    }
    // The same request, and a right one, on the page that checks signatures.
    for (call, verdict) in [
        (unsigned(), "query_unsigned: "),
        (
            Call::get("/x?a=b").by(&old).with(&token),
            "The signature is right.",
        ),
    ] {
        let page = operator.open("/signature");
        let mut form = page.form_to("/signature");
        let wire = String::from_utf8(proxy.wire(&call)).unwrap();
        form.fields.push(("request".to_owned(), wire));
        let text = operator.submit(&page, &form).answer.has_status(200).text();
        has(
            &text,
            &[verdict, "previous secret, which also verifies until"],
        );
        assert!(!text.contains("no longer accepted"), "{text}");
    }
}

/// The text of an element of a page.
fn text_of(html: &str, id: &str) -> String {
    let (_, rest) = html
        .split_once(&format!("id=\"{id}\">"))
        .unwrap_or_else(|| panic!("{id} in {html}"));
    crate::support::visitor::unescape(rest.split("</pre>").next().unwrap())
}

#[test]
fn each_program_of_the_page_with_a_new_secret_makes_a_signed_call() {
    use std::process::Command;

    use crate::support::installed;

    let (api, proxy) = console("operations.unlisted = 'application'");
    let operator = Operator::with(&proxy, WRITE);
    let form = operator.open("/consumer/add");
    let asked = operator.submit(&form, &form.form_with("name").set("name", "Shop"));
    let page = operator.confirm(&asked).answer.has_status(200).text();
    let directory = proxy.directory().join("programs");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(
        installed("clients/node/node_modules"),
        directory.join("node_modules"),
    )
    .unwrap();
    let countersign = std::path::Path::new(env!("CARGO_BIN_EXE_countersign"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", countersign.parent().unwrap().display());
    let python = installed(".tools/venv/bin/python").display().to_string();
    for (id, file, program) in [
        ("python", "call.py", &*python),
        ("node", "call.js", "node"),
        ("php", "call.php", "php"),
        ("java", "Call.java", "java"),
        ("curl", "call.sh", "sh"),
    ] {
        std::fs::write(directory.join(file), text_of(&page, id)).unwrap();
        let before = api.requests().len();
        let run = Command::new(program)
            .arg(file)
            .current_dir(&directory)
            .env("PATH", &path)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(run.status.success(), "{id}: {run:?}");
        assert_eq!(api.requests().len(), before + 1, "{id}: {run:?}");
    }
}

#[test]
fn the_console_says_who_disabled_a_consumer_and_what_else_operators_did() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
    operator.confirm(&asked).answer.has_status(200);
    let page = operator.text(&format!("/consumer?key={}", consumer.key));
    has(
        &page,
        &["Last act: Consumer disabled, by <bdi>the write token (console)</bdi>"],
    );
    let reader = Operator::with(&proxy, READ);
    let rows = |query: &str| {
        let text = reader.text(&format!("/audit{query}"));
        let rows = text.split("<tr ").skip(2).map(str::to_owned);
        rows.collect::<Vec<_>>()
    };
    // The newest first.
    let all = rows("");
    has(&all[0], &["consumer_disabled"]);
    for parts in [
        &[
            "consumer_disabled",
            "Shop",
            "the console, write token",
            "127.0.0.1 at ",
        ][..],
        &[
            "access_token_issued",
            &token.token[..8],
            "Shop",
            &user.name,
            "by a command",
        ],
        &["user_added", &user.name],
        &["consumer_registered", "Shop"],
    ] {
        let row = all
            .iter()
            .find(|row| row.contains(&format!(">{}<", parts[0])));
        let row = row.unwrap_or_else(|| panic!("{parts:?} in {all:?}"));
        has(row, parts);
        assert!(
            !row.contains(&token.token) && !row.contains(&consumer.secret),
            "{row}"
        );
    }
    assert_eq!(all.len(), 4);
    for (query, count) in [
        (format!("?consumer={}", consumer.key), 3),
        (format!("?user={}", user.id), 2),
        ("?actor=console".to_owned(), 1),
        ("?kind=user_added".to_owned(), 1),
        ("?kind=user_added&actor=console".to_owned(), 0),
    ] {
        assert_eq!(rows(&query).len(), count, "{query}");
    }
    let call = |query: &str| {
        let call = Call::get(&format!("/v1/audit{query}"));
        Operator::at(&proxy).send(call.header("Authorization", &format!("Bearer {READ}")))
    };
    let first = call("?limit=3").has_status(200).json();
    assert_eq!(first["items"][0]["event"], "consumer_disabled");
    assert_eq!(first["items"][0]["admin_token"], "write");
    let next = first["next"].as_str().unwrap();
    let rest = call(&format!("?cursor={next}")).has_status(200).json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    call("?cursor=nonsense").has_status(422);
}
