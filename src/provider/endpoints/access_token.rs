//! `req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).

use super::{EXPIRES_IN, Endpoints, seconds_until, user_field::UserField};
use crate::{
    base::secret::{Secret, random},
    provider::{
        issue::IssueRejection,
        respond::{Failure, OwnResponse},
    },
    records::values::{
        record::Callback,
        use_cases::{Exchanged, TokenExchange},
    },
    request::{
        parse::signed::SignedRequest,
        verify::{Credential, Verified},
    },
    telemetry::{metrics::Verdict, redact::RedactedToken},
};

/// Responds to the access token call.
///
/// # Errors
/// The state of the request token, and a fault of the store.
pub(super) async fn respond(
    endpoints: &Endpoints,
    request: &SignedRequest<'_>,
    verified: &Verified,
) -> Result<OwnResponse, Failure> {
    let Credential::RequestToken(signer) = verified.credential() else {
        return Err(IssueRejection::TokenUnknown.into());
    };

    let verifier = request.credentials.verifier.unwrap_or_default();
    let verifier = match signer.token.callback {
        // The user has typed it, perhaps with the space in the middle.
        Callback::Oob => random::typed(verifier),
        Callback::Uri(_) => Secret::from(verifier.to_vec()),
    };
    let (now, tokens) = (endpoints.clock.now(), &endpoints.verify.tokens);
    let mut described = endpoints.user_parameters.iter();
    let exchange = TokenExchange {
        token: String::from_utf8_lossy(request.credentials.token.unwrap_or_default()).into_owned(),
        consumer: signer.consumer.key.clone(),
        verifier,
        now,
        access_token: random::token()?,
        access_secret: random::secret()?,
        expires_at: tokens.access_ttl.0.map(|lifetime| now.after(lifetime)),
        with_display_name: described.any(|(_, field)| *field == UserField::DisplayName),
        reuse: endpoints.reuse,
        most: endpoints.limits.tokens_per_user,
        idle: tokens.access_idle.0,
    };
    let new_token = exchange.access_token.clone();
    let store = endpoints.verifier.store();
    let rejection = match store.exchange(exchange).await? {
        Exchanged::Exchanged { access_token, user } => {
            if endpoints.limits.tokens_per_user.is_some() {
                // Tokens past the limit are rejected from now on; after a fault of the store, from the next read of the feed on.
                endpoints.feed.follow().await.ok();
            }
            let event = match access_token.token == new_token {
                true => "access_token_issued",
                false => "access_token_reused",
            };
            tracing::info!(
                target: "audit", event, consumer = %access_token.consumer,
                user = %access_token.user, token = %RedactedToken(&access_token.token),
            );
            let secret = access_token.secret.expose_text();
            let mut pairs = vec![
                ("oauth_token", access_token.token.as_str()),
                ("oauth_token_secret", &secret),
            ];
            let expires_in = access_token.expires_at.map(|end| seconds_until(end, now));
            pairs.extend(expires_in.as_deref().map(|seconds| (EXPIRES_IN, seconds)));
            let described = endpoints.user_parameters.iter();
            pairs
                .extend(described.filter_map(|(name, field)| Some((&**name, field.value(&user)?))));
            return Ok(OwnResponse::form(&pairs, Verdict::AccessTokenIssued));
        }
        Exchanged::Unknown => IssueRejection::TokenUnknown,
        Exchanged::Expired => IssueRejection::TokenExpired,
        Exchanged::Used => IssueRejection::TokenUsed,
        Exchanged::Undecided => IssueRejection::TokenUndecided,
        Exchanged::Denied => IssueRejection::TokenDenied,
        Exchanged::WrongVerifier => IssueRejection::VerifierWrong,
    };
    Err(rejection.into())
}
