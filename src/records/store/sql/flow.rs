//! The token flow: a request token given out, decided on, exchanged.

use std::{cmp::Reverse, time::Duration};

use super::{READ, Store, WRITE, consumers, sessions, tokens, tx::Tx, users};
use crate::{
    base::{
        clock::UnixTime,
        text::names::{ConsumerKey, Permission, UserId},
    },
    records::{
        store::sql::tx::rows,
        values::{
            Result, StoreError,
            record::{AccessToken, RequestToken, RequestTokenState, TokenBeginning},
            seal::field,
            use_cases::{
                ConsentDecision, Decided, Exchanged, Issued, MAX_WRONG_VERIFIERS, TokenExchange,
            },
            value::json,
        },
    },
};

/// Tokens past the limit that one exchange ends; the next one ends more.
const AT_ONCE: usize = 20;

impl Store {
    /// Finds a request token by its identifier or by the token of its redirect, whatever its state.
    pub async fn request_token(&self, token: &str) -> Result<Option<RequestToken>> {
        self.run("request_token", READ, async |tx| find(tx, token, "").await)
            .await
    }

    /// Keeps a new request token, unless its consumer has `most` open ones: those that can still be exchanged at the issue of
    /// this one. Several that are issued at once may pass `most`, each by one.
    pub async fn issue_request_token(&self, token: RequestToken, most: u32) -> Result<Issued> {
        self.run("issue_request_token", WRITE, async |tx| {
            if has_open(tx, &token.consumer, token.issued_at, most).await? {
                return Ok(Issued::TooManyOpen);
            }
            match issue(tx, &token).await? {
                // Its consumer may have been removed meanwhile; then this token went with it.
                false if self.has_external() => {
                    Err(StoreError::Broken(
                        "a consumer of store.lookup.url gets no new tokens; register it here to let it ask users",
                    ))
                }
                _ => Ok(Issued::Issued),
            }
        })
        .await
    }

    /// Records the decision of the user of a session; of two racing decisions one is recorded. `Unknown` if the session
    /// has ended: otherwise a decision under way while the password changes would outlive it.
    pub async fn record_decision(
        &self,
        token: &str,
        session: &[u8; 32],
        decision: ConsentDecision,
        now: UnixTime,
    ) -> Result<Decided> {
        self.run("decide", WRITE, async |tx| {
    let found = lock(tx, token).await?;
    let Some(mut found) = found.filter(|found| found.token == token) else {
        return Ok(Decided::Unknown);
    };
    let consumer = consumers::find(tx, &found.consumer).await?;
    let session = sessions::find(tx, session, now).await?;
    let consumer = consumer.filter(|consumer| consumer.enabled);
    let (Some((_, user)), Some(consumer)) = (session, consumer) else {
        return Ok(Decided::Unknown);
    };
    if found.state != RequestTokenState::Issued {
        return Ok(Decided::AlreadyDecided);
    }
    if now >= found.expires_at {
        return Ok(Decided::Expired);
    }
    match &decision {
        ConsentDecision::Allow {
            permissions,
            shown,
            earlier,
            verifier,
            redirect_token,
            expires_at,
        } => {
            let verifier = tx.seal().close(field::VERIFIER, token, verifier)?;
            found.permissions.retain(|it| permissions.contains(it));
            if let Some(earlier) = earlier {
                let pair = (&user.id, &found.consumer);
                let held = tokens::allowed(tx, pair, now, earlier.used_after).await?;
                let current = Some(consumer.shown());
                let is_enough = |(token, seen): &(AccessToken, Option<String>)| {
                    *seen == current
                        && *shown == current
                        && (token.with_display_name || !earlier.with_display_name)
                        && found
                            .permissions
                            .iter()
                            .all(|it| token.permissions.contains(it))
                };
                if !held.iter().any(is_enough) {
                    return Ok(Decided::NotAllowedBefore);
                }
            }
            let allow = r#"UPDATE countersign.request_tokens SET state = 'authorized', "user" = $2, verifier = $3,
                 redirect_token = $4, expires_at = $5, permissions = $6, shown = $7
                 WHERE token = $1"#;
            let params = [
                token.into(),
                user.id.as_str().into(),
                verifier.into(),
                redirect_token.as_deref().into(),
                (*expires_at).into(),
                json(&found.permissions)?.into(),
                shown.as_deref().into(),
            ];
            tx.execute(allow, &params).await?
        }
        ConsentDecision::Deny => {
            let deny = "UPDATE countersign.request_tokens SET state = 'denied' WHERE token = $1";
            tx.execute(deny, &[token.into()]).await?
        }
    };
    Ok(Decided::Recorded)
        })
        .await
    }

    /// Exchanges a request token for an access token; of two racing calls one gets it, the other `Used`.
    pub async fn exchange(&self, exchange: TokenExchange) -> Result<Exchanged> {
        self.run("exchange", WRITE, async |tx| {
    let found = lock(tx, &exchange.token).await?;
    let Some(found) = found.filter(|found| found.consumer == exchange.consumer) else {
        return Ok(Exchanged::Unknown);
    };
    let user = match &found.state {
        RequestTokenState::Authorized { user, .. } => users::find(tx, user).await?,
        _ => None,
    };
    let is_expired = exchange.now >= found.expires_at;
    let (user, verifier) = match (&found.state, user.filter(|user| user.enabled)) {
        (RequestTokenState::Authorized { verifier, .. }, Some(user)) => (user, verifier),
        (RequestTokenState::Voided | RequestTokenState::Authorized { .. }, _) => {
            return Ok(Exchanged::Unknown);
        }
        _ if is_expired => return Ok(Exchanged::Expired),
        (RequestTokenState::Exchanged, _) => return Ok(Exchanged::Used),
        (RequestTokenState::Issued, _) => return Ok(Exchanged::Undecided),
        (RequestTokenState::Denied, _) => return Ok(Exchanged::Denied),
    };
    if is_expired {
        return Ok(Exchanged::Expired);
    }
    let token = found.token.as_str();
    if *verifier != exchange.verifier {
        let is_last = found.wrong_verifiers + 1 >= MAX_WRONG_VERIFIERS;
        let count = r#"UPDATE countersign.request_tokens SET wrong_verifiers = wrong_verifiers + 1,
                 state = CASE WHEN $2 THEN 'voided' ELSE state END,
                 "user" = CASE WHEN $2 THEN NULL ELSE "user" END,
                 verifier = CASE WHEN $2 THEN NULL ELSE verifier END
             WHERE token = $1"#;
        tx.execute(count, &[token.into(), is_last.into()]).await?;
        return Ok(Exchanged::WrongVerifier);
    }
    let (held, again) = held(tx, &exchange, &user.id, &found.permissions).await?;
    let is_new = again.is_none();
    let access_token = again.unwrap_or_else(|| AccessToken {
        token: exchange.access_token.clone(),
        secret: exchange.access_secret.clone(),
        consumer: found.consumer.clone(),
        user: user.id.clone(),
        permissions: found.permissions.clone(),
        issued_at: exchange.now,
        expires_at: exchange.expires_at,
        last_used_at: None,
        last_used_from: None,
        revoked_at: None,
        began: TokenBeginning::Consent,
        with_display_name: exchange.with_display_name,
    });
    if is_new && !tokens::insert(tx, std::slice::from_ref(&access_token)).await? {
        return Err(StoreError::Broken(
            "a new access token has an identifier that is taken",
        ));
    }
    let most = exchange.most.map_or(usize::MAX, |most| most.get() as usize);
    let others = held.iter().filter(|it| it.token != access_token.token);
    for surplus in others.skip(most - 1).take(AT_ONCE) {
        tokens::revoke_at(tx, &surplus.token, Some(exchange.now)).await?;
    }
    let keep = "UPDATE countersign.access_tokens SET shown =
             (SELECT shown FROM countersign.request_tokens WHERE token = $1) WHERE token = $2";
    let params = [token.into(), access_token.token.as_str().into()];
    tx.execute(keep, &params).await?;
    // The token of the redirect stays, so that a second exchange by it is `Used` as well.
    let end = r#"UPDATE countersign.request_tokens SET state = 'exchanged', "user" = NULL, verifier = NULL
         WHERE token = $1"#;
    tx.execute(end, &[token.into()]).await?;
    let user = Box::new(user);
    Ok(Exchanged::Exchanged { access_token, user })
        })
        .await
    }
}

/// Finds a request token by its identifier or by the token of its redirect; `ending` ends the statement.
pub(super) async fn find(tx: &mut Tx, token: &str, ending: &str) -> Result<Option<RequestToken>> {
    if !tokens::is_text(token) {
        return Ok(None);
    }
    // An identifier comes before the token of a redirect, in case both are equal.
    let find = format!(
        "SELECT * FROM countersign.request_tokens WHERE token = $1 OR redirect_token = $1
         ORDER BY token <> $1 LIMIT 1 {ending}"
    );
    tx.row(&find, &[token.into()], rows::request_token).await
}

/// Finds it and keeps others from deciding on it until the transaction ends.
async fn lock(tx: &mut Tx, token: &str) -> Result<Option<RequestToken>> {
    let ending = tx.statements().lock;
    find(tx, token, ending).await
}

/// Whether a consumer has `most` request tokens that can still be exchanged at `now`.
pub(super) async fn has_open(
    tx: &mut Tx,
    consumer: &ConsumerKey,
    now: UnixTime,
    most: u32,
) -> Result<bool> {
    let find = "SELECT 1 FROM countersign.request_tokens
         WHERE consumer = $1 AND expires_at > $2 AND state IN ('issued', 'authorized')
         ORDER BY expires_at LIMIT 1 OFFSET $3";
    let others = i64::from(most.saturating_sub(1));
    let params = [consumer.as_str().into(), now.into(), others.into()];
    tx.has_row(find, &params).await
}

/// Keeps a new request token, on which the user has not decided; `false` if its consumer is not registered here.
pub(super) async fn issue(tx: &mut Tx, token: &RequestToken) -> Result<bool> {
    let consumer = token.consumer.as_str();
    let find = "SELECT 1 FROM countersign.consumers WHERE key = $1";
    if !tx.has_row(find, &[consumer.into()]).await? {
        return Ok(false);
    }
    let sealed = tx
        .seal()
        .close(field::REQUEST_TOKEN, &token.token, &token.secret)?;
    let mut columns = token.columns()?;
    columns.extend([("secret", sealed.into()), ("state", "issued".into())]);
    Ok(tx.insert("request_tokens", columns, "").await? > 0)
}

/// Finds, the last used first, the tokens that the user has allowed the consumer, if the exchange has a rule on them; and among
/// them the one to give out again. Exchanges for one user wait for each other then.
async fn held(
    tx: &mut Tx,
    exchange: &TokenExchange,
    user: &UserId,
    permissions: &[Permission],
) -> Result<(Vec<AccessToken>, Option<AccessToken>)> {
    if !exchange.reuse && exchange.most.is_none() {
        return Ok((Vec::new(), None));
    }
    tokens::lock_user(tx, user).await?;
    let (now, pair) = (exchange.now, (user, &exchange.consumer));
    let used_after = exchange.idle.map(|idle| now.before(idle));
    let held = tokens::allowed(tx, pair, now, used_after).await?;
    let mut held = Vec::from_iter(held.into_iter().map(|(token, _)| token));
    held.sort_by_key(|token| Reverse(token.last_use()));
    // A consumer may ask because its token is about to end: one in the second half of its life is not given out again.
    let lasts = |token: &AccessToken| {
        let is_used = |idle: Duration| now < token.last_use().after(idle / 2);
        let half = |end: UnixTime| now.after(Duration::from_secs(end.0.saturating_sub(now.0) / 2));
        exchange.idle.is_none_or(is_used)
            && match (token.expires_at, exchange.expires_at) {
                (None, None) => true,
                (Some(end), Some(latest)) => (half(latest)..=latest).contains(&end),
                _ => false,
            }
    };
    let again = held.iter().find(|token| {
        exchange.reuse
            && token.permissions == permissions
            && (token.with_display_name || !exchange.with_display_name)
            && lasts(token)
    });
    let again = again.cloned();
    Ok((held, again))
}
