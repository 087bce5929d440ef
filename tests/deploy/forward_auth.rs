//! The servers of `deploy/gateways/forward-auth`, which ask countersign about each request and forward it themselves.
//!
//! Promise (Storage and operation): Behind nginx, HAProxy, Caddy, Traefik, Envoy and Apache with forward-auth the API gets only
//! permitted requests. Also in `tests/deploy/stand_ins.rs`.

mod bypasses;
mod paths;
mod responses;

use std::{fs, net::TcpStream, path::Path, process::Command, time::Instant};

use self::responses::{announces_the_end, drops_what_an_api_would_believe};
use super::{
    file,
    gateways::{caddy, configure, envoy, haproxy, nginx, traefik},
    printed, read,
};
use crate::support::{
    Answer, Call, Connection, PATIENCE, Placement, Reply, Upstream, free_port,
    gate::Way,
    has,
    http::latin1,
    program::Server,
    proxy::{Builder, Caller, Proxy},
    tls::Certificate,
    upstream::Seen,
    within, words,
};

const ORIGIN: &str = "https://api.example.com";
const HOST: &str = "api.example.com";

/// A server that asks countersign about the calls to an API.
struct Gateway {
    name: &'static str,
    api: Upstream,
    proxy: Proxy,
    caller: Caller,
    port: u16,
    roots: String,
    directory: std::path::PathBuf,
    _server: Server,
}

impl Gateway {
    fn start(name: &'static str, config: &str, command: fn(&Path) -> Command) -> Self {
        Self::edited(name, config, ("443", "443"), command)
    }

    /// A server whose configuration has the second text instead of the first in that of `deploy`.
    fn edited(
        name: &'static str,
        config: &str,
        edit: (&str, &str),
        command: fn(&Path) -> Command,
    ) -> Self {
        let api = Upstream::replying(|_| {
            Reply::ok("")
                .header("Link", "</next>; rel=\"next\"")
                .header("Sunset", "Thu, 01 Jan 2099 00:00:00 GMT")
        });
        let builder = Builder::for_forward_auth().config(&format!(
            "listen.trusted_proxies = ['127.0.0.1']\n{config}\n\
             [service]\nbase_url = 'https://auth.example.com'\npublic_api_urls = ['{ORIGIN}']"
        ));
        let certificate = Certificate::for_names(&[HOST, "auth.example.com"]);
        certificate.write(builder.directory());
        let directory = builder.directory().to_owned();
        let key = ["genpkey", "-algorithm", "ed25519", "-out", "assertion.pem"];
        printed(Command::new("openssl").args(key).current_dir(&directory));
        let whole = certificate.certificate.clone() + &certificate.key;
        fs::write(directory.join("example.com.pem"), whole).unwrap();
        let (proxy, port) = (builder.start(), free_port());
        let (gate, public) = (proxy.forward_auth(), proxy.address());
        let (_, api_port) = api.authority().split_once(':').unwrap();
        configure(
            "deploy/gateways/forward-auth",
            &directory,
            port,
            &[
                ("127.0.0.1:8080", &public.to_string()),
                ("127.0.0.1:8083", &gate.to_string()),
                ("127.0.0.1:9000", api.authority()),
                (
                    "port_value: 8080",
                    &format!("port_value: {}", public.port()),
                ),
                ("port_value: 8083", &format!("port_value: {}", gate.port())),
                ("port_value: 9000", &format!("port_value: {api_port}")),
                edit,
            ],
        );
        let log = fs::File::create(directory.join("log")).unwrap();
        let mut command = command(&directory);
        command.current_dir(&directory).env("HOME", &directory);
        let server = Server::start(command.stderr(log));
        within(PATIENCE, name, || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        let caller = proxy.somebody();
        Self {
            name,
            api,
            proxy,
            caller,
            port,
            roots: certificate.certificate,
            directory,
            _server: server,
        }
    }

    /// Sends a request and reads the answer, which may come before the server has read the whole body.
    fn send(&self, wire: &[u8]) -> Option<Answer> {
        let address = ([127, 0, 0, 1], self.port).into();
        let mut connection = Connection::over_tls(address, HOST, &self.roots);
        let _closed = connection.try_send(wire);
        connection.try_answer("GET").ok()?
    }

    /// Sends a call by curl, over HTTP/2 if the server offers it: the version and the status.
    fn curl(&self, wire: &[u8]) -> String {
        let head = latin1(wire);
        let mut lines = head.trim_end().split("\r\n");
        let target = lines.next().unwrap().split(' ').nth(1).unwrap();
        let mut curl = Command::new("curl");
        curl.args(words("-sS --http2 --path-as-is -o /dev/null"));
        curl.args(["-w", "%{http_version} %{http_code}"]);
        for field in lines.filter(|line| !line.starts_with("Host:")) {
            curl.args(["-H", field]);
        }
        let to = format!("::127.0.0.1:{}", self.port);
        curl.args(["--cacert", "certificate.pem", "--connect-to", &to]);
        printed(
            curl.arg(format!("{ORIGIN}{target}"))
                .current_dir(&self.directory),
        )
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.join("log")).unwrap();
        format!("{}: {log}\n{}", self.name, self.proxy.log())
    }

    /// Waits until a call passes.
    #[track_caller]
    fn becomes_ready(&self, call: impl Fn() -> Call) {
        let mut last = None;
        let begun = Instant::now();
        while last
            .as_ref()
            .is_none_or(|answer: &Answer| answer.status != 200)
        {
            assert!(begun.elapsed() < PATIENCE, "{last:?}\n{}", self.log());
            last = self.send(&call().wire(ORIGIN, HOST));
        }
    }

    /// Sends a call and requires an answer.
    #[track_caller]
    fn call(&self, call: &Call) -> Answer {
        let Some(answer) = self.send(&call.wire(ORIGIN, HOST)) else {
            panic!("no answer to {call:?}\n{}", self.log());
        };
        answer
    }

    /// Sends a call that must not reach the API.
    #[track_caller]
    fn refuses(&self, call: &Call, status: u16) -> Answer {
        let before = self.api.count();
        let answer = self.call(call);
        assert_eq!(answer.status, status, "{answer:?}\n{}", self.log());
        assert_eq!(self.api.count(), before, "{call:?}");
        answer
    }
}

/// Fields of a caller by which it would be taken for another, or its request for another request.
fn forged(call: Call) -> Call {
    let fields = words(
        "X-Original-Method:GET X-Original-URL:https://api.example.com/open X-Original-URL:/open X-Forwarded-Method:GET \
         X-Forwarded-Proto:http X-Forwarded-Host:auth.example.com X-Forwarded-Uri:/open X-Forwarded-For:203.0.113.9 \
         X-Forwarded-Prefix:/open X-Rewrite-URL:/open X-HTTP-Method-Override:DELETE X-Auth-User:root X-Auth-Kind:user \
         X_Auth_User:root X-AUTH_USER:root X.Auth.User:root X-Auth-Permissions:all X-Auth-Assertion:x X_AUTH_ASSERTION:x Forwarded:host=auth.example.com Remote-User:root X-SSL-Client-Cert:x",
    );
    fields.into_iter().fold(call, |call, field| {
        let (name, value) = field.split_once(':').unwrap();
        call.header(name, value)
    })
}

/// The names of [`forged`] fields that the gateway itself may write for the API.
const OWN: [&str; 4] = [
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-auth-kind",
];

/// Checks that none of the [`forged`] fields is in a request.
#[track_caller]
fn has_nothing_forged(name: &str, seen: &Seen) {
    for field in forged(Call::get("/"))
        .wire("", "")
        .split(|&byte| byte == b'\n')
    {
        let line = String::from_utf8_lossy(field);
        let Some((field, value)) = line.trim().split_once(": ") else {
            continue;
        };
        let seen_values = seen.fields.all(field);
        let is_own = OWN.contains(&&*field.to_ascii_lowercase());
        assert!(
            is_own || !seen_values.contains(&value),
            "{name}: {line} in {seen:?}"
        );
        assert!(
            !seen_values.iter().any(|seen| seen.contains("203.0.113.9")),
            "{name}: {seen:?}"
        );
    }
    assert_ne!(
        seen.header("x-forwarded-host"),
        Some("auth.example.com"),
        "{seen:?}"
    );
}

fn decides(name: &'static str, command: fn(&Path) -> Command) {
    let config = "sunset = { deprecation = 2026-01-01T00:00:00Z, date = 2031-03-31T00:00:00Z, link = 'https://example.com/oauth2' }\n\
                  exchange.audience = 'https://api.example.com'\nbearer.own = true\n\
                  identity.assertion = { header = 'X-Auth-Assertion', key_files = ['assertion.pem'], audience = 'https://api.internal' }";
    let gateway = Gateway::start(name, config, command);
    let Gateway {
        api, proxy, caller, ..
    } = &gateway;
    gateway.becomes_ready(|| Call::get("/ready").of(caller));
    // Traefik decodes the escapes of unreserved characters in a path, in every configuration.
    let tilde = if name == "traefik" { "~" } else { "%7E" };
    let target = format!("/a%2Fb//c%20d;e/{tilde}?q=a%20b&empty=&x=%2F%7E&b=2&b=1&A=0");
    for call in [
        Call::get(&target),
        Call::post(&target).json("{}"),
        Call::new("DELETE", &target),
    ] {
        let wire = forged(call.of(caller)).wire(ORIGIN, HOST);
        let before = api.count();
        let answer = gateway.send(&wire).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}\n{}", gateway.log());
        let seen = api.last_request();
        assert_eq!(
            (api.count(), &*seen.target),
            (before + 1, &*target),
            "{name}"
        );
        assert_eq!(seen.fields.all("x-auth-user"), [&caller.user.id], "{name}");
        assert_eq!(
            seen.fields.all("x-auth-consumer"),
            [&caller.consumer.key],
            "{name}"
        );
        assert_eq!(seen.fields.all("x-auth-kind"), ["consumer"], "{name}");
        let assertions = seen.fields.all("x-auth-assertion");
        let is_whole = |jwt: &&str| jwt.split('.').count() == 3;
        assert!(
            assertions.len() == 1 && assertions.iter().all(is_whole),
            "{name}: {assertions:?}"
        );
        assert!(
            seen.header("x-auth-permissions")
                .unwrap_or_default()
                .is_empty(),
            "{name}"
        );
        assert!(!seen.fields.has("authorization"), "{seen:?}");
        has_nothing_forged(name, &seen);
        // The nonce is used for both listeners.
        let answer = gateway.send(&wire).unwrap();
        assert_eq!(answer.status, 401, "{answer:?}");
        let again = proxy.asks_by(Way::Verify, ORIGIN, &wire);
        again.is(401, "nonce_used");
        assert_eq!(api.count(), before + 1, "{name}");
    }
    decides_over_http2(&gateway, &target);
    let used = Call::get("/x").of(caller).wire(ORIGIN, HOST);
    proxy.asks_by(Way::Forwarded, ORIGIN, &used).has_status(200);
    assert_eq!(gateway.send(&used).unwrap().status, 401, "{name}");

    decides_on_bodies(&gateway);
    decides_on_tokens(&gateway);
    let refused = gateway.refuses(&Call::get("/"), 401);
    let challenges = refused.fields.all("WWW-Authenticate");
    // Some servers pass one of both alone, or in another order.
    let names_scheme = |it: &&str| it.starts_with("OAuth ") || it.starts_with("Bearer ");
    assert!(
        !challenges.is_empty() && challenges.iter().all(names_scheme),
        "{name}: {refused:?}"
    );
    gateway.refuses(&forged(Call::get("/")), 401);
    gateway.refuses(&Call::get("/").of(caller).key("wrong"), 401);
    gateway.refuses(&Call::get("/").of(caller).signs_target("/other"), 401);
    gateway.refuses(&Call::get("/").of(caller).signs_method("POST"), 401);
    let before = api.count();
    let h2c = Call::get("/")
        .of(caller)
        .header("Upgrade", "h2c")
        .header("Connection", "Upgrade");
    let answer = gateway.call(&h2c);
    let seen = api.requests_since(before);
    let is_plain = |seen: &Seen| !seen.fields.has("upgrade");
    assert!(
        answer.status == 404 && seen.is_empty() || seen.len() == 1 && seen.iter().all(is_plain),
        "{name}: {answer:?} {seen:?}"
    );
    let two = Call::get("/")
        .of(caller)
        .header("Upgrade", "websocket")
        .header("Upgrade", "h2c")
        .header("Connection", "Upgrade");
    let before = api.count();
    gateway.send(&two.wire(ORIGIN, HOST));
    assert!(api.requests_since(before).iter().all(is_plain), "{name}");
    // Fields that Connection names are removed, but not those that the gateway sets.
    let names = "close, X-Auth-User, X-Auth-Consumer, X-Auth-Permissions, X-Auth-Kind";
    let before = api.count();
    gateway.send(
        &Call::get("/hop")
            .of(caller)
            .header("Connection", names)
            .wire(ORIGIN, HOST),
    );
    for seen in api.requests_since(before) {
        assert_eq!(
            seen.fields.all("x-auth-user"),
            [&caller.user.id],
            "{name}: {seen:?}"
        );
        assert_eq!(
            seen.fields.all("x-auth-kind"),
            ["consumer"],
            "{name}: {seen:?}"
        );
    }
    announces_the_end(&gateway);
    let cookies = |cookies: &str| {
        let before = api.count();
        gateway.call(&Call::get("/cookies").of(caller).header("Cookie", cookies));
        let seen = &api.requests_since(before)[0];
        seen.header("cookie").unwrap_or_default().to_owned()
    };
    let seen = cookies("a=1; __Host-countersign-login=b; x=2; __Host-countersign-login=c; y=3");
    assert!(!seen.contains("countersign"), "{name}: {seen}");
    // nginx forwards no cookie, and Traefik only ours.
    let loses_all = ["nginx", "traefik"].contains(&name);
    assert!(loses_all || seen.contains("x=2"), "{name}: {seen}");
    let before = api.count();
    let two = Call::get("/cookies").of(caller).header("Cookie", "x=2");
    gateway.call(&two.header("Cookie", "__Host-countersign=b"));
    let seen = &api.requests_since(before)[0];
    let seen = seen.fields.all("cookie").concat();
    assert!(!seen.contains("countersign"), "{name}: {seen}");
    let seen = cookies("a=countersign; my-countersign=2");
    assert!(
        name == "nginx" || seen == "a=countersign; my-countersign=2",
        "{name}: {seen}"
    );
    // Callers cannot reach the path to countersign.
    for path in ["/.countersign", "/nginx", "/forwarded", "/verify/x"] {
        let answer = gateway.call(&forged(Call::get(path)));
        assert!([401, 404].contains(&answer.status), "{answer:?}");
    }
    // Credentials in the query, and one that hides its name.
    let before = api.count();
    for target in [
        "/q?a=1",
        "/q",
        "/q?%6f%41uth%5Ftoken=x&a=1",
        "/q?b&oauth_x&c",
    ] {
        gateway.call(&Call::get(target).of(caller).placed(Placement::Query));
    }
    for seen in api.requests_since(before) {
        let has_credentials = seen.target.contains("oauth_") || seen.target.contains("auth%5F");
        assert!(!has_credentials, "{name}: {seen:?}");
    }
    let before = api.count();
    let long = format!("/{}", "a".repeat(20 << 10));
    let answer = gateway.send(&Call::get(&long).of(caller).wire(ORIGIN, HOST));
    assert!(
        answer.is_none_or(|answer| (400..500).contains(&answer.status)),
        "{name}"
    );
    assert_eq!(api.count(), before, "{name}");
    drops_what_an_api_would_believe(&gateway);
    drop(gateway.proxy);
    let answer = gateway.api.count();
    let address = ([127, 0, 0, 1], gateway.port).into();
    let mut connection = Connection::over_tls(address, HOST, &gateway.roots);
    connection.send(&Call::get("/").of(&gateway.caller).wire(ORIGIN, HOST));
    let failed = connection.answer("GET");
    assert!(failed.status >= 400, "{name}: {failed:?}");
    assert_eq!(
        gateway.api.count(),
        answer,
        "{name}: nothing passes without a decision"
    );
}

/// Forms and hashed bodies are verified where the gateway shows them, and rejected otherwise; other bodies pass.
fn decides_on_bodies(gateway: &Gateway) {
    let Gateway {
        name, api, caller, ..
    } = gateway;
    let form = || Call::post("/form").of(caller).form("a=1&b=%20x");
    let json = r#"{"a":1}"#;
    let hash = "n4nHQM60bXQYySSnisV5QdXpZSA=";
    let hashed = |body: &str| Call::post("/hashed").of(caller).json(body);
    let hashed = |body: &str| hashed(body).parameter("oauth_body_hash", hash);
    let large = "x".repeat(200_000);
    let is_shown = ["haproxy", "traefik", "envoy"].contains(name);
    let passes = |call: &Call, body: &str| {
        let before = api.count();
        let answer = gateway.call(call);
        assert_eq!(answer.status, 200, "{answer:?}\n{}", gateway.log());
        let seen = api.requests_since(before);
        assert_eq!((seen.len(), &*seen[0].text()), (1, body), "{name}");
    };
    if is_shown {
        passes(&form(), "a=1&b=%20x");
        passes(&hashed(json), json);
        gateway
            .call(&form().placed(Placement::Body))
            .has_status(200);
    } else {
        let told = gateway.refuses(&form(), 401);
        let challenge = told.header("WWW-Authenticate").unwrap_or_default();
        has(&(told.text() + challenge), &["without", "body"]);
        gateway.refuses(&hashed(json), 401);
    }
    let type_of = |call: Call| call.header("Content-Type", "application/x-www-form-urlencoded");
    for call in [
        form().signs_body(""),
        form().signs_body("a=1"),
        form().signs_body("a=1&b=%20x&c=3"),
        hashed("{}"),
        form()
            .header("X-Envoy-Auth-Partial-Body", "false")
            .signs_body("a=1"),
        type_of(Call::post("/form").of(caller)).signs_body(""),
    ] {
        gateway.refuses(&call, 401);
    }
    // A form in chunks: Envoy alone tells its length.
    let chunked = type_of(Call::post("/form").of(caller)).chunked(&[b"a=1", b"&b=2"]);
    match *name {
        "envoy" => passes(&chunked, "a=1&b=2"),
        _ => drop(gateway.refuses(&chunked, 401)),
    }
    let cut = form()
        .signs_body("a=1")
        .header("Transfer-Encoding", "chunked");
    let before = api.count();
    gateway.send(&cut.wire(ORIGIN, HOST));
    assert_eq!(api.count(), before, "{name}");
    passes(&Call::post("/large").of(caller).json(&large), &large);
    // A hashed body that the server does not show, and a form above the limits. The server may close the connection before it
    // has read all of it, and the answer is lost then.
    let huge = Call::post("/huge")
        .of(caller)
        .form(&format!("a={}", "b".repeat(1_100_000)));
    for call in [hashed(&large), huge] {
        let before = api.count();
        let answer = gateway.send(&call.wire(ORIGIN, HOST));
        let is_refused = answer.as_ref().is_none_or(|answer| answer.status == 401);
        assert!(is_refused && api.count() == before, "{name}: {answer:?}");
    }
    // The id of the call is the one in the log, whatever the caller sent.
    let id = Call::get("/id")
        .of(caller)
        .header("X-Request-Id", "of-the-caller");
    passes(&id, "");
    let seen = api.last_request();
    let ids = seen.fields.all("x-request-id");
    assert_eq!(ids.len(), 1, "{name}: {seen:?}");
    gateway
        .proxy
        .logs(&["path=\"/id\"", &format!("request_id={}", ids[0])]);
}

/// A Bearer token is decided on as a signature is, also where the server does not show the body.
fn decides_on_tokens(gateway: &Gateway) {
    let Gateway {
        name,
        api,
        proxy,
        caller,
        ..
    } = gateway;
    let exchange = Call::post("/service.oauth?mode=exchange").of(caller);
    let exchange = exchange.for_origin("https://auth.example.com");
    let exchange = exchange.host("auth.example.com");
    let exchange = exchange.header("X-Forwarded-Proto", "https");
    let answer = proxy.passes(exchange).json();
    let token = answer["access_token"].as_str().unwrap();
    let with = |call: Call, token: &str| call.bearer(token);
    let form = Call::post("/tokens").form("a=1&b=%20x");
    for call in [
        Call::get("/tokens?a=1"),
        form,
        Call::post("/tokens").json("{}"),
    ] {
        let before = api.count();
        let answer = gateway.call(&forged(with(call, token)));
        assert_eq!(answer.status, 200, "{answer:?}\n{}", gateway.log());
        let seen = &api.requests_since(before)[0];
        assert_eq!(seen.fields.all("x-auth-user"), [&caller.user.id], "{name}");
        let consumer = seen.fields.all("x-auth-consumer");
        assert_eq!(consumer, [&caller.consumer.key], "{name}");
        assert_eq!(seen.fields.all("x-auth-kind"), ["consumer"], "{name}");
        assert!(!seen.fields.has("authorization"), "{name}: {seen:?}");
        has_nothing_forged(name, seen);
    }
    let cut = &token[..token.len() - 4];
    let two = with(Call::get("/tokens"), token).header("Authorization", "Basic YTpi");
    let both = with(Call::get("/tokens?oauth_token=x"), token);
    for call in [with(Call::get("/tokens"), cut), two, both] {
        let before = api.count();
        let answer = gateway.call(&call);
        assert!([400, 401].contains(&answer.status), "{name}: {answer:?}");
        assert_eq!(api.count(), before, "{name}");
    }
}

/// The same over HTTP/2, which all but Apache offer.
fn decides_over_http2(gateway: &Gateway, target: &str) {
    let Gateway {
        name, api, caller, ..
    } = gateway;
    let version = if *name == "apache" { "1.1" } else { "2" };
    let call = forged(Call::get(target).of(caller)).header("Cookie", "x=2");
    let wire = call
        .header("Cookie", "__Host-countersign=b")
        .wire(ORIGIN, HOST);
    let before = api.count();
    for status in [200, 401] {
        let printed = gateway.curl(&wire);
        assert_eq!(printed, format!("{version} {status}"), "{}", gateway.log());
    }
    let seen = api.requests_since(before);
    assert_eq!(seen.len(), 1, "{name}: {seen:?}");
    assert_eq!(seen[0].target, target, "{name}");
    let user = seen[0].fields.all("x-auth-user");
    assert_eq!(user, [&caller.user.id], "{name}");
    has_nothing_forged(name, &seen[0]);
    let cookies = seen[0].fields.all("cookie").concat();
    assert!(!cookies.contains("countersign"), "{name}: {cookies}");
    let loses_all = ["nginx", "traefik"].contains(name);
    assert!(loses_all || cookies.contains("x=2"), "{name}: {cookies}");
}

/// An identity header of a caller does not pass either where the server does not copy the one of countersign.
fn copies_only_some(name: &'static str, command: fn(&Path) -> Command) {
    let edit = match name {
        "nginx" => ("proxy_set_header X-Auth-Permissions $auth_permissions;", ""),
        "caddy" => ("X-Auth-Consumer X-Auth-Permissions", "X-Auth-Consumer"),
        "envoy" => ("[{ prefix: x-auth- }, ", "[{ exact: x-auth-user }, "),
        "traefik" => ("x-auth-.*", "x-auth-user"),
        _ => (
            "name:sub(1, 7) == \"x-auth-\"",
            "name:sub(1, 7) == \"x-auth-\" and name ~= \"x-auth-permissions\"",
        ),
    };
    let config = "permission = [{ name = 'members' }]";
    let gateway = Gateway::edited(name, config, edit, command);
    let consumer = gateway
        .proxy
        .consumer_with("Members", "--permission members");
    let token = gateway.proxy.token(&consumer, &gateway.caller.user);
    let call = || Call::get("/some").by(&consumer).with(&token);
    gateway.becomes_ready(call);
    let answer = gateway.call(&forged(call()));
    assert_eq!(answer.status, 200, "{answer:?}\n{}", gateway.log());
    let seen = gateway.api.last_request();
    let user = seen.fields.all("x-auth-user");
    assert_eq!(user, [&gateway.caller.user.id], "{name}: {seen:?}");
    assert!(!seen.fields.has("x-auth-permissions"), "{name}: {seen:?}");
    has_nothing_forged(name, &seen);
}

/// Sends the commands of the guide to the server, and compares their output.
#[test]
fn the_call_of_the_nginx_guide_passes_once() {
    let gateway = Gateway::start("nginx", "", nginx);
    let directory = &gateway.directory;
    printed(nginx(directory).arg("-t").current_dir(directory));
    gateway.becomes_ready(|| Call::get("/ready").of(&gateway.caller));
    let curlrc = format!(
        "silent\ncacert = certificate.pem\nconnect-to = \"::127.0.0.1:{}\"\nwrite-out = %{{http_code}}\n",
        gateway.port
    );
    fs::write(directory.join(".curlrc"), curlrc).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_countersign"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).env("PATH", &path);
        printed(shell.env("HOME", directory).current_dir(directory))
    };
    let guide = read("docs/gateways.md");
    let (_, commands) = guide.split_once("```sh\n").unwrap();
    let told = shell(commands.split_once("```").unwrap().0);
    let curl = &told[told.find("curl ").unwrap()..];
    let before = gateway.api.count();
    assert_eq!(shell(curl), "200", "{curl}\n{}", gateway.log());
    let used = shell(curl);
    assert!(used.ends_with("401"), "{used}");
    has(&used, &["nonce_used"]);
    let seen = gateway.api.requests_since(before);
    assert_eq!((seen.len(), &*seen[0].target), (1, "/members/1"));
}

fn apache(_: &Path) -> Command {
    let mut command = Command::new("/usr/sbin/apache2");
    command.args(["-X", "-d", ".", "-f", "apache.conf"]);
    command
}

/// The tests of each server.
macro_rules! servers {
    ($($server:ident)+) => {
        $(mod $server {
            #[test]
            fn forwards_only_permitted_requests() {
                super::decides(stringify!($server), super::$server);
            }

            #[test]
            fn forwards_the_path_that_was_decided_on() {
                super::paths::no_reading_of_a_path_passes(stringify!($server), super::$server);
            }

            #[test]
            fn forwards_no_bypassing_request() {
                super::bypasses::forwards_no_bypassing_request(stringify!($server), super::$server);
            }

            #[test]
            fn drops_an_identity_header_that_it_does_not_copy() {
                super::copies_only_some(stringify!($server), super::$server);
            }
        })+
    };
}

servers! { nginx haproxy caddy traefik envoy apache }
