//! `req_req_token`: issues a request token (RFC 5849 §2.1).

use super::{EXPIRES_IN, Endpoints, seconds_until};
use crate::{
    base::secret::random,
    oauth::{Deviation, ProtocolParameter, ShapeError},
    provider::{
        issue::{IssueRejection, callback},
        respond::{Failure, OwnResponse},
    },
    records::{
        credentials::ConsumerCredentials,
        values::{
            record::{RequestToken, RequestTokenState},
            use_cases::Issued,
        },
    },
    request::{parse::signed::SignedRequest, verify::Verified},
    telemetry::{metrics::Verdict, redact::RedactedToken},
};

/// Responds to the request token call.
///
/// # Errors
/// A callback that is not registered, permissions that the consumer does not have, and a fault of the store.
pub(super) async fn respond(
    endpoints: &Endpoints,
    request: &SignedRequest<'_>,
    verified: &Verified,
) -> Result<OwnResponse, Failure> {
    let consumer = &verified.credential().consumer();

    let sent = request.credentials.callback;
    let requested = match sent {
        Some(sent) => sent,
        None => only_callback(consumer)?.as_bytes(),
    };
    let callback =
        callback::accept(&consumer.callbacks, requested).map_err(IssueRejection::Callback)?;
    let parameters = request.parameters;
    let signed = parameters.iter().filter(|it| verified.covers(it.location));
    let sent = signed.map(|parameter| (parameter.name, parameter.value));
    let scope = &endpoints.scope;
    let permissions = scope.narrow(&consumer.permissions, sent, parameters.realm())?;

    let now = endpoints.clock.now();
    let token = RequestToken {
        token: random::token()?,
        secret: random::secret()?,
        consumer: consumer.key.clone(),
        callback,
        permissions,
        issued_at: now,
        expires_at: now.after(endpoints.verify.tokens.request_ttl),
        state: RequestTokenState::Issued,
        wrong_verifiers: 0,
    };
    let response = OwnResponse::form(
        &[
            ("oauth_token", &token.token),
            ("oauth_token_secret", &token.secret.expose_text()),
            ("oauth_callback_confirmed", "true"),
            (EXPIRES_IN, &seconds_until(token.expires_at, now)),
        ],
        Verdict::RequestTokenIssued,
    );
    let issued = token.token.clone();
    let store = endpoints.verifier.store();
    let most = endpoints.limits.request_tokens_per_consumer.get();
    if store.issue_request_token(token, most).await? == Issued::TooManyOpen {
        // By then the open ones have been decided on, exchanged, or have expired.
        let retry_after = endpoints.verify.tokens.request_ttl;
        return Err(IssueRejection::TooManyRequestTokens { retry_after }.into());
    }
    tracing::info!(
        target: "audit", event = "request_token_issued", consumer = %consumer.key, token = %RedactedToken(&issued),
    );
    Ok(response)
}

/// The callback of a request token call without one, if the consumer is allowed that: the only one that is registered.
///
/// # Errors
/// [`ShapeError::Absent`] if there is not exactly one, or the consumer is not allowed that.
pub fn only_callback(consumer: &ConsumerCredentials) -> Result<&str, ShapeError> {
    match &*consumer.callbacks {
        [only] if consumer.accept.contains(Deviation::CallbackAbsent) => Ok(only),
        _ => Err(callback_absent()),
    }
}

/// The rejection of a request token call without a callback.
pub(super) fn callback_absent() -> ShapeError {
    ShapeError::Absent([ProtocolParameter::Callback].into_iter().collect())
}
