//! Consumers, ready to verify.
//!
//! There may be a million of them and of access tokens, so they hold only the fields that verification needs: with the overhead
//! of the cache and all else that their use leaves in memory, a consumer and a token together stay below 1,950 bytes.

use std::{net::IpAddr, ops::Deref, sync::OnceLock};

use super::{field_values::FieldValues, last_use::LastUse, stamp::Stamp};
use crate::{
    base::{
        clock::UnixTime,
        network::{self, Network},
        rate::Rate,
        secret::Secret,
        text::names::{ConsumerKey, Permission},
    },
    oauth::{DeviationSet, Key, KeyStates, Pinned, RsaPublicKey, SignatureMethod},
    records::{
        credentials::cache::CacheEntry,
        values::record::{BEARER, BodyHash, Consumer, ConsumerUse, Dialect},
    },
};

/// A consumer, ready to verify.
#[derive(Debug)]
pub struct ConsumerCredentials {
    facts: ConsumerFacts,
    /// The RSA key, if there is one that can be read.
    pub rsa: Option<Box<RsaPublicKey>>,
    // Most calls bring a token, which has values and states of its own. So these are made when they are first needed.
    values: OnceLock<Option<Box<FieldValues>>>,
    /// The states of [`Self::secrets`].
    states: OnceLock<Box<[SecretStates; 2]>>,
    last_use: LastUse<()>,
    last_use_by_bearer: LastUse<()>,
    stamp: Stamp,
}

/// What the record of a consumer says; all else is made from it.
#[derive(Debug, PartialEq)]
pub struct ConsumerFacts {
    /// [`Consumer::key`]
    pub key: ConsumerKey,
    /// [`Consumer::secret`]
    pub secret: Secret,
    /// [`Consumer::callbacks`]
    pub callbacks: Box<[String]>,
    /// [`Consumer::permissions`]
    pub permissions: Box<[Permission]>,
    /// [`Consumer::dialect`]
    pub dialect: Option<Dialect>,
    rsa_public_key: Option<Box<str>>,
    /// [`Consumer::rsa_only`]
    pub rsa_only: bool,
    /// [`Consumer::accept`]
    pub accept: DeviationSet,
    /// [`Consumer::pinned`]
    pub pinned: Box<[Pinned]>,
    /// [`Consumer::body_hash`] is [`BodyHash::Required`].
    pub needs_body_hash: bool,
    from: Box<[Network]>,
    /// [`Consumer::rate`]
    pub rate: Option<Rate>,
    /// [`Consumer::enforce`]
    pub enforce: bool,
    /// [`Consumer::enabled`], which no consumer is that waits for approval.
    pub enabled: bool,
    /// [`Consumer::previous_secret`]
    pub previous_secret: Option<(Secret, UnixTime)>,
}

impl Deref for ConsumerCredentials {
    type Target = ConsumerFacts;

    fn deref(&self) -> &ConsumerFacts {
        &self.facts
    }
}

/// Which secret of a consumer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAge {
    /// The one that the consumer has.
    Current,
    /// The one that it replaced.
    Previous,
}

/// The HMAC states of one secret for calls without a token.
#[derive(Debug, Default)]
struct SecretStates {
    joined: KeyStates,
    alone: KeyStates,
}

impl ConsumerCredentials {
    /// Those of a record, in no cache.
    pub fn outside_cache(consumer: Consumer) -> Self {
        Self::new(consumer, Stamp::outside())
    }

    pub(super) fn new(consumer: Consumer, stamp: Stamp) -> Self {
        let rsa = consumer.rsa_public_key.as_deref().and_then(|pem| {
            // The key was checked when it was registered, so another program has changed it. The secret still works.
            RsaPublicKey::from_pem(pem)
                .inspect_err(|error| {
                    tracing::error!(consumer = %consumer.key, %error, "the RSA key in the store cannot be used");
                })
                .ok()
        });
        let enabled = consumer.enabled && !consumer.is_unapproved();
        let facts = ConsumerFacts {
            key: consumer.key,
            secret: consumer.secret,
            callbacks: consumer.callbacks.into(),
            permissions: consumer.permissions.into(),
            dialect: consumer.dialect,
            rsa_public_key: consumer.rsa_public_key.map(String::into_boxed_str),
            rsa_only: consumer.rsa_only,
            accept: consumer.accept.into_iter().collect(),
            pinned: consumer.pinned.into(),
            needs_body_hash: consumer.body_hash == Some(BodyHash::Required),
            from: consumer.from.into(),
            rate: consumer.rate,
            enforce: consumer.enforce,
            enabled,
            previous_secret: consumer.previous_secret,
        };
        Self {
            facts,
            rsa: rsa.map(Box::new),
            values: OnceLock::new(),
            states: OnceLock::new(),
            last_use: LastUse::default(),
            last_use_by_bearer: LastUse::default(),
            stamp,
        }
    }

    /// Whether it may call from there.
    pub fn may_call_from(&self, address: Option<IpAddr>) -> bool {
        network::admit(self.from.iter().map(|network| &network.0), address)
    }

    /// The values of the identity headers of a call without a token; `None` if they are not valid in a field.
    pub fn field_values(&self) -> Option<&FieldValues> {
        let make = || FieldValues::new(None, &self.key, &self.permissions).ok();
        let values = self.values.get_or_init(|| make().map(Box::new));
        values.as_deref()
    }

    /// The secrets that verify: the current one, and the one before while its grace lasts.
    pub fn secrets(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, &Secret)> {
        let previous = self.previous_secret.as_ref();
        let graced = previous.filter(move |(_, until)| now < *until);
        let graced = graced.map(|(secret, _)| (SecretAge::Previous, secret));
        std::iter::once((SecretAge::Current, &self.secret)).chain(graced)
    }

    /// The keys of calls without a token, in the order of [`Self::secrets`].
    pub fn keys(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, Key<'_>)> {
        let secrets = self.secrets(now).zip(self.states());
        secrets
            .map(|((age, secret), states)| (age, key(secret.expose(), Some(b""), &states.joined)))
    }

    /// As [`Self::keys`], for the key that the service's description defines: the secret without `&`.
    pub fn keys_alone(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, Key<'_>)> {
        let secrets = self.secrets(now).zip(self.states());
        secrets.map(|((age, secret), states)| (age, key(secret.expose(), None, &states.alone)))
    }

    /// Notes a use; `true` if it has to be put on the list of those to write.
    pub(super) fn touch(&self, now: UnixTime, method: SignatureMethod, dialect: Dialect) -> bool {
        self.last_use
            .note(now, (method as u8) << 1 | dialect as u8, ())
    }

    /// Notes a use of a Bearer token in the same way.
    pub(super) fn touch_by_bearer(&self, now: UnixTime) -> bool {
        self.last_use_by_bearer.note(now, 0, ())
    }

    /// Takes the uses for writing, one by each door.
    pub(super) fn take_uses(&self) -> impl Iterator<Item = ConsumerUse> {
        let new = |last_used_at, method: &str, dialect| ConsumerUse {
            consumer: self.key.clone(),
            last_used_at,
            method: Some(method.to_owned()),
            dialect,
        };
        let signed = self.last_use.take().and_then(|(at, how, ())| {
            let method = SignatureMethod::ALL.get(usize::from(how >> 1))?;
            let dialect = match how & 1 {
                0 => Dialect::Rfc5849,
                _ => Dialect::Legacy,
            };
            Some(new(at, method.as_str(), Some(dialect)))
        });
        let by_bearer = self.last_use_by_bearer.take();
        let by_bearer = by_bearer.map(|(at, ..)| new(at, BEARER, None));
        signed.into_iter().chain(by_bearer)
    }

    fn states(&self) -> &[SecretStates; 2] {
        self.states.get_or_init(Box::default)
    }
}

impl CacheEntry for ConsumerCredentials {
    fn key(&self) -> &[u8] {
        self.key.as_str().as_bytes()
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn put_use_back(&self) -> bool {
        self.last_use.put_back() | self.last_use_by_bearer.put_back()
    }

    fn inherit_from(&self, old: &Self) -> bool {
        self.facts == old.facts
    }
}

/// The key of these secrets, with its HMAC states.
pub(super) const fn key<'a>(
    consumer_secret: &'a [u8],
    token_secret: Option<&'a [u8]>,
    states: &'a KeyStates,
) -> Key<'a> {
    Key {
        consumer_secret,
        token_secret,
        states,
    }
}
