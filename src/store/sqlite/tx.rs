//! What a use case works with: statements in one transaction, and how secrets are kept.

use rusqlite::{Connection, Params, Row};

use crate::store::{StoreError, seal::Seal};

/// A transaction under way.
pub(super) struct Tx<'a> {
    pub(super) sql: &'a Connection,
    pub(super) seal: &'a Seal,
}

impl Tx<'_> {
    /// Runs a statement that returns no rows; returns how many rows it touched.
    pub(super) fn run(&self, statement: &str, params: impl Params) -> Result<usize, StoreError> {
        Ok(self.sql.prepare_cached(statement)?.execute(params)?)
    }

    /// Reads the first row.
    pub(super) fn first<T>(
        &self,
        statement: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.sql.prepare_cached(statement)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// Reads all rows.
    pub(super) fn all<T>(
        &self,
        statement: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.sql.prepare_cached(statement)?;
        let mut rows = statement.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// Hands every row on, one after the other.
    pub(super) fn each(
        &self,
        statement: &str,
        mut take: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.sql.prepare_cached(statement)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// Whether the statement returns any row.
    pub(super) fn exists(&self, statement: &str, params: impl Params) -> Result<bool, StoreError> {
        Ok(self.sql.prepare_cached(statement)?.exists(params)?)
    }
}
