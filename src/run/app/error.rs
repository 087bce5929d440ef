//! Why the program cannot start.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use super::{
    services::{NonceServiceError, StoreServiceError},
    traces::TracesError,
};
use crate::{
    base::{language::PageFileError, network::tls::TlsFileError, secret::random::NoRandomness},
    operator::admin::tokens::TokenFileError,
    records::{
        nonce::redis,
        store::settings::StoreSettingError,
        values::{OpenProblem, StoreError, StoreOpenError},
    },
    request::bearer,
    run::{
        app::listeners::{api_loop::ApiIsOurs, sockets::SocketError},
        config::Config,
    },
    telemetry::conditions::Condition,
    wire::server::tls::TlsError,
};

/// Why the program cannot start; each names the key at fault and the fix.
#[derive(Debug, Error)]
pub enum StartError {
    /// The store or the lookup.
    #[error(transparent)]
    Store(#[from] StoreServiceError),
    /// The store does not respond.
    #[error("store.url: {0}")]
    Unavailable(#[from] StoreError),
    /// The nonce windows.
    #[error(transparent)]
    Nonces(#[from] NonceServiceError),
    /// The system gives no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The files of TLS, on the public listener, to the API or to the login endpoint.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The keys that sign JWTs.
    #[error("identity.assertion.key_files: {0}")]
    Keys(#[from] TlsFileError),
    /// The issuers of Bearer tokens.
    #[error(transparent)]
    Bearer(#[from] bearer::SetupError),
    /// The files of the pages.
    #[error(transparent)]
    Theme(#[from] PageFileError),
    /// The files of the admin tokens.
    #[error(transparent)]
    AdminToken(#[from] TokenFileError),
    /// The sockets that the service manager passes.
    #[error(transparent)]
    Sockets(#[from] SocketError),
    /// The export of traces.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// The API is a listener of this process.
    #[error(transparent)]
    ApiLoop(#[from] ApiIsOurs),
    /// A certificate that is valid at no time, or that would replace a valid one.
    #[error("{0}")]
    Certificate(String),
    /// An address.
    #[error("{key}: cannot listen on {address}: {source}; {fix}")]
    Listen {
        /// The configuration's key.
        key: &'static str,
        /// The address.
        address: String,
        /// The error of the system.
        #[source]
        source: io::Error,
        /// The fix.
        fix: &'static str,
    },
    /// The process may have too few descriptors.
    #[error(
        "the process may have {limit} descriptors, and needs {needed} with its workers and addresses, and two for each further caller: \
         raise the limit (LimitNOFILE, ulimit -n), or set listen.workers lower"
    )]
    Descriptors {
        /// Its limit.
        limit: u64,
        /// The least with which it starts.
        needed: u64,
    },
    /// The runtime or a thread.
    #[error("cannot start: {0}")]
    System(#[source] io::Error),
}

impl StartError {
    pub(super) fn listen(key: &'static str, address: impl ToString, source: io::Error) -> Self {
        let fix = match source.kind() {
            io::ErrorKind::AddrInUse => "stop what listens there, or set another address",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a right of their own: set another port"
            }
            _ if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                "each worker needs a descriptor for each address: raise the limit (LimitNOFILE, ulimit -n), or set \
                 listen.workers lower"
            }
            io::ErrorKind::AddrNotAvailable => "this machine does not have the address",
            _ => "check the address",
        };
        Self::Listen {
            key,
            address: address.to_string(),
            source,
            fix,
        }
    }

    /// The condition, if something that the start needs over the network does not serve yet. A login that it rejects counts too:
    /// roles and passwords may be made after this start.
    pub(super) fn outage(&self, config: &Config) -> Option<Condition> {
        let store = (config.store.file().is_none()).then_some(Condition::Store);
        match self {
            Self::Store(StoreServiceError::Open(StoreOpenError {
                problem: OpenProblem::Unreachable(_) | OpenProblem::ServerFails(_),
                ..
            })) => Some(Condition::Store),
            Self::Unavailable(StoreError::Unavailable(_))
            | Self::Nonces(NonceServiceError::Store(StoreError::Unavailable(_))) => store,
            Self::Nonces(NonceServiceError::Redis(
                redis::RedisOpenError::Unreachable { .. }
                | redis::RedisOpenError::Failed {
                    source: StoreError::Unavailable(_),
                    ..
                },
            )) => Some(Condition::Nonces),
            _ => None,
        }
    }

    /// Whether the configuration is at fault, rather than its environment.
    #[must_use]
    pub const fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::Tls(_)
                | Self::Keys(_)
                | Self::Bearer(_)
                | Self::Theme(_)
                | Self::AdminToken(_)
                | Self::ApiLoop(_)
                | Self::Sockets(_)
                | Self::Traces(TracesError::Tls(_) | TracesError::Exporter(_))
                | Self::Certificate(_)
                | Self::Store(StoreServiceError::Setting(StoreSettingError::Key { .. }))
                | Self::Nonces(NonceServiceError::OneFile(_) | NonceServiceError::NotShared)
        )
    }
}
