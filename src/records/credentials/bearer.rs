//! Bearer tokens (RFC 6750), verified and ready for use. They are never in the store.

use std::{net::IpAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;

use super::{
    AccessCredentials, CacheSettings, Cached, ConsumerCredentials, FieldValues, stamp::Stamp,
};
use crate::{
    base::{
        clock::UnixTime,
        secret::Secret,
        text::names::{ConsumerKey, Permission, UserId},
    },
    records::{
        credentials::cache::{CacheEntry, RecordCache},
        values::{Result, use_cases::Source},
    },
};

/// A token is verified again after this time, whatever `cache.ttl` says, so that a key which its issuer has withdrawn
/// counts no longer.
const TTL: Duration = Duration::from_secs(60);

/// What a token says, for as long as its issuer vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerClaims {
    /// The rules by which it was verified.
    pub rules: u64,
    /// The time from which it is expired.
    pub expires_at: UnixTime,
    /// The consumer that it was given to.
    pub consumer: ConsumerKey,
    /// The user it acts for.
    pub user: Option<UserId>,
    /// The permissions that it has, as far as the consumer has them.
    pub scope: Box<[Permission]>,
    /// The access token of OAuth 1.0a that it was exchanged for.
    pub exchanged: Option<Box<str>>,
    /// Its id, which is not the token.
    pub id: Option<Box<str>>,
}

/// A verified token.
#[derive(Debug)]
pub struct BearerToken {
    text: Secret,
    /// What it says.
    pub claims: BearerClaims,
    /// What it was last found to permit.
    found: ArcSwapOption<BearerCredentials>,
    stamp: Stamp,
}

/// What a verified token permits: it has a consumer that is registered, and permissions of that consumer.
#[derive(Debug)]
pub struct BearerCredentials {
    /// The consumer that it was given to.
    pub consumer: Arc<ConsumerCredentials>,
    /// The access token of OAuth 1.0a that it was exchanged for.
    pub access: Option<Arc<AccessCredentials>>,
    /// The user it acts for.
    pub user: Option<UserId>,
    /// Its permissions that consumer and access token still have.
    pub granted: Box<[Permission]>,
    /// [`BearerClaims::name`]
    pub name: Option<Box<str>>,
    values: Option<FieldValues>,
}

impl BearerClaims {
    /// Its name in the log, of which the beginning is shown: that of the access token, or its own id.
    pub fn name(&self) -> Option<&str> {
        self.exchanged.as_deref().or(self.id.as_deref())
    }
}

impl BearerCredentials {
    fn new(
        claims: &BearerClaims,
        consumer: Arc<ConsumerCredentials>,
        access: Option<Arc<AccessCredentials>>,
    ) -> Self {
        let own = access
            .as_ref()
            .map_or(&consumer.permissions, |it| &it.granted);
        let granted = own.iter().filter(|own| claims.scope.contains(own));
        let granted: Box<[Permission]> = granted.cloned().collect();
        Self {
            values: FieldValues::new(claims.user.as_ref(), &consumer.key, &granted).ok(),
            consumer,
            access,
            user: claims.user.clone(),
            granted,
            name: claims.name().map(Into::into),
        }
    }

    /// The values of the identity headers of a call with this token; `None` if they are not valid in a field.
    pub const fn field_values(&self) -> Option<&FieldValues> {
        self.values.as_ref()
    }
}

impl CacheEntry for BearerToken {
    fn key(&self) -> &[u8] {
        self.text.expose()
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn put_use_back(&self) -> bool {
        false
    }

    fn inherit_from(&self, old: &Self) -> bool {
        self.claims == old.claims
    }
}

/// The cache of verified tokens.
pub(super) fn cache(
    settings: &CacheSettings,
    announced: Arc<super::stamp::Announced>,
) -> RecordCache<BearerToken> {
    let ttl = settings.ttl.min(TTL);
    RecordCache::new(&CacheSettings { ttl, ..*settings }, announced)
}

impl Cached {
    /// The token with this text, if these rules have verified it.
    pub fn bearer(&self, text: &[u8], rules: u64, now: UnixTime) -> Option<Arc<BearerToken>> {
        let known = self.bearers.fresh(text, now)?;
        (known.claims.rules == rules).then_some(known)
    }

    /// Keeps a token that was verified by a check that began at `now`.
    pub fn keep_bearer(
        &self,
        text: &[u8],
        claims: BearerClaims,
        now: UnixTime,
    ) -> Arc<BearerToken> {
        let new = BearerToken::new(text, claims, self.bearers.stamp(now));
        self.bearers.keep_new(new, now)
    }

    /// The token with this text that its issuer knows, as `ask` finds out; whether it was known before is the argument.
    ///
    /// # Errors
    /// Those of `ask`, where nothing usable is cached.
    pub async fn bearer_from<F>(
        &self,
        text: &[u8],
        now: UnixTime,
        ask: impl Fn(bool) -> F,
    ) -> Result<Option<Arc<BearerToken>>>
    where
        F: Future<Output = Result<Option<BearerClaims>>>,
    {
        let read = |stamp: Stamp, is_refresh| {
            let asking = ask(is_refresh);
            async move {
                let claims = asking.await?;
                // No feed reports what the issuer revokes.
                let stamp = stamp.found_in(Source::External);
                Ok(claims.map(|claims| BearerToken::new(text, claims, stamp)))
            }
        };
        self.bearers.find(text, None, now, |_| true, read).await
    }

    /// What a token permits, if it was used since consumer and access token were last read.
    pub fn known_bearer(
        &self,
        token: &BearerToken,
        now: UnixTime,
    ) -> Option<Arc<BearerCredentials>> {
        let found = token.found.load_full()?;
        let is_current = |access: &Arc<_>| self.access.is_fresh(access, now);
        let is_current = found.access.as_ref().is_none_or(is_current)
            && self.consumers.is_fresh(&found.consumer, now);
        is_current.then_some(found)
    }

    /// What a token permits; `None`: its consumer, or the access token that it was exchanged for, is not known.
    ///
    /// # Errors
    /// The store's, where nothing usable is cached.
    pub async fn found_bearer(
        &self,
        token: &BearerToken,
        is_idle: impl Fn(&AccessCredentials) -> bool,
    ) -> Result<Option<Arc<BearerCredentials>>> {
        let claims = &token.claims;
        let key = claims.consumer.as_str().as_bytes();
        let (consumer, access) = match &claims.exchanged {
            None => (self.consumer(key).await?, None),
            Some(name) => {
                let name = name.as_bytes();
                let mut access = self.access(name, key).await?;
                if access.as_deref().is_some_and(is_idle) {
                    // Another process may have used it.
                    access = self.access_reloaded(name, key).await?;
                }
                let is_same = |access: &Arc<AccessCredentials>| {
                    access.consumer.key == claims.consumer
                        && Some(&access.user) == claims.user.as_ref()
                };
                let access = access.filter(is_same);
                let consumer = access.as_ref().map(|access| Arc::clone(&access.consumer));
                (consumer, access)
            }
        };
        Ok(consumer.map(|consumer| {
            let found = Arc::new(BearerCredentials::new(claims, consumer, access));
            token.found.store(Some(Arc::clone(&found)));
            found
        }))
    }

    /// Notes a call with a token; it is written with the next [`Self::flush_uses`].
    pub fn touch_bearer(&self, used: &BearerCredentials, now: UnixTime, from: Option<IpAddr>) {
        if let Some(access) = &used.access {
            self.touch(access, now, from);
        }
        if used.consumer.touch_by_bearer(now) {
            self.consumer_uses.push(&used.consumer);
        }
    }
}

impl BearerToken {
    fn new(text: &[u8], claims: BearerClaims, stamp: Stamp) -> Self {
        Self {
            text: Secret::from(text.to_vec()),
            claims,
            found: ArcSwapOption::empty(),
            stamp,
        }
    }
}
