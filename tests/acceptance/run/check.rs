//! `check` and `serve` agree: both refuse the same configurations, and an unsafe one is never called valid.
//!
//! Promise (Storage and operation): `check` rejects what `serve` rejects, such as an unfit PostgreSQL; a failed start leaves no
//! files. Also in `tests/acceptance/records/unfit_databases.rs`, `tests/acceptance/run/bad_configuration.rs`.

use std::{
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::support::{
    Postgres, Proxy, RedisServer, Upstream, free_port, has,
    program::{Ended, program, run},
    proxy::Builder,
    rows,
    tls::Certificate,
    until,
    upstream::refusing_address,
};

/// The line of `serve` or `check` that names the key. `check` has marks at its beginning.
#[track_caller]
fn line_of(ended: &Ended, prefix: &str, key: &str) -> String {
    let mark = match prefix {
        "warning: " => "! ",
        _ => "✗ ",
    };
    let begins = |line: &str| line.starts_with(prefix) || line.starts_with(mark);
    let lines = ended.stderr.lines();
    let mut lines = lines.filter(|line| begins(line) && line.contains(key));
    let found = lines.next();
    found
        .unwrap_or_else(|| panic!("{prefix} {key}: {ended:?}"))
        .to_owned()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn write(path: &Path, content: impl AsRef<[u8]>, mode: u32) {
    std::fs::write(path, content).unwrap();
    set_mode(path, mode);
}

#[test]
fn check_and_serve_reject_an_api_that_is_our_own_listener() {
    let (port, other) = (free_port(), free_port());
    let base = "service.base_url = 'https://api.test'\nlisten.trusted_proxies = ['10.0.0.0/8']\n";
    for (listeners, api, key) in [
        (
            format!("listen.address = '127.0.0.1:{port}'"),
            vec![
                format!("http://127.0.0.1:{port}"),
                format!("http://127.0.0.1:{port}/v1"),
                format!("https://127.0.0.1:{port}"),
                format!("http://localhost:{port}"),
                format!("http://LOCALHOST:{port}"),
                format!("http://0.0.0.0:{port}"),
                format!("http://[::ffff:127.0.0.1]:{port}"),
            ],
            "listen.address",
        ),
        (
            format!("{base}listen.address = ['127.0.0.1:0', '0.0.0.0:{port}']"),
            vec![
                format!("http://127.0.0.1:{port}"),
                format!("http://127.8.9.1:{port}"),
                format!("http://localhost:{port}"),
            ],
            "listen.address",
        ),
        (
            format!("{base}listen.address = '[::]:{port}'"),
            vec![
                format!("http://127.0.0.1:{port}"),
                format!("http://[::1]:{port}"),
                format!("http://[::]:{port}"),
            ],
            "listen.address",
        ),
        (
            format!("admin.listen = '127.0.0.1:{port}'"),
            vec![
                format!("http://127.0.0.1:{port}"),
                format!("http://localhost:{port}"),
            ],
            "admin.listen",
        ),
        (
            format!("admin.probe_listen = '0.0.0.0:{port}'\nadmin.listen = '127.0.0.1:{other}'"),
            vec![format!("http://127.0.0.1:{port}")],
            "admin.probe_listen",
        ),
        (
            "admin.listen = 'unix:DIR/admin.sock'".to_owned(),
            vec![
                "unix:DIR/admin.sock".to_owned(),
                "unix:DIR/x/../admin.sock".to_owned(),
            ],
            "admin.listen",
        ),
        (
            "admin.probe_listen = 'unix:DIR/probe.sock'".to_owned(),
            vec!["unix:DIR/link/probe.sock".to_owned()],
            "admin.probe_listen",
        ),
    ] {
        for url in api {
            let mut builder = Builder::in_front_of_url(&url);
            let directory = builder.directory().to_owned();
            let here = |text: &str| text.replace("DIR", &directory.display().to_string());
            builder.set("upstream.api_url", here(&url).into());
            let builder = builder.config(&here(&listeners));
            std::fs::create_dir(directory.join("x")).unwrap();
            std::os::unix::fs::symlink(&directory, directory.join("link")).unwrap();
            let checked = builder.check();
            assert_eq!(checked.code(), Some(2), "{listeners} {url}: {checked:?}");
            let line = line_of(&checked, "countersign: ", "upstream.api_url");
            assert!(line.contains(key) && line.contains("config.toml"), "{line}");
            let served = builder.serve_fails();
            assert_eq!(served.code(), Some(2), "{listeners} {url}: {served:?}");
            let line = line_of(&served, "countersign: ", "upstream.api_url");
            assert!(line.contains(key) && line.contains("config.toml"), "{line}");
            let left: Vec<String> = files(&builder);
            assert_eq!(left, ["config.toml", "link", "x"], "{url}");
        }
    }
}

fn files(builder: &Builder) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(builder.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn an_api_beside_our_listeners_is_served() {
    let api = Upstream::start();
    let port = api.authority().rsplit_once(':').unwrap().1.to_owned();
    // The same port on another address of this machine is another listener.
    let builder = Proxy::in_front_of(&api).config(&format!("admin.listen = '127.0.0.9:{port}'"));
    builder.check().done();
    drop(builder.start());
    // A name that cannot be resolved now may be there later.
    let builder = Builder::in_front_of_url("http://no-such-host.invalid:8080")
        .config("upstream.connect_timeout = '200ms'");
    assert_eq!(builder.check().code(), Some(1));
    drop(builder.start());
}

#[test]
fn secret_files_others_can_open_are_an_invalid_configuration() {
    let api = Upstream::start();
    let certificate = Certificate::for_names(&["localhost"]);
    let builder = Proxy::in_front_of(&api);
    let at = |name: &str| -> PathBuf { builder.directory().join(name) };
    let (public, key, seal) = (at("certificate.pem"), at("key.pem"), at("store.key"));
    write(&public, &certificate.certificate, 0o644);
    write(&key, &certificate.key, 0o600);
    write(&seal, [7; 32], 0o600);
    let text = format!(
        "service.base_url = 'https://localhost'\nlisten.tls.certificate = '{}'\n\
         listen.tls.key = '{}'\nstore.encryption_key_file = '{}'",
        public.display(),
        key.display(),
        seal.display()
    );
    let builder = builder.config(&text);
    let good = builder.check().done();
    assert!(!good.stderr.contains("mode"), "{good:?}");
    drop(builder.run(&["consumer", "add", "--name", "x"], "").done());
    let store = builder.directory().join("countersign.db");
    for (path, named) in [
        (&key, "listen.tls.key"),
        (&seal, "store.encryption_key_file"),
        (&store, "store.url"),
    ] {
        for (mode, prefix, code) in [
            (0o644, "countersign: ", 1),
            (0o604, "countersign: ", 1),
            (0o602, "countersign: ", 1),
            (0o640, "warning: ", 0),
            (0o400, "", 0),
        ] {
            set_mode(path, mode);
            let ended = builder.check();
            assert_eq!(ended.code(), Some(code), "{named} {mode:o}: {ended:?}");
            if prefix.is_empty() {
                assert!(!ended.stderr.contains("mode 0"), "{ended:?}");
            } else {
                let line = line_of(&ended, prefix, named);
                for part in [
                    &path.display().to_string(),
                    &format!("mode 0{mode:o}"),
                    "chmod 600",
                ] {
                    assert!(line.contains(part), "{line}");
                }
            }
        }
        set_mode(path, 0o600);
    }
    set_mode(&key, 0o644);
    let proxy = builder.start();
    proxy.logs(&["ERROR", "listen.tls.key", "mode 0644"]);
}

#[test]
fn a_key_of_the_wrong_length_is_refused_before_there_is_a_store() {
    for (content, expected) in [(Some("k".repeat(31)), "32 bytes"), (None, "No such file")] {
        let api = Upstream::start();
        let builder = Proxy::in_front_of(&api).config("store.encryption_key_file = 'store.key'");
        if let Some(content) = content {
            write(&builder.directory().join("store.key"), content, 0o600);
        }
        for ended in [builder.check(), builder.serve_fails()] {
            assert_eq!(ended.code(), Some(2), "{ended:?}");
            let line = line_of(&ended, "countersign: ", "store.encryption_key_file");
            for part in ["store.key", expected] {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
    }
}

#[test]
fn check_and_serve_reject_a_base_url_with_the_origin_of_the_api() {
    for (base, api, refused) in [
        ("https://api.test", "https://api.test", true),
        ("https://api.test", "https://api.test:443/v1", true),
        ("https://API.test", "https://api.TEST", true),
        ("https://api.test", "https://api.test:8443", false),
        ("https://api.test", "https://login.test", false),
    ] {
        let builder = Builder::in_front_of_url(api).config(&format!(
            "service.base_url = '{base}'\nupstream.connect_timeout = '200ms'"
        ));
        let checked = builder.run(&["check"], "");
        assert_eq!(
            checked.code(),
            Some(if refused { 2 } else { 1 }),
            "{checked:?}"
        );
        let named = checked.stderr.contains("is service.base_url");
        assert_eq!(named, refused, "{checked:?}");
        if refused {
            let served = builder.serve_fails();
            assert_eq!(served.code(), Some(2), "{served:?}");
            assert!(served.stderr.contains("is service.base_url"), "{served:?}");
        }
    }
    let builder = Builder::in_front_of_url("http://127.0.0.1:1").config(
        "service.base_url = 'https://api.test'\nservice.public_api_urls = ['http://127.0.0.1:1']",
    );
    let line = line_of(&builder.check(), "warning: ", "service.public_api_urls");
    assert!(line.contains("upstream.api_url"), "{line}");
}

#[test]
fn check_and_serve_warn_of_https_without_a_tls_endpoint() {
    let api = Upstream::start();
    let base = "service.base_url = 'https://api.test'";
    let warns = |text: &str| {
        let builder = Proxy::in_front_of(&api).config(base).config(text);
        let ended = builder.check().done();
        let of = |line: &str| line.contains("service.base_url") && line.contains("listen.tls");
        ended.stderr.lines().any(of)
    };
    assert!(warns(""));
    assert!(!warns("listen.trusted_proxies = ['10.0.0.0/8']"));
    let proxy = Proxy::with(&api, base);
    proxy.logs(&["WARN", "service.base_url", "listen.tls"]);
}

/// Configurations that `serve` cannot run, each with the key that is named. `DIR` is the directory.
const BROKEN: &str = r"
    store.url = 'DIR/none/countersign.db' | store.url
    store.url = 'DIR' | store.url
    store.url = 'DIR/config.toml' | store.url
    store.url = 'DIR/config.toml/countersign.db' | store.url
    nonce.path = 'DIR/none/nonces' | nonce.path
    nonce.path = 'DIR' | nonce.path
    nonce.path = 'DIR/config.toml' | nonce.path
    nonce.path = 'DIR/x/../countersign.db' | nonce.path
    store.url = 'DIR/dangling' | store.url
    store.encryption_key_file = 'DIR/none' | store.encryption_key_file
    store.encryption_key_file = 'DIR' | store.encryption_key_file
    store.encryption_key_file = 'DIR/config.toml' | store.encryption_key_file
    listen.address = '192.0.2.1:8080'\nservice.base_url = 'https://api.test' | listen.address
    admin.listen = '192.0.2.1:8080' | admin.listen
    admin.probe_listen = '[2001:db8::1]:8080' | admin.probe_listen
    admin.listen = 'unix:DIR/none/admin.sock' | admin.listen
    admin.listen = 'unix:DIR/config.toml' | admin.listen
    admin.listen = 'unix:DIR/LONG.sock' | admin.listen
    listen.address = '0.0.0.0:PORT'\nadmin.listen = '127.0.0.1:PORT'\nservice.base_url = 'https://api.test' | admin.listen
    listen.address = ['127.0.0.1:PORT', '0.0.0.0:PORT']\nservice.base_url = 'https://api.test' | listen.address
    listen.address = ['[::]:PORT', '0.0.0.0:PORT']\nservice.base_url = 'https://api.test' | listen.address
    admin.listen = '127.0.0.1:PORT'\nadmin.probe_listen = '0.0.0.0:PORT' | admin.probe_listen
    admin.listen = 'unix:DIR/a'\nadmin.probe_listen = 'unix:DIR/a' | admin.probe_listen
    listen.tls.certificate = 'DIR/none'\nlisten.tls.key = 'DIR/none' | listen.tls
    listen.tls.certificate = 'DIR/config.toml'\nlisten.tls.key = 'DIR/config.toml' | listen.tls
    listen.tls.certificate = 'DIR/certificate.pem'\nlisten.tls.key = 'DIR/other.pem' | listen.tls.key
    listen.tls.certificate = 'DIR/certificate.pem'\nlisten.tls.key = 'DIR/key.pem'\nlisten.tls.client_ca = 'DIR/key.pem' | listen.tls.client_ca
    upstream.api_url = 'https://127.0.0.1:1'\nupstream.tls.ca = 'DIR/none' | upstream.tls.ca
    upstream.api_url = 'https://127.0.0.1:1'\nupstream.tls.certificate = 'DIR/certificate.pem'\nupstream.tls.key = 'DIR/other.pem' | upstream.tls.key
    operation = [{ path = '/{a}' }, { path = '/{b}' }] | operation
    operation = [{ path = '/a/{b}/c' }, { path = '/a/{*rest}' }, { path = '/a/{c}/c' }] | operation
    service.path = '/oauth/authorize' | service.path
";

#[test]
fn check_rejects_what_serve_rejects() {
    let api = Upstream::start();
    let (certificate, other) = (
        Certificate::for_names(&["localhost"]),
        Certificate::for_names(&["localhost"]),
    );
    for [text, key] in &rows(BROKEN) {
        let builder = Proxy::in_front_of(&api);
        let at = |name: &str| builder.directory().join(name);
        write(&at("certificate.pem"), &certificate.certificate, 0o644);
        write(&at("key.pem"), &certificate.key, 0o600);
        write(&at("other.pem"), &other.key, 0o600);
        std::fs::create_dir(at("x")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        let text = text
            .replace("DIR", &builder.directory().display().to_string())
            .replace("LONG", &"long".repeat(30))
            .replace("PORT", &refusing_address().port().to_string());
        let builder = builder.config(&text);
        let checked = builder.run(&["check"], "");
        let served = builder.serve_fails();
        assert_eq!(
            checked.code(),
            served.code(),
            "{text}: {checked:?} {served:?}"
        );
        assert!(matches!(served.code(), Some(1 | 2)), "{text}: {served:?}");
        for ended in [&checked, &served] {
            assert!(!ended.stdout.contains(": valid"), "{text}: {ended:?}");
            let lines = ended.stderr.lines();
            let told = lines.filter(|line| line.contains(key) && !line.starts_with("! "));
            assert!(told.count() >= 1, "{text}: {ended:?}");
        }
    }
}

#[test]
fn check_beside_a_running_serve_passes_and_changes_nothing() {
    let api = Upstream::start();
    let port = free_port();
    let builder = Proxy::in_front_of(&api).config(&format!("listen.address = '127.0.0.1:{port}'"));
    let ended = builder.check().done();
    assert!(ended.stdout.contains("serve makes it"), "{ended:?}");
    let mut lines = ended.stdout.lines();
    let keys = lines.find_map(|line| line.strip_prefix("✓ assertion keys"));
    assert_eq!(keys.map(str::trim), Some("none: nothing is signed"));
    assert_eq!(files(&builder), ["config.toml"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    drop(TcpListener::bind(("127.0.0.1", port)).unwrap());
    let proxy = builder.start();
    let ended = proxy.run("check");
    assert!(ended.stdout.contains("in use now"), "{ended:?}");
    until("serve goes on", || proxy.is_ready());
}

#[test]
fn check_and_serve_reject_more_workers_than_descriptors() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config("listen.workers = 100");
    builder.run(&["check"], "").done();
    for command in ["check", "serve"] {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "ulimit -n 80 && exec \"$0\" \"$@\""])
            .arg(program().get_program())
            .args([command, "--config"])
            .arg(builder.config_path())
            .current_dir(builder.directory());
        let ended = run(&mut shell, "");
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        line_of(&ended, "countersign: ", "listen.workers");
    }
}

#[test]
fn the_configuration_beside_the_compose_file_is_valid() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    let redis = RedisServer::with(&[&["--requirepass", "secret"]]);
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        let owners_alone = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, owners_alone).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let nonces = redis.url().replace("redis://", "redis://:secret@");
    let settings = [
        (
            "STORE__URL_FILE",
            place("store_url", postgres.database().as_bytes()),
        ),
        ("NONCE__URL_FILE", place("nonce_url", nonces.as_bytes())),
        (
            "STORE__ENCRYPTION_KEY_FILE",
            format!("'{}'", place("store_key", &[7; 32])),
        ),
        ("UPSTREAM__API_URL", format!("'{}'", api.url())),
    ];
    let mut command = program();
    command.args(["check", "--config"]);
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/deploy/countersign.toml"
    ));
    for (name, value) in settings {
        command.env(format!("COUNTERSIGN__{name}"), value);
    }
    let ended = run(&mut command, "").done();
    let all = [&*ended.stdout, &ended.stderr].concat();
    assert!(all.contains(": valid"), "{ended:?}");
}

#[test]
fn problems_come_last_and_the_last_line_counts_them() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api);
    // The directory of the test is one that a restart empties, and the store is not encrypted.
    let good = builder.check().done();
    assert!(good.stdout.lines().all(|line| line.starts_with("✓ ")));
    assert!(good.stderr.lines().all(|line| line.starts_with("! ")));
    let unwise = builder.config("service.base_url = 'https://api.test'");
    let ended = unwise.check().done();
    let last = ended.stderr.lines().last().unwrap();
    let warnings = ended.stderr.lines().filter(|line| line.starts_with("! "));
    let counted = match warnings.count() - 1 {
        1 => "1 warning".to_owned(),
        count => format!("{count} warnings"),
    };
    assert!(last.ends_with(&format!(": valid, {counted}")), "{ended:?}");
    let report = unwise.run(&["check", "--json"], "").done();
    assert_eq!(report.stderr, "");
    let report = report.json();
    assert_eq!(report["valid"], true);
    let warnings = report["warnings"].as_array().unwrap().len();
    assert!(counted.starts_with(&warnings.to_string()), "{report}");
    let address = refusing_address();
    let broken = Builder::in_front_of_url(&format!("http://{address}"));
    let ended = broken.check();
    assert_eq!(ended.code(), Some(1));
    has(&ended.stdout, &["✗ API            has an error\n"]);
    let last = ended.stderr.lines().last().unwrap();
    has(last, &["✗ ", ": 1 error and ", "before you start serve"]);
    let report = broken.run(&["check", "--json"], "");
    assert_eq!(
        (report.code(), &report.json()["valid"]),
        (Some(1), &false.into())
    );
    assert!(report.json()["findings"]["API"].is_null());
}

#[test]
fn database_password_in_a_file_others_can_read_is_a_warning() {
    let api = Upstream::start();
    let port = refusing_address().port();
    let mut builder = Proxy::in_front_of(&api).config("store.backend = 'postgres'");
    for (url, mode, warns) in [
        ("postgres://u:pa55word@127.0.0.1:PORT/d", 0o644, true),
        ("postgres://u:pa55word@127.0.0.1:PORT/d", 0o640, true),
        ("postgres://u:pa55word@127.0.0.1:PORT/d", 0o600, false),
        ("postgres://u@127.0.0.1:PORT/d", 0o644, false),
    ] {
        builder.set("store.url", url.replace("PORT", &port.to_string()).into());
        drop(builder.check());
        set_mode(&builder.config_path(), mode);
        // The file is not written again.
        let config = builder.config_path().display().to_string();
        let mut command = program();
        command.args(["check", "--config", &config]);
        let ended = run(&mut command, "");
        assert_eq!(
            ended.stderr.contains("can read its password"),
            warns,
            "{url} {mode:o}: {ended:?}"
        );
        assert!(!ended.stderr.contains("pa55word"), "{ended:?}");
        // An unreachable address is named with its port.
        has(
            &ended.stderr,
            &[&format!("127.0.0.1:{port}/d: cannot be reached")],
        );
    }
}

#[test]
fn check_and_serve_name_a_role_without_rights_and_its_grant() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    let url = postgres.database();
    let (_, rest) = url.split_once("@/").unwrap();
    let (database, _) = rest.split_once('?').unwrap();
    let as_role = |role: &str| url.replace("//postgres@", &format!("//{role}@"));
    postgres.sql(database, "CREATE ROLE \"poor-role\" LOGIN");
    let mut builder = Proxy::in_front_of(&api).config("store.backend = 'postgres'");
    builder.set("store.url", as_role("poor-role").into());
    let fails = |builder: &Builder, parts: &[&str]| {
        for ended in [builder.check(), builder.serve_fails()] {
            assert_eq!(ended.code(), Some(1), "{ended:?}");
            has(&ended.stderr, &["store.url", "poor-role"]);
            has(&ended.stderr, parts);
        }
    };
    let grant = format!("GRANT CREATE ON DATABASE {database} TO \"poor-role\"");
    fails(&builder, &[&grant]);
    postgres.sql(database, "CREATE SCHEMA countersign");
    let grant = "ALTER SCHEMA countersign OWNER TO \"poor-role\"";
    fails(&builder, &[grant]);
    // The statement is the fix.
    postgres.sql(database, grant);
    has(&builder.check().stdout, &["countersign serve makes it"]);
    drop(builder.run(&["consumer", "add", "--name", "x"], "").done());
    // Another role has made the store.
    postgres.sql(database, "CREATE ROLE other LOGIN");
    builder.set("store.url", as_role("other").into());
    let ended = builder.check();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    has(&ended.stderr, &["store.url", "which another role has made"]);
}

#[test]
fn check_does_not_say_that_shared_nonces_are_kept_in_memory() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    let mut builder = Proxy::in_front_of(&api).config("store.backend = 'postgres'");
    builder.set("store.url", postgres.database().into());
    let ended = builder.check();
    has(&ended.stdout, &["kept in the store, for all replicas"]);
    let port = refusing_address().port();
    builder.set("nonce.url", format!("redis://127.0.0.1:{port}").into());
    let ended = builder.check();
    let place = format!("127.0.0.1:{port}: cannot be reached");
    has(&ended.stderr, &["nonce.url", &place]);
    // A server without TLS waits for the rest of what it takes for a command.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    builder.set("nonce.url", format!("rediss://127.0.0.1:{port}").into());
    has(
        &builder.check().stderr,
        &["write redis:// if it has no TLS"],
    );
}
