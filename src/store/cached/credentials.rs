//! Consumers and access tokens, ready to verify.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::kind::{Entry, Stamp};
use crate::{
    clock::UnixTime,
    oauth::{RsaPublicKey, SigningKey},
    secret::Secret,
    store::record::{AccessToken, Consumer},
};

/// A consumer, ready to verify.
#[derive(Debug)]
pub struct ConsumerCredentials {
    /// The record.
    pub consumer: Consumer,
    /// Its RSA key, if it has one that can be read.
    pub rsa: Option<RsaPublicKey>,
    current: ConsumerKeys,
    previous: Option<(ConsumerKeys, UnixTime)>,
    stamp: Stamp,
}

/// The keys of one secret for calls without a token.
#[derive(Debug)]
struct ConsumerKeys {
    joined: SigningKey,
    alone: SigningKey,
}

impl ConsumerKeys {
    fn new(secret: &Secret) -> Self {
        Self {
            joined: SigningKey::new(secret, &Secret::from("")),
            alone: SigningKey::consumer_secret_alone(secret),
        }
    }
}

impl ConsumerCredentials {
    pub(super) fn new(consumer: Consumer, stamp: Stamp) -> Self {
        let rsa = consumer.rsa_public_key.as_deref().and_then(|pem| {
            // Checked when it was registered, so the store was changed by other hands. The secret still serves.
            RsaPublicKey::from_pem(pem)
                .inspect_err(|error| {
                    tracing::error!(consumer = %consumer.key, %error, "the RSA key in the store cannot be used");
                })
                .ok()
        });
        Self {
            rsa,
            current: ConsumerKeys::new(&consumer.secret),
            previous: consumer
                .previous_secret
                .as_ref()
                .map(|(secret, until)| (ConsumerKeys::new(secret), *until)),
            consumer,
            stamp,
        }
    }

    /// The keys of calls without a token: the current secret's, and the one before while its grace lasts.
    pub fn keys(&self, now: UnixTime) -> impl Iterator<Item = &SigningKey> {
        self.secrets(now).map(|keys| &keys.joined)
    }

    /// As [`Self::keys`], as the service's description has it: the secret without `&`.
    pub fn keys_alone(&self, now: UnixTime) -> impl Iterator<Item = &SigningKey> {
        self.secrets(now).map(|keys| &keys.alone)
    }

    fn secrets(&self, now: UnixTime) -> impl Iterator<Item = &ConsumerKeys> {
        std::iter::once(&self.current).chain(graced(self.previous.as_ref(), now))
    }
}

impl Entry for ConsumerCredentials {
    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn succeed(&self, old: &Self) -> bool {
        self.consumer == old.consumer
    }
}

/// An access token with its consumer, ready to verify.
#[derive(Debug)]
pub struct AccessCredentials {
    /// The record; its `last_used_at` may be behind [`Self::last_used`].
    pub token: AccessToken,
    /// The consumer that it belongs to.
    pub consumer: Arc<ConsumerCredentials>,
    current: SigningKey,
    previous: Option<(SigningKey, UnixTime)>,
    /// The last use in seconds since 1970; 0: none.
    last_used: AtomicU64,
    /// A use has not been taken for writing yet.
    unwritten: AtomicBool,
    stamp: Stamp,
}

impl AccessCredentials {
    pub(super) fn new(
        token: AccessToken,
        consumer: Arc<ConsumerCredentials>,
        stamp: Stamp,
    ) -> Self {
        let key = |secret: &Secret| SigningKey::new(secret, &token.secret);
        Self {
            current: key(&consumer.consumer.secret),
            previous: consumer
                .consumer
                .previous_secret
                .as_ref()
                .map(|(secret, until)| (key(secret), *until)),
            last_used: AtomicU64::new(token.last_used_at.map_or(0, |time| time.0)),
            unwritten: AtomicBool::new(false),
            token,
            consumer,
            stamp,
        }
    }

    /// The keys of calls with this token: the current secret's, and the one before while its grace lasts.
    pub fn keys(&self, now: UnixTime) -> impl Iterator<Item = &SigningKey> {
        std::iter::once(&self.current).chain(graced(self.previous.as_ref(), now))
    }

    /// The last use known here, written or not.
    #[must_use]
    pub fn last_used(&self) -> Option<UnixTime> {
        match self.last_used.load(Ordering::SeqCst) {
            0 => None,
            seconds => Some(UnixTime(seconds)),
        }
    }

    /// Notes a use; `true` if it has to be put on the list of those to write.
    pub(super) fn touch(&self, now: UnixTime) -> bool {
        // Whoever noted this second first has put it on the list, or is about to.
        if self.last_used.load(Ordering::SeqCst) >= now.0 {
            return false;
        }
        self.last_used.fetch_max(now.0, Ordering::SeqCst);
        !self.unwritten.swap(true, Ordering::SeqCst)
    }

    /// Takes the use for writing. First off the list, then the time: a use that comes between is put on it again.
    pub(super) fn take_use(&self) -> Option<(String, UnixTime)> {
        self.unwritten.store(false, Ordering::SeqCst);
        Some((self.token.token.clone(), self.last_used()?))
    }

    /// A use that was taken was not written; `true` if it has to be put on the list again.
    pub(super) fn untake_use(&self) -> bool {
        !self.unwritten.swap(true, Ordering::SeqCst)
    }
}

impl Entry for AccessCredentials {
    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn succeed(&self, old: &Self) -> bool {
        // Each may know a use that the other does not: one from another process, one not written yet.
        self.last_used
            .fetch_max(old.last_used.load(Ordering::SeqCst), Ordering::SeqCst);
        old.last_used
            .fetch_max(self.last_used.load(Ordering::SeqCst), Ordering::SeqCst);
        let mut token = self.token.clone();
        token.last_used_at = old.token.last_used_at;
        token == old.token && Arc::ptr_eq(&self.consumer, &old.consumer)
    }
}

fn graced<K>(previous: Option<&(K, UnixTime)>, now: UnixTime) -> Option<&K> {
    previous
        .filter(|(_, until)| now < *until)
        .map(|(keys, _)| keys)
}
