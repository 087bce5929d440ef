//! Real OAuth 1.0a libraries through the complete flow, the person's part done in a real Chromium.
//!
//! Promise (Flow and pages): Unchanged OAuth libraries, Bruno and newman complete the flow. Also in
//! `tests/acceptance/provider/collections.rs`.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    Consumer, Proxy, Upstream, User, Visitor,
    browser::Browser,
    http::latin1,
    installed,
    legs::query_value,
    signer::{encode, form_pairs},
};

/// Performs the person's part.
enum Person<'a> {
    InChromium(Browser),
    ByHand(&'a Proxy),
}

struct Stage {
    api: Upstream,
    proxy: Proxy,
    consumer: Consumer,
    user: User,
}

fn stage() -> Stage {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let consumer = proxy.consumer_with(
        "Shop",
        "--callback http://127.0.0.1/callback --callback oob",
    );
    let user = proxy.user("alice");
    Stage {
        api,
        proxy,
        consumer,
        user,
    }
}

fn python() -> Command {
    let interpreter = installed(".tools/venv/bin/python");
    let mut command = Command::new(interpreter);
    command.arg(installed("clients/python/consumer.py"));
    command
}

fn node(script: &str) -> Command {
    installed("clients/node/node_modules/oauth/package.json");
    let mut command = Command::new("node");
    command.arg(installed("clients/node").join(script));
    command
}

impl Stage {
    /// Runs a client through the flow and returns its report.
    fn run(
        &self,
        mut client: Command,
        settings: Value,
        person: &Person<'_>,
        decision: &str,
    ) -> Value {
        let mut all = json!({
            "base_url": self.proxy.origin(),
            "consumer_key": self.consumer.key,
            "consumer_secret": self.consumer.secret,
            "placement": "header",
            "callback": "own",
        });
        for (name, value) in settings.as_object().unwrap() {
            all[name] = value.clone();
        }
        let oob = all["callback"] == "oob";
        let mut child = client
            .arg(all.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{client:?}: {error}; tests/run installs it"));
        let mut input = child.stdin.take().unwrap();
        let mut report = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(url) = line.strip_prefix("AUTHORIZE ") {
                if let Some(verifier) = person.decides(url, &self.user, decision, oob) {
                    writeln!(input, "{verifier}").unwrap();
                }
            } else if let Some(text) = line.strip_prefix("REPORT ") {
                report = Some(serde_json::from_str(text).unwrap());
            } else {
                eprintln!("{line}");
            }
        }
        assert!(child.wait().unwrap().success(), "{client:?} succeeds");
        report.expect("the client reports")
    }

    /// Checks the report of a flow that was allowed, and the calls that the API saw.
    fn holds(&self, report: &Value, calls: usize) {
        assert_eq!(
            report["token"]["user_id"].as_str(),
            Some(self.user.id.as_str()),
            "{report}"
        );
        assert_eq!(report["token"]["screen_name"], "alice");
        let made = report["calls"].as_object().unwrap();
        assert_eq!(made.len(), calls, "{report}");
        for (name, status) in made {
            assert_eq!(status, 200, "{name}: {report}");
        }
        assert_eq!(report["replay"], json!([200, 401, "nonce_used"]));
        let seen = self.api.requests();
        assert_eq!(
            seen.len(),
            calls + 1,
            "each call once, the replayed one too: {seen:#?}"
        );
        for request in &seen {
            // Keys and ids that need no encoding are the same encoded.
            let (user, consumer) = (encode(&self.user.id), encode(&self.consumer.key));
            assert_eq!(request.header("x-auth-user"), Some(&*user));
            assert_eq!(request.header("x-auth-consumer"), Some(&*consumer));
            let raw = latin1(&request.head);
            assert!(
                !raw.contains("oauth_") && !raw.contains("OAuth"),
                "no credential reaches the API: {raw}"
            );
            if request
                .header("content-type")
                .is_some_and(|kind| kind.contains("form"))
            {
                assert!(!request.text().contains("oauth_"), "{request:?}");
            }
        }
    }

    /// The form that reached the API with this target.
    fn form_seen(&self, target: &str) -> Vec<(String, String)> {
        let seen = self.api.requests();
        let request = seen
            .iter()
            .find(|seen| seen.method == "POST" && seen.target == target && !seen.body.is_empty());
        let pairs = form_pairs(
            &request
                .unwrap_or_else(|| panic!("{target} in {seen:#?}"))
                .body,
        );
        pairs
            .into_iter()
            .map(|(n, v)| (String::from_utf8(n).unwrap(), String::from_utf8(v).unwrap()))
            .collect()
    }
}

impl Person<'_> {
    /// Logs in and decides; the verifier that the page shows, if any.
    fn decides(&self, url: &str, user: &User, decision: &str, oob: bool) -> Option<String> {
        match self {
            Person::InChromium(browser) => {
                browser.authorize(url, user, decision);
                (oob && decision == "allow").then(|| browser.text("#verifier"))
            }
            Person::ByHand(proxy) => {
                let mut visitor = Visitor::to(proxy);
                let login = visitor.open(url.strip_prefix(&proxy.origin()).unwrap());
                let consent = visitor.log_in(&login, user);
                let page = visitor.decide(&consent, decision);
                if oob {
                    return page.element("verifier");
                }
                let callback = page.redirect();
                let (_, rest) = callback.split_once("://").unwrap();
                let (authority, path) = rest.split_once('/').unwrap();
                assert!(query_value(&callback, "oauth_token").is_some());
                crate::support::http::get(authority.parse().unwrap(), &format!("/{path}"))
                    .has_status(200);
                None
            }
        }
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn requests_oauthlib_with_a_callback_and_the_header() {
    let stage = stage();
    let report = stage.run(
        python(),
        json!({}),
        &Person::InChromium(Browser::start()),
        "allow",
    );
    assert_eq!(
        report["back"]["from"], "python",
        "the callback's own query comes back"
    );
    stage.holds(&report, 11);
    assert_eq!(
        stage.form_seen("/members"),
        pairs(&[("b", "2 é"), ("a", "1"), ("a", ""), ("c&", "=+")])
    );
    let bytes = stage
        .api
        .requests()
        .into_iter()
        .find(|seen| seen.method == "PUT")
        .unwrap();
    assert_eq!(bytes.body, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn requests_oauthlib_works_out_of_band_without_javascript() {
    let stage = stage();
    let person = Person::InChromium(Browser::without_javascript());
    let report = stage.run(
        python(),
        json!({ "callback": "oob", "placement": "query" }),
        &person,
        "allow",
    );
    let verifier = report["back"]["oauth_verifier"].as_str().unwrap();
    assert_eq!(
        (verifier.len(), verifier.as_bytes()[4]),
        (9, b' '),
        "typed as shown, with its space: {verifier}"
    );
    stage.holds(&report, 11);
}

#[test]
fn requests_oauthlib_in_the_body() {
    let stage = stage();
    let person = Person::ByHand(&stage.proxy);
    let report = stage.run(python(), json!({ "placement": "body" }), &person, "allow");
    stage.holds(&report, 2);
    assert_eq!(stage.form_seen("/members?x=1&a=q"), pairs(&[("a", "b")]));
}

/// Keys and ids that no header field holds as they are.
fn stage_of_any_names() -> Stage {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, "identity.encoding = 'percent'");
    let text = |told: &Value, member: &str| told[member].as_str().unwrap().to_owned();
    let key = "My \"School\" audit_id=x 2026, josé; A\\B %20 学校";
    let mut add = vec![
        "consumer", "add", "--json", "--name", "School", "--key", key,
    ];
    add.extend([
        "--callback",
        "http://127.0.0.1/callback",
        "--callback",
        "oob",
    ]);
    let told = proxy.command(&add).done().json();
    assert_eq!(text(&told, "key"), key);
    let consumer = Consumer::new(key, text(&told, "secret"));
    let password = "alice's pass & wörd";
    let id = "DOMAIN\\bob, josé\" audit_id=x";
    let add = [
        "user",
        "add",
        "alice",
        "--json",
        "--id",
        id,
        "--password-stdin",
        "--permanent",
    ];
    let told = proxy
        .command_with(&add, &format!("{password}\n"))
        .done()
        .json();
    let user = User {
        id: text(&told, "id"),
        ..User::new("alice", password)
    };
    Stage {
        api,
        proxy,
        consumer,
        user,
    }
}

#[test]
fn oauth_1_0a_for_node_signs_with_a_key_of_any_characters() {
    let stage = stage_of_any_names();
    let person = Person::ByHand(&stage.proxy);
    let report = stage.run(node("oauth-1.0a.js"), json!({}), &person, "allow");
    assert_eq!(
        report["replay"],
        json!([200, 401, "nonce_used"]),
        "{report}"
    );
    let seen = stage.api.last_request();
    assert_eq!(
        seen.header("x-auth-consumer"),
        Some(&*encode(&stage.consumer.key))
    );
    // The operator finds both by every way, and a metric has the key as a label.
    let key = stage.consumer.key.as_str();
    for command in [["consumer", "show", key], ["user", "show", &stage.user.id]] {
        assert!(
            stage.proxy.command(&command).done().stdout.contains("josé"),
            "{command:?}"
        );
    }
    let metrics = stage.proxy.ask_admin("/metrics").text();
    assert!(
        metrics.contains(&format!(
            "consumer=\"{}\"",
            key.replace('\\', "\\\\").replace('"', "\\\"")
        )),
        "{metrics}"
    );
    let exported = stage.proxy.command(&["export", "-"]).done().stdout;
    assert!(exported.contains("josé"));
    // Each is one value of a line of the log, in which Rust's quotation is that of the line.
    stage.proxy.logs(&[
        "event=\"access_token_issued\"",
        &format!(" consumer={key:?} user={:?} token=", stage.user.id),
    ]);
}

#[test]
fn a_key_of_other_characters_needs_the_setting() {
    let stage = stage();
    for add in [
        ["consumer", "add", "--name", "School", "--key", "My School"],
        [
            "user",
            "add",
            "bob",
            "--password-stdin",
            "--id",
            "DOMAIN\\bob",
        ],
    ] {
        let refused = stage.proxy.command(&add);
        assert!(
            !refused.status.success() && refused.stderr.contains("identity.encoding"),
            "{refused:?}"
        );
    }
}

#[test]
fn requests_oauthlib_learns_of_a_denial() {
    let stage = stage();
    let report = stage.run(
        python(),
        json!({}),
        &Person::InChromium(Browser::start()),
        "deny",
    );
    assert_eq!(report["back"]["oauth_problem"], "permission_denied");
    assert_eq!(
        report["denied"],
        json!([401, {
            "oauth_problem": "permission_denied",
            "oauth_problem_advice": "the user has denied the request",
        }])
    );
    stage.api.saw_nothing();
}

#[test]
fn node_oauth_with_a_callback() {
    let stage = stage();
    let person = Person::InChromium(Browser::without_javascript());
    let report = stage.run(node("node-oauth.js"), json!({}), &person, "allow");
    assert_eq!(report["back"]["from"], "node");
    stage.holds(&report, 9);
    assert_eq!(
        stage.form_seen("/members"),
        pairs(&[("b", "2 é"), ("a", "1"), ("c&", "=+"), ("quote", "!*'()")])
    );
}

#[test]
fn node_oauth_out_of_band_by_get_and_version_1_0a() {
    let stage = stage();
    let settings = json!({ "callback": "oob", "token_method": "GET", "version": "1.0A" });
    let report = stage.run(
        node("node-oauth.js"),
        settings,
        &Person::InChromium(Browser::start()),
        "allow",
    );
    stage.holds(&report, 9);
}

#[test]
fn oauth_1_0a_in_every_place_and_by_every_hmac() {
    for (placement, method, calls) in [
        ("header", "HMAC-SHA256", 6),
        ("query", "HMAC-SHA512", 6),
        ("body", "HMAC-SHA1", 3),
    ] {
        let stage = stage();
        let settings = json!({ "placement": placement, "method": method });
        let report = stage.run(
            node("oauth-1.0a.js"),
            settings,
            &Person::ByHand(&stage.proxy),
            "allow",
        );
        stage.holds(&report, calls);
        assert_eq!(
            stage.form_seen("/members?x=1%202"),
            pairs(&[("a", "b")]),
            "{placement}"
        );
    }
}
