//! Secrets at rest: whether this process has their keys, and `rekey`.

use crate::records::{
    store::{
        engine::{Deadline, Isolation},
        sql::{Store, tx::Tx},
    },
    values::{
        Result, StoreError,
        seal::{Mismatch, field},
        use_cases::{ResealFrom, Resealed},
        value::needed,
    },
};

/// Every column that holds secrets: the name of the field, the table, its key and the column. Secrets are named by the key
/// of their record.
const COLUMNS: [(&str, &str, &str, &str); 6] = [
    (field::CONSUMER, "consumers", "key", "secret"),
    (
        field::CONSUMER_PREVIOUS,
        "consumers",
        "key",
        "previous_secret",
    ),
    (field::USER, "users", "id", "password_hash"),
    (field::ACCESS_TOKEN, "access_tokens", "token", "secret"),
    (field::REQUEST_TOKEN, "request_tokens", "token", "secret"),
    (field::VERIFIER, "request_tokens", "token", "verifier"),
];

/// The records among which an open looks for a secret of each kind: few may have one, such as a previous secret, and an
/// open does not read all others.
const LOOKED_AT: usize = 1_000;

impl Store {
    /// Seals secrets with the first key, in one short batch. A secret that changes meanwhile is not overwritten by its older
    /// value. With `count_only`, secrets that are sealed with another key are only counted.
    pub async fn reseal(&self, from: ResealFrom, count_only: bool) -> Result<Resealed> {
        // Counting changes nothing and blocks no other transaction.
        let isolation = if count_only {
            Isolation::Snapshot
        } else {
            Isolation::Write
        };
        let batch = self.run("reseal", (isolation, Deadline::Command), async |tx| {
            reseal(tx, &from, count_only).await
        });
        let resealed = batch.await?;
        if self.seal.has_met_clear() && !count_only && resealed.next.is_none() {
            self.run(
                "reseal",
                (Isolation::NoTransaction, Deadline::Transfer),
                async |tx| tx.batch(tx.statements().wipe).await,
            )
            .await?;
        }
        Ok(resealed)
    }
}

/// Looks at one secret of each kind: a wrong `store.encryption_key_file` is reported at the start, if possible.
pub(crate) async fn mismatch(tx: &mut Tx) -> Result<Option<Mismatch>> {
    for (_, table, _, column) in COLUMNS {
        let any = format!(
            "SELECT stored FROM (SELECT {column} AS stored FROM countersign.{table} LIMIT {LOOKED_AT}) AS looked_at
             WHERE stored IS NOT NULL LIMIT 1"
        );
        let stored = tx
            .row(&any, &[], |row, _| needed(row.bytes("stored")?))
            .await?;
        if let Some(mismatch) = stored.and_then(|stored| tx.seal().mismatch(&stored)) {
            return Ok(Some(mismatch));
        }
    }
    Ok(None)
}

/// Encrypts a batch of secrets with the first key; with `count_only` only counts them. A secret that changes meanwhile keeps
/// its new value.
pub(crate) async fn reseal(tx: &mut Tx, from: &ResealFrom, count_only: bool) -> Result<Resealed> {
    let Some((field, table, key, column)) = COLUMNS.get(from.column) else {
        return Ok(Resealed::default());
    };
    let batch = format!(
        "SELECT {key} AS record, {column} AS stored FROM countersign.{table}
         WHERE {key} > $1 AND {column} IS NOT NULL ORDER BY {key} LIMIT 500"
    );
    let update =
        format!("UPDATE countersign.{table} SET {column} = $3 WHERE {key} = $1 AND {column} = $2");
    let batch = tx
        .rows(&batch, &[from.after.as_str().into()], |row, _| {
            Ok((row.get::<String>("record")?, needed(row.bytes("stored")?)?))
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
    for (record, stored) in batch {
        resealed.seen += 1;
        if tx.seal().is_by_first(&stored) {
            continue;
        }
        resealed.older += 1;
        match tx.seal().open(field, &record, &stored) {
            Ok(secret) if !count_only => {
                let sealed = tx.seal().close(field, &record, &secret)?;
                tx.execute(&update, &[record.into(), stored.into(), sealed.into()])
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
