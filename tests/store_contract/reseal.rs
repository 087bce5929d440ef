//! Several keys, and encrypting again with another one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use countersign::{
    base::secret::Secret,
    records::{
        store::{Store, StoreParams, open_store},
        values::{
            Opening, StoreError, StoreOpenError,
            record::Consumer,
            transfer::Record,
            use_cases::{ResealFrom, Resealed, Updated},
        },
    },
};

use crate::store_contract::{
    records::{
        access_token, allow, always, authorize, consumer, exported, id, import_list, populate,
        rich_consumer, until_answered,
    },
    suite::Backend,
};

fn open<B: Backend>(
    backend: &B,
    keys: &[u8],
    opening: Opening,
) -> Result<Arc<Store>, StoreOpenError> {
    open_store(StoreParams {
        backend: backend.engine(),
        keys: keys
            .iter()
            .map(|byte| countersign::records::values::seal::SealKey::new([*byte; 32]))
            .collect(),
        opening,
        external: None,
    })
}

fn serve<B: Backend>(backend: &B, keys: &[u8]) -> Arc<Store> {
    open(backend, keys, Opening::Serve).unwrap()
}

/// The work of `rekey`, or of `check` with `look`.
async fn reseal(store: &Arc<Store>, look: bool) -> Resealed {
    let mut all = Resealed::default();
    let mut next = Some(ResealFrom::default());
    while let Some(from) = next {
        // SQLite gives up when others kept the lock for seconds; the batch can be sealed again.
        let batch = until_answered(|| store.reseal(from.clone(), look));
        next = all.add(batch.await);
    }
    all
}

pub(crate) async fn seals_everything_beside_processes_that_know_both_keys<B: Backend>() {
    let backend = B::fresh().await;
    let old = serve(&backend, &[1]);
    authorize(&old, allow()).await;
    old.add_consumer(rich_consumer("rich")).await.unwrap();
    // More than a batch.
    let tokens = (0..1_100).map(|number| access_token(&format!("t{number}"), "c", "u"));
    old.import(import_list(tokens.map(Record::AccessToken).collect()))
        .await
        .unwrap();
    let serving = serve(&backend, &[1, 2]);
    let before = exported(&serving).await;
    let request_token = serving.request_token("r").await.unwrap();

    let rekeys = open(&backend, &[2, 1], Opening::Reseal).unwrap();
    let seen = 1_100 + 3 + 1 + 2;
    for look in [true, false] {
        let resealed = reseal(&rekeys, look).await;
        assert_eq!((resealed.seen, resealed.older), (seen, seen));
        assert!(resealed.unopened.is_none());
    }
    // A second run finds nothing to do.
    assert_eq!(reseal(&rekeys, false).await.older, 0);
    assert_eq!(exported(&serving).await, before);
    // The first key of each process seals.
    serving.add_consumer(consumer("e")).await.unwrap();
    assert_eq!(reseal(&rekeys, false).await.older, 1);
    // A process without the new key notices when it reads the store, as for its readiness.
    assert!(open(&backend, &[1], Opening::Serve).is_err());
    let found = old.consumer(&id("c")).await;
    assert!(matches!(found, Err(StoreError::Unopened(_))), "{found:?}");
    assert!(reseal(&old, true).await.unopened.is_some());
    // And the old key can be dropped.
    let new = serve(&backend, &[2]);
    assert_eq!(exported(&new).await, exported(&serving).await);
    assert_eq!(new.request_token("r").await.unwrap(), request_token);
}

pub(crate) async fn keeps_what_changes_meanwhile<B: Backend>() {
    const CONSUMERS: usize = 40;
    let backend = B::fresh().await;
    let old = serve(&backend, &[1]);
    populate(&old).await;
    for number in 0..CONSUMERS {
        let consumer = consumer(&format!("c{number}"));
        old.add_consumer(consumer).await.unwrap();
    }
    let serving = serve(&backend, &[2, 1]);
    let is_done = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicUsize::new(0));
    let (changing, ends) = (Arc::clone(&serving), Arc::clone(&is_done));
    let changed = Arc::clone(&rounds);
    let changes = tokio::spawn(async move {
        loop {
            let is_last = ends.load(Ordering::SeqCst);
            let round = 1 + changed.fetch_add(1, Ordering::SeqCst);
            for number in 0..CONSUMERS {
                let key = format!("c{number}").parse().unwrap();
                let secret = Secret::from(format!("{round} of {number}"));
                let rotate = |consumer: &mut Consumer| consumer.secret = secret.clone();
                let rotate = always(&rotate);
                let rotated = until_answered(|| changing.update_consumer(&key, &rotate));
                assert!(matches!(rotated.await, Updated::Updated(_)));
            }
            if is_last {
                return round;
            }
        }
    });
    let rekeys = open(&backend, &[2, 1], Opening::Reseal).unwrap();
    // At least once, however fast the changes are.
    reseal(&rekeys, false).await;
    while rounds.load(Ordering::SeqCst) < 3 {
        reseal(&rekeys, false).await;
    }
    is_done.store(true, Ordering::SeqCst);
    let round = changes.await.unwrap();
    assert_eq!(reseal(&rekeys, true).await.older, 0);
    let new = serve(&backend, &[2]);
    for number in 0..CONSUMERS {
        let key = format!("c{number}").parse().unwrap();
        let found = new.consumer(&key).await.unwrap().unwrap();
        assert_eq!(found.secret, Secret::from(format!("{round} of {number}")));
    }
}

pub(crate) async fn seals_a_plain_store<B: Backend>() {
    let backend = B::fresh().await;
    let plain = serve(&backend, &[]);
    populate(&plain).await;
    let before = exported(&plain).await;
    // Only an attacker without the key could have put plain secrets into a sealed store.
    for opening in [Opening::Serve, Opening::Command] {
        assert!(open(&backend, &[1], opening).is_err());
    }
    let looks = open(&backend, &[1], Opening::Check).unwrap();
    assert_eq!(reseal(&looks, true).await.older, 2);
    let rekeys = open(&backend, &[1], Opening::Reseal).unwrap();
    let resealed = reseal(&rekeys, false).await;
    assert_eq!((resealed.seen, resealed.older), (2, 2));
    assert_eq!(exported(&serve(&backend, &[1])).await, before);
    assert!(open(&backend, &[], Opening::Serve).is_err());
    assert!(plain.consumer(&id("c")).await.is_err());
    assert!(reseal(&plain, true).await.unopened.is_some());
}

pub(crate) async fn names_a_secret_that_no_key_opens<B: Backend>() {
    let backend = B::fresh().await;
    let new = serve(&backend, &[2]);
    let both = serve(&backend, &[1, 2]);
    populate(&both).await;
    let error = new.consumer(&id("c")).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Unopened(_)), "{error:?}");
    assert!(
        text.contains("consumer.secret of \"c\"") && text.contains("key "),
        "{text}"
    );
    let resealed = reseal(&new, false).await;
    let (count, _) = resealed.unopened.unwrap();
    assert_eq!((resealed.seen, resealed.older, count), (2, 2, 2));
    // Nothing is lost.
    let kept = both.consumer(&id("c")).await.unwrap();
    assert!(kept.is_some());
}
