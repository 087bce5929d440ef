//! The token flow: a request token given out, decided on, exchanged.

use super::{Tx, consumers, sessions, tokens, users};
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
pub(in crate::store) const FIND_REQUEST_TOKEN: &str =
    "SELECT * FROM request_tokens WHERE token = $1 OR redirect_token = $1
     ORDER BY token <> $1 LIMIT 1";

pub(super) async fn find(
    tx: &mut impl Tx,
    token: &str,
) -> Result<Option<RequestToken>, StoreError> {
    find_by(tx, FIND_REQUEST_TOKEN, token).await
}

/// Finds it and keeps others from deciding on it until the transaction ends.
async fn lock<T: Tx>(tx: &mut T, token: &str) -> Result<Option<RequestToken>, StoreError> {
    find_by(tx, T::STATEMENTS.lock_request_token, token).await
}

async fn find_by<T: Tx>(
    tx: &mut T,
    statement: &'static str,
    token: &str,
) -> Result<Option<RequestToken>, StoreError> {
    if !T::is_text(token) {
        return Ok(None);
    }
    tx.row(statement, &[&token], rows::request_token).await
}

/// Keeps a request token of a consumer that is registered here.
pub(super) async fn issue(tx: &mut impl Tx, token: &RequestToken) -> Result<(), StoreError> {
    let seal = tx.seal();
    let close = |field, secret: &Secret| seal.close(field, &token.token, secret);
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
    let kept = tx
        .execute(
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
    match kept {
        0 => tx.check_consumer_outside(),
        _ => Ok(()),
    }
}

pub(super) async fn decide(
    tx: &mut impl Tx,
    token: &str,
    session: &[u8; 32],
    decision: &Decision,
    now: UnixTime,
) -> Result<Decided, StoreError> {
    let found = lock(tx, token).await?;
    let Some(found) = found.filter(|found| found.token == token) else {
        return Ok(Decided::Unknown);
    };
    let consumer = consumers::find(tx, &found.consumer).await?;
    let user = sessions::find(tx, session, now).await?;
    let user = user.map(|(_, user)| user);
    if let Err(outcome) = rules::may_decide(&found, consumer.as_ref(), user.as_ref(), now) {
        return Ok(outcome);
    }
    match decision {
        Decision::Allow {
            verifier,
            redirect_token,
            expires_at,
        } => {
            let verifier = tx.seal().close(field::VERIFIER, token, verifier)?;
            tx.execute(
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
            let deny = "UPDATE request_tokens SET state = 'denied' WHERE token = $1";
            tx.execute(deny, &[&token]).await?
        }
    };
    Ok(Decided::Recorded)
}

pub(super) async fn exchange(
    tx: &mut impl Tx,
    exchange: &Exchange,
) -> Result<Exchanged, StoreError> {
    let found = lock(tx, &exchange.token).await?;
    let user = match found.as_ref().map(|found| &found.state) {
        Some(RequestTokenState::Authorized { user, .. }) => users::find(tx, user).await?,
        _ => None,
    };
    let outcome = rules::exchange(found.as_ref(), user, exchange);
    match (&outcome, found) {
        (Exchanged::WrongVerifier, Some(found)) => {
            let is_last = found.wrong_verifiers + 1 >= MAX_WRONG_VERIFIERS;
            tx.execute(
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
            if !tokens::insert(tx, access_token).await? {
                return Err(StoreError::Broken(
                    "a new access token has an identifier that is taken",
                ));
            }
            // The token of the redirect stays, so that a second exchange by it is `Used` as well.
            tx.execute(
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
