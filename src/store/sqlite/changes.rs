//! The feed of changes, the mark of local nonces, and what is dropped when it is old.

use rusqlite::params;

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::{Change, Changes},
        rows::{self, seconds},
        rules::{KEEP_CHANGES, KEEP_ENDED, MOST_CHANGES},
    },
};

/// Rows that one transaction of [`Tx::purge`] deletes at most from each table, so that others get between.
const PURGE_ROWS: u16 = 5_000;

impl Tx<'_> {
    /// Tells every cache on the store that a record is another now.
    pub(super) fn changed(&self, change: &Change) -> Result<(), StoreError> {
        let (kind, key) = rows::change_columns(change);
        // Not the caller's clock but the system's: this time is only compared with those of other processes.
        self.run(
            "INSERT INTO changes (at, kind, key) VALUES (unixepoch(), ?1, ?2)",
            [kind, key],
        )?;
        Ok(())
    }

    pub(super) fn changes_since(&self, position: u64) -> Result<Changes, StoreError> {
        let head: i64 = self
            .first(
                "SELECT seq FROM sqlite_sequence WHERE name = 'changes'",
                [],
                |row| Ok(row.get(0)?),
            )?
            .ok_or(StoreError::Broken("the feed of changes is missing"))?;
        let now = Changes {
            position: head.unsigned_abs(),
            ..Changes::default()
        };
        let all_in_doubt = Changes {
            incomplete: true,
            ..now.clone()
        };
        if position == 0 || position == now.position {
            return Ok(now);
        }
        // A position from the future: the file was replaced by an older one.
        let Some(missed) = i64::try_from(position)
            .ok()
            .map(|position| head - position)
            .filter(|missed| *missed > 0)
        else {
            return Ok(all_in_doubt);
        };
        if missed > MOST_CHANGES {
            return Ok(all_in_doubt);
        }
        let changes = self.all(
            "SELECT kind, key FROM changes WHERE id > ?1 ORDER BY id",
            [head - missed],
            |row| rows::change(row),
        )?;
        // Ids have no gaps, so that missing rows are purged rows.
        if changes.len() as u64 != missed.unsigned_abs() {
            return Ok(all_in_doubt);
        }
        Ok(Changes { changes, ..now })
    }

    pub(super) fn local_nonces_until(&self) -> Result<Option<UnixTime>, StoreError> {
        self.first(
            "SELECT value FROM meta WHERE name = 'local_nonces_until'",
            [],
            |row| Ok(UnixTime(row.get::<_, i64>(0)?.unsigned_abs())),
        )
    }

    pub(super) fn set_local_nonces_until(&self, until: UnixTime) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO meta (name, value) VALUES ('local_nonces_until', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value > value",
            [seconds(until)],
        )?;
        Ok(())
    }

    /// Deletes some of what is old; `false`: there may be more.
    pub(super) fn purge(&self, now: UnixTime) -> Result<bool, StoreError> {
        let ended = seconds(now.before(KEEP_ENDED));
        let told = seconds(now.before(KEEP_CHANGES));
        let mut is_done = true;
        for (statement, before) in [
            (
                "DELETE FROM request_tokens WHERE rowid IN
                 (SELECT rowid FROM request_tokens WHERE expires_at < ?1 LIMIT ?2)",
                ended,
            ),
            (
                "DELETE FROM sessions WHERE id_hash IN
                 (SELECT id_hash FROM sessions WHERE expires_at < ?1 LIMIT ?2)",
                ended,
            ),
            (
                // The oldest first, so that the feed never has a hole.
                "DELETE FROM changes WHERE id IN
                 (SELECT id FROM changes WHERE at < ?1 ORDER BY id LIMIT ?2)",
                told,
            ),
        ] {
            is_done &= self.run(statement, params![before, PURGE_ROWS])? < usize::from(PURGE_ROWS);
        }
        Ok(is_done)
    }
}
