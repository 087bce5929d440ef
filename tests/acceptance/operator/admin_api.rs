//! The admin API over HTTP: the effect of each operation, its refusals, and who sees the change.
//!
//! Promise (Admin API): Without a right bearer token nothing can be read, and with the read token nothing can be changed; wrong tokens
//! are limited for each address, but a right one always works, and has at least 32 characters; SIGHUP reads a token file again. Also in
//! `tests/attacks/console.rs`, `src/operator/admin/tokens.rs`.
//! Promise (Admin API): The API manages consumers, users and tokens as the commands do, on SQLite and PostgreSQL; a secret is shown
//! only in the response that created it.
//! Promise (Admin API): Input that is unknown, repeated, too large, of another type or invalid is rejected with its place and changes
//! nothing; nor does an incomplete body.
//! Promise (Admin API): A change for an outdated state of the record is not made (`If-Match`); a use of the record does not outdate it.
//! Promise (Admin API): Every change has an audit record with the kind of token and the address, also if its caller has disconnected or
//! the store cannot write the record, and takes effect on every replica within a second.
//! Promise (Admin API): `/v1/explain` finds the mistake in a signature and never shows an expected signature or a secret.
//! Promise (Admin API): The OpenAPI document is correct: schemathesis finds no fault on SQLite and PostgreSQL, and a generated client
//! works.

use std::{
    fs::Permissions,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Answer, Call, Connection, Consumer, Operator, PATIENCE, Postgres, Proxy, Token, Upstream,
    Visitor, has, now, proxy::Builder, rows, signer, until, within,
};

const WRITE: &str = "the-token-that-writes-0123456789";
const READ: &str = "the-token-that-reads-01234567890";

/// A proxy with the admin API enabled.
fn with_api(api: &Upstream, config: &str) -> Builder {
    let builder = Proxy::in_front_of(api).config(config);
    let file = |name: &str, token: &str| {
        let path = builder.directory().join(name);
        std::fs::write(&path, format!("{token}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (write, read) = (file("write", WRITE), file("read", READ));
    builder.config(&format!(
        "admin.token_file = '{write}'\nadmin.read_token_file = '{read}'"
    ))
}

/// Sends a request to the admin listener; `fields` are whole lines.
#[track_caller]
fn ask(admin: SocketAddr, method: &str, path: &str, fields: &[&str], body: &str) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !fields.iter().any(|field| field.starts_with("Host:")) {
        head += "Host: localhost\r\n";
    }
    for field in fields {
        head += &format!("{field}\r\n");
    }
    if !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    let mut connection = Connection::to(admin);
    let _ = connection.try_send(format!("{head}\r\n{body}").as_bytes());
    connection.answer(method)
}

/// Sends JSON with the token that writes.
#[track_caller]
fn send(proxy: &Proxy, method: &str, path: &str, body: Value) -> Answer {
    let token = format!("Authorization: Bearer {WRITE}");
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let kind = match method {
        "PATCH" => "Content-Type: application/merge-patch+json",
        _ => "Content-Type: application/json",
    };
    let fields = [token.as_str(), kind];
    let fields = if body.is_empty() {
        &fields[..1]
    } else {
        &fields
    };
    // On a busy machine PostgreSQL may take longer than a request waits.
    within(PATIENCE, "the store answers", || {
        let answer = ask(proxy.admin(), method, path, fields, &body);
        (answer.status != 503).then_some(answer)
    })
}

#[track_caller]
fn get(proxy: &Proxy, path: &str) -> Answer {
    send(proxy, "GET", path, Value::Null)
}

#[track_caller]
fn done(proxy: &Proxy, method: &str, path: &str, body: Value) -> Value {
    let answer = send(proxy, method, path, body);
    assert!((200..300).contains(&answer.status), "{answer:?}");
    match answer.body.is_empty() {
        true => Value::Null,
        false => answer.json(),
    }
}

/// The status of a change for the record with this entity tag.
#[track_caller]
fn send_if(proxy: &Proxy, tag: &str, method: &str, path: &str, body: &Value) -> u16 {
    let fields = [
        &*format!("Authorization: Bearer {WRITE}"),
        &format!("If-Match: {tag}"),
        "Content-Type: application/json",
    ];
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    within(PATIENCE, "the store answers", || {
        let status = ask(proxy.admin(), method, path, &fields, &body).status;
        (status != 503).then_some(status)
    })
}

/// The values of a member of the items of a list.
#[track_caller]
fn listed(proxy: &Proxy, path: &str, member: &str) -> Vec<String> {
    let list = get(proxy, path).has_status(200).json();
    let items = list["items"].as_array().unwrap().iter();
    let names = items.map(|item| item[member].as_str().unwrap().to_owned());
    names.collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is text"))
}

/// Runs a test with a store of each kind.
fn with_each_store(test: impl Fn(&str)) {
    let server = Postgres::start();
    test("");
    test(&format!(
        "store.backend = 'postgres'\nstore.url = '{}'",
        server.database()
    ));
}

#[test]
fn consumers_users_and_tokens_are_made_changed_and_removed_over_the_admin_api() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, store).start();
        let new = json!({
            "key": "a/b=c", "name": "Shop", "callbacks": ["https://shop.example/cb", "oob"],
            "permissions": ["read", "write"], "description": "Sells things",
        });
        let answer = send(&proxy, "POST", "/v1/consumers", new);
        answer.has_status(201);
        let place = "/v1/consumers/a%2Fb%3Dc";
        assert_eq!(answer.header("Location"), Some(place));
        let made = answer.json();
        let shop = Consumer::new("a/b=c", text(&made["secret"]));
        let shown = get(&proxy, place);
        assert_eq!(shown.header("ETag"), answer.header("ETag"));
        for (name, value) in made.as_object().unwrap() {
            match name.as_str() {
                "secret" => assert_eq!(shown.json().get(name), None, "never shown again"),
                name => assert_eq!(shown.json()[name], *value, "{name}"),
            }
        }
        let command = proxy.run("consumer show a/b=c --json").json();
        assert_eq!(shown.json(), command, "the same view as the command's");

        let bob = json!({ "name": "bob", "id": "bob-1", "password": "bob's password" });
        let user = done(&proxy, "POST", "/v1/users", bob);
        assert_eq!(user["id"], "bob-1");
        let issue = json!({ "consumer": "a/b=c", "user": "bob-1", "permissions": ["read"] });
        let issued = done(&proxy, "POST", "/v1/tokens", issue.clone());
        assert_eq!(issued["permissions"], json!(["read"]));
        let token = Token::new(text(&issued["token"]), text(&issued["token_secret"]));
        let call = |consumer: &Consumer, token: &Token| {
            proxy.send(Call::get("/x").by(consumer).with(token))
        };
        call(&shop, &token).has_status(200);
        assert_eq!(upstream.last_request().header("X-Auth-User"), Some("bob-1"));
        let first = format!("/v1/tokens/{}", &token.token[..8]);
        let shown = get(&proxy, &first).has_status(200).json();
        assert_eq!(shown["token"], token.token.as_str());
        assert_eq!(shown.get("token_secret"), None);

        // A change is effective in this process before its response.
        let patch = json!({ "name": "Store", "description": null, "enabled": false });
        let changed = done(&proxy, "PATCH", place, patch);
        assert_eq!(
            (
                &changed["name"],
                &changed["description"],
                &changed["permissions"]
            ),
            (&json!("Store"), &Value::Null, &json!(["read", "write"]))
        );
        call(&shop, &token).is(401, "consumer_key_refused");
        done(&proxy, "PATCH", place, json!({ "enabled": true }));
        call(&shop, &token).has_status(200);

        let rotated = done(
            &proxy,
            "POST",
            &format!("{place}/secret"),
            json!({ "grace": "1h" }),
        );
        let renewed = Consumer::new("a/b=c", text(&rotated["secret"]));
        assert!(rotated["previous_secret_until"].is_string());
        call(&renewed, &token).has_status(200);
        call(&shop, &token).has_status(200);
        for _ in 0..2 {
            let ended = send(
                &proxy,
                "DELETE",
                &format!("{place}/secret/previous"),
                Value::Null,
            );
            ended.has_status(204);
        }
        call(&shop, &token).is(401, "signature_invalid");
        let again = send(&proxy, "POST", &format!("{place}/secret"), Value::Null);
        assert_ne!(again.has_status(200).json()["secret"], rotated["secret"]);

        send(&proxy, "DELETE", &first, Value::Null).has_status(204);
        for method in ["GET", "DELETE"] {
            send(&proxy, method, &first, Value::Null).has_status(404);
        }
        assert!(listed(&proxy, "/v1/tokens", "token").is_empty());
        for _ in 0..3 {
            done(&proxy, "POST", "/v1/tokens", issue.clone());
        }
        assert_eq!(
            listed(&proxy, "/v1/tokens?user=bob-1&consumer=a/b%3Dc", "token").len(),
            3
        );
        let revoked = done(&proxy, "DELETE", "/v1/tokens?user=bob-1", Value::Null);
        assert_eq!(revoked, json!({ "revoked": 3 }));

        let renamed = done(
            &proxy,
            "PATCH",
            "/v1/users/bob-1",
            json!({ "name": "robert" }),
        );
        assert_eq!(
            (&renamed["name"], &renamed["id"]),
            (&json!("robert"), &json!("bob-1"))
        );
        let new = json!({ "password": "another password" });
        send(&proxy, "PUT", "/v1/users/bob-1/password", new).has_status(204);
        let kept = done(&proxy, "POST", "/v1/tokens", issue);
        done(
            &proxy,
            "PATCH",
            "/v1/users/bob-1",
            json!({ "enabled": false }),
        );
        get(&proxy, &format!("/v1/tokens/{}", text(&kept["token"]))).has_status(404);
        send(&proxy, "DELETE", "/v1/users/bob-1", Value::Null).has_status(204);
        get(&proxy, "/v1/users/bob-1").has_status(404);
        send(&proxy, "DELETE", place, Value::Null).has_status(204);
        get(&proxy, place).has_status(404);
        let same = json!({ "name": "Shop", "key": "a/b=c" });
        send(&proxy, "POST", "/v1/consumers", same).has_status(409);
        for secret in [
            &shop.secret,
            &renewed.secret,
            &token.secret,
            "bob's password",
            WRITE,
        ] {
            assert!(
                !proxy.log().to_string().contains(secret),
                "no secret in the log"
            );
        }
    });
}

#[test]
fn an_impossible_request_gets_a_problem_with_the_reason() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "admin.hosts = ['admin.example']").start();
    let shop = json!({ "key": "shop", "name": "Shop", "permissions": ["read"] });
    done(&proxy, "POST", "/v1/consumers", shop);
    done(
        &proxy,
        "POST",
        "/v1/users",
        json!({ "id": "u", "name": "bob" }),
    );
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(64 << 10));
    let json = "Content-Type: application/json";
    let plain = "Content-Type: text/plain";
    for [method, path, token, field, body, expected] in rows(
        r#"
        GET    | /v1/consumers | none  |   |   | 401
        GET    | /v1/consumers | wrong |   |   | 401
        GET    | /v1/nothing   | none  |   |   | 401
        GET    | /v1           | write |   |   | 404
        GET    | /v1/nothing   | write |   |   | 404
        GET    | /v1/openapi.json | none |  |   | 401
        GET    | /v1/openapi.json | read |  |   | 200
        GET    | /v1/consumers/| write |   |   | 404
        GET    | /v1/users/u/x | write |   |   | 404
        GET    | /v1/users/%ff | write |   |   | 404
        GET    | /v1/users/v   | write |   |   | 404
        HEAD   | /v1/users/u   | read  |   |   | 200
        PUT    | /v1/consumers | write |   |   | 405 GET, HEAD, POST
        GET    | /v1/explain   | read  |   |   | 405 POST
        POST   | /v1/consumers | read  | json | {"name":"x"} | 403
        DELETE | /v1/consumers/shop | read | | | 403
        POST   | /v1/consumers/shop/link | read | | | 403
        GET    | /v1/consumers/shop/link | read | | | 405 POST, DELETE
        POST   | /v1/consumers/none/link | write | | | 404
        DELETE | /v1/consumers/shop/link | write | | | 404
        POST   | /v1/explain   | read  | json | {"request":""} | 403
        POST   | /v1/consumers | write | text | {"name":"x"} | 415
        POST   | /v1/consumers | write |      | {"name":"x"} | 415
        PATCH  | /v1/consumers/shop | write |  | | 415
        POST   | /v1/consumers | write | json | large | 413
        GET    | /v1/consumers | write | Host: evil.example | | 421
        GET    | /v1/consumers | none  | Host: evil.example | | 421
        GET    | /v1/consumers | read  | Host: admin.example:81 | | 200
        GET    | /v1/consumers | read  | Host: 192.0.2.1 | | 200
        POST   | /v1/consumers | write | json | {"name":"x","key":"shop"} | 409
        POST   | /v1/users     | write | json | {"name":"BOB"} | 409
        POST   | /v1/users     | write | json | {"name":"eve","id":"u"} | 409
        POST   | /v1/tokens    | write | json | {"consumer":"none","user":"u"} | 404
        POST   | /v1/consumers | write | json | {} | 422 /name
        POST   | /v1/consumers | write | json | {"name":" x"} | 422 /name
        POST   | /v1/consumers | write | json | {"name":"x","nam":"y"} | 422 /nam
        POST   | /v1/consumers | write | json | {"name":"x","name":"y"} | 422 /name
        POST   | /v1/consumers | write | json | {"name":"x","enabled":1} | 422 /enabled
        POST   | /v1/consumers | write | json | {"name":"x","permissions":["a","b c"]} | 422 /permissions/1
        POST   | /v1/consumers | write | json | {"name":"x","callbacks":["oob","javascript:x"]} | 422 /callbacks/1
        POST   | /v1/consumers | write | json | {"name":"x","key":".."} | 422 /key
        POST   | /v1/consumers | write | json | {"name":"x","secret":""} | 422 /secret
        POST   | /v1/consumers | write | json | {"name":"x","rsa_only":true} | 422 /rsa_only
        POST   | /v1/consumers | write | json | {"name":"x","rsa_public_key":"x"} | 422 /rsa_public_key
        POST   | /v1/consumers | write | json | {"name":"x","website":"javascript:x"} | 422 /website
        POST   | /v1/consumers | write | json | [1] | 422
        POST   | /v1/consumers | write | json | {"name" | 422
        POST   | /v1/consumers?x=1 | write | json | {"name":"x"} | 422 /x
        PATCH  | /v1/consumers/shop | write | json | {"key":"other"} | 422 /key
        PATCH  | /v1/consumers/shop | write | json | {"secret":"x"} | 422 /secret
        PATCH  | /v1/consumers/shop | write | json | {"enabled":null} | 422 /enabled
        PATCH  | /v1/consumers/shop | write | json | {"created_at":"2020-01-01T00:00:00Z"} | 422 /created_at
        POST   | /v1/consumers/shop/secret | write | json | {"grace":"soon"} | 422 /grace
        POST   | /v1/consumers/shop/secret | write | json | {"grave":"1h"} | 422 /grave
        PATCH  | /v1/users/u   | write | json | {"id":"v"} | 422 /id
        PATCH  | /v1/users/u   | write | json | {"password":"x"} | 422 /password
        PUT    | /v1/users/u/password | write | json | {"password":""} | 422 /password
        PUT    | /v1/users/u/password | write | json | {} | 422
        POST   | /v1/tokens    | write | json | {"consumer":"shop","user":"u","permissions":["other"]} | 422 /permissions
        GET    | /v1/consumers?limit=0 | read | | | 422 /limit
        GET    | /v1/consumers?limit=1001 | read | | | 422 /limit
        GET    | /v1/consumers?limit=%2B1 | read | | | 422 /limit
        GET    | /v1/consumers?limit=1&limit=1 | read | | | 422 /limit
        GET    | /v1/consumers?enabled=yes | read | | | 422 /enabled
        GET    | /v1/consumers?unused_for=90 | read | | | 422 /unused_for
        GET    | /v1/tokens?cursor=x | read | | | 422 /cursor
        GET    | /v1/tokens?consumer= | read | | | 422 /consumer
        GET    | /v1/consumers/shop?x | read | | | 422 /x
        DELETE | /v1/tokens | write | | | 422 /consumer
        DELETE | /v1/tokens?unused_for=0s | write | | | 422 /unused_for
        DELETE | /v1/tokens?unused_for=999ms | write | | | 422 /unused_for
        GET    | /v1/consumers?~/=x | read | | | 422 /~0~1
        GET    | /v1/tokens/%00aaaaaaa | read | | | 404
        GET    | /v1/tokens?cursor=0.%00 | read | | | 422 /cursor
        DELETE | /v1/consumers/shop | write | If-Match: | | 412
        DELETE | /v1/users/u/sessions | write | If-Match: "other" | | 412
        POST   | /v1/tokens    | write | json | {"consumer":"shop","user":"u","permissions":[]} | 422 /permissions
        PUT    | /v1/users/u/password | write | json | {"password":12345678} | 422 /password
        POST   | /v1/consumers/shop/secret | write | json | {"secret":12345678} | 422 /secret
        POST   | /v1/explain | write | json | {"request":"x"} | 422 /request
    "#,
    ) {
        let bearer = |token: &str| format!("Authorization: Bearer {token}");
        let token = match token {
            "none" => "X-None: 1".to_owned(),
            "read" => bearer(READ),
            "write" => bearer(WRITE),
            wrong => bearer(wrong),
        };
        let field = match field {
            "json" => json,
            "text" => plain,
            "" => "X-Other: 1",
            field => field,
        };
        let body = if body == "large" { &large } else { body };
        let answer = ask(proxy.admin(), method, path, &[&token, field], body);
        let case = format!("{method} {path} {body:.60}: {answer:?}");
        let (status, detail) = expected.split_once(' ').unwrap_or((expected, ""));
        assert_eq!(answer.status.to_string(), status, "{case}");
        if answer.status == 200 {
            continue;
        }
        assert_eq!(
            answer.header("Content-Type"),
            Some("application/problem+json"),
            "{case}"
        );
        let problem = answer.json();
        assert_eq!(problem["status"], answer.status, "{case}");
        assert!(!problem.to_string().contains("12345678"), "{case}");
        assert!(!text(&problem["detail"]).starts_with(':'), "{case}");
        match answer.status {
            401 => assert!(
                answer
                    .header("WWW-Authenticate")
                    .unwrap()
                    .starts_with("Bearer "),
                "{case}"
            ),
            405 => assert_eq!(answer.header("Allow"), Some(detail), "{case}"),
            422 => assert_eq!(text(&problem["errors"][0]["pointer"]), detail, "{case}"),
            _ => {}
        }
    }
    // None of it took effect.
    assert_eq!(listed(&proxy, "/v1/consumers", "key"), ["shop"]);
    assert_eq!(listed(&proxy, "/v1/users", "id"), ["u"]);
    assert_eq!(listed(&proxy, "/v1/tokens", "token").len(), 0);
    // Only the admin listener serves them.
    proxy
        .send(Call::get("/v1/consumers"))
        .is(401, "parameter_absent");
}

#[test]
fn without_a_token_file_there_is_no_admin_api() {
    let upstream = Upstream::start();
    let mut proxy = Proxy::in_front_of(&upstream).start();
    let token = format!("Authorization: Bearer {WRITE}");
    let status = |proxy: &Proxy, token: &str| {
        ask(proxy.admin(), "GET", "/v1/consumers", &[token], "").status
    };
    assert_eq!(status(&proxy, &token), 404);
    // The page of the console says how to switch it on.
    let off = ask(proxy.admin(), "GET", "/", &[], "");
    off.has_status(404);
    has(&off.text(), &["admin.token", "token_file"]);
    let file = proxy.directory().join("token");
    std::fs::write(&file, WRITE).unwrap();
    proxy.reconfigure(&format!("admin.token_file = '{}'", file.display()));
    proxy.signal(Signal::HUP);
    until("the API is on", || status(&proxy, &token) == 200);
    // A broken file changes nothing, and the response says so.
    std::fs::write(&file, "two\nlines").unwrap();
    proxy.signal(Signal::HUP);
    proxy.logs(&[
        "reload failed",
        "admin.token_file",
        "line 1: expected NAME:TOKEN",
    ]);
    assert_eq!(status(&proxy, &token), 200);
    std::fs::write(&file, "a-token-of-31-characters-012345").unwrap();
    proxy.signal(Signal::HUP);
    proxy.logs(&["reload failed"]);
    std::fs::write(&file, READ).unwrap();
    proxy.signal(Signal::HUP);
    until("the old token ends", || status(&proxy, &token) == 401);
    assert_eq!(
        status(&proxy, &format!("Authorization: Bearer {READ}")),
        200
    );
}

#[test]
fn wrong_admin_tokens_of_one_address_are_limited() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let guess = |token: &str| {
        let field = format!("Authorization: Bearer {token}");
        ask(proxy.admin(), "GET", "/v1/consumers", &[&field], "")
    };
    for number in 0..30 {
        guess(&format!("guess-{number}")).has_status(401);
    }
    // Past the limit wrong ones wait. The right ones work, or anybody could lock all operators out that a proxy passes on.
    for right in [WRITE, READ] {
        let answer = guess("guess");
        answer.has_status(429);
        let after: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
        assert!((1..=30).contains(&after), "{after}");
        guess(right).has_status(200);
    }
    assert!(!proxy.log().to_string().contains("guess"));
}

#[test]
fn a_change_with_a_stale_entity_tag_is_rejected() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, store).start();
        done(
            &proxy,
            "POST",
            "/v1/consumers",
            json!({ "key": "shop", "name": "Shop" }),
        );
        done(
            &proxy,
            "POST",
            "/v1/users",
            json!({ "id": "u", "name": "bob" }),
        );
        let issue = json!({ "consumer": "shop", "user": "u" });
        let issued = done(&proxy, "POST", "/v1/tokens", issue);
        let token = Token::new(text(&issued["token"]), text(&issued["token_secret"]));
        let tag = |path: &str| get(&proxy, path).header("ETag").unwrap().to_owned();
        let place = format!("/v1/tokens/{}", token.token);
        let send_if = |tag: &str, method: &str, path: &str, body: Value| {
            send_if(&proxy, tag, method, path, &body)
        };
        for (method, path, body, of, success) in [
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "name": "A" }),
                "/v1/consumers/shop",
                200,
            ),
            (
                "POST",
                "/v1/consumers/shop/secret",
                json!({ "grace": "1h" }),
                "/v1/consumers/shop",
                200,
            ),
            (
                "POST",
                "/v1/consumers/shop/secret",
                json!({}),
                "/v1/consumers/shop",
                200,
            ),
            (
                "PATCH",
                "/v1/users/u",
                json!({ "name": "robert" }),
                "/v1/users/u",
                200,
            ),
            (
                "PUT",
                "/v1/users/u/password",
                json!({ "password": "a new password" }),
                "/v1/users/u",
                204,
            ),
            (
                "DELETE",
                "/v1/consumers/shop/secret/previous",
                Value::Null,
                "/v1/consumers/shop",
                204,
            ),
            (
                "DELETE",
                "/v1/users/u/sessions",
                Value::Null,
                "/v1/users/u",
                204,
            ),
            ("DELETE", &place, Value::Null, &place, 204),
            ("DELETE", "/v1/users/u", Value::Null, "/v1/users/u", 204),
            (
                "DELETE",
                "/v1/consumers/shop",
                Value::Null,
                "/v1/consumers/shop",
                204,
            ),
        ] {
            let before = tag(of);
            let weak = format!("W/{before}");
            for wrong in ["\"other\"", &weak] {
                assert_eq!(
                    send_if(wrong, method, path, body.clone()),
                    412,
                    "{method} {path}"
                );
            }
            let list = format!("\"other\", {before}");
            assert_eq!(
                send_if(&list, method, path, body.clone()),
                success,
                "{method} {path}"
            );
            // A password is not shown, so it is not part of the tag.
            if !["DELETE", "PUT"].contains(&method) {
                assert_eq!(
                    send_if(&before, method, path, body.clone()),
                    412,
                    "{method} {path}"
                );
                assert_eq!(send_if("*", method, path, body), success, "{method} {path}");
            }
        }
    });
}

#[test]
fn an_entity_tag_does_not_depend_on_the_last_use() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let caller = proxy.somebody();
    let consumer = format!("/v1/consumers/{}", caller.consumer.key);
    let token = format!("/v1/tokens/{}", caller.token.token);
    let tag = |path: &str| get(&proxy, path).header("ETag").unwrap().to_owned();
    let before = [&consumer, &token].map(|path| tag(path));
    proxy.passes(Call::get("/x").of(&caller));
    for (path, before) in [&consumer, &token].into_iter().zip(&before) {
        until("its use is shown", || {
            get(&proxy, path).json()["last_used_at"].is_string()
        });
        assert_eq!(tag(path), *before, "{path}");
    }
    let [of_consumer, of_token] = before;
    for (tag, method, path, body, status) in [
        (&of_token, "DELETE", &token, Value::Null, 204),
        (
            &of_consumer,
            "PATCH",
            &consumer,
            json!({ "name": "A" }),
            200,
        ),
    ] {
        assert_eq!(send_if(&proxy, tag, method, path, &body), status, "{path}");
    }
}

#[test]
fn a_body_that_does_not_arrive_whole_changes_nothing() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let consumer = proxy.consumer("Shop");
    let operator = Operator::with(&proxy, WRITE);
    let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
    let call = operator.call_of(&asked, &asked.form_with("confirmed"));
    let call = call.header("Cookie", operator.cookie.as_deref().unwrap());
    let form = call.wire("", &proxy.admin().to_string());
    let json = format!(
        "POST /v1/consumers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRITE}\r\n\
         Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"name\":\"Abc\""
    );
    let mut connections = [&form[..form.len() - 1], json.as_bytes()].map(|bytes| {
        let mut connection = Connection::to(proxy.admin());
        connection.send(bytes);
        connection
    });
    for connection in &mut connections {
        connection.answer("POST").has_status(408);
        assert!(connection.is_closed(), "the rest is no request");
    }
    let list = get(&proxy, "/v1/consumers").has_status(200).json();
    let list = list["items"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!(list[0]["enabled"], true);
}

#[test]
fn a_consumer_signs_with_the_secret_and_the_key_that_were_given() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (private, public) = signer::rsa_key_pair(proxy.directory());
    let new = json!({
        "key": "k", "name": "Shop", "secret": "given secret",
        "rsa_public_key": std::fs::read_to_string(public).unwrap(),
    });
    let made = done(&proxy, "POST", "/v1/consumers", new);
    assert_eq!(made["secret"], "given secret");
    let user = proxy.user("alice");
    let given = Consumer::new("k", "given secret");
    let token = proxy.token(&given, &user);
    let call = |secret: &str| {
        let consumer = Consumer::new("k", secret);
        Call::get("/x").by(&consumer).with(&token)
    };
    proxy.passes(call("given secret"));
    proxy.passes(call("").rsa("RSA-SHA1", &private));
    let rotation = json!({ "secret": "another secret" });
    let rotated = done(&proxy, "POST", "/v1/consumers/k/secret", rotation);
    assert_eq!(rotated["secret"], "another secret");
    proxy.passes(call("another secret"));
    proxy.rejects(call("given secret"), 401, "signature_invalid");
    let shown = get(&proxy, "/v1/consumers/k").json();
    assert_eq!(
        (&shown["has_rsa_public_key"], shown.get("secret")),
        (&json!(true), None)
    );
}

#[test]
fn a_list_has_100_items_by_default_and_8_characters_can_match_two_tokens() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (consumer, user, _) = proxy.somebody().into_parts();
    let tokens = (100..201).map(|number| {
        let (key, id) = (&consumer.key, &user.id);
        let token = json!({ "kind": "token", "token": format!("imported-{number}"), "token_secret": "s", "consumer": key, "user": id });
        format!("{token}\n")
    });
    let lines = format!(
        "{{\"kind\":\"export\",\"version\":1}}\n{}",
        tokens.collect::<String>()
    );
    proxy.command_with(&["import", "-"], &lines).done();
    for (path, count) in [
        ("/v1/tokens", 100),
        ("/v1/tokens?limit=1000", 102),
        ("/v1/tokens?limit=1", 1),
    ] {
        assert_eq!(listed(&proxy, path, "token").len(), count, "{path}");
    }
    for method in ["GET", "DELETE"] {
        let problem = send(&proxy, method, "/v1/tokens/imported", Value::Null);
        has(
            text(&problem.has_status(409).json()["detail"]),
            &["give the whole token"],
        );
    }
    done(&proxy, "DELETE", "/v1/tokens/imported-100", Value::Null);
    assert_eq!(listed(&proxy, "/v1/tokens?limit=1000", "token").len(), 101);
}

#[test]
fn sessions_of_a_user_are_listed_in_pages_and_ended() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let user = proxy.user("alice");
    let place = format!("/v1/users/{}/sessions", user.id);
    let mut visitors = [(); 3].map(|()| Visitor::logged_in(&proxy, &user));
    let whole = get(&proxy, &place).has_status(200).json();
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    while pages.len() < 3 {
        let page = get(&proxy, &format!("{place}?limit=1{cursor}")).json();
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{page}");
        assert!(items[0]["expires_at"].is_string(), "{page}");
        pages.extend(items.iter().cloned());
        assert_eq!(page["next"].is_null(), pages.len() == 3, "{page}");
        cursor = format!("&cursor={}", page["next"].as_str().unwrap_or_default());
    }
    assert_eq!(
        (&whole["items"], &whole["next"]),
        (&json!(pages), &Value::Null)
    );
    send(&proxy, "DELETE", &place, Value::Null).has_status(204);
    let left = get(&proxy, &place).has_status(200).json();
    assert_eq!(left, json!({ "items": [], "next": null }));
    for visitor in &mut visitors {
        let page = visitor.open("/service.oauth?mode=applications");
        page.form_with("username");
    }
}

#[test]
fn lists_are_paged_and_filtered() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, store).start();
        for number in 0..5 {
            let name = format!("Shop {number} 100%");
            let new = json!({ "key": format!("k{number}"), "name": name, "enabled": number != 3 });
            done(&proxy, "POST", "/v1/consumers", new);
            let new = json!({ "id": format!("u{number}"), "name": format!("User_{number}") });
            done(&proxy, "POST", "/v1/users", new);
        }
        for number in 0..5 {
            let issue = json!({ "consumer": "k1", "user": format!("u{number}") });
            done(&proxy, "POST", "/v1/tokens", issue);
        }
        let all = |path: &str, member: &str| {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let list = get(&proxy, &format!("{path}limit=2{cursor}"))
                    .has_status(200)
                    .json();
                let items = list["items"].as_array().unwrap();
                assert!((1..=2).contains(&items.len()), "{list}");
                seen.extend(items.iter().map(|item| text(&item[member]).to_owned()));
                match &list["next"] {
                    Value::Null => return seen,
                    next => {
                        let next: String =
                            url::form_urlencoded::byte_serialize(text(next).as_bytes()).collect();
                        cursor = format!("&cursor={next}");
                    }
                }
            }
        };
        assert_eq!(all("/v1/consumers?", "key"), ["k0", "k1", "k2", "k3", "k4"]);
        assert_eq!(all("/v1/users?", "id"), ["u0", "u1", "u2", "u3", "u4"]);
        for path in ["/v1/tokens?", "/v1/tokens?unused_for=0s&"] {
            let mut users = all(path, "user");
            users.sort();
            assert_eq!(users, ["u0", "u1", "u2", "u3", "u4"], "{path}");
        }
        for [path, member, expected] in rows(
            "
            /v1/consumers?q=K2                       | key | k2
            /v1/consumers?q=shop+4                   | key | k4
            /v1/consumers?q=%25                      | key | k0 k1 k2 k3 k4
            /v1/consumers?q=0%25&enabled=false       | key | k3
            /v1/consumers?q=_                        | key |
            /v1/consumers?enabled=false              | key | k3
            /v1/consumers?enabled=true&limit=3       | key | k0 k1 k2
            /v1/consumers?unused_for=0s              | key | k0 k1 k2 k3 k4
            /v1/consumers?unused_for=1h              | key |
            /v1/users?q=user_1                       | id  | u1
            /v1/users?enabled=false                  | id  |
            /v1/tokens?user=u2                       | user | u2
            /v1/tokens?user=u2&consumer=k2           | user |
            /v1/tokens?consumer=k1&user=u4&unused_for=0s | user | u4
            /v1/tokens?unused_for=1h                 | user |
        ",
        ) {
            assert_eq!(listed(&proxy, path, member).join(" "), expected, "{path}");
        }
        let revoked = done(&proxy, "DELETE", "/v1/tokens?unused_for=1d", Value::Null);
        assert_eq!(revoked["revoked"], 0);
        let revoked = done(
            &proxy,
            "DELETE",
            "/v1/tokens?unused_for=0s&user=u0",
            Value::Null,
        );
        assert_eq!(revoked["revoked"], 1);
        let all = "/v1/tokens?unused_for=0s&consumer=k1";
        let revoked = done(&proxy, "DELETE", all, Value::Null);
        assert_eq!(revoked["revoked"], 4);
    });
}

#[test]
fn each_change_is_an_audit_record_of_token_and_address() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, &format!("log.format = 'json'\n{store}")).start();
        for (method, path, body, event) in [
            (
                "POST",
                "/v1/consumers",
                json!({ "key": "shop", "name": "Shop" }),
                "consumer_registered",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "name": "Store" }),
                "consumer_changed",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "enabled": false }),
                "consumer_disabled",
            ),
            (
                "PATCH",
                "/v1/consumers/shop",
                json!({ "enabled": true }),
                "consumer_enabled",
            ),
            (
                "POST",
                "/v1/consumers/shop/secret",
                json!({}),
                "consumer_secret_rotated",
            ),
            (
                "DELETE",
                "/v1/consumers/shop/secret/previous",
                Value::Null,
                "consumer_grace_ended",
            ),
            (
                "POST",
                "/v1/users",
                json!({ "id": "u", "name": "bob" }),
                "user_added",
            ),
            (
                "PATCH",
                "/v1/users/u",
                json!({ "display_name": "Bob" }),
                "user_changed",
            ),
            (
                "PUT",
                "/v1/users/u/password",
                json!({ "password": "a password" }),
                "password_changed",
            ),
            (
                "DELETE",
                "/v1/users/u/sessions",
                Value::Null,
                "sessions_ended",
            ),
            (
                "DELETE",
                "/v1/users/u/login-pauses",
                Value::Null,
                "login_pauses_ended",
            ),
            (
                "POST",
                "/v1/tokens",
                json!({ "consumer": "shop", "user": "u" }),
                "access_token_issued",
            ),
            ("DELETE", "/v1/tokens?user=u", Value::Null, "tokens_revoked"),
            (
                "PATCH",
                "/v1/users/u",
                json!({ "enabled": false }),
                "user_disabled",
            ),
            ("DELETE", "/v1/users/u", Value::Null, "user_removed"),
            (
                "DELETE",
                "/v1/consumers/shop",
                Value::Null,
                "consumer_removed",
            ),
        ] {
            done(&proxy, method, path, body);
            let record = proxy.log().wait_for(event, |line| {
                let record: Value = serde_json::from_str(line).ok()?;
                (record["target"] == "audit" && record["event"] == event).then_some(record)
            });
            assert_eq!(
                (&record["by"], &record["admin_token"], &record["address"]),
                (&json!("api"), &json!("write"), &json!("127.0.0.1")),
                "{record}"
            );
            let of_user = ["user", "password", "sessions"]
                .iter()
                .any(|word| event.starts_with(word));
            let subject = if of_user {
                ("user", "u")
            } else {
                ("consumer", "shop")
            };
            if event != "tokens_revoked" {
                assert_eq!(record[subject.0], subject.1, "{record}");
            }
        }
        assert_eq!(proxy.logged(&["\"audit_id\""]), 15, "each once");
    });
}

#[test]
fn a_change_of_several_members_is_recorded_with_their_names() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let new = json!({ "key": "shop", "name": "Shop", "enabled": false });
    done(&proxy, "POST", "/v1/consumers", new);
    let patch = json!({ "enabled": true, "callbacks": ["oob"], "name": "Shop" });
    done(&proxy, "PATCH", "/v1/consumers/shop", patch);
    proxy.logs(&[
        "event=\"consumer_changed\"",
        "members=\"callbacks enabled\"",
    ]);
    assert_eq!(proxy.logged(&["consumer_enabled"]), 0);
}

#[test]
fn a_change_is_recorded_although_its_caller_has_gone() {
    const CALLERS: usize = 20;

    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    for number in 0..CALLERS {
        let body = format!("{{\"name\":\"Shop\",\"key\":\"k{number}\"}}");
        let head = format!(
            "POST /v1/consumers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRITE}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut connection = Connection::to(proxy.admin());
        connection.send(format!("{head}{body}").as_bytes());
    }
    // Some may have been removed before their request was read.
    done(
        &proxy,
        "POST",
        "/v1/consumers",
        json!({ "name": "Shop", "key": "last" }),
    );
    let registered = || listed(&proxy, "/v1/consumers", "key").len();
    until("all changes are recorded", || {
        let recorded = proxy.logged(&["event=\"consumer_registered\""]);
        recorded > 1 && recorded == registered()
    });
}

#[test]
fn a_change_whose_audit_record_cannot_be_stored_is_logged() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    // Changes are kept, their records are not.
    let trigger = "CREATE TRIGGER no_commands BEFORE INSERT ON changes WHEN NEW.kind = 'command'
                   BEGIN SELECT RAISE(ABORT, 'no room for commands'); END";
    store.execute_batch(trigger).unwrap();
    let new = json!({ "key": "shop", "name": "Shop" });
    done(&proxy, "POST", "/v1/consumers", new);
    let parts = ["audit", "event=\"consumer_registered\"", "consumer=shop"];
    proxy.logs(&parts);
    proxy.logs(&[
        "WARN",
        "not kept for other processes",
        "no room for commands",
    ]);
    // A command cannot log where serve does, so it says so.
    let told = proxy.run("consumer disable shop").stderr;
    has(
        &told,
        &["serve does not log what was done", "no room for commands"],
    );
    store.execute_batch("DROP TRIGGER no_commands").unwrap();
    proxy.run("consumer enable shop");
    proxy.logs(&["audit", "event=\"consumer_enabled\""]);
    assert_eq!(proxy.logged(&parts), 1);
    assert_eq!(proxy.logged(&["consumer_disabled"]), 0);
}

#[test]
fn a_consumer_of_another_system_is_not_changed_here() {
    let (server, upstream) = (Postgres::start(), Upstream::start());
    let store = format!(
        "store.lookup.url = '{}'\n\
         store.lookup.consumer_sql = \"SELECT 'theirs' AS key, 'secret' AS secret, NULL AS name, '' AS permissions, \
         true AS enabled WHERE $1 = 'theirs'\"",
        server.database()
    );
    let proxy = with_api(&upstream, &store).start();
    done(
        &proxy,
        "POST",
        "/v1/consumers",
        json!({ "key": "ours", "name": "Ours" }),
    );
    for (method, path, body) in [
        ("PATCH", "/v1/consumers/theirs", json!({ "enabled": false })),
        ("DELETE", "/v1/consumers/theirs", Value::Null),
        ("POST", "/v1/consumers/theirs/secret", json!({})),
        (
            "DELETE",
            "/v1/consumers/theirs/secret/previous",
            Value::Null,
        ),
    ] {
        let problem = send(&proxy, method, path, body.clone())
            .has_status(409)
            .json();
        has(text(&problem["detail"]), &["store.lookup.consumer_sql"]);
        let unknown = path.replace("theirs", "nobodys");
        send(&proxy, method, &unknown, body.clone()).has_status(404);
        let ours = send(&proxy, method, &path.replace("theirs", "ours"), body);
        // The second command removes it.
        assert!(matches!(ours.status, 200..=204 | 404), "{ours:?}");
    }
    let ended = proxy.command(&["consumer", "disable", "theirs"]);
    assert_eq!(ended.code(), Some(1));
    has(&ended.stderr, &["store.lookup.consumer_sql"]);
    // Nothing of it has changed.
    let consumer = Consumer::new("theirs", "secret");
    let call = || Call::get("/x").by(&consumer);
    proxy.send(call()).is(401, "token_rejected");
}

/// Makes a change until its effect is seen within a second of its response: at least once, because a busy machine may
/// take longer. `change` returns a closure that checks whether it is effective.
#[track_caller]
fn holds_within_a_second<H: FnMut() -> bool>(what: &str, mut change: impl FnMut() -> H) {
    let begun = Instant::now();
    loop {
        let mut holds = change();
        let changed = Instant::now();
        until(what, &mut holds);
        let taken = changed.elapsed();
        if taken < Duration::from_secs(1) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {taken:?}");
    }
}

#[test]
fn a_change_at_one_replica_holds_at_the_other_within_a_second() {
    let server = Postgres::start();
    let upstream = Upstream::start();
    let store = format!(
        "store.backend = 'postgres'\nstore.url = '{}'\ncache.negative_ttl = '1h'",
        server.database()
    );
    let [one, other] = [(), ()].map(|()| with_api(&upstream, &store).start());
    let (consumer, user, _) = one.somebody().into_parts();
    let (place, of_user) = (
        format!("/v1/consumers/{}", consumer.key),
        format!("/v1/users/{}", user.id),
    );
    let of_tokens = format!("/v1/tokens?user={}", user.id);
    let call =
        |consumer: &Consumer, token: &Token| other.send(Call::get("/x").by(consumer).with(token));
    let rejected = |consumer: &Consumer, token: &Token, problem: &str| {
        call(consumer, token).problem().as_deref() == Some(problem)
    };
    // A token that the other process has seen, so that it has cached everything that the call needs.
    let known = || {
        for path in [&place, &of_user] {
            done(&one, "PATCH", path, json!({ "enabled": true }));
        }
        let new = json!({ "consumer": consumer.key, "user": user.id });
        let issued = done(&one, "POST", "/v1/tokens", new);
        let token = Token::new(text(&issued["token"]), text(&issued["token_secret"]));
        until("it is known", || call(&consumer, &token).status == 200);
        token
    };
    let disabled = json!({ "enabled": false });
    for (method, path, body, problem) in [
        ("PATCH", &place, &disabled, "consumer_key_refused"),
        ("PATCH", &of_user, &disabled, "token_revoked"),
        ("DELETE", &of_tokens, &Value::Null, "token_revoked"),
    ] {
        holds_within_a_second(path, || {
            let token = known();
            done(&one, method, path, body.clone());
            let (rejected, consumer) = (&rejected, &consumer);
            move || rejected(consumer, &token, problem)
        });
    }
    holds_within_a_second("one revoked token", || {
        let token = known();
        let place = format!("/v1/tokens/{}", token.token);
        done(&one, "DELETE", &place, Value::Null);
        let (rejected, consumer) = (&rejected, &consumer);
        move || rejected(consumer, &token, "token_revoked")
    });
    holds_within_a_second("enabled again", || {
        let token = known();
        done(&one, "PATCH", &place, disabled.clone());
        until("it is disabled", || {
            rejected(&consumer, &token, "consumer_key_refused")
        });
        done(&one, "PATCH", &place, json!({ "enabled": true }));
        let (call, consumer) = (&call, &consumer);
        move || call(consumer, &token).status == 200
    });
    let operator = Operator::with(&one, WRITE);
    holds_within_a_second("a change in the console", || {
        let token = known();
        until("the console has disabled it", || {
            let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
            asked.answer.status == 200 && operator.confirm(&asked).answer.status == 200
        });
        let (rejected, consumer) = (&rejected, &consumer);
        move || rejected(consumer, &token, "consumer_key_refused")
    });
    let token = known();
    let mut now = consumer.clone();
    holds_within_a_second("a rotated secret", || {
        let rotated = done(&one, "POST", &format!("{place}/secret"), json!({}));
        let renewed = Consumer::new(&consumer.key, text(&rotated["secret"]));
        let before = std::mem::replace(&mut now, renewed.clone());
        let (call, rejected, token) = (&call, &rejected, &token);
        move || call(&renewed, token).status == 200 && rejected(&before, token, "signature_invalid")
    });
    // Both log a change that was made at one of them.
    for proxy in [&one, &other] {
        proxy.logs(&["token_revoked", "by=\"api\"", "admin_token=\"write\""]);
        proxy.logs(&["consumer_disabled", "by=\"console\""]);
    }
    // An entity tag is the same at both.
    let tag = |proxy: &Proxy| get(proxy, &place).header("ETag").map(str::to_owned);
    assert_eq!(tag(&one), tag(&other));
}

#[test]
fn the_last_rejections_are_listed_with_their_diagnosis() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let wrong = Call::get("/x").by(&consumer).with(&token);
    for _ in 0..3 {
        proxy.send(Call::get("/unsigned")).has_status(401);
    }
    let wrong = String::from_utf8(proxy.wire(&wrong)).unwrap();
    let mut connection = proxy.connect();
    connection.send(wrong.replacen("GET ", "PUT ", 1).as_bytes());
    connection.answer("PUT").is(401, "signature_invalid");
    let list = |path: &str| get(&proxy, path).has_status(200).json();
    until("all are listed", || {
        list("/v1/rejections")["items"].as_array().unwrap().len() == 4
    });
    let all = list("/v1/rejections");
    let newest = &all["items"][0];
    for (member, value) in [
        ("consumer", json!(consumer.key)),
        ("proof", json!("secrets")),
        ("token", json!(token.token[..8])),
        ("verdict", json!("signature_invalid")),
        ("diagnosis", json!("other_method")),
        ("status", json!(401)),
    ] {
        assert_eq!(newest[member], value, "{newest}");
    }
    assert_eq!(all["items"][1]["verdict"], "parameter_absent");
    assert_eq!(all["items"][1]["parameters"], Value::Null);
    let first = list("/v1/rejections?limit=3");
    let next = format!("/v1/rejections?limit=3&cursor={}", text(&first["next"]));
    // A call that is rejected meanwhile does not change the later pages.
    proxy.send(Call::get("/unsigned")).has_status(401);
    let rest = list(&next);
    assert_eq!(rest["items"], json!([all["items"][3]]));
    assert_eq!(rest["next"], Value::Null);
}

#[test]
fn a_rejection_names_its_parameter_and_reason_and_a_diagnosis_that_was_skipped() {
    let proxy = with_api(&Upstream::start(), "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let call = |target: &str| Call::get(target).by(&consumer).with(&token);
    let newest = |verdict: &str| {
        within(PATIENCE, "it is listed", || {
            let all = get(&proxy, "/v1/rejections").has_status(200).json();
            let newest = all["items"][0].clone();
            (newest["verdict"] == verdict).then_some(newest)
        })
    };
    let later = format!("{}000", now());
    for (call, verdict, parameters, problem) in [
        (
            call("/x").parameter("oauth_timestamp", &later),
            "timestamp_refused",
            "oauth_timestamp",
            "oauth_timestamp is in milliseconds: send whole seconds since 1970",
        ),
        (
            call("/x").parameter("oauth_nonce", "ä secret"),
            "parameter_rejected",
            "oauth_nonce",
            "",
        ),
    ] {
        assert_eq!(proxy.send(call).status / 100, 4);
        let newest = newest(verdict);
        assert_eq!(newest["parameters"], parameters, "{newest}");
        let told = text(&newest["problem"]);
        has(told, &[problem]);
        assert!(!told.is_empty() && !told.contains("secret") && !told.contains(&later));
        proxy.logs(&[
            &format!("verdict=\"{verdict}\""),
            &format!("parameters={parameters}"),
            &format!("problem={told}"),
        ]);
    }
    let large = format!("/x?a={}", "x".repeat(5_000));
    let wrong = call(&large).key("wrong&wrong");
    proxy.send(wrong).is(401, "signature_invalid");
    assert_eq!(newest("signature_invalid")["diagnosis"], "skipped");
    proxy.logs(&["signature_invalid", "diagnosis=\"skipped\""]);
    let counted = "countersign_signature_diagnoses_total{diagnosis=\"skipped\"}";
    assert!(proxy.metric(counted) >= 1.0);
}

#[test]
fn explain_finds_the_mistake_and_shows_no_expected_signature() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let (consumer, _, token) = proxy.somebody().into_parts();
    let wire = |call: &Call| String::from_utf8(proxy.wire(call)).unwrap();
    let explain =
        |request: &str| done(&proxy, "POST", "/v1/explain", json!({ "request": request }));
    let right = wire(&Call::get("/a?b=c").by(&consumer).with(&token));
    let told = explain(&right);
    assert_eq!(
        (&told["matches"], &told["diagnosis"]),
        (&json!(true), &Value::Null)
    );
    assert!(
        told["parameters"]
            .as_array()
            .unwrap()
            .contains(&json!(["b", "c"]))
    );
    let base = text(&told["base_string"]);
    assert!(base.starts_with("GET&http%3A%2F%2F"), "{base}");
    assert!(
        base.contains(
            &text(&told["normalized_parameters"])
                .replace('=', "%3D")
                .replace('&', "%26")
        )
    );
    let members: Vec<_> = told.as_object().unwrap().keys().cloned().collect();
    assert!(
        !members.iter().any(|name| name.contains("signature")),
        "{members:?}"
    );
    // Signed for GET, pasted as PUT: neither the response nor the log has the signature that would be right.
    let wrong = right.replacen("GET ", "PUT ", 1);
    let told = explain(&wrong);
    assert_eq!(told["matches"], false);
    has(text(&told["diagnosis"]), &["other_method: "]);
    let arguments = ["explain", "--json", "--request", "-"];
    let expected = proxy.command_with(&arguments, &wrong).stdout;
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let expected = text(&expected["expected_signature"]);
    assert!(!told.to_string().contains(expected), "{told}");
    for secret in [&consumer.secret, &token.secret] {
        assert!(!told.to_string().contains(secret.as_str()), "{told}");
    }
    let unknown = right.replace(&consumer.key, "nobody");
    has(
        text(&explain(&unknown)["diagnosis"]),
        &["consumer_key_unknown: "],
    );
}

/// An interpreter with the libraries of `tests/clients/python`.
fn python() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/.tools/venv/bin/python");
    assert!(
        path.exists(),
        "{} is missing; tests/run installs it",
        path.display()
    );
    path
}

#[test]
fn schemathesis_finds_no_fault_in_the_admin_api() {
    with_each_store(|store| {
        let upstream = Upstream::start();
        let proxy = with_api(&upstream, store).start();
        let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python");
        let run = || {
            let output = Command::new(python())
                .args(["-m", "schemathesis.cli", "--config-file"])
                .arg(clients.join("schemathesis.toml"))
                .arg("run")
                .arg(format!("http://{}/v1/openapi.json", proxy.admin()))
                .args(["-H", &format!("Authorization: Bearer {WRITE}")])
                .current_dir(proxy.directory())
                .output()
                .unwrap();
            let [told, errors] = [&output.stdout, &output.stderr]
                .map(|text| String::from_utf8_lossy(text).into_owned());
            (output.status.success(), told + &errors)
        };
        let mut found = run();
        // On a busy machine PostgreSQL may take longer than a request waits.
        for _ in 0..2 {
            if !store.is_empty() && !found.0 && found.1.contains("[503]") {
                found = run();
            }
        }
        let (is_good, told) = found;
        assert!(is_good, "{told}");
        has(&told, &["Selected: 26/26", "Tested: 26"]);
    });
}

#[test]
fn a_generated_client_registers_a_consumer_and_issues_and_revokes_a_token() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let user = proxy.user("alice");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python/admin.py");
    let output = Command::new(python())
        .arg(script)
        .args([&format!("http://{}", proxy.admin()), WRITE, &user.id])
        .current_dir(proxy.directory())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    let consumer = Consumer::new(text(&report["key"]), text(&report["secret"]));
    let token = |name: &str| {
        Token::new(
            text(&report[name]["token"]),
            text(&report[name]["token_secret"]),
        )
    };
    let call = |token: &Token| proxy.send(Call::get("/x").by(&consumer).with(token));
    call(&token("kept")).has_status(200);
    call(&token("revoked")).is(401, "token_revoked");
}

#[test]
fn the_link_of_a_developer_is_made_and_ended() {
    let proxy = with_api(&Upstream::start(), "").start();
    let consumer = proxy.consumer("Photo printer");
    let path = format!("/v1/consumers/{}/link", consumer.key);
    let call = |method: &str| send(&proxy, method, &path, Value::Null);
    let made = call("POST").has_status(201).json();
    let target = made["url"].as_str().unwrap();
    let target = target.strip_prefix(&proxy.origin()).unwrap();
    let page = proxy.send(Call::get(target));
    assert!(page.has_status(200).text().contains("Photo printer"));
    call("DELETE").has_status(204);
    call("DELETE").has_status(404);
    proxy.send(Call::get(target)).has_status(404);
    proxy.run(&format!("consumer disable {}", consumer.key));
    call("POST").has_status(409);
}
