//! Consumers: registered, changed, removed.

use async_trait::async_trait;

use super::{Engine, Mode, Pace, Param, Tx, run};
use crate::{
    clock::UnixTime,
    names::ConsumerKey,
    secret::Secret,
    store::{
        StoreError,
        port::{Added, Change, Updated},
        record::{Consumer, ConsumerUpdate},
        rows::{self, dialect_word, json, kept_text, seconds},
        seal::field,
    },
};

/// Consumers: registered, changed, removed.
#[async_trait]
pub trait Consumers: Engine {
    /// Finds a consumer, disabled ones too: one that is registered here, else one of the existing system.
    async fn consumer(&self, key: &ConsumerKey) -> Result<Option<Consumer>, StoreError> {
        run(
            self,
            "consumer",
            Mode::Single,
            Pace::Request,
            async |tx| match (find(tx, key).await?, &self.extensions().shared) {
                (None, Some(shared)) => shared.outside.consumer(tx, key).await,
                (found, _) => Ok(found),
            },
        )
        .await
    }

    /// Registers a consumer.
    async fn add_consumer(&self, consumer: Consumer) -> Result<Added, StoreError> {
        run(
            self,
            "add_consumer",
            Mode::Alone,
            Pace::Command,
            async |tx| {
                if is_removed(tx, &consumer.key).await? || find(tx, &consumer.key).await?.is_some()
                {
                    return Ok(Added::Taken);
                }
                put(tx, &consumer).await?;
                Ok(Added::Added)
            },
        )
        .await
    }

    /// Changes a consumer, unless it could not sign any more.
    async fn update_consumer(
        &self,
        key: &ConsumerKey,
        update: ConsumerUpdate,
    ) -> Result<Updated, StoreError> {
        run(
            self,
            "update_consumer",
            Mode::Alone,
            Pace::Command,
            async |tx| {
                let Some(mut consumer) = find(tx, key).await? else {
                    return Ok(Updated::Unknown);
                };
                update.apply(&mut consumer);
                if !consumer.can_sign() {
                    return Ok(Updated::CannotSign);
                }
                put(tx, &consumer).await?;
                Ok(Updated::Consumer(Box::new(consumer)))
            },
        )
        .await
    }

    /// Replaces the secret; the old one verifies until `previous_until`, if given. `None` if there is no consumer.
    async fn rotate_consumer_secret(
        &self,
        key: &ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> Result<Option<Consumer>, StoreError> {
        run(
            self,
            "rotate_consumer_secret",
            Mode::Alone,
            Pace::Command,
            async |tx| {
                let Some(mut consumer) = find(tx, key).await? else {
                    return Ok(None);
                };
                let previous = std::mem::replace(&mut consumer.secret, secret);
                consumer.previous_secret = previous_until.map(|until| (previous, until));
                put(tx, &consumer).await?;
                Ok(Some(consumer))
            },
        )
        .await
    }

    /// Removes a consumer with its request tokens and access tokens; `false` if there is none.
    async fn remove_consumer(&self, key: &ConsumerKey) -> Result<bool, StoreError> {
        run(self, "remove_consumer", Mode::Alone, Pace::Command, async |tx| {
            for statement in [
                "INSERT INTO removed_tokens (token) SELECT token FROM access_tokens WHERE consumer = $1",
                "DELETE FROM access_tokens WHERE consumer = $1",
                "DELETE FROM request_tokens WHERE consumer = $1",
            ] {
                tx.execute(statement, &[&key.as_str()]).await?;
            }
            let delete = "DELETE FROM consumers WHERE key = $1";
            let is_removed = tx.execute(delete, &[&key.as_str()]).await? > 0;
            if is_removed {
 retire(tx, key).await?;
 tx.changed(Change::Consumer(key.clone()));
            }
            Ok(is_removed)
        })
        .await
    }

    /// Lists consumers in the order of their keys, after `after`, at most `limit`.
    async fn consumers(
        &self,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, StoreError> {
        let list = "SELECT * FROM consumers WHERE key > $1 ORDER BY key LIMIT $2";
        run(self, "consumers", Mode::Single, Pace::Request, async |tx| {
            let after = after.map_or("", ConsumerKey::as_str);
            tx.rows(list, &[&after, &i64::from(limit)], rows::consumer)
                .await
        })
        .await
    }

    /// Lists those consumers, in the same way, that were registered at `since` or before and have no access token that was
    /// used or issued later. Calls without a token leave no trace in the store.
    async fn unused_consumers(
        &self,
        since: UnixTime,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, StoreError> {
        let list = "SELECT * FROM consumers WHERE key > $1 AND created_at <= $3 AND NOT EXISTS (
                 SELECT 1 FROM access_tokens
                 WHERE consumer = consumers.key AND coalesce(last_used_at, issued_at) > $3)
             ORDER BY key LIMIT $2";
        run(
            self,
            "unused_consumers",
            Mode::Single,
            Pace::Command,
            async |tx| {
                let after = after.map_or("", ConsumerKey::as_str);
                let params: [&dyn Param; 3] = [&after, &i64::from(limit), &seconds(since)];
                tx.rows(list, &params, rows::consumer).await
            },
        )
        .await
    }
}

impl<E: Engine + ?Sized> Consumers for E {}

/// Finds a consumer that is registered here.
pub(super) async fn find(tx: &mut Tx, key: &ConsumerKey) -> Result<Option<Consumer>, StoreError> {
    let find = "SELECT * FROM consumers WHERE key = $1";
    tx.row(find, &[&key.as_str()], rows::consumer).await
}

async fn is_removed(tx: &mut Tx, key: &ConsumerKey) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM removed_consumers WHERE key = $1";
    tx.has_row(find, &[&key.as_str()]).await
}

/// Marks a key as never to be used again.
pub(super) async fn retire(tx: &mut Tx, key: &ConsumerKey) -> Result<(), StoreError> {
    let insert = "INSERT INTO removed_consumers (key) VALUES ($1)";
    tx.execute(insert, &[&key.as_str()]).await.map(drop)
}

/// Writes a consumer, a new one or over its former state.
pub(super) async fn put(tx: &mut Tx, consumer: &Consumer) -> Result<(), StoreError> {
    let key = consumer.key.as_str();
    let close = |field, secret: &Secret| tx.seal().close(field, key, secret);
    let secret = close(field::CONSUMER, &consumer.secret)?;
    let previous = consumer.previous_secret.as_ref();
    let previous_secret = previous.map(|(secret, _)| close(field::CONSUMER_PREVIOUS, secret));
    let columns: [(&str, &dyn Param); 15] = [
        ("key", &key),
        ("secret", &secret),
        ("previous_secret", &previous_secret.transpose()?),
        (
            "previous_until",
            &previous.map(|(_, until)| seconds(*until)),
        ),
        ("rsa_public_key", &consumer.rsa_public_key),
        ("name", &kept_text(&consumer.name)),
        (
            "description",
            &consumer.description.as_deref().map(kept_text),
        ),
        ("website", &consumer.website),
        ("callbacks", &json(&consumer.callbacks)?),
        ("permissions", &json(&consumer.permissions)?),
        ("dialect", &dialect_word(consumer.dialect)),
        ("enforce", &consumer.enforce),
        ("rsa_only", &consumer.rsa_only),
        ("enabled", &consumer.enabled),
        ("created_at", &seconds(consumer.created_at)),
    ];
    let replaced = columns.map(|(name, _)| format!("{name} = excluded.{name}"));
    let ending = format!("ON CONFLICT (key) DO UPDATE SET {}", replaced.join(", "));
    tx.insert("consumers", &columns, &ending).await?;
    tx.changed(Change::Consumer(consumer.key.clone()));
    Ok(())
}
