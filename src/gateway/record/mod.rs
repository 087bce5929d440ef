//! The record of a request, which is counted and logged when the request ends.

mod failure;
mod report;

use std::{borrow::Cow, net::IpAddr, rc::Rc, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, Uri, Version, header, request::Parts,
};
use tokio::time::Instant;

use crate::{
    base::{clock::UnixTime, text::names::UserId},
    gateway::{
        launch::Launch,
        live::{Current, InFlight, Served},
    },
    provider::respond::{Failure, facts::Facts},
    request::{
        forward::ForwardFault,
        policy::{access::CallerKind, operations::Operation, permit::Permit},
        route::{RouteRejection, ServiceCall},
    },
    telemetry::{
        calls::facts::SenderProof, metrics::Verdict, redact::RedactedToken, request_id::RequestId,
        stopwatch::Stopwatch, traces::Trace,
    },
    wire::server::response::{BodyEnd, BodyWatcher, Cut, ResponseBody},
};

/// The end of the access token of a call, in a response to it.
static TOKEN_EXPIRES: HeaderName = HeaderName::from_static("x-auth-token-expires");

/// The record of a request. [`RequestRecord::respond`] passes it to the response, whose end finishes it; if there is no
/// response, because the caller has gone, dropping it does.
pub struct RequestRecord {
    pub(in crate::gateway) current: Rc<Current>,
    pub(in crate::gateway) method: Method,
    version: Version,
    /// The target as sent.
    pub(in crate::gateway) target: Uri,
    peer: Option<IpAddr>,
    /// The address of the caller, as trusted proxies name it, once that is known.
    pub(in crate::gateway) address: Option<IpAddr>,
    /// Its id.
    pub request_id: RequestId,
    /// The times of its parts.
    pub(in crate::gateway) stopwatch: Stopwatch,
    /// The outcome; until there is a response, it is that the caller has gone.
    pub(in crate::gateway) verdict: Verdict,
    /// The status of the response; 0 without one.
    pub(in crate::gateway) status: u16,
    /// The part of the service that it is for.
    pub(in crate::gateway) served: Served,
    /// The account to which a login failed.
    pub(in crate::gateway) account: Option<UserId>,
    /// The launch that it begins, if it is one.
    pub(in crate::gateway) launch: Option<Box<Launch>>,
    /// The facts about a call, once they are known.
    pub(in crate::gateway) facts: Facts,
    /// The permit, if it went to the API or may go there.
    pub permit: Option<Permit>,
    /// Why it failed.
    pub(in crate::gateway) failure: Option<Box<Failure>>,
    /// It asks for another protocol, and the API does not learn of it.
    pub(in crate::gateway) dropped_upgrade: bool,
    /// The time that the API took for the head of its response.
    pub(in crate::gateway) upstream: Option<Duration>,
    /// Its place in a trace.
    pub(in crate::gateway) trace: Option<Trace>,
    /// Its place, which a tunnel takes over: it outlives the response.
    pub(in crate::gateway) in_flight: Option<InFlight>,
    /// It has been counted and logged.
    is_finished: bool,
}

impl RequestRecord {
    pub(in crate::gateway) fn begin(
        current: &Rc<Current>,
        parts: &Parts,
        peer: Option<IpAddr>,
        request_id: RequestId,
        in_flight: Option<InFlight>,
    ) -> Box<Self> {
        Box::new(Self {
            current: Rc::clone(current),
            method: parts.method.clone(),
            version: parts.version,
            target: parts.uri.clone(),
            peer,
            address: peer,
            request_id,
            stopwatch: Stopwatch::start(),
            verdict: Verdict::Aborted,
            status: 0,
            served: Served::Unknown,
            account: None,
            launch: None,
            facts: Facts::default(),
            permit: None,
            failure: None,
            dropped_upgrade: false,
            upstream: None,
            trace: None,
            in_flight,
            is_finished: false,
        })
    }

    /// Notes the status of a permitted call.
    pub fn passed(&mut self, status: u16) {
        self.status = status;
        self.verdict = match self.permit.as_ref().and_then(Permit::kind) {
            None => Verdict::Observed,
            Some(CallerKind::Anonymous) => Verdict::Anonymous,
            Some(_) => Verdict::Forwarded,
        };
    }

    /// Makes the response the one that is sent. It announces the end of OAuth 1.0a, the end of the token and the rate to its
    /// signer, and the record ends with its body. `request` are the fields of the request.
    pub fn respond(
        mut self: Box<Self>,
        response: &mut Response<ResponseBody>,
        request: &HeaderMap,
    ) {
        if self.is_for_scripts(response.headers()) {
            let cors = &self.current.live.cors;
            cors.expose(request, response.headers_mut());
        }
        if self.permit.is_none() {
            // A caller that does not read its rejection takes no place of the others.
            self.in_flight = None;
        }
        if let Some(sunset) = &self.current.live.authorizer.sunset
            && let (Some(signer), true) = self.consumer()
            && !self.facts.is_bearer
        {
            sunset.announce(response.headers_mut(), signer);
        }
        if let Some(end) = self.token_end()
            && let Ok(end) = HeaderValue::try_from(end.to_string())
        {
            response.headers_mut().insert(&TOKEN_EXPIRES, end);
            self.current.shared.metrics.ending_tokens.inc();
        }
        if let Some(quota) = &self.facts.quota {
            quota.announce(response.headers_mut());
        }
        response.body_mut().watched_by(self);
    }

    /// The end of the token that signed, in the time before it that `tokens.announce` says.
    fn token_end(&self) -> Option<UnixTime> {
        let live = &self.current.live;
        let lead = live.authorizer.verify.tokens.announce?;
        let end = self.permit.as_ref()?.token_end()?;
        (live.endpoints.clock.now().after(lead) >= end).then_some(end)
    }

    /// Whether the response is a token response or a rejection, and not a page.
    fn is_for_scripts(&self, response: &HeaderMap) -> bool {
        let is_page = match self.failure.as_deref() {
            Some(Failure::Route(RouteRejection::MethodNotAllowed { call })) => {
                !matches!(call, ServiceCall::Token(_))
            }
            Some(_) => {
                let kind = response
                    .get(header::CONTENT_TYPE)
                    .map(HeaderValue::as_bytes);
                kind.is_some_and(|kind| kind.starts_with(b"text/html"))
            }
            None => !matches!(self.served, Served::Token(_)),
        };
        !is_page && !matches!(self.served, Served::Page)
    }

    /// The launch that it begins, with its operation.
    pub(in crate::gateway) fn launch(&self) -> Option<(&Launch, &Operation)> {
        let operations = self.current.live.authorizer.operations.listed();
        match self.served {
            Served::Operation(index) => self.launch.as_deref().zip(operations.get(index)),
            _ => None,
        }
    }

    /// Why it failed, or would have failed if it was not only observed.
    fn failures(&self) -> impl DoubleEndedIterator<Item = &Failure> {
        let failures = [&self.facts.observed, &self.failure].into_iter();
        failures.filter_map(Option::as_deref)
    }

    /// Whether it was rejected, has failed, or would have been rejected if it was not only observed.
    fn is_rejected(&self) -> bool {
        self.facts.observed.is_some()
            || self.failure.is_some() && self.verdict != Verdict::LoginNeeded
            || self.permit.is_none() && self.status >= 400
    }

    /// The consumer that it names, and whether the signature holds.
    fn consumer(&self) -> (Option<&str>, bool) {
        let claimed = || self.facts.claimed.as_deref()?.consumer.as_deref();
        match self.permit.as_ref().and_then(Permit::consumer) {
            Some(consumer) => (Some(consumer.as_str()), true),
            None => (claimed(), self.facts.sender.is_verified()),
        }
    }

    /// What it proves of the consumer that it names.
    fn proof(&self) -> SenderProof {
        match self.consumer() {
            (None, _) => SenderProof::None,
            (_, true) => SenderProof::Verified,
            (Some(_), false) => self.facts.sender.proof,
        }
    }

    /// The beginning of the token that it names.
    fn token(&self) -> Option<Cow<'_, str>> {
        let claimed = || self.facts.claimed.as_deref()?.token.as_deref();
        match self.permit.as_ref().and_then(Permit::token) {
            Some(token) => Some(RedactedToken(token).to_string().into()),
            None => claimed().map(Cow::Borrowed),
        }
    }
}

impl BodyWatcher for RequestRecord {
    fn finish(mut self: Box<Self>, response: BodyEnd) -> Instant {
        match response {
            BodyEnd::Whole => {}
            BodyEnd::Cut(cut) => {
                let fault = match cut {
                    Cut::Broken => ForwardFault::BrokenResponse("it broke off".into()),
                    Cut::Silent(time) => ForwardFault::Silent(time),
                };
                self.verdict = fault.verdict();
                self.failure = Some(Box::new(fault.into()));
            }
            BodyEnd::CallerGone => self.verdict = Verdict::Aborted,
        }
        self.report();
        self.stopwatch.last()
    }
}

impl Drop for RequestRecord {
    /// Reports a request that was broken off before it had a response.
    fn drop(&mut self) {
        if !self.is_finished {
            self.report();
        }
    }
}
