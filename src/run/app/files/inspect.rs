//! Checks the files and addresses that a configuration names, for what would make `serve` fail or be unsafe. Changes
//! nothing.
//!
//! `serve` does not start with settings that it cannot serve. It logs settings that it can serve and that are unsafe,
//! such as a private key that every account can read, at its start and after each reload: a restart must not become an
//! outage because of something that was unsafe before. `check` fails for either.

use std::{
    fs::Metadata,
    io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Gid, Resource, getegid, geteuid, getgroups, getrlimit},
};
use rustls::pki_types::CertificateDer;
use socket2::{Domain, Protocol, Socket, Type};

use super::{certificates::Certificate, paths::can_create};
use crate::{
    base::network::tls,
    request::{
        forward::{
            ForwardFault,
            pool::{Pool, PoolParams},
        },
        identity::keys::Keys,
    },
    run::{app::StartError, config::Config},
    wire::{address::ListenAddress, url::origin::Scheme},
};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It is a mistake wherever this runs.
    Unsafe,
    /// It may be intended.
    Unwise,
}

/// Logs the findings of [`inspect`].
pub(in crate::run::app) fn log(config: &Config, listener: SocketAddr) {
    for (severity, finding) in inspect(config, listener) {
        match severity {
            Severity::Unsafe => tracing::error!("{finding}"),
            Severity::Unwise => tracing::warn!("{finding}"),
        }
    }
}

/// The ids of the keys that sign assertions, the one that signs first.
///
/// # Errors
/// A file of a key cannot be used.
pub fn signing_keys(config: &Config) -> Result<Vec<String>, StartError> {
    let keys = Keys::read(&config.assertion.key_files)?;
    Ok(keys.map(|keys| keys.ids).unwrap_or_default())
}

/// Opens a connection to the API, with TLS where that is configured.
///
/// # Errors
/// No connection can be made, or not within `upstream.connect_timeout`.
pub async fn reach_api(params: PoolParams) -> io::Result<()> {
    match Pool::new(params).probe().await {
        Ok(()) => Ok(()),
        Err(ForwardFault::Unreachable(error)) => Err(error),
        Err(_) => {
            let problem = "no connection within upstream.connect_timeout";
            Err(io::Error::new(io::ErrorKind::TimedOut, problem))
        }
    }
}

/// Checks the modes of secret files, and the names of certificates. A file that cannot be read is skipped: the part
/// that needs it reports it. `listener` is the address of the first public listener. What is found is unsafe or of no use
/// although `serve` can run with it; each text is one line of key, cause and fix.
pub fn inspect(config: &Config, listener: SocketAddr) -> Vec<(Severity, String)> {
    let mut findings = Findings(Vec::new());
    let (listen, upstream) = (&config.listen_tls, &config.upstream_tls);
    let (lookup, store) = (&config.lookup, config.store.file());
    let secrets: [(&str, &[PathBuf]); 7] = [
        ("listen.tls.key", &listen.key),
        ("upstream.tls.key", upstream.key.as_slice()),
        ("identity.assertion.key_files", &config.assertion.key_files),
        (
            "store.encryption_key_file",
            &config.store.encryption_key_file,
        ),
        ("store.url", store.as_slice()),
        ("store.lookup.secret_file", lookup.secret_file.as_slice()),
        ("store.lookup.private_key", lookup.private_key.as_slice()),
    ];
    let of_issuers = config.issuer.iter().map(|issuer| {
        let file = issuer.client_secret_file.as_slice();
        ("bearer.issuer.client_secret_file", file)
    });
    let secrets = secrets.into_iter().chain(of_issuers);
    let secrets = secrets.flat_map(|(key, files)| files.iter().map(move |file| (key, &**file)));
    for (key, file) in secrets.chain(config.admin.token_files()) {
        findings.mode(key, file);
    }
    let certificates = Certificate::read(config);
    let served: Vec<_> = certificates
        .into_iter()
        .filter(|one| one.key == "listen.tls.certificate")
        .map(|one| one.der)
        .collect();
    if !served.is_empty() {
        findings.names(config, listener, &served);
    }
    findings.0
}

struct Findings(Vec<(Severity, String)>);

impl Findings {
    fn add(&mut self, severity: Severity, key: &str, message: &str) {
        self.0.push((severity, format!("{key}: {message}")));
    }

    /// Only its owner may read a secret. A group may be intended: that of a Kubernetes volume, or `ssl-cert`.
    fn mode(&mut self, key: &str, path: &Path) {
        let found = path.metadata().ok().filter(Metadata::is_file);
        let Some(open) = found.as_ref().and_then(OpenTo::from_metadata) else {
            return;
        };
        let (who, mode, fix) = (open.who, open.mode, open.fix(path));
        let path = path.display();
        let message = format!("{path} holds secrets and is open to {who} (mode {mode:04o}); {fix}");
        self.add(open.severity, key, &message);
    }

    /// Each https host that callers use needs a certificate. A proxy in front may show them its own.
    fn names(&mut self, config: &Config, listener: SocketAddr, served: &[CertificateDer<'static>]) {
        let base = config.base_url(listener);
        let public = config.public_api_urls(listener);
        let public = public
            .iter()
            .map(|url| ("service.public_api_urls", &url.origin));
        let origins = std::iter::once(("service.base_url", &base)).chain(public);
        let mut seen: Vec<&str> = Vec::new();
        for (of, origin) in origins {
            if origin.scheme != Scheme::Https || seen.contains(&origin.host.as_str()) {
                continue;
            }
            seen.push(&origin.host);
            if served.iter().any(|it| tls::covers(it, origin.bare_host())) {
                continue;
            }
            let host = &origin.host;
            let behind_proxy = !config.proxies.trusted_proxies.is_empty();
            let (severity, fix) = if behind_proxy {
                (
                    Severity::Unwise,
                    "this works only if the trusted proxy shows callers a certificate of its own",
                )
            } else if origin.is_loopback() {
                (Severity::Unwise, "use a certificate that has this name")
            } else {
                (
                    Severity::Unsafe,
                    "callers will refuse to connect; use a certificate that has this name",
                )
            };
            let message = format!("no certificate is for {host}, the host of {of}; {fix}");
            self.add(severity, "listen.tls.certificate", &message);
        }
    }
}

/// The accounts that can open a file with secrets, beside its owner.
pub struct OpenTo {
    /// Whether the file may be meant to be open to them.
    pub severity: Severity,
    /// The accounts.
    pub who: &'static str,
    /// The mode of the file.
    pub mode: u32,
    /// The mode that it should have.
    wanted: u32,
    /// Whose file it has to become, if the process does not own it.
    new_owner: Option<u32>,
}

impl OpenTo {
    /// `None`: only the accounts that have to read the file can open it. A file of root that its group only reads is made
    /// for an account that must not change it, as packages do: either this process, or the service, if root runs this.
    pub fn from_metadata(found: &Metadata) -> Option<Self> {
        let others = getgroups().unwrap_or_default();
        let groups = others.into_iter().chain([getegid()]).map(Gid::as_raw);
        let (user, groups) = (geteuid().as_raw(), groups.collect::<Vec<_>>());
        Self::judge(
            found.mode() & 0o777,
            [found.uid(), found.gid()],
            user,
            &groups,
        )
    }

    fn judge(mode: u32, [owner, group]: [u32; 2], user: u32, groups: &[u32]) -> Option<Self> {
        const ROOT: u32 = 0;
        let reads_by_group = match user {
            ROOT => group != ROOT,
            _ => groups.contains(&group),
        };
        let is_given = owner == ROOT && reads_by_group && mode & 0o070 == 0o040;
        let (severity, who) = if mode & 0o007 != 0 {
            (Severity::Unsafe, "every account of this machine")
        } else if mode & 0o070 != 0 && !is_given {
            (Severity::Unwise, "its group")
        } else {
            return None;
        };
        let is_owner = user == ROOT || owner == user;
        Some(Self {
            severity,
            who,
            mode,
            wanted: if is_given { 0o640 } else { 0o600 },
            new_owner: (!is_owner && !is_given).then_some(user),
        })
    }

    /// The command that closes the file to them, and leaves it open to this process.
    pub fn fix(&self, path: &Path) -> String {
        let path = path.display();
        let chmod = format!("chmod {:o} {path}", self.wanted);
        self.new_owner.map_or(chmod.clone(), |user| {
            format!("chown {user} {path} && {chmod}")
        })
    }
}

/// Checks that every listener's address can be bound, and reports which are in use now: a running `serve` uses them.
///
/// # Errors
/// [`StartError::Listen`]
pub fn listeners(config: &Config) -> Result<String, StartError> {
    let mut addresses = Vec::new();
    let workers = config.workers().get();
    let sockets = (workers * config.listen.address.len()) as u64;
    if getrlimit(Resource::Nofile)
        .maximum
        .is_some_and(|limit| sockets >= limit)
    {
        let error = Errno::MFILE.into();
        return Err(StartError::listen("listen.workers", workers, error));
    }
    for (key, address) in config.listeners() {
        let bound = match &address {
            ListenAddress::Tcp(address) => bind(*address),
            ListenAddress::Unix(path) => unix_socket(path),
        };
        match bound {
            Ok(()) => addresses.push(address.to_string()),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                addresses.push(format!("{address} (in use now)"));
            }
            Err(error) => return Err(StartError::listen(key, address, error)),
        }
    }
    Ok(addresses.join(", "))
}

/// Binds as a listener would, without listening.
fn bind(address: SocketAddr) -> io::Result<()> {
    let (domain, protocol) = (Domain::for_address(address), Protocol::TCP);
    let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

fn unix_socket(path: &Path) -> io::Result<()> {
    // This fails for a path that is too long.
    std::os::unix::net::SocketAddr::from_pathname(path)?;
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => Ok(()),
        Ok(_) => Err(io::Error::other("there is something else, not a socket")),
        Err(_) => can_create(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_root_that_its_group_reads_is_right_for_members() {
        const SERVICE: u32 = 990;
        let judged = |mode: u32, owner: [u32; 2], user: u32| {
            let open = OpenTo::judge(mode, owner, user, &[user, 5]);
            open.map(|open| (open.severity, open.fix(Path::new("/k"))))
        };
        let unwise = |fix: &str| Some((Severity::Unwise, fix.to_owned()));
        let open = |fix: &str| Some((Severity::Unsafe, fix.to_owned()));
        for (mode, owner, user, expected) in [
            (0o640, [0, SERVICE], SERVICE, None),
            (0o440, [0, 5], SERVICE, None),
            // Root checks for the service.
            (0o640, [0, SERVICE], 0, None),
            (0o640, [0, 0], 0, unwise("chmod 600 /k")),
            (0o660, [0, SERVICE], 0, unwise("chmod 600 /k")),
            (0o644, [0, SERVICE], 0, open("chmod 640 /k")),
            (0o644, [0, SERVICE], SERVICE, open("chmod 640 /k")),
            (0o640, [SERVICE, SERVICE], SERVICE, unwise("chmod 600 /k")),
            (
                0o640,
                [7, SERVICE],
                SERVICE,
                unwise("chown 990 /k && chmod 600 /k"),
            ),
            (0o644, [0, 0], SERVICE, open("chown 990 /k && chmod 600 /k")),
            (0o600, [SERVICE, SERVICE], SERVICE, None),
        ] {
            assert_eq!(
                judged(mode, owner, user),
                expected,
                "{mode:o} {owner:?} {user}"
            );
        }
    }
}
