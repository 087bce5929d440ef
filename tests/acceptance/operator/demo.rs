//! The demo's console and the configuration that the demo keeps.
//!
//! Promise (Console): The demo's console address opens one session; `--keep` leaves a configuration that `serve` starts. Also
//! in `src/operator/admin/console/session/invitation.rs`.

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Upstream, has,
    http::{Answer, Connection},
    program::{Log, program, run},
    until,
};

struct Demo {
    process: Child,
    printed: Log,
    log: Log,
}

impl Demo {
    fn start(arguments: &[&str]) -> Self {
        let mut command = program();
        command
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        Self {
            printed: Log::read_from(process.stdout.take().unwrap()),
            log: Log::read_from(process.stderr.take().unwrap()),
            process,
        }
    }

    /// The address of the console, and the path that opens it.
    fn invitation(&self) -> (SocketAddr, String) {
        self.printed.wait_for("an address of the console", |line| {
            let (admin, path) = line.strip_prefix("  http://")?.split_once("/login?once=")?;
            Some((admin.parse().unwrap(), format!("/login?once={path}")))
        })
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) {
        let process = Pid::from_child(&self.process);
        kill_process(process, Signal::INT).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

fn ask(admin: SocketAddr, method: &str, path: &str, cookie: &str) -> Answer {
    let mut connection = Connection::to(admin);
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {admin}\r\nCookie: {cookie}\r\n\r\n");
    connection.send(request.as_bytes());
    connection.answer(method)
}

#[test]
fn printed_address_opens_the_console_once_with_each_mistake() {
    let mut demo = Demo::start(&[]);
    let (admin, invitation) = demo.invitation();
    // Neither a HEAD nor a wrong token takes it.
    let near = format!("{invitation}x");
    ask(admin, "HEAD", &invitation, "a=b").has_status(200);
    ask(admin, "GET", &near, "a=b").has_status(403);
    let opened = ask(admin, "GET", &invitation, "a=b");
    opened.has_status(303);
    assert_eq!(opened.header("Location"), Some("/login?opened=1"));
    assert_eq!(opened.header("Cache-Control"), Some("no-store"));
    let again = ask(admin, "GET", &invitation, "a=b");
    again.has_status(403);
    assert_eq!(again.header("Set-Cookie"), None);

    let cookie = opened.header("Set-Cookie").unwrap();
    has(cookie, &["HttpOnly", "SameSite=Strict"]);
    let cookie = cookie.split(';').next().unwrap();
    // What the demo prints is true: three consumers, each with one mistake, and an application without any.
    let mistakes = [
        ("Photo printer", "query_unsigned"),
        ("Night job", "timestamp_refused"),
        ("Ledger sync", "nonce_used"),
    ];
    until("the mistakes are shown", || {
        let rejections = ask(admin, "GET", "/rejections", cookie).text();
        mistakes
            .iter()
            .all(|(consumer, word)| rejections.contains(consumer) && rejections.contains(word))
    });
    let metric = |name: &str| {
        let metrics = ask(admin, "GET", "/metrics", "a=b").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0.0, |count| count.trim().parse::<f64>().unwrap())
    };
    let verdict = |name: &str| metric(&format!("countersign_requests_total{{verdict=\"{name}\"}}"));
    until("some seconds have passed", || verdict("forwarded") >= 40.0);
    let wrong = ["signature_invalid", "timestamp_refused", "nonce_used"].map(verdict);
    let wrong: f64 = wrong.iter().sum();
    assert!(wrong > 0.0 && wrong < 0.3 * verdict("forwarded"), "{wrong}");
    assert_eq!(verdict("token_rejected"), 0.0);
    let mut needs = String::new();
    // A consumer whose mistake is in some calls only is in the list from its second mistake on.
    until("three rows are there", || {
        let overview = ask(admin, "GET", "/", cookie).text();
        let after = overview.split("Needs attention</h2>").nth(1).unwrap();
        after
            .split("</table>")
            .next()
            .unwrap()
            .clone_into(&mut needs);
        needs.matches("class=\"why\"").count() == 3
    });
    assert!(!needs.contains("Demo application"), "{needs}");
    for (consumer, word) in mistakes {
        has(&needs, &[consumer, &format!(">{word}</a>")]);
    }
    // Enter prints another address.
    let mut keys = demo.process.stdin.take().unwrap();
    keys.write_all(b"\n").unwrap();
    let another = demo.printed.wait_for("another address", |line| {
        let path = line.split_once("/login?once=")?.1;
        let path = format!("/login?once={path}");
        (path != invitation).then_some(path)
    });
    ask(admin, "GET", &another, "a=b").has_status(303);
    let token = invitation.strip_prefix("/login?once=").unwrap();
    assert!(!demo.log.lines().join("\n").contains(token));
    demo.end();
}

#[test]
fn an_invitation_that_somebody_with_a_session_opens_is_used_up() {
    let demo = Demo::start(&[]);
    let (admin, invitation) = demo.invitation();
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let other = Demo::start(&["--keep", kept.to_str().unwrap()]);
    let (other_admin, other_invitation) = other.invitation();
    // The token of one process opens nothing of another.
    ask(other_admin, "GET", &invitation, "a=b").has_status(403);

    let token = fs::read_to_string(kept.join("admin.token")).unwrap();
    let form = format!("to=%2F&token={}", token.trim());
    let mut connection = Connection::to(other_admin);
    let request = format!(
        "POST /login HTTP/1.1\r\nHost: {other_admin}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    connection.send(request.as_bytes());
    let opened = connection.answer("POST");
    let cookie = opened
        .header("Set-Cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let sent = ask(other_admin, "GET", &other_invitation, cookie);
    assert_eq!(sent.header("Location"), Some("/"));
    ask(other_admin, "GET", &other_invitation, "a=b").has_status(403);
    ask(admin, "GET", &invitation, "a=b").has_status(303);
    demo.end();
    other.end();
}

#[test]
fn kept_demo_is_a_configuration_that_check_and_serve_accept() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let argument = ["--keep", kept.to_str().unwrap()];
    let demo = Demo::start(&argument);
    demo.invitation();
    until("it is written", || kept.join("config.toml").exists());
    demo.end();
    let mode = |name: &str| fs::metadata(kept.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        ["", "config.toml", "admin.token", "demo.db"].map(mode),
        [0o700, 0o600, 0o600, 0o600]
    );

    // A directory that exists is left as it is.
    let mut again = program();
    let again = run(
        again
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(argument),
        "",
    );
    assert!(!again.status.success());
    has(&again.stderr, &["--keep", "does not exist"]);

    let api = Upstream::start();
    let file = kept.join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("upstream.api_url"))
        .unwrap();
    fs::write(
        &file,
        text.replace(line, &format!("upstream.api_url = '{}'", api.url())),
    )
    .unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let checked = run(program().arg("check").args(config), "");
    assert!(checked.status.success(), "{checked:?}");
    let listed = run(program().args(["consumer", "list"]).args(config), "");
    has(
        &listed.stdout,
        &[
            "Demo application",
            "Photo printer",
            "Night job",
            "Ledger sync",
        ],
    );
    let mut serving = program();
    let serving = serving.arg("serve").args(config).stderr(Stdio::piped());
    let mut serving = serving.spawn().unwrap();
    until("it is ready", || {
        run(program().args(["health", "--ready"]).args(config), "")
            .status
            .success()
    });
    serving.kill().unwrap();
    serving.wait().unwrap();
}
