//! `deploy/kubernetes` and the chart of it: the objects fit the schemas of Kubernetes, and countersign accepts their
//! configuration. The configuration of `deploy/one-node` too.

use serde_json::Value;

use super::{file, printed, tool};
use crate::support::{proxy::Builder, tls::write_secret};

/// Builds the kustomizations with these names, which checks their objects.
pub(super) fn build(names: &[&str]) -> Vec<Value> {
    let folders = names
        .iter()
        .map(|name| file("deploy/kubernetes").join(name));
    let mut python = tool("python");
    python.arg(file("tests/deploy/manifests.py")).args(folders);
    let printed = printed(&mut python);
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_manifests_are_valid_and_so_is_the_configuration_in_them() {
    let kustomizations = ["sidecar", "sidecar-socket", "replicas", "gateway-api"];
    let built = build(&kustomizations);
    assert_eq!(built.len(), kustomizations.len());
    for kustomization in built {
        let kinds = kustomization["kinds"].as_array().unwrap();
        let has = |kind: &str| {
            kinds
                .iter()
                .any(|it| it.as_str().unwrap().starts_with(kind))
        };
        assert!(has("NetworkPolicy/"), "{kinds:?}");
        let text = kustomization["configuration"].as_str().unwrap();
        // A sidecar forwards only to its own pod: the API trusts its identity headers.
        let config: toml::Table = text.parse().unwrap();
        let variable = kustomization["environment"]["COUNTERSIGN__UPSTREAM__API_URL"].as_str();
        let written = config.get("upstream").and_then(|it| it["api_url"].as_str());
        if let Some(url) = variable.or(written) {
            let url = url.trim_matches('"');
            let is_local = url.starts_with("http://127.0.0.1:") || url.starts_with("unix:/");
            assert_eq!(is_local, has("StatefulSet/api"), "{url}");
        } else {
            assert!(has("HTTPRoute/api"), "the gateway forwards: {kinds:?}");
        }
        let builder = Builder::in_front_of_url("http://127.0.0.1:1");
        let place = builder.directory().display().to_string();
        write_secret(&builder.directory().join("store_key"), [1; 32]);
        let text = text
            .replace("/run/secrets/countersign", &place)
            .replace("/var/lib/countersign", &place);
        let mut builder = builder.config(&text);
        if text.contains("postgres") {
            builder.set("store.url", "postgres://a@127.0.0.1:1/b".into());
            builder.set("nonce.url", "redis://127.0.0.1:1/0".into());
        }
        // Store and API do not exist here, which exits with 1; an error in the configuration exits with 2.
        let ended = builder.run(&["check"], "");
        assert_eq!(ended.code(), Some(1), "{ended:?}");
    }
}

#[test]
fn the_chart_gives_the_objects_of_the_replicas_manifests() {
    let mut compare = tool("python");
    compare.arg(file("tests/deploy/chart.py"));
    compare.arg(file("deploy/charts/countersign"));
    compare.arg(file("deploy/kubernetes/replicas"));
    printed(compare.arg(file("tests/clients/node/node_modules")));
}

#[test]
fn the_files_of_the_chart_are_those_that_its_script_makes() {
    let directory = tempfile::TempDir::new().unwrap();
    let made = directory.path().join("chart");
    let mut make = std::process::Command::new(file("deploy/charts/make"));
    printed(make.arg(&made).env_remove("REGISTRY"));
    let mut compare = std::process::Command::new("diff");
    compare.args(["--recursive", "--unified"]);
    // A difference is in the message: deploy/charts/make writes the files again.
    printed(compare.arg(file("deploy/charts/countersign")).arg(made));
}

#[test]
fn the_configuration_of_one_node_misses_nothing_but_its_api() {
    let compose = super::read("deploy/one-node/compose.yaml");
    let config = super::read("deploy/one-node/config.toml");
    let address = compose
        .split("COUNTERSIGN__LISTEN__ADDRESS: '")
        .nth(1)
        .unwrap();
    let address = address.split('\'').next().unwrap();
    let builder = Builder::in_front_of_url("http://127.0.0.1:1").config(&config);
    let builder = builder.environment("COUNTERSIGN__LISTEN__ADDRESS", address);
    let ended = builder.run(&["check"], "");
    let errors = ended.stderr.lines().filter(|line| line.starts_with('✗'));
    let errors = Vec::from_iter(errors);
    assert!(
        matches!(errors[..], [error, _count] if error.contains("upstream.api_url: http://api:")),
        "{ended:?}"
    );
}
