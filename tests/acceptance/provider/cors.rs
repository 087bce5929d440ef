//! Scripts of other origins in browsers: token calls and rejections that they may read.
//!
//! Promise (Flow and pages): Only configured CORS origins and preflights are served, without pages and cookies. Also in
//! `tests/acceptance/request/permissions.rs`.

use crate::support::{
    Call, Proxy, Reply, Upstream,
    browser::Browser,
    http::Answer,
    legs::{ACCESS_TOKEN, LOGIN, REQUEST_TOKEN, asks},
    proxy::Consumer,
    until,
};

const EDITOR: &str = "https://editor.example";

fn preflight(target: &str, origin: &str) -> Call {
    Call::new("OPTIONS", target)
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization")
}

fn allowed(answer: &Answer) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

/// What a browser finds in the response to a preflight: the origin, the methods, the fields.
fn permitted(answer: &Answer) -> [Option<&str>; 3] {
    let fields = ["origin", "methods", "headers"];
    let names = fields.map(|field| format!("access-control-allow-{field}"));
    [0, 1, 2].map(|at| answer.header(&names[at]))
}

#[test]
fn preflights_of_token_calls_succeed_for_configured_origins() {
    let api = Upstream::start();
    let origins = format!("service.cors_origins = ['{EDITOR}', 'app://editor']");
    let proxy = Proxy::with(&api, &origins);
    for target in [
        REQUEST_TOKEN,
        ACCESS_TOKEN,
        "/service.oauth",
        "/oauth/request_token",
        "/oauth/access_token",
    ] {
        for origin in [EDITOR, "app://editor"] {
            let answer = proxy.send(preflight(target, origin));
            answer.has_status(204);
            let expected = [origin, "GET, POST", "authorization"].map(Some);
            assert_eq!(permitted(&answer), expected, "{target}");
            assert_eq!(answer.header("vary"), Some("Origin"));
            assert!(!answer.fields.has("access-control-allow-credentials"));
        }
        for origin in [
            "https://editor.example.evil.test",
            "http://editor.example",
            "null",
            "",
        ] {
            let answer = proxy.send(preflight(target, origin));
            assert!(answer.status >= 400, "{answer:?}");
            assert_eq!(allowed(&answer), None, "{target} {origin}");
        }
    }
    // What is not a preflight of a token call is as before.
    for (call, status) in [
        (
            Call::new("OPTIONS", REQUEST_TOKEN).header("Origin", EDITOR),
            405,
        ),
        (
            preflight(REQUEST_TOKEN, EDITOR).header("Origin", EDITOR),
            405,
        ),
        (preflight(LOGIN, EDITOR), 405),
        (preflight("/oauth/authorize", EDITOR), 405),
    ] {
        let answer = proxy.send(call);
        answer.has_status(status);
        assert!(
            !answer.fields.has("access-control-allow-methods"),
            "{answer:?}"
        );
    }
    api.saw_nothing();
    let without = Proxy::in_front_of(&api).start();
    without
        .send(preflight(REQUEST_TOKEN, EDITOR))
        .has_status(405);
}

#[test]
fn token_responses_are_readable_by_scripts_and_pages_are_not() {
    let api = Upstream::replying(|_| Reply::ok("x"));
    for (setting, origin, vary) in [(EDITOR, EDITOR, Some("Origin")), ("*", "*", None)] {
        let config = format!("service.cors_origins = ['{setting}']");
        let proxy = Proxy::with(&api, &config);
        let (caller, consumer) = (proxy.somebody(), proxy.consumer("Editor"));
        let ask = |call: Call| proxy.send(call.header("Origin", EDITOR));
        let issued = ask(asks(&consumer, "oob"));
        issued.has_status(200);
        let unknown = Consumer::new("unknown", "secret");
        let mut read = vec![issued];
        for (call, status) in [
            (asks(&unknown, "oob"), 401),
            (Call::get("/r").by(&unknown), 401),
            (Call::get("/r"), 401),
            (Call::new("TRACE", "/r"), 405),
            (Call::get("/r").host("evil.test"), 421),
            (Call::get("/r").header("Expect", "x"), 400),
        ] {
            let answer = ask(call);
            answer.has_status(status);
            assert!(answer.fields.has("x-request-id"), "{answer:?}");
            read.push(answer);
        }
        for answer in &read {
            assert_eq!(allowed(answer), Some(origin), "{answer:?}");
            assert_eq!(answer.header("vary"), vary, "{answer:?}");
            let exposed = answer
                .header("access-control-expose-headers")
                .expect("names");
            assert!(exposed.contains("WWW-Authenticate") && exposed.contains("X-Request-Id"));
            assert!(!answer.fields.has("access-control-allow-credentials"));
        }
        // A cache keeps a rejection for one origin only, or for all.
        let other = proxy.send(Call::get("/r").header("Origin", "https://other.example"));
        assert_eq!(allowed(&other), Some("*").filter(|_| setting == "*"));
        let plain = proxy.send(Call::get("/r"));
        assert_eq!(
            (allowed(&plain), plain.header("vary")),
            (allowed(&other), vary)
        );
        // Pages, their rejections, and what the API itself says.
        let html = |call: Call| call.header("Accept", "text/html");
        for call in [
            Call::get(LOGIN),
            Call::post(LOGIN).form("username=a&password=b"),
            Call::get("/oauth/authorize?oauth_token=unknown"),
            Call::new("DELETE", "/oauth/authorize"),
            html(Call::get("/r").by(&unknown)),
            Call::get("/r").of(&caller),
        ] {
            let answer = ask(call);
            assert_eq!(allowed(&answer), None, "{answer:?}");
        }
    }
}

#[test]
fn forwarded_preflights_need_no_operation() {
    let api = Upstream::replying(|_| Reply::status("204 No Content"));
    for (config, status) in [("", 204), ("operations.unlisted = 'nobody'", 401)] {
        let config = format!("operations.preflight = 'forward'\n{config}");
        let proxy = Proxy::with(&api, &config);
        proxy
            .send(preflight("/api/0.6/map", EDITOR))
            .has_status(status);
        proxy
            .send(Call::get("/api/0.6/map").header("Origin", EDITOR))
            .has_status(401);
        proxy
            .send(preflight("/r", EDITOR).header("Authorization", "Basic YTpi"))
            .has_status(401);
    }
    assert_eq!(api.count(), 1);
}

#[test]
fn every_origin_and_another_one_are_not_named_together() {
    let builder = Proxy::in_front_of_url("http://127.0.0.1:9")
        .config(&format!("service.cors_origins = ['*', '{EDITOR}']"));
    let ended = builder.run(&["check"], "");
    assert!(
        ended
            .stderr
            .contains("service.cors_origins: \"*\" is every origin"),
        "{ended:?}"
    );
}

/// A page of an editor of maps, which signs with HMAC-SHA1 and sends by XMLHttpRequest, as osm-auth does.
const PAGE: &str = r#"<!doctype html><title>editor</title><script>
const encode = text => encodeURIComponent(text).replace(/[!'()*]/g, it => '%' + it.charCodeAt(0).toString(16).toUpperCase());
async function call(method, url, key, secret, token, tokenSecret, more) {
  const oauth = { oauth_consumer_key: key, oauth_signature_method: 'HMAC-SHA1', oauth_version: '1.0',
    oauth_timestamp: String(Math.floor(Date.now() / 1000)), oauth_nonce: crypto.randomUUID(), ...more };
  if (token) oauth.oauth_token = token;
  const [base, query] = url.split('?');
  const all = Object.entries(oauth).concat([...new URLSearchParams(query)]).map(pair => pair.map(encode)).sort();
  const text = [method, base, all.map(pair => pair.join('=')).join('&')].map(encode).join('&');
  const bytes = text => new TextEncoder().encode(text);
  const hmac = await crypto.subtle.importKey('raw', bytes(encode(secret) + '&' + encode(tokenSecret)),
    { name: 'HMAC', hash: 'SHA-1' }, false, ['sign']);
  const signed = new Uint8Array(await crypto.subtle.sign('HMAC', hmac, bytes(text)));
  oauth.oauth_signature = btoa(String.fromCharCode(...signed));
  const field = 'OAuth ' + Object.entries(oauth).map(([name, value]) => name + '="' + encode(value) + '"').join(', ');
  return new Promise(done => {
    const xhr = new XMLHttpRequest();
    xhr.open(method, url);
    xhr.setRequestHeader('Authorization', field);
    xhr.onloadend = () => done({ status: xhr.status, text: xhr.responseText,
      challenge: xhr.getResponseHeader('WWW-Authenticate'), id: xhr.getResponseHeader('X-Request-Id') });
    xhr.send();
  });
}
</script>"#;

#[test]
fn a_script_of_another_origin_makes_the_whole_flow_in_a_browser() {
    let editor = || Upstream::replying(|_| Reply::ok(PAGE).header("Content-Type", "text/html"));
    let (own, foreign) = (editor(), editor());
    let api = Upstream::replying(|seen| {
        let reply = match seen.method.as_str() {
            "OPTIONS" => Reply::status("204 No Content")
                .header("Access-Control-Allow-Headers", "authorization"),
            _ => Reply::ok(seen.header("x-auth-user").unwrap_or_default()),
        };
        reply.header("Access-Control-Allow-Origin", "*")
    });
    let config = format!(
        "operations.preflight = 'forward'\nservice.cors_origins = ['{}']",
        own.url()
    );
    let proxy = Proxy::with(&api, &config);
    let callback = format!("{}/land.html", own.url());
    let consumer = proxy.consumer_with("Editor", &format!("--callback {callback}"));
    let user = proxy.user("alice");
    let browser = Browser::start();
    let call = |target: &str, secret: &str, token: [&str; 2], more: &str| {
        let (method, [token, token_secret]) = (if more == "{}" { "GET" } else { "POST" }, token);
        let (url, key) = (format!("{}{target}", proxy.origin()), &consumer.key);
        browser.script(&format!(
            "return call('{method}', '{url}', '{key}', '{secret}', '{token}', '{token_secret}', {more})"
        ))
    };
    let pair = |answered: &serde_json::Value| {
        assert_eq!(answered["status"], 200, "{answered}");
        let pairs =
            crate::support::signer::form_pairs(answered["text"].as_str().unwrap().as_bytes());
        let value = |name: &[u8]| {
            let found = pairs.iter().find(|pair| pair.0 == name).expect("a token");
            String::from_utf8(found.1.clone()).unwrap()
        };
        [value(b"oauth_token"), value(b"oauth_token_secret")]
    };
    browser.open(own.url());
    let asked = call(
        "/oauth/request_token",
        &consumer.secret,
        ["", ""],
        &format!("{{ oauth_callback: '{callback}' }}"),
    );
    let [token, secret] = pair(&asked);
    browser.authorize(
        &format!("{}/oauth/authorize?oauth_token={token}", proxy.origin()),
        &user,
        "allow",
    );
    until("the browser is back", || {
        browser.url().starts_with(&callback)
    });
    let verifier =
        browser.script("return new URLSearchParams(location.search).get('oauth_verifier')");
    let exchanged = call(
        "/oauth/access_token",
        &consumer.secret,
        [&token, &secret],
        &format!("{{ oauth_verifier: {verifier} }}"),
    );
    let [token, secret] = pair(&exchanged);
    let read = call(
        "/api/0.6/user/details?a=1",
        &consumer.secret,
        [&token, &secret],
        "{}",
    );
    assert_eq!(
        (&read["status"], &read["text"]),
        (&200.into(), &user.id.as_str().into())
    );
    // The script learns why it is rejected, and what to name to the operator.
    let rejected = call("/api/0.6/user/details", "wrong", [&token, &secret], "{}");
    assert_eq!(rejected["status"], 401, "{rejected}");
    assert!(
        rejected["text"]
            .as_str()
            .unwrap()
            .contains("signature_invalid"),
        "{rejected}"
    );
    assert!(
        rejected["challenge"]
            .as_str()
            .unwrap()
            .starts_with("OAuth "),
        "{rejected}"
    );
    assert!(!rejected["id"].is_null(), "{rejected}");
    // A page of another origin does not.
    browser.open(foreign.url());
    let seen = api.count();
    let blocked = call(
        "/oauth/request_token",
        &consumer.secret,
        ["", ""],
        "{ oauth_callback: 'oob' }",
    );
    assert_eq!(blocked["status"], 0, "{blocked}");
    assert_eq!(api.count(), seen);
}
