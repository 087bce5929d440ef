//! One SDK in a process of its own: its run, what it reports, and what the API saw of it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead, BufReader, Read as _, Seek as _, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    providers::stage::Stage,
    support::{Consumer, Token, Visitor, installed, signer::form_pairs, upstream::Seen},
};

/// The address to which browsers are sent back.
pub(crate) const CALLBACK: &str = "https://shop.example/callback";

/// A text with everything that clients encode wrongly.
pub(crate) const TRICKY: &str = "ü + & % ~ * ' = %41";

/// An SDK's run.
pub(crate) struct Run<'a> {
    stage: &'a Stage,
    consumer: Consumer,
    name: String,
    tricky: String,
    /// What the script reported.
    pub(crate) report: Value,
    /// The requests that the API got.
    pub(crate) seen: Vec<Seen>,
}

impl Stage {
    /// Runs an SDK of PyPI.
    pub(crate) fn python(&self, sdk: &str, by: &(Consumer, Token), settings: Value) -> Run<'_> {
        let mut command = with_deadline();
        command
            .arg(installed(".tools/providers/bin/python"))
            .arg("-W")
            .arg("ignore")
            .arg(installed("providers/python/run.py"));
        self.run(command, sdk, by, settings)
    }

    /// The flow and calls by requests-oauthlib, for providers that document it: the three addresses, and one of the API.
    #[track_caller]
    pub(crate) fn generic_walks(
        &self,
        by: &(Consumer, Token),
        callback: Option<&str>,
        urls: [&str; 3],
        api: &str,
    ) {
        let settings = json!({ "callback": callback, "urls": urls, "api": api });
        let run = self.python("requests_oauthlib", by, settings);
        run.walks("permission_denied");
        let path = &url::Url::parse(api).unwrap()[url::Position::BeforePath..];
        run.calls(&[
            &format!("GET {path} ?q={{T}} ?a=1 ?a=2 ?e="),
            &format!("POST {path} | json {{\"name\":\"{{T}}\"}}"),
        ]);
    }

    /// Runs an SDK of npm.
    pub(crate) fn node(&self, sdk: &str, by: &(Consumer, Token), settings: Value) -> Run<'_> {
        installed("providers/node/node_modules");
        let mut command = with_deadline();
        command
            .arg("node")
            .arg("--no-deprecation")
            .arg(installed("providers/node/run.js"));
        self.run(command, sdk, by, settings)
    }

    fn run(
        &self,
        mut command: Command,
        sdk: &str,
        (consumer, token): &(Consumer, Token),
        settings: Value,
    ) -> Run<'_> {
        let before = self.api.count();
        let mut all = json!({
            "hosts": self.hosts,
            "port": self.proxy.address().port(),
            "consumer_key": consumer.key,
            "consumer_secret": consumer.secret,
            "token": token.token,
            "token_secret": token.secret,
            "callback": CALLBACK,
            "tricky": TRICKY,
            "options": {},
        });
        for (name, value) in settings.as_object().unwrap() {
            all[name] = value.clone();
        }
        for variable in [
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_FILE",
            "HTTPLIB2_CA_CERTS",
            "NODE_EXTRA_CA_CERTS",
        ] {
            command.env(variable, &self.ca);
        }
        for variable in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            command.env_remove(variable);
        }
        let mut errors = tempfile::tempfile().unwrap();
        let mut child = command
            .env("HOME", self.proxy.directory())
            .args([sdk, &all.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
        let mut input = child.stdin.take().unwrap();
        let mut report = None;
        // The first flow ends with consent, the second with a denial.
        let mut decisions = ["allow", "deny"].into_iter();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(url) = line.strip_prefix("AUTHORIZE ") {
                let back = self.decides(url, decisions.next().expect("two flows"));
                writeln!(input, "{back}").unwrap();
            } else if let Some(text) = line.strip_prefix("REPORT ") {
                report = Some(serde_json::from_str(text).unwrap());
            } else {
                eprintln!("{sdk}: {line}");
            }
        }
        child.wait().unwrap();
        // Shown if the test fails.
        let mut text = String::new();
        errors.rewind().unwrap();
        errors.read_to_string(&mut text).unwrap();
        eprintln!("{sdk}: {text}");
        Run {
            stage: self,
            consumer: consumer.clone(),
            tricky: all["tricky"].as_str().unwrap().to_owned(),
            name: sdk.to_owned(),
            report: report.unwrap_or_else(|| panic!("{sdk} reports")),
            seen: self.api.requests_since(before),
        }
    }

    /// The person's part: logs in and decides. Returns where the browser was sent, or the verifier on the page.
    fn decides(&self, url: &str, decision: &str) -> String {
        let url = url::Url::parse(url).unwrap();
        let origin = url.origin().ascii_serialization();
        let mut visitor = Visitor::at(&self.proxy, &origin);
        let login = visitor.open(&url[url::Position::BeforePath..]);
        login.answer.has_status(200);
        let consent = visitor.log_in(&login, &self.user);
        let end = visitor.decide(&consent, decision);
        if (300..400).contains(&end.answer.status) {
            return end.redirect();
        }
        end.element("verifier").unwrap_or_else(|| "none".to_owned())
    }
}

impl Run<'_> {
    /// The flow brought a token, and after a denial none. Returns the facts that the SDK got with the token.
    #[track_caller]
    pub(crate) fn walks(&self, denial: &str) -> &Value {
        let (name, report) = (&self.name, &self.report);
        assert!(report.get("flow").is_none(), "{name}: {report:#}");
        let denied = report["denied"].as_str().expect("a second flow");
        assert!(denied.contains(denial), "{name}: {denied}");
        &report["token"]
    }

    /// All calls passed, and the API saw these for the user who decided, and for the consumer. `{T}` is the tricky text.
    #[track_caller]
    pub(crate) fn calls(&self, expected: &[&str]) {
        self.calls_but(&[], expected);
    }

    /// The same, but for the calls that fail.
    #[track_caller]
    pub(crate) fn calls_but(&self, failing: &[&str], expected: &[&str]) {
        self.passed_but(failing);
        self.api_saw("consumer", expected);
    }

    /// All calls passed, and the API saw these for the consumer alone.
    #[track_caller]
    pub(crate) fn calls_itself(&self, expected: &[&str]) {
        self.passed_but(&[]);
        self.api_saw("application", expected);
    }

    #[track_caller]
    fn passed_but(&self, failing: &[&str]) {
        let calls = self.report["calls"].as_object().unwrap();
        let failed = calls.iter().filter(|(_, error)| !error.is_null());
        let failed: BTreeMap<_, _> = failed.map(|(call, error)| (call.as_str(), error)).collect();
        let names: Vec<&str> = failed.keys().copied().collect();
        assert_eq!(names, failing, "{}: {failed:#?}", self.name);
    }

    #[track_caller]
    fn api_saw(&self, kind: &str, expected: &[&str]) {
        let signed = |seen: &&Seen| seen.header("x-auth-kind") != Some("anonymous");
        let seen: Vec<&Seen> = self.seen.iter().filter(signed).collect();
        let lines: Vec<String> = seen.iter().map(|seen| shown(seen)).collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|line| line.replace("{T}", &self.tricky))
            .collect();
        assert_eq!(lines, expected, "{}", self.name);
        for seen in seen {
            let user = (kind == "consumer").then_some(&*self.stage.user.id);
            let identity =
                ["kind", "consumer", "user"].map(|name| seen.header(&format!("x-auth-{name}")));
            assert_eq!(
                identity,
                [Some(kind), Some(&*self.consumer.key), user],
                "{seen:?}"
            );
        }
    }

    /// A call failed with this text in its error.
    #[track_caller]
    pub(crate) fn fails(&self, call: &str, with: &str) {
        let error = self.report["calls"][call].as_str().unwrap_or("none");
        assert!(error.contains(with), "{}: {call}: {error}", self.name);
    }

    /// The flow failed with this text in its error.
    #[track_caller]
    pub(crate) fn never_walks(&self, with: &str) {
        let error = self.report["flow"].as_str().unwrap_or("none");
        assert!(error.contains(with), "{}: {error}", self.name);
    }
}

/// A command that is ended if it hangs.
fn with_deadline() -> Command {
    let mut command = Command::new("timeout");
    command.arg("60");
    command
}

/// A request in one line: `METHOD path ?name=value ?name=value | kind of body name=value …`, decoded.
fn shown(seen: &Seen) -> String {
    let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    let mut line = format!("{} {path}", seen.method);
    for (name, value) in pairs(query.as_bytes()) {
        write!(line, " ?{name}={value}").unwrap();
    }
    let kind = seen.header("content-type").unwrap_or_default();
    if seen.body.is_empty() {
        return line;
    }
    if kind.starts_with("application/x-www-form-urlencoded") {
        line += " | form";
        for (name, value) in pairs(&seen.body) {
            write!(line, " {name}={value}").unwrap();
        }
    } else if kind.starts_with("application/json") {
        let value: Value = serde_json::from_slice(&seen.body).unwrap();
        write!(line, " | json {value}").unwrap();
    } else if let Some((_, boundary)) = kind.split_once("boundary=") {
        line += " | multipart";
        for (name, value) in parts(&seen.body, boundary.trim_matches('"')) {
            write!(line, " {name}={value}").unwrap();
        }
    } else {
        write!(line, " | {kind} {}", seen.text()).unwrap();
    }
    line
}

/// The decoded pairs of a query or a form.
fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let text_of = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let pairs = form_pairs(text).into_iter();
    pairs
        .map(|(name, value)| (text_of(name), text_of(value)))
        .collect()
}

/// Name and content of each part of a multipart body.
fn parts(body: &[u8], boundary: &str) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(body);
    let delimiter = format!("--{boundary}");
    let part = |part: &str| {
        let (head, content) = part.split_once("\r\n\r\n")?;
        let (_, name) = head.split_once("name=")?;
        let name = name.split([';', '\r']).next()?.trim_matches('"');
        Some((name.to_owned(), content.trim_end_matches("\r\n").to_owned()))
    };
    text.split(&delimiter).filter_map(part).collect()
}
