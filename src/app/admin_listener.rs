//! The admin and the probe listener, on an address or a Unix socket.

use std::{os::unix::fs::FileTypeExt, path::PathBuf, rc::Rc, sync::Arc};

use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    sync::watch as channel,
    task::spawn_local,
};

use super::StartError;
use crate::{
    admin::Admin,
    config::ListenAddress,
    proxy::Phase,
    server::listener::{self, Bounds},
};

/// A bound listener.
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

    /// Serves until the process ends, so that health is reported while it drains, too.
    pub(super) fn serve(self, handler: Rc<Admin>, mut phase: channel::Receiver<Phase>) {
        spawn_local(async move {
            match self {
                Self::Tcp(listener) => {
                    let tcp = listener::Tcp {
                        bounds: Arc::new(Bounds::new(ADMIN_CONNECTIONS, None)),
                        tls: None,
                    };
                    let stop = async move {
                        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
                    };
                    listener::accept(listener, tcp, handler, stop).await;
                }
                Self::Unix(listener, _) => listener::accept_unix(listener, handler).await,
            }
        });
    }
}

/// Connections to the admin listener at once.
const ADMIN_CONNECTIONS: usize = 256;
