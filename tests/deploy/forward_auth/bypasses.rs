//! Requests by which a caller could get past the decision, or invent an identity.

use super::*;

/// The identity headers.
const IDENTITY: [&str; 5] = [
    "X-Auth-User",
    "X-Auth-Consumer",
    "X-Auth-Permissions",
    "X-Auth-Kind",
    "X-Auth-Assertion",
];

/// Another end of a name that begins as one of the gateway's own, and names that are not in use.
const INVENTED: &str = "User Secret Authority Realm Role Roles Admin Tenant Org Email-Address Id Subject Login Name Acl Scope Token \
                        Auth Session Cert Dn Country F Fo Fore Fort For-User Format P Po Por Ports Port-User Pr Pro Prot Protocol \
                        Proto-User Prefix H Ho Hos Hosts Hostname Host-User S Se Ser Serve Servers Server-User Service 1 Port Server";

/// What belongs to one connection, and every further spelling of the target, stops at the gateway.
pub(super) fn forwards_no_bypassing_request(name: &'static str, command: fn(&Path) -> Command) {
    let config = "identity.assertion = { header = 'X-Auth-Assertion', key_files = ['assertion.pem'], audience = 'https://api.internal' }";
    let gateway = Gateway::start(name, config, command);
    let (api, caller) = (&gateway.api, &gateway.caller);
    gateway.becomes_ready(|| Call::get("/ready").of(caller));
    // What the API got from this request: nothing, or one request of this caller.
    let got = |wire: &[u8]| {
        let before = api.count();
        let answer = gateway.send(wire);
        let seen = api.requests_since(before);
        assert!(seen.len() <= 1, "{name}: {seen:?}");
        // Caddy answers 200 for a host without a site.
        let refused = |answer: &Answer| answer.status < 500;
        assert!(
            !seen.is_empty() || answer.as_ref().is_none_or(refused),
            "{name}: {answer:?}\n{}",
            gateway.log()
        );
        for seen in &seen {
            for (field, value) in [
                ("x-auth-user", &caller.user.id),
                ("x-auth-consumer", &caller.consumer.key),
            ] {
                assert_eq!(seen.fields.all(field), [value], "{name}: {seen:?}");
            }
            assert_eq!(seen.fields.all("x-auth-kind"), ["consumer"], "{name}");
            assert_eq!(seen.fields.all("x-auth-assertion").len(), 1, "{name}");
            let allowed = ["close", "keep-alive", "upgrade", ""];
            for options in seen.fields.all("connection") {
                let mut options = options.split(',').map(str::trim);
                let is_allowed = |option: &str| allowed.contains(&&*option.to_lowercase());
                assert!(options.all(is_allowed), "{name}: {seen:?}");
            }
            for field in ["proxy-connection", "keep-alive"] {
                assert!(!seen.fields.has(field), "{name}: {field} in {seen:?}");
            }
            // A gateway that knows trailers may say so itself.
            let te = seen.header("te").unwrap_or("trailers");
            assert_eq!(te, "trailers", "{name}");
        }
        seen.into_iter().next()
    };
    let forwarded = [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "Host",
        "Content-Type",
        "Cookie",
    ];
    for field in IDENTITY.into_iter().chain(forwarded) {
        for lines in [
            &[field][..],
            &[&format!("close, {field}")],
            &[&format!("{},keep-alive", field.to_lowercase())],
            &["keep-alive", field],
            &[&format!("Upgrade, {field}")],
        ] {
            let call = Call::post("/hop").json("{}").of(caller);
            let call = lines
                .iter()
                .fold(call, |call, line| call.header("Connection", line));
            let call = call.header("Proxy-Connection", field);
            got(&call.header("Keep-Alive", field).wire(ORIGIN, HOST));
        }
    }

    for announced in [None, Some(IDENTITY.join(", ")), Some("X-Auth-User".into())] {
        let call = Call::post("/trailers")
            .header("Content-Type", "application/json")
            .chunked(&[b"{}"]);
        let call = call.header("TE", "trailers, deflate").of(caller);
        let call = announced
            .iter()
            .fold(call, |call, names| call.header("Trailer", names));
        let mut wire = call.wire(ORIGIN, HOST);
        wire.truncate(wire.len() - 2);
        for field in IDENTITY.into_iter().chain(["Authorization", "Cookie"]) {
            wire.extend(format!("{field}: forged\r\n").into_bytes());
        }
        wire.extend(b"\r\n");
        if let Some(seen) = got(&wire) {
            assert_eq!(seen.text(), "{}", "{name}");
            // The document says so: HAProxy passes trailers, and Caddy and Traefik their announcement.
            let are_empty = seen.trailers.is_empty();
            assert_eq!(are_empty, name != "haproxy", "{name}: {:?}", seen.trailers);
            let may_announce = ["caddy", "traefik"].contains(&name);
            assert!(
                may_announce || !seen.fields.has("trailer"),
                "{name}: {seen:?}"
            );
        }
    }

    for absolute in words(
        "https://api.example.com https://API.example.com:443 http://api.example.com https://u:p@api.example.com \
         https://api.example.com@evil.test https://evil.test https://auth.example.com HTTPS://api.example.com ftp://api.example.com",
    ) {
        for target in ["/absolute", "/absolute?a=//b", "//absolute"] {
            let wire = latin1(&Call::get(target).of(caller).wire(ORIGIN, HOST));
            let wire = wire.replacen("GET ", &format!("GET {absolute}"), 1);
            if let Some(seen) = got(wire.as_bytes()) {
                assert_eq!(seen.target, target, "{name}: {absolute}");
                let host = seen.header("host").unwrap().to_lowercase();
                let host = host.trim_end_matches(":443");
                assert_eq!(host, HOST, "{name}: {absolute}");
            }
        }
    }

    for target in words(
        "//double/x ///triple //a//b/ //api.example.com/x //evil.test/x?y=//z //u@evil.test/ /.//x //?a=b /a?//b \
         /./x /./ /. /.?a /.;a/x /;a/x /%2e/x /.a/x /a/./b /a/../b /a//../b /a/. /a/b/.. /a/..;b/c / /? /?/./x",
    ) {
        if let Some(seen) = got(&Call::get(target).of(caller).wire(ORIGIN, HOST)) {
            assert_eq!(seen.target, target, "{name}");
        }
    }

    let names = words(INVENTED)
        .into_iter()
        .map(|name| format!("X-Forwarded-{name}"));
    let names: Vec<String> = names
        .chain([
            "X-Forwarded-".into(),
            "X-ForwardedUser".into(),
            "X-Forwarded".into(),
        ])
        .collect();
    for names in names.chunks(30) {
        let call = names
            .iter()
            .fold(Call::get("/invented").of(caller), |call, name| {
                call.header(name, "forged-value")
            });
        let seen = got(&call.wire(ORIGIN, HOST)).expect("it passes");
        let is_forged = |(_, value): &(String, String)| value.contains("forged-value");
        assert!(!seen.fields.0.iter().any(is_forged), "{name}: {seen:?}");
    }
}
