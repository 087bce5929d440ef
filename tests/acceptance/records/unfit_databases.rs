//! PostgreSQL that cannot keep a store: `check` and `serve` say so.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::support::{
    Call, Postgres, Proxy, Token, Upstream, free_port, has, program::Server, proxy::Builder, until,
};

fn on(api: &Upstream, url: &str) -> Builder {
    Proxy::in_front_of(api).config(&format!(
        "store.backend = 'postgres'\nstore.url = '{url}'\nnonce.scope = 'local'\ncache.negative_ttl = '0s'"
    ))
}

/// Both end with 1 and say this.
#[track_caller]
fn are_refused(builder: &Builder, words: &[&str]) {
    for ended in [builder.check(), builder.serve_fails()] {
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        has(&ended.stderr, words);
        assert!(!ended.stderr.contains("restore a backup"), "{ended:?}");
    }
}

/// A database with this encoding.
fn encoded(server: &Postgres, encoding: &str) -> String {
    let name = encoding.to_lowercase();
    server.sql(
        "postgres",
        &format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"),
    );
    server.url(&name)
}

/// Tokens that some encoding lacks; none is known.
const TOKENS: [&str; 5] = ["日本", "é", "\u{1f600}", "a\u{80}", "nul\0"];

#[test]
fn a_database_whose_encoding_lacks_characters_is_refused() {
    let (api, server) = (Upstream::start(), Postgres::start());
    for encoding in ["LATIN1", "WIN1252", "EUC_JP"] {
        let words = ["store.url", "has the encoding", encoding, "ENCODING 'UTF8'"];
        are_refused(&on(&api, &encoded(&server, encoding)), &words);
    }
    let proxy = on(&api, &encoded(&server, "SQL_ASCII")).start();
    let caller = proxy.somebody();
    proxy.passes(Call::get("/a").of(&caller));
    for token in TOKENS {
        let token = Token::new(token, "secret");
        proxy.rejects(
            Call::get("/a").by(&caller.consumer).with(&token),
            401,
            "token_rejected",
        );
    }
}

/// PgBouncer in front of a server, ended when this is dropped.
struct Pooler {
    _server: Server,
    port: u16,
    _directory: TempDir,
}

impl Pooler {
    fn start(server: &Postgres, settings: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let (port, to) = (free_port(), server.port());
        let at = |name: &str| directory.path().join(name).display().to_string();
        fs::write(at("users"), "\"postgres\" \"\"\n").unwrap();
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = trust\nauth_file = {}\nlogfile = {}\nunix_socket_dir =\n{settings}\n",
            at("users"),
            at("log")
        );
        fs::write(at("ini"), text).unwrap();
        // It runs as an account of its own where the test is root.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("pgbouncer");
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "postgres"]);
        }
        command.arg(at("ini")).stderr(Stdio::null());
        let server = Server::start(&mut command);
        until("the pooler listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            _server: server,
            port,
            _directory: directory,
        }
    }

    fn url(&self, url: &str) -> String {
        let database = url.split(['/', '?']).nth(3).unwrap();
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

#[test]
fn a_pooler_that_changes_the_session_is_refused() {
    let (api, server) = (Upstream::start(), Postgres::start());
    for settings in [
        "pool_mode = transaction",
        "pool_mode = transaction\ndefault_pool_size = 1",
        "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 2",
    ] {
        let pooler = Pooler::start(&server, settings);
        let builder = on(&api, &pooler.url(&server.database()));
        are_refused(&builder, &["store.url", "a pooler changes the session"]);
    }
    let pooler = Pooler::start(&server, "pool_mode = session");
    let proxy = on(&api, &pooler.url(&server.database())).start();
    let caller = proxy.somebody();
    proxy.passes(Call::get("/a").of(&caller));
}
