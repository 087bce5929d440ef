//! What enforcing would break, where signatures are only observed.
//!
//! Promise (Console): While calls are observed, the overview counts what enforcing would reject, and names the senders. Also in
//! `tests/acceptance/operator/console/truth.rs`.

use super::{
    needs::{shows, swapped},
    *,
};

const OBSERVE: &str = "signature.enforcement = 'observe'";

#[test]
fn overview_lists_each_sender_enforcing_would_reject() {
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
    let link = "8 of 9 requests";
    shows(
        &operator,
        "/",
        &[
            "signatures only observed",
            &format!("{link}</a></strong> since this process started <time"),
        ],
        &["class=\"note warn\"", "2 calls of 1 consumer"],
    );
    let page = operator.text("/");
    let needs = page.split("Needs attention</h2>").nth(1).unwrap();
    let needs = needs.split("</table>").next().unwrap();
    let counts = numbers(needs);
    assert_eq!(counts, [3, 2, 3], "they are those 8 calls: {page}");
    follow_each_other(
        needs,
        &[
            "<strong>Enforcing would reject <a",
            ">unsigned calls</span>",
            "<strong>No OAuth credentials</strong>",
            "this needs a request signed with OAuth 1.0a",
            ">Shop</a>",
            "<strong>Secrets swapped</strong>",
            "put the consumer secret before the",
            ">1 call was right since, and none had this mistake.</span>",
            "<bdi>invented</bdi>",
            "<strong>Consumer key unknown</strong>",
        ],
    );
    let page = click(&operator, &operator.open("/"), link).answer.text();
    let main = page.split("<main").nth(1).unwrap();
    // The answer, then its rows, and only then the form.
    let parts = [
        "What enforcing would break</h1>",
        "Enforcing would reject 8 of 9 requests</strong> since this process started <time",
        ": 2 calls of 1 consumer, 3 unsigned calls, 3 calls with a key that",
        "<th role=\"columnheader\" scope=\"col\" class=\"number\">calls</th>",
        ">unsigned calls</span>",
        "<strong>No OAuth credentials</strong>",
        "this needs a request signed with OAuth 1.0a",
        ", from <bdi>127.0.0.1</bdi>",
        "class=\"number\">3</td>",
        ">Shop</a>",
        "<strong>Secrets swapped</strong>",
        "put the consumer secret before the",
        "class=\"number\">2</td>",
        "<bdi>invented</bdi>",
        "class=\"number\">3</td>",
        "<form id=\"filter\"",
        "<caption>8 calls</caption>",
    ];
    follow_each_other(main, &parts);
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
            "<caption>2 calls</caption>",
            ">would be rejected</span>",
        ],
        &["Enforcing would reject"],
    );
    shows(
        &operator,
        "/configuration",
        &["What enforcing would break"],
        &[],
    );
}

/// The numbers in the cells of a table.
fn numbers(html: &str) -> Vec<u64> {
    let cells = html.split("<td role=\"cell\" data-label=\"calls\" class=\"number\">");
    let cells = cells.skip(1).map(|cell| cell.split('<').next().unwrap());
    cells.map(|number| number.parse().unwrap()).collect()
}

/// A text has these parts in this order.
#[track_caller]
fn follow_each_other(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part:?} comes next in {text}"));
        rest = after;
    }
}

#[test]
fn overview_counts_and_links_the_calls_beyond_ten_senders() {
    let (_api, proxy) = console(OBSERVE);
    let (shop, _, token) = caller(&proxy, "Shop", "");
    proxy.passes(swapped(&shop, &token));
    for n in 0..12 {
        proxy.passes(Call::get("/x").by(&Consumer::new(format!("invented{n}"), "wrong")));
    }
    let operator = Operator::with(&proxy, READ);
    shows(
        &operator,
        "/",
        &[
            "13 of 13 requests</a>",
            ": 1 call of 1 consumer, 12 calls with a key that is not registered.",
            "<p class=\"soft small\">3 more calls, from other senders: <a href=\"/rejections?kind=observed\">",
            ">Shop</a>",
        ],
        &[],
    );
    let counts = numbers(&operator.text("/"));
    assert_eq!(counts, [1; 10]);
}

#[test]
fn observed_call_that_the_api_failed_counts_as_rejected() {
    let proxy = Proxy::in_front_of_url(&format!("http://{}", refusing_address()));
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
    let share = "2 of 3 requests";
    let row = "<strong>Secrets swapped</strong>";
    for (page, texts, others) in [
        (
            "/",
            &[
                &*format!("{share}</a></strong> since this process started"),
                row,
                "unsigned calls",
            ][..],
            &[][..],
        ),
        (
            "/rejections?kind=observed",
            &[
                &format!("Enforcing would reject {share}</strong>"),
                row,
                "unsigned calls",
                "<caption>2 calls</caption>",
            ],
            &["Nothing: the fault is not the consumer"],
        ),
        // The right call is a fault of the API alone.
        (
            "/rejections?kind=rejected",
            &[
                "<caption>1 call</caption>",
                "Nothing: the fault is not the consumer",
            ],
            &[row],
        ),
        // The chart counts all of them under the verdict of the log.
        (
            "/rejections?reason=bad_gateway",
            &[
                "<caption>3 calls</caption>",
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
        let call = Call::get(path).bearer(READ);
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
fn overview_suggests_no_enforcing_where_it_is_on() {
    let (_api, proxy) = console("");
    proxy.send(Call::get("/x")).has_status(401);
    shows(
        &Operator::with(&proxy, READ),
        "/",
        &["signatures enforced", "1 rejected"],
        &["Enforcing would", "kind=observed"],
    );
}
