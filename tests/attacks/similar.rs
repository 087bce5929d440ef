//! A path that some API takes for one of a narrower rule than the rule that it matches.

use crate::support::{Call, Proxy, Scene, Upstream};

const RULES: &str = "permission = [{ name = 'write', title = 'Write' }]
    operation = [
        { path = '/members/{id}' },
        { path = '/members/me', permission = 'write' },
        { path = '/write/{*rest}', permission = 'write' },
        { path = '/{area}/{*rest}' },
        { path = '/books/' },
        { path = '/books/{id}/' },
        { path = '/exact' },
        { path = '/exact/' },
        { path = '/public/{*rest}', access = ['anonymous'] },
        { path = '/public/secret', permission = 'write' },
        { path = '/scripts/index.php/{*rest}' },
        { path = '/%C3%A9t%C3%A9', permission = 'write' }]";

/// Paths that a framework reads as `/members/me`, `/write/1`, `/public/secret` or `/books/7/`.
const CONFUSED: &[&str] = &[
    "/members/Me",
    "/members/ME",
    "/Members/me",
    "/members/me/",
    "/members/me.",
    "/members/me..",
    "/members/me.json",
    "/members/me.JSON/",
    "/Public/secret.html",
    "/members/me%20",
    "/members/me%20.%20",
    "/members%20/me",
    "/members./me",
    "/memberS/m%45/",
    "/WRITE/1",
    "/Write/a/b",
    "/write./1",
    "/write%20/1",
    "/%57rite/1",
    "/writ%45/1/",
    "/books/7",
    "/Books/7/",
    "/public/Secret",
    "/public/secret/",
    "/public/secret.",
    "/Public/secret",
    "/%C3%89T%C3%89",
    "/%C3%A9t%C3%A9/",
    // The Kelvin sign and the long s are letters of ASCII in the other case.
    "/boo%E2%84%AAs/7/",
    "/book%C5%BF/7/",
];

/// Paths that a script of PHP reads as `/members/me`, `/write/1` or `/public/secret`, where another page may be.
const SCRIPTS: &[&str] = &[
    "/index.php/members/me",
    "/index.php/write/1",
    "/public/index.php/public/Secret",
    "/public/app_dev.PHP/secret.html",
    "/public/index%2Ephp/secret",
    "/public/a/index.cgi/public/secret/",
];

/// Paths that match what they say.
const EXACT: &[&str] = &[
    "/members/7",
    "/members/7.5",
    "/members/.me",
    "/members/me2",
    "/members/Alice",
    "/books/",
    "/books/7/",
    "/books/Seven/",
    "/exact",
    "/exact/",
    "/archive/Old",
    "/archive/old/",
    "/archive/a.b/c",
    "/archive/index.php/c",
    "/archive/members/me.php",
    "/scripts/index.php/members/me",
];

#[test]
fn a_path_similar_to_one_of_a_narrower_rule_is_rejected() {
    let Scene { api, proxy, caller } = Scene::with(RULES);
    for path in CONFUSED.iter().chain(SCRIPTS) {
        let answer = proxy.send(Call::get(path).of(&caller));
        assert_eq!(
            (answer.status, answer.problem().as_deref()),
            (404, Some("permission_denied")),
            "{path}"
        );
        // An unauthenticated caller learns nothing of it, where every caller may call the wider rule.
        let answer = proxy.send(Call::get(path));
        assert_eq!(answer.status, 401, "{path}");
    }
    api.saw_nothing();
    for path in EXACT {
        proxy.passes(Call::get(path).of(&caller));
        assert_eq!(api.last_request().target, *path);
    }
    proxy.logs(&["/members/Me", "operation=\"similar\""]);
}

#[test]
fn similar_paths_pass_where_the_operator_admits_them() {
    let Scene { api, proxy, caller } = Scene::with(&format!("paths.similar = 'wider'\n{RULES}"));
    for path in ["/members/Me", "/WRITE/1", "/Books/7/", "/members/me."] {
        proxy.passes(Call::get(path).of(&caller));
        assert_eq!(api.last_request().target, path);
    }
    proxy.rejects(
        Call::get("/members/me").of(&caller),
        404,
        "permission_denied",
    );
    proxy.passes(Call::get("/public/Secret"));
}

#[test]
fn slash_at_the_end_belongs_to_the_path_signed_and_sent() {
    let Scene { api, proxy, caller } = Scene::with(RULES);
    let cut = Call::get("/books/7/").of(&caller).signs_target("/books/7");
    proxy.rejects(cut, 401, "signature_invalid");
    for path in [
        "/books//",
        "//books/7/",
        "/books//7/",
        "/books/7//",
        "/books/%2f/",
        "/books/./",
        "/books/../",
    ] {
        proxy.send(Call::get(path).of(&caller)).has_status(400);
    }
    api.saw_nothing();
}

#[test]
fn an_open_unlisted_path_can_be_similar_too() {
    let config = "operations.unlisted = ['consumer', 'application']\nupstream.idle_timeout = '30s'
        permission = [{ name = 'write', title = 'Write' }]
        operation = [{ path = '/write', permission = 'write' }]";
    let api = Upstream::start();
    let proxy = Proxy::with(&api, config);
    let caller = proxy.somebody();
    for path in ["/Write", "/write/", "/write.", "/write%20"] {
        proxy.rejects(Call::get(path).of(&caller), 404, "permission_denied");
    }
    api.saw_nothing();
    proxy.passes(Call::get("/write/more").of(&caller));
    proxy.passes(Call::get("/other").by(&caller.consumer));
}
