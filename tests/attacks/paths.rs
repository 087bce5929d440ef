//! The path that is matched is the path that the API gets: ambiguous ones are refused (RFC 3986 §6).
//!
//! Promise (Permissions and identity): No spelling of a path hides a stricter operation, or leads out of the published part of
//! the API. Also in `src/request/policy/operations.rs`, `src/request/parse/target.rs`, `tests/attacks/segment_data.rs`,
//! `tests/attacks/similar.rs`, `src/request/policy/operations/similar.rs`.

use crate::{
    attacks::case::{Case, Stage, answered, passes, refused},
    support::{Call, Proxy, Upstream, words},
};

const OPERATIONS: &str = "operation = [\
    { path = '/public/{*rest}', access = ['anonymous'] },\
    { path = '/user/{id}', access = ['anonymous'] },\
    { path = '/admin', permission = 'admin' },\
    { path = '/probe/{id}' }]\n\
    permission = [{ name = 'admin', title = 'Admin' }]";

fn unsigned(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: $H\r\n\r\n")
}

#[test]
fn path_that_resolves_to_another_is_rejected_with_operations() {
    let stage = Stage::new(OPERATIONS);
    let cases: Vec<Case> = [
        ("/public/../admin", "Oathkeeper CVE-2026-33494"),
        ("/public/./../admin", "Oathkeeper CVE-2026-33494"),
        ("/public/x/../../admin", "Oathkeeper CVE-2026-33494"),
        ("/public/..", "Oathkeeper CVE-2026-33494"),
        ("/public/../", "Oathkeeper CVE-2026-33494"),
        ("/public/.", "RFC 3986 §5.2.4"),
        ("/../admin", "RFC 3986 §5.2.4"),
        ("/./admin", "RFC 3986 §5.2.4"),
        ("/public/%2e%2e/admin", "Heimdall CVE-2026-42274"),
        ("/public/%2E%2E/admin", "Heimdall CVE-2026-42274"),
        ("/public/.%2e/admin", "Heimdall CVE-2026-42274"),
        ("/public/%2e./admin", "Heimdall CVE-2026-42274"),
        ("/public/%2e/admin", "RFC 3986 §6.2.2"),
        ("/public/..%2fadmin", "Heimdall CVE-2026-42274"),
        ("/public/..%2Fadmin", "Heimdall CVE-2026-42274"),
        ("/public/%2e%2e%2fadmin", "Heimdall CVE-2026-42274"),
        ("/user/..%2fadmin", "Heimdall CVE-2026-42274"),
        ("/user/%2fadmin", "RFC 3986 §2.2"),
        ("/public/..%5cadmin", "an encoded backslash"),
        ("/public/..%5Cadmin", "an encoded backslash"),
        ("/public/..\\admin", "a backslash"),
        ("/public\\..\\admin", "a backslash"),
        ("/public/%252e%252e/admin", "double encoding"),
        ("/public/..%252fadmin", "double encoding"),
        ("/public/%25", "an encoded %"),
        ("/public/x;/../admin", "path parameters (Tomcat)"),
        ("/public/..;/admin", "path parameters (Tomcat)"),
        ("/public/..;x=y/admin", "path parameters (Tomcat)"),
        ("/public/..%3b/admin", "path parameters, encoded"),
        ("/public;x/admin", "path parameters"),
        ("//admin", "opa-envoy-plugin CVE-2026-26205"),
        ("/public//admin", "empty segment"),
        ("///admin", "empty segments"),
        ("/admin%00", "NUL"),
        ("/public/%00/../admin", "NUL"),
        ("/admin%00.css", "NUL"),
        ("/admin%0a", "LF"),
        ("/admin%0d%0aX-Auth-User:%20root", "CRLF"),
        ("/admin%09", "tab"),
        ("/admin%7f", "DEL"),
        ("/public/%", "an invalid escape"),
        ("/public/%2", "an invalid escape"),
        ("/public/%zz", "an invalid escape"),
        ("/public/%2g", "an invalid escape"),
        ("/public/%u002e%u002e/admin", "IIS's %u"),
    ]
    .iter()
    .map(|(target, source)| refused(target, source, 400, unsigned(target)))
    .collect();
    stage.play(45, &cases);
}

#[test]
fn another_spelling_of_a_protected_path_is_that_path_or_none() {
    let stage = Stage::new(OPERATIONS);
    let mut cases = Vec::new();
    // Unreserved characters may be escaped (RFC 3986 §6.2.2.2): the same operation, refused without credentials.
    for target in words(
        "/admin /%61dmin /%61%64%6d%69%6e /%61%64%6D%69%6E /admin?x=/public/y /admin?
         /admin?/../public/x",
    ) {
        cases.push(answered(target, "RFC 3986 §6.2.2.2", 401, unsigned(target)));
    }
    // Other paths: not listed, so no caller may use them.
    for target in words(
        "/admin/ /public/ /Admin /ADMIN /admin. /admin.css /admin%20 /admin%2e /admin, /admin%c0%80
         /public%c0%af..%c0%afadmin /%ef%bc%a1dmin /admin:x /admin&x /public",
    ) {
        cases.push(answered(
            target,
            "RFC 3986 §6.2.2.1",
            404,
            format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {target}]\r\n\r\n"),
        ));
    }
    // Overlong UTF-8 is never decoded: it stays a segment of its own, byte for byte.
    for target in words(
        "/public/%c0%ae%c0%ae/admin /public/%e0%80%ae/admin /public/%ef%bc%8e%ef%bc%8e/admin
         /public/... /public/..x /public/.x /public/%2ex /public/x?y=../admin /public/%41%2Db",
    ) {
        cases.push(
            passes(
                target,
                "RFC 3629 §3",
                &format!("GET {target}"),
                unsigned(target),
            )
            .anonymous(),
        );
    }
    stage.play(31, &cases);
}

#[test]
fn a_method_beside_those_listed_is_405_whatever_its_spelling() {
    let stage =
        Stage::new("operation = [{ path = '/x', methods = ['GET'] }, { path = '/probe/{id}' }]");
    let cases: Vec<Case> = ["POST", "DELETE", "get", "Get", "GET_", "PATCH", "PROPFIND"]
        .iter()
        .map(|method| {
            answered(
                method,
                "RFC 9110 §15.5.6",
                405,
                format!(
                    "{method} /x HTTP/1.1\r\nHost: $H\r\n$A[{} /x]\r\n\r\n",
                    method.to_ascii_uppercase()
                ),
            )
        })
        .collect();
    stage.play(7, &cases);
    stage.play(
        1,
        &[passes(
            "HEAD as GET",
            "RFC 9110 §9.3.2",
            "HEAD /x",
            "HEAD /x HTTP/1.1\r\nHost: $H\r\n$A[HEAD /x]\r\n\r\n",
        )],
    );
}

#[test]
fn an_escape_hides_no_operation() {
    let stage = Stage::new(
        "operation = [\
            { path = '/v1/{name}', access = ['anonymous'] },\
            { path = '/v1/items:purge', methods = ['POST'], permission = 'purge' },\
            { path = '/v1/a%20b', permission = 'purge' },\
            { path = '/v1/%C3%A9', permission = 'purge' },\
            { path = '/v1/%7Bname%7D', permission = 'purge' },\
            { path = '/files/{*rest}', access = ['anonymous'] },\
            { path = '/files/%24secret/keys', permission = 'purge' },\
            { path = '/probe/{id}' }]\n\
        permission = [{ name = 'purge', title = 'Purge' }]",
    );
    let mut cases = Vec::new();
    for (method, target) in [
        ("POST", "/v1/items:purge"),
        ("POST", "/v1/items%3Apurge"),
        ("POST", "/v1/items%3apurge"),
        ("POST", "/v1/%69tems%3Apurge"),
        ("POST", "/v%31/items%3apurg%65?x"),
        ("GET", "/v1/items%3Apurge"),
        ("GET", "/v1/a%20b"),
        ("GET", "/v1/%61%20%62"),
        ("GET", "/v1/%c3%a9"),
        ("GET", "/v1/%C3%a9"),
        ("GET", "/v1/%7bname%7d"),
        ("GET", "/v1/{name}"),
        ("HEAD", "/v1/{name%7D"),
        ("GET", "/files/$secret/keys"),
        ("GET", "/files/%24secret/keys"),
        ("GET", "/files/%24%73ecret/key%73"),
    ] {
        cases.push(answered(
            &format!("{method} {target}"),
            "RFC 3986 §2.4",
            401,
            format!("{method} {target} HTTP/1.1\r\nHost: $H\r\n\r\n"),
        ));
    }
    // Paths that could be read in two ways.
    for target in words("/v1/items%3Bpurge /v1/items%2Fpurge /v1/items%253Apurge") {
        cases.push(refused(target, "RFC 3986 §2.4", 400, unsigned(target)));
    }
    // Paths other than the listed ones are forwarded byte for byte.
    for target in words(
        "/v1/items%3A /v1/items%21purge /v1/a+b /v1/%e9 /v1/%40me%c0%ae /files/%24secret
         /files/%24secret/keys%3F",
    ) {
        let seen = format!("GET {target}");
        cases.push(passes(target, "RFC 3986 §2.4", &seen, unsigned(target)).anonymous());
    }
    stage.play(26, &cases);
}

#[test]
fn permission_for_a_variable_segment_covers_no_literal_one() {
    let api = Upstream::start();
    for pattern in ["/users/@me", "/users/%40me"] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "operation = [\
                    {{ path = '/users/{{id}}', permission = 'read' }},\
                    {{ path = '{pattern}', permission = 'self' }}]\n\
                permission = [{{ name = 'read', title = 'R' }}, {{ name = 'self', title = 'S' }}]"
            ),
        );
        let both = "--permission read --permission self";
        let (consumer, user) = (proxy.consumer_with("Shop", both), proxy.user("alice"));
        for (permission, literal, other) in [("read", 404, 200), ("self", 200, 404)] {
            let token = proxy.token_with(&consumer, &user, &format!("--permission {permission}"));
            for (target, status) in [
                ("/users/@me", literal),
                ("/users/%40me", literal),
                ("/users/%40%6De", literal),
                ("/users/@you", other),
                ("/users/%40you", other),
            ] {
                let before = api.count();
                let call = Call::get(target).by(&consumer).with(&token);
                proxy.send(call).has_status(status);
                let seen = api.requests_since(before);
                let targets: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
                let expected = if status == 200 { &[target][..] } else { &[] };
                assert_eq!(targets, expected, "{permission} {pattern}");
            }
        }
    }
}

#[test]
fn no_reading_of_a_path_leaves_the_published_part() {
    let api = Upstream::start();
    let below = |path: &str| format!("upstream.api_url = '{}{path}'\n", api.url());
    let public = |prefix: &str, mode: &str| {
        format!(
            "service.base_url = 'https://api.test'\n\
            service.public_api_urls = ['https://api.test{prefix}']\nservice.prefix = '{mode}'\n"
        )
    };
    for (config, called, sent) in [
        (below("/v1"), "", "/v1"),
        (below("/v1") + &public("/shop", "strip"), "/shop", "/v1"),
        (below("/v1") + &public("/shop", "restore"), "", "/v1"),
        (below("/v1") + &public("/shop", "keep"), "/shop", "/v1/shop"),
        (
            below("") + &public("/shop/v1", "keep"),
            "/shop/v1",
            "/shop/v1",
        ),
    ] {
        let proxy = Proxy::with(&api, &config);
        let caller = proxy.somebody();
        let signed = if config.contains("restore") {
            "/shop"
        } else {
            ""
        };
        let send = |path: &str| {
            let target = format!("{called}{path}");
            let call = Call::get(&target).of(&caller);
            proxy.send(call.signs_target(&format!("{signed}{target}")))
        };
        let before = api.count();
        for path in words(
            r"/../secret /a\b/../../secret /a%5cb/../../secret /a%2fb/../../secret
             /a%2Fb/%2e%2e/.%2E/secret /a\..\..\secret /a%5c..%5C..%5csecret /..%2fsecret
             /..\secret /x/..;y/..;z=1/secret /;x/../secret /a//../../secret /a//..//../secret
             /./../secret /%2e/../secret /%252e%252e/secret /a%252fb/../../secret /..%00/secret
             /..%20/secret /%20/../secret /%c0%ae%c0%ae/secret /..%c0%afsecret
             /a%e0%80%afb/../../secret /%u002e%u002e/secret /..%3b/secret /..%3f/../secret",
        ) {
            let answer = send(path);
            assert_eq!(answer.status, 400, "{config}{path}: {answer:?}");
        }
        assert_eq!(api.count(), before);
        // Paths that stay within the prefix are forwarded byte for byte.
        for path in words(
            r"/a/../b /a\b/../c /a%5Cb/.. /a%2fb/../c /a%2f../b /a;x/../b /a//..//b /a%00b/..
             /caf%e9/../x /..a/...",
        ) {
            send(path).has_status(200);
            assert_eq!(api.last_request().target, format!("{sent}{path}"));
        }
    }
}
