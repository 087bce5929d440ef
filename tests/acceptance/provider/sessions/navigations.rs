//! A browser that opens a page of the API without a session, and the way back.

use super::*;

const CHROMIUM: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// A browser opens an address, as Chromium does.
fn navigation(target: &str) -> Call {
    Call::get(target)
        .header("Accept", CHROMIUM)
        .header("Sec-Fetch-Mode", "navigate")
        .header("Sec-Fetch-Dest", "document")
}

#[test]
fn a_navigation_without_a_session_goes_to_the_login_and_back() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let user = proxy.user("alice");
    let target = "/account?a=b%26c&return_to=//evil.test";
    let login = "/service.oauth?mode=login&return_to=%2Faccount%3Fa%3Db%2526c%26return_to%3D%2F%2Fevil.test";
    for site in ["none", "same-origin", "cross-site"] {
        let answer = proxy.send(navigation(target).header("Sec-Fetch-Site", site));
        assert_eq!(answer.status, 303, "{site}: {answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("location"), Some(login));
    }
    api.saw_nothing();
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open(target);
    visitor.log_in(&login, &user).answer.has_status(200);
    assert_eq!(api.only_request().target, target);
    // An ended session is handled the same way.
    for value in visitor.cookies.values_mut() {
        let first = if value.starts_with('0') { "1" } else { "0" };
        value.replace_range(..1, first);
    }
    let over = navigation("/open").header("Sec-Fetch-Site", "none");
    visitor.send(over).has_status(303);
    assert_eq!(api.count(), 1);
}

#[test]
fn nothing_but_a_navigation_of_a_user_goes_to_the_login() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let caller = proxy.somebody();
    let bare = |target: &str| Call::get(target).header("Accept", CHROMIUM);
    for (what, call) in [
        ("an operation for consumers", navigation("/orders")),
        ("an unlisted path", navigation("/else")),
        (
            "no HTML",
            Call::get("/account").header("Sec-Fetch-Mode", "navigate"),
        ),
        (
            "a script",
            bare("/account").header("Sec-Fetch-Mode", "cors"),
        ),
        (
            "a page's own request",
            bare("/account").header("Sec-Fetch-Site", "same-origin"),
        ),
        (
            "a frame",
            bare("/account")
                .header("Sec-Fetch-Mode", "navigate")
                .header("Sec-Fetch-Dest", "iframe"),
        ),
        (
            "a form",
            Call::post("/account")
                .header("Accept", CHROMIUM)
                .header("Sec-Fetch-Mode", "navigate"),
        ),
        (
            "a signed call",
            navigation("/account").of(&caller).key("wrong"),
        ),
    ] {
        let answer = proxy.send(call);
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
        assert!(answer.header("location").is_none(), "{what}: {answer:?}");
    }
    api.saw_nothing();
}

#[test]
fn the_login_redirects_back_only_to_a_path_of_ours() {
    let proxy = Proxy::with(&Upstream::start(), "operations.unlisted = 'user'");
    let user = proxy.user("alice");
    let long = format!("/{}", "a".repeat(3_000));
    let mut redirected = 0;
    for target in ["//evil.test/", "/\\evil.test", "/.//evil.test/", &long] {
        let mut visitor = Visitor::to(&proxy);
        let answer = visitor.send(
            Call::get(target)
                .header("Sec-Fetch-Mode", "navigate")
                .header("Sec-Fetch-Site", "none"),
        );
        let Some(location) = answer.header("location") else {
            assert_eq!(answer.status, 400, "{target}: {answer:?}");
            continue;
        };
        redirected += 1;
        assert!(location.starts_with(LOGIN), "{location}");
        let login = visitor.open(location);
        let after = visitor.log_in(&login, &user);
        assert_eq!(after.target, APPLICATIONS, "{target}");
    }
    assert!(redirected >= 2, "{redirected}");
}

#[test]
fn a_rejection_as_a_page_is_escaped_protected_and_not_cached() {
    let proxy = with_user_operations(&Upstream::start())
        .config("service.realm = 'a <b> & c'\nsignature.advice = 'full'")
        .start();
    let caller = proxy.somebody();
    let signed = |target: &str| Call::get(target).of(&caller);
    for (call, status, problem) in [
        (
            signed("/orders?x=%3Ci%3E&y='%22").key("wrong"),
            401,
            Some("signature_invalid"),
        ),
        (Call::get("/orders"), 401, Some("parameter_absent")),
        (
            signed("/orders?oauth_%3Ci%3E=1"),
            400,
            Some("parameter_rejected"),
        ),
        (
            Call::get("/service.oauth?mode=%3Ci%3E"),
            400,
            Some("parameter_rejected"),
        ),
        (Call::get(REVOKE_TOKEN), 405, None),
        (Call::get("/a%00b"), 400, Some("parameter_rejected")),
        (Call::get("/orders").host("evil.test"), 421, None),
    ] {
        let answer = proxy.send(call.header("Accept", CHROMIUM));
        answer.has_status(status);
        assert_eq!(answer.problem().as_deref(), problem, "{answer:?}");
        let text = answer.text();
        assert!(text.contains("a &#60;b&#62; &#38; c"), "{text}");
        assert!(!text.contains("<i>"), "{text}");
        let field = |name| answer.header(name).unwrap_or_default().to_owned();
        assert_eq!(field("content-type"), "text/html; charset=utf-8");
        assert_eq!(field("cache-control"), "no-store");
        assert_eq!(field("x-content-type-options"), "nosniff");
        assert_eq!(field("x-frame-options"), "DENY");
        let policy = field("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        let challenge = field("www-authenticate");
        assert_eq!(
            challenge.contains(&format!("oauth_problem=\"{}\"", problem.unwrap_or("-"))),
            status == 401,
            "{answer:?}"
        );
    }
    let answer = proxy.send(Call::new("HEAD", "/orders").header("Accept", CHROMIUM));
    assert_eq!((answer.status, answer.body.len()), (401, 0));
}
