//! `docs/metrics.md`, the rules of Prometheus and the dashboard, with real metrics.
//!
//! Promise (Storage and operation): The document lists all metrics, each alert fires when it should, and Prometheus answers
//! each query of the dashboard.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpStream},
    process::Command,
};

use rustix::process::Signal;

use super::{file, printed, read};
use crate::support::{
    Call, PATIENCE, Proxy, Scene, Token, Upstream, free_port, http, legs::REQUEST_TOKEN,
    program::Server, proxy::Consumer, signer::encode, tls::Certificate, within,
};

/// A proxy with a series of every metric.
fn scene() -> Scene {
    let certificate = Certificate::for_names(&["localhost"]);
    let api = Upstream::over_tls(&certificate);
    let builder = Proxy::in_front_of(&api);
    let (file, key) = certificate.write(builder.directory());
    let proxy = builder.config(&format!(
        "upstream.tls = {{ ca = {file:?}, certificate = {file:?}, key = {key:?}, server_name = 'localhost' }}\n\
         operation = [{{ path = '/x' }}, {{ path = '/observed', enforcement = 'observe' }}]"
    ));
    let proxy = proxy.start();
    let caller = proxy.somebody();
    let scene = Scene { api, proxy, caller };
    send_everything(&scene);
    scene
}

fn send_everything(Scene { proxy, caller, .. }: &Scene) {
    let unknown = Consumer {
        key: "unknown".to_owned(),
        secret: String::new(),
    };
    proxy.send(Call::get("/x").by(&unknown)).has_status(401);
    proxy.send(Call::get("/x").of(caller)).has_status(200);
    let wrong = || Call::get("/x").of(caller).signs_method("POST");
    proxy.send(wrong()).is(401, "signature_invalid");
    let revoked = Token {
        token: "unknown".to_owned(),
        secret: String::new(),
    };
    let deviating = proxy.consumer_with("Jira", "--accept callback_absent --callback oob");
    proxy
        .send(Call::post(REQUEST_TOKEN).by(&deviating))
        .has_status(200);
    let observed = Call::get("/observed").by(&caller.consumer).with(&revoked);
    proxy.send(observed).has_status(200);
}

#[test]
fn document_lists_every_metric_with_its_type_labels_and_help() {
    let text = scene().proxy.ask_admin("/metrics").text();
    let mut shown = BTreeSet::new();
    for (name, help) in text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '))
        // The document names the standard ones together.
        .filter(|(name, _)| name.starts_with("countersign_"))
    {
        let kinds = text.lines().filter_map(|line| {
            let (declared, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
            (declared == name).then_some(kind)
        });
        let kinds = Vec::from_iter(kinds);
        let [kind] = kinds[..] else {
            panic!("{name} is declared {} times", kinds.len());
        };
        let sample = text.lines().find(|line| line.starts_with(name)).unwrap();
        let labels = sample
            .split_once('{')
            .map_or("", |(_, labels)| labels.split_once('}').unwrap().0);
        let labels = labels
            .split("\",")
            .filter_map(|label| label.split('=').next());
        let labels: Vec<String> = labels
            .filter(|label| !label.is_empty() && *label != "le")
            .map(|label| format!("`{label}`"))
            .collect();
        let by = if labels.is_empty() { "" } else { " by " };
        let labels = labels.join(", ");
        shown.insert(format!("- `{name}`, {kind}{by}{labels}: {help}"));
    }
    let document = read("docs/metrics.md");
    let rows = document
        .lines()
        .filter(|line| line.starts_with("- `countersign_"));
    let rows = Vec::from_iter(rows);
    assert!(!rows.is_empty(), "the document lists no metric");
    let shown = Vec::from_iter(shown);
    if std::env::var_os("COUNTERSIGN_WRITE_EXAMPLE").is_some() {
        let written = document.replace(&rows.join("\n"), &shown.join("\n"));
        std::fs::write(file("docs/metrics.md"), written).unwrap();
    } else {
        let way = "COUNTERSIGN_WRITE_EXAMPLE=1 cargo test --test deploy metrics writes the list";
        assert_eq!(shown, rows, "{way}");
    }
}

#[test]
fn consumers_are_counted_after_a_right_signature() {
    let scene = scene();
    let Scene { proxy, caller, .. } = &scene;
    let count = |consumer: &str, result: &str| {
        proxy.metric(&format!(
            "countersign_consumer_requests_total{{consumer=\"{consumer}\",result=\"{result}\"}}"
        ))
    };
    let shown = [("accepted", 1.0), ("rejected", 2.0)];
    assert_eq!(
        shown.map(|(result, _)| (result, count(&caller.consumer.key, result))),
        shown
    );
    assert_eq!(count("all others", "rejected"), 1.0);
    assert_eq!(count("unknown", "rejected"), 0.0);
}

#[test]
fn metrics_show_readiness_and_reloads() {
    let mut scene = Scene::with("listen.drain_delay = '1m'");
    let proxy = &mut scene.proxy;
    assert_eq!(proxy.metric("countersign_ready"), 1.0);
    proxy.reconfigure("log.level = 'loud'");
    for (result, successful) in [("failed", 0.0), ("applied", 1.0)] {
        proxy.signal(Signal::HUP);
        let name = format!("countersign_reloads_total{{result=\"{result}\"}}");
        within(PATIENCE, "a reload", || {
            (proxy.metric(&name) == 1.0).then_some(())
        });
        assert_eq!(
            proxy.metric("countersign_last_reload_successful"),
            successful
        );
        proxy.reconfigure("log.level = 'info'");
    }
    proxy.signal(Signal::TERM);
    within(PATIENCE, "not ready while draining", || {
        (proxy.metric("countersign_ready") == 0.0).then_some(())
    });
}

#[test]
fn promtool_accepts_the_rules_and_each_fires_when_it_should() {
    let promtool = |arguments: [&str; 3]| {
        printed(
            Command::new("promtool")
                .current_dir(file("deploy/prometheus"))
                .args(arguments),
        )
    };
    promtool(["check", "config", "prometheus.yml"]);
    promtool(["test", "rules", "rules_test.yml"]);
    let (rules, tests, document) = (
        read("deploy/prometheus/rules.yml"),
        read("deploy/prometheus/rules_test.yml"),
        read("docs/metrics.md"),
    );
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(tests.contains(&format!("\"{alert}\"")), "no test: {alert}");
        assert!(
            document.contains(&format!("`{alert}`")),
            "not described: {alert}"
        );
    }
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard() {
    let scene = scene();
    let port = free_port();
    let directory = tempfile::TempDir::new().unwrap();
    let configuration = read("deploy/prometheus/prometheus.yml")
        .replace("127.0.0.1:8081", &scene.proxy.admin().to_string())
        .replace("15s", "1s")
        .replace(
            "rules.yml",
            file("deploy/prometheus/rules.yml").to_str().unwrap(),
        );
    std::fs::write(directory.path().join("prometheus.yml"), configuration).unwrap();
    let _prometheus = Server::start(
        Command::new("prometheus")
            .current_dir(directory.path())
            .args(["--config.file=prometheus.yml", "--log.level=error"])
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address=127.0.0.1:{port}")),
    );
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    within(PATIENCE, "Prometheus is ready", || {
        TcpStream::connect(address).ok()?;
        (http::get(address, "/-/ready").status == 200).then_some(())
    });
    let ask = |query: &str| {
        let response = http::get(address, &format!("/api/v1/query?query={}", encode(query)));
        let told = response.has_status(200).json();
        !told["data"]["result"].as_array().unwrap().is_empty()
    };
    // Counters that rise between two scrapes.
    for scrapes in [1, 3] {
        let query = format!("count_over_time(countersign_ready[1m]) >= {scrapes}");
        within(PATIENCE, &query, || ask(&query).then_some(()));
        send_everything(&scene);
    }
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/countersign.json")).unwrap();
    // Its variables have values.
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let asked = variables
        .iter()
        .filter_map(|it| it["query"]["query"].as_str());
    let asked: Vec<&str> = asked.collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for variable in asked {
        let inner = variable.strip_prefix("label_values(").unwrap();
        let (series, label) = inner.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
        let series = encode(series.replace("$job", "countersign"));
        let target = format!("/api/v1/label/{label}/values?match[]={series}");
        let values = http::get(address, &target).has_status(200).json();
        assert_eq!(
            values["data"].as_array().unwrap().len(),
            1,
            "{variable}: {values}"
        );
    }
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let queries: Vec<String> = targets
        .map(|target| target["expr"].as_str().unwrap())
        .map(|query| {
            query
                .replace("$__rate_interval", "1m")
                .replace("$job", "countersign")
                .replace("$instance", ".*")
        })
        .collect();
    assert!(queries.len() > 20);
    for query in queries {
        within(PATIENCE, &query, || ask(&query).then_some(()));
    }
}
