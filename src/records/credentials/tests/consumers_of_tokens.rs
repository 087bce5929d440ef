//! Consumers under their tokens: an entry of a token refers to its consumer, which moka may drop at any time.

use super::*;

impl Setup {
    fn disable_consumer(&self) {
        let disable = |consumer: &mut Consumer| consumer.enabled = false;
        self.store.change_consumer("c", disable);
    }
}

#[tokio::test]
async fn tokens_of_one_consumer_share_its_record() {
    let setup = setup();
    setup.store.put_access_token(&token("u", "c"));
    let one = setup.access().await.unwrap();
    let other = setup.cached.access(b"u", b"c").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&one.consumer, &other.consumer));
    let named = setup.cached.consumer(b"c").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&one.consumer, &named));
    assert_eq!(setup.reads(), (1, 2));
}

#[tokio::test]
async fn a_consumer_that_was_evicted_is_read_again_for_its_token() {
    let setup = setup();
    let old = setup.access().await.unwrap();
    setup.cached.consumers.drop_entry(b"c");
    setup.disable_consumer();
    assert!(!setup.access().await.unwrap().consumer.enabled);
    assert_eq!(setup.reads(), (2, 2));
    let now = setup.clock.now();
    assert!(!setup.cached.consumers.may_serve_stale(&old.consumer, now));
}

#[tokio::test]
async fn a_change_reaches_tokens_whose_consumer_was_evicted() {
    let setup = setup();
    setup.access().await;
    setup.cached.consumers.drop_entry(b"c");
    setup.disable_consumer();
    setup.forget(&consumer_changed()).await;
    assert!(!setup.access().await.unwrap().consumer.enabled);
    // Nor is its token used while the store fails.
    setup.cached.consumers.drop_entry(b"c");
    setup.store.fail(true);
    assert!(setup.cached.access(b"t", b"c").await.is_err());
}

#[tokio::test]
async fn a_consumer_that_another_replaced_is_not_used_with_its_token() {
    let setup = setup();
    let old = setup.access().await.unwrap();
    setup.later(60);
    setup.disable_consumer();
    let new = setup.cached.consumer(b"c").await.unwrap().unwrap();
    assert!(old.consumer.enabled && !new.enabled);
    let now = setup.clock.now();
    assert!(!setup.cached.consumers.may_serve_stale(&old.consumer, now));
    let found = setup.access().await.unwrap();
    assert!(Arc::ptr_eq(&found.consumer, &new));
}

#[tokio::test]
async fn everything_in_doubt_includes_consumers_of_tokens() {
    let setup = setup();
    setup.access().await;
    setup.disable_consumer();
    setup.cached.forget_everything();
    assert!(!setup.access().await.unwrap().consumer.enabled);
}

#[tokio::test]
async fn a_consumer_of_a_failing_store_is_used_as_long_as_its_token() {
    let setup = setup();
    setup.later(0);
    setup.access().await;
    setup.store.fail(true);
    setup.clock.advance(seconds(9));
    assert!(setup.cached.consumer(b"c").await.unwrap().is_some());
    setup.clock.advance(seconds(1));
    assert!(setup.cached.consumer(b"c").await.is_err());
    assert!(setup.cached.access(b"t", b"c").await.is_err());
}

#[tokio::test]
async fn a_token_in_use_keeps_its_consumer_in_the_cache() {
    let setup = setup_with(&CacheSettings {
        max_entries: 4,
        ..settings()
    });
    setup.access().await;
    for number in 0..40 {
        let key = format!("c{number}");
        setup.store.put_consumer(&Consumer::for_tests(&key));
        setup.cached.consumer(key.as_bytes()).await.unwrap();
        setup.access().await;
        setup.cached.consumers.evict_now();
    }
    assert_eq!(setup.reads(), (41, 1));
}

#[tokio::test]
async fn a_token_has_the_permissions_that_its_consumer_still_has() {
    let setup = setup();
    let permissions = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    setup.store.change_consumer("c", |consumer| {
        consumer.permissions = permissions(&["b", "a"])
    });
    setup.store.change_access_token("t", |token| {
        token.permissions = permissions(&["a", "lost", "b"])
    });
    let found = setup.access().await.unwrap();
    let granted: Vec<_> = found.granted.iter().map(AsRef::as_ref).collect();
    assert_eq!(granted, ["a", "b"]);
    for (values, user, permissions) in [
        (found.field_values(), Some("user"), "a b"),
        (found.consumer.field_values(), None, "b a"),
    ] {
        let values = values.unwrap();
        assert_eq!(
            values.user.as_ref().map(|value| value.to_str().unwrap()),
            user
        );
        assert_eq!(values.consumer, "c");
        assert_eq!(values.permissions, permissions);
    }
}
