//! Why an operator's request is not carried out.

use thiserror::Error;

use super::input::InvalidInput;
use crate::{
    base::{
        secret::random::NoRandomness,
        text::{
            longest,
            names::{ConsumerKey, Permission, UserId},
        },
    },
    records::values::StoreError,
};

/// Why something cannot be done. Nothing was changed then.
#[derive(Debug, Error)]
pub enum ManageError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A member of the input is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// The record is not the one that the change is for.
    #[error("the record has changed since it was read; read it again")]
    Stale,
    /// The key of a new consumer is taken.
    #[error("there is a consumer with the key {0:?}; give another key, or change that consumer")]
    ConsumerExists(ConsumerKey),
    /// The key of a new consumer belonged to a removed one.
    #[error(
        "the key {0:?} belonged to a removed consumer and is never used again; give another key, or none for a random one"
    )]
    ConsumerRemoved(ConsumerKey),
    /// No consumer has this key.
    #[error("no consumer has the key {0:?}; list the consumers to find it")]
    ConsumerUnknown(ConsumerKey),
    /// The consumer is one of the application.
    #[error("the consumer {0:?} is one of store.lookup.url, and is changed in that application")]
    ConsumerElsewhere(ConsumerKey),
    /// The consumer is disabled.
    #[error("the consumer {0:?} is disabled; enable it first")]
    ConsumerDisabled(ConsumerKey),
    /// A user has asked for the consumer, and no operator has approved it.
    #[error("the consumer {0:?} was asked for by a user and is not approved; approve it first")]
    Unapproved(ConsumerKey),
    /// The consumer waits for approval, or was declined.
    #[error(
        "the consumer {0:?} is not approved, so it is disabled, and only an approval enables it; to keep it disabled, decline or remove it"
    )]
    DisabledAlready(ConsumerKey),
    /// No user has asked for the consumer, or for a change of it.
    #[error("the consumer {0:?} waits for no decision; to stop its calls, disable it")]
    NothingAsked(ConsumerKey),
    /// Developers get no advice.
    #[error(
        "signature.advice is off, and with it the page for developers; set it to \"hint\" or \"full\""
    )]
    AdviceOff,
    /// The consumer has no link for its developer.
    #[error("the consumer {0:?} has no link for its developer; links end after 24 hours")]
    LinkUnknown(ConsumerKey),
    /// The consumer would be restricted to the RSA methods and has no RSA key.
    #[error(
        "a consumer that is restricted to the RSA methods needs an RSA key; give the key, or lift the restriction"
    )]
    CannotSign,
    /// The secret is empty, and the consumer is not allowed that.
    #[error(
        "an empty secret proves nothing; leave it out for a random one, or accept the deviation empty_secret"
    )]
    EmptySecret,
    /// The given secret is too long.
    #[error(
        "a secret has at most {} bytes; give a shorter one, or leave it out for a random one",
        longest::SECRET
    )]
    LongSecret,
    /// The login name of a new user is taken.
    #[error("there is a user {0:?}; choose another name (upper and lower case count as the same)")]
    UserExists(String),
    /// The id of a new user is taken, or belonged to a removed user.
    #[error("the id {0:?} is taken or was before; give another id, or none for a random one")]
    UserIdTaken(UserId),
    /// No user has this name or id.
    #[error("there is no user {0:?}; list the users to find the name")]
    UserUnknown(String),
    /// One user has this name and another one this id.
    #[error(
        "{0:?} is the name of one user and the id of another one; give the id of the first or the name of the second"
    )]
    UserAmbiguous(String),
    /// The user is disabled.
    #[error("the user {0:?} is disabled; enable the user first")]
    UserDisabled(String),
    /// The consumer does not have a permission that a token should grant.
    #[error(
        "the consumer {consumer:?} does not have the permission {permission}; ask for another one, or give it to the consumer first"
    )]
    PermissionMissing {
        /// The consumer.
        consumer: ConsumerKey,
        /// The permission.
        permission: Permission,
    },
    /// The consumer or the user of a new token was removed or disabled meanwhile.
    #[error("the consumer or the user has just been removed or disabled; look again")]
    Gone,
    /// There is no such access token.
    #[error("there is no such access token; list the tokens to find it")]
    TokenUnknown,
    /// The first characters of a token are those of several tokens.
    #[error("several access tokens begin with {0:?}; give the whole token")]
    TokenAmbiguous(String),
}

impl ManageError {
    /// The status of a response (RFC 9110 §15) to a request that fails with it.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Store(
                StoreError::Unavailable(_) | StoreError::External(_) | StoreError::Unopened(_),
            ) => 503,
            Self::Store(StoreError::Broken(_)) | Self::Randomness(_) => 500,
            Self::Invalid(_)
            | Self::EmptySecret
            | Self::LongSecret
            | Self::PermissionMissing { .. } => 422,
            Self::Stale => 412,
            Self::ConsumerExists(_)
            | Self::ConsumerRemoved(_)
            | Self::ConsumerElsewhere(_)
            | Self::ConsumerDisabled(_)
            | Self::Unapproved(_)
            | Self::DisabledAlready(_)
            | Self::NothingAsked(_)
            | Self::AdviceOff
            | Self::CannotSign
            | Self::UserExists(_)
            | Self::UserIdTaken(_)
            | Self::UserAmbiguous(_)
            | Self::UserDisabled(_)
            | Self::TokenAmbiguous(_)
            | Self::Gone => 409,
            Self::ConsumerUnknown(_)
            | Self::LinkUnknown(_)
            | Self::UserUnknown(_)
            | Self::TokenUnknown => 404,
        }
    }
}
