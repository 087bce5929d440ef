//! Lists: their pages and their filters.

use super::*;

#[test]
fn list_has_100_items_and_8_characters_can_match_two_tokens() {
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
