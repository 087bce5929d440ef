//! Access to operations: permissions and kinds of access.
//!
//! Promise (Permissions and identity): A call needs its permission in the token and in the consumer's current record.
//! Promise (Permissions and identity): Without a token or a right signature, listed, unlisted, forbidden and missing paths look
//! the same, unless configured otherwise.

use crate::support::{Call, Proxy, Token, Upstream, proxy::Builder, words};

const OPERATIONS: &str = r#"
    [[permission]]
    name = "members.read"
    title = "See the members"
    [[permission]]
    name = "members.write"
    title = "Change the members"

    [[operation]]
    path = "/members/{id}"
    methods = ["GET"]
    permission = "members.read"

    [[operation]]
    path = "/members/{id}"
    methods = ["PUT", "DELETE"]
    permission = "members.write"

    [[operation]]
    path = "/members/me"
    methods = ["GET"]

    [[operation]]
    path = "/files/{*path}"
    methods = ["GET"]

    [[operation]]
    path = "/batch"
    methods = ["POST"]
    access = ["application"]
    permission = "members.write"

    [[operation]]
    path = "/mixed"
    access = ["consumer", "application"]

    [[operation]]
    path = "/open"
    methods = ["GET"]
    access = ["anonymous"]
"#;

fn with_operations(api: &Upstream) -> Builder {
    Proxy::in_front_of(api).config(OPERATIONS)
}

#[test]
fn a_call_needs_its_permission_in_the_token_and_in_the_consumer() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    let both = "--permission members.read --permission members.write";
    let (consumer, user) = (proxy.consumer_with("Shop", both), proxy.user("alice"));
    let reads = proxy.token_with(&consumer, &user, "--permission members.read");
    let writes = proxy.token(&consumer, &user);
    let call =
        |method: &str, token: &Token| Call::new(method, "/members/7").by(&consumer).with(token);
    proxy.send(call("GET", &reads)).has_status(200);
    proxy.send(call("HEAD", &reads)).has_status(200);
    proxy.send(call("PUT", &reads)).is(404, "permission_denied");
    proxy.send(call("PUT", &writes)).has_status(200);
    assert_eq!(api.count(), 3);
    // A permission removed from the consumer is removed from its tokens.
    proxy.run(&format!(
        "consumer update {} --permission members.read",
        consumer.key
    ));
    crate::support::until("the update is seen", || {
        proxy.send(call("PUT", &writes)).status == 404
    });
    proxy.send(call("GET", &writes)).has_status(200);
}

#[test]
fn unlisted_and_forbidden_paths_get_the_same_response() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    let caller = proxy.somebody();
    let forbidden = proxy.send(Call::get("/members/7").of(&caller));
    let unlisted = proxy.send(Call::get("/else").of(&caller));
    forbidden.is(404, "permission_denied");
    unlisted.is(404, "permission_denied");
    assert_eq!(forbidden.body, unlisted.body);
    api.saw_nothing();

    let telling = with_operations(&api)
        .config("operations.forbidden_status = 403")
        .start();
    let caller = telling.somebody();
    telling
        .send(Call::get("/members/7").of(&caller))
        .is(403, "permission_denied");
    telling.rejects(Call::get("/else").of(&caller), 403, "permission_denied");
}

/// A form is read later than a head: it must not give a wrong signature another response.
#[test]
fn wrong_signature_with_a_form_does_not_reveal_listed_paths() {
    let api = Upstream::start();
    // The advice names the path.
    let proxy = with_operations(&api)
        .config("signature.advice = 'off'")
        .start();
    let caller = proxy.somebody();
    let wrong = |method: &str, target: &str, signs_token: bool| {
        let call = Call::new(method, target).form("a=1");
        let call = match signs_token {
            true => call.of(&caller),
            false => call.by(&caller.consumer),
        };
        let answer = proxy.send(call.key("wrong"));
        let fields = |name: &str| answer.header(name).map(str::to_owned);
        (
            answer.status,
            answer.text(),
            fields("allow"),
            fields("www-authenticate"),
        )
    };
    for signs_token in [true, false] {
        let listed = wrong("POST", "/mixed", signs_token);
        assert_eq!(listed.0, 401);
        for (method, target) in [
            ("POST", "/else"),
            ("PATCH", "/members/7"),
            ("POST", "/open"),
        ] {
            let answer = wrong(method, target, signs_token);
            assert_eq!(answer, listed, "{method} {target} {signs_token}");
        }
    }
    api.saw_nothing();
    // Under a right signature the two are told apart.
    let call = |method, target| Call::new(method, target).form("a=1").of(&caller);
    proxy.rejects(call("POST", "/else"), 404, "permission_denied");
    proxy.send(call("PATCH", "/members/7")).has_status(405);
    proxy.send(call("POST", "/mixed")).has_status(200);
}

#[test]
fn unlisted_paths_can_be_opened_to_one_kind_of_caller() {
    let api = Upstream::start();
    let proxy = with_operations(&api)
        .config("operations.unlisted = 'consumer'")
        .start();
    let caller = proxy.somebody();
    proxy.send(Call::get("/else").of(&caller)).has_status(200);
    proxy
        .send(Call::get("/else").by(&caller.consumer))
        .is(401, "token_rejected");
    proxy.send(Call::get("/else")).is(401, "parameter_absent");

    let open = with_operations(&api)
        .config("operations.unlisted = 'anonymous'")
        .start();
    open.send(Call::get("/else")).has_status(200);
    open.send(Call::new("PUT", "/open")).has_status(405);
    assert_eq!(api.count(), 2);
}

#[test]
fn listed_path_with_an_unlisted_method_is_405_with_allow() {
    let api = Upstream::start();
    let proxy = with_operations(&api)
        .config("operations.unlisted = 'consumer'")
        .start();
    let caller = proxy.somebody();
    let allow = |target: &str| {
        let answer = proxy.send(Call::new("PATCH", target).of(&caller));
        answer.has_status(405);
        let mut methods: Vec<String> = answer
            .header("allow")
            .expect("Allow")
            .split(',')
            .map(|method| method.trim().to_owned())
            .collect();
        methods.sort_unstable();
        methods.join(" ")
    };
    assert_eq!(allow("/members/7"), "DELETE GET HEAD PUT");
    assert_eq!(allow("/batch"), "POST");
    assert_eq!(allow("/open"), "GET HEAD");
    api.saw_nothing();
}

#[test]
fn the_most_specific_pattern_of_a_path_wins() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    let caller = proxy.somebody();
    let status = |target: &str| proxy.send(Call::get(target).of(&caller)).status;
    assert_eq!(status("/members/me"), 200, "needs no permission");
    assert_eq!(
        status("/members/m%65"),
        200,
        "an unreserved character is what it stands for"
    );
    assert_eq!(status("/members/you"), 404);
    assert_eq!(status("/members/me/x"), 404, "one segment is one segment");
    assert_eq!(status("/files/a/b/c.txt"), 200);
    assert_eq!(status("/MEMBERS/me"), 404, "paths have a case");
    let targets: Vec<String> = api.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        ["/members/me", "/members/m%65", "/files/a/b/c.txt"],
        "bytes go on as they came"
    );
}

#[test]
fn application_calls_are_signed_without_token_and_have_no_user() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    let consumer = proxy.consumer_with("Batch", "--permission members.write");
    let token = proxy.token(&consumer, &proxy.user("alice"));
    let call = Call::post("/batch").form("a=1").by(&consumer);
    let call = call
        .header("X-Auth-User", "root")
        .header("x_auth_user", "root");
    proxy.send(call).has_status(200);
    let seen = api.only_request();
    assert!(!seen.fields.has("x_auth_user"), "{seen:?}");
    assert_eq!(
        (seen.header("x-auth-user"), seen.header("x-auth-kind")),
        (None, Some("application"))
    );
    assert_eq!(seen.header("x-auth-consumer"), Some(consumer.key.as_str()));
    // This operation does not accept a token.
    let with_token = proxy.send(Call::post("/batch").by(&consumer).with(&token));
    assert!([401, 404].contains(&with_token.status), "{with_token:?}");
    // A consumer without the permission.
    let other = proxy.consumer("Other");
    proxy.rejects(Call::post("/batch").by(&other), 404, "permission_denied");
    // Where both kinds are accepted, the API gets the kind.
    proxy.passes(Call::get("/mixed").by(&consumer));
    assert_eq!(
        api.last_request().header("x-auth-kind"),
        Some("application")
    );
    proxy.passes(Call::get("/mixed").by(&consumer).with(&token));
    assert_eq!(api.last_request().header("x-auth-kind"), Some("consumer"));
    // Signed, but without a token where one is needed.
    proxy
        .send(Call::get("/members/me").by(&consumer))
        .is(401, "token_rejected");
    assert_eq!(api.count(), 3);
}

#[test]
fn a_call_without_a_token_cannot_tell_what_is_listed() {
    let api = Upstream::start();
    for unlisted in ["nobody", "consumer", "user", "anonymous"] {
        let proxy = with_operations(&api)
            .config(&format!("operations.unlisted = '{unlisted}'"))
            .start();
        let consumer = proxy.consumer_with("Batch", "--permission members.write");
        let send = |method: &str, target: &str| {
            let answer = proxy.send(Call::new(method, target).by(&consumer));
            answer.is(401, "token_rejected");
            assert_eq!(answer.header("allow"), None, "{method} {target}");
            answer.body
        };
        let unlisted = send("GET", "/else");
        for (method, target) in [
            ("GET", "/members/7"),
            ("GET", "/members/me"),
            ("PATCH", "/members/7"),
            ("GET", "/files/a"),
            ("GET", "/open"),
            ("PUT", "/open"),
        ] {
            assert_eq!(send(method, target), unlisted, "{method} {target}");
        }
        // A consumer may learn of operations that it may call with another method.
        proxy
            .send(Call::get("/batch").by(&consumer))
            .has_status(405);
    }
    api.saw_nothing();
}

#[test]
fn anonymous_calls_pass_only_where_configured() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    proxy.send(Call::get("/open")).has_status(200);
    let seen = api.only_request();
    assert_eq!(
        (seen.header("x-auth-kind"), seen.header("x-auth-user")),
        (Some("anonymous"), None)
    );
    proxy.rejects(Call::get("/members/me"), 401, "parameter_absent");
    proxy.send(Call::get("/else")).is(401, "parameter_absent");
    assert_eq!(api.count(), 1);
}

#[test]
fn observation_can_be_set_for_one_operation() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/watched', enforcement = 'observe' }, { path = '/guarded' }]",
    );
    proxy.send(Call::get("/watched")).has_status(200);
    proxy.rejects(Call::get("/guarded"), 401, "parameter_absent");
    assert_eq!(api.only_request().target, "/watched");
}

#[test]
fn path_conventions_are_enforced_where_the_operator_wants_it() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "paths.policy = 'enforce'");
    let caller = proxy.somebody();
    let send = |target: &str| proxy.send(Call::get(target).of(&caller));
    for good in ["/members/1", "/members/1/order-items", "/"] {
        send(good).has_status(200);
    }
    let count = api.count();
    for bad in words("/members/delete/1 /members/ /order_items /Members /members/1.json") {
        send(bad).is(400, "parameter_rejected");
    }
    assert_eq!(api.count(), count);
    let logged = Proxy::with(&api, "paths.policy = 'log'");
    let caller = logged.somebody();
    logged.passes(Call::get("/order_items/").of(&caller));
}

/// A preflight as browsers send it (Fetch, CORS-preflight request).
fn preflight(target: &str) -> Call {
    Call::new("OPTIONS", target)
        .header("Origin", "https://app.example")
        .header("Access-Control-Request-Method", "PUT")
}

#[test]
fn preflights_are_rejected_unless_configured_otherwise() {
    let api = Upstream::start();
    let proxy = with_operations(&api).start();
    for target in ["/members/7", "/mixed", "/else"] {
        proxy.send(preflight(target)).is(401, "parameter_absent");
    }
    proxy.send(preflight("/open")).has_status(405);
    api.saw_nothing();
}

#[test]
fn forwarded_preflights_are_anonymous_on_listed_paths_alone() {
    let api = Upstream::start();
    let proxy = with_operations(&api)
        .config("operations.preflight = 'forward'")
        .start();
    let forged = [("X-Auth-User", "1"), ("X-Auth-Kind", "user")];
    for target in ["/members/7", "/mixed", "/open", "/files/a/b"] {
        let call = forged
            .iter()
            .fold(preflight(target), |call, (name, value)| {
                call.header(name, value)
            });
        proxy.send(call).has_status(200);
        let seen = api.last_request();
        assert_eq!((&*seen.method, &*seen.target), ("OPTIONS", target));
        assert_eq!(seen.fields.all("x-auth-kind"), ["anonymous"]);
        assert!(!seen.fields.has("x-auth-user"), "{seen:?}");
    }
    let before = api.count();
    // Not on unlisted paths, and only real preflights without credentials.
    proxy.send(preflight("/else")).is(401, "parameter_absent");
    for call in [
        Call::new("OPTIONS", "/members/7"),
        Call::new("OPTIONS", "/members/7").header("Origin", "https://app.example"),
        Call::new("OPTIONS", "/members/7").header("Access-Control-Request-Method", "PUT"),
        preflight("/members/7").header("Origin", "https://other.example"),
        preflight("/members/7").header("Authorization", "Basic YTpi"),
        preflight("/members/7").body("text/plain", b"x"),
        // WordPress takes the method of any call from this parameter.
        preflight("/members/7?_method=DELETE"),
        preflight("/files/a?a;%20.Method=put"),
        preflight("/files/a?x-http-Method-override=PUT"),
    ] {
        proxy.send(call).is(401, "parameter_absent");
    }
    let get = Call::get("/members/7")
        .header("Origin", "https://app.example")
        .header("Access-Control-Request-Method", "PUT");
    proxy.send(get).is(401, "parameter_absent");
    // A signed one is a signed call, and an ambiguous path is not a listed one.
    let caller = proxy.somebody();
    let signed = preflight("/members/7").of(&caller);
    proxy.send(signed).has_status(405);
    let cookie = preflight("/members/7").header("Cookie", "countersign=x");
    assert_ne!(proxy.send(cookie).status, 200);
    proxy.send(preflight("/members/%2e%2e")).has_status(400);
    assert_eq!(api.count(), before);
}
