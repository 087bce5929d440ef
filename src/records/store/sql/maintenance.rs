//! Upkeep: readiness, export and import, keys at rest, nonces, and the removal of old records.

use std::time::Duration;

use super::{READ, Store, WRITE, tx::Tx};
use crate::{
    base::clock::UnixTime,
    records::{
        nonce::{NonceFiles, NonceUse, SharedWindow},
        store::{
            Result,
            engine::{Deadline, Isolation},
            port::NonceLocation,
        },
    },
};

/// The most rows that one transaction of [`Store::purge`] deletes from each table, so that it is short.
const PURGE_ROWS: i64 = 5_000;
/// The time for which a change is reported to caches.
const KEEP_CHANGES: Duration = Duration::from_secs(3600);
/// The time for which request tokens and sessions are kept past their end, so that a late caller learns their state.
const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// The time for which a request token is kept past its end if the user has not decided about it: any consumer can ask for many.
const KEEP_UNDECIDED: Duration = Duration::from_secs(600);
/// Written in place of the server that recorded nonces last, if nonces are kept outside the store.
const ELSEWHERE: &str = "elsewhere";
/// The name of [`Store::local_nonces_until`].
const LOCAL: &str = "local_nonces_until";
/// The name of [`Store::imported_nonces_until`].
pub(super) const IMPORTED: &str = "imported_nonces_until";

impl Store {
    /// Whether the store answers; for readiness.
    pub async fn ping(&self) -> Result<()> {
        self.run("ping", READ, async |tx| {
            tx.has_row("SELECT 1 FROM countersign.meta", &[])
                .await
                .map(drop)
        })
        .await
    }

    /// Settings of the engine by which acknowledged writes may be lost, one sentence each.
    pub async fn findings(&self) -> Result<Vec<String>> {
        let find = self.engine.statements().findings;
        self.run("findings", READ, async |tx| {
            tx.rows(find, &[], |row, _| row.get("finding")).await
        })
        .await
    }

    /// The nonce window that all processes on this store share; `None`: the store is for one machine. It lives as long
    /// as the store.
    pub fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        self.engine.open_window()
    }

    /// Whether a nonce is in [`Self::shared_window`]; `None`: the store has none.
    pub async fn nonce_used(&self, nonce: NonceUse<'_>) -> Result<Option<bool>> {
        if !self.is_shared() {
            return Ok(None);
        }
        let nonce = [
            UnixTime(nonce.timestamp).into(),
            nonce.digest().to_vec().into(),
        ];
        let find = "SELECT 1 FROM countersign.nonces WHERE second = $1 AND digest = $2";
        self.run("nonce_used", READ, async |tx| {
            tx.has_row(find, &nonce).await.map(Some)
        })
        .await
    }

    /// The window that was noted last; another window does not have its nonces.
    ///
    /// # Errors
    /// Also that the store has no window of its own.
    pub async fn nonce_location(&self) -> Result<NonceLocation> {
        self.run("nonce_location", READ, async |tx| {
            let find = "SELECT server FROM countersign.nonce_state";
            let server = tx
                .row(find, &[], |row, _| row.get::<Option<String>>("server"))
                .await?;
            Ok(match server.flatten().as_deref() {
                None => NonceLocation::Nowhere,
                Some(ELSEWHERE) => NonceLocation::Elsewhere,
                Some(_) => NonceLocation::Here,
            })
        })
        .await
    }

    /// Notes that nonces are kept in a window outside the store from now on; if the store's own window is used again,
    /// it treats them as lost.
    ///
    /// # Errors
    /// As [`Store::nonce_location`].
    pub async fn keep_nonces_elsewhere(&self) -> Result<()> {
        let note =
            "UPDATE countersign.nonce_state SET server = $1 WHERE server IS DISTINCT FROM $1";
        self.run("keep_nonces_elsewhere", WRITE, async |tx| {
            tx.execute(note, &[ELSEWHERE.into()]).await.map(drop)
        })
        .await
    }

    /// The time up to which a process that kept its nonces in a local window may have accepted requests; `None` if
    /// there was none yet.
    pub async fn local_nonces_until(&self) -> Result<Option<UnixTime>> {
        self.run("local_nonces_until", READ, async |tx| {
            high_water_mark(tx, LOCAL).await
        })
        .await
    }

    /// The latest version of the files of a local window that was noted; `None`: none was.
    pub async fn nonce_files(&self, id: &str) -> Result<Option<u64>> {
        let find = "SELECT version FROM countersign.nonce_files WHERE id = $1";
        self.run("nonce_files", READ, async |tx| {
            let params = [id.into()];
            let found = tx.row(find, &params, |row, _| row.get::<i64>("version"));
            Ok(found.await?.map(i64::unsigned_abs))
        })
        .await
    }

    /// Writes the high-water mark of [`Store::local_nonces_until`] and the version of the files of that window, if it has files.
    /// An earlier time never replaces a later one, nor an older version a newer one.
    pub async fn set_local_nonces_until(
        &self,
        until: UnixTime,
        files: Option<NonceFiles>,
    ) -> Result<()> {
        let raise = "INSERT INTO countersign.nonce_files (id, version) VALUES ($1, $2)
            ON CONFLICT (id) DO UPDATE SET version = excluded.version WHERE nonce_files.version < excluded.version";
        self.run("set_local_nonces_until", WRITE, async |tx| {
            raise_high_water_mark(tx, LOCAL, until).await?;
            if let Some(files) = &files {
                let version = i64::try_from(files.version).unwrap_or(i64::MAX);
                let params = [files.id.as_str().into(), version.into()];
                tx.execute(raise, &params).await?;
            }
            Ok(())
        })
        .await
    }

    /// The timestamp up to which another store, whose records were imported here, may have accepted requests; `None` if
    /// none was imported. Nonces up to it are unknown here.
    pub async fn imported_nonces_until(&self) -> Result<Option<UnixTime>> {
        self.run("imported_nonces_until", READ, async |tx| {
            high_water_mark(tx, IMPORTED).await
        })
        .await
    }

    /// Deletes request tokens and sessions that ended over a day before `now`, request tokens that ended undecided over ten
    /// minutes before, old change records, and audit records that are older than `keep_audit`.
    pub async fn purge(&self, now: UnixTime, keep_audit: Duration) -> Result<()> {
        let (ended, changed) = (now.before(KEEP_ENDED), now.before(KEEP_CHANGES));
        let undecided = now.before(KEEP_UNDECIDED);
        // The oldest changes first, so that the feed never has a hole that a reader takes for its end.
        let tables = [
            (
                "request_tokens",
                "token",
                "state = 'issued' AND expires_at",
                "expires_at",
                undecided,
            ),
            ("request_tokens", "token", "expires_at", "expires_at", ended),
            ("sessions", "id_hash", "expires_at", "expires_at", ended),
            ("changes", "id", "at", "id", changed),
            ("audit", "id", "at", "at", now.before(keep_audit)),
        ];
        let mut is_done = false;
        while !is_done {
            is_done = self.run("purge", (Isolation::Write, Deadline::Command), async |tx| {
                let mut is_done = true;
                for (table, key, time, order, before) in tables {
                    let skip_locked = tx.statements().skip_locked;
                    let delete = format!(
                        "DELETE FROM countersign.{table} WHERE {key} IN (SELECT {key} FROM countersign.{table}
                         WHERE {time} < $1 ORDER BY {order} LIMIT $2 {skip_locked})"
                    );
                    let params = [before.into(), PURGE_ROWS.into()];
                    is_done &= tx.execute(&delete, &params).await? < PURGE_ROWS.unsigned_abs();
                }
                Ok(is_done)
            })
            .await?;
        }
        Ok(())
    }
}

async fn high_water_mark(tx: &mut Tx, name: &str) -> Result<Option<UnixTime>> {
    let find = "SELECT until FROM countersign.high_water_marks WHERE name = $1";
    tx.row(find, &[name.into()], |row, _| row.get("until"))
        .await
}

/// Raises a high-water mark; an earlier time never replaces a later one.
pub(super) async fn raise_high_water_mark(tx: &mut Tx, name: &str, until: UnixTime) -> Result<()> {
    let raise = "INSERT INTO countersign.high_water_marks (name, until) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE high_water_marks.until < excluded.until";
    tx.execute(raise, &[name.into(), until.into()])
        .await
        .map(drop)
}
