//! The names of many records at once, and the states and contacts of consumers, for lists that show them beside keys and ids.

use std::collections::HashMap;

use crate::records::{
    store::sql::{READ, Store},
    values::{Result, seal::Seal, use_cases::ListedConsumer, value::Row},
};

impl Store {
    /// Finds the names, states and contacts of consumers that are registered here, by their keys.
    pub async fn listed_consumers(&self, keys: &[&str]) -> Result<HashMap<String, ListedConsumer>> {
        let read = |row: &Row, _: &Seal| {
            let listed = ListedConsumer {
                name: row.get("name")?,
                enabled: row.get("enabled")?,
                contact: row.get("contact")?,
            };
            Ok((row.get("key")?, listed))
        };
        self.run("listed_consumers", READ, async |tx| {
            let found = tx.rows_among("countersign.consumers", "key", keys, read);
            Ok(found.await?.into_iter().collect())
        })
        .await
    }

    /// Finds the login names of users, by their ids.
    pub async fn user_names(&self, ids: &[&str]) -> Result<HashMap<String, String>> {
        let read = |row: &Row, _: &Seal| Ok((row.get("id")?, row.get("name")?));
        self.run("user_names", READ, async |tx| {
            let found = tx.rows_among("countersign.users", "id", ids, read);
            Ok(found.await?.into_iter().collect())
        })
        .await
    }
}
