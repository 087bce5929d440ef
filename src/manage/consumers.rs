//! The life of a consumer.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Actor, ManageError, Management, view};
use crate::{
    clock::UnixTime,
    issue::random,
    names::ConsumerKey,
    secret::Secret,
    store::{
        port::{Added, Updated},
        record::Consumer,
    },
    telemetry::audit::CommandRecord,
};

/// A consumer that is not registered yet and has nothing else. Key and secret are random unless given.
///
/// # Errors
/// [`ManageError::EmptySecret`], or a failure of the random generator.
pub fn new_consumer(
    key: Option<ConsumerKey>,
    secret: Option<Secret>,
    name: String,
    now: UnixTime,
) -> Result<Consumer, ManageError> {
    let key = key.map_or_else(random::name, Ok)?;
    Ok(Consumer::new(key, given_or_random(secret)?, name, now))
}

impl Management {
    /// Registers a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerExists`], [`ManageError::ConsumerRemoved`], [`ManageError::CannotSign`], or the store fails.
    pub async fn add_consumer(
        &self,
        by: &Actor,
        consumer: Consumer,
    ) -> Result<Consumer, ManageError> {
        if !consumer.can_sign() {
            return Err(ManageError::CannotSign);
        }
        match self.store.add_consumer(consumer.clone()).await? {
            Added::Added => {
                self.audit_consumer(by, "consumer_registered", &consumer.key)
                    .await;
                Ok(consumer)
            }
            Added::Taken if self.store.consumer(&consumer.key).await?.is_none() => {
                Err(ManageError::ConsumerRemoved(consumer.key))
            }
            Added::Taken => Err(ManageError::ConsumerExists(consumer.key)),
        }
    }

    /// Finds a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], or the store fails.
    pub async fn consumer(&self, key: &ConsumerKey) -> Result<Consumer, ManageError> {
        let found = self.store.consumer(key).await?;
        found.ok_or_else(|| ManageError::ConsumerUnknown(key.clone()))
    }

    /// Lists consumers by their keys, from after `after`, at most `limit`; with `unused_for` only those that were registered,
    /// signed their last call, and were issued their last access token at least that long ago.
    ///
    /// # Errors
    /// The store fails.
    pub async fn consumers(
        &self,
        unused_for: Option<Duration>,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, ManageError> {
        let listed = match self.unused_since(unused_for) {
            Some(since) => self.store.unused_consumers(since, after, limit),
            None => self.store.consumers(after, limit),
        };
        Ok(listed.await?)
    }

    /// Changes a consumer as `change` does.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::CannotSign`], or the store fails.
    pub async fn update_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        change: impl Fn(&mut Consumer) + Sync,
    ) -> Result<Consumer, ManageError> {
        self.change_consumer(by, key, "consumer_changed", &change)
            .await
    }

    /// Accepts the calls of a consumer, or refuses them.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], or the store fails.
    pub async fn set_consumer_enabled(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        enabled: bool,
    ) -> Result<Consumer, ManageError> {
        let event = match enabled {
            true => "consumer_enabled",
            false => "consumer_disabled",
        };
        self.change_consumer(by, key, event, &|consumer| consumer.enabled = enabled)
            .await
    }

    /// Gives a consumer another secret, a random one unless it is given. During `grace` the old secret verifies too.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::EmptySecret`], a failure of the store or of the random generator.
    pub async fn rotate_secret(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        secret: Option<Secret>,
        grace: Option<Duration>,
    ) -> Result<Consumer, ManageError> {
        let secret = given_or_random(secret)?;
        let until = grace.map(|grace| self.clock.now().after(grace));
        let rotate = |consumer: &mut Consumer| {
            let before = std::mem::replace(&mut consumer.secret, secret.clone());
            consumer.previous_secret = until.map(|until| (before, until));
        };
        self.change_consumer(by, key, "consumer_secret_rotated", &rotate)
            .await
    }

    /// Ends the grace of the secret before the last rotation.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], or the store fails.
    pub async fn end_grace(&self, by: &Actor, key: &ConsumerKey) -> Result<Consumer, ManageError> {
        let end = |consumer: &mut Consumer| consumer.previous_secret = None;
        self.change_consumer(by, key, "consumer_grace_ended", &end)
            .await
    }

    async fn change_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        event: &str,
        change: &(dyn Fn(&mut Consumer) + Sync),
    ) -> Result<Consumer, ManageError> {
        match self.store.update_consumer(key, change).await? {
            Updated::Consumer(consumer) => {
                self.audit_consumer(by, event, key).await;
                Ok(*consumer)
            }
            Updated::Unknown => Err(ManageError::ConsumerUnknown(key.clone())),
            Updated::CannotSign => Err(ManageError::CannotSign),
        }
    }

    /// Removes a consumer with all its tokens. The key is never used again.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], or the store fails.
    pub async fn remove_consumer(&self, by: &Actor, key: &ConsumerKey) -> Result<(), ManageError> {
        if !self.store.remove_consumer(key).await? {
            return Err(ManageError::ConsumerUnknown(key.clone()));
        }
        self.audit_consumer(by, "consumer_removed", key).await;
        Ok(())
    }

    /// A consumer as operators see it, without its secret. See [`view::with_secret`] for one that has just got it.
    pub fn view(&self, consumer: &Consumer) -> Map<String, Value> {
        view::consumer(consumer, self.settings.default_dialect)
    }

    /// Consumers as operators see them, each with its last use.
    ///
    /// # Errors
    /// The store fails.
    pub async fn views(
        &self,
        consumers: Vec<Consumer>,
    ) -> Result<Vec<(Consumer, Map<String, Value>)>, ManageError> {
        let keys: Vec<_> = consumers.iter().map(|one| one.key.clone()).collect();
        let uses = self.store.consumer_uses(&keys).await?;
        let with_use = |consumer: Consumer| {
            let used = uses.iter().find(|used| used.consumer == consumer.key);
            let view = view::with_use(self.view(&consumer), used);
            (consumer, view)
        };
        Ok(consumers.into_iter().map(with_use).collect())
    }

    async fn audit_consumer(&self, by: &Actor, event: &str, key: &ConsumerKey) {
        let about = CommandRecord {
            event: event.to_owned(),
            consumer: Some(key.to_string()),
            ..CommandRecord::default()
        };
        self.audit(by, about).await;
    }
}

fn given_or_random(secret: Option<Secret>) -> Result<Secret, ManageError> {
    match secret {
        None => Ok(random::secret()?),
        Some(secret) if secret.is_empty() => Err(ManageError::EmptySecret),
        Some(secret) => Ok(secret),
    }
}
