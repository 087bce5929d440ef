//! Consumers that only their tokens hold.

use super::*;

impl Setup {
    /// The consumer `c`, as a token finds it.
    async fn consumer_of_token(&self) -> Arc<ConsumerCredentials> {
        let now = self.clock.now();
        let found = self.cached.consumer_of_token(b"c", now).await;
        found.unwrap().unwrap()
    }

    /// Waits until nothing holds `entry`. moka drops what it has removed a few operations later.
    async fn is_dropped<V>(&self, entry: Arc<V>) {
        let weak = Arc::downgrade(&entry);
        drop(entry);
        while weak.strong_count() > 0 {
            self.cached.consumer(b"other").await.unwrap();
            self.cached.access(b"other").await.unwrap();
        }
    }
}

#[tokio::test]
async fn tokens_of_one_consumer_share_its_record() {
    let setup = setup();
    setup.store.put_access_token(&token("u", "c"));
    let one = setup.access().await.unwrap();
    let other = setup.cached.access(b"u").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&one.consumer, &other.consumer));
    let named = setup.cached.consumer(b"c").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&one.consumer, &named));
    assert_eq!(setup.reads(), (1, 2));
}

#[tokio::test]
async fn a_consumer_goes_with_the_last_token() {
    let setup = setup();
    let consumer = setup.consumer_of_token().await;
    setup.is_dropped(consumer).await;
    let before = setup.reads().0;
    setup.consumer_of_token().await;
    assert_eq!(setup.reads().0, before + 1);
}

#[tokio::test]
async fn a_consumer_that_calls_name_stays_without_its_token() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    let consumer = setup.cached.consumer(b"c").await.unwrap().unwrap();
    setup.cached.access.evict(b"t");
    setup.is_dropped(found).await;
    drop(consumer);
    let before = setup.reads().0;
    setup.cached.consumer(b"c").await.unwrap().unwrap();
    assert_eq!(setup.reads().0, before);
}

#[tokio::test]
async fn a_consumer_that_is_in_the_index_no_more_is_read_again_for_its_token() {
    let setup = setup();
    setup.access().await;
    setup.cached.consumers.remove(b"c").await;
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    assert!(!setup.access().await.unwrap().consumer.enabled);
    assert_eq!(setup.reads(), (2, 2));
}

#[tokio::test]
async fn a_consumer_that_another_replaced_is_not_used_with_its_token() {
    let setup = setup();
    let old = setup.access().await.unwrap();
    setup.later(60);
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
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
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    setup.cached.forget_everything();
    assert!(!setup.access().await.unwrap().consumer.enabled);
}

#[tokio::test]
async fn a_call_with_a_consumer_of_a_failing_store_is_answered_as_long_as_its_token() {
    let setup = setup();
    setup.later(0);
    setup.access().await;
    setup.store.fail(true);
    setup.clock.advance(seconds(9));
    assert!(setup.cached.consumer(b"c").await.unwrap().is_some());
    setup.clock.advance(seconds(1));
    assert!(setup.cached.consumer(b"c").await.is_err());
    assert!(setup.cached.access(b"t").await.is_err());
}

#[tokio::test]
async fn consumers_that_nothing_holds_leave_the_index() {
    let setup = setup();
    for number in 0..2_000 {
        let key = format!("c{number}");
        setup.store.put_consumer(&Consumer::for_tests(&key));
        let found = setup.cached.consumer_of_token(key.as_bytes(), START).await;
        found.unwrap().unwrap();
    }
    let last = setup.consumer_of_token().await;
    setup.is_dropped(last).await;
    let kept = setup.consumer_of_token().await;
    (0..64).for_each(|_| setup.cached.sweep());
    assert!(setup.cached.consumers.indexed() < 20);
    assert!(Arc::ptr_eq(&kept, &setup.consumer_of_token().await));
}
