//! What export gives and import takes, and the rules by which a store takes it.

use super::record::{AccessToken, Consumer, User};
use crate::names::UserId;

/// One record of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A consumer.
    Consumer(Consumer),
    /// A user.
    User(User),
    /// An access token; a revoked one too, so that it stays revoked wherever it is taken.
    AccessToken(AccessToken),
    /// The id of a removed user, never to be used again.
    RemovedUser(UserId),
    /// The identifier of an access token that was removed with its consumer, never to be used again.
    RemovedToken(String),
}

/// The outcome of [`import`](super::port::Store::import).
///
/// Records are taken in the order removed ones, consumers, users, tokens, wherever they stand in the list.
/// When something was registered, issued or last used is not compared: what the store knows stays. A password hash
/// that a login has replaced by one of the same password is not compared either.
/// Revocation goes one way: a token that is revoked here stays so, one that is revoked in the list is revoked
/// here too. What was removed here is kept out, and an active token of a removed user with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// All was taken in.
    Imported(Imported),
    /// Nothing was taken in.
    Refused {
        /// The place of the record at fault in the list.
        index: usize,
        /// What is wrong with it.
        refusal: ImportRefusal,
    },
}

/// How many records an import met of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// New here.
    pub added: u64,
    /// Here already.
    pub unchanged: u64,
    /// Tokens that were active here and are revoked now.
    pub revoked: u64,
    /// Removed here before, and so left out.
    pub kept_out: u64,
}

/// The most different costs of password hashes to which an import may bring a store.
pub const MAX_PASSWORD_COSTS: usize = 4;

/// Why an import was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImportRefusal {
    /// There is a record of this key with other content.
    #[error("is in the store with other content")]
    Differs,
    /// Another user has the login name.
    #[error("has the name of another user in the store")]
    NameTaken,
    /// The store would hold password hashes of more than [`MAX_PASSWORD_COSTS`] costs.
    #[error("has a password hash of a fifth cost, and every login takes the time of all costs")]
    TooManyCosts,
    /// A token's consumer is neither in the store nor in the list.
    #[error("names a consumer that is neither in the file nor in the store")]
    ConsumerUnknown,
    /// An active token's user is neither in the store nor in the list.
    #[error("names a user that is neither in the file nor in the store")]
    UserUnknown,
    /// An active token's user is disabled.
    #[error("is active although its user is disabled")]
    UserDisabled,
}

/// Whether two consumers are the same but for the time of registration.
#[must_use]
pub fn same_consumer(left: &Consumer, right: &Consumer) -> bool {
    let mut left = left.clone();
    left.created_at = right.created_at;
    left == *right
}

/// Whether two users are the same but for the time of registration.
#[must_use]
pub fn same_user(left: &User, right: &User) -> bool {
    let mut left = left.clone();
    left.created_at = right.created_at;
    left == *right
}

/// Whether two access tokens are the same but for the times of issue, last use and revocation.
#[must_use]
pub fn same_access_token(left: &AccessToken, right: &AccessToken) -> bool {
    let mut left = left.clone();
    left.issued_at = right.issued_at;
    left.last_used_at = right.last_used_at;
    left.revoked_at = right.revoked_at;
    left == *right
}
