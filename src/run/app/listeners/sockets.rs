//! Listening sockets that a service manager has opened and passes to this process (`LISTEN_FDS`, `LISTEN_FDNAMES`), as
//! systemd does for a socket unit. They stay open while one process ends and the next one starts, so no connection is
//! refused in between.

use std::{
    io,
    net::SocketAddr,
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
};

use socket2::{Domain, Socket, Type};
use thiserror::Error;

use super::bound::BoundListener;
use crate::{
    run::config::{Config, FORWARD_AUTH},
    wire::{address::ListenAddress, url::origin::is_loopback},
};

/// The name of each socket, and the key whose address it replaces.
const NAMES: [(&str, &str); 4] = [
    ("public", PUBLIC),
    ("admin", "admin.listen"),
    ("probe", "admin.probe_listen"),
    ("forward-auth", FORWARD_AUTH),
];

/// The key of the public listener.
pub(in crate::run::app) const PUBLIC: &str = "listen.address";

/// Why passed sockets cannot be used.
#[derive(Debug, Error)]
pub enum SocketError {
    /// No listener has this name.
    #[error(
        "LISTEN_FDNAMES: no listener is called '{0}'; set FileDescriptorName= of the socket unit to public, admin, probe or \
         forward-auth"
    )]
    Name(String),
    /// It is something else than a listening socket of a kind that the listener can have.
    #[error("LISTEN_FDS: the socket '{name}' is not a listening {wanted} socket; {fix}")]
    Kind {
        /// Its name.
        name: &'static str,
        /// The kinds that it may have.
        wanted: &'static str,
        /// The fix.
        fix: &'static str,
    },
    /// The listener has one socket.
    #[error(
        "LISTEN_FDNAMES: several sockets are called '{0}', and this listener has one; pass one"
    )]
    Several(&'static str),
    /// The listener is not configured.
    #[error("LISTEN_FDNAMES: a socket '{0}' is passed, but {1} is not set; set it, to any address")]
    Unused(&'static str, &'static str),
    /// The address of such a socket is not the origin that consumers use.
    #[error(
        "service.base_url: missing, since the passed socket {0} is not loopback; write the origin that consumers and \
         browsers use"
    )]
    BaseUrl(SocketAddr),
    /// The system's.
    #[error("LISTEN_FDS: {0}")]
    System(#[from] io::Error),
}

/// The sockets that were passed, each with the key whose address it replaces.
#[derive(Debug, Default)]
pub struct Sockets(Vec<(&'static str, BoundListener)>);

impl Sockets {
    /// Takes them from the environment. To be called before there are threads.
    ///
    /// # Errors
    /// [`SocketError`]
    pub fn passed() -> Result<Self, SocketError> {
        let passed = sd_notify::listen_fds_with_names()?;
        let alone = passed.len() == 1;
        let mut sockets = Vec::new();
        for (descriptor, name) in passed {
            // A single socket needs no name.
            let name = match name.as_str() {
                "" | "unknown" if alone => "public",
                name => name,
            };
            let known = NAMES.into_iter().find(|(known, _)| *known == name);
            let (name, key) = known.ok_or_else(|| SocketError::Name(name.to_owned()))?;
            if key != PUBLIC && sockets.iter().any(|(other, _)| *other == key) {
                return Err(SocketError::Several(name));
            }
            sockets.push((key, take(descriptor, name)?));
        }
        Ok(Self(sockets))
    }

    /// The addresses of the sockets, with their keys.
    pub(in crate::run::app) fn addresses(&self) -> Addresses {
        let sockets = self.0.iter();
        Addresses(
            sockets
                .map(|(key, bound)| (*key, bound.at.clone()))
                .collect(),
        )
    }

    /// Takes those of the public listener.
    pub(in crate::run::app) fn take_public(&mut self) -> Vec<BoundListener> {
        let public = self.0.extract_if(.., |(key, _)| *key == PUBLIC);
        public.map(|(_, bound)| bound).collect()
    }

    /// Takes the one of another listener.
    pub(in crate::run::app) fn take(&mut self, key: &str) -> Option<BoundListener> {
        let index = self.0.iter().position(|(of, _)| *of == key)?;
        Some(self.0.swap_remove(index).1)
    }
}

#[expect(
    unsafe_code,
    reason = "a descriptor that another process passed is a number"
)]
fn take(descriptor: RawFd, name: &'static str) -> Result<BoundListener, SocketError> {
    let is_public = name == "public";
    let other = SocketError::Kind {
        name,
        wanted: if is_public {
            "TCP"
        } else {
            "TCP or Unix stream"
        },
        fix: "use ListenStream= and Accept=no in its socket unit",
    };
    // SAFETY: the service manager opened the descriptor for this process alone (`LISTEN_PID`), and it is taken once.
    let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    // The system has an error for what is not a socket.
    if !socket.r#type().is_ok_and(|kind| kind == Type::STREAM) || !socket.is_listener()? {
        return Err(other);
    }
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let at = match address.as_socket() {
        Some(address) => ListenAddress::Tcp(address),
        None if address.domain() == Domain::UNIX && !is_public => {
            let path = address.as_pathname().map(Into::into);
            ListenAddress::Unix(path.unwrap_or_default())
        }
        None => return Err(other),
    };
    Ok(BoundListener {
        listener: socket,
        at,
        is_passed: true,
    })
}

/// The addresses of passed sockets, with the keys whose addresses they replace.
#[derive(Debug)]
pub(in crate::run::app) struct Addresses(Vec<(&'static str, ListenAddress)>);

impl Addresses {
    /// Replaces the addresses of a configuration.
    ///
    /// # Errors
    /// [`SocketError::Unused`], [`SocketError::BaseUrl`]
    pub(in crate::run::app) fn replace(&self, config: &mut Config) -> Result<(), SocketError> {
        let of_public = |(key, address): &(_, ListenAddress)| match address {
            ListenAddress::Tcp(address) if *key == PUBLIC => Some(*address),
            _ => None,
        };
        let public: Vec<SocketAddr> = self.0.iter().filter_map(of_public).collect();
        if let Some(&first) = public.first() {
            if config.service.base_url.is_none() && !is_loopback(first.ip()) {
                return Err(SocketError::BaseUrl(first));
            }
            config.listen.address = public;
        }
        for (key, address) in &self.0 {
            match *key {
                "admin.listen" => config.admin.listen = address.clone(),
                "admin.probe_listen" => match &mut config.admin.probe_listen {
                    Some(listen) => *listen = address.clone(),
                    None => return Err(SocketError::Unused("probe", key)),
                },
                FORWARD_AUTH => match &mut config.forward_auth.listen {
                    Some(listen) => *listen = address.clone(),
                    None => return Err(SocketError::Unused("forward-auth", key)),
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether there are none.
    pub(in crate::run::app) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Logs the keys that have no effect.
    pub(in crate::run::app) fn log(&self) {
        for (key, address) in &self.0 {
            tracing::info!(key, %address, "listening on a passed socket: the key's own address does not count");
        }
    }
}
