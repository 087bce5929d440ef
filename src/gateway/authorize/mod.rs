//! Decides whether a call to the API is permitted, as the kind of caller that its credentials make it.
//!
//! This process has received the call, or another proxy describes it. Nothing is forwarded here.

mod unsigned;

use std::sync::Arc;

use http::{Method, header};

use crate::{
    oauth::{ProtocolParameter, ShapeError},
    provider::{
        pages::Pages,
        respond::{Failure, facts::Facts},
    },
    request::{
        bearer::{self, BearerRejection, BearerTokens},
        parse::{
            ParseRejection,
            claimed::Claimed,
            origin::Origins,
            signed::{SignedRequest, is_form},
            target::RequestTarget,
            unseen_body::UnseenBody,
        },
        policy::{
            PolicyRejection, body_hash,
            call::Call,
            operations::{Found, Operations, may_be_read_as},
            permit::Permit,
            rate_limit::ConsumerRates,
            sunset::Sunset,
        },
        route::{FlowPaths, Page, ServiceCall, TokenCall},
        verify::{
            self, BearerRequest, Verified, Verifier, VerifyError, VerifyRejection, VerifyRules,
            settings::Enforcement,
        },
    },
    wire::server::rejection::BodyRejection,
};

/// Decides on calls to the API. A reload makes a new one.
pub struct Authorizer {
    /// Verifies signed calls.
    pub verifier: Arc<Verifier>,
    /// The rules of verification.
    pub verify: VerifyRules,
    /// Knows the sessions of users.
    pub pages: Pages,
    /// Verifies Bearer tokens, if they are accepted.
    pub bearer: Option<Arc<BearerTokens>>,
    /// The paths of the token calls and of the pages.
    pub flow: FlowPaths,
    /// The public URLs.
    pub origins: Arc<Origins>,
    /// The protected operations.
    pub operations: Arc<Operations>,
    /// Unsigned CORS preflights on listed paths are permitted.
    pub forward_preflights: bool,
    /// The end of OAuth 1.0a, if it is planned.
    pub sunset: Option<Arc<Sunset>>,
    /// The limits on the requests of consumers.
    pub rates: ConsumerRates,
}

/// The credentials of a consumer that a call has; nothing about them is proved.
pub enum Sent<'s> {
    /// A signature.
    Signature(SignedRequest<'s>),
    /// A Bearer token.
    Bearer(BearerRequest<'s>),
}

impl Authorizer {
    /// The credentials of a call; `None`: it has none of a consumer.
    ///
    /// # Errors
    /// They are not in shape, or what a signature covers is not here.
    pub fn sent<'s>(&'s self, call: &'s Call<'_>) -> Result<Option<Sent<'s>>, Failure> {
        match self.bearer_request(call)? {
            Some(request) => Ok(Some(Sent::Bearer(request))),
            None => Ok(self.signed_request(call)?.map(Sent::Signature)),
        }
    }

    /// The token of a call whose Authorization has the scheme Bearer; `None`: it has another one, or such tokens are not
    /// accepted.
    ///
    /// # Errors
    /// Credentials at two places, or where they could be read by others.
    fn bearer_request<'s>(
        &'s self,
        call: &'s Call<'_>,
    ) -> Result<Option<BearerRequest<'s>>, Failure> {
        let Some(tokens) = self.bearer.as_deref() else {
            return Ok(None);
        };
        let rejected =
            |wrong| Failure::Verify(VerifyRejection::Bearer(BearerRejection::Request(wrong)));
        let (collected, parameters) = (&call.collected, &call.collected.parameters);
        let is_in_parameters = || parameters.find("access_token").next().is_some();
        if !collected.bearer {
            // A signature covers such a parameter; without one it can only be a token (RFC 6750 §2.2, §2.3).
            return match !collected.signed && is_in_parameters() {
                true => Err(rejected(
                    "a token in the query or in a form is not accepted: send it in Authorization, after Bearer",
                )),
                false => Ok(None),
            };
        }
        let authorization = call.head.parts.headers.get(header::AUTHORIZATION);
        let token = authorization.and_then(|value| bearer::token(value.as_bytes()));
        if collected.signed || is_in_parameters() {
            return Err(rejected(
                "the request has more than one kind of credentials: send one",
            ));
        }
        if !call.head.received.secure && !call.url.origin.is_loopback() {
            return Err(rejected(
                "a Bearer token is accepted over TLS only, so that it cannot be read on its way",
            ));
        }
        let token = token.unwrap_or(Err(BearerRejection::Request("Authorization has no token")));
        parameters.check_unsigned()?;
        Ok(Some(BearerRequest {
            tokens,
            token: token.map_err(VerifyError::from)?,
            parameters,
            caller: call.head.received.nearest_address,
            own_address: call.head.received.own_address,
        }))
    }

    /// The call as its signature covers it; `None`: it is not signed.
    fn signed_request<'s>(&self, call: &'s Call<'_>) -> Result<Option<SignedRequest<'s>>, Failure> {
        let collected = &call.collected;
        if !collected.signed {
            return Ok(None);
        }
        let parameters = &*collected.parameters;
        let protocol = parameters.protocol(self.verify.signature.methods, call.location_rule());
        let credentials = protocol?.demand(&[])?;
        let headers = &call.head.parts.headers;
        if let Some(unseen) = call.unseen()
            && (is_form(headers)? || parameters.was_sent(ProtocolParameter::BodyHash))
        {
            return Err(VerifyRejection::BodyNotSeen(unseen).into());
        }
        let is_sent = !matches!(call.unseen(), Some(UnseenBody::Absent));
        if call.is_described()
            && is_sent
            && call.has_unread_body()
            && !headers.contains_key(header::CONTENT_TYPE)
        {
            // The proxy in front may have kept the type from the description, and not from the API.
            return Err(VerifyRejection::TypeNotSeen.into());
        }
        let rules = call.found.rules();
        Ok(Some(SignedRequest {
            method: call.method(),
            url: call.url,
            path: &call.signed_path,
            query: call.head.target.query.unwrap_or_default(),
            parameters,
            credentials,
            body: call.held()?,
            caller: call.head.received.nearest_address,
            own_address: call.head.received.own_address,
            secure: call.head.received.secure,
            is_described: call.is_described(),
            window: rules.and_then(|it| it.timestamp_window),
        }))
    }

    /// Permits a call with the credentials of a consumer, or returns why not.
    ///
    /// # Errors
    /// Why it is not verified, and the rules that it does not meet.
    pub fn permit_verified(
        &self,
        call: &Call<'_>,
        verified: Result<Verified, VerifyError>,
        facts: &mut Facts,
    ) -> Result<Permit, Failure> {
        facts.sender = verify::sender(&verified);
        let verified = match verified {
            Err(error) if is_for_api_to_check(call, &error) => {
                self.check_claimed(call)?;
                return Ok(Permit::danger_without_verification());
            }
            verified => verified?,
        };
        facts.skew_seconds = verified.skew_seconds;
        facts.deviations = verified.deviations();
        if let (Some(sunset), true) = (&self.sunset, verified.is_signed()) {
            // A failure after the permit announces the end too, so the claimed key is needed.
            facts.claimed = Claimed::by_signed(&call.collected);
            let key = &verified.credential().consumer().key;
            sunset.check(key)?;
            self.check_signed(sunset, key.as_str(), call)?;
        }
        // A call that is not permitted counts too: in observe mode it goes on to the API.
        let consumer = verified.credential().consumer();
        self.rates.pass(consumer, &mut facts.quota)?;
        // Only the owner of the secret learns what the operation demands.
        let rules = call.found.rules();
        let (collected, parameters) = (&call.collected, &call.collected.parameters);
        let is_unsigned = call.has_unread_body() && !collected.form;
        if verified.is_signed() {
            body_hash::check_is_sent(consumer, rules, parameters, is_unsigned)?;
        }
        if !consumer.pinned.is_empty() && call.has_other_body()? {
            body_hash::check_pinned(consumer, rules)?;
        }
        Ok(Permit::for_verified(verified, call)?)
    }

    /// Takes a call for what an API makes of it that reads the method from the parameter `_method`: those on Rails,
    /// Laravel, Symfony, CakePHP and Spring for a POST, WordPress for any method. What was not read, or of a POST not as a
    /// form, may hold this parameter: the call is enforced where any method of its path is.
    pub fn apply_method_parameter(&self, call: &mut Call<'_>, is_read: bool) {
        let Found::Operation(own) = call.found else {
            return;
        };
        let enforces = self.enforces();
        let is_post = call.head.parts.method == Method::POST;
        let parameters = &call.collected.parameters;
        let may_hide = !is_read
            || parameters.hides_methods()
            || is_post && call.has_other_body().unwrap_or(true);
        let mut is_enforced =
            call.is_enforced || may_hide && self.operations.is_path_enforced(own, enforces);
        let mut read = None;
        for method in parameters.method_overrides() {
            if is_enforced && read.is_some() {
                break;
            }
            if !own.has_method(&method)
                && let Some(found) = call.operations.find_overridden(call.path, own, &method)
            {
                is_enforced |= self.operations.is_enforced(&found, enforces);
                read.get_or_insert(found);
            }
        }
        call.is_enforced = is_enforced;
        if let Some(found) = read {
            call.found = found;
        }
    }

    /// The end of a decision that is not an enforced permit: in observe mode nearly every call is permitted, and the failure
    /// that would have rejected it is one of the facts.
    ///
    /// # Errors
    /// Why the call is rejected.
    pub async fn reject_or_observe(
        &self,
        permitted: Result<Permit, Failure>,
        call: &Call<'_>,
        facts: &mut Facts,
    ) -> Result<Permit, Failure> {
        let collected = &call.collected;
        let permitted = match permitted {
            Err(failure) if collected.signed => Err(self.or_flow_elsewhere(call, failure)),
            permitted => permitted,
        };
        let permitted = match call.is_enforced {
            true => permitted,
            false => self.observe(permitted, call, facts).await,
        };
        let is_rejected = permitted.is_err() || facts.observed.is_some();
        if is_rejected && !facts.sender.is_registered && collected.signed {
            let known = self.verifier.is_consumer_registered(&collected.parameters);
            facts.sender.is_registered = known.await;
        }
        facts.claimed = match self.bearer_request(call) {
            Ok(Some(request)) => self.verifier.named_by_bearer(request),
            _ => Claimed::by_signed(collected),
        };
        permitted
    }

    /// Permits every call in observe mode but those of [`may_go_on`], and those of a consumer whose signatures are enforced.
    async fn observe(
        &self,
        permitted: Result<Permit, Failure>,
        call: &Call<'_>,
        facts: &mut Facts,
    ) -> Result<Permit, Failure> {
        // The API's own flow ends when ours takes its place: no call of it is one that enforcing would break.
        let is_flow_call = self.flow.is_api_path(&call.head.target);
        // The API may accept what is rejected here.
        self.check_claimed(call)?;
        match permitted {
            Err(failure) if !may_go_on(&failure) => Err(failure),
            Err(failure) if !is_flow_call && self.is_always_enforced(call).await => Err(failure),
            permitted => {
                facts.observed = permitted.err().filter(|_| !is_flow_call).map(Box::new);
                Ok(Permit::danger_without_verification())
            }
        }
    }

    /// Whether the signatures of calls to it are enforced, where the consumer's record does not say so.
    #[must_use]
    pub fn is_enforced(&self, found: &Found<'_>, target: &RequestTarget<'_>) -> bool {
        let is_flow_call = matches!(found, Found::Unlisted(_)) && self.flow.is_api_path(target);
        !is_flow_call && self.operations.is_enforced(found, self.enforces())
    }

    /// Whether protected calls are enforced, where no operation says otherwise.
    pub fn enforces(&self) -> bool {
        self.verify.signature.enforcement == Enforcement::Enforce
    }

    /// Whether any call may be observed only.
    pub fn observes(&self) -> bool {
        let mut listed = self.operations.listed().iter();
        !self.enforces() || listed.any(|operation| !operation.is_enforced(true))
    }

    /// Checks a call for the API that is not verified here, whether each key that it names, or none, may still sign it or get a
    /// grant by it.
    fn check_claimed(&self, call: &Call<'_>) -> Result<(), PolicyRejection> {
        let is_signed = call.token_call.is_some() || call.collected.signed;
        let Some(sunset) = self.sunset.as_ref().filter(|_| is_signed) else {
            return Ok(());
        };
        let keys = call.collected.parameters.find("oauth_consumer_key");
        let keys = keys.map(|key| str::from_utf8(key.value).unwrap_or_default());
        let mut keys = keys.peekable();
        let none = keys.peek().is_none().then_some("");
        keys.chain(none)
            .try_for_each(|key| self.check_signed(sunset, key, call))
    }

    /// Checks whether a consumer may still make a signed call for the API, which may give tokens in other spellings of a path,
    /// also in those that are only observed.
    fn check_signed(
        &self,
        sunset: &Sunset,
        key: &str,
        call: &Call<'_>,
    ) -> Result<(), PolicyRejection> {
        sunset.check_signed(key, call.token_call, || {
            let (path, parameters) = (call.head.target.path, &call.collected.parameters);
            self.flow.may_be_grant(path, parameters, may_be_read_as)
        })
    }

    /// Whether the consumer that the call names is enforced even in observe mode.
    async fn is_always_enforced(&self, call: &Call<'_>) -> bool {
        let claimed = match self.bearer_request(call) {
            Ok(Some(request)) => self.verifier.named_by_bearer(request),
            _ => None,
        };
        let by_bearer = claimed.and_then(|claimed| claimed.consumer);
        let mut by_signature = call.collected.parameters.find("oauth_consumer_key");
        let by_signature = || by_signature.next().map(|key| key.value);
        let by_bearer = by_bearer.as_deref().map(str::as_bytes);
        let Some(key) = by_bearer.or_else(by_signature) else {
            return false;
        };
        let consumer = self.verifier.credentials().consumer(key).await;
        // If the store fails, it is.
        consumer.map_or(true, |found| found.is_some_and(|consumer| consumer.enforce))
    }

    /// Rejects a call with a form, before the form is read, if its head shows that no form can help it. Credentials may
    /// still come in the form; where they are all in the head, they must exist.
    ///
    /// # Errors
    /// The rejection that the call would get anyway.
    pub async fn check_before_form(&self, call: &Call<'_>) -> Result<(), Failure> {
        let collected = &call.collected;
        if !call.is_enforced {
            return Ok(());
        }
        if let Ok(Some(request)) = self.bearer_request(call) {
            return Ok(self.verifier.check_bearer(&self.verify, request).await?);
        }
        if !collected.signed {
            if call.found.is_closed() {
                Permit::for_anonymous(call)?;
            }
            return Ok(());
        }
        // Nothing of the operation: only the owner of the secrets may learn whether it exists.
        let protocol = collected
            .parameters
            .protocol(self.verify.signature.methods, call.location_rule());
        if let Some(named) = protocol.ok().and_then(|protocol| protocol.demand(&[]).ok()) {
            let window = call.found.rules().and_then(|it| it.timestamp_window);
            let checking = self
                .verifier
                .check_head(&self.verify, call.purpose(), window, &named);
            match checking.await {
                Err(error) if is_for_api_to_check(call, &error) => {}
                checked => checked?,
            }
        }
        Ok(())
    }

    /// The rejection of a call of the flow that came to the API: it names the right path.
    #[cold]
    fn or_flow_elsewhere(&self, call: &Call<'_>, failure: Failure) -> Failure {
        let sent = |parameter| call.collected.parameters.was_sent(parameter);
        let url = |call| format!("{}{}", self.origins.base.origin, self.flow.best_of(call));
        let is_flow_call = sent(ProtocolParameter::Callback) || sent(ProtocolParameter::Verifier);
        match failure {
            Failure::Policy(PolicyRejection::TokenMissing)
            | Failure::Verify(VerifyRejection::TokenUnknown | VerifyRejection::RequestTokenHere)
                if is_flow_call =>
            {
                let calls = [TokenCall::RequestToken, TokenCall::AccessToken];
                let urls = calls
                    .map(|call| url(ServiceCall::Token(call)))
                    .join(" and ");
                PolicyRejection::TokenCallElsewhere { urls }.into()
            }
            Failure::Shape(ShapeError::Absent(_))
                if matches!(call.head.parts.method, Method::GET | Method::HEAD)
                    && sent(ProtocolParameter::Token)
                    && !sent(ProtocolParameter::ConsumerKey)
                    && !sent(ProtocolParameter::Signature) =>
            {
                let url = url(ServiceCall::Page(Page::Authorize));
                PolicyRejection::PageElsewhere { url }.into()
            }
            failure => failure,
        }
    }
}

/// Whether the call is an access token call of an API that stays the provider, by a known consumer, with a token that is
/// not known here: the API has issued this request token, and it alone has its secret.
const fn is_for_api_to_check(call: &Call<'_>, error: &VerifyError) -> bool {
    matches!(call.token_call, Some(TokenCall::AccessToken))
        && matches!(error, VerifyError::Rejection(VerifyRejection::TokenUnknown))
}

/// Whether a call that is only observed goes on after this failure. It cannot without its whole body, and a limit that the
/// operator has set for its consumer holds.
const fn may_go_on(failure: &Failure) -> bool {
    match failure {
        Failure::Body(body) | Failure::Parse(ParseRejection::Body(body)) => {
            matches!(body, BodyRejection::TooLarge)
        }
        Failure::Policy(
            PolicyRejection::TooManyRequests { .. }
            | PolicyRejection::BrownOut { .. }
            | PolicyRejection::GrantsEnded { .. }
            | PolicyRejection::SignaturesEnded { .. },
        ) => false,
        _ => true,
    }
}
