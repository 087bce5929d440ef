//! Verifies calls with Bearer tokens: the token, its consumer and access token, states, pinned parameters, in this order.
//!
//! Most calls never wait: their tokens were verified a moment ago, and what they permit is known.

use std::{net::IpAddr, sync::Arc};

use super::{
    Credential, Purpose, Verification, Verified, Verifier, VerifyError, VerifyRejection,
    VerifyRules,
};
use crate::{
    base::{
        clock::UnixTime,
        cold::{self, cold_from},
        findings::First,
    },
    oauth::{DeviationSet, Parameters, Selection},
    records::credentials::{BearerCredentials, BearerToken},
    request::{
        bearer::{BearerError, BearerRejection, BearerTokens},
        parse::claimed::Claimed,
        verify::proof::credential::is_idle,
    },
    telemetry::redact::RedactedToken,
};

/// A call with a Bearer token, of which nothing is proved.
#[derive(Clone, Copy)]
pub struct BearerRequest<'r> {
    /// The rules by which tokens are verified.
    pub tokens: &'r BearerTokens,
    /// The token.
    pub token: &'r [u8],
    /// All parameters.
    pub parameters: &'r Parameters,
    /// The nearest address to the caller that is known.
    pub caller: Option<IpAddr>,
    /// The address of the caller itself, which rules judge, if it is known.
    pub own_address: Option<IpAddr>,
}

cold_from!(VerifyError {
    BearerError as it => match it {
        BearerError::Rejection(rejection) => rejection.into(),
        BearerError::Fault(fault) => fault.into(),
    },
    BearerRejection as it => Self::Rejection(VerifyRejection::Bearer(it)),
});

/// A verified token, and what it permits.
type Found = (Arc<BearerToken>, Arc<BearerCredentials>);

impl Verifier {
    /// Verifies a call with a Bearer token, in the order of this module.
    ///
    /// # Errors
    /// The first check that fails; a fault of the issuer or of the store.
    pub fn verify_bearer<'v>(
        &'v self,
        rules: &'v VerifyRules,
        request: BearerRequest<'v>,
    ) -> Verification<'v> {
        let now = self.clock.now();
        let known = self.known(request, now).and_then(|token| {
            let found = self.credentials.known_bearer(&token, now)?;
            let mut access = found.access.iter();
            let is_idle = access.any(|access| is_idle(rules, access, now));
            (!is_idle).then_some((token, found))
        });
        match known {
            Some(found) => Verification::Ended(self.accept_bearer(rules, request, found, now)),
            None => Verification::Waits(cold::boxed(async move {
                let found = self.find_bearer(rules, request, now).await;
                let accept = |found| self.accept_bearer(rules, request, found, now);
                Verification::Ended(found.and_then(accept))
            })),
        }
    }

    /// Rejects a token that is not valid, before a form is read.
    ///
    /// # Errors
    /// Those of [`Verifier::verify_bearer`], but for states and parameters.
    pub async fn check_bearer(
        &self,
        rules: &VerifyRules,
        request: BearerRequest<'_>,
    ) -> Result<(), VerifyError> {
        let finding = self.find_bearer(rules, request, self.clock.now());
        finding.await.map(drop)
    }

    /// The consumer and the token that a call names, if the issuer of its token vouches for them.
    #[cold]
    pub fn named_by_bearer(&self, request: BearerRequest<'_>) -> Option<Box<Claimed>> {
        let token = self.known(request, self.clock.now())?;
        let name = token.claims.name();
        Some(Box::new(Claimed {
            consumer: Some(token.claims.consumer.as_str().to_owned()),
            token: name.map(|name| RedactedToken(name).to_string()),
        }))
    }

    fn known(&self, request: BearerRequest<'_>, now: UnixTime) -> Option<Arc<BearerToken>> {
        let rules = request.tokens.number();
        self.credentials.bearer(request.token, rules, now)
    }

    /// Verifies a token, and finds what it permits.
    async fn find_bearer(
        &self,
        rules: &VerifyRules,
        request: BearerRequest<'_>,
        now: UnixTime,
    ) -> Result<Found, VerifyError> {
        let cached = &self.credentials;
        let token = match self.known(request, now) {
            Some(token) => token,
            None => request.tokens.verify(request.token, cached, now).await?,
        };
        let is_idle = |access: &_| is_idle(rules, access, now);
        match cached.found_bearer(&token, is_idle).await? {
            Some(found) => Ok((token, found)),
            None if token.claims.exchanged.is_some() => Err(VerifyRejection::TokenUnknown.into()),
            None => Err(BearerRejection::ConsumerUnknown.into()),
        }
    }

    /// Checks the states of what a token permits, and notes its use.
    fn accept_bearer(
        &self,
        rules: &VerifyRules,
        request: BearerRequest<'_>,
        (token, found): Found,
        now: UnixTime,
    ) -> Result<Verified, VerifyError> {
        if now >= token.claims.expires_at {
            return Err(VerifyRejection::TokenExpired.into());
        }
        let credential = Credential::Bearer(Arc::clone(&found));
        credential.check_address(request.own_address)?;
        // Who has the token has sent all parameters.
        let parameters = request.parameters;
        let values =
            |name: &[u8]| parameters.signed_values(Selection::Rfc5849, DeviationSet::NONE, name);
        let sent = (parameters, values);
        rules.check_rights(Purpose::Api, &credential, now, sent, &mut First)?;
        self.credentials.touch_bearer(&found, now, request.caller);
        Ok(Verified::by_bearer(credential))
    }
}
