//! `req_req_token`: issues a request token (RFC 5849 §2.1).

use super::Endpoints;
use crate::{
    issue::{
        Rejection, callback,
        permissions::{self, ScopeError},
        random,
    },
    oauth::ProtocolParameter,
    parse::{head::Head, signed::Collected},
    respond::{Failure, OwnResponse},
    store::record::{RequestToken, RequestTokenState},
    telemetry::{metrics::Verdict, redact::RedactedToken},
    verify::Purpose,
};

/// Responds to the request token call.
///
/// # Errors
/// The errors of verification, a callback that is not registered, and permissions that the consumer does not have.
pub(super) async fn respond(
    endpoints: &Endpoints,
    head: &Head<'_>,
    collected: &Collected,
) -> Result<OwnResponse, Failure> {
    let needed = [ProtocolParameter::Callback];
    let verified = endpoints.verified(Purpose::RequestToken, head, collected, &needed);
    let (request, verified) = verified.await?;
    let consumer = &verified.credential().consumer();

    let requested = request.credentials.callback.unwrap_or_default();
    let callback =
        callback::accept(consumer.callbacks(), requested).map_err(Rejection::Callback)?;
    let mut scopes = request
        .parameters
        .find("scope")
        .filter(|parameter| verified.covers(parameter.place));
    let (scope, again) = (scopes.next(), scopes.next());
    if again.is_some() {
        return Err(Rejection::Scope(ScopeError::Repeated).into());
    }
    let scope = scope.as_ref().map(|parameter| parameter.value.as_ref());
    let permissions =
        permissions::narrow(&consumer.permissions, scope).map_err(Rejection::Scope)?;

    let now = endpoints.clock.now();
    let token = RequestToken {
        token: random::token()?,
        secret: random::secret()?,
        consumer: consumer.key.clone(),
        callback,
        permissions,
        issued_at: now,
        expires_at: now.after(endpoints.lifetimes.request),
        state: RequestTokenState::Issued,
        wrong_verifiers: 0,
    };
    let response = OwnResponse::form(
        &[
            ("oauth_token", &token.token),
            ("oauth_token_secret", &token.secret.expose_text()),
            ("oauth_callback_confirmed", "true"),
        ],
        Verdict::RequestTokenIssued,
    );
    let issued = token.token.clone();
    let store = endpoints.verifier.credentials().store();
    store.issue_request_token(token).await?;
    tracing::info!(
        target: "audit", event = "request_token_issued", consumer = %consumer.key, token = %RedactedToken(&issued),
    );
    Ok(response)
}
