//! What is valid and unwise.

use std::fmt;

use super::{
    ApiUrl, BaseUrl, CallerKind, Config, Enforcement, ListenAddress, MethodName, NonceScope,
    OnLost, Operation, Origin, Scheme, StoreBackend, Unlisted, UpgradeProtocol, available,
    url::is_loopback,
};
use crate::{oauth::SignatureMethod, store::record::Dialect};

/// A setting that a careful operator would look at again. Prints as one line that names the key and the mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The key.
    pub key: String,
    /// What is unwise about it, and the mend.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl Config {
    /// What `check` and `serve` warn of, in the order of the sections.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Warnings(Vec::new());
        warnings.listener(self);
        warnings.service(self);
        warnings.upstream(self);
        warnings.signature(self);
        warnings.nonce(self);
        warnings.store(self);
        warnings.operations(self);
        warnings.admin(self);
        // Nobody is told to set what cannot be set.
        warnings
            .0
            .retain(|warning| available::is_available(&warning.key));
        warnings.0
    }
}

struct Warnings(Vec<Warning>);

impl Warnings {
    fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(Warning {
            key: key.into(),
            message: message.into(),
        });
    }

    fn listener(&mut self, config: &Config) {
        let listen = &config.listen;
        let open = listen
            .address
            .iter()
            .find(|address| !is_loopback(address.ip()));
        if let Some(address) = open
            && !config.listens_with_tls()
            && listen.trusted_proxies.is_empty()
        {
            self.add(
                "listen.address",
                format!(
                    "{address} is reached from other machines without TLS; set listen.tls, or \
                     listen.trusted_proxies if a proxy in front ends TLS"
                ),
            );
        }
        for network in &listen.trusted_proxies {
            if network.prefix_len() == 0 {
                self.add(
                    "listen.trusted_proxies",
                    format!(
                        "{network} believes everybody's forwarded fields; name the proxies alone"
                    ),
                );
            }
        }
        if listen.drain.is_zero() {
            self.add(
                "listen.drain",
                "running requests are cut at SIGTERM; give them some seconds",
            );
        }
    }

    fn service(&mut self, config: &Config) {
        let service = &config.service;
        let clear = |origin: &Origin| origin.scheme == Scheme::Http && !origin.is_loopback();
        if let BaseUrl::Url(origin) = &service.base_url {
            if clear(origin) {
                self.add(
                    "service.base_url",
                    format!(
                        "passwords and cookies cross the network in clear to {origin}; use https"
                    ),
                );
            } else if service.allow_http {
                self.add(
                    "service.allow_http",
                    "is not needed for this base_url; leave it out, so that a later http:// is refused",
                );
            }
        }
        if let BaseUrl::Url(origin) = &service.base_url
            && origin.scheme == Scheme::Https
            // Where others reach the listener, that is warned of already.
            && config.listen.address.iter().all(|address| is_loopback(address.ip()))
            && !config.listens_with_tls()
            && config.listen.trusted_proxies.is_empty()
        {
            self.add(
                "service.base_url",
                format!(
                    "{origin} is https, but nothing here speaks TLS or believes a proxy that does: \
                     requests count as unencrypted, and all come from the proxy's address; set \
                     listen.tls, or listen.trusted_proxies"
                ),
            );
        }
        for url in &service.public_api_urls {
            if matches!(&config.upstream.api_url, ApiUrl::Http(api) if api.origin == url.0.origin) {
                self.add(
                    "service.public_api_urls",
                    format!(
                        "{} is the origin of upstream.api_url too: requests come back here, or \
                         callers reach the API without countersign; write an address of the API's \
                         own",
                        url.0
                    ),
                );
            }
            if clear(&url.0.origin) {
                self.add(
                    "service.public_api_urls",
                    format!(
                        "{} is not encrypted: signatures stop forgery, but anybody on the way \
                         reads along; use https",
                        url.0
                    ),
                );
            }
        }
        if self.one_origin(config) {
            self.add(
                "service.public_api_urls",
                "API and pages share one origin, so a script in an answer of the API can press \
                 \"allow\" for the user; give the API a host of its own",
            );
        }
    }

    /// Whether pages and protected calls share an origin; a machine's own loopback is for trying things.
    fn one_origin(&self, config: &Config) -> bool {
        let service = &config.service;
        match &service.base_url {
            BaseUrl::FromListener => false,
            BaseUrl::Url(origin) if origin.is_loopback() => false,
            BaseUrl::Url(origin) => {
                service.public_api_urls.is_empty()
                    || service
                        .public_api_urls
                        .iter()
                        .any(|url| url.0.origin == *origin)
            }
        }
    }

    fn upstream(&mut self, config: &Config) {
        let upstream = &config.upstream;
        let ApiUrl::Http(url) = &upstream.api_url else {
            return;
        };
        if url.origin.scheme == Scheme::Http && !url.origin.is_loopback() {
            self.add(
                "upstream.api_url",
                format!(
                    "{} is not encrypted, and whoever reaches it can claim to be any user; use \
                     https:// with mutual TLS, a Unix socket, or a network that only countersign \
                     can enter",
                    url.origin
                ),
            );
        }
        if config.identity.forward_authorization
            && url.origin.scheme == Scheme::Http
            && !url.origin.is_loopback()
        {
            self.add(
                "identity.forward_authorization",
                "the credentials go on to the API unencrypted; leave it out unless the API \
                 verifies them itself",
            );
        }
    }

    fn signature(&mut self, config: &Config) {
        let signature = &config.signature;
        if signature.methods.contains(&SignatureMethod::Plaintext) {
            self.add(
                "signature.methods",
                "PLAINTEXT sends the secrets themselves and protects nothing against replay; take \
                 it off the list",
            );
        }
        let strong = |method: &SignatureMethod| {
            !matches!(
                method,
                SignatureMethod::HmacMd5 | SignatureMethod::Plaintext
            )
        };
        if !signature.methods.iter().any(strong) {
            self.add(
                "signature.methods",
                "nothing but HMAC-MD5 and PLAINTEXT is accepted; add HMAC-SHA256 or HMAC-SHA1",
            );
        }
        if signature.timestamp_window > std::time::Duration::from_secs(3_600) {
            self.add(
                "signature.timestamp_window",
                format!(
                    "every nonce is remembered for twice {}, which costs memory; 300s does for \
                     clocks that are set",
                    super::format_duration(signature.timestamp_window)
                ),
            );
        }
        if signature.default_dialect == Dialect::Legacy {
            self.add(
                "signature.default_dialect",
                "anybody who sees a signed request can add a query to it; set the dialect of \
                 the consumers that need it instead",
            );
        }
        if signature.enforcement == Enforcement::Observe {
            self.add(
                "signature.enforcement",
                "protected calls are let through whatever their signature; set \"enforce\" when \
                 the log shows no failures of honest consumers",
            );
        }
        if signature.advice == super::Advice::Full {
            self.add(
                "signature.advice",
                "answers repeat the base string to whoever asks; set \"hint\" when consumers \
                 have found their mistakes",
            );
        }
    }

    fn nonce(&mut self, config: &Config) {
        if config.nonce.on_lost == OnLost::Accept {
            self.add(
                "nonce.on_lost",
                "after the window's file is lost, requests from before can be replayed; leave it \
                 out once the service is up",
            );
        }
        let shared_store = config.store.backend != StoreBackend::Sqlite;
        if shared_store && config.nonce_scope() == NonceScope::Local {
            self.add(
                "nonce.scope",
                "each replica on this store remembers its own nonces, so a request passes once at \
                 each; set \"shared\", or run one process",
            );
        }
        if config
            .nonce_path()
            .is_some_and(|path| path.starts_with("/tmp"))
        {
            self.add(
                "nonce.path",
                "what lies in /tmp may be gone after a restart, and signed requests then wait; \
                 put it on a disk that stays",
            );
        }
    }

    fn store(&mut self, config: &Config) {
        if config.store.encryption_key_file.is_none() {
            self.add(
                "store.encryption_key_file",
                "secrets stand in the store as they are, and in every backup of it; set the file \
                 of a key",
            );
        }
        if config.cache.stale_if_error > std::time::Duration::from_secs(300) {
            self.add(
                "cache.stale_if_error",
                "a credential revoked while the store is away works on that long; make it a minute \
                 at most",
            );
        }
        if config.cache.max_entries == 0 || config.cache.ttl.is_zero() {
            self.add(
                if config.cache.max_entries == 0 {
                    "cache.max_entries"
                } else {
                    "cache.ttl"
                },
                "without a cache every request asks the store twice; leave it out",
            );
        }
    }

    fn operations(&mut self, config: &Config) {
        for (index, operation) in config.operation.iter().enumerate() {
            self.operation(index, operation);
            let confusable = |other: &&Operation| {
                operation.path.is_confusable(&other.path)
                    && share_a_method(operation, other)
                    && !have_same_rules(config, operation, other)
            };
            if let Some(other) = config.operation[..index].iter().find(confusable) {
                self.add(
                    format!("operation[{}].path", index + 1),
                    format!(
                        "{} and {} can meet at one path and have different rules, so an API that \
                         ignores case, a trailing dot or an extension serves one under the rules \
                         of the other; give both the same rules, or see that the API compares \
                         paths exactly",
                        operation.path, other.path
                    ),
                );
            }
        }
        for (index, entry) in config.permission.iter().enumerate() {
            let used = |operation: &Operation| operation.permission.as_ref() == Some(&entry.name);
            if !config.operation.iter().any(used) {
                self.add(
                    format!("permission[{}].name", index + 1),
                    format!(
                        "no [[operation]] needs {}, so granting it changes nothing; use it or \
                         remove it",
                        entry.name
                    ),
                );
            }
        }
        match config.operations.unlisted {
            Some(Unlisted::Anonymous) => self.add(
                "operations.unlisted",
                "whatever no [[operation]] lists is open to everybody; set \"nobody\" and list \
                 what is public",
            ),
            Some(kind @ (Unlisted::Consumer | Unlisted::Application | Unlisted::User))
                if !config.operation.is_empty() =>
            {
                self.add(
                    "operations.unlisted",
                    format!(
                        "whatever no [[operation]] lists is open to every {} without a permission; \
                         set \"nobody\" and list what is meant",
                        kind.as_str()
                    ),
                );
            }
            _ => {}
        }
    }

    fn operation(&mut self, index: usize, operation: &Operation) {
        let key = |name: &str| format!("operation[{}].{name}", index + 1);
        let path = &operation.path;
        if operation.enforcement == Some(Enforcement::Observe) {
            self.add(
                key("enforcement"),
                format!(
                    "{path} is let through whatever the signature; set \"enforce\" after the trial"
                ),
            );
        }
        let takes_permission =
            |kind: &CallerKind| matches!(kind, CallerKind::Consumer | CallerKind::Application);
        if operation.permission.is_some() && !operation.access.iter().any(takes_permission) {
            self.add(
                key("permission"),
                format!(
                    "{path} is open to no consumer, and nobody else needs a permission; leave it \
                     out, or add \"consumer\" to access"
                ),
            );
        }
        if operation.access.contains(&CallerKind::Anonymous) && operation.permission.is_some() {
            self.add(
                key("access"),
                format!("anybody can call {path} without the permission that it asks of consumers"),
            );
        }
        let get = operation
            .methods
            .iter()
            .any(|method| method.as_str() == "GET");
        let upgrades = operation.upgrade.contains(&UpgradeProtocol::Websocket);
        if upgrades && !operation.methods.is_empty() && !get {
            self.add(
                key("upgrade"),
                format!(
                    "a WebSocket begins with GET, which {path} does not list; add GET to methods"
                ),
            );
        }
    }

    fn admin(&mut self, config: &Config) {
        if let ListenAddress::Tcp(address) = config.admin.listen
            && !is_loopback(address.ip())
        {
            self.add(
                "admin.listen",
                format!(
                    "{address} shows metrics and /verify to other machines; use loopback or a \
                     Unix socket, and admin.probe_listen for health checks"
                ),
            );
        }
        if !config.log.access {
            self.add(
                "log.access",
                "refused requests leave no trace; set it to true unless something in front logs \
                 them",
            );
        }
    }
}

/// Whether a request can be for either.
fn share_a_method(one: &Operation, other: &Operation) -> bool {
    // GET covers HEAD.
    let covered = |method: &MethodName| match method.as_str() {
        "HEAD" => "GET".to_owned(),
        method => method.to_owned(),
    };
    let mut methods = one.methods.iter().map(covered);
    one.methods.is_empty()
        || other.methods.is_empty()
        || methods.any(|method| {
            other
                .methods
                .iter()
                .map(covered)
                .any(|known| known == method)
        })
}

fn have_same_rules(config: &Config, one: &Operation, other: &Operation) -> bool {
    let within = |a: &Operation, b: &Operation| a.access.iter().all(|kind| b.access.contains(kind));
    let enforcement = |of: &Operation| of.enforcement.unwrap_or(config.signature.enforcement);
    one.permission == other.permission
        && within(one, other)
        && within(other, one)
        && enforcement(one) == enforcement(other)
        && one.upgrade == other.upgrade
}
