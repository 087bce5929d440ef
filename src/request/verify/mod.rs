//! From a signed request to the proof that its signature holds: timestamp, consumer, token, signature, body hash, nonce,
//! states, in this order.
//!
//! Nothing is recorded or counted against a consumer before the signature holds, and no state is reported before that.
//! An unknown consumer or token costs the same work as a known one.

pub mod advice;
mod bearer;
mod check;
mod error;
mod lookup;
mod proof;
mod rules;
pub mod settings;
mod skew;
mod steps;
mod timestamp;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use self::{advice::Adviser, check::Check, skew::Skews};
pub use self::{
    advice::{Advice, UnreadBody},
    bearer::BearerRequest,
    check::Verification,
    error::{Advised, ComparedTexts, Sender, VerifyError, VerifyFault, VerifyRejection, sender},
    proof::{Proof, SignatureCheck, SignedCall},
    rules::VerifyRules,
};
pub use crate::request::verify::proof::{
    credential::{Credential, Purpose, RequestTokenCredentials},
    verified::Verified,
};
use crate::{
    base::clock::Clock,
    oauth::Credentials,
    records::{
        credentials::Cached,
        nonce::{Nonces, Outage},
        store::Store,
    },
    request::parse::signed::SignedRequest,
};

/// Verifies signed requests.
pub struct Verifier {
    credentials: Arc<Cached>,
    store: Arc<Store>,
    nonces: Arc<Nonces>,
    clock: Clock,
    adviser: Adviser,
    skews: Skews,
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
    /// If the signature is wrong, `unread` supplies the body for the advice.
    ///
    /// # Errors
    /// The first check that fails, in the order of this module; a fault of the store, and those of
    /// [`Nonces::record_here`].
    pub fn verify<'v>(
        &'v self,
        rules: &'v VerifyRules,
        purpose: Purpose,
        request: &'v SignedRequest<'v>,
        unread: Option<UnreadBody<'v>>,
    ) -> Verification<'v> {
        let call = SignedCall {
            rules,
            purpose,
            request,
            now: self.clock.now(),
        };
        let verifier = self;
        Check { verifier, call }.run(unread)
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
}

#[cfg(test)]
pub mod tests;
