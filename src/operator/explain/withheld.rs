//! What the developer of a consumer is not told. The link to the page proves no secret, so an explanation says nothing of a
//! token unless the signature proves its secret: a token that does not exist, one of another consumer, and one that is
//! revoked or pinned look the same. (The API itself answers `token_rejected` for a token that it does not know, whoever
//! asks.)
//!
//! A request is therefore explained twice, once with a random token secret. What both find is found without the token.

use super::{Explanation, KnownSecrets, TokenRecord};
use crate::{
    base::secret::random::{self, NoRandomness},
    oauth::diagnosis::{Diagnosis, Mistake},
    records::values::record::{AccessToken, TokenBeginning},
};

impl KnownSecrets {
    /// The same consumer, with a token that it does not have: its secret is random.
    ///
    /// # Errors
    /// [`NoRandomness`]
    pub(super) fn with_unknown_token(mut self) -> Result<Self, NoRandomness> {
        self.token_secret = random::secret()?;
        if let Some(server) = &mut self.server {
            server.token = Some(TokenRecord::Access(AccessToken {
                token: random::token()?,
                secret: self.token_secret.clone(),
                consumer: server.consumer.key.clone(),
                user: random::name()?,
                permissions: Vec::new(),
                issued_at: server.now,
                expires_at: None,
                last_used_at: None,
                last_used_from: None,
                revoked_at: None,
                began: TokenBeginning::Imported,
                with_display_name: false,
            }));
            server.is_token_unknown = true;
        }
        Ok(self)
    }

    /// Whether the request names a token of the consumer.
    pub(super) fn has_token(&self) -> bool {
        self.server.as_ref().is_some_and(|it| it.token.is_some())
    }
}

impl Explanation {
    /// Whether the sender has the secrets of the consumer and of the token: the server takes the signature, or only
    /// somebody who has them can have made it. `unknown` is the explanation with a token that does not exist, if the
    /// request names a token.
    pub(super) fn proves_secrets(&self, unknown: Option<&Self>) -> bool {
        let Some(examined) = &self.signature else {
            return false;
        };
        let has_secret = !examined.secrets.consumer_secret.is_empty();
        let is_with_token = |diagnosis: &Diagnosis| {
            let same = unknown.and_then(|unknown| unknown.signature.as_ref()?.diagnosis.as_ref());
            unknown.is_none() || same != Some(diagnosis)
        };
        let by_mistake = |diagnosis: &Diagnosis| {
            let mut mistakes = diagnosis.mistakes.iter().copied();
            mistakes.all(Mistake::proves_secret) && is_with_token(diagnosis)
        };
        let is_right = examined.matches && (has_secret || examined.method.is_rsa());
        let is_near = has_secret && examined.diagnosis.as_ref().is_some_and(by_mistake);
        examined.accepted || is_right || is_near
    }

    /// The part that the request alone and the secrets of the consumer decide.
    pub(super) fn without_states(mut self) -> Self {
        self.rejections.clear();
        self.launch = None;
        self.forwarded.clear();
        self
    }
}
