//! Statements of the console under failure: each is true of the state that it is about, and gone when that is.
//!
//! Promise (Console): Each page of a record, a call or a change says only what is true at the time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    needs::{shows, swapped},
    *,
};
use crate::support::{free_port, upstream::Reply, visitor::Visitor};

#[test]
fn the_overview_says_that_the_api_does_not_answer() {
    let is_down = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&is_down);
    let api = Upstream::replying(move |_| match state.load(Ordering::SeqCst) {
        true => Reply::hang_up(),
        false => Reply::ok("fine"),
    });
    let proxy = builder(&api, "").start();
    let caller = proxy.somebody();
    proxy.passes(Call::get("/x").of(&caller));
    let operator = Operator::with(&proxy, READ);
    let ready = "<strong>Ready</strong>";
    let down = "<strong>The API does not answer</strong>";
    shows(
        &operator,
        "/",
        &[ready],
        &[down, "class=\"failed\"", "note bad"],
    );
    is_down.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        proxy.send(Call::get("/x").of(&caller)).has_status(502);
    }
    shows(
        &operator,
        "/",
        &[
            down,
            "<p class=\"note bad\" role=\"status\"><strong>The API does not answer:</strong>",
            "broken response of the API",
            "Calls have failed since <time",
            "<strong>5 of 6 calls of",
            "<li class=\"failed\"><span>Failed</span> <strong>83.3 %",
            "<span>Rejected</span> <strong>0.0 %</strong> <span>0 of 1</span>",
        ],
        &[ready],
    );
    // It can still serve what needs no API: a load balancer has no better process.
    let readyz = proxy.ask_admin("/readyz").has_status(200).text();
    has(&readyz, &["ready\n", "degraded: upstream since 20"]);
    assert_eq!(
        proxy.metric("countersign_degraded{cause=\"upstream\"}"),
        1.0
    );
    is_down.store(false, Ordering::SeqCst);
    proxy.passes(Call::get("/x").of(&caller));
    shows(&operator, "/", &[ready], &[down, "note bad"]);
    // One line at the beginning and one at the end, and none for each call.
    proxy.logs(&["condition ended", "condition=\"upstream\""]);
    for (parts, count) in [
        (
            &["ERROR", "condition began", "condition=\"upstream\""][..],
            1,
        ),
        (&["condition ended", "condition=\"upstream\""], 1),
        (&["request failed"], 0),
    ] {
        assert_eq!(proxy.logged(parts), count, "{parts:?}");
    }
}

#[test]
fn a_slow_operation_among_answered_calls_is_no_outage() {
    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/slow" => Reply::silence(),
        _ => Reply::ok("fine"),
    });
    let proxy = builder(&api, "upstream.response_timeout = '200ms'").start();
    let caller = proxy.somebody();
    let slow = || {
        let failed = proxy.send(Call::get("/slow").of(&caller));
        assert_eq!(failed.status, 504);
    };
    for _ in 0..6 {
        slow();
        proxy.passes(Call::get("/x").of(&caller));
    }
    let upstream = "countersign_degraded{cause=\"upstream\"}";
    assert_eq!(proxy.metric(upstream), 0.0);
    let operator = Operator::with(&proxy, READ);
    shows(&operator, "/", &["<strong>Ready</strong>"], &["note bad"]);
    // Without an answered call between them they are one.
    for _ in 0..5 {
        slow();
    }
    assert_eq!(proxy.metric(upstream), 1.0);
    shows(&operator, "/", &["The API does not answer"], &[]);
    // Later ones among answered calls do not let it last.
    until("it has ended", || {
        proxy.passes(Call::get("/x").of(&caller));
        slow();
        proxy.metric(upstream) == 0.0
    });
    for text in ["condition began", "condition ended"] {
        proxy.logs(&[text, "condition=\"upstream\""]);
        assert_eq!(proxy.logged(&[text, "condition=\"upstream\""]), 1);
    }
}

#[test]
fn status_says_what_the_overview_says() {
    // A command reaches the process by the address of the configuration.
    let api = Upstream::start();
    let listen = format!("admin.listen = '127.0.0.1:{}'", free_port());
    let proxy = builder(&api, &listen).start();
    let (shop, _, token) = caller(&proxy, "Shop", "");
    let status = || proxy.command(&["status"]);
    let text = status().done().stdout;
    has(
        &text,
        &[
            "✓ ready\n",
            "✓ no outage of the API is known\n",
            "  now: ",
            " requests a second, ",
            "✓ no consumer needs attention\n",
        ],
    );
    proxy.send(swapped(&shop, &token));
    let (text, row) = (status().done().stdout, format!("  Shop ({}): ", shop.key));
    has(
        &text,
        &["! 1 consumer needs attention\n", &row, "secrets_swapped"],
    );
    let listed = proxy.run("consumer list --sort rejected --json");
    assert_eq!(listed.json_lines()[0]["rejected"], 1);
    // A name does as well as a key.
    has(&proxy.run("why Shop").stdout, &["(secrets_swapped)"]);
    drop(api);
    let caller = proxy.somebody();
    for _ in 0..5 {
        proxy.send(Call::get("/x").of(&caller));
    }
    has(
        &status().done().stdout,
        &["✗ the API does not answer since 20"],
    );
}

#[test]
fn the_half_that_lacks_a_permission_is_that_of_this_token() {
    let (_api, proxy) = console(OPERATIONS);
    let shop = proxy.consumer("Shop");
    let user = proxy.user("nina");
    let bare = proxy.token(&shop, &user);
    let call = |token: &Token| Call::get("/members/1").by(&shop).with(token);
    let operator = Operator::with(&proxy, READ);
    let page = format!("/consumer?key={}", shop.key);
    let permit = |permissions: &[&str]| {
        let body = serde_json::json!({ "permissions": permissions }).to_string();
        let patch = Call::new("PATCH", &format!("/v1/consumers/{}", shop.key));
        Operator::at(&proxy)
            .send(
                patch
                    .bearer(WRITE)
                    .body("application/merge-patch+json", body.as_bytes()),
            )
            .has_status(200)
            .status
    };
    let notes = [
        "The consumer lacks members.read: edit it.",
        "lacks members.read: its user",
        "nothing is missing",
        "users of the others have to allow it again",
    ];
    let only = |shown: &[&str]| {
        let others = notes.iter().filter(|note| !shown.contains(note));
        shows(&operator, &page, shown, &Vec::from_iter(others.copied()));
    };
    proxy.send(call(&bare)).has_status(404);
    only(&[notes[0], notes[3]]);
    permit(&["members.read"]);
    let lacking = format!(
        "The token {}… lacks members.read: its user",
        &bare.token[..8]
    );
    only(&[notes[1]]);
    shows(&operator, &page, &[&lacking], &[]);
    let full = proxy.token_with(&shop, &user, "--permission members.read");
    // It is the consumer that lacks it, not the token.
    permit(&[]);
    until("the permission is gone", || {
        proxy.send(call(&full)).status == 404
    });
    only(&[notes[0], notes[3]]);
    shows(
        &operator,
        &page,
        &["1 of its 2 tokens has members.read"],
        &[],
    );
    permit(&["members.read"]);
    only(&[notes[2]]);
    until("the permission is back", || {
        proxy.send(call(&full)).status == 200
    });
    shows(&operator, &page, &["1 call was right since"], &[]);
    only(&[]);
}

#[test]
fn every_row_links_the_page_of_its_call_with_its_base_strings() {
    let (_api, proxy) = console(OPERATIONS);
    let (shop, _, token) = caller(&proxy, "Shop", "--permission members.read");
    let by = |call: Call| call.by(&shop).with(&token);
    proxy
        .send(by(Call::get("/albums/9?a=hush")))
        .has_status(404);
    proxy
        .send(by(Call::new("PATCH", "/members/7")))
        .has_status(405);
    let unsigned = by(Call::get("/members/7?size=large")).signs_target("/members/7");
    let answer = proxy.send(unsigned);
    answer.is(401, "signature_invalid");
    let id = answer.header("x-request-id").unwrap();
    let operator = Operator::with(&proxy, READ);
    let unlisted =
        "Tell its developer the right path instead of GET /albums/9, or add an operation";
    let method = "Tell its developer: PATCH is not allowed on this path; GET";
    for page in ["/", "/rejections", &format!("/consumer?key={}", shop.key)] {
        shows(
            &operator,
            page,
            &[
                "<strong>No operation lists this path</strong>",
                unlisted,
                method,
                "<bdi>GET /albums/9</bdi></a>",
                "<bdi>PATCH /members/7</bdi></a>",
            ],
            &["GET unlisted", "hush", "Allow lists"],
        );
    }
    for (called, texts) in [
        (
            "GET /albums/9",
            &[unlisted, "<dt>Status</dt><dd><bdi>404</bdi>"][..],
        ),
        (
            "PATCH /members/7",
            &[method, "<dt>Status</dt><dd><bdi>405</bdi>"],
        ),
        (
            "GET /members/7",
            &[
                "query_unsigned",
                "Right base string</h3>",
                "What the consumer signed</h3>",
                "<mark>",
                id,
            ],
        ),
    ] {
        let rows = operator.open("/rejections");
        let shown = click(&operator, &rows, &format!("<bdi>{called}</bdi>"));
        let text = shown.answer.has_status(200).text();
        has(&text, &[&format!("<h1>{called}</h1>"), ">Shop</a>"]);
        has(
            &text,
            &[&format!("<code>{}…</code></a>", &token.token[..8])],
        );
        has(&text, texts);
        has(&text, &["127.0.0.1", "signature"]);
        for hidden in [&token.token, &token.secret, &shop.secret, "large"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
    // Only the last base strings of a mistake are kept, and another call's are said to be another's.
    proxy
        .send(by(Call::get("/members/8?size=large")).signs_target("/members/8"))
        .has_status(401);
    let rows = operator.open("/rejections");
    let last = click(&operator, &rows, "<bdi>GET /members/8</bdi>")
        .answer
        .text();
    let first = operator.text(&format!("/rejection?request_id={id}"));
    let text = "They are of a later call with the same mistake";
    assert!(!last.contains(text) && first.contains(text), "{first}");
    let gone = operator
        .open("/rejection?number=1&request_id=another")
        .answer;
    has(&gone.has_status(404).text(), &["no longer kept"]);
}

#[test]
fn failed_logins_are_of_people_and_no_developer_is_told() {
    let (_api, proxy) = console("login.max_failures = '50 per 1m'");
    let user = proxy.user("nina");
    let mut visitor = Visitor::to(&proxy);
    let form = visitor.open("/service.oauth?mode=login");
    for (name, count) in [(&*user.name, 2), ("nobody-has-it", 1)] {
        for _ in 0..count {
            let typed = form.form_with("password").set("username", name);
            let typed = typed.set("password", "wrong-password");
            visitor.submit(&form, &typed).answer.has_status(403);
        }
    }
    visitor
        .open("/service.oauth?mode=auth_req_token&oauth_token=nope")
        .answer
        .has_status(401);
    let operator = Operator::with(&proxy, READ);
    let text = operator.text("/rejections");
    has(
        &text,
        &[
            "<caption>People on the pages of this service</caption>",
            "<strong>Wrong password</strong>",
            ">login_failed</a>",
            "3 times: at 1 account, 1 time with a name that no account has, from 1 address.",
            "<strong>Request token unknown</strong>",
            "begins again at the application",
        ],
    );
    for false_here in [
        "developer: ",
        "No token sent",
        ">forbidden</a>",
        "Other callers",
    ] {
        assert!(!text.contains(false_here), "{false_here} in {text}");
    }
    let failed = "countersign_requests_total{verdict=\"login_failed\"}";
    assert_eq!(proxy.metric(failed), 3.0);
    proxy.logs(&["verdict=\"login_failed\"", "status=403"]);
}

#[test]
fn denial_names_the_access_that_remains_and_its_button_ends_it() {
    let (_api, proxy) = console("");
    let (printer, user) = (proxy.consumer("Printer"), proxy.user("ada"));
    let ask = || proxy.request_token(&printer, "oob");
    let (mut visitor, consent) = proxy.consent(&ask(), &user);
    let none = "It cannot act for you.";
    let denied = visitor.decide(&consent, "deny");
    has(
        &denied.answer.text(),
        &["You have denied <bdi>Printer</bdi>", none],
    );
    assert!(!denied.answer.text().contains("can still act"));
    let token = proxy.token(&printer, &user);
    let call = || Call::get("/x").by(&printer).with(&token);
    proxy.passes(call());
    let consent = visitor.open(&crate::support::legs::authorization(&ask()));
    let denied = visitor.decide(&consent, "deny");
    let text = denied.answer.text();
    has(
        &text,
        &[
            "<bdi>Printer</bdi> can still act for you",
            "Given by the operator on",
            "Remove access",
        ],
    );
    assert!(!text.contains(none), "{text}");
    // The statement is true: the call is accepted until the button is pressed.
    proxy.passes(call());
    let form = denied.form_with("revoke").press("revoke", &printer.key);
    let done = visitor.submit(&denied, &form);
    has(&done.answer.text(), &["can no longer act for you."]);
    proxy.rejects(call(), 401, "token_revoked");
}

#[test]
fn calls_that_enforcing_would_break_are_counted_while_observed() {
    let (_api, mut proxy) = console("");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    let silent = proxy.consumer("Silent");
    let right = || Call::get("/x").by(&shop).with(&token);
    for _ in 0..7 {
        proxy.passes(right());
    }
    proxy.send(swapped(&shop, &token)).has_status(401);
    let operator = Operator::with(&proxy, READ);
    shows(
        &operator,
        "/",
        &["secrets_swapped", "signatures enforced"],
        &["nforcing would"],
    );
    proxy.reload("signature.enforcement = 'observe'");
    let operator = Operator::with(&proxy, READ);
    // There is nothing of the time before, when it enforced; no call has come since.
    let short = "That is too short to decide: wait for a day";
    shows(
        &operator,
        "/",
        &[
            "0 of 0 requests</a></strong> since ",
            short,
            ">Silent</a>",
            ">Shop</a>",
        ],
        &["secrets_swapped"],
    );
    proxy.passes(right());
    proxy.passes(swapped(&shop, &token));
    shows(
        &operator,
        "/",
        &[
            "1 of 2 requests</a></strong> since ",
            short,
            "<caption>Consumers that have not called since observing began",
        ],
        &[],
    );
    let text = operator.text("/");
    let rows = text.split("have not called since").nth(1).unwrap();
    let rows = rows.split("</table>").next().unwrap();
    assert!(
        rows.contains(">Silent</a>") && !rows.contains(">Shop</a>"),
        "{rows}"
    );
    has(rows, &[&silent.key, "none is known"]);
    proxy.reload("signature.enforcement = 'enforce'");
    proxy.send(swapped(&shop, &token)).has_status(401);
    let operator = Operator::with(&proxy, READ);
    shows(
        &operator,
        "/",
        &[
            "signatures enforced",
            "While signatures were only observed, from <time",
            "enforcing would have rejected <a href=\"/rejections?kind=observed\">1 of 2 requests</a>: 1 call of 1 consumer.",
        ],
        &["Enforcing would reject", short, "have not called"],
    );
    shows(
        &operator,
        "/rejections?kind=observed",
        &["Enforcing would have rejected 1 of 2 requests"],
        &[],
    );
}

#[test]
fn the_audit_page_says_what_was_changed_and_when() {
    let (_api, mut proxy) = console(OPERATIONS);
    let shop = proxy.consumer("Shop");
    let body = serde_json::json!({ "permissions": ["members.read"], "name": "Wall" }).to_string();
    let patch = Call::new("PATCH", &format!("/v1/consumers/{}", shop.key));
    let patch = patch
        .bearer(WRITE)
        .body("application/merge-patch+json", body.as_bytes());
    Operator::at(&proxy).send(patch).has_status(200);
    proxy.run(&format!("consumer rotate-secret {}", shop.key));
    proxy.reload("signature.enforcement = 'observe'");
    let operator = Operator::with(&proxy, READ);
    let started = format!("version {}", env!("CARGO_PKG_VERSION"));
    shows(
        &operator,
        "/audit",
        &[
            "name: Shop → Wall",
            "permissions: none → members.read",
            "<strong>Configuration changed</strong>",
            "signature.enforcement: &#34;enforce&#34; → &#34;observe&#34;",
            "<strong>Process started</strong>",
            &started,
            "<option value=\"process_started\">Process started</option>",
        ],
        &[&shop.secret],
    );
    let row = "<strong>Configuration changed</strong>";
    for (query, is_there) in [
        ("period=1h", true),
        ("period=24h", true),
        ("from=2026-01-01", true),
        ("from=2026-01-01+18:00&to=2100-01-01", true),
        ("from=2100-01-01", false),
        ("to=2026-01-01+08:00", false),
        ("kind=configuration_changed", true),
        ("kind=process_started", false),
    ] {
        let text = operator.text(&format!("/audit?{query}"));
        assert_eq!(text.contains(row), is_there, "{query}: {text}");
        assert!(!text.contains("is not a time such as"), "{query}");
    }
    let text = operator.text("/audit?from=yesterday");
    has(
        &text,
        &["“yesterday” is not a time such as 2026-01-31 18:00", row],
    );
}

/// Statements, each with the page, and the acts that make it true and false again.
const STATEMENTS: &[(&str, &str, &str, &str)] = &[
    (
        "/consumer?key=KEY",
        "<span class=\"tag bad\">disabled</span>",
        "consumer disable KEY",
        "consumer enable KEY",
    ),
    (
        "/consumers",
        "<span class=\"tag bad\">disabled</span>",
        "consumer disable KEY",
        "consumer enable KEY",
    ),
    (
        "/consumer?key=KEY",
        "The old secret works until 20",
        "consumer rotate-secret KEY --grace 1h",
        "consumer rotate-secret KEY",
    ),
    (
        "/consumer?key=KEY",
        "No call with it was seen since this process started",
        "consumer rotate-secret KEY --grace 1h",
        "consumer rotate-secret KEY",
    ),
    (
        "/",
        "not seen since this process started",
        "consumer rotate-secret KEY --grace 1h",
        "consumer rotate-secret KEY",
    ),
    (
        "/consumers",
        "1 previous secret is in its grace",
        "consumer rotate-secret KEY --grace 1h",
        "consumer rotate-secret KEY",
    ),
    (
        "/consumer?key=KEY",
        "Its developer has a link",
        "consumer link KEY",
        "consumer link KEY --revoke",
    ),
    (
        "/tokens?consumer=KEY",
        "No token matches.",
        "token revoke --consumer KEY",
        "token issue --consumer KEY --user USER",
    ),
    (
        "/consumer?key=KEY",
        "No token matches.",
        "token revoke --consumer KEY",
        "token issue --consumer KEY --user USER",
    ),
    (
        "/operations?path=/x&consumer=KEY",
        "gets 401: it is disabled",
        "consumer disable KEY",
        "consumer enable KEY",
    ),
    // It ends the tokens of the user.
    (
        "/user?id=USER",
        "<span class=\"tag bad\">disabled</span>",
        "user disable USER",
        "user enable USER",
    ),
];

#[test]
fn each_statement_is_shown_while_true_and_not_when_false() {
    let (_api, proxy) = console("");
    let (shop, user, _) = caller(&proxy, "Shop", "");
    let of = |text: &str| text.replace("KEY", &shop.key).replace("USER", &user.id);
    let operator = Operator::with(&proxy, READ);
    for (page, statement, becomes_true, becomes_false) in STATEMENTS {
        shows(&operator, &of(page), &[], &[statement]);
        proxy.run(&of(becomes_true));
        shows(&operator, &of(page), &[statement], &[]);
        proxy.run(&of(becomes_false));
        shows(&operator, &of(page), &[], &[statement]);
    }
}
