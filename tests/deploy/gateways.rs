//! The servers of `deploy/gateways` in front of countersign.
//!
//! Promise (Storage and operation): Signed requests and WebSockets pass the gateways of `deploy/gateways` unchanged; forged
//! forwarded fields are not trusted.

use std::{fs, net::TcpStream, path::Path, process::Command};

use rustix::process::Signal;

use super::{file, tool};
use crate::support::{
    Call, Connection, PATIENCE, Proxy, Upstream, free_port, program::Server, tls::Certificate,
    upstream::After, within,
};

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Copies the configurations of a folder into `directory`, for a server on `port` and with these replacements.
pub(super) fn configure(folder: &str, directory: &Path, port: u16, replaced: &[(&str, &str)]) {
    let here = |name: &str| directory.join(name).display().to_string();
    let files = fs::read_dir(file(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.is_file()) {
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("443", &*port.to_string()),
            ("maxconn 20000", "maxconn 100"),
            (
                "admin off\n",
                &format!("admin off\nhttps_port {port}\nauto_https disable_redirects\n"),
            ),
            (
                "/etc/ssl/example.com/fullchain.pem",
                &here("certificate.pem"),
            ),
            ("/etc/ssl/example.com/privkey.pem", &here("key.pem")),
            ("/etc/haproxy/", &here("")),
            ("/etc/apache2/", &here("")),
            ("/run/apache2/", &here("")),
            (
                "/etc/traefik/countersign.yaml",
                &here("traefik-countersign.yaml"),
            ),
            ("/run/nginx.pid", &here("nginx.pid")),
        ]
        .iter()
        .chain(replaced)
        {
            text = text.replace(from, to);
        }
        fs::write(directory.join(path.file_name().unwrap()), text).unwrap();
    }
}

/// Starts a server on its configuration, in front of a proxy, and sends calls that must arrive as they were signed.
fn passes_signed_calls(name: &str, extra: &str, start: impl FnOnce(&Path) -> Command) {
    let api = Upstream::handling(|exchange| {
        exchange.whole_body()?;
        if exchange.seen.target != "/socket" {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
            return Ok(After::Keep);
        }
        exchange.write(SWITCHING)?;
        while let Some(bytes) = exchange.raw_piece()? {
            exchange.write(bytes)?;
        }
        Ok(After::Close)
    });
    let probe = free_port();
    let builder = Proxy::in_front_of(&api).config(&format!(
        "listen.trusted_proxies = ['127.0.0.1']\n{extra}\nadmin.probe_listen = '127.0.0.1:{probe}'\n\
         [service]\nbase_url = 'https://auth.example.com'\npublic_api_urls = ['https://api.example.com']"
    ));
    let certificate = Certificate::for_names(&["api.example.com", "auth.example.com"]);
    let (chain, _) = certificate.write(builder.directory());
    let directory = builder.directory().to_owned();
    let (mut proxy, port) = (builder.start(), free_port());
    let caller = proxy.somebody();

    fs::write(
        directory.join("example.com.pem"),
        certificate.certificate + &certificate.key,
    )
    .unwrap();
    configure(
        "deploy/gateways",
        &directory,
        port,
        &[
            ("127.0.0.1:8080", &proxy.address().to_string()),
            (
                "port_value: 8080",
                &format!("port_value: {}", proxy.address().port()),
            ),
            ("port 8082", &format!("port {probe}")),
        ],
    );
    let log = fs::File::create(directory.join("log")).unwrap();
    let _server = Server::start(
        start(&directory)
            .current_dir(&directory)
            .env("HOME", &directory)
            .stderr(log),
    );
    within(PATIENCE, name, || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });

    let send = |protocol: &str, url: &str, data: &[&str]| {
        let method = if data.is_empty() { "GET" } else { "POST" };
        let fixed = [
            "sign",
            method,
            url,
            "--consumer-key",
            &caller.consumer.key,
            "--token",
            &caller.token.token,
        ];
        let header = proxy.command(&[&fixed, data].concat()).done().stdout;
        let to = format!("::127.0.0.1:{port}");
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--path-as-is",
            "--interface",
            "127.0.0.2",
        ])
        .args([protocol, "--connect-to", &to, "--cacert"])
        .arg(&chain)
        .args([
            "-H",
            header.trim(),
            "-H",
            "X-Forwarded-For: 203.0.113.9",
            "-H",
            "X-Forwarded-Proto: http",
        ])
        .args([
            "-H",
            "X-Forwarded-Host: other.example",
            "-H",
            "Forwarded: for=203.0.113.9;host=other.example;proto=http",
        ]);
        let output = curl.args(data).arg(url).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // A server such as HAProxy first has to see that the proxy is ready.
    within(PATIENCE, name, || {
        (send("--http2", "https://api.example.com/ready", &[]) == "200").then_some(())
    });
    let before = api.count();
    // Traefik decodes the escapes of unreserved characters in a path, in every configuration.
    let tilde = if name == "traefik" { "~" } else { "%7E" };
    let target = format!("/a%2Fb//c%20d;e/{tilde}?q=a%20b&empty=&x=%2F%7E");
    for protocol in ["--http1.1", "--http2"] {
        let url = format!("https://api.example.com{target}");
        let log = || {
            format!(
                "{name}: {}\n{}",
                fs::read_to_string(directory.join("log")).unwrap(),
                proxy.log()
            )
        };
        assert_eq!(send(protocol, &url, &[]), "200", "{}", log());
        assert_eq!(
            send(protocol, &url, &["--data", "a=1+2&b=%2B"]),
            "200",
            "{}",
            log()
        );
    }
    for seen in api.requests_since(before) {
        assert_eq!(seen.target, target, "{name}");
        assert_eq!(
            seen.header("X-Auth-Consumer"),
            Some(&*caller.consumer.key),
            "{name}"
        );
        for (field, value) in [
            // A server that passes connections on writes no field.
            (
                "For",
                if extra.contains("proxy_protocol") {
                    "127.0.0.2"
                } else {
                    "127.0.0.2, 127.0.0.1"
                },
            ),
            ("Proto", "https"),
            ("Host", "api.example.com"),
        ] {
            assert_eq!(
                seen.header(&format!("X-Forwarded-{field}")),
                Some(value),
                "{name}: {field}"
            );
        }
        let forwarded = seen.header("Forwarded").unwrap_or_default();
        assert!(!forwarded.contains("203.0.113.9"), "{name}: {forwarded}");
    }

    // An operation that allows the upgrade, after a reload.
    proxy.reconfigure("operation = [{ path = '/socket', upgrade = ['websocket'] }]");
    proxy.signal(Signal::HUP);
    proxy.logs(&["configuration_reloaded"]);
    let handshake = Call::get("/socket")
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Version", "13")
        .of(&caller);
    let address = ([127, 0, 0, 1], port).into();
    let roots = fs::read_to_string(&chain).unwrap();
    let mut socket = Connection::over_tls(address, "api.example.com", &roots);
    socket.send(&handshake.wire("https://api.example.com", "api.example.com"));
    assert_eq!(socket.head().status(), 101, "{name}: {}", proxy.log());
    for bytes in [&b"a frame"[..], &[0x81; 70_000], b"\r\n\0 and more"] {
        socket.send(bytes);
        assert_eq!(socket.wire().exactly(bytes.len()).unwrap(), bytes, "{name}");
    }
    drop(socket);
}

/// nginx with the configuration of this name.
fn nginx_on(directory: &Path, configuration: &str) -> Command {
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .args(["-e", "stderr", "-g", "daemon off;", "-c"])
        .arg(directory.join(configuration));
    command
}

pub(super) fn nginx(directory: &Path) -> Command {
    nginx_on(directory, "nginx.conf")
}

/// HAProxy with the configuration of this name.
fn haproxy_on(configuration: &str) -> Command {
    let mut command = Command::new("/usr/sbin/haproxy");
    command.args(["-db", "-f", configuration]);
    command
}

pub(super) fn haproxy(_: &Path) -> Command {
    haproxy_on("haproxy.cfg")
}

pub(super) fn caddy(_: &Path) -> Command {
    let mut command = Command::new("caddy");
    command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]);
    command
}

pub(super) fn traefik(_: &Path) -> Command {
    let mut command = tool("traefik");
    command.arg("--configFile=traefik.yaml");
    command
}

pub(super) fn envoy(_: &Path) -> Command {
    let mut command = tool("envoy");
    command.args([
        "-c",
        "envoy.yaml",
        "--use-dynamic-base-id",
        "--concurrency",
        "1",
    ]);
    command
}

#[test]
fn nginx_with_x_forwarded_fields_passes_signed_calls() {
    passes_signed_calls("nginx", "", nginx);
}

#[test]
fn nginx_with_the_forwarded_field_passes_signed_calls() {
    passes_signed_calls("nginx", "listen.forwarded = 'forwarded'", |directory| {
        nginx_on(directory, "nginx-forwarded.conf")
    });
}

#[test]
fn haproxy_passes_signed_calls() {
    passes_signed_calls("haproxy", "", haproxy);
}

#[test]
fn haproxy_by_the_proxy_protocol_passes_signed_calls() {
    let own_tls = "listen.proxy_protocol = true\nlisten.tls.certificate = 'certificate.pem'\nlisten.tls.key = 'key.pem'";
    for version in ["send-proxy-v2", "send-proxy"] {
        passes_signed_calls(version, own_tls, |directory| {
            let path = directory.join("haproxy-tcp.cfg");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("send-proxy-v2", version)).unwrap();
            haproxy_on("haproxy-tcp.cfg")
        });
    }
}

#[test]
fn caddy_passes_signed_calls() {
    passes_signed_calls("caddy", "", caddy);
}

#[test]
fn traefik_passes_signed_calls() {
    passes_signed_calls("traefik", "", traefik);
}

#[test]
fn envoy_passes_signed_calls() {
    passes_signed_calls("envoy", "", envoy);
}
