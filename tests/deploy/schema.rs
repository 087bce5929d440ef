//! The JSON schema of the configuration, as an editor uses it: every configuration of the project is valid by it, it rejects
//! mistakes, and it rejects nothing that the program accepts.
//!
//! Promise (Storage and operation): The JSON schema of the configuration rejects mistakes, and nothing that the program
//! accepts.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use countersign::run::config;
use serde_json::{Value, json};

use super::{documents::documents, file, files, printed, read, tool};

/// What `countersign check --schema` prints, where there is no configuration.
fn schema() -> Value {
    let mut check = Command::new(env!("CARGO_BIN_EXE_countersign"));
    check.args(["check", "--schema", "--config", "/nonexistent"]);
    let text = printed(&mut check);
    let is_written = text == read("config.schema.json");
    assert!(
        is_written,
        "config.schema.json is old; COUNTERSIGN_WRITE_EXAMPLE=1 cargo test --lib example_file writes it again"
    );
    serde_json::from_str(&text).unwrap()
}

/// The problems that a validator of JSON schemas finds in each configuration.
pub(super) fn problems(
    schema: &Value,
    configurations: &BTreeMap<String, String>,
) -> BTreeMap<String, Vec<String>> {
    let mut python = tool("python");
    let python = python.arg(file("tests/deploy/schema.py"));
    let mut python = python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}; tests/run installs it"));
    let given = json!({ "schema": schema, "configurations": configurations });
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).unwrap();
    drop(stdin);
    let ended = python.wait_with_output().unwrap();
    assert!(ended.status.success());
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// The problems that the program finds in a configuration.
fn errors(text: &str) -> String {
    let api = "upstream.api_url = \"http://127.0.0.1:9000\"\n";
    let text = format!("{api}{text}");
    let parsed = config::parse(&text, "config.toml", <[(OsString, OsString); 0]>::default());
    parsed
        .err()
        .map(|errors| errors.to_string())
        .unwrap_or_default()
}

/// The blocks of TOML in a document.
fn blocks(document: &str) -> impl Iterator<Item = String> {
    document.split("```toml\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap();
        // A block in a list is indented.
        block
            .lines()
            .map(|line| format!("{}\n", line.trim_start()))
            .collect()
    })
}

#[test]
fn every_configuration_of_the_project_is_valid_by_the_schema() {
    let mut files = files(&file("deploy"), "toml");
    files.push(file("config.example.toml"));
    assert!(files.len() > 20, "{files:?}");
    let texts = files.iter().map(|path| {
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    });
    let mut configurations = BTreeMap::from_iter(texts);
    // The keys that the example shows and does not set.
    let example = read("config.example.toml");
    let lines = example.lines().map(|line| match line.strip_prefix('#') {
        Some(key) if !key.starts_with([' ', ':']) => format!("{key}\n"),
        _ => format!("{line}\n"),
    });
    configurations.insert("all keys of the example".to_owned(), lines.collect());
    let mut count = 0;
    for (name, document) in documents() {
        for (index, block) in blocks(&document).enumerate() {
            configurations.insert(format!("{name}, block {index}"), block);
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
    for (name, problems) in problems(&schema(), &configurations) {
        assert!(problems.is_empty(), "{name}: {problems:#?}");
    }
    let first = example.lines().next().unwrap();
    assert_eq!(first, "#:schema config.schema.json");
}

#[test]
fn the_schema_rejects_mistakes_that_the_program_rejects() {
    let mistakes = [
        "listen.adress = '127.0.0.1:8080'",
        "[lissten]\n",
        "[listen.tls]\ncertificates = 'a.pem'",
        "[[operation]]\npath = '/a'\nmethod = 'GET'",
        "[[operation]]\nmethods = 'GET'",
        "[operation]\npath = '/a'",
        "signature.timestamp_window = 300",
        "signature.timestamp_window = '300'",
        "signature.timestamp_window = '300 s'",
        "signature.timestamp_window = '5min'",
        "limits.head_bytes = '32KB'",
        "limits.head_bytes = 32768",
        "limits.head_timeout = '32KiB'",
        "limits.requests_per_consumer = '100/s'",
        "limits.connections = '10000'",
        "limits.connections = 0",
        "tokens.access_ttl = 'forever'",
        "signature.advice = 'full '",
        "signature.methods = ['HMAC-SHA3']",
        "store.backend = 'redis'",
        "operations.unlisted = ['all']",
        "pages.accent = 'blue'",
        "service.aliases = 'yes'",
        "service.page_parameters = { token = 'oauth_verifier' }",
    ];
    let configurations = mistakes
        .map(|text| (text.to_owned(), text.to_owned()))
        .into();
    for (text, problems) in problems(&schema(), &configurations) {
        assert!(!problems.is_empty(), "{text}");
        assert!(!errors(&text).is_empty(), "{text}");
    }
}

#[test]
fn the_schema_rejects_nothing_that_the_program_accepts() {
    let schema = schema();
    let mut keys = Vec::new();
    collect(&schema, "", &mut keys);
    assert!(keys.len() > 150, "{}", keys.len());
    let mut accepted = BTreeMap::new();
    for (section, key, of_key) in &keys {
        // Each configuration has one.
        if (section.as_str(), *key) == ("upstream", "api_url") {
            continue;
        }
        let words = words(of_key);
        let samples = [
            "1",
            "404",
            "true",
            "'/a'",
            "'10s'",
            "'1B'",
            "'10 per 1m'",
            "'never'",
            "'http://127.0.0.1:1'",
            "'127.0.0.1:1'",
            "'#1040b0'",
            "['/a', '/b']",
            "[]",
            "{ a = 'b' }",
            "2027-03-31T00:00:00Z",
        ];
        for value in samples.map(str::to_owned).iter().chain(&words) {
            let text = match section.strip_suffix("[]") {
                None => format!("{section}.{key} = {value}\n"),
                Some(list) => {
                    let required = match list {
                        "operation" => "path = '/a'",
                        "permission" => "name = 'a'",
                        _ => "from = 2020-01-01T00:00:00Z\nuntil = 2099-01-01T00:00:00Z",
                    };
                    let others = required
                        .lines()
                        .filter(|line| !line.starts_with(&format!("{key} ")));
                    let others = Vec::from_iter(others).join("\n");
                    format!("[[{list}]]\n{others}\n{key} = {value}\n")
                }
            };
            let errors = errors(&text);
            let of_type = errors.lines().find(|line| line.contains("expected"));
            // A rule on several keys may reject a word; the type of its key accepts it.
            assert!(
                !words.contains(value) || of_type.is_none(),
                "{text}{errors}"
            );
            if errors.is_empty() {
                accepted.insert(text.clone(), text);
            }
        }
    }
    assert!(accepted.len() > 400, "{}", accepted.len());
    for (text, problems) in problems(&schema, &accepted) {
        assert!(problems.is_empty(), "{text}{problems:#?}");
    }
}

/// The keys of a schema with their section, `[]` after a list.
fn collect<'s>(schema: &'s Value, section: &str, keys: &mut Vec<(String, &'s str, &'s Value)>) {
    for (name, of_name) in schema["properties"].as_object().unwrap() {
        let table = format!("{section}.{name}")
            .trim_start_matches('.')
            .to_owned();
        if of_name.get("properties").is_some() {
            collect(of_name, &table, keys);
        } else if of_name["items"].get("properties").is_some() {
            collect(&of_name["items"], &format!("{table}[]"), keys);
        } else {
            keys.push((section.to_owned(), name, of_name));
        }
    }
}

/// The words of a key's value, in TOML.
fn words(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let words = schema["enum"].as_array().into_iter().flatten();
    found.extend(words.map(Value::to_string));
    for either in schema["anyOf"].as_array().into_iter().flatten() {
        found.extend(self::words(either));
    }
    found
}
