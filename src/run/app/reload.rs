//! Reloads: another configuration, and certificates whose files have changed.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering},
};

use sd_notify::NotifyState;

use super::{
    App, StartError, first, live,
    start::{self, connections},
};
use crate::{
    gateway::live::Live,
    operator::{admin::Backend, manage::setting::EffectiveSetting},
    run::{
        app::{
            files::{
                certificates::{Certificate, Stamps},
                inspect,
            },
            listeners::api_loop,
            running::upkeep,
            system::manager,
        },
        config::Config,
    },
    telemetry::audit::{CommandRecord, changed},
    wire::server::tls::Tls,
};

/// The parts that are made of a configuration and its files, and that a reload swaps as a whole.
struct Swap {
    live: Live,
    backend: Option<Backend>,
    /// `None` where the listener has no TLS.
    tls: Option<Tls>,
    certificates: Vec<Certificate>,
    stamps: Stamps,
}

impl App {
    /// Reads the configuration again; a broken one changes nothing.
    pub(super) async fn reload(&mut self) {
        let Some(read) = &self.reload else {
            return;
        };
        manager::tell_reloading();
        let problem = match read() {
            Ok(config) => self
                .apply(config)
                .await
                .err()
                .map(|error| error.to_string()),
            Err(problems) => Some(problems),
        };
        let status = match problem {
            None => "serving",
            Some(_) => "serving with the configuration before: the last reload failed",
        };
        manager::tell(&[NotifyState::Ready, NotifyState::Status(status)]);
        self.services.metrics.reloaded(problem.is_none());
        for problem in problem.iter().flat_map(|problems| problems.lines()) {
            tracing::error!(problem, "reload failed, keeping the current configuration");
        }
    }

    /// Applies another configuration, as far as that needs no restart.
    async fn apply(&mut self, mut config: Config) -> Result<(), StartError> {
        self.passed.replace(&mut config)?;
        let mut not_applied = config.keep_fixed(&self.config);
        // Everything that can fail comes first, so that a mistake changes nothing.
        api_loop::check(&config, &self.bound).await?;
        let swap = self.make(&config)?;
        if !not_applied.is_empty() {
            tracing::warn!(
                keys = not_applied.join(" "),
                "settings that changed but need a restart"
            );
        }
        if let Err(error) = self.log.set_level(&config.log.level) {
            tracing::warn!(%error, "keeping the current level of the log");
            config.log.level = self.config.log.level.clone();
            not_applied.push("log.level");
        }
        let throttle = &self.services.pages.throttle;
        throttle.set_limit(config.login.max_failures);
        let per_address = config.limits.connections_per_address.map(NonZeroU32::get);
        let connections = connections(&config);
        self.common.bounds.set(connections, per_address);
        self.common.forward_auth_bounds.set(connections, None);
        self.swap(swap);
        let (nonces, window) = (&self.services.nonces, config.longest_window());
        if let Err(error) = nonces.ask_for_length(self.services.clock.now(), window) {
            tracing::error!(%error, "signature.timestamp_window: nonce.path cannot be written; tried again");
        }
        if let Err(error) = nonces.set_on_lost(config.nonce.on_lost) {
            tracing::error!(%error, "nonce.on_lost: nonce.path cannot be written; a restart waits again");
        }
        inspect::log(&config, first(&self.addresses));
        tracing::info!(
            target: "audit",
            event = "configuration_reloaded",
            not_applied = (!not_applied.is_empty()).then(|| not_applied.join(" ")),
            pending = (nonces.length() != window).then_some("signature.timestamp_window"),
        );
        upkeep::hold_unapproved(&self.services, &config.permission).await;
        start::show(&self.control.console, &config);
        let changes = differing(&self.config.settings, &config.settings);
        *self.config = config;
        if !changes.is_empty() {
            let keys = changes.iter().map(|(key, _)| &**key);
            let about = CommandRecord {
                members: Some(Vec::from_iter(keys).join(" ")),
                changes: Some(Vec::from_iter(changes.into_iter().map(|(_, text)| text)).join("; ")),
                ..CommandRecord::counting("configuration_changed", [])
            };
            upkeep::record(&self.services, about).await;
        }
        Ok(())
    }

    /// Reads certificates whose files have changed. One that cannot be read changes nothing, and is read again when a
    /// file changes the next time.
    pub(super) fn reread_certificates(&mut self) {
        let stamps = Stamps::read(&self.config);
        if stamps != self.stamps {
            let swap = self.make(&self.config);
            self.services.metrics.reloaded(swap.is_ok());
            match swap {
                Ok(swap) => {
                    self.swap(swap);
                    tracing::info!("certificates read");
                }
                Err(error) => {
                    self.stamps = stamps;
                    tracing::error!(problem = %error, "keeping the current certificates");
                }
            }
            inspect::log(&self.config, first(&self.addresses));
        }
        self.note_certificate_dates();
    }

    pub(super) fn note_certificate_dates(&mut self) {
        let services = &self.services;
        let shown = services.certificates.load();
        let now = services.clock.now();
        self.dates.note(&shown, now, &services.conditions);
    }

    /// Makes the parts that a reload swaps. A certificate that callers reject does not replace one that they accept.
    fn make(&self, config: &Config) -> Result<Swap, StartError> {
        let (stamps, certificates) = (Stamps::read(config), Certificate::read(config));
        let shown = self.services.certificates.load();
        Certificate::may_replace(&certificates, &shown, self.services.clock.now())
            .map_err(StartError::Certificate)?;
        let tls = self
            .common
            .tls
            .as_ref()
            .filter(|_| config.listens_with_tls());
        let mut live = live::live(config, first(&self.addresses), &self.services)?;
        let before = self.common.shared.live.load();
        live.authorizer.rates = live
            .authorizer
            .rates
            .with_counts_of(&before.authorizer.rates);
        live.endpoints.rates = live.authorizer.rates.clone();
        Ok(Swap {
            live,
            backend: live::backend(config, first(&self.addresses), &self.services)?,
            tls: tls
                .map(|shown| Tls::read(&config.listen_tls, config.protocols, Some(&shown.load())))
                .transpose()?,
            certificates,
            stamps,
        })
    }

    fn swap(&mut self, swap: Swap) {
        let shared = &self.common.shared;
        let live = Arc::new(swap.live);
        self.services.bearer.store(live.authorizer.bearer.clone());
        let before = shared.live.swap(Arc::clone(&live));
        let labels = live.authorizer.operations.labels();
        for operation in before.authorizer.operations.labels() {
            if !labels.contains(operation) {
                shared.metrics.forget_operation(operation);
            }
        }
        shared.generation.fetch_add(1, Ordering::Release);
        let (metrics, now) = (&shared.metrics, self.services.clock.now());
        let accepted = metrics.accepted_calls();
        let (charts, requests) = (&self.services.charts, metrics.counts().total());
        charts.observes(live.authorizer.observes(), now, requests, accepted);
        let tokens = swap.backend.as_ref().map(|backend| &backend.tokens);
        self.control.console.end_sessions_of_others(tokens);
        self.control.backend.store(swap.backend.map(Arc::new));
        if let (Some(shown), Some(tls)) = (&self.common.tls, swap.tls) {
            shown.store(Arc::new(tls));
        }
        self.services
            .certificates
            .store(Arc::new(swap.certificates));
        self.stamps = swap.stamps;
    }
}

/// The settings that differ, each with its value before and after.
fn differing(before: &[EffectiveSetting], after: &[EffectiveSetting]) -> Vec<(String, String)> {
    let value = |key: &str| before.iter().find(|it| it.key == key).map(|it| &*it.value);
    let differ = after.iter().filter_map(|setting| {
        let (key, now) = (&*setting.key, &*setting.value);
        let was = value(key).unwrap_or("none");
        (was != now).then(|| (key.to_owned(), changed(key, was, now)))
    });
    differ.collect()
}
