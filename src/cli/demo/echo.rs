//! The demo's API: tells as JSON what has reached it.

use std::{rc::Rc, time::Duration};

use http::{Request, Response};
use serde_json::{Value, json};

use crate::{
    peer::Peer,
    respond::{self, Failure, Format, OwnResponse},
    server::{
        caller::Limits,
        connection::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
    telemetry::metrics::Verdict,
};

/// Bounds of the demo's own servers.
pub(super) const LIMITS: Limits = Limits {
    head_bytes: 64 * 1024,
    head_fields: 200,
    target_bytes: 32 * 1024,
    handshake_timeout: Duration::from_secs(10),
    head_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(300),
    body_timeout: Duration::from_secs(30),
    form_timeout: Duration::from_secs(30),
    form_bytes: 1024 * 1024,
    form_memory: 64 * 1024 * 1024,
    form_fields: 10_000,
    streams: None,
};

/// Echoes.
pub(super) struct Echo;

impl Echo {
    async fn page(request: &mut Request<RequestBody>) -> Result<OwnResponse, Failure> {
        let body = request.body_mut().read_whole().await?;
        let fields = request.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            json!([name.as_str(), value])
        });
        let echo = json!({
            "method": request.method().as_str(),
            "path": request.uri().path(),
            "query": request.uri().query(),
            "headers": Value::Array(fields.collect()),
            "body": String::from_utf8_lossy(&body),
        });
        Ok(OwnResponse::new(
            200,
            "application/json",
            format!("{echo:#}\n"),
            Verdict::Page,
        ))
    }
}

impl Handler for Echo {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn is_draining(&self) -> bool {
        false
    }

    async fn drained(&self) {
        std::future::pending().await
    }

    async fn answer(
        self: Rc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let answer = Self::page(&mut request).await;
        let answer =
            answer.unwrap_or_else(|failure| respond::failure(&failure, "", Format::Json, ""));
        Ok(answer.into_response(request.method()))
    }

    fn rejected(&self, _: Peer, _: u16, _: &str) {}
}
