//! Logins: backends that check a name and a password, and a throttle that slows guessing down.
//!
//! Each backend is a [`LoginBackend`]: local accounts ([`local`]), or another system's endpoint ([`http`]).
//! If a proxy in front checks who the user is ([`header`]), there are no passwords.

use std::{io, net::IpAddr};

use ::http::StatusCode;
use async_trait::async_trait;
use thiserror::Error;

use crate::{
    base::{secret::Secret, text::names::UserId},
    records::values::{StoreError, record::User},
};

pub mod header;
pub mod http;
pub mod local;
pub mod new_password;
pub mod password;
mod pending_checks;
pub mod pool;
pub mod settings;
mod stored;
pub mod throttle;

pub use self::http::HttpLogin;
pub use local::LocalLogin;
pub use pool::PasswordPool;
pub use throttle::Throttle;

/// Checks names and passwords.
#[async_trait]
pub trait LoginBackend: Send + Sync + 'static {
    /// Checks one attempt of a browser at `address`. A rejection must take the same time whether the name is unknown,
    /// disabled or known, and whatever its password costs to check.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the attempt; nothing has been changed then.
    async fn login(
        &self,
        address: IpAddr,
        name: &str,
        password: Secret,
    ) -> Result<Login, LoginError>;
}

/// Name and password are right and the user is enabled. The session is opened only if that is still true then: see
/// [`Store::open_session`](crate::records::store::Store::open_session).
#[derive(Debug)]
pub struct Login {
    /// The user, with the password hash that was verified.
    pub user: User,
    /// The password hashed again at our cost, if `user` has a hash of another cost than ours.
    pub rehashed: Option<Secret>,
}

/// Why an attempt fails.
#[derive(Debug, Error)]
pub enum LoginError {
    /// Name or password is wrong, or the user is disabled.
    #[error("the name or the password is wrong")]
    Rejected {
        /// The account that was tried, if the name belongs to one; for the audit record alone.
        account: Option<UserId>,
    },
    /// Too many attempts are waiting already, in all or from this address; nothing was checked.
    #[error("too many attempts are waiting")]
    Busy,
    /// The attempt could not be checked.
    #[error(transparent)]
    Fault(#[from] LoginFault),
}

impl From<pool::PoolError> for LoginError {
    fn from(error: pool::PoolError) -> Self {
        match error {
            pool::PoolError::Busy => Self::Busy,
            pool::PoolError::Failed => Self::Fault(LoginFault::Check(error)),
        }
    }
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
    /// The endpoint has not seen the password.
    #[error("login.url cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The endpoint did not respond in time.
    #[error("login.url took longer than login.timeout")]
    TooSlow,
    /// The connection broke, or the response was not HTTP.
    #[error("login.url gave no response")]
    NoResponse(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The status is neither success nor rejection.
    #[error("login.url responded {0}")]
    Status(StatusCode),
    /// The body cannot be a login.
    #[error("the response of login.url {0}")]
    Response(&'static str),
}

impl LoginFault {
    /// Whether the caller cannot have learned whether the password is right: the attempt then does not count as failed.
    #[must_use]
    pub fn is_unchecked(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Check(_) | Self::Unreachable(_))
    }
}
