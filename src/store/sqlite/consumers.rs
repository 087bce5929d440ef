//! Consumers: registered, changed, removed.

use rusqlite::{named_params, params};

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    names::ConsumerKey,
    secret::Secret,
    store::{
        StoreError,
        port::{Added, Change},
        record::{Consumer, ConsumerUpdate},
        rows::{self, dialect_word, json, seconds},
        seal::field,
    },
};

impl Tx<'_> {
    pub(super) fn consumer(&self, key: &ConsumerKey) -> Result<Option<Consumer>, StoreError> {
        self.first(
            "SELECT * FROM consumers WHERE key = ?1",
            [key.as_str()],
            |row| rows::consumer(row, self.seal),
        )
    }

    pub(super) fn consumers(
        &self,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, StoreError> {
        let after = after.map_or("", ConsumerKey::as_str);
        self.all(
            "SELECT * FROM consumers WHERE key > ?1 ORDER BY key LIMIT ?2",
            params![after, limit],
            |row| rows::consumer(row, self.seal),
        )
    }

    pub(super) fn add_consumer(&self, consumer: &Consumer) -> Result<Added, StoreError> {
        let key = consumer.key.as_str();
        if self.exists("SELECT 1 FROM consumers WHERE key = ?1", [key])? {
            return Ok(Added::Taken);
        }
        self.put_consumer(consumer)?;
        Ok(Added::Added)
    }

    pub(super) fn update_consumer(
        &self,
        key: &ConsumerKey,
        update: ConsumerUpdate,
    ) -> Result<Option<Consumer>, StoreError> {
        self.change_consumer(key, |consumer| update.apply(consumer))
    }

    pub(super) fn rotate_consumer_secret(
        &self,
        key: &ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> Result<Option<Consumer>, StoreError> {
        self.change_consumer(key, |consumer| {
            consumer.rotate_secret(secret, previous_until);
        })
    }

    fn change_consumer(
        &self,
        key: &ConsumerKey,
        change: impl FnOnce(&mut Consumer),
    ) -> Result<Option<Consumer>, StoreError> {
        let Some(mut consumer) = self.consumer(key)? else {
            return Ok(None);
        };
        change(&mut consumer);
        self.put_consumer(&consumer)?;
        Ok(Some(consumer))
    }

    pub(super) fn remove_consumer(&self, key: &ConsumerKey) -> Result<bool, StoreError> {
        let text = key.as_str();
        self.run(
            "INSERT INTO removed_tokens (token)
             SELECT token FROM access_tokens WHERE consumer = ?1",
            [text],
        )?;
        self.run("DELETE FROM access_tokens WHERE consumer = ?1", [text])?;
        self.run("DELETE FROM request_tokens WHERE consumer = ?1", [text])?;
        let is_removed = self.run("DELETE FROM consumers WHERE key = ?1", [text])? > 0;
        if is_removed {
            self.changed(&Change::Consumer(key.clone()))?;
        }
        Ok(is_removed)
    }

    /// Writes a consumer, a new one or over its former state.
    pub(super) fn put_consumer(&self, consumer: &Consumer) -> Result<(), StoreError> {
        let key = consumer.key.as_str();
        let close = |field, secret: &Secret| self.seal.close(field, key, secret);
        let previous = consumer.previous_secret.as_ref();
        self.run(
            "INSERT INTO consumers (key, secret, previous_secret, previous_until, rsa_public_key,
                 name, description, website, callbacks, permissions, dialect, enforce, rsa_only, enabled, created_at)
             VALUES (:key, :secret, :previous_secret, :previous_until, :rsa_public_key,
                 :name, :description, :website, :callbacks, :permissions, :dialect, :enforce, :rsa_only, :enabled, :created_at)
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
            named_params! {
                ":key": key,
                ":secret": close(field::CONSUMER, &consumer.secret)?,
                ":previous_secret": previous
                    .map(|(secret, _)| close(field::CONSUMER_PREVIOUS, secret))
                    .transpose()?,
                ":previous_until": previous.map(|(_, until)| seconds(*until)),
                ":rsa_public_key": consumer.rsa_public_key,
                ":name": consumer.name,
                ":callbacks": json(&consumer.callbacks)?,
                ":permissions": json(&consumer.permissions)?,
                ":dialect": dialect_word(consumer.dialect),
                ":enforce": consumer.enforce,
                ":rsa_only": consumer.rsa_only,
                ":description": consumer.description,
                ":website": consumer.website,
                ":enabled": consumer.enabled,
                ":created_at": seconds(consumer.created_at),
            },
        )?;
        self.changed(&Change::Consumer(consumer.key.clone()))
    }
}
