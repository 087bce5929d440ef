//! Traces (`telemetry.otlp_endpoint`): a span for each request and one for each of its steps. They are made when the
//! request has ended, from the times in its record. Callers and the API take part by W3C Trace Context.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    InstrumentationScope, KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId},
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{IdGenerator as _, RandomIdGenerator, SpanData},
};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};

use super::calls::record::CallRecord;
use crate::base::network::http_fields::single;

/// The field that names trace and span, and whether the trace is recorded.
pub static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Requests whose spans may wait for the export; those of one more are dropped.
pub const QUEUE: usize = 2_048;

/// The longest value of an attribute that a caller chooses, in bytes.
const MAX_VALUE: usize = 256;

/// A message to the exporter.
pub enum TraceMessage {
    /// The spans of a request.
    Spans(Vec<SpanData>),
    /// Asks to export everything that has come, and then to answer.
    Flush(oneshot::Sender<()>),
}

/// Begins traces and hands the ended ones to the exporter.
pub struct Traces {
    queue: mpsc::Sender<TraceMessage>,
    dropped: Counter,
}

/// The place of a request in its trace.
#[derive(Debug)]
pub struct Trace {
    id: TraceId,
    /// The caller's span, if a trusted caller named one.
    parent: SpanId,
    span: SpanId,
    /// The span of the call to the API, which is the parent of the API's own.
    upstream: SpanId,
    flags: TraceFlags,
}

/// The fields of a trace that the API gets.
#[derive(Debug)]
pub struct ToApi {
    /// `traceparent`.
    pub traceparent: HeaderValue,
    /// The caller's `tracestate` goes with it.
    pub keeps_state: bool,
}

/// The durations of the steps of a request that only its trace shows.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// The verification.
    pub verify: Option<Duration>,
    /// The time after the last step.
    pub rest: Duration,
}

impl Traces {
    /// Gives the spans to the receiver of `queue`; those for which there is no room are counted.
    pub const fn new(queue: mpsc::Sender<TraceMessage>, dropped: Counter) -> Self {
        Self { queue, dropped }
    }

    /// Begins the trace of a request: goes on with the one of its caller if that is trusted and names one.
    pub fn begin(headers: &HeaderMap, is_trusted: bool) -> Trace {
        let caller = is_trusted.then(|| caller_span(headers)).flatten();
        let ids = RandomIdGenerator::default();
        // If the caller does not record its trace, this process does not either.
        let caller = caller
            .unwrap_or_else(|| context(ids.new_trace_id(), SpanId::INVALID, TraceFlags::SAMPLED));
        Trace {
            id: caller.trace_id(),
            parent: caller.span_id(),
            span: ids.new_span_id(),
            upstream: ids.new_span_id(),
            flags: caller.trace_flags(),
        }
    }

    /// Makes the spans of a request that ends now.
    pub fn end(&self, trace: &Trace, call: &CallRecord<'_>, steps: Steps) {
        if trace.flags.is_sampled() {
            let spans = TraceMessage::Spans(spans(trace, call, steps));
            let sent = self.queue.try_send(spans);
            if sent.is_err() {
                self.dropped.inc();
            }
        }
    }

    /// Waits until all spans so far have been exported, or cannot be.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(TraceMessage::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

impl Trace {
    /// The fields that the API gets.
    pub fn to_api(&self) -> Option<ToApi> {
        let (id, span, flags) = (self.id, self.upstream, self.flags.to_u8());
        let traceparent = HeaderValue::try_from(format!("00-{id}-{span}-{flags:02x}"));
        Some(ToApi {
            traceparent: traceparent.ok()?,
            keeps_state: self.is_callers(),
        })
    }

    /// Whether it goes on with the trace of a trusted caller.
    fn is_callers(&self) -> bool {
        self.parent != SpanId::INVALID
    }
}

/// The span of the caller, from a single valid field.
fn caller_span(headers: &HeaderMap) -> Option<SpanContext> {
    struct Parent<'a>(&'a str);
    impl Extractor for Parent<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            (key == TRACEPARENT.as_str()).then_some(self.0)
        }
        fn keys(&self) -> Vec<&str> {
            vec![TRACEPARENT.as_str()]
        }
    }
    let text = str::from_utf8(single(headers, &TRACEPARENT).ok()??).ok()?;
    // The library would accept shorter parts as numbers.
    if !text.split('-').map(str::len).take(4).eq([2, 32, 16, 2]) {
        return None;
    }
    let context = TraceContextPropagator::new().extract(&Parent(text));
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("countersign")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
});

/// The span of a whole call that ends at this time.
fn whole(trace: &Trace, call: &CallRecord<'_>, end: SystemTime) -> SpanData {
    // Callers have no influence on names.
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let mut known = known.into_iter();
    let method = known.find(|known| Some(*known) == call.method.as_deref());
    let method = method.unwrap_or("_OTHER");
    // Without the methods that the operation lists.
    let operation = call.operation.as_deref().unwrap_or_default();
    let route = operation.rsplit(' ').next().unwrap_or_default();
    let is_error = call.status == 0 || call.status >= 500;
    SpanData {
        span_context: context(trace.id, trace.span, trace.flags),
        parent_span_id: trace.parent,
        parent_span_is_remote: trace.is_callers(),
        span_kind: SpanKind::Server,
        name: format!("{method} {route}").into(),
        start_time: end.checked_sub(call.ms.unwrap_or_default()).unwrap_or(end),
        end_time: end,
        attributes: attributes(call, method, route.to_owned()),
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status: match is_error {
            true => Status::error(call.verdict.as_str()),
            false => Status::Unset,
        },
        instrumentation_scope: SCOPE.clone(),
    }
}

/// What a trace shows of a call.
fn attributes(call: &CallRecord<'_>, method: &'static str, route: String) -> Vec<KeyValue> {
    let id = call.request_id.as_deref().unwrap_or_default().to_owned();
    let mut attributes = vec![
        KeyValue::new("http.request.method", method),
        KeyValue::new("http.route", route),
        KeyValue::new(
            "url.path",
            shortened(call.path.as_deref().unwrap_or_default()),
        ),
        KeyValue::new("countersign.verdict", call.verdict.as_str()),
        KeyValue::new("countersign.request_id", id),
    ];
    if call.status != 0 {
        attributes.push(KeyValue::new(
            "http.response.status_code",
            i64::from(call.status),
        ));
    }
    // Only of a right signature.
    if let Some(consumer) = &call.consumer {
        attributes.push(KeyValue::new(
            "countersign.consumer",
            consumer.clone().into_owned(),
        ));
    }
    attributes
}

fn spans(trace: &Trace, call: &CallRecord<'_>, steps: Steps) -> Vec<SpanData> {
    let end = SystemTime::now();
    let whole = whole(trace, call, end);
    // Each step ended where the next one began.
    let answered = end.checked_sub(steps.rest).unwrap_or(end);
    let asked = answered - call.upstream_ms.unwrap_or_default();
    let received = asked - steps.verify.unwrap_or_default();
    let (verifies, asks) = (steps.verify.is_some(), call.upstream_ms.is_some());
    let ids = RandomIdGenerator::default();
    let mut spans = Vec::with_capacity(5);
    for (is_there, name, start_time, end_time) in [
        (verifies || asks, "receive", whole.start_time, received),
        (verifies, "verify", received, asked),
        (asks, "upstream", asked, answered),
        (asks, "respond", answered, end),
    ] {
        let (span_kind, span) = match name {
            "upstream" => (SpanKind::Client, trace.upstream),
            _ => (SpanKind::Internal, ids.new_span_id()),
        };
        if is_there {
            spans.push(SpanData {
                span_context: context(trace.id, span, trace.flags),
                parent_span_id: trace.span,
                parent_span_is_remote: false,
                span_kind,
                name: name.into(),
                start_time,
                end_time,
                attributes: Vec::new(),
                status: Status::Unset,
                ..whole.clone()
            });
        }
    }
    spans.push(whole);
    spans
}

fn context(trace: TraceId, span: SpanId, flags: TraceFlags) -> SpanContext {
    SpanContext::new(trace, span, flags, false, Default::default())
}

/// The beginning of a text of a caller.
fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_VALUE)].to_owned()
}
