//! Which consumers need attention, and which no longer do.
//!
//! Promise (Console): A consumer leaves the list of those that need attention after an accepted call, or when it is disabled or
//! enabled. Also in `src/operator/reasons/attention.rs`.

use super::*;

/// A call of a consumer whose two secrets are swapped.
pub(super) fn swapped(consumer: &Consumer, token: &Token) -> Call {
    let by = Consumer::new(&consumer.key, &token.secret);
    Call::get("/x")
        .by(&by)
        .with(&Token::new(&token.token, &consumer.secret))
}

/// Waits until a page has all of these texts, and none of the others.
#[track_caller]
pub(super) fn shows(operator: &Operator<'_>, page: &str, texts: &[&str], others: &[&str]) {
    let mut text = String::new();
    let start = std::time::Instant::now();
    while start.elapsed() < PATIENCE {
        text = operator.text(page);
        let is_shown = texts.iter().all(|it| text.contains(it));
        if is_shown && !others.iter().any(|it| text.contains(it)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{page} needs {texts:?} without {others:?}: {text}");
}

#[test]
fn later_accepted_call_takes_a_consumer_off_the_overview() {
    let (_api, proxy) = console("");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    let wrong = || proxy.send(swapped(&shop, &token)).has_status(401).status;
    let right = || proxy.passes(Call::get("/x").by(&shop).with(&token));
    let row = ">secrets_swapped</a>";
    let operator = Operator::with(&proxy, READ);
    wrong();
    shows(&operator, "/", &[row, "1 consumer needs attention."], &[]);
    right();
    shows(
        &operator,
        "/",
        &["1 consumer is fine again", "No consumer now."],
        &[row, "needs attention."],
    );
    let page = format!("/consumer?key={}", shop.key);
    let text = "1 call was right since, and none had this mistake.";
    shows(&operator, &page, &[row, text], &[]);
    // The mistake is in some of its calls: one that is accepted says nothing of the others.
    wrong();
    right();
    let text = "Some of its calls are right: 1 since the last wrong one.";
    shows(&operator, "/", &[row, text], &["is fine again"]);
    let calls = "class=\"number\">4</td>";
    shows(
        &operator,
        "/consumers",
        &["rejected in 24 h (this process)", calls],
        &[],
    );
}

#[test]
fn disabled_consumer_is_marked_until_it_is_enabled_again() {
    let (_api, proxy) = console("");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    proxy.send(swapped(&shop, &token)).has_status(401);
    let operator = Operator::with(&proxy, WRITE);
    let (row, tag) = (
        ">secrets_swapped</a>",
        "<span class=\"tag bad\">disabled</span>",
    );
    shows(&operator, "/", &[row], &[tag]);
    proxy.run(&format!("consumer disable {}", shop.key));
    shows(&operator, "/", &["is fine again"], &[row]);
    let text = "It is disabled.";
    shows(&operator, "/rejections", &[row, tag, text], &[]);
    let right = || Call::get("/x").by(&shop).with(&token);
    until("it is disabled", || proxy.send(right()).status == 401);
    let text = "Disabled, but still calling";
    shows(&operator, "/", &[text, tag, ">Enable it</a>"], &[row]);
    let reader = Operator::with(&proxy, READ);
    shows(&reader, "/", &[text], &["/consumer/enable"]);
    let asked = click(&operator, &operator.open("/"), "Enable it");
    operator.confirm(&asked).answer.has_status(200);
    // The first mistake needs attention until a call is accepted.
    until("it is enabled", || proxy.send(right()).status == 200);
    shows(&operator, "/", &["is fine again"], &[text, tag]);
    let page = format!("/consumer?key={}", shop.key);
    shows(&operator, &page, &[text, "It is enabled again."], &[]);
}

#[test]
fn mistakes_of_one_consumer_count_as_one_below_its_name() {
    let (_api, proxy) = console("");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    proxy.send(swapped(&shop, &token)).has_status(401);
    let late = Call::get("/x").by(&shop).with(&token);
    let late = late.parameter("oauth_timestamp", "1000000000");
    proxy.send(late).has_status(401);
    let operator = Operator::with(&proxy, READ);
    let rows = ["1 consumer needs attention.", "rowspan=\"2\""];
    shows(&operator, "/", &rows, &[]);
    let text = operator.text("/");
    assert_eq!(text.matches(">Shop</a>").count(), 1, "{text}");
    // Both times are there without a pointer.
    assert_eq!(text.matches("<details class=\"exact\">").count(), 2);
}

#[test]
fn consumer_that_signs_with_a_replaced_secret_is_marked() {
    let (_api, proxy) = console("");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    let rotated = ["consumer", "rotate-secret", &shop.key, "--json"];
    let secret = proxy.command(&rotated).done().json()["secret"].clone();
    let old = || Call::get("/x").by(&shop).with(&token);
    until("the secret is another one", || {
        proxy.send(old()).status == 401
    });
    let operator = Operator::with(&proxy, READ);
    let text = "Signs with a secret that was replaced";
    let proof = "made with its secret before the last rotation, which others may know";
    let line = "It signs with the secret that the rotation replaced, <time";
    for page in ["/", &format!("/consumer?key={}", shop.key)] {
        shows(
            &operator,
            page,
            &[text, proof, line, "issued last"],
            &["not proved"],
        );
    }
    let summary = Call::get(&format!("/v1/rejections/summary?consumer={}", shop.key));
    let summary = Operator::at(&proxy).send(summary.bearer(READ)).json();
    assert_eq!(summary["items"][0]["mistake"], text);
    // A guess does not get that proof.
    let forger = Consumer::new(&shop.key, "guessed");
    proxy
        .send(Call::get("/x").by(&forger).with(&token))
        .has_status(401);
    shows(
        &operator,
        "/",
        &["not proved: anybody can send its key"],
        &[],
    );
    let now = Consumer::new(&shop.key, text_of(&secret));
    proxy.passes(Call::get("/x").by(&now).with(&token));
    shows(&operator, "/", &["is fine again"], &[text]);
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn console_says_that_observed_calls_would_be_rejected() {
    let (_api, proxy) = console("signature.enforcement = 'observe'");
    let (shop, _, token) = caller(&proxy, "Shop", "");
    proxy.passes(swapped(&shop, &token));
    let operator = Operator::with(&proxy, READ);
    shows(
        &operator,
        "/",
        &[
            "signatures only observed",
            "Would be rejected</span> <strong>100.0 %</strong>",
            "<span>1 of 1; none was rejected</span>",
            "Who sent them, and what to tell them</caption>",
        ],
        &["calls were rejected", "needs attention."],
    );
    let unverified = "<td role=\"cell\" data-label=\"last verified call\"><div>none is known";
    shows(&operator, "/tokens", &[unverified], &["last used"]);
    let page = format!("/consumer?key={}", shop.key);
    shows(
        &operator,
        &page,
        &[
            "Why its calls would be rejected",
            "as all: signatures are only observed (the default)",
        ],
        &[],
    );
    shows(
        &operator,
        "/consumers",
        &[
            ">calls in 24 h (this process)</a></th>",
            "rejected, or would be, in 24 h (this process)",
        ],
        &[],
    );
    let (_api, enforcing) = console("");
    let shop = enforcing.consumer("Shop");
    let page = format!("/consumer?key={}", shop.key);
    shows(
        &Operator::with(&enforcing, READ),
        &page,
        &[
            "Why its calls are rejected",
            "as all: signatures are enforced (the default)",
        ],
        &[],
    );
}
