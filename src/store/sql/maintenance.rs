//! Upkeep: readiness, export and import, keys at rest, nonces, and what is dropped when it is old.

use async_trait::async_trait;

use super::{Engine, Mode, Pace, Tx, run, sealing, transfer};
use crate::{
    clock::UnixTime,
    nonce::{NonceUse, SharedWindow},
    store::{
        StoreError,
        port::{NoncesKept, ResealFrom, Resealed},
        rows::{needed, seconds, unix_time},
        rules::{KEEP_CHANGES, KEEP_ENDED},
        transfer::{Export, Import, ImportList},
    },
};

/// Rows that one transaction of [`Maintenance::purge`] deletes at most from each table, so that it is short.
const PURGE_ROWS: i64 = 5_000;
/// Where nonces are kept, if not in the store, in the place of the server that recorded them last.
const ELSEWHERE: &str = "elsewhere";
/// The mark of [`Maintenance::local_nonces_until`].
const LOCAL: &str = "local_nonces_until";
/// The mark of [`Maintenance::imported_nonces_until`].
pub(super) const IMPORTED: &str = "imported_nonces_until";

/// Upkeep of a store.
#[async_trait]
pub trait Maintenance: Engine {
    /// Whether the store answers; for readiness.
    async fn ping(&self) -> Result<(), StoreError> {
        run(self, "ping", Mode::Single, Pace::Request, async |tx| {
            tx.has_row("SELECT 1 FROM meta", &[]).await.map(drop)
        })
        .await
    }

    /// Settings of the engine by which what was acknowledged may be lost, one sentence each.
    async fn findings(&self) -> Result<Vec<String>, StoreError> {
        match &self.extensions().shared {
            None => Ok(Vec::new()),
            Some(shared) => {
                run(
                    self,
                    "findings",
                    Mode::Single,
                    Pace::Request,
                    shared.findings,
                )
                .await
            }
        }
    }

    /// The nonce window that all processes on this store share; `None`: the store is for one machine. It lives as long
    /// as the store.
    fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        let shared = self.extensions().shared.as_ref();
        shared.map(|shared| (shared.open_window)())
    }

    /// Whether a nonce is in [`Self::shared_window`]; `None`: the store has none.
    async fn nonce_used(&self, nonce: NonceUse<'_>) -> Result<Option<bool>, StoreError> {
        if self.extensions().shared.is_none() {
            return Ok(None);
        }
        let (second, digest) = (seconds(UnixTime(nonce.timestamp)), nonce.digest());
        let find = "SELECT 1 FROM nonces WHERE second = $1 AND digest = $2";
        run(
            self,
            "nonce_used",
            Mode::Single,
            Pace::Request,
            async |tx| {
                tx.has_row(find, &[&second, &digest.as_slice()])
                    .await
                    .map(Some)
            },
        )
        .await
    }

    /// Which window was noted last: what it kept is missing in another one.
    ///
    /// # Errors
    /// Also that the store has no window of its own.
    async fn nonces_kept(&self) -> Result<NoncesKept, StoreError> {
        run(
            self,
            "nonces_kept",
            Mode::Single,
            Pace::Request,
            async |tx| {
                let find = "SELECT server FROM nonce_state";
                let server = tx.row(find, &[], |row, _| row.text("server")).await?;
                Ok(match server.flatten().as_deref() {
                    None => NoncesKept::Nowhere,
                    Some(ELSEWHERE) => NoncesKept::Elsewhere,
                    Some(_) => NoncesKept::Here,
                })
            },
        )
        .await
    }

    /// Notes that nonces are kept in a window outside the store from now on; should the store's own be used again, it takes
    /// them for lost.
    ///
    /// # Errors
    /// As [`Maintenance::nonces_kept`].
    async fn keep_nonces_elsewhere(&self) -> Result<(), StoreError> {
        let note = "UPDATE nonce_state SET server = $1 WHERE server IS DISTINCT FROM $1";
        run(
            self,
            "keep_nonces_elsewhere",
            Mode::Shared,
            Pace::Request,
            async |tx| tx.execute(note, &[&ELSEWHERE]).await.map(drop),
        )
        .await
    }

    /// Up to which time a process that kept its nonces in a local window may have accepted requests;
    /// `None` if there was none yet.
    async fn local_nonces_until(&self) -> Result<Option<UnixTime>, StoreError> {
        run(
            self,
            "local_nonces_until",
            Mode::Single,
            Pace::Request,
            async |tx| mark(tx, LOCAL).await,
        )
        .await
    }

    /// Writes that mark; an earlier time never replaces a later one.
    async fn set_local_nonces_until(&self, until: UnixTime) -> Result<(), StoreError> {
        run(
            self,
            "set_local_nonces_until",
            Mode::Shared,
            Pace::Request,
            async |tx| raise_mark(tx, LOCAL, until).await,
        )
        .await
    }

    /// Up to which timestamp another store, whose records were imported here, may have accepted requests; `None` if none
    /// was imported. Nonces up to it are unknown here.
    async fn imported_nonces_until(&self) -> Result<Option<UnixTime>, StoreError> {
        run(
            self,
            "imported_nonces_until",
            Mode::Single,
            Pace::Request,
            async |tx| mark(tx, IMPORTED).await,
        )
        .await
    }

    /// Reads all that an export holds, as of one moment.
    async fn export(&self) -> Result<Export, StoreError> {
        run(
            self,
            "export",
            Mode::Snapshot,
            Pace::Transfer,
            transfer::export,
        )
        .await
    }

    /// Imports all of the records or none. The rules are documented at [`Import`].
    async fn import(&self, list: ImportList) -> Result<Import, StoreError> {
        run(self, "import", Mode::Alone, Pace::Transfer, async |tx| {
            transfer::import(tx, &list).await
        })
        .await
    }

    /// Seals secrets with the first key, in one short batch; none that changes meanwhile is put back. With `look` those are
    /// counted that are not sealed with the first key.
    async fn reseal(&self, from: ResealFrom, look: bool) -> Result<Resealed, StoreError> {
        // To look changes nothing, and holds up nobody.
        let mode = if look { Mode::Snapshot } else { Mode::Shared };
        let batch = run(self, "reseal", mode, Pace::Command, async |tx| {
            sealing::reseal(tx, &from, look).await
        });
        let resealed = batch.await?;
        if self.extensions().seal.has_met_clear() && !look && resealed.next.is_none() {
            run(self, "reseal", Mode::Bare, Pace::Transfer, async |tx| {
                tx.batch(tx.statements().wipe).await
            })
            .await?;
        }
        Ok(resealed)
    }

    /// Deletes request tokens and sessions that ended over a day before `now`, and old change records.
    async fn purge(&self, now: UnixTime) -> Result<(), StoreError> {
        let ended = seconds(now.before(KEEP_ENDED));
        let oldest_change = seconds(now.before(KEEP_CHANGES));
        let mut is_done = false;
        while !is_done {
            is_done = run(self, "purge", Mode::Shared, Pace::Command, async |tx| {
                let mut is_done = true;
                let before = [ended, ended, oldest_change];
                for (statement, before) in tx.statements().purge.into_iter().zip(before) {
                    let deleted = tx.execute(statement, &[&before, &PURGE_ROWS]).await?;
                    is_done &= deleted < PURGE_ROWS.unsigned_abs();
                }
                Ok(is_done)
            })
            .await?;
        }
        Ok(())
    }
}

impl<E: Engine + ?Sized> Maintenance for E {}

async fn mark(tx: &mut Tx, name: &str) -> Result<Option<UnixTime>, StoreError> {
    let find = tx.statements().mark;
    let until = tx.row(find, &[&name], |row, _| row.integer("mark")).await?;
    needed(until)?.map(unix_time).transpose()
}

/// Raises a mark; an earlier time never replaces a later one.
pub(super) async fn raise_mark(tx: &mut Tx, name: &str, until: UnixTime) -> Result<(), StoreError> {
    let raise = tx.statements().raise_mark;
    tx.execute(raise, &[&name, &seconds(until)]).await.map(drop)
}
