//! What a reload cannot change.

use super::Config;

/// Declares the keys that count from the start on, and what a reload does about them.
macro_rules! fixed {
    ($($section:ident.$key:ident)*) => {
        impl Config {
            /// Puts back what only a restart can change, so that this configuration is what the process does, and returns
            /// the keys that differed from `running`. A listener neither begins nor ceases to speak TLS.
            #[must_use]
            pub fn keep_fixed(&mut self, running: &Self) -> Vec<&'static str> {
                let mut kept = Vec::new();
                $(if self.$section.$key != running.$section.$key {
                    self.$section.$key.clone_from(&running.$section.$key);
                    kept.push(concat!(stringify!($section), ".", stringify!($key)));
                })*
                if self.listens_with_tls() != running.listens_with_tls() {
                    self.listen.tls = running.listen.tls.clone();
                    kept.push("listen.tls.certificate");
                }
                kept
            }
        }

        /// For the test that no key is forgotten.
        #[cfg(test)]
        const FIXED: &[&str] = &[$(concat!(stringify!($section), ".", stringify!($key))),*];
    };
}

// Whatever is not in this list is in the running process once `App::reload` has returned.
fixed! {
    listen.address
    listen.workers
    nonce.scope
    nonce.max_entries
    nonce.path
    nonce.on_lost
    store.backend
    store.url
    store.encryption_key_file
    cache.max_entries
    cache.ttl
    cache.negative_ttl
    cache.stale_if_error
    login.backend
    login.url
    admin.listen
    admin.probe_listen
    admin.token_file
    log.format
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        super::{SECTIONS, available::is_available, parse},
        *,
    };

    /// The keys that a reload applies: whoever adds one looks through `App::reload` first.
    const RELOADED: &[&str] = &[
        // The origins of `live::origins`.
        "listen.trusted_proxies",
        "listen.forwarded",
        // `App::drain` reads the configuration when it begins.
        "listen.drain",
        "listen.drain_delay",
        // TLS is made anew (ALPN), and so are the limits (prior knowledge).
        "listen.http2",
        "listen.tls.certificate",
        "listen.tls.key",
        "listen.tls.client_ca",
        // All that `live::live` makes anew.
        "service.base_url",
        "service.allow_http",
        "service.public_api_urls",
        "service.prefix",
        "service.realm",
        "service.path",
        "service.aliases",
        "upstream.api_url",
        "upstream.connect_timeout",
        "upstream.response_timeout",
        "upstream.idle_timeout",
        "upstream.max_idle",
        "upstream.http2",
        "upstream.host",
        "upstream.forwarded",
        "upstream.drop_headers",
        "upstream.tls.ca",
        "upstream.tls.certificate",
        "upstream.tls.key",
        "upstream.tls.server_name",
        "signature.methods",
        // `Nonces::ask_for_length`: a longer one once the mark covers it.
        "signature.timestamp_window",
        "signature.default_dialect",
        "signature.accept_description",
        "signature.enforcement",
        "signature.advice",
        "tokens.request_ttl",
        "tokens.access_ttl",
        "tokens.access_idle",
        "login.session_ttl",
        // The throttle is set.
        "login.max_failures",
        "identity.user_header",
        "identity.consumer_header",
        "identity.permissions_header",
        "identity.kind_header",
        "identity.forward_authorization",
        "identity.assertion.header",
        "identity.assertion.key_file",
        "permission.name",
        "permission.title",
        "permission.description",
        "operation.path",
        "operation.methods",
        "operation.permission",
        "operation.access",
        "operation.enforcement",
        "operation.upgrade",
        "operations.unlisted",
        "operations.forbidden_status",
        "paths.policy",
        "limits.head_bytes",
        "limits.head_fields",
        "limits.target_bytes",
        "limits.form_bytes",
        "limits.form_memory",
        "limits.form_fields",
        "limits.head_timeout",
        "limits.form_timeout",
        "limits.body_timeout",
        "limits.idle_timeout",
        "limits.tunnel_timeout",
        "limits.handshake_timeout",
        // The bounds of the listeners are set.
        "limits.connections",
        "limits.connections_per_address",
        "limits.concurrent_requests",
        "limits.http2_streams",
        "limits.requests_per_consumer",
        // The level is set.
        "log.level",
        "log.access",
    ];

    #[test]
    fn every_key_is_either_reloaded_or_needs_a_restart() {
        let known: Vec<String> = SECTIONS
            .iter()
            .flat_map(|section| section.full_keys().map(|(key, _)| key))
            .collect();
        let mut decided = BTreeSet::new();
        for key in RELOADED.iter().chain(FIXED) {
            assert!(decided.insert(*key), "{key} is both, or twice in one list");
            assert!(known.iter().any(|known| known == key), "{key} is no key");
        }
        for key in &known {
            assert!(
                decided.contains(key.as_str()),
                "{key}: does a reload apply it? Then it belongs to RELOADED, else to fixed!"
            );
        }
    }

    #[test]
    fn what_needs_a_restart_is_named_and_put_back() {
        let text =
            |written: &str| format!("[upstream]\napi_url = 'http://127.0.0.1:9000'\n{written}");
        let read = |written: &str| parse(&text(written), "test", []).unwrap();
        let running = read("");
        // Another value of each fixed key that can be set at all.
        let others = [
            ("listen.address", "'127.0.0.1:9999'"),
            ("listen.workers", "7"),
            ("nonce.scope", "'local'"),
            ("nonce.max_entries", "17"),
            ("nonce.path", "'elsewhere.nonces'"),
            ("nonce.on_lost", "'accept'"),
            ("store.url", "'elsewhere.db'"),
            ("store.encryption_key_file", "'store.key'"),
            ("cache.max_entries", "17"),
            ("cache.ttl", "'17s'"),
            ("cache.negative_ttl", "'17s'"),
            ("cache.stale_if_error", "'17s'"),
            ("admin.listen", "'127.0.0.1:9998'"),
            ("admin.probe_listen", "'127.0.0.1:9997'"),
            ("log.format", "'json'"),
        ];
        for key in FIXED {
            let Some((_, other)) = others.iter().find(|(name, _)| name == key) else {
                let single = ["store.backend", "login.backend"];
                assert!(!is_available(key) || single.contains(key), "{key}");
                continue;
            };
            let (section, name) = key.split_once('.').unwrap();
            let mut new = read(
                &format!("[{section}]\n{name} = {other}\n[log]\nlevel = 'warn'")
                    .replace("[log]\nformat = 'json'\n[log]", "[log]\nformat = 'json'"),
            );
            assert_eq!(new.keep_fixed(&running), [*key]);
            assert_ne!(new, running);
            new.log.level = running.log.level.clone();
            assert_eq!(new, running, "{key}");
        }
        let mut new = read("[log]\nlevel = 'warn'");
        assert!(new.keep_fixed(&running).is_empty());
    }

    #[test]
    fn a_listener_keeps_to_plain_http_or_to_tls() {
        let read = |written: &str| {
            let text = format!("[upstream]\napi_url = 'http://127.0.0.1:9000'\n{written}");
            parse(&text, "test", []).unwrap()
        };
        let pair =
            |name: &str| format!("[listen.tls]\ncertificate = '{name}.pem'\nkey = '{name}.key'");
        let (plain, tls) = (read(""), read(&pair("a")));
        for (running, written) in [(&plain, &tls), (&tls, &plain)] {
            let mut new = written.clone();
            assert_eq!(new.keep_fixed(running), ["listen.tls.certificate"]);
            assert_eq!(new, *running);
        }
        let mut new = read(&pair("b"));
        assert!(new.keep_fixed(&tls).is_empty());
        assert_eq!(new, read(&pair("b")));
    }
}
