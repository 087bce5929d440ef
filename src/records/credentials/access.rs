//! Access tokens, ready to verify; they hold only as much as [consumers](super::consumer) do.

use std::{
    net::IpAddr,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::{
    consumer::{ConsumerCredentials, SecretAge, key},
    field_values::FieldValues,
    last_use::LastUse,
    stamp::Stamp,
};
use crate::{
    base::{
        clock::UnixTime,
        secret::Secret,
        text::names::{Permission, UserId},
    },
    oauth::{Key, KeyStates},
    records::{
        credentials::cache::CacheEntry,
        values::record::{AccessToken, TokenUse},
    },
};

/// An access token with its consumer, ready to verify.
#[derive(Debug)]
pub struct AccessCredentials {
    /// The consumer that it belongs to.
    pub consumer: Arc<ConsumerCredentials>,
    facts: AccessFacts,
    values: Option<FieldValues>,
    states: KeyStates,
    /// The states under the consumer's previous secret.
    previous_states: OnceLock<Box<KeyStates>>,
    last_use: LastUse<Option<IpAddr>>,
    stamp: Stamp,
}

/// What the record of an access token says; all else is made from it.
#[derive(Debug, PartialEq)]
pub struct AccessFacts {
    /// The identifier.
    pub token: Box<str>,
    /// The shared secret.
    pub secret: Secret,
    /// The user it acts for.
    pub user: UserId,
    /// The permissions of a call with this token: those that the consumer still has.
    pub granted: Box<[Permission]>,
    /// [`AccessToken::issued_at`]
    pub issued_at: UnixTime,
    /// [`AccessToken::expires_at`]
    pub expires_at: Option<UnixTime>,
    /// It was revoked.
    pub is_revoked: bool,
}

impl Deref for AccessCredentials {
    type Target = AccessFacts;

    fn deref(&self) -> &AccessFacts {
        &self.facts
    }
}

impl AccessCredentials {
    /// Those of a record, in no cache.
    pub fn outside_cache(token: AccessToken, consumer: Arc<ConsumerCredentials>) -> Self {
        Self::new(token, consumer, Stamp::outside())
    }

    pub(super) fn new(
        token: AccessToken,
        consumer: Arc<ConsumerCredentials>,
        stamp: Stamp,
    ) -> Self {
        // The consumer's own names, so that its tokens share their memory.
        let of_consumer = |permission| consumer.permissions.iter().find(|own| *own == permission);
        let granted = token.permissions.iter().filter_map(of_consumer).cloned();
        let granted: Box<[Permission]> = granted.collect();
        let values = FieldValues::new(Some(&token.user), &consumer.key, &granted).ok();
        let facts = AccessFacts {
            token: token.token.into(),
            secret: token.secret,
            user: token.user,
            granted,
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            is_revoked: token.revoked_at.is_some(),
        };
        Self {
            consumer,
            facts,
            values,
            states: KeyStates::default(),
            previous_states: OnceLock::new(),
            last_use: LastUse::written(token.last_used_at, token.last_used_from),
            stamp,
        }
    }

    /// The values of the identity headers of a call with this token; `None` if they are not valid in a field.
    pub const fn field_values(&self) -> Option<&FieldValues> {
        self.values.as_ref()
    }

    /// The keys of calls with this token, in the order of [`ConsumerCredentials::secrets`].
    pub fn keys(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, Key<'_>)> {
        self.consumer.secrets(now).map(|(age, secret)| {
            let states = match age {
                SecretAge::Current => &self.states,
                SecretAge::Previous => self.previous_states.get_or_init(Box::default),
            };
            let own = self.secret.expose();
            (age, key(secret.expose(), Some(own), states))
        })
    }

    /// The last use known here, written or not.
    pub fn last_used(&self) -> Option<UnixTime> {
        self.last_use.at()
    }

    /// Notes a use; `true` if it has to be put on the list of those to write.
    pub(super) fn touch(&self, now: UnixTime, from: Option<IpAddr>) -> bool {
        self.last_use.note(now, 0, from)
    }

    /// Notes the last use that a former entry knows, in the same way.
    pub(super) fn touch_as(&self, former: &Self) -> bool {
        let used = former.last_use.get();
        used.is_some_and(|(at, _, from)| self.touch(at, from))
    }

    /// Takes the use for writing.
    pub(super) fn take_use(&self) -> Option<TokenUse> {
        let (last_used_at, _, last_used_from) = self.last_use.take()?;
        Some(TokenUse {
            token: self.token.clone().into(),
            last_used_at,
            last_used_from,
        })
    }
}

impl CacheEntry for AccessCredentials {
    fn key(&self) -> &[u8] {
        self.token.as_bytes()
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn put_use_back(&self) -> bool {
        self.last_use.put_back()
    }

    fn inherit_from(&self, old: &Self) -> bool {
        // Each may know a use that the other does not: one from another process, one not written yet.
        self.last_use.learn_from(&old.last_use);
        old.last_use.learn_from(&self.last_use);
        Arc::ptr_eq(&self.consumer, &old.consumer) && self.facts == old.facts
    }
}
