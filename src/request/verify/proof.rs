//! Proves a signature with the keys that its credentials have, and the base strings that the call may be signed with.

pub(super) mod credential;
pub(super) mod verified;

use std::borrow::Cow;

use super::{Credential, Purpose, VerifyRejection, VerifyRules};
use crate::{
    base::clock::UnixTime,
    oauth::{
        BaseString, Deviation, DeviationSet, Key, Parameters, RsaPublicKey, Selection,
        SignatureHolds, SignatureMethod, SigningKey, signature,
    },
    records::{credentials::SecretAge, values::record::Dialect},
    request::parse::signed::SignedRequest,
};

/// The proof that a signature holds, and which parameters it covers.
#[derive(Debug)]
pub struct Proof {
    _holds: SignatureHolds,
    pub(super) selection: Selection,
    /// The deviations from RFC 5849 that it needs.
    pub deviations: DeviationSet,
    /// The consumer's secret that it was made with; the current one with a method of RSA.
    pub secret: SecretAge,
}

impl Proof {
    /// The values of the parameters with that name that the signature covers.
    pub fn values<'p>(&self, parameters: &'p Parameters, name: &[u8]) -> Vec<&'p [u8]> {
        parameters.signed_values(self.selection, self.deviations, name)
    }

    /// The base string that was signed.
    pub(super) const fn dialect(&self) -> Dialect {
        match self.selection {
            Selection::Rfc5849 => Dialect::Rfc5849,
            Selection::Description => Dialect::Legacy,
        }
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

/// The result of a check of the signature alone.
#[derive(Debug)]
pub enum SignatureCheck {
    /// It holds.
    Holds(Proof),
    /// It would hold if the consumer was allowed this deviation.
    Needs(Deviation),
    /// It is wrong.
    Wrong,
}

/// A signed call with all that decides whether its signature holds, but for the keys.
#[derive(Clone, Copy)]
pub struct SignedCall<'c> {
    /// The rules.
    pub rules: &'c VerifyRules,
    /// Its purpose.
    pub purpose: Purpose,
    /// The request.
    pub request: &'c SignedRequest<'c>,
    /// The time of the check.
    pub now: UnixTime,
}

impl SignedCall<'_> {
    /// Proves the signature, and rejects the secret of a consumer that may only sign by RSA.
    ///
    /// # Errors
    /// As [`Self::prove`], and [`VerifyRejection::SignatureWrong`] for a right signature by such a secret.
    pub(super) fn prove_by_owner(
        &self,
        credential: &Credential,
    ) -> Result<Option<Proof>, VerifyRejection> {
        let (consumer, accept) = (credential.consumer(), credential.consumer().accept);
        let Some(mut proof) = self.prove(credential, accept, None)? else {
            return Ok(None);
        };
        let method = self.request.credentials.signature_method;
        self.rules.check_key(method, consumer, proof.secret)?;
        // The record may be read again later; what it allowed until now decides what was left unsigned.
        proof.deviations = proof.deviations.and(accept);
        Ok(Some(proof))
    }

    /// Proves the signature with one of the credentials' keys; `None`: it is wrong.
    pub(super) fn prove(
        &self,
        credential: &Credential,
        accept: DeviationSet,
        needed: Option<Deviation>,
    ) -> Result<Option<Proof>, VerifyRejection> {
        let (rules, request, now) = (self.rules, self.request, self.now);
        let method = request.credentials.signature_method;
        request.check_transport()?;
        let consumer = credential.consumer();
        let rsa = consumer.rsa.as_deref();
        let selections = self.purpose.selections(rules, consumer.dialect);
        let sets = (&*self.deviation_sets(accept), needed);
        Ok(match credential {
            Credential::AccessToken(access) => {
                let is_empty_accepted =
                    method == SignatureMethod::Plaintext && accept.contains(Deviation::EmptySecret);
                let keys = access.keys(now).map(Candidate::from);
                let keys = keys.map(|candidate| match candidate.key.consumer_secret {
                    [] if is_empty_accepted => candidate.by(Deviation::EmptySecret),
                    _ => candidate,
                });
                try_keys(request, keys, rsa, selections, sets)
            }
            Credential::Application(consumer) => {
                let deviation = Deviation::KeyWithoutAmpersand;
                let alone = consumer.keys_alone(now).map(Candidate::from);
                let alone = alone.filter(|_| accept.contains(deviation));
                let alone = alone.map(|candidate| candidate.by(deviation));
                let keys = consumer.keys(now).map(Candidate::from);
                try_keys(request, keys.chain(alone), rsa, selections, sets)
            }
            Credential::Consumer(consumer) => {
                let alone = consumer.keys_alone(now);
                let alone = alone.filter(|_| rules.signature.accept_description);
                let keys = consumer.keys(now).chain(alone).map(Candidate::from);
                try_keys(request, keys, rsa, selections, sets)
            }
            Credential::RequestToken(signer) => {
                let joined = |(age, secret)| (age, SigningKey::new(secret, &signer.token.secret));
                let keys: Vec<(SecretAge, SigningKey)> =
                    consumer.secrets(now).map(joined).collect();
                let keys = keys.iter().map(|(age, key)| (*age, key.into()).into());
                try_keys(request, keys, rsa, selections, sets)
            }
            Credential::Bearer(_) => None,
        })
    }

    /// The deviations in the base string with which it may have been signed, none of them first.
    fn deviation_sets(&self, accept: DeviationSet) -> Cow<'static, [DeviationSet]> {
        let request = self.request;
        let is_token_call = matches!(self.purpose, Purpose::RequestToken | Purpose::AccessToken);
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

    /// Checks the signature alone, as [`Verifier::verify`](super::Verifier::verify) does; the other steps are those of
    /// [`Self::rejections`].
    pub fn check_signature(self, credential: &Credential) -> SignatureCheck {
        let accept = credential.consumer().accept;
        let request = &SignedRequest {
            secure: true,
            ..*self.request
        };
        let call = SignedCall { request, ..self };
        match call.prove(credential, accept, None) {
            Ok(Some(mut proof)) => {
                proof.deviations = proof.deviations.and(accept);
                SignatureCheck::Holds(proof)
            }
            Ok(None) | Err(_) => call
                .needed_deviation(credential, &|| true)
                .map_or(SignatureCheck::Wrong, SignatureCheck::Needs),
        }
    }

    /// The deviation that the consumer is not allowed and with which the signature holds, if it is found while `may_go_on`.
    /// Those that change neither the text nor the key of this request are not tried, and neither is what was tried without
    /// them.
    #[cold]
    pub(super) fn needed_deviation(
        &self,
        credential: &Credential,
        may_go_on: &dyn Fn() -> bool,
    ) -> Option<Deviation> {
        let request = self.request;
        let accept = credential.consumer().accept;
        let mut others = Deviation::ALL.iter().copied();
        others.find(|&deviation| {
            let proof = || self.prove(credential, accept.with(deviation), Some(deviation));
            let alone = DeviationSet::NONE.with(deviation);
            let is_in_key = matches!(
                deviation,
                Deviation::KeyWithoutAmpersand | Deviation::EmptySecret
            );
            let may_help = match is_in_key {
                true => !request.credentials.signature_method.is_rsa(),
                false => request.parameters.deviations_in_text(alone) != DeviationSet::NONE,
            };
            may_help && !accept.contains(deviation) && may_go_on() && matches!(proof(), Ok(Some(_)))
        })
    }

    /// Computes what a wrong signature costs, with a random key.
    pub(super) fn try_dummy<'k>(&self, dummy: impl Into<Key<'k>>) -> bool {
        let keys = match self.purpose {
            Purpose::RequestToken if self.rules.signature.accept_description => 2,
            _ => 1,
        };
        let dummy = Candidate::from((SecretAge::Current, dummy.into()));
        let dummies = std::iter::repeat_n(dummy, keys);
        let selections = self.purpose.selections(self.rules, None);
        let sets = &[DeviationSet::NONE];
        try_keys(self.request, dummies, None, selections, (sets, None)).is_some()
    }
}

#[cfg(test)]
thread_local! {
    /// The number of signatures that this thread has computed.
    pub(super) static COMPUTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Tries the keys, each with every base string that the call may be signed with.
fn try_keys<'k>(
    request: &SignedRequest<'_>,
    keys: impl Iterator<Item = Candidate<'k>>,
    rsa: Option<&RsaPublicKey>,
    selections: &[Selection],
    (sets, needed): (&[DeviationSet], Option<Deviation>),
) -> Option<Proof> {
    let named = &request.credentials;
    let (method, signature) = (named.signature_method, named.signature);
    for candidate in keys {
        let (key, secret) = (candidate.key, candidate.secret);
        let deviations = candidate.deviations;
        // Without a secret anybody can sign.
        if key.consumer_secret.is_empty()
            && !method.is_rsa()
            && !deviations.contains(Deviation::EmptySecret)
        {
            continue;
        }
        for &selection in selections {
            for &set in sets {
                let used = set.iter().fold(deviations, DeviationSet::with);
                if needed.is_some_and(|needed| !used.contains(needed)) {
                    continue;
                }
                let base = BaseString {
                    deviations: set,
                    ..request.base_string(selection)
                };
                #[cfg(test)]
                COMPUTED.set(COMPUTED.get() + 1);
                if let Ok(_holds) = signature::verify(method, key, rsa, &base, signature) {
                    return Some(Proof {
                        _holds,
                        selection,
                        deviations: used,
                        secret,
                    });
                }
            }
        }
    }
    None
}
