//! The feed of changes, the mark of local nonces, and what is dropped when it is old.

use super::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Changes,
        rows::{self, needed, seconds, unix_time},
        rules::{KEEP_CHANGES, KEEP_ENDED, MOST_CHANGES},
    },
};

/// Rows that one transaction of [`purge`] deletes at most from each table, so that it is short.
const PURGE_ROWS: i64 = 5_000;

pub(super) async fn changes_since<T: Tx>(tx: &mut T, position: u64) -> Result<Changes, StoreError> {
    let read_position = |row: &dyn rows::Columns, _: &_| needed(row.integer("position")?);
    let head = tx.row(T::STATEMENTS.feed, &[], read_position).await?;
    let head = head.ok_or(StoreError::Broken("the feed of changes is missing"))?;
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
    // A position from the future: the store was replaced by an older one.
    let Some(missed) = i64::try_from(position)
        .ok()
        .map(|position| head - position)
        .filter(|missed| (1..=MOST_CHANGES).contains(missed))
    else {
        return Ok(all_in_doubt);
    };
    let changes = tx
        .rows(
            "SELECT kind, key FROM changes WHERE id > $1 ORDER BY id",
            &[&(head - missed)],
            |row, _| rows::change(row),
        )
        .await?;
    // Ids have no gaps, so that missing rows are purged rows.
    if changes.len() as u64 != missed.unsigned_abs() {
        return Ok(all_in_doubt);
    }
    Ok(Changes { changes, ..now })
}

pub(super) async fn local_nonces_until<T: Tx>(tx: &mut T) -> Result<Option<UnixTime>, StoreError> {
    let find = T::STATEMENTS.local_nonces_until;
    let until = tx
        .row(find, &[], |row, _| row.integer("local_nonces_until"))
        .await?;
    needed(until)?.map(unix_time).transpose()
}

pub(super) async fn set_local_nonces_until<T: Tx>(
    tx: &mut T,
    until: UnixTime,
) -> Result<(), StoreError> {
    let raise = T::STATEMENTS.raise_local_nonces_until;
    tx.execute(raise, &[&seconds(until)]).await.map(drop)
}

pub(super) async fn imported_nonces_until<T: Tx>(
    tx: &mut T,
) -> Result<Option<UnixTime>, StoreError> {
    let find = T::STATEMENTS.imported_nonces_until;
    let until = tx
        .row(find, &[], |row, _| row.integer("imported_nonces_until"))
        .await?;
    needed(until)?.map(unix_time).transpose()
}

/// Deletes some of what is old; `false`: there may be more.
pub(super) async fn purge<T: Tx>(tx: &mut T, now: UnixTime) -> Result<bool, StoreError> {
    let ended = seconds(now.before(KEEP_ENDED));
    let oldest_change = seconds(now.before(KEEP_CHANGES));
    let mut is_done = true;
    for (statement, before) in T::STATEMENTS
        .purge
        .into_iter()
        .zip([ended, ended, oldest_change])
    {
        let deleted = tx.execute(statement, &[&before, &PURGE_ROWS]).await?;
        is_done &= deleted < PURGE_ROWS.unsigned_abs();
    }
    Ok(is_done)
}
