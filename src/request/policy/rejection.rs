//! Why a request is not permitted.

use std::time::Duration;

use thiserror::Error;

use super::path::AmbiguousPath;
use crate::{
    base::text::names::Permission,
    request::{parse::unseen_body::UnseenBody, problem::Problem},
    telemetry::{calls::facts::OperationRule, metrics::Verdict},
};

/// Why a call is not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyRejection {
    /// The API could read the path as another operation's.
    #[error(transparent)]
    Path(AmbiguousPath),
    /// The path breaks a convention of the service: the rule.
    #[error("{0}")]
    Convention(&'static str),
    /// No credentials, or those of another scheme.
    #[error("no credentials")]
    NoCredentials,
    /// No credentials, except perhaps in a form, which another proxy does not show.
    #[error("no credentials outside the form: {0}")]
    CredentialsNotSeen(UnseenBody),
    /// No credentials, but a body whose type hides them.
    #[error("no credentials outside the body")]
    CredentialsNotRead {
        /// The body consists of parts; else it has no type.
        is_multipart: bool,
    },
    /// A browser without a session opens an operation for users: it is sent to the login.
    #[error("not logged in")]
    LoginNeeded {
        /// The login page, which leads back.
        location: String,
    },
    /// The call is signed without a token where one is needed, or with credentials that are not for the API.
    #[error("no access token")]
    TokenMissing,
    /// A token call at a path that has no token call here.
    #[error("a token call at another path")]
    TokenCallElsewhere {
        /// The URLs of the token calls.
        urls: String,
    },
    /// A browser comes with a request token to a path that is not that of the authorization page.
    #[error("the authorization page is elsewhere")]
    PageElsewhere {
        /// The URL of the authorization page.
        url: String,
    },
    /// The operation is not permitted.
    #[error("not permitted")]
    NotPermitted {
        /// `operations.forbidden_status` hides that it exists: 404 rather than 403.
        hide: bool,
        /// The rule of the operation that the call does not meet, for the log alone.
        unmet: Option<UnmetRule>,
    },
    /// A session's request does not come from the service's own pages.
    #[error("cross-site request of a session")]
    CrossSite,
    /// The path is known, the method is not.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: String,
    },
    /// A planned outage for those that still sign with OAuth 1.0a.
    #[error("brown-out")]
    BrownOut {
        /// The time until it ends.
        retry_after: Duration,
    },
    /// Tokens are no longer given out for OAuth 1.0a.
    #[error("grants have ended")]
    GrantsEnded {
        /// A page about the end.
        page: Option<String>,
    },
    /// Signed calls to the API are no longer accepted.
    #[error("signatures have ended")]
    SignaturesEnded {
        /// A page about the end.
        page: Option<String>,
    },
    /// The consumer is unknown, and consumers are no longer registered for OAuth 1.0a.
    #[error("unknown consumer, and consumers are no longer registered")]
    ConsumersEnded {
        /// A page about the end.
        page: Option<String>,
    },
    /// The consumer is over its rate.
    #[error("too many requests")]
    TooManyRequests {
        /// The time until the next request is allowed.
        retry_after: Duration,
    },
}

/// A rule of an operation that a call does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnmetRule {
    /// The token or the consumer does not have this permission.
    Permission(Permission),
    /// Another rule.
    Other(OperationRule),
}

impl PolicyRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Path(_) => Verdict::BadRequest,
            Self::Convention(_) => Verdict::ParameterRejected,
            Self::NoCredentials
            | Self::CredentialsNotSeen(_)
            | Self::CredentialsNotRead { .. }
            | Self::PageElsewhere { .. } => Verdict::ParameterAbsent,
            Self::LoginNeeded { .. } => Verdict::LoginNeeded,
            Self::TokenMissing | Self::TokenCallElsewhere { .. } => Verdict::TokenRejected,
            Self::NotPermitted { .. } | Self::CrossSite => Verdict::PermissionDenied,
            Self::MethodNotAllowed { .. } => Verdict::MethodNotAllowed,
            Self::BrownOut { .. } => Verdict::BrownOut,
            Self::GrantsEnded { .. } => Verdict::GrantsEnded,
            Self::SignaturesEnded { .. } => Verdict::SignaturesEnded,
            Self::ConsumersEnded { .. } => Verdict::ConsumerKeyUnknown,
            Self::TooManyRequests { .. } => Verdict::RateLimited,
        }
    }

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let verdict = self.verdict();
        match self {
            Self::Path(what) => Problem::malformed(verdict, what),
            Self::Convention(rule) => Problem::rejected(verdict, "", *rule),
            Self::NoCredentials => Problem::coded(401, verdict)
                .advise("this needs a request signed with OAuth 1.0a: its Authorization field begins with OAuth, not with Bearer, Basic or another scheme"),
            Self::CredentialsNotSeen(unseen) => {
                Problem::coded(401, verdict).advise(format!(
                    "{unseen}, so credentials in a form are not found: send the OAuth credentials in the Authorization \
                     header, and the body as another type than a form"
                ))
            }
            Self::CredentialsNotRead { is_multipart } => {
                Problem::coded(401, verdict).advise(match is_multipart {
                    true => "OAuth credentials in the parts of multipart/form-data are not read: send them in the Authorization header",
                    false => "the body has no Content-Type, so it is not read as a form: send application/x-www-form-urlencoded if the \
                              OAuth credentials are in it, or send them in the Authorization header",
                })
            }
            Self::LoginNeeded { location } => {
                let mut problem = Problem::plain(303, verdict);
                problem.retry_path = Some(location.clone());
                problem.field("Location", location)
            }
            Self::TokenMissing => Problem::coded(401, verdict).advise(
                "no oauth_token was sent, or an empty one: this call needs the access token of a user, from the authorization flow",
            ),
            Self::TokenCallElsewhere { urls } => Problem::coded(401, verdict)
                .advise(format!("this is no path of a token call; those of this service are {urls}")),
            Self::PageElsewhere { url } => Problem::coded(400, verdict)
                .advise(format!("the authorization page of this service is {url}")),
            Self::NotPermitted { hide: true, .. } => Problem::coded(404, verdict),
            Self::NotPermitted { hide: false, .. } | Self::CrossSite => {
                Problem::coded(403, verdict)
            }
            Self::MethodNotAllowed { allow } => Problem::method_not_allowed(verdict, allow),
            Self::GrantsEnded { page } | Self::SignaturesEnded { page } => {
                let mut problem = Problem::plain(403, verdict);
                problem.code = Some(Verdict::PermissionDenied.as_str());
                let sentence = match verdict {
                    Verdict::GrantsEnded => "this service no longer gives out tokens for OAuth 1.0a; access tokens that were given out before go on",
                    _ => "this service no longer accepts calls that are signed with OAuth 1.0a; send a Bearer token of OAuth 2",
                };
                problem.advise(about_end(sentence, page.as_deref()))
            }
            Self::ConsumersEnded { page } => Problem::coded(401, verdict).advise(about_end(
                "no consumer has this oauth_consumer_key, and this service no longer registers consumers for OAuth 1.0a",
                page.as_deref(),
            )),
            Self::BrownOut { retry_after } => {
                Problem::plain(503, verdict).retry_after(*retry_after)
            }
            Self::TooManyRequests { retry_after } => {
                Problem::plain(429, verdict).retry_after(*retry_after)
            }
        }
    }
}

/// A sentence, with the page about the end of OAuth 1.0a.
fn about_end(sentence: &str, page: Option<&str>) -> String {
    match page {
        None => sentence.to_owned(),
        Some(page) => format!("{sentence}: see {page}"),
    }
}
