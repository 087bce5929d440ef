//! The token flow: a request token given out, decided on, exchanged.

use rusqlite::params;

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Decided, Decision, Exchange, Exchanged, MAX_WRONG_VERIFIERS},
        record::{RequestToken, RequestTokenState, User},
        rows::{self, callback_text, json, seconds, state_word},
        rules,
        seal::field,
    },
};

impl Tx<'_> {
    pub(super) fn request_token(&self, token: &str) -> Result<Option<RequestToken>, StoreError> {
        self.first(
            "SELECT * FROM request_tokens WHERE token = ?1
             UNION ALL SELECT * FROM request_tokens WHERE redirect_token = ?1 LIMIT 1",
            [token],
            |row| rows::request_token(row, self.seal),
        )
    }

    pub(super) fn issue_request_token(&self, token: &RequestToken) -> Result<(), StoreError> {
        // Its consumer may have been removed meanwhile; then this token went with it.
        if !self.exists(
            "SELECT 1 FROM consumers WHERE key = ?1",
            [token.consumer.as_str()],
        )? {
            return Ok(());
        }
        let close = |field, secret: &Secret| self.seal.close(field, &token.token, secret);
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
        self.run(
            "INSERT INTO request_tokens (token, secret, consumer, callback, permissions, issued_at,
                 expires_at, state, user, verifier, redirect_token, wrong_verifiers)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                token.token,
                close(field::REQUEST_TOKEN, &token.secret)?,
                token.consumer.as_str(),
                callback_text(&token.callback),
                json(&token.permissions)?,
                seconds(token.issued_at),
                seconds(token.expires_at),
                state_word(&token.state),
                user,
                verifier,
                redirect_token,
                token.wrong_verifiers,
            ],
        )?;
        Ok(())
    }

    pub(super) fn decide(
        &self,
        token: &str,
        session: &[u8; 32],
        decision: &Decision,
        now: UnixTime,
    ) -> Result<Decided, StoreError> {
        let Some(request_token) = self
            .request_token(token)?
            .filter(|found| found.token == token)
        else {
            return Ok(Decided::Unknown);
        };
        let consumer = self.consumer(&request_token.consumer)?;
        let user = self.session(session, now)?.map(|(_, user)| user);
        if let Err(outcome) =
            rules::may_decide(&request_token, consumer.as_ref(), user.as_ref(), now)
        {
            return Ok(outcome);
        }
        match decision {
            Decision::Allow {
                verifier,
                redirect_token,
                expires_at,
            } => self.run(
                "UPDATE request_tokens SET state = 'authorized', user = ?2, verifier = ?3,
                     redirect_token = ?4, expires_at = ?5
                 WHERE token = ?1",
                params![
                    token,
                    user.as_ref().map(|user| user.id.as_str()),
                    self.seal.close(field::VERIFIER, token, verifier)?,
                    redirect_token,
                    seconds(*expires_at),
                ],
            )?,
            Decision::Deny => self.run(
                "UPDATE request_tokens SET state = 'denied' WHERE token = ?1",
                [token],
            )?,
        };
        Ok(Decided::Recorded)
    }

    pub(super) fn exchange(&self, exchange: &Exchange) -> Result<Exchanged, StoreError> {
        let found = self.request_token(&exchange.token)?;
        let user = match found.as_ref().map(|found| &found.state) {
            Some(RequestTokenState::Authorized { user, .. }) => self.user(user)?,
            _ => None,
        };
        let outcome = rules::exchange(found.as_ref(), user, exchange);
        match (&outcome, found) {
            (Exchanged::WrongVerifier, Some(found)) => self.count_wrong_verifier(&found.token)?,
            (Exchanged::Exchanged { access_token, .. }, Some(found)) => {
                if self.is_access_token_taken(&access_token.token)? {
                    return Err(StoreError::Broken(
                        "a new access token has an identifier that is taken",
                    ));
                }
                self.insert_access_token(access_token)?;
                // The token of the redirect stays, so that a second exchange by it is `Used` as well.
                self.run(
                    "UPDATE request_tokens SET state = 'exchanged', user = NULL, verifier = NULL
                     WHERE token = ?1",
                    [&found.token],
                )?;
            }
            _ => {}
        }
        Ok(outcome)
    }

    pub(super) fn enabled_user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        Ok(self.user(id)?.filter(|user| user.enabled))
    }

    fn count_wrong_verifier(&self, token: &str) -> Result<(), StoreError> {
        self.run(
            "UPDATE request_tokens SET wrong_verifiers = wrong_verifiers + 1 WHERE token = ?1",
            [token],
        )?;
        self.run(
            "UPDATE request_tokens SET state = 'voided', user = NULL, verifier = NULL
             WHERE token = ?1 AND wrong_verifiers >= ?2",
            params![token, MAX_WRONG_VERIFIERS],
        )?;
        Ok(())
    }
}
