//! `store.url` of PostgreSQL: the part that tokio-postgres parses, and the TLS parameters, which it does not parse.

use std::{fmt, path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use thiserror::Error;
use tokio::time::timeout;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    base::network::tls::{TlsFileError, TlsFiles, client_config},
    wire::{
        outbound::{self, Dialer},
        url::{
            database::unescaped_login,
            origin::{is_loopback, is_loopback_host},
        },
    },
};

/// A URL that was read. Does not print.
#[derive(Clone)]
pub struct PostgresUrl {
    servers: Servers,
    tls: Option<TlsFiles>,
}

/// The settings of connections to the servers of a URL.
#[derive(Clone)]
pub(super) struct Servers {
    /// With the hosts as the URL names them.
    pub(super) named: Config,
    /// Without hosts, for the addresses that the names have at the time of a connection.
    hostless: Config,
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Why a URL cannot be used. The message does not show the URL, which may have a password in it.
#[derive(Debug, Error)]
pub enum PostgresUrlError {
    /// It is not a URL of PostgreSQL.
    #[error(
        "not a URL of PostgreSQL ({0}); write postgres://USER:PASSWORD@HOST/DATABASE, and escape special characters in it"
    )]
    Syntax(Box<dyn std::error::Error + Send + Sync>),
    /// A character of the login ends the login or the host.
    #[error("{0}")]
    Unescaped(&'static str),
    /// A parameter that other drivers have.
    #[error("{0}")]
    OtherDriver(&'static str),
    /// `sslmode` has another value.
    #[error(
        "sslmode is disable, or verify-full to encrypt and to check the server's certificate and name (require and verify-ca do the same); allow and prefer protect nothing and are not supported"
    )]
    SslMode,
    /// Only one of `sslcert` and `sslkey`.
    #[error("sslcert and sslkey belong together; write both or none")]
    HalfIdentity,
    /// Files of TLS without TLS.
    #[error("sslmode is disable, but there are files for TLS; write sslmode=verify-full")]
    FilesUnused,
}

/// The time that one attempt to connect may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(600);

impl PostgresUrl {
    /// Reads a URL.
    ///
    /// Without `sslmode` the connection is encrypted and the server's certificate and name are checked, unless every
    /// host is this machine. Of several hosts the one that accepts writes is used.
    ///
    /// # Errors
    /// [`PostgresUrlError`]
    pub fn parse(url: &str) -> Result<Self, PostgresUrlError> {
        // The parser's message may name what follows an unescaped & in the password.
        let syntax = |error: tokio_postgres::Error| {
            PostgresUrlError::Syntax(match url.contains("password=") {
                true => "a parameter of it is unknown or has a wrong value".into(),
                // Its own text is only that the connection string is not valid.
                false => error
                    .into_source()
                    .unwrap_or_else(|| "it is not valid".into()),
            })
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PostgresUrlError::Syntax(
                "it does not begin with postgres://".into(),
            ));
        }
        if let Some(problem) = unescaped_login(url) {
            return Err(PostgresUrlError::Unescaped(problem));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = base.split_once("://").unwrap_or_default();
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        // Its parser ends the login at the first @, and would take the rest of a password for the host.
        if authority.matches('@').count() > 1 {
            let problem = "an @ in the user or the password is written %40";
            return Err(PostgresUrlError::Unescaped(problem));
        }
        let (mut mode, mut ca, mut certificate, mut key) = (None, None, None, None);
        let (mut rest, mut of_hosts) = (Vec::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => mode = Some(value()),
                "sslrootcert" => ca = Some(PathBuf::from(value())),
                "sslcert" => certificate = Some(PathBuf::from(value())),
                "sslkey" => key = Some(PathBuf::from(value())),
                "ssl" | "tls" | "useSSL" => {
                    let problem = "ssl is a parameter of other drivers; write sslmode=verify-full, or sslmode=disable";
                    return Err(PostgresUrlError::OtherDriver(problem));
                }
                "currentSchema" | "schema" | "search_path" => {
                    let problem = "a schema is no parameter of it; leave it out: the tables are in the schema countersign";
                    return Err(PostgresUrlError::OtherDriver(problem));
                }
                _ => match &*percent_decode_str(name).decode_utf8_lossy() {
                    "host" | "hostaddr" | "port" => of_hosts.push(pair),
                    _ => rest.push(pair),
                },
            }
        }
        let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
        let at = if authority.contains('@') { "@" } else { "" };
        let hostless = format!("{scheme}://{login}{at}/{database}?{}", rest.join("&"));
        rest.append(&mut of_hosts);
        let named = format!("{base}?{}", rest.join("&"));
        let read = |url: String| url.parse::<Config>().map_err(syntax);
        let (mut named, mut hostless) = (read(named)?, read(hostless)?);
        let has_files = ca.is_some() || certificate.is_some() || key.is_some();
        let encrypts = match mode.as_deref() {
            None => has_files || !is_here(&named),
            Some("disable") if has_files => return Err(PostgresUrlError::FilesUnused),
            Some("disable") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            Some(_) => return Err(PostgresUrlError::SslMode),
        };
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return Err(PostgresUrlError::HalfIdentity),
        };
        let ssl_mode = match encrypts {
            true => SslMode::Require,
            false => SslMode::Disable,
        };
        for config in [&mut named, &mut hostless] {
            config
                .ssl_mode(ssl_mode)
                // A standby accepts no writes, and after a failover the old primary must not be used.
                .target_session_attrs(TargetSessionAttrs::ReadWrite)
                .connect_timeout(CONNECT_TIMEOUT)
                .keepalives_idle(Duration::from_secs(10))
                .keepalives_interval(Duration::from_secs(2))
                .keepalives_retries(3)
                .tcp_user_timeout(Duration::from_secs(10));
            if config.get_application_name().is_none() {
                config.application_name("countersign");
            }
        }
        Ok(Self {
            servers: Servers { named, hostless },
            tls: encrypts.then_some(TlsFiles {
                ca: ca.into_iter().collect(),
                identity,
            }),
        })
    }

    /// The servers, and the configuration of TLS, which is not used if `sslmode` is `disable`.
    pub(super) fn connector(&self) -> Result<(Servers, MakeRustlsConnect), TlsFileError> {
        let tls = match &self.tls {
            Some(files) => files.client_config()?,
            None => client_config(RootCertStore::empty(), Vec::new(), None)?.0,
        };
        let tls = MakeRustlsConnect::new(tls);
        Ok((self.servers.clone(), tls))
    }

    /// Whether passwords and records cross a network unencrypted.
    pub fn is_in_clear(&self) -> bool {
        self.tls.is_none() && !is_here(&self.servers.named)
    }

    /// The hosts and the database, for messages.
    pub fn location(&self) -> String {
        let config = &self.servers.named;
        let hosts: Vec<_> = hosts(config)
            .map(|(host, port)| match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            })
            .collect();
        let database = config.get_dbname().or(config.get_user());
        format!("{}/{}", hosts.join(","), database.unwrap_or("?"))
    }
}

/// The hosts with their ports.
fn hosts(config: &Config) -> impl Iterator<Item = (&Host, u16)> {
    let (hosts, ports) = (config.get_hosts().iter().enumerate(), config.get_ports());
    // One port is for all hosts.
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    hosts.map(move |(index, host)| (host, port(index)))
}

impl Servers {
    /// The settings with the addresses that the hosts have now. tokio-postgres tries them one after the other, each for an
    /// equal share of [`CONNECT_TIMEOUT`]. It would look each name up again for each connection, on more and more threads
    /// while that hangs.
    pub(super) async fn addressed(&self) -> Config {
        let names = self.named.get_hosts().iter();
        let is_unix = names.clone().any(|host| matches!(host, Host::Unix(_)));
        if is_unix || !self.named.get_hostaddrs().is_empty() {
            return self.named.clone();
        }
        let share = |count: usize| CONNECT_TIMEOUT / u32::try_from(count).unwrap_or(1).max(1);
        let (patience, stale) = (share(names.len()), Dialer::default().stale_addresses);
        let (mut found, mut hangs) = (Vec::new(), false);
        for (host, port) in hosts(&self.named) {
            let Host::Tcp(name) = host else { continue };
            match timeout(patience, outbound::addresses(name, stale)).await {
                Ok(Ok(all)) => found.extend(all.iter().map(|one| (name, one.ip(), port))),
                // If no other host is known, tokio-postgres reports why.
                Ok(Err(_)) => {}
                Err(_) => hangs = true,
            }
        }
        if found.is_empty() {
            if hangs {
                // The caller has a deadline.
                std::future::pending::<()>().await;
            }
            return self.named.clone();
        }
        let mut addressed = self.hostless.clone();
        addressed.connect_timeout(share(found.len()));
        for (name, address, port) in found {
            addressed.host(name).hostaddr(address).port(port);
        }
        addressed
    }
}

/// Whether every server is this machine. A `hostaddr` is connected to, whatever the name of the host is.
fn is_here(config: &Config) -> bool {
    let is_host_here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => is_loopback_host(name),
    };
    let mut addresses = config.get_hostaddrs().iter();
    config.get_hosts().iter().all(is_host_here) && addresses.all(|address| is_loopback(*address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    #[test]
    fn encrypts_unless_told_otherwise_or_on_this_machine() {
        for (url, encrypts) in [
            ("postgres://db.example/c", true),
            ("postgresql://u:p@db.example,db2.example:5433/c", true),
            ("postgres://localhost,db.example/c", true),
            ("postgres://u:p@localhost/c", false),
            ("postgres://127.0.0.1:5433/c", false),
            ("postgres://[::1]/c", false),
            ("postgres://u@%2Frun%2Fpostgresql/c", false),
            ("postgres:///c?host=/run/postgresql", false),
            ("postgres://localhost/c?hostaddr=127.0.0.1", false),
            ("postgres://localhost/c?hostaddr=203.0.113.1", true),
            ("postgres:///c?hostaddr=203.0.113.1", true),
            (
                "postgres:///c?host=/run/postgresql&hostaddr=203.0.113.1",
                true,
            ),
            ("postgres://localhost/c?sslmode=require", true),
            ("postgres://localhost/c?sslmode=verify-ca", true),
            ("postgres://localhost/c?sslmode=verify-full", true),
            ("postgres://localhost/c?sslrootcert=/etc/ca.pem", true),
            ("postgres://db.example/c?sslmode=disable", false),
        ] {
            assert_eq!(
                PostgresUrl::parse(url).unwrap().tls.is_some(),
                encrypts,
                "{url}"
            );
        }
    }

    #[tokio::test]
    async fn all_addresses_share_the_time_and_every_other_setting_stays() {
        let url = "postgres://u:p@127.0.0.1,[::1]:5433/c?options=-cx%3D1&application_name=a&\
                   channel_binding=require&load_balance_hosts=random";
        let servers = PostgresUrl::parse(url).unwrap().servers;
        let (config, other) = (&servers.named, servers.addressed().await);
        assert_eq!(other.get_hosts(), config.get_hosts());
        assert_eq!(other.get_ports(), [5432, 5433]);
        let addresses =
            ["127.0.0.1", "::1"].map(|address| address.parse::<std::net::IpAddr>().unwrap());
        assert_eq!(other.get_hostaddrs(), addresses);
        assert_eq!(other.get_connect_timeout(), Some(&(CONNECT_TIMEOUT / 2)));
        let all = |config: &Config| {
            let mut config = config.clone();
            config.connect_timeout(CONNECT_TIMEOUT);
            let text = format!("{config:?}");
            let (before, after) = text.split_once(", host: ").unwrap();
            format!("{before}{}", after.split_once("connect_timeout").unwrap().1)
        };
        assert_eq!(all(&other), all(config));
        assert_eq!(other.get_password(), config.get_password());
        // A host of the parameters is not one of the other settings either.
        let url = "postgres://u@/c?%68ost=127.0.0.1&port=5434&application_name=a";
        let servers = PostgresUrl::parse(url).unwrap().servers;
        let other = servers.addressed().await;
        assert_eq!(other.get_hosts(), servers.named.get_hosts());
        assert_eq!(
            (other.get_ports(), other.get_hostaddrs()),
            (&[5434][..], &addresses[..1])
        );
        assert_eq!(all(&other), all(&servers.named));
        let unix = PostgresUrl::parse("postgres://u@%2Frun%2Fpostgresql/c").unwrap();
        let other = unix.servers.addressed().await;
        assert_eq!(other.get_hosts(), unix.servers.named.get_hosts());
        assert!(other.get_hostaddrs().is_empty());
    }

    #[test]
    fn rejects_what_would_not_protect_or_not_work() {
        for url in words(
            "countersign.db mysql://localhost/c postgres://localhost/c?unknown=1
             postgres://localhost:port/c postgres://localhost/c?sslmode=prefer
             postgres://localhost/c?sslmode=allow
             postgres://localhost/c?sslmode=disable&sslrootcert=/ca.pem
             postgres://localhost/c?sslcert=/cert.pem postgres://localhost/c?sslkey=/key.pem",
        ) {
            let error = PostgresUrl::parse(url).err();
            assert!(error.is_some(), "{url}");
        }
    }

    #[test]
    fn shows_no_password() {
        let url = PostgresUrl::parse("postgres://user:hunter2@db.example/c").unwrap();
        assert_eq!(url.location(), "db.example:5432/c");
        let parsed = |url: &str| PostgresUrl::parse(url).unwrap();
        assert!(parsed("postgres://db.example/c?sslmode=disable").is_in_clear());
        assert!(!parsed("postgres://localhost/c?sslmode=disable").is_in_clear());
        assert!(!format!("{url:?}").contains("hunter2"));
        for (url, problem) in [
            ("postgres://user:hunter2@db.example/c?x=hunter2", "x"),
            ("postgres://u:hunter2@hunter2@h/c", "%40"),
            ("postgres://u:a@hunter2/hunter2@h/c", "%2F"),
            ("postgres://u:hunter2/hunter2@h/c", "%2F"),
            ("postgres://hunter2/hunter2@h/c", "%2F"),
            ("postgres://u:hunter2?hunter2=hunter2@h/c", "%3F"),
            ("postgres://u:hunter2#hunter2@h/c", "%23"),
            ("postgres://u@h/c?password=hunter2&hunter2=1", "a parameter"),
            (
                "postgres://u:hunter2@h/c?ssl=true&currentSchema=a",
                "sslmode=verify-full",
            ),
            ("postgres://u:hunter2@h/c?currentSchema=a", "leave it out"),
            ("postgres://u:hunter2@h/c?pool=5", "unknown option `pool`"),
        ] {
            let Err(wrong) = PostgresUrl::parse(url) else {
                panic!("{url}");
            };
            let text = format!("{wrong} {wrong:?}");
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains(problem), "{url}: {text}");
        }
        // Another thing than a login.
        for url in [
            "postgres://u:p%40%2F@h/c%40d",
            "postgres://h/c?application_name=a@b",
            "postgres://h:5433?application_name=a@b",
        ] {
            assert!(PostgresUrl::parse(url).is_ok(), "{url}");
        }
    }
}
