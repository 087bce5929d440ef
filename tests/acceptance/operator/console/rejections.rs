//! Why calls are rejected, and what to tell the developer of their consumer.
//!
//! Promise (Console): Rejections of other callers do not replace a consumer's; a grace period has diagnoses under both secrets.
//! Also in `src/telemetry/calls/rejections/tests.rs`.

use super::{needs::swapped, *};

#[test]
fn two_clicks_lead_to_the_reason_for_401_and_the_advice() {
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
    let operator = Operator::with(&proxy, READ);
    let listed = operator.open(&format!("/rejections?request_id={id}"));
    has(&listed.answer.text(), &["<caption>1 call</caption>", id]);
    let found = click(&operator, &listed, "<bdi>GET /x</bdi>").answer.text();
    has(&found, &[id, &token.token[..8], "signature_invalid"]);
    assert!(!found.contains(&token.token), "{found}");
    assert!(!found.contains(&consumer.secret), "{found}");
    // Retries until there is another one in a later second.
    let first = within(PATIENCE, "two times", || {
        swapped().has_status(401);
        let call = Call::get("/v1/rejections?limit=1000").bearer(READ);
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
    // A mistake in some calls only.
    swapped().has_status(401);
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
    let (since, exact) = since.split_once("</summary>").unwrap();
    has(since, &[first]);
    assert!(!last.contains(first), "the last one is later: {row}");
    // Both times are there without a pointer.
    has(exact, &["last 20", &format!("first {first} UTC")]);
    // By its name: a key is too long to say on the telephone.
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
fn unauthenticated_callers_displace_no_consumers_rejection() {
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
    let summary = Operator::at(&proxy)
        .send(summary.bearer(READ))
        .has_status(200)
        .json();
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
fn wrong_signature_by_the_previous_secret_is_diagnosed_in_grace() {
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

#[test]
fn calls_are_lines_on_pages_of_fifty_without_filtered_columns() {
    let (_api, proxy) = console("");
    let (shop, bank) = (proxy.consumer("Shop"), proxy.consumer("Bank"));
    for (consumer, count) in [(&shop, 15), (&bank, 1)] {
        for _ in 0..count {
            let wrong = Consumer::new(&consumer.key, "wrong");
            proxy.send(Call::get("/x").by(&wrong));
        }
    }
    for number in 0..60 {
        proxy.send(Call::get(&format!("/unsigned/{number}")));
    }
    let operator = Operator::with(&proxy, READ);
    let rows = |page: &Page| page.answer.text().matches("href=\"/rejection?").count();
    let calls = |page: &Page| {
        let text = page.answer.text();
        let calls = text
            .split("<section id=\"calls\"")
            .nth(1)
            .unwrap()
            .to_owned();
        (calls.matches("<tr role=\"row\"><td").count(), calls)
    };
    let first = operator.open("/rejections");
    let (count, text) = calls(&first);
    assert_eq!(count, 50, "{text}");
    has(&text, &["50 of 76 calls", ">consumer</th>"]);
    let next = click(&operator, &first, "Next page");
    let (count, text) = calls(&next);
    assert_eq!(count, 26, "{text}");
    assert!(!text.contains("Next page") && text.contains("First page"));
    assert!(rows(&first) > 0);
    // The filter leaves one consumer: it is named once, above all.
    let only = operator.open("/rejections?consumer=Shop");
    let text = only.answer.text();
    has(&text, &["15 calls"]);
    assert_eq!(text.matches(">consumer</th>").count(), 0, "{text}");
    assert_eq!(text.matches(">Shop</a>").count(), 1, "{text}");
    // On a phone the calls are behind a link, which shows them.
    has(
        &text,
        &["class=\"lines folded\"", "<p class=\"on-narrow\">"],
    );
    let shown = click(&operator, &only, "Each call").answer.text();
    assert!(!shown.contains("class=\"lines folded\""), "{shown}");
}

#[test]
fn the_calls_of_a_consumer_are_shown_by_the_hour() {
    let (_api, proxy) = console("");
    let (shop, user, token) = caller(&proxy, "Shop", "");
    drop(user);
    let operator = Operator::with(&proxy, READ);
    let page = format!("/consumer?key={}", shop.key);
    let chart = "<figure class=\"by-hour\">";
    assert!(!operator.text(&page).contains(chart));
    for _ in 0..3 {
        proxy.passes(Call::get("/x").by(&shop).with(&token));
    }
    proxy.send(swapped(&shop, &token));
    until("the chart has the calls", || {
        let text = operator.text(&page);
        let all = [
            "In the last 24 h: 4 calls, 1 of them rejected",
            chart,
            "3 accepted, 1 rejected. Each bar is an hour.",
            "or before</span></summary>",
        ];
        all.iter().all(|part| text.contains(part))
    });
}
