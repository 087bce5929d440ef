//! Reports a request that has ended: makes its record, which the log, the metrics, the traces and the list of rejections show.

use std::{borrow::Cow, time::Duration};

use super::RequestRecord;
use crate::{
    gateway::live::Served,
    oauth::{Deviation, ProtocolParameter, ShapeError},
    provider::respond::{self, Failure},
    request::{
        forward::ForwardFault,
        policy::{PolicyRejection, UnmetRule, permit::Permit},
        route::{RouteRejection, TokenCall},
        verify::{ComparedTexts, VerifyRejection},
    },
    telemetry::{
        calls::{
            facts::{Door, HttpVersion, OperationRule, OtherSecret, Reason, Upgrade},
            record::CallRecord,
            rejections::{BaseStrings, KeptCall},
        },
        log::causes::causes,
        metrics::{Outcome, Verdict},
        traces::Steps,
    },
};

impl RequestRecord {
    /// Counts and logs the request, once.
    pub(crate) fn report(&mut self) {
        self.is_finished = true;
        let rest = self.stopwatch.lap();
        let took = self.stopwatch.total();
        self.count(took);
        let facts = &self.facts;
        let is_rare =
            self.is_rejected() || facts.sender.previous_secret || !facts.deviations.is_empty();
        if is_rare || self.current.live.access_log || self.trace.is_some() {
            self.tell(is_rare, took, rest);
        }
    }

    /// Shows its record. Most requests have one in the log alone.
    #[inline(never)]
    fn tell(&self, is_rare: bool, took: Duration, rest: Duration) {
        let live = &self.current.live;
        let mut call = self.call(took);
        if let (Some(trace), Some(traces)) = (&self.trace, &self.current.shared.traces) {
            let verify = self.facts.verify;
            traces.end(trace, &call, Steps { verify, rest });
        }
        if is_rare {
            self.tell_rare(&call);
        }
        // The findings of observe mode are logged even where other requests are not.
        if live.access_log || self.facts.observed.is_some() {
            call.path = call.path.filter(|_| live.access_log);
            call.operation = call.operation.filter(|_| self.is_explained());
            call.log();
        }
    }

    /// Whether its line in the log explains a verdict.
    fn is_explained(&self) -> bool {
        let is_observed = |permit: &Permit| permit.kind().is_none();
        let is_failed = self.failures().next().is_some() || self.is_rejected();
        is_failed || self.permit.as_ref().is_some_and(is_observed)
    }

    /// Counts what few requests have, and shows it to the operator among the last rejections.
    #[cold]
    fn tell_rare(&self, call: &CallRecord<'_>) {
        let (metrics, shared) = (&self.current.shared.metrics, &self.current.shared);
        let consumer = call.named_consumer();
        metrics.rare(call);
        if let (Some(consumer), Some(OtherSecret::Previous)) = (consumer, call.secret) {
            shared.previous_secrets.used(consumer);
        }
        if self.is_rejected() {
            shared.rejections.add(KeptCall {
                is_registered: call.consumer.is_some() || self.facts.sender.is_registered,
                accepted_before: consumer.map_or(0, |key| metrics.accepted_of(key)),
                base_strings: self.base_strings(call),
                ..KeptCall::from(CallRecord {
                    user: self.account.as_ref().map(|it| it.as_str().into()),
                    ..call.clone()
                })
            });
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
        if let Some(seconds) = facts.skew_seconds {
            metrics.clock_skew(seconds);
        }
        self.count_consumer();
    }

    /// Counts it for its consumer, if it is signed and neither a fault nor given up. What enforcing would reject is rejected,
    /// even if the API then failed.
    fn count_consumer(&self) {
        let observed = self.facts.observed.as_deref().map(Failure::verdict);
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
            if let (Some(door), true, false) = (self.door(), is_verified, is_rejected) {
                metrics.door(consumer, door);
            }
        }
    }

    /// How its consumer proves itself, where Bearer tokens are accepted.
    fn door(&self) -> Option<Door> {
        self.current.live.authorizer.bearer.as_ref()?;
        match self.facts.is_bearer {
            true => Some(Door::Bearer),
            false => self.consumer().0.map(|_| Door::Signature),
        }
    }

    /// Its record.
    fn call(&self, took: Duration) -> CallRecord<'_> {
        let ((consumer, is_verified), token) = (self.consumer(), self.token());
        let named = |is_named: bool| {
            let token = token.clone().filter(|_| is_named);
            (consumer.filter(|_| is_named).map(Cow::from), token)
        };
        let (verified, unverified) = (named(is_verified), named(!is_verified));
        let operations = &self.current.live.authorizer.operations;
        let call = CallRecord {
            method: Some(self.method.as_str().into()),
            // The path alone: an absolute target may have a name and a password in it.
            path: Some(self.target.path().into()),
            status: self.status,
            verdict: self.verdict,
            consumer: verified.0,
            token: verified.1,
            unverified_consumer: unverified.0,
            unverified_token: unverified.1,
            user: self.permit.as_ref().and_then(Permit::user).map(Cow::from),
            peer: self.peer,
            address: self.address.filter(|_| self.address != self.peer),
            request_id: Some(self.request_id.as_str().into()),
            operation: Some(self.served.label(operations).into()),
            door: self.door(),
            secret: (self.facts.sender.previous_secret).then_some(OtherSecret::Previous),
            http: HttpVersion::from_head(self.version),
            upgrade: self.dropped_upgrade.then_some(Upgrade::Dropped),
            deviation: self.facts.deviations,
            ms: Some(took),
            upstream_ms: self.upstream,
            ..CallRecord::default()
        };
        match self.failures().next() {
            Some(failure) => self.explained(failure, call),
            None => call,
        }
    }

    /// The record with the reason for which it was rejected, has failed, or would have been rejected.
    #[cold]
    fn explained<'r>(&'r self, failure: &'r Failure, mut call: CallRecord<'r>) -> CallRecord<'r> {
        let observed = self.facts.observed.as_deref();
        call.reason = observed.map(|failure| Reason::Observed(failure.verdict()));
        call.proof = call.named_consumer().map(|_| self.proof());
        let (parameters, problem) = respond::parameters(failure);
        (call.parameters, call.problem) = (parameters.map(Cow::from), problem);
        match failure {
            Failure::Route(RouteRejection::Misdirected { host, .. }) => {
                call.host = Some(host.as_str().into());
            }
            Failure::Policy(PolicyRejection::NotPermitted { unmet, .. }) => match unmet {
                Some(UnmetRule::Permission(permission)) => {
                    call.missing_permission = Some(permission.as_str().into());
                }
                Some(UnmetRule::Other(rule)) => call.denied_by = Some(*rule),
                None => {}
            },
            Failure::Policy(PolicyRejection::MethodNotAllowed { allow }) => {
                let problem = format!("{} is not allowed on this path; {allow} are", self.method);
                call.problem = Some(problem.into());
            }
            Failure::Verify(VerifyRejection::ConsumerOutside) => {
                call.denied_by = Some(OperationRule::From);
            }
            Failure::Verify(VerifyRejection::TimestampOutsideWindow { skew, .. }) => {
                call.skew_seconds = *skew;
            }
            Failure::Verify(VerifyRejection::SignatureWrong(wrong)) => {
                (call.diagnosis, call.needs) = (wrong.diagnosis, wrong.needs);
            }
            Failure::Shape(ShapeError::Absent(names)) => {
                let is_call = matches!(self.served, Served::Token(TokenCall::RequestToken));
                let is_callback_alone = names.iter().eq([ProtocolParameter::Callback.as_str()]);
                call.needs = (is_call && is_callback_alone).then_some(Deviation::CallbackAbsent);
            }
            _ => {}
        }
        let is_from_api = |failure: &Failure| matches!(failure, Failure::Upstream(fault) if !matches!(fault, ForwardFault::Internal(_)));
        let from_api = self.failure.as_deref().filter(|it| is_from_api(it));
        let upstream = from_api.and(self.current.live.upstream.as_ref());
        call.upstream = upstream.map(|api| api.address.to_string().into());
        let mut faults = self.failures().filter(|failure| failure.is_fault());
        call.cause = faults.next_back().map(|fault| causes(fault).into());
        if let Failure::Policy(PolicyRejection::Path(path)) = failure
            && let Some(key) = path.setting()
        {
            call.cause = Some(format!("the setting {key} rejects it").into());
        }
        call
    }

    /// The base strings that the developer of its consumer may compare.
    fn base_strings(&self, call: &CallRecord<'_>) -> Option<Box<BaseStrings>> {
        let Failure::Verify(VerifyRejection::SignatureWrong(wrong)) = self.failures().next()?
        else {
            return None;
        };
        let ComparedTexts { right, signed } = wrong.base_strings.as_deref()?;
        // The path of the configuration: that of the call may name a user.
        let path = match self.served {
            Served::Token(_) => self.target.path(),
            _ => call.operation.as_deref().unwrap_or_default(),
        };
        let consumer = call.named_consumer().unwrap_or_default();
        let shown = BaseStrings::new(right, signed.as_deref(), consumer, path);
        Some(Box::new(shown))
    }
}
