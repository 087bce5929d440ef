//! The outcome of a request, as one fixed word.

macro_rules! verdicts {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// The outcome of a request: the label of `countersign_requests_total` and the `verdict` of the access log.
        ///
        /// There is no catch-all, so that each new response needs a decision on how it counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Verdict {
            $($(#[$doc])* $variant,)+
        }

        impl Verdict {
            /// Every verdict.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word of the verdict.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

verdicts! {
    /// Went to the API with an identity.
    Forwarded = "forwarded",
    /// Went to the API without one.
    Anonymous = "anonymous",
    /// Went to the API although it would have been rejected: `signature.enforcement = "observe"`.
    Observed = "observed",

    /// A request token was given out.
    RequestTokenIssued = "request_token_issued",
    /// An access token was given out.
    AccessTokenIssued = "access_token_issued",
    /// An access token was revoked by its consumer.
    AccessTokenRevoked = "access_token_revoked",
    /// A page was shown, or its form led on.
    Page = "page",
    /// A browser without a session was sent to the login.
    LoginNeeded = "login_needed",

    /// No credentials, or a protocol parameter is missing.
    ParameterAbsent = "parameter_absent",
    /// A parameter is malformed, repeated or out of place.
    ParameterRejected = "parameter_rejected",
    /// The signature method is not accepted.
    SignatureMethodRejected = "signature_method_rejected",
    /// The version is not 1.0.
    VersionRejected = "version_rejected",
    /// The consumer is unknown.
    ConsumerKeyUnknown = "consumer_key_unknown",
    /// The consumer is disabled.
    ConsumerKeyRefused = "consumer_key_refused",
    /// The token is unknown, or another consumer's.
    TokenRejected = "token_rejected",
    /// The token is expired.
    TokenExpired = "token_expired",
    /// The request token was exchanged before.
    TokenUsed = "token_used",
    /// The access token was revoked before.
    TokenRevoked = "token_revoked",
    /// The verifier is wrong.
    VerifierInvalid = "verifier_invalid",
    /// The signature or body hash is wrong.
    SignatureInvalid = "signature_invalid",
    /// The nonce was used before.
    NonceUsed = "nonce_used",
    /// The timestamp is outside the window.
    TimestampRefused = "timestamp_refused",
    /// The operation is not permitted, or the user denied it.
    PermissionDenied = "permission_denied",
    /// The user has not decided.
    PermissionUnknown = "permission_unknown",

    /// 400 without an `oauth_problem`: broken HTTP, or an unknown `mode`.
    BadRequest = "bad_request",
    /// 403 of a page: a forged or stale form.
    Forbidden = "forbidden",
    /// 404 of our own endpoints.
    NotFound = "not_found",
    /// 405.
    MethodNotAllowed = "method_not_allowed",
    /// 408.
    RequestTimeout = "request_timeout",
    /// 413.
    PayloadTooLarge = "payload_too_large",
    /// 414.
    UriTooLong = "uri_too_long",
    /// 421: the service does not have this Host.
    Misdirected = "misdirected",
    /// 429 to a consumer over its rate.
    RateLimited = "rate_limited",
    /// 429 to a login.
    LoginThrottled = "login_throttled",
    /// 431.
    HeadersTooLarge = "headers_too_large",
    /// 500.
    InternalError = "internal_error",
    /// 502.
    BadGateway = "bad_gateway",
    /// 503.
    Unavailable = "unavailable",
    /// 504.
    GatewayTimeout = "gateway_timeout",
    /// 508: the request passed this process before.
    LoopDetected = "loop_detected",
    /// The peer went away before there was a response.
    Aborted = "aborted",
}
