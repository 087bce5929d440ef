//! The life of a consumer.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{
    Actor, Change, InvalidInput, ManageError, Management, Watched,
    input::{merged, read},
    view,
};
use crate::{
    clock::UnixTime,
    issue::{
        callback::{self, CallbackError},
        random,
        registration::{self, InvalidText, InvalidWebPage},
    },
    names::ConsumerKey,
    oauth::{RsaPublicKey, rsa::InvalidRsaKey},
    secret::Secret,
    store::{
        port::{Added, Guard, RecordFilter, Updated},
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
        filter: RecordFilter,
        unused_for: Option<Duration>,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>, ManageError> {
        let filter = RecordFilter {
            unused_since: self.unused_since(unused_for),
            ..filter
        };
        Ok(self.store.consumers(&filter, after, limit).await?)
    }

    /// Registers a consumer with these members: those of a view, `key`, `secret` and `rsa_public_key`.
    ///
    /// # Errors
    /// [`ManageError::Invalid`], and those of [`Self::add_consumer`].
    pub async fn register_consumer(
        &self,
        by: &Actor,
        mut members: Map<String, Value>,
    ) -> Result<Consumer, ManageError> {
        let key = members.remove("key").unwrap_or_default();
        let Key { key } = read(json!({ "key": key }))?;
        let secret = match members.remove("secret") {
            None | Some(Value::Null) => None,
            Some(Value::String(secret)) => Some(Secret::from(secret)),
            // Serde's message repeats a number, which may be meant as the secret.
            Some(_) => return Err(InvalidInput::member("secret", "this is not a text").into()),
        };
        if !members.contains_key("name") {
            return Err(InvalidInput::member("name", "a name is needed").into());
        }
        let now = self.clock.now();
        let mut consumer = new_consumer(key, secret, String::new(), now)?;
        patch(&mut consumer, members).map_err(|error| match error {
            ManageError::CannotSign => {
                let needed = InvalidConsumer::CannotSign;
                InvalidInput::member("rsa_only", needed).into()
            }
            error => error,
        })?;
        self.add_consumer(by, consumer).await
    }

    /// Changes a consumer by a JSON Merge Patch (RFC 7396) of the members of its view, and of `rsa_public_key`.
    ///
    /// # Errors
    /// [`ManageError::Invalid`], and those of [`Self::update_consumer`].
    pub async fn patch_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        members: &Map<String, Value>,
    ) -> Result<Consumer, ManageError> {
        let change = |consumer: &mut Consumer| patch(consumer, members.clone());
        self.change_consumer(by, key, None, guard, &change).await
    }

    /// Lists the consumers whose previous secret still verifies, by the end of the grace, at most `limit`.
    ///
    /// # Errors
    /// The store fails.
    pub async fn consumers_in_grace(&self, limit: u32) -> Result<Vec<Consumer>, ManageError> {
        let now = self.clock.now();
        Ok(self.store.consumers_in_grace(now, limit).await?)
    }

    /// Changes a consumer as `change` does.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::CannotSign`], [`ManageError::Stale`], or the store fails.
    pub async fn update_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        change: impl Fn(&mut Consumer) + Sync,
    ) -> Result<Consumer, ManageError> {
        let change = |consumer: &mut Consumer| {
            change(consumer);
            Ok(())
        };
        self.change_consumer(by, key, None, guard, &change).await
    }

    /// Accepts the calls of a consumer, or refuses them.
    ///
    /// # Errors
    /// As [`Self::update_consumer`].
    pub async fn set_consumer_enabled(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        enabled: bool,
    ) -> Result<Consumer, ManageError> {
        let members = Map::from_iter([("enabled".to_owned(), enabled.into())]);
        self.patch_consumer(by, key, guard, &members).await
    }

    /// Gives a consumer another secret, a random one unless it is given. During `grace` the previous secret also verifies.
    ///
    /// # Errors
    /// [`ManageError::EmptySecret`], a failure of the random generator, and those of [`Self::update_consumer`].
    pub async fn rotate_secret(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        secret: Option<Secret>,
        grace: Option<Duration>,
    ) -> Result<Consumer, ManageError> {
        let secret = given_or_random(secret)?;
        let until = grace.map(|grace| self.clock.now().after(grace));
        let rotate = |consumer: &mut Consumer| {
            let before = std::mem::replace(&mut consumer.secret, secret.clone());
            consumer.previous_secret = until.map(|until| (before, until));
            Ok(())
        };
        self.change_consumer(by, key, Some("consumer_secret_rotated"), guard, &rotate)
            .await
    }

    /// Ends the grace of the previous secret.
    ///
    /// # Errors
    /// As [`Self::update_consumer`].
    pub async fn end_grace(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
    ) -> Result<Consumer, ManageError> {
        let end = |consumer: &mut Consumer| {
            consumer.previous_secret = None;
            Ok(())
        };
        self.change_consumer(by, key, Some("consumer_grace_ended"), guard, &end)
            .await
    }

    async fn change_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        event: Option<&str>,
        guard: Guard<'_, Consumer>,
        change: &(dyn Fn(&mut Consumer) -> Result<(), ManageError> + Sync),
    ) -> Result<Consumer, ManageError> {
        let change = Change::new(guard, change);
        let apply = |consumer: &mut Consumer| change.apply(consumer);
        let updated = self.store.update_consumer(key, &apply).await?;
        if updated == Updated::Unknown {
            return Err(self.unknown_consumer(key).await);
        }
        let members = change.members();
        let unknown = || ManageError::ConsumerUnknown(key.clone());
        let consumer = change.result(updated, unknown, || ManageError::CannotSign)?;
        let event = event.unwrap_or_else(|| match (&members[..], consumer.enabled) {
            ([one], true) if one == "enabled" => "consumer_enabled",
            ([one], false) if one == "enabled" => "consumer_disabled",
            _ => "consumer_changed",
        });
        let about = CommandRecord {
            event: event.to_owned(),
            consumer: Some(key.to_string()),
            members: (event == "consumer_changed").then(|| members.join(" ")),
            ..CommandRecord::default()
        };
        self.audit(by, about).await;
        Ok(consumer)
    }

    /// Why a consumer cannot be changed: no such one is registered here.
    async fn unknown_consumer(&self, key: &ConsumerKey) -> ManageError {
        match self.store.consumer(key).await {
            Ok(None) => ManageError::ConsumerUnknown(key.clone()),
            Ok(Some(_)) => ManageError::ConsumerElsewhere(key.clone()),
            Err(error) => error.into(),
        }
    }

    /// Removes a consumer with all its tokens. The key is never used again.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn remove_consumer(
        &self,
        by: &Actor,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
    ) -> Result<(), ManageError> {
        let watched = Watched::new(guard);
        let check = |consumer: &Consumer| watched.check(consumer);
        if !self.store.remove_consumer(key, Some(&check)).await? {
            return Err(match watched.refusal() {
                Some(stale) => stale,
                None => self.unknown_consumer(key).await,
            });
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

#[derive(serde::Deserialize)]
struct Key {
    key: Option<ConsumerKey>,
}

/// Merges members into a consumer, whose key and secrets stay.
fn patch(consumer: &mut Consumer, members: Map<String, Value>) -> Result<(), ManageError> {
    const FIXED: [&str; 3] = ["key", "created_at", "previous_secret_until"];

    let patched: Consumer = merged(consumer, members, &FIXED)?;
    let secrets = (consumer.secret.clone(), consumer.previous_secret.take());
    *consumer = patched;
    (consumer.secret, consumer.previous_secret) = secrets;
    check_consumer(consumer)?;
    if let Some(pem) = &consumer.rsa_public_key {
        let block = registration::rsa_public_key(pem).map_err(InvalidConsumer::from)?;
        consumer.rsa_public_key = Some(block);
    }
    Ok(())
}

/// Why a consumer cannot be registered.
#[derive(Debug, Error)]
pub enum InvalidConsumer {
    /// A text that the consent page shows.
    #[error("{0}: {1}")]
    Text(&'static str, InvalidText),
    /// The callback of this place.
    #[error("callback {1:?}: {2}")]
    Callback(usize, String, CallbackError),
    /// The web page.
    #[error("website: {0}")]
    Website(#[from] InvalidWebPage),
    /// The public key.
    #[error("rsa_public_key: {0}")]
    RsaKey(#[from] InvalidRsaKey),
    /// It would be restricted to an RSA key that it does not have.
    #[error("rsa_only needs rsa_public_key")]
    CannotSign,
}

impl From<InvalidConsumer> for ManageError {
    fn from(error: InvalidConsumer) -> Self {
        let detail = error.to_string();
        let name = match error {
            InvalidConsumer::Text(name, _) => name.to_owned(),
            InvalidConsumer::Callback(place, ..) => format!("callbacks/{place}"),
            InvalidConsumer::Website(_) => "website".to_owned(),
            InvalidConsumer::RsaKey(_) => "rsa_public_key".to_owned(),
            InvalidConsumer::CannotSign => return Self::CannotSign,
        };
        InvalidInput::member(&name, detail).into()
    }
}

/// Checks what its type does not, and writes the web page as a browser does.
///
/// # Errors
/// [`InvalidConsumer`]
pub fn check_consumer(consumer: &mut Consumer) -> Result<(), InvalidConsumer> {
    let text = |name, text: &str| {
        let checked = registration::shown_name(text);
        checked.map_err(|error| InvalidConsumer::Text(name, error))
    };
    text("name", &consumer.name)?;
    if let Some(description) = &consumer.description {
        text("description", description)?;
    }
    for (place, registered) in consumer.callbacks.iter().enumerate() {
        callback::check_registration(registered)
            .map_err(|error| InvalidConsumer::Callback(place, registered.clone(), error))?;
    }
    if let Some(pem) = &consumer.rsa_public_key {
        RsaPublicKey::from_pem(pem)?;
    }
    let website = consumer.website.as_deref().map(registration::web_page);
    consumer.website = website.transpose()?;
    let can_sign = consumer.can_sign();
    can_sign.then_some(()).ok_or(InvalidConsumer::CannotSign)
}
