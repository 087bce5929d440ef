//! Expiry of entries, and their use while the store fails.

use super::*;

#[tokio::test]
async fn an_entry_is_read_again_after_its_time() {
    let setup = setup();
    setup.access().await;
    setup.revoke();
    setup.later(59);
    assert!(!setup.is_revoked().await);
    setup.later(1);
    assert!(setup.is_revoked().await);
    assert_eq!(setup.reads(), (2, 2));
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_again_after_its_time() {
    let setup = setup();
    let issued = setup.store.access_token_of("t").unwrap();
    setup.store.sql("DELETE FROM access_tokens");
    for _ in 0..2 {
        assert!(setup.access().await.is_none());
    }
    assert_eq!(setup.cached.counts().1.negative_hits.get(), 1);
    let setup = setup_with(&CacheSettings {
        negative_ttl: Duration::from_millis(1),
        ..settings()
    });
    setup.store.sql("DELETE FROM access_tokens");
    assert!(setup.access().await.is_none());
    setup.store.put_access_token(&issued);
    while setup.access().await.is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_removed_record_is_unknown_after_its_time() {
    let setup = setup();
    setup.access().await;
    setup.store.sql("DELETE FROM access_tokens");
    setup.later(60);
    assert!(setup.access().await.is_none());
    // And stays so, also while the store fails.
    setup.store.fail(true);
    assert!(setup.access().await.is_none());
}

#[tokio::test]
async fn a_clock_that_was_set_back_makes_entries_old() {
    let setup = setup();
    setup.access().await;
    setup.revoke();
    setup.clock.set(START.before(seconds(3_600)));
    assert!(setup.is_revoked().await);
    // And not for ever.
    setup.access().await;
    assert_eq!(setup.reads(), (2, 2));
}

#[tokio::test]
async fn unchanged_consumer_is_not_read_with_each_of_its_tokens() {
    let setup = setup();
    setup.cached.consumer(b"c").await.unwrap();
    setup.later(30);
    let before = setup.access().await.unwrap();
    setup.later(40);
    let after = setup.access().await.unwrap();
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(setup.reads(), (2, 1));
}

#[tokio::test]
async fn a_consumer_that_is_another_is_noticed_under_a_fresh_token() {
    let setup = setup();
    setup.cached.consumer(b"c").await.unwrap();
    setup.later(30);
    setup.access().await.unwrap();
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    setup.later(29);
    assert!(setup.access().await.unwrap().consumer.enabled);
    setup.later(1);
    assert!(!setup.access().await.unwrap().consumer.enabled);
}

#[tokio::test]
async fn an_entry_is_used_while_the_store_fails_and_not_for_long() {
    let setup = setup();
    setup.access().await;
    setup.later(58);
    setup.store.fail(true);
    setup.later(1);
    assert!(setup.access().await.is_some());
    assert_eq!(setup.cached.counts().1.stale.get(), 0);
    for _ in 0..4 {
        setup.later(2);
        assert!(setup.access().await.is_some());
        assert!(setup.cached.consumer(b"c").await.unwrap().is_some());
    }
    assert_eq!(setup.cached.counts().1.stale.get(), 4);
    setup.later(1);
    assert!(setup.cached.access(b"t", b"c").await.is_err());
    assert!(setup.cached.consumer(b"c").await.is_err());
    assert_eq!(setup.cached.counts().1.errors.get(), 1);
    setup.store.fail(false);
    assert!(setup.access().await.is_some());
}

#[tokio::test]
async fn a_long_ttl_does_not_prolong_use_while_the_store_fails() {
    let setup = setup_with(&CacheSettings {
        ttl: seconds(3_600),
        ..settings()
    });
    setup.access().await;
    setup.later(100);
    setup.store.fail(true);
    setup.later(9);
    assert!(setup.access().await.is_some());
    setup.later(1);
    assert!(setup.cached.access(b"t", b"c").await.is_err());
    // Single reads that succeed do not count for other entries: changes may have been missed.
    setup.store.fail(false);
    assert!(setup.access().await.is_some());
    assert_eq!(setup.reads(), (2, 3));
}

#[tokio::test]
async fn a_failing_store_is_not_asked_more_than_once_a_second() {
    let setup = setup();
    setup.access().await;
    setup.later(59);
    setup.store.fail(true);
    setup.later(2);
    for _ in 0..10 {
        assert!(setup.access().await.is_some());
    }
    assert_eq!(setup.reads(), (1, 2));
    setup.later(1);
    assert!(setup.access().await.is_some());
    assert_eq!(setup.reads(), (1, 3));
}

#[tokio::test]
async fn an_old_entry_is_not_used_while_the_store_answers() {
    let setup = setup();
    setup.access().await;
    setup.revoke();
    setup.later(61);
    assert!(setup.is_revoked().await);
    assert_eq!(setup.cached.counts().1.stale.get(), 0);
}

#[tokio::test]
async fn nothing_changed_is_used_while_the_store_fails() {
    for later in [0, 61] {
        let setup = setup();
        setup.access().await;
        setup.later(later);
        setup.forget(&token_changed()).await;
        setup.store.fail(true);
        assert!(setup.cached.access(b"t", b"c").await.is_err());
    }
    for later in [0, 61] {
        let setup = setup();
        setup.access().await;
        setup.later(later);
        setup.forget(&consumer_changed()).await;
        setup.store.fail(true);
        assert!(setup.cached.access(b"t", b"c").await.is_err());
        assert!(setup.cached.consumer(b"c").await.is_err());
    }
}

#[tokio::test]
async fn the_old_secret_verifies_until_its_grace_ends() {
    let setup = setup();
    setup.store.change_consumer("c", |consumer| {
        consumer.previous_secret = Some((Secret::from("old"), START.after(seconds(10))))
    });
    let found = setup.access().await.unwrap();
    for (later, keys) in [(0, 2), (9, 2), (10, 1)] {
        let now = START.after(seconds(later));
        assert_eq!(found.keys(now).count(), keys);
        assert_eq!(found.consumer.keys(now).count(), keys);
        assert_eq!(found.consumer.keys_alone(now).count(), keys);
    }
}

#[tokio::test]
async fn a_change_ends_the_use_of_an_old_entry() {
    for change in [token_changed(), consumer_changed()] {
        let setup = setup();
        setup.access().await;
        setup.later(59);
        setup.store.fail(true);
        setup.later(2);
        assert!(setup.access().await.is_some());
        setup.forget(&change).await;
        assert!(setup.cached.access(b"t", b"c").await.is_err());
    }
}

#[tokio::test]
async fn a_change_of_another_record_costs_no_read() {
    let setup = setup();
    setup.access().await;
    setup.forget(&Change::AccessToken("other".into())).await;
    assert!(setup.access().await.is_some());
    assert_eq!(setup.reads(), (1, 1));
}

#[tokio::test]
async fn thread_local_token_counts_in_its_second_generation_and_cache() {
    let (setup, other) = (setup(), setup());
    let moment = || setup.cached.moment(setup.clock.now());
    let at_hand = || setup.cached.at_hand(b"t", moment()).is_some();
    // Looking a token up, as anybody can do, does not make it quicker to find.
    let access = LocalAccess::from(setup.access().await.unwrap());
    assert!(!at_hand());
    let hits = || setup.cached.counts().1.hits.get();
    setup.cached.keep_at_hand(&access, moment());
    let before = hits();
    assert!(at_hand() && hits() == before + 1);
    assert!(setup.cached.at_hand(b"u", moment()).is_none());
    assert!(other.cached.at_hand(b"t", moment()).is_none());
    std::thread::scope(|scope| scope.spawn(|| assert!(!at_hand())).join().unwrap());
    for moved in [1, -1] {
        setup
            .clock
            .set(UnixTime(START.0.saturating_add_signed(moved)));
        assert!(!at_hand());
    }
    setup.clock.set(START);
    assert!(at_hand());
    // Any announced change, also of another record, and also one that came during the lookup.
    setup.forget(&Change::AccessToken("u".into())).await;
    assert!(!at_hand());
    let before = moment();
    setup.cached.forget_everything();
    setup.cached.keep_at_hand(&access, before);
    assert!(!at_hand());
}

#[tokio::test]
async fn no_token_is_at_hand_where_the_store_is_asked_each_time() {
    let setup = setup_with(&CacheSettings {
        ttl: Duration::ZERO,
        ..settings()
    });
    let access = LocalAccess::from(setup.access().await.unwrap());
    let moment = setup.cached.moment(setup.clock.now());
    setup.cached.keep_at_hand(&access, moment);
    assert!(setup.cached.at_hand(b"t", moment).is_none());
}

#[tokio::test]
async fn credentials_at_hand_are_dropped_once_they_no_longer_count() {
    let setup = setup();
    let moment = || setup.cached.moment(setup.clock.now());
    let access = setup.access().await.unwrap();
    let users = || Arc::strong_count(&access);
    let without = users();
    setup
        .cached
        .keep_at_hand(&LocalAccess::from(Arc::clone(&access)), moment());
    setup.cached.drop_old_at_hand();
    assert_eq!(users(), without + 1);
    assert!(setup.cached.at_hand(b"t", moment()).is_some());
    setup.forget(&Change::AccessToken("u".into())).await;
    setup.cached.drop_old_at_hand();
    assert_eq!(users(), without);
}
