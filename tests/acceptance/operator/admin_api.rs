//! The admin API over HTTP: the effect of each operation, its refusals, and who sees the change.
//!
//! Promise (Admin API): The API manages consumers, users and tokens as its OpenAPI document and the commands do. Also in
//! `tests/acceptance/operator/admin_api/lists.rs`, `tests/acceptance/operator/admin_api/document.rs`.
//! Promise (Admin API): Invalid, unknown, repeated or incomplete input is rejected with its place and changes nothing.

mod access;
mod diagnosis;
mod document;
mod effects;
mod entity_tags;
mod lists;

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
    Answer, Application, Call, Connection, Consumer, Operator, PATIENCE, Postgres, Proxy, Token,
    Upstream, Visitor, application::consumer_record, has, now, proxy::Builder, rows, signer, until,
    within,
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
fn records_are_made_changed_and_removed_over_the_admin_api() {
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
fn a_consumer_of_another_system_is_not_changed_here() {
    let application = Application::with([consumer_record("theirs", "secret")]);
    let proxy = application
        .looked_up_by(with_api(&Upstream::start(), ""))
        .start();
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
        has(text(&problem["detail"]), &["store.lookup.url"]);
        let unknown = path.replace("theirs", "nobodys");
        send(&proxy, method, &unknown, body.clone()).has_status(404);
        let ours = send(&proxy, method, &path.replace("theirs", "ours"), body);
        // The second command removes it.
        assert!(matches!(ours.status, 200..=204 | 404), "{ours:?}");
    }
    let ended = proxy.command(&["consumer", "disable", "theirs"]);
    assert_eq!(ended.code(), Some(1));
    has(&ended.stderr, &["store.lookup.url"]);
    // Nothing of it has changed.
    let consumer = Consumer::new("theirs", "secret");
    let call = || Call::get("/x").by(&consumer);
    proxy.send(call()).is(401, "token_rejected");
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
