//! Access tokens, ready to verify; they hold no more than [consumers](super::consumer) do.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;

use super::{
    consumer::{ConsumerCredentials, SecretAge, key},
    field_values::{CachedAssertion, FieldValues},
    last_use::LastUse,
    permissions::{PermissionList, granted},
    records::CacheEntry,
    stamp::Stamp,
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey, secret::Secret},
    oauth::{Key, KeyStates},
    records::store::record::{AccessToken, TokenUse},
};

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
