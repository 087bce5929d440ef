//! `[[operation]] from`: the networks from which an operation may be called.
//!
//! Promise (Permissions and identity): An operation with `from` admits callers of every kind only from these networks. A claimed
//! address, an unreadable one or that of a proxy opens nothing; without an address the call is rejected. Also in
//! `tests/attacks/networks.rs`.

use crate::support::{
    Answer, Call, Connection, Proxy, Upstream, Visitor,
    gate::{WAYS, Way},
    has,
    proxy::Builder,
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
    // Only after the signature: a stranger does not learn that the address is the reason.
    let forged = from("11.0.0.1", get().of(&caller).signs_method("PUT"));
    proxy.send(forged).is(401, "signature_invalid");
    let line = proxy.logs(&["denied_by=\"from\"", "address=2001:db9::7"]);
    has(&line, &["verdict=\"permission_denied\"", "status=404"]);
}

#[test]
fn forbidden_status_and_observe_mode_apply_as_for_a_permission() {
    let api = Upstream::start();
    let config = format!(
        "operations.forbidden_status = 403\noperation = [{{ path = '/inside', {FROM} }}, \
         {{ path = '/watched', enforcement = 'observe', {FROM} }}]"
    );
    let proxy = Proxy::with(&api, &config);
    let caller = proxy.somebody();
    let send = |target: &str| proxy.send(Call::get(target).of(&caller));
    send("/inside").is(403, "permission_denied");
    api.saw_nothing();
    send("/watched").has_status(200);
    let line = proxy.logs(&["path=\"/watched\"", "verdict=\"observed\""]);
    has(
        &line,
        &["reason=\"permission_denied\"", "denied_by=\"from\""],
    );
}

#[test]
fn preflights_come_from_the_networks_of_an_operation_of_the_path() {
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
