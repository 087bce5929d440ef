//! The life of a consumer.

use std::time::Duration;

use super::{Actor, ManageError, Management, view::ConsumerView};
use crate::{
    issue::random,
    names::{ConsumerKey, Permission},
    secret::Secret,
    store::{
        port::{Added, Updated},
        record::{Consumer, ConsumerUpdate, Dialect},
    },
    telemetry::audit::CommandRecord,
};

/// A consumer to register. What is not given is random, empty or off.
#[derive(Debug, Clone, Default)]
pub struct NewConsumer {
    /// Its key.
    pub key: Option<ConsumerKey>,
    /// Its secret.
    pub secret: Option<Secret>,
    /// What the consent page calls it.
    pub name: String,
    /// What the consent page says of it.
    pub description: Option<String>,
    /// Its web page.
    pub website: Option<String>,
    /// Its callbacks, checked for registration.
    pub callbacks: Vec<String>,
    /// The permissions that it may ask for.
    pub permissions: Vec<Permission>,
    /// Its dialect; `None` follows `signature.default_dialect`.
    pub dialect: Option<Dialect>,
    /// Its public key for the RSA methods, as PEM.
    pub rsa_public_key: Option<String>,
    /// Accept only the RSA methods.
    pub rsa_only: bool,
    /// Enforce its calls even where the configuration only observes.
    pub enforce: bool,
}

impl Management {
    /// Registers a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerExists`], [`ManageError::ConsumerRemoved`], [`ManageError::CannotSign`], [`ManageError::EmptySecret`], a failure of the store or
    /// of the random generator.
    pub async fn add_consumer(
        &self,
        by: &Actor,
        new: NewConsumer,
    ) -> Result<Consumer, ManageError> {
        let consumer = Consumer {
            key: new.key.map_or_else(random::name, Ok)?,
            secret: given_or_random(new.secret)?,
            previous_secret: None,
            rsa_public_key: new.rsa_public_key,
            name: new.name,
            description: new.description,
            website: new.website,
            callbacks: distinct(new.callbacks),
            permissions: distinct(new.permissions),
            dialect: new.dialect,
            enforce: new.enforce,
            rsa_only: new.rsa_only,
            enabled: true,
            created_at: self.clock.now(),
        };
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

    /// Lists consumers by their keys, from after `after`, at most `limit`; with `unused_for` only those that were registered
    /// and whose access tokens were last used or issued at least that long ago.
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

    /// Changes a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::CannotSign`], or the store fails.
    pub async fn update_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        mut update: ConsumerUpdate,
    ) -> Result<Consumer, ManageError> {
        update.callbacks = update.callbacks.map(distinct);
        update.permissions = update.permissions.map(distinct);
        let event = match update {
            ConsumerUpdate {
                end_grace: true, ..
            } => "consumer_grace_ended",
            ConsumerUpdate {
                enabled: Some(true),
                ..
            } => "consumer_enabled",
            ConsumerUpdate {
                enabled: Some(false),
                ..
            } => "consumer_disabled",
            _ => "consumer_changed",
        };
        match self.store.update_consumer(key, update).await? {
            Updated::Consumer(consumer) => {
                self.audit_consumer(by, event, key).await;
                Ok(*consumer)
            }
            Updated::Unknown => Err(ManageError::ConsumerUnknown(key.clone())),
            Updated::CannotSign => Err(ManageError::CannotSign),
        }
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
        let rotated = self.store.rotate_consumer_secret(key, secret, until);
        let consumer = rotated.await?;
        let consumer = consumer.ok_or_else(|| ManageError::ConsumerUnknown(key.clone()))?;
        self.audit_consumer(by, "consumer_secret_rotated", key)
            .await;
        Ok(consumer)
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

    /// The view of a consumer, without its secret.
    #[must_use]
    pub fn view<'c>(&self, consumer: &'c Consumer) -> ConsumerView<'c> {
        ConsumerView::new(consumer, self.settings.default_dialect)
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

/// Each item once, in the order of their first places.
fn distinct<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}
