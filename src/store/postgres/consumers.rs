//! Consumers: registered, changed, removed.

use super::tx::{Tx, kept_text};
use crate::{
    names::ConsumerKey,
    secret::Secret,
    store::{
        StoreError,
        port::{Added, Change},
        record::Consumer,
        rows::{self, dialect_word, json, seconds},
        seal::field,
    },
};

impl Tx {
    pub(super) async fn consumer(
        &mut self,
        key: &ConsumerKey,
    ) -> Result<Option<Consumer>, StoreError> {
        let row = self
            .first("SELECT * FROM consumers WHERE key = $1", &[&key.as_str()])
            .await?;
        row.map(|row| rows::consumer(&row, &self.seal)).transpose()
    }

    pub(super) async fn consumers(
        &mut self,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, StoreError> {
        let after = after.map_or("", ConsumerKey::as_str);
        let found = self
            .all(
                "SELECT * FROM consumers WHERE key > $1 ORDER BY key LIMIT $2",
                &[&after, &i64::from(limit)],
            )
            .await?;
        let consumers = found.iter().map(|row| rows::consumer(row, &self.seal));
        consumers.collect()
    }

    pub(super) async fn add_consumer(&mut self, consumer: &Consumer) -> Result<Added, StoreError> {
        if self.consumer(&consumer.key).await?.is_some() {
            return Ok(Added::Taken);
        }
        self.put_consumer(consumer).await?;
        Ok(Added::Added)
    }

    pub(super) async fn change_consumer(
        &mut self,
        key: &ConsumerKey,
        change: impl FnOnce(&mut Consumer) + Send,
    ) -> Result<Option<Consumer>, StoreError> {
        let Some(mut consumer) = self.consumer(key).await? else {
            return Ok(None);
        };
        change(&mut consumer);
        self.put_consumer(&consumer).await?;
        Ok(Some(consumer))
    }

    pub(super) async fn remove_consumer(&mut self, key: &ConsumerKey) -> Result<bool, StoreError> {
        let text = key.as_str();
        for statement in [
            "INSERT INTO removed_tokens (token) SELECT token FROM access_tokens WHERE consumer = $1",
            "DELETE FROM access_tokens WHERE consumer = $1",
            "DELETE FROM request_tokens WHERE consumer = $1",
        ] {
            self.run(statement, &[&text]).await?;
        }
        let removed = self
            .run("DELETE FROM consumers WHERE key = $1", &[&text])
            .await?;
        if removed > 0 {
            self.changed(Change::Consumer(key.clone()));
        }
        Ok(removed > 0)
    }

    /// Writes a consumer, a new one or over its former state.
    pub(super) async fn put_consumer(&mut self, consumer: &Consumer) -> Result<(), StoreError> {
        let key = consumer.key.as_str();
        let close = |field, secret: &Secret| self.seal.close(field, key, secret);
        let previous = consumer.previous_secret.as_ref();
        let secret = close(field::CONSUMER, &consumer.secret)?;
        let previous_secret = previous
            .map(|(secret, _)| close(field::CONSUMER_PREVIOUS, secret))
            .transpose()?;
        self.run(
            "INSERT INTO consumers (key, secret, previous_secret, previous_until, rsa_public_key,
                 name, callbacks, permissions, dialect, enforce, rsa_only, enabled, created_at,
                 description, website)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
             ON CONFLICT (key) DO UPDATE SET
                 secret = excluded.secret,
                 previous_secret = excluded.previous_secret,
                 previous_until = excluded.previous_until,
                 rsa_public_key = excluded.rsa_public_key,
                 name = excluded.name,
                 description = excluded.description,
                 website = excluded.website,
                 callbacks = excluded.callbacks,
                 permissions = excluded.permissions,
                 dialect = excluded.dialect,
                 enforce = excluded.enforce,
                 rsa_only = excluded.rsa_only,
                 enabled = excluded.enabled",
            &[
                &key,
                &secret,
                &previous_secret,
                &previous.map(|(_, until)| seconds(*until)),
                &consumer.rsa_public_key,
                &kept_text(&consumer.name),
                &json(&consumer.callbacks)?,
                &json(&consumer.permissions)?,
                &dialect_word(consumer.dialect),
                &consumer.enforce,
                &consumer.rsa_only,
                &consumer.enabled,
                &seconds(consumer.created_at),
                &consumer.description.as_deref().map(kept_text),
                &consumer.website,
            ],
        )
        .await?;
        self.changed(Change::Consumer(consumer.key.clone()));
        Ok(())
    }
}
