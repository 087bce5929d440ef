//! The names of many records at once, and the states of consumers, for lists that show them beside keys and ids.

use std::collections::HashMap;

use super::{READ, Store};
use crate::records::store::{Result, port::ListedConsumer, seal::Seal, value::Row};

impl Store {
    /// Finds the names and states of consumers that are registered here, by their keys.
    pub async fn listed_consumers(&self, keys: &[&str]) -> Result<HashMap<String, ListedConsumer>> {
        let read = |row: &Row, _: &Seal| {
            let (name, enabled) = (row.get("name")?, row.get("enabled")?);
            Ok((row.get("key")?, ListedConsumer { name, enabled }))
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
