//! `revoke_token`: a consumer revokes its access token.

use super::Endpoints;
use crate::{
    provider::respond::{Failure, OwnResponse},
    request::verify::{Credential, Verified, VerifyRejection},
    telemetry::{metrics::Verdict, redact::RedactedToken},
};

/// Revokes the access token that signed the call.
///
/// # Errors
/// A fault of the store.
pub(super) async fn respond(
    endpoints: &Endpoints,
    verified: &Verified,
) -> Result<OwnResponse, Failure> {
    let Credential::AccessToken(access) = verified.credential() else {
        return Err(VerifyRejection::TokenUnknown.into());
    };
    let (store, token) = (endpoints.verifier.store(), &*access.token);
    store
        .revoke_access_token(token, endpoints.clock.now(), None)
        .await?;
    // The token is rejected from now on, not only after the next read of the feed.
    endpoints.feed.follow().await?;
    tracing::info!(
        target: "audit", event = "token_revoked", by = "consumer", consumer = %access.consumer.key,
        user = %access.user, token = %RedactedToken(token),
    );
    Ok(OwnResponse::new(
        200,
        "text/plain; charset=utf-8",
        "the token is revoked\n",
        Verdict::AccessTokenRevoked,
    )
    .never_stored())
}
