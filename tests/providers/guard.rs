//! Products with a check of their own, unchanged, alone and behind countersign as their guard: Keystone with its own clients, and
//! `OAuthProvider` of PECL, which Debian has as php-oauth.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    providers::stage::file,
    support::{
        Call, Connection, Consumer, Proxy, free_port, http::try_open, installed, program::Server,
        until,
    },
};

/// A text of Keystone for which the test has another one.
const KEYSTONE: &str = "https://keystone.example:5000";

/// The guard of the product at this URL, with the configuration that is in `deploy/providers`.
fn guard(text: &str, api_url: &str) -> Proxy {
    let mut builder = Proxy::in_front_of_url(api_url).config(text);
    builder.set("upstream.api_url", api_url.into());
    builder.start()
}

/// Sends a copy of each signed request of the clients; the path of each, and the status of both.
fn walk(url: &str, guard: Option<&Proxy>) -> Vec<String> {
    let mut client = Command::new(installed(".tools/keystone/bin/python"))
        .arg(installed("providers/python/keystone/client.py"))
        .arg(format!("{url}/v3"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    let output = BufReader::new(client.stdout.take().unwrap());
    let mut consumer = Vec::new();
    let mut copies = Vec::new();
    for line in output.lines().map(Result::unwrap) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let rows = match words[0].as_str() {
            "CONSUMER" => {
                consumer = words[1..].to_vec();
                vec![
                    json!({ "kind": "consumer", "key": consumer[0], "secret": consumer[1], "name": "shop" }),
                ]
            }
            "TOKEN" => vec![
                json!({ "kind": "user", "id": words[3], "name": "admin" }),
                json!({ "kind": "token", "token": words[1], "token_secret": words[2], "consumer": consumer[0], "user": words[3] }),
            ],
            _ => {
                copies.push(words[1..].join(" "));
                continue;
            }
        };
        if let Some(guard) = guard {
            let head = json!({ "kind": "export", "version": 1 });
            let lines = [head].into_iter().chain(rows).map(|row| format!("{row}\n"));
            guard
                .command_with(&["import", "-"], &lines.collect::<String>())
                .done();
        }
        writeln!(input).unwrap();
    }
    assert!(client.wait().unwrap().success(), "the clients of Keystone");
    copies
}

#[test]
fn a_copy_that_keystone_accepts_is_rejected_behind_the_guard() {
    let directory = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(directory.path().join("log")).unwrap();
    let mut keystone = Server::telling(
        Command::new(installed(".tools/keystone/bin/python"))
            .arg(installed("providers/python/keystone/serve.py"))
            .arg(directory.path())
            .stderr(log),
    );
    let mut lines = BufReader::new(keystone.0.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| line.ok()?.strip_prefix("LISTENING ").map(str::to_owned));
    let log = || std::fs::read_to_string(directory.path().join("log"));
    let port = port.unwrap_or_else(|| panic!("{:?}", log()));
    let url = format!("http://127.0.0.1:{port}");

    assert_eq!(
        walk(&url, None),
        [
            "/v3/OS-OAUTH1/request_token 201 201",
            // Keystone deletes the request token.
            "/v3/OS-OAUTH1/access_token 201 404",
            "/v3/auth/tokens 201 201",
        ]
    );
    let text = file("guard-keystone").replace(&format!("base_url = \"{KEYSTONE}\""), "");
    let guard = guard(&text, &url);
    assert_eq!(
        walk(&guard.origin(), Some(&guard)),
        [
            "/v3/OS-OAUTH1/request_token 201 401",
            "/v3/OS-OAUTH1/access_token 201 404",
            "/v3/auth/tokens 201 401",
        ]
    );
    for path in ["/v3/OS-OAUTH1/request_token", "/v3/auth/tokens"] {
        guard.logs(&[path, "nonce_used"]);
    }
    drop(keystone);
}

#[test]
fn what_pecl_reads_as_credentials_passes_its_guard_once() {
    let port = free_port();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let _php = Server::start(
        Command::new("php")
            .args(["-S", &address.to_string()])
            .arg(installed("providers/php/oauth_provider.php"))
            .stderr(Stdio::null()),
    );
    until("PHP listens", || try_open(address).is_ok());
    let guard = guard("service.role = 'guard'", &format!("http://{address}"));
    let shop = Consumer::new("shop", "consumersecret");
    guard
        .run("consumer add --name Shop --key shop --secret consumersecret")
        .done();

    let sent = |through: &Proxy, to: std::net::SocketAddr, change: &dyn Fn(&str) -> String| {
        // Signed for the guard, and sent there or to PHP alone, with the same Host.
        let wire = String::from_utf8(through.wire(&Call::post("/x").by(&shop))).unwrap();
        let value = wire
            .lines()
            .find_map(|line| line.strip_prefix("Authorization: OAuth "));
        let value = value.unwrap();
        let wire = change(value).replace("$H", &through.host());
        [(); 2].map(|()| {
            let mut connection = Connection::to(to);
            connection.send(wire.as_bytes());
            let answer = connection.answer("POST");
            (answer.status, answer.text() == "call of shop")
        })
    };
    let header = |begin: &'static str| {
        move |value: &str| {
            format!(
                "POST /x HTTP/1.1\r\nHost: $H\r\nContent-Length: 0\r\nAuthorization: {begin}{value}\r\n\r\n"
            )
        }
    };
    let multipart = |value: &str| {
        let pairs = value.split(", ").filter_map(|pair| pair.split_once('='));
        let parts = pairs.map(|(name, value)| {
            let value = percent_encoding::percent_decode_str(value.trim_matches('"'))
                .decode_utf8_lossy()
                .into_owned();
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        });
        let body = parts.collect::<String>() + "--b--\r\n";
        let head = format!(
            "POST /x HTTP/1.1\r\nHost: $H\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}",
            body.len()
        );
        format!("{head}\r\n\r\n{body}")
    };
    let alone = [(200, true), (200, true)];
    assert_eq!(sent(&guard, address, &header("OAuth ")), alone);
    assert_eq!(
        sent(&guard, guard.address(), &header("OAuth "))[0],
        (200, true)
    );
    let copies = sent(&guard, guard.address(), &header("OAuth "));
    assert_eq!(copies.map(|it| it.0), [200, 401]);
    for change in [
        &header("OAuth;") as &dyn Fn(&str) -> String,
        &header("OAuth2 "),
        &header("OAuth"),
        &header(""),
        &|value: &str| header("OAuth ")(&value.replace("oauth_", "xoauth_")),
        &multipart,
    ] {
        let spelling = change("…");
        assert_eq!(sent(&guard, address, change), alone, "{spelling}");
        assert_eq!(
            sent(&guard, guard.address(), change).map(|it| it.0),
            [400, 400],
            "{spelling}"
        );
    }
}
