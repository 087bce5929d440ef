//! The public keys of an issuer: a JWK set (RFC 7517), from a file or from a URL.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{Method, StatusCode};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::IssuerFault;
use crate::{telemetry::log::causes::causes, wire::outbound::SharedService};

/// The age from which a set is read again.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// The age from which a set no longer counts.
const OLDEST: Duration = Duration::from_secs(60 * 60);
/// The shortest time between two reads, however many unknown keys callers name.
const PAUSE: Duration = Duration::from_secs(10);

/// The keys that can verify tokens.
#[derive(Debug)]
pub(super) struct KeySet(Vec<PublicKey>);

#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    only: Option<Algorithm>,
    /// The curve of a key of ECDSA, by its algorithm.
    curve: Option<Algorithm>,
    key: DecodingKey,
}

impl KeySet {
    /// Reads a set. Keys that cannot verify tokens are left out: those for encryption, symmetric ones, and those of other kinds.
    ///
    /// # Errors
    /// It is not a JWK set, or has no key that can.
    pub(super) fn read(set: &[u8]) -> Result<Self, IssuerFault> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(set).map_err(|_| IssuerFault::NotKeys)?;
        let keys = set.keys.into_iter();
        let keys = keys.filter_map(|key| PublicKey::read(&serde_json::from_value(key).ok()?));
        match Vec::from_iter(keys) {
            keys if keys.is_empty() => Err(IssuerFault::NoKey),
            keys => Ok(Self(keys)),
        }
    }

    /// The only key with this id, or without one in the token the only key, that can verify by this algorithm.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let is_named = |key: &&PublicKey| id.is_none() || key.id.as_deref() == id;
        let mut found = self.0.iter().filter(is_named);
        let mut found = found.by_ref().filter(|key| key.verifies_by(algorithm));
        match (found.next(), found.next()) {
            (Some(only), None) => Some(&only.key),
            _ => None,
        }
    }
}

impl PublicKey {
    fn read(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let is_for = |operations: &Vec<_>| operations.contains(&KeyOperations::Verify);
        let is_to_verify = common
            .public_key_use
            .as_ref()
            .is_none_or(|it| *it == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(is_for);
        let curve = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) => Some(match key.curve {
                EllipticCurve::P256 => Algorithm::ES256,
                EllipticCurve::P384 => Algorithm::ES384,
                _ => return None,
            }),
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => None,
            AlgorithmParameters::RSA(_) => None,
            _ => return None,
        };
        let only = common.key_algorithm.map(|only| only.to_string().parse());
        Some(Self {
            id: common.key_id.clone(),
            only: only.transpose().ok()?,
            curve,
            key: DecodingKey::from_jwk(jwk).ok()?,
        })
        .filter(|_| is_to_verify)
    }

    fn verifies_by(&self, algorithm: Algorithm) -> bool {
        self.key.family() == algorithm.family()
            && algorithm.family() != AlgorithmFamily::Hmac
            && self.only.is_none_or(|only| only == algorithm)
            && self.curve.is_none_or(|curve| curve == algorithm)
    }
}

/// Where the keys of an issuer are.
pub(super) enum KeySource {
    /// Ours, or those of a file.
    Here(KeySet),
    /// Those of a URL.
    Remote(Arc<RemoteKeys>),
}

/// The keys of a URL.
pub(super) struct RemoteKeys {
    service: Arc<SharedService>,
    read: ArcSwapOption<(KeySet, Instant)>,
    /// The last attempt to read them; one runs at a time.
    attempt: tokio::sync::Mutex<Option<Instant>>,
    /// The cause, while they cannot be read.
    failing: Mutex<Option<String>>,
}

impl KeySource {
    /// The key with this id, as [`KeySet::find`].
    ///
    /// # Errors
    /// [`IssuerFault::Unread`]
    pub(super) async fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Option<DecodingKey>, IssuerFault> {
        match self {
            Self::Here(keys) => Ok(keys.find(id, algorithm).cloned()),
            Self::Remote(keys) => {
                let known = keys.read.load_full();
                let found = known.as_ref().filter(|it| it.1.elapsed() < FRESH);
                match found.and_then(|it| it.0.find(id, algorithm)) {
                    Some(key) => Ok(Some(key.clone())),
                    None => Ok(keys.read_again().await?.0.find(id, algorithm).cloned()),
                }
            }
        }
    }
}

impl RemoteKeys {
    /// The keys at this service; those of `before`, at the same URL, serve until they are read.
    pub(super) fn new(service: SharedService, before: Option<&Self>) -> Self {
        let known = before.and_then(|before| before.read.load_full());
        let failing = known.is_none().then(|| "it was not asked yet".to_owned());
        Self {
            service: Arc::new(service),
            read: ArcSwapOption::new(known),
            attempt: tokio::sync::Mutex::default(),
            failing: Mutex::new(failing),
        }
    }

    /// The cause, while the keys cannot be read; that is tried again then.
    pub(super) async fn trouble(self: &Arc<Self>) -> Option<String> {
        if self.failing.lock().is_some() {
            let _ = self.read_again().await;
        }
        self.failing.lock().clone()
    }

    /// Reads the keys, unless that was tried a moment ago. Those that were read before count for their time.
    async fn read_again(self: &Arc<Self>) -> Result<Arc<(KeySet, Instant)>, IssuerFault> {
        let (keys, asked_at) = (Arc::clone(self), Instant::now());
        // The read goes on when its caller gives up, and the others get its result.
        let reading = tokio::spawn(async move {
            let mut attempt = keys.attempt.lock().await;
            if attempt.is_some_and(|last| last > asked_at || last.elapsed() < PAUSE) {
                return;
            }
            *attempt = Some(Instant::now());
            let found = keys.ask().await;
            let cause = found.as_ref().err().map(|fault| causes(fault));
            if let Ok(found) = found {
                keys.read.store(Some(Arc::new((found, Instant::now()))));
            }
            *keys.failing.lock() = cause;
        });
        let _ = reading.await;
        let known = self.read.load_full();
        known
            .filter(|it| it.1.elapsed() < OLDEST)
            .ok_or_else(|| IssuerFault::Unread(self.failing.lock().clone().unwrap_or_default()))
    }

    async fn ask(&self) -> Result<KeySet, IssuerFault> {
        let request = self.service.request(Method::GET).body(Bytes::new());
        match self.service.ask(request, true).await? {
            (StatusCode::OK, set) => KeySet::read(&set),
            (status, _) => Err(IssuerFault::Status(status)),
        }
    }
}
