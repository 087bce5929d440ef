//! Rules on the whole configuration: those that involve more than one key, and those on single texts.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use http::{HeaderName, Method};

use super::{Config, FORWARD_AUTH};
use crate::{
    base::{
        language,
        settings::format_size,
        text::names::{ConsumerKey, Permission},
    },
    gateway::cors::CorsOrigin,
    provider::{
        endpoints::scope::{PARAMETER, is_parameter},
        login::settings::LoginMethod,
    },
    records::{
        nonce::{redis, settings::NonceScope},
        store::{postgres, settings::StoreBackend},
    },
    request::{
        forward::{
            FoldedNames,
            header::{fold, is_reserved},
        },
        parse::origin::PrefixMode,
        policy::{
            AmbiguousPath,
            access::CallerKind,
            operations::pattern::PathPattern,
            settings::{Ambiguous, OperationSettings, ParameterHeader},
        },
        route::{FlowPath, ServiceCall, aliases, settings::FlowAt},
    },
    wire::{
        address::{EndpointUrl, ListenAddress},
        url::origin::{HttpUrl, Origin, is_loopback, plain_path},
    },
};

/// A wrong or unwise setting: the key, and the cause with the fix. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key.
    pub key: String,
    /// The cause and the fix.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Collects findings.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Adds a finding, unless the key has one.
    pub(super) fn add(&mut self, key: &str, message: String) {
        if !self.0.iter().any(|known| known.key == key) {
            let key = key.to_owned();
            self.0.push(Finding { key, message });
        }
    }
}

/// Adds to `$to` each finding whose condition holds: `[key] if condition => message;`.
macro_rules! report {
    ($to:ident;) => {};
    ($to:ident; [$key:expr] if let $found:pat = $option:expr => $text:literal $(, $argument:expr)*; $($rest:tt)*) => {
        if let $found = $option {
            $to.add($key, format!($text $(, $argument)*));
        }
        report! { $to; $($rest)* }
    };
    ($to:ident; [$key:expr] if $condition:expr => $text:literal $(, $argument:expr)*; $($rest:tt)*) => {
        if $condition {
            $to.add($key, format!($text $(, $argument)*));
        }
        report! { $to; $($rest)* }
    };
}
pub(super) use report;

/// Every rule that the configuration breaks.
pub(super) fn problems(config: &Config) -> Vec<Finding> {
    let mut found = Findings::default();
    for check in [
        listeners,
        listener_tls,
        proxy_protocol,
        base_url,
        public_api_urls,
        service_path,
        flow_paths,
        page_urls,
        cors_origins,
        upstream,
        guard,
        store,
        lookup,
        login,
        identity_headers,
        parameter_headers,
        signed_identity,
        bearer,
        sunset,
        token_response,
        permissions,
        operations,
        limits,
    ] {
        check(config, &mut found);
    }
    found.0
}

/// No two listeners share an address; a listener on every interface takes the port on each of them.
fn listeners(config: &Config, found: &mut Findings) {
    let mut taken: Vec<(&str, ListenAddress)> = Vec::new();
    for (key, address) in config.listeners() {
        let taker = taken.iter().find(|(_, known)| overlap(known, &address));
        report! { found;
            [key] if let Some((taker, other)) = taker =>
                "{address} overlaps with {other} of {taker}; write another port";
        }
        taken.push((key, address));
    }
}

/// Every origin, or those that are named.
fn cors_origins(config: &Config, found: &mut Findings) {
    let origins = &config.cors.cors_origins;
    report! { found;
        ["service.cors_origins"] if origins.len() > 1 && origins.contains(&CorsOrigin::Any) =>
            "\"*\" is every origin, so the others have no effect; write \"*\" alone, or leave it out";
    }
}

/// Each certificate has a key, and peers' certificates are demanded only over TLS.
fn listener_tls(config: &Config, found: &mut Findings) {
    let tls = &config.listen_tls;
    let (certificates, keys) = (tls.certificate.len(), tls.key.len());
    report! { found;
        ["listen.tls.key"] if certificates != keys =>
            "{certificates} certificates and {keys} keys; name one key for each certificate, in the same order";
        ["listen.tls.client_ca"] if !tls.client_ca.is_empty() && certificates == 0 =>
            "peers show a certificate over TLS only; set listen.tls.certificate and listen.tls.key";
    }
}

/// With the PROXY protocol, at least one proxy is trusted.
fn proxy_protocol(config: &Config, found: &mut Findings) {
    report! { found;
        ["listen.proxy_protocol"] if config.protocols.proxy_protocol && config.proxies.trusted_proxies.is_empty() =>
            "true, and listen.trusted_proxies is empty, so that every connection would be closed; write the addresses \
             of the proxies there";
    }
}

/// The origin of pages and token calls is https, or reaches this machine only.
fn base_url(config: &Config, found: &mut Findings) {
    let (service, listen) = (&config.service, &config.listen);
    let base = service.base_url.as_ref();
    let in_clear = base.filter(|origin| origin.is_in_clear());
    let first = listen.address.first();
    let listener = first.filter(|first| !is_loopback(first.ip()));
    report! { found;
        ["service.base_url"] if let Some(origin) = in_clear.filter(|_| !service.allow_http) =>
            "{origin} would carry passwords in clear; write https://, or set service.allow_http = true";
        ["service.base_url"] if let Some(first) = listener.filter(|_| base.is_none()) =>
            "missing, since listen.address {first} is not loopback; write the origin that consumers and browsers \
             use, such as \"https://auth.example.com\"";
    }
}

/// With the prefix removed by the proxy in front, the host alone must identify the URL.
fn public_api_urls(config: &Config, found: &mut Findings) {
    let service = &config.service;
    let urls = &service.public_api_urls;
    // One path can be escaped in many ways, and a prefix is compared byte by byte.
    let escaped = urls.iter().find(|url| url.path.contains('%'));
    let ambiguous = urls.iter().enumerate().find_map(|(index, url)| {
        let same_host = |other: &&HttpUrl| other.origin.authority() == url.origin.authority();
        let mut others = urls[..index].iter().filter(same_host);
        Some((others.find(|other| other.path != url.path)?, url))
    });
    let ambiguous = ambiguous.filter(|_| service.prefix == PrefixMode::Restore);
    report! { found;
        ["service.public_api_urls"] if let Some(url) = escaped =>
            "{url}: a prefix has no percent-encoding; write another path";
        ["service.public_api_urls"] if let Some((first, second)) = ambiguous =>
            "{first} and {second} cannot be told apart once the prefix is removed; give each its own host, or set \
             service.prefix = \"strip\"";
    }
}

/// A path of our own is fixed and is not the root: every other path is below the root.
fn service_path(config: &Config, found: &mut Findings) {
    let (flow, realm) = (&config.flow, &config.responses.realm);
    let problem = match plain_path(&flow.path) {
        Err(error) => Some(error.to_string()),
        Ok(()) if flow.path.contains('%') => Some("it has an escape".to_owned()),
        Ok(()) => None,
    };
    let is_visible = |byte| matches!(byte, b' '..=b'~');
    report! { found;
        ["service.realm"] if !realm.bytes().all(is_visible) => "expected visible ASCII and spaces";
        ["service.path"] if let Some(problem) = problem =>
            "expected a path such as \"/service.oauth\": {problem}";
        ["service.path"] if flow.aliases && aliases().any(|(path, _)| path == flow.path) =>
            "this is one of the aliases already; write another path, or set service.aliases = false";
    }
}

/// Each path of a call of the flow is of one call alone, and no operation lists it.
fn flow_paths(config: &Config, found: &mut Findings) {
    let flow = &config.flow;
    let lists = flow.further_paths().into_iter();
    let entries = lists.flat_map(|(key, call, paths)| {
        let keyed = move |path| (key.to_owned(), call, path);
        paths.iter().map(keyed)
    });
    let entries: Vec<(String, ServiceCall, &FlowPath)> = entries.collect();
    let shares_host = config.api_shares_base_url();
    for (index, (key, call, path)) in entries.iter().enumerate() {
        let mut others = entries[..index].iter();
        let other = others.find(|(_, _, other)| path.overlaps(other));
        let mut aliases = aliases().filter(|_| flow.aliases);
        let alias = aliases.find(|(alias, other)| *alias == path.path() && other != call);
        let pattern: Option<PathPattern> = path.path().parse().ok();
        let mut operations = config
            .operation
            .iter()
            .filter(|_| shares_host && !path.has_query());
        let operation =
            operations.find(|it| pattern.as_ref().is_some_and(|path| path.is_same(&it.path)));
        report! { found;
            [key] if path.path() == flow.path =>
                "{path} overlaps with service.path {}; write another path in one of the two", flow.path;
            [key] if let Some((other_key, _, other)) = other =>
                "{path} overlaps with {other} of {other_key}: one request would be for both; write paths that differ, or queries \
                 that exclude each other";
            [key] if let Some((alias, _)) = alias =>
                "{path} overlaps with the alias {alias}, which is another call; write another path, or set \
                 service.aliases = false";
            [key] if let Some(operation) = operation =>
                "{path} overlaps with the [[operation]] {}: no request would come to it; remove one of the two", operation.path;
        }
    }
}

/// Pages on further origins are as protected as those on base_url.
fn page_urls(config: &Config, found: &mut Findings) {
    let service = &config.service;
    let base = service.base_url.as_ref();
    let other_scheme = |url: &&Origin| base.is_some_and(|base| base.scheme != url.scheme);
    let same = |url: &&Origin| base.is_some_and(|base| base.authority() == url.authority());
    let in_clear = |url: &&Origin| url.is_in_clear() && !service.allow_http;
    let urls = || service.page_urls.iter();
    report! { found;
        ["service.page_urls"] if base.is_none() && !service.page_urls.is_empty() =>
            "service.base_url is missing, beside which these are; write it";
        ["service.page_urls"] if let Some(url) = urls().find(same) =>
            "{url} has the host of service.base_url, which has the pages already; leave it out";
        ["service.page_urls"] if let Some(url) = urls().find(in_clear) =>
            "{url} would carry passwords in clear; write https://";
        ["service.page_urls"] if let Some(url) = urls().find(other_scheme) =>
            "{url} has another scheme than service.base_url; write the same one";
    }
}

fn token_response(config: &Config, found: &mut Findings) {
    let tokens = &config.token_response;
    let mut names = BTreeSet::new();
    let mut all = tokens.profile.iter().map(|parameter| &parameter.0);
    let fixed = [&tokens.user_id_parameter, &tokens.screen_name_parameter];
    let twice = all.find(|name| !names.insert(*name) || fixed.contains(name));
    let keys = ["tokens.user_id_parameter", "tokens.screen_name_parameter"];
    for (key, name) in keys.into_iter().zip(fixed) {
        report! { found;
            [key] if !is_parameter(name) => "expected {PARAMETER}";
        }
    }
    let between = &config.scope.separators;
    let is_in_names = |separator: char| separator.to_string().parse::<Permission>().is_ok();
    report! { found;
        ["scope.separators"] if between.is_empty() || !between.is_ascii() || between.contains(is_in_names) =>
            "expected characters that no permission has, such as \" ,\"";
        ["tokens.user_id_parameter"] if tokens.user_id_parameter == tokens.screen_name_parameter =>
            "both are {}; give each a name of its own", tokens.user_id_parameter;
        ["tokens.profile"] if let Some(name) = twice =>
            "the response has {name} already; write {name:?} under another name, as in \"other={name}\"";
    }
}

/// An API that stays the provider has the flow, the users and every credential.
fn guard(config: &Config, found: &mut Findings) {
    let is_guard = config.is_guard();
    let forwards = config.identity.forward_authorization;
    let unlisted = &config.operations.unlisted;
    report! { found;
        ["service.flow"] if is_guard && config.flow_at() == FlowAt::Here =>
            "service.role is \"guard\", so that the flow is the API's; leave it out, or set service.role = \"provider\"";
        ["identity.forward_authorization"] if is_guard && forwards == Some(false) =>
            "service.role is \"guard\": the API verifies its calls itself and needs the credentials; leave it out";
        ["operations.unlisted"] if is_guard && unlisted.as_ref().is_some_and(|it| it.0.contains(&CallerKind::User)) =>
            "service.role is \"guard\": users log in at the API, and to this program they are \"anonymous\"; leave \"user\" out";
        [FORWARD_AUTH] if is_guard && config.forward_auth.listen.is_some() =>
            "service.role is \"guard\": the API may read credentials in a body, which another gateway does not show whole; let the \
             gateway send the requests through listen.address instead";
    }
    for (index, operation) in config.operation.iter().enumerate().filter(|_| is_guard) {
        let key = |name: &str| format!("operation[{}].{name}", index + 1);
        report! { found;
            [&key("forward_authorization")] if operation.forward_authorization == Some(false) =>
                "service.role is \"guard\": the API verifies its calls itself and needs the credentials; leave it out";
            [&key("access")] if operation.access.contains(&CallerKind::User) =>
                "service.role is \"guard\": users log in at the API, and to this program they are \"anonymous\"; leave \"user\" out";
        }
    }
}

fn upstream(config: &Config, found: &mut Findings) {
    let upstream = &config.upstream;
    let tls = &config.upstream_tls;
    let origin = config.api_on_network().map(|url| &url.origin);
    let over_tls = origin.is_some_and(Origin::is_https);
    let written = [
        ("upstream.tls.ca", !tls.ca.is_empty()),
        ("upstream.tls.certificate", tls.certificate.is_some()),
        ("upstream.tls.key", tls.key.is_some()),
        ("upstream.tls.server_name", tls.server_name.is_some()),
    ];
    for (key, written) in written {
        report! { found;
            [key] if written && !over_tls =>
                "upstream.api_url is not https://, so there is no TLS; leave it out, or write https://";
        }
    }
    let base = config.service.base_url.as_ref();
    report! { found;
        ["upstream.tls.key"] if tls.certificate.is_some() != tls.key.is_some() =>
            "upstream.tls.certificate and its key go together; set both or neither";
        ["upstream.api_url"] if let Some(base) = base.filter(|base| origin == Some(base)) =>
            "{base} is service.base_url, so requests would come back here or callers reach the API without \
             countersign; write an address of the API's own (with upstream.tls.server_name and upstream.host, if it \
             has the public name)";
    }
    for pattern in &upstream.drop_headers.0 {
        report! { found;
            ["upstream.drop_headers"] if let Some(name) = pattern.framing_field() =>
                "HTTP messages need {name}; remove {} from the list", pattern.as_str();
        }
    }
}

fn store(config: &Config, found: &mut Findings) {
    let store = &config.store;
    let url = store.url.expose();
    let problem = match store.backend {
        StoreBackend::Sqlite => None,
        StoreBackend::Postgres => postgres::PostgresUrl::parse(url)
            .err()
            .map(|e| e.to_string()),
    };
    let shared = config.nonce_scope() == NonceScope::Shared;
    let nonces = config.nonce.url.as_ref();
    let no_redis = nonces.and_then(|url| redis::RedisUrl::parse(url.expose()).err());
    report! { found;
        ["store.url"] if let Some(problem) = problem => "{problem}";
        ["nonce.url"] if nonces.is_some() && config.store.file().is_some() =>
            "shared nonces are for store.backend = \"postgres\"; leave it out: SQLite is for one process";
        ["nonce.url"] if nonces.is_some() && !shared =>
            "nonce.scope is \"local\", so no replicas share nonces; leave it out, or set nonce.scope = \"shared\"";
        ["nonce.url"] if let Some(problem) = no_redis => "{problem}";
    }
    let Some(file) = config.store.file() else {
        return;
    };
    let problem = store.url.sqlite_problem();
    let same = problem.is_none() && config.nonce_path() == Some(file);
    report! { found;
        ["store.url"] if let Some(problem) = problem => "{problem}";
        ["nonce.scope"] if shared =>
            "a SQLite file is for one process; leave it out, or set store.backend = \"postgres\"";
        ["nonce.path"] if same => "this is the store's own file; write another";
    }
}

fn lookup(config: &Config, found: &mut Findings) {
    let lookup = &config.lookup;
    let url = lookup.url.as_ref();
    let is_https = url.is_some_and(EndpointUrl::is_https);
    let files = [
        ("store.lookup.secret_file", lookup.secret_file.is_some()),
        ("store.lookup.ca", !lookup.ca.is_empty()),
        ("store.lookup.certificate", lookup.certificate.is_some()),
        ("store.lookup.private_key", lookup.private_key.is_some()),
    ];
    let written = files.iter().find(|(_, written)| *written);
    report! { found;
        ["store.lookup.url"] if let Some((key, _)) = written.filter(|_| url.is_none()) =>
            "missing, since {key} is set; write the URL of the application's endpoint";
        ["store.lookup.url"] if url.is_some_and(EndpointUrl::is_in_clear) =>
            "secrets would cross the network in clear; write https://";
        ["store.lookup.secret_file"] if url.is_some() && lookup.secret_file.is_none() =>
            "missing, since store.lookup.url is set; write the path of a file that openssl rand -hex 32 made";
        ["store.lookup.private_key"] if lookup.certificate.is_some() != lookup.private_key.is_some() =>
            "store.lookup.certificate and its key go together; set both or neither";
    }
    for (key, written) in &files[1..] {
        report! { found;
            [key] if *written && url.is_some() && !is_https =>
                "store.lookup.url is not https://, so there is no TLS; leave it out, or write https://";
        }
    }
}

fn login(config: &Config, found: &mut Findings) {
    let (check, login) = (&config.password_check, &config.login);
    let header = check.backend == LoginMethod::Header;
    let (http, url) = (check.backend == LoginMethod::Http, check.url.as_ref());
    let in_clear = url.is_some_and(EndpointUrl::is_in_clear);
    report! { found;
        ["login.url"] if http && url.is_none() =>
            "missing, since login.backend is \"http\"; write the URL that checks passwords";
        ["login.url"] if !http && url.is_some() =>
            "login.backend is \"local\", which asks no URL; leave it out, or set login.backend = \"http\"";
        ["login.user_header"] if header && login.user_header.is_none() =>
            "missing, since login.backend is \"header\"; write the name of the field that the proxy in front sets";
        ["listen.trusted_proxies"] if header && config.proxies.trusted_proxies.is_empty() =>
            "no proxy is trusted, but login.backend is \"header\"; write the address of the proxy in front";
        ["login.user_header"] if let Some(name) = login.user_header.as_ref().filter(|name| is_reserved(name)) =>
            "HTTP uses {name} itself; write another name";
        ["login.url"] if http && in_clear =>
            "passwords would cross the network in clear; write https://";
    }
}

/// The fields that identify callers, with their keys.
fn identity_names(config: &Config) -> Vec<(&'static str, &HeaderName)> {
    let identity = &config.identity;
    let mut names = vec![
        ("identity.user_header", &identity.user_header),
        ("identity.consumer_header", &identity.consumer_header),
        ("identity.permissions_header", &identity.permissions_header),
        ("identity.kind_header", &identity.kind_header),
    ];
    let assertion = config.assertion.header.as_ref();
    names.extend(assertion.map(|name| ("identity.assertion.header", name)));
    names
}

/// Fields that this program sets itself.
const SET_HERE: [&str; 4] = [
    "countersign-hop",
    "traceparent",
    "tracestate",
    "x-request-id",
];

/// The names differ, also for an API that folds names.
fn identity_headers(config: &Config, found: &mut Findings) {
    let names = identity_names(config);
    for (index, (key, name)) in names.iter().enumerate() {
        let folded = fold(name);
        let is_same = |other: &&(&str, &HeaderName)| fold(other.1) == folded;
        report! { found;
            [key] if is_reserved(name) => "HTTP uses {name} itself; write another name";
            [key] if SET_HERE.contains(&folded.as_str()) => "countersign sets {name} itself; write another name";
            [key] if let Some((other, _)) = names[..index].iter().find(is_same) =>
                "an API may take {name} for the header of {other}; write names that differ in letters or digits";
        }
    }
}

/// Signed identities have a key and an audience.
fn signed_identity(config: &Config, found: &mut Findings) {
    let (assertion, exchange) = (&config.assertion, &config.exchange);
    let (is_on, has_keys) = (assertion.header.is_some(), !assertion.key_files.is_empty());
    let audiences = [
        ("identity.assertion.audience", &assertion.audience),
        ("exchange.audience", &exchange.audience),
    ];
    for (key, audience) in audiences {
        report! { found;
            [key] if audience.as_ref().is_some_and(String::is_empty) => "it is empty; name the recipient";
        }
    }
    report! { found;
        ["identity.assertion.key_files"] if is_on && !has_keys =>
            "missing, since identity.assertion.header is set; name the file of a private key, which openssl genpkey \
             -algorithm ed25519 makes";
        ["identity.assertion.audience"] if is_on && config.assertion_audience().is_none() =>
            "missing, since upstream.api_url has no origin; name the recipient of the assertion";
        ["exchange.audience"] if exchange.audience.is_some() && !has_keys =>
            "nothing signs the tokens of the exchange; name a key in identity.assertion.key_files";
    }
}

/// Bearer tokens come over TLS, and each issuer is checked in one way.
fn bearer(config: &Config, found: &mut Findings) {
    let issuers = &config.issuer;
    let is_on = config.bearer.own || !issuers.is_empty();
    let service = &config.service;
    let base = service.base_url.clone().map(HttpUrl::from);
    let base = base.iter().filter(|_| service.public_api_urls.is_empty());
    let mut urls = service.public_api_urls.iter().chain(base);
    let in_clear = urls.find(|url| url.origin.is_in_clear());
    report! { found;
        ["service.public_api_urls"] if let Some(url) = in_clear.filter(|_| is_on) =>
            "Bearer tokens would come to {url} in clear; write https://, or leave [bearer] out";
        ["bearer.own"] if config.bearer.own && config.exchange.audience.is_none() =>
            "there is no exchange whose tokens it could accept; set exchange.audience, or leave it out";
    }
    for (index, issuer) in issuers.iter().enumerate() {
        let key = |name: &str| item_key("bearer.issuer", index, name);
        let (keys, asked) = (&issuer.jwks_url, &issuer.introspection_url);
        let ways = [keys.is_some(), issuer.jwks_file.is_some(), asked.is_some()];
        let ways = ways.into_iter().filter(|is_written| *is_written).count();
        let earlier = &issuers[..index];
        let is_own = |origin: &Origin| config.bearer.own && origin.to_string() == issuer.issuer.0;
        let client = [
            issuer.client_id.is_some(),
            issuer.client_secret_file.is_some(),
        ];
        let url = keys.as_ref().or(asked.as_ref());
        let is_https = url.is_some_and(|url| url.server.tcp().is_some_and(Origin::is_https));
        report! { found;
            [&key("issuer")] if earlier.iter().any(|other| other.issuer == issuer.issuer) =>
                "it is written twice; write it once, with all its audiences";
            [&key("issuer")] if service.base_url.as_ref().is_some_and(is_own) =>
                "it is service.base_url, the issuer of our exchange; leave it out";
            [&key("jwks_url")] if ways != 1 =>
                "each issuer has one of jwks_url, jwks_file and introspection_url; write one";
            [&key("jwks_url")] if keys.as_ref().is_some_and(EndpointUrl::is_in_clear) =>
                "who changes the keys on their way could sign tokens; write https://";
            [&key("introspection_url")] if asked.as_ref().is_some_and(EndpointUrl::is_in_clear) =>
                "tokens would cross the network in clear; write https://";
            [&key("introspection_url")] if asked.is_some() && earlier.iter().any(|it| it.introspection_url.is_some()) =>
                "another issuer has one, and a token that is not a JWT does not say whose it is; leave one out";
            [&key("audience_required")] if !issuer.audience_required && asked.is_none() =>
                "a JWT always names its audience; leave it out";
            [&key("client_id")] if client != [asked.is_some(); 2] =>
                "client_id, client_secret_file and introspection_url go together; write all of them or none";
            [&key("ca")] if !issuer.ca.is_empty() && !is_https =>
                "no URL of this issuer is https://, so there is no TLS; leave it out, or write https://";
        }
    }
}

/// The dates of the end of OAuth 1.0a are in their order, and its consumers may have their keys.
fn sunset(config: &Config, found: &mut Findings) {
    let sunset = &config.sunset;
    let deprecation = sunset.deprecation.and_then(|deprecation| deprecation.0);
    report! { found;
        ["sunset.deprecation"] if deprecation > sunset.date && sunset.date.is_some() =>
            "this is later than sunset.date; what ends is deprecated first";
    }
    // The encoding decides which keys there are, and is known only now.
    let wrong_key = |keys: &[ConsumerKey]| {
        let checked = |key: &ConsumerKey| config.identity.encoding.check_key(key.as_str()).err();
        keys.iter().find_map(checked)
    };
    report! { found;
        ["sunset.consumers"] if let Some(error) = wrong_key(&sunset.consumers) =>
            "one of them is not the key of a consumer: {error}";
    }
    for (index, brown_out) in config.brown_out.iter().enumerate() {
        report! { found;
            [&item_key("sunset.brownout", index, "consumers")] if let Some(error) = wrong_key(&brown_out.consumers) =>
                "one of them is not the key of a consumer: {error}";
            [&item_key("sunset.brownout", index, "until")] if brown_out.until <= brown_out.from =>
                "it is over before it begins; write a later moment";
        }
    }
}

fn permissions(config: &Config, found: &mut Findings) {
    let entries = &config.permission;
    for (index, entry) in entries.iter().enumerate() {
        let id = language::permission_id(&entry.name);
        let mut others = entries[..index].iter().map(|other| &other.name);
        let same = others.find(|other| language::permission_id(other) == id);
        let key = item_key("permission", index, "name");
        report! { found;
            [&key] if same == Some(&entry.name) => "{} is declared twice; declare it once", entry.name;
            [&key] if let Some(other) = same.filter(|other| **other != entry.name) =>
                "{} and {other} would have the same message, {id}; name one of them otherwise", entry.name;
        }
    }
}

fn operations(config: &Config, found: &mut Findings) {
    let operations = &config.operation;
    for (index, operation) in operations.iter().enumerate() {
        let permission = operation.permission.as_ref();
        let is_declared =
            |name: &Permission| config.permission.iter().any(|entry| entry.name == *name);
        let mut others = operations[..index].iter().enumerate();
        let settings = config.paths.ambiguities();
        let is_rejected = |key: &&str| settings.contains(&(*key, Ambiguous::Reject));
        let mut needed = operation
            .path
            .ambiguities()
            .filter_map(AmbiguousPath::setting);
        report! { found;
            [&item_key("operation", index, "path")] if let Some(key) = needed.find(is_rejected) =>
                "{} never matches while {key} is \"reject\"; set it to \"data\", or correct the path", operation.path;
            [&item_key("operation", index, "permission")]
                if let Some(name) = permission.filter(|name| !is_declared(name)) =>
                "no [[permission]] declares {:?}; correct it, or add [[permission]] with this name", name.as_str();
            [&item_key("operation", index, "path")]
                if let Some((first, other)) = others.find(|(_, other)| is_same_call(operation, other)) =>
                "{} is listed already with the same method, as {} of operation {}; list each path and method once",
                operation.path, other.path, first + 1;
            [&item_key("operation", index, "framed_by")] if !operation.launch && !operation.framed_by.is_empty() =>
                "only the page of a failed launch may be framed; set launch = true, or leave it out";
            [&item_key("operation", index, "launch")]
                if operation.launch && !operation.methods.is_empty() && !operation.methods.contains(&Method::POST) =>
                "a browser launches it with POST, which methods does not have; add it, or leave launch out";
        }
    }
}

/// Fields with signed parameters are neither ours nor dropped, and each has one parameter.
fn parameter_headers(config: &Config, found: &mut Findings) {
    let mut ours = identity_names(config);
    let (user, display_name) = (&config.login.user_header, &config.login.display_name_header);
    ours.extend(user.as_ref().map(|it| ("login.user_header", it)));
    ours.extend(
        display_name
            .as_ref()
            .map(|it| ("login.display_name_header", it)),
    );
    let dropped = FoldedNames::new(config.upstream.drop_headers.0.iter().map(|it| it.as_str()));
    for (index, operation) in config.operation.iter().enumerate() {
        let key = item_key("operation", index, "headers");
        let headers = &operation.headers.0;
        for (at, ParameterHeader { name, .. }) in headers.iter().enumerate() {
            let folded = fold(name);
            let taken = ours.iter().find(|(_, taken)| fold(taken) == folded);
            let is_set_here = is_reserved(name) || SET_HERE.contains(&folded.as_str());
            let is_twice = headers[..at].iter().any(|it| fold(&it.name) == folded);
            report! { found;
                [&key] if is_set_here => "{name} is a field of HTTP or of countersign itself; write another name";
                [&key] if let Some((owner, _)) = taken => "{name} is the header of {owner}; write another name";
                [&key] if dropped.contains(name.as_str().as_bytes()) =>
                    "{name} is in upstream.drop_headers; write another name";
                [&key] if is_twice => "{name} is there twice, to an API that folds names; leave one out";
            }
        }
    }
}

fn limits(config: &Config, found: &mut Findings) {
    let limits = &config.limits;
    let (target, head) = (limits.target_bytes, limits.head_bytes);
    let (form, memory) = (limits.form_bytes, limits.form_memory);
    report! { found;
        ["operations.forbidden_status"] if !matches!(config.operations.forbidden_status, 403 | 404) =>
            "expected 404 or 403";
        ["limits.target_bytes"] if target > head =>
            "{} is over limits.head_bytes {}, which includes it; lower the one or raise the other",
            format_size(target), format_size(head);
        // server::buffered lets one caller have a quarter.
        ["limits.form_bytes"] if form > memory / 4 =>
            "{} is over a quarter of limits.form_memory {}, which is all that one address gets; lower the one or raise \
             the other", format_size(form), format_size(memory);
    }
}

/// Whether a process can bind only one of the two.
fn overlap(one: &ListenAddress, other: &ListenAddress) -> bool {
    let (Some(one), Some(other)) = (one.tcp(), other.tcp()) else {
        return one == other;
    };
    // `[::]` takes IPv4 as well.
    let takes = |all: IpAddr, ip: IpAddr| {
        all == ip || all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4())
    };
    one.port() == other.port()
        && one.port() != 0
        && (takes(one.ip(), other.ip()) || takes(other.ip(), one.ip()))
}

/// The whole key of an item's key, counted from 1.
fn item_key(list: &str, index: usize, key: &str) -> String {
    format!("{list}[{}].{key}", index + 1)
}

/// Whether both list one path and method.
fn is_same_call(one: &OperationSettings, other: &OperationSettings) -> bool {
    let shared = |method| other.methods.contains(method);
    one.path.is_same(&other.path)
        && (one.methods.is_empty() || other.methods.is_empty() || one.methods.iter().any(shared))
}
