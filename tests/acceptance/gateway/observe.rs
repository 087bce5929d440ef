//! Observe mode forwards, and never weakens what is enforced beside it.
//!
//! Promise (Permissions and identity): In observe mode calls pass unchanged, without any identity, unless a rate, a brown-out
//! or HTTP's framing rejects them. Also in `tests/acceptance/request/identity.rs`, `tests/acceptance/request/limits.rs`.
//! Promise (Permissions and identity): No spelling of path or method that an API may take for an enforced operation passes as
//! an observed one. Also in `tests/attacks/routers.rs`.

use crate::support::{
    Call, Placement, Proxy, Reply, Scene, Token, Upstream, call::FORM, legs::token_of, text::words,
    until,
};

const OBSERVED: &str = "
    signature.enforcement = 'observe'
    service.path = '/w/index.php'
    operation = [
        { path = '/r/{*rest}' }, { path = '/products/{sku}', methods = ['GET'] }, { path = '/w/{*rest}' }, { path = '/x' },
        { path = '/inside', from = ['10.0.0.0/8'] }, { path = '/launch', access = ['application'] },
        { path = '/outcomes', access = ['application'], body_hash = 'required' },
    ]";

/// Every call passes as it was sent, without an identity, and the log has what enforcing would say.
#[test]
fn observed_calls_reach_the_api_unchanged() {
    let (api, proxy, caller) = Scene::with(OBSERVED).into_parts();
    let strict = proxy.consumer_with("Strict", "--body-hash required");
    let large = format!("a={}", "x".repeat(1_200_000));
    let many = vec!["a=1"; 5_000].join("&");
    let pieces: Vec<&[u8]> = large.as_bytes().chunks(50_000).collect();
    let hash = "2jmj7l5rSw0yVb/vlWAYkK/YBwk=";
    let get = || Call::get("/x");
    let post = || Call::post("/x");
    let signed = || post().of(&caller);
    let flow = || Call::post("/w/index.php").form("title=x").of(&caller);
    let authorized = |call: Call, value: &str| call.header("Authorization", value);

    // The fields that the log has, and calls with their names.
    let mut cases = Vec::new();
    let mut add = |fields: &'static str, calls: Vec<(&'static str, Call)>| {
        cases.extend(calls.into_iter().map(|(name, call)| (name, call, fields)));
    };
    let chunked = post().header("Content-Type", FORM).chunked(&pieces);
    let hashed = signed().parameter("oauth_body_hash", hash).json(&large);
    let too_large = vec![
        ("large form", post().form(&large)),
        ("large signed form", signed().form(&large)),
        ("large form in chunks", chunked),
        ("large hashed body", hashed),
        ("form of many parameters", signed().form(&many)),
    ];
    add(r#"reason="payload_too_large""#, too_large);
    let two = authorized(post().form("a=1"), "OAuth a=\"b\"");
    let coded = post().form(&many).header("Content-Encoding", "gzip");
    let typed = post().form("a=1").header("Content-Type", "text/plain");
    let malformed = vec![
        ("form with a coding", coded),
        ("form of two types", typed),
        ("two credentials", authorized(two, "Basic x")),
    ];
    add(r#"reason="bad_request""#, malformed);
    let as_form = signed().json("{\"a\":1}").signs_body("a=1");
    let wrong = vec![
        ("wrong key", get().of(&caller).key("wrong&wrong")),
        ("body signed as a form", as_form),
    ];
    add(r#"reason="signature_invalid""#, wrong);
    let forged = get().header("X-Auth-User", "root");
    let unsigned = vec![
        ("unsigned", get()),
        ("forged identity", forged.header("x_auth_kind", "consumer")),
    ];
    add(r#"reason="parameter_absent""#, unsigned);
    let old = flow().parameter("oauth_timestamp", "1");
    let unknown = flow().parameter("oauth_consumer_key", "unknown");
    let in_query = Call::get("/x?x=1").of(&caller);
    let others = vec![
        ("right signature", get().of(&caller)),
        ("signed in the query", in_query.placed(Placement::Query)),
        ("broken credentials", authorized(get(), "OAuth broken")),
        ("old form for the flow", old),
        ("form of another consumer for the flow", unknown),
    ];
    add("", others);
    let outside = vec![("outside of the networks", Call::get("/inside").of(&caller))];
    add(
        r#"path="/inside" reason="permission_denied" denied_by="from""#,
        outside,
    );
    let unhashed = |path: &str, consumer| Call::post(path).json("{}").by(consumer);
    let call = unhashed("/outcomes", &caller.consumer);
    let missing = r#"path="/outcomes" reason="parameter_absent" parameters=oauth_body_hash"#;
    add(missing, vec![("operation that requires a body hash", call)]);
    let call = unhashed("/launch", &strict);
    let missing = r#"path="/launch" reason="parameter_absent" parameters=oauth_body_hash"#;
    add(missing, vec![("consumer that requires a body hash", call)]);
    let paths = words(
        r"/r/24%2FMB01 /products/24%2FMB01 /r/a%25b /r/items;jsessionid=AB12 //r/items /r//items /r/./x /r/../x /r/%zz
         /r/a%00b /r/a%5cb /R/items /products/1/ /none",
    );
    for path in &paths {
        let calls = [
            Call::get(path).of(&caller),
            Call::get(path),
            Call::new("post", path),
        ];
        add("", calls.map(|call| (*path, call)).into());
    }

    let count = cases.len();
    for (name, call, fields) in cases {
        let parts = [vec!["verdict=\"observed\""], words(fields)].concat();
        let (wire, before) = (proxy.wire(&call), proxy.logged(&parts));
        let mut connection = proxy.connect();
        connection.send(&wire);
        let answer = connection.answer(&call.method);
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        let seen = api.last_request();
        let end = wire
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .unwrap();
        let (head, body) = (String::from_utf8_lossy(&wire[..end]), &wire[end + 4..]);
        let body = if head.contains("chunked") {
            large.as_bytes()
        } else {
            body
        };
        assert!(
            seen.whole && seen.body == body,
            "{name}: {} bytes",
            seen.body.len()
        );
        let sent = head.lines().next().unwrap();
        assert_eq!(
            format!("{} {} HTTP/1.1", seen.method, seen.target),
            sent,
            "{name}"
        );
        let credentials = head
            .lines()
            .filter_map(|line| line.strip_prefix("Authorization: "));
        assert_eq!(
            seen.fields.all("authorization"),
            Vec::from_iter(credentials),
            "{name}"
        );
        let is_identity = |field: &str| {
            field
                .to_ascii_lowercase()
                .replace('_', "-")
                .starts_with("x-auth")
        };
        assert!(
            !seen.fields.0.iter().any(|(field, _)| is_identity(field)),
            "{name}: {seen:?}"
        );
        until(&format!("{name} is logged"), || {
            proxy.logged(&parts) > before
        });
    }
    assert_eq!(api.count(), count);
    proxy.logs(&[
        "24%2FMB01",
        "reason=\"bad_request\"",
        "verdict=\"observed\"",
    ]);
    assert!(proxy.metric("countersign_observed_total{verdict=\"bad_request\"}") > 0.0);
    // Token calls are never observed, nor what two programs frame differently.
    let token_call = Call::post("/w/index.php?mode=req_req_token").by(&caller.consumer);
    proxy.send(token_call).is(400, "parameter_absent");
    let mut connection = proxy.connect();
    let head = format!("POST /x HTTP/1.1\r\nHost: {}\r\n", proxy.host());
    let two = "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    connection.send((head + two).as_bytes());
    connection.answer("POST").has_status(400);
}

/// Spellings that some API takes for `POST /write/1`.
const ODD: &str = r"/WRITE/1 /Write/1 /write/1/ /write/1. /write//1 //write/1 /write%2F1 /write/1;x=y /write;x/1 /x/../write/1
    /x/..%2fwrite/1 /x/%2e%2e/write/1 /x/..;/write/1 /write\1 /write%5c1 /%2577rite/1 /write/1%00.png /write/1%20 /./write/1
    /write/a%2Fb /write/%25 /index.php/write/1 /x/index.php/write/1/ /index.php//write/1";

#[test]
fn enforced_operation_is_evaded_by_no_spelling_beside_observed() {
    let enforced = "{ path = '/write/{id}', methods = ['POST'], enforcement = 'enforce' }";
    let observed = "{ path = '/read/{*rest}', enforcement = 'observe' }";
    for (mode, operations) in [
        ("observe", enforced.to_owned()),
        ("observe", format!("{enforced}, {{ path = '/{{*all}}' }}")),
        (
            "enforce",
            format!("{observed}, {{ path = '/write/{{id}}', methods = ['POST'] }}"),
        ),
        (
            "enforce",
            format!("{observed}, {enforced}, {{ path = '/{{*all}}' }}"),
        ),
    ] {
        let api = Upstream::replying(|_| Reply::ok("seen"));
        let config = format!("signature.enforcement = '{mode}'\noperation = [{operations}]");
        let proxy = Proxy::with(&api, &config);
        let caller = proxy.somebody();
        for path in words(ODD).iter().map(|path| &**path).chain(["/write/1"]) {
            for method in ["POST", "post", "Post"] {
                let status = proxy.status(Call::new(method, path));
                assert!(
                    (400..500).contains(&status),
                    "{mode} {method} {path}: {status}"
                );
            }
        }
        let longer = format!("/{}write%2F1", "x/../".repeat(300));
        assert!((400..500).contains(&proxy.status(Call::post(&longer))));
        assert_eq!(api.count(), 0, "{mode} {operations}");
        proxy.passes(Call::post("/write/1").of(&caller));
        // All else of what is observed goes on.
        for path in words(r"/read/24%2FMB01 /read/a;b /read//x /READ/x /read/a%25b") {
            if mode == "observe" || path != "/READ/x" || !operations.contains("all") {
                proxy.send(Call::get(path)).has_status(200);
            }
        }
        if mode == "observe" {
            proxy.send(Call::get("/else")).has_status(200);
        } else {
            assert_eq!(proxy.status(Call::get("/else")) / 100, 4);
            assert_eq!(proxy.status(Call::get("/read/../else")) / 100, 4);
        }
    }
}

#[test]
fn the_flow_of_the_api_continues_while_its_calls_are_observed() {
    let further = "service.access_token_paths = ['/w/index.php?title=OAuth/token']";
    let mode = "signature.enforcement = 'observe'";
    let (api, mut proxy, caller) = Scene::with(&format!("{mode}\n{further}")).into_parts();
    let of_api = [
        Call::post("/oauth/request_token")
            .by(&caller.consumer)
            .parameter("oauth_callback", "oob"),
        Call::get("/oauth/authorize?oauth_token=old"),
        Call::post("/oauth/authorize").form("oauth_token=old&allow=1"),
        Call::post("/w/index.php?title=OAuth/token")
            .by(&caller.consumer)
            .with(&Token::new("old", "secret"))
            .parameter("oauth_verifier", "v"),
    ];
    for call in &of_api {
        proxy.send(call.clone()).has_status(200);
    }
    assert_eq!(api.count(), of_api.len());
    // Enforcing breaks none of them: ours takes the place of that flow.
    let observed = |proxy: &Proxy| {
        proxy
            .ask_admin("/metrics")
            .text()
            .contains("countersign_observed_total{")
    };
    assert!(!observed(&proxy));
    // At other paths it would.
    proxy
        .send(Call::post("/oauth/initiate").by(&caller.consumer))
        .has_status(200);
    assert!(observed(&proxy));
    // service.path is ours in every mode.
    proxy.request_token(&caller.consumer, "oob");
    let checked = proxy.run("check").done();
    assert!(
        checked.stdout.contains("continues at /oauth/request_token"),
        "{checked:?}"
    );

    let ours = |proxy: &Proxy| {
        let call = Call::post("/oauth/request_token")
            .by(&caller.consumer)
            .parameter("oauth_callback", "oob");
        token_of(&proxy.served(call));
        assert!(
            proxy
                .run("check")
                .done()
                .stdout
                .contains("is here, at /oauth/request_token")
        );
    };
    proxy.reload("service.flow = 'here'");
    ours(&proxy);
    proxy.reload("signature.enforcement = 'enforce'");
    ours(&proxy);

    // The old flow can continue beside enforced calls; an operation of its path counts all the same.
    proxy.reload("service.flow = 'api'\noperations.unlisted = ['consumer']");
    for call in of_api {
        proxy.send(call).has_status(200);
    }
    assert_eq!(proxy.status(Call::get("/oauth/Authorize")), 401);
    assert_eq!(proxy.status(Call::get("/else")), 401);
    proxy.reload("operation = [{ path = '/oauth/{*rest}' }]");
    let old = Call::get("/oauth/authorize?oauth_token=old");
    assert_eq!(proxy.status(old) / 100, 4);
}
