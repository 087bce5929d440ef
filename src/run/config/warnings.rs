//! Advice on settings that are valid and unwise.

use std::time::Duration;

use http::Method;

use super::{
    Config, FORWARD_AUTH,
    rules::{Finding, Findings, report},
};
use crate::{
    base::{settings::format_duration, text::names::Permission},
    provider::pages::settings::RegistrationMode,
    records::{
        nonce::{OnLost, redis, settings::NonceScope},
        store::postgres,
        values::record::Dialect,
    },
    request::{
        forward::settings::UpstreamHost,
        parse::origin::PrefixMode,
        policy::{
            access::CallerKind,
            operations::allowed_networks,
            settings::{Ambiguous, OperationSettings, Similar},
        },
        route::settings::FlowAt,
        verify::{Advice, settings::Enforcement},
    },
    wire::url::origin::is_loopback,
};

impl Config {
    /// The warnings of `check` and `serve`: of the environment, then in the order of the sections.
    pub fn warnings(&self) -> Vec<Finding> {
        let mut found = Findings(self.stray.clone());
        for warn in [
            listener,
            service,
            sessions,
            upstream,
            guard,
            signature,
            nonce,
            store,
            operations,
            registration,
            forward_auth,
            admin,
        ] {
            warn(self, &mut found);
        }
        found.0
    }

    /// Whether the listener is neither encrypted nor behind a proxy that is trusted to be.
    fn listens_in_clear(&self) -> bool {
        !self.listens_with_tls() && self.proxies.trusted_proxies.is_empty()
    }
}

fn listener(config: &Config, found: &mut Findings) {
    let listen = &config.listen;
    let mut addresses = listen.address.iter();
    let open = addresses.find(|address| !is_loopback(address.ip()));
    report! { found;
        ["listen.address"] if let Some(address) = open.filter(|_| config.listens_in_clear()) =>
            "{address} is reached from other machines without TLS; set listen.tls, or listen.trusted_proxies if a \
             proxy in front ends TLS";
    }
    for network in &config.proxies.trusted_proxies {
        report! { found;
            ["listen.trusted_proxies"] if network.prefix_len() == 0 =>
                "with {network}, forwarded fields of every caller are believed; name only the proxies";
        }
    }
}

fn service(config: &Config, found: &mut Findings) {
    let service = &config.service;
    let base = service.base_url.as_ref();
    let base_in_clear = base.filter(|origin| origin.is_in_clear());
    // If others can reach the listener, there is a warning already.
    let mut addresses = config.listen.address.iter();
    let all_loopback = addresses.all(|address| is_loopback(address.ip()));
    let unbelieved = base.filter(|it| it.is_https() && all_loopback && config.listens_in_clear());
    report! { found;
        ["service.base_url"] if let Some(origin) = base_in_clear =>
            "passwords and cookies cross the network in clear to {origin}; use https";
        ["service.base_url"] if let Some(origin) = unbelieved =>
            "{origin} is https, but nothing here speaks TLS or believes a proxy that does: requests count as \
             unencrypted, and all come from the proxy's address; set listen.tls, or listen.trusted_proxies";
    }
    for url in &service.public_api_urls {
        let api = config.api_on_network();
        let of_api = api.is_some_and(|api| api.origin == url.origin);
        report! { found;
            ["service.public_api_urls"] if of_api =>
                "{url} is the origin of upstream.api_url too: requests come back here, or callers reach the API \
                 without countersign; write an address of the API's own";
            ["service.public_api_urls"] if url.origin.is_in_clear() =>
                "{url} is not encrypted: signatures stop forgery, but others on the network can read the calls; use https";
        }
    }
    report! { found;
        ["pages.name"] if !config.is_guard() && config.pages.name.is_none() && base.is_some_and(|base| !base.is_loopback()) =>
            "it is not set: the pages ask for access to a {:?} account, a name that users may not know",
            config.responses.realm;
    }
    // A loopback address is only for trials.
    let has_consent = base.filter(|base| !base.is_loopback() && !config.is_guard());
    let shared = has_consent.is_some_and(|base| {
        let urls = &service.public_api_urls;
        urls.is_empty() || urls.iter().any(|url| url.origin == *base)
    });
    report! { found;
        ["service.public_api_urls"] if shared =>
            "API and pages share one origin, so a script in a response of the API can press \"allow\" for the user; \
             give the API a host of its own";
    }
}

/// A session cookie is sent to the host of the pages alone.
fn sessions(config: &Config, found: &mut Findings) {
    let service = &config.service;
    let base = service.base_url.as_ref().filter(|base| {
        let mut urls = service.public_api_urls.iter();
        !service.public_api_urls.is_empty() && urls.all(|url| url.origin != **base)
    });
    let admits_users = |operation: &OperationSettings| operation.access.contains(&CallerKind::User);
    let user =
        config.operation.iter().any(admits_users) || config.unlisted().contains(&CallerKind::User);
    report! { found;
        ["service.public_api_urls"] if let Some(base) = base.filter(|_| user) =>
            "none has the origin of base_url, {base}, so no user's session opens the operations that admit \"user\"; \
             add a URL of that origin, or remove \"user\"";
    }
}

fn upstream(config: &Config, found: &mut Findings) {
    let origin = config.api_on_network().map(|url| &url.origin);
    let origin = origin.filter(|origin| origin.is_in_clear());
    report! { found;
        ["upstream.api_url"] if let Some(origin) = origin =>
            "{origin} is not encrypted, and anybody who reaches it can claim to be any user; use https:// with mutual \
             TLS, a Unix socket, or a network that only countersign can enter";
        ["identity.forward_authorization"] if config.identity.forward_authorization == Some(true) && origin.is_some() =>
            "the credentials go on to the API unencrypted; leave it out unless the API verifies them itself";
    }
    for (index, operation) in config.operation.iter().enumerate() {
        report! { found;
            [&format!("operation[{}].forward_authorization", index + 1)]
                if operation.forward_authorization == Some(true) && origin.is_some() =>
                "the credentials of {} go on to the API unencrypted; leave it out unless the API reads them", operation.path;
        }
    }
}

/// An API that verifies its calls itself has to see them as they were signed.
fn guard(config: &Config, found: &mut Findings) {
    let api_path = config.api_on_network().map_or("", |url| &url.path);
    let stripped = config
        .service
        .public_api_urls
        .iter()
        .find(|url| config.service.prefix == PrefixMode::Strip && url.path != api_path);
    report! { found;
        ["upstream.host"] if config.is_guard() && config.upstream.host != UpstreamHost::Public =>
            "the API gets another host than consumers sign; leave it out unless the API is configured with its public URL";
        ["upstream.forwarded"] if config.is_guard() && !config.upstream.forwarded =>
            "an API that is not configured with its public URL learns scheme and host from X-Forwarded-*; leave it out";
        ["service.prefix"] if let Some(url) = stripped.filter(|_| config.is_guard()) =>
            "the API gets another path than consumers sign at {url}; set \"keep\", or give upstream.api_url the path that the API adds";
    }
}

fn signature(config: &Config, found: &mut Findings) {
    let signature = &config.signature;
    let window = signature.timestamp_window;
    report! { found;
        ["signature.methods"] if signature.accepts_plaintext() =>
            "PLAINTEXT sends the secrets themselves and protects nothing against replay; remove it from the list";
        ["signature.methods"] if signature.accepts_only_weak() =>
            "nothing but HMAC-MD5 and PLAINTEXT is accepted; add HMAC-SHA256 or HMAC-SHA1";
        ["signature.timestamp_window"] if window > Duration::from_secs(3_600) =>
            "every nonce is remembered for twice {}, which costs memory; 300s is enough for clocks that are set",
            format_duration(window);
        ["signature.default_dialect"] if signature.default_dialect == Dialect::Legacy =>
            "anybody who sees a signed request can add a query to it; set the dialect of the consumers that need it \
             instead";
        ["signature.enforcement"] if signature.enforcement == Enforcement::Observe =>
            "protected calls are let through whatever their signature; set \"enforce\" when the console's page \
             \"What enforcing would break\", or the log, shows no failures of honest consumers";
        ["service.flow"] if signature.enforcement == Enforcement::Enforce && config.flow_at() == FlowAt::Api && !config.is_guard() =>
            "requests to the flow of the API are let through whatever their signature; leave it out when ours takes its place";
        ["signature.advice"] if signature.advice == Advice::Full =>
            "responses repeat the base string to every caller; set \"hint\" when consumers have found their mistakes";
    }
}

fn nonce(config: &Config, found: &mut Findings) {
    let local = config.nonce_scope() == NonceScope::Local;
    let path = config.nonce_path();
    let redis = config.nonce.url.as_ref();
    let redis = redis.and_then(|url| redis::RedisUrl::parse(url.expose()).ok());
    report! { found;
        ["nonce.url"] if let Some(redis) = redis.filter(redis::RedisUrl::is_in_clear) =>
            "without TLS it is not checked that {redis} is that Redis, and the connection is not encrypted: an attacker on the way can read its \
             password and say that a used nonce is fresh; write rediss://";
        ["nonce.on_lost"] if config.nonce.on_lost == OnLost::Accept =>
            "after used nonces are lost, requests from before can be replayed; leave it out once the service is up";
        ["nonce.scope"] if local && config.store.file().is_none() =>
            "each replica on this store remembers its own nonces, so a request passes once at each; set \"shared\", \
             or run one process";
        ["nonce.path"] if local && path.is_some_and(|path| path.starts_with("/tmp")) =>
            "files in /tmp may be lost at a restart, and signed requests then wait; write a path on a permanent disk";
    }
}

fn store(config: &Config, found: &mut Findings) {
    let cache = &config.cache;
    let store = config.store.file().is_none().then_some(&config.store.url);
    let url = store.and_then(|url| postgres::PostgresUrl::parse(url.expose()).ok());
    report! { found;
        ["store.url"] if let Some(url) = url.filter(postgres::PostgresUrl::is_in_clear) =>
            "passwords and secrets cross the network to {} in clear; write sslmode=verify-full", url.location();
        ["store.encryption_key_file"] if config.store.encryption_key_file.is_empty() =>
            "secrets are not encrypted in the store and in every backup of it; set the file of a key";
        ["cache.stale_if_error"] if cache.stale_if_error > Duration::from_secs(300) =>
            "a credential revoked while the store is away keeps working that long; write one minute or less";
    }
}

fn operations(config: &Config, found: &mut Findings) {
    let is_rejected = config.paths.similar == Similar::Reject;
    for (index, operation) in config.operation.iter().enumerate() {
        self::operation(config, index, operation, found);
        let path = &operation.path;
        let other = config.operation[..index].iter().find(|other| {
            path.is_confusable(&other.path)
                && share_a_method(operation, other)
                && !have_same_rules(config, operation, other)
        });
        report! { found;
            [&format!("operation[{}].path", index + 1)] if let Some(other) = other.filter(|_| is_rejected) =>
                "{path} and {} can match one path and have different rules: a path that only letter case, white space or a dot \
                 at the end of a segment, the slash or an extension at its end tells from the narrower one is rejected \
                 (paths.similar)", other.path;
            [&format!("operation[{}].path", index + 1)] if let Some(other) = other.filter(|_| !is_rejected) =>
                "{path} and {} can match one path and have different rules, so an API that ignores case, a trailing dot \
                 or an extension serves one under the rules of the other; give both the same rules, or make sure that \
                 the API compares paths exactly", other.path;
        }
    }
    let paths = config.paths;
    let kinds = config.unlisted();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    report! { found;
        ["paths.encoded"] if paths.encoded == Ambiguous::Data =>
            "an API that decodes %2F before it splits a path, such as one of Flask, Django or PHP, reads /a%2Fb as /a/b, which may be \
             in no [[operation]]; make sure that the API splits first";
        ["paths.parameters"] if paths.parameters == Ambiguous::Data =>
            "an API that drops ;parameters, such as one of Java, reads /a;b as /a, which may be in no [[operation]]; make sure that \
             every path of the API that is not listed may be called";
        ["paths.empty_segments"] if paths.empty_segments == Ambiguous::Data =>
            "an API that merges slashes reads //a as /a, which may be in no [[operation]]; make sure that every path of the API \
             that is not listed may be called";
        // An API that is the provider has callers and checks of its own.
        ["operations.unlisted"] if kinds.contains(&CallerKind::Anonymous) && !config.is_guard() =>
            "calls that no [[operation]] lists are open to everybody; set \"nobody\" and list what is public";
        ["operations.unlisted"] if !kinds.is_empty() && !config.operation.is_empty() && !config.is_guard() =>
            "calls that no [[operation]] lists are open to every {} without a permission; set \"nobody\" and list what \
             is meant", names.join(" and ");
    }
}

fn operation(config: &Config, index: usize, operation: &OperationSettings, found: &mut Findings) {
    let key = |name: &str| format!("operation[{}].{name}", index + 1);
    let (path, access) = (&operation.path, &operation.access);
    let needs_permission = operation.permission.is_some();
    report! { found;
        [&key("enforcement")] if operation.enforcement == Some(Enforcement::Observe) =>
            "{path} is let through whatever the signature; set \"enforce\" after the trial";
        [&key("access")] if needs_permission && access.contains(&CallerKind::Anonymous) =>
            "anybody can call {path} without the permission that it asks of consumers";
        [&key("launch")] if operation.launch && !access.contains(&CallerKind::Application) =>
            "a launch has no token, and access of {path} has no \"application\", so that every launch is rejected; add it";
        [&key("framed_by")] if let Some(site) = operation.framed_by.iter().find(|site| site.is_in_clear()) =>
            "others on the network can read and change pages of {site}, and may be sent there with the message of a failed \
             launch; write https://";
    }
    let enforcement = config.enforcement_of(operation);
    let enforced = config
        .operation
        .iter()
        .find(|other| other.path == *path && config.enforcement_of(other) == Enforcement::Enforce);
    let has_post = operation.methods.is_empty() || operation.methods.contains(&Method::POST);
    report! { found;
        [&key("methods")] if enforcement == Enforcement::Observe && has_post && enforced.is_some() =>
            "another method of {path} is enforced, and some APIs take the method of a POST from its body (_method): a POST whose body \
             is not a form is enforced too, and a form with such a method";
    }
    let from = allowed_networks(&operation.from);
    report! { found;
        [&key("from")] if enforcement == Enforcement::Observe && !operation.from.is_empty() =>
            "{path} is to be called {from}, but calls that are only observed pass from everywhere; set its enforcement to \"enforce\"";
    }
}

/// Whether one method is allowed by both: `GET` also allows `HEAD`.
fn share_a_method(one: &OperationSettings, other: &OperationSettings) -> bool {
    let allows = |operation: &OperationSettings, method: &Method| {
        operation.methods.is_empty()
            || operation.methods.contains(method)
            || *method == Method::HEAD && operation.methods.contains(&Method::GET)
    };
    one.methods.is_empty()
        || one.methods.iter().any(|method| allows(other, method))
        || other.methods.iter().any(|method| allows(one, method))
}

fn have_same_rules(config: &Config, one: &OperationSettings, other: &OperationSettings) -> bool {
    let within = |a: &OperationSettings, b: &OperationSettings| {
        a.access.iter().all(|kind| b.access.contains(kind))
    };
    let enforcement = |of| config.enforcement_of(of);
    let forwards = |of: &OperationSettings| {
        let general = config.forwards_authorization();
        of.forward_authorization.unwrap_or(general)
    };
    let window = |of: &OperationSettings| {
        of.timestamp_window
            .unwrap_or(config.signature.timestamp_window)
    };
    one.permission == other.permission
        && within(one, other)
        && within(other, one)
        && enforcement(one) == enforcement(other)
        && one.from == other.from
        && one.upgrade == other.upgrade
        && forwards(one) == forwards(other)
        && one.headers == other.headers
        && one.body_hash == other.body_hash
        && window(one) == window(other)
}

/// Whoever can log in gets a consumer at once; an application needs no user's consent.
fn registration(config: &Config, found: &mut Findings) {
    let is_sensitive = |name: &Permission| {
        config
            .permission
            .iter()
            .any(|it| it.sensitive && it.name == *name)
    };
    let is_open = |it: &&OperationSettings| {
        it.access.contains(&CallerKind::Application)
            && !it.permission.as_ref().is_some_and(is_sensitive)
    };
    let open = config.operation.iter().find(is_open);
    let open = open.filter(|_| config.registration.mode == RegistrationMode::Open);
    report! { found;
        ["registration.mode"] if let Some(operation) = open =>
            "open: whoever can log in gets a consumer that may call {} without a user (access = \"application\"); give the operation a \
             permission that is sensitive, or set \"approval\"", operation.path;
    }
}

/// Only the proxy in front may describe requests.
fn forward_auth(config: &Config, found: &mut Findings) {
    let listen = config.forward_auth.listen.as_ref();
    let open = listen.filter(|at| at.tcp().is_some() && !at.is_loopback());
    report! { found;
        [FORWARD_AUTH] if let Some(address) = open =>
            "{address} is reached from other machines, and anybody who reaches it can describe any request, with any host \
             and address of a caller; use loopback or a Unix socket, or a network that only the proxy in front can enter";
    }
}

fn admin(config: &Config, found: &mut Findings) {
    let open = config.admin.listen.tcp();
    let open = open.filter(|_| !config.admin.listen.is_loopback());
    report! { found;
        ["admin.listen"] if let Some(address) = open =>
            "{address} shows metrics to other machines; use loopback or a Unix socket, and admin.probe_listen for \
             health checks";
        ["admin.token_file"] if let Some(address) = open.filter(|_| config.admin.token_file.is_some()) =>
            "the token crosses the network to {address} in clear; use loopback or a Unix socket, or a proxy with TLS in front";
        ["admin.read_token_file"] if config.admin.token_file.is_none() && config.admin.read_token_file.is_some() =>
            "without admin.token_file the admin API and the console are off; set that too";
        ["log.access"] if !config.log.access =>
            "rejected requests leave no trace; set it to true unless something in front logs them";
    }
}
