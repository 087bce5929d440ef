//! Reports a request that has ended to the log, the metrics, the traces and the list of rejections.

use std::{borrow::Cow, time::Duration};

use super::{RequestRecord, Served};
use crate::{
    base::{clock::UnixTime, names::Permission},
    oauth::{Deviation, ProtocolParameter, ShapeError},
    provider::respond::{self, Failure},
    request::{
        forward::ForwardFault,
        policy::{self, UnmetRule, permit::Permit},
        rejections::{BaseStrings, RecordedRejection},
        route::{self, TokenCall},
        verify::{ComparedTexts, VerifyRejection},
    },
    telemetry::{
        causes::causes,
        lines::ACCESS,
        metrics::{Outcome, Verdict},
        traces::{Ended, Trace},
    },
};

impl RequestRecord {
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
        let reason = observed.map_or(self.verdict, respond::verdict);
        let diagnosis = failure.and_then(diagnosis);
        let (parameters, problem) = failure.map(respond::parameters).unwrap_or_default();
        let accepted = consumer.map(|key| self.current.shared.metrics.accepted_of(key));
        self.current.shared.rejections.add(RecordedRejection {
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
            diagnosis: diagnosis.or_else(|| observed.map(|_| reason.as_str())),
            parameters,
            parameters_problem: problem.map(Cow::into_owned),
            status: self.status,
            address: self.address.map(|address| address.to_string()),
            is_observed: observed.is_some(),
            reason: reason.as_str(),
            is_fault: reason.outcome() == Outcome::Failed,
            skew_seconds: failure.and_then(skew_seconds),
            missing_permission: failure
                .and_then(missing_permission)
                .map(ToString::to_string),
            denied_by: failure.and_then(denied_by),
            accepted_before: accepted.unwrap_or_default(),
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

    /// Counts it for its consumer, if it is signed and neither a fault nor given up. What enforcing would reject is rejected,
    /// even if the API then failed.
    fn count_consumer(&self) {
        let observed = self.facts.observed.as_deref().map(respond::verdict);
        let is_rejected = match self.verdict {
            _ if let Some(reason) = observed => match reason.outcome() {
                Outcome::Rejected => true,
                _ => return,
            },
            Verdict::Forwarded
            | Verdict::RequestTokenIssued
            | Verdict::AccessTokenIssued
            | Verdict::AccessTokenRevoked
            | Verdict::TokenExchanged => false,
            Verdict::Observed => false,
            // Its user clicked twice: that says nothing about the consumer.
            Verdict::LaunchRepeated => return,
            Verdict::BrownOut => true,
            // A rejected launch that leads back to its platform.
            _ if self.status == 303 && self.is_rejected() => true,
            _ if (400..500).contains(&self.status) => true,
            _ => return,
        };
        if let (Some(consumer), is_verified) = self.consumer() {
            let metrics = &self.current.shared.metrics;
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
        if let Some(traces) = &self.current.shared.traces {
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
    pub(super) fn report(&mut self) {
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
        let (metrics, facts) = (&self.current.shared.metrics, &self.facts);
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
                self.current.shared.previous_secrets.used(consumer);
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
