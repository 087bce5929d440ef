//! Consumers, ready to verify.
//!
//! There may be a million of them and of access tokens, so they hold only the fields that verification needs: with the overhead of the
//! cache and all else that their use leaves in memory, a consumer and a token together stay below 1,300 bytes.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use http::HeaderValue;

use super::{
    field_values::{CachedAssertion, FieldValues},
    last_use::LastUse,
    permissions::PermissionList,
    records::CacheEntry,
    stamp::Stamp,
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey, rate::Rate, secret::Secret},
    oauth::{DeviationSet, Key, KeyStates, Pinned, RsaPublicKey, SignatureMethod},
    records::store::record::{BodyHash, Consumer, ConsumerUse, Dialect},
};

/// A consumer, ready to verify.
#[derive(Debug)]
pub struct ConsumerCredentials {
    /// [`Consumer::key`]
    pub key: ConsumerKey,
    /// [`Consumer::secret`]
    pub secret: Secret,
    /// [`Consumer::permissions`]
    pub permissions: Arc<PermissionList>,
    /// [`Consumer::dialect`]
    pub dialect: Option<Dialect>,
    /// [`Consumer::accept`]
    pub accept: DeviationSet,
    /// [`Consumer::body_hash`] is [`BodyHash::Required`].
    pub needs_body_hash: bool,
    /// [`Consumer::enforce`]
    pub enforce: bool,
    /// [`Consumer::enabled`]
    pub enabled: bool,
    /// [`Consumer::rsa_only`]
    pub rsa_only: bool,
    // Most calls bring a token, which has its own.
    without_token: OnceLock<Box<WithoutToken>>,
    rare: Option<Box<Rare>>,
    last_use: LastUse<()>,
    stamp: Stamp,
}

/// Which secret of a consumer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAge {
    /// The one that the consumer has.
    Current,
    /// The one that it replaced.
    Previous,
}

/// The parts that few consumers have, or few calls need.
#[derive(Debug, Default)]
struct Rare {
    callbacks: Box<[String]>,
    pinned: Box<[Pinned]>,
    rate: Option<Rate>,
    rsa_public_key: Option<String>,
    rsa: Option<RsaPublicKey>,
    previous: Option<(Secret, UnixTime)>,
    previous_keys: ConsumerKeys,
}

impl Rare {
    /// `None` of a consumer that has none of these parts.
    fn into_box(self) -> Option<Box<Self>> {
        (!self.is_as_registered(&Self::default())).then(|| Box::new(self))
    }

    /// Whether both are of the same registration.
    fn is_as_registered(&self, other: &Self) -> bool {
        let Self {
            callbacks,
            pinned,
            rate,
            rsa_public_key,
            previous,
            // Made from the others.
            rsa: _,
            previous_keys: _,
        } = self;
        *callbacks == other.callbacks
            && *pinned == other.pinned
            && *rate == other.rate
            && *rsa_public_key == other.rsa_public_key
            && *previous == other.previous
    }
}

/// The parts that calls without a token need.
#[derive(Debug)]
struct WithoutToken {
    keys: ConsumerKeys,
    /// The key as the value of a field, if it is valid there.
    name: Option<HeaderValue>,
    assertion: ArcSwapOption<CachedAssertion>,
}

/// The keys of one secret for calls without a token.
#[derive(Debug, Default)]
struct ConsumerKeys {
    joined: KeyStates,
    alone: KeyStates,
}

impl ConsumerCredentials {
    /// Those of a record, in no cache.
    pub fn outside_cache(consumer: Consumer) -> Self {
        let permissions = PermissionList::new(&consumer.permissions);
        Self::new(consumer, permissions.into(), Stamp::outside())
    }

    pub(super) fn new(consumer: Consumer, permissions: Arc<PermissionList>, stamp: Stamp) -> Self {
        let rsa = consumer.rsa_public_key.as_deref().and_then(|pem| {
            // The key was checked when it was registered, so another program has changed it. The secret still works.
            RsaPublicKey::from_pem(pem)
                .inspect_err(|error| {
                    tracing::error!(consumer = %consumer.key, %error, "the RSA key in the store cannot be used");
                })
                .ok()
        });
        let rare = Rare {
            callbacks: consumer.callbacks.into(),
            pinned: consumer.pinned.into(),
            rate: consumer.rate,
            rsa_public_key: consumer.rsa_public_key,
            rsa,
            previous: consumer.previous_secret,
            previous_keys: ConsumerKeys::default(),
        };
        Self {
            rare: rare.into_box(),
            key: consumer.key,
            secret: consumer.secret,
            permissions,
            dialect: consumer.dialect,
            accept: consumer.accept.into_iter().collect(),
            needs_body_hash: consumer.body_hash == Some(BodyHash::Required),
            enforce: consumer.enforce,
            enabled: consumer.enabled,
            rsa_only: consumer.rsa_only,
            without_token: OnceLock::new(),
            last_use: LastUse::default(),
            stamp,
        }
    }

    /// The values of the identity headers of a call without a token; `None` if they are not valid in a field.
    pub fn field_values(&self) -> Option<FieldValues<'_>> {
        let own = self.without_token();
        Some(FieldValues {
            user: None,
            consumer: own.name.as_ref()?,
            permissions: self.permissions.value()?,
            assertion: &own.assertion,
        })
    }

    fn without_token(&self) -> &WithoutToken {
        self.without_token.get_or_init(|| {
            Box::new(WithoutToken {
                keys: ConsumerKeys::default(),
                name: HeaderValue::from_str(self.key.as_str()).ok(),
                assertion: ArcSwapOption::empty(),
            })
        })
    }

    /// The registered callbacks.
    pub fn callbacks(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.callbacks)
    }

    /// [`Consumer::pinned`]
    pub fn pinned(&self) -> &[Pinned] {
        self.rare.as_ref().map_or(&[], |rare| &rare.pinned)
    }

    /// [`Consumer::rate`]
    pub fn rate(&self) -> Option<Rate> {
        self.rare.as_ref()?.rate
    }

    /// The RSA key, if there is one that can be read.
    pub fn rsa(&self) -> Option<&RsaPublicKey> {
        self.rare.as_ref()?.rsa.as_ref()
    }

    /// The previous secret and the time until which it also verifies.
    pub fn previous_secret(&self) -> Option<&(Secret, UnixTime)> {
        self.rare.as_ref()?.previous.as_ref()
    }

    /// The secrets that verify: the current one, and the one before while its grace lasts.
    pub fn secrets(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, &Secret)> {
        let previous = self.previous_secret();
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

    /// Takes the use for writing.
    pub(super) fn take_use(&self) -> Option<ConsumerUse> {
        let (last_used_at, how, ()) = self.last_use.take()?;
        let method = SignatureMethod::ALL.get(usize::from(how >> 1))?;
        Some(ConsumerUse {
            consumer: self.key.clone(),
            last_used_at,
            method: Some(method.as_str().to_owned()),
            dialect: Some(match how & 1 {
                0 => Dialect::Rfc5849,
                _ => Dialect::Legacy,
            }),
        })
    }

    fn states(&self) -> impl Iterator<Item = &ConsumerKeys> {
        let current = &self.without_token().keys;
        std::iter::once(current).chain(self.rare.as_ref().map(|rare| &rare.previous_keys))
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
        self.last_use.put_back()
    }

    fn inherit_from(&self, old: &Self) -> bool {
        // Every field is named, so that the compiler asks about a new one.
        let Self {
            key,
            secret,
            permissions,
            dialect,
            accept,
            needs_body_hash,
            enforce,
            enabled,
            rsa_only,
            rare,
            without_token: _,
            last_use: _,
            stamp: _,
        } = self;
        *key == old.key
            && *secret == old.secret
            && ***permissions == **old.permissions
            && *dialect == old.dialect
            && *accept == old.accept
            && *needs_body_hash == old.needs_body_hash
            && *enforce == old.enforce
            && *enabled == old.enabled
            && *rsa_only == old.rsa_only
            && match (rare, &old.rare) {
                (Some(new), Some(old)) => new.is_as_registered(old),
                (new, old) => new.is_none() && old.is_none(),
            }
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
