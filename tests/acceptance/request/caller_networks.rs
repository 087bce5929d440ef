//! `[[operation]] from`: the networks from which an operation may be called.
//!
//! Promise (Permissions and identity): An operation or consumer with `from` admits calls only from its networks; a claimed or
//! absent address opens nothing. Also in `tests/attacks/networks.rs`.

use crate::support::{
    Answer, Call, Caller, Connection, Proxy, Upstream, Visitor,
    gate::{WAYS, Way},
    has, legs,
    operator::{Operator, WRITE},
    proxy::Builder,
    until,
};

const FROM: &str = "from = ['10.0.0.0/8', '2001:db8::/32']";

/// Every kind of caller may call `/inside` from there.
fn config() -> String {
    format!(
        "listen.trusted_proxies = ['127.0.0.1']\noperation = [{{ path = '/inside', \
         access = ['consumer', 'application', 'user', 'anonymous'], {FROM} }}]"
    )
}

/// The same call, as a trusted proxy passes it on from an address; without one the proxy does not name the caller.
fn from(address: &str, call: Call) -> Call {
    match address {
        "" => call,
        address => call.header("X-Forwarded-For", address),
    }
}

#[test]
fn every_kind_of_caller_needs_an_address_of_the_operation() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, &config());
    let (caller, user) = (proxy.somebody(), proxy.user("bob"));
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let get = || Call::get("/inside");
    for (address, is_inside) in [
        ("10.1.2.3", true),
        ("2001:db8::7", true),
        ("203.0.113.9, 10.1.2.3", true),
        ("11.0.0.1", false),
        ("2001:db9::7", false),
        ("10.1.2.3, 203.0.113.9", false),
        ("", false),
    ] {
        let of_session = get().header("Sec-Fetch-Site", "same-origin");
        let answers: [Answer; 4] = [
            proxy.send(from(address, get().of(&caller))),
            proxy.send(from(address, get().by(&caller.consumer))),
            proxy.send(from(address, get())),
            visitor.send(from(address, of_session)),
        ];
        for answer in answers {
            match is_inside {
                true => answer.has_status(200),
                false => answer.is(404, "permission_denied"),
            };
        }
    }
    assert_eq!(api.count(), 3 * 4);
    // Only after the signature: an unauthenticated caller does not learn that the address is the reason.
    let forged = from("11.0.0.1", get().of(&caller).signs_method("PUT"));
    proxy.send(forged).is(401, "signature_invalid");
    let line = proxy.logs(&["denied_by=\"from\"", "address=2001:db9::7"]);
    has(&line, &["verdict=\"permission_denied\"", "status=404"]);
}

#[test]
fn forbidden_status_applies_as_for_a_permission() {
    let api = Upstream::start();
    let operation = format!("operation = [{{ path = '/inside', {FROM} }}]");
    let proxy = Proxy::with(
        &api,
        &format!("operations.forbidden_status = 403\n{operation}"),
    );
    let caller = proxy.somebody();
    let call = Call::get("/inside").of(&caller);
    proxy.send(call).is(403, "permission_denied");
    api.saw_nothing();
}

#[test]
fn preflights_come_from_the_networks_of_the_paths_operations() {
    let api = Upstream::start();
    let config = format!(
        "listen.trusted_proxies = ['127.0.0.1']\noperations.preflight = 'forward'\noperation = [\
         {{ path = '/inside', methods = ['PUT'], {FROM} }}, {{ path = '/open', methods = ['PUT'] }}]"
    );
    let proxy = Proxy::with(&api, &config);
    let send = |address: &str, target: &str| {
        let call = Call::new("OPTIONS", target).header("Origin", "https://app.example");
        proxy.send(from(
            address,
            call.header("Access-Control-Request-Method", "PUT"),
        ))
    };
    send("10.1.2.3", "/inside").has_status(200);
    send("11.0.0.1", "/inside").is(404, "permission_denied");
    send("11.0.0.1", "/open").has_status(200);
    assert_eq!(api.count(), 2);
}

#[test]
fn forward_auth_judges_the_described_address_alone() {
    // The gateway's own address is in the network; it is not the caller's.
    let rule = "from = ['127.0.0.0/8', '10.0.0.0/8']";
    for (trusted, is_believed) in [("127.0.0.1", true), ("192.0.2.1", false)] {
        let config = format!(
            "listen.trusted_proxies = ['{trusted}']\n\
             operation = [{{ path = '/inside', access = ['anonymous'], {rule} }}]"
        );
        let proxy = Builder::for_forward_auth().config(&config).start();
        for way in WAYS {
            let status = |fields: &str| {
                let described = way.description(&proxy.origin(), "GET", "/inside");
                let mut connection = Connection::to(proxy.forward_auth());
                connection.send(format!("{described}{fields}\r\n").as_bytes());
                connection.answer("GET").status
            };
            let denied = if way == Way::Nginx { 403 } else { 404 };
            let expected = if is_believed { 200 } else { denied };
            assert_eq!(status("X-Forwarded-For: 10.1.2.3\r\n"), expected, "{way:?}");
            assert_eq!(status("X-Forwarded-For: 11.0.0.1\r\n"), denied, "{way:?}");
            assert_eq!(status("X-Forwarded-For: unknown\r\n"), denied, "{way:?}");
            assert_eq!(status(""), denied, "{way:?}");
        }
    }
}

#[test]
fn check_counts_the_operations_with_it() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, &config());
    let checked = proxy.command(&["check"]);
    has(&checked.stdout, &["1 are listed; 1 with from"]);
}

/// The credentials of a consumer with `from`, and a token of it.
fn restricted(proxy: &Proxy, networks: &str) -> Caller {
    proxy.caller(
        "restricted",
        &format!("--permission read {networks}"),
        "rita",
    )
}

#[test]
fn consumer_calls_from_its_networks_and_is_disabled_elsewhere() {
    let api = Upstream::start();
    let config = "listen.trusted_proxies = ['127.0.0.1']\nlog.access = true\n\
                  operation = [{ path = '/x', access = ['consumer', 'application'] }]";
    let proxy = Proxy::with(&api, config);
    let caller = restricted(&proxy, "--from 10.0.0.0/8 --from 2001:db8::7");
    let calls = || {
        [
            Call::get("/x").of(&caller),
            Call::get("/x").by(&caller.consumer),
            legs::asks(&caller.consumer, "oob"),
        ]
    };
    for address in [
        "10.1.2.3",
        "2001:db8::7",
        "::ffff:10.1.2.3",
        "203.0.113.9, 10.1.2.3",
    ] {
        for call in calls() {
            proxy.send(from(address, call)).has_status(200);
        }
    }
    let elsewhere = [
        "11.0.0.1",
        "2001:db8::8",
        "10.1.2.3, 203.0.113.9",
        "unknown",
        "",
    ];
    let without_id = |answer: &Answer| {
        let fields = [
            "www-authenticate",
            "content-type",
            "cache-control",
            "content-length",
        ];
        let fields = fields.map(|name| answer.header(name).map(str::to_owned));
        (answer.status, fields, answer.text())
    };
    let mut refused = Vec::new();
    for address in elsewhere {
        for call in calls() {
            let answer = proxy.send(from(address, call));
            answer.is(401, "consumer_key_refused");
            refused.push(without_id(&answer));
        }
    }
    // Only a right signature learns that: another one is told what an unrestricted consumer is told.
    let forged = Call::get("/x").of(&caller).signs_method("PUT");
    proxy
        .send(from("11.0.0.1", forged))
        .is(401, "signature_invalid");
    let line = proxy.logs(&["verdict=\"consumer_key_refused\"", "address=2001:db8::8"]);
    has(&line, &["denied_by=\"from\"", "status=401"]);
    // That of a disabled consumer has the same response.
    proxy.run(&format!("consumer disable {}", caller.consumer.key));
    let inside = || from("10.1.2.3", Call::get("/x").by(&caller.consumer));
    until("it is disabled", || proxy.status(inside()) == 401);
    let disabled = calls().map(|call| without_id(&proxy.send(from("10.1.2.3", call))));
    for (index, refused) in refused.iter().enumerate() {
        assert_eq!(*refused, disabled[index % disabled.len()]);
    }
}

#[test]
fn a_state_of_the_token_is_not_told_elsewhere() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "listen.trusted_proxies = ['127.0.0.1']");
    let caller = restricted(&proxy, "--from 10.0.0.0/8");
    let send = |address: &str| proxy.send(from(address, Call::get("/x").of(&caller)));
    proxy.run(&format!("token revoke {}", caller.token.token));
    until("it is revoked", || send("10.1.2.3").status == 401);
    send("10.1.2.3").is(401, "token_revoked");
    send("11.0.0.1").is(401, "consumer_key_refused");
    // A change takes effect within a second.
    proxy.run(&format!(
        "consumer update {} --from 11.0.0.0/8",
        caller.consumer.key
    ));
    let is_moved =
        |answer: Answer| answer.form("oauth_problem").as_deref() == Some("token_revoked");
    until("it has moved", || is_moved(send("11.0.0.1")));
    send("10.1.2.3").is(401, "consumer_key_refused");
}

#[test]
fn an_operator_sees_the_address_and_the_contact() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).with_console().start();
    let caller = restricted(&proxy, "--from 192.0.2.0/24 --contact ops@shop.example");
    proxy
        .send(Call::get("/x").of(&caller))
        .is(401, "consumer_key_refused");
    let operator = Operator::with(&proxy, WRITE);
    for page in ["/rejections", "/"] {
        let page = operator.text(page);
        has(
            &page,
            &[
                "Called from outside its networks",
                "address of this call is 127.0.0.1",
                "ops@shop.example",
            ],
        );
        assert!(!page.contains("/consumer/enable"), "{page}");
    }
}
