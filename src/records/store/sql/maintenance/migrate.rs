//! The tables of a store: made, migrated, and checked when it is opened.

use crate::records::{
    store::{
        engine::{Deadline, Isolation},
        sql::{
            Store,
            tx::{Tx, sealing},
        },
    },
    values::{
        Result,
        opening::{OpenProblem, Opening},
        seal::Mismatch,
        value::needed,
    },
};

/// The schema of the database; 0 if there is none.
async fn version(tx: &mut Tx) -> Result<i64> {
    let schema = &tx.statements().schema;
    if !tx.has_row(schema.exists, &[]).await? {
        return Ok(0);
    }
    let version = tx.row(schema.version, &[], |row, _| row.get("version"));
    needed(version.await?)
}

impl Store {
    /// Checks that the database is one that this program knows and may use, creates or migrates it in one transaction, and
    /// checks that its secrets fit the keys.
    ///
    /// # Errors
    /// The problem; the database is as it was before then.
    pub(crate) async fn prepare(&self, opening: Opening) -> Result<(), OpenProblem> {
        // Checked before anything is locked or written.
        let single = (Isolation::Single, Deadline::Command);
        let found = self.run("open", single, version).await?;
        let schema = &self.engine.statements().schema;
        let unreleased = async |tx: &mut Tx| tx.has_row(schema.unreleased, &[]).await;
        if self.run("open", single, unreleased).await? {
            return Err(OpenProblem::Unreleased);
        }
        let known = schema.known();
        if found == 0 && !schema.rights.is_empty() {
            let rights =
                async |tx: &mut Tx| tx.row(schema.rights, &[], |row, _| row.get("rights")).await;
            if let Some(statement) = self.run("open", single, rights).await? {
                return Err(OpenProblem::RightsMissing { statement });
            }
        }
        match found {
            found if found > known => return Err(OpenProblem::NewerSchema { found, known }),
            0 if schema.is_shared && opening.needs_store() => return Err(OpenProblem::Missing),
            1.. if found < known && schema.is_shared && opening != Opening::Serve => {
                return Err(OpenProblem::OlderSchema { found, known });
            }
            _ => {}
        }
        if found > 0 {
            let snapshot = (Isolation::Snapshot, Deadline::Command);
            match self.run("open", snapshot, sealing::mismatch).await? {
                None => {}
                Some(Mismatch::InClear) => return Err(OpenProblem::InClear),
                Some(Mismatch::KeyMissing(_)) if self.seal.has_no_key() => {
                    return Err(OpenProblem::KeyMissing);
                }
                Some(Mismatch::KeyMissing(_)) => return Err(OpenProblem::WrongKey),
            }
        }
        if found == known {
            return Ok(());
        }
        let migration = (Isolation::Migration, Deadline::Transfer);
        let found = self.run("migrate", migration, async |tx| {
            // Another process may have migrated while this one waited.
            let found = version(tx).await?;
            let taken = usize::try_from(found).unwrap_or(0);
            for step in schema.steps.iter().skip(taken) {
                tx.batch(step).await?;
            }
            if found < known {
                tx.batch(&format!("{}{known}", schema.set_version)).await?;
            }
            Ok(found)
        });
        match found.await? {
            found if found > known => Err(OpenProblem::NewerSchema { found, known }),
            _ => Ok(()),
        }
    }
}
