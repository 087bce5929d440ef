//! The record of a call: every fact that is told of it, once. The line of the access log, the metrics, the traces and the
//! rejections for the operator show it; `why` reads it from a line.

use std::{borrow::Cow, net::IpAddr, time::Duration};

use serde::{Serialize, Serializer};

use super::{
    facts::{
        Door, Fact, HttpVersion, OperationRule, OtherSecret, Reason, SenderProof, Shown, Upgrade,
    },
    verdict::{Outcome, Verdict},
};
use crate::oauth::{Deviation, DeviationSet, diagnosis::Diagnosed};

/// The label of the pages of this service, as that of an operation. Labels of operations have a slash.
pub const PAGE: &str = "page";

/// The label of the paths that no operation lists.
pub const UNLISTED: &str = "unlisted";

/// Defines [`CallRecord`] from one row a fact, which has the same name in the log. `as bare`: a line has no quotation marks
/// around a text that needs none.
macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(as $form:ident)?,)+) => {
        /// The facts of a call, in the order of its line in the access log. Texts are borrowed until the record is kept.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct CallRecord<'a> {
            $($(#[$doc])* pub $name: $type,)+
        }

        impl<'a> CallRecord<'a> {
            /// The names of all facts.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Passes on the facts that are known, each with its name.
            ///
            /// # Errors
            /// Stops at the first error of `show`.
            pub fn show<E>(&self, mut show: impl FnMut(&'static str, Shown<'_>) -> Result<(), E>) -> Result<(), E> {
                $(if let Some(shown) = self.$name.shown() {
                    show(stringify!($name), shown$(.$form())?)?;
                })+
                Ok(())
            }

            /// The record whose facts have these values. A value that is not one of its fact is left out.
            pub fn read(mut value: impl FnMut(&str) -> Option<String>) -> CallRecord<'static> {
                CallRecord {
                    $($name: value(stringify!($name)).and_then(<$type as Fact>::read).unwrap_or_default(),)+
                }
            }

            /// The record with texts of its own, each cut after at most this many bytes.
            #[must_use]
            pub fn into_owned(self, max_text: usize) -> CallRecord<'static> {
                CallRecord {
                    $($name: Fact::into_owned(self.$name, max_text),)+
                }
            }
        }
    };
}

facts! {
    /// The method.
    method: Option<Cow<'a, str>>,
    /// The path as sent, without the query.
    path: Option<Cow<'a, str>>,
    /// The status of the response; 0 without one.
    status: u16,
    /// The outcome.
    verdict: Verdict,
    /// The consumer, if the signature is right.
    consumer: Option<Cow<'a, str>> as bare,
    /// The beginning of the token, if the signature is right.
    token: Option<Cow<'a, str>> as bare,
    /// The consumer that another call names.
    unverified_consumer: Option<Cow<'a, str>> as bare,
    /// The beginning of the token that another call names.
    unverified_token: Option<Cow<'a, str>> as bare,
    /// The user for whom the call was permitted.
    user: Option<Cow<'a, str>> as bare,
    /// The address that the connection came from.
    peer: Option<IpAddr>,
    /// The address of the caller, as trusted proxies name it, if it is another one.
    address: Option<IpAddr>,
    /// The id of the request; `None` if its head could not be read.
    request_id: Option<Cow<'a, str>> as bare,
    /// The label of the operation.
    operation: Option<Cow<'a, str>>,
    /// How its consumer proves itself, where that may be by a Bearer token.
    door: Option<Door>,
    /// What a rejected call proves of the consumer that it names.
    proof: Option<SenderProof>,
    /// The secret of the consumer that it is signed with, if that is not the current one.
    secret: Option<OtherSecret>,
    /// The version of HTTP.
    http: Option<HttpVersion>,
    /// The outcome of asking for another protocol.
    upgrade: Option<Upgrade>,
    /// The host, if the service does not have it.
    host: Option<Cow<'a, str>> as bare,
    /// Why enforcing would reject the call, or why its head cannot be read.
    reason: Option<Reason<'a>>,
    /// The permission that is missing, if that is why.
    missing_permission: Option<Cow<'a, str>> as bare,
    /// The other rule of the operation that denied the call, or of the consumer that is refused, if that is why.
    denied_by: Option<OperationRule>,
    /// The names of the parameters that are missing or not acceptable, percent-encoded and joined by `&`.
    parameters: Option<Cow<'a, str>> as bare,
    /// What the response says is wrong with them, or with the method, the consumer, the token or the body.
    problem: Option<Cow<'a, str>> as bare,
    /// The search for the mistake that makes the wrong signature.
    diagnosis: Diagnosed,
    /// The deviation that would have to be accepted from the consumer.
    needs: Option<Deviation>,
    /// The deviations that were accepted from it.
    deviation: DeviationSet,
    /// The seconds by which a rejected timestamp is ahead of our clock.
    skew_seconds: Option<i64>,
    /// The address of the API, if the API is at fault.
    upstream: Option<Cow<'a, str>>,
    /// The cause of a fault.
    cause: Option<Cow<'a, str>>,
    /// The duration of the call.
    ms: Option<Duration>,
    /// Of that, the API up to the head of its response.
    upstream_ms: Option<Duration>,
}

/// Serde writes the members of a line of JSON.
impl Serialize for CallRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;

        let mut members = serializer.serialize_map(None)?;
        self.show(|name, value| members.serialize_entry(name, &value))?;
        members.end()
    }
}

impl CallRecord<'_> {
    /// The consumer that the call names.
    pub fn named_consumer(&self) -> Option<&str> {
        let unverified = self.unverified_consumer.as_deref();
        self.consumer.as_deref().or(unverified)
    }

    /// The first characters of the token that it names.
    pub fn named_token(&self) -> Option<&str> {
        let unverified = self.unverified_token.as_deref();
        let token = self.token.as_deref().or(unverified)?;
        Some(token.trim_end_matches('…'))
    }

    /// The address of the caller, as trusted proxies name it.
    pub fn caller_address(&self) -> Option<IpAddr> {
        self.address.or(self.peer)
    }

    /// The method and the path of the operation: a path as it was sent may name a user.
    pub fn called_operation(&self) -> String {
        // The label of an operation has its methods before the path.
        let target = self.operation.as_deref().unwrap_or_default();
        let target = target.rsplit(' ').next().unwrap_or_default();
        format!("{} {target}", self.method.as_deref().unwrap_or("–"))
    }

    /// The method and the path, as the operator's lists show them.
    pub fn called(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        format!("{} {path}", self.method.as_deref().unwrap_or("–"))
    }

    /// The verdict that enforcing would give to a call that was only observed.
    pub const fn observed(&self) -> Option<Verdict> {
        match self.reason {
            Some(Reason::Observed(verdict)) => Some(verdict),
            Some(Reason::Unreadable(_)) | None => None,
        }
    }

    /// Whether it was only observed, and the API rejected it.
    pub fn is_rejected_by_api(&self) -> bool {
        self.observed().is_some() && (400..500).contains(&self.status)
    }

    /// The verdict; for an observed call, the one that enforcing would give.
    pub fn reason(&self) -> Verdict {
        self.observed().unwrap_or(self.verdict)
    }

    /// Whether this program or the API is at fault for the reason.
    pub fn is_fault(&self) -> bool {
        self.reason().outcome() == Outcome::Failed
    }

    /// Whether its verdict says that it was rejected or has failed, or it would have been rejected if it was not only observed.
    pub fn is_rejected(&self) -> bool {
        let is_rejected = match self.verdict.outcome() {
            Outcome::Rejected => true,
            Outcome::Failed => self.verdict != Verdict::Aborted,
            Outcome::Observed | Outcome::Served => false,
        };
        is_rejected || self.observed().is_some()
    }

    /// The word for the mistake: that in the signature, else the verdict.
    pub fn mistake(&self) -> &'static str {
        let verdict = self.reason().as_str();
        self.diagnosis.word().unwrap_or(verdict)
    }

    /// The word for the mistake in the signature; for an observed call without one, the verdict that enforcing would give.
    pub fn shown_diagnosis(&self) -> Option<&'static str> {
        let observed = || self.observed().map(Verdict::as_str);
        self.diagnosis.word().or_else(observed)
    }

    /// Whether its consumer was disabled. Such a verdict without that is of a call that lacks a pinned value, or from
    /// outside its networks.
    pub fn names_disabled_consumer(&self) -> bool {
        self.reason() == Verdict::ConsumerKeyRefused
            && self.problem.is_none()
            && self.denied_by.is_none()
    }

    /// Whether its token was rejected because it names none. The token of a page is not in the record.
    pub fn lacks_token(&self) -> bool {
        self.reason() == Verdict::TokenRejected
            && self.named_token().unwrap_or_default().is_empty()
            && self.door != Some(Door::Bearer)
            && !self.is_from_page()
    }

    /// Whether a user sent it from a page of this service.
    pub fn is_from_page(&self) -> bool {
        self.operation.as_deref() == Some(PAGE)
    }

    /// Whether it was denied because no operation lists its path.
    pub fn is_unlisted(&self) -> bool {
        self.reason() == Verdict::PermissionDenied && self.operation.as_deref() == Some(UNLISTED)
    }
}
