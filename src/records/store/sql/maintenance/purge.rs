//! The removal of what has ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    base::clock::UnixTime,
    records::{
        store::{
            engine::{Deadline, Isolation},
            sql::{
                Store,
                tx::{Tx, rows},
            },
        },
        values::{Result, use_cases::Ended, value::json},
    },
};

/// The time for which a change is reported to caches.
const KEEP_CHANGES: Duration = Duration::from_secs(3600);
/// The time for which request tokens and sessions are kept past their end, so that a late caller learns their state.
const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// The time for which a request token is kept past its end if the user has not decided about it: any consumer can ask for many.
const KEEP_UNDECIDED: Duration = Duration::from_secs(600);

/// The rows that the first transaction removes; the time that it takes decides how many the next one does.
const FIRST_ROWS: u32 = 100;
/// The most rows of a transaction.
const MOST_ROWS: u32 = 5_000;
/// The fewest rows of a transaction: with fewer it is the flush of the disk that takes the time, and the removal never ends.
const LEAST_ROWS: u32 = 25;
/// The time that a transaction should take from its first statement to the end of its commit: others wait for its locks, and
/// none should wait for 50 ms.
const TRANSACTION_TIME: Duration = Duration::from_millis(20);

/// The condition and the order of rows that ended before a time.
const ENDED: &str = "expires_at < $1 ORDER BY expires_at";

impl Store {
    /// Deletes request tokens that ended undecided over ten minutes before `now`, the links of developers that ended before it,
    /// old change records, and audit records that are older than `keep_audit`.
    pub async fn purge(&self, now: UnixTime, keep_audit: Duration) -> Result<()> {
        let undecided = now.before(KEEP_UNDECIDED);
        // The oldest changes first, so that the feed never has a hole that a reader takes for its end.
        let issued = format!("state = 'issued' AND {ENDED}");
        for (table, key, those, before) in [
            ("request_tokens", "token", &*issued, undecided),
            ("developer_links", "consumer", ENDED, now),
            (
                "changes",
                "id",
                "at < $1 ORDER BY id",
                now.before(KEEP_CHANGES),
            ),
            ("audit", "id", "at < $1 ORDER BY at", now.before(keep_audit)),
        ] {
            self.delete(table, key, those, before, &mut 0).await?;
        }
        Ok(())
    }

    /// Removes access tokens that expired or were revoked over `keep_tokens` before `now`, and request tokens and sessions that
    /// ended over a day before, or `keep_tokens` if that is shorter. Adds the numbers to `ended`, also those before an error.
    ///
    /// An access token that another copy of its record would make usable again leaves the mark of a removed one: one that
    /// was revoked before it expired, and one that another system may still have. Several processes may do this at once;
    /// each counts what it removed.
    pub async fn remove_ended(
        &self,
        now: UnixTime,
        keep_tokens: Duration,
        ended: &mut Ended,
    ) -> Result<()> {
        let before = now.before(keep_tokens);
        for column in ["expires_at", "revoked_at"] {
            let remove =
                async |tx: &mut Tx, most| remove_tokens(tx, column, now, before, most).await;
            self.in_batches(remove, &mut ended.access_tokens).await?;
        }
        let before = now.before(keep_tokens.min(KEEP_ENDED));
        let request_tokens = &mut ended.request_tokens;
        self.delete("request_tokens", "token", ENDED, before, request_tokens)
            .await?;
        self.delete("sessions", "id_hash", ENDED, before, &mut ended.sessions)
            .await
    }

    /// Deletes `those` rows of a table, a condition with a time and an order, and adds their number to `count`.
    async fn delete(
        &self,
        table: &str,
        key: &str,
        those: &str,
        before: UnixTime,
        count: &mut u64,
    ) -> Result<()> {
        let delete = async |tx: &mut Tx, most: u32| {
            let skip_locked = tx.statements().skip_locked;
            let delete = format!(
                "DELETE FROM countersign.{table} WHERE {key} IN (SELECT {key} FROM countersign.{table}
                 WHERE {those} LIMIT $2 {skip_locked})"
            );
            tx.execute(&delete, &[before.into(), i64::from(most).into()])
                .await
        };
        self.in_batches(delete, count).await
    }

    /// Repeats `remove`, which removes at most as many rows as it is told, until there are fewer; adds their number to
    /// `count`. Each time is a short transaction, and others have as much time before the next one.
    async fn in_batches(
        &self,
        remove: impl AsyncFn(&mut Tx, u32) -> Result<u64>,
        count: &mut u64,
    ) -> Result<()> {
        let mut most = FIRST_ROWS;
        loop {
            let (mut begun, mut statements) = (Instant::now(), Duration::ZERO);
            let limits = (Isolation::Write, Deadline::Command);
            let removed = self.run("purge", limits, async |tx| {
                // Until now it has waited for others.
                begun = Instant::now();
                let removed = remove(tx, most).await;
                statements = begun.elapsed();
                removed
            });
            let removed = removed.await?;
            let took = begun.elapsed();
            tracing::debug!(rows = removed, ?statements, ?took, "removed a batch");
            *count += removed;
            if removed < u64::from(most) {
                return Ok(());
            }
            most = next_rows(most, took);
            sleep(took).await;
        }
    }
}

/// The rows of the next transaction, if one of `rows` took this long: at most twice as many.
fn next_rows(rows: u32, took: Duration) -> u32 {
    let fitting = TRANSACTION_TIME.as_micros() * u128::from(rows) / took.as_micros().max(1);
    let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
    fitting.clamp(
        LEAST_ROWS,
        rows.saturating_mul(2).clamp(LEAST_ROWS, MOST_ROWS),
    )
}

/// Removes at most `most` access tokens whose `column` is before a time; returns how many.
async fn remove_tokens(
    tx: &mut Tx,
    column: &str,
    now: UnixTime,
    before: UnixTime,
    most: u32,
) -> Result<u64> {
    let (among, skip_locked) = (tx.statements().among, tx.statements().skip_locked);
    let find = format!(
        "SELECT token FROM countersign.access_tokens WHERE {column} < $1 ORDER BY {column} LIMIT $2 {skip_locked}"
    );
    let params = [before.into(), i64::from(most).into()];
    let tokens = tx.rows(&find, &params, rows::token).await?;
    if tokens.is_empty() {
        return Ok(0);
    }
    let tokens = json(&tokens)?;
    let mark = format!(
        "INSERT INTO countersign.removed (kind, key) SELECT 'token', token FROM countersign.access_tokens
         WHERE token {among} AND (began = 'imported' OR revoked_at IS NOT NULL AND (expires_at IS NULL OR expires_at > $2))
         ON CONFLICT DO NOTHING"
    );
    tx.execute(&mark, &[tokens.clone().into(), now.into()])
        .await?;
    let delete = format!("DELETE FROM countersign.access_tokens WHERE token {among}");
    tx.execute(&delete, &[tokens.into()]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_took_long_is_followed_by_a_smaller_one() {
        for (rows, milliseconds, next) in [
            (250, 1, 500),
            (4_000, 1, MOST_ROWS),
            (1_000, 40, 500),
            (1_000, 20, 1_000),
            (2_000, 500, 80),
            (100, 25, 80),
            (100, 15, 133),
            (250, 60_000, LEAST_ROWS),
            (25, 60, LEAST_ROWS),
            (25, 1, 50),
            (250, 0, 500),
        ] {
            let took = Duration::from_millis(milliseconds);
            assert_eq!(next_rows(rows, took), next, "{rows} in {milliseconds} ms");
        }
    }
}
