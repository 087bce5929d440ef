//! Export and import.

use std::io;

use super::{Store, tx::Tx};
use crate::records::{
    store::{
        engine::{Deadline, Isolation},
        sql::tx::rows::{self, Read},
    },
    values::{
        Result,
        transfer::{BATCH, ExportOrigin, Exported, Import, ImportList, Record, TransferError},
        value::needed,
    },
};

mod action;
mod import;

impl Store {
    /// Reads the contents of an export, as of one moment, and gives them to `write` in parts.
    ///
    /// # Errors
    /// The store's, or that of `write`.
    pub async fn export(
        &self,
        write: &mut dyn FnMut(Exported) -> io::Result<()>,
    ) -> Result<(), TransferError> {
        let limits = (Isolation::Snapshot, Deadline::Transfer);
        let written = self.run("export", limits, async |tx| export(tx, write).await);
        Ok(written.await??)
    }

    /// Imports all of the records or none. The rules are documented at [`Import`].
    ///
    /// # Errors
    /// The store's, or that of the records.
    pub async fn import(&self, list: ImportList<'_>) -> Result<Import, TransferError> {
        let limits = (Isolation::Exclusive, Deadline::Transfer);
        let imported = self.run("import", limits, async |tx| import::import(tx, list).await);
        Ok(imported.await??)
    }
}

/// The tables of all kinds of records, each with the column of its key and how a row is read.
const TABLES: [(&str, &str, Read<Record>); 6] = [
    ("countersign.consumers", "key", |row, seal| {
        rows::consumer(row, seal).map(Record::Consumer)
    }),
    ("countersign.users", "id", |row, seal| {
        rows::user(row, seal).map(Record::User)
    }),
    ("countersign.access_tokens", "token", |row, seal| {
        rows::access_token(row, seal).map(Record::AccessToken)
    }),
    (
        "(SELECT key FROM countersign.removed WHERE kind = 'consumer') AS removed",
        "key",
        |row, _| row.get("key").map(Record::RemovedConsumer),
    ),
    (
        "(SELECT key AS id FROM countersign.removed WHERE kind = 'user') AS removed",
        "id",
        |row, _| row.get("id").map(Record::RemovedUser),
    ),
    (
        "(SELECT key AS token FROM countersign.removed WHERE kind = 'token') AS removed",
        "token",
        |row, _| row.get("token").map(Record::RemovedToken),
    ),
];

async fn export(
    tx: &mut Tx,
    write: &mut dyn FnMut(Exported) -> io::Result<()>,
) -> Result<io::Result<()>> {
    let origin = origin(tx).await?;
    let mut count = 0_i64;
    for (table, _, _) in TABLES {
        let rows = format!("SELECT count(*) AS count FROM {table}");
        let rows = tx.row(&rows, &[], |row, _| row.get::<i64>("count")).await?;
        count += rows.unwrap_or_default();
    }
    if let Err(error) = write(Exported::Head(origin, count.unsigned_abs())) {
        return Ok(Err(error));
    }
    for (table, key, read) in TABLES {
        let page = format!("SELECT * FROM {table} WHERE {key} > $1 ORDER BY {key} LIMIT $2");
        let mut after = String::new();
        loop {
            let params = [after.as_str().into(), (BATCH as i64).into()];
            let next = tx.rows(&page, &params, read).await?;
            let Some(last) = next.last() else { break };
            last.identity().1.clone_into(&mut after);
            if let Err(error) = write(Exported::Records(next)) {
                return Ok(Err(error));
            }
        }
    }
    Ok(Ok(()))
}

/// The identity of this store, and the timestamp up to which it may have accepted requests.
async fn origin(tx: &mut Tx) -> Result<ExportOrigin> {
    let read: Read<_> = |row, _| {
        Ok(ExportOrigin {
            store: row.get("id")?,
            accepted_until: row.get::<Option<_>>("accepted_until")?.unwrap_or_default(),
        })
    };
    let find = format!(
        "SELECT id, (SELECT max(until) FROM {}) AS accepted_until FROM countersign.meta",
        tx.statements().accepted
    );
    needed(tx.row(&find, &[], read).await?)
}
