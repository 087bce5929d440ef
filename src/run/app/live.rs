//! Turns the configuration into the state that requests need. A reload swaps all of it.

use std::{net::SocketAddr, sync::Arc};

use super::{StartError, services::Services};
use crate::{
    base::{clock::Clock, language::PageFileError},
    gateway::{authorize::Authorizer, cors::Cors, live::Live, settings::Preflight},
    operator::{
        admin::{
            Backend,
            console::{COOKIE, SECURE_COOKIE},
            tokens::TokenFileError,
        },
        explain::{self, DeveloperCheck},
        manage::Management,
    },
    provider::{
        collection::CollectionRules,
        endpoints::{Endpoints, TOKEN_TYPE},
        login::header::UserHeaders,
        pages::{PageRules, Pages, cookie_names},
        theme::{Theme, ThemeRules},
    },
    request::{
        bearer::{BearerTokens, OwnTokens, SetupError},
        forward::{ForwardParams, pool::PoolParams},
        identity::keys::Keys,
        policy::rate_limit::ConsumerRates,
        route,
        verify::{Advice, VerifyRules},
    },
    run::{app::listeners::descriptors, config::Config},
    wire::{server::tls::TlsError, url::origin::Origin},
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
    let flow = config.flow_paths();
    let base = config.base_url(listener);
    let public = config.public_api_urls(listener);
    let origins = config.service.origins(base, public, &config.proxies);
    let origins = Arc::new(origins);
    let sunset = config.sunset.planned(&config.brown_out, &services.clock);
    let sunset = sunset.map(Arc::new);
    let keys = Keys::read(&config.assertion.key_files)?;
    let verify = verify_rules(config, listener);
    let theme = Arc::new(theme(config, listener)?);
    let rates = ConsumerRates::new(config.rate.requests_per_consumer);
    let operations = Arc::new(config.operations());
    let endpoints = Endpoints {
        verifier: Arc::clone(&services.verifier),
        verify: verify.clone(),
        rates: rates.clone(),
        limits: config.token_limits,
        reuse: config.token_response.reuse,
        scope: config.scope.clone(),
        user_parameters: config.token_response.user_parameters(),
        feed: Arc::clone(&services.pages.feed),
        base: origins.base.clone(),
        sunset: sunset.clone(),
        exchange: keys.as_ref().and_then(|keys| {
            config
                .exchange
                .exchange(keys, config.bearer.own, &operations)
        }),
        clock: services.clock.clone(),
    };
    let signature_check = || DeveloperCheck {
        store: Arc::clone(&services.store),
        rules: explain_rules(config, listener, &services.clock),
        pool: Arc::clone(&services.developer_checks),
        clock: services.clock.clone(),
    };
    let gives_advice = config.signature.advice != Advice::Off;
    let pages = PageRules {
        origins: Arc::clone(&origins),
        authorize_page: config.authorize_page.clone(),
        theme: Arc::clone(&theme),
        login: config.login.clone(),
        sessions: config.sessions,
        registration: config.registration,
        user_headers: config.password_check.user_headers(&config.login),
        tokens: config.tokens,
        default_dialect: config.signature.default_dialect,
        scope: config.scope.clone(),
        consent: config.consent,
        permissions: config.permission.clone(),
        sunset: sunset.clone(),
        gives_display_name: config.token_response.gives_display_name(),
        signature_check: gives_advice.then(|| Arc::new(signature_check()) as _),
        collections: collections(config, listener),
    };
    let authorizer = Authorizer {
        verifier: Arc::clone(&services.verifier),
        verify,
        bearer: bearer(config, &origins.base.origin, keys.as_ref(), services)?,
        pages: Pages::new(pages, services.pages.clone()),
        flow: flow.clone(),
        origins: Arc::clone(&origins),
        operations,
        forward_preflights: config.preflights.preflight == Preflight::Forward,
        sunset,
        rates,
    };
    let concurrent_requests = config.limits.concurrent_requests.get() as usize;
    let concurrent_requests = descriptors::at_most(concurrent_requests, descriptors::limit());
    let (header_case, hosts) = (config.upstream.header_case, config.admin.hosts.iter());
    Ok(Live {
        limits: config.limits.limits(config.protocols, header_case),
        route: route::RouteRules {
            flow,
            exchange: endpoints.exchange.is_some(),
            registration: config.registers(),
            jwk_set: keys.is_some(),
            assets: theme.assets().map(|asset| asset.path.clone()).collect(),
        },
        endpoints,
        authorizer,
        cors: Cors(config.cors.cors_origins.clone()),
        conventions: config.conventions.policy,
        forward: rewriting(config, &origins.base.origin, keys.as_ref(), services),
        upstream: upstream_params(config)?,
        theme,
        admin_hosts: hosts.map(|name| name.0.clone()).collect(),
        access_log: config.log.access,
        described_body_bytes: config.described_body_bytes(),
        concurrent_requests,
        jwk_set: keys.map(|keys| keys.set),
        origins,
    })
}

/// Makes the rules by which Bearer tokens are verified, if any are accepted; `base` is the issuer of our own.
///
/// # Errors
/// A file of an issuer.
fn bearer(
    config: &Config,
    base: &Origin,
    keys: Option<&Keys>,
    services: &Services,
) -> Result<Option<Arc<BearerTokens>>, SetupError> {
    let audience = config.exchange.audience.as_deref().zip(keys);
    let own = audience.filter(|_| config.bearer.own);
    let own = own.map(|(audience, keys)| OwnTokens {
        issuer: base.to_string(),
        audience,
        token_type: TOKEN_TYPE,
        jwk_set: &keys.set,
    });
    let before = services.bearer.load();
    let made = BearerTokens::new(own.as_ref(), &config.issuer, before.as_deref())?;
    Ok(made.map(Arc::new))
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
    let Some(tokens) = config.admin.tokens()? else {
        return Ok(None);
    };
    let (store, feed) = (Arc::clone(&services.store), Arc::clone(&services.feed));
    let settings = (config.signature, config.tokens);
    let api_urls = config.public_api_urls(listener);
    Ok(Some(Backend {
        tokens,
        manage: Management::new(store, services.clock.clone(), settings, Some(feed)),
        throttle: Arc::clone(&services.pages.throttle),
        rules: explain_rules(config, listener, &services.clock),
        permissions: config.permission.clone(),
        base_url: config.base_url(listener).to_string(),
        api_urls: api_urls.iter().map(ToString::to_string).collect(),
    }))
}

/// The rules of verification.
pub fn verify_rules(config: &Config, listener: SocketAddr) -> VerifyRules {
    let base = config.base_url(listener).into();
    let public = config.public_api_urls(listener).into_iter().chain([base]);
    VerifyRules::new(
        config.signature,
        config.tokens,
        public,
        config.internal_urls(listener),
        config.flow_paths().token_paths(),
    )
}

/// The rules by which a request is explained.
pub fn explain_rules(config: &Config, listener: SocketAddr, clock: &Clock) -> explain::Rules {
    let sunset = config.sunset.planned(&config.brown_out, clock);
    explain::Rules {
        verify: verify_rules(config, listener),
        flow: config.flow_paths(),
        operations: Arc::new(config.operations()),
        sunset: sunset.map(Arc::new),
    }
}

/// Makes the look that all pages share.
///
/// # Errors
/// A file of it that cannot be used.
pub fn theme(config: &Config, listener: SocketAddr) -> Result<Theme, PageFileError> {
    let flow = config.flow_paths();
    let paths = flow.authorization_pages();
    Theme::read(ThemeRules {
        pages: config.pages.clone(),
        responses: config.responses.clone(),
        origin: config.base_url(listener).to_string(),
        path: config.flow.path.clone(),
        page_paths: paths.map(str::to_owned).collect(),
        page_parameters: (config.authorize_page).parameters(&config.flow, &config.scope),
        permissions: config.permission.iter().map(|it| it.name.clone()).collect(),
    })
}

/// The facts that collections of requests have.
pub fn collections(config: &Config, listener: SocketAddr) -> CollectionRules {
    CollectionRules {
        base: config.base_url(listener),
        flow: config.flow_paths(),
        api: config.api_address(listener),
        operations: Arc::new(config.operations()),
        methods: config.signature.methods,
    }
}

/// The rules by which heads are rewritten; `base` is the origin of the token endpoints.
fn rewriting(
    config: &Config,
    base: &Origin,
    keys: Option<&Keys>,
    services: &Services,
) -> ForwardParams {
    let audience = config.assertion_audience();
    let assertion = config
        .assertion
        .assertion(base, audience, keys, &services.clock);
    let identity = config.identity.identity(
        assertion,
        &config.operation,
        config.forwards_authorization(),
    );
    let login_headers = config.password_check.user_headers(&config.login);
    let login_headers = login_headers.into_iter().flat_map(UserHeaders::names);
    let pages = cookie_names(base.is_https());
    let cookies = [pages.session, pages.login, COOKIE, SECURE_COOKIE];
    let tunnel_timeout = config.limits.tunnel_timeout;
    config.upstream.rewriting(
        identity,
        login_headers,
        cookies,
        &services.instance_id,
        tunnel_timeout,
    )
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
