//! The connected applications of a user.

use super::*;

#[test]
fn a_user_revokes_a_connected_application() {
    let api = Upstream::start();
    let proxy = with_user_operations(&api).start();
    let (consumer, user, token) = proxy.somebody().into_parts();
    let printer = proxy.consumer("Printer");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let other_user = proxy.user("bob");
    let second = proxy.token(&consumer, &user);
    let others = [
        (&consumer, proxy.token(&consumer, &other_user)),
        (&printer, proxy.token(&printer, &user)),
    ];
    // One entry for each consumer, with all of its connections.
    let applications = APPLICATIONS;
    let page = visitor.open(applications);
    let text = page.answer.text();
    assert_eq!(text.matches("class=\"button\"").count(), 2, "{text}");
    assert!(
        text.contains("Shop") && text.contains("2 connections"),
        "{text}"
    );
    // The first click asks, and changes nothing.
    let question = visitor.open(&format!("{applications}&withdraw={}", consumer.key));
    assert!(question.answer.text().contains("Shop"), "{question:?}");
    for token in [&token, &second] {
        let call = Call::get("/orders").by(&consumer).with(token);
        proxy.send(call).has_status(200);
    }
    let revoke = question.form_with("revoke").press("revoke", &consumer.key);
    let after = visitor.submit(&question, &revoke);
    let text = after.answer.text();
    assert!(
        text.contains("can no longer act for you") && text.contains("Printer"),
        "{text}"
    );
    for token in [&token, &second] {
        let call = Call::get("/orders").by(&consumer).with(token);
        proxy.send(call).is(401, "token_revoked");
    }
    for (consumer, token) in &others {
        let call = Call::get("/orders").by(consumer).with(token);
        proxy.send(call).has_status(200);
    }
}

#[test]
fn applications_are_listed_by_last_use_with_dates_in_words() {
    let proxy = with_user_operations(&Upstream::start()).start();
    let user = proxy.user("ada");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let none = "You have not connected any applications.";
    has(&visitor.open(APPLICATIONS).answer.text(), &[none]);
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    store
        .execute("UPDATE sessions SET created_at = 1699963200", [])
        .unwrap();
    for (name, issued, used) in [
        ("Early", 1_699_963_200, Some(1_710_000_000)),
        ("Unused", 1_715_000_000, None),
        ("Late", 1_600_000_000, Some(1_720_008_000)),
    ] {
        let token = proxy.token(&proxy.consumer(name), &user).token;
        let dated = "UPDATE access_tokens SET issued_at = ?2, last_used_at = ?3 WHERE token = ?1";
        let changed = store.execute(dated, (token, issued, used)).unwrap();
        assert_eq!(changed, 1, "{name}");
    }
    let page = visitor.open(APPLICATIONS);
    in_order(
        &page.answer.text(),
        &[
            "<bdi>Late</bdi>",
            "Given by the operator on 13 September 2020 · last used on 3 July 2024",
            "<bdi>Unused</bdi>",
            "Given by the operator on 6 May 2024 · not used, or only just now",
            "<bdi>Early</bdi>",
            "Given by the operator on 14 November 2023 · last used on 9 March 2024",
            "Where you are logged in",
            "since 14 November 2023",
        ],
    );
}
