//! The days between the old check and ours, as docs/switch.md has them, under traffic: a Flask API that is its own provider by
//! oauthlib, with its records in a MariaDB. Each step is taken, taken back, and taken again.
//!
//! Promise (Permissions and identity): A running API moves from its own check to countersign without a lost call; each step can
//! be taken back.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use super::mariadb::{self, query};
use crate::support::{
    Call, Connection, Consumer, Proxy, Token, User, installed,
    legs::{query_value, token_of},
    program::Server,
    until,
};

/// Consumers, users and tokens as the API has them. The password of ada is "enchantress of numbers", by Werkzeug.
const TABLES: &str = "
CREATE DATABASE library; USE library;
CREATE TABLE clients (client_key VARCHAR(64) PRIMARY KEY, client_secret VARCHAR(64), name VARCHAR(80), callback VARCHAR(200), active BOOL);
CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40), password VARCHAR(200));
CREATE TABLE request_tokens (token VARCHAR(64) PRIMARY KEY, secret VARCHAR(64), client_key VARCHAR(64), callback VARCHAR(200), realms VARCHAR(80), verifier VARCHAR(64), user_id INT);
CREATE TABLE access_tokens (token VARCHAR(64) PRIMARY KEY, secret VARCHAR(64), client_key VARCHAR(64), user_id INT, realms VARCHAR(80));
CREATE TABLE nonces (client_key VARCHAR(64), timestamp BIGINT, nonce VARCHAR(64), PRIMARY KEY (client_key, timestamp, nonce));
INSERT INTO clients VALUES ('reader', 'secret of the reader', 'M\u{fc}nchner \"B\u{fc}cherei\"', 'https://reader.example/ready', TRUE);
INSERT INTO users VALUES (4711, 'ada', 'HASH');
INSERT INTO access_tokens VALUES ('old-token', 'old \\\\ secret', 'reader', 4711, 'books loans');
";

/// The callback of the consumer.
const CALLBACK: &str = "https://reader.example/ready";

/// What docs/migrating.md says to export.
const EXPORT: &str = "USE library;
SELECT JSON_OBJECT('kind', 'export', 'version', 1);
SELECT JSON_OBJECT('kind', 'consumer', 'key', client_key, 'secret', client_secret, 'name', name, 'callbacks', JSON_ARRAY(callback)) FROM clients WHERE active;
SELECT JSON_OBJECT('kind', 'user', 'id', CAST(id AS CHAR), 'name', name) FROM users;
SELECT JSON_OBJECT('kind', 'token', 'token', token, 'token_secret', secret, 'consumer', client_key, 'user', CAST(user_id AS CHAR),
                   'permissions', JSON_EXTRACT(CONCAT('[\"', REPLACE(realms, ' ', '\",\"'), '\"]'), '$')) FROM access_tokens;";

/// The steps, each with what it adds to the configuration.
const OBSERVE: &str = "signature.enforcement = 'observe'";
const ENFORCE: &str = "signature.enforcement = 'enforce'\nidentity.forward_authorization = true\nservice.flow = 'api'";
const FLOW_HERE: &str = "service.flow = 'here'";
const FLOW_THERE: &str = "service.flow = 'api'";
const WITHOUT_CREDENTIALS: &str = "identity.forward_authorization = false";
const WITH_CREDENTIALS: &str = "identity.forward_authorization = true";

/// The living API, with its provider and its database.
struct Library {
    directory: tempfile::TempDir,
    _database: Server,
    _api: Server,
    address: SocketAddr,
}

impl Library {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let database = mariadb::start(directory.path());
        let hash = "from werkzeug.security import generate_password_hash as h; print(h('enchantress of numbers'))";
        let python = installed(".tools/providers/bin/python");
        let hash = Command::new(&python).args(["-c", hash]).output().unwrap();
        let tables = TABLES.replace("HASH", String::from_utf8(hash.stdout).unwrap().trim());
        query(directory.path(), &tables).expect("the tables");
        std::fs::write(at("reads"), "oauth").unwrap();
        let mut api = Server::telling(
            Command::new(python)
                .arg("-u")
                .arg(installed("providers/python/legacy_api.py"))
                .args([at("sql"), at("reads")])
                .stderr(Stdio::null()),
        );
        let mut lines = BufReader::new(api.0.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| Some(line.ok()?.strip_prefix("LISTENING ")?.parse().unwrap()));
        let address = SocketAddr::from(([127, 0, 0, 1], port.expect("the API listens")));
        Self {
            directory,
            _database: database,
            _api: api,
            address,
        }
    }

    /// What the API reads from now on; a real one would be deployed again.
    fn reads(&self, credentials: &str) {
        let (new, file) = (
            self.directory.path().join("new"),
            self.directory.path().join("reads"),
        );
        std::fs::write(&new, credentials).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Exports and imports what the old provider has now.
    fn import_into(&self, proxy: &Proxy) {
        let rows = query(self.directory.path(), EXPORT).unwrap();
        proxy.command_with(&["import", "-"], &rows).done();
    }

    /// A user walks the three legs of the old provider, through `proxy`, up to the exchange.
    fn consent(&self, proxy: &Proxy, consumer: &Consumer) -> (Token, String) {
        let asks = Call::post("/oauth/request_token")
            .by(consumer)
            .realm("books")
            .parameter("oauth_callback", CALLBACK);
        let request_token = token_of(&proxy.send(asks));
        let form = format!(
            "oauth_token={}&name=ada&password=enchantress+of+numbers",
            request_token.token
        );
        let decided = proxy.send(Call::post("/oauth/authorize").form(&form));
        let verifier = query_value(
            decided
                .header("location")
                .unwrap_or_else(|| panic!("{decided:?}")),
            "oauth_verifier",
        );
        (request_token, verifier.unwrap())
    }

    /// A user gets a new access token of the old provider, through `proxy`.
    fn new_token(&self, proxy: &Proxy, consumer: &Consumer) -> Token {
        let (request_token, verifier) = self.consent(proxy, consumer);
        token_of(&proxy.send(exchange(consumer, &request_token, &verifier)))
    }
}

fn exchange(consumer: &Consumer, request_token: &Token, verifier: &str) -> Call {
    Call::post("/oauth/access_token")
        .by(consumer)
        .with(request_token)
        .parameter("oauth_verifier", verifier)
}

/// Calls of a consumer that never stop, each on a connection of its own.
#[derive(Default)]
struct Traffic {
    ends: AtomicBool,
    answered: AtomicUsize,
}

impl Traffic {
    fn flow(&self, to: SocketAddr, consumer: &Consumer, token: &Token) {
        while !self.ends.load(Ordering::Relaxed) {
            let call = Call::get("/books/Faust%20I?page=2")
                .by(consumer)
                .with(token);
            let host = to.to_string();
            let mut connection = Connection::to(to);
            connection.send(&call.wire(&format!("http://{host}"), &host));
            let answer = connection.answer("GET");
            assert_eq!(
                (answer.status, &*answer.text()),
                (200, "GET Faust I of 4711"),
                "{answer:?}"
            );
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until some calls began and ended after now.
    fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        until("calls go on", || {
            self.answered.load(Ordering::Relaxed) > before + 8
        });
    }
}

/// Ends the traffic.
struct Ends<'a>(&'a Traffic);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_living_api_is_moved_step_by_step_without_a_lost_call() {
    let library = Library::start();
    let consumer = Consumer::new("reader", "secret of the reader");
    let old = Token::new("old-token", "old \\ secret");
    let url = format!("http://{}", library.address);
    let permissions =
        "permission = [{ name = 'books', title = 'Books' }, { name = 'loans', title = 'Loans' }]";
    let mut proxy = Proxy::in_front_of_url(&url)
        .config(&format!("{permissions}\n{OBSERVE}"))
        .start();
    library.import_into(&proxy);
    let book = |token: &Token| Call::get("/books/1").by(&consumer).with(token);
    let (to, traffic) = (proxy.address(), Traffic::default());
    thread::scope(|scope| {
        // Also if the test fails.
        let _end = Ends(&traffic);
        let flows = [(); 2].map(|()| scope.spawn(|| traffic.flow(to, &consumer, &old)));
        let step = |proxy: &mut Proxy, configuration: &str| {
            proxy.reload(configuration);
            traffic.goes_on();
        };
        traffic.goes_on();

        // Observe: the old check and the old flow answer. A token since the import is the one thing that enforcing would reject.
        let new = library.new_token(&proxy, &consumer);
        assert_eq!(observed(&proxy), 0.0);
        proxy.send(book(&new)).has_status(200);
        assert_eq!(observed(&proxy), 1.0);
        library.import_into(&proxy);
        until("the imported token is known", || {
            let before = observed(&proxy);
            proxy.send(book(&new)).has_status(200);
            observed(&proxy) == before
        });
        let forged = Call::get("/books/1").header("X-Auth-User", "4711");
        let rejects_forged = |proxy: &Proxy| {
            let answer = proxy.send(forged.clone());
            answer.has_status(401);
            answer.text()
        };
        assert_eq!(rejects_forged(&proxy), "401 by the API");

        // Enforce, while the old check still answers; back, and again.
        step(&mut proxy, ENFORCE);
        step(&mut proxy, OBSERVE);
        step(&mut proxy, ENFORCE);
        assert_ne!(rejects_forged(&proxy), "401 by the API");
        let newer = library.new_token(&proxy, &consumer);
        proxy.rejects(book(&newer), 401, "token_rejected");
        library.import_into(&proxy);
        // A running process knows an imported record within a second.
        let is_known = |proxy: &Proxy, token: &Token| proxy.status(book(token)) == 200;
        until("the imported token is known", || is_known(&proxy, &newer));

        // The API reads both; back, and again.
        for reads in ["both", "oauth", "both"] {
            library.reads(reads);
            traffic.goes_on();
        }
        rejects_forged(&proxy);

        // The flow is here; back, and again. A user in the middle of the old flow has to begin again.
        let (request_token, verifier) = library.consent(&proxy, &consumer);
        step(&mut proxy, FLOW_HERE);
        proxy.rejects(
            exchange(&consumer, &request_token, &verifier),
            401,
            "token_rejected",
        );
        library.import_into(&proxy);
        let name = "user passwd ada --password-stdin --permanent";
        proxy
            .command_with(
                &name.split(' ').collect::<Vec<_>>(),
                "enchantress of numbers\n",
            )
            .done();
        let ada = User::new("ada", "enchantress of numbers");
        let ours = |proxy: &Proxy| {
            let request_token = proxy.request_token(&consumer, CALLBACK);
            let verifier = proxy.verifier(&request_token, &ada);
            token_of(&proxy.send(exchange(&consumer, &request_token, &verifier)))
        };
        let first = ours(&proxy);
        proxy.send(book(&first)).has_status(200);
        step(&mut proxy, FLOW_THERE);
        proxy.send(book(&first)).has_status(200);
        let last = library.new_token(&proxy, &consumer);
        step(&mut proxy, FLOW_HERE);
        library.import_into(&proxy);
        until("the imported token is known", || is_known(&proxy, &last));

        // Credentials are no longer forwarded, and the API reads the header alone; back, and again.
        for (configuration, reads) in [
            (WITHOUT_CREDENTIALS, "header"),
            (WITH_CREDENTIALS, "both"),
            (WITHOUT_CREDENTIALS, "header"),
        ] {
            if reads == "both" {
                library.reads(reads);
            }
            step(&mut proxy, configuration);
            library.reads(reads);
            traffic.goes_on();
        }
        for token in [&old, &new, &newer, &last, &first, &ours(&proxy)] {
            proxy.send(book(token)).has_status(200);
        }
        rejects_forged(&proxy);
        assert!(proxy.logged(&["verdict=\"forwarded\"", "consumer=reader"]) > 0);
        traffic.ends.store(true, Ordering::Relaxed);
        for flow in flows {
            flow.join().expect("every call was answered by the API");
        }
    });
}

/// The calls that enforcing would have rejected.
fn observed(proxy: &Proxy) -> f64 {
    let metrics = proxy.ask_admin("/metrics").text();
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("countersign_observed_total{"));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
