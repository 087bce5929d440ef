//! The errors in the parameters of a request that are found before any secret is looked at.
//!
//! Each of these is the caller's act and is answered with status 400 (RFC 5849 §3.2); the variants carry the details
//! that the OAuth Problem Reporting extension asks for.

use thiserror::Error;

use super::name::{ParameterNames, ProtocolParameter};
use crate::oauth::method::MethodSet;

/// Why the parameters of a request were not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The bytes do not follow the grammar of their location.
    #[error("malformed {location}: {reason}")]
    Malformed {
        /// The location of the bytes.
        location: ParameterLocation,
        /// The way in which the bytes break the grammar, as a clause.
        reason: &'static str,
    },
    /// Required protocol parameters are missing.
    #[error("missing {0}")]
    Absent(ParameterNames),
    /// Protocol parameters are there and cannot be accepted.
    #[error("{reason}: {names}")]
    Rejected {
        /// Their names.
        names: ParameterNames,
        /// The error that they share, as a clause.
        reason: &'static str,
    },
    /// `oauth_signature_method` names an unknown method or one that is not switched on.
    #[error("unsupported oauth_signature_method")]
    MethodRejected {
        /// The methods that are switched on.
        accepted: MethodSet,
    },
    /// `oauth_version` is neither `1.0` nor `1.0a`.
    #[error("unsupported oauth_version")]
    VersionRejected,
}

/// The location of a parameter, in the order in which RFC 5849 §3.5 prefers the locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
pub enum ParameterLocation {
    /// The Authorization header field, §3.5.1.
    #[strum(serialize = "Authorization header")]
    Header,
    /// A form-encoded body, §3.5.2.
    #[strum(serialize = "form body")]
    Body,
    /// The query of the request URI, §3.5.3.
    #[strum(serialize = "query")]
    Query,
}

/// The locations that the protocol parameters of a call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationRule {
    /// All in one location, each once (RFC 5849 §3.5).
    OneLocation,
    /// `oauth_callback`, `oauth_verifier` and `oauth_token` may be in another location than the others, also in equal copies.
    /// Many libraries add them to the query or the form of a request token call or an access token call, and sign them there:
    /// every base string covers a name that begins with `oauth_` wherever it is.
    FlowApart,
}

impl LocationRule {
    /// Whether `parameter` may be apart from the others.
    pub(in crate::oauth) const fn frees(self, parameter: Option<ProtocolParameter>) -> bool {
        use ProtocolParameter::{Callback, Token, Verifier};
        matches!(self, Self::FlowApart) && matches!(parameter, Some(Callback | Verifier | Token))
    }
}

impl ParameterLocation {
    pub(in crate::oauth) const fn bit(self) -> u8 {
        1 << self as u8
    }
}
