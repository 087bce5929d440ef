//! Access tokens outside the flow.

use countersign::store::{
    port::{Added, TokenFilter},
    record::{AccessToken, ConsumerUpdate},
};

use crate::{
    records::{NOW, access_token, consumer, later, populate, user},
    suite::Backend,
};

pub(crate) async fn keeps_every_field<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    let rich = AccessToken {
        permissions: vec!["a".parse().unwrap(), "b:c".parse().unwrap()],
        secret: vec![0u8, 1, 255].into(),
        last_used_at: Some(later(3)),
        revoked_at: Some(later(4)),
        ..access_token("Rich \"token\"/é", "c", "u")
    };
    let bare = AccessToken {
        permissions: vec![],
        expires_at: None,
        ..access_token("bare", "c", "u")
    };
    for token in [rich, bare] {
        assert_eq!(
            store.issue_access_token(token.clone()).await.unwrap(),
            Added::Added
        );
        assert_eq!(store.access_token(&token.token).await.unwrap(), Some(token));
    }
    for unknown in ["BARE", "bare ", "", "%", "bar"] {
        assert_eq!(store.access_token(unknown).await.unwrap(), None);
    }
}

pub(crate) async fn refuses_a_token_that_could_not_be_used<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    store.add_consumer(consumer("d")).await.unwrap();
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    for refused in [
        access_token("a", "d", "u"),
        access_token("b", "unknown", "u"),
        access_token("b", "c", "unknown"),
    ] {
        assert_eq!(
            store.issue_access_token(refused).await.unwrap(),
            Added::Taken
        );
    }
    assert_eq!(store.access_token("a").await.unwrap(), Some(token));
    assert_eq!(store.access_token("b").await.unwrap(), None);
    // A disabled consumer's tokens wait for it.
    let disable = ConsumerUpdate {
        enabled: Some(false),
        ..ConsumerUpdate::default()
    };
    store
        .update_consumer(&"d".parse().unwrap(), disable)
        .await
        .unwrap();
    assert_eq!(
        store
            .issue_access_token(access_token("b", "d", "u"))
            .await
            .unwrap(),
        Added::Added
    );
}

pub(crate) async fn revokes_once_and_for_all<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    assert!(!store.revoke_access_token("a", NOW).await.unwrap());
    for token in ["a", "b"] {
        store
            .issue_access_token(access_token(token, "c", "u"))
            .await
            .unwrap();
    }
    assert!(store.revoke_access_token("a", later(1)).await.unwrap());
    assert!(store.revoke_access_token("a", later(2)).await.unwrap());
    let expected = AccessToken {
        revoked_at: Some(later(1)),
        ..access_token("a", "c", "u")
    };
    assert_eq!(store.access_token("a").await.unwrap(), Some(expected));
    assert_eq!(
        store.access_token("b").await.unwrap(),
        Some(access_token("b", "c", "u"))
    );
    assert_eq!(
        store
            .issue_access_token(access_token("a", "c", "u"))
            .await
            .unwrap(),
        Added::Taken
    );
}

pub(crate) async fn lists_by_user_and_consumer_in_pages<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    for (token, consumer, user) in [
        ("5", "d", "v"),
        ("1", "c", "u"),
        ("3", "d", "u"),
        ("2", "c", "v"),
        ("4", "c", "u"),
        ("Z", "c", "u"),
    ] {
        store
            .issue_access_token(access_token(token, consumer, user))
            .await
            .unwrap();
    }
    let list = async |user: &str, consumer: &str, after: Option<&str>, limit| {
        let filter = TokenFilter {
            user: user.parse().ok(),
            consumer: consumer.parse().ok(),
        };
        let tokens = store.access_tokens(&filter, after, limit).await.unwrap();
        tokens
            .into_iter()
            .map(|token| token.token)
            .collect::<String>()
    };
    assert_eq!(list("", "", None, 9).await, "12345Z");
    assert_eq!(list("u", "", None, 9).await, "134Z");
    assert_eq!(list("", "c", None, 9).await, "124Z");
    assert_eq!(list("u", "c", None, 9).await, "14Z");
    assert_eq!(list("w", "", None, 9).await, "");
    assert_eq!(list("", "", None, 2).await, "12");
    assert_eq!(list("", "", Some("2"), 2).await, "34");
    assert_eq!(list("u", "", Some("2"), 2).await, "34");
    assert_eq!(list("", "c", Some("3"), 9).await, "4Z");
    assert_eq!(list("u", "c", Some("4"), 9).await, "Z");
    assert_eq!(list("", "", Some("Z"), 9).await, "");
}

pub(crate) async fn keeps_the_latest_use<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    for token in ["a", "b"] {
        store
            .issue_access_token(access_token(token, "c", "u"))
            .await
            .unwrap();
    }
    let uses = |list: &[(&str, u64)]| {
        list.iter()
            .map(|(token, at)| ((*token).to_owned(), later(*at)))
            .collect::<Vec<_>>()
    };
    let last_used = async |token| {
        store
            .access_token(token)
            .await
            .unwrap()
            .unwrap()
            .last_used_at
    };
    store.record_uses(uses(&[])).await.unwrap();
    assert_eq!(last_used("a").await, None);
    store
        .record_uses(uses(&[("a", 5), ("gone", 6), ("b", 7), ("b", 6)]))
        .await
        .unwrap();
    assert_eq!(last_used("a").await, Some(later(5)));
    assert_eq!(last_used("b").await, Some(later(7)));
    store
        .record_uses(uses(&[("a", 4), ("b", 8)]))
        .await
        .unwrap();
    assert_eq!(last_used("a").await, Some(later(5)));
    assert_eq!(last_used("b").await, Some(later(8)));
    assert_eq!(store.access_token("gone").await.unwrap(), None);
}

/// More than one transaction's worth.
pub(crate) async fn keeps_many_uses<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    for token in ["first", "last"] {
        store
            .issue_access_token(access_token(token, "c", "u"))
            .await
            .unwrap();
    }
    let mut uses = vec![("first".to_owned(), later(1))];
    uses.extend((0..12_000).map(|number| (format!("unknown {number}"), NOW)));
    uses.push(("last".to_owned(), later(2)));
    store.record_uses(uses).await.unwrap();
    for (token, at) in [("first", later(1)), ("last", later(2))] {
        let kept = store.access_token(token).await.unwrap().unwrap();
        assert_eq!(kept.last_used_at, Some(at));
    }
}
