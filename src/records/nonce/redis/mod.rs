//! Shared nonces in Redis or Valkey (`nonce.url`), with a store in PostgreSQL.

use std::{error::Error, io};

use thiserror::Error;

use crate::{base::network::tls::TlsFileError, records::values::StoreError};

mod keys;
mod link;
mod nonces;
mod probe;
mod script;
mod url;

pub use nonces::{check_nonces, nonce_used, open_nonces};
pub use url::RedisUrl;

/// Why the Redis of `nonce.url` cannot be used. Each names the servers and the fix.
#[derive(Debug, Error)]
pub enum RedisOpenError {
    /// A file of the connection's TLS.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// No primary responds and accepts our login.
    #[error("{location}: cannot be reached; see the cause, and correct the URL or start Redis")]
    Unreachable {
        /// The servers.
        location: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// It may delete used nonces.
    #[error("{location}: {}", link::evicts(policy))]
    Evicts {
        /// The servers.
        location: String,
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// Something else.
    #[error("{location}: cannot be opened")]
    Failed {
        /// The servers.
        location: String,
        /// The cause.
        #[source]
        source: StoreError,
    },
    /// The system cannot create a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}
