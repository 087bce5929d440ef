//! The store and its use cases, the same for both engines.
//!
//! A use case is a method of [`Store`] and a function over [`Tx`], one transaction. Each file of this directory has
//! those of one kind of record, and `rows` has the columns of all kinds.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Instant,
};

use serde::Serialize;

use super::engine::{Deadline, Engine, Isolation, Statements};
use crate::{
    records::values::{
        ExternalRecords, Result,
        seal::Seal,
        use_cases::Guard,
        value::{Value, json},
    },
    telemetry::metrics::Metrics,
};

mod audit;
mod consumers;
mod feed;
mod flow;
mod maintenance;
mod sessions;
#[cfg(any(test, fuzzing))]
pub mod test_double;
mod tokens;
mod transfer;
mod tx;
mod users;

use tx::{Tx, rows::Read};

/// A store: consumers, users, tokens and sessions in a database.
///
/// Each use case is one atomic step. One that changes something returns only once the change is durable
/// (it survives a power loss as far as the engine's medium does) and visible to every other process on the store.
/// Times come from the caller, so that tests can move them.
pub struct Store {
    engine: Box<dyn Engine>,
    seal: Arc<Seal>,
    /// Records that an application keeps, for those that are not in the store. It is never asked in a transaction.
    external: Option<Arc<dyn ExternalRecords>>,
    /// Counts the times and the faults of use cases, once it is set.
    metrics: OnceLock<Arc<Metrics>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// Reads, for a request.
const READ: (Isolation, Deadline) = (Isolation::Single, Deadline::Request);
/// Reads one state by several statements, for a request.
const SNAPSHOT: (Isolation, Deadline) = (Isolation::Snapshot, Deadline::Request);
/// Writes tokens or sessions, for a request.
const WRITE: (Isolation, Deadline) = (Isolation::Write, Deadline::Request);
/// Reads many records, for a command.
const LIST: (Isolation, Deadline) = (Isolation::Single, Deadline::Command);
/// Changes consumers or users, for a request.
const CHANGE: (Isolation, Deadline) = (Isolation::Exclusive, Deadline::Request);
/// Changes consumers or users, or many records, for a command.
const EXCLUSIVE: (Isolation, Deadline) = (Isolation::Exclusive, Deadline::Command);

impl Store {
    /// A store on an engine whose tables are prepared later.
    pub(super) fn new(
        engine: impl Engine + 'static,
        seal: Seal,
        external: Option<Arc<dyn ExternalRecords>>,
    ) -> Self {
        Self {
            engine: Box::new(engine),
            seal: Arc::new(seal),
            external,
            metrics: OnceLock::new(),
        }
    }

    /// Counts the times and the faults of use cases from now on. Only the first call has an effect.
    pub fn count_with(&self, metrics: Arc<Metrics>) {
        let _ = self.metrics.set(metrics);
    }

    /// Whether records that are not registered here are looked up in an application.
    pub(crate) fn has_external(&self) -> bool {
        self.external.is_some()
    }

    /// Whether other machines use the store too.
    pub fn is_shared(&self) -> bool {
        self.engine.statements().schema.is_shared
    }

    /// Runs a use case, and counts its time and its faults.
    async fn run<T>(
        &self,
        use_case: &'static str,
        (isolation, deadline): (Isolation, Deadline),
        work: impl AsyncFnOnce(&mut Tx) -> Result<T>,
    ) -> Result<T> {
        // Boxed, so that the futures of callers stay small.
        let attempt = Box::pin(async {
            let begun = self.engine.begin(isolation, deadline).await?;
            let seal = Arc::clone(&self.seal);
            let mut tx = Tx::new(begun, self.engine.statements(), seal);
            let value = work(&mut tx).await?;
            tx.commit().await?;
            Ok(value)
        });
        self.counted(use_case, attempt).await
    }

    /// Runs a use case of one statement, and reads all rows.
    async fn rows<T>(
        &self,
        use_case: &'static str,
        limits: (Isolation, Deadline),
        sql: &str,
        params: &[Value],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.run(use_case, limits, async |tx| {
            tx.rows(sql, params, read).await
        })
        .await
    }

    /// As [`Self::rows`], of the first row.
    async fn row<T>(
        &self,
        use_case: &'static str,
        limits: (Isolation, Deadline),
        sql: &str,
        params: &[Value],
        read: Read<T>,
    ) -> Result<Option<T>> {
        let rows = self.rows(use_case, limits, sql, params, read).await?;
        Ok(rows.into_iter().next())
    }

    /// Counts the time and the faults of `work`.
    async fn counted<T>(
        &self,
        use_case: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        let result = work.await;
        if let Some(metrics) = self.metrics.get() {
            metrics.store(use_case, begun.elapsed(), result.is_err());
        }
        result
    }

    /// Writes the last uses of tokens or consumers by the statement that `sql` returns: some in each transaction, so that
    /// others do not wait for long.
    async fn record_in_parts<T: Serialize>(
        &self,
        use_case: &'static str,
        uses: Vec<T>,
        sql: impl Fn(&Statements) -> String,
    ) -> Result<()> {
        for some in uses.chunks(5_000) {
            let record = async |tx: &mut Tx| {
                let sql = sql(tx.statements());
                tx.execute(&sql, &[json(some)?.into()]).await.map(drop)
            };
            let limits = (Isolation::Write, Deadline::Command);
            self.run(use_case, limits, record).await?;
        }
        Ok(())
    }
}

/// Whether there is a record and `guard` accepts its change.
fn passes<T>(guard: Guard<'_, T>, found: Option<T>) -> bool {
    found.is_some_and(|found| guard.is_none_or(|guard| guard(&found)))
}

/// Whether a record of this kind and key was removed.
async fn is_removed(tx: &mut Tx, kind: &str, key: &str) -> Result<bool> {
    let find = "SELECT 1 FROM countersign.removed WHERE kind = $1 AND key = $2";
    tx.has_row(find, &[kind.into(), key.into()]).await
}

/// Marks a key as never to be used again; `false` if it was marked before.
async fn retire(tx: &mut Tx, kind: &str, key: &str) -> Result<bool> {
    let insert =
        "INSERT INTO countersign.removed (kind, key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let params = [kind.into(), key.into()];
    Ok(tx.execute(insert, &params).await? > 0)
}
