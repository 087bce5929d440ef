//! `exchange`: gives a consumer an OAuth 2 access token (RFC 9068) for the access token that signs the call, which stays valid,
//! or
//! without a token for the consumer itself.

use std::{sync::Arc, time::Duration};

use super::Endpoints;
use crate::{
    base::{
        clock::UnixTime,
        secret::random,
        settings::format_duration,
        text::names::{ConsumerKey, Permission},
    },
    provider::{
        issue::IssueRejection,
        respond::{Failure, OwnResponse},
    },
    records::{store::Store, values::StoreError},
    request::{
        identity::{Claims, keys::Signer},
        policy::{access::CallerKind, operations::Operations},
        route,
        verify::{Credential, Verified, VerifyRejection},
    },
    telemetry::{metrics::Verdict, redact::RedactedToken},
};

/// The rules of the exchange.
pub struct BearerExchange {
    /// `exchange.audience`
    pub audience: String,
    /// `exchange.ttl`
    pub ttl: Duration,
    /// Signs the new tokens.
    pub signer: Signer,
    /// A new token names the one that it was given for: it is accepted here while that one is in force.
    pub names_token: bool,
    /// A consumer gets a token without a user only if one of these admits such calls of it.
    pub operations: Arc<Operations>,
}

/// The type of the new tokens (RFC 9068).
pub const TOKEN_TYPE: &str = "at+jwt";

/// Gives out a token that ends with the one that signed the call, or before.
///
/// # Errors
/// The token has expired since it was verified, the consumer may not call without a user, no key can sign, the store fails, or
/// there is no randomness.
pub(super) async fn respond(
    endpoints: &Endpoints,
    verified: &Verified,
) -> Result<OwnResponse, Failure> {
    let exchange = endpoints.exchange.as_ref();
    let exchange = exchange.ok_or(route::RouteRejection::ModeUnknown)?;
    let credential = verified.credential();
    let key = &credential.consumer().key;
    let (access, granted) = match credential {
        Credential::AccessToken(access) => (Some(access), access.granted.to_vec()),
        Credential::Application(consumer) => {
            // Another server may know the permissions alone, not that the token is no user's.
            let operations = &exchange.operations;
            let granted = operations.application_permissions(&consumer.permissions)?;
            if is_key_of_user(endpoints.verifier.store(), key).await? {
                return Err(IssueRejection::KeyOfUser.into());
            }
            (None, granted)
        }
        _ => return Err(VerifyRejection::TokenUnknown.into()),
    };
    let now = endpoints.clock.now();
    let expiry = access.and_then(|access| access.expires_at);
    let end = end(now, exchange.ttl, expiry).ok_or(VerifyRejection::TokenExpired)?;
    let scope: Vec<_> = granted.iter().map(Permission::as_str).collect();
    let scope = scope.join(" ");
    let user = access.map(|access| access.user.as_str());
    let id = random::identifier()?;
    let jwt = exchange.signer.sign(&Claims {
        iss: &endpoints.base.origin.to_string(),
        aud: &exchange.audience,
        sub: user.or(Some(key.as_str())),
        client_id: Some(key.as_str()),
        scope: &scope,
        kind: access.is_none().then_some(CallerKind::Application.as_str()),
        oauth_token: access
            .map(|access| &*access.token)
            .filter(|_| exchange.names_token),
        iat: now.0,
        exp: end.0,
        jti: &id,
        htm: None,
        htu: None,
    })?;
    tracing::info!(
        target: "audit", event = "token_exchanged", consumer = %key, user = user.map(display),
        token = access.map(|access| display(RedactedToken(&access.token))), id, expires_at = %end,
    );
    let body = serde_json::json!({
        "access_token": jwt, "token_type": "Bearer", "expires_in": end.0 - now.0, "scope": scope,
    });
    let (body, json) = (body.to_string(), "application/json");
    Ok(OwnResponse::new(200, json, body, Verdict::TokenExchanged).never_stored())
}

/// Whether a user has the key of a consumer as the id. RFC 9068 §5: the subject of a token without a user must not be that of a
/// user.
///
/// # Errors
/// The store fails.
pub async fn is_key_of_user(store: &Store, key: &ConsumerKey) -> Result<bool, StoreError> {
    match key.as_str().parse() {
        Ok(id) => Ok(store.user(&id).await?.is_some()),
        Err(_) => Ok(false),
    }
}

/// The tokens of the exchange that a consumer has when it gets another secret, and how to end them, for operators.
pub fn after_rotation(ttl: Duration, names_token: bool, key: &ConsumerKey) -> String {
    let ends = match names_token {
        true => format!(
            "\"countersign token revoke --consumer {key}\" ends those of its users, and those of its own are rejected while it is disabled"
        ),
        false => "nothing ends them before, because they are not verified here".to_owned(),
    };
    let most = format_duration(ttl);
    format!(
        "Bearer tokens that it has got by the exchange go on until they end, {most} at most: {ends}."
    )
}

/// The end of a token that is given out at `now` for one that ends at `expiry`; `None`: the latter has ended by now.
fn end(now: UnixTime, ttl: Duration, expiry: Option<UnixTime>) -> Option<UnixTime> {
    let end = now.after(ttl);
    Some(expiry.map_or(end, |expiry| end.min(expiry))).filter(|end| *end > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_outlives_the_one_that_it_is_given_for() {
        let now = UnixTime(1_800_000_000);
        let later = |seconds| now.after(Duration::from_secs(seconds));
        for (expiry, expected) in [
            (None, Some(later(900))),
            (Some(later(901)), Some(later(900))),
            (Some(later(1)), Some(later(1))),
            (Some(now), None),
            (Some(now.before(Duration::from_secs(1))), None),
        ] {
            assert_eq!(
                end(now, Duration::from_secs(900), expiry),
                expected,
                "{expiry:?}"
            );
        }
    }
}
