//! Exports traces by OTLP over HTTP, in a thread of its own.

use std::{
    env, io, mem,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri, header};
use opentelemetry::KeyValue;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use prometheus_client::metrics::counter::Counter;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    base::network::tls::TlsFiles,
    telemetry::{
        log::causes::causes,
        metrics::Family,
        traces::{QUEUE, TraceMessage, Traces},
    },
    wire::{
        address::TcpOrUnix,
        outbound::{RemoteService, tls::remote_service},
        server::tls::TlsError,
        url::origin::HttpUrl,
    },
};

/// The most spans of one export, about.
const BATCH: usize = 1_024;
/// The time for which spans wait for others.
const DELAY: Duration = Duration::from_secs(1);
/// The time limit of one export.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The variables that name the authorities of the collector's certificate; the first one that is set counts.
const AUTHORITIES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];
const FAILING: &str = "telemetry.otlp_endpoint: traces cannot be exported and are dropped";
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
    /// The system cannot create a thread.
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
    counts: &Family<1, Counter>,
) -> Result<Arc<Traces>, TracesError> {
    let is_failing = Arc::default();
    let mut exporter = exporter(url, Arc::clone(&is_failing))?;
    let resource = Resource::builder()
        .with_service_name("countersign")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance.to_owned()),
        ])
        .build();
    exporter.set_resource(&resource);
    let (queue, ended) = mpsc::channel(QUEUE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let dropped = counts.get_or_create_owned(&[("result", "dropped")]);
    let counts = counts.clone();
    thread::Builder::new()
        .name("traces".to_owned())
        .spawn(move || runtime.block_on(export(ended, &exporter, &is_failing, &counts)))?;
    Ok(Arc::new(Traces::new(queue, dropped)))
}

/// Connects to a collector, for `check`. With the outer error `serve` would not start; the inner one is only logged.
///
/// # Errors
/// [`TracesError`]
pub async fn reach(url: &HttpUrl) -> Result<io::Result<()>, TracesError> {
    exporter(url, Arc::default())?;
    let connected = target(url)?.connect(Instant::now() + TIMEOUT).await;
    Ok(connected.map(drop))
}

fn target(url: &HttpUrl) -> Result<RemoteService, TlsError> {
    let authorities = AUTHORITIES.into_iter().find_map(|variable| {
        let file = env::var_os(variable).filter(|file| !file.is_empty())?;
        Some((variable, PathBuf::from(file)))
    });
    let (ca_key, ca) = authorities.unzip();
    let ca_key = ca_key.unwrap_or("telemetry.otlp_endpoint");
    let files = TlsFiles {
        ca: ca.into_iter().collect(),
        identity: None,
    };
    remote_service(&TcpOrUnix::Tcp(url.origin.clone()), &files, [ca_key; 3])
}

fn exporter(url: &HttpUrl, is_failing: Arc<AtomicBool>) -> Result<SpanExporter, TracesError> {
    let path = url.path.strip_suffix(PATH).unwrap_or(&url.path);
    let client = Client {
        target: target(url)?,
        is_failing,
    };
    Ok(SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(format!("{}{path}{PATH}", url.origin))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TIMEOUT)
        .build()?)
}

/// Exports in batches until no sender is left that could end a request.
async fn export(
    mut ended: mpsc::Receiver<TraceMessage>,
    exporter: &SpanExporter,
    is_failing: &AtomicBool,
    counts: &Family<1, Counter>,
) {
    let mut batch = Batch::default();
    loop {
        let message = match batch.due {
            None => Ok(ended.recv().await),
            Some(due) => timeout_at(due, ended.recv()).await,
        };
        let (is_due, is_over) = (message.is_err(), matches!(message, Ok(None)));
        let mut flushed = None;
        match message {
            Ok(Some(TraceMessage::Spans(spans))) => batch.add(spans),
            Ok(Some(TraceMessage::Flush(done))) => flushed = Some(done),
            Ok(None) | Err(_) => {}
        }
        if is_due || is_over || flushed.is_some() || batch.spans.len() >= BATCH {
            let Batch {
                spans, requests, ..
            } = mem::take(&mut batch);
            if requests > 0 {
                let result = match exporter.export(spans).await {
                    Ok(()) => "exported",
                    Err(error) => {
                        // The client has logged failures of the connection with their cause.
                        if !is_failing.swap(true, Ordering::Relaxed) {
                            tracing::warn!(%error, "{FAILING}");
                        }
                        "failed"
                    }
                };
                let counter = counts.get_or_create(&[("result", result)]);
                counter.inc_by(requests);
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

/// Posts to the collector, and logs when that begins to fail and when it works again: the exporter hides the causes.
#[derive(Debug)]
struct Client {
    target: RemoteService,
    is_failing: Arc<AtomicBool>,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let posted = self.post(request).await;
        let problem = match &posted {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector responds {}", response.status())),
            Err(error) => Some(causes(&**error)),
        };
        let was_failing = self.is_failing.swap(problem.is_some(), Ordering::Relaxed);
        match problem {
            Some(problem) if !was_failing => {
                tracing::warn!(problem, "{FAILING}");
            }
            None if was_failing => tracing::info!("traces are exported again"),
            _ => {}
        }
        posted
    }
}

impl Client {
    async fn post(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let deadline = Instant::now() + TIMEOUT;
        let host = self.target.host().parse()?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, host);
        headers.insert(
            header::CONNECTION,
            header::HeaderValue::from_static("close"),
        );
        let target = request.uri().path_and_query().cloned();
        *request.uri_mut() = target.map_or_else(Uri::default, Uri::from);
        let (status, body) = self.target.ask(request, deadline).await?;
        Ok(Response::builder().status(status).body(body.into())?)
    }
}
