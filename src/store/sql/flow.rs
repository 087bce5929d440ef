//! The token flow: a request token given out, decided on, exchanged.

use super::{Param, Tx, consumers, sessions, tokens, users};
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

/// Finds a request token by its identifier or by the token of its redirect; `ending` ends the statement.
pub(super) async fn find(
    tx: &mut Tx,
    token: &str,
    ending: &str,
) -> Result<Option<RequestToken>, StoreError> {
    if !tokens::is_text(token) {
        return Ok(None);
    }
    // The identifier before the token of a redirect, should both be the same word.
    let find = format!(
        "SELECT * FROM request_tokens WHERE token = $1 OR redirect_token = $1
         ORDER BY token <> $1 LIMIT 1 {ending}"
    );
    tx.row(&find, &[&token], rows::request_token).await
}

/// Finds it and keeps others from deciding on it until the transaction ends.
async fn lock(tx: &mut Tx, token: &str) -> Result<Option<RequestToken>, StoreError> {
    let ending = tx.statements().lock_token;
    find(tx, token, ending).await
}

/// Keeps a request token; `false` if its consumer is not registered here.
pub(super) async fn issue(tx: &mut Tx, token: &RequestToken) -> Result<bool, StoreError> {
    let consumer = token.consumer.as_str();
    let find = "SELECT 1 FROM consumers WHERE key = $1";
    if !tx.has_row(find, &[&consumer]).await? {
        return Ok(false);
    }
    let close = |field, secret: &Secret| tx.seal().close(field, &token.token, secret);
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
    let columns: [(&str, &dyn Param); 12] = [
        ("token", &token.token),
        ("secret", &secret),
        ("consumer", &consumer),
        ("callback", &callback_text(&token.callback)),
        ("permissions", &json(&token.permissions)?),
        ("issued_at", &seconds(token.issued_at)),
        ("expires_at", &seconds(token.expires_at)),
        ("state", &state_word(&token.state)),
        (r#""user""#, &user),
        ("verifier", &verifier),
        ("redirect_token", &redirect_token),
        ("wrong_verifiers", &i64::from(token.wrong_verifiers)),
    ];
    Ok(tx.insert("request_tokens", &columns, "").await? > 0)
}

pub(super) async fn decide(
    tx: &mut Tx,
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
    let session = sessions::find(tx, session, now).await?;
    let (Some((_, user)), Some(true)) = (session, consumer.map(|consumer| consumer.enabled)) else {
        return Ok(Decided::Unknown);
    };
    if found.state != RequestTokenState::Issued {
        return Ok(Decided::AlreadyDecided);
    }
    if now >= found.expires_at {
        return Ok(Decided::Expired);
    }
    match decision {
        Decision::Allow {
            verifier,
            redirect_token,
            expires_at,
        } => {
            let verifier = tx.seal().close(field::VERIFIER, token, verifier)?;
            let allow = r#"UPDATE request_tokens SET state = 'authorized', "user" = $2, verifier = $3,
                 redirect_token = $4, expires_at = $5
                 WHERE token = $1"#;
            let expires_at = seconds(*expires_at);
            let user = user.id.as_str();
            let params: [&dyn Param; 5] = [&token, &user, &verifier, redirect_token, &expires_at];
            tx.execute(allow, &params).await?
        }
        Decision::Deny => {
            let deny = "UPDATE request_tokens SET state = 'denied' WHERE token = $1";
            tx.execute(deny, &[&token]).await?
        }
    };
    Ok(Decided::Recorded)
}

pub(super) async fn exchange(tx: &mut Tx, exchange: &Exchange) -> Result<Exchanged, StoreError> {
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
            if !tokens::insert(tx, &[access_token]).await? {
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
