//! The outcome of a request, as one fixed label.

/// Declares [`Verdict`]; each has its kind.
macro_rules! verdicts {
    ($($(#[$attribute:meta])* $verdict:ident => $outcome:ident,)*) => {
        /// The outcome of a request: the label of `countersign_requests_total` and the `verdict` of the access log.
        ///
        /// There is no catch-all, so that each new response needs a decision on how it counts.
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
        )]
        #[strum(serialize_all = "snake_case")]
        pub enum Verdict {
            $($(#[$attribute])* $verdict,)*
        }

        impl Verdict {
            /// Its kind.
            pub const fn outcome(self) -> Outcome {
                match self {
                    $(Self::$verdict => Outcome::$outcome,)*
                }
            }
        }
    };
}

verdicts! {
    /// Went to the API with an identity.
    Forwarded => Served,
    /// Went to the API without one.
    Anonymous => Served,
    /// Went to the API although it would have been rejected: `signature.enforcement = "observe"`.
    Observed => Observed,

    /// A request token was given out.
    RequestTokenIssued => Served,
    /// An access token was given out.
    AccessTokenIssued => Served,
    /// An access token was revoked by its consumer.
    AccessTokenRevoked => Served,
    /// An OAuth 2 access token was given out for an access token.
    TokenExchanged => Served,
    /// A page was shown, or its form led on.
    Page => Served,
    /// A browser without a session was sent to the login.
    LoginNeeded => Served,

    /// No credentials, or a protocol parameter is missing.
    ParameterAbsent => Rejected,
    /// A parameter is malformed, repeated or out of place.
    ParameterRejected => Rejected,
    /// The signature method is not accepted.
    SignatureMethodRejected => Rejected,
    /// The version is not 1.0.
    VersionRejected => Rejected,
    /// The consumer is unknown.
    ConsumerKeyUnknown => Rejected,
    /// The consumer is disabled.
    ConsumerKeyRefused => Rejected,
    /// The token is unknown, or another consumer's.
    TokenRejected => Rejected,
    /// The token is expired.
    TokenExpired => Rejected,
    /// The request token was exchanged before.
    TokenUsed => Rejected,
    /// The access token was revoked before.
    TokenRevoked => Rejected,
    /// The verifier is wrong.
    VerifierInvalid => Rejected,
    /// The signature or body hash is wrong.
    SignatureInvalid => Rejected,
    /// The nonce was used before.
    NonceUsed => Rejected,
    /// The nonce of a launch was used before: its user clicked twice, or loaded the page again.
    LaunchRepeated => Served,
    /// The timestamp is outside the window.
    TimestampRefused => Rejected,
    /// Tokens are no longer given out for OAuth 1.0a (`sunset.new_grants`).
    GrantsEnded => Rejected,
    /// Signed calls to the API are no longer accepted (`sunset.signatures`).
    SignaturesEnded => Rejected,
    /// The operation is not permitted, or the user denied it.
    PermissionDenied => Rejected,
    /// The user has not decided.
    PermissionUnknown => Rejected,

    /// 400 without an `oauth_problem`: broken HTTP, or an unknown `mode`.
    BadRequest => Rejected,
    /// 403 of a page: a forged or stale form.
    Forbidden => Rejected,
    /// 403 of a page: the password is wrong, or no account has the name.
    LoginFailed => Rejected,
    /// 404 of our own endpoints.
    NotFound => Rejected,
    /// 405.
    MethodNotAllowed => Rejected,
    /// 408.
    RequestTimeout => Rejected,
    /// 413.
    PayloadTooLarge => Rejected,
    /// 414.
    UriTooLong => Rejected,
    /// 421: the service does not have this Host.
    Misdirected => Rejected,
    /// 429 to a consumer over its rate.
    RateLimited => Rejected,
    /// 429 to a login.
    LoginThrottled => Rejected,
    /// 431.
    HeadersTooLarge => Rejected,
    /// 500.
    InternalError => Failed,
    /// 502.
    BadGateway => Failed,
    /// 503 to a consumer during a brown-out.
    BrownOut => Rejected,
    /// 503.
    Unavailable => Failed,
    /// 504.
    GatewayTimeout => Failed,
    /// 508: the request passed this process before.
    LoopDetected => Rejected,
    /// The peer went away before there was a response.
    #[default]
    Aborted => Failed,
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
    /// The name of the verdict.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
