//! Paths that a proxy and countersign could read in two ways.

use super::*;

/// The gateway forwards the target that was decided on, however it normalizes paths.
pub(super) fn no_reading_of_a_path_passes(name: &'static str, command: fn(&Path) -> Command) {
    let config = "operation = [{ path = '/open/{*rest}', access = ['anonymous'] }, { path = '/private' }, \
                  { path = '/only', methods = ['GET'] }, \
                  { path = '/socket', access = ['anonymous'], upgrade = ['websocket'] }]";
    let gateway = Gateway::start(name, config, command);
    let api = &gateway.api;
    gateway.becomes_ready(|| Call::get("/open/ready"));
    for target in words(
        "/private /private? /PRIVATE /Private /priv%61te /%70rivate /private/ //private /./private /open/../private \
         /open/./../private /open//../private /open/%2e%2e/private /open/%2E./private /open/..%2fprivate \
         /open/..%5cprivate /open\\..\\private /open/..;/private /open;/../private /open/x%00/../../private \
         /open%2f..%2fprivate /open/%252e%252e/private /open/#/../private /private#/open/x \
         /private?/open/x /open/x/../../private?a=b https://api.example.com/private /open/%zz /open/a%20b/../../private \
         /%6fpen/../private /open/.%09./private * private ../private",
    ) {
        for method in ["GET", "get", "POST"] {
            let before = api.count();
            let wire = forged(Call::new(method, target)).wire(ORIGIN, HOST);
            let answer = gateway.send(&wire);
            let seen = api.requests_since(before);
            assert!(
                answer.is_none_or(|answer| answer.status >= 300),
                "{name}: {method} {target} {seen:?}"
            );
            assert!(seen.is_empty(), "{name}: {method} {target}: {seen:?}");
        }
    }
    for target in words(
        "/open/a?b=1&a=2&b=0 /open/a%41?x=%41+%20 /open/a,b:c@d!$'()*+= /open/x?/../private /open/x?a=//b/../c",
    ) {
        let before = api.count();
        let answer = gateway.call(&Call::get(target));
        assert_eq!(answer.status, 200, "{target} {answer:?}\n{}", gateway.log());
        let seen = api.requests_since(before);
        let expected = if name == "traefik" {
            target.replace("a%41?", "aA?")
        } else {
            target.to_owned()
        };
        assert_eq!(seen[0].target, expected, "{name}");
        assert_eq!(seen[0].header("x-auth-kind"), Some("anonymous"), "{name}");
        assert!(
            seen[0].header("x-auth-user").unwrap_or_default().is_empty(),
            "{name}"
        );
        let assertion = seen[0].header("x-auth-assertion");
        assert_eq!(assertion, None, "{name}: none is configured");
        // The end of OAuth 1.0a is announced to signers alone: the API's own field is kept.
        assert!(!answer.fields.has("deprecation"), "{name}: {answer:?}");
        let own = ["Thu, 01 Jan 2099 00:00:00 GMT"];
        assert_eq!(answer.fields.all("sunset"), own, "{name}");
    }
    let caller = &gateway.caller;
    gateway.refuses(&Call::get("/nothing").of(caller), 404);
    let answer = gateway.refuses(&Call::post("/only").of(caller), 405);
    // Apache writes an Allow of its own.
    let allow = answer.header("Allow").unwrap_or_default();
    assert!(name == "apache" || allow.contains("GET"), "{answer:?}");
    let navigation = Call::get("/private").header("Accept", "text/html");
    gateway.refuses(&navigation, 401);
    let socket = |target: &str| {
        let call = Call::get(target)
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket");
        call.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("Sec-WebSocket-Version", "13")
    };
    gateway.refuses(&socket("/open/x"), 404);
    let before = api.count();
    gateway.send(&socket("/socket").wire(ORIGIN, HOST));
    let seen = api.requests_since(before);
    // Apache passes an upgrade on only where `ProxyPass` says so.
    let expected = (name != "apache").then_some("websocket");
    assert_eq!(seen[0].header("upgrade"), expected, "{name}");
    // An upgrade hidden from the decision does not pass.
    for (connection, upgrade, key) in [
        ("Upgrade, Sec-WebSocket-Key", "websocket", "x"),
        ("Sec-WebSocket-Key, Upgrade", "websocket", "x"),
        ("Upgrade", "websocket", ""),
        ("Upgrade", "h2c", ""),
        ("Upgrade", "h2c", "x"),
        ("Upgrade, Upgrade", "h2c, websocket", "x"),
    ] {
        let call = Call::get("/open/x")
            .header("Connection", connection)
            .header("Upgrade", upgrade)
            .header("Sec-WebSocket-Key", key);
        let before = api.count();
        gateway.send(&call.wire(ORIGIN, HOST));
        let seen = api.requests_since(before);
        let is_plain = |seen: &Seen| !seen.fields.has("upgrade");
        assert!(
            seen.iter().all(is_plain),
            "{name}: {connection} {upgrade} {key}: {seen:?}"
        );
    }
    // Two fields of one name, two lines that end a head, or a second Host.
    for head in [
        "GET /open/x HTTP/1.1\r\nHost: api.example.com\r\nHost: auth.example.com\r\n\r\n",
        "GET https://auth.example.com/open/x HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        "GET https://u@api.example.com/private HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: api.example.com:1\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET /open/x HTTP/1.1\r\nHost: evil.example,api.example.com\r\n\r\n",
    ] {
        let before = api.count();
        let answer = gateway.send(head.as_bytes());
        // Only its own host, whatever the port.
        let is_ours = |seen: &Seen| {
            seen.target == "/open/x"
                && seen
                    .header("host")
                    .is_some_and(|host| host.starts_with(HOST))
        };
        let seen = api.requests_since(before);
        assert!(
            seen.iter().all(is_ours),
            "{name}: {head} {answer:?} {seen:?}"
        );
    }
}
