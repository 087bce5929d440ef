//! The values of keys that are not written and follow from other keys.

use std::{
    net::SocketAddr, num::NonZeroUsize, path::PathBuf, thread::available_parallelism,
    time::Duration,
};

use super::Config;
use crate::{
    base::settings::DataPath,
    provider::pages::settings::RegistrationMode,
    records::nonce::settings::NonceScope,
    request::{
        parse::{origin::PrefixMode, settings::ServiceSettings},
        policy::{
            access::{Access, CallerKind},
            operations::Operations,
            settings::OperationSettings,
        },
        route::{
            FlowPaths,
            settings::{FlowAt, Role},
        },
        verify::settings::Enforcement,
    },
    wire::{
        address::ListenAddress,
        url::origin::{HttpUrl, Origin},
    },
};

/// The most workers where `listen.workers` is not written. A container with a small share of a large machine may have no
/// quota, and then it sees every processor.
const MAX_DEFAULT_WORKERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

/// The workers for this many processors, where `listen.workers` is not written.
pub(super) fn default_workers(processors: NonZeroUsize) -> NonZeroUsize {
    processors.min(MAX_DEFAULT_WORKERS)
}

/// The key of the listener for forward-auth.
pub const FORWARD_AUTH: &str = "forward_auth.listen";

impl Config {
    /// `listen.workers`: as written, else one for each processor that the quota of the cgroup allows, at most
    /// `MAX_DEFAULT_WORKERS`.
    pub fn workers(&self) -> NonZeroUsize {
        match self.listen.workers {
            Some(workers) => workers.into(),
            None => default_workers(available_parallelism().unwrap_or(NonZeroUsize::MIN)),
        }
    }

    /// `service.base_url`: as written, else the origin of the first public listener, which is bound to `listener`.
    pub fn base_url(&self, listener: SocketAddr) -> Origin {
        let of_listener = || Origin::for_listener(listener, self.listens_with_tls());
        self.service.base_url.clone().unwrap_or_else(of_listener)
    }

    /// `service.public_api_urls`: as written, else [`Config::base_url`] alone.
    pub fn public_api_urls(&self, listener: SocketAddr) -> Vec<HttpUrl> {
        if !self.service.public_api_urls.is_empty() {
            return self.service.public_api_urls.clone();
        }
        vec![self.base_url(listener).into()]
    }

    /// The address of the API below which the paths of its operations are, and its root among these paths.
    pub fn api_address(&self, listener: SocketAddr) -> [String; 2] {
        let public = self.public_api_urls(listener).swap_remove(0);
        match self.service.prefix {
            PrefixMode::Keep => [public.origin.to_string(), format!("{}/", public.path)],
            PrefixMode::Strip | PrefixMode::Restore => [public.to_string(), "/".to_owned()],
        }
    }

    /// The protected operations.
    pub fn operations(&self) -> Operations {
        let unlisted = Access::to(self.unlisted());
        let hide = self.operations.forbidden_status == 404;
        Operations::new(self.operation.clone(), unlisted, hide, self.paths)
    }

    /// `identity.assertion.audience`: as written, else the origin of the API; `None` for a Unix socket, which has none.
    pub fn assertion_audience(&self) -> Option<String> {
        let of_api = || Some(self.api_on_network()?.origin.to_string());
        self.assertion.audience.clone().or_else(of_api)
    }

    /// The paths of the calls of the flow.
    pub fn flow_paths(&self) -> FlowPaths {
        FlowPaths::new(&self.flow, self.flow_at(), self.registers())
    }

    /// `service.flow`: as written, else ours where that takes no flow away from an API that is only observed.
    pub fn flow_at(&self) -> FlowAt {
        let is_observed = self.signature.enforcement == Enforcement::Observe;
        let of_api = self.is_guard() || is_observed && self.api_shares_base_url();
        let default = if of_api { FlowAt::Api } else { FlowAt::Here };
        self.flow.flow.unwrap_or(default)
    }

    /// Whether the API stays the provider and verifies its calls itself.
    pub fn is_guard(&self) -> bool {
        self.flow.role == Role::Guard
    }

    /// Whether users can ask for consumers.
    pub fn registers(&self) -> bool {
        self.registration.mode != RegistrationMode::Closed && !self.is_guard()
    }

    /// `identity.forward_authorization`: as written, else where the API verifies its calls itself.
    pub fn forwards_authorization(&self) -> bool {
        self.identity
            .forward_authorization
            .unwrap_or(self.is_guard())
    }

    /// The enforcement of an operation: as written for it, else `signature.enforcement`.
    pub fn enforcement_of(&self, operation: &OperationSettings) -> Enforcement {
        operation.enforcement.unwrap_or(self.signature.enforcement)
    }

    /// `operations.unlisted`: as written, else by the role and the list.
    pub fn unlisted(&self) -> &[CallerKind] {
        self.operations.kinds(&self.operation, self.flow.role)
    }

    /// Whether every path under `service.base_url` can be one of the API.
    pub fn api_shares_base_url(&self) -> bool {
        let ServiceSettings {
            base_url,
            public_api_urls,
            ..
        } = &self.service;
        let Some(base) = base_url else { return true };
        let is_base = |url: &HttpUrl| url.origin == *base && url.path.is_empty();
        public_api_urls.is_empty() || public_api_urls.iter().any(is_base)
    }

    /// Every listener and its key; those on port 0 have no address yet.
    pub fn listeners(&self) -> Vec<(&'static str, ListenAddress)> {
        let public = self.listen.address.iter().copied();
        let public = public.map(|address| ("listen.address", ListenAddress::Tcp(address)));
        let probe = self.admin.probe_listen.clone();
        let forward_auth = self.forward_auth.listen.clone();
        public
            .chain([("admin.listen", self.admin.listen.clone())])
            .chain(probe.map(|address| ("admin.probe_listen", address)))
            .chain(forward_auth.map(|address| (FORWARD_AUTH, address)))
            .collect()
    }

    /// The largest body of a described request that is verified: at `forward_auth.body_bytes` it may have been cut.
    pub fn described_body_bytes(&self) -> usize {
        let uncut = self
            .forward_auth
            .body_bytes
            .map(|cut| cut.saturating_sub(1));
        uncut.map_or(self.limits.form_bytes, |uncut| {
            uncut.min(self.limits.form_bytes)
        })
    }

    /// `upstream.api_url`, if it is on the network.
    pub fn api_on_network(&self) -> Option<&HttpUrl> {
        self.upstream.api_url.as_ref()?.tcp()
    }

    /// The URLs by which no consumer should call: that of the API, and those of a listener at `listener`.
    pub fn internal_urls(&self, listener: SocketAddr) -> Vec<HttpUrl> {
        let own = Origin::for_listener(listener, self.listens_with_tls());
        let hosts = match listener.ip() {
            ip if ip.is_unspecified() => vec!["127.0.0.1", "localhost"],
            ip if ip.is_loopback() => vec![own.host.as_str(), "localhost"],
            _ => vec![own.host.as_str()],
        };
        let listening = hosts.into_iter().map(|host| {
            let host = host.to_owned();
            HttpUrl::from(Origin { host, ..own })
        });
        let api = self.api_on_network().cloned();
        api.into_iter().chain(listening).collect()
    }

    /// Whether the public listener speaks TLS.
    #[must_use]
    pub fn listens_with_tls(&self) -> bool {
        !self.listen_tls.certificate.is_empty()
    }

    /// `nonce.scope`: as written, else `local` for a store of this machine alone.
    pub fn nonce_scope(&self) -> NonceScope {
        self.nonce.scope.unwrap_or(match self.store.file() {
            Some(_) => NonceScope::Local,
            None => NonceScope::Shared,
        })
    }

    /// `nonce.path`: as written, else beside the SQLite file; `None` where there is no such file.
    pub fn nonce_path(&self) -> Option<PathBuf> {
        let beside = || Some(self.store.file()?.with_added_extension("nonces"));
        let written = self.nonce.path.clone().map(|DataPath(path)| path);
        written.or_else(beside)
    }

    /// The longest window of timestamps: the nonces of all are kept for it.
    pub fn longest_window(&self) -> Duration {
        let of_operations = self.operation.iter().filter_map(|it| it.timestamp_window);
        of_operations.fold(self.signature.timestamp_window, Duration::max)
    }
}
