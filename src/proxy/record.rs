//! Counts and logs a request once it is over, however it ends.

use std::{net::IpAddr, rc::Rc, sync::Arc, sync::atomic::Ordering, time::Duration};

use http::{Method, Uri, header};

use super::{Current, Shared, Worker};
use crate::{
    authorize::Facts,
    forward,
    names::{ConsumerKey, Permission},
    oauth::diagnosis::Mistake,
    parse::claimed::Claimed,
    policy::{
        self,
        operations::{Found, Operations},
        permit::Permit,
    },
    respond::{self, Failure},
    route::{self, TokenCall},
    server::response::BodyEnd,
    telemetry::{
        causes::causes, lines::ACCESS, metrics::Verdict, redact::RedactedToken,
        request_id::RequestId, stopwatch::Stopwatch,
    },
    verify,
};

/// What a request is for.
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
    /// A listed path with another method.
    OtherMethod,
    /// The operation with this index.
    Operation(usize),
}

impl Served {
    pub(super) const fn by(found: &Found<'_>) -> Self {
        match found {
            Found::Operation(operation) => Self::Operation(operation.index),
            Found::OtherMethod { .. } => Self::OtherMethod,
            Found::Unlisted(_) => Self::Unlisted,
        }
    }

    /// Its word in logs and metrics.
    pub(super) fn label(self, operations: &Operations) -> &str {
        match self {
            Self::Unknown => "none",
            Self::Unlisted => "unlisted",
            Self::OtherMethod => "other_method",
            Self::Token(TokenCall::RequestToken) => "request_token",
            Self::Token(TokenCall::AccessToken) => "access_token",
            Self::Token(TokenCall::RevokeToken) => "revoke_token",
            Self::Page => "page",
            Self::Operation(index) => operations
                .labels()
                .get(index)
                .map_or("none", String::as_str),
        }
    }
}

/// Further fields of the line of a rejected, failed or observed call.
#[derive(Debug, Default)]
struct Details {
    /// The signature holds, so the consumer and the token are not only claimed.
    verified: bool,
    /// What would have rejected a call that is observed.
    reason: Option<&'static str>,
    missing_permission: Option<Permission>,
    diagnosis: Option<&'static str>,
    /// The host that was received, if the service does not have it.
    host: Option<String>,
    /// How far ahead of our clock a rejected timestamp is.
    skew_seconds: Option<i64>,
    /// The address of the API, where that is at fault.
    upstream: Option<String>,
    /// Why a fault happened.
    cause: Option<String>,
}

impl Details {
    fn of(failure: &Failure) -> Self {
        let missing_permission = match failure {
            Failure::Policy(policy::Rejection::NotPermitted { missing, .. }) => missing.clone(),
            _ => None,
        };
        let host = match failure {
            Failure::Route(route::Rejection::Misdirected { host, .. }) => Some(host.clone()),
            _ => None,
        };
        Self {
            verified: has_valid_signature(failure),
            reason: None,
            missing_permission,
            diagnosis: mistake(failure).map(|it| it.word),
            host,
            skew_seconds: skew_seconds(failure),
            upstream: None,
            cause: failure.is_fault().then(|| causes(failure)),
        }
    }
}

/// Whether a signed call that fails like this has passed the check of its signature.
fn has_valid_signature(failure: &Failure) -> bool {
    use verify::Rejection as Verify;
    match failure {
        Failure::Verify(rejection) => matches!(
            rejection,
            Verify::BodyHashWrong
                | Verify::NonceUsed
                | Verify::ConsumerDisabled
                | Verify::TokenExpired
                | Verify::TokenRevoked
        ),
        Failure::Policy(rejection) => matches!(
            rejection,
            policy::Rejection::TokenMissing
                | policy::Rejection::NotPermitted { .. }
                | policy::Rejection::MethodNotAllowed { .. }
                | policy::Rejection::TooManyRequests { .. }
        ),
        Failure::Unverifiable(fault) => !matches!(fault, verify::Fault::Store(_)),
        Failure::Issue(_) | Failure::Upstream(_) | Failure::NoRandomness(_) => true,
        Failure::Parse(_)
        | Failure::Body(_)
        | Failure::Route(_)
        | Failure::Shape(_)
        | Failure::Forward(_)
        | Failure::Page(_)
        | Failure::Busy
        | Failure::Store(_) => false,
    }
}

/// How far ahead of our clock a rejected timestamp is.
const fn skew_seconds(failure: &Failure) -> Option<i64> {
    match failure {
        Failure::Verify(verify::Rejection::TimestampOutsideWindow { skew, .. }) => *skew,
        _ => None,
    }
}

fn mistake(failure: &Failure) -> Option<&'static Mistake> {
    match failure {
        Failure::Verify(verify::Rejection::SignatureWrong { mistake, .. }) => *mistake,
        _ => None,
    }
}

/// A request that is being served, among all workers'.
pub(super) struct InFlight(Arc<Shared>);

impl InFlight {
    /// Counts one more; and how many there are now.
    pub(super) fn begin(shared: &Arc<Shared>) -> (Self, usize) {
        let before = shared.in_flight.fetch_add(1, Ordering::Relaxed);
        (Self(Arc::clone(shared)), before + 1)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The record of a request; it is written when this is dropped.
pub(super) struct RequestRecord {
    worker: Rc<Worker>,
    current: Rc<Current>,
    method: Method,
    target: Option<Uri>,
    peer: Option<IpAddr>,
    /// Its id.
    pub(super) request_id: RequestId,
    /// How long its parts took.
    pub(super) stopwatch: Stopwatch,
    /// The outcome; until there is a response, that the caller has gone.
    pub(super) verdict: Verdict,
    /// The status of the response; 0 without one.
    pub(super) status: u16,
    /// The permit, if it went to the API.
    pub(super) permit: Option<Permit>,
    /// What it is for.
    pub(super) operation: Served,
    /// Whom it names, if it does not go to the API with an identity.
    pub(super) claimed: Option<Box<Claimed>>,
    /// It is signed with a replaced secret, during its grace.
    pub(super) previous_secret: bool,
    /// It asks for another protocol, and the API does not learn of it.
    pub(super) dropped_upgrade: bool,
    details: Option<Box<Details>>,
    /// How long the API took for the head of its response.
    pub(super) upstream: Option<Duration>,
    /// Handed to a tunnel, which outlives the response.
    pub(super) in_flight: Option<InFlight>,
}

impl RequestRecord {
    pub(super) fn begin(
        worker: &Rc<Worker>,
        current: &Rc<Current>,
        parts: &http::request::Parts,
        peer: Option<IpAddr>,
        request_id: RequestId,
        in_flight: InFlight,
    ) -> Box<Self> {
        Box::new(Self {
            worker: Rc::clone(worker),
            current: Rc::clone(current),
            method: parts.method.clone(),
            target: current.live.access_log.then(|| parts.uri.clone()),
            peer,
            request_id,
            stopwatch: Stopwatch::start(),
            verdict: Verdict::Aborted,
            status: 0,
            permit: None,
            operation: Served::Unknown,
            claimed: None,
            previous_secret: false,
            dropped_upgrade: parts.headers.contains_key(header::UPGRADE),
            details: None,
            upstream: None,
            in_flight: Some(in_flight),
        })
    }

    /// Notes and counts what is known of a call to the API.
    pub(super) fn apply(&mut self, facts: Facts) {
        let metrics = self.worker.metrics();
        match facts.verify {
            Some(took) => metrics.verify.observe(took.as_secs_f64()),
            // The time until now is not the API's.
            None => drop(self.stopwatch.lap()),
        }
        if let Some(skew) = facts.skew_seconds {
            metrics.clock_skew(skew);
        }
        self.previous_secret = facts.previous_secret;
        self.claimed = facts.claimed;
    }

    /// Notes why it fails.
    pub(super) fn fail(&mut self, failure: &Failure) {
        let mut details = match self.details.take() {
            // An observed call goes to the API whatever its signature is, so a later fault proves nothing.
            Some(observed) => Details {
                cause: failure.is_fault().then(|| causes(failure)),
                ..*observed
            },
            None => Details::of(failure),
        };
        if let Failure::Upstream(fault) = failure
            && !matches!(fault, forward::Fault::Internal(_))
        {
            details.upstream = Some(self.current.live.upstream.address.to_string());
        }
        self.count_finding(failure);
        self.details = Some(Box::new(details));
    }

    fn count_finding(&self, failure: &Failure) {
        let metrics = self.worker.metrics();
        if let Some(skew) = skew_seconds(failure) {
            metrics.clock_skew(skew);
        }
        if let Some(mistake) = mistake(failure) {
            metrics.diagnosed(mistake.word);
        }
    }

    /// Counts it for its consumer, if it is signed and neither a fault nor given up.
    fn count_consumer(&self) {
        let details = self.details.as_deref();
        let is_rejected = match self.verdict {
            Verdict::Forwarded
            | Verdict::RequestTokenIssued
            | Verdict::AccessTokenIssued
            | Verdict::AccessTokenRevoked => false,
            Verdict::Observed => details.is_some_and(|details| details.reason.is_some()),
            _ if (400..500).contains(&self.status) => true,
            _ => return,
        };
        let permitted = self.permit.as_ref().and_then(Permit::consumer);
        let claimed = self.claimed.as_deref();
        let claimed = || claimed.and_then(|by| by.consumer.as_deref());
        if let Some(consumer) = permitted.map(ConsumerKey::as_str).or_else(claimed) {
            self.worker
                .metrics()
                .consumer(consumer, self.is_verified(), is_rejected);
        }
    }

    /// Whether the signature holds. A token call that succeeds has no details, and one to the API has its permit instead of
    /// the claim.
    fn is_verified(&self) -> bool {
        let details = self.details.as_deref();
        details.map_or(self.status != 0, |details| details.verified)
    }

    /// Notes that it is observed, and why it would have been rejected, if it would have been.
    pub(super) fn observe(&mut self, failure: Option<&Failure>) {
        let mut details = Details {
            verified: true,
            ..Details::default()
        };
        if let Some(failure) = failure {
            let verdict = respond::verdict(failure);
            self.worker.metrics().observed(verdict);
            self.count_finding(failure);
            details = Details::of(failure);
            details.reason = Some(verdict.as_str());
        }
        self.details = Some(Box::new(details));
    }

    /// Notes how the response's body ended.
    pub(super) fn end(mut self: Box<Self>, how: BodyEnd) {
        match how {
            BodyEnd::Whole => {}
            BodyEnd::Cut => {
                self.verdict = Verdict::BadGateway;
                let details = self.details.get_or_insert_default();
                details.upstream = Some(self.current.live.upstream.address.to_string());
                details.cause = Some("the response of the API broke off".to_owned());
            }
            BodyEnd::CallerGone => self.verdict = Verdict::Aborted,
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.stopwatch.lap();
        let took = self.stopwatch.total();
        let metrics = self.worker.metrics();
        metrics.request(self.verdict);
        metrics.request.observe(took.as_secs_f64());
        let live = &self.current.live;
        let operations = &live.authorizer.operations;
        metrics.operation(self.operation.label(operations), self.status);
        if self.previous_secret {
            metrics.previous_secrets.inc();
        }
        self.count_consumer();
        // What observe finds is logged even where other requests are not.
        let finds = |details: &Details| details.reason.is_some();
        if !live.access_log && !self.details.as_deref().is_some_and(finds) {
            return;
        }
        let permit = self.permit.as_ref();
        let details = self.details.as_deref();
        let claimed = self.claimed.as_deref();
        let is_verified = self.is_verified();
        let verified = claimed.filter(|_| is_verified);
        let unverified = claimed.filter(|_| !is_verified);
        let consumer = permit.and_then(Permit::consumer).map(ConsumerKey::as_str);
        let token = permit
            .and_then(Permit::token)
            .map(|token| RedactedToken(token).to_string());
        let operation = details.map(|_| self.operation.label(operations));
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(
            target: ACCESS,
            method = self.method.as_str(),
            // The path alone: an absolute target may have a name and a password in it.
            path = self.target.as_ref().map(Uri::path),
            status = self.status,
            verdict = self.verdict.as_str(),
            consumer = consumer.or(verified.and_then(|by| by.consumer.as_deref())).map(display),
            token = token.as_deref().or(verified.and_then(|by| by.token.as_deref())).map(display),
            unverified_consumer = unverified.and_then(|by| by.consumer.as_deref()).map(display),
            unverified_token = unverified.and_then(|by| by.token.as_deref()).map(display),
            user = permit.and_then(Permit::user).map(display),
            peer = self.peer.map(display),
            request_id = %self.request_id.as_str(),
            operation,
            secret = self.previous_secret.then_some("previous"),
            upgrade = (self.dropped_upgrade && permit.is_some()).then_some("dropped"),
            host = details.and_then(|details| details.host.as_deref()).map(display),
            reason = details.and_then(|details| details.reason),
            missing_permission = details
                .and_then(|details| details.missing_permission.as_ref())
                .map(display),
            diagnosis = details.and_then(|details| details.diagnosis),
            skew_seconds = details.and_then(|details| details.skew_seconds),
            upstream = details.and_then(|details| details.upstream.as_deref()),
            cause = details.and_then(|details| details.cause.as_deref()),
            ms = milliseconds(took),
            upstream_ms = self.upstream.map(milliseconds),
        );
    }
}
