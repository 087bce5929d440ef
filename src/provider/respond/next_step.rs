//! The advice of a rejection that has none of its own.

use crate::telemetry::metrics::Verdict;

/// The next step for the caller; `None` for verdicts other than rejections, for a fault, which has a request id instead, and for
/// a wrong signature, whose advice `signature.advice` decides.
pub(super) const fn usual(verdict: Verdict) -> Option<&'static str> {
    Some(match verdict {
        Verdict::ParameterAbsent => "send the missing oauth_ parameters together with the others",
        Verdict::ParameterRejected => "correct the parameter and sign the request again",
        Verdict::SignatureMethodRejected => {
            "choose another oauth_signature_method: PLAINTEXT is accepted over TLS at most"
        }
        Verdict::VersionRejected => "send oauth_version=1.0 or leave it out",
        Verdict::ConsumerKeyUnknown => {
            "compare oauth_consumer_key with the key that was issued at registration; it may belong to another service"
        }
        Verdict::ConsumerKeyRefused => "this consumer is disabled; ask the operator of the service",
        Verdict::TokenRejected => {
            "no token of this consumer has this value where one is needed; obtain one through the authorization flow"
        }
        Verdict::TokenExpired => {
            "the token has expired; obtain a new one through the authorization flow"
        }
        Verdict::TokenUsed => {
            "a request token can be exchanged once; use the access token that was issued, or begin the flow again"
        }
        Verdict::TokenRevoked => {
            "the user or the operator has revoked the token; obtain a new one through the authorization flow"
        }
        Verdict::VerifierInvalid => {
            "send the oauth_verifier of this request token as the callback or the page gave it; after 5 wrong ones the \
             token is void"
        }
        Verdict::NonceUsed => {
            "make a new oauth_nonce and sign again for every request, including retries"
        }
        Verdict::LaunchRepeated => {
            "nothing has to be done: the user clicked twice or loaded the page again, and the launch was accepted once"
        }
        Verdict::TimestampRefused => {
            "send the current time in seconds since 1970-01-01 00:00 UTC as oauth_timestamp"
        }
        Verdict::PermissionDenied => {
            "the operation does not exist, or this caller lacks its permission"
        }
        Verdict::PermissionUnknown => "the user has not decided yet",
        Verdict::BadRequest => "the request is not well-formed",
        Verdict::Forbidden => "open the page again and send its own form",
        Verdict::LoginFailed => "check the name and the password",
        Verdict::NotFound => "there is nothing under this path",
        Verdict::MethodNotAllowed => "use one of the methods that Allow lists",
        Verdict::RequestTimeout => "the request arrived too slowly; send it again",
        Verdict::PayloadTooLarge => "the body is larger than this service accepts; send less",
        Verdict::UriTooLong => {
            "the target is longer than this service accepts; send parameters in the body"
        }
        Verdict::Misdirected => "Host names no public URL of this service",
        Verdict::RateLimited => {
            "too many requests of this consumer; wait for as long as Retry-After says"
        }
        Verdict::BrownOut => {
            "OAuth 1.0a will end here; this planned outage is a reminder; migrate as the fields Sunset and Link say, and \
             retry after Retry-After"
        }
        Verdict::GrantsEnded => {
            "tokens are no longer given out for OAuth 1.0a; go on with those that you have, and migrate to OAuth 2"
        }
        Verdict::SignaturesEnded => {
            "calls signed with OAuth 1.0a are no longer accepted; send a Bearer token of OAuth 2"
        }
        Verdict::LoginThrottled => "too many failed logins; wait for as long as Retry-After says",
        Verdict::HeadersTooLarge => {
            "the head is larger than this service accepts; send fewer or shorter fields"
        }
        Verdict::LoopDetected => "this request has passed through this service before",
        Verdict::Forwarded
        | Verdict::Anonymous
        | Verdict::Observed
        | Verdict::RequestTokenIssued
        | Verdict::AccessTokenIssued
        | Verdict::AccessTokenRevoked
        | Verdict::TokenExchanged
        | Verdict::Page
        | Verdict::LoginNeeded
        | Verdict::SignatureInvalid
        | Verdict::InternalError
        | Verdict::BadGateway
        | Verdict::Unavailable
        | Verdict::GatewayTimeout
        | Verdict::Aborted => return None,
    })
}
