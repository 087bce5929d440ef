//! What keys stand for when they are not written and it follows from something else.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use super::{
    BaseUrl, Config, HeaderPattern, HttpUrl, LogFormat, NonceScope, Origin, PublicUrl,
    StoreBackend, Unlisted, Upstream,
    schema::{self, Section},
};
use crate::telemetry::log;

impl Config {
    /// `listen.workers`: as written, else one for each core.
    #[must_use]
    pub fn workers(&self) -> NonZeroUsize {
        match self.listen.workers {
            Some(workers) => workers.into(),
            None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// `service.base_url`: as written, else the origin of the first public listener, which is bound to `listener`.
    #[must_use]
    pub fn base_url(&self, listener: SocketAddr) -> Origin {
        match &self.service.base_url {
            BaseUrl::Url(origin) => origin.clone(),
            BaseUrl::FromListener => Origin::of_listener(listener, self.listens_with_tls()),
        }
    }

    /// `service.public_api_urls`: as written, else [`Config::base_url`] alone.
    #[must_use]
    pub fn public_api_urls(&self, listener: SocketAddr) -> Vec<PublicUrl> {
        if !self.service.public_api_urls.is_empty() {
            return self.service.public_api_urls.clone();
        }
        vec![PublicUrl(HttpUrl {
            origin: self.base_url(listener),
            path: String::new(),
        })]
    }

    /// `upstream.drop_headers`, with the default list in the place of `"default"`: names in lower case, `*` at the end of
    /// some.
    pub fn dropped_headers(&self) -> impl Iterator<Item = String> {
        let written = self.upstream.drop_headers.iter();
        let expanded = written.flat_map(|pattern| {
            if pattern.is_default() {
                schema::default_of::<Vec<HeaderPattern>>(&Upstream::SCHEMA, "drop_headers")
            } else {
                vec![pattern.clone()]
            }
        });
        expanded.map(|pattern| pattern.as_str().to_owned())
    }

    /// How to start the log.
    #[must_use]
    pub fn log_params(&self) -> log::Params {
        log::Params {
            format: match self.log.format {
                LogFormat::Text => log::Format::Text,
                LogFormat::Json => log::Format::Json,
            },
            level: self.log.level.clone(),
        }
    }

    /// Whether the public listener speaks TLS.
    #[must_use]
    pub fn listens_with_tls(&self) -> bool {
        !self.listen.tls.certificate.is_empty()
    }

    /// `nonce.scope`: as written, else `local` for a store of this machine alone.
    #[must_use]
    pub fn nonce_scope(&self) -> NonceScope {
        self.nonce.scope.unwrap_or(match self.store.backend {
            StoreBackend::Sqlite => NonceScope::Local,
            StoreBackend::Postgres | StoreBackend::Redis => NonceScope::Shared,
        })
    }

    /// `nonce.path`: as written, else beside the SQLite file; `None` where there is no such file.
    #[must_use]
    pub fn nonce_path(&self) -> Option<PathBuf> {
        let beside = || {
            (self.store.backend == StoreBackend::Sqlite)
                .then(|| with_suffix(&self.store.url.sqlite_path(), ".nonces"))
        };
        self.nonce.path.clone().or_else(beside)
    }

    /// `operations.unlisted`: as written, else `consumer` while there is no `[[operation]]`, and `nobody` from then on.
    #[must_use]
    pub fn unlisted(&self) -> Unlisted {
        self.operations
            .unlisted
            .unwrap_or(if self.operation.is_empty() {
                Unlisted::Consumer
            } else {
                Unlisted::Nobody
            })
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
