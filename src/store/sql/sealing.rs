//! Secrets at rest: whether this process has their keys, and `rekey`.

use super::Tx;
use crate::store::{
    StoreError,
    port::{ResealFrom, Resealed},
    rows::needed,
    seal::{Mismatch, field},
};

/// A column that holds secrets. Secrets are named by the key of their record.
pub(in crate::store) struct Column {
    field: &'static str,
    any: &'static str,
    batch: &'static str,
    update: &'static str,
}

macro_rules! column {
    ($field:expr, $table:literal, $key:literal, $name:literal) => {
        Column {
            field: $field,
            any: concat!(
                "SELECT ",
                $name,
                " AS kept FROM ",
                $table,
                " WHERE ",
                $name,
                " IS NOT NULL LIMIT 1"
            ),
            batch: concat!(
                "SELECT ",
                $key,
                " AS record, ",
                $name,
                " AS kept FROM ",
                $table,
                " WHERE ",
                $key,
                " > $1 AND ",
                $name,
                " IS NOT NULL ORDER BY ",
                $key,
                " LIMIT 500"
            ),
            update: concat!(
                "UPDATE ",
                $table,
                " SET ",
                $name,
                " = $3 WHERE ",
                $key,
                " = $1 AND ",
                $name,
                " = $2"
            ),
        }
    };
}

/// Every column that holds secrets.
pub(in crate::store) const COLUMNS: [Column; 6] = [
    column!(field::CONSUMER, "consumers", "key", "secret"),
    column!(
        field::CONSUMER_PREVIOUS,
        "consumers",
        "key",
        "previous_secret"
    ),
    column!(field::USER, "users", "id", "password_hash"),
    column!(field::ACCESS_TOKEN, "access_tokens", "token", "secret"),
    column!(field::REQUEST_TOKEN, "request_tokens", "token", "secret"),
    column!(field::VERIFIER, "request_tokens", "token", "verifier"),
];

/// Looks at one secret of each kind: a wrong `store.encryption_key_file` is told at the start, if it can be.
pub(in crate::store) async fn mismatch(tx: &mut impl Tx) -> Result<Option<Mismatch>, StoreError> {
    for column in &COLUMNS {
        let kept = tx.row(column.any, &[], |row, _| needed(row.bytes("kept")?));
        let kept = kept.await?;
        if let Some(mismatch) = kept.and_then(|kept| tx.seal().mismatch(&kept)) {
            return Ok(Some(mismatch));
        }
    }
    Ok(None)
}

/// Encrypts a batch of secrets with the first key; with `look` only counts them. A secret that changes meanwhile is left as
/// it is then.
pub(super) async fn reseal(
    tx: &mut impl Tx,
    from: &ResealFrom,
    look: bool,
) -> Result<Resealed, StoreError> {
    let Some(column) = COLUMNS.get(from.column) else {
        return Ok(Resealed::default());
    };
    let batch = tx
        .rows(column.batch, &[&from.after], |row, _| {
            Ok((needed(row.text("record")?)?, needed(row.bytes("kept")?)?))
        })
        .await?;
    let next = match batch.last() {
        Some((last, _)) => (from.column, last.clone()),
        None => (from.column + 1, String::new()),
    };
    let mut resealed = Resealed {
        next: (next.0 < COLUMNS.len()).then_some(ResealFrom {
            column: next.0,
            after: next.1,
        }),
        ..Resealed::default()
    };
    for (record, kept) in batch {
        resealed.seen += 1;
        if tx.seal().is_by_first(&kept) {
            continue;
        }
        resealed.older += 1;
        match tx.seal().open(column.field, &record, &kept) {
            Ok(secret) if !look => {
                let sealed = tx.seal().close(column.field, &record, &secret)?;
                tx.execute(column.update, &[&record, &kept, &sealed])
                    .await?;
            }
            Ok(_) => {}
            Err(StoreError::Unopened(error)) => {
                let count = resealed.unopened.take().map_or(0, |(count, _)| count);
                resealed.unopened = Some((count + 1, error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(resealed)
}
