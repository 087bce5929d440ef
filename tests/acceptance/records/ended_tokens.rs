//! Access tokens that ended long ago.
//!
//! Promise (Storage and operation): Keys of removed records are never used again, and no backup makes an ended token valid.
//! Also in `tests/store_contract/upkeep.rs`, `tests/commands/consumers.rs`, `tests/store_contract/transfer.rs`.

use serde_json::json;

use crate::support::{Call, Postgres, Scene, Token, until};

#[test]
fn token_ended_a_month_ago_is_removed_and_stays_rejected() {
    let server = Postgres::start();
    let on_server = format!(
        "store.backend = 'postgres'\nstore.url = '{}'",
        server.database()
    );
    for config in ["", on_server.as_str()] {
        removes_ended_tokens(Scene::with(config));
    }
}

fn removes_ended_tokens(scene: Scene) {
    let (_api, mut proxy, caller) = scene.into_parts();
    let (consumer, user, usable) = caller.into_parts();
    let long_ago = "2020-01-01T00:00:00Z";
    let line = |token: &str, end: &str| {
        let mut line = json!({
            "kind": "token", "token": token, "token_secret": "s", "consumer": consumer.key, "user": user.id,
            "issued_at": long_ago,
        });
        line[end] = long_ago.into();
        line.to_string()
    };
    let lines = [
        r#"{"kind":"export","version":1}"#.to_owned(),
        line("ended-1", "revoked_at"),
        line("ended-2", "expires_at"),
    ];
    proxy
        .command_with(&["import", "-"], &(lines.join("\n") + "\n"))
        .done();
    let call = |token: &Token| Call::get("/x").by(&consumer).with(token);
    let ended = ["ended-1", "ended-2"].map(|name| Token::new(name, "s"));
    for (token, problem) in ended.iter().zip(["token_revoked", "token_expired"]) {
        until("the imported token is known", || {
            proxy.send(call(token)).problem().as_deref() == Some(problem)
        });
    }
    // They are removed when the process starts, and once an hour.
    proxy.stop();
    proxy.start();
    proxy.logs(&["ended_removed", "by=\"serve\"", "access_tokens=2"]);
    for token in &ended {
        proxy.rejects(call(token), 401, "token_rejected");
    }
    proxy.passes(call(&usable));
    let listed = proxy.run("token list --json").stdout;
    assert!(listed.contains(&usable.token), "{listed}");
    let exported = proxy.run("export -").stdout;
    for token in &ended {
        assert!(!listed.contains(&token.token), "{listed}");
        // Another system may still have them.
        let mark = format!(r#""kind":"removed_token","token":"{}""#, token.token);
        assert!(exported.contains(&mark), "{exported}");
    }
}
