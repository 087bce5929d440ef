//! Observe mode forwards, and never weakens what is enforced beside it.
//!
//! Promise (Permissions and identity): In observe mode every call is forwarded unchanged, except messages that two programs would
//! frame differently, heads over their limits, bodies that do not arrive, and calls over a rate or in a brown-out; the log says
//! what enforcing would reject.
//! Promise (Permissions and identity): While all calls are observed, the API's own flow continues, and its calls are not listed
//! as calls that enforcing would reject.
//! Promise (Permissions and identity): If some operations are enforced and others observed, no spelling of path or method that an
//! API may take for an enforced one passes without a right signature. Also in `tests/attacks/routers.rs`.

use crate::support::{Call, Proxy, Reply, Scene, Token, Upstream, legs::token_of, text::words};

#[test]
fn observed_calls_reach_the_api_whatever_their_path() {
    let Scene { api, proxy, caller } = Scene::with(
        "signature.enforcement = 'observe'\n\
        operation = [{ path = '/r/{*rest}' }, { path = '/products/{sku}', methods = ['GET'] }]",
    );
    let paths = words(
        r"/r/24%2FMB01 /products/24%2FMB01 /r/a%25b /r/items;jsessionid=AB12 //r/items /r//items /r/./x /r/../x /r/%zz
         /r/a%00b /r/a%5cb /R/items /products/1/ /none",
    );
    for path in &paths {
        for call in [
            Call::get(path).of(&caller),
            Call::get(path),
            Call::new("post", path),
        ] {
            proxy.send(call).has_status(200);
            let seen = api.requests();
            assert_eq!(seen.last().unwrap().target, *path);
        }
    }
    assert_eq!(api.count(), 3 * paths.len());
    proxy.logs(&[
        "24%2FMB01",
        "reason=\"bad_request\"",
        "verdict=\"observed\"",
    ]);
    assert!(proxy.metric("countersign_observed_total{verdict=\"bad_request\"}") > 0.0);
}

#[test]
fn observed_forms_reach_the_api_whatever_their_size_and_coding() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let Scene { api, proxy, caller } = Scene::with("signature.enforcement = 'observe'");
    let large = format!("a={}", "x".repeat(1_200_000));
    let many = vec!["a=1"; 5_000].join("&");
    let pieces: Vec<&[u8]> = large.as_bytes().chunks(50_000).collect();
    let hash = ("oauth_body_hash", "2jmj7l5rSw0yVb/vlWAYkK/YBwk=");
    let calls = [
        (Call::post("/x").form(&large), &large, "payload_too_large"),
        (
            Call::post("/x").form(&large).of(&caller),
            &large,
            "payload_too_large",
        ),
        (
            Call::post("/x")
                .header("Content-Type", FORM)
                .chunked(&pieces),
            &large,
            "payload_too_large",
        ),
        (
            Call::post("/x")
                .of(&caller)
                .parameter(hash.0, hash.1)
                .json(&large),
            &large,
            "payload_too_large",
        ),
        (
            Call::post("/x").form(&many).of(&caller),
            &many,
            "payload_too_large",
        ),
        (
            Call::post("/x")
                .form(&many)
                .header("Content-Encoding", "gzip"),
            &many,
            "bad_request",
        ),
        (
            Call::post("/x")
                .form("a=1")
                .header("Content-Type", "text/plain"),
            &"a=1".to_owned(),
            "bad_request",
        ),
        (
            Call::post("/x")
                .form("a=1")
                .header("Authorization", "OAuth a=\"b\"")
                .header("Authorization", "Basic x"),
            &"a=1".to_owned(),
            "bad_request",
        ),
    ];
    for (index, (call, body, reason)) in calls.into_iter().enumerate() {
        let call = call.header("X-Request-Id", &format!("call-{index}"));
        proxy.send(call).has_status(200);
        let seen = api.requests().pop().unwrap();
        assert!(
            seen.whole && seen.body == body.as_bytes(),
            "call {index}: {} bytes",
            seen.body.len()
        );
        let verdict = format!("reason=\"{reason}\"");
        let lines = || proxy.logged(&["verdict=\"observed\"", &verdict]);
        crate::support::until("the line is logged", || lines() > 0);
    }
    assert_eq!(
        api.requests()
            .last()
            .unwrap()
            .fields
            .all("authorization")
            .len(),
        2
    );
    // What two programs frame differently, and a body that breaks off.
    let mut connection = proxy.connect();
    let head = format!("POST /x HTTP/1.1\r\nHost: {}\r\n", proxy.host());
    let two = "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    connection.send((head + two).as_bytes());
    connection.answer("POST").has_status(400);
}

/// Spellings that some API takes for `POST /write/1`.
const ODD: &str = r"/WRITE/1 /Write/1 /write/1/ /write/1. /write//1 //write/1 /write%2F1 /write/1;x=y /write;x/1 /x/../write/1
    /x/..%2fwrite/1 /x/%2e%2e/write/1 /x/..;/write/1 /write\1 /write%5c1 /%2577rite/1 /write/1%00.png /write/1%20 /./write/1
    /write/a%2Fb /write/%25";

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
    let Scene {
        api,
        mut proxy,
        caller,
    } = Scene::with(&format!("{mode}\n{further}"));
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
