//! Upkeep: readiness and nonces.

pub(crate) mod migrate;
pub(crate) mod purge;

use super::{READ, Store, WRITE, tx::Tx};
use crate::{
    base::clock::UnixTime,
    records::{
        nonce::{NonceFiles, NonceUse, SharedWindow},
        values::{Result, seal::Seal, use_cases::NonceLocation, value::Row},
    },
};

/// Written instead of the server that recorded nonces last, if nonces are kept outside the store.
const ELSEWHERE: &str = "elsewhere ";
/// The mark of [`Store::local_nonces_until`], and its use case.
const LOCAL: &str = "local_nonces_until";
/// The mark of [`Store::imported_nonces_until`], and its use case.
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
        self.rows("findings", READ, find, &[], |row, _| row.get("finding"))
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
        let find = "SELECT server FROM countersign.nonce_state";
        let read = |row: &Row, _: &Seal| row.get::<Option<String>>("server");
        let server = self.row("nonce_location", READ, find, &[], read).await?;
        Ok(match server.flatten() {
            None => NonceLocation::Nowhere,
            Some(server) => match server.strip_prefix(ELSEWHERE) {
                Some(id) => NonceLocation::Elsewhere(id.to_owned()),
                None => NonceLocation::Here,
            },
        })
    }

    /// Notes that nonces are kept in the window with this id outside the store from now on; if the store's own window is used
    /// again, it treats them as lost.
    ///
    /// # Errors
    /// As [`Store::nonce_location`].
    pub async fn keep_nonces_elsewhere(&self, id: &str) -> Result<()> {
        let note =
            "UPDATE countersign.nonce_state SET server = $1 WHERE server IS DISTINCT FROM $1";
        self.run("keep_nonces_elsewhere", WRITE, async |tx| {
            let server = [ELSEWHERE, id].concat();
            tx.execute(note, &[server.into()]).await.map(drop)
        })
        .await
    }

    /// The time up to which a process that kept its nonces in a local window may have accepted requests; `None` if
    /// there was none yet.
    pub async fn local_nonces_until(&self) -> Result<Option<UnixTime>> {
        self.high_water_mark(LOCAL).await
    }

    /// The latest version of the files of a local window that was noted; `None`: none was.
    pub async fn nonce_files(&self, id: &str) -> Result<Option<u64>> {
        let find = "SELECT version FROM countersign.nonce_files WHERE id = $1";
        let read = |row: &Row, _: &Seal| row.get("version").map(i64::unsigned_abs);
        self.row("nonce_files", READ, find, &[id.into()], read)
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
        self.high_water_mark(IMPORTED).await
    }

    async fn high_water_mark(&self, name: &'static str) -> Result<Option<UnixTime>> {
        let find = "SELECT until FROM countersign.high_water_marks WHERE name = $1";
        let read = |row: &Row, _: &Seal| row.get("until");
        self.row(name, READ, find, &[name.into()], read).await
    }
}

/// Raises a high-water mark; an earlier time never replaces a later one.
pub(super) async fn raise_high_water_mark(tx: &mut Tx, name: &str, until: UnixTime) -> Result<()> {
    let raise = "INSERT INTO countersign.high_water_marks (name, until) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE high_water_marks.until < excluded.until";
    tx.execute(raise, &[name.into(), until.into()])
        .await
        .map(drop)
}
