//! From a signed request to the proof that its signature holds: timestamp, consumer, token, signature, body hash, nonce,
//! states, in this order.
//!
//! Nothing is recorded or counted against a consumer before the signature holds, and no state is reported before that.
//! An unknown consumer or token costs the same work as a known one.

pub mod advice;
pub mod clock;
mod credential;
mod error;
pub mod nonces;
pub mod settings;
mod skew;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    advice::{Advice, UnreadBody},
    credential::{Credential, Purpose, RequestTokenCredentials},
    error::{Diagnosed, Sender, VerifyError, VerifyFault, VerifyRejection, sender},
};
use self::{
    advice::{Advised, Adviser},
    credential::is_idle,
    nonces::{Elsewhere, Nonces},
    skew::Skews,
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        cold,
    },
    oauth::{
        BaseString, Credentials, Deviation, DeviationSet, Key, ParameterLocation, Parameters,
        Pinned, RsaPublicKey, Selection, SignatureHolds, SignatureMethod, SigningKey,
        diagnosis::{Mistake, OtherUrl},
        is_allowed_body_hash, signature,
    },
    records::{
        nonce::{NonceUse, Outage},
        store::{
            Store,
            cached::{AccessCredentials, Cached, ConsumerCredentials, Moment, SecretAge},
            record::Dialect,
        },
    },
    request::{
        parse::signed::SignedRequest,
        verify::settings::{SignatureSettings, TokenSettings},
    },
    telemetry::rejections::SenderProof,
    wire::origin::HttpUrl,
};

/// The rules of verification.
#[derive(Debug, Clone)]
pub struct VerifyRules {
    /// Those of signatures.
    pub signature: SignatureSettings,
    /// The lifetimes of tokens.
    pub tokens: TokenSettings,
    /// The public URLs, those of the listener and the API's own, for the advice in a response to a wrong signature.
    pub other_urls: Vec<OtherUrl>,
    /// The paths of token calls, each with its query, for the same advice.
    pub token_paths: Vec<String>,
}

impl VerifyRules {
    /// These rules; a consumer may sign the `public` URLs, or `internal` ones, in place of the one that it calls.
    pub fn new(
        signature: SignatureSettings,
        tokens: TokenSettings,
        public: impl IntoIterator<Item = HttpUrl>,
        internal: impl IntoIterator<Item = HttpUrl>,
        token_paths: Vec<String>,
    ) -> Self {
        let other = |HttpUrl { origin, path }: HttpUrl, internal| OtherUrl {
            scheme: origin.scheme,
            host: origin.host,
            port: origin.port,
            prefix: path,
            internal,
        };
        let public = public.into_iter().map(|url| other(url, false));
        let internal = internal.into_iter().map(|url| other(url, true));
        Self {
            signature,
            tokens,
            other_urls: public.chain(internal).collect(),
            token_paths,
        }
    }
}

impl VerifyRules {
    /// The paths of token calls, if `path` is one of them.
    pub fn token_paths_for(&self, path: &[u8]) -> Vec<String> {
        let mut paths = self.token_paths.iter();
        let without_query = |known: &str| known.split('?').next() == str::from_utf8(path).ok();
        match paths.any(|known| without_query(known)) {
            true => self.token_paths.clone(),
            false => Vec::new(),
        }
    }
}

/// Verifies signed requests.
pub struct Verifier {
    credentials: Arc<Cached>,
    store: Arc<Store>,
    nonces: Arc<Nonces>,
    clock: Clock,
    adviser: Adviser,
    skews: Skews,
}

/// The proof that a request's signature holds, its nonce was fresh and its credentials are in force. Only
/// [`Verifier::verify`] makes one.
#[derive(Debug)]
pub struct Verified {
    credential: Credential,
    signature: Proof,
    /// It was signed with the secret that a newer one has replaced, during its grace.
    pub by_previous_secret: bool,
    /// The seconds that the consumer's clock is ahead of ours.
    pub skew_seconds: Option<i64>,
}

impl Verified {
    /// The credentials that signed.
    pub const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The credentials that signed, by value: the proof is used up.
    pub fn into_credential(self) -> Credential {
        self.credential
    }

    /// The deviations from RFC 5849 that it was accepted with, and that its consumer was allowed.
    pub const fn deviations(&self) -> DeviationSet {
        self.signature.deviations
    }

    /// Whether the signature covers the parameters in `location`; anyone may have added those that it does not cover.
    #[must_use]
    pub fn covers(&self, location: ParameterLocation) -> bool {
        match self.signature.selection {
            Selection::Rfc5849 => true,
            Selection::Description => location == ParameterLocation::Body,
        }
    }

    /// The values of the parameters with that name that the signature covers; `parameters` are those that were verified.
    pub fn values<'p>(&self, parameters: &'p Parameters, name: &[u8]) -> Vec<&'p [u8]> {
        self.signature.values(parameters, name)
    }
}

/// The proof that a signature holds, and which parameters it covers.
#[derive(Debug)]
struct Proof {
    _holds: SignatureHolds,
    selection: Selection,
    deviations: DeviationSet,
    /// The consumer's secret that it was made with; the current one with a method of RSA.
    secret: SecretAge,
}

impl Proof {
    fn values<'p>(&self, parameters: &'p Parameters, name: &[u8]) -> Vec<&'p [u8]> {
        parameters.signed_values(self.selection, self.deviations, name)
    }

    /// The base string that was signed.
    const fn dialect(&self) -> Dialect {
        match self.selection {
            Selection::Rfc5849 => Dialect::Rfc5849,
            Selection::Description => Dialect::Legacy,
        }
    }
}

impl Verifier {
    /// A verifier over credentials and nonces.
    pub fn new(
        credentials: Arc<Cached>,
        store: Arc<Store>,
        nonces: Arc<Nonces>,
        clock: Clock,
    ) -> Self {
        Self {
            credentials,
            store,
            nonces,
            clock,
            adviser: Adviser::default(),
            skews: Skews::default(),
        }
    }

    /// The cache of credentials.
    pub const fn credentials(&self) -> &Arc<Cached> {
        &self.credentials
    }

    /// The store under the cache.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Why all signed requests are rejected at present, if they are.
    pub fn outage(&self) -> Option<Outage> {
        self.nonces.outage(self.clock.now())
    }

    /// The seconds that the clocks of consumers are ahead of ours, if several agree that ours is wrong.
    pub fn clock_consensus(&self) -> Option<i64> {
        self.skews.consensus(Instant::now())
    }

    /// Verifies a call, in the order of this module. A right signature waits for at most three things, which most calls do not
    /// need: credentials that are not at hand, a nonce that is also recorded elsewhere, and a token that has to be read again.
    /// If the signature is wrong, the advice may need the body, which
    /// `unread` has then.
    ///
    /// # Errors
    /// The first check that fails, in the order of this module; a fault of the store, and those of
    /// [`Nonces::record_here`].
    pub async fn verify(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        request: &SignedRequest<'_>,
        unread: Option<&mut dyn UnreadBody>,
    ) -> Result<Verified, VerifyError> {
        let now = self.clock.now();
        let timely = self.check_timestamp(rules, request.window, &request.credentials, now);
        if let Err(mut outside) = timely {
            let found = cold::boxed(self.note_skew(rules, purpose, request, now)).await;
            if let VerifyRejection::TimestampOutsideWindow { proof, .. } = &mut outside {
                *proof = found;
            }
            return Err(outside.into());
        }
        let moment = self.credentials.moment(now);
        let at_hand = self.at_hand(purpose, &request.credentials, moment);
        let is_at_hand = at_hand.is_some();
        let found = match at_hand {
            Some(access) => Ok(Credential::AccessToken(access)),
            None => cold::boxed(self.find(purpose, &request.credentials)).await,
        };
        let mut credential = match found {
            Ok(credential) => credential,
            Err(VerifyError::Rejection(unknown)) => {
                let examining = self.is_by_request_token(rules, purpose, request, now);
                return Err(match cold::boxed(examining).await {
                    true => VerifyRejection::RequestTokenHere,
                    false => unknown,
                }
                .into());
            }
            Err(fault) => return Err(fault),
        };
        let Some(signature) = prove_by_owner(rules, purpose, request, &credential, now)? else {
            let advising = self.advise_on_wrong(rules, purpose, request, unread, &credential, now);
            return Err(cold::boxed(advising).await.into());
        };
        if let Credential::AccessToken(access) = &credential
            && !is_at_hand
        {
            self.credentials.keep_at_hand(access, moment);
        }
        check_body_hash(rules, request)?;
        if let Some(elsewhere) = self.record_nonce(request, now)? {
            cold::boxed(elsewhere.record()).await?;
        }
        if let Credential::AccessToken(access) = &mut credential
            && is_idle(rules, access, now)
        {
            *access = cold::boxed(self.reload_token(access)).await?;
        }
        self.accept(rules, purpose, request, (credential, signature), now)
    }

    /// The access token that a call names, if this thread has just verified another call with it.
    fn at_hand(
        &self,
        purpose: Purpose,
        named: &Credentials<'_>,
        moment: Moment,
    ) -> Option<Arc<AccessCredentials>> {
        let is_access = matches!(purpose, Purpose::Api | Purpose::OwnToken);
        let token = named.token.filter(|_| is_access)?;
        let access = self.credentials.at_hand(token, moment)?;
        (access.consumer.key.as_str().as_bytes() == named.consumer_key).then_some(access)
    }

    /// The rejection of a wrong signature, with advice where it is given.
    async fn advise_on_wrong(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        request: &SignedRequest<'_>,
        unread: Option<&mut dyn UnreadBody>,
        credential: &Credential,
        now: UnixTime,
    ) -> VerifyRejection {
        let advising = self.adviser.advise(rules, request, unread, credential, now);
        let Advised {
            advice,
            diagnosis,
            previous_secret,
        } = advising.await;
        // Without advice, the time of a wrong signature says nothing of the consumer.
        let needs = match advice {
            Some(_) => needed_deviation(rules, purpose, request, credential, now),
            None => None,
        };
        let is_proved = diagnosis.mistake().is_some_and(Mistake::proves_secret)
            || needs.is_some_and(|needed| needed != Deviation::EmptySecret);
        let has_secret = !credential.consumer().secret.expose().is_empty();
        VerifyRejection::SignatureWrong {
            advice,
            diagnosis,
            previous_secret,
            proof: match is_proved && has_secret {
                true => SenderProof::Secrets,
                false => SenderProof::None,
            },
            needs,
        }
    }

    /// Checks the states of credentials whose signature holds and whose nonce is recorded, and notes their use.
    fn accept(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        request: &SignedRequest<'_>,
        (credential, signature): (Credential, Proof),
        now: UnixTime,
    ) -> Result<Verified, VerifyError> {
        credential.check_states(rules, now)?;
        if purpose == Purpose::Api {
            let values = |name: &[u8]| signature.values(request.parameters, name);
            if let Some(wrong) = Pinned::not_held(credential.consumer().pinned(), values) {
                let name = wrong.written_name().to_owned();
                return Err(VerifyRejection::PinnedOtherwise { name }.into());
            }
        }
        if let Credential::AccessToken(access) = &credential {
            self.credentials.touch(access, now);
        }
        let method = request.credentials.signature_method;
        let dialect = signature.dialect();
        self.credentials
            .touch_consumer(credential.consumer(), now, method, dialect);
        self.skews.accepted(&credential.consumer().key);
        Ok(Verified {
            by_previous_secret: signature.secret == SecretAge::Previous,
            credential,
            signature,
            skew_seconds: skew(&request.credentials, now),
        })
    }

    /// Rejects a call by its head alone, before its form is read: for a timestamp outside the window, or for
    /// credentials that do not exist. This proves nothing.
    ///
    /// # Errors
    /// Those of the first two checks of [`Verifier::verify`].
    pub async fn check_head(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        window: Option<Duration>,
        named: &Credentials<'_>,
    ) -> Result<(), VerifyError> {
        let now = self.clock.now();
        self.check_timestamp(rules, window, named, now)?;
        self.find(purpose, named).await.map(drop)
    }

    /// Finds the credentials that a call names.
    ///
    /// # Errors
    /// [`VerifyRejection::ConsumerUnknown`], [`VerifyRejection::TokenUnknown`], and a fault of the store.
    async fn find(
        &self,
        purpose: Purpose,
        named: &Credentials<'_>,
    ) -> Result<Credential, VerifyError> {
        let key = named.consumer_key;
        match (purpose, named.token) {
            (Purpose::Api | Purpose::OwnToken, Some(token)) => {
                let access = self.credentials.access(token).await?;
                let is_of_key =
                    |it: &Arc<AccessCredentials>| it.consumer.key.as_str().as_bytes() == key;
                if let Some(access) = access.filter(is_of_key) {
                    return Ok(Credential::AccessToken(access));
                }
                self.known_consumer(key).await?;
                Err(VerifyRejection::TokenUnknown.into())
            }
            (Purpose::Api, None) => Ok(Credential::Application(self.known_consumer(key).await?)),
            (Purpose::RequestToken, _) => Ok(Credential::Consumer(self.known_consumer(key).await?)),
            (Purpose::AccessToken, token) => cold::boxed(self.find_request_token(key, token)).await,
            (Purpose::OwnToken, None) => Err(VerifyRejection::TokenUnknown.into()),
        }
    }

    async fn find_request_token(
        &self,
        key: &[u8],
        token: Option<&[u8]>,
    ) -> Result<Credential, VerifyError> {
        let consumer = self.credentials.consumer(key).await?;
        // It is looked up for an unknown consumer too, which costs the same.
        let token = match token.map(std::str::from_utf8) {
            Some(Ok(token)) => self.store.request_token(token).await?,
            _ => None,
        };
        let consumer = consumer.ok_or(VerifyRejection::ConsumerUnknown)?;
        let token = token.filter(|token| token.consumer == consumer.key);
        let token = token.ok_or(VerifyRejection::TokenUnknown)?;
        let credentials = RequestTokenCredentials { token, consumer };
        Ok(Credential::RequestToken(Box::new(credentials)))
    }

    /// Whether a call whose credentials were not found is rightly signed with a request token in place of an access token.
    /// Only its owner learns it, and only some calls in a second are looked at. One signature is computed whatever was found, so
    /// the time tells nobody whether a consumer or a token exists.
    async fn is_by_request_token(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        request: &SignedRequest<'_>,
        now: UnixTime,
    ) -> bool {
        let named = &request.credentials;
        let is_for_access = matches!(purpose, Purpose::Api | Purpose::OwnToken);
        let is_examined = is_for_access && named.token.is_some() && self.skews.may_verify(now);
        let found = match is_examined {
            true => self
                .find_request_token(named.consumer_key, named.token)
                .await
                .ok(),
            false => None,
        };
        let Some(credential) = found else {
            self.spend_on_unknown(rules, purpose, request);
            return false;
        };
        let accept = credential.consumer().accept;
        matches!(
            prove(rules, purpose, request, &credential, accept, now),
            Ok(Some(_))
        )
    }

    async fn known_consumer(&self, key: &[u8]) -> Result<Arc<ConsumerCredentials>, VerifyError> {
        let consumer = self.credentials.consumer(key).await?;
        Ok(consumer.ok_or(VerifyRejection::ConsumerUnknown)?)
    }

    /// Reads a token from the store again: another process may have used it.
    async fn reload_token(
        &self,
        access: &AccessCredentials,
    ) -> Result<Arc<AccessCredentials>, VerifyError> {
        let token = access.token().as_bytes();
        let found = self.credentials.access_reloaded(token).await?;
        let same = |found: &Arc<AccessCredentials>| found.consumer.key == access.consumer.key;
        found
            .filter(same)
            .ok_or_else(|| VerifyRejection::TokenUnknown.into())
    }

    /// Spends as much time as a wrong signature would, so that timing does not reveal whether a consumer or token exists.
    #[cold]
    #[inline(never)]
    fn spend_on_unknown(&self, rules: &VerifyRules, purpose: Purpose, request: &SignedRequest<'_>) {
        let keys = match purpose {
            Purpose::RequestToken if rules.signature.accept_description => 2,
            _ => 1,
        };
        let dummy = Candidate::from((SecretAge::Current, self.credentials.dummy().into()));
        let dummies = std::iter::repeat_n(dummy, keys);
        let selections = purpose.selections(rules, None);
        let texts = &[DeviationSet::NONE];
        std::hint::black_box(try_keys(request, dummies, None, selections, texts).is_some());
    }

    /// Checks the timestamp against the `window` of the request, or else the usual one. While the nonce window still is narrower,
    /// that one counts.
    fn check_timestamp(
        &self,
        rules: &VerifyRules,
        window: Option<Duration>,
        named: &Credentials<'_>,
        now: UnixTime,
    ) -> Result<(), VerifyRejection> {
        let Some(freshness) = &named.freshness else {
            return Ok(());
        };
        let length = window
            .unwrap_or(rules.signature.timestamp_window)
            .min(self.nonces.length());
        let (earliest, latest) = (now.before(length).0, now.after(length).0);
        let sent = freshness.timestamp.seconds();
        if (earliest..=latest).contains(&sent) {
            return Ok(());
        }
        Err(VerifyRejection::TimestampOutsideWindow {
            earliest,
            latest,
            advice: match self.clock_consensus() {
                Some(_) => clock::OURS.to_owned(),
                None => clock::advice(sent, now.0, length),
            },
            skew: skew(named, now),
            proof: None,
        })
    }

    /// Notes the clock of a consumer whose timestamp is rejected, if its signature holds. Returns what that proves, if the
    /// consumer was looked up and is registered.
    async fn note_skew(
        &self,
        rules: &VerifyRules,
        purpose: Purpose,
        request: &SignedRequest<'_>,
        now: UnixTime,
    ) -> Option<SenderProof> {
        let skew = skew(&request.credentials, now).filter(|_| self.skews.may_verify(now))?;
        match self.find(purpose, &request.credentials).await {
            Ok(credential) => {
                let accept = credential.consumer().accept;
                if let Ok(Some(_)) = prove(rules, purpose, request, &credential, accept, now) {
                    let consumer = &credential.consumer().key;
                    self.skews.rejected(consumer, skew, Instant::now());
                    return Some(SenderProof::Verified);
                }
                Some(SenderProof::None)
            }
            Err(error) => {
                self.spend_on_unknown(rules, purpose, request);
                // The consumer of an unknown token is known.
                let is_known =
                    matches!(error, VerifyError::Rejection(VerifyRejection::TokenUnknown));
                is_known.then_some(SenderProof::None)
            }
        }
    }

    /// Whether a call names a registered consumer; `false` also while the store fails.
    #[cold]
    pub async fn names_registered(&self, parameters: &Parameters) -> bool {
        let Some(key) = parameters.find("oauth_consumer_key").next() else {
            return false;
        };
        let consumer = self.credentials.consumer(key.value).await;
        matches!(consumer, Ok(Some(_)))
    }

    /// Records the nonce in this process: of several requests with the same one, one succeeds. With a shared window it has to be
    /// recorded there too.
    fn record_nonce<'n>(
        &'n self,
        request: &SignedRequest<'n>,
        now: UnixTime,
    ) -> Result<Option<Elsewhere<'n>>, VerifyError> {
        // Another process may serve by now, and changes of the store are no longer followed here.
        if self.nonces.window().is_closed() {
            return Err(VerifyFault::WindowClosed.into());
        }
        let Some(freshness) = &request.credentials.freshness else {
            // PLAINTEXT without timestamp and nonce (RFC 5849 §3.1): it is accepted only under TLS, if at all.
            return Ok(None);
        };
        let nonce = NonceUse {
            timestamp: freshness.timestamp.seconds(),
            consumer: request.credentials.consumer_key,
            token: request.credentials.token.unwrap_or_default(),
            nonce: freshness.nonce.as_bytes(),
        };
        self.nonces.record_here(now, nonce)
    }
}

/// A key that the signature may have been made with.
#[derive(Clone, Copy)]
struct Candidate<'k> {
    key: Key<'k>,
    secret: SecretAge,
    /// The deviation that lets the key be tried, if one does.
    deviations: DeviationSet,
}

impl<'k> From<(SecretAge, Key<'k>)> for Candidate<'k> {
    fn from((secret, key): (SecretAge, Key<'k>)) -> Self {
        Self {
            key,
            secret,
            deviations: DeviationSet::NONE,
        }
    }
}

impl Candidate<'_> {
    fn by(self, deviation: Deviation) -> Self {
        let deviations = self.deviations.with(deviation);
        Self { deviations, ..self }
    }
}

/// Proves the signature; a consumer that may only sign by RSA is not let pass with its secret.
///
/// # Errors
/// As [`prove`], and [`VerifyRejection::SignatureWrong`] for a right signature by such a secret.
fn prove_by_owner(
    rules: &VerifyRules,
    purpose: Purpose,
    request: &SignedRequest<'_>,
    credential: &Credential,
    now: UnixTime,
) -> Result<Option<Proof>, VerifyRejection> {
    let (consumer, accept) = (credential.consumer(), credential.consumer().accept);
    let by_secret = !request.credentials.signature_method.is_rsa();
    let Some(mut proof) = prove(rules, purpose, request, credential, accept, now)? else {
        return Ok(None);
    };
    if by_secret && consumer.rsa_only {
        // Only the owner of the secret gets here.
        let advice = (rules.signature.advice != Advice::Off).then(advice::rsa_only);
        return Err(VerifyRejection::SignatureWrong {
            advice,
            diagnosis: Diagnosed::Unknown,
            previous_secret: proof.secret == SecretAge::Previous,
            proof: SenderProof::Secrets,
            needs: None,
        });
    }
    // The record may be read again later; what it allowed until now decides what was left unsigned.
    proof.deviations = proof.deviations.and(accept);
    Ok(Some(proof))
}

/// Proves the signature with one of the credentials' keys; `None`: it is wrong.
fn prove(
    rules: &VerifyRules,
    purpose: Purpose,
    request: &SignedRequest<'_>,
    credential: &Credential,
    accept: DeviationSet,
    now: UnixTime,
) -> Result<Option<Proof>, VerifyRejection> {
    let method = request.credentials.signature_method;
    if method == SignatureMethod::Plaintext && !request.secure {
        return Err(VerifyRejection::SignatureMethodRejected);
    }
    let consumer = credential.consumer();
    let rsa = consumer.rsa();
    let selections = purpose.selections(rules, consumer.dialect);
    let texts = &*texts(purpose, request, accept);
    Ok(match credential {
        Credential::AccessToken(access) => {
            let is_empty_accepted =
                method == SignatureMethod::Plaintext && accept.contains(Deviation::EmptySecret);
            let keys = access.keys(now).map(Candidate::from);
            let keys = keys.map(|candidate| match candidate.key.consumer_secret {
                [] if is_empty_accepted => candidate.by(Deviation::EmptySecret),
                _ => candidate,
            });
            try_keys(request, keys, rsa, selections, texts)
        }
        Credential::Application(consumer) => {
            let deviation = Deviation::KeyWithoutAmpersand;
            let alone = consumer.keys_alone(now).map(Candidate::from);
            let alone = alone.filter(|_| accept.contains(deviation));
            let alone = alone.map(|candidate| candidate.by(deviation));
            let keys = consumer.keys(now).map(Candidate::from);
            try_keys(request, keys.chain(alone), rsa, selections, texts)
        }
        Credential::Consumer(consumer) => {
            let alone = consumer.keys_alone(now);
            let alone = alone.filter(|_| rules.signature.accept_description);
            let keys = consumer.keys(now).chain(alone).map(Candidate::from);
            try_keys(request, keys, rsa, selections, texts)
        }
        Credential::RequestToken(signer) => {
            let joined = |(age, secret)| (age, SigningKey::new(secret, &signer.token.secret));
            let keys: Vec<(SecretAge, SigningKey)> = consumer.secrets(now).map(joined).collect();
            let keys = keys.iter().map(|(age, key)| (*age, key.into()).into());
            try_keys(request, keys, rsa, selections, texts)
        }
    })
}

/// The deviations in the base string with which it may have been signed, none of them first.
fn texts(
    purpose: Purpose,
    request: &SignedRequest<'_>,
    accept: DeviationSet,
) -> Cow<'static, [DeviationSet]> {
    let is_token_call = matches!(purpose, Purpose::RequestToken | Purpose::AccessToken);
    let accept = match request.is_described {
        true => accept.without(Deviation::RepeatsOnce),
        // Libraries that keep parameters in a map sign once what they send in two places. Nothing is left unsigned.
        false if is_token_call && request.parameters.has_equal_copies() => {
            accept.with(Deviation::RepeatsOnce)
        }
        false => accept,
    };
    match request.parameters.deviations_in_text(accept) {
        DeviationSet::NONE => Cow::Borrowed(&[DeviationSet::NONE]),
        applicable => Cow::Owned(applicable.subsets().collect()),
    }
}

/// The deviation that the consumer is not allowed and with which the signature holds.
#[cold]
fn needed_deviation(
    rules: &VerifyRules,
    purpose: Purpose,
    request: &SignedRequest<'_>,
    credential: &Credential,
    now: UnixTime,
) -> Option<Deviation> {
    let accept = credential.consumer().accept;
    let mut others = Deviation::ALL.iter().copied();
    others.find(|&deviation| {
        let proof = || {
            let accept = accept.with(deviation);
            prove(rules, purpose, request, credential, accept, now)
        };
        !accept.contains(deviation) && matches!(proof(), Ok(Some(_)))
    })
}

/// Tries the keys, each with every base string that the call may be signed with.
fn try_keys<'k>(
    request: &SignedRequest<'_>,
    keys: impl Iterator<Item = Candidate<'k>>,
    rsa: Option<&RsaPublicKey>,
    selections: &[Selection],
    texts: &[DeviationSet],
) -> Option<Proof> {
    let Credentials {
        signature_method,
        signature,
        ..
    } = request.credentials;
    for Candidate {
        key,
        secret,
        deviations,
    } in keys
    {
        // Without a secret anybody can sign.
        if key.consumer_secret.is_empty()
            && !signature_method.is_rsa()
            && !deviations.contains(Deviation::EmptySecret)
        {
            continue;
        }
        for &selection in selections {
            for &text in texts {
                let base = BaseString {
                    deviations: text,
                    ..base_string(request, selection)
                };
                if let Ok(_holds) = signature::verify(signature_method, key, rsa, &base, signature)
                {
                    return Some(Proof {
                        _holds,
                        selection,
                        deviations: text.iter().fold(deviations, DeviationSet::with),
                        secret,
                    });
                }
            }
        }
    }
    None
}

fn base_string<'r>(request: &SignedRequest<'r>, selection: Selection) -> BaseString<'r> {
    BaseString {
        method: request.method,
        origin: &request.url.encoded,
        path: request.path,
        parameters: request.parameters,
        selection,
        deviations: DeviationSet::NONE,
    }
}

fn check_body_hash(
    rules: &VerifyRules,
    request: &SignedRequest<'_>,
) -> Result<(), VerifyRejection> {
    let Credentials {
        signature_method,
        body_hash,
        ..
    } = request.credentials;
    let body = request.body.unwrap_or_default();
    match body_hash {
        Some(sent)
            if !is_allowed_body_hash(signature_method, rules.signature.methods, sent, body) =>
        {
            Err(VerifyRejection::BodyHashWrong)
        }
        _ => Ok(()),
    }
}

fn skew(named: &Credentials<'_>, now: UnixTime) -> Option<i64> {
    let timestamp = named.freshness.as_ref()?.timestamp.seconds();
    let timestamp = i64::try_from(timestamp).unwrap_or(i64::MAX);
    Some(timestamp.saturating_sub_unsigned(now.0))
}

#[cfg(test)]
mod tests;
