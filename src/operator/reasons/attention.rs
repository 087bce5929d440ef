//! Whether the rejected calls of a consumer still need attention.

use std::time::Duration;

use crate::{base::clock::UnixTime, telemetry::calls::rejections::ReasonCount};

/// A reason expires after this long without a rejection: a program that runs once a day has run again.
const QUIET: Duration = Duration::from_secs(26 * 60 * 60);

/// What became of a consumer after its call was rejected.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerNow {
    /// The calls of it that this process has accepted since it started.
    pub accepted: u64,
    /// Its state; `None`: it is not registered.
    pub enabled: Option<bool>,
    /// The time of the question.
    pub now: UnixTime,
}

/// What happened after the last call of a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterRejection {
    /// Nothing that makes it better.
    Open,
    /// Calls are accepted again, or are accepted besides: this many since the last rejected one.
    SomeAccepted(u64),
    /// This many calls were accepted since, and none was rejected for this reason.
    Accepted(u64),
    /// The consumer was disabled, and is enabled again.
    Enabled,
    /// The API rejects the calls too, so that enforcing changes nothing for them.
    RejectedByApi,
    /// The consumer is disabled, so that no call of it is accepted, however it is signed.
    Disabled,
}

impl AfterRejection {
    /// What became of the calls of a registered consumer that were rejected for one reason.
    pub fn new(group: &ReasonCount, consumer: ConsumerNow) -> Self {
        let newest = &group.newest;
        if newest.call.is_rejected_by_api() {
            return Self::RejectedByApi;
        }
        let is_quiet = consumer.now >= newest.time.after(QUIET);
        match (newest.call.names_disabled_consumer(), consumer.enabled) {
            (true, Some(true)) => return Self::Enabled,
            (true, Some(false)) if is_quiet => return Self::Disabled,
            (true, Some(false)) | (_, None) => return Self::Open,
            (false, Some(false)) => return Self::Disabled,
            (false, Some(true)) => {}
        }
        match consumer.accepted.saturating_sub(newest.accepted_before) {
            0 => Self::Open,
            accepted if group.is_in_some_calls && !is_quiet => Self::SomeAccepted(accepted),
            accepted => Self::Accepted(accepted),
        }
    }

    /// Whether it needs no attention.
    pub const fn is_resolved(&self) -> bool {
        !matches!(self, Self::Open | Self::SomeAccepted(_))
    }

    /// It in words; `None`: nothing happened.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Open => return None,
            Self::SomeAccepted(count) => {
                format!("Some of its calls are right: {count} since the last wrong one.")
            }
            Self::Accepted(1) => "1 call was right since, and none had this mistake.".to_owned(),
            Self::Accepted(count) => {
                format!("{count} calls were right since, and none had this mistake.")
            }
            Self::Enabled => "It is enabled again.".to_owned(),
            Self::RejectedByApi => "The API rejects these calls too.".to_owned(),
            Self::Disabled => "It is disabled.".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::telemetry::{
        calls::{facts::Reason, record::CallRecord, rejections::KeptCall},
        metrics::Verdict,
    };

    const NOW: UnixTime = UnixTime(1_790_164_800);

    fn rejected(verdict: Verdict, accepted_before: u64) -> Arc<KeptCall> {
        let call = CallRecord {
            verdict,
            ..CallRecord::default()
        };
        Arc::new(KeptCall {
            time: NOW,
            accepted_before,
            ..KeptCall::from(call)
        })
    }

    fn outcome(group: &ReasonCount, accepted: u64, enabled: bool, seconds: u64) -> AfterRejection {
        let later = ConsumerNow {
            accepted,
            enabled: Some(enabled),
            now: NOW.after(Duration::from_secs(seconds)),
        };
        AfterRejection::new(group, later)
    }

    #[test]
    fn call_that_the_api_rejects_too_needs_no_attention() {
        let mut call = (*rejected(Verdict::Observed, 0)).clone();
        call.call.reason = Some(Reason::Observed(Verdict::SignatureInvalid));
        for (status, expected) in [
            (200, AfterRejection::Open),
            (401, AfterRejection::RejectedByApi),
            (503, AfterRejection::Open),
        ] {
            call.call.status = status;
            let group = ReasonCount::new(&Arc::new(call.clone()));
            assert_eq!(outcome(&group, 0, true, 0), expected, "{status}");
        }
        assert!(AfterRejection::RejectedByApi.is_resolved());
    }

    #[test]
    fn a_later_call_that_is_accepted_ends_it() {
        let group = ReasonCount::new(&rejected(Verdict::SignatureInvalid, 7));
        assert_eq!(outcome(&group, 7, true, 0), AfterRejection::Open);
        let ended = outcome(&group, 8, true, 0);
        assert_eq!(ended, AfterRejection::Accepted(1));
        assert!(ended.is_resolved());
        let text = "1 call was right since, and none had this mistake.";
        assert_eq!(ended.text().as_deref(), Some(text));
    }

    #[test]
    fn mistake_in_some_calls_needs_attention_for_26_quiet_hours() {
        let mut group = ReasonCount::new(&rejected(Verdict::SignatureInvalid, 7));
        group.add(&rejected(Verdict::SignatureInvalid, 7));
        assert!(outcome(&group, 8, true, 0).is_resolved());
        group.add(&rejected(Verdict::SignatureInvalid, 9));
        let some = outcome(&group, 12, true, 93_599);
        assert_eq!(some, AfterRejection::SomeAccepted(3));
        assert!(!some.is_resolved());
        let text = "Some of its calls are right: 3 since the last wrong one.";
        assert_eq!(some.text().as_deref(), Some(text));
        assert_eq!(
            outcome(&group, 12, true, 93_600),
            AfterRejection::Accepted(3)
        );
        assert_eq!(outcome(&group, 9, true, 93_600), AfterRejection::Open);
    }

    #[test]
    fn enabled_again_or_disabled_consumers_need_no_attention() {
        let disabled = ReasonCount::new(&rejected(Verdict::ConsumerKeyRefused, 0));
        assert_eq!(outcome(&disabled, 9, false, 0), AfterRejection::Open);
        assert_eq!(
            outcome(&disabled, 0, false, 93_600),
            AfterRejection::Disabled
        );
        assert_eq!(outcome(&disabled, 0, true, 0), AfterRejection::Enabled);
        let wrong = ReasonCount::new(&rejected(Verdict::SignatureInvalid, 0));
        assert_eq!(outcome(&wrong, 0, false, 0), AfterRejection::Disabled);
        assert!(outcome(&wrong, 0, false, 0).is_resolved());
        // Such a call lacks a pinned value, and its consumer is enabled.
        let mut pinned = (*rejected(Verdict::ConsumerKeyRefused, 0)).clone();
        pinned.call.problem = Some("pinned".into());
        let pinned = ReasonCount::new(&Arc::new(pinned));
        assert_eq!(outcome(&pinned, 0, true, 0), AfterRejection::Open);
    }
}
