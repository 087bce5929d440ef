//! PostgreSQL, its secrets plain and sealed, and the behaviour of a server: it encrypts, reports changes, fails.
//!
//! Promise (Replay): A database role without rights on the schema `countersign` cannot stop writers or replace its objects.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use countersign::records::{
    nonce::{Insertion, OnLost},
    store::{Backend as Engine, Store, StoreParams, open_store, postgres::PostgresUrl},
    values::{
        OpenProblem, Opening, StoreError, StoreOpenError,
        record::{OutsideUser, Session},
        seal::SealKey,
        use_cases::{Added, Admitted, VerifiedPassword},
    },
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::{
    store_contract::{
        records::{MOST_SESSIONS, NOW, access_token, consumer, id, populate, session},
        shared_nonces::{Replica, today},
        suite::Backend,
    },
    support::{
        postgres::{Identity, Postgres as Server},
        silent::Silent,
    },
};

mod plain {
    contract!(crate::store_contract::postgres::Postgres<false>);
}

mod sealed {
    contract!(crate::store_contract::postgres::Postgres<true>);
}

/// A database of the shared server.
pub(crate) struct Postgres<const SEALED: bool> {
    server: Arc<Server>,
    url: String,
}

impl<const SEALED: bool> Postgres<SEALED> {
    /// Runs a statement; returns a line for each row.
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.server.sql(database_of(&self.url), statement)
    }
}

impl<const SEALED: bool> Backend for Postgres<SEALED> {
    async fn fresh() -> Self {
        let server = Server::shared();
        let url = server.database();
        Self { server, url }
    }

    fn engine(&self) -> Engine {
        Engine::Postgres(Box::new(PostgresUrl::parse(&self.url).unwrap()))
    }

    async fn open(&self) -> Arc<Store> {
        let key = SEALED.then(|| SealKey::new([7; 32]));
        // It waits longer than a store that serves: the suite tests answers, not time.
        open(&self.url, key, Opening::Command).unwrap()
    }
}

fn open(url: &str, key: Option<SealKey>, opening: Opening) -> Result<Arc<Store>, StoreOpenError> {
    open_store(StoreParams {
        backend: Engine::Postgres(Box::new(PostgresUrl::parse(url).unwrap())),
        keys: key.into_iter().collect(),
        opening,
        external: None,
    })
}

/// Opens a store; retries while the server takes too long, as on a busy machine.
pub(crate) fn serve(url: &str) -> Arc<Store> {
    let begun = Instant::now();
    loop {
        match open(url, None, Opening::Serve) {
            Ok(store) => return store,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
    }
}

pub(crate) fn database_of(url: &str) -> &str {
    let path = url.split_once("/test").unwrap().1;
    let name = path.split_once('?').unwrap().0;
    let start = url.find(&format!("test{name}?")).unwrap();
    &url[start..start + 4 + name.len()]
}

/// The longest that a store may take to notice what a test did.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until the store answers.
async fn until_it_answers(store: &Store) {
    let begun = Instant::now();
    while store.ping().await.is_err() {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every use case fails; returns the time of the slowest.
async fn is_unavailable(store: &Store) -> Duration {
    let token = access_token("new", "c", "u");
    let key = id("c");
    let mut slowest = Duration::ZERO;
    for attempt in 0..3 {
        let begun = Instant::now();
        let (read, written) = tokio::join!(
            store.consumer(&key),
            store.issue_access_token(token.clone())
        );
        assert!(
            matches!(read, Err(StoreError::Unavailable(_))),
            "{attempt}: {read:?}"
        );
        assert!(
            matches!(written, Err(StoreError::Unavailable(_))),
            "{attempt}: {written:?}"
        );
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

/// The server goes away, which is reported within a second, and returns, which is noticed within two: once at least,
/// because a busy machine may take longer.
async fn goes_and_returns(store: &Store, go: impl Fn(), come_back: impl Fn()) {
    let begun = Instant::now();
    loop {
        go();
        let told = is_unavailable(store).await;
        come_back();
        let back = Instant::now();
        until_it_answers(store).await;
        let noticed = back.elapsed();
        if told < Duration::from_secs(1) && noticed < Duration::from_secs(2) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{told:?} {noticed:?}");
    }
}

#[tokio::test]
async fn stopped_server_is_unavailable_and_recovers_in_two_seconds() {
    let server = Server::start();
    let store = serve(&server.database());
    populate(&store).await;
    for _ in 0..2 {
        goes_and_returns(&store, || server.stop(), || server.start_again()).await;
    }
    let issued = store
        .issue_access_token(access_token("new", "c", "u"))
        .await;
    assert_eq!(issued.unwrap(), Added::Added);
}

#[tokio::test]
async fn hung_server_is_unavailable_and_recovers_in_two_seconds() {
    let server = Server::start();
    let store = serve(&server.database());
    populate(&store).await;
    goes_and_returns(&store, || server.hang(), || server.go_on()).await;
    // A change under way when the server hung was either made or not, and can be requested again.
    let issued = store
        .issue_access_token(access_token("new", "c", "u"))
        .await;
    assert!(issued.is_ok(), "{issued:?}");
    let key = id("c");
    assert_eq!(store.consumer(&key).await.unwrap(), Some(consumer("c")));
}

#[tokio::test]
async fn a_first_host_that_is_gone_leaves_time_for_the_next() {
    let server = Server::shared();
    let (url, port) = (server.database(), server.port());
    let database = database_of(&url);
    let _silent = Silent::at(([127, 0, 0, 2], port).into());
    let hosts = format!("127.0.0.2:{port},127.0.0.1:{port}");
    let url = format!("postgres://postgres@{hosts}/{database}");
    serve(&url).ping().await.unwrap();
}

#[tokio::test]
async fn hung_transaction_elsewhere_delays_and_does_not_stop_others() {
    let server = Server::shared();
    let url = server.database();
    let store = serve(&url);
    populate(&store).await;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let issue = || store.issue_access_token(access_token("new", "c", "u"));
    // As a process does that is stopped in the middle of a use case.
    let hang = "BEGIN; LOCK TABLE countersign.writers IN EXCLUSIVE MODE";
    let begun = Instant::now();
    loop {
        client.batch_execute(hang).await.unwrap();
        assert!(matches!(issue().await, Err(StoreError::Unavailable(_))));
        // Reads continue, so this is not an outage: once at least, because on a busy machine the server may be slow
        // too.
        let is_served = store.ping().await.is_ok();
        client.batch_execute("ROLLBACK").await.unwrap();
        if is_served {
            break;
        }
        assert!(begun.elapsed() < PATIENCE);
        until_it_answers(&store).await;
    }
    // The server ends a transaction that hangs for longer.
    let limited = format!("SET idle_in_transaction_session_timeout = 2000; {hang}");
    client.batch_execute(&limited).await.unwrap();
    while issue().await.is_err() {
        assert!(begun.elapsed() < 2 * PATIENCE);
    }
}

#[tokio::test]
async fn role_that_may_only_connect_blocks_no_writer_and_no_name() {
    let server = Server::shared();
    let url = server.database();
    let store = serve(&url);
    let database = database_of(&url);
    // Operators and tables that would be found first in a session that looks for names there.
    server.sql(
        database,
        &format!(
            "CREATE ROLE guest_{database} LOGIN;
             CREATE FUNCTION same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = same);
             CREATE TABLE public.consumers (key text);
             ALTER DATABASE {database} SET search_path = public, pg_catalog"
        ),
    );
    let guest = url.replace("postgres@", &format!("guest_{database}@"));
    let (client, connection) = tokio_postgres::connect(&guest, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    for lock in [
        "SELECT pg_advisory_lock(1131697006)",
        "SELECT pg_advisory_lock(hashtext('countersign.nonces'))",
    ] {
        client.batch_execute(lock).await.unwrap();
    }
    for lock in ["writers", "nonce_state", "consumers"] {
        let lock = format!("LOCK TABLE countersign.{lock} IN ACCESS SHARE MODE");
        let denied = client.batch_execute(&lock).await.unwrap_err();
        assert!(denied.code().is_some(), "{denied}");
    }
    populate(&store).await;
    let other = serve(&url);
    assert_eq!(other.consumer(&id("c")).await.unwrap(), Some(consumer("c")));
    assert_eq!(other.consumer(&id("nobody")).await.unwrap(), None);
    // A nonce needs a partition, which is made under a lock.
    let replica = Replica::on(&url, OnLost::Refuse);
    let now = today();
    assert_eq!(replica.inserted(now, now, "n").await, Insertion::Fresh);
}

#[tokio::test]
async fn processes_that_start_at_once_make_one_store() {
    let server = Server::shared();
    for has_schema in [false, true] {
        let url = server.database();
        if has_schema {
            server.sql(database_of(&url), "CREATE SCHEMA countersign");
        }
        let starts = (0..6).map(|_| {
            let url = url.clone();
            tokio::task::spawn_blocking(move || serve(&url))
        });
        let starts: Vec<_> = starts.collect();
        let mut stores = Vec::new();
        for start in starts {
            stores.push(start.await.unwrap());
        }
        populate(&stores[0]).await;
        for store in stores {
            assert_eq!(store.consumer(&id("c")).await.unwrap(), Some(consumer("c")));
        }
    }
}

#[tokio::test]
async fn a_login_that_changes_no_record_waits_for_no_other_writer() {
    let server = Server::shared();
    let url = server.database();
    let store = serve(&url);
    populate(&store).await;
    let ada = OutsideUser {
        id: id("ada"),
        name: None,
        display_name: None,
    };
    store.admit_user(ada.clone(), NOW).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    // As a process does that issues a token.
    let lock = "BEGIN; LOCK TABLE countersign.writers IN ROW SHARE MODE";
    client.batch_execute(lock).await.unwrap();
    let admitted = store.admit_user(ada.clone(), NOW).await.unwrap();
    assert!(matches!(admitted, Admitted::User(_)));
    let session = Session {
        user: ada.id.clone(),
        ..session(1, "u")
    };
    let opened = store.open_session(session, VerifiedPassword::default(), MOST_SESSIONS);
    assert!(opened.await.unwrap());
    let renamed = OutsideUser {
        name: Some("Ada".to_owned()),
        ..ada
    };
    assert!(
        store.admit_user(renamed, NOW).await.is_err(),
        "a change waits"
    );
}

#[tokio::test]
async fn reports_a_change_to_other_processes() {
    let server = Server::shared();
    let url = server.database();
    let (here, there) = (serve(&url), serve(&url));
    populate(&here).await;
    let begun = Instant::now();
    for number in 0.. {
        let position = there.changes_since(0).await.unwrap().position;
        here.issue_access_token(access_token(&format!("a{number}"), "c", "u"))
            .await
            .unwrap();
        let issued = Instant::now();
        let is_told = async {
            loop {
                // The first reports are about the changes above.
                there.notified().await;
                let changes = there.changes_since(position).await.unwrap();
                if !changes.changes.is_empty() {
                    return changes.changes.len();
                }
            }
        };
        assert_eq!(tokio::time::timeout(PATIENCE, is_told).await, Ok(1));
        // Once at least: a busy machine may take longer.
        if issued.elapsed() < Duration::from_secs(1) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[tokio::test]
async fn reports_that_something_may_have_changed_after_an_outage() {
    let server = Server::start();
    let store = serve(&server.database());
    while tokio::time::timeout(Duration::from_millis(500), store.notified())
        .await
        .is_ok()
    {}
    server.stop();
    is_unavailable(&store).await;
    server.start_again();
    tokio::time::timeout(PATIENCE, store.notified())
        .await
        .unwrap();
}

#[test]
fn a_server_that_has_no_tls_gets_neither_name_nor_password() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        // The request for TLS (PostgreSQL, message formats, SSLRequest).
        let mut request = [0; 8];
        connection.read_exact(&mut request).unwrap();
        assert_eq!(request, *b"\0\0\0\x08\x04\xd2\x16\x2f");
        connection.write_all(b"N").unwrap();
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest);
        rest
    });
    let url = format!("postgres://name:hunter2@localhost:{port}/c?sslmode=require");
    let error = open(&url, None, Opening::Check).err().unwrap();
    assert!(
        matches!(error.problem, OpenProblem::Unreachable(_)),
        "{error:?}"
    );
    assert_eq!(server.join().unwrap(), b"");
}

#[tokio::test]
async fn changes_nothing_in_a_newer_schema() {
    let server = Server::shared();
    let url = server.database();
    drop(serve(&url));
    let database = database_of(&url);
    server.sql(
        database,
        "UPDATE countersign.meta SET version = 99; DROP TABLE countersign.sessions",
    );
    for opening in [Opening::Serve, Opening::Command, Opening::Check] {
        let error = open(&url, Some(SealKey::new([7; 32])), opening)
            .err()
            .unwrap();
        let OpenProblem::NewerSchema { found: 99, .. } = error.problem else {
            panic!("{error:?}");
        };
    }
    let left = "SELECT version, to_regclass('countersign.sessions') IS NULL
        FROM countersign.meta";
    assert_eq!(server.sql(database, left), "99|t");
}

#[tokio::test]
async fn changes_nothing_in_the_store_of_an_unreleased_build() {
    let server = Server::shared();
    let url = server.database();
    drop(serve(&url));
    let database = database_of(&url);
    server.sql(
        database,
        "ALTER TABLE countersign.high_water_marks RENAME TO marks",
    );
    for opening in [Opening::Serve, Opening::Command, Opening::Check] {
        let error = open(&url, None, opening).err().unwrap();
        let OpenProblem::Unreleased = error.problem else {
            panic!("{error:?}");
        };
    }
    let tables = "SELECT to_regclass('countersign.high_water_marks') IS NULL";
    assert_eq!(server.sql(database, tables), "t");
}

#[tokio::test]
async fn only_serve_migrates_and_check_makes_nothing() {
    let server = Server::shared();
    let url = server.database();
    let database = database_of(&url);
    for opening in [Opening::Check, Opening::Existing] {
        let error = open(&url, None, opening).err().unwrap();
        assert!(matches!(error.problem, OpenProblem::Missing));
    }
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'countersign'";
    assert_eq!(server.sql(database, schemas), "0");
    // A command makes an empty store, as the first one that is typed.
    let store = open(&url, None, Opening::Command).unwrap();
    populate(&store).await;
    assert_eq!(server.sql(database, schemas), "1");
}

#[tokio::test]
async fn tables_that_cannot_be_made_leave_nothing() {
    let server = Server::shared();
    let url = server.database();
    let database = database_of(&url);
    drop(serve(&url));
    server.sql(
        database,
        "DO $$ DECLARE name text; BEGIN
             FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' AND tablename <> 'sessions' LOOP
                 EXECUTE format('DROP TABLE IF EXISTS countersign.%I CASCADE', name);
             END LOOP;
         END $$",
    );
    assert!(open(&url, None, Opening::Serve).is_err());
    let left = "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'countersign'";
    assert_eq!(server.sql(database, left), "sessions");
}

#[tokio::test]
async fn a_sealed_store_opens_with_its_key_only() {
    let key = |byte| Some(SealKey::new([byte; 32]));
    let server = Server::shared();
    let url = server.database();
    let store = open(&url, key(7), Opening::Serve).unwrap();
    populate(&store).await;
    let token = access_token("a", "c", "u");
    store.issue_access_token(token).await.unwrap();
    let plain = "SELECT count(*) FROM countersign.access_tokens WHERE get_byte(secret, 0) = 0";
    assert_eq!(server.sql(database_of(&url), plain), "0");
    let problem = |key| open(&url, key, Opening::Serve).err().unwrap().problem;
    assert!(matches!(problem(None), OpenProblem::KeyMissing));
    assert!(matches!(problem(key(8)), OpenProblem::WrongKey));
}

#[tokio::test]
async fn names_the_settings_that_lose_data() {
    let server = Server::start_with(&["synchronous_commit = off"], None);
    let store = serve(&server.database());
    let findings = store.findings().await.unwrap();
    let names: Vec<_> = findings
        .iter()
        .map(|finding| finding.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["fsync", "synchronous_commit"]);
}

#[tokio::test]
async fn encrypts_and_checks_the_certificate_and_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let authority = authority();
    let server_key = KeyPair::generate().unwrap();
    let served = CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .signed_by(&server_key, &authority)
        .unwrap();
    let server = Server::start_with(
        &[],
        Some(&Identity {
            certificate: &served.pem(),
            key: &server_key.serialize_pem(),
        }),
    );
    server.database();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).unwrap();
    let other_ca = directory.path().join("other.pem");
    std::fs::write(&other_ca, self::authority().pem()).unwrap();
    let url = |host: &str, ca: &std::path::Path| {
        format!(
            "postgres://postgres@{host}:{}/test0?sslmode=verify-full&sslrootcert={}",
            server.port(),
            ca.display()
        )
    };
    let store = serve(&url("localhost", &ca));
    populate(&store).await;
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl
        JOIN pg_stat_activity USING (pid) WHERE application_name = 'countersign'";
    assert_eq!(server.sql("test0", encrypted), "t");
    let plain = format!("postgres://postgres@localhost:{}/test0", server.port());
    for refused in [url("127.0.0.1", &ca), url("localhost", &other_ca), plain] {
        let error = open(&refused, None, Opening::Serve).err().unwrap();
        assert!(
            matches!(error.problem, OpenProblem::Unreachable(_)),
            "{refused}: {error:?}"
        );
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}
