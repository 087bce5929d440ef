//! What the service itself answers: the token calls, a file each, and the way to the pages.

pub mod access_token;
pub mod page;
pub mod request_token;
pub mod revoke_token;

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Clock,
    http1::head::RequestHead,
    oauth::{Credentials, ProtocolParameter},
    pages::Pages,
    parse::{
        origin::{PublicUrl, Received},
        signed::{self, Collected, SignedRequest},
        target::Target,
    },
    refusal::{Failure, Refusal},
    respond::Answer,
    route::Endpoint,
    server::connection::Connection,
    verify::{self, Verifier},
};

/// Lifetimes of what is given out.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// Of a request token, until the user decides and, counted anew, until the exchange.
    pub request: Duration,
    /// Of an access token; `None`: for ever.
    pub access: Option<Duration>,
}

/// What the endpoints work with.
pub struct Endpoints {
    /// Verifies the token calls.
    pub verifier: Arc<Verifier>,
    /// The rules of verification.
    pub verify: verify::Params,
    /// How long tokens live.
    pub lifetimes: Lifetimes,
    /// Where pages are made.
    pub pages: Arc<Pages>,
    /// Where the token endpoints are.
    pub base: PublicUrl,
    /// Tells the time.
    pub clock: Clock,
}

/// A request to an endpoint.
#[derive(Debug)]
pub struct Call<'r> {
    /// Its head.
    pub head: &'r RequestHead,
    /// Its target.
    pub target: &'r Target<'r>,
    /// What was received.
    pub received: &'r Received<'r>,
}

impl Endpoints {
    /// Answers a call.
    ///
    /// # Errors
    /// Every refusal of a token call; pages answer theirs as pages.
    pub async fn answer(
        &self,
        endpoint: Endpoint,
        call: &Call<'_>,
        connection: &mut Connection,
    ) -> Result<Answer, Failure> {
        let methods: &[&[u8]] = match endpoint {
            Endpoint::RequestToken | Endpoint::AccessToken => &[b"GET", b"POST"],
            Endpoint::RevokeToken | Endpoint::Logout => &[b"POST"],
            Endpoint::Authorize | Endpoint::Login | Endpoint::Applications => {
                &[b"GET", b"HEAD", b"POST"]
            }
        };
        if !methods.contains(&call.head.method()) {
            let names: Vec<_> = methods
                .iter()
                .map(|name| String::from_utf8_lossy(name))
                .collect();
            return Err(Refusal::MethodNotAllowed {
                allow: names.join(", "),
            }
            .into());
        }
        match endpoint {
            Endpoint::RequestToken => request_token::answer(self, call, connection).await,
            Endpoint::AccessToken => access_token::answer(self, call, connection).await,
            Endpoint::RevokeToken => revoke_token::answer(self, call, connection).await,
            Endpoint::Authorize | Endpoint::Login | Endpoint::Logout | Endpoint::Applications => {
                page::answer(self, endpoint, call, connection).await
            }
        }
    }

    /// Collects the parameters of a token call, in whatever shape libraries send them.
    async fn collect(
        &self,
        call: &Call<'_>,
        connection: &mut Connection,
    ) -> Result<Collected, Failure> {
        let mut collected = signed::collect(call.head, call.target, connection).await?;
        if !collected.signed {
            return Err(Refusal::NoCredentials.into());
        }
        collected
            .hold_hashed_body(self.verify.methods, connection)
            .await?;
        Ok(collected)
    }

    /// The token call as something to verify.
    fn signed<'r>(
        &'r self,
        call: &Call<'r>,
        collected: &'r Collected,
        credentials: Credentials<'r>,
    ) -> SignedRequest<'r> {
        SignedRequest {
            method: call.head.method(),
            url: &self.base,
            path: call.target.path,
            query: call.target.query.unwrap_or_default(),
            parameters: &collected.parameters,
            credentials,
            body: collected.held.as_deref(),
            secure: call.received.secure,
        }
    }

    /// The protocol parameters with those that the call needs beside the usual ones.
    fn demand<'r>(
        &self,
        collected: &'r Collected,
        also: &[ProtocolParameter],
    ) -> Result<Credentials<'r>, Failure> {
        Ok(collected.protocol(self.verify.methods)?.demand(also)?)
    }
}
