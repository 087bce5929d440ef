//! The feed of changes.

use super::{SNAPSHOT, Store, WRITE, tx::MOST_CHANGES};
use crate::records::{
    store::sql::tx::rows,
    values::{
        Result,
        use_cases::{Change, Changes},
        value::needed,
    },
};

impl Store {
    /// Lists the changes of this and every other process since `position`; 0 lists none and returns the current position.
    pub async fn changes_since(&self, position: u64) -> Result<Changes> {
        self.run("changes_since", SNAPSHOT, async |tx| {
            let head = tx.row(tx.statements().feed, &[], |row, _| {
                row.get::<i64>("position")
            });
            let head = needed(head.await?)?;
            let now = Changes {
                position: head.unsigned_abs(),
                ..Changes::default()
            };
            if position == 0 || position == now.position {
                return Ok(now);
            }
            // A position from the future: the store was replaced by an older one.
            let missed = i64::try_from(position).map_or(-1, |position| head - position);
            let changes = match (1..=MOST_CHANGES).contains(&missed) {
                true => {
                    let find =
                        "SELECT kind, key FROM countersign.changes WHERE id > $1 ORDER BY id";
                    tx.rows(find, &[(head - missed).into()], rows::change)
                        .await?
                }
                false => Vec::new(),
            };
            // Ids have no gaps, so that missing rows are purged rows.
            let incomplete = i64::try_from(changes.len()) != Ok(missed);
            Ok(match incomplete {
                true => Changes { incomplete, ..now },
                false => Changes { changes, ..now },
            })
        })
        .await
    }

    /// Waits until the engine reports that a process may have changed something since the last call; never completes if
    /// the engine reports nothing. A report may be lost: [`Self::changes_since`] is authoritative.
    pub async fn notified(&self) {
        self.engine.notified().await;
    }

    /// Reports a failed login to every process that follows the feed, this one too. A store for one machine, where one
    /// process serves, keeps nothing.
    pub async fn record_failed_login(&self, report: String) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        self.report("record_failed_login", Change::FailedLogin(report))
            .await
    }

    /// Reports to every process that follows the feed that an operator has ended the pauses of an account.
    pub async fn record_end_of_login_pauses(&self, report: String) -> Result<()> {
        self.report("record_end_of_login_pauses", Change::FailedLogin(report))
            .await
    }

    /// Reports to every process that follows the feed that the application has changed a record.
    pub async fn report_external_change(&self, change: Change) -> Result<()> {
        self.report("report_external_change", change).await
    }

    async fn report(&self, operation: &'static str, change: Change) -> Result<()> {
        self.run(operation, WRITE, async |tx| {
            tx.changed(change);
            Ok(())
        })
        .await
    }
}
