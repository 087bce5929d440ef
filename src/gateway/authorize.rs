//! Decides whether a call to the API is permitted, as the kind of caller that its credentials make it.
//!
//! A [`Subject`] is the call, whether this process received it or another proxy describes it. Nothing is forwarded here.

use std::{borrow::Cow, sync::Arc};

use http::{Method, header};
use percent_encoding::utf8_percent_encode;

use crate::{
    base::{
        cold,
        http_fields::{SEC_FETCH_MODE, SEC_FETCH_SITE, parameter, single},
    },
    oauth::{LocationRule, ProtocolParameter, ShapeError},
    provider::{
        issue::callback::ESCAPED,
        pages::Pages,
        respond::{Failure, facts::Facts, frame::UI_LOCALES, is_navigation},
    },
    request::{
        parse::{
            claimed::Claimed,
            head::Head,
            origin::{Origins, PublicUrl},
            signed::{Collected, SignedRequest, is_form, is_multipart},
            unseen_body::UnseenBody,
        },
        policy::{
            PolicyRejection,
            access::CallerKind,
            operations::{Found, Operations},
            permit::{JudgedCall, Permit},
            rate::ConsumerRates,
            sunset::Sunset,
        },
        route::{FlowPaths, Page, ServiceCall, TokenCall},
        verify::{
            self, Purpose, UnreadBody, Verifier, VerifyRejection, VerifyRules,
            settings::Enforcement,
        },
    },
    telemetry::stopwatch::Stopwatch,
};

/// The longest path and query that a login leads back to, in bytes.
const MAX_RETURN_BYTES: usize = 2_048;

/// A call to the API.
pub struct Subject<'a> {
    /// Its head as sent.
    pub head: &'a Head<'a>,
    /// Its operation, and the facts about its caller.
    pub judged: JudgedCall<'a>,
    /// The public URL for which it was signed.
    pub url: &'a PublicUrl,
    /// The path for which it was signed.
    pub path: Cow<'a, [u8]>,
    /// The parameters, and the body where the signature covers it.
    pub collected: &'a Collected,
    /// It has a body.
    pub has_body: bool,
    /// Another proxy describes it and forwards it.
    pub is_described: bool,
    /// Why its body is not here, if the description does not show all of it.
    pub unseen: Option<UnseenBody>,
}

/// The decision on a call.
#[derive(Debug)]
pub struct DecidedCall {
    /// The proof that the call may be forwarded, or why it may not.
    pub permitted: Result<Permit, Failure>,
    /// The facts about it.
    pub facts: Facts,
}

/// Decides on calls to the API. A reload makes a new one.
pub struct Authorizer {
    /// Verifies signed calls.
    pub verifier: Arc<Verifier>,
    /// The rules of verification.
    pub verify: VerifyRules,
    /// Knows the sessions of users.
    pub pages: Pages,
    /// The paths of the token calls and of the pages.
    pub flow: FlowPaths,
    /// The public URLs.
    pub origins: Arc<Origins>,
    /// The protected operations.
    pub operations: Operations,
    /// Unsigned CORS preflights on listed paths are permitted.
    pub forward_preflights: bool,
    /// The end of OAuth 1.0a, if it is planned.
    pub sunset: Option<Arc<Sunset>>,
    /// The limits on the requests of consumers.
    pub rates: ConsumerRates,
}

impl Authorizer {
    /// Permits a call, or returns why not. In observe mode nearly every call is permitted, and the failure that would have
    /// rejected it is one of the facts. `unread` is a body that the signature does not cover; `stopwatch` measures how long
    /// the verification takes.
    pub async fn decide(
        &self,
        subject: &Subject<'_>,
        unread: Option<&mut dyn UnreadBody>,
        stopwatch: &Stopwatch,
    ) -> DecidedCall {
        let mut facts = Facts::default();
        let permitted = if subject.collected.signed {
            let signed = self.permit_signed(subject, unread, stopwatch, &mut facts);
            let permitted = signed.await;
            permitted.map_err(|failure| self.or_flow_elsewhere(subject, failure))
        } else {
            cold::boxed(self.permit_unsigned(subject)).await
        };
        let permitted = match self.is_enforced(subject.judged.found) {
            true => permitted,
            false => cold::boxed(self.observe(permitted, subject, &mut facts)).await,
        };
        let is_rejected = permitted.is_err() || facts.observed.is_some();
        if is_rejected && !facts.sender.is_registered && subject.collected.signed {
            let parameters = &subject.collected.parameters;
            let known = cold::boxed(self.verifier.names_registered(parameters)).await;
            facts.sender.is_registered = known;
        }
        // With an announced end, a failure after the permit announces it too, so the claimed key is needed.
        if self.sunset.is_some() || !matches!(&permitted, Ok(permit) if permit.kind().is_some()) {
            facts.claimed = Claimed::by_signed(subject.collected);
        }
        DecidedCall { permitted, facts }
    }

    /// Permits nearly every call in observe mode.
    async fn observe(
        &self,
        permitted: Result<Permit, Failure>,
        subject: &Subject<'_>,
        facts: &mut Facts,
    ) -> Result<Permit, Failure> {
        match permitted {
            // The rules of HTTP and the limits hold whether or not signatures are enforced.
            Err(
                failure @ (Failure::Parse(_)
                | Failure::Body(_)
                | Failure::Policy(
                    PolicyRejection::TooManyRequests { .. } | PolicyRejection::BrownOut { .. },
                )),
            ) => Err(failure),
            Err(failure) if self.is_always_enforced(subject.collected).await => Err(failure),
            permitted => {
                facts.observed = permitted.err().map(Box::new);
                Ok(Permit::danger_without_verification())
            }
        }
    }

    /// Whether the signatures of calls to it are enforced, where the consumer's record does not say so.
    #[must_use]
    pub fn is_enforced(&self, found: &Found<'_>) -> bool {
        let enforced = match found {
            Found::Operation(operation) => operation.enforce,
            Found::OtherMethod(_) | Found::Unlisted(_) | Found::Similar(_) => None,
        };
        enforced.unwrap_or(self.enforces())
    }

    /// Whether protected calls are enforced, where no operation says otherwise.
    pub fn enforces(&self) -> bool {
        self.verify.signature.enforcement == Enforcement::Enforce
    }

    /// Whether the consumer that the call names is enforced even in observe mode.
    async fn is_always_enforced(&self, collected: &Collected) -> bool {
        let Some(key) = collected.parameters.find("oauth_consumer_key").next() else {
            return false;
        };
        let consumer = self.verifier.credentials().consumer(key.value).await;
        // If the store fails, it is.
        consumer.map_or(true, |found| found.is_some_and(|consumer| consumer.enforce))
    }

    /// Rejects a call with a form, before the form is read, if its head shows that no form can help it. Credentials may
    /// still come in the form; where they are all in the head, they must exist.
    ///
    /// # Errors
    /// The rejection that the call would get anyway.
    pub async fn check_before_form(
        &self,
        collected: &Collected,
        call: &JudgedCall<'_>,
    ) -> Result<(), Failure> {
        if !self.is_enforced(call.found) {
            return Ok(());
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
            .protocol(self.verify.signature.methods, LocationRule::OneLocation);
        if let Some(named) = protocol.ok().and_then(|protocol| protocol.demand(&[]).ok()) {
            let window = call.found.operation().and_then(|it| it.timestamp_window);
            self.verifier
                .check_head(&self.verify, Purpose::Api, window, &named)
                .await?;
        }
        Ok(())
    }

    async fn permit_signed(
        &self,
        subject: &Subject<'_>,
        unread: Option<&mut dyn UnreadBody>,
        stopwatch: &Stopwatch,
        facts: &mut Facts,
    ) -> Result<Permit, Failure> {
        let collected = subject.collected;
        let parameters = &collected.parameters;
        let protocol =
            parameters.protocol(self.verify.signature.methods, LocationRule::OneLocation);
        let credentials = protocol?.demand(&[])?;
        let headers = &subject.head.parts.headers;
        if let Some(unseen) = subject.unseen {
            if is_form(headers)? || parameters.was_sent(ProtocolParameter::BodyHash) {
                return Err(VerifyRejection::BodyNotSeen(unseen).into());
            }
        } else if subject.is_described
            && subject.has_body
            && !headers.contains_key(header::CONTENT_TYPE)
        {
            // The proxy in front may have kept the type from the description, and not from the API.
            return Err(VerifyRejection::TypeNotSeen.into());
        }
        let operation = subject.judged.found.operation();
        let request = SignedRequest {
            method: subject.head.parts.method.as_str().as_bytes(),
            url: subject.url,
            path: &subject.path,
            query: subject.head.target.query.unwrap_or_default(),
            parameters,
            credentials,
            body: collected.held.as_deref(),
            secure: subject.head.received.secure,
            is_described: subject.is_described,
            window: operation.and_then(|it| it.timestamp_window),
        };
        let verifying = self
            .verifier
            .verify(&self.verify, Purpose::Api, &request, unread);
        let verified = verifying.await;
        facts.verify = Some(stopwatch.lap());
        facts.sender = verify::sender(&verified);
        let verified = verified?;
        facts.skew_seconds = verified.skew_seconds;
        facts.deviations = verified.deviations();
        if let Some(sunset) = &self.sunset {
            sunset.check(&verified.credential().consumer().key)?;
        }
        // A call that is not permitted counts too: in observe mode it goes on to the API.
        let consumer = verified.credential().consumer();
        self.rates.pass(consumer, &mut facts.quota)?;
        // Only the owner of the secret learns what the operation demands.
        let needs_hash = consumer.needs_body_hash || operation.is_some_and(|it| it.needs_body_hash);
        let is_unsigned = subject.has_body && !collected.form;
        if needs_hash && is_unsigned && !parameters.was_sent(ProtocolParameter::BodyHash) {
            let names = [ProtocolParameter::BodyHash].into_iter().collect();
            return Err(ShapeError::Absent(names).into());
        }
        Ok(Permit::for_signed(verified, parameters, &subject.judged)?)
    }

    /// The rejection of a call of the flow that came to the API: it names the right path.
    #[cold]
    fn or_flow_elsewhere(&self, subject: &Subject<'_>, failure: Failure) -> Failure {
        let sent = |parameter| subject.collected.parameters.was_sent(parameter);
        let url = |call| format!("{}{}", self.origins.base.origin, self.flow.best_of(call));
        let is_of_flow = sent(ProtocolParameter::Callback) || sent(ProtocolParameter::Verifier);
        match failure {
            Failure::Policy(PolicyRejection::TokenMissing)
            | Failure::Verify(VerifyRejection::TokenUnknown | VerifyRejection::RequestTokenHere)
                if is_of_flow =>
            {
                let calls = [TokenCall::RequestToken, TokenCall::AccessToken];
                let urls = calls
                    .map(|call| url(ServiceCall::Token(call)))
                    .join(" and ");
                PolicyRejection::TokenCallElsewhere { urls }.into()
            }
            Failure::Shape(ShapeError::Absent(_))
                if matches!(subject.head.parts.method, Method::GET | Method::HEAD)
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

    async fn permit_unsigned(&self, subject: &Subject<'_>) -> Result<Permit, Failure> {
        let (call, parts) = (&subject.judged, subject.head.parts);
        if !self.pages.has_session_cookie(&parts.headers) {
            let permit = if self.forward_preflights && subject.is_preflight() {
                Permit::for_preflight(call)
            } else {
                Permit::for_anonymous(call)
            };
            let mut permit = permit.map_err(|rejection| self.or_login(subject, rejection));
            if let Some(unseen) = subject.unseen
                && matches!(permit, Err(PolicyRejection::NoCredentials))
                && is_form(&parts.headers)?
            {
                permit = Err(PolicyRejection::CredentialsNotSeen(unseen));
            }
            let is_multipart = is_multipart(&parts.headers);
            if subject.has_body
                && !subject.is_described
                && matches!(permit, Err(PolicyRejection::NoCredentials))
                && (is_multipart || !parts.headers.contains_key(&header::CONTENT_TYPE))
            {
                permit = Err(PolicyRejection::CredentialsNotRead { is_multipart });
            }
            return Ok(permit?);
        }
        self.check_same_origin(subject)?;
        // In a description, only its own fields and the caller's address come from the proxy, the rest from the caller.
        let trusted = subject.head.received.trusted && !subject.is_described;
        let user = self.pages.session(&parts.headers, trusted).await?;
        let user = user.ok_or_else(|| self.or_login(subject, PolicyRejection::NoCredentials))?;
        let permit = Permit::for_session(user.id, call);
        Ok(permit.map_err(|rejection| self.or_login(subject, rejection))?)
    }

    /// The rejection of a request without credentials that permit it. A browser that navigates to what a user may open is sent
    /// to the login, and from `/` and `service.path`, where there is nothing for people, to the user's applications.
    #[cold]
    fn or_login(&self, subject: &Subject<'_>, rejection: PolicyRejection) -> PolicyRejection {
        let Subject { head, judged, .. } = subject;
        let (found, query) = (judged.found, head.target.query.unwrap_or_default());
        let is_open_to_users = match found {
            Found::Operation(_) | Found::Unlisted(_) => found.access().admits(CallerKind::User),
            Found::OtherMethod(_) | Found::Similar(_) => false,
        };
        let parts = head.parts;
        if !self.origins.is_base(&head.received) || !is_navigation(&parts.method, &parts.headers) {
            return rejection;
        }
        let endpoint = &self.flow.endpoint;
        let page = |mode| format!("{endpoint}?mode={mode}");
        if rejection != PolicyRejection::NoCredentials || !is_open_to_users {
            let is_typed = parts.headers.contains_key(&SEC_FETCH_MODE);
            let location = page("applications");
            let is_of_people =
                matches!(&*subject.path, b"/") || *subject.path == *endpoint.as_bytes();
            return match found {
                Found::Unlisted(_) if is_typed && is_of_people => {
                    PolicyRejection::LoginNeeded { location }
                }
                _ => rejection,
            };
        }
        let mut location = page("login");
        if let Ok(Some(languages)) = parameter(query, UI_LOCALES) {
            location.extend(["&", UI_LOCALES, "="]);
            location.extend(utf8_percent_encode(&languages, ESCAPED));
        }
        let separator = head.target.query.map_or("", |_| "?").as_bytes();
        let back = [&subject.path, separator, query].concat();
        // The login page checks this path; the escapes of a longer one would make the target too long.
        if let Ok(back) = std::str::from_utf8(&back)
            && back.len() <= MAX_RETURN_BYTES
        {
            location.push_str("&return_to=");
            location.extend(utf8_percent_encode(back, ESCAPED));
        }
        PolicyRejection::LoginNeeded { location }
    }

    /// A session opens an operation only to the service's own pages.
    fn check_same_origin(&self, subject: &Subject<'_>) -> Result<(), PolicyRejection> {
        let single = |name| {
            single(&subject.head.parts.headers, name).map_err(|_| PolicyRejection::CrossSite)
        };
        if !self.origins.is_base(&subject.head.received) {
            return Err(PolicyRejection::CrossSite);
        }
        match single(&SEC_FETCH_SITE)? {
            Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => Err(PolicyRejection::CrossSite),
            None if subject.is_plain_read() => Ok(()),
            None => match single(&header::ORIGIN)? {
                Some(origin) if origin == self.origins.base.origin.to_string().as_bytes() => Ok(()),
                _ => Err(PolicyRejection::CrossSite),
            },
        }
    }
}

impl Subject<'_> {
    /// GET or HEAD, and no upgrade.
    fn is_plain_read(&self) -> bool {
        matches!(self.head.parts.method, Method::GET | Method::HEAD)
            && !self.head.parts.headers.contains_key(header::UPGRADE)
    }

    /// Whether a browser sends this by itself before a request of another origin (Fetch, CORS-preflight request): it never
    /// has credentials.
    fn is_preflight(&self) -> bool {
        let has = |name| single(&self.head.parts.headers, name).is_ok_and(|sent| sent.is_some());
        self.head.parts.method == Method::OPTIONS
            && has(&header::ORIGIN)
            && has(&header::ACCESS_CONTROL_REQUEST_METHOD)
            && !self.head.parts.headers.contains_key(header::AUTHORIZATION)
            && !self.has_body
    }
}
