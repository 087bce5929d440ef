//! The errors in the parameters of a request that are found before any secret is looked at.
//!
//! Each of these is the caller's act and is answered with status 400 (RFC 5849 §3.2); the variants carry what the OAuth Problem
//! Reporting extension wants told.

use std::fmt;

use thiserror::Error;

use super::{method::MethodSet, name::ParameterNames};

/// Why the parameters of a request were not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The bytes do not follow the grammar of their place.
    #[error("malformed {place}: {fault}")]
    Malformed {
        /// Where the bytes stood.
        place: Place,
        /// The error.
        fault: Fault,
    },
    /// Required protocol parameters are missing.
    #[error("missing {0}")]
    Absent(ParameterNames),
    /// Protocol parameters are there and cannot be accepted.
    #[error("{reason}: {names}")]
    Rejected {
        /// Which ones.
        names: ParameterNames,
        /// The error that they share.
        reason: Reason,
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

/// Where a parameter stood (RFC 5849 §3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The Authorization header field, §3.5.1.
    Header,
    /// A form-encoded body, §3.5.2.
    Body,
    /// The query of the request URI, §3.5.3.
    Query,
}

impl Place {
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "Authorization header",
            Self::Body => "form body",
            Self::Query => "query",
        })
    }
}

/// How bytes break the grammar of their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The Authorization value's scheme is not `OAuth`.
    #[error("the scheme is not OAuth")]
    Scheme,
    /// A parameter without a name, or one with a byte that no name may have.
    #[error("a parameter name is missing or has a forbidden character")]
    Name,
    /// A name that `="` does not follow at once.
    #[error("a parameter value is not in double quotes")]
    Unquoted,
    /// A quote that is never closed.
    #[error("a double quote is not closed")]
    Unterminated,
    /// A control character or a backslash within a value.
    #[error("a parameter value has a control character or a backslash in it")]
    Value,
    /// Something else than a comma between two parameters.
    #[error("parameters are not separated by commas")]
    Separator,
    /// A `%` without two hexadecimal digits.
    #[error("a '%' is not followed by two hexadecimal digits")]
    Escape,
}

/// Why protocol parameters that are there cannot be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Reason {
    /// A name occurs twice (§3.1: "MUST NOT appear more than once per request").
    #[error("given more than once")]
    Repeated,
    /// Names stand outside the one place where the others do (§3.5: "one and only one" location).
    #[error("not in one place with the other oauth_ parameters")]
    Scattered,
    /// A value has no byte.
    #[error("empty")]
    Empty,
    /// `oauth_timestamp` is not a positive decimal number without leading zeros.
    #[error("not a positive number of seconds")]
    Timestamp,
    /// `oauth_nonce` is not 1 to 255 visible ASCII characters.
    #[error("not 1 to 255 visible ASCII characters")]
    Nonce,
}
