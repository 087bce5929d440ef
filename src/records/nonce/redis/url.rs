//! `nonce.url`: the servers of Redis, and the login.

use std::{fmt, path::PathBuf, sync::Arc};

use percent_encoding::percent_decode_str;
use rustls::ClientConfig;

use crate::{
    base::{
        network::tls::{TlsFileError, TlsFiles},
        secret::Secret,
    },
    wire::url::{database::unescaped_login, origin::is_loopback_host},
};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Host and port.
pub(super) type RedisNode = (String, u16);

/// The servers and how to log in. The secrets in it do not print.
#[derive(Debug, Clone)]
pub struct RedisUrl {
    pub(super) nodes: Vec<RedisNode>,
    /// The nodes are Sentinels, and not servers or members of a Cluster.
    pub(super) sentinel: Option<Sentinel>,
    /// The nodes are members of a Cluster. Each of them may name the node that has the nonces.
    pub(super) is_cluster: bool,
    tls: Option<TlsFiles>,
    pub(super) login: RedisLogin,
    pub(super) db: i64,
}

/// The name under which Sentinels know the primary, and the login for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentinel {
    pub(super) service: String,
    pub(super) login: RedisLogin,
}

/// User and password, each perhaps absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RedisLogin {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
}

impl RedisUrl {
    /// Parses `redis://`, `redis+sentinel://` or `redis+cluster://`, with `rediss` for TLS:
    /// `scheme://[[user]:password@]host[:port][,host[:port]…][/db]`. With Sentinels, the name of the service precedes
    /// the database number. The query may have `ca`, and `certificate` with `key`, the paths of PEM files for TLS, and
    /// `sentinel_password`, which the Sentinels get instead of the password of Redis.
    ///
    /// # Errors
    /// The problem, without a part of the URL in it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        if let Some(problem) = unescaped_login(url) {
            return Err(problem);
        }
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (tls, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", kind) => (false, kind),
            ("rediss", kind) => (true, kind),
            _ => return Err("a URL of Redis begins with redis://, or rediss:// for TLS"),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut query = UrlQuery::parse(query)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (parse_login(login)?, hosts),
            None => (RedisLogin::default(), authority),
        };
        let (sentinel, port, db) = match kind {
            "" | "cluster" => (None, REDIS_PORT, path),
            "sentinel" => {
                let (service, db) = path.split_once('/').unwrap_or((path, ""));
                if service.is_empty() {
                    return Err(
                        "the path names the service that the Sentinels watch, as in redis+sentinel://host/mymaster",
                    );
                }
                let login = RedisLogin {
                    user: None,
                    password: query.sentinel_password.take(),
                };
                let service = decode(service)?;
                (Some(Sentinel { service, login }), SENTINEL_PORT, db)
            }
            _ => return Err("expected redis+sentinel:// or redis+cluster://"),
        };
        if query.sentinel_password.is_some() {
            return Err("sentinel_password is for redis+sentinel://");
        }
        if !tls && query.tls != TlsFiles::default() {
            return Err("ca, certificate and key are for rediss://");
        }
        let db = match db {
            "" => Some(0),
            db => db.parse().ok().filter(|db| *db >= 0),
        };
        let db = db.ok_or("the database is a number")?;
        if db != 0 && kind == "cluster" {
            return Err("a Cluster has only database 0");
        }
        let nodes = hosts.split(',').map(|host| parse_node(host, port));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if kind.is_empty() && nodes.len() > 1 {
            return Err("several hosts are for redis+sentinel:// and redis+cluster://");
        }
        Ok(Self {
            nodes,
            sentinel,
            is_cluster: kind == "cluster",
            tls: tls.then_some(query.tls),
            login,
            db,
        })
    }

    /// Whether passwords and nonces cross a network unencrypted.
    pub fn is_in_clear(&self) -> bool {
        let mut hosts = self.nodes.iter().map(|(host, _)| host);
        self.tls.is_none() && !hosts.all(|host| is_loopback_host(host))
    }

    /// Reads the files of TLS; `None`: no TLS.
    pub(super) fn client_config(&self) -> Result<Option<Arc<ClientConfig>>, TlsFileError> {
        let read = |files: &TlsFiles| files.client_config().map(Arc::new);
        self.tls.as_ref().map(read).transpose()
    }
}

#[derive(Default)]
struct UrlQuery {
    sentinel_password: Option<Secret>,
    tls: TlsFiles,
}

impl UrlQuery {
    fn parse(query: &str) -> Result<Self, &'static str> {
        let mut parsed = Self::default();
        let (mut certificate, mut key) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value)?;
            match name {
                "sentinel_password" => parsed.sentinel_password = Some(value.into()),
                "ca" => parsed.tls.ca = vec![value.into()],
                "certificate" => certificate = Some(PathBuf::from(value)),
                "key" => key = Some(PathBuf::from(value)),
                _ => return Err("the query takes ca, certificate, key and sentinel_password"),
            }
        }
        if certificate.is_some() != key.is_some() {
            return Err("certificate and key belong together; write both or none");
        }
        parsed.tls.identity = certificate.zip(key);
        Ok(parsed)
    }
}

impl fmt::Display for RedisUrl {
    /// The servers, without a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (host, port)) in self.nodes.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{host}:{port}")?;
        }
        Ok(())
    }
}

fn parse_login(login: &str) -> Result<RedisLogin, &'static str> {
    let (user, password) = login
        .split_once(':')
        .ok_or("a login is user:password@ or :password@")?;
    Ok(RedisLogin {
        user: Some(decode(user)?).filter(|user| !user.is_empty()),
        password: Some(decode(password)?.into()),
    })
}

fn parse_node(host: &str, default_port: u16) -> Result<RedisNode, &'static str> {
    // A colon inside brackets belongs to an IPv6 address.
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let name = host
        .strip_prefix('[')
        .map_or(Some(host), |inner| inner.strip_suffix(']'))
        .filter(|name| !name.is_empty() && !name.contains(['@', '[', ']', ' ']))
        .ok_or("a host is missing or broken")?;
    let port = port.map_or(Ok(default_port), str::parse);
    Ok((
        name.to_owned(),
        port.map_err(|_| "a port is a number up to 65535")?,
    ))
}

fn decode(text: &str) -> Result<String, &'static str> {
    percent_decode_str(text)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| "an escape is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    #[test]
    fn reads_every_form() {
        let url = RedisUrl::parse("redis://h").unwrap();
        assert_eq!(url.nodes, [("h".to_owned(), 6379)]);
        assert_eq!((url.tls, url.db), (None, 0));
        assert_eq!(url.login, RedisLogin::default());

        let url = "rediss://u:p%40%3A@[::1]:7000/3?ca=%2Fa.pem&certificate=b.pem&key=c.pem";
        let url = RedisUrl::parse(url).unwrap();
        assert_eq!(url.nodes, [("::1".to_owned(), 7000)]);
        assert_eq!(url.db, 3);
        let files = url.tls.clone().unwrap();
        assert_eq!(files.ca, [PathBuf::from("/a.pem")]);
        assert_eq!(files.identity, Some(("b.pem".into(), "c.pem".into())));
        assert_eq!(url.login.user.as_deref(), Some("u"));
        assert_eq!(url.login.password, Some("p@:".into()));
        assert!(!format!("{url} {url:?}").contains("p@:"));

        assert!(!url.is_in_clear() && !RedisUrl::parse("redis://[::1]").unwrap().is_in_clear());

        let url = RedisUrl::parse("redis+sentinel://:p@a,b:7/main/2?sentinel_password=s").unwrap();
        assert!(url.is_in_clear());
        assert_eq!(url.to_string(), "a:26379,b:7");
        assert_eq!(url.login.user, None);
        let Sentinel { service, login } = url.sentinel.unwrap();
        assert_eq!((&*service, login.password), ("main", Some("s".into())));

        let url = RedisUrl::parse("rediss+cluster://a:1,b:2").unwrap();
        assert_eq!((url.sentinel, url.nodes.len()), (None, 2));
    }

    #[test]
    fn rejects_what_it_does_not_understand() {
        for url in words(
            "h:6379 http://h redis+other://h redis:// redis://h:x redis://h:65536 redis://h/x
             redis://h/-1 redis://a,b redis://password@h redis://h?x=y redis://h?ca=a
             redis://h?sentinel_password=p rediss://h?key=a redis://[::1 redis://:%ff@h
             redis+sentinel://h redis+sentinel://h/s?x=y redis+cluster://h/1 redis+cluster://a,,b",
        ) {
            assert!(RedisUrl::parse(url).is_err(), "{url}");
        }
    }
}
