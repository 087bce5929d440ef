//! The admin listener: health, readiness and metrics, for the operator and not for the public.

pub mod readiness;

use std::{net::IpAddr, rc::Rc, sync::Arc};

use http::{HeaderMap, Method, Request, Response, header};

use self::readiness::Readiness;
use crate::{
    fields::single,
    oauth::Authority,
    origin::without_brackets,
    parse::{Rejection, origin::INVALID_HOST},
    proxy::{Phase, Shared},
    respond::{self, Format, OwnResponse, look::Look},
    server::{
        caller::Limits,
        connection::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
    telemetry::metrics::{CONTENT_TYPE, Verdict},
};

/// Serves the admin listener, or the probe listener.
pub struct Admin {
    /// Looks whether signed calls can be served.
    pub readiness: Arc<Readiness>,
    /// The state of the workers.
    pub shared: Arc<Shared>,
    /// Reports health and readiness alone.
    pub is_probe: bool,
    /// Answers under any Host: the listener is reached from other machines, whose names for it vary.
    pub any_host: bool,
}

impl Admin {
    async fn page(&self, request: &Request<RequestBody>) -> Result<OwnResponse, Rejection> {
        if !self.any_host && request.body().caller().peer.address.is_some() {
            self.check_host(request.headers())?;
        }
        let path = request.uri().path();
        let known = matches!(path, "/healthz" | "/readyz") || path == "/metrics" && !self.is_probe;
        if !known {
            return Ok(text(404, "not found\n"));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Rejection::MethodNotAllowed { allow: "GET, HEAD" });
        }
        Ok(match path {
            "/healthz" => text(200, "ok\n"),
            "/readyz" => self.ready().await,
            _ => {
                let metrics = &self.shared.metrics;
                let is_ready = !self.is_draining() && self.readiness.report().0;
                metrics.ready.set(is_ready.into());
                OwnResponse::new(200, CONTENT_TYPE, metrics.render(), Verdict::Page)
            }
        })
    }

    fn is_draining(&self) -> bool {
        *self.shared.phase.borrow() > Phase::Serving
    }

    async fn ready(&self) -> OwnResponse {
        if self.is_draining() {
            return text(503, "not ready: draining\n");
        }
        let readiness = &self.readiness;
        readiness.look().await;
        match readiness.report() {
            (true, report) => text(200, &report),
            (false, report) => text(503, &report),
        }
    }

    /// A page in the operator's browser could reach a loopback address under a host name of its own, but it cannot send an
    /// address, or a name of `admin.hosts`, as Host.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        let host = single(headers, &header::HOST).ok().flatten();
        let authority = host.and_then(|host| Authority::parse(host).ok());
        let host = authority.ok_or(INVALID_HOST)?.host;
        let live = self.shared.live.load();
        let mut names = live
            .admin_hosts
            .iter()
            .map(String::as_str)
            .chain(["localhost"]);
        let is_address = without_brackets(host).parse::<IpAddr>().is_ok();
        if is_address || names.any(|name| host.eq_ignore_ascii_case(name)) {
            Ok(())
        } else {
            Err(Rejection::Misdirected)
        }
    }
}

fn text(status: u16, text: &str) -> OwnResponse {
    let kind = "text/plain; charset=utf-8";
    OwnResponse::new(status, kind, text.to_owned(), Verdict::Page).never_stored()
}

impl Handler for Admin {
    fn limits(&self) -> Limits {
        Limits::SMALL
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let answer = self.page(&request).await.unwrap_or_else(|rejection| {
            let format = Format::preferred_by(request.headers());
            respond::failure(&rejection.into(), Look::plain().in_english(), format, "")
        });
        Ok(answer.into_response(request.method()))
    }
}
