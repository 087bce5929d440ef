//! A real LTI 1.1 tool behind countersign, launched by a platform of another library in Chromium, in a frame; and partners that
//! sign their posts by libraries.
//!
//! Promise (Permissions and identity): Real LTI libraries launch a real tool, report scores and sign queries of JSON posts,
//! unchanged.

use std::{
    io::{BufRead as _, BufReader},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{
    Consumer, Proxy, Upstream, browser::Browser, has, http::get, installed, program::Server,
    proxy::Builder, until,
};

/// A script that serves, with the address that it names. It ends with the test.
struct Script {
    _server: Server,
    port: u16,
}

impl Script {
    #[track_caller]
    fn start(mut command: Command, settings: &Value) -> Self {
        command.arg(settings.to_string());
        let mut server = Server::telling(&mut command);
        let mut line = String::new();
        let mut output = BufReader::new(server.0.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("PORT ").map(str::parse);
        let port = port.unwrap_or_else(|| panic!("{line:?}")).unwrap();
        Self {
            _server: server,
            port,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn python(script: &str) -> Command {
    let mut command = Command::new(installed(".tools/venv/bin/python"));
    command.arg(installed("clients/python").join(script));
    command
}

fn tool(secrets: &Value) -> Script {
    installed("clients/node/node_modules/ims-lti/package.json");
    let mut node = Command::new("node");
    node.arg(installed("clients/node/lti-tool.js"));
    Script::start(node, &json!({ "secrets": secrets }))
}

/// A proxy in front of a service that listens at `url`, with a consumer of these credentials.
fn in_front_of(url: &str, config: &str) -> (Builder, Consumer) {
    let consumer = Consumer::new("school", "4mZ0secretOfTheSchool9x");
    (Proxy::in_front_of_url(url).config(config), consumer)
}

fn register(proxy: &Proxy, consumer: &Consumer) {
    let Consumer { key, secret } = consumer;
    let command = [
        "consumer", "add", "--name", "School", "--key", key, "--secret", "-",
    ];
    proxy.command_with(&command, secret).done();
}

const LAUNCH: &str = "
    [[operation]]
    path = '/launch'
    methods = ['POST']
    access = ['application']
    timestamp_window = '90m'
    forward_authorization = true
    launch = true
    framed_by = 'PLATFORM'

    [[operation]]
    path = '/activity'
    methods = ['GET']
    access = ['anonymous']
";

const OUTCOMES: &str = "
    [[operation]]
    path = '/outcomes'
    methods = ['POST']
    access = ['application']
    body_hash = 'required'
";

const NOTIFY: &str = "
    [[operation]]
    path = '/notify'
    methods = ['POST']
    access = ['application']
";

#[test]
fn tool_is_launched_in_a_frame_and_every_failure_is_shown() {
    let (_, consumer) = in_front_of("", "");
    let Consumer { key, secret } = &consumer;
    let tool = tool(&json!({ key: secret }));
    // Both listen before either is configured with the address of the other.
    let port = crate::support::free_port();
    let launch_url = format!("http://127.0.0.1:{port}/launch");
    let outcomes_port = crate::support::free_port();
    let outcome = json!({
        "lis_outcome_service_url": format!("http://127.0.0.1:{outcomes_port}/outcomes"),
        "lis_result_sourcedid": "ada:7",
    });
    let activity = |changes: Value| {
        let mut activity = json!({ "url": launch_url, "key": key, "secret": secret });
        for (name, value) in changes.as_object().unwrap() {
            activity[name] = value.clone();
        }
        activity
    };
    let activities = json!({
        "good": activity(json!({ "parameters": outcome })),
        "repeated": activity(json!({})),
        "returning": activity(json!({ "returns": true })),
        "wrong": activity(json!({ "secret": "wrong", "returns": true })),
        "old": activity(json!({ "seconds_ago": 6_000, "returns": true })),
        "german": activity(json!({ "secret": "wrong", "parameters": { "launch_presentation_locale": "de-DE" } })),
    });
    let platform = Script::start(
        python("lti_platform.py"),
        &json!({ "activities": activities }),
    );
    // Another site than the tool's, as in the field: cookies and frames are judged by that.
    let site = format!("http://localhost:{}", platform.port);

    let (builder, _) = in_front_of(&tool.url(), &LAUNCH.replace("PLATFORM", &site));
    let proxy = builder
        .config(&format!("listen.address = '127.0.0.1:{port}'"))
        .start();
    register(&proxy, &consumer);
    let (builder, _) = in_front_of(&platform.url(), OUTCOMES);
    let outcomes = builder
        .config(&format!("listen.address = '127.0.0.1:{outcomes_port}'"))
        .start();
    register(&outcomes, &consumer);

    let browser = Browser::start();
    let frame = |parts: &[&str]| {
        until(&format!("the frame has {parts:?}"), || {
            let source = browser.frame_source("iframe");
            parts.iter().all(|part| source.contains(part))
        });
    };
    let opens = |name: &str, parts: &[&str]| {
        browser.open(&format!("{site}/{name}"));
        browser.click("#open");
        frame(parts);
    };
    // The tool's own library finds its launch unchanged, the cookie works in the frame, and the score arrives.
    opens("good", &["Hello Ada of biology, reported: true"]);
    let scores = get(([127, 0, 0, 1], platform.port).into(), "/scores").json();
    assert_eq!(scores, json!([["replaceResult", "ada:7", "0.83", key]]));

    let page = [
        "The activity did not open",
        "Open it again from your course.",
        "For the administrator",
    ];
    // The same form is sent again: a double click, or a reload.
    opens("repeated", &["Hello Ada of biology, nothing reported"]);
    browser.click("#open");
    frame(&page);
    frame(&["nonce_used"]);
    // With an address to return to, the platform itself tells its user.
    opens("returning", &["Hello Ada"]);
    browser.click("#open");
    let message = "The activity did not open. Open it again from your course.";
    frame(&[
        message,
        "id=\"lti_errorlog\">nonce_used: ",
        "id=\"course\">7",
    ]);
    // Nothing leads back under a signature that is not right, nor before it is checked.
    for (name, problem) in [("wrong", "signature_invalid"), ("old", "timestamp_refused")] {
        opens(name, &page);
        frame(&[problem]);
    }
    opens(
        "german",
        &["Die Aktivität wurde nicht geöffnet", "Für Administratoren"],
    );

    // A page of another site may not frame it.
    let other = format!("http://other.localhost:{}", platform.port);
    browser.open(&format!("{other}/wrong"));
    browser.click("#open");
    until("Chromium shows its own error in the frame", || {
        let source = browser.frame_source("iframe");
        !source.contains("did not open") && source.contains("neterror")
    });
    assert_eq!(proxy.logged(&["ERROR"]), 0);
}

#[test]
fn outcome_posts_and_query_signed_json_posts_are_verified() {
    let platform = Script::start(python("lti_platform.py"), &json!({ "activities": {} }));
    let (builder, consumer) = in_front_of(&platform.url(), OUTCOMES);
    let outcomes = builder.start();
    register(&outcomes, &consumer);
    // Eloqua's app and the webhook's receiver are other programs.
    let app = Upstream::start();
    let send = |proxy: &Proxy, what: &str| {
        let settings = json!({
            "what": what, "origin": proxy.origin(), "key": consumer.key, "secret": consumer.secret,
        });
        let output = python("signed_posts.py").arg(settings.to_string()).output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(
        send(&outcomes, "outcome"),
        json!({ "right": [true, "success"], "wrong": [false, "None"] })
    );
    let scores = get(([127, 0, 0, 1], platform.port).into(), "/scores").json();
    assert_eq!(
        scores,
        json!([["replaceResult", "ada:7", "0.5", consumer.key]])
    );
    outcomes.logs(&["verdict=\"signature_invalid\""]);

    // The same demand in front of the other program, which takes JSON.
    let (builder, _) = in_front_of(app.url(), OUTCOMES);
    let hashed = builder.start();
    register(&hashed, &consumer);
    assert_eq!(
        send(&hashed, "webhook"),
        json!({ "right": [200, 400], "wrong": [401, 401] })
    );
    assert_eq!(app.only_request().text(), r#"{"event": "paid"}"#);

    let app = Upstream::start();
    let (builder, _) = in_front_of(app.url(), NOTIFY);
    let notified = builder.start();
    register(&notified, &consumer);
    assert_eq!(
        send(&notified, "eloqua"),
        json!({ "right": [200, 401], "wrong": [401, 401] })
    );
    let seen = app.only_request();
    assert_eq!(seen.target, "/notify?instance=7&asset=a+b&items=1%2C2");
    has(&seen.text(), &["ada@example.com"]);
    assert_eq!(seen.header("x-auth-consumer"), Some(&*consumer.key));
    notified.logs(&["verdict=\"nonce_used\""]);
}
