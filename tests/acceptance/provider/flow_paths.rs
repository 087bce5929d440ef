//! The paths and the hosts of the flow are those that the consumers of another provider call.
//!
//! Promise (Flow and pages): The flow runs at the paths, hosts and parameter names of another provider; the API gets the other
//! requests there.

use crate::support::{
    Call, Proxy, Token, Upstream, Visitor,
    legs::{query_value, token_of},
    proxy::CALLBACK,
    signer::encode,
};

const WIKI: &str = "service.request_token_paths = ['/w/index.php?title=Special:OAuth/initiate', '/oauth/initiate/']
    service.authorize_paths = ['/w/index.php?title=Special:OAuth/authorize', '/login/oauth']
    service.access_token_paths = '/w/index.php?title=Special:OAuth%2Ftoken'";

#[test]
fn flow_runs_at_another_providers_paths_and_the_rest_is_the_api() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, WIKI);
    let caller = proxy.somebody();
    let (consumer, user) = (
        proxy.consumer_with("Wiki", &format!("--callback {CALLBACK}")),
        &caller.user,
    );
    for (initiate, authorize) in [
        (
            "/w/index.php?title=Special%3AOAuth%2Finitiate&format=json",
            "/w/index.php?title=Special:OAuth/authorize",
        ),
        ("/oauth/initiate/", "/login/oauth"),
        ("/oauth/request_token", "/oauth/authenticate"),
    ] {
        let call = Call::get(initiate)
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK);
        let request_token = token_of(&proxy.send(call));
        let mark = if authorize.contains('?') { '&' } else { '?' };
        let mut visitor = Visitor::to(&proxy);
        let address = format!(
            "{authorize}{mark}oauth_token={}",
            encode(&request_token.token)
        );
        let login = visitor.open(&address);
        let consent = visitor.log_in(&login, user);
        let decided = visitor.decide(&consent, "allow");
        let verifier = query_value(&decided.redirect(), "oauth_verifier").unwrap();
        let call = Call::post("/w/index.php?title=Special:OAuth/token")
            .by(&consumer)
            .with(&request_token);
        token_of(&proxy.send(call.parameter("oauth_verifier", &verifier)));
    }
    api.saw_nothing();
    for target in [
        "/w/index.php",
        "/w/index.php?title=Main_Page",
        "/w/index.php?title=Special:OAuth/initiate&title=Main_Page",
        "/w/index.php?title=special:oauth/initiate",
        "/oauth/initiate",
        "/login/oauth/",
    ] {
        proxy.passes(Call::get(target).of(&caller));
        assert_eq!(api.last_request().target, target);
    }
}

#[test]
fn request_to_a_flow_path_without_a_flow_call_goes_to_the_api() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "service.path = '/w/index.php'");
    let caller = proxy.somebody();
    let consumer = proxy.consumer_with("Wiki", &format!("--callback {CALLBACK}"));
    proxy.passes(Call::get("/w/index.php?title=Main_Page").of(&caller));
    proxy.passes(
        Call::post("/w/index.php")
            .form("title=x&text=y")
            .of(&caller),
    );
    assert_eq!(api.last_request().text(), "title=x&text=y");
    assert_eq!(
        api.last_request().header("x-auth-user"),
        Some(&*caller.user.id)
    );
    proxy.passes(Call::post("/w/index.php").json("{}").of(&caller));
    let count = api.count();
    // Unsigned, wrong and unknown ones are decided like any other call of the API.
    proxy.rejects(Call::get("/w/index.php?title=x"), 401, "parameter_absent");
    proxy.rejects(
        Call::post("/w/index.php").form("a=b"),
        401,
        "parameter_absent",
    );
    let wrong = Call::get("/w/index.php?title=x").of(&caller).key("wrong");
    proxy.rejects(wrong, 401, "signature_invalid");
    proxy
        .send(Call::get("/w/index.php?mode=else"))
        .has_status(400);
    assert_eq!(api.count(), count);
    // What names a call of the flow is one.
    let asked = Call::post("/w/index.php")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    token_of(&proxy.send(asked));
    let asked = Call::post("/w/index.php")
        .form("mode=req_req_token")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    token_of(&proxy.send(asked));
    assert_eq!(api.count(), count);
}

#[test]
fn overlapping_flow_paths_are_errors_that_name_both() {
    for (config, named) in [
        (
            "service.request_token_paths = '/a'\nservice.authorize_paths = '/a?b=c'",
            ["/a?b=c", "/a of service.request_token_paths"],
        ),
        (
            "service.request_token_paths = ['/a?b=c', '/a?d=e']",
            ["/a?d=e", "/a?b=c of service.request_token_paths"],
        ),
        (
            "service.request_token_paths = '/service.oauth'",
            ["/service.oauth", "service.path"],
        ),
        (
            "service.authorize_paths = '/oauth/access_token'",
            ["/oauth/access_token", "the alias"],
        ),
        (
            "service.access_token_paths = '/a'\noperation = [{ path = '/a' }]",
            ["/a", "[[operation]] /a"],
        ),
        (
            "service.access_token_paths = 'a'",
            ["a path such as", "no slash"],
        ),
        (
            "service.access_token_paths = '/a?mode=b'",
            ["\"mode\"", "of the call itself"],
        ),
        (
            "service.access_token_paths = '/a?oauth_token=b'",
            ["\"oauth_token\"", "of the call itself"],
        ),
        (
            "service.access_token_paths = '/a?b'",
            ["name=value", "query"],
        ),
        (
            "service.access_token_paths = '/../a'",
            ["dot segment", "path"],
        ),
        (
            "service.page_urls = 'https://a.test'",
            ["service.base_url", "missing"],
        ),
        (
            "service.base_url = 'https://a.test'\nservice.page_urls = 'http://b.test'",
            ["http://b.test", "https://"],
        ),
        (
            "service.base_url = 'https://a.test'\nservice.page_urls = 'https://a.test'",
            ["https://a.test", "leave it out"],
        ),
        (
            "service.page_parameters = { token = 'oauth_nonce' }",
            ["\"oauth_nonce\"", "\"oauth_token\""],
        ),
        (
            "service.page_parameters = { mode = 'oauth_token' }",
            ["\"mode\"", "expected"],
        ),
        (
            "operations.unlisted = ['nobody', 'user']",
            ["operations.unlisted", "stands alone"],
        ),
    ] {
        let ended = Proxy::in_front_of_url("http://127.0.0.1:9")
            .config(config)
            .run(&["check"], "");
        assert_eq!(ended.status.code(), Some(2), "{config}: {ended:?}");
        for named in named {
            assert!(ended.stderr.contains(named), "{config}: {}", ended.stderr);
        }
    }
    // Entries whose queries exclude each other do not overlap, nor does an operation with one that has a query.
    let config = "service.request_token_paths = ['/a?b=1', '/oauth/request_token']
        service.authorize_paths = '/a?b=2'\noperation = [{ path = '/a' }]";
    let api = Upstream::start();
    let ended = Proxy::in_front_of(&api).config(config).run(&["check"], "");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn a_path_of_the_flow_may_have_an_empty_segment() {
    // A consumer whose base URL ends with a slash.
    let config = "service.request_token_paths = '//oauth/request_token'
        service.access_token_paths = '/v1//access'";
    let api = Upstream::start();
    let proxy = Proxy::with(&api, config);
    let (consumer, user) = proxy.shop();
    let call = Call::post("//oauth/request_token").by(&consumer);
    let answer = proxy.passes(call.parameter("oauth_callback", CALLBACK));
    let form = |name| answer.form(name).unwrap();
    let request_token = Token::new(form("oauth_token"), form("oauth_token_secret"));
    let verifier = proxy.verifier(&request_token, &user);
    let call = Call::post("/v1//access").by(&consumer).with(&request_token);
    proxy.passes(call.parameter("oauth_verifier", &verifier));
    api.saw_nothing();
}

#[test]
fn flow_call_at_another_path_learns_the_paths_of_this_service() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "service.request_token_paths = '/initiate'");
    let (consumer, user) = proxy.shop();
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let calls = [
        Call::post("/request-token")
            .by(&consumer)
            .parameter("oauth_callback", CALLBACK),
        Call::post("/access-token")
            .by(&consumer)
            .with(&request_token)
            .parameter("oauth_verifier", &verifier),
    ];
    let origin = proxy.origin();
    for call in calls {
        let answer = proxy.send(call);
        answer.is(401, "token_rejected");
        let advice = answer.form("oauth_problem_advice").unwrap();
        for path in ["/initiate", "/oauth/access_token"] {
            assert!(advice.contains(&format!("{origin}{path}")), "{advice}");
        }
    }
    let page = format!("/oauth/authorise?oauth_token={}", request_token.token);
    for call in [
        Call::get(&page),
        Call::get(&page).header("Accept", "text/html"),
    ] {
        let answer = proxy.send(call);
        answer.has_status(400);
        let named = format!("{origin}/oauth/auth");
        assert!(
            answer.text().contains(&encode(&named)) || answer.text().contains(&named),
            "{answer:?}"
        );
    }
    api.saw_nothing();
}

const HOSTS: &str = "service.base_url = 'http://api.test'
    service.allow_http = true
    service.page_urls = ['http://www.test', 'http://login.test']
    service.page_parameters = { token = 'oauth_token', key = 'oauth_consumer_key' }
    service.authorize_paths = '/e/t/authorize'";

#[test]
fn pages_on_another_host_keep_the_flow_there() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, HOSTS);
    let (consumer, user) = proxy.shop();
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let address = format!(
        "/e/t/authorize?key={}&token={}",
        encode(&consumer.key),
        encode(&request_token.token)
    );
    let mut visitor = Visitor::at(&proxy, "http://www.test");
    let login = visitor.open(&address);
    let policy = login.answer.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self'"), "{policy}");
    let consent = visitor.log_in(&login, &user);
    // The forms lead back to the host, and the form of another host is a forgery.
    let form = consent.form_with("decision").press("decision", "allow");
    assert!(
        form.action.starts_with('/') || form.action.is_empty(),
        "{form:?}"
    );
    for origin in ["http://api.test", "http://login.test", "http://evil.test"] {
        let call = Call::post(&consent.target)
            .header("Origin", origin)
            .form(&crate::support::call::form(&form.fields));
        visitor.send(call).has_status(403);
    }
    // The session is of one host: its cookie means nothing for the token's page on another one.
    let cookies = visitor.cookies.clone();
    let decided = visitor.decide(&consent, "allow");
    let verifier = query_value(&decided.redirect(), "oauth_verifier").unwrap();
    assert!(!cookies.is_empty());
    let call = Call::post("/oauth/access_token")
        .by(&consumer)
        .with(&request_token);
    token_of(&proxy.send(call.parameter("oauth_verifier", &verifier)));
    api.saw_nothing();
}

#[test]
fn a_host_of_pages_serves_only_pages() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, HOSTS);
    let (consumer, user) = proxy.shop();
    let there = |call: Call| call.host("www.test");
    let asked = Call::post("/oauth/request_token")
        .by(&consumer)
        .parameter("oauth_callback", CALLBACK);
    for origin in ["http://api.test", "http://www.test"] {
        let call = asked.clone().for_origin(origin);
        proxy.send(there(call)).has_status(404);
    }
    let caller = proxy.token(&consumer, &user);
    let call = Call::get("/things").by(&consumer).with(&caller);
    proxy
        .send(there(call.for_origin("http://www.test")))
        .has_status(404);
    // A session of that host opens nothing of the API.
    let mut visitor = Visitor::at(&proxy, "http://www.test");
    let page = visitor.open("/service.oauth?mode=login");
    let after = visitor.log_in(&page, &user);
    assert_eq!(after.answer.status, 200, "{after:?}");
    let cookie = visitor
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let cookie = cookie.collect::<Vec<_>>().join("; ");
    let call = Call::get("/things").header("Cookie", &cookie);
    assert!(proxy.send(there(call)).status >= 400);
    let unknown = Call::get("/authorise?oauth_token=x");
    let answer = proxy.send(there(unknown));
    answer.has_status(404);
    assert!(answer.text().contains("authorize"), "{answer:?}");
    api.saw_nothing();
}

#[test]
fn page_parameter_aliases_must_agree_with_names_and_token() {
    let proxy = Proxy::with(&Upstream::start(), HOSTS);
    let (consumer, _) = proxy.shop();
    let other = proxy.consumer("Other");
    let [one, two] = [(); 2].map(|()| proxy.request_token(&consumer, CALLBACK).token);
    let mut visitor = Visitor::to(&proxy);
    let mut status = |query: &str| {
        visitor
            .open(&format!("/e/t/authorize?{query}"))
            .answer
            .status
    };
    assert_eq!(status(&format!("token={one}")), 200);
    assert_eq!(
        status(&format!(
            "oauth_token={one}&token={one}&key={}",
            consumer.key
        )),
        200
    );
    assert_eq!(status(&format!("oauth_token={one}&token={two}")), 400);
    assert_eq!(status(&format!("token={one}&token={one}")), 400);
    assert!(status(&format!("token={one}&key={}", other.key)) >= 400);
}
