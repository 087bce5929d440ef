//! The admin listener, for operators and not for the public: health, readiness and metrics, the admin API under `/v1/`, and
//! the console everywhere else.

mod api;
pub mod console;
pub mod readiness;
pub mod settings;
mod token_file;
pub mod tokens;

use std::{
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use arc_swap::ArcSwapOption;
use http::{Method, Request, Response, header};
use tokio::{runtime::Handle, task::spawn_local};

use self::{
    console::Console,
    readiness::Readiness,
    tokens::{AdminTokenGuard, TokenHolder, Tokens},
};
use crate::{
    base::{clock::Clock, network::http_fields::single, secret::Secret},
    gateway::{
        live::{Phase, Shared},
        proxy::jwk_set,
    },
    oauth::Authority,
    operator::{
        explain::{Explainer, Rules},
        manage::{Actor, Management, Tool},
    },
    provider::{
        login::{
            PasswordPool, Throttle,
            password::{self, PasswordError},
            pool::PoolError,
        },
        pages::settings::PermissionSettings,
        respond::{self, Format, OwnResponse, Schemes},
        theme::{Theme, frame::Frame},
    },
    request::parse::{ParseRejection, origin::INVALID_HOST},
    telemetry::{
        calls::consumer_calls::DoorsOfDay,
        heartbeats::HUNG_AFTER,
        metrics::{CONTENT_TYPE, Verdict},
    },
    wire::{
        server::{
            caller::stream::Limits,
            handler::{ConnectionEvent, Handler},
            request::RequestBody,
            response::{Gone, ResponseBody},
        },
        url::origin::{is_localhost, without_brackets},
    },
};

/// Connections to the admin listener at once, and to the probe listener.
pub const MAX_CONNECTIONS: usize = 256;

/// The most requests at once. Connections beyond them can be closed for others, so that `/healthz` always has a response.
const MAX_REQUESTS: usize = MAX_CONNECTIONS - 16;

/// Serves the admin listener, or the probe listener.
pub struct Admin {
    /// Checks whether signed calls can be served.
    pub readiness: Arc<Readiness>,
    /// The state of the workers.
    pub shared: Arc<Shared>,
    /// Reports health and readiness alone.
    pub is_probe: bool,
    /// From this phase on, another process or none answers.
    pub until: Phase,
    /// Health and metrics answer under any Host: the listener is reached from other machines, whose names for it vary.
    pub any_host: bool,
    /// The admin API and the console.
    pub control: Arc<Control>,
    /// Requests that are being served, without those of `/healthz`.
    pub serving: Arc<()>,
}

impl Admin {
    /// The accepted calls of the last day in this process, by their doors.
    fn doors_of_day(&self) -> DoorsOfDay {
        let (metrics, charts) = (&self.shared.metrics, &self.control.console.charts);
        let now = self.control.clock.now();
        DoorsOfDay {
            accepted: charts.consumers.last_day(now, metrics.accepted_calls()),
            by_bearer: charts.by_bearer.last_day(now, metrics.bearer_calls()),
        }
    }
}

/// The state of the admin API and the console.
pub struct Control {
    /// Their backend, which a reload replaces; `None`: they are off.
    pub backend: ArcSwapOption<Backend>,
    /// Hashes new passwords, apart from those of logins.
    pub passwords: PasswordPool,
    /// The state of the console.
    pub console: Console,
    token_guard: OnceLock<AdminTokenGuard>,
    clock: Clock,
}

impl Control {
    /// API and console are off until there is a backend.
    pub fn new(clock: Clock, passwords: PasswordPool, console: Console) -> Self {
        Self {
            backend: ArcSwapOption::empty(),
            passwords,
            console,
            token_guard: OnceLock::new(),
            clock,
        }
    }

    /// Limits the wrong tokens of each address.
    pub fn token_guard(&self) -> &AdminTokenGuard {
        let new = || AdminTokenGuard::new(self.clock.clone());
        self.token_guard.get_or_init(new)
    }
}

/// The backend of the admin API and the console.
pub struct Backend {
    /// The tokens that are accepted.
    pub tokens: Tokens,
    /// The use cases.
    pub manage: Management,
    /// The failed logins.
    pub throttle: Arc<Throttle>,
    /// The rules by which requests are explained.
    pub rules: Rules,
    /// The permissions of the configuration.
    pub permissions: Vec<PermissionSettings>,
    /// The beginning of the service's own URLs.
    pub base_url: String,
    /// The public URLs of the API.
    pub api_urls: Vec<String>,
}

/// The response of `/` without a token.
const CONSOLE_IS_OFF: &str = "\
The console is off. To switch it on, make a token, name its file in the configuration, and reload:

  (umask 077; openssl rand -hex 32 > admin.token)

  [admin]
  token_file = \"admin.token\"

/healthz, /readyz and /metrics are here without it.
";

impl Admin {
    async fn page(&self, mut request: Request<RequestBody>) -> Result<OwnResponse, ParseRejection> {
        let path = request.uri().path();
        // It counts until the response is there.
        let _serving = (path != "/healthz").then(|| Arc::clone(&self.serving));
        if Arc::strong_count(&self.serving) > MAX_REQUESTS + 1 && path != "/healthz" {
            return Ok(text(503, "too many requests at once\n").field("Retry-After", "1"));
        }
        let is_open =
            matches!(path, "/healthz" | "/readyz") || path == "/metrics" && !self.is_probe;
        let is_network = request.body().caller().peer.address.is_some();
        if !is_open || !self.any_host && is_network {
            let live = self.shared.live.load();
            check_host(&request, live.admin_hosts.iter())?;
        }
        let is_jwk_set = path == "/jwks.json" && !self.is_probe;
        // From here on the store may be another process's.
        if !is_open && *self.shared.phase.borrow() >= Phase::DecidingLast {
            return Ok(text(503, "this process is ending\n"));
        }
        match path {
            _ if (is_open || is_jwk_set)
                && !matches!(*request.method(), Method::GET | Method::HEAD) =>
            {
                Err(ParseRejection::MethodNotAllowed { allow: "GET, HEAD" })
            }
            "/healthz" => Ok(match self.readiness.heartbeats.hung(HUNG_AFTER) {
                None => text(200, "ok\n"),
                Some(hung) => text(503, &format!("{hung}\n")),
            }),
            "/readyz" => Ok(self.ready().await),
            "/metrics" if is_open => {
                let metrics = &self.shared.metrics;
                let is_ready =
                    !self.is_announced() && readiness::report(&self.readiness.conditions).0;
                metrics.ready.set(is_ready.into());
                Ok(OwnResponse::new(
                    200,
                    CONTENT_TYPE,
                    metrics.render(),
                    Verdict::Page,
                ))
            }
            _ if is_jwk_set => {
                let set = jwk_set(&self.shared.live.load());
                Ok(set.unwrap_or_else(|| text(404, "nothing is signed\n")))
            }
            _ => match self.control.backend.load_full().filter(|_| !self.is_probe) {
                Some(backend) if is_api(path) => {
                    Ok(api::respond(self, &backend, &mut request).await)
                }
                Some(backend) => Ok(console::respond(self, &backend, &mut request).await),
                None if path == "/" && !self.is_probe => Ok(text(404, CONSOLE_IS_OFF)),
                None => Ok(text(404, "not found\n")),
            },
        }
    }

    /// Hashes a password that an operator gives a user.
    async fn hash(&self, password: Secret) -> Result<Result<Secret, PasswordError>, PoolError> {
        let pool = &self.control.passwords;
        pool.run(None, move || password::hash(&password)).await
    }

    /// Explains requests for the operator.
    fn explainer<'a>(&'a self, backend: &'a Backend) -> Explainer<'a> {
        Explainer {
            store: &self.readiness.store,
            rules: &backend.rules,
            pool: &self.control.passwords,
            now: self.control.clock.now(),
            address: None,
        }
    }

    fn is_announced(&self) -> bool {
        *self.shared.phase.borrow() > Phase::Serving
    }

    async fn ready(&self) -> OwnResponse {
        if self.is_announced() {
            return text(503, "not ready: draining\n");
        }
        self.readiness.check().await;
        match readiness::report(&self.readiness.conditions) {
            (true, report) => text(200, &report),
            (false, report) => text(503, &report),
        }
    }
}

/// A page in the operator's browser could reach a loopback address under a host name of its own, but it cannot send an
/// address, a name under `localhost`, or one of `names`, those of `admin.hosts`, as Host or in the target.
///
/// # Errors
/// [`ParseRejection::Misdirected`], if the request names another host, and a malformed Host.
pub fn check_host<'n>(
    request: &Request<RequestBody>,
    names: impl Iterator<Item = &'n String> + Clone,
) -> Result<(), ParseRejection> {
    let host = single(request.headers(), &header::HOST).ok().flatten();
    let host = Authority::parse(host.unwrap_or_default()).map_err(|_| INVALID_HOST)?;
    let named = Authority::parse(host_of(request)).map_err(|_| INVALID_HOST)?;
    let is_known = |host: &str| {
        without_brackets(host).parse::<IpAddr>().is_ok()
            || is_localhost(host)
            || names.clone().any(|name| host.eq_ignore_ascii_case(name))
    };
    match is_known(host.host) && is_known(named.host) {
        true => Ok(()),
        false => Err(ParseRejection::Misdirected),
    }
}

/// Host and port that a request names: those of an absolute target, else Host (RFC 9112 §3.2.2: "the origin server MUST
/// ignore the received Host header field (if any) and instead use the host information of the request-target").
fn host_of(request: &Request<RequestBody>) -> &[u8] {
    let target = request.uri().authority().map(|it| it.as_str().as_bytes());
    let host = || single(request.headers(), &header::HOST).ok().flatten();
    target.or_else(host).unwrap_or_default()
}

/// The operator who sent a request, for the audit record.
fn admin_actor(by: Tool, holder: &TokenHolder, address: Option<IpAddr>) -> Actor {
    Actor {
        admin_token: Some(<&str>::from(holder.kind).to_owned()),
        admin_name: holder.name.as_deref().map(str::to_owned),
        address: address.map(|address| address.to_canonical().to_string()),
        ..Actor::of_process(by.name())
    }
}

/// A response of plain text, which is not stored.
pub fn text(status: u16, text: &str) -> OwnResponse {
    let kind = "text/plain; charset=utf-8";
    OwnResponse::new(status, kind, text.to_owned(), Verdict::Page).never_stored()
}

fn is_api(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}

/// Work that goes on when the caller has gone: a change that was made must not lack its audit record. It is no task before:
/// a form that is sent in part would keep its place from others for longer.
struct Completed(Option<Pin<Box<dyn Future<Output = OwnResponse>>>>);

impl Future for Completed {
    type Output = OwnResponse;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OwnResponse> {
        let Some(work) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Completed {
    fn drop(&mut self) {
        // The runtime is gone when the process ends.
        if let Some(work) = self.0.take().filter(|_| Handle::try_current().is_ok()) {
            spawn_local(async move { drop(work.await) });
        }
    }
}

impl Handler for Admin {
    fn limits(&self) -> Rc<Limits> {
        Rc::new(Limits::SMALL)
    }

    fn note(&self, event: ConnectionEvent) {
        let metrics = &self.shared.metrics;
        match event {
            ConnectionEvent::Evicted => drop(metrics.connections_evicted.inc()),
            ConnectionEvent::Refused => drop(metrics.connections_refused.inc()),
            _ => {}
        }
    }

    fn is_draining(&self) -> bool {
        *self.shared.phase.borrow() >= self.until
    }

    async fn draining(&self) {
        let mut phase = self.shared.phase.clone();
        // An error means that the process is gone.
        let _ = phase.wait_for(|phase| *phase >= self.until).await;
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let method = request.method().clone();
        let format = match is_api(request.uri().path()) {
            true => Format::Json,
            false => Format::preferred_by(request.headers()),
        };
        let page = async move {
            self.page(request).await.unwrap_or_else(|rejection| {
                respond::failure(
                    &rejection.into(),
                    Frame::in_english(Theme::plain()),
                    format,
                    "",
                    Schemes::OAuth,
                )
            })
        };
        let answer = match method {
            Method::GET | Method::HEAD => page.await,
            _ => Completed(Some(Box::pin(page))).await,
        };
        Ok(answer.into_response(&method))
    }
}
