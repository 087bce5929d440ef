//! The path that is matched is the path that the API gets: what it could read as another one is refused (RFC 3986 §6).

use crate::case::{Case, Stage, answered, passes, refused};

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
fn a_path_that_resolves_to_another_is_refused_where_operations_are_matched() {
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
        ("/admin/", "empty segment at the end"),
        ("/public/", "empty segment at the end"),
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
    stage.play(47, &cases);
}

#[test]
fn another_spelling_of_a_protected_path_is_that_path_or_none() {
    let stage = Stage::new(OPERATIONS);
    let mut cases = Vec::new();
    // Unreserved characters may be escaped (RFC 3986 §6.2.2.2): the same operation, refused for want of credentials.
    for target in [
        "/admin",
        "/%61dmin",
        "/%61%64%6d%69%6e",
        "/%61%64%6D%69%6E",
        "/admin?x=/public/y",
        "/admin?",
        "/admin?/../public/x",
    ] {
        cases.push(answered(target, "RFC 3986 §6.2.2.2", 401, unsigned(target)));
    }
    // Other paths: listed nowhere, so nobody's.
    for target in [
        "/Admin",
        "/ADMIN",
        "/admin.",
        "/admin.css",
        "/admin%20",
        "/admin%2e",
        "/admin,",
        "/admin%c0%80",
        "/public%c0%af..%c0%afadmin",
        "/%ef%bc%a1dmin",
        "/admin:x",
        "/admin&x",
        "/public",
    ] {
        cases.push(answered(
            target,
            "RFC 3986 §6.2.2.1",
            404,
            format!("GET {target} HTTP/1.1\r\nHost: $H\r\n$A[GET {target}]\r\n\r\n"),
        ));
    }
    // Overlong UTF-8 is never decoded: it stays a segment of its own, byte for byte.
    for target in [
        "/public/%c0%ae%c0%ae/admin",
        "/public/%e0%80%ae/admin",
        "/public/%ef%bc%8e%ef%bc%8e/admin",
        "/public/...",
        "/public/..x",
        "/public/.x",
        "/public/%2ex",
        "/public/x?y=../admin",
        "/public/%41%2Db",
    ] {
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
    stage.play(29, &cases);
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
