//! Exports traces by OTLP over HTTP, in a thread of its own.

use std::{io, mem, sync::Arc, thread, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri, header};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use prometheus::IntCounterVec;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    forward,
    origin::{HttpUrl, Scheme},
    outbound::{self, Target},
    server::tls::TlsError,
    telemetry::traces::{Message, QUEUE, Traces},
    tls::TlsFiles,
};

/// The most spans of one export, about.
const BATCH: usize = 1_024;
/// How long spans wait for others.
const DELAY: Duration = Duration::from_secs(1);
/// How long one export may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The path of traces at a collector.
const PATH: &str = "/v1/traces";

/// Why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The authorities of its certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The URL, or what the environment sets for exporters.
    #[error("telemetry.otlp_endpoint: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The system gives no more threads.
    #[error("cannot start a thread")]
    Thread(#[from] io::Error),
}

/// Starts the exporter of a collector at `url`.
///
/// # Errors
/// [`TracesError`]
pub(super) fn start(
    url: &HttpUrl,
    instance: &str,
    counts: &IntCounterVec,
) -> Result<Arc<Traces>, TracesError> {
    let tls = match url.origin.scheme {
        Scheme::Http => None,
        Scheme::Https => Some(forward::tls::client_config(&forward::tls::Params {
            files: TlsFiles {
                ca: Vec::new(),
                identity: None,
            },
            ca_key: "telemetry.otlp_endpoint",
            server_name: url.origin.bare_host().to_owned(),
            http2: false,
        })?),
    };
    let path = url.path.strip_suffix(PATH).unwrap_or(&url.path);
    let client = Client(Target {
        origin: url.origin.clone(),
        tls,
    });
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(format!("{}{path}{PATH}", url.origin))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TIMEOUT)
        .build()?;
    let resource = Resource::builder()
        .with_service_name("countersign")
        .with_attribute(opentelemetry::KeyValue::new(
            "service.version",
            env!("CARGO_PKG_VERSION"),
        ))
        .with_attribute(opentelemetry::KeyValue::new(
            "service.instance.id",
            instance.to_owned(),
        ))
        .build();
    exporter.set_resource(&resource);
    let (queue, ended) = mpsc::channel(QUEUE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let dropped = counts.with_label_values(&["dropped"]);
    let counts = counts.clone();
    thread::Builder::new()
        .name("traces".to_owned())
        .spawn(move || runtime.block_on(export(ended, &exporter, &counts)))?;
    Ok(Arc::new(Traces::new(queue, dropped)))
}

/// Exports in batches until nobody is left who could end a request.
async fn export(
    mut ended: mpsc::Receiver<Message>,
    exporter: &SpanExporter,
    counts: &IntCounterVec,
) {
    let mut batch = Batch::default();
    let mut is_failing = false;
    loop {
        let message = match batch.due {
            None => Ok(ended.recv().await),
            Some(due) => timeout_at(due, ended.recv()).await,
        };
        let (is_due, is_over) = (message.is_err(), matches!(message, Ok(None)));
        let mut flushed = None;
        match message {
            Ok(Some(Message::Spans(spans))) => batch.add(spans),
            Ok(Some(Message::Flush(done))) => flushed = Some(done),
            Ok(None) | Err(_) => {}
        }
        if is_due || is_over || flushed.is_some() || batch.spans.len() >= BATCH {
            let Batch {
                spans, requests, ..
            } = mem::take(&mut batch);
            if requests > 0 {
                let result = exporter.export(spans).await;
                let word = if result.is_ok() { "exported" } else { "failed" };
                counts.with_label_values(&[word]).inc_by(requests);
                let failed = result.is_err();
                match result {
                    Err(error) if !is_failing => {
                        tracing::warn!(%error, "telemetry.otlp_endpoint: traces cannot be exported and are dropped");
                    }
                    Ok(()) if is_failing => tracing::info!("traces are exported again"),
                    _ => {}
                }
                is_failing = failed;
            }
        }
        if let Some(done) = flushed {
            let _ = done.send(());
        }
        if is_over {
            return;
        }
    }
}

/// Spans that wait for their export.
#[derive(Default)]
struct Batch {
    spans: Vec<SpanData>,
    requests: u64,
    due: Option<Instant>,
}

impl Batch {
    fn add(&mut self, spans: Vec<SpanData>) {
        self.spans.extend(spans);
        self.requests += 1;
        self.due.get_or_insert_with(|| Instant::now() + DELAY);
    }
}

/// Posts to the collector.
#[derive(Debug)]
struct Client(Target);

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let deadline = Instant::now() + TIMEOUT;
        let host = self.0.origin.authority().parse()?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, host);
        headers.insert(
            header::CONNECTION,
            header::HeaderValue::from_static("close"),
        );
        let target = request.uri().path_and_query().cloned();
        *request.uri_mut() = target.map_or_else(Uri::default, Uri::from);
        let stream = self.0.connect(deadline).await?;
        let (status, body) = timeout_at(deadline, outbound::exchange(stream, request)).await??;
        Ok(Response::builder().status(status).body(body.into())?)
    }
}
