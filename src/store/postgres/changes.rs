//! The feed of changes, the mark of local nonces, readiness, and what is dropped when it is old.

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Changes,
        rows::{self, Columns, needed, seconds, unix_time},
        rules::{KEEP_CHANGES, KEEP_ENDED, MOST_CHANGES},
    },
};

/// Rows that one transaction of [`Tx::purge`] deletes at most from each table, so that it is short.
const PURGE_ROWS: i64 = 5_000;

impl Tx {
    pub(super) async fn ping(&mut self) -> Result<(), StoreError> {
        self.exists("SELECT 1 FROM meta", &[]).await.map(drop)
    }

    /// Settings of the server that lose what was acknowledged.
    pub(super) async fn findings(&mut self) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        for row in self
            .all(
                "SELECT name, setting AS value FROM pg_settings
                 WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') ORDER BY name",
                &[],
            )
            .await?
        {
            let (name, value) = (row.text("name")?, row.text("value")?);
            let loses = match (name.as_deref(), value.as_deref()) {
                (Some("synchronous_commit"), Some("off")) => {
                    "the server acknowledges before it has written, so its crash revives a used token or a revoked one"
                }
                (Some("fsync"), Some("off")) => "a power loss can destroy the whole database",
                (Some("full_page_writes"), Some("off")) => {
                    "a power loss can damage pages of the database"
                }
                _ => continue,
            };
            let name = name.unwrap_or_default();
            findings.push(format!("{name} is off: {loses}; set {name} = on"));
        }
        // A write can only reach the primary; this is true while a failover is under way.
        if self
            .exists("SELECT 1 WHERE pg_is_in_recovery()", &[])
            .await?
        {
            findings.push(
                "the server is a standby, which takes no writes; name the primary, or all hosts"
                    .to_owned(),
            );
        }
        Ok(findings)
    }

    pub(super) async fn changes_since(&mut self, position: u64) -> Result<Changes, StoreError> {
        let feed = self.first("SELECT position FROM feed", &[]).await?;
        let head = needed(needed(feed)?.integer("position")?)?;
        let now = Changes {
            position: head.unsigned_abs(),
            ..Changes::default()
        };
        if position == 0 || position == now.position {
            return Ok(now);
        }
        let all_in_doubt = Changes {
            incomplete: true,
            ..now.clone()
        };
        // A position from the future: the database was replaced by an older one.
        let Some(missed) = i64::try_from(position)
            .ok()
            .map(|position| head - position)
            .filter(|missed| (1..=MOST_CHANGES).contains(missed))
        else {
            return Ok(all_in_doubt);
        };
        let told = self
            .all(
                "SELECT kind, key FROM changes WHERE id > $1 ORDER BY id",
                &[&(head - missed)],
            )
            .await?;
        // Ids have no gaps, so that missing rows are purged rows.
        if told.len() as u64 != missed.unsigned_abs() {
            return Ok(all_in_doubt);
        }
        let changes = told.iter().map(rows::change).collect::<Result<_, _>>()?;
        Ok(Changes { changes, ..now })
    }

    pub(super) async fn local_nonces_until(&mut self) -> Result<Option<UnixTime>, StoreError> {
        let row = self
            .first("SELECT local_nonces_until FROM meta", &[])
            .await?;
        let until = needed(row)?.integer("local_nonces_until")?;
        until.map(unix_time).transpose()
    }

    pub(super) async fn set_local_nonces_until(
        &mut self,
        until: UnixTime,
    ) -> Result<(), StoreError> {
        self.run(
            "UPDATE meta SET local_nonces_until = $1
             WHERE local_nonces_until IS NULL OR local_nonces_until < $1",
            &[&seconds(until)],
        )
        .await?;
        Ok(())
    }

    /// Deletes some of what is old; `false`: there may be more.
    pub(super) async fn purge(&mut self, now: UnixTime) -> Result<bool, StoreError> {
        let ended = seconds(now.before(KEEP_ENDED));
        let told = seconds(now.before(KEEP_CHANGES));
        let mut is_done = true;
        for (statement, before) in [
            (
                "DELETE FROM request_tokens WHERE token IN
                 (SELECT token FROM request_tokens WHERE expires_at < $1 LIMIT $2
                  FOR UPDATE SKIP LOCKED)",
                ended,
            ),
            (
                "DELETE FROM sessions WHERE id_hash IN
                 (SELECT id_hash FROM sessions WHERE expires_at < $1 LIMIT $2
                  FOR UPDATE SKIP LOCKED)",
                ended,
            ),
            (
                // The oldest first, so that the feed never has a hole that a reader takes for an end.
                "DELETE FROM changes WHERE id IN
                 (SELECT id FROM changes WHERE at < $1 ORDER BY id LIMIT $2
                  FOR UPDATE SKIP LOCKED)",
                told,
            ),
        ] {
            let deleted = self.run(statement, &[&before, &PURGE_ROWS]).await?;
            is_done &= deleted < PURGE_ROWS.unsigned_abs();
        }
        Ok(is_done)
    }
}
