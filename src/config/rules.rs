//! Rules that involve more than one key, and what cannot be set yet.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    Config, EndpointUrl, ListenAddress, LoginBackend, NonceScope, Operation, StoreBackend,
    header::{fold, is_reserved},
    names::nearest,
    problem::report,
    reader::Reader,
};
use crate::{
    origin::{HttpUrl, Scheme, is_loopback},
    parse::origin::PrefixMode,
    store::{postgres, redis},
};

/// Keys that are rejected because nothing implements them yet. Delete the line of a key when it works.
const NOT_YET: [&str; 3] = [
    "admin.token_file",
    "identity.assertion.header",
    "identity.assertion.key_file",
];

/// Whether `key` can be set at all.
pub(super) fn is_available(key: &str) -> bool {
    !NOT_YET.contains(&key)
}

pub(super) fn check(config: &Config, reader: &mut Reader<'_>) {
    let mut rules = Rules { config, reader };
    rules.not_yet();
    rules.listeners();
    rules.listener_tls();
    rules.base_url();
    rules.public_api_urls();
    rules.service_path();
    rules.upstream();
    rules.store();
    rules.login();
    rules.identity_headers();
    rules.token_response();
    rules.permissions();
    rules.operations();
    rules.limits();
}

struct Rules<'r, 't> {
    config: &'r Config,
    reader: &'r mut Reader<'t>,
}

impl<'r> Rules<'r, '_> {
    /// Adds a problem of the first of `keys`, unless one of them already has an error: its value is a placeholder then.
    fn add(&mut self, keys: &[&str], message: String) {
        if !keys.iter().any(|key| self.reader.problems.concern(key)) {
            self.reader.problem(keys[0], message);
        }
    }

    fn is_written(&self, key: &str) -> bool {
        self.reader.get(key).is_some()
    }

    fn not_yet(&mut self) {
        for key in NOT_YET {
            report! { self;
                [key] if self.is_written(key) => "not yet available; leave it out";
            }
        }
    }

    /// No two listeners on one address, and none on an address that another one has with all others.
    fn listeners(&mut self) {
        let mut taken: Vec<(&str, ListenAddress)> = Vec::new();
        for (key, address) in self.config.listeners() {
            let taker = taken.iter().find(|(_, known)| overlap(known, &address));
            report! { self;
                ["listen.address"] if let Some((_, other)) = taker.filter(|(taker, _)| *taker == key) =>
                    "{address} and {other} overlap; write one of them, or another port";
                [key, taker] if let Some((taker, _)) = taker.filter(|(taker, _)| *taker != key) =>
                    "{address} is {taker} already; write another port";
            }
            taken.push((key, address));
        }
    }

    /// A key for each certificate, and no demand for peers' certificates without TLS.
    fn listener_tls(&mut self) {
        let tls = &self.config.listen.tls;
        let (certificates, keys) = (tls.certificate.len(), tls.key.len());
        let mut names = ["listen.tls.certificate", "listen.tls.key"];
        // The shorter list is the one to change, if it is written.
        if certificates > keys {
            names.reverse();
        }
        if !self.is_written(names[0]) {
            names.reverse();
        }
        report! { self;
            [names[0], names[1]] if certificates != keys =>
                "{certificates} certificates and {keys} keys; name one key for each certificate, in the same order";
            ["listen.tls.client_ca", "listen.tls.certificate"] if !tls.client_ca.is_empty() && certificates == 0 =>
                "peers show a certificate over TLS only; set listen.tls.certificate and listen.tls.key";
        }
    }

    /// https, or this machine alone.
    fn base_url(&mut self) {
        let (service, listen) = (&self.config.service, &self.config.listen);
        let base = service.base_url.as_ref();
        let in_clear = base.filter(|origin| origin.scheme == Scheme::Http && !origin.is_loopback());
        let first = listen.address.first();
        let listener = first.filter(|first| !is_loopback(first.ip()));
        report! { self;
            ["service.base_url", "service.allow_http"] if let Some(origin) = in_clear.filter(|_| !service.allow_http) =>
                "{origin} would carry passwords in clear; write https://, or set service.allow_http = true";
            ["service.base_url", "listen.address"] if let Some(first) = listener.filter(|_| base.is_none()) =>
                "missing, since listen.address {first} is not loopback; write the origin that consumers and browsers \
                 use, such as \"https://auth.example.com\"";
        }
    }

    /// With the prefix removed by the proxy in front, the host alone must identify the URL.
    fn public_api_urls(&mut self) {
        let service = &self.config.service;
        let urls = &service.public_api_urls;
        // One path can be escaped in many ways, and a prefix is compared byte by byte.
        let escaped = urls.iter().find(|url| url.path.contains('%'));
        let ambiguous = urls.iter().enumerate().find_map(|(index, url)| {
            let same_host = |other: &&HttpUrl| other.origin.authority() == url.origin.authority();
            let mut others = urls[..index].iter().filter(same_host);
            Some((others.find(|other| other.path != url.path)?, url))
        });
        let ambiguous = ambiguous.filter(|_| service.prefix == PrefixMode::Restore);
        report! { self;
            ["service.public_api_urls"] if let Some(url) = escaped =>
                "{url}: a prefix has no percent-encoding; write another path";
            ["service.public_api_urls", "service.prefix"] if let Some((first, second)) = ambiguous =>
                "{first} and {second} cannot be told apart once the prefix is removed; give each its own host, or set \
                 service.prefix = \"strip\"";
        }
    }

    fn service_path(&mut self) {
        const ALIASES: [&str; 3] = [
            "/oauth/request_token",
            "/oauth/authorize",
            "/oauth/access_token",
        ];
        let service = &self.config.service;
        report! { self;
            ["service.path", "service.aliases"] if service.aliases && ALIASES.contains(&service.path.as_str()) =>
                "this is one of the aliases already; write another path, or set service.aliases = false";
        }
    }

    fn token_response(&mut self) {
        let tokens = &self.config.tokens;
        let mut names = BTreeSet::new();
        let mut all = tokens.profile.iter().map(|parameter| &parameter.name);
        let fixed = [&tokens.user_id_parameter, &tokens.screen_name_parameter];
        let twice = all.find(|name| !names.insert(*name) || fixed.contains(name));
        report! { self;
            ["tokens.user_id_parameter", "tokens.screen_name_parameter"] if tokens.user_id_parameter == tokens.screen_name_parameter =>
                "both are {}; give each a name of its own", tokens.user_id_parameter;
            ["tokens.profile"] if let Some(name) = twice =>
                "the response has {name} already; write {name:?} under another name, as in \"other={name}\"";
        }
    }

    fn upstream(&mut self) {
        let upstream = &self.config.upstream;
        let tls = &upstream.tls;
        let origin = upstream.api_url.tcp().map(|url| &url.origin);
        let over_tls = origin.is_some_and(|origin| origin.scheme == Scheme::Https);
        let written = [
            ("upstream.tls.ca", !tls.ca.is_empty()),
            ("upstream.tls.certificate", tls.certificate.is_some()),
            ("upstream.tls.key", tls.key.is_some()),
            ("upstream.tls.server_name", tls.server_name.is_some()),
        ];
        for (key, written) in written {
            report! { self;
                [key, "upstream.api_url"] if written && !over_tls =>
                    "upstream.api_url is not https://, so there is no TLS; leave it out, or write https://";
            }
        }
        let mut pair = ["upstream.tls.certificate", "upstream.tls.key"];
        if tls.key.is_some() {
            pair.reverse();
        }
        let base = self.config.service.base_url.as_ref();
        report! { self;
            [pair[0], pair[1]] if tls.certificate.is_some() != tls.key.is_some() =>
                "a certificate and its key go together; set {} too", pair[1];
            ["upstream.api_url", "service.base_url"] if let Some(base) = base.filter(|base| origin == Some(base)) =>
                "{base} is service.base_url, so requests would come back here or callers reach the API without \
                 countersign; write an address of the API's own (with upstream.tls.server_name and upstream.host, if it \
                 has the public name)";
        }
        for pattern in &upstream.drop_headers {
            report! { self;
                ["upstream.drop_headers"] if let Some(name) = pattern.framing_field() =>
                    "no message goes without {name}; take {} off the list", pattern.as_str();
            }
        }
    }

    fn store(&mut self) {
        let store = &self.config.store;
        let url = store.url.expose();
        let problem = match store.backend {
            StoreBackend::Sqlite => None,
            StoreBackend::Postgres => postgres::Url::parse(url).err().map(|e| e.to_string()),
        };
        let shared = self.config.nonce_scope() == NonceScope::Shared;
        let nonces = self.config.nonce.url.as_ref();
        let no_redis = nonces.and_then(|url| redis::Target::parse(url.expose()).err());
        let lookup = &store.lookup;
        for (key, sql) in [
            ("store.lookup.consumer_sql", &lookup.consumer_sql),
            ("store.lookup.token_sql", &lookup.token_sql),
        ] {
            report! { self;
                [key, "store.backend"] if sql.is_some() && store.backend != StoreBackend::Postgres =>
                    "the query runs in PostgreSQL; leave it out, or set store.backend = \"postgres\"";
            }
        }
        report! { self;
            ["store.url", "store.backend"] if let Some(problem) = problem => "{problem}";
            ["nonce.url", "store.backend"] if nonces.is_some() && store.backend != StoreBackend::Postgres =>
                "shared nonces are for store.backend = \"postgres\"; leave it out: SQLite is for one process";
            ["nonce.url", "nonce.scope"] if nonces.is_some() && !shared =>
                "nonce.scope is \"local\", so no replicas share nonces; leave it out, or set nonce.scope = \"shared\"";
            ["nonce.url"] if let Some(problem) = no_redis => "{problem}";
        }
        if store.backend != StoreBackend::Sqlite {
            return;
        }
        let problem = store.url.sqlite_problem();
        let same = problem.is_none() && self.config.nonce_path() == Some(store.url.sqlite_path());
        report! { self;
            ["store.url", "store.backend"] if let Some(problem) = problem => "{problem}";
            ["nonce.scope", "store.backend"] if shared =>
                "a SQLite file is for one process; leave it out, or set store.backend = \"postgres\"";
            ["nonce.path", "store.url", "store.backend"] if same => "this is the store's own file; write another";
        }
    }

    fn login(&mut self) {
        let login = &self.config.login;
        let header = login.backend == LoginBackend::Header;
        let (http, url) = (login.backend == LoginBackend::Http, login.url.as_ref());
        let in_clear = url.is_some_and(|EndpointUrl { origin, .. }| {
            origin.scheme == Scheme::Http && !origin.is_loopback()
        });
        report! { self;
            ["login.url", "login.backend"] if http && url.is_none() =>
                "missing, since login.backend is \"http\"; write the URL that checks passwords";
            ["login.url", "login.backend"] if !http && url.is_some() =>
                "login.backend is \"local\", which asks no URL; leave it out, or set login.backend = \"http\"";
            ["login.user_header", "login.backend"] if header && login.user_header.is_none() =>
                "missing, since login.backend is \"header\"; write the name of the field that the proxy in front sets";
            ["listen.trusted_proxies", "login.backend"] if header && self.config.listen.trusted_proxies.is_empty() =>
                "nobody is trusted to name users, but login.backend is \"header\"; write the address of the proxy in front";
            ["login.user_header"] if let Some(name) = login.user_header.as_ref().filter(|name| is_reserved(name)) =>
                "{name} has a meaning of its own in HTTP; write another name";
            ["login.url"] if http && in_clear =>
                "passwords would cross the network in clear; write https://";
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
            let folded = fold(name.as_str());
            let reserved = is_reserved(name);
            let same = seen.iter().find(|(known, _)| *known == folded && !reserved);
            report! { self;
                [key] if reserved => "{name} has a meaning of its own in HTTP; write another name";
                [key, other] if let Some((_, other)) = same =>
                    "an API may take {name} for the header of {other}; write names that differ in letters or digits";
            }
            if !reserved && same.is_none() {
                seen.push((folded, key));
            }
        }
    }

    fn permissions(&mut self) {
        let entries = &self.config.permission;
        for (index, entry) in entries.iter().enumerate() {
            let first = entries[..index]
                .iter()
                .position(|other| other.name == entry.name);
            report! { self;
                [&item_key("permission", index, "name"), &item_key("permission", first, "name")]
                    if let Some(first) = first => "{} is declared twice; declare it once", entry.name;
            }
        }
    }

    fn operations(&mut self) {
        let operations = &self.config.operation;
        for (index, operation) in operations.iter().enumerate() {
            self.declared_permission(index, operation);
            let path = &operation.path;
            let mut others = operations[..index].iter();
            let respelled = others.find(|other| path.is_other_spelling(&other.path));
            let overlap = first_overlap(&operations[..index], operation);
            report! { self;
                [&item_key("operation", index, "path")] if let Some(other) = respelled =>
                    "{path} is the same path as {}, since escapes are decoded before paths are compared; write both \
                     alike", other.path;
                [&item_key("operation", index, "path"), &item_key("operation", index, "methods"),
                 &item_key("operation", first, "path"), &item_key("operation", first, "methods")]
                    if let Some((first, method)) = overlap.filter(|_| respelled.is_none()) =>
                    "{path} {method} is listed already, as {} of operation {}; list each path and method once",
                    operations[first].path, first + 1;
            }
        }
    }

    fn declared_permission(&mut self, index: usize, operation: &'r Operation) {
        let entries = &self.config.permission;
        let Some(permission) = &operation.permission else {
            return;
        };
        // With a name that could not be read, that one may have been meant.
        let names: Vec<_> = (0..entries.len())
            .map(|entry| item_key("permission", entry, "name"))
            .collect();
        let unread = names.iter().any(|name| self.reader.problems.concern(name));
        let declared = entries.iter().any(|entry| entry.name == *permission);
        let known = entries.iter().map(|entry| entry.name.as_str());
        let near = nearest(permission.as_str(), known);
        let fix = match near {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("add [[permission]] with name = \"{permission}\""),
        };
        report! { self;
            [&item_key("operation", index, "permission"), "permission"] if !unread && !declared =>
                "no [[permission]] declares {:?}; {fix}", permission.as_str();
        }
    }

    fn limits(&mut self) {
        let limits = &self.config.limits;
        let (target, head) = (limits.target_bytes, limits.head_bytes);
        let (form, memory) = (limits.form_bytes, limits.form_memory);
        // The one of the two that is written is the one to look at.
        let written_first =
            |rules: &Self, [part, whole]: [&'static str; 2]| match rules.is_written(part) {
                true => [part, whole],
                false => [whole, part],
            };
        let heads = written_first(self, ["limits.target_bytes", "limits.head_bytes"]);
        let forms = written_first(self, ["limits.form_bytes", "limits.form_memory"]);
        report! { self;
            [heads[0], heads[1]] if target > head =>
                "limits.target_bytes {target} is over limits.head_bytes {head}, of which it is a part; lower the one or \
                 raise the other";
            // A quarter is what server::buffered lets one caller have.
            [forms[0], forms[1]] if form.as_usize() > memory.as_usize() / 4 =>
                "limits.form_bytes {form} is over a quarter of limits.form_memory {memory}, which is all that one \
                 address gets; lower the one or raise the other";
        }
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
