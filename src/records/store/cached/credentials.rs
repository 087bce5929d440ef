//! Consumers and access tokens, ready to verify.
//!
//! There may be a million of each, so they hold only the fields that verification needs: with the overhead of the
//! cache and all else that their use leaves in memory, a consumer and a token together stay below 1,300 bytes.

use std::{
    net::IpAddr,
    ops::Range,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;

use super::{
    last_use::LastUse,
    permissions::{PermissionList, granted},
    records::{CacheEntry, Stamp},
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey, rate::Rate, secret::Secret},
    oauth::{DeviationSet, Key, KeyStates, Pinned, RsaPublicKey, SignatureMethod},
    records::store::record::{AccessToken, BodyHash, Consumer, ConsumerUse, Dialect, TokenUse},
};

/// The values of the identity headers of a call, which requests clone.
#[derive(Debug, Clone, Copy)]
pub struct FieldValues<'a> {
    /// The user's id.
    pub user: Option<&'a HeaderValue>,
    /// The consumer key.
    pub consumer: &'a HeaderValue,
    /// The permissions, separated by spaces.
    pub permissions: &'a HeaderValue,
    /// The last assertion about the caller, if one assertion serves several calls.
    pub assertion: &'a ArcSwapOption<CachedAssertion>,
}

/// A signed assertion that serves several calls.
#[derive(Debug)]
pub struct CachedAssertion {
    /// The value of its field.
    pub value: HeaderValue,
    /// The number of the signer that made it.
    pub signer: u64,
    /// The times at which it may be used.
    pub usable: Range<UnixTime>,
}

/// The values of the fields that name a token's user and consumer.
#[derive(Debug)]
struct CallerNames {
    user: HeaderValue,
    consumer: HeaderValue,
}

impl CallerNames {
    /// `None` if they are not valid in a field.
    fn new(user: &str, consumer: &ConsumerKey) -> Option<Self> {
        // One piece of memory and one count of its users for both.
        let mut rest = Bytes::from([user, consumer.as_str()].concat());
        let mut next = |length| HeaderValue::from_maybe_shared(rest.split_to(length)).ok();
        Some(Self {
            user: next(user.len())?,
            consumer: next(consumer.as_str().len())?,
        })
    }
}

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

/// An access token with its consumer, ready to verify.
#[derive(Debug)]
pub struct AccessCredentials {
    /// The consumer that it belongs to.
    pub consumer: Arc<ConsumerCredentials>,
    /// The permissions of a call with this token: those that the consumer still has.
    pub granted: Arc<PermissionList>,
    /// [`AccessToken::issued_at`]
    pub issued_at: UnixTime,
    // The secret, the token and the user's id, in one piece of memory.
    text: Secret,
    token_at: u32,
    user_at: u32,
    /// The end of time for one that never expires.
    expires_at: UnixTime,
    states: KeyStates,
    names: OnceLock<Option<CallerNames>>,
    assertion: ArcSwapOption<CachedAssertion>,
    /// The states under the consumer's previous secret.
    previous_states: OnceLock<Box<KeyStates>>,
    last_use: LastUse<Option<IpAddr>>,
    stamp: Stamp,
    /// It was revoked.
    pub is_revoked: bool,
}

const NEVER: UnixTime = UnixTime(u64::MAX);

impl AccessCredentials {
    /// Those of a record, in no cache.
    pub fn outside_cache(token: &AccessToken, consumer: Arc<ConsumerCredentials>) -> Self {
        let granted = PermissionList::new(&granted(&token.permissions, &consumer.permissions));
        Self::new(token, granted.into(), consumer, Stamp::outside())
    }

    pub(super) fn new(
        token: &AccessToken,
        granted: Arc<PermissionList>,
        consumer: Arc<ConsumerCredentials>,
        stamp: Stamp,
    ) -> Self {
        let parts = [
            token.secret.expose(),
            token.token.as_bytes(),
            token.user.as_str().as_bytes(),
        ];
        let length = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
        // No store has a secret of four gigabytes; it would not verify.
        let end = |parts| u32::try_from(length(parts)).unwrap_or(u32::MAX);
        Self {
            token_at: end(&parts[..1]),
            user_at: end(&parts[..2]),
            text: Secret::from(parts.concat()),
            consumer,
            granted,
            issued_at: token.issued_at,
            expires_at: token.expires_at.unwrap_or(NEVER),
            is_revoked: token.revoked_at.is_some(),
            states: KeyStates::default(),
            names: OnceLock::new(),
            assertion: ArcSwapOption::empty(),
            previous_states: OnceLock::new(),
            last_use: LastUse::written(token.last_used_at, token.last_used_from),
            stamp,
        }
    }

    fn part(&self, from: u32, to: Option<u32>) -> &[u8] {
        let text = self.text.expose();
        let to = to.map_or(text.len(), |to| to as usize);
        text.get(from as usize..to).unwrap_or_default()
    }

    /// The identifier.
    pub fn token(&self) -> &str {
        std::str::from_utf8(self.key()).unwrap_or_default()
    }

    /// The id of the user it acts for.
    pub fn user(&self) -> &str {
        std::str::from_utf8(self.part(self.user_at, None)).unwrap_or_default()
    }

    /// The shared secret.
    pub fn secret(&self) -> &[u8] {
        self.part(0, Some(self.token_at))
    }

    /// The values of the identity headers of a call with this token; `None` if they are not valid in a field.
    pub fn field_values(&self) -> Option<FieldValues<'_>> {
        let make = || CallerNames::new(self.user(), &self.consumer.key);
        let names = self.names.get_or_init(make).as_ref()?;
        Some(FieldValues {
            user: Some(&names.user),
            consumer: &names.consumer,
            permissions: self.granted.value()?,
            assertion: &self.assertion,
        })
    }

    /// The time from which it is expired; `None`: never.
    pub fn expires_at(&self) -> Option<UnixTime> {
        Some(self.expires_at).filter(|at| *at != NEVER)
    }

    /// The keys of calls with this token, in the order of [`ConsumerCredentials::secrets`].
    pub fn keys(&self, now: UnixTime) -> impl Iterator<Item = (SecretAge, Key<'_>)> {
        self.consumer.secrets(now).map(|(age, secret)| {
            let states = match age {
                SecretAge::Current => &self.states,
                SecretAge::Previous => self.previous_states.get_or_init(Box::default),
            };
            (age, key(secret.expose(), Some(self.secret()), states))
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
            token: self.token().to_owned(),
            last_used_at,
            last_used_from,
        })
    }
}

impl CacheEntry for AccessCredentials {
    fn key(&self) -> &[u8] {
        self.part(self.token_at, Some(self.user_at))
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn put_use_back(&self) -> bool {
        self.last_use.put_back()
    }

    fn inherit_from(&self, old: &Self) -> bool {
        // Each may know a use that the other does not: one from another process, one not written yet.
        for (one, other) in [(self, old), (old, self)] {
            one.last_use.learn_from(&other.last_use);
        }
        Arc::ptr_eq(&self.consumer, &old.consumer)
            && self.text == old.text
            && (self.token_at, self.user_at) == (old.token_at, old.user_at)
            && **self.granted == **old.granted
            && (self.issued_at, self.expires_at, self.is_revoked)
                == (old.issued_at, old.expires_at, old.is_revoked)
    }
}

const fn key<'a>(
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
