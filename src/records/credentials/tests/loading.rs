//! Reads from the store, and the entries that they leave.

use super::*;

#[tokio::test]
async fn a_hit_does_not_ask_the_store() {
    let setup = setup();
    for _ in 0..3 {
        assert_eq!(&*setup.access().await.unwrap().token, "t");
        assert!(setup.cached.consumer(b"c").await.unwrap().is_some());
    }
    assert_eq!(setup.reads(), (1, 1));
    let (consumers, tokens) = setup.cached.counts();
    assert_eq!(tokens.hits.get(), 2);
    assert_eq!(tokens.misses.get(), 1);
    // The token's own miss asked for the consumer first.
    assert_eq!(consumers.hits.get(), 3);
}

#[tokio::test]
async fn what_cannot_be_a_name_does_not_reach_the_store() {
    let setup = setup();
    for key in [&b""[..], b"a\0b", b"\xff", &[b'a'; 256]] {
        assert!(setup.cached.consumer(key).await.unwrap().is_none());
    }
    for token in [&b"\xff"[..], &[b'a'; 1025]] {
        assert!(setup.cached.access(token, b"c").await.unwrap().is_none());
    }
    assert_eq!(setup.reads(), (0, 0));
}

#[tokio::test]
async fn unknown_tokens_do_not_evict_good_entries() {
    let setup = setup_with(&CacheSettings {
        max_entries: 100,
        ..settings()
    });
    for number in 0..50 {
        let name = format!("good{number}");
        setup.store.put_access_token(&token(&name, "c"));
        setup
            .cached
            .access(name.as_bytes(), b"c")
            .await
            .unwrap()
            .unwrap();
    }
    for number in 0..5_000 {
        let unknown = format!("unknown{number}");
        assert!(
            setup
                .cached
                .access(unknown.as_bytes(), b"c")
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            setup
                .cached
                .consumer(unknown.as_bytes())
                .await
                .unwrap()
                .is_none()
        );
    }
    let before = setup.reads();
    for number in 0..50 {
        setup
            .cached
            .access(format!("good{number}").as_bytes(), b"c")
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(setup.reads(), before);
}

#[tokio::test]
async fn one_reads_for_all_who_wait() {
    let setup = setup();
    setup.store.hold();
    let mut tasks = vec![setup.ask_and_be_held().await];
    for _ in 0..50 {
        let cached = Arc::clone(&setup.cached);
        tasks.push(tokio::spawn(async move { cached.access(b"t", b"c").await }));
    }
    tokio::task::yield_now().await;
    setup.store.release();
    for task in tasks {
        assert!(task.await.unwrap().unwrap().is_some());
    }
    assert_eq!(setup.reads(), (1, 1));
}

#[tokio::test]
async fn one_failure_is_told_to_all_who_wait() {
    let setup = setup();
    setup.store.hold();
    setup.store.fail(true);
    let mut tasks = vec![setup.ask_and_be_held().await];
    for _ in 0..20 {
        let cached = Arc::clone(&setup.cached);
        tasks.push(tokio::spawn(async move { cached.access(b"t", b"c").await }));
    }
    tokio::task::yield_now().await;
    setup.store.release();
    for task in tasks {
        assert!(matches!(
            task.await.unwrap(),
            Err(StoreError::Unavailable(_))
        ));
    }
    assert_eq!(setup.reads(), (0, 1));
    setup.store.fail(false);
    assert!(setup.access().await.is_some());
}

#[tokio::test]
async fn who_waits_reads_when_the_reader_gives_up() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    let cached = Arc::clone(&setup.cached);
    let waiter = tokio::spawn(async move { cached.access(b"t", b"c").await });
    tokio::task::yield_now().await;
    setup.store.let_new_ones_pass();
    reader.abort();
    assert!(reader.await.is_err());
    assert!(waiter.await.unwrap().unwrap().is_some());
    assert_eq!(setup.reads(), (1, 2));
}

#[tokio::test]
async fn a_read_that_all_gave_up_leaves_nothing_behind() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    reader.abort();
    assert!(reader.await.is_err());
    setup.store.release();
    assert!(setup.access().await.is_some());
}

#[tokio::test]
async fn a_read_from_before_a_change_is_not_kept_after_it() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    setup.revoke();
    setup.forget(&token_changed()).await;
    setup.store.release();
    // The read saw the token unrevoked. The call that waited for it sees the change all the same.
    assert!(reader.await.unwrap().unwrap().unwrap().is_revoked);
    assert!(setup.is_revoked().await);
}

#[tokio::test]
async fn a_caller_after_a_change_is_not_given_a_read_from_before_it() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    setup.revoke();
    setup.forget(&token_changed()).await;
    let mut later = std::pin::pin!(setup.access());
    assert!(poll_once(later.as_mut()).await.is_none());
    setup.store.release();
    assert!(later.await.unwrap().is_revoked);
    reader.await.unwrap().unwrap();
    assert!(setup.is_revoked().await);
}

#[tokio::test]
async fn read_from_before_a_change_of_the_consumer_is_not_kept() {
    let setup = setup();
    setup.cached.consumer(b"c").await.unwrap();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    setup.forget(&consumer_changed()).await;
    setup.store.release();
    assert!(!reader.await.unwrap().unwrap().unwrap().consumer.enabled);
}

#[tokio::test]
async fn unknown_from_before_a_change_is_not_kept_after_it() {
    let setup = setup();
    let issued = setup.store.access_token_of("t").unwrap();
    setup.store.sql("DELETE FROM access_tokens");
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    setup.store.put_access_token(&issued);
    setup.forget(&token_changed()).await;
    setup.store.release();
    assert!(reader.await.unwrap().unwrap().is_some());
    assert!(setup.access().await.is_some());
}

#[tokio::test]
async fn a_token_without_its_consumer_is_unknown() {
    let setup = setup();
    setup.store.sql("DELETE FROM consumers");
    assert!(setup.access().await.is_none());
}

#[tokio::test]
async fn unknown_from_before_a_change_is_not_kept_if_still_not_found() {
    let setup = setup();
    let issued = setup.store.access_token_of("t").unwrap();
    setup.store.sql("DELETE FROM access_tokens");
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    setup.store.put_access_token(&issued);
    setup.forget(&token_changed()).await;
    setup.store.fail(true);
    setup.store.release();
    assert!(reader.await.unwrap().is_err());
    setup.store.fail(false);
    assert!(setup.access().await.is_some());
}

#[tokio::test]
async fn slow_reader_of_a_result_notices_a_change_meanwhile() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    let mut slow = std::pin::pin!(setup.cached.access(b"t", b"c"));
    assert!(poll_once(slow.as_mut()).await.is_none());
    setup.store.release();
    reader.await.unwrap().unwrap();
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    setup.forget(&consumer_changed()).await;
    assert!(!slow.await.unwrap().unwrap().consumer.enabled);
}

#[tokio::test]
async fn slow_reader_of_a_result_passes_it_to_no_other() {
    let setup = setup();
    setup.store.hold();
    let reader = setup.ask_and_be_held().await;
    let mut slow = std::pin::pin!(setup.cached.access(b"t", b"c"));
    assert!(poll_once(slow.as_mut()).await.is_none());
    setup.store.release();
    reader.await.unwrap().unwrap();
    setup.revoke();
    setup.later(60);
    assert!(setup.is_revoked().await);
    assert!(slow.await.unwrap().is_some());
}

async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Readers and a writer race; a reader that begins after a change was announced sees it or a later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_announced_is_ever_missed() {
    let setup = setup();
    let announced = Arc::new(std::sync::atomic::AtomicU64::new(0));
    // Closed when the writer ends, also by a panic.
    let (writing, written) = tokio::sync::watch::channel(());
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (cached, announced) = (Arc::clone(&setup.cached), Arc::clone(&announced));
            let written = written.clone();
            tokio::spawn(async move {
                let mut reads = 0;
                while written.has_changed().is_ok() {
                    let least = announced.load(SeqCst);
                    let found = cached.access(b"t", b"c").await.unwrap().unwrap();
                    let seen = found.expires_at.map_or(0, |time| time.0);
                    assert!(seen >= least, "{seen} after {least}");
                    reads += 1;
                    // A read from the cache never waits, and another reader may have the store.
                    tokio::task::yield_now().await;
                }
                reads
            })
        })
        .collect();
    for version in 1..=500 {
        setup
            .store
            .change_access_token("t", |token| token.expires_at = Some(UnixTime(version)));
        setup.forget(&token_changed()).await;
        announced.store(version, SeqCst);
        if version % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    drop(writing);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
}
