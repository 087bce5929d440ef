//! Expiry of entries, and their use while the store fails.

use super::*;

#[tokio::test]
async fn entries_expire_and_serve_for_a_while_in_an_outage() {
    let cases = [
        (
            "an entry is read again after its time",
            "token valid, revoke, later 59, token valid, later 1, token revoked, reads 2 2",
        ),
        (
            "a removed record is unknown after its time, also in an outage",
            "token valid, remove access_tokens, later 60, token unknown, fail, token unknown",
        ),
        (
            "a clock that was set back makes entries old, once",
            "token valid, revoke, later -3600, token revoked x2, reads 2 2",
        ),
        (
            "a changed consumer is noticed under a fresh token",
            "consumer valid, later 30, token valid, disable, later 29, token valid, later 1, token disabled",
        ),
        (
            "an entry serves for ten seconds of an outage",
            "token valid, later 58, fail, later 1, token valid, stale 0, later 2, token valid, consumer valid, later 2, \
             token valid, consumer valid, later 2, token valid, consumer valid, later 2, token valid, consumer valid, \
             stale 4, later 1, token unavailable, consumer unavailable, errors 1, recover, token valid",
        ),
        (
            "a failing store is asked once a second",
            "token valid, later 59, fail, later 2, token valid x10, reads 1 2, later 1, token valid, reads 1 3",
        ),
        (
            "an old entry is not used while the store responds",
            "token valid, revoke, later 61, token revoked, stale 0",
        ),
        (
            "a changed token is not used in an outage",
            "token valid, forget token, fail, token unavailable",
        ),
        (
            "nor is an old one",
            "token valid, later 61, forget token, fail, token unavailable",
        ),
        (
            "a changed consumer is not used in an outage",
            "token valid, forget consumer, fail, token unavailable, consumer unavailable",
        ),
        (
            "nor is an old consumer",
            "token valid, later 61, forget consumer, fail, token unavailable, consumer unavailable",
        ),
        (
            "a change of the token in an outage ends its use",
            "token valid, later 59, fail, later 2, token valid, forget token, token unavailable",
        ),
        (
            "a change of the consumer in an outage ends its use",
            "token valid, later 59, fail, later 2, token valid, forget consumer, token unavailable",
        ),
        (
            "a change of another record costs no read",
            "token valid, forget other, token valid, reads 1 1",
        ),
    ];
    play(&settings(), &cases).await;
    let long = CacheSettings {
        ttl: seconds(3_600),
        ..settings()
    };
    // Single reads that succeed do not count for other entries: changes may have been missed.
    let case = (
        "a long time to live does not prolong use in an outage",
        "token valid, later 100, fail, later 9, token valid, later 1, token unavailable, recover, token valid, reads 2 3",
    );
    play(&long, &[case]).await;
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
