//! Rules that involve more than one key.

use std::{fmt::Display, net::IpAddr};

use super::{
    ApiUrl, BaseUrl, Config, HttpUrl, ListenAddress, LoginBackend, Operation, PrefixMode,
    PublicUrl, Scheme, StoreBackend,
    error::{Place, Problems},
    header::{fold, is_reserved},
    tree::Table,
    url::is_loopback,
};

pub(super) fn check(config: &Config, tree: &Table, file: &Place, problems: &mut Problems) {
    let mut rules = Rules {
        config,
        tree,
        file,
        problems,
    };
    rules.listeners();
    rules.listener_tls();
    rules.base_url();
    rules.public_api_urls();
    rules.service_path();
    rules.upstream();
    rules.store();
    rules.login();
    rules.identity_headers();
    rules.permissions();
    rules.operations();
    rules.limits();
}

struct Rules<'a> {
    config: &'a Config,
    tree: &'a Table,
    file: &'a Place,
    problems: &'a mut Problems,
}

impl Rules<'_> {
    /// Adds a problem of `key`, unless its value, or that of another key that the rule looked at, is only a stand-in.
    fn broken(&mut self, key: &str, others: &[&str], message: impl Into<String>) {
        let stand_in = |key: &&str| self.problems.concern(key);
        if stand_in(&key) || others.iter().any(stand_in) {
            return;
        }
        let place = self
            .tree
            .find_key(key)
            .map_or(self.file, |node| &node.place);
        self.problems.add(place, key, message);
    }

    fn is_written(&self, key: &str) -> bool {
        self.tree.find_key(key).is_some()
    }

    /// No two listeners on one address, and none on an address that another one has with all others.
    fn listeners(&mut self) {
        let admin = &self.config.admin;
        let mut taken: Vec<(ListenAddress, &str)> = Vec::new();
        for address in &self.config.listen.address {
            let address = ListenAddress::Tcp(*address);
            if let Some((other, _)) = taken.iter().find(|(known, _)| overlap(known, &address)) {
                let message =
                    format!("{address} and {other} overlap; write one of them, or another port");
                self.broken("listen.address", &[], message);
            }
            taken.push((address, "listen.address"));
        }
        let others = [
            ("admin.listen", Some(&admin.listen)),
            ("admin.probe_listen", admin.probe_listen.as_ref()),
        ];
        for (key, address) in others {
            let Some(address) = address else { continue };
            let taker = taken.iter().find(|(known, _)| overlap(known, address));
            if let Some((_, taker)) = taker {
                let taker = *taker;
                self.broken(
                    key,
                    &[taker],
                    format!("{address} is {taker} already; write another port"),
                );
            }
            taken.push((address.clone(), key));
        }
    }

    /// A key for each certificate, and no demand for peers' certificates without TLS.
    fn listener_tls(&mut self) {
        let tls = &self.config.listen.tls;
        let (certificates, keys) = (tls.certificate.len(), tls.key.len());
        if certificates != keys {
            let (short, long) = if certificates < keys {
                ("listen.tls.certificate", "listen.tls.key")
            } else {
                ("listen.tls.key", "listen.tls.certificate")
            };
            let (key, other) = if self.is_written(short) {
                (short, long)
            } else {
                (long, short)
            };
            self.broken(
                key,
                &[other],
                format!(
                    "{certificates} certificates and {keys} keys; name one key for each \
                     certificate, in the same order"
                ),
            );
        }
        if !tls.client_ca.is_empty() && tls.certificate.is_empty() {
            self.broken(
                "listen.tls.client_ca",
                &["listen.tls.certificate"],
                "peers show a certificate over TLS only; set listen.tls.certificate and \
                 listen.tls.key",
            );
        }
    }

    /// https, or this machine alone.
    fn base_url(&mut self) {
        let service = &self.config.service;
        match &service.base_url {
            BaseUrl::Url(origin) => {
                let clear = origin.scheme == Scheme::Http && !origin.is_loopback();
                if clear && !service.allow_http {
                    self.broken(
                        "service.base_url",
                        &["service.allow_http"],
                        format!(
                            "{origin} would carry passwords in clear; write https://, or set \
                             service.allow_http = true"
                        ),
                    );
                }
            }
            BaseUrl::FromListener => {
                // A list that could not be read stands in with its default, which is loopback.
                let Some(first) = self.config.listen.address.first() else {
                    return;
                };
                if !is_loopback(first.ip()) {
                    self.broken(
                        "service.base_url",
                        &["listen.address"],
                        format!(
                            "missing, since listen.address {first} is not loopback; write the \
                             origin that consumers and browsers use, such as \
                             \"https://auth.example.com\""
                        ),
                    );
                }
            }
        }
    }

    /// With the prefix removed by the proxy in front, the host alone must tell the URL.
    fn public_api_urls(&mut self) {
        let service = &self.config.service;
        if service.prefix != PrefixMode::Restore {
            return;
        }
        let urls = &service.public_api_urls;
        let ambiguous = urls.iter().enumerate().find_map(|(index, url)| {
            let other = urls[..index].iter().find(|other| {
                other.0.origin.authority() == url.0.origin.authority() && other.0.path != url.0.path
            })?;
            Some((other, url))
        });
        if let Some((PublicUrl(first), PublicUrl(second))) = ambiguous {
            self.broken(
                "service.public_api_urls",
                &["service.prefix"],
                format!(
                    "{first} and {second} cannot be told apart once the prefix is removed; give \
                     each its own host, or set service.prefix = \"strip\""
                ),
            );
        }
    }

    fn service_path(&mut self) {
        const ALIASES: [&str; 3] = [
            "/oauth/request_token",
            "/oauth/authorize",
            "/oauth/access_token",
        ];
        let service = &self.config.service;
        if service.aliases && ALIASES.contains(&service.path.as_str()) {
            self.broken(
                "service.path",
                &["service.aliases"],
                "this is one of the aliases already; write another path, or set service.aliases = \
                 false",
            );
        }
    }

    fn upstream(&mut self) {
        let upstream = &self.config.upstream;
        let tls = &upstream.tls;
        let over_tls =
            matches!(&upstream.api_url, ApiUrl::Http(url) if url.origin.scheme == Scheme::Https);
        let written = [
            ("upstream.tls.ca", !tls.ca.is_empty()),
            ("upstream.tls.certificate", tls.certificate.is_some()),
            ("upstream.tls.key", tls.key.is_some()),
            ("upstream.tls.server_name", tls.server_name.is_some()),
        ];
        for (key, written) in written {
            if written && !over_tls {
                self.broken(
                    key,
                    &["upstream.api_url"],
                    "upstream.api_url is not https://, so there is no TLS; leave it out, or write \
                     https://",
                );
            }
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            let (key, other) = if tls.key.is_some() {
                ("upstream.tls.key", "upstream.tls.certificate")
            } else {
                ("upstream.tls.certificate", "upstream.tls.key")
            };
            self.broken(
                key,
                &[other],
                format!("a certificate and its key go together; set {other} too"),
            );
        }
        if let (ApiUrl::Http(api), BaseUrl::Url(base)) =
            (&upstream.api_url, &self.config.service.base_url)
            && api.origin == *base
        {
            self.broken(
                "upstream.api_url",
                &["service.base_url"],
                format!(
                    "{base} is service.base_url, so requests would come back here or callers reach \
                     the API without countersign; write an address of the API's own (with \
                     upstream.tls.server_name and upstream.host, if it has the public name)"
                ),
            );
        }
        for pattern in &upstream.drop_headers {
            if let Some(name) = pattern.framing_field() {
                self.broken(
                    "upstream.drop_headers",
                    &[],
                    format!(
                        "no message goes without {name}; take {} off the list",
                        pattern.as_str()
                    ),
                );
            }
        }
    }

    fn store(&mut self) {
        let store = &self.config.store;
        if store.backend != StoreBackend::Sqlite {
            return;
        }
        if let Some(message) = store.url.sqlite_problem() {
            self.broken("store.url", &["store.backend"], message);
            return;
        }
        if self.config.nonce_path() == Some(store.url.sqlite_path()) {
            self.broken(
                "nonce.path",
                &["store.url", "store.backend"],
                "this is the store's own file; write another",
            );
        }
    }

    fn login(&mut self) {
        let login = &self.config.login;
        match (login.backend, &login.url) {
            (LoginBackend::Http, None) => self.broken(
                "login.url",
                &["login.backend"],
                "missing, since login.backend is \"http\"; write the URL that checks passwords",
            ),
            (LoginBackend::Local, Some(_)) => self.broken(
                "login.url",
                &["login.backend"],
                "login.backend is \"local\", which asks no URL; leave it out, or set login.backend \
                 = \"http\"",
            ),
            (LoginBackend::Http, Some(HttpUrl { origin, .. })) => {
                if origin.scheme == Scheme::Http && !origin.is_loopback() {
                    self.broken(
                        "login.url",
                        &[],
                        "passwords would cross the network in clear; write https://",
                    );
                }
            }
            (LoginBackend::Local, None) => {}
        }
    }

    /// Each name is a field of its own, also for an API that folds names.
    fn identity_headers(&mut self) {
        let identity = &self.config.identity;
        let names = [
            ("identity.user_header", Some(&identity.user_header)),
            ("identity.consumer_header", Some(&identity.consumer_header)),
            (
                "identity.permissions_header",
                Some(&identity.permissions_header),
            ),
            ("identity.kind_header", Some(&identity.kind_header)),
            (
                "identity.assertion.header",
                identity.assertion.header.as_ref(),
            ),
        ];
        let mut seen: Vec<(String, &str)> = Vec::new();
        for (key, name) in names {
            let Some(name) = name else { continue };
            if is_reserved(name) {
                let message =
                    format!("{name} has a meaning of its own in HTTP; write another name");
                self.broken(key, &[], message);
                continue;
            }
            let folded = fold(name.as_str());
            if let Some((_, other)) = seen.iter().find(|(known, _)| *known == folded) {
                let other = *other;
                self.broken(
                    key,
                    &[other],
                    format!(
                        "an API may take {name} for the header of {other}; write names that differ \
                         in letters or digits"
                    ),
                );
                continue;
            }
            seen.push((folded, key));
        }
    }

    fn permissions(&mut self) {
        let entries = &self.config.permission;
        for (index, entry) in entries.iter().enumerate() {
            let same = |other: &super::PermissionEntry| other.name == entry.name;
            let Some(first) = entries[..index].iter().position(same) else {
                continue;
            };
            self.broken(
                &item_key("permission", index, "name"),
                &[&item_key("permission", first, "name")],
                format!("{} is declared twice; declare it once", entry.name),
            );
        }
    }

    fn operations(&mut self) {
        let operations = &self.config.operation;
        for (index, operation) in operations.iter().enumerate() {
            self.declared_permission(index, operation);
            let respelled = |other: &&Operation| operation.path.is_other_spelling(&other.path);
            if let Some(other) = operations[..index].iter().find(respelled) {
                self.broken(
                    &item_key("operation", index, "path"),
                    &[],
                    format!(
                        "{} is the same path as {}, since escapes are decoded before paths are \
                         compared; write both alike",
                        operation.path, other.path
                    ),
                );
                continue;
            }
            let Some((first, method)) = first_overlap(&operations[..index], operation) else {
                continue;
            };
            let other = &operations[first];
            self.broken(
                &item_key("operation", index, "path"),
                &[
                    &item_key("operation", index, "methods"),
                    &item_key("operation", first, "path"),
                    &item_key("operation", first, "methods"),
                ],
                format!(
                    "{} {method} is listed already, as {} of operation {}; list each path and \
                     method once",
                    operation.path,
                    other.path,
                    first + 1
                ),
            );
        }
    }

    fn declared_permission(&mut self, index: usize, operation: &Operation) {
        let entries = &self.config.permission;
        let Some(permission) = &operation.permission else {
            return;
        };
        // With a name that could not be read, that one may have been meant.
        let unread = (0..entries.len()).any(|entry| {
            self.problems
                .concern(&item_key("permission", entry, "name"))
        });
        if unread || entries.iter().any(|entry| entry.name == *permission) {
            return;
        }
        let names = entries.iter().map(|entry| entry.name.as_str());
        let mend = match super::suggest::nearest(permission.as_str(), names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("add [[permission]] with name = \"{permission}\""),
        };
        self.broken(
            &item_key("operation", index, "permission"),
            &["permission"],
            format!(
                "no [[permission]] declares {:?}; {mend}",
                permission.as_str()
            ),
        );
    }

    fn limits(&mut self) {
        let limits = &self.config.limits;
        let (target, head) = (limits.target_bytes, limits.head_bytes);
        if target > head {
            self.part(
                ["limits.target_bytes", "limits.head_bytes"],
                over("limits.target_bytes", target, "limits.head_bytes", head),
            );
        }
        let (form, memory) = (limits.form_bytes, limits.form_memory);
        // A quarter is what server::held lets one caller have.
        if form.as_usize() > memory.as_usize() / 4 {
            self.part(
                ["limits.form_bytes", "limits.form_memory"],
                format!(
                    "limits.form_bytes {form} is over a quarter of limits.form_memory {memory}, which is all that one \
                     address gets; lower the one or raise the other"
                ),
            );
        }
    }

    /// A part is larger than its whole: the one of the two that is written is the one to look at.
    fn part(&mut self, [part, whole]: [&str; 2], message: String) {
        let key = if self.is_written(part) { part } else { whole };
        self.broken(key, &[whole, part], message);
    }
}

/// Whether the system gives a process only one of the two.
fn overlap(one: &ListenAddress, other: &ListenAddress) -> bool {
    match (one, other) {
        (ListenAddress::Tcp(one), ListenAddress::Tcp(other)) => {
            let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
            // `[::]` takes IPv4 as well.
            let takes =
                |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
            one.port() == other.port()
                && one.port() != 0
                && (ip == other_ip || takes(ip, other_ip) || takes(other_ip, ip))
        }
        (ListenAddress::Unix(one), ListenAddress::Unix(other)) => one == other,
        _ => false,
    }
}

fn over(key: &str, value: impl Display, other: &str, limit: impl Display) -> String {
    format!(
        "{key} {value} is over {other} {limit}, of which it is a part; lower the one or raise the other"
    )
}

/// The whole key of an item's key, counted from 1.
fn item_key(list: &str, index: usize, key: &str) -> String {
    format!("{list}[{}].{key}", index + 1)
}

/// The first of `others` that lists a path and method that `operation` lists too, and that method in words.
fn first_overlap<'a>(others: &[Operation], operation: &'a Operation) -> Option<(usize, &'a str)> {
    others.iter().enumerate().find_map(|(index, other)| {
        if !other.path.is_same(&operation.path) {
            return None;
        }
        if operation.methods.is_empty() || other.methods.is_empty() {
            return Some((index, "(every method)"));
        }
        let mut methods = operation.methods.iter();
        let both = methods.find(|method| other.methods.contains(method))?;
        Some((index, both.as_str()))
    })
}
