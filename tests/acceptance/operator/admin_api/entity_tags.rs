//! Changes for the state of a record that the caller knows.
//!
//! Promise (Admin API): A change for an outdated state of the record is not made (`If-Match`); a use of the record does not
//! outdate it.

use super::*;

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
