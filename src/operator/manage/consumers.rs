//! The life of a consumer.

pub(super) mod developer_links;
pub(super) mod lti_key_sign;
pub(super) mod registrations;

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    ASKED_MEMBERS, CONSUMER_FIELDS, ManageError, Management, Operator,
    change::{changed, guarded},
    check_members,
    input::{merged, take_name},
    view,
};
use crate::{
    base::{
        clock::UnixTime,
        secret::{Secret, random},
        text::{longest, names::ConsumerKey},
    },
    records::values::{
        record::Consumer,
        use_cases::{Added, Guard, Source},
    },
    telemetry::audit::CommandRecord,
};

/// The event of a rotation in the audit records.
pub const SECRET_ROTATED: &str = "consumer_secret_rotated";

impl Operator<'_> {
    /// Registers a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerExists`], [`ManageError::ConsumerRemoved`], [`ManageError::CannotSign`], or the store fails.
    pub async fn add_consumer(&self, consumer: Consumer) -> Result<Consumer, ManageError> {
        if !consumer.can_sign() {
            return Err(ManageError::CannotSign);
        }
        match self.manage.store.add_consumer(consumer.clone()).await? {
            Added::Added => {
                self.audit_consumer("consumer_registered", &consumer.key)
                    .await;
                Ok(consumer)
            }
            Added::Taken if self.manage.store.consumer(&consumer.key).await?.is_none() => {
                Err(ManageError::ConsumerRemoved(consumer.key))
            }
            Added::Taken => Err(ManageError::ConsumerExists(consumer.key)),
        }
    }

    /// Registers a consumer, as [`new_consumer`] makes it.
    ///
    /// # Errors
    /// Those of [`new_consumer`] and [`Self::add_consumer`].
    pub async fn register_consumer(
        &self,
        members: Map<String, Value>,
        secret: Option<Secret>,
    ) -> Result<Consumer, ManageError> {
        let consumer = new_consumer(members, secret, self.manage.clock.now())?;
        self.add_consumer(consumer).await
    }

    /// Changes a consumer by a JSON Merge Patch (RFC 7396) of the members of its view, and of `rsa_public_key`.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::ConsumerElsewhere`], [`ManageError::Invalid`],
    /// [`ManageError::Unapproved`], [`ManageError::DisabledAlready`], [`ManageError::CannotSign`], [`ManageError::Stale`], or the
    /// store fails.
    pub async fn patch_consumer(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        members: &Map<String, Value>,
    ) -> Result<Consumer, ManageError> {
        let change = |consumer: &mut Consumer| {
            *consumer = patched(consumer, members.clone())?;
            Ok(())
        };
        self.change_consumer(key, None, guard, &change).await
    }

    /// Accepts the calls of a consumer, or refuses them.
    ///
    /// # Errors
    /// As [`Self::patch_consumer`].
    pub async fn set_consumer_enabled(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        enabled: bool,
    ) -> Result<Consumer, ManageError> {
        let members = Map::from_iter([("enabled".to_owned(), enabled.into())]);
        self.patch_consumer(key, guard, &members).await
    }

    /// Gives a consumer another secret, a random one unless it is given. During `grace` the previous secret also verifies.
    ///
    /// # Errors
    /// [`ManageError::EmptySecret`], [`ManageError::LongSecret`], a failure of the random generator, and those of
    /// [`Self::patch_consumer`].
    pub async fn rotate_secret(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        secret: Option<Secret>,
        grace: Option<Duration>,
    ) -> Result<Consumer, ManageError> {
        let secret = given_or_random(secret)?;
        let now = self.manage.clock.now();
        let rotate = |consumer: &mut Consumer| {
            consumer.replace_secret(secret.clone(), now, grace);
            match consumer.may_have_its_secret() {
                true => Ok(()),
                false => Err(ManageError::EmptySecret),
            }
        };
        self.change_consumer(key, Some(SECRET_ROTATED), guard, &rotate)
            .await
    }

    /// Ends the grace of the previous secret.
    ///
    /// # Errors
    /// As [`Self::patch_consumer`].
    pub async fn end_grace(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
    ) -> Result<Consumer, ManageError> {
        let end = |consumer: &mut Consumer| {
            consumer.previous_secret = None;
            Ok(())
        };
        self.change_consumer(key, Some("consumer_grace_ended"), guard, &end)
            .await
    }

    pub(super) async fn change_consumer(
        &self,
        key: &ConsumerKey,
        event: Option<&str>,
        guard: Guard<'_, Consumer>,
        change: &(dyn Fn(&mut Consumer) -> Result<(), ManageError> + Sync),
    ) -> Result<Consumer, ManageError> {
        let store = &self.manage.store;
        let update = async |apply: &(dyn Fn(&mut Consumer) -> bool + Sync)| {
            store.update_consumer(key, apply).await
        };
        let changed = changed(guard, change, update, || ManageError::CannotSign);
        let Some((consumer, (members, changes))) = changed.await? else {
            return Err(self.manage.unknown_consumer(key).await);
        };
        let event = event.unwrap_or_else(|| match (&members[..], consumer.enabled) {
            ([one], true) if one == "enabled" => "consumer_enabled",
            ([one], false) if one == "enabled" => "consumer_disabled",
            _ => "consumer_changed",
        });
        let is_told = matches!(event, "consumer_changed" | "consumer_approved");
        let about = CommandRecord {
            event: event.to_owned(),
            consumer: Some(key.to_string()),
            members: is_told.then(|| members.join(" ")),
            changes: is_told.then_some(changes),
            ..CommandRecord::default()
        };
        self.audit(about).await;
        Ok(consumer)
    }

    /// Removes a consumer with all its tokens. The key is never used again.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn remove_consumer(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
    ) -> Result<(), ManageError> {
        let remove =
            async |guard: Guard<'_, Consumer>| self.manage.store.remove_consumer(key, guard).await;
        if !guarded(guard, remove).await? {
            return Err(self.manage.unknown_consumer(key).await);
        }
        self.audit_consumer("consumer_removed", key).await;
        Ok(())
    }

    pub(super) async fn audit_consumer(&self, event: &str, key: &ConsumerKey) {
        let about = CommandRecord {
            event: event.to_owned(),
            consumer: Some(key.to_string()),
            ..CommandRecord::default()
        };
        self.audit(about).await;
    }
}

impl Management {
    /// Finds a consumer.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], or the store fails.
    pub async fn consumer(&self, key: &ConsumerKey) -> Result<Consumer, ManageError> {
        Ok(self.consumer_found(key).await?.0)
    }

    /// As [`Self::consumer`], with the time at which the application had it, if it is one of the application.
    ///
    /// # Errors
    /// As [`Self::consumer`].
    pub async fn consumer_found(
        &self,
        key: &ConsumerKey,
    ) -> Result<(Consumer, Option<UnixTime>), ManageError> {
        let found = self.store.consumer_from(key, false).await?;
        let (consumer, source) = found.ok_or_else(|| ManageError::ConsumerUnknown(key.clone()))?;
        Ok((consumer, self.looked_up_at(source)))
    }

    /// The time of an answer of the application, which has just come.
    pub(super) fn looked_up_at(&self, source: Source) -> Option<UnixTime> {
        (source == Source::External).then(|| self.clock.now())
    }

    /// Why a consumer cannot be changed: no such one is registered here.
    async fn unknown_consumer(&self, key: &ConsumerKey) -> ManageError {
        match self.store.consumer(key).await {
            Ok(None) => ManageError::ConsumerUnknown(key.clone()),
            Ok(Some(_)) => ManageError::ConsumerElsewhere(key.clone()),
            Err(error) => error.into(),
        }
    }

    /// A consumer as operators see it, without its secret. See [`view::with_secret`] for one that has just got it.
    pub fn view(&self, consumer: &Consumer) -> Map<String, Value> {
        view::consumer(consumer, self.signature.default_dialect)
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
            let own = uses.iter().filter(|used| used.consumer == consumer.key);
            let view = view::with_uses(self.view(&consumer), own);
            (consumer, view)
        };
        Ok(consumers.into_iter().map(with_use).collect())
    }
}

/// A consumer with these members, which is not registered yet: those of a view, `key` and `rsa_public_key`. Key and secret
/// are random unless given.
///
/// # Errors
/// [`ManageError::Invalid`], [`ManageError::CannotSign`], [`ManageError::EmptySecret`], [`ManageError::LongSecret`], or a
/// failure of the random generator.
pub fn new_consumer(
    mut members: Map<String, Value>,
    secret: Option<Secret>,
    now: UnixTime,
) -> Result<Consumer, ManageError> {
    let key = take_name(&mut members, "key")?;
    let key = key.map_or_else(random::name, Ok)?;
    let secret = given_or_random(secret)?;
    let new = Consumer::new(key, secret, String::new(), now);
    patched(&new, members)
}

fn given_or_random(secret: Option<Secret>) -> Result<Secret, ManageError> {
    match secret {
        None => Ok(random::secret()?),
        Some(secret) => check_secret(&secret).map(|()| secret),
    }
}

/// Checks the length of a secret that is given. Whether it may be empty depends on the consumer.
///
/// # Errors
/// [`ManageError::LongSecret`]
pub fn check_secret(secret: &Secret) -> Result<(), ManageError> {
    match secret.expose().len() {
        ..=longest::SECRET => Ok(()),
        _ => Err(ManageError::LongSecret),
    }
}

/// A consumer after a JSON Merge Patch (RFC 7396); key and secrets stay. A list gets each item once.
///
/// Only what is given is checked: what the consumer has was checked when it was given, and a rule that has become stricter
/// since must not keep anybody from disabling it.
///
/// # Errors
/// [`ManageError::Invalid`], [`ManageError::Unapproved`], [`ManageError::DisabledAlready`], [`ManageError::CannotSign`] and
/// [`ManageError::EmptySecret`]
pub fn patched(
    consumer: &Consumer,
    mut members: Map<String, Value>,
) -> Result<Consumer, ManageError> {
    check_members(CONSUMER_FIELDS, &mut members)?;
    // An approval would undo it.
    if consumer.is_unapproved() && members.get("enabled") == Some(&Value::Bool(false)) {
        return Err(ManageError::DisabledAlready(consumer.key.clone()));
    }
    for items in members.values_mut().filter_map(Value::as_array_mut) {
        let mut distinct = Vec::new();
        items.retain(|item| {
            let is_new = !distinct.contains(item);
            distinct.extend(is_new.then(|| item.clone()));
            is_new
        });
    }
    let fixed = ["key", "created_at", "previous_secret_until"];
    let fixed = [&fixed[..], &ASKED_MEMBERS].concat();
    let merged: Consumer = merged(consumer, members, &fixed)?;
    // An empty one verifies nothing without its deviation.
    let previous = consumer.previous_secret.clone();
    let previous =
        previous.filter(|(secret, _)| !secret.is_empty() || merged.accepts_empty_secret());
    let patched = Consumer {
        secret: consumer.secret.clone(),
        previous_secret: previous,
        ..merged
    };
    if patched.enabled && !consumer.enabled && !patched.may_be_enabled() {
        return Err(ManageError::Unapproved(patched.key));
    }
    if !patched.can_sign() {
        return Err(ManageError::CannotSign);
    }
    match patched.may_have_its_secret() {
        true => Ok(patched),
        false => Err(ManageError::EmptySecret),
    }
}
