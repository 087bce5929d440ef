//! The tables of a store, and how an older database gets them, the same way on every engine.

use std::iter;

use super::{Engine, Mode, Pace, Tx, run, sealing};
use crate::records::store::{Opening, Result, open::OpenProblem, rows::needed, seal::Mismatch};

/// The tables of an engine.
pub struct Schema {
    /// The steps of all engines.
    pub steps: &'static [&'static str],
    /// The additions of the engine to each of them.
    pub own: &'static [&'static str],
    /// Texts in the steps, each with its replacement in the engine, in the order in which they are replaced.
    pub words: &'static [(&'static str, &'static str)],
    /// Run before the first step.
    pub create: &'static str,
    /// Returns a row if there is a schema.
    pub exists: &'static str,
    /// Finds the `version` of the schema, which counts the steps that were taken.
    pub version: &'static str,
    /// Sets the version, which is appended to it.
    pub set_version: &'static str,
    /// Whether processes on other machines use the database: then `serve` alone migrates it.
    pub is_shared: bool,
}

impl Schema {
    /// The version that this program knows.
    pub(in crate::records::store) const fn known(&self) -> i64 {
        self.steps.len() as i64
    }
}

/// The schema of the database; 0 if there is none.
async fn version(tx: &mut Tx) -> Result<i64> {
    let schema = &tx.statements().schema;
    if !tx.has_row(schema.exists, &[]).await? {
        return Ok(0);
    }
    let version = tx.row(schema.version, &[], |row, _| row.get("version"));
    needed(version.await?)
}

/// Checks that the database is one that this program knows and may use, creates or migrates it in one transaction, and
/// checks that its secrets fit the keys.
///
/// # Errors
/// The problem; the database is as it was before then.
pub(in crate::records::store) async fn prepare(
    engine: &impl Engine,
    opening: Opening,
) -> Result<(), OpenProblem> {
    // Checked before anything is locked or written.
    let (found, schema) = run(engine, "open", (Mode::Single, Pace::Command), async |tx| {
        Ok((version(tx).await?, &tx.statements().schema))
    })
    .await?;
    let known = schema.known();
    match found {
        found if found > known => return Err(OpenProblem::NewerSchema { found, known }),
        0 if schema.is_shared && opening.needs_store() => return Err(OpenProblem::Missing),
        1.. if found < known && schema.is_shared && opening != Opening::Serve => {
            return Err(OpenProblem::OlderSchema { found, known });
        }
        _ => {}
    }
    if found > 0 {
        let mismatch = run(
            engine,
            "open",
            (Mode::Snapshot, Pace::Command),
            sealing::mismatch,
        );
        match mismatch.await? {
            None => {}
            Some(Mismatch::InClear) => return Err(OpenProblem::InClear),
            Some(Mismatch::KeyMissing(_)) if engine.extensions().seal.has_no_key() => {
                return Err(OpenProblem::KeyMissing);
            }
            Some(Mismatch::KeyMissing(_)) => return Err(OpenProblem::WrongKey),
        }
    }
    if found == known {
        return Ok(());
    }
    let found = run(
        engine,
        "migrate",
        (Mode::Schema, Pace::Transfer),
        async |tx| {
            // Another process may have migrated while this one waited.
            let found = version(tx).await?;
            if found == 0 {
                tx.batch(schema.create).await?;
            }
            let taken = usize::try_from(found).unwrap_or(0);
            let own = schema.own.iter().chain(iter::repeat(&""));
            for (step, own) in schema.steps.iter().zip(own).skip(taken) {
                let replace = |text: String, (word, own): &(&str, &str)| text.replace(word, own);
                let step = schema.words.iter().fold((*step).to_owned(), replace);
                tx.batch(&step).await?;
                tx.batch(own).await?;
            }
            if found < known {
                tx.batch(&format!("{}{known}", schema.set_version)).await?;
            }
            Ok(found)
        },
    )
    .await?;
    match found > known {
        true => Err(OpenProblem::NewerSchema { found, known }),
        false => Ok(()),
    }
}
