//! Traces, as read by a collector that was written from the published protocol.
//!
//! Promise (Storage and operation): A trace continues only that of a trusted caller, and contains no query, secret or token; a
//! failing collector loses only traces.

use std::path::PathBuf;

use serde_json::Value;

use super::{file, tool};
use crate::support::{
    Call, Proxy, Upstream,
    authority::Authority,
    free_port,
    gate::WAYS,
    has,
    program::{Log, Server},
    proxy::Builder,
    until,
};

struct Collector {
    _server: Server,
    lines: Log,
    port: u16,
}

impl Collector {
    fn start(arguments: &[&str]) -> Self {
        let mut command = tool("python");
        command
            .arg(file("tests/deploy/collector.py"))
            .args(arguments);
        let mut server = Server::telling(&mut command);
        let lines = Log::read_from(server.0.stdout.take().unwrap());
        let port = lines.wait_for("its port", |line| line.parse().ok());
        Self {
            _server: server,
            lines,
            port,
        }
    }

    fn spans(&self) -> Vec<Value> {
        let lines = self.lines.lines();
        let spans = lines[1..].iter();
        spans
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The spans of a trace, once its request has come.
    fn trace(&self, route: &str) -> Vec<Value> {
        let of_request = |span: &Value| attribute(span, "url.path") == route;
        until(route, || self.spans().iter().any(of_request));
        let spans = self.spans();
        let whole = spans.iter().find(|span| of_request(span)).unwrap();
        let of_trace = spans
            .iter()
            .filter(|span| span["ids"][0] == whole["ids"][0]);
        of_trace.cloned().collect()
    }
}

fn attribute(span: &Value, key: &str) -> String {
    let attributes = span["attributes"].as_array().into_iter().flatten();
    let mut values = attributes.filter(|attribute| attribute["key"] == key);
    let value = values.next().map(|attribute| &attribute["value"]);
    let text = value.and_then(|value| value["stringValue"].as_str().or(value["intValue"].as_str()));
    text.unwrap_or_default().to_owned()
}

fn time(span: &Value, end: &str) -> u128 {
    span[end].as_str().unwrap().parse().unwrap()
}

const FAILED: &str = "countersign_traces_total{result=\"failed\"}";

const CALLERS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_request_is_a_span_with_its_steps_and_no_secrets() {
    let collector = Collector::start(&[]);
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api)
        .config(&format!(
            "telemetry.otlp_endpoint = 'http://127.0.0.1:{}'",
            collector.port
        ))
        .start();
    let caller = proxy.somebody();
    proxy.passes(
        Call::get("/signed?secret=in+the+query")
            .of(&caller)
            .header("tracestate", "a=b")
            .header("traceparent", CALLERS),
    );
    // No peer is trusted: the ids of the caller are not continued.
    let seen = api.only_request();
    assert_eq!(seen.header("tracestate"), None);
    let sent: Vec<String> = seen
        .header("traceparent")
        .unwrap()
        .split('-')
        .map(str::to_owned)
        .collect();
    let spans = collector.trace("/signed");
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["receive", "verify", "upstream", "respond", "GET unlisted"]
    );
    let whole = &spans[4];
    assert_eq!(whole["kind"], "SPAN_KIND_SERVER");
    assert_eq!(whole["ids"][2], "", "it has no parent");
    assert!(!CALLERS.contains(whole["ids"][0].as_str().unwrap()));
    assert_eq!(
        [sent[1].as_str(), &sent[2], &sent[3]],
        [
            whole["ids"][0].as_str().unwrap(),
            spans[2]["ids"][1].as_str().unwrap(),
            "01"
        ]
    );
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.route", "unlisted"),
        ("http.response.status_code", "200"),
        ("countersign.verdict", "forwarded"),
        ("countersign.consumer", &caller.consumer.key),
        (
            "countersign.request_id",
            seen.header("x-request-id").unwrap(),
        ),
    ] {
        assert_eq!(attribute(whole, key), value, "{key}");
    }
    let service = whole["resource"].as_array().unwrap().iter();
    assert!(
        service
            .clone()
            .any(|attribute| attribute["key"] == "service.name"
                && attribute["value"]["stringValue"] == "countersign")
    );
    // The steps fill the request, one after the other.
    let mut at = time(whole, "startTimeUnixNano");
    for step in &spans[..4] {
        assert_eq!(step["ids"][2], whole["ids"][1]);
        assert_eq!(time(step, "startTimeUnixNano"), at, "{step}");
        at = time(step, "endTimeUnixNano");
    }
    assert_eq!(at, time(whole, "endTimeUnixNano"));

    let wrong = Call::get("/wrong")
        .of(&caller)
        .spoiled("oauth_signature", "AAAA");
    proxy.rejects(wrong, 401, "signature_invalid");
    let spans = collector.trace("/wrong");
    let whole = spans.last().unwrap();
    assert_eq!(attribute(whole, "countersign.verdict"), "signature_invalid");
    assert_eq!(
        attribute(whole, "countersign.consumer"),
        "",
        "it is not verified"
    );
    // Spans that ended before the process are exported.
    proxy.passes(Call::get("/last").of(&caller));
    assert!(proxy.stop().success());
    collector.trace("/last");
    let all = collector.lines.lines().join("\n");
    let (consumer, token) = (&caller.consumer, &caller.token);
    for secret in [
        consumer.secret.as_str(),
        &token.secret,
        &token.token,
        "query",
        "oauth",
    ] {
        assert!(!all.contains(secret), "{secret}");
    }
}

#[test]
fn the_trace_of_a_trusted_caller_goes_on() {
    let collector = Collector::start(&[]);
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config(&format!(
            "listen.trusted_proxies = ['127.0.0.1']\noperations.unlisted = 'anonymous'\n\
             telemetry.otlp_endpoint = 'http://127.0.0.1:{}/v1/traces'",
            collector.port
        ))
        .start();
    let [_, id, span, _] = CALLERS.split('-').collect::<Vec<_>>()[..] else {
        panic!("four parts");
    };
    let unsampled = CALLERS.replace("-01", "-00");
    for (path, sent, is_callers) in [
        ("/known", &[CALLERS][..], true),
        ("/unsampled", &[&unsampled], true),
        ("/none", &[], false),
        ("/twice", &[CALLERS, CALLERS], false),
        (
            "/zero",
            &["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
            false,
        ),
        ("/short", &["00-4bf92f35-00f067aa0ba902b7-01"], false),
        ("/other", &["no trace"], false),
    ] {
        let call = sent.iter().fold(Call::get(path), |call, sent| {
            call.header("traceparent", sent)
        });
        proxy.passes(call.header("tracestate", "vendor=state"));
        let seen = api.last_request();
        let to_api = seen.header("traceparent").unwrap();
        assert_eq!(seen.fields.all("traceparent").len(), 1, "{path}");
        assert_eq!(to_api.contains(id), is_callers, "{path}");
        assert!(!to_api.contains(span), "{path}");
        assert_eq!(seen.header("tracestate").is_some(), is_callers, "{path}");
        assert_eq!(to_api.ends_with("-00"), path == "/unsampled");
    }
    let spans = collector.trace("/known");
    assert_eq!(
        spans.last().unwrap()["ids"],
        serde_json::json!([id, spans.last().unwrap()["ids"][1], span])
    );
    collector.trace("/other");
    let told = collector.spans();
    assert!(
        told.iter()
            .all(|span| attribute(span, "url.path") != "/unsampled")
    );
}

#[test]
fn a_trace_in_a_description_is_the_callers() {
    let collector = Collector::start(&[]);
    let proxy = Builder::for_forward_auth()
        .config(&format!(
            "operations.unlisted = 'anonymous'\nlisten.trusted_proxies = ['127.0.0.1']\n\
             telemetry.otlp_endpoint = 'http://127.0.0.1:{}'",
            collector.port
        ))
        .start();
    for (way, path) in WAYS.into_iter().zip(["/a", "/b", "/c"]) {
        let call = Call::get(path).header("traceparent", CALLERS);
        proxy.asks(way, &call).has_status(200);
        for span in collector.trace(path) {
            assert!(
                !CALLERS.contains(span["ids"][0].as_str().unwrap()),
                "{span}"
            );
        }
    }
}

#[test]
fn failed_or_absent_collector_costs_its_traces_alone() {
    let api = Upstream::start();
    let collector = Collector::start(&["failing"]);
    for port in [collector.port, free_port()] {
        let proxy = Proxy::in_front_of(&api)
            .config(&format!(
                "operations.unlisted = 'anonymous'\ntelemetry.otlp_endpoint = 'http://127.0.0.1:{port}'"
            ))
            .start();
        proxy.passes(Call::get("/"));
        let cause = match port == collector.port {
            true => "the collector responds 500",
            false => "Connection refused",
        };
        proxy.logs(&[
            "WARN",
            "telemetry.otlp_endpoint",
            "cannot be exported",
            cause,
        ]);
        until("it is counted", || proxy.metric(FAILED) == 1.0);
    }
    // When traces are off, the field is forwarded like any other.
    let proxy = Proxy::with(&api, "operations.unlisted = 'anonymous'");
    proxy.passes(Call::get("/off").header("traceparent", "anything"));
    assert_eq!(api.last_request().header("traceparent"), Some("anything"));
}

#[test]
fn traces_over_https_go_only_to_a_trusted_certificate() {
    let directory = tempfile::TempDir::new().unwrap();
    let text = |path: PathBuf| path.display().to_string();
    let authority = Authority::new("authority");
    let (certificate, key) = authority
        .server(&["localhost"])
        .write(directory.path(), "collector");
    let collector = Collector::start(&[&text(certificate), &text(key)]);
    let certificate = text(authority.write(directory.path(), "authority"));
    let other = text(Authority::new("authority").write(directory.path(), "other"));
    let api = Upstream::start();
    let start = |host: &str, variable: &str, authority: &str| {
        let config = format!(
            "operations.unlisted = 'anonymous'\ntelemetry.otlp_endpoint = 'https://{host}:{}'",
            collector.port
        );
        let builder = Proxy::in_front_of(&api).config(&config);
        builder.environment(variable, authority)
    };
    let general = "OTEL_EXPORTER_OTLP_CERTIFICATE";
    for (host, variable, authority, problem) in [
        ("localhost", general, other.as_str(), "BadSignature"),
        // Without the variable the system's authorities are trusted.
        ("localhost", "UNUSED", "", "UnknownIssuer"),
        ("127.0.0.1", general, &certificate, "not valid for name"),
    ] {
        let proxy = start(host, variable, authority).start();
        proxy.passes(Call::get("/elsewhere"));
        proxy.logs(&["WARN", "cannot be exported", problem]);
        until("it is counted", || proxy.metric(FAILED) == 1.0);
    }
    let proxy = start("localhost", general, &other)
        .environment("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", &certificate)
        .start();
    proxy.passes(Call::get("/trusted"));
    collector.trace("/trusted");
    for span in collector.spans() {
        assert_ne!(attribute(&span, "url.path"), "/elsewhere");
    }
    let missing = start("localhost", general, "/nowhere.pem");
    for ended in [missing.serve_fails(), missing.run(&["check"], "")] {
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        has(&ended.stderr, &[general, "/nowhere.pem"]);
    }
    let checked = start("localhost", general, &certificate).run(&["check"], "");
    has(
        &checked.done().stdout,
        &["traces  ", " takes connections\n"],
    );
    let checked = start("localhost", general, &other)
        .run(&["check"], "")
        .done();
    let warning = [
        "! ",
        "telemetry.otlp_endpoint: ",
        "another authority of the same name",
    ];
    has(&checked.stderr, &warning);
}
