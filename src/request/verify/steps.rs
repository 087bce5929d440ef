//! The steps of a check for which the server does not wait, in its order. The server takes them one by one, with lookups and
//! the nonce between them; [`SignedCall::rejections`] takes all of them, for the signature doctor.

use std::time::Duration;

use super::{
    Advice, Advised, Credential, Purpose, SignedCall, VerifyRejection, VerifyRules, advice,
    skew::skew,
};
use crate::{
    base::{clock::UnixTime, findings::Findings},
    oauth::{Credentials, Parameters, Pinned, SignatureMethod, is_body_hash},
    records::credentials::{ConsumerCredentials, SecretAge},
    request::{parse::signed::SignedRequest, verify::advice::clock},
    telemetry::calls::facts::SenderProof,
};

impl VerifyRules {
    /// Checks the timestamp against the `window` of the request, or else the usual one, of which at most `longest` counts.
    pub(super) fn check_timestamp(
        &self,
        window: Option<Duration>,
        longest: Duration,
        named: &Credentials<'_>,
        now: UnixTime,
    ) -> Result<(), VerifyRejection> {
        let Some(freshness) = &named.freshness else {
            return Ok(());
        };
        let length = window
            .unwrap_or(self.signature.timestamp_window)
            .min(longest);
        let (earliest, latest) = (now.before(length).0, now.after(length).0);
        let sent = freshness.timestamp.seconds();
        if (earliest..=latest).contains(&sent) {
            return Ok(());
        }
        Err(VerifyRejection::TimestampOutsideWindow {
            earliest,
            latest,
            advice: clock::advice(sent, now.0, length),
            skew: skew(named, now),
            proof: None,
        })
    }

    /// Rejects a right signature by the secret of a consumer that may only sign by RSA.
    pub(super) fn check_key(
        &self,
        method: SignatureMethod,
        consumer: &ConsumerCredentials,
        secret: SecretAge,
    ) -> Result<(), VerifyRejection> {
        if method.is_rsa() || !consumer.rsa_only {
            return Ok(());
        }
        // Only the owner of the secret gets here.
        let advice = (self.signature.advice != Advice::Off).then(advice::rsa_only);
        Err(VerifyRejection::SignatureWrong(Advised {
            advice,
            previous_secret: secret == SecretAge::Previous,
            proof: SenderProof::Secrets,
            ..Advised::default()
        }))
    }

    /// Checks the states of credentials whose signature holds and whose nonce is recorded, and the pinned parameters.
    /// The function returns the values of a name that the signature covers.
    pub(super) fn check_rights<'v>(
        &self,
        purpose: Purpose,
        credential: &Credential,
        now: UnixTime,
        (parameters, values): (&Parameters, impl Fn(&[u8]) -> Vec<&'v [u8]>),
        findings: &mut impl Findings<VerifyRejection>,
    ) -> Result<(), VerifyRejection> {
        credential.check_states(self, now, findings)?;
        if purpose == Purpose::Api
            && let Some(wrong) = Pinned::not_held(&credential.consumer().pinned, parameters, values)
        {
            let name = wrong.written_name().to_owned();
            let is_hidden = false;
            findings.add(VerifyRejection::PinnedOtherwise { name, is_hidden })?;
        }
        Ok(())
    }
}

impl SignedCall<'_> {
    /// All reasons for which the server would reject a call with a right signature, in its order; it names the first.
    /// `waited` are the results of the steps for which it waits: the lookup of the credentials, and the nonce.
    pub fn rejections<'v>(
        self,
        credential: &Credential,
        waited: [Result<(), VerifyRejection>; 2],
        values: impl Fn(&[u8]) -> Vec<&'v [u8]>,
    ) -> Vec<VerifyRejection> {
        let (rules, request, now) = (self.rules, self.request, self.now);
        let (named, consumer) = (&request.credentials, credential.consumer());
        let [lookup, nonce] = waited;
        let steps = [
            rules.check_timestamp(request.window, Duration::MAX, named, now),
            lookup,
            request.check_transport(),
            rules.check_key(named.signature_method, consumer, SecretAge::Current),
            request.check_body(),
            nonce,
        ];
        let mut all = Vec::from_iter(steps.into_iter().filter_map(Result::err));
        let signed = (request.parameters, values);
        // A `Vec` ends no check.
        let _ = rules.check_rights(self.purpose, credential, now, signed, &mut all);
        all
    }
}

impl SignedRequest<'_> {
    /// Rejects PLAINTEXT without TLS.
    pub(super) fn check_transport(&self) -> Result<(), VerifyRejection> {
        let is_plaintext = self.credentials.signature_method == SignatureMethod::Plaintext;
        match is_plaintext && !self.secure {
            true => Err(VerifyRejection::SignatureMethodRejected),
            false => Ok(()),
        }
    }

    /// Checks the body hash, after the signature and before the nonce.
    pub(super) fn check_body(&self) -> Result<(), VerifyRejection> {
        let (named, body) = (&self.credentials, self.body.unwrap_or_default());
        match named.body_hash {
            Some(sent) if !is_body_hash(named.signature_method, sent, body) => {
                Err(VerifyRejection::BodyHashWrong)
            }
            _ => Ok(()),
        }
    }
}
