//! The content of a response to a rejection or a fault, independent of the format.
//!
//! Codes are those of the OAuth Problem Reporting extension.

use std::{borrow::Cow, time::Duration};

use crate::telemetry::metrics::Verdict;

/// The time after which to try again while other requests are being served.
pub const SOON: Duration = Duration::from_secs(1);
/// The same after an outage whose end is not known; connections are tried again more often than that.
pub const OUTAGE: Duration = Duration::from_secs(5);

/// The content of a response to a rejection or a fault.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The status code.
    pub status: u16,
    /// The verdict in logs and metrics.
    pub verdict: Verdict,
    /// The code of Problem Reporting, if the status has one.
    pub code: Option<&'static str>,
    /// The known mistake that made a signature, if the advice names it.
    pub mistake: Option<&'static str>,
    /// The next step for the caller; `None`: the usual advice of the verdict.
    pub advice: Option<Cow<'static, str>>,
    /// A further member, such as the names of missing parameters.
    pub detail: Option<(&'static str, String)>,
    /// A further field, such as `Retry-After`.
    pub field: Option<(&'static str, String)>,
    /// The messages of a page, heading and text; without a text that of the heading, `None`: those of the status.
    pub page: Option<(&'static str, Option<&'static str>)>,
    /// The path by which a browser begins again.
    pub retry_path: Option<String>,
    /// The application that the user came from: its name, and its web page.
    pub application: Option<(String, Option<String>)>,
}

impl Problem {
    /// A problem without a code.
    pub const fn plain(status: u16, verdict: Verdict) -> Self {
        Self {
            status,
            verdict,
            code: None,
            mistake: None,
            advice: None,
            detail: None,
            field: None,
            page: None,
            retry_path: None,
            application: None,
        }
    }

    /// A problem whose code is the name of its verdict.
    pub fn coded(status: u16, verdict: Verdict) -> Self {
        let mut problem = Self::plain(status, verdict);
        problem.code = Some(verdict.as_str());
        problem
    }

    /// HTTP that two recipients could read differently: a caller who sends it may have sent more of it, so the connection
    /// is closed.
    pub fn malformed(verdict: Verdict, what: impl ToString) -> Self {
        let mut problem = Self::plain(400, verdict);
        problem.code = Some(Verdict::ParameterRejected.as_str());
        problem
            .advise(what.to_string())
            .field("Connection", "close")
    }

    /// Parameters that are not acceptable, joined by `&`.
    pub fn rejected(
        verdict: Verdict,
        names: impl Into<String>,
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::coded(400, verdict)
            .advise(why)
            .detail("oauth_parameters_rejected", names)
    }

    /// 405 with this value of `Allow`.
    pub fn method_not_allowed(verdict: Verdict, allow: &str) -> Self {
        Self::plain(405, verdict).field("Allow", allow)
    }

    /// 503, with the time after which to try again.
    pub fn unavailable(verdict: Verdict, retry_after: Duration) -> Self {
        Self::plain(503, verdict).retry_after(retry_after)
    }

    /// With this advice instead of the usual one.
    pub fn advise(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// With this further member.
    pub fn detail(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.detail = Some((name, value.into()));
        self
    }

    /// With this further field.
    pub fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.field = Some((name, value.into()));
        self
    }

    /// With `Retry-After`, in whole seconds, at least one.
    pub fn retry_after(self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.field("Retry-After", seconds.max(1).to_string())
    }
}
