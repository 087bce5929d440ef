//! The effect of each limit.
//!
//! Promise (Replay): While the window is full or lost, signed requests get 503, unless `nonce.on_lost = "accept"`; no nonce is
//! evicted. Also in `tests/acceptance/run/restarts.rs`.
//! Promise (Replay): A consumer cannot fill the store with request tokens; token calls count for its rate. Also in
//! `tests/store_contract/flow.rs`, `tests/store_contract/upkeep.rs`.
//! Promise (HTTP): The memory for unverified requests is bounded, and no single address can use it up. Also in
//! `tests/attacks/memory.rs`, `src/wire/server/caller/buffered/tests.rs`.

use crate::support::{
    Answer, Call, Connection, Placement, Proxy, Scene, Upstream, Visitor,
    legs::{LOGIN, REVOKE_TOKEN, asks, exchanges, token_of},
    now, until,
};

#[test]
fn a_consumer_over_its_rate_is_429() {
    let (_api, proxy, caller) =
        Scene::with("limits.requests_per_consumer = '3 per 60s'").into_parts();
    let other = proxy.consumer("Other");
    let other_token = proxy.token(&other, &caller.user);
    let statuses: Vec<u16> = (0..5)
        .map(|_| proxy.send(Call::get("/x").of(&caller)).status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|&&status| status == 200).count(),
        3,
        "{statuses:?}"
    );
    let answer = proxy.send(Call::get("/x").of(&caller));
    answer.has_status(429);
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    proxy.passes(Call::get("/x").by(&other).with(&other_token));
    // Requests that are not correctly signed are not counted against the consumer.
    let third = proxy.consumer("Third");
    let third_token = proxy.token(&third, &caller.user);
    for _ in 0..10 {
        proxy
            .send(
                Call::get("/x")
                    .by(&third)
                    .with(&third_token)
                    .key("forged&forged"),
            )
            .is(401, "signature_invalid");
    }
    proxy.passes(Call::get("/x").by(&third).with(&third_token));
}

#[test]
fn responses_to_verified_calls_tell_the_rate_consumers_first() {
    let (_api, proxy, caller) =
        Scene::with("limits.requests_per_consumer = '3 per 60s'").into_parts();
    let fields = |answer: &Answer| {
        ["ratelimit-policy", "ratelimit"].map(|name| answer.header(name).map(str::to_owned))
    };
    let told = |policy: &str, left: &str| [policy, left].map(|value| Some(value.to_owned()));
    let call = || proxy.send(Call::get("/x").of(&caller));
    let first = fields(&call());
    assert_eq!(
        first,
        told(r#""consumer";q=3;w=60"#, r#""consumer";r=2;t=20"#)
    );
    // An unauthenticated caller learns nothing of the rate, and a call that is not permitted counts.
    let forged = proxy.send(Call::get("/x").of(&caller).key("forged&forged"));
    assert_eq!(fields(&forged), [None, None]);
    let calls: Vec<_> = (0..3).map(|_| call()).collect();
    calls[2].has_status(429);
    let [policy, left] = fields(&calls[2]);
    assert_eq!(policy.as_deref(), Some(r#""consumer";q=3;w=60"#));
    assert!(left.unwrap().starts_with(r#""consumer";r=0;t="#));
    // Its own rate is in force at once, and a token call tells it too.
    let key = &caller.consumer.key;
    let update = ["consumer", "update", key, "--rate", "50 per 100m"];
    proxy.command(&update).done();
    until("its own rate is in force", || {
        fields(&call())[0].as_deref() == Some(r#""consumer";q=50;w=6000"#)
    });
    let asked = proxy.send(asks(&caller.consumer, "oob"));
    assert_eq!(
        fields(&asked)[0].as_deref(),
        Some(r#""consumer";q=50;w=6000"#)
    );
    // Another consumer keeps the usual one.
    let other = proxy.consumer("Other");
    let asked = proxy.send(asks(&other, "oob"));
    assert_eq!(fields(&asked)[0].as_deref(), Some(r#""consumer";q=3;w=60"#));
}

#[test]
fn without_a_rate_a_response_has_no_field_about_it() {
    let (_api, proxy, caller) = Scene::with("").into_parts();
    let answer = proxy.send(Call::get("/x").of(&caller));
    answer.has_status(200);
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(answer.header("ratelimit-policy"), None);
}

#[test]
fn token_calls_count_against_the_rate() {
    let (_api, proxy, caller) =
        Scene::with("limits.requests_per_consumer = '4 per 60s'").into_parts();
    let consumer = &caller.consumer;
    let ask = || proxy.send(asks(consumer, "oob"));
    let undecided = token_of(&ask());
    proxy.passes(Call::get("/x").of(&caller));
    // A call that gets no token counts too, and one with a wrong signature does not.
    let early = exchanges(consumer, &undecided, "1");
    proxy.send(early).is(401, "permission_unknown");
    for _ in 0..5 {
        let forged = asks(consumer, "oob").key("forged&");
        proxy.send(forged).is(401, "signature_invalid");
    }
    proxy.passes(Call::get("/x").of(&caller));
    let limited = [
        ask(),
        proxy.send(Call::post(REVOKE_TOKEN).of(&caller)),
        proxy.send(Call::get("/x").of(&caller)),
    ];
    for response in limited {
        response.has_status(429);
        assert!(response.header("Retry-After").is_some(), "{response:?}");
    }
    let other = proxy.consumer("Other");
    proxy.send(asks(&other, "oob")).has_status(200);
}

#[test]
fn consumer_has_a_limit_of_undecided_request_tokens() {
    let (_api, proxy, caller) =
        Scene::with("limits.request_tokens_per_consumer = 3\ntokens.request_ttl = '3s'")
            .into_parts();
    let ask = || proxy.send(asks(&caller.consumer, "oob"));
    until("three of them are open", || {
        let answers: Vec<_> = (0..4).map(|_| ask()).collect();
        answers.iter().any(|answer| {
            answer.status == 429
                && answer.header("Retry-After") == Some("3")
                && answer.text().contains("request tokens")
        })
    });
    let other = proxy.consumer("Other");
    proxy.send(asks(&other, "oob")).has_status(200);
    until("they have ended", || ask().status == 200);
}

#[test]
fn observe_mode_lifts_neither_limits_nor_the_rules_of_http() {
    let Scene { api, proxy, caller } = Scene::with(
        "signature.enforcement = 'observe'\nlimits.requests_per_consumer = '3 per 60s'",
    );
    let call = || Call::get("/x").of(&caller);
    for _ in 0..3 {
        proxy.send(call()).has_status(200);
    }
    proxy.send(call()).has_status(429);
    assert_eq!(api.count(), 3);
    // A body that is buffered for its hash, and breaks off in the middle.
    let hashed = Call::post("/x")
        .of(&caller)
        .parameter("oauth_body_hash", "2jmj7l5rSw0yVb/vlWAYkK/YBwk=")
        .chunked(&[b"first"]);
    let wire = proxy.wire(&hashed);
    let broken = wire.strip_suffix(b"0\r\n\r\n").unwrap();
    let mut connection = proxy.connect();
    connection.send(&[broken, b"zz\r\n"].concat());
    connection.answer("POST").has_status(400);
    assert_eq!(api.count(), 3);
}

#[test]
fn a_call_that_is_not_permitted_counts_against_the_rate() {
    let api = Upstream::start();
    for (enforcement, status) in [("enforce", 404), ("observe", 200)] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "signature.enforcement = '{enforcement}'\n\
                limits.requests_per_consumer = '3 per 60s'\n\
                operation = [{{ path = '/x', permission = 'p' }}]\n\
                permission = [{{ name = 'p', title = 'P' }}]"
            ),
        );
        let caller = proxy.somebody();
        for target in ["/x", "/else", "/x"] {
            let call = Call::get(target).of(&caller);
            proxy.send(call).has_status(status);
        }
        let seen = api.count();
        for call in [
            Call::get("/x").of(&caller),
            Call::get("/x").by(&caller.consumer),
        ] {
            proxy.send(call).has_status(429);
        }
        assert_eq!(api.count(), seen, "{enforcement}");
    }
}

#[test]
fn full_nonce_window_rejects_signed_requests_forgetting_nothing() {
    let Scene { api, proxy, caller } =
        Scene::with("nonce.max_entries = 3\noperations.unlisted = 'consumer'");
    let (time, call) = (now().to_string(), || Call::get("/x").of(&caller));
    let first = || {
        call()
            .parameter("oauth_nonce", "first")
            .parameter("oauth_timestamp", &time)
    };
    proxy.send(first()).has_status(200);
    proxy.send(call()).has_status(200);
    proxy.send(call()).has_status(200);
    for _ in 0..5 {
        let answer = proxy.send(call());
        answer.has_status(503);
        assert!(answer.fields.has("retry-after"), "{answer:?}");
    }
    let again = proxy.send(first());
    assert!(
        again.status == 503 || again.problem().as_deref() == Some("nonce_used"),
        "{again:?}"
    );
    assert_eq!(api.count(), 3);
}

/// A form that never ends, sent through a trusted proxy by a caller at this address.
fn stalled_form(proxy: &Proxy, target: &str, address: &str, sent: usize) -> Connection {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: {address}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        proxy.host(),
        sent + 1,
    );
    let mut connection = proxy.connect();
    connection.send(&[head.as_bytes(), &vec![b'a'; sent]].concat());
    connection
}

/// Unauthenticated callers who stall forms do not keep others out, from however many addresses: the oldest unfinished form is
/// dropped to make room.
#[test]
fn stalled_forms_make_room_for_others() {
    let (_api, proxy, caller) = Scene::with(
        "limits = { form_bytes = '1KiB', form_memory = '4KiB' }\nlisten = { workers = 2, trusted_proxies = '127.0.0.1' }",
    ).into_parts();
    let form = format!("a={}", "x".repeat(500));
    let mut held: Vec<Connection> = Vec::new();
    for number in 0..20 {
        let address = format!("192.0.2.{number}");
        held.push(stalled_form(&proxy, "/x", &address, 1_000));
        let call = Call::post("/x").of(&caller);
        let call = call.header("X-Forwarded-For", "203.0.113.9").form(&form);
        proxy.send(call).has_status(200);
    }
    // Four of them have room.
    for connection in &mut held[..15] {
        connection.answer("POST").has_status(503);
    }
}

/// A caller that stalls forms uses up its own memory only, not that of other callers or of logins.
#[test]
fn address_takes_no_form_memory_of_others_or_of_logins() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "limits = { form_bytes = '16KiB', form_memory = '64KiB' }\nlisten.trusted_proxies = '127.0.0.1'",
    );
    let alice = proxy.somebody();
    let post = |address: &str| {
        let call = Call::post("/x").of(&alice);
        call.header("X-Forwarded-For", address).form("a=1&b=2")
    };
    // Addresses of one caller: a /64, and an IPv4 address in two spellings.
    for (addresses, others) in [
        (["2001:db8:1:2::1", "2001:db8:1:2:ff::9"], "2001:db8:1:3::1"),
        (["192.0.2.1", "::ffff:192.0.2.1"], "192.0.2.2"),
        (["127.0.0.1", "127.0.0.1"], "192.0.2.3"),
    ] {
        // A form of another caller, for which there is room.
        let mut earlier = stalled_form(&proxy, "/x", others, 4_096);
        let dropped = || proxy.metric("countersign_requests_total{verdict=\"unavailable\"}");
        let before = dropped();
        let held: Vec<_> = (0..24)
            .map(|number| stalled_form(&proxy, "/x", addresses[number % 2], 4_096))
            .collect();
        until("there is room for four", || dropped() >= before + 20.0);
        proxy.send(post(others)).has_status(200);
        proxy.send(post(addresses[0])).has_status(200);
        // Its logins come from another address here; only in the last round is it the same caller.
        let mut visitor = Visitor::to(&proxy);
        let page = visitor.open(LOGIN);
        let after = visitor.log_in(&page, &alice.user);
        assert!(after.answer.status < 400, "{after:?}");
        // The earlier form is completed.
        earlier.send(b"a");
        assert_ne!(earlier.answer("POST").status, 503);
        drop(held);
    }
}

/// A form that cannot pass is rejected without reading it.
#[test]
fn an_unwanted_form_is_rejected_by_its_head_alone() {
    let Scene { api, proxy, caller } =
        Scene::with("operation = [{ path = '/x', methods = ['POST'] }]");
    let unknown = Proxy::in_front_of(&api).start().somebody().consumer;
    let head_of = |call: Call| {
        let wire = proxy.wire(&call.form("a=1"));
        let end = wire
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        wire[..end + 4].to_vec()
    };
    let by = |path: &str| Call::post(path).of(&caller);
    let token_call = "/service.oauth?mode=req_req_token";
    for (name, call, status) in [
        (
            "unknown consumer",
            Call::post("/x").by(&unknown).with(&caller.token),
            401,
        ),
        (
            "old timestamp",
            by("/x").parameter("oauth_timestamp", "1000000000"),
            401,
        ),
        ("no such operation, no credentials", Call::post("/y"), 401),
        (
            "token call of an unknown consumer",
            Call::post(token_call).by(&unknown),
            401,
        ),
    ] {
        let mut connection = proxy.connect();
        connection.send(&head_of(call));
        let answer = connection.answer("POST");
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
    // Credentials may come with the form.
    for call in [by("/x").placed(Placement::Body), by("/x")] {
        proxy.send(call.form("a=1")).has_status(200);
    }
    assert_eq!(api.count(), 2);
}

/// Forms of pages are short, and the time to send one is limited.
#[test]
fn a_stalled_form_of_a_page_has_its_own_deadline() {
    let proxy = Proxy::with(
        &Upstream::start(),
        "limits.page_form_timeout = '200ms'\nlisten.trusted_proxies = '127.0.0.1'",
    );
    let mut page = stalled_form(&proxy, LOGIN, "192.0.2.1", 10);
    page.answer("POST").has_status(408);
}

#[test]
fn forms_of_pages_are_small_and_leave_each_other_room() {
    let (_api, proxy, caller) = Scene::with("listen.trusted_proxies = '127.0.0.1'").into_parts();
    let target = LOGIN;
    let login = |length: usize| Call::post(target).form(&format!("a={}", "x".repeat(length - 2)));
    proxy.send(login(16 * 1024)).has_status(403);
    proxy.send(login(16 * 1024 + 1)).has_status(413);
    let chunk = vec![b'a'; 16 * 1024 + 1];
    let chunked = Call::post(target)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .chunked(&[&chunk]);
    proxy.send(chunked).has_status(413);
    // One address stalls more of them than there is room for.
    let held: Vec<_> = (0..300)
        .map(|_| stalled_form(&proxy, target, "192.0.2.1", 16_383))
        .collect();
    let from = |address| login(1_000).header("X-Forwarded-For", address);
    proxy.send(from("192.0.2.1")).has_status(403);
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open(target);
    let after = visitor.log_in(&page, &caller.user);
    assert!(after.answer.status < 400, "{after:?}");
    // And they do not keep a signed form out.
    let call = Call::post("/x").of(&caller).form("a=1");
    proxy.passes(call.header("X-Forwarded-For", "192.0.2.1"));
    drop(held);
}

#[test]
fn a_form_has_a_bounded_number_of_fields() {
    let Scene { api, proxy, caller } =
        Scene::with("operation = [{ path = '/x' }, { path = '/open', access = ['anonymous'] }]");
    let fields = |count: usize| vec!["a"; count].join("&");
    let signed = |form: &str| Call::post("/x").of(&caller).form(form);
    let open = |form: &str| Call::post("/open").form(form);
    proxy.send(signed(&fields(2_000))).has_status(200);
    proxy.send(open(&fields(2_000))).has_status(200);
    // Empty fields do not count.
    proxy.passes(open(&fields(2_000).replace('&', "&&&")));
    proxy.send(open(&"&".repeat(500_000))).has_status(200);
    assert_eq!(api.count(), 4);
    for form in [fields(2_001), fields(500_000)] {
        proxy.send(signed(&form)).has_status(413);
        proxy.send(Call::post("/x").form(&form)).has_status(413);
        // Without a signature, where every caller may call.
        proxy.passes(open(&form));
        let chunked = Call::post("/x")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .chunked(&[form.as_bytes()]);
        proxy.send(chunked).has_status(413);
    }
    // A form under another media type is a form.
    let other = Call::post("/x").body("text/urlencoded", fields(2_001).as_bytes());
    proxy.send(other).has_status(413);
    assert_eq!(api.count(), 6);
    // The token calls, and bodies that are not forms.
    proxy
        .send(Call::post("/service.oauth?mode=req_req_token").form(&fields(2_001)))
        .has_status(413);
    proxy.passes(Call::post("/open").json(&fields(2_001)));
}

#[test]
fn connections_over_the_limit_are_turned_away() {
    let Scene { api, proxy, caller } = Scene::with("limits.connections = 2");
    let mut kept: Vec<Connection> = (0..2).map(|_| proxy.connect()).collect();
    for connection in &mut kept {
        proxy
            .send_on(connection, Call::get("/x").of(&caller))
            .has_status(200);
    }
    let mut third = proxy.connect();
    // It may be closed before the request is written.
    if third
        .try_send(&proxy.wire(&Call::get("/x").of(&caller)))
        .is_ok()
        && let Ok(Some(answer)) = third.try_answer("GET")
    {
        answer.has_status(503);
        assert!(answer.fields.has("retry-after"));
    }
    assert_eq!(api.count(), 2);
    drop(kept);
    until("there is room again", || {
        let mut connection = proxy.connect();
        let sent = connection.try_send(&proxy.wire(&Call::get("/x").of(&caller)));
        let answer = sent.and_then(|()| connection.try_answer("GET"));
        matches!(answer, Ok(Some(answer)) if answer.status == 200)
    });
}
