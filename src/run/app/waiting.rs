//! The wait for a database or a Redis that a start does not reach: until it serves, the listeners answer 503 and say why, and the
//! process tries again. Waiting mends no mistake in the configuration: that ends the start.

use std::{io, net::IpAddr, rc::Rc, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{Method, Request, Response};
use sd_notify::NotifyState;
use socket2::Socket;
use tokio::{
    sync::watch as channel,
    task::spawn_local,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    StartError, first,
    services::{self, Services},
};
use crate::{
    base::clock::Clock,
    operator::admin::{check_host, readiness, text},
    provider::{
        respond::{self, Failure, Format, OwnResponse, Schemes},
        theme::{Theme, frame::Frame},
    },
    records::values::StoreError,
    request::parse::origin::Origins,
    run::{
        app::{
            listeners::{
                api_loop::BoundAddress, bound::BoundListener, sockets::PUBLIC, workers::Listeners,
            },
            running::watch::show_conditions,
            system::{manager, signals::Signals},
        },
        config::{Config, FORWARD_AUTH},
    },
    telemetry::{
        conditions::{Condition, Conditions},
        heartbeats::Heartbeats,
        log::causes::causes,
        metrics::{CONTENT_TYPE, Metrics, Verdict},
    },
    wire::server::{
        bounds::Bounds,
        caller::stream::Limits,
        handler::Handler,
        listener::{self, AcceptRules},
        request::RequestBody,
        response::{Gone, ResponseBody},
        tls::Tls,
    },
};

/// The connections of all listeners together. One more gets 503 too.
const CONNECTIONS: usize = 1_024;

/// The time between two attempts: calls are served again within about a second.
const PAUSE: Duration = Duration::from_millis(500);

/// The key of the probe listener.
pub(super) const PROBE: &str = "admin.probe_listen";

/// What a start has bound, before its services are open.
pub(super) struct Entrance<'b> {
    pub(super) config: &'b Config,
    /// Until then the previous process may have the nonce window.
    pub(super) deadline: Instant,
    /// TLS of the public listeners.
    pub(super) tls: Option<&'b Arc<ArcSwap<Tls>>>,
    pub(super) listeners: &'b Listeners,
    /// The admin listener, and the probe listener if there is one.
    pub(super) admin: &'b [(&'static str, BoundListener)],
    /// The address of every listener, with its key.
    pub(super) bound: &'b [BoundAddress],
}

impl Entrance<'_> {
    /// Opens the services, again and again while what they need over the network cannot be reached. Returns whether it had
    /// to wait;
    /// `None`: a signal ends the process.
    ///
    /// # Errors
    /// [`StartError`], if waiting does not help.
    pub(super) async fn open(
        &self,
        signals: &mut Signals,
    ) -> Result<Option<(Services, bool)>, StartError> {
        let mut answering = None;
        loop {
            let opening = services::open(self.config, Clock::system(), self.deadline);
            let error = tokio::select! {
                opened = opening => match opened {
                    Ok(services) => return Ok(Some((services, answering.is_some()))),
                    Err(error) => error,
                },
                () = signals.asked_to_end() => return Ok(None),
            };
            let Some(condition) = error.outage(self.config) else {
                return Err(error);
            };
            if answering.is_none() {
                answering = Some(Answering::start(self).map_err(StartError::System)?);
            }
            if let Some(answering) = &answering {
                answering.note(condition, causes(&error));
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = signals.asked_to_end() => return Ok(None),
            }
        }
    }
}

/// Logs the address of each listener, from which on it accepts connections.
pub(super) fn log_listeners(bound: &[BoundAddress]) {
    for (key, address) in bound {
        let listener = match *key {
            PUBLIC => "public",
            FORWARD_AUTH => "forward-auth",
            PROBE => "probe",
            _ => "admin",
        };
        tracing::info!(listener, %address, "listening");
    }
}

/// The answers of all listeners during the wait. Dropping it ends them; the sockets stay bound.
struct Answering {
    conditions: Arc<Conditions>,
    /// Dropping it stops the listeners.
    _serving: channel::Sender<()>,
    _watchdog: Option<AbortOnDropHandle<()>>,
}

impl Answering {
    fn start(entrance: &Entrance<'_>) -> io::Result<Self> {
        let Entrance {
            config,
            tls,
            listeners,
            ..
        } = *entrance;
        let conditions = Arc::new(Conditions::new(Clock::system()));
        let (serving, stopped) = channel::channel(());
        let listener = first(&listeners.addresses);
        let (base, public) = (config.base_url(listener), config.public_api_urls(listener));
        let origins = Rc::new(config.service.origins(base, public, &config.proxies));
        let hosts = config.admin.hosts.iter().map(|name| name.0.clone());
        let hosts: Rc<[String]> = hosts.collect();
        let metrics = Arc::new(Metrics::default());
        let shown = Arc::clone(&conditions);
        let show = move |metrics: &Metrics| show_conditions(metrics, &shown);
        let _ = metrics.refresh.set(Box::new(show));
        let bounds = Arc::new(Bounds::new(CONNECTIONS, None));
        let serve = |listener: Socket, kind, tls: Option<&Arc<ArcSwap<Tls>>>, proxy_protocol| {
            let handler = NotReady {
                kind,
                conditions: Arc::clone(&conditions),
                metrics: Arc::clone(&metrics),
                origins: Rc::clone(&origins),
                hosts: Rc::clone(&hosts),
                stopped: stopped.clone(),
            };
            let rules = AcceptRules {
                bounds: Arc::clone(&bounds),
                connections: Rc::default(),
                tls: tls.cloned(),
                // What is in the queue when the wait ends is served.
                is_passed: true,
                proxy_protocol,
            };
            let stop = ended(stopped.clone());
            spawn_local(listener::accept(listener, rules, Rc::new(handler), stop));
        };
        for listener in listeners.public() {
            let listener = listener.try_clone()?;
            serve(listener, Kind::Public, tls, config.protocols.proxy_protocol);
        }
        if let Some(forward_auth) = &listeners.forward_auth {
            serve(
                forward_auth.listener.try_clone()?,
                Kind::Public,
                None,
                false,
            );
        }
        for (key, admin) in entrance.admin {
            let kind = match *key {
                PROBE => Kind::Probe,
                _ => Kind::Admin {
                    any_host: !admin.at.is_loopback(),
                },
            };
            serve(admin.listener.try_clone()?, kind, None, false);
        }
        log_listeners(entrance.bound);
        // The process runs, and must not be ended because a database needs longer than the service manager waits for a start.
        let status = NotifyState::Status("waiting for a database or a Redis: see the log");
        manager::tell(&[NotifyState::Ready, status]);
        Ok(Self {
            conditions,
            _serving: serving,
            _watchdog: manager::feed_watchdog(Arc::new(Heartbeats::new(0))),
        })
    }

    /// Notes why the last attempt failed; the log has the beginning and the end of each condition.
    fn note(&self, condition: Condition, cause: String) {
        for (other, _) in self.conditions.active() {
            if other != condition {
                self.conditions.set(other, None);
            }
        }
        self.conditions.set(condition, Some(cause));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        for (condition, _) in self.conditions.active() {
            self.conditions.set(condition, None);
        }
    }
}

/// Ready once the wait is over.
async fn ended(mut stopped: channel::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// A listener by what it answers during the wait.
#[derive(Clone, Copy)]
enum Kind {
    /// The public one, and the one for forward-auth.
    Public,
    Probe,
    Admin {
        /// Health and metrics answer under any Host.
        any_host: bool,
    },
}

/// Answers the requests of a listener during the wait.
struct NotReady {
    kind: Kind,
    conditions: Arc<Conditions>,
    metrics: Arc<Metrics>,
    origins: Rc<Origins>,
    /// `admin.hosts`.
    hosts: Rc<[String]>,
    stopped: channel::Receiver<()>,
}

impl NotReady {
    fn respond(&self, request: &Request<RequestBody>) -> OwnResponse {
        let failure = |failure: &Failure| {
            let frame = Frame::in_english(Theme::plain());
            let format = Format::preferred_by(request.headers());
            respond::failure(failure, frame, format, "", Schemes::OAuth)
        };
        let (is_probe, any_host) = match self.kind {
            Kind::Public => return failure(&StoreError::Unavailable(Box::new(NotOpen)).into()),
            Kind::Probe => (true, true),
            Kind::Admin { any_host } => (false, any_host),
        };
        let is_network = request.body().caller().peer.address.is_some();
        if !any_host && is_network {
            let checked = check_host(request, self.hosts.iter());
            if let Err(rejection) = checked {
                return failure(&rejection.into());
            }
        }
        match request.uri().path() {
            "/healthz" => text(200, "ok\n"),
            "/metrics" if !is_probe => {
                OwnResponse::new(200, CONTENT_TYPE, self.metrics.render(), Verdict::Page)
            }
            _ => text(503, &readiness::report(&self.conditions).1),
        }
    }
}

/// The store is not open yet.
#[derive(Debug, thiserror::Error)]
#[error("the store is not open yet")]
struct NotOpen;

impl Handler for NotReady {
    fn limits(&self) -> Rc<Limits> {
        Rc::new(Limits::SMALL)
    }

    /// No connection is kept: the next request may be served.
    fn is_draining(&self) -> bool {
        true
    }

    async fn draining(&self) {
        ended(self.stopped.clone()).await;
    }

    fn is_trusted(&self, peer: IpAddr) -> bool {
        self.origins.is_trusted(peer)
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let method: &Method = request.method();
        Ok(self.respond(&request).into_response(method))
    }
}
