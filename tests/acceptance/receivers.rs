//! What programs need that receive two-legged signed calls: tools of learning platforms, outcome services, partners' webhooks.

use crate::support::{Call, Placement, Scene, proxy::Proxy};

/// An operation for calls without a token, and one that demands a token.
const TWO_LEGGED: &str = "operation = [
    { path = '/launch', access = ['application'] },
    { path = '/orders', access = ['consumer'] },
]";

#[test]
fn an_empty_oauth_token_is_as_if_absent_on_every_two_legged_call() {
    let Scene { api, proxy, caller } = Scene::with(TWO_LEGGED);
    let call = |target: &str| {
        let call = Call::post(target).form("user_id=7").by(&caller.consumer);
        call.parameter("oauth_token", "")
    };
    for placement in [Placement::Header, Placement::Query, Placement::Body] {
        proxy.passes(call("/launch").placed(placement));
        let seen = api.last_request();
        assert_eq!(seen.header("x-auth-kind"), Some("application"));
        let target = seen.target.trim_end_matches('?');
        assert_eq!((target, &*seen.text()), ("/launch", "user_id=7"));
    }
    // It is signed as it was sent, and a nonce is used for both spellings.
    let unsigned = Call::post("/launch").by(&caller.consumer);
    proxy.rejects(
        unsigned.spoiled("oauth_token", ""),
        401,
        "signature_invalid",
    );
    let time = crate::support::now().to_string();
    let same = |call: Call| {
        let call = call.parameter("oauth_nonce", "once");
        call.parameter("oauth_timestamp", &time)
    };
    proxy.passes(same(call("/launch")));
    let again = Call::post("/launch").by(&caller.consumer);
    proxy.rejects(same(again), 401, "nonce_used");
    // Where a token is needed there is none.
    let count = api.count();
    for placement in [Placement::Header, Placement::Body] {
        proxy.rejects(call("/orders").placed(placement), 401, "token_rejected");
    }
    proxy.rejects(call("/unlisted"), 401, "token_rejected");
    assert_eq!(api.count(), count);
}

/// A request of this call whose signature has a `+`, and the same with the `+` as it is, which a query or form reads as a space.
fn bare_plus(proxy: &Proxy, call: &Call) -> (String, String) {
    let wire = std::iter::repeat_with(|| String::from_utf8(proxy.wire(call)).unwrap());
    let signature = |wire: &String| {
        let (_, rest) = wire.split_once("oauth_signature=").unwrap();
        rest.split(['&', ' ', '\r']).next().unwrap().to_owned()
    };
    let mut found = wire.filter(|wire| signature(wire).contains("%2B"));
    let escaped = found.next().unwrap();
    let sent = signature(&escaped);
    let bare = escaped.replace(&sent, &sent.replace("%2B", "+"));
    (escaped, bare)
}

#[test]
fn a_space_in_a_signature_is_a_plus_that_was_not_escaped() {
    let Scene { api, proxy, caller } = Scene::with(TWO_LEGGED);
    let call = Call::post("/launch").json("{}").by(&caller.consumer);
    let call = call.placed(Placement::Query);
    let send = |wire: &str| {
        let mut connection = proxy.connect();
        connection.send(wire.as_bytes());
        connection.answer("POST")
    };
    let (_, bare) = bare_plus(&proxy, &call);
    send(&bare).has_status(200);
    assert_eq!(api.last_request().target, "/launch?");
    // It is the same request: its nonce is used now.
    send(&bare.replace('+', "%2B")).is(401, "nonce_used");
    // A space is nothing but a plus.
    let (_, bare) = bare_plus(&proxy, &call);
    for wrong in [bare.replace('+', "%2F"), bare.replace('+', "++")] {
        send(&wrong).is(401, "signature_invalid");
    }
    // The doctor still tells the developer.
    let target = bare.split(' ').nth(1).unwrap();
    let url = format!("{}{target}", proxy.origin());
    let type_field = "Content-Type: application/json";
    let arguments = [
        "explain", "POST", &url, "--header", type_field, "--data", "{}",
    ];
    let explained = proxy.command(&arguments).done();
    for part in ["the signature matches", "signature_not_encoded"] {
        assert!(explained.stdout.contains(part), "{explained:?}");
    }
    let json = proxy
        .command(&[&arguments[..], &["--json"]].concat())
        .done()
        .json();
    assert_eq!(json["matches"], true);
    let diagnosis = json["diagnosis"].as_str().unwrap();
    assert!(
        diagnosis.starts_with("signature_not_encoded"),
        "{diagnosis}"
    );
}
