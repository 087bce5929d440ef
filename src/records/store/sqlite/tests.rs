use super::*;
use crate::{
    base::clock::UnixTime,
    records::store::{Consumers as _, Opening, record::Consumer, sql::schema::prepare},
};

/// A task may stall for long, for its thread may be blocked.
#[tokio::test]
async fn a_stalled_transaction_does_not_hold_up_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("store"), Arc::default(), None).unwrap();
    prepare(&store, Opening::Serve).await.unwrap();
    let begin = || store.begin("stalled", Mode::Alone, Pace::Request);
    let mut stalled = begin().await.unwrap();
    let delete = "DELETE FROM consumers WHERE created_at = $1";
    stalled
        .execute(delete, &[UnixTime(0).into()])
        .await
        .unwrap();
    let added = store.add_consumer(Consumer::for_tests("shop")).await;
    assert!(added.is_ok(), "{added:?}");
    assert!(
        stalled
            .execute(delete, &[UnixTime(0).into()])
            .await
            .is_err()
    );
    assert!(stalled.commit().await.is_err());
}

/// The reads of commands share one thread.
#[tokio::test]
async fn a_read_that_nobody_waits_for_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("store"), Arc::default(), None).unwrap();
    prepare(&store, Opening::Serve).await.unwrap();
    let begin = || store.begin("list", Mode::Single, Pace::Command);
    let endless = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
         SELECT count(*) FROM numbers";
    let mut abandoned = begin().await.unwrap();
    let read = abandoned.has_row(endless, &[]);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), read)
            .await
            .is_err()
    );
    drop(abandoned);
    let mut next = begin().await.unwrap();
    assert!(next.has_row("SELECT 1", &[]).await.unwrap());
}
