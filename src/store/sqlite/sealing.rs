//! Whether the secrets of a file are sealed, proved by one sealed word in it, and how a plain file becomes sealed.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::{schema, tx::SqliteTx};
use crate::store::{
    StoreError,
    port::{ResealFrom, Resealed},
    seal::{self, COLUMNS, Column, Mismatch, Seal, SealKey, Settled},
};

/// Reads the word by which the file recognises its key, if its secrets are sealed.
fn word(sql: &Connection) -> rusqlite::Result<Option<Vec<u8>>> {
    sql.prepare_cached("SELECT value FROM meta WHERE name = 'sealed'")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Whether an open store may write: another process may have migrated the file meanwhile, or sealed it with a key that is
/// not ours.
pub(super) fn is_ours(tx: &SqliteTx) -> Result<bool, StoreError> {
    Ok(schema::version(&tx.sql)? == schema::VERSION && tx.seal.follows(word(&tx.sql)?.as_deref()))
}

/// Finds how the secrets of the file are kept, and seals those of a plain file when there is a key, in the transaction
/// that is open; unless `begins`, only a file without any. `true`: it has just sealed some.
pub(super) fn settle(tx: &mut SqliteTx, keys: &[SealKey], begins: bool) -> Result<bool, Mismatch> {
    let (seal, new_word, is_plain) = match seal::settle(word(&tx.sql)?.as_deref(), keys)? {
        Settled::Older(seal, new_word) if begins => (seal, new_word, false),
        Settled::With(seal) | Settled::Older(seal, _) => {
            tx.seal = Arc::new(seal);
            return Ok(false);
        }
        Settled::Unsealed(..) if !begins && has_secrets(tx)? => return Ok(false),
        Settled::Unsealed(seal, new_word) => (seal, new_word, true),
    };
    tx.seal = Arc::new(seal);
    let mut any = false;
    for column in COLUMNS.iter().filter(|_| is_plain) {
        any |= seal_column(tx, column)?;
    }
    tx.run(
        "INSERT INTO meta (name, value) VALUES ('sealed', ?1)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [&new_word],
    )?;
    tx.seal.follows(Some(&new_word));
    Ok(any)
}

fn has_secrets(tx: &SqliteTx) -> Result<bool, StoreError> {
    for Column { table, name, .. } in &COLUMNS {
        let any = format!("SELECT 1 FROM {table} WHERE {name} IS NOT NULL");
        if tx.exists(&any, [])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rows that are read before they are written anew.
const BATCH: usize = 1_000;

/// A secret as it is kept: the row, the record's key, and what is kept.
type Kept = (i64, String, Vec<u8>);

fn batch(tx: &SqliteTx, column: &Column, after: i64) -> Result<Vec<Kept>, StoreError> {
    let Column {
        table, key, name, ..
    } = column;
    let select = format!(
        "SELECT rowid, {key}, {name} FROM {table}
         WHERE rowid > ?1 AND {name} IS NOT NULL ORDER BY rowid LIMIT {BATCH}"
    );
    tx.all(&select, [after], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

fn put(tx: &SqliteTx, column: &Column, row: i64, kept: &[u8]) -> Result<(), StoreError> {
    let Column { table, name, .. } = column;
    let update = format!("UPDATE {table} SET {name} = ?2 WHERE rowid = ?1");
    tx.run(&update, params![row, kept]).map(drop)
}

fn seal_column(tx: &SqliteTx, column: &Column) -> Result<bool, StoreError> {
    let plain = Seal::plain();
    let mut last: i64 = 0;
    loop {
        let rows = batch(tx, column, last)?;
        for (row, record, kept) in &rows {
            let secret = plain.open(column.field, record, kept)?;
            put(
                tx,
                column,
                *row,
                &tx.seal.close(column.field, record, &secret)?,
            )?;
            last = *row;
        }
        if rows.len() < BATCH {
            return Ok(last > 0);
        }
    }
}

/// A batch of [`Store::reseal`](crate::store::Store::reseal).
pub(super) fn reseal(tx: &SqliteTx, from: &ResealFrom, look: bool) -> Result<Resealed, StoreError> {
    let mut resealed = Resealed::default();
    let column = &COLUMNS[from.column];
    let rows = batch(tx, column, from.after.parse().unwrap_or(0))?;
    for (row, record, kept) in &rows {
        if let Some(new) = resealed.count(&tx.seal, column.field, record, kept, look)? {
            put(tx, column, *row, &new)?;
        }
    }
    resealed.next = match rows.last() {
        Some((row, ..)) => Some(ResealFrom {
            column: from.column,
            after: row.to_string(),
        }),
        None => ResealFrom::behind(from.column),
    };
    Ok(resealed)
}
