//! The check of one call: plain functions, with a future only where it has to wait.
//!
//! Most calls never wait: their credentials are at hand, and their nonces are recorded here alone.

use std::pin::Pin;

use super::{
    Credential, UnreadBody, Verified, Verifier, VerifyError, VerifyRejection,
    proof::{Proof, SignedCall},
    skew::skew,
};
use crate::{
    base::{cold, findings::First},
    oauth::{Deviation, diagnosis::Mistake},
    records::{
        credentials::LookupTime,
        nonce::{Elsewhere, NonceFault, NonceUse},
    },
    request::verify::proof::credential::is_idle,
    telemetry::calls::facts::SenderProof,
};

/// The result of a verification, or the future that brings it.
#[must_use]
pub enum Verification<'v> {
    /// It did not have to wait.
    Ended(Result<Verified, VerifyError>),
    /// It waits for credentials, or for what a rejection says: nothing is proved.
    Waits(Pin<Box<dyn Future<Output = Self> + 'v>>),
    /// The signature holds. It waits for a nonce that is also recorded elsewhere, or for a token that is read again.
    Proved(Pin<Box<dyn Future<Output = Result<Verified, VerifyError>> + 'v>>),
}

impl<'v> Verification<'v> {
    /// The rejection of a call whose signature does not hold, out of line.
    fn rejected(rejection: impl Future<Output = VerifyError> + 'v) -> Self {
        Self::Waits(cold::boxed(async { Self::Ended(Err(rejection.await)) }))
    }

    /// Waits for the result if need be.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub async fn outcome(mut self) -> Result<Verified, VerifyError> {
        loop {
            self = match self {
                Self::Ended(result) => return result,
                Self::Waits(rest) => rest.await,
                Self::Proved(rest) => return rest.await,
            }
        }
    }
}

/// The check of one call.
#[derive(Clone, Copy)]
pub(super) struct Check<'v> {
    pub(super) verifier: &'v Verifier,
    pub(super) call: SignedCall<'v>,
}

impl<'v> Check<'v> {
    /// All of it: timestamp, credentials, and then as [`Self::of`].
    pub(super) fn run(self, unread: Option<UnreadBody<'v>>) -> Verification<'v> {
        let (verifier, SignedCall { request, now, .. }) = (self.verifier, self.call);
        let (named, window) = (&request.credentials, request.window);
        if let Err(outside) = verifier.check_timestamp(self.call.rules, window, named, now) {
            return Verification::rejected(async move { self.reject_timestamp(outside).await });
        }
        let moment = verifier.credentials.moment(now);
        match self.at_hand(moment) {
            Some(access) => self.of(Credential::AccessToken(access), None, unread),
            None => Verification::Waits(cold::boxed(async move {
                match self.load().await {
                    Ok(credential) => self.of(credential, Some(moment), unread),
                    Err(error) => Verification::Ended(Err(error)),
                }
            })),
        }
    }

    /// Signature, body hash, nonce and states of a call with these credentials, which were loaded at that moment unless they
    /// were at hand.
    fn of(
        self,
        credential: Credential,
        loaded: Option<LookupTime>,
        unread: Option<UnreadBody<'v>>,
    ) -> Verification<'v> {
        let SignedCall { rules, now, .. } = self.call;
        let signature = match self.call.prove_by_owner(&credential) {
            Ok(Some(signature)) => signature,
            Ok(None) => {
                let advising = async move { self.advise_on_wrong(unread, &credential).await };
                return Verification::rejected(advising);
            }
            Err(rejection) => return Verification::Ended(Err(rejection.into())),
        };
        if let (Credential::AccessToken(access), Some(moment)) = (&credential, loaded) {
            self.verifier.credentials.keep_at_hand(access, moment);
        }
        let is_idle = match &credential {
            Credential::AccessToken(access) => is_idle(rules, access, now),
            _ => false,
        };
        match self.record() {
            Err(error) => Verification::Ended(Err(error)),
            Ok(None) if !is_idle => Verification::Ended(self.accept(credential, signature)),
            Ok(elsewhere) => Verification::Proved(cold::boxed(async move {
                if let Some(elsewhere) = elsewhere {
                    elsewhere.record().await?;
                }
                let credential = match credential {
                    Credential::AccessToken(access) if is_idle => {
                        Credential::AccessToken(self.reload(&access).await?)
                    }
                    credential => credential,
                };
                self.accept(credential, signature)
            })),
        }
    }

    /// The rejection of a wrong signature, with advice where it is given.
    async fn advise_on_wrong(
        &self,
        unread: Option<UnreadBody<'_>>,
        credential: &Credential,
    ) -> VerifyError {
        let advising = (self.verifier.adviser).advise(self.call, unread, credential);
        let mut wrong = advising.await;
        let mistake = wrong.diagnosis.mistake();
        let is_proved = mistake.is_some_and(Mistake::proves_secret)
            || wrong
                .needs
                .is_some_and(|needed| needed != Deviation::EmptySecret);
        let has_secret = !credential.consumer().secret.expose().is_empty();
        if is_proved && has_secret {
            wrong.proof = SenderProof::Secrets;
        }
        VerifyRejection::SignatureWrong(wrong).into()
    }

    /// Checks the body hash, and records the nonce in this process: of several requests with the same one, one succeeds. With a
    /// shared window it has to be recorded there too.
    fn record(&self) -> Result<Option<Elsewhere<'v>>, VerifyError> {
        let SignedCall { request, now, .. } = self.call;
        request.check_body()?;
        let nonces = &self.verifier.nonces;
        // Another process may serve by now, and changes of the store are no longer followed here.
        if nonces.window().is_closed() {
            return Err(NonceFault::Closed.into());
        }
        let named = &request.credentials;
        let Some(freshness) = &named.freshness else {
            // PLAINTEXT without timestamp and nonce (RFC 5849 §3.1): it is accepted only under TLS, if at all.
            return Ok(None);
        };
        let nonce = NonceUse {
            timestamp: freshness.timestamp.seconds(),
            consumer: named.consumer_key,
            token: named.token.unwrap_or_default(),
            nonce: freshness.nonce.as_bytes(),
        };
        Ok(nonces.record_here(now, nonce)?)
    }

    /// Checks the states of credentials whose signature holds and whose nonce is recorded, and notes their use.
    fn accept(self, credential: Credential, signature: Proof) -> Result<Verified, VerifyError> {
        let Self { verifier, call } = self;
        let (request, now) = (call.request, call.now);
        let values = |name: &[u8]| signature.values(request.parameters, name);
        let signed = (request.parameters, values);
        credential.check_address(request.own_address)?;
        (call.rules).check_rights(call.purpose, &credential, now, signed, &mut First)?;
        if let Credential::AccessToken(access) = &credential {
            verifier.credentials.touch(access, now, request.caller);
        }
        let method = request.credentials.signature_method;
        let (consumer, dialect) = (credential.consumer(), signature.dialect());
        verifier
            .credentials
            .touch_consumer(consumer, now, method, dialect);
        verifier.skews.accepted(&consumer.key);
        let skew = skew(&request.credentials, now);
        Ok(Verified::new(credential, signature, skew))
    }
}
