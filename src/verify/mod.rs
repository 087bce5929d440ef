//! From a signed request to the proof that it holds: timestamp, consumer, token, signature, nonce, states, in this order.
//!
//! Whatever is recorded or counted against somebody is recorded after the signature held; states are told only then.
//! An unknown consumer or token costs the same work as a known one.

pub mod advice;
pub mod nonces;
pub mod states;

use std::{sync::Arc, time::Duration};

pub use self::advice::Advice;
use self::{
    advice::{Adviser, Known},
    nonces::{Nonces, Outage},
};
use crate::{
    clock::{Clock, UnixTime},
    names::ConsumerKey,
    oauth::{BaseString, BodyHash, MethodSet, Selection, SignatureMethod, SigningKey, signature},
    parse::signed::SignedRequest,
    refusal::{Failure, Fault, Refusal},
    secret::Secret,
    store::{
        cached::{AccessCredentials, Cached, ConsumerCredentials},
        record::{Dialect, RequestToken},
    },
};

/// The rules of verification.
#[derive(Debug, Clone)]
pub struct Params {
    /// The accepted signature methods.
    pub methods: MethodSet,
    /// The dialect of consumers registered without one.
    pub default_dialect: Dialect,
    /// The token calls also take the base string and key of the service's description.
    pub accept_description: bool,
    /// An unused access token expires after this time; `None`: never.
    pub access_idle: Option<Duration>,
    /// What is told about a wrong signature.
    pub advice: Advice,
}

/// Verifies signed requests.
#[derive(Debug)]
pub struct Verifier {
    credentials: Arc<Cached>,
    nonces: Arc<Nonces>,
    clock: Clock,
    adviser: Adviser,
}

/// The proof that a request's signature held, its nonce was fresh and its credentials are in force.
#[derive(Debug)]
pub struct Verified {
    signer: Signer,
    skew: Option<i64>,
}

/// Who signed.
#[derive(Debug)]
pub enum Signer {
    /// A consumer with an access token.
    Access(Arc<AccessCredentials>),
    /// A consumer alone.
    Consumer(Arc<ConsumerCredentials>),
}

impl Verified {
    /// Who signed.
    #[must_use]
    pub const fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The consumer that signed, with a token or without one.
    #[must_use]
    pub fn consumer(&self) -> &ConsumerKey {
        match &self.signer {
            Signer::Access(access) => &access.consumer.consumer.key,
            Signer::Consumer(consumer) => &consumer.consumer.key,
        }
    }

    /// Who signed, by value: the proof is used up.
    #[must_use]
    pub fn into_signer(self) -> Signer {
        self.signer
    }

    /// How far the consumer's clock is ahead of ours, in seconds.
    #[must_use]
    pub const fn skew_seconds(&self) -> Option<i64> {
        self.skew
    }
}

/// The proof for a request token call (RFC 5849 §2.1).
#[derive(Debug)]
pub struct VerifiedConsumer {
    /// Who signed.
    pub consumer: Arc<ConsumerCredentials>,
    /// Which parameters the signature covers.
    pub selection: Selection,
}

/// The proof for an access token call (RFC 5849 §2.3): signature and nonce. The states of the request token are checked
/// where it is exchanged, in one step with that.
#[derive(Debug)]
pub struct VerifiedRequestToken {
    /// Who signed.
    pub consumer: Arc<ConsumerCredentials>,
    /// The request token that signed with it.
    pub token: RequestToken,
}

/// Which base strings a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    Rfc5849,
    Either,
}

impl Take {
    const fn selections(self) -> &'static [Selection] {
        match self {
            Self::Rfc5849 => &[Selection::Rfc5849],
            Self::Either => &[Selection::Rfc5849, Selection::Description],
        }
    }
}

impl Verifier {
    /// A verifier over credentials and nonces.
    #[must_use]
    pub fn new(credentials: Arc<Cached>, nonces: Arc<Nonces>, clock: Clock) -> Self {
        Self {
            credentials,
            nonces,
            clock,
            adviser: Adviser::default(),
        }
    }

    /// The credentials that it looks up.
    #[must_use]
    pub const fn credentials(&self) -> &Arc<Cached> {
        &self.credentials
    }

    /// Why signed requests are refused at present whoever sends them, if they are.
    #[must_use]
    pub fn outage(&self) -> Option<Outage> {
        self.nonces.outage(self.clock.now())
    }

    /// Verifies a protected call, with a token or without.
    ///
    /// # Errors
    /// The first check that fails, in the order of this module; a fault of the store, and [`Fault::NonceWindowFull`] or
    /// [`Fault::NoncesLost`].
    pub async fn protected(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
    ) -> Result<Verified, Failure> {
        self.access(params, request, true).await
    }

    /// Verifies the call that revokes its own token: RFC 5849's base string alone, and never without a token.
    ///
    /// # Errors
    /// As [`Verifier::protected`].
    pub async fn revocation(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
    ) -> Result<Verified, Failure> {
        self.access(params, request, false).await
    }

    async fn access(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
        dialects: bool,
    ) -> Result<Verified, Failure> {
        let now = self.clock.now();
        self.check_timestamp(request, now)?;
        let key = request.credentials.consumer_key;
        let usual = if dialects && params.default_dialect == Dialect::Legacy {
            Take::Either
        } else {
            Take::Rfc5849
        };
        let take = |consumer: &ConsumerCredentials| {
            let dialect = consumer.consumer.dialect.unwrap_or(params.default_dialect);
            if dialects && dialect == Dialect::Legacy {
                Take::Either
            } else {
                Take::Rfc5849
            }
        };
        let mut signer = match request.credentials.token {
            Some(token) => {
                let access = self.credentials.access(token).await?;
                let access = access.filter(|access| is_of(&access.consumer, key));
                let Some(access) = access else {
                    let known = self.credentials.consumer(key).await?.is_some();
                    let unknown = if known {
                        Refusal::TokenUnknown
                    } else {
                        Refusal::ConsumerUnknown
                    };
                    return Err(self.refuse_unknown(request, unknown, usual, 1));
                };
                let take = take(&access.consumer);
                self.prove(
                    params,
                    request,
                    access.keys(now),
                    &access.consumer,
                    Some(&access.token.secret),
                    take,
                )?;
                Signer::Access(access)
            }
            None => {
                let Some(consumer) = self.credentials.consumer(key).await? else {
                    return Err(self.refuse_unknown(request, Refusal::ConsumerUnknown, usual, 1));
                };
                self.prove(
                    params,
                    request,
                    consumer.keys(now),
                    &consumer,
                    None,
                    take(&consumer),
                )?;
                Signer::Consumer(consumer)
            }
        };
        self.record_nonce(request, now)?;
        match &mut signer {
            Signer::Access(access) => {
                if states::is_idle(params, access, now) {
                    *access = Box::pin(self.again(access)).await?;
                }
                states::check_consumer(&access.consumer)?;
                states::check_access(params, access, now)?;
                self.credentials.touch(access, now);
            }
            Signer::Consumer(consumer) => states::check_consumer(consumer)?,
        }
        Ok(Verified {
            signer,
            skew: skew(request, now),
        })
    }

    /// Verifies a request token call.
    ///
    /// # Errors
    /// As [`Verifier::protected`].
    pub async fn request_token_call(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
    ) -> Result<VerifiedConsumer, Failure> {
        let now = self.clock.now();
        self.check_timestamp(request, now)?;
        let Some(consumer) = self
            .credentials
            .consumer(request.credentials.consumer_key)
            .await?
        else {
            let (take, keys) = if params.accept_description {
                (Take::Either, 2)
            } else {
                (Take::Rfc5849, 1)
            };
            return Err(self.refuse_unknown(request, Refusal::ConsumerUnknown, take, keys));
        };
        let selection = if params.accept_description {
            let keys = consumer.keys(now).chain(consumer.keys_alone(now));
            self.prove(params, request, keys, &consumer, None, Take::Either)?
        } else {
            self.prove(
                params,
                request,
                consumer.keys(now),
                &consumer,
                None,
                Take::Rfc5849,
            )?
        };
        self.record_nonce(request, now)?;
        states::check_consumer(&consumer)?;
        Ok(VerifiedConsumer {
            consumer,
            selection,
        })
    }

    /// Verifies signature and nonce of an access token call.
    ///
    /// # Errors
    /// As [`Verifier::protected`].
    pub async fn access_token_call(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
    ) -> Result<VerifiedRequestToken, Failure> {
        let now = self.clock.now();
        self.check_timestamp(request, now)?;
        let consumer = self
            .credentials
            .consumer(request.credentials.consumer_key)
            .await?;
        let token = match request.credentials.token.map(std::str::from_utf8) {
            Some(Ok(token)) => self.credentials.store().request_token(token).await?,
            _ => None,
        };
        let take = if params.accept_description {
            Take::Either
        } else {
            Take::Rfc5849
        };
        let Some(consumer) = consumer else {
            return Err(self.refuse_unknown(request, Refusal::ConsumerUnknown, take, 1));
        };
        let Some(token) = token.filter(|token| token.consumer == consumer.consumer.key) else {
            return Err(self.refuse_unknown(request, Refusal::TokenUnknown, take, 1));
        };
        let secrets = states::secrets(&consumer.consumer, now);
        let keys: Vec<SigningKey> = secrets
            .map(|secret| SigningKey::new(secret, &token.secret))
            .collect();
        self.prove(
            params,
            request,
            keys.iter(),
            &consumer,
            Some(&token.secret),
            take,
        )?;
        self.record_nonce(request, now)?;
        states::check_consumer(&consumer)?;
        Ok(VerifiedRequestToken { consumer, token })
    }

    /// A token as the store knows it now: it may have been used at another process.
    async fn again(&self, access: &AccessCredentials) -> Result<Arc<AccessCredentials>, Failure> {
        let token = access.token.token.as_bytes();
        let found = self.credentials.access_anew(token).await?;
        let same = |found: &Arc<AccessCredentials>| {
            found.consumer.consumer.key == access.consumer.consumer.key
        };
        found
            .filter(same)
            .ok_or_else(|| Refusal::TokenUnknown.into())
    }

    /// Does for an unknown consumer or token what a wrong signature of a usual one costs: `keys` keys with each base string
    /// that the call takes.
    fn refuse_unknown(
        &self,
        request: &SignedRequest<'_>,
        unknown: Refusal,
        take: Take,
        keys: usize,
    ) -> Failure {
        let dummy = self.credentials.dummy();
        for _ in 0..keys {
            for &selection in take.selections() {
                std::hint::black_box(holds(request, dummy, None, selection));
            }
        }
        unknown.into()
    }

    /// Proves signature and body hash with one of the keys.
    fn prove<'k>(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
        keys: impl Iterator<Item = &'k SigningKey>,
        consumer: &ConsumerCredentials,
        token_secret: Option<&Secret>,
        take: Take,
    ) -> Result<Selection, Refusal> {
        let method = request.credentials.signature_method;
        if method == SignatureMethod::Plaintext && !request.secure {
            return Err(Refusal::SignatureMethodRejected);
        }
        let rsa = consumer.rsa.as_ref();
        for key in keys {
            for &selection in take.selections() {
                if holds(request, key, rsa, selection) {
                    check_body_hash(request)?;
                    return Ok(selection);
                }
            }
        }
        Err(Refusal::SignatureWrong {
            advice: self.adviser.advise(
                params,
                request,
                Known {
                    consumer,
                    token_secret,
                },
                self.clock.now(),
            ),
        })
    }

    fn check_timestamp(&self, request: &SignedRequest<'_>, now: UnixTime) -> Result<(), Refusal> {
        let Some(freshness) = &request.credentials.freshness else {
            return Ok(());
        };
        let length = self.nonces.length();
        let (earliest, latest) = (now.before(length).0, now.after(length).0);
        if (earliest..=latest).contains(&freshness.timestamp.seconds()) {
            Ok(())
        } else {
            Err(Refusal::TimestampOutsideWindow { earliest, latest })
        }
    }

    /// Records the nonce, once and for all who ask at the same time.
    fn record_nonce(&self, request: &SignedRequest<'_>, now: UnixTime) -> Result<(), Failure> {
        let Some(freshness) = &request.credentials.freshness else {
            // PLAINTEXT without them (RFC 5849 §3.1): it is accepted under TLS alone, if at all.
            return Ok(());
        };
        Ok(self.nonces.record(
            now,
            freshness.timestamp.seconds(),
            request.credentials.consumer_key,
            request.credentials.token.unwrap_or_default(),
            freshness.nonce.as_bytes(),
        )?)
    }
}

fn holds(
    request: &SignedRequest<'_>,
    key: &SigningKey,
    rsa: Option<&crate::oauth::RsaPublicKey>,
    selection: Selection,
) -> bool {
    let base = base_string(request, selection);
    let credentials = &request.credentials;
    signature::verify(
        credentials.signature_method,
        key,
        rsa,
        &base,
        credentials.signature,
    )
    .is_ok()
}

fn base_string<'r>(request: &SignedRequest<'r>, selection: Selection) -> BaseString<'r> {
    BaseString {
        method: request.method,
        origin: &request.url.encoded,
        path: request.path,
        parameters: request.parameters,
        selection,
    }
}

fn is_of(consumer: &ConsumerCredentials, key: &[u8]) -> bool {
    consumer.consumer.key.as_str().as_bytes() == key
}

fn check_body_hash(request: &SignedRequest<'_>) -> Result<(), Refusal> {
    let Some(sent) = request.credentials.body_hash else {
        return Ok(());
    };
    let body = request.body.unwrap_or_default();
    let hashed =
        BodyHash::expecting(request.credentials.signature_method, sent).and_then(|mut hash| {
            hash.update(body);
            hash.finish()
        });
    hashed.map(|_| ()).map_err(|_| Refusal::BodyHashWrong)
}

fn skew(request: &SignedRequest<'_>, now: UnixTime) -> Option<i64> {
    let timestamp = request.credentials.freshness.as_ref()?.timestamp.seconds();
    Some(timestamp.cast_signed() - now.0.cast_signed())
}

impl From<nonces::NotRecorded> for Failure {
    fn from(reason: nonces::NotRecorded) -> Self {
        match reason {
            nonces::NotRecorded::Used => Self::Refusal(Refusal::NonceUsed),
            nonces::NotRecorded::Forgotten { earliest, latest } => {
                Self::Refusal(Refusal::TimestampOutsideWindow { earliest, latest })
            }
            nonces::NotRecorded::Full => Self::Fault(Fault::NonceWindowFull),
            nonces::NotRecorded::Unmarked => Self::Fault(Fault::NonceMarkStale),
            nonces::NotRecorded::Lost { retry_after } => {
                Self::Fault(Fault::NoncesLost { retry_after })
            }
        }
    }
}

#[cfg(test)]
mod tests;
