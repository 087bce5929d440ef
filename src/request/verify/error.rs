//! Why a signed request is not verified.

use std::borrow::Cow;

use thiserror::Error;

use super::Verified;
use crate::{
    base::cold::cold_from,
    oauth::{
        Deviation,
        diagnosis::{Diagnosed, Mistake},
    },
    records::{
        nonce::{NonceError, NonceFault},
        values::{StoreError, is_logged_outage},
    },
    request::{
        bearer::BearerRejection,
        parse::unseen_body::UnseenBody,
        problem::{self, Problem},
    },
    telemetry::{calls::facts::SenderProof, metrics::Verdict},
};

/// The base strings of a request whose signature is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedTexts {
    /// The right one.
    pub right: Vec<u8>,
    /// The one that makes the signature that was sent, if the mistake is known.
    pub signed: Option<Vec<u8>>,
}

/// What is known of a wrong signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advised {
    /// Advice for the caller, as far as `signature.advice` allows it.
    pub advice: Option<String>,
    /// The mistake that it names, or why it names none.
    pub diagnosis: Diagnosed,
    /// It is made with the previous secret, whose grace lasts.
    pub previous_secret: bool,
    /// What it proves all the same.
    pub proof: SenderProof,
    /// The deviation that would have to be accepted from the consumer, for the operator.
    pub needs: Option<Deviation>,
    /// The base strings, for the consumer's developer, if the request was examined to the end.
    pub base_strings: Option<Box<ComparedTexts>>,
}

/// Why a request is rejected: the caller's mistake.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VerifyRejection {
    /// PLAINTEXT without TLS.
    #[error("signature method not accepted")]
    SignatureMethodRejected,
    /// `oauth_timestamp` is outside the accepted range, given in seconds since 1970.
    #[error("timestamp outside {earliest}-{latest}")]
    TimestampOutsideWindow {
        /// The earliest acceptable one.
        earliest: u64,
        /// The latest acceptable one.
        latest: u64,
        /// Advice for the caller: how far its clock is off.
        advice: String,
        /// The seconds that the timestamp is ahead of our clock.
        skew: Option<i64>,
        /// What the signature proves; `None`: no consumer was looked up, or there is none.
        proof: Option<SenderProof>,
    },
    /// No consumer has that key.
    #[error("unknown consumer")]
    ConsumerUnknown,
    /// No consumer has that key, which has white space at an end: none has such a key.
    #[error("unknown consumer: white space around the key")]
    ConsumerKeySpaced,
    /// The consumer is disabled.
    #[error("disabled consumer")]
    ConsumerDisabled,
    /// The consumer may call from certain networks alone, and the address of the caller is in none of them or unknown.
    #[error("consumer outside its networks")]
    ConsumerOutside,
    /// A signed parameter does not have the value that is pinned for the consumer.
    #[error("another value than the pinned one of {name}")]
    PinnedOtherwise {
        /// The name of the parameter, as it was written.
        name: String,
        /// A body that is not a form could have another value.
        is_hidden: bool,
    },
    /// No such token, or not this consumer's, or none where one is needed.
    #[error("unknown token")]
    TokenUnknown,
    /// The call needs an access token, and is rightly signed with a request token.
    #[error("a request token instead of an access token")]
    RequestTokenHere,
    /// The token is expired.
    #[error("expired token")]
    TokenExpired,
    /// The access token was revoked.
    #[error("revoked token")]
    TokenRevoked,
    /// The signature is wrong.
    #[error("wrong signature")]
    SignatureWrong(Advised),
    /// `oauth_body_hash` is the hash of another body.
    #[error("wrong body hash")]
    BodyHashWrong,
    /// The signature covers a body that another proxy does not show whole.
    #[error("the body to verify is not here: {0}")]
    BodyNotSeen(UnseenBody),
    /// Another proxy shows a body and not its type, so that it may be a form.
    #[error("the type of the body is not here")]
    TypeNotSeen,
    /// The nonce was used before.
    #[error("used nonce")]
    NonceUsed,
    /// A Bearer token is not accepted.
    #[error(transparent)]
    Bearer(BearerRejection),
}

impl VerifyRejection {
    /// The verdict in logs and metrics.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::SignatureMethodRejected => Verdict::SignatureMethodRejected,
            Self::TimestampOutsideWindow { .. } => Verdict::TimestampRefused,
            Self::ConsumerUnknown | Self::ConsumerKeySpaced => Verdict::ConsumerKeyUnknown,
            Self::ConsumerDisabled | Self::ConsumerOutside | Self::PinnedOtherwise { .. } => {
                Verdict::ConsumerKeyRefused
            }
            Self::TokenUnknown | Self::RequestTokenHere => Verdict::TokenRejected,
            Self::TokenExpired => Verdict::TokenExpired,
            Self::TokenRevoked => Verdict::TokenRevoked,
            Self::SignatureWrong(_)
            | Self::BodyHashWrong
            | Self::BodyNotSeen(_)
            | Self::TypeNotSeen => Verdict::SignatureInvalid,
            Self::NonceUsed => Verdict::NonceUsed,
            Self::Bearer(rejection) => rejection.verdict(),
        }
    }

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let (verdict, unauthorized) = (self.verdict(), Problem::coded(401, self.verdict()));
        match self {
            Self::SignatureMethodRejected => Problem::coded(400, verdict),
            Self::TimestampOutsideWindow {
                earliest,
                latest,
                advice,
                ..
            } => unauthorized
                .advise(advice.clone())
                .detail(
                    "oauth_acceptable_timestamps",
                    format!("{earliest}-{latest}"),
                ),
            Self::ConsumerUnknown
            | Self::ConsumerDisabled
            | Self::ConsumerOutside
            | Self::TokenExpired
            | Self::TokenRevoked
            | Self::NonceUsed => unauthorized,
            Self::Bearer(rejection) => rejection.problem(),
            Self::ConsumerKeySpaced => unauthorized.advise(
                "oauth_consumer_key has white space at an end, which no key has: take it off, and off the secret too",
            ),
            Self::PinnedOtherwise { name, is_hidden: false } => unauthorized.advise(
                format!("this consumer key is for one value of {name}, and the request has another one or none, or one in another place \
                         than its form, or its query if it has no form"),
            ),
            Self::PinnedOtherwise { name, is_hidden: true } => unauthorized.advise(
                format!("this consumer key is for one value of {name}, and another one could be in a body that is not a form: send a form"),
            ),
            Self::TokenUnknown => unauthorized.advise(
                "this consumer has no such token for this call: oauth_token is empty, another consumer's, or a request token where an \
                 access token is needed; obtain one through the authorization flow",
            ),
            Self::RequestTokenHere => unauthorized.advise(
                "oauth_token is a request token: exchange it for an access token after the user has decided, and sign with that",
            ),
            Self::SignatureWrong(Advised {
                advice, diagnosis, ..
            }) => Problem {
                mistake: advice.as_ref().and(diagnosis.mistake()).map(Mistake::word),
                advice: advice.clone().map(Cow::Owned),
                ..unauthorized
            },
            Self::BodyHashWrong => unauthorized
                .advise("oauth_body_hash is not the hash of the body that arrived"),
            Self::BodyNotSeen(unseen) => {
                let otherwise = match unseen {
                    UnseenBody::NoLength => "send it with a Content-Length, or ",
                    UnseenBody::Absent | UnseenBody::Cut | UnseenBody::TooLarge { .. } => "",
                };
                unauthorized.advise(format!(
                    "{unseen}, so a form, and a body with oauth_body_hash, cannot be verified; {otherwise}send the \
                     credentials in the Authorization header and the body as another type, without oauth_body_hash"
                ))
            }
            Self::TypeNotSeen => unauthorized.advise(
                "the body came without a Content-Type, so it may be a form that is not signed: send Content-Type, and let \
                 this gateway pass it on to the service that checks signatures",
            ),
        }
    }
}

/// Why a request cannot be verified: a fault on this side.
#[derive(Debug, Error)]
pub enum VerifyFault {
    /// The store fails and nothing is cached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nonces cannot be recorded.
    #[error(transparent)]
    Nonces(#[from] NonceFault),
}

impl VerifyFault {
    /// The verdict of every one in logs and metrics.
    pub const VERDICT: Verdict = Verdict::Unavailable;

    /// The content of the response.
    pub fn problem(&self) -> Problem {
        let retry_after = match self {
            Self::Nonces(NonceFault::Lost { retry_after } | NonceFault::Full { retry_after }) => {
                *retry_after
            }
            Self::Store(_) | Self::Nonces(NonceFault::MarkStale | NonceFault::Shared(_)) => {
                problem::OUTAGE
            }
            Self::Nonces(NonceFault::Closed) => problem::SOON,
        };
        Problem::unavailable(Self::VERDICT, retry_after)
    }

    /// Whether this is one of many faults of an outage, whose beginning and end are logged.
    #[must_use]
    pub fn is_logged_outage(&self) -> bool {
        match self {
            Self::Nonces(_) => true,
            Self::Store(_) => is_logged_outage(self),
        }
    }
}

/// Why a signed request is not verified.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum VerifyError {
    /// A mistake of the caller.
    Rejection(VerifyRejection),
    /// A fault on this side.
    Fault(VerifyFault),
}

cold_from!(VerifyError {
    VerifyRejection as it => Self::Rejection(it),
    VerifyFault as it => Self::Fault(it),
    StoreError as it => Self::Fault(VerifyFault::Store(it)),
    NonceFault as it => Self::Fault(VerifyFault::Nonces(it)),
    NonceError as it => match it {
        NonceError::Used => Self::Rejection(VerifyRejection::NonceUsed),
        NonceError::Forgotten { earliest, latest } => {
            let advice = "the request is older than what this service still records: sign it again";
            Self::Rejection(VerifyRejection::TimestampOutsideWindow {
                earliest,
                latest,
                advice: advice.to_owned(),
                skew: None,
                proof: Some(SenderProof::Verified),
            })
        }
        NonceError::Fault(fault) => Self::Fault(VerifyFault::Nonces(fault)),
    },
});

/// What a verification says of the sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sender {
    /// The consumer that the call names is registered.
    pub is_registered: bool,
    /// What its signature proves, even if a later check rejects the call.
    pub proof: SenderProof,
    /// It signs with its previous secret, whose grace lasts.
    pub previous_secret: bool,
}

impl Sender {
    /// Its signature is right.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.proof == SenderProof::Verified
    }
}

/// The sender of a call, as far as its verification knows it.
pub fn sender(verified: &Result<Verified, VerifyError>) -> Sender {
    use VerifyRejection as Rejection;

    let registered = |proof| Sender {
        is_registered: true,
        proof,
        previous_secret: false,
    };
    match verified {
        Ok(verified) => Sender {
            previous_secret: verified.by_previous_secret,
            ..registered(SenderProof::Verified)
        },
        Err(VerifyError::Rejection(rejection)) => match rejection {
            Rejection::ConsumerUnknown
            | Rejection::ConsumerKeySpaced
            | Rejection::Bearer(_)
            | Rejection::BodyNotSeen(_)
            | Rejection::TypeNotSeen => Sender::default(),
            Rejection::TimestampOutsideWindow { proof, .. } => {
                proof.map(registered).unwrap_or_default()
            }
            Rejection::SignatureWrong(wrong) => Sender {
                previous_secret: wrong.previous_secret,
                ..registered(wrong.proof)
            },
            Rejection::TokenUnknown | Rejection::SignatureMethodRejected => {
                registered(SenderProof::None)
            }
            // Its nonce is not checked.
            Rejection::RequestTokenHere => registered(SenderProof::Secrets),
            Rejection::BodyHashWrong
            | Rejection::NonceUsed
            | Rejection::ConsumerDisabled
            | Rejection::ConsumerOutside
            | Rejection::PinnedOtherwise { .. }
            | Rejection::TokenExpired
            | Rejection::TokenRevoked => registered(SenderProof::Verified),
        },
        Err(VerifyError::Fault(VerifyFault::Store(_))) => Sender::default(),
        Err(VerifyError::Fault(_)) => registered(SenderProof::Verified),
    }
}
