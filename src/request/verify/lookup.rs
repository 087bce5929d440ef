//! Finds the credentials that a call names, at the same cost whether or not they exist.

use std::sync::Arc;

use super::{
    Credential, Purpose, RequestTokenCredentials, SignedCall, Verifier, VerifyError,
    VerifyRejection, check::Check,
};
use crate::{
    base::cold,
    oauth::{Credentials, Parameters},
    records::credentials::{AccessCredentials, ConsumerCredentials, LocalAccess, LookupTime},
};

impl Verifier {
    /// Finds the credentials that a call names.
    ///
    /// # Errors
    /// [`VerifyRejection::ConsumerUnknown`], [`VerifyRejection::TokenUnknown`], and a fault of the store.
    pub(super) async fn find(
        &self,
        purpose: Purpose,
        named: &Credentials<'_>,
    ) -> Result<Credential, VerifyError> {
        let key = named.consumer_key;
        match (purpose, named.token) {
            (Purpose::Api | Purpose::OwnToken | Purpose::Exchange, Some(token)) => {
                let access = self.credentials.access(token, key).await?;
                if let Some(access) = access.filter(|access| is_of(key, access)) {
                    return Ok(Credential::AccessToken(access.into()));
                }
                self.known_consumer(key).await?;
                Err(VerifyRejection::TokenUnknown.into())
            }
            (Purpose::Api | Purpose::Exchange, None) => {
                Ok(Credential::Application(self.known_consumer(key).await?))
            }
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
        let consumer = consumer.ok_or_else(|| unknown_consumer(key))?;
        let token = token.filter(|token| token.consumer == consumer.key);
        let token = token.ok_or(VerifyRejection::TokenUnknown)?;
        let credentials = RequestTokenCredentials { token, consumer };
        Ok(Credential::RequestToken(Box::new(credentials)))
    }

    async fn known_consumer(&self, key: &[u8]) -> Result<Arc<ConsumerCredentials>, VerifyError> {
        let consumer = self.credentials.consumer(key).await?;
        Ok(consumer.ok_or_else(|| unknown_consumer(key))?)
    }

    /// Whether a call names a registered consumer; `false` also while the store fails.
    #[cold]
    pub async fn is_consumer_registered(&self, parameters: &Parameters) -> bool {
        let Some(key) = parameters.find("oauth_consumer_key").next() else {
            return false;
        };
        let consumer = self.credentials.consumer(key.value).await;
        matches!(consumer, Ok(Some(_)))
    }

    /// Spends as much time as a wrong signature would, so that timing does not reveal whether a consumer or token exists.
    #[cold]
    #[inline(never)]
    pub(super) fn spend_on_unknown(&self, call: &SignedCall<'_>) {
        std::hint::black_box(call.try_dummy(self.credentials.dummy()));
    }
}

impl<'v> Check<'v> {
    /// The access token that the call names, if this thread has just verified another call with it.
    pub(super) fn at_hand(&self, moment: LookupTime) -> Option<LocalAccess> {
        let named = &self.call.request.credentials;
        let token = named
            .token
            .filter(|_| self.call.purpose.takes_access_token())?;
        let access = self.verifier.credentials.at_hand(token, moment)?;
        is_of(named.consumer_key, &access).then_some(access)
    }

    /// The credentials that the call names, from the cache or the store.
    ///
    /// # Errors
    /// As [`Verifier::find`], and [`VerifyRejection::RequestTokenHere`].
    pub(super) async fn load(&self) -> Result<Credential, VerifyError> {
        let SignedCall {
            purpose, request, ..
        } = self.call;
        match self.verifier.find(purpose, &request.credentials).await {
            Err(VerifyError::Rejection(unknown)) => {
                Err(match cold::boxed(self.is_by_request_token()).await {
                    true => VerifyRejection::RequestTokenHere,
                    false => unknown,
                }
                .into())
            }
            found => found,
        }
    }

    /// Whether a call whose credentials were not found is rightly signed with a request token instead of an access token.
    /// Only its owner learns it, and only some calls in a second are looked at. One signature is computed whatever was found, so
    /// the time does not tell whether a consumer or a token exists.
    async fn is_by_request_token(&self) -> bool {
        let (verifier, call) = (self.verifier, &self.call);
        let named = &call.request.credentials;
        let is_examined = call.purpose.takes_access_token()
            && named.token.is_some()
            && verifier.skews.may_verify(call.now);
        let found = match is_examined {
            true => verifier
                .find_request_token(named.consumer_key, named.token)
                .await
                .ok(),
            false => None,
        };
        let Some(credential) = found else {
            verifier.spend_on_unknown(call);
            return false;
        };
        let accept = credential.consumer().accept;
        matches!(call.prove(&credential, accept, None), Ok(Some(_)))
    }

    /// Reads a token from the store again: another process may have used it.
    pub(super) async fn reload(
        &self,
        access: &AccessCredentials,
    ) -> Result<LocalAccess, VerifyError> {
        let (token, key) = (access.token.as_bytes(), access.consumer.key.as_str());
        let cached = &self.verifier.credentials;
        let found = cached.access_reloaded(token, key.as_bytes()).await?;
        let same = |found: &Arc<AccessCredentials>| found.consumer.key == access.consumer.key;
        let found = found.filter(same).ok_or(VerifyRejection::TokenUnknown)?;
        Ok(found.into())
    }
}

/// Whether the token belongs to the consumer with this key.
fn is_of(key: &[u8], access: &AccessCredentials) -> bool {
    access.consumer.key.as_str().as_bytes() == key
}

/// The rejection of a key that no consumer has. It discloses nothing: white space is in the key that was sent.
fn unknown_consumer(key: &[u8]) -> VerifyRejection {
    match String::from_utf8_lossy(key) {
        text if text.trim() != text => VerifyRejection::ConsumerKeySpaced,
        _ => VerifyRejection::ConsumerUnknown,
    }
}
