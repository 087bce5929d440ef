//! The token flow: a request token given out, decided on, exchanged.

use rusqlite::params;

use super::{
    rows::{json, seconds},
    sealing::field,
    tx::Tx,
};
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Decided, Decision, Exchange, Exchanged, MAX_WRONG_VERIFIERS},
        record::{AccessToken, Callback, RequestToken, RequestTokenState, User},
    },
};

impl Tx<'_> {
    pub(super) fn request_token(&self, token: &str) -> Result<Option<RequestToken>, StoreError> {
        self.first(
            "SELECT * FROM request_tokens WHERE token = ?1
             UNION ALL SELECT * FROM request_tokens WHERE redirect_token = ?1 LIMIT 1",
            [token],
            |row| self.read_request_token(row),
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
        let (state, user, verifier, redirect_token) = match &token.state {
            RequestTokenState::Issued => ("issued", None, None, None),
            RequestTokenState::Authorized {
                user,
                verifier,
                redirect_token,
            } => (
                "authorized",
                Some(user.as_str()),
                Some(close(field::VERIFIER, verifier)?),
                redirect_token.as_deref(),
            ),
            RequestTokenState::Denied => ("denied", None, None, None),
            RequestTokenState::Exchanged => ("exchanged", None, None, None),
            RequestTokenState::Voided => ("voided", None, None, None),
        };
        let callback = match &token.callback {
            Callback::Oob => None,
            Callback::Uri(uri) => Some(uri),
        };
        self.run(
            "INSERT INTO request_tokens (token, secret, consumer, callback, permissions, issued_at,
                 expires_at, state, user, verifier, redirect_token, wrong_verifiers)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                token.token,
                close(field::REQUEST_TOKEN, &token.secret)?,
                token.consumer.as_str(),
                callback,
                json(&token.permissions)?,
                seconds(token.issued_at),
                seconds(token.expires_at),
                state,
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
        let (Some(_), Some((_, user))) = (
            consumer.filter(|consumer| consumer.enabled),
            self.session(session, now)?,
        ) else {
            return Ok(Decided::Unknown);
        };
        if request_token.state != RequestTokenState::Issued {
            return Ok(Decided::AlreadyDecided);
        }
        if now >= request_token.expires_at {
            return Ok(Decided::Expired);
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
                    user.id.as_str(),
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
        let Some(found) = self
            .request_token(&exchange.token)?
            .filter(|found| found.consumer == exchange.consumer)
        else {
            return Ok(Exchanged::Unknown);
        };
        let is_expired = exchange.now >= found.expires_at;
        let (user, verifier) = match &found.state {
            RequestTokenState::Voided => return Ok(Exchanged::Unknown),
            RequestTokenState::Authorized { user, verifier, .. } => {
                match self.enabled_user(user)? {
                    Some(user) => (user, verifier),
                    None => return Ok(Exchanged::Unknown),
                }
            }
            _ if is_expired => return Ok(Exchanged::Expired),
            RequestTokenState::Exchanged => return Ok(Exchanged::Used),
            RequestTokenState::Issued => return Ok(Exchanged::Undecided),
            RequestTokenState::Denied => return Ok(Exchanged::Denied),
        };
        if is_expired {
            return Ok(Exchanged::Expired);
        }
        if *verifier != exchange.verifier {
            self.count_wrong_verifier(&found.token)?;
            return Ok(Exchanged::WrongVerifier);
        }
        self.give_access_token(exchange, found, user)
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

    fn give_access_token(
        &self,
        exchange: &Exchange,
        request_token: RequestToken,
        user: User,
    ) -> Result<Exchanged, StoreError> {
        if self.is_access_token_taken(&exchange.access_token)? {
            return Err(StoreError::Broken(
                "a new access token has an identifier that is taken",
            ));
        }
        let access_token = AccessToken {
            token: exchange.access_token.clone(),
            secret: exchange.access_secret.clone(),
            consumer: request_token.consumer,
            user: user.id,
            permissions: request_token.permissions,
            issued_at: exchange.now,
            expires_at: exchange.expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        self.insert_access_token(&access_token)?;
        // The token of the redirect stays, so that a second try by it is told `Used` as well.
        self.run(
            "UPDATE request_tokens SET state = 'exchanged', user = NULL, verifier = NULL
             WHERE token = ?1",
            [&request_token.token],
        )?;
        Ok(Exchanged::Exchanged {
            access_token,
            user_name: user.name,
        })
    }
}
