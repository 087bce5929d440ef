//! Consumers: registered, changed, removed.

use super::Tx;
use crate::{
    clock::UnixTime,
    names::ConsumerKey,
    secret::Secret,
    store::{
        StoreError,
        port::{Added, Change, Updated},
        record::{Consumer, ConsumerUpdate},
        rows::{self, dialect_word, json, seconds},
        rules,
        seal::field,
    },
};

pub(in crate::store) async fn find(
    tx: &mut impl Tx,
    key: &ConsumerKey,
) -> Result<Option<Consumer>, StoreError> {
    let find = "SELECT * FROM consumers WHERE key = $1";
    tx.row(find, &[&key.as_str()], rows::consumer).await
}

/// Finds a consumer that is registered here, else one of the existing system.
pub(super) async fn find_anywhere(
    tx: &mut impl Tx,
    key: &ConsumerKey,
) -> Result<Option<Consumer>, StoreError> {
    match find(tx, key).await? {
        None => tx.consumer_outside(key).await,
        found => Ok(found),
    }
}

pub(super) async fn list(
    tx: &mut impl Tx,
    after: Option<&ConsumerKey>,
    limit: u32,
) -> Result<Vec<Consumer>, StoreError> {
    let after = after.map_or("", ConsumerKey::as_str);
    tx.rows(
        "SELECT * FROM consumers WHERE key > $1 ORDER BY key LIMIT $2",
        &[&after, &i64::from(limit)],
        rows::consumer,
    )
    .await
}

pub(super) async fn add(tx: &mut impl Tx, consumer: &Consumer) -> Result<Added, StoreError> {
    let is_taken = is_removed(tx, &consumer.key).await? || find(tx, &consumer.key).await?.is_some();
    if is_taken {
        return Ok(Added::Taken);
    }
    put(tx, consumer).await?;
    Ok(Added::Added)
}

pub(super) async fn update(
    tx: &mut impl Tx,
    key: &ConsumerKey,
    update: ConsumerUpdate,
) -> Result<Updated, StoreError> {
    let updated = rules::updated(find(tx, key).await?, update);
    if let Updated::Consumer(consumer) = &updated {
        put(tx, consumer).await?;
    }
    Ok(updated)
}

pub(super) async fn rotate(
    tx: &mut impl Tx,
    key: &ConsumerKey,
    secret: Secret,
    previous_until: Option<UnixTime>,
) -> Result<Option<Consumer>, StoreError> {
    let Some(mut consumer) = find(tx, key).await? else {
        return Ok(None);
    };
    consumer.rotate_secret(secret, previous_until);
    put(tx, &consumer).await?;
    Ok(Some(consumer))
}

pub(super) async fn unused(
    tx: &mut impl Tx,
    since: UnixTime,
    after: Option<&ConsumerKey>,
    limit: u32,
) -> Result<Vec<Consumer>, StoreError> {
    let after = after.map_or("", ConsumerKey::as_str);
    tx.rows(
        "SELECT * FROM consumers WHERE key > $1 AND created_at <= $3 AND NOT EXISTS (
             SELECT 1 FROM access_tokens
             WHERE consumer = consumers.key AND coalesce(last_used_at, issued_at) > $3)
         ORDER BY key LIMIT $2",
        &[&after, &i64::from(limit), &seconds(since)],
        rows::consumer,
    )
    .await
}

pub(super) async fn remove(tx: &mut impl Tx, key: &ConsumerKey) -> Result<bool, StoreError> {
    let text = key.as_str();
    for statement in [
        "INSERT INTO removed_tokens (token) SELECT token FROM access_tokens WHERE consumer = $1",
        "DELETE FROM access_tokens WHERE consumer = $1",
        "DELETE FROM request_tokens WHERE consumer = $1",
    ] {
        tx.execute(statement, &[&text]).await?;
    }
    let delete = "DELETE FROM consumers WHERE key = $1";
    let is_removed = tx.execute(delete, &[&text]).await? > 0;
    if is_removed {
        retire(tx, key).await?;
        tx.changed(Change::Consumer(key.clone()))?;
    }
    Ok(is_removed)
}

async fn is_removed(tx: &mut impl Tx, key: &ConsumerKey) -> Result<bool, StoreError> {
    let find = "SELECT 1 FROM removed_consumers WHERE key = $1";
    tx.has_row(find, &[&key.as_str()]).await
}

/// Marks a key as never to be used again.
pub(super) async fn retire(tx: &mut impl Tx, key: &ConsumerKey) -> Result<(), StoreError> {
    let insert = "INSERT INTO removed_consumers (key) VALUES ($1)";
    tx.execute(insert, &[&key.as_str()]).await.map(drop)
}

/// Writes a consumer, a new one or over its former state.
pub(super) async fn put<T: Tx>(tx: &mut T, consumer: &Consumer) -> Result<(), StoreError> {
    let key = consumer.key.as_str();
    let seal = tx.seal();
    let close = |field, secret: &Secret| seal.close(field, key, secret);
    let previous = consumer.previous_secret.as_ref();
    let secret = close(field::CONSUMER, &consumer.secret)?;
    let previous_secret = previous
        .map(|(secret, _)| close(field::CONSUMER_PREVIOUS, secret))
        .transpose()?;
    tx.execute(
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
            &T::kept_text(&consumer.name),
            &json(&consumer.callbacks)?,
            &json(&consumer.permissions)?,
            &dialect_word(consumer.dialect),
            &consumer.enforce,
            &consumer.rsa_only,
            &consumer.enabled,
            &seconds(consumer.created_at),
            &consumer.description.as_deref().map(T::kept_text),
            &consumer.website,
        ],
    )
    .await?;
    tx.changed(Change::Consumer(consumer.key.clone()))
}
