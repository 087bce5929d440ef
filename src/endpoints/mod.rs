//! The endpoints of the service itself: one file for each token call, and the call of the pages.

pub mod access_token;
pub mod page;
pub mod request_token;
pub mod revoke_token;

use std::{sync::Arc, time::Duration};

use http_body::Body as _;

use crate::{
    clock::Clock,
    oauth::ProtocolParameter,
    pages::Pages,
    parse::{
        head::Head,
        origin::PublicUrl,
        signed::{Collected, SignedRequest, is_form},
    },
    policy,
    respond::{Failure, OwnResponse},
    route::{Endpoint, Named},
    server::{
        held::{API_FORMS, HeldBody, PAGE_BYTES},
        rejection::BodyRejection,
        request::RequestBody,
    },
    telemetry::request_id::RequestId,
    verify::{self, Purpose, Verified, Verifier},
};

/// Lifetimes of tokens.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// Of a request token, until the user decides and, from then on, until the exchange.
    pub request: Duration,
    /// Of an access token; `None`: unlimited.
    pub access: Option<Duration>,
}

/// What the access token response calls the user.
#[derive(Debug, Clone)]
pub struct UserNames {
    /// The parameter with the id.
    pub id: String,
    /// The parameter with the name.
    pub screen_name: String,
}

/// What the endpoints use.
pub struct Endpoints {
    /// Verifies the token calls.
    pub verifier: Arc<Verifier>,
    /// The rules of verification.
    pub verify: verify::Params,
    /// How long tokens live.
    pub lifetimes: Lifetimes,
    /// What a response calls the user.
    pub user_names: UserNames,
    /// The pages.
    pub pages: Arc<Pages>,
    /// The public URL of the token endpoints.
    pub base: PublicUrl,
    /// The clock.
    pub clock: Clock,
}

impl Endpoints {
    /// Responds to a call.
    ///
    /// # Errors
    /// Every [`Failure`] of a token call; the rejections of pages are pages.
    pub async fn respond(
        &self,
        named: Named,
        head: &Head<'_>,
        body: &mut RequestBody,
        request_id: &RequestId,
    ) -> Result<OwnResponse, Failure> {
        let has_form = !body.is_end_stream() && is_form(&head.parts.headers)?;
        let form = match (has_form, named.is_page()) {
            (false, _) => None,
            (true, true) => Some(body.read_page_form().await?),
            (true, false) => Some(body.read_whole().await?),
        };
        let sent = form.as_deref().unwrap_or_default();
        let endpoint = named.endpoint(sent, &head.parts.method)?;
        match endpoint {
            Endpoint::RequestToken => request_token::respond(self, head, form, body).await,
            Endpoint::AccessToken => access_token::respond(self, head, form, body).await,
            Endpoint::RevokeToken => revoke_token::respond(self, head, form, body).await,
            Endpoint::Authorize
            | Endpoint::Home
            | Endpoint::Login
            | Endpoint::Logout
            | Endpoint::Applications => {
                if sent.len() > PAGE_BYTES {
                    return Err(BodyRejection::TooLarge.into());
                }
                page::respond(self, endpoint, head, &form.unwrap_or_default(), request_id).await
            }
        }
    }

    /// Collects the parameters of a token call from header, query and form.
    async fn collect(
        &self,
        head: &Head<'_>,
        form: Option<HeldBody>,
        body: &mut RequestBody,
    ) -> Result<Collected, Failure> {
        let limits = body.caller().limits();
        let memory = body.caller().reserve(&API_FORMS);
        let headers = &head.parts.headers;
        let mut collected = Collected::of(headers, &head.target, memory, &limits)?;
        if let Some(form) = form {
            collected.hold_form(form, &limits)?;
        }
        if !collected.signed {
            return Err(policy::Rejection::NoCredentials.into());
        }
        if collected.needs_body(self.verify.methods)? {
            collected.held = Some(body.read_whole().await?);
        }
        Ok(collected)
    }

    /// The token call as a request to verify, with the protocol parameters that it needs besides the usual ones.
    fn signed<'r>(
        &'r self,
        head: &Head<'r>,
        collected: &'r Collected,
        needed: &[ProtocolParameter],
    ) -> Result<SignedRequest<'r>, Failure> {
        let credentials = collected.protocol(self.verify.methods)?.demand(needed)?;
        Ok(SignedRequest {
            method: head.parts.method.as_str().as_bytes(),
            url: &self.base,
            path: head.target.path,
            query: head.target.query.unwrap_or_default(),
            parameters: &collected.parameters,
            credentials,
            body: collected.held.as_deref(),
            secure: head.received.secure,
        })
    }

    async fn verify(
        &self,
        purpose: Purpose,
        request: &SignedRequest<'_>,
    ) -> Result<Verified, Failure> {
        Ok(self
            .verifier
            .verify(&self.verify, purpose, request, None)
            .await?)
    }
}
