//! The outcome of a request, as one fixed label.

/// The outcome of a request: the label of `countersign_requests_total` and the `verdict` of the access log, in snake case.
///
/// There is no catch-all, so that each new response needs a decision on how it counts.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Went to the API with an identity.
    Forwarded,
    /// Went to the API without one.
    Anonymous,
    /// Went to the API although it would have been rejected: `signature.enforcement = "observe"`.
    Observed,

    /// A request token was given out.
    RequestTokenIssued,
    /// An access token was given out.
    AccessTokenIssued,
    /// An access token was revoked by its consumer.
    AccessTokenRevoked,
    /// An OAuth 2 access token was given out for an access token.
    TokenExchanged,
    /// A page was shown, or its form led on.
    Page,
    /// A browser without a session was sent to the login.
    LoginNeeded,

    /// No credentials, or a protocol parameter is missing.
    ParameterAbsent,
    /// A parameter is malformed, repeated or out of place.
    ParameterRejected,
    /// The signature method is not accepted.
    SignatureMethodRejected,
    /// The version is not 1.0.
    VersionRejected,
    /// The consumer is unknown.
    ConsumerKeyUnknown,
    /// The consumer is disabled.
    ConsumerKeyRefused,
    /// The token is unknown, or another consumer's.
    TokenRejected,
    /// The token is expired.
    TokenExpired,
    /// The request token was exchanged before.
    TokenUsed,
    /// The access token was revoked before.
    TokenRevoked,
    /// The verifier is wrong.
    VerifierInvalid,
    /// The signature or body hash is wrong.
    SignatureInvalid,
    /// The nonce was used before.
    NonceUsed,
    /// The nonce of a launch was used before: its user clicked twice, or loaded the page again.
    LaunchRepeated,
    /// The timestamp is outside the window.
    TimestampRefused,
    /// Tokens are no longer given out for OAuth 1.0a (`sunset.new_grants`).
    GrantsEnded,
    /// The operation is not permitted, or the user denied it.
    PermissionDenied,
    /// The user has not decided.
    PermissionUnknown,

    /// 400 without an `oauth_problem`: broken HTTP, or an unknown `mode`.
    BadRequest,
    /// 403 of a page: a forged or stale form.
    Forbidden,
    /// 403 of a page: the password is wrong, or no account has the name.
    LoginFailed,
    /// 404 of our own endpoints.
    NotFound,
    /// 405.
    MethodNotAllowed,
    /// 408.
    RequestTimeout,
    /// 413.
    PayloadTooLarge,
    /// 414.
    UriTooLong,
    /// 421: the service does not have this Host.
    Misdirected,
    /// 429 to a consumer over its rate.
    RateLimited,
    /// 429 to a login.
    LoginThrottled,
    /// 431.
    HeadersTooLarge,
    /// 500.
    InternalError,
    /// 502.
    BadGateway,
    /// 503 to a consumer during a brown-out.
    BrownOut,
    /// 503.
    Unavailable,
    /// 504.
    GatewayTimeout,
    /// 508: the request passed this process before.
    LoopDetected,
    /// The peer went away before there was a response.
    #[default]
    Aborted,
}

/// The kind of a verdict, for charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    /// It was served.
    Served,
    /// It was served although enforcing would reject it.
    Observed,
    /// The caller was at fault.
    Rejected,
    /// This program or the API was at fault, or the caller had gone.
    Failed,
}

impl Verdict {
    /// Its kind.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Forwarded
            | Self::Anonymous
            | Self::RequestTokenIssued
            | Self::AccessTokenIssued
            | Self::AccessTokenRevoked
            | Self::TokenExchanged
            | Self::Page
            | Self::LoginNeeded
            | Self::LaunchRepeated => Outcome::Served,
            Self::Observed => Outcome::Observed,
            Self::InternalError
            | Self::BadGateway
            | Self::Unavailable
            | Self::GatewayTimeout
            | Self::Aborted => Outcome::Failed,
            Self::ParameterAbsent
            | Self::ParameterRejected
            | Self::SignatureMethodRejected
            | Self::VersionRejected
            | Self::ConsumerKeyUnknown
            | Self::ConsumerKeyRefused
            | Self::TokenRejected
            | Self::TokenExpired
            | Self::TokenUsed
            | Self::TokenRevoked
            | Self::VerifierInvalid
            | Self::SignatureInvalid
            | Self::NonceUsed
            | Self::TimestampRefused
            | Self::GrantsEnded
            | Self::PermissionDenied
            | Self::PermissionUnknown
            | Self::BadRequest
            | Self::Forbidden
            | Self::LoginFailed
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::PayloadTooLarge
            | Self::UriTooLong
            | Self::Misdirected
            | Self::RateLimited
            | Self::LoginThrottled
            | Self::BrownOut
            | Self::HeadersTooLarge
            | Self::LoopDetected => Outcome::Rejected,
        }
    }

    /// The name of the verdict.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
