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

/// A call that waits for the read of another one gets its result, unless the record was changed meanwhile.
#[tokio::test]
async fn reads_are_shared_and_never_outlive_a_change() {
    let cases = [
        (
            "one read serves all that wait",
            "hold, ask, wait x50, release, asked valid, waited valid, reads 1 1",
        ),
        (
            "one failure is that of all that wait",
            "hold, fail, ask, wait x20, release, asked unavailable, waited unavailable, reads 0 1, recover, token valid",
        ),
        (
            "a waiter reads if the reader gives up",
            "hold, ask, wait, pass, abort, waited valid, reads 1 2",
        ),
        (
            "a read that all gave up leaves nothing",
            "hold, ask, abort, release, token valid",
        ),
        (
            "a read from before a revocation",
            "hold, ask, revoke, forget token, release, asked revoked, token revoked",
        ),
        (
            "a caller after a revocation",
            "hold, ask, revoke, forget token, wait, release, waited revoked, asked revoked, token revoked",
        ),
        (
            "a read from before a change of the consumer",
            "consumer valid, hold, ask, disable, forget consumer, release, asked disabled",
        ),
        (
            "an unknown token that is issued meanwhile",
            "remove access_tokens, hold, ask, issue, forget token, release, asked valid, token valid",
        ),
        (
            "an unknown token that is issued before an outage",
            "remove access_tokens, hold, ask, issue, forget token, fail, release, asked unavailable, recover, token valid",
        ),
        (
            "a token without its consumer",
            "remove consumers, token unknown",
        ),
        (
            "a slow reader notices a change",
            "hold, ask, wait, release, asked valid, disable, forget consumer, waited disabled",
        ),
        (
            "a slow reader passes its result to no other",
            "hold, ask, wait, release, asked valid, revoke, later 60, token revoked, waited valid",
        ),
    ];
    play(&settings(), &cases).await;
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
