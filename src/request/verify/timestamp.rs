//! Checks the timestamp of a call, and notes the clocks of consumers whose timestamps are rejected.

use std::time::{Duration, Instant};

use super::{Verifier, VerifyError, VerifyRejection, VerifyRules, check::Check, skew::skew};
use crate::{
    base::clock::UnixTime, oauth::Credentials, request::verify::advice::clock,
    telemetry::calls::facts::SenderProof,
};

impl Verifier {
    /// Checks the timestamp against the `window` of the request, or else the usual one. While the nonce window still is narrower,
    /// that one counts.
    pub(super) fn check_timestamp(
        &self,
        rules: &VerifyRules,
        window: Option<Duration>,
        named: &Credentials<'_>,
        now: UnixTime,
    ) -> Result<(), VerifyRejection> {
        let checked = rules.check_timestamp(window, self.nonces.length(), named, now);
        checked.map_err(|mut outside| {
            if let VerifyRejection::TimestampOutsideWindow { advice, .. } = &mut outside
                && self.clock_consensus().is_some()
            {
                clock::OURS.clone_into(advice);
            }
            outside
        })
    }
}

impl Check<'_> {
    /// The rejection of a timestamp, with what the signature proves.
    pub(super) async fn reject_timestamp(&self, mut outside: VerifyRejection) -> VerifyError {
        let found = self.note_skew().await;
        if let VerifyRejection::TimestampOutsideWindow { proof, .. } = &mut outside {
            *proof = found;
        }
        outside.into()
    }

    /// Notes the clock of a consumer whose timestamp is rejected, if its signature holds. Returns what that proves, if the
    /// consumer was looked up and is registered.
    async fn note_skew(&self) -> Option<SenderProof> {
        let Self { verifier, call } = self;
        let (named, now) = (&call.request.credentials, call.now);
        let skew = skew(named, now).filter(|_| verifier.skews.may_verify(now))?;
        match verifier.find(call.purpose, named).await {
            Ok(credential) => {
                let accept = credential.consumer().accept;
                if let Ok(Some(_)) = call.prove(&credential, accept, None) {
                    let consumer = &credential.consumer().key;
                    verifier.skews.rejected(consumer, skew, Instant::now());
                    return Some(SenderProof::Verified);
                }
                Some(SenderProof::None)
            }
            Err(error) => {
                verifier.spend_on_unknown(call);
                // The consumer of an unknown token is known.
                let is_known =
                    matches!(error, VerifyError::Rejection(VerifyRejection::TokenUnknown));
                is_known.then_some(SenderProof::None)
            }
        }
    }
}
