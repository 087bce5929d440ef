//! The findings of `sslyze` about the listener: every weakness it knows, and Mozilla's recommendations.
//!
//! Promise (TLS): Only TLS 1.2 and 1.3 with forward secrecy are accepted, and demanded client certificates cannot be left out.
//! Also in `tests/tls/versions.rs`, `tests/tls/peers.rs`, `tests/tls/resumption.rs`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::caller::with_certificates;
use crate::support::{
    Upstream,
    authority::{Authority, Good, rsa_key},
    words,
};

fn tool(path: &str) -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(path);
    assert!(
        tool.exists(),
        "{} is missing: `tests/run` installs it",
        tool.display()
    );
    tool
}

#[test]
fn sslyze_finds_no_weak_setting() {
    let (api, authority) = (Upstream::start(), Authority::new("CA"));
    let ecdsa = authority.server(&["localhost"]);
    let rsa = authority.sign(&["localhost"], Good::NOW, rsa_key());
    let proxy = with_certificates(&api, &[("ecdsa", &ecdsa), ("rsa", &rsa)]).start();
    let roots = authority.write(proxy.directory(), "roots");
    let output = Command::new(tool(".tools/venv/bin/python"))
        .arg(tool("clients/python/tls.py"))
        .arg(proxy.address().port().to_string())
        .arg(roots)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{complaint}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();

    let commands = &report["commands"];
    for version in ["ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"] {
        assert_eq!(commands[version], serde_json::json!([]), "{report:#}");
    }
    let mut suites = Vec::new();
    for version in ["tls_1_2", "tls_1_3"] {
        let accepted = commands[version].as_array().unwrap();
        assert!(accepted.len() >= 3, "{report:#}");
        suites.extend(accepted.iter().map(|suite| suite.as_str().unwrap()));
    }
    for suite in suites {
        assert!(
            suite.contains("_GCM_") || suite.contains("CHACHA20"),
            "{suite}"
        );
        assert!(
            suite.starts_with("TLS_ECDHE_") || !suite.contains("_WITH_"),
            "{suite}"
        );
    }
    for weakness in words("heartbleed ccs_injection compression early_data renegotiation_dos robot")
    {
        assert_eq!(commands[weakness], false, "{weakness} in {report:#}");
    }
    for strength in words("secure_renegotiation fallback_scsv extended_master_secret") {
        assert_eq!(commands[strength], true, "{strength} in {report:#}");
    }
    let two = serde_json::json!([true, true]);
    assert_eq!(commands["certificates_verified"], two, "{report:#}");
    let groups = serde_json::json!(["X25519", "secp256r1", "secp384r1"]);
    assert_eq!(commands["curves"], groups, "{report:#}");
    // The only difference to the modern profile is TLS 1.2, which is enabled on purpose.
    assert_eq!(
        report["mozilla"]["intermediate"],
        serde_json::json!({}),
        "{report:#}"
    );
    let modern = report["mozilla"]["modern"].as_object().unwrap();
    let mut missed: Vec<&str> = modern.keys().map(String::as_str).collect();
    missed.sort_unstable();
    assert_eq!(missed, ["ciphers", "tls_versions"], "{report:#}");
    // It tried to renegotiate, which does not have to warn an operator.
    let log = proxy.log().to_string();
    assert!(!log.contains("enegotiation"), "{log}");
}
