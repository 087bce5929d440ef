//! The host of a request (RFC 9112 §3.2, RFC 9110 §7.2): Host, absolute targets, and invalid targets.
//!
//! Promise (HTTP): A request must name a host of this service, and must not come back to it. Also in `tests/attacks/loops.rs`.

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes, refused},
        script::get,
    },
    support::{rows, words},
};

fn with_host(lines: &str) -> String {
    format!("GET /x HTTP/1.1\r\n{lines}$A[GET /x]\r\n\r\n")
}

#[test]
fn a_request_without_exactly_one_valid_host_is_rejected() {
    let stage = Stage::new("");
    let mut cases: Vec<Case> = [
        ("none", ""),
        ("two that differ", "Host: $H\r\nHost: evil.test\r\n"),
        (
            "two that differ, ours last",
            "Host: evil.test\r\nHost: $H\r\n",
        ),
        ("the same twice", "Host: $H\r\nHost: $H\r\n"),
        ("the same twice in two cases", "Host: $H\r\nhOST: $H\r\n"),
        ("an empty one beside ours", "Host:\r\nHost: $H\r\n"),
        ("a list", "Host: $H, $H\r\n"),
        ("a space before the colon", "Host : $H\r\n"),
        ("folded", "Host:\r\n $H\r\n"),
    ]
    .iter()
    .map(|(name, lines)| refused(name, "RFC 9112 §3.2", 400, with_host(lines)))
    .collect();
    for value in [
        "",
        " ",
        "user@$H",
        "user:pass@$H",
        "@$H",
        "http://$H",
        "//$H",
        "$H/",
        "$H/x",
        "$H?x",
        "$H#x",
        "$H\\x",
        "$H $H",
        "$H:",
        "$H:80",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:99999999999",
        "127.0.0.1:-1",
        "127.0.0.1:+80",
        "127.0.0.1:8 0",
        "127.0.0.1:0x50",
        "127.0.0.1:http",
        "127.0.0.1:80:80",
        ":80",
        "[",
        "]",
        "[]",
        "[::1",
        "::1]",
        "::1",
        "[::1]x",
        "[::1]:",
        "[::g]",
        "[127.0.0.1]",
        "[v1.fe80::a]",
        "[fe80::1%25eth0]",
        "[::1]:[::1]",
        "a b",
        "a\tb",
        "a,b c",
        "<a>",
        "\"a\"",
        "a|b",
        "a^b",
        "a`b",
        "{a}",
        "a\u{e9}",
        "\u{ff}",
        "\0",
        "a\0b",
    ] {
        cases.push(refused(
            &format!("Host: {value:?}"),
            "RFC 3986 §3.2.2; RFC 9112 §3.2",
            400,
            with_host(&format!("Host: {value}\r\n")),
        ));
    }
    stage.play(61, &cases);
}

#[test]
fn a_host_that_is_not_ours_is_misdirected() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for value in words(
        "evil.test localhost 127.0.0.1 127.0.0.1:1 127.0.0.1. evil.test.$H x$H [::1] [::1]:80 0
         0.0.0.0 127.1 2130706433 0x7f000001 %31%32%37.0.0.1 a_b.test a!$&'()*+,;=b",
    ) {
        cases.push(answered(
            &format!("Host: {value}"),
            "RFC 9110 §7.4",
            421,
            with_host(&format!("Host: {value}\r\n")),
        ));
    }
    // No other field of a caller replaces Host.
    for field in [
        "X-Forwarded-Host",
        "X-Host",
        "X-Original-Host",
        "X-HTTP-Host-Override",
        "Forwarded: host=$H\r\nX-Forwarded-Server",
    ] {
        cases.push(answered(
            field,
            "RFC 7239 §8.1; oauth2-proxy CVE-2026-40575",
            421,
            with_host(&format!("Host: evil.test\r\n{field}: $H\r\n")),
        ));
    }
    stage.play(22, &cases);
}

#[test]
fn an_absolute_target_that_contradicts_host_is_rejected() {
    let stage = Stage::new("");
    let request =
        |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\n{host}$A[GET /x]\r\n\r\n");
    let mut cases = Vec::new();
    for [name, target, host] in rows(
        r"
        another host in Host          | http://$H/x                     | Host: evil.test\r\n
        another host in the target    | http://evil.test/x              | Host: $H\r\n
        another port in Host          | http://$H/x                     | Host: 127.0.0.1:1\r\n
        no port in Host               | http://$H/x                     | Host: 127.0.0.1\r\n
        no Host                       | http://$H/x                     |
        an empty Host                 | http://$H/x                     | Host:\r\n
        two Hosts                     | http://$H/x                     | Host: $H\r\nHost: $H\r\n
        an invalid Host               | http://$H/x                     | Host: a b\r\n
        userinfo                      | http://user@$H/x                | Host: $H\r\n
        userinfo that looks like ours | http://$H@evil.test/x           | Host: $H\r\n
        a backslash before the path   | http://$H\\@evil.test/x         | Host: $H\r\n
        no authority                  | http:///x                       | Host: $H\r\n
        one slash                     | http:/x                         | Host: $H\r\n
        no slash                      | http:x                          | Host: $H\r\n
        ftp                           | ftp://$H/x                      | Host: $H\r\n
        file                          | file:///etc/passwd              | Host: $H\r\n
        unix                          | unix:/run/api.sock\|http://$H/x | Host: $H\r\n
        ws                            | ws://$H/x                       | Host: $H\r\n
        gopher                        | gopher://$H/x                   | Host: $H\r\n
        a scheme in front             | xhttp://$H/x                    | Host: $H\r\n
        authority form                | $H                              | Host: $H\r\n
        authority form with a path    | $H/x                            | Host: $H\r\n
        asterisk form                 | *                               | Host: $H\r\n
        asterisk and a path           | */x                             | Host: $H\r\n
    ",
    ) {
        cases.push(refused(
            name,
            "RFC 9112 §3.2.2; Apache CVE-2021-40438",
            400,
            request(target, host),
        ));
    }
    cases.push(answered(
        "OPTIONS *",
        "RFC 9112 §3.2.4",
        204,
        "OPTIONS * HTTP/1.1\r\nHost: $H\r\n$A[OPTIONS /]\r\n\r\n",
    ));
    cases.push(answered(
        "CONNECT with an authority",
        "RFC 9112 §3.2.3",
        405,
        "CONNECT $H HTTP/1.1\r\nHost: $H\r\n\r\n",
    ));
    cases.push(answered(
        "both name another",
        "RFC 9110 §7.4",
        421,
        request("http://evil.test/x", "Host: evil.test\r\n"),
    ));
    cases.push(passes(
        "agreeing",
        "RFC 9112 §3.2.2",
        "GET /x",
        request("http://$H/x", "Host: $H\r\n"),
    ));
    cases.push(passes(
        "the scheme in capitals",
        "RFC 3986 §3.1",
        "GET /x",
        request("HTTP://$H/x", "Host: $H\r\n"),
    ));
    cases.push(passes(
        "no path",
        "RFC 3986 §6.2.3",
        "GET /",
        "GET http://$H HTTP/1.1\r\nHost: $H\r\n$A[GET /]\r\n\r\n",
    ));
    stage.play(30, &cases);
    // Two slashes begin a path, never an authority (RFC 9112 §3.2.1).
    stage.play(
        1,
        &[passes(
            "two slashes",
            "RFC 9112 §3.2.1; opa-envoy-plugin CVE-2026-26205",
            "GET //evil.test/x",
            "GET //evil.test/x HTTP/1.1\r\nHost: $H\r\n$A[GET //evil.test/x]\r\n\r\n",
        )],
    );
    assert!(
        stage
            .api
            .requests()
            .iter()
            .all(|seen| seen.header("host") == Some(&stage.proxy.host()))
    );
}

#[test]
fn the_api_sees_the_host_that_was_verified() {
    let stage = Stage::new("");
    let fields = "X-Forwarded-Host: evil.test\r\nForwarded: host=evil.test\r\nX_Forwarded_Host: evil.test\r\nHTTP_HOST: evil.test";
    stage.play(
        1,
        &[passes(
            "forwarded hosts",
            "Traefik GHSA-5m6w-wvh7-57vm",
            "GET /x",
            get(fields),
        )],
    );
    let seen = stage.api.requests();
    let host = stage.proxy.host();
    assert_eq!(seen[0].fields.all("host"), [host.as_str()]);
    assert_eq!(seen[0].fields.all("x-forwarded-host"), [host.as_str()]);
    assert!(!seen[0].fields.has("forwarded"));
}
