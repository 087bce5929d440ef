//! `req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).

use super::{EXPIRES_IN, Endpoints, seconds_until, user_field::UserField};
use crate::{
    base::{random, secret::Secret},
    provider::{
        issue::IssueRejection,
        respond::{Failure, OwnResponse},
    },
    records::store::{
        port::{Exchanged, TokenExchange},
        record::Callback,
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
        // A person has typed it, perhaps with the space in the middle.
        Callback::Oob => random::typed(verifier),
        Callback::Uri(_) => Secret::from(verifier.to_vec()),
    };
    let now = endpoints.clock.now();
    let exchange = TokenExchange {
        token: String::from_utf8_lossy(request.credentials.token.unwrap_or_default()).into_owned(),
        consumer: signer.consumer.key.clone(),
        verifier,
        now,
        access_token: random::token()?,
        access_secret: random::secret()?,
        expires_at: endpoints
            .verify
            .tokens
            .access_ttl
            .0
            .map(|lifetime| now.after(lifetime)),
        with_display_name: endpoints
            .user_parameters
            .iter()
            .any(|(_, field)| *field == UserField::DisplayName),
    };
    let store = endpoints.verifier.store();
    let rejection = match store.exchange(exchange).await? {
        Exchanged::Exchanged { access_token, user } => {
            tracing::info!(
                target: "audit", event = "access_token_issued", consumer = %access_token.consumer,
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
