//! Whether the secrets of a file are sealed, proved by one sealed word in it, and how a plain file becomes sealed.

use rusqlite::{Connection, OptionalExtension, params};

use super::{schema, tx::Tx};
use crate::{
    secret::Secret,
    store::{
        StoreError,
        seal::{Seal, SealKey},
    },
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

/// Why key and file do not go together.
#[derive(Debug)]
pub(super) enum Mismatch {
    /// The file is sealed and there is no key.
    KeyMissing,
    /// The file is sealed with another key.
    WrongKey,
    /// The store failed.
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for Mismatch {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// What is sealed to recognise the key by.
const WORD: &str = "countersign";
const WORD_FIELD: &str = "meta.sealed";

/// Finds how the secrets of the file are kept, and seals those of a plain file when there is a key, in the transaction
/// that is open; unless `seals_plain`, only a file without any. `true`: it has just sealed some.
pub(super) fn settle(
    sql: &Connection,
    key: Option<&SealKey>,
    seals_plain: bool,
) -> Result<(Seal, bool), Mismatch> {
    let seal = key.map_or_else(|| Ok(Seal::plain()), Seal::sealed)?;
    match (stamp(sql)?.sealed, key) {
        (None, None) => Ok((seal, false)),
        (Some(_), None) => Err(Mismatch::KeyMissing),
        (Some(word), Some(_)) => match seal.open(WORD_FIELD, "", &word) {
            Ok(word) if word == Secret::from(WORD) => Ok((seal, false)),
            _ => Err(Mismatch::WrongKey),
        },
        (None, Some(_)) => {
            let tx = Tx { sql, seal: &seal };
            if !seals_plain && has_secrets(&tx)? {
                return Ok((Seal::plain(), false));
            }
            let mut any = false;
            for column in SECRETS {
                any |= seal_column(&tx, column)?;
            }
            let word = seal.close(WORD_FIELD, "", &Secret::from(WORD))?;
            tx.run(
                "INSERT INTO meta (name, value) VALUES ('sealed', ?1)",
                [word],
            )?;
            Ok((seal, any))
        }
    }
}

struct Column {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    field: &'static str,
}

/// The names under which secrets are sealed.
pub(super) mod field {
    pub(in super::super) const CONSUMER: &str = "consumer.secret";
    pub(in super::super) const CONSUMER_PREVIOUS: &str = "consumer.previous_secret";
    pub(in super::super) const USER: &str = "user.password_hash";
    pub(in super::super) const ACCESS_TOKEN: &str = "access_token.secret";
    pub(in super::super) const REQUEST_TOKEN: &str = "request_token.secret";
    pub(in super::super) const VERIFIER: &str = "request_token.verifier";
}

/// Every column that holds a secret.
const SECRETS: &[Column] = &[
    Column {
        table: "consumers",
        key: "key",
        name: "secret",
        field: field::CONSUMER,
    },
    Column {
        table: "consumers",
        key: "key",
        name: "previous_secret",
        field: field::CONSUMER_PREVIOUS,
    },
    Column {
        table: "users",
        key: "id",
        name: "password_hash",
        field: field::USER,
    },
    Column {
        table: "access_tokens",
        key: "token",
        name: "secret",
        field: field::ACCESS_TOKEN,
    },
    Column {
        table: "request_tokens",
        key: "token",
        name: "secret",
        field: field::REQUEST_TOKEN,
    },
    Column {
        table: "request_tokens",
        key: "token",
        name: "verifier",
        field: field::VERIFIER,
    },
];

fn has_secrets(tx: &Tx<'_>) -> Result<bool, StoreError> {
    for Column { table, name, .. } in SECRETS {
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
