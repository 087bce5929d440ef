//! Rows of SQLite.

use rusqlite::Row;

use crate::store::{StoreError, rows::Columns};

impl Columns for Row<'_> {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get(column)?)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn flag(&self, column: &str) -> Result<Option<bool>, StoreError> {
        Ok(self.get(column)?)
    }
}
