//! The listeners that are not public: admin, probe and forward-auth, on an address or a Unix socket.

use std::{
    fs, io,
    os::unix::{
        fs::FileTypeExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    rc::Rc,
    sync::Arc,
};

use socket2::Socket;
use tokio::task::spawn_local;

use crate::{
    operator::admin::{Admin, MAX_CONNECTIONS},
    run::app::StartError,
    wire::{
        address::ListenAddress,
        server::{
            bounds::Bounds,
            handler::Handler as _,
            listener::{self, AcceptRules},
        },
    },
};

/// A bound listener.
#[derive(Debug)]
pub struct BoundListener {
    pub(in crate::run::app) listener: Socket,
    /// The bound address.
    pub(in crate::run::app) at: ListenAddress,
    /// It was passed to this process, and outlives it.
    pub(in crate::run::app) is_passed: bool,
}

impl BoundListener {
    /// Binds the listener of the configuration's `key`.
    pub(in crate::run::app) fn bind(
        address: &ListenAddress,
        key: &'static str,
    ) -> Result<Self, StartError> {
        let listener = match address {
            ListenAddress::Tcp(at) => listener::bind(*at, false).map(Socket::from),
            ListenAddress::Unix(path) => bind_unix(path).map(Socket::from),
        };
        let bound = listener.and_then(|listener| {
            let at = listener.local_addr()?.as_socket();
            Ok(Self {
                listener,
                at: at.map_or_else(|| address.clone(), ListenAddress::Tcp),
                is_passed: false,
            })
        });
        bound.map_err(|error| StartError::listen(key, address, error))
    }

    /// Another handle of it, for another worker.
    ///
    /// # Errors
    /// The system's, if it has no free descriptor.
    pub(in crate::run::app) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            listener: self.listener.try_clone()?,
            at: self.at.clone(),
            is_passed: self.is_passed,
        })
    }

    /// Serves the admin or the probe listener until the handler's last phase, so that health is reported while the process
    /// drains, too.
    pub(in crate::run::app) fn serve(self, handler: Rc<Admin>) {
        let rules = AcceptRules {
            bounds: Arc::new(Bounds::new(MAX_CONNECTIONS, Some(ADMIN_SHARE))),
            connections: Rc::default(),
            tls: None,
            // The connections that remain in the queue need not be accepted.
            is_passed: true,
            proxy_protocol: false,
        };
        let stopping = Rc::clone(&handler);
        let stop = async move { stopping.draining().await };
        spawn_local(listener::accept(self.listener, rules, handler, stop));
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket that a dead process left is replaced; one that accepts connections is not.
    let is_socket = |found: fs::Metadata| FileTypeExt::is_socket(&found.file_type());
    if fs::symlink_metadata(path).is_ok_and(is_socket) && UnixStream::connect(path).is_err() {
        let _ = fs::remove_file(path);
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connections to the admin listener of one address at once, so that others can always reach it.
const ADMIN_SHARE: u32 = 128;
