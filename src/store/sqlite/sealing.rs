//! Whether the secrets of a file are sealed, proved by one sealed word in it, and how a plain file becomes sealed.

use rusqlite::{Connection, OptionalExtension, params};

use super::{schema, tx::Tx};
use crate::store::{
    StoreError,
    seal::{self, COLUMNS, Column, Mismatch, Seal, SealKey, Settled},
};

/// The state of a file that an open store relies on. Another process may migrate or seal the file meanwhile; whoever
/// finds another stamp must not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    version: i64,
    sealed: Option<Vec<u8>>,
}

/// Reads the stamp.
pub(super) fn stamp(sql: &Connection) -> rusqlite::Result<Stamp> {
    let version = schema::version(sql)?;
    let sealed = sql
        .prepare_cached("SELECT value FROM meta WHERE name = 'sealed'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(Stamp { version, sealed })
}

/// Finds how the secrets of the file are kept, and seals those of a plain file when there is a key, in the transaction
/// that is open; unless `seals_plain`, only a file without any. `true`: it has just sealed some.
pub(super) fn settle(
    sql: &Connection,
    key: Option<&SealKey>,
    seals_plain: bool,
) -> Result<(Seal, bool), Mismatch> {
    let (seal, word) = match seal::settle(stamp(sql)?.sealed.as_deref(), key)? {
        Settled::With(seal) => return Ok((seal, false)),
        Settled::Unsealed(seal, word) => (seal, word),
    };
    let tx = Tx { sql, seal: &seal };
    if !seals_plain && has_secrets(&tx)? {
        return Ok((Seal::plain(), false));
    }
    let mut any = false;
    for column in &COLUMNS {
        any |= seal_column(&tx, column)?;
    }
    tx.run(
        "INSERT INTO meta (name, value) VALUES ('sealed', ?1)",
        [word],
    )?;
    Ok((seal, any))
}

fn has_secrets(tx: &Tx<'_>) -> Result<bool, StoreError> {
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

fn seal_column(tx: &Tx<'_>, column: &Column) -> Result<bool, StoreError> {
    let Column {
        table,
        key,
        name,
        field,
    } = column;
    let select = format!(
        "SELECT rowid, {key}, {name} FROM {table}
         WHERE rowid > ?1 AND {name} IS NOT NULL ORDER BY rowid LIMIT {BATCH}"
    );
    let update = format!("UPDATE {table} SET {name} = ?2 WHERE rowid = ?1");
    let plain = Seal::plain();
    let mut last: i64 = 0;
    loop {
        let rows = tx.all(&select, [last], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, Vec<u8>>(2)?,
            ))
        })?;
        for (id, record, kept) in &rows {
            let secret = plain.open(field, record, kept)?;
            tx.run(&update, params![id, tx.seal.close(field, record, &secret)?])?;
            last = *id;
        }
        if rows.len() < BATCH {
            return Ok(last > 0);
        }
    }
}
