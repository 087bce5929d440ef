//! The admin and the probe listener, on an address or a Unix socket.

use std::{io, os::unix::fs::FileTypeExt, path::PathBuf, rc::Rc, sync::Arc};

use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    task::spawn_local,
};

use super::{StartError, sockets::Passed};
use crate::{
    admin::Admin,
    config::ListenAddress,
    server::{
        connection::Handler as _,
        listener::{self, Bounds},
    },
};

/// A bound listener.
#[derive(Debug)]
pub(super) enum AdminListener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl AdminListener {
    /// Binds the listener of the configuration's `key`.
    pub(super) async fn bind(
        address: &ListenAddress,
        key: &'static str,
    ) -> Result<Self, StartError> {
        match address {
            ListenAddress::Tcp(at) => {
                let bound = TcpListener::bind(at).await;
                Ok(Self::Tcp(
                    bound.map_err(|error| StartError::listen(key, at, error))?,
                ))
            }
            ListenAddress::Unix(path) => {
                // A socket that a dead process left behind is replaced; one that accepts connections is not.
                let is_socket =
                    |found: std::fs::Metadata| FileTypeExt::is_socket(&found.file_type());
                if UnixStream::connect(path).await.is_err()
                    && std::fs::symlink_metadata(path).is_ok_and(is_socket)
                {
                    let _ = std::fs::remove_file(path);
                }
                let bound = UnixListener::bind(path);
                let at = || format!("unix:{}", path.display());
                let listener = bound.map_err(|error| StartError::listen(key, at(), error))?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    /// Takes the socket that was passed for it.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn of(socket: Passed) -> io::Result<Self> {
        Ok(match socket {
            Passed::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Passed::Unix(listener, path) => Self::Unix(UnixListener::from_std(listener)?, path),
        })
    }

    /// Where it is bound.
    pub(super) fn bound(&self) -> ListenAddress {
        match self {
            Self::Tcp(listener) => ListenAddress::Tcp(
                listener
                    .local_addr()
                    .unwrap_or_else(|_| ([127, 0, 0, 1], 0).into()),
            ),
            Self::Unix(_, path) => ListenAddress::Unix(path.clone()),
        }
    }

    /// Serves until the handler's last phase, so that health is reported while the process drains, too.
    pub(super) fn serve(self, handler: Rc<Admin>) {
        spawn_local(async move {
            let stopping = Rc::clone(&handler);
            let stop = async move { stopping.draining().await };
            match self {
                Self::Tcp(listener) => {
                    let tcp = listener::Tcp {
                        bounds: Arc::new(Bounds::new(ADMIN_CONNECTIONS, None)),
                        tls: None,
                        // A connection too many is no loss here.
                        is_passed: true,
                    };
                    listener::accept(listener, tcp, handler, stop).await;
                }
                Self::Unix(listener, _) => listener::accept_unix(listener, handler, stop).await,
            }
        });
    }
}

/// Connections to the admin listener at once.
const ADMIN_CONNECTIONS: usize = 256;
