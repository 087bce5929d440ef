//! The exchange of an access token for one of OAuth 2.

use super::*;

fn exchanged(answer: &Answer) -> Value {
    answer.has_status(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

#[test]
fn an_access_token_is_exchanged_for_one_of_oauth_2() {
    let mut scene = scene(&["a.pem"], "");
    // The header is not needed, and neither is the audience of the assertion.
    let gateway = "https://gateway.example.com";
    scene.proxy.reload(&format!(
        "exchange = {{ audience = '{gateway}', ttl = '5m' }}"
    ));
    let consumer = scene
        .proxy
        .consumer_with("Shop", "--permission b --permission a --permission c");
    let user = scene.caller.user.clone();
    let token = scene
        .proxy
        .token_with(&consumer, &user, "--permission a --permission b");
    scene.proxy.run(&format!(
        "consumer update {} --permission b --permission c",
        consumer.key
    ));
    let call = || {
        Call::post("/service.oauth?mode=exchange")
            .by(&consumer)
            .with(&token)
    };
    until("the permission is gone", || {
        exchanged(&scene.proxy.send(call()))["scope"] == "b"
    });
    let answer = exchanged(&scene.proxy.send(call()));
    let jwt = answer["access_token"].as_str().unwrap();
    assert_eq!(
        answer,
        json!({"access_token": jwt, "token_type": "Bearer", "expires_in": 300, "scope": "b"})
    );
    let kid = &scene.proxy.ask_admin("/jwks.json").json()["keys"][0]["kid"];
    assert_eq!(
        part(jwt, 0),
        json!({"typ": "at+jwt", "alg": "EdDSA", "kid": kid})
    );
    let mut found = claims(jwt);
    let members = found.as_object_mut().unwrap();
    let iat = members.remove("iat").unwrap().as_u64().unwrap();
    assert_eq!(members.remove("exp").unwrap(), iat + 300);
    members.remove("jti").unwrap();
    assert_eq!(
        found,
        json!({"iss": scene.proxy.origin(), "aud": gateway, "sub": user.id, "client_id": consumer.key, "scope": "b"})
    );
    // The gateway verifies it by the JWK set, as it does with those of any authorization server.
    let script = "import jwt, sys\n\
        keys = jwt.PyJWKClient(sys.argv[1])\n\
        token = sys.argv[2]\n\
        print(jwt.decode(token, keys.get_signing_key_from_jwt(token), algorithms=['EdDSA'], audience=sys.argv[3], issuer=sys.argv[4])['sub'])";
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.tools/venv/bin/python");
    let set = format!("{}/.well-known/jwks.json", scene.proxy.origin());
    let verified = run(
        Command::new(python).args(["-c", script, &set, jwt, gateway, &scene.proxy.origin()]),
        "",
    );
    assert_eq!(verified.done().stdout.trim(), user.id);
    // The first token stays valid, in every placement, until it is revoked.
    for placement in [Placement::Header, Placement::Query, Placement::Body] {
        exchanged(&scene.proxy.send(call().placed(placement)));
    }
    scene
        .proxy
        .passes(Call::get("/").by(&consumer).with(&token));
    scene.proxy.logs(&[
        "token_exchanged",
        &consumer.key,
        &user.id,
        &token.token[..8],
    ]);
    assert!(
        !scene
            .proxy
            .log()
            .lines()
            .iter()
            .any(|line| line.contains(jwt))
    );
    scene.proxy.run(&format!("token revoke {}", token.token));
    until("the token is revoked", || scene.proxy.status(call()) == 401);
    scene.proxy.rejects(call(), 401, "token_revoked");
}

#[test]
fn the_exchange_takes_only_a_post_signed_with_an_access_token() {
    let mut scene = scene(&["a.pem"], "");
    scene
        .proxy
        .rejects(exchanges(&scene), 400, "parameter_rejected");
    let unknown = scene
        .proxy
        .send(Call::get("/service.oauth?mode=exchange").of(&scene.caller));
    unknown.is(400, "parameter_rejected");
    scene
        .proxy
        .reload("exchange.audience = 'https://gateway.example.com'");
    let get = scene
        .proxy
        .send(Call::get("/service.oauth?mode=exchange").of(&scene.caller));
    get.has_status(405);
    assert_eq!(get.header("allow"), Some("POST"));
    let consumer = &scene.caller.consumer;
    let target = "/service.oauth?mode=exchange";
    scene
        .proxy
        .rejects(Call::post(target), 401, "parameter_absent");
    // No operation admits calls without a user.
    scene
        .proxy
        .rejects(Call::post(target).by(consumer), 401, "token_rejected");
    scene
        .proxy
        .rejects(exchanges(&scene).key("wrong"), 401, "signature_invalid");
    scene.proxy.rejects(
        exchanges(&scene).signs_method("GET"),
        401,
        "signature_invalid",
    );
    // The base string of the service's description leaves the query out.
    scene.proxy.rejects(
        exchanges(&scene).signed_as_described(),
        401,
        "signature_invalid",
    );
    let nonce = fresh("n");
    let again = || {
        exchanges(&scene)
            .parameter("oauth_nonce", &nonce)
            .parameter("oauth_timestamp", &now().to_string())
    };
    let first = again();
    exchanged(&scene.proxy.send(first.clone()));
    scene.proxy.rejects(first, 401, "nonce_used");
    let callback = "--callback https://shop.example/ready";
    let asking = scene.proxy.consumer_with("Asks", callback);
    let request_token = scene
        .proxy
        .request_token(&asking, "https://shop.example/ready");
    scene.proxy.rejects(
        Call::post(target).by(&asking).with(&request_token),
        401,
        "token_rejected",
    );
    let other = scene.proxy.consumer("Other");
    scene.proxy.rejects(
        Call::post(target).by(&other).with(&scene.caller.token),
        401,
        "token_rejected",
    );
    scene
        .proxy
        .run(&format!("consumer disable {}", consumer.key));
    until("the consumer is disabled", || {
        scene.proxy.status(exchanges(&scene)) == 401
    });
    scene
        .proxy
        .rejects(exchanges(&scene), 401, "consumer_key_refused");
    scene.api.saw_nothing();
}

#[test]
fn an_exchanged_token_ends_with_the_access_token() {
    let mut scene = scene(&["a.pem"], "");
    scene
        .proxy
        .reload("tokens.access_ttl = '100s'\nexchange = { audience = 'x', ttl = '1h' }");
    let user: &User = &scene.caller.user;
    let token = scene.proxy.token(&scene.caller.consumer, user);
    let call = Call::post("/service.oauth?mode=exchange")
        .by(&scene.caller.consumer)
        .with(&token);
    let answer = exchanged(&scene.proxy.send(call));
    assert!(answer["expires_in"].as_u64().unwrap() <= 100, "{answer}");
}

#[test]
fn the_exchange_announces_the_end_and_has_brown_outs() {
    let mut scene = scene(&["a.pem"], "");
    let exchange = "exchange.audience = 'https://gateway.example.com'\n";
    let sunset = "sunset = { deprecation = 2026-01-01T00:00:00Z, date = 2099-01-01T00:00:00Z";
    scene.proxy.reload(&format!("{exchange}{sunset} }}"));
    let answer = scene.proxy.send(exchanges(&scene));
    exchanged(&answer);
    assert_eq!(answer.header("deprecation"), Some("@1767225600"));
    let brown_out = "{ from = 2026-01-01T00:00:00Z, until = 2099-01-01T00:00:00Z }";
    scene
        .proxy
        .reload(&format!("{sunset}, brownout = [{brown_out}] }}"));
    let answer = scene.proxy.send(exchanges(&scene));
    answer.has_status(503);
    assert_eq!(answer.header("deprecation"), Some("@1767225600"));
}

/// An API that accepts OAuth 2 and the requests that countersign forwards.
#[test]
fn one_api_serves_assertions_and_exchanged_tokens() {
    let api = Upstream::replying(|seen| {
        let signed = seen.header("x-auth-assertion");
        let bearer = seen
            .header("authorization")
            .and_then(|field| field.strip_prefix("Bearer "));
        let (jwt, typ) = match (signed, bearer) {
            (Some(jwt), None) => (jwt, "countersign+jwt"),
            (None, Some(jwt)) => (jwt, "at+jwt"),
            _ => return Reply::status("401 Unauthorized"),
        };
        match part(jwt, 0)["typ"] == typ {
            true => Reply::ok(claims(jwt)["sub"].as_str().unwrap_or_default()),
            false => Reply::status("401 Unauthorized"),
        }
    });
    let builder = Proxy::in_front_of(&api);
    make_key(builder.directory(), "a.pem", ED25519);
    let both = config(&["a.pem"], "") + "[exchange]\naudience = 'https://api.internal'";
    let proxy = builder.config(&both).start();
    let caller = proxy.somebody();
    let scene = Scene { api, proxy, caller };
    let user = &scene.caller.user.id;
    assert_eq!(
        &scene.proxy.passes(Call::get("/").of(&scene.caller)).text(),
        user
    );
    let token = exchanged(&scene.proxy.send(exchanges(&scene)));
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    let wire = format!("GET / HTTP/1.1\r\nHost: api\r\nAuthorization: {bearer}\r\n\r\n");
    let mut direct = crate::support::Connection::to(scene.api.authority().parse().unwrap());
    direct.send(wire.as_bytes());
    assert_eq!(&direct.answer("GET").text(), user);
    // countersign does not accept a bearer token as a credential.
    scene.proxy.rejects(
        Call::get("/").header("Authorization", &bearer),
        401,
        "parameter_absent",
    );
}
