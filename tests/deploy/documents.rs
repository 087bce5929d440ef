//! `docs/errors.md` against the messages of the program, and files that a release needs.

use std::{collections::BTreeSet, process::Command};

use super::{file, printed, read};
use crate::support::Scene;

/// The headings of a level in a document.
fn headings(document: &str, level: &str) -> BTreeSet<String> {
    let lines = document
        .lines()
        .filter_map(|line| line.strip_prefix(level)?.strip_prefix(' '));
    lines.map(str::to_owned).collect()
}

#[test]
fn each_crate_of_the_program_has_an_accepted_licence() {
    // It fails for a licence that is not in its list, or that has no text.
    let licences = printed(Command::new(file("deploy/sbom")).arg("licenses"));
    let bill: serde_json::Value =
        serde_json::from_str(&printed(&mut Command::new(file("deploy/sbom")))).unwrap();
    let crates = bill["components"].as_array().unwrap();
    assert!(crates.len() > 200);
    for one in crates {
        let text = |name: &str| one[name].as_str().unwrap();
        let licence = one["licenses"][0]["expression"].as_str().unwrap();
        let line = format!("\n{} {}: {licence}\n", text("name"), text("version"));
        assert!(licences.contains(&line), "{line}");
    }
    let notice = read("NOTICE");
    for part in [
        "src/provider/login/common_passwords.txt",
        "Redistributions in binary form",
    ] {
        assert!(notice.contains(part), "{part}");
    }
}

#[test]
fn each_problem_and_each_mistake_has_a_heading_with_the_advice() {
    let document = read("docs/errors.md");
    let text = Scene::start().proxy.ask_admin("/metrics").text();
    let shown = text.split("countersign_requests_total{verdict=\"").skip(1);
    let mut expected: BTreeSet<String> = shown
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    for accepted in [
        "forwarded",
        "anonymous",
        "observed",
        "request_token_issued",
        "access_token_issued",
        "access_token_revoked",
        "token_exchanged",
        "page",
        "login_needed",
    ] {
        assert!(expected.remove(accepted), "{accepted}");
    }
    assert!(expected.len() > 30);
    expected.insert("Mistakes in signatures".to_owned());
    assert_eq!(headings(&document, "##"), expected);

    let table = read("src/oauth/diagnosis/table.rs");
    let rows = table.lines().filter_map(|line| {
        line.strip_prefix("    \"")?
            .strip_suffix('"')?
            .split_once("\": \"")
    });
    let rows: Vec<(&str, &str)> = rows.collect();
    assert!(rows.len() > 50);
    let words = rows.iter().map(|(word, _)| (*word).to_owned()).collect();
    assert_eq!(headings(&document, "###"), words);
    for (word, advice) in rows {
        let told = document
            .split(&format!("### {word}\n\n"))
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap();
        let advice = advice.replace("\\\"", "\"") + ".";
        assert_eq!(told.to_lowercase(), advice.to_lowercase(), "{word}");
    }
}

#[test]
fn the_readme_is_short_and_the_version_is_in_the_change_log() {
    assert!(read("README.md").lines().count() <= 200);
    let heading = format!("## {}\n", env!("CARGO_PKG_VERSION"));
    assert!(read("CHANGELOG.md").contains(&heading));
    for name in [
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/security.md",
        "docs/migrating.md",
        "docs/upgrading.md",
    ] {
        assert!(file(name).exists(), "{name}");
    }
}
