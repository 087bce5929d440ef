//! The proof that a request is verified.

use super::credential::Credential;
use crate::{
    oauth::{DeviationSet, ParameterLocation, Parameters, Selection},
    records::credentials::SecretAge,
    request::verify::proof::Proof,
};

/// The proof that a request's signature holds, its nonce was fresh and its credentials are in force. Only
/// [`Verifier::verify`](crate::request::verify::Verifier::verify) makes one.
#[derive(Debug)]
pub struct Verified {
    credential: Credential,
    /// `None`: by a Bearer token.
    signature: Option<Proof>,
    /// It was signed with the secret that a newer one has replaced, during its grace.
    pub by_previous_secret: bool,
    /// The seconds that the consumer's clock is ahead of ours.
    pub skew_seconds: Option<i64>,
}

impl Verified {
    pub(crate) fn new(credential: Credential, signature: Proof, skew_seconds: Option<i64>) -> Self {
        Self {
            by_previous_secret: signature.secret == SecretAge::Previous,
            credential,
            signature: Some(signature),
            skew_seconds,
        }
    }

    pub(crate) const fn by_bearer(credential: Credential) -> Self {
        Self {
            by_previous_secret: false,
            credential,
            signature: None,
            skew_seconds: None,
        }
    }

    /// Whether it is signed, rather than by a Bearer token.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// The credentials that signed.
    pub const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The credentials that signed, by value: the proof is used up.
    pub fn into_credential(self) -> Credential {
        self.credential
    }

    /// The deviations from RFC 5849 that it was accepted with, and that its consumer was allowed.
    pub fn deviations(&self) -> DeviationSet {
        let signature = self.signature.as_ref();
        signature.map_or(DeviationSet::NONE, |it| it.deviations)
    }

    /// The parameters that are the consumer's; all of them if it sent a Bearer token.
    fn selection(&self) -> Selection {
        let signature = self.signature.as_ref();
        signature.map_or(Selection::Rfc5849, |it| it.selection)
    }

    /// Whether the signature covers the parameters in `location`; anyone may have added those that it does not cover.
    #[must_use]
    pub fn covers(&self, location: ParameterLocation) -> bool {
        match self.selection() {
            Selection::Rfc5849 => true,
            Selection::Description => location == ParameterLocation::Body,
        }
    }

    /// The values of the parameters with that name that the signature covers; `parameters` are those that were verified.
    pub fn values<'p>(&self, parameters: &'p Parameters, name: &[u8]) -> Vec<&'p [u8]> {
        parameters.signed_values(self.selection(), self.deviations(), name)
    }
}
