//! The endpoints of `deploy/lookup`, on a MariaDB with the tables of a Flask provider, of Magento 2 and of django-piston.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::Command,
};

use super::mariadb::{self, query};
use crate::support::{
    Call, Consumer, Proxy, Token, Upstream, application::looked_up_at, free_port, has, installed,
    program::Server, until,
};

/// The secret of the lookup, and the key by which Magento encrypts.
const SECRET: &str = "secret-of-the-lookup";
const MAGENTO_KEY: &str = "0123456789abcdef0123456789abcdef";

const LIBRARY: &str = "CREATE DATABASE library; USE library;
CREATE TABLE clients (client_key VARCHAR(64) PRIMARY KEY, client_secret VARCHAR(64), name VARCHAR(80), callback VARCHAR(200), active BOOL);
CREATE TABLE access_tokens (token VARCHAR(64) PRIMARY KEY, secret VARCHAR(64), client_key VARCHAR(64), user_id INT, realms VARCHAR(80),
    revoked_at DATETIME NULL);
INSERT INTO clients VALUES ('reader', 'the secret', 'M\u{fc}nchner \"B\u{fc}cherei\"', 'https://reader.example/ready', TRUE);
INSERT INTO access_tokens VALUES ('living', 'token secret', 'reader', 4711, 'read write', NULL);";

const MAGENTO: &str = "CREATE DATABASE magento; USE magento;
CREATE TABLE oauth_consumer (entity_id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP NULL,
  name VARCHAR(255), `key` VARCHAR(32) UNIQUE, secret VARCHAR(128) UNIQUE, callback_url TEXT, rejected_callback_url TEXT);
CREATE TABLE oauth_token (entity_id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, consumer_id INT UNSIGNED, admin_id INT UNSIGNED, customer_id INT UNSIGNED,
  type VARCHAR(16), token VARCHAR(32) UNIQUE, secret VARCHAR(128), verifier VARCHAR(32), callback_url TEXT, revoked SMALLINT UNSIGNED DEFAULT 0,
  authorized SMALLINT UNSIGNED DEFAULT 0, user_type INT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
INSERT INTO oauth_consumer (name, `key`, secret) VALUES ('Reader', 'reader', 'CONSUMER');
INSERT INTO oauth_token (consumer_id, customer_id, type, token, secret, authorized) VALUES (1, 4711, 'access', 'living', 'TOKEN', 1);";

const PISTON: &str = "CREATE DATABASE piston; USE piston;
CREATE TABLE piston_consumer (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(255), description LONGTEXT, `key` VARCHAR(18), secret VARCHAR(32),
  status VARCHAR(16), user_id INT);
CREATE TABLE piston_token (id INT AUTO_INCREMENT PRIMARY KEY, `key` VARCHAR(18), secret VARCHAR(32), verifier VARCHAR(10), token_type INT, timestamp INT,
  is_approved BOOL, user_id INT, consumer_id INT, callback VARCHAR(255), callback_confirmed BOOL);
INSERT INTO piston_consumer (name, `key`, secret, status) VALUES ('Reader', 'reader', 'the secret', 'accepted');
INSERT INTO piston_token (`key`, secret, token_type, is_approved, user_id, consumer_id) VALUES ('living', 'token secret', 2, TRUE, 4711, 1);";

/// What Magento encrypts, as its SodiumChachaIetf does.
fn encrypted(text: &str) -> String {
    let encrypt = format!(
        "$n = random_bytes(12); echo '0:3:', base64_encode($n . sodium_crypto_aead_chacha20poly1305_ietf_encrypt('{text}', $n, $n, '{MAGENTO_KEY}'));"
    );
    let output = Command::new("php").args(["-r", &encrypt]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Starts an endpoint; returns its port.
fn started(kind: &str, file: &Path, directory: &Path) -> (Server, u16) {
    let (socket, secret) = (directory.join("sql"), directory.join("lookup.secret"));
    std::fs::write(&secret, SECRET).unwrap();
    let mut command = match kind {
        "php" => Command::new("php"),
        _ => Command::new(installed(".tools/providers/bin/python")),
    };
    command
        .env("LOOKUP_SECRET", &secret)
        .env("DB_SOCKET", &socket)
        .env("MAGENTO_KEY", MAGENTO_KEY)
        .stderr(std::fs::File::create(directory.join("endpoint.log")).unwrap());
    if kind == "php" {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let server = Server::start(command.args(["-S", &listen]).arg(file));
        until("PHP listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        return (server, port);
    }
    let mut server = Server::telling(
        command
            .arg("-u")
            .arg(installed("providers/python/serve_lookup.py"))
            .args([Path::new(kind), file, &socket]),
    );
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| line.ok()?.strip_prefix("LISTENING ")?.parse().ok());
    let log = || std::fs::read_to_string(directory.join("endpoint.log"));
    (server, port.unwrap_or_else(|| panic!("{:?}", log())))
}

#[test]
fn endpoints_to_copy_serve_tokens_of_real_products() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let _database = mariadb::start(directory);
    let magento = MAGENTO
        .replace("CONSUMER", &encrypted("the secret"))
        .replace("TOKEN", &encrypted("token secret"));
    for tables in [LIBRARY, &magento, PISTON] {
        query(directory, tables).expect("the tables");
    }
    for (kind, file, ends) in [
        (
            "flask",
            "lookup_flask.py",
            "DELETE FROM library.access_tokens",
        ),
        (
            "php",
            "lookup.php",
            "UPDATE magento.oauth_token SET revoked = 1",
        ),
        (
            "django",
            "lookup_django.py",
            "UPDATE piston.piston_token SET is_approved = FALSE",
        ),
    ] {
        let file = installed(&format!("../deploy/lookup/{file}"));
        let (_endpoint, port) = started(kind, &file, directory);
        let api = Upstream::start();
        let url = format!("http://127.0.0.1:{port}/internal/oauth");
        let builder =
            Proxy::in_front_of(&api).config("cache.ttl = '1s'\nstore.lookup.timeout = '10s'");
        let proxy = looked_up_at(&url, builder).start();
        let checked = proxy.run("check");
        has(&checked.stdout, &[&format!("{url} answers")]);
        assert!(
            !checked.stderr.contains("wrong secret"),
            "{kind}: {checked:?}"
        );
        let call = |key: &str, token: &str, secret: &str| {
            let consumer = Consumer::new(key, "the secret");
            proxy.send(
                Call::get("/a")
                    .by(&consumer)
                    .with(&Token::new(token, secret)),
            )
        };
        let answer = call("reader", "living", "token secret");
        assert_eq!(answer.status, 200, "{kind}: {answer:?}");
        let seen = api.last_request();
        let facts =
            ["X-Auth-User", "X-Auth-Permissions", "X-Auth-Consumer"].map(|name| seen.header(name));
        assert_eq!(
            facts,
            [Some("4711"), Some("read"), Some("reader")],
            "{kind}"
        );
        call("reader", "living", "another").is(401, "signature_invalid");
        call("reader", "unknown", "token secret").is(401, "token_rejected");
        call("unknown", "living", "token secret").is(401, "consumer_key_unknown");
        // MariaDB finds these too.
        for (key, token) in [
            ("READER", "living"),
            ("reader", "LIVING"),
            ("reader", "living "),
        ] {
            assert_eq!(
                call(key, token, "token secret").status,
                401,
                "{kind} {key} {token}"
            );
        }
        query(directory, ends).unwrap();
        until("the revocation is in effect", || {
            call("reader", "living", "token secret").status == 401
        });
        assert_eq!(proxy.logged(&["status=503"]), 0, "{kind}");
    }
}
