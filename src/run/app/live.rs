//! Turns the configuration into the state that requests need. A reload swaps all of it.

use std::{net::SocketAddr, sync::Arc};

use http::HeaderValue;

use super::{StartError, descriptors, services::Services};
use crate::{
    base::{clock::Clock, language::PageFileError},
    gateway::{authorize::Authorizer, proxy::Live, settings::Preflight},
    operator::{
        admin::{
            Backend,
            console::{COOKIE, SECURE_COOKIE},
            tokens::{TokenFileError, Tokens},
        },
        explain,
        manage::{self, Management},
    },
    provider::{
        endpoints::{Endpoints, TokenExchange, user_field::UserField},
        pages::{PageRules, Pages, cookie_names},
        respond::theme::{Theme, ThemeRules},
    },
    request::{
        forward::{
            FoldedNames, ForwardParams, HTTPOXY, HostMode, LOOKALIKES,
            pool::PoolParams,
            settings::{ApiUrl, UpstreamHost},
        },
        identity::{Assertion, Identity, IdentityNames, keys::Keys},
        parse::origin::{Origins, PublicUrl},
        policy::{
            access::Access,
            operations::{Operation, Operations},
            rate::ConsumerRate,
        },
        route::{self, FlowPaths, Page, ServiceCall},
        verify::VerifyRules,
    },
    run::config::Config,
    wire::{
        origin::{HttpUrl, Origin},
        server::tls::TlsError,
    },
};

/// Makes the state that requests need; `listener` is the address of the first public listener.
///
/// # Errors
/// [`StartError`] names the key at fault.
pub fn live(
    config: &Config,
    listener: SocketAddr,
    services: &Services,
) -> Result<Live, StartError> {
    let origins = Arc::new(origins(config, listener));
    let sunset = config.sunset.planned(&config.brown_out, &services.clock);
    let sunset = sunset.map(Arc::new);
    let keys = Keys::read(&config.assertion.key_files)?;
    let verify = verify_rules(config, listener);
    let theme = Arc::new(theme(config, listener)?);
    let rate = config.rate.requests_per_consumer.map(ConsumerRate::new);
    let rate = rate.map(Arc::new);
    let endpoints = Endpoints {
        verifier: Arc::clone(&services.verifier),
        verify: verify.clone(),
        rate: rate.clone(),
        max_request_tokens: config.request_tokens.request_tokens_per_consumer.get(),
        user_parameters: config.token_response.user_parameters(),
        feed: Arc::clone(&services.pages.feed),
        base: origins.base.clone(),
        sunset: sunset.clone(),
        exchange: keys.as_ref().and_then(|keys| exchange(config, keys)),
        clock: services.clock.clone(),
    };
    let pages = page_rules(config, &origins, Arc::clone(&theme));
    let authorizer = Authorizer {
        verifier: Arc::clone(&services.verifier),
        verify,
        pages: Pages::new(pages, services.pages.clone()),
        flow: flow_paths(config),
        origins: Arc::clone(&origins),
        operations: operations(config),
        forward_preflights: config.preflights.preflight == Preflight::Forward,
        sunset,
        rate,
    };
    Ok(Live {
        limits: config
            .limits
            .limits(config.protocols, config.upstream.header_case),
        route: route::RouteRules {
            flow: flow_paths(config),
            exchange: endpoints.exchange.is_some(),
            jwk_set: keys.is_some(),
            assets: theme.assets().map(|asset| asset.path.clone()).collect(),
        },
        endpoints,
        authorizer,
        conventions: config.conventions.policy,
        forward: forward_params(config, &origins.base.origin, keys.as_ref(), services),
        upstream: upstream_params(config)?,
        theme,
        admin_hosts: config
            .admin
            .hosts
            .iter()
            .map(|name| name.0.clone())
            .collect(),
        access_log: config.log.access,
        described_body_bytes: config.described_body_bytes(),
        concurrent_requests: descriptors::at_most(
            config.limits.concurrent_requests.get() as usize,
            descriptors::limit(),
        ),
        jwk_set: keys.map(|keys| keys.set),
        origins,
    })
}

/// The exchange, if there is one.
fn exchange(config: &Config, keys: &Keys) -> Option<TokenExchange> {
    Some(TokenExchange {
        audience: config.exchange.audience.clone()?,
        ttl: config.exchange.ttl,
        signer: keys.signer("at+jwt"),
    })
}

/// The fields that identify the caller; `base` is the origin of the token endpoints.
fn identity(config: &Config, base: &Origin, keys: Option<&Keys>, clock: &Clock) -> Identity {
    let (identity, signed) = (&config.identity, &config.assertion);
    let assertion = || {
        let parties = (base.to_string(), config.assertion_audience()?);
        let (header, bound) = (signed.header.clone()?, (signed.ttl, signed.bind));
        Some(Assertion::new(header, keys?, parties, bound, clock.clone()))
    };
    Identity {
        names: IdentityNames {
            user: identity.user_header.clone(),
            consumer: identity.consumer_header.clone(),
            permissions: identity.permissions_header.clone(),
            kind: identity.kind_header.clone(),
        },
        assertion: assertion(),
        parameters: {
            let headers = config.operation.iter().flat_map(|it| &it.headers.0);
            headers.map(|header| header.name.clone()).collect()
        },
    }
}

/// Makes the backend of the admin API and the console, if they are on.
///
/// # Errors
/// The files of the tokens.
pub(super) fn backend(
    config: &Config,
    listener: SocketAddr,
    services: &Services,
) -> Result<Option<Backend>, TokenFileError> {
    let Some(tokens) = admin_tokens(config)? else {
        return Ok(None);
    };
    let (store, feed) = (Arc::clone(&services.store), Arc::clone(&services.feed));
    let settings = manage_settings(config);
    Ok(Some(Backend {
        tokens,
        manage: Management::new(store, services.clock.clone(), settings, Some(feed)),
        rules: explain_rules(config, listener),
    }))
}

/// Reads the tokens of the admin API, if it is on.
///
/// # Errors
/// The files.
pub fn admin_tokens(config: &Config) -> Result<Option<Tokens>, TokenFileError> {
    let admin = &config.admin;
    let write = admin.token_file.as_deref();
    let read = admin.read_token_file.as_deref();
    write.map(|write| Tokens::read(write, read)).transpose()
}

/// The settings for new records.
pub const fn manage_settings(config: &Config) -> manage::RecordDefaults {
    manage::RecordDefaults {
        default_dialect: config.signature.default_dialect,
        access_ttl: config.tokens.access_ttl,
    }
}

fn origins(config: &Config, listener: SocketAddr) -> Origins {
    let base: HttpUrl = config.base_url(listener).into();
    let public = config.public_api_urls(listener).into_iter();
    Origins {
        base: base.into(),
        pages: config.service.page_urls.clone(),
        public: public.map(PublicUrl::from).collect(),
        prefix_mode: config.service.prefix,
        trusted_proxies: config.proxies.trusted_proxies.clone(),
        family: config.proxies.forwarded,
    }
}

/// The rules of verification.
pub fn verify_rules(config: &Config, listener: SocketAddr) -> VerifyRules {
    let base = config.base_url(listener).into();
    let public = config.public_api_urls(listener).into_iter().chain([base]);
    VerifyRules::new(
        config.signature,
        config.tokens,
        public,
        config.api_on_network(),
    )
}

/// The paths of the token endpoints.
pub fn flow_paths(config: &Config) -> FlowPaths {
    FlowPaths::new(&config.flow)
}

/// The rules by which a request is explained.
pub fn explain_rules(config: &Config, listener: SocketAddr) -> explain::Rules {
    explain::Rules {
        verify: verify_rules(config, listener),
        flow: flow_paths(config),
        operations: Arc::new(operations(config)),
    }
}

/// The paths of the authorization page beside `service.path`.
fn page_paths(config: &Config) -> Vec<String> {
    let flow = flow_paths(config);
    let named = flow.named().iter();
    let pages = named.filter(|(_, call)| *call == ServiceCall::Page(Page::Authorize));
    pages.map(|(path, _)| path.path().to_owned()).collect()
}

/// The parameters of the authorization page that the configuration names.
fn page_parameters(config: &Config) -> Vec<String> {
    let paths = config.flow.authorize_paths.iter();
    let demanded = paths.flat_map(|path| path.names().map(str::to_owned));
    let renamed = config.authorize_page.page_parameters.0.iter();
    demanded
        .chain(renamed.map(|(name, _)| name.clone()))
        .collect()
}

/// Makes the look that all pages share.
///
/// # Errors
/// A file of it that cannot be used.
pub fn theme(config: &Config, listener: SocketAddr) -> Result<Theme, PageFileError> {
    Theme::read(ThemeRules {
        pages: config.pages.clone(),
        responses: config.responses.clone(),
        origin: config.base_url(listener).to_string(),
        path: config.flow.path.clone(),
        page_paths: page_paths(config),
        page_parameters: page_parameters(config),
        permissions: config.permission.iter().map(|it| it.name.clone()).collect(),
    })
}

fn page_rules(config: &Config, origins: &Arc<Origins>, theme: Arc<Theme>) -> PageRules {
    let profile = config.token_response.user_parameters();
    PageRules {
        origins: Arc::clone(origins),
        authorize_page: config.authorize_page.clone(),
        theme,
        login: config.login.clone(),
        sessions: config.sessions,
        user_headers: config.password_check.user_headers(&config.login),
        tokens: config.tokens,
        default_dialect: config.signature.default_dialect,
        permissions: config.permission.clone(),
        gives_display_name: profile
            .iter()
            .any(|(_, field)| *field == UserField::DisplayName),
    }
}

/// The operations.
fn operations(config: &Config) -> Operations {
    let unlisted = Access::to(config.unlisted());
    let hide = config.operations.forbidden_status == 404;
    let listed = config.operation.iter().map(Operation::from).collect();
    Operations::new(listed, unlisted, hide, config.paths.similar)
}

fn forward_params(
    config: &Config,
    base: &Origin,
    keys: Option<&Keys>,
    services: &Services,
) -> ForwardParams {
    let upstream = &config.upstream;
    let identity = identity(config, base, keys, &services.clock);
    let login = config.password_check.user_headers(&config.login);
    let login = login.map(|headers| [Some(headers.user), headers.display_name]);
    let login = login.iter().flatten().flatten();
    let names = identity.names().chain(login).map(ToString::to_string);
    let dropped = names
        .chain(
            config
                .upstream
                .drop_headers
                .0
                .iter()
                .map(|name| name.as_str().to_owned()),
        )
        .chain([HTTPOXY.to_owned()]);
    let (api_path, api_origin, api_host) = match &upstream.api_url {
        Some(ApiUrl::Tcp(url)) => (
            url.path.clone(),
            url::Url::parse(&url.to_string())
                .ok()
                .map(|url| url.origin()),
            url.origin.authority(),
        ),
        Some(ApiUrl::Unix(_)) | None => (String::new(), None, "localhost".to_owned()),
    };
    let cookies = cookie_names(base.is_https());
    ForwardParams {
        api_path,
        api_origin,
        host: match &upstream.host {
            UpstreamHost::Public => HostMode::Public,
            UpstreamHost::Upstream => HostMode::Fixed(field_value(&api_host)),
            UpstreamHost::Name(name) => HostMode::Fixed(field_value(name)),
        },
        forwarded: upstream.forwarded,
        dropped: FoldedNames::new(dropped),
        lookalikes: FoldedNames::new(LOOKALIKES),
        identity,
        forward_authorization: config.identity.forward_authorization,
        cookies: [cookies.session, cookies.login, COOKIE, SECURE_COOKIE],
        hop: field_value(&services.instance_id),
        response_timeout: upstream.response_timeout,
        tunnel_timeout: config.limits.tunnel_timeout,
    }
}

/// A host that the configuration has checked, as a field has it.
fn field_value(host: &str) -> HeaderValue {
    HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static(""))
}

/// The rules for connections to the API; `None`: there is no API.
///
/// # Errors
/// The files of its TLS.
pub fn upstream_params(config: &Config) -> Result<Option<PoolParams>, TlsError> {
    // The unused connections of all workers together leave enough descriptors for callers.
    let most_idle = descriptors::at_most(usize::MAX, descriptors::limit()) / config.workers();
    let body_timeout = config.limits.body_timeout;
    config
        .upstream
        .pool(&config.upstream_tls, body_timeout, most_idle)
}
