//! The record of a request, which is counted and logged when the request ends.

use std::{borrow::Cow, net::IpAddr, rc::Rc, time::Duration};

use http::{Method, Response, Uri, request::Parts};

use super::{Current, Worker, in_flight::InFlight};
use crate::{
    base::{clock::UnixTime, names::Permission},
    gateway::launch::Launch,
    oauth::{Deviation, ProtocolParameter, ShapeError},
    provider::respond::facts::Facts,
    provider::respond::{self, Failure},
    request::{
        forward::ForwardFault,
        policy::{
            self, UnmetRule,
            access::CallerKind,
            operations::{Found, Operation, Operations},
            permit::Permit,
        },
        rejections::{BaseStrings, RecordedRejection, SenderProof},
        route::{self, TokenCall},
        verify::{ComparedTexts, VerifyRejection},
    },
    telemetry::{
        causes::causes,
        lines::ACCESS,
        metrics::{Outcome, Verdict},
        redact::RedactedToken,
        request_id::RequestId,
        stopwatch::Stopwatch,
        traces::{Ended, Trace},
    },
    wire::server::response::{BodyEnd, BodyWatcher, ResponseBody},
};

/// The part of the service that a request is for.
#[derive(Debug, Clone, Copy)]
pub enum Served {
    /// It is rejected before that is known.
    Unknown,
    /// A token call.
    Token(TokenCall),
    /// A page.
    Page,
    /// A path of the API that no operation lists.
    Unlisted,
    /// A path that some API takes for one of an operation, which it does not match.
    Similar,
    /// A listed path with another method.
    OtherMethod,
    /// The operation with this index.
    Operation(usize),
}

impl Served {
    pub(super) const fn by(found: &Found<'_>) -> Self {
        match found {
            Found::Operation(operation) => Self::Operation(operation.index),
            Found::OtherMethod(_) => Self::OtherMethod,
            Found::Unlisted(_) => Self::Unlisted,
            Found::Similar(_) => Self::Similar,
        }
    }

    /// Its name in logs and metrics.
    pub(super) fn label(self, operations: &Operations) -> &str {
        match self {
            Self::Unknown => "none",
            Self::Unlisted => "unlisted",
            Self::Similar => "similar",
            Self::OtherMethod => "other_method",
            Self::Token(TokenCall::RequestToken) => "request_token",
            Self::Token(TokenCall::AccessToken) => "access_token",
            Self::Token(TokenCall::RevokeToken) => "revoke_token",
            Self::Token(TokenCall::Exchange) => "exchange",
            Self::Page => "page",
            Self::Operation(index) => operations
                .labels()
                .get(index)
                .map_or("none", String::as_str),
        }
    }
}

/// The seconds by which a rejected timestamp is ahead of our clock.
const fn skew_seconds(failure: &Failure) -> Option<i64> {
    match failure {
        Failure::Verify(VerifyRejection::TimestampOutsideWindow { skew, .. }) => *skew,
        _ => None,
    }
}

/// The permission that consumer or token do not have.
const fn missing_permission(failure: &Failure) -> Option<&Permission> {
    match unmet_rule(failure) {
        Some(UnmetRule::Permission(permission)) => Some(permission),
        _ => None,
    }
}

/// The key of the other rule that the call does not meet.
fn denied_by(failure: &Failure) -> Option<&'static str> {
    let unmet = unmet_rule(failure)?;
    let is_permission = matches!(unmet, UnmetRule::Permission(_));
    (!is_permission).then(|| unmet.key())
}

const fn unmet_rule(failure: &Failure) -> Option<&UnmetRule> {
    match failure {
        Failure::Policy(policy::PolicyRejection::NotPermitted { unmet, .. }) => unmet.as_ref(),
        _ => None,
    }
}

/// The deviation that would have to be accepted from the consumer.
fn deviation_to_accept(failure: &Failure, operation: Served) -> Option<Deviation> {
    match (failure, operation) {
        (Failure::Verify(VerifyRejection::SignatureWrong { needs, .. }), _) => *needs,
        (Failure::Shape(ShapeError::Absent(names)), Served::Token(TokenCall::RequestToken)) => {
            let callback = ProtocolParameter::Callback.as_str();
            let is_callback_alone = names.iter().eq([callback]);
            is_callback_alone.then_some(Deviation::CallbackAbsent)
        }
        _ => None,
    }
}

const fn compared(failure: &Failure) -> Option<&ComparedTexts> {
    match failure {
        Failure::Verify(VerifyRejection::SignatureWrong {
            base_strings: Some(texts),
            ..
        }) => Some(texts),
        _ => None,
    }
}

fn diagnosis(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Verify(VerifyRejection::SignatureWrong { diagnosis, .. }) => diagnosis.word(),
        _ => None,
    }
}

/// The record of a request. [`RequestRecord::respond`] passes it to the response, whose end finishes it; if there is no
/// response, because the caller has gone, dropping it does.
pub struct RequestRecord {
    pub(in crate::gateway) worker: Rc<Worker>,
    current: Rc<Current>,
    pub(super) method: Method,
    /// The target as sent.
    pub(super) target: Uri,
    peer: Option<IpAddr>,
    /// The address of the caller, as trusted proxies name it, once that is known.
    pub(super) address: Option<IpAddr>,
    /// Its id.
    pub request_id: RequestId,
    /// The times of its parts.
    pub(super) stopwatch: Stopwatch,
    /// The outcome; until there is a response, it is that the caller has gone.
    pub(super) verdict: Verdict,
    /// The status of the response; 0 without one.
    pub(super) status: u16,
    /// The part of the service that it is for.
    pub(super) served: Served,
    /// The launch that it begins, if it is one.
    pub(super) launch: Option<Box<Launch>>,
    /// The facts about a call, once they are known.
    pub(super) facts: Facts,
    /// The permit, if it went to the API or may go there.
    pub permit: Option<Permit>,
    /// Why it failed.
    pub(super) failure: Option<Box<Failure>>,
    /// It asks for another protocol, and the API does not learn of it.
    pub(super) dropped_upgrade: bool,
    /// The time that the API took for the head of its response.
    pub(super) upstream: Option<Duration>,
    /// Its place in a trace.
    pub(super) trace: Option<Trace>,
    /// Its place, which a tunnel takes over: it outlives the response.
    pub(super) in_flight: Option<InFlight>,
    /// It has been counted and logged.
    is_finished: bool,
}

impl RequestRecord {
    pub(super) fn begin(
        worker: &Rc<Worker>,
        current: &Rc<Current>,
        parts: &Parts,
        peer: Option<IpAddr>,
        request_id: RequestId,
        in_flight: Option<InFlight>,
    ) -> Box<Self> {
        Box::new(Self {
            worker: Rc::clone(worker),
            current: Rc::clone(current),
            method: parts.method.clone(),
            target: parts.uri.clone(),
            peer,
            address: peer,
            request_id,
            stopwatch: Stopwatch::start(),
            verdict: Verdict::Aborted,
            status: 0,
            served: Served::Unknown,
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

    /// The response as it is sent. It announces the end of OAuth 1.0a and the rate to its signer, and the
    /// record ends with its body.
    pub fn respond(
        self: Box<Self>,
        mut response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        if let Some(sunset) = &self.current.live.authorizer.sunset
            && let (Some(signer), true) = self.consumer()
        {
            sunset.announce(response.headers_mut(), signer);
        }
        if let Some(quota) = &self.facts.quota {
            quota.announce(response.headers_mut());
        }
        response.map(|body| body.watched_by(self))
    }

    /// The launch that it begins, with its operation.
    pub(super) fn launch(&self) -> Option<(&Launch, &Operation)> {
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

    /// Shows it to the operator among the last rejections.
    #[cold]
    fn add_to_rejections(&self, operation: &str) {
        let ((consumer, is_verified), token) = (self.consumer(), self.token());
        let (failure, verdict, sender) = (
            self.failures().next(),
            self.verdict.as_str(),
            &self.facts.sender,
        );
        let observed = self.facts.observed.as_deref();
        let reason = observed.map_or(verdict, |failure| respond::verdict(failure).as_str());
        let diagnosis = failure.and_then(diagnosis);
        let (parameters, problem) = failure.map(respond::parameters).unwrap_or_default();
        self.worker.shared.rejections.add(RecordedRejection {
            number: 0,
            time: UnixTime::default(),
            request_id: Some(self.request_id.as_str().to_owned()),
            method: Some(self.method.as_str().to_owned()),
            operation: operation.to_owned(),
            consumer: consumer.map(str::to_owned),
            is_registered: is_verified || sender.is_registered,
            proof: self.proof(),
            previous_secret: sender.previous_secret,
            token: token.map(|token| token.trim_end_matches('…').to_owned()),
            verdict,
            diagnosis: diagnosis.or_else(|| observed.map(|_| reason)),
            parameters,
            parameters_problem: problem.map(Cow::into_owned),
            status: self.status,
            address: self.address.map(|address| address.to_string()),
            reason,
            is_fault: self.verdict.outcome() == Outcome::Failed,
            skew_seconds: failure.and_then(skew_seconds),
            missing_permission: failure
                .and_then(missing_permission)
                .map(ToString::to_string),
            denied_by: failure.and_then(denied_by),
            base_strings: failure.and_then(compared).map(|texts| {
                // The path of the configuration: that of the call may name a user.
                let path = match self.served {
                    Served::Token(_) => self.target.path(),
                    _ => operation,
                };
                let (consumer, signed) = (consumer.unwrap_or_default(), texts.signed.as_deref());
                Box::new(BaseStrings::new(&texts.right, signed, consumer, path))
            }),
        });
    }

    /// Counts it for its consumer, if it is signed and neither a fault nor given up.
    fn count_consumer(&self) {
        let is_rejected = match self.verdict {
            Verdict::Forwarded
            | Verdict::RequestTokenIssued
            | Verdict::AccessTokenIssued
            | Verdict::AccessTokenRevoked
            | Verdict::TokenExchanged => false,
            Verdict::Observed => self.facts.observed.is_some(),
            // Its user clicked twice: that says nothing about the consumer.
            Verdict::LaunchRepeated => return,
            Verdict::BrownOut => true,
            // A rejected launch that leads back to its platform.
            _ if self.status == 303 && self.is_rejected() => true,
            _ if (400..500).contains(&self.status) => true,
            _ => return,
        };
        if let (Some(consumer), is_verified) = self.consumer() {
            let metrics = self.worker.metrics();
            metrics.consumer(consumer, is_verified, is_rejected);
        }
    }

    /// Makes the spans of its trace.
    #[cold]
    fn end_trace(&self, trace: &Trace, operation: &str, took: Duration, rest: Duration) {
        let (consumer, is_verified) = self.consumer();
        let ended = Ended {
            method: &self.method,
            operation,
            path: self.target.path(),
            status: self.status,
            verdict: self.verdict.as_str(),
            consumer: consumer.filter(|_| is_verified),
            request_id: self.request_id.as_str(),
            took,
            verify: self.facts.verify,
            upstream: self.upstream,
            rest,
        };
        if let Some(traces) = &self.worker.shared.traces {
            traces.end(trace, &ended);
        }
    }

    /// Writes the line of the access log.
    fn log(&self, operation: &str, took: Duration) {
        let (permit, failure) = (self.permit.as_ref(), self.failures().next());
        let ((consumer, is_verified), token) = (self.consumer(), self.token());
        let named = |is_named: bool| {
            let token = token.as_deref().filter(|_| is_named);
            use tracing::field::display;
            (
                consumer.filter(|_| is_named).map(display),
                token.map(display),
            )
        };
        let (verified, unverified) = (named(is_verified), named(!is_verified));
        let is_observed = permit.is_some_and(|permit| permit.kind().is_none());
        let mut faults = self.failures().filter(|failure| failure.is_fault());
        let is_of_api = |failure: &Failure| matches!(failure, Failure::Upstream(fault) if !matches!(fault, ForwardFault::Internal(_)));
        let upstream = self.failure.as_deref().filter(|failure| is_of_api(failure));
        let (parameters, problem) = failure.map(respond::parameters).unwrap_or_default();
        let deviations = self.facts.deviations.iter().map(Deviation::as_str);
        let deviations = Vec::from_iter(deviations).join(" ");
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(
            target: ACCESS,
            method = self.method.as_str(),
            // The path alone: an absolute target may have a name and a password in it.
            path = self.current.live.access_log.then(|| self.target.path()),
            status = self.status,
            verdict = self.verdict.as_str(),
            consumer = verified.0,
            token = verified.1,
            unverified_consumer = unverified.0,
            unverified_token = unverified.1,
            user = permit.and_then(Permit::user).map(display),
            peer = self.peer.map(display),
            address = self.address.filter(|_| self.address != self.peer).map(display),
            request_id = %self.request_id.as_str(),
            operation = (failure.is_some() || is_observed).then_some(operation),
            proof = failure.and(consumer).map(|_| <&str>::from(self.proof())),
            secret = self.facts.sender.previous_secret.then_some("previous"),
            upgrade = self.dropped_upgrade.then_some("dropped"),
            host = failure.and_then(|failure| match failure {
                Failure::Route(route::RouteRejection::Misdirected { host, .. }) => Some(display(host)),
                _ => None,
            }),
            reason = self.facts.observed.as_deref().map(|observed| respond::verdict(observed).as_str()),
            missing_permission = failure.and_then(missing_permission).map(display),
            denied_by = failure.and_then(denied_by),
            parameters = parameters.map(display),
            problem = problem.map(display),
            diagnosis = failure.and_then(diagnosis),
            needs = failure
                .and_then(|failure| deviation_to_accept(failure, self.served))
                .map(Deviation::as_str),
            deviation = (!deviations.is_empty()).then(|| display(deviations)),
            skew_seconds = failure.and_then(skew_seconds),
            upstream = upstream.and(self.current.live.upstream.as_ref()).map(|api| api.address.to_string()),
            cause = faults.next_back().map(|fault| causes(fault)),
            ms = milliseconds(took),
            upstream_ms = self.upstream.map(milliseconds),
        );
    }

    /// Counts and logs the request, once.
    fn report(&mut self) {
        self.is_finished = true;
        let rest = self.stopwatch.lap();
        let took = self.stopwatch.total();
        let live = &self.current.live;
        let operation = self.served.label(&live.authorizer.operations);
        if let Some(trace) = &self.trace {
            self.end_trace(trace, operation, took, rest);
        }
        self.count(took);
        if self.is_rejected() {
            self.add_to_rejections(operation);
        }
        // The findings of observe mode are logged even where other requests are not.
        if live.access_log || self.facts.observed.is_some() {
            self.log(operation, took);
        }
    }

    /// Counts it in the metrics.
    fn count(&self, took: Duration) {
        let (metrics, facts) = (self.worker.metrics(), &self.facts);
        metrics.request(self.verdict);
        metrics.request.observe(took.as_secs_f64());
        self.current
            .count_operation(metrics, self.served, self.status);
        if let Some(took) = facts.verify {
            metrics.verify.observe(took.as_secs_f64());
        }
        for deviation in facts.deviations.iter() {
            metrics.deviated(deviation.as_str());
        }
        if facts.sender.previous_secret {
            metrics.previous_secrets.inc();
            if let (Some(consumer), _) = self.consumer() {
                self.worker.shared.previous_secrets.used(consumer);
            }
        }
        let rejected = self.failures().filter_map(skew_seconds);
        for seconds in facts.skew_seconds.into_iter().chain(rejected) {
            metrics.clock_skew(seconds);
        }
        self.failures()
            .filter_map(diagnosis)
            .for_each(|mistake| metrics.diagnosed(mistake));
        if let Some(observed) = facts.observed.as_deref() {
            metrics.observed(respond::verdict(observed));
        }
        self.count_consumer();
    }
}

impl BodyWatcher for RequestRecord {
    fn finish(mut self: Box<Self>, response: BodyEnd) {
        match response {
            BodyEnd::Whole => {}
            BodyEnd::Cut => {
                self.verdict = Verdict::BadGateway;
                let fault = ForwardFault::BrokenResponse("it broke off".into());
                self.failure = Some(Box::new(fault.into()));
            }
            BodyEnd::CallerGone => self.verdict = Verdict::Aborted,
        }
        self.report();
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
