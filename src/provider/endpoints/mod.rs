//! The token calls, one file for each.

pub mod access_token;
pub mod exchange;
pub mod request_token;
pub mod revoke_token;
pub mod scope;
pub mod settings;
pub mod user_field;

use std::sync::Arc;

use http::header;
use http_body::Body as _;

pub use self::exchange::{BearerExchange, TOKEN_TYPE};
use self::{scope::ScopeSettings, settings::TokenLimitSettings, user_field::UserField};
use crate::{
    base::clock::{Clock, UnixTime},
    oauth::{Deviation, LocationRule},
    provider::respond::{Failure, OwnResponse, facts::Facts},
    records::credentials::feed::ChangeHub,
    request::{
        parse::{
            claimed::Claimed,
            head::Head,
            origin::PublicUrl,
            signed::{Collected, SignedRequest, is_form, is_multipart},
        },
        policy::{self, rate_limit::ConsumerRates, sunset::Sunset},
        route::{self, TokenCall},
        verify::{self, Purpose, Verifier, VerifyFault, VerifyRejection, VerifyRules},
    },
    wire::server::{caller::buffered::API_FORMS, request::RequestBody},
};

/// The parameter of a token response with the seconds until the token ends (OAuth Session 1.0).
const EXPIRES_IN: &str = "oauth_expires_in";

/// Its value for a token that ends at `end`.
fn seconds_until(end: UnixTime, now: UnixTime) -> String {
    end.0.saturating_sub(now.0).to_string()
}

/// The services and the configuration of the endpoints.
pub struct Endpoints {
    /// Verifies the token calls.
    pub verifier: Arc<Verifier>,
    /// The rules of verification.
    pub verify: VerifyRules,
    /// The limits on the requests of consumers, token calls and others together.
    pub rates: ConsumerRates,
    /// The limits on tokens.
    pub limits: TokenLimitSettings,
    /// `tokens.reuse`
    pub reuse: bool,
    /// How a request token call names the permissions that it wants.
    pub scope: ScopeSettings,
    /// The parameters of the access token response that describe the user.
    pub user_parameters: Vec<(String, UserField)>,
    /// Informs the cache of credentials of revocations by a call.
    pub feed: Arc<ChangeHub>,
    /// The public URL of the token endpoints.
    pub base: PublicUrl,
    /// The end of OAuth 1.0a, if it is planned.
    pub sunset: Option<Arc<Sunset>>,
    /// The exchange for OAuth 2, if it is on.
    pub exchange: Option<BearerExchange>,
    /// The clock.
    pub clock: Clock,
}

/// The outcome of a request that may be a token call.
#[derive(Debug)]
pub enum TokenOutcome {
    /// It is one.
    Responded(OwnResponse),
    /// Nothing names a token call; the parameters.
    NotTokenCall(Collected),
}

impl Endpoints {
    /// Responds to a token call, and notes its kind and the known facts about it, however it ends. With `may_reject_early` it is
    /// rejected before its form is read, if its head cannot pass as that of a token call.
    ///
    /// # Errors
    /// Every [`Failure`] of a token call.
    pub async fn token(
        &self,
        route: &route::RouteRules,
        named: Option<TokenCall>,
        head: &Head<'_>,
        (body, may_reject_early): (&RequestBody, bool),
        (noted, facts): (&mut Option<TokenCall>, &mut Facts),
    ) -> Result<TokenOutcome, Failure> {
        let headers = &head.parts.headers;
        let limits = body.caller().limits();
        let memory = body.caller().reserve(&API_FORMS);
        let mut collected = Collected::from_head(headers, &head.target, memory, &limits)?;
        if !body.is_end_stream() && is_form(headers)? {
            if may_reject_early && let Err(failure) = self.check_before_form(&collected).await {
                let failure = self.or_ended(failure);
                facts.claimed = Some(Box::new(Claimed::by(&collected.parameters)));
                return Err(failure);
            }
            collected.read_form(body.hold().await?, &limits)?;
        }
        let form = body.held()?.unwrap_or_default();
        let Some(call) = route.token_call(named, head, form, &collected.parameters)? else {
            return Ok(TokenOutcome::NotTokenCall(collected));
        };
        *noted = Some(call);
        facts.claimed = Some(Box::new(Claimed::by(&collected.parameters)));
        let responding = self.respond(call, head, collected, body, facts);
        responding.await.map(TokenOutcome::Responded)
    }

    /// Verifies a token call and responds to it.
    async fn respond(
        &self,
        call: TokenCall,
        head: &Head<'_>,
        collected: Collected,
        body: &RequestBody,
        facts: &mut Facts,
    ) -> Result<OwnResponse, Failure> {
        if !collected.signed {
            let headers = &head.parts.headers;
            let is_multipart = is_multipart(headers);
            let is_unread = is_multipart || !headers.contains_key(&header::CONTENT_TYPE);
            return Err(match is_unread && !body.is_end_stream() {
                true => policy::PolicyRejection::CredentialsNotRead { is_multipart },
                false => policy::PolicyRejection::NoCredentials,
            }
            .into());
        }
        let purpose = Purpose::from_call(call);
        let placement = purpose.location_rule();
        if collected.needs_body(self.verify.signature.methods, placement)? {
            body.hold().await?;
        }
        let protocol = collected
            .parameters
            .protocol(self.verify.signature.methods, placement)?;
        let credentials = protocol.demand(purpose.needed())?;
        if call == TokenCall::RequestToken && credentials.callback.is_none() {
            let consumer = self.verifier.credentials();
            let consumer = consumer.consumer(credentials.consumer_key).await;
            let consumer = consumer.map_err(VerifyFault::from)?;
            let registered = consumer
                .as_deref()
                .ok_or_else(request_token::callback_absent)?;
            request_token::only_callback(registered)?;
        }
        let has_callback = credentials.callback.is_some();
        let request = SignedRequest {
            method: head.parts.method.as_str().as_bytes(),
            url: &self.base,
            path: head.target.path,
            query: head.target.query.unwrap_or_default(),
            parameters: &collected.parameters,
            credentials,
            body: body.held()?,
            caller: head.received.nearest_address,
            own_address: head.received.own_address,
            secure: head.received.secure,
            is_described: false,
            window: None,
        };
        let verifying = self.verifier.verify(&self.verify, purpose, &request, None);
        let verified = verifying.outcome().await;
        facts.sender = verify::sender(&verified);
        let verified = verified.map_err(|error| self.or_ended(error.into()))?;
        facts.deviations = match call {
            TokenCall::RequestToken if !has_callback => {
                verified.deviations().with(Deviation::CallbackAbsent)
            }
            _ => verified.deviations(),
        };
        if let Some(sunset) = &self.sunset {
            let key = &verified.credential().consumer().key;
            sunset.check(key)?;
            sunset.check_signed(key.as_str(), Some(call), || false)?;
        }
        self.rates
            .pass(verified.credential().consumer(), &mut facts.quota)?;
        match call {
            TokenCall::RequestToken => request_token::respond(self, &request, &verified).await,
            TokenCall::AccessToken => access_token::respond(self, &request, &verified).await,
            TokenCall::RevokeToken => revoke_token::respond(self, &verified).await,
            TokenCall::Exchange => exchange::respond(self, &verified).await,
        }
    }

    /// The rejection of an unknown consumer says that consumers are no longer registered, if that is so.
    fn or_ended(&self, failure: Failure) -> Failure {
        let sunset = self.sunset.as_ref();
        match (&failure, sunset.and_then(|it| it.of_unknown_consumer())) {
            (Failure::Verify(VerifyRejection::ConsumerUnknown), Some(ended)) => ended.into(),
            _ => failure,
        }
    }

    /// Rejects a token call before its form is read, if the credentials in its head cannot pass.
    async fn check_before_form(&self, collected: &Collected) -> Result<(), Failure> {
        let protocol = collected
            .parameters
            .protocol(self.verify.signature.methods, LocationRule::FlowApart);
        let named = protocol.ok().and_then(|it| it.demand(&[]).ok());
        if collected.signed
            && let Some(named) = named
        {
            let checked =
                self.verifier
                    .check_head(&self.verify, Purpose::RequestToken, None, &named);
            checked.await?;
        }
        Ok(())
    }
}
