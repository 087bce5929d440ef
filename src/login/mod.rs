//! Logins: backends that check a name and a password, and a throttle that slows guessing down.
//!
//! There is the backend for local accounts ([`local`]). Each backend is a [`LoginBackend`], so one that asks an outside
//! service can be added without a change to the pages.

use std::{future::Future, pin::Pin};

use thiserror::Error;

use crate::{
    names::UserId,
    secret::Secret,
    store::{StoreError, record::User},
};

pub mod local;
pub mod password;
pub mod pool;
pub mod throttle;

pub use local::LocalLogin;
pub use pool::Pool;
pub use throttle::{Limits, Throttle};

#[cfg(any(test, fuzzing))]
pub mod double;

/// The longest login name that is looked up, in bytes; a longer one is rejected like an unknown one.
pub const MAX_NAME_BYTES: usize = 255;

/// Checks names and passwords.
pub trait LoginBackend: Send + Sync + 'static {
    /// Checks one attempt. A rejection must take the same time whether the name is unknown, disabled or known, and
    /// whatever its password costs to check.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the attempt; nothing has been changed then.
    fn login<'a>(&'a self, name: &'a str, password: Secret) -> LoginFuture<'a>;
}

/// What [`LoginBackend::login`] returns: a future that may move between threads.
pub type LoginFuture<'a> = Pin<Box<dyn Future<Output = LoginOutcome> + Send + 'a>>;

/// The outcome of one attempt.
#[derive(Debug)]
pub enum LoginOutcome {
    /// Name and password are right and the user is enabled. The session is opened only if that is still so then: see
    /// [`Store::open_session`](crate::store::Store::open_session).
    User {
        /// Who logs in, with the password hash that was verified.
        user: User,
        /// The password hashed anew, if `user` has a hash of another cost than ours.
        rehashed: Option<Secret>,
    },
    /// They are not. The account, if the name belongs to one, is for the audit record alone.
    Refused {
        /// The account that was tried.
        account: Option<UserId>,
    },
    /// Too many attempts are waiting already; nothing was checked.
    Busy,
    /// The attempt could not be checked.
    Fault(LoginFault),
}

/// Why an attempt could not be checked.
#[derive(Debug, Error)]
pub enum LoginFault {
    /// The accounts could not be read.
    #[error("the accounts cannot be read")]
    Store(#[from] StoreError),
    /// The check itself failed.
    #[error("the password check failed")]
    Check(#[source] pool::PoolError),
}
