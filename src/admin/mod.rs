//! The admin listener: health, readiness and metrics, for the operator and not for the public.

use std::{
    net::IpAddr,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::{HeaderMap, Method, Request, Response, header};
use tokio::time::timeout;

use crate::{
    fields::single,
    origin::without_brackets,
    parse::{
        Rejection,
        origin::{Authority, OriginError},
    },
    proxy::Shared,
    respond::{self, Format, OwnResponse, look::Look},
    server::{
        caller::Limits,
        connection::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
    store::{Store, port::causes},
    telemetry::metrics::{CONTENT_TYPE, Verdict},
};

/// How long the store may take to respond before the process is not ready.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the admin listener.
pub struct Admin {
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    probe: bool,
}

impl Admin {
    /// The handler of the admin listener, or of the probe listener, which reports health alone, under any Host.
    #[must_use]
    pub const fn new(store: Arc<dyn Store>, shared: Arc<Shared>, probe: bool) -> Self {
        Self {
            store,
            shared,
            probe,
        }
    }

    async fn page(&self, request: &Request<RequestBody>) -> Result<OwnResponse, Rejection> {
        if !self.probe && request.body().caller().peer.address.is_some() {
            check_host(request.headers())?;
        }
        let path = request.uri().path();
        let known = matches!(path, "/healthz" | "/readyz") || path == "/metrics" && !self.probe;
        if !known {
            return Ok(text(404, "there is no such page here"));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Rejection::MethodNotAllowed { allow: "GET, HEAD" });
        }
        Ok(match path {
            "/healthz" => text(200, "ok"),
            "/readyz" => self.readiness().await,
            _ => {
                let metrics = self.shared.metrics.render();
                OwnResponse::new(200, CONTENT_TYPE, metrics, Verdict::Page)
            }
        })
    }

    async fn readiness(&self) -> OwnResponse {
        if self.shared.draining_announced.load(Ordering::Acquire) {
            return text(503, "draining");
        }
        match timeout(PING_TIMEOUT, self.store.ping()).await {
            Ok(Ok(())) => match self.shared.verifier.outage() {
                None => text(200, "ready"),
                Some(outage) => text(503, &outage.to_string()),
            },
            Ok(Err(error)) => text(
                503,
                &format!("the store does not answer: {}", causes(&error)),
            ),
            Err(_) => text(503, "the store is too slow"),
        }
    }
}

fn text(status: u16, line: &str) -> OwnResponse {
    let (kind, line) = ("text/plain; charset=utf-8", format!("{line}\n"));
    OwnResponse::new(status, kind, line, Verdict::Page).never_stored()
}

/// A page in the operator's browser could reach a loopback address under a host name of its own, but it cannot send an
/// address as Host.
fn check_host(headers: &HeaderMap) -> Result<(), OriginError> {
    let host = single(headers, &header::HOST)
        .ok()
        .flatten()
        .and_then(Authority::parse);
    let host = host.ok_or(OriginError::Host)?;
    let text = std::str::from_utf8(host.host).unwrap_or_default();
    let address = without_brackets(text).parse::<IpAddr>().is_ok();
    if address || text.eq_ignore_ascii_case("localhost") {
        Ok(())
    } else {
        Err(OriginError::Misdirected)
    }
}

/// Bounds of the admin listener, whose requests are small.
const LIMITS: Limits = Limits {
    head_bytes: 16 * 1024,
    head_fields: 100,
    target_bytes: 4 * 1024,
    handshake_timeout: Duration::from_secs(10),
    head_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(60),
    body_timeout: Duration::from_secs(10),
    form_timeout: Duration::from_secs(10),
    form_bytes: 64 * 1024,
    form_memory: 1024 * 1024,
    form_fields: 100,
    streams: None,
};

impl Handler for Admin {
    fn limits(&self) -> Limits {
        LIMITS
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
