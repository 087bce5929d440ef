//! The documents: their links, lengths, contents lists and index, `docs/errors.md` against the messages of the program,
//! and files that a release needs.
//!
//! Promise (Storage and operation): The licence of each crate is accepted, and its text is in package and image. Also in
//! `tests/deploy/package.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use countersign::oauth::diagnosis::Mistake;

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

    let words = Mistake::ALL.iter().map(|mistake| mistake.word().to_owned());
    assert_eq!(headings(&document, "###"), words.collect());
    for mistake in Mistake::ALL {
        let (word, advice) = (mistake.word(), mistake.advice());
        let told = document
            .split(&format!("### {word}\n\n"))
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap();
        let advice = format!("{advice}.");
        assert_eq!(told.to_lowercase(), advice.to_lowercase(), "{word}");
    }
}

/// The most lines of the README, and of a page in `docs`.
const README_LINES: usize = 120;
const PAGE_LINES: usize = 250;

/// Pages without these limits: `service.docs_url` names one page for all codes, and tests or lists make the others.
const LISTS: [&str; 3] = [
    "docs/configuration.md",
    "docs/errors.md",
    "docs/promises.md",
];

/// Pages of more sections begin with links to them.
const SECTIONS_WITHOUT_CONTENTS: usize = 7;

/// The Markdown files of the project with their text, by their path.
pub(super) fn documents() -> BTreeMap<String, String> {
    let mut documents = BTreeMap::new();
    for directory in [
        "",
        ".github",
        "benches",
        "deploy",
        "deploy/charts/countersign",
        "deploy/providers",
        "docs",
        "fuzz",
        "locales",
        "tests",
        "tests/clients",
        "tests/providers",
    ] {
        for entry in fs::read_dir(file(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
                let text = fs::read_to_string(&path).unwrap();
                documents.insert(name.display().to_string(), text);
            }
        }
    }
    documents
}

/// The lines that are not in a block of code.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    document.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The name of a heading in a link, as GitHub and mdbook make it.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase();
    let letters = letters
        .chars()
        .filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    letters.map(|it| if it == ' ' { '-' } else { it }).collect()
}

fn anchors(document: &str) -> BTreeSet<String> {
    let headings = prose(document).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim_start()))
        .collect()
}

/// The targets of links and pictures.
fn links(document: &str) -> impl Iterator<Item = &str> {
    prose(document).flat_map(|line| {
        let starts = [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"')];
        starts.into_iter().flat_map(move |(start, end)| {
            line.split(start)
                .skip(1)
                .map(move |rest| rest.split(end).next().unwrap())
        })
    })
}

#[test]
fn every_link_in_the_documents_leads_to_a_file_and_a_heading() {
    let documents = documents();
    for (name, text) in &documents {
        for link in links(text).filter(|link| !link.starts_with("http")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let directory = Path::new(name).parent().unwrap();
            let target = match path {
                "" => file(name),
                _ => file(directory.join(path).to_str().unwrap()),
            };
            assert!(target.exists(), "{name} links to {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                assert!(anchors(&text).contains(heading), "{name} links to {link}");
            }
        }
    }
}

#[test]
fn documents_of_the_package_link_to_files_that_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(file("deploy/package-documents"));
    printed(command.arg(directory.path()));
    // What cargo-deb adds beside them; `copyright` is of its own making.
    let manifest = read("Cargo.toml");
    let assets = manifest.split("\nassets = [").nth(1).unwrap();
    let assets = assets.split("\n]").next().unwrap();
    let mut others = vec!["copyright".to_owned()];
    for line in assets.lines().filter(|line| !line.contains("target/")) {
        let mut words = line.split('"').skip(1).step_by(2);
        let (Some(source), Some(place)) = (words.next(), words.next()) else {
            continue;
        };
        let Some(place) = place.strip_prefix("usr/share/doc/countersign/") else {
            continue;
        };
        let (folder, name) = source.rsplit_once('/').unwrap_or((".", source));
        let names = match name {
            "*" => fs::read_dir(file(folder))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect(),
            name => vec![name.into()],
        };
        others.extend(
            names
                .iter()
                .map(|name| format!("{place}{}", name.display())),
        );
    }
    assert!(
        others.contains(&"examples/providers/README.md".to_owned()),
        "{others:?}"
    );
    let (mut pages, mut links_seen) = (0, 0);
    for folder in ["", "docs"] {
        for entry in fs::read_dir(directory.path().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            pages += 1;
            for link in links(&fs::read_to_string(&path).unwrap()) {
                let link = link.split('#').next().unwrap();
                if link.is_empty() || link.starts_with("http") {
                    continue;
                }
                links_seen += 1;
                let name = match link.strip_prefix("../") {
                    Some(above) => above.to_owned(),
                    None => Path::new(folder).join(link).display().to_string(),
                };
                let is_there = directory.path().join(&name).is_file() || others.contains(&name);
                assert!(is_there, "{} links to {link}", path.display());
            }
        }
    }
    assert!(
        pages > 30 && links_seen > 100,
        "{pages} pages, {links_seen} links"
    );
}

#[test]
fn the_cache_of_each_manifest_fits_into_its_memory() {
    /// The bytes of a cached pair in the whole process, and of the rest of it: `docs/sizing.md`.
    const PAIR: u64 = 2_000;
    const REST: u64 = (20 + 32 + 75) << 20;

    for (config, manifest) in [
        ("sidecar/config.toml", "sidecar/workload.yaml"),
        ("replicas/config.toml", "replicas/countersign.yaml"),
    ] {
        let config: toml::Table = read(&format!("deploy/kubernetes/{config}"))
            .parse()
            .unwrap();
        let entries = config["cache"]["max_entries"].as_integer().unwrap();
        let manifest = read(&format!("deploy/kubernetes/{manifest}"));
        let container = manifest.split("- name: countersign\n").nth(1).unwrap();
        let limit = container.split("limits: { memory: ").nth(1).unwrap();
        let mebibytes: u64 = limit.split("Mi }").next().unwrap().parse().unwrap();
        let needed = u64::try_from(entries).unwrap() * PAIR + REST;
        assert!(needed <= mebibytes << 20, "{config:?}: {needed} bytes");
    }
}

#[test]
fn a_page_is_short_and_begins_with_links_to_its_sections() {
    for (name, text) in documents() {
        if !name.starts_with("docs/") || LISTS.contains(&name.as_str()) {
            continue;
        }
        assert!(text.lines().count() <= PAGE_LINES, "{name} is too long");
        let sections = prose(&text).filter_map(|line| line.strip_prefix("## "));
        let expected = Vec::from_iter(sections.map(|it| format!("[{it}](#{})", anchor(it))));
        if let Some(contents) = text
            .lines()
            .find_map(|line| line.strip_prefix("On this page: "))
        {
            assert_eq!(Vec::from_iter(contents.split(" · ")), expected, "{name}");
        } else {
            // The index is a list of links, and the first hour is read from its beginning to its end.
            let needs_none = ["docs/README.md", "docs/first-hour.md"].contains(&name.as_str());
            assert!(
                needs_none || expected.len() <= SECTIONS_WITHOUT_CONTENTS,
                "{name} has no contents list"
            );
        }
    }
}

#[test]
fn the_index_names_every_page() {
    let documents = documents();
    let named = BTreeSet::from_iter(
        links(&documents["docs/README.md"]).map(|link| link.split('#').next().unwrap()),
    );
    for name in documents
        .keys()
        .filter_map(|name| name.strip_prefix("docs/"))
    {
        assert!(
            name == "README.md" || named.contains(name),
            "docs/README.md does not name {name}"
        );
    }
}

#[test]
fn the_documents_are_a_book_with_a_page_for_each_error() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut script = Command::new(file("docs/book"));
    script.env("BOOK_URL", "https://docs.example.com/");
    // Sphinx ends with an error at a link that leads nowhere, and at a page that no chapter has.
    let index = printed(script.arg(directory.path()));
    let docs = Path::new(index.trim()).parent().unwrap();
    let page = |name: &str| fs::read_to_string(docs.join(name).with_extension("html")).unwrap();
    for name in documents().keys() {
        name.strip_prefix("docs/").map(page);
    }
    let errors = page("errors");
    for code in headings(&read("docs/errors.md"), "##")
        .union(&headings(&read("docs/errors.md"), "###"))
        .filter(|code| !code.contains(' '))
    {
        // Links of rejections lead to the heading, and search engines to the page.
        assert!(errors.contains(&format!("id=\"{code}\"")), "{code}");
        let own = page(&format!("errors/{code}"));
        assert!(
            own.contains(&format!("content=\"OAuth 1.0a, {code}: ")),
            "{own}"
        );
    }
    // A page is in the chapter that the index gives it.
    let chapter = |name: &str| {
        let contents = page("README");
        let before = contents
            .split(&format!("href=\"{name}.html\""))
            .next()
            .unwrap();
        let caption = before.rsplit("class=\"caption-text\">").next().unwrap();
        caption.split('<').next().unwrap().to_owned()
    };
    assert_eq!(chapter("setup"), "You put it in front of an API");
    assert_eq!(chapter("promises"), "You maintain it");
    assert!(page("configuration").contains("<span class=\"pre\">listen.address</span>"));
    let summary = fs::read_to_string(docs.join("../llms.txt")).unwrap();
    assert!(summary.contains("](https://docs.example.com/_sources/docs/setup.md.txt)"));
}

#[test]
fn the_readme_is_short_and_begins_with_the_demo_and_the_tests() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= README_LINES);
    let commands = readme
        .split("```sh\n")
        .skip(1)
        .map(|block| block.lines().next().unwrap());
    let first = Vec::from_iter(commands.take(2));
    assert_eq!(first, ["cargo run -- demo", "tests/run"]);
}

#[test]
fn the_version_is_in_the_change_log() {
    let heading = format!("## {}\n", env!("CARGO_PKG_VERSION"));
    assert!(read("CHANGELOG.md").contains(&heading));
}

#[test]
fn a_hosted_ci_runs_the_checks_of_everybody_and_nothing_else() {
    let text = read(".github/workflows/check.yml");
    let steps = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("- "));
    let commands = Vec::from_iter(steps.filter(|step| !step.starts_with("- cron:")));
    let [checkout, run] = commands[..] else {
        panic!("{commands:?}")
    };
    assert!(checkout.starts_with("- uses: actions/checkout@"));
    assert_eq!(run, "- run: .ci/run");
    assert!(text.contains("\n      CRATES: required\n"));
}

#[test]
fn a_hosted_ci_fails_where_the_crates_cannot_be_checked() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for (path, text) in [
        (".ci/run", read(".ci/run")),
        // Has no `deny`, and cannot install it.
        ("bin/cargo", "#!/bin/sh\n[ $1 != deny ]\n".to_owned()),
        ("tests/run", "#!/bin/sh\necho tested\n".to_owned()),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let search = std::env::var("PATH").unwrap();
    let search = format!("{}:{search}", root.join("bin").display());
    for (crates, passes) in [("", true), ("required", false)] {
        let mut run = Command::new(root.join(".ci/run"));
        let run = run.env("PATH", &search).env("CRATES", crates).output();
        let run = run.unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.success(), passes, "{told}");
        assert_eq!(run.stdout == b"tested\n", passes);
        assert!(told.contains("NOT CHECKED: the crates; "), "{told}");
    }
}
