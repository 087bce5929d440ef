//! What enforcing would break, where signatures are only observed.
//!
//! Promise (Console): Where signatures are only observed, the overview says how many calls of the last 24 hours enforcing would reject,
//! of how many consumers, and how many of them are unsigned; one click leads to the answer and to each sender with its mistake. A call
//! counts also if the API then failed.

use super::{
    needs::{shows, swapped},
    *,
};

const OBSERVE: &str = "signature.enforcement = 'observe'";

#[test]
fn one_click_leads_from_the_overview_to_the_senders_whose_calls_enforcing_would_reject() {
    let (_api, proxy) = console(OBSERVE);
    let (shop, _, token) = caller(&proxy, "Shop", "");
    proxy.passes(swapped(&shop, &token));
    proxy.passes(swapped(&shop, &token));
    proxy.passes(Call::get("/x").by(&shop).with(&token));
    proxy.passes(Call::get("/x"));
    proxy.passes(Call::get("/x"));
    proxy.passes(Call::get("/x"));
    // Keys that are made up come after consumers, however many calls name them.
    for _ in 0..3 {
        proxy.passes(Call::get("/x").by(&Consumer::new("invented", "wrong")));
    }
    let operator = Operator::with(&proxy, READ);
    let link = "8 of 9 calls would be rejected";
    shows(
        &operator,
        "/",
        &[
            "signatures only observed",
            &format!(
                "{link}</a> by enforcing: 2 calls of 1 consumer, 3 unsigned calls, 3 calls with a key that is not registered."
            ),
        ],
        &[],
    );
    let page = click(&operator, &operator.open("/"), link).answer.text();
    let main = page.split("<main").nth(1).unwrap();
    // The answer, then its rows, and only then the form.
    let parts = [
        "What enforcing would break</h1>",
        "Enforcing would reject 8 of 9 calls of the last 24 h</strong>: 2 calls of 1 consumer, 3 unsigned calls, 3 calls with a key that",
        "<th role=\"columnheader\" scope=\"col\" class=\"number\">calls in 24 h</th>",
        ">unsigned calls</span>",
        "<strong>No OAuth credentials</strong>",
        "this needs a request signed with OAuth 1.0a",
        ", from 127.0.0.1</bdi>",
        "class=\"number\">3</td>",
        ">Shop</a>",
        "<strong>Secrets swapped</strong>",
        "put the consumer secret before the",
        "class=\"number\">2</td>",
        "<bdi>invented</bdi>",
        "class=\"number\">3</td>",
        "<form class=\"fields\"",
        "The newest 8 of 8",
    ];
    let mut rest = main;
    for part in parts {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part:?} comes next on {page}"));
        rest = after;
    }
    assert!(
        !main.contains(">would be rejected</span>"),
        "in no row of the page of such rows: {page}"
    );
    // With another filter it is the page of rejections.
    shows(
        &operator,
        "/rejections?kind=observed&consumer=sho",
        &[
            "Rejections</h1>",
            "The newest 2 of 2",
            ">would be rejected</span>",
        ],
        &["Enforcing would reject"],
    );
}

#[test]
fn an_observed_call_that_the_api_then_failed_is_one_that_enforcing_would_reject_everywhere() {
    let proxy = Proxy::in_front_of_url(&format!("http://{}", nobody()));
    let proxy = proxy.config(OBSERVE).with_console().start();
    let (shop, _, token) = caller(&proxy, "Shop", "");
    for call in [
        Call::get("/x").by(&shop).with(&token),
        swapped(&shop, &token),
        Call::get("/x"),
    ] {
        proxy.send(call).has_status(502);
    }
    let operator = Operator::with(&proxy, READ);
    let share = "2 of 3 calls";
    let row = "<strong>Secrets swapped</strong>";
    for (page, texts, others) in [
        (
            "/",
            &[
                &*format!(
                    "{share} would be rejected</a> by enforcing: 1 call of 1 consumer, 1 unsigned call."
                ),
                row,
            ][..],
            &[][..],
        ),
        (
            "/rejections?kind=observed",
            &[
                &format!("Enforcing would reject {share} of the last 24 h"),
                row,
                "unsigned calls",
                "The newest 2 of 2",
            ],
            &["Nothing: the fault is not the consumer"],
        ),
        // The right call is a fault of the API alone.
        (
            "/rejections?kind=rejected",
            &[
                "The newest 1 of 1",
                "Nothing: the fault is not the consumer",
            ],
            &[row],
        ),
        // The chart counts all of them under the verdict of the log.
        (
            "/rejections?reason=bad_gateway",
            &[
                "The newest 3 of 3",
                "<option value=\"bad_gateway\" selected>",
            ],
            &[],
        ),
        (
            &format!("/consumer?key={}", shop.key),
            &[row, ">would be rejected</span>"],
            &["Bad gateway"],
        ),
    ] {
        shows(&operator, page, texts, others);
    }
    let list = |path: &str| {
        let call = Call::get(path).header("Authorization", &format!("Bearer {READ}"));
        let list = Operator::at(&proxy).send(call).has_status(200).json();
        list["items"].as_array().unwrap().clone()
    };
    let calls = list("/v1/rejections");
    let calls = calls.iter().map(|one| {
        (
            one["observed"].as_bool(),
            text(&one["verdict"]),
            text(&one["diagnosis"]),
        )
    });
    assert_eq!(
        Vec::from_iter(calls),
        [
            (Some(true), "bad_gateway", "parameter_absent"),
            (Some(true), "bad_gateway", "secrets_swapped"),
            (Some(false), "bad_gateway", ""),
        ]
    );
    let reasons = list("/v1/rejections/summary");
    let reasons = reasons
        .iter()
        .map(|one| (text(&one["verdict"]), text(&one["reason"])));
    assert_eq!(Vec::from_iter(reasons), [("observed", "secrets_swapped")]);
    let metric = |name: &str| proxy.metric(&format!("countersign_{name}"));
    for (name, count) in [
        ("requests_total{verdict=\"bad_gateway\"}", 3.0),
        ("observed_total{verdict=\"signature_invalid\"}", 1.0),
        ("observed_total{verdict=\"parameter_absent\"}", 1.0),
        (
            "consumer_requests_total{consumer=\"all others\",result=\"rejected\"}",
            1.0,
        ),
    ] {
        assert_eq!(metric(name), count, "{name}");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn where_signatures_are_enforced_the_overview_asks_nobody_to_enforce() {
    let (_api, proxy) = console("");
    proxy.send(Call::get("/x")).has_status(401);
    shows(
        &Operator::with(&proxy, READ),
        "/",
        &["signatures enforced", "1 rejected"],
        &["by enforcing", "kind=observed"],
    );
}
