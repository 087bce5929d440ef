//! The operator's console: its responses and its changes, as an operator meets them.
//!
//! Promise (Console): Two clicks from the overview show why a consumer gets 401, who uses a previous secret, and unused tokens.
//! Also in `tests/acceptance/operator/console/enforcing.rs`, `tests/acceptance/operator/console/rejections.rs`,
//! `tests/acceptance/operator/console/tokens.rs`, `tests/acceptance/operator/console/users.rs`.
//! Promise (Console): No page or address of the console has a whole token or an expected signature; a secret is shown once.
//! Also in `src/base/settings/value.rs`, `tests/acceptance/operator/console/consumers.rs`,
//! `tests/acceptance/operator/console/tokens.rs`, `src/operator/admin/console/session.rs`.

mod browser;
mod consumers;
mod enforcing;
mod needs;
mod overview;
mod rejections;
mod returns;
mod tokens;
mod truth;
mod users;

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    acceptance::provider::accessibility::{AXE, tab_to},
    support::{
        Call, Consumer, Operator, PATIENCE, Proxy, Token, Upstream,
        browser::{Browser, ENTER},
        has,
        operator::{READ, WRITE},
        proxy::{Builder, User},
        tls::Certificate,
        until,
        upstream::refusing_address,
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
    let caller = proxy.caller(name, options, &format!("user-of-{name}"));
    caller.into_parts()
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
fn admin_token_opens_a_session_and_its_replacement_ends_it() {
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
fn read_token_session_shows_everything_and_changes_nothing() {
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
fn console_shows_the_operation_of_a_path_and_who_may_call_it() {
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
                concat!("none lists this path: forwarded for ", "nobody"),
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
fn console_explains_a_request_without_the_expected_signature() {
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

#[test]
fn a_search_leads_to_the_page_of_its_only_hit() {
    let (_api, proxy) = console("");
    let (consumer, user) = (proxy.consumer("Wall calendar"), proxy.user("ada"));
    let token = proxy.token(&consumer, &user);
    let other = proxy.consumer("Wall clock");
    let forger = Consumer::new(&consumer.key, "wrong");
    let rejected = proxy.send(Call::get("/x").by(&forger).with(&token));
    let id = rejected.header("x-request-id").unwrap().to_owned();
    let operator = Operator::with(&proxy, READ);
    let tokens_of = format!("/tokens?consumer={}&user={}", consumer.key, user.id);
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
        (&id, format!("/rejection?number=1&request_id={id}")),
        ("Wall clock", format!("/consumer?key={}", other.key)),
        (&token.token, tokens_of.clone()),
        (&format!("{}…", &token.token[..8]), tokens_of.clone()),
        (&token.token[..5], tokens_of.clone()),
        (&token.token[..8], tokens_of),
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
        &[
            "“<bdi>nothing &#60;b&#62;</bdi>”",
            "<a href=\"/rejections\">",
            "<a href=\"/audit\">",
        ],
    );
    // What is not registered leads to the calls that name it, or to what was done to it.
    proxy
        .send(Call::get("/x").by(&Consumer::new("mistyped", "x")))
        .has_status(401);
    until("the call is kept", || {
        search("mistyped").target == "/rejections?consumer=mistyped"
    });
    proxy.run(&format!("consumer remove {} --yes", other.key));
    until("the record is kept", || {
        search(&other.key).target == format!("/audit?consumer={}", other.key)
    });
    // A whole token that is not here is not repeated, and one that begins as another does leads to that.
    let unknown = "Zz9-".repeat(8);
    let text = search(&unknown).answer.text();
    has(&text, &["“<bdi>Zz9-Zz9-…</bdi>”"]);
    assert!(!text.contains(&unknown), "{text}");
    let alike = format!("{}{}", &token.token[..8], &unknown);
    assert!(search(&alike).target.starts_with("/tokens?"));
}

#[test]
fn console_says_who_disabled_a_consumer_and_all_other_acts() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
    operator.confirm(&asked).answer.has_status(200);
    let page = operator.text(&format!("/consumer?key={}", consumer.key));
    has(
        &page,
        &[
            "aria-label=\"Last changes\"><li>Consumer disabled, by <bdi>the write token (console)</bdi>",
        ],
    );
    // An act that follows does not hide it.
    let (_, last) = page.split_once("\"Last changes\"").unwrap();
    let acts = last.split("</ul>").next().unwrap().split("<li>").skip(2);
    let acts = acts.map(|act| act.split(['<', ',']).next().unwrap().to_owned());
    assert_eq!(
        Vec::from_iter(acts),
        ["Access token issued", "Consumer registered", ""]
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
    // The start of the process is one of them.
    assert_eq!(all.len(), 5);
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
        Operator::at(&proxy).send(call.bearer(READ))
    };
    let first = call("?limit=3").has_status(200).json();
    assert_eq!(first["items"][0]["event"], "consumer_disabled");
    assert_eq!(first["items"][0]["admin_token"], "write");
    let next = first["next"].as_str().unwrap();
    let rest = call(&format!("?cursor={next}")).has_status(200).json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
    call("?cursor=nonsense").has_status(422);
}
