//! The token flow: a request token given out, decided on, exchanged.

use super::{tx::Tx, users::is_text};
use crate::{
    clock::UnixTime,
    secret::Secret,
    store::{
        StoreError,
        port::{Decided, Decision, Exchange, Exchanged, MAX_WRONG_VERIFIERS},
        record::{RequestToken, RequestTokenState},
        rows::{self, callback_text, json, seconds, state_word},
        rules,
        seal::field,
    },
};

/// The identifier before the token of a redirect, should both be the same word.
macro_rules! find {
    ($lock:literal) => {
        concat!(
            "SELECT * FROM request_tokens WHERE token = $1 OR redirect_token = $1
             ORDER BY token <> $1 LIMIT 1",
            $lock
        )
    };
}

impl Tx {
    pub(super) async fn request_token(
        &mut self,
        token: &str,
    ) -> Result<Option<RequestToken>, StoreError> {
        self.find_request_token(find!(""), token).await
    }

    /// Finds it and keeps others from deciding on it until the transaction ends.
    async fn lock_request_token(
        &mut self,
        token: &str,
    ) -> Result<Option<RequestToken>, StoreError> {
        self.find_request_token(find!(" FOR UPDATE"), token).await
    }

    async fn find_request_token(
        &mut self,
        statement: &'static str,
        token: &str,
    ) -> Result<Option<RequestToken>, StoreError> {
        if !is_text(token) {
            return Ok(None);
        }
        let row = self.first(statement, &[&token]).await?;
        row.map(|row| rows::request_token(&row, &self.seal))
            .transpose()
    }

    pub(super) async fn issue_request_token(
        &mut self,
        token: &RequestToken,
    ) -> Result<bool, StoreError> {
        let close = |field, secret: &Secret| self.seal.close(field, &token.token, secret);
        let secret = close(field::REQUEST_TOKEN, &token.secret)?;
        let (user, verifier, redirect_token) = match &token.state {
            RequestTokenState::Authorized {
                user,
                verifier,
                redirect_token,
            } => (
                Some(user.as_str()),
                Some(close(field::VERIFIER, verifier)?),
                redirect_token.as_deref(),
            ),
            _ => (None, None, None),
        };
        // Its consumer may have been removed meanwhile; then this token went with it.
        let kept = self.run(
            r#"INSERT INTO request_tokens (token, secret, consumer, callback, permissions, issued_at,
                 expires_at, state, "user", verifier, redirect_token, wrong_verifiers)
             SELECT $1, $2, key, $4, $5, $6, $7, $8, $9, $10, $11, $12
             FROM consumers WHERE key = $3"#,
            &[
                &token.token,
                &secret,
                &token.consumer.as_str(),
                &callback_text(&token.callback),
                &json(&token.permissions)?,
                &seconds(token.issued_at),
                &seconds(token.expires_at),
                &state_word(&token.state),
                &user,
                &verifier,
                &redirect_token,
                &i64::from(token.wrong_verifiers),
            ],
        )
        .await?;
        Ok(kept > 0)
    }

    pub(super) async fn decide(
        &mut self,
        token: &str,
        session: &[u8; 32],
        decision: &Decision,
        now: UnixTime,
    ) -> Result<Decided, StoreError> {
        let Some(found) = self
            .lock_request_token(token)
            .await?
            .filter(|found| found.token == token)
        else {
            return Ok(Decided::Unknown);
        };
        let consumer = self.consumer(&found.consumer).await?;
        let user = self.session(session, now).await?.map(|(_, user)| user);
        if let Err(outcome) = rules::may_decide(&found, consumer.as_ref(), user.as_ref(), now) {
            return Ok(outcome);
        }
        match decision {
            Decision::Allow {
                verifier,
                redirect_token,
                expires_at,
            } => {
                let verifier = self.seal.close(field::VERIFIER, token, verifier)?;
                self.run(
                    r#"UPDATE request_tokens SET state = 'authorized', "user" = $2, verifier = $3,
                         redirect_token = $4, expires_at = $5
                     WHERE token = $1"#,
                    &[
                        &token,
                        &user.as_ref().map(|user| user.id.as_str()),
                        &verifier,
                        redirect_token,
                        &seconds(*expires_at),
                    ],
                )
                .await?
            }
            Decision::Deny => {
                self.run(
                    "UPDATE request_tokens SET state = 'denied' WHERE token = $1",
                    &[&token],
                )
                .await?
            }
        };
        Ok(Decided::Recorded)
    }

    pub(super) async fn exchange(&mut self, exchange: &Exchange) -> Result<Exchanged, StoreError> {
        let found = self.lock_request_token(&exchange.token).await?;
        let user = match found.as_ref().map(|found| &found.state) {
            Some(RequestTokenState::Authorized { user, .. }) => self.user(user).await?,
            _ => None,
        };
        let outcome = rules::exchange(found.as_ref(), user, exchange);
        match (&outcome, found) {
            (Exchanged::WrongVerifier, Some(found)) => {
                let is_last = found.wrong_verifiers + 1 >= MAX_WRONG_VERIFIERS;
                self.run(
                    r#"UPDATE request_tokens SET wrong_verifiers = wrong_verifiers + 1,
                         state = CASE WHEN $2 THEN 'voided' ELSE state END,
                         "user" = CASE WHEN $2 THEN NULL ELSE "user" END,
                         verifier = CASE WHEN $2 THEN NULL ELSE verifier END
                     WHERE token = $1"#,
                    &[&found.token, &is_last],
                )
                .await?;
            }
            (Exchanged::Exchanged { access_token, .. }, Some(found)) => {
                if !self.insert_access_token(access_token).await? {
                    return Err(StoreError::Broken(
                        "a new access token has an identifier that is taken",
                    ));
                }
                // The token of the redirect stays, so that a second exchange by it is `Used` as well.
                self.run(
                    r#"UPDATE request_tokens SET state = 'exchanged', "user" = NULL, verifier = NULL
                     WHERE token = $1"#,
                    &[&found.token],
                )
                .await?;
            }
            _ => {}
        }
        Ok(outcome)
    }
}
