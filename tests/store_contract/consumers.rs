//! Consumers.

use countersign::{
    base::{clock::UnixTime, text::names::ConsumerKey},
    records::values::{
        record::{Consumer, ConsumerUse, Dialect, Registration},
        use_cases::{Added, Exchanged, RecordFilter, Updated},
    },
};

use crate::store_contract::{
    records::{
        NOW, access_token, allow, always, ask, authorize, consumer, exchange, id, later, opened,
        opened_twice, populate, rich_consumer, until_answered,
    },
    suite::Backend,
};

pub(crate) async fn keeps_every_field<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let legacy = rich_consumer("rich");
    let mut rfc5849 = consumer("simple");
    rfc5849.dialect = Some(Dialect::Rfc5849);
    for consumer in [legacy, rfc5849, consumer("A0._~@+:-")] {
        assert_eq!(
            store.add_consumer(consumer.clone()).await.unwrap(),
            Added::Added
        );
        assert_eq!(store.consumer(&consumer.key).await.unwrap(), Some(consumer));
    }
    assert_eq!(store.consumer(&id("RICH")).await.unwrap(), None);
}

pub(crate) async fn takes_a_key_once<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    store.add_consumer(consumer("c")).await.unwrap();
    let mut other = rich_consumer("c");
    other.name = "another".to_owned();
    assert_eq!(store.add_consumer(other).await.unwrap(), Added::Taken);
    assert_eq!(store.consumer(&id("c")).await.unwrap(), Some(consumer("c")));
}

pub(crate) async fn changes_only_what_is_asked<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let key: ConsumerKey = id("c");
    assert_eq!(
        store.update_consumer(&key, &|_| true).await.unwrap(),
        Updated::Unknown
    );
    let mut expected = consumer("c");
    store.add_consumer(expected.clone()).await.unwrap();
    store.add_consumer(consumer("d")).await.unwrap();
    let changes: [fn(&mut Consumer); 14] = [
        |_| {},
        |consumer| consumer.name = "new".to_owned(),
        |consumer| consumer.description = Some("text".to_owned()),
        |consumer| consumer.website = Some("https://a.test/".to_owned()),
        |consumer| (consumer.description, consumer.website) = (None, None),
        |consumer| consumer.contact = Some("ops@a.test".to_owned()),
        |consumer| consumer.from = vec!["10.0.0.0/8".parse().unwrap()],
        |consumer| consumer.callbacks = vec!["oob".to_owned()],
        |consumer| consumer.permissions = vec![],
        |consumer| consumer.dialect = Some(Dialect::Legacy),
        |consumer| consumer.dialect = None,
        |consumer| {
            consumer.rsa_public_key = Some("PEM".to_owned());
            consumer.rsa_only = true;
        },
        |consumer| consumer.enforce = true,
        |consumer| consumer.enabled = false,
    ];
    for change in changes {
        change(&mut expected);
        assert_eq!(
            store.update_consumer(&key, &always(&change)).await.unwrap(),
            Updated::Updated(Box::new(expected.clone()))
        );
        assert_eq!(store.consumer(&key).await.unwrap(), Some(expected.clone()));
    }
    let other = id("d");
    assert_eq!(store.consumer(&other).await.unwrap(), Some(consumer("d")));
}

pub(crate) async fn never_enables_one_that_is_not_approved<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let key: ConsumerKey = id("c");
    let waiting = |enabled| Consumer {
        owner: Some(id("u")),
        registration: Some(Registration::Waiting),
        enabled,
        ..consumer("c")
    };
    assert!(store.add_consumer(waiting(true)).await.is_err());
    store.add_consumer(waiting(false)).await.unwrap();
    let enable = |consumer: &mut Consumer| consumer.enabled = true;
    let updated = store.update_consumer(&key, &always(&enable)).await;
    assert_eq!(updated.unwrap(), Updated::Refused);
    let approve = |consumer: &mut Consumer| {
        (consumer.enabled, consumer.registration) = (true, Some(Registration::Approved));
    };
    store
        .update_consumer(&key, &always(&approve))
        .await
        .unwrap();
    let decline = |consumer: &mut Consumer| consumer.registration = Some(Registration::Declined);
    let updated = store.update_consumer(&key, &always(&decline)).await;
    assert_eq!(updated.unwrap(), Updated::Refused);
    assert!(store.consumer(&key).await.unwrap().unwrap().enabled);
}

pub(crate) async fn never_leaves_one_that_cannot_sign<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    let key: ConsumerKey = id("c");
    let registered = Consumer {
        rsa_public_key: Some("PEM".to_owned()),
        ..consumer("c")
    };
    stores[0].add_consumer(registered.clone()).await.unwrap();
    let key_of = registered.rsa_public_key.clone();
    let back = |consumer: &mut Consumer| {
        consumer.rsa_public_key.clone_from(&key_of);
        consumer.rsa_only = false;
    };
    for _ in 0..20 {
        // Either change alone is fine; of two operators at once one is rejected.
        let restrict = always(&|consumer| consumer.rsa_only = true);
        let remove = always(&|consumer| consumer.rsa_public_key = None);
        let (one, other) = tokio::join!(
            until_answered(|| stores[0].update_consumer(&key, &restrict)),
            until_answered(|| stores[1].update_consumer(&key, &remove)),
        );
        let rejected = [&one, &other].map(|updated| *updated == Updated::Refused);
        assert!(rejected[0] != rejected[1], "{one:?} {other:?}");
        assert!(stores[0].consumer(&key).await.unwrap().unwrap().can_sign());
        stores[1]
            .update_consumer(&key, &always(&back))
            .await
            .unwrap();
    }
    assert_eq!(stores[0].consumer(&key).await.unwrap(), Some(registered));
}

pub(crate) async fn keeps_the_secret_before_a_rotation<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let key: ConsumerKey = id("c");
    let mut expected = consumer("c");
    store.add_consumer(expected.clone()).await.unwrap();
    for (secret, until) in [
        ("second", Some(later(5))),
        ("third", Some(later(6))),
        ("fourth", None),
    ] {
        let rotate = |consumer: &mut Consumer| {
            let before = std::mem::replace(&mut consumer.secret, secret.into());
            consumer.previous_secret = until.map(|until| (before, until));
        };
        rotate(&mut expected);
        store.update_consumer(&key, &always(&rotate)).await.unwrap();
        assert_eq!(store.consumer(&key).await.unwrap(), Some(expected.clone()));
    }
}

pub(crate) async fn removes_what_belongs_to_it<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let key: ConsumerKey = id("c");
    assert!(!store.remove_consumer(&key, None).await.unwrap());
    authorize(&store, allow()).await;
    store.add_consumer(consumer("d")).await.unwrap();
    let mine = access_token("mine", "c", "u");
    let others = access_token("others", "d", "u");
    for token in [&mine, &others] {
        assert_eq!(
            store.issue_access_token(token.clone()).await.unwrap(),
            Added::Added
        );
    }
    assert!(store.remove_consumer(&key, None).await.unwrap());
    assert!(!store.remove_consumer(&key, None).await.unwrap());
    assert_eq!(store.consumer(&key).await.unwrap(), None);
    assert_eq!(store.access_token("mine").await.unwrap(), None);
    assert_eq!(store.request_token("r").await.unwrap(), None);
    assert_eq!(
        store.exchange(exchange("r", "c")).await.unwrap(),
        Exchanged::Unknown
    );
    assert_eq!(store.access_token("others").await.unwrap(), Some(others));
    // A request token that was under way when its consumer was removed.
    ask(&store, "late").await;
    assert_eq!(store.request_token("late").await.unwrap(), None);
    // The key is never used again, nor are the identifiers of its tokens.
    assert_eq!(
        store.add_consumer(consumer("c")).await.unwrap(),
        Added::Taken
    );
    let again = access_token("mine", "d", "u");
    assert_eq!(store.issue_access_token(again).await.unwrap(), Added::Taken);
}

pub(crate) async fn lists_in_pages<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    assert!(
        store
            .consumers(&Default::default(), None, 10)
            .await
            .unwrap()
            .is_empty()
    );
    populate(&store).await;
    // In the order of bytes, in which capitals come first.
    for key in ["e", "D", "a", "+"] {
        store.add_consumer(consumer(key)).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after: Option<ConsumerKey> = None;
    loop {
        let page = store
            .consumers(&Default::default(), after.as_ref(), 2)
            .await
            .unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        seen.extend(page);
    }
    let keys: Vec<_> = seen.iter().map(|consumer| consumer.key.as_str()).collect();
    assert_eq!(keys, ["+", "D", "a", "c", "e"]);
    assert_eq!(seen[1], consumer("D"));
    assert!(
        store
            .consumers(&Default::default(), None, 0)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn keeps_the_latest_use<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    for key in ["a", "b"] {
        store.add_consumer(consumer(key)).await.unwrap();
    }
    let used = |key, at, method: &str, dialect| ConsumerUse {
        consumer: id(key),
        last_used_at: later(at),
        method: Some(method.to_owned()),
        dialect: Some(dialect),
    };
    let keys = [id("a"), id("b"), id("gone")];
    let found = async || {
        let mut found = store.consumer_uses(&keys).await.unwrap();
        found.sort_by(|one, other| one.consumer.cmp(&other.consumer));
        found
    };
    let (rfc5849, legacy) = (Dialect::Rfc5849, Dialect::Legacy);
    store.record_consumer_uses(Vec::new()).await.unwrap();
    assert_eq!(found().await, []);
    let latest = used("a", 7, "HMAC-SHA256", legacy);
    let first = vec![
        used("a", 5, "HMAC-SHA1", rfc5849),
        latest.clone(),
        used("gone", 9, "HMAC-SHA1", rfc5849),
        used("a", 6, "HMAC-SHA1", rfc5849),
    ];
    store.record_consumer_uses(first).await.unwrap();
    assert_eq!(found().await, [latest]);
    let again = used("a", 8, "RSA-SHA1", rfc5849);
    let second = vec![used("b", 3, "HMAC-MD5", legacy), again.clone()];
    store.record_consumer_uses(second).await.unwrap();
    let earlier = vec![used("a", 7, "PLAINTEXT", legacy)];
    store.record_consumer_uses(earlier).await.unwrap();
    let both = [again.clone(), used("b", 3, "HMAC-MD5", legacy)];
    assert_eq!(found().await, both);

    // A call without a token is a use too.
    let filter = RecordFilter {
        unused_since: Some(later(4)),
        ..RecordFilter::default()
    };
    let unused = store.consumers(&filter, None, 9).await.unwrap();
    let unused: Vec<_> = unused.iter().map(|found| found.key.as_str()).collect();
    assert_eq!(unused, ["b"]);

    // A Bearer token does not hide when the consumer signed, nor does a signature hide the token.
    let by_token = |key, at| ConsumerUse {
        dialect: None,
        ..used(key, at, "Bearer", rfc5849)
    };
    let tokens = vec![by_token("a", 9), by_token("a", 6), by_token("b", 2)];
    store.record_consumer_uses(tokens).await.unwrap();
    let mut of_a = store.consumer_uses(&keys[..1]).await.unwrap();
    of_a.sort_by_key(|used| used.last_used_at);
    assert_eq!(of_a, [again, by_token("a", 9)]);
    for (since, expected) in [(2, &["a", "b"][..]), (3, &["a"]), (8, &[])] {
        let filter = RecordFilter {
            signed_since: Some(later(since)),
            ..RecordFilter::default()
        };
        let signing = store.consumers(&filter, None, 9).await.unwrap();
        let signing: Vec<_> = signing.iter().map(|found| found.key.as_str()).collect();
        assert_eq!(signing, expected, "{since}");
    }

    // A changed consumer keeps its last use, and a removed one does not.
    let change = |consumer: &mut Consumer| consumer.name = "other".to_owned();
    store
        .update_consumer(&id("b"), &always(&change))
        .await
        .unwrap();
    assert_eq!(found().await.len(), 4);
    assert!(store.remove_consumer(&id("a"), None).await.unwrap());
    assert_eq!(found().await.len(), 2);
}

pub(crate) async fn has_one_developer_link_for_a_time<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    let [store, other] = &stores;
    store.add_consumer(consumer("c")).await.unwrap();
    let key: ConsumerKey = "c".parse().unwrap();
    assert!(!store.remove_developer_link(&key, NOW).await.unwrap());
    for byte in [1, 2] {
        let hash = [byte; 32];
        let put = store.put_developer_link(&key, &hash, later(10));
        put.await.unwrap();
    }
    // The second one ended the first, and every process knows it.
    let found = async |byte: u8, after| {
        other
            .developer_link(&[byte; 32], later(after))
            .await
            .unwrap()
    };
    assert_eq!(found(1, 0).await, None);
    assert_eq!(found(2, 9).await, Some((key.clone(), later(10))));
    assert_eq!(found(2, 10).await, None);
    assert_eq!(
        other.developer_link_of(&key, later(9)).await.unwrap(),
        Some(later(10))
    );
    assert_eq!(
        other.developer_link_of(&key, later(10)).await.unwrap(),
        None
    );
    assert!(store.remove_developer_link(&key, later(9)).await.unwrap());
    assert!(!store.remove_developer_link(&key, later(9)).await.unwrap());
    assert_eq!(found(2, 0).await, None);
    // It ends with the consumer, and with a secret that is replaced at once.
    let link = async || {
        let put = store.put_developer_link(&key, &[3; 32], later(10));
        put.await.unwrap();
    };
    let change = async |change: &(dyn Fn(&mut Consumer) + Sync)| {
        let change = |consumer: &mut Consumer| {
            change(consumer);
            true
        };
        let updated = store.update_consumer(&key, &change).await.unwrap();
        assert!(matches!(updated, Updated::Updated(_)), "{updated:?}");
    };
    let rotated = |consumer: &mut Consumer, until: UnixTime| {
        let next = [consumer.secret.expose(), b"x"].concat().into();
        let before = std::mem::replace(&mut consumer.secret, next);
        consumer.previous_secret = Some((before, until));
    };
    link().await;
    change(&|consumer| consumer.name = "other".to_owned()).await;
    change(&|consumer| rotated(consumer, UnixTime(u64::from(u32::MAX)))).await;
    assert!(found(3, 0).await.is_some(), "a grace keeps it");
    change(&|consumer| rotated(consumer, UnixTime(1))).await;
    assert_eq!(found(3, 0).await, None);
    link().await;
    for enabled in [false, true] {
        change(&|consumer| consumer.enabled = enabled).await;
        assert_eq!(found(3, 0).await, None, "{enabled}");
    }
    let put = store.put_developer_link(&key, &[3; 32], later(10)).await;
    put.unwrap();
    assert!(store.remove_consumer(&key, None).await.unwrap());
    assert_eq!(found(3, 0).await, None);
}
