//! Promise (Admin API): A slow list delays no request, and ends when its caller disconnects.

use super::*;

async fn begin(
    store: &SqliteStore,
    isolation: Isolation,
    deadline: Deadline,
) -> Box<dyn Connection> {
    let begun = store.begin(isolation, deadline).await;
    begun.unwrap().0
}

async fn prepared(directory: &tempfile::TempDir) -> SqliteStore {
    let store = SqliteStore::open(&directory.path().join("store"), false).unwrap();
    let mut migration = begin(&store, Isolation::Migration, Deadline::Command).await;
    let table = "CREATE TABLE numbers (number INTEGER); PRAGMA user_version = 1";
    migration.batch(table).await.unwrap();
    migration.commit().await.unwrap();
    drop(migration);
    store
}

/// A task may stall for long, for its thread may be blocked.
#[tokio::test]
async fn a_stalled_transaction_does_not_hold_up_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let store = prepared(&directory).await;
    let mut stalled = begin(&store, Isolation::Exclusive, Deadline::Request).await;
    let insert = "INSERT INTO numbers (number) VALUES ($1)";
    stalled.execute(insert, &[1.into()]).await.unwrap();
    let mut other = begin(&store, Isolation::Exclusive, Deadline::Request).await;
    other.execute(insert, &[2.into()]).await.unwrap();
    other.commit().await.unwrap();
    assert!(stalled.execute(insert, &[3.into()]).await.is_err());
    assert!(stalled.commit().await.is_err());
    let mut reads = begin(&store, Isolation::Single, Deadline::Request).await;
    let rows = reads.rows("SELECT number FROM numbers", &[]).await.unwrap();
    let numbers = rows.iter().map(|row| row.get::<i64>("number").unwrap());
    assert_eq!(Vec::from_iter(numbers), [2]);
}

/// The reads of commands share one thread.
#[tokio::test]
async fn read_without_a_waiter_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let store = prepared(&directory).await;
    let endless = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
         SELECT count(*) FROM numbers";
    let mut abandoned = begin(&store, Isolation::Single, Deadline::Command).await;
    let read = abandoned.rows(endless, &[]);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), read)
            .await
            .is_err()
    );
    drop(abandoned);
    let mut next = begin(&store, Isolation::Single, Deadline::Command).await;
    assert_eq!(next.rows("SELECT 1", &[]).await.unwrap().len(), 1);
}
