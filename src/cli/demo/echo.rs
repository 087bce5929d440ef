//! The demo's API, which returns each request as JSON, and the server of the demo's own pages.

use std::rc::Rc;

use http::{Request, Response};
use serde_json::{Value, json};

use crate::{
    provider::{
        respond::{self, Format, OwnResponse, Schemes},
        theme::{Theme, frame::Frame},
    },
    telemetry::metrics::Verdict,
    wire::server::{
        caller::{buffered::Shares, stream::Limits},
        handler::Handler,
        request::RequestBody,
        response::{Gone, ResponseBody},
    },
};

/// Bounds of the demo's own servers.
const LIMITS: Limits = Limits {
    head_bytes: 64 << 10,
    head_fields: 200,
    target_bytes: 32 << 10,
    form_bytes: 1 << 20,
    form_shares: Shares {
        all: 64 << 20,
        each: 16 << 20,
    },
    ..Limits::SMALL
};

/// Responds with the result of a function.
pub(super) struct DemoPages<F>(pub(super) F);

/// Returns the request that has reached the API, as JSON.
pub(super) async fn echo(request: Request<RequestBody>) -> OwnResponse {
    let body = match request.body().hold().await {
        Ok(body) => body,
        Err(failure) => {
            let frame = Frame::in_english(Theme::plain());
            return respond::failure(&failure.into(), frame, Format::Json, "", Schemes::OAuth);
        }
    };
    let fields = request.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        json!([name.as_str(), value])
    });
    let echo = json!({
        "method": request.method().as_str(),
        "path": request.uri().path(),
        "query": request.uri().query(),
        "headers": Value::Array(fields.collect()),
        "body": String::from_utf8_lossy(body),
    });
    let text = format!("{echo:#}\n");
    OwnResponse::new(200, "application/json", text, Verdict::Page)
}

impl<F: AsyncFn(Request<RequestBody>) -> OwnResponse + 'static> Handler for DemoPages<F> {
    fn limits(&self) -> Rc<Limits> {
        Rc::new(LIMITS)
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let method = request.method().clone();
        Ok((self.0)(request).await.into_response(&method))
    }
}
