//! Credentials that an existing system keeps in PostgreSQL, beside a store of any kind.
//!
//! Promise (Permissions and identity): Consumers and tokens of an existing system's tables verify by read-only queries, beside either
//! store. A consumer that was removed here stays removed, and a token that was revoked here stays revoked; nothing is changed in those
//! tables. A row with an empty secret, or for another spelling of the key, is not used. While their database is down, a cached one is
//! used at most for `cache.ttl` or `cache.stale_if_error`, whichever is longer, after it was read. What the queries run reaches no
//! record of countersign: the role of the look-up has no right there, which `check` and `serve` test, and its connections are used for
//! nothing else. Also in `tests/acceptance/records/postgres.rs`, `tests/acceptance/operator/admin_api.rs`.

use std::{path::PathBuf, sync::Arc};

use countersign::{
    base::{
        names::{ConsumerKey, NameEncoding},
        secret::Secret,
    },
    records::store::{
        Backend, Opening, Store, StoreError, StoreParams, open_store,
        port::Change,
        postgres::{Lookup, LookupError, LookupParams, PostgresUrl},
    },
};
use tempfile::TempDir;

use crate::{
    postgres::database_of,
    postgres_server::Postgres as Server,
    records::{
        NOW, access_token, ask, consumer, exported, id, populate, request_token, set_enabled, user,
    },
};

const CONSUMERS: &str =
    "SELECT client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled
    FROM clients WHERE client_key = $1";
const TOKENS: &str =
    "SELECT token, secret, client_key AS consumer, uid AS user_id, scopes AS permissions,
    expires AS expires_at, revoked FROM tokens WHERE token = $1";
const LEGACY: &str = "
    CREATE TABLE clients (
        client_key text, secret varchar, title text, scopes text[], active boolean);
    INSERT INTO clients VALUES
        ('shop', 's3cret', 'The Shop', '{read,write:all}', true),
        ('off', 's', NULL, NULL, false),
        ('null', NULL, 'n', '{}', true),
        ('empty', '', 'n', '{}', true),
        ('twice', 'a', 'n', '{}', true), ('twice', 'b', 'n', '{}', true),
        ('long', repeat('s', 70000), 'n', '{}', true),
        ('scope', 's', 'n', '{\"no name\"}', true);
    CREATE TABLE tokens (
        token text, secret text, client_key text, uid bigint, scopes text, expires timestamptz, revoked boolean);
    INSERT INTO tokens VALUES
        ('t', 'ts', 'shop', 4711, 'read  write:all', '2033-05-18 03:33:20+00', false),
        ('for-own', 'ts', 'c', 4711, '', NULL, false),
        ('revoked', 'ts', 'shop', 4711, NULL, NULL, true),
        ('other', 'ts', 'shop', 4712, '', NULL, false),
        ('name', 'ts', 'no name', 4711, '', NULL, false),
        ('empty', '', 'shop', 4711, '', NULL, false),
        ('null', 'ts', 'shop', 4711, '', NULL, NULL);
";

/// A database of another system, with a role that may read its tables and nothing else. The PostgreSQL store is in the same
/// database.
struct Legacy {
    server: Arc<Server>,
    url: String,
    reader: String,
    directory: TempDir,
}

impl Legacy {
    fn new() -> Self {
        Self::on(Server::shared())
    }

    fn on(server: Arc<Server>) -> Self {
        let url = server.database();
        let reader = format!("reader_{}", database_of(&url));
        let legacy = Self {
            server,
            url,
            reader,
            directory: tempfile::tempdir().unwrap(),
        };
        legacy.sql(LEGACY);
        legacy.sql(&format!(
            "CREATE ROLE {0} LOGIN; GRANT SELECT ON clients, tokens TO {0}",
            legacy.reader
        ));
        legacy
    }

    /// Runs a statement in the database, as its superuser.
    fn sql(&self, statement: &str) -> String {
        self.server.sql(database_of(&self.url), statement)
    }

    fn lookup_of(
        &self,
        consumer_sql: Option<&str>,
        token_sql: Option<&str>,
        opening: Opening,
    ) -> Arc<Lookup> {
        let url = self.url.replace("postgres@", &format!("{}@", self.reader));
        let params = LookupParams {
            url: PostgresUrl::parse(&url).unwrap(),
            consumer_sql: consumer_sql.map(str::to_owned),
            token_sql: token_sql.map(str::to_owned),
        };
        Arc::new(Lookup::open(params, opening).unwrap())
    }

    fn lookup(&self) -> Arc<Lookup> {
        self.lookup_of(Some(CONSUMERS), Some(TOKENS), Opening::Serve)
    }

    fn on_postgres(&self) -> Backend {
        Backend::Postgres(Box::new(PostgresUrl::parse(&self.url).unwrap()))
    }

    fn on_sqlite(&self) -> Backend {
        Backend::Sqlite(PathBuf::from(self.directory.path()).join("store"))
    }

    fn serve_from(&self, backend: Backend) -> Arc<Store> {
        open_store(StoreParams {
            backend,
            keys: Vec::new(),
            opening: Opening::Serve,
            external: Some(self.lookup()),
        })
        .unwrap()
    }

    fn serve(&self) -> Arc<Store> {
        self.serve_from(self.on_postgres())
    }
}

/// The blocks of this language in the document about stores.
fn blocks_of_the_document(language: &str) -> Vec<String> {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md");
    let document = std::fs::read_to_string(document).unwrap();
    let blocks = document.split("```").skip(1).step_by(2);
    let of_language = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    of_language.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_role_and_the_queries_of_the_document_are_enough() {
    let mut legacy = Legacy::new();
    legacy.sql(
        "CREATE SCHEMA legacy;
         ALTER TABLE clients SET SCHEMA legacy; ALTER TABLE tokens SET SCHEMA legacy;
         ALTER TABLE legacy.tokens RENAME uid TO user_id;
         ALTER TABLE legacy.tokens RENAME expires TO expires_at",
    );
    let [role] = &blocks_of_the_document("sql")[..] else {
        panic!("one block of SQL");
    };
    assert!(role.starts_with("CREATE ROLE lookup LOGIN PASSWORD"));
    legacy.sql(role);
    legacy.reader = "lookup".to_owned();
    let blocks = blocks_of_the_document("toml").into_iter();
    let mut lookups = blocks.filter(|block| block.starts_with("[store.lookup]"));
    let config: toml::Table = lookups.next().unwrap().parse().unwrap();
    let sql = |name: &str| config["store"]["lookup"][name].as_str();
    let [consumer, token] = ["consumer_sql", "token_sql"].map(sql);
    drop(legacy.serve_from(legacy.on_postgres()));
    let lookup = legacy.lookup_of(consumer, token, Opening::Serve);
    assert_eq!(lookup.check().await.unwrap(), Vec::<String>::new());
    let store = open_store(StoreParams {
        backend: legacy.on_sqlite(),
        keys: Vec::new(),
        opening: Opening::Serve,
        external: Some(lookup),
    })
    .unwrap();
    let shop = store.consumer(&key("shop")).await.unwrap().unwrap();
    assert_eq!(shop.secret, Secret::from("s3cret"));
    let token = store.access_token("t").await.unwrap().unwrap();
    assert_eq!(token.user.as_str(), "4711");
}

fn key(text: &str) -> ConsumerKey {
    text.parse().unwrap()
}

fn names(permissions: &[countersign::base::names::Permission]) -> Vec<String> {
    permissions.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn finds_what_is_not_registered_here() {
    NameEncoding::None.set();
    let legacy = Legacy::new();
    for backend in [legacy.on_postgres(), legacy.on_sqlite()] {
        finds_in(&legacy.serve_from(backend)).await;
    }
    assert!(legacy.lookup().check().await.unwrap().is_empty());
}

async fn finds_in(store: &Arc<Store>) {
    let shop = store.consumer(&key("shop")).await.unwrap().unwrap();
    assert_eq!((&*shop.name, shop.enabled), ("The Shop", true));
    assert_eq!(shop.secret, "s3cret".into());
    assert_eq!(names(&shop.permissions), ["read", "write:all"]);
    assert!(shop.callbacks.is_empty());
    let off = store.consumer(&key("off")).await.unwrap().unwrap();
    assert_eq!((&*off.name, off.enabled), ("off", false));
    assert!(off.permissions.is_empty());

    let token = store.access_token("t").await.unwrap().unwrap();
    assert_eq!(
        (token.consumer.as_str(), token.user.as_str()),
        ("shop", "4711")
    );
    assert_eq!(token.secret, "ts".into());
    assert_eq!(names(&token.permissions), ["read", "write:all"]);
    assert_eq!(token.expires_at.map(|at| at.0), Some(2_000_000_000));
    assert_eq!(token.revoked_at, None);
    let revoked = store.access_token("revoked").await.unwrap().unwrap();
    assert!(revoked.revoked_at.is_some() && revoked.expires_at.is_none());
    // Malformed credentials do not exist.
    for name in ["null", "empty", "twice", "long", "scope", "nobody"] {
        assert_eq!(store.consumer(&key(name)).await.unwrap(), None, "{name}");
    }
    for name in ["name", "null", "empty", "nobody", "", "nul\0"] {
        assert_eq!(store.access_token(name).await.unwrap(), None, "{name}");
    }
    // A consumer registered here takes precedence, and neither list nor export has the other.
    store.add_consumer(consumer("shop")).await.unwrap();
    let own = store.consumer(&key("shop")).await.unwrap();
    assert_eq!(own, Some(consumer("shop")));
    assert_eq!(exported(store).await.records.len(), 1);
    assert_eq!(
        store
            .consumers(&Default::default(), None, 9)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn what_is_ended_here_is_ended_whatever_the_other_system_says() {
    let legacy = Legacy::new();
    for backend in [legacy.on_postgres(), legacy.on_sqlite()] {
        ends_in(&legacy.serve_from(backend)).await;
    }
}

async fn ends_in(store: &Arc<Store>) {
    populate(store).await;
    store.add_user(user("4712")).await.unwrap();
    let is_revoked = async |token: &str| {
        let found = store.access_token(token).await.unwrap().unwrap();
        found.revoked_at.is_some()
    };
    assert!(!is_revoked("for-own").await && !is_revoked("t").await && !is_revoked("other").await);
    let position = store.changes_since(0).await.unwrap().position;
    assert!(store.revoke_access_token("t", NOW, None).await.unwrap());
    assert!(store.revoke_access_token("t", NOW, None).await.unwrap());
    assert!(is_revoked("t").await);
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, [Change::AccessToken("t".to_owned())]);
    assert!(
        !store
            .revoke_access_token("nobody", NOW, None)
            .await
            .unwrap()
    );
    // The state of a user who is known here counts; an unknown one does not matter.
    let id = id("4712");
    set_enabled(store, &id, false, NOW).await;
    assert!(is_revoked("other").await);
    set_enabled(store, &id, true, NOW).await;
    assert!(!is_revoked("other").await);
    store.remove_user(&id, NOW, None).await.unwrap();
    assert!(is_revoked("other").await);
    // A consumer that was removed here stays away, although the other system has its key.
    store.add_consumer(consumer("shop")).await.unwrap();
    assert!(store.remove_consumer(&key("shop"), None).await.unwrap());
    assert_eq!(store.consumer(&key("shop")).await.unwrap(), None);
    assert!(store.consumer(&key("off")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_credential_has_one_spelling_whatever_the_database_compares() {
    let legacy = Legacy::new();
    legacy.sql(
        "ALTER TABLE clients ALTER client_key TYPE char(12);
         ALTER TABLE tokens ALTER token TYPE char(12)",
    );
    let consumers = CONSUMERS.replace("client_key AS key", "rtrim(client_key) AS key");
    let tokens = TOKENS.replace("SELECT token,", "SELECT rtrim(token) AS token,");
    let folded = |sql: &str, column: &str| {
        sql.replace(
            &format!("{column} = $1"),
            &format!("lower({column}) = lower($1)"),
        )
    };
    let queries = [
        (consumers.clone(), tokens.clone()),
        (folded(&consumers, "client_key"), folded(&tokens, "token")),
    ];
    for (consumer_sql, token_sql) in &queries {
        let lookup = legacy.lookup_of(Some(consumer_sql), Some(token_sql), Opening::Serve);
        lookup.check().await.unwrap();
        let store = open_store(StoreParams {
            backend: legacy.on_sqlite(),
            keys: Vec::new(),
            opening: Opening::Serve,
            external: Some(lookup),
        })
        .unwrap();
        assert!(store.consumer(&key("shop")).await.unwrap().is_some());
        for other in ["Shop", "SHOP"] {
            assert_eq!(store.consumer(&key(other)).await.unwrap(), None, "{other}");
        }
        assert!(store.access_token("t").await.unwrap().is_some());
        for other in ["t ", "t  ", "T", " t"] {
            assert_eq!(store.access_token(other).await.unwrap(), None, "{other}");
        }
    }
}

#[tokio::test]
async fn a_role_with_any_right_on_our_schema_is_rejected() {
    let legacy = Legacy::new();
    drop(legacy.serve());
    let reader = &legacy.reader;
    let other = format!("other_{reader}");
    legacy.sql(&format!("CREATE ROLE {other}"));
    let check = async || {
        legacy
            .lookup()
            .check()
            .await
            .map_err(|error| error.to_string())
    };
    assert_eq!(check().await, Ok(Vec::new()));
    for (grant, revoke, expected) in [
        (
            "GRANT USAGE ON SCHEMA countersign TO R",
            "REVOKE USAGE ON SCHEMA countersign FROM R",
            "has rights on the schema countersign",
        ),
        (
            "GRANT CREATE ON SCHEMA countersign TO PUBLIC",
            "REVOKE CREATE ON SCHEMA countersign FROM PUBLIC",
            "has rights on the schema countersign",
        ),
        (
            "GRANT SELECT ON countersign.consumers TO R",
            "REVOKE SELECT ON countersign.consumers FROM R",
            "has rights on countersign.consumers",
        ),
        (
            "GRANT SELECT (secret) ON countersign.access_tokens TO R",
            "REVOKE SELECT (secret) ON countersign.access_tokens FROM R",
            "has rights on countersign.access_tokens",
        ),
        (
            // Not inherited, but SET ROLE makes it the other one.
            "ALTER ROLE R NOINHERIT; GRANT O TO R; GRANT USAGE ON SCHEMA countersign TO O",
            "REVOKE USAGE ON SCHEMA countersign FROM O; REVOKE O FROM R",
            "has rights on the schema countersign",
        ),
        (
            "GRANT pg_read_server_files TO R",
            "REVOKE pg_read_server_files FROM R",
            "can read the files of the server",
        ),
        (
            "ALTER ROLE R REPLICATION",
            "ALTER ROLE R NOREPLICATION",
            "may replicate the whole server",
        ),
        (
            "ALTER ROLE R SUPERUSER",
            "ALTER ROLE R NOSUPERUSER",
            "owns the schema countersign",
        ),
    ] {
        let run = |statements: &str| {
            for statement in statements.split(';') {
                let words = statement.split(' ').map(|word| match word {
                    "R" => reader,
                    "O" => &other,
                    word => word,
                });
                legacy.sql(&words.collect::<Vec<_>>().join(" "));
            }
        };
        run(grant);
        let error = check().await.unwrap_err();
        assert!(error.starts_with("store.lookup.url: "), "{error}");
        assert!(error.contains(expected), "{grant}: {error}");
        run(revoke);
        assert_eq!(check().await, Ok(Vec::new()), "{revoke}");
    }
    // Anybody could put an operator there that the queries use.
    legacy.sql("GRANT CREATE ON SCHEMA public TO PUBLIC");
    let findings = check().await.unwrap();
    assert!(
        findings[0].contains("REVOKE CREATE ON SCHEMA public"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn code_of_the_other_system_reaches_neither_our_records_nor_the_other_query() {
    let legacy = Legacy::new();
    let store = legacy.serve();
    populate(&store).await;
    let reader = &legacy.reader;
    // Its owner replaces a table by a view that changes the session, for good if it can, and forges the other table.
    legacy.sql(&format!(
        "CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO {reader};
         CREATE TABLE evil.clients AS SELECT * FROM clients;
         UPDATE evil.clients SET secret = 'forged';
         GRANT SELECT ON evil.clients TO {reader};
         ALTER TABLE tokens RENAME TO tokens_before; GRANT SELECT ON tokens_before TO {reader};
         CREATE FUNCTION evil() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             PERFORM set_config('search_path', 'evil, public', false);
             RETURN true;
         END $$;
         CREATE VIEW tokens AS SELECT * FROM public.tokens_before WHERE public.evil();
         GRANT SELECT ON tokens TO {reader}"
    ));
    for _ in 0..6 {
        assert!(store.access_token("t").await.unwrap().is_some());
        let shop = store.consumer(&key("shop")).await.unwrap().unwrap();
        assert_eq!(shop.secret, "s3cret".into());
        let own = store.consumer(&key("c")).await.unwrap().unwrap();
        assert_eq!(own, consumer("c"));
    }
    // It cannot read ours: nothing is found, and that is no answer.
    legacy.sql(
        "CREATE OR REPLACE FUNCTION evil() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             RETURN EXISTS (SELECT FROM countersign.consumers);
         END $$",
    );
    let found = store.access_token("t").await;
    assert!(
        matches!(found, Err(StoreError::Unavailable(_))),
        "{found:?}"
    );
    // Neither does it change a setting of the connection on which it ran.
    legacy.sql(
        "CREATE OR REPLACE FUNCTION evil() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('evil.ran', true) = 'yes' THEN RAISE 'the session was changed'; END IF;
             PERFORM set_config('evil.ran', 'yes', false);
             RETURN true;
         END $$",
    );
    for _ in 0..6 {
        assert!(store.access_token("t").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn an_outage_of_the_other_system_ends_with_it_and_spares_our_own_records() {
    let legacy = Legacy::on(Arc::new(Server::start()));
    let store = legacy.serve_from(legacy.on_sqlite());
    populate(&store).await;
    assert!(store.consumer(&key("shop")).await.unwrap().is_some());
    legacy.server.stop();
    for _ in 0..3 {
        let found = store.consumer(&key("shop")).await;
        assert!(
            matches!(found, Err(StoreError::Unavailable(_))),
            "{found:?}"
        );
        let own = store.consumer(&key("c")).await.unwrap().unwrap();
        assert_eq!(own, consumer("c"));
    }
    let error = legacy.lookup().check().await.unwrap_err().to_string();
    assert!(error.starts_with("store.lookup.url: "), "{error}");
    assert!(error.contains("cannot be reached"), "{error}");
    legacy.server.start_again();
    let begun = std::time::Instant::now();
    while store.consumer(&key("shop")).await.is_err() {
        assert!(begun.elapsed() < crate::postgres::PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_consumer_of_the_other_system_gets_no_new_tokens() {
    let legacy = Legacy::new();
    let store = legacy.serve();
    populate(&store).await;
    let issued = store
        .issue_request_token(request_token("r", "shop"), 9)
        .await;
    assert!(matches!(issued, Err(StoreError::Broken(_))), "{issued:?}");
    ask(&store, "r").await;
    let issued = store
        .issue_access_token(access_token("a", "shop", "u"))
        .await;
    assert_eq!(
        issued.unwrap(),
        countersign::records::store::port::Added::Taken
    );
}

#[tokio::test]
async fn says_what_is_wrong_with_a_query() {
    let legacy = Legacy::new();
    let columns = "SELECT client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled FROM clients";
    let cases = [
        ("SELEC", "syntax error"),
        ("SELECT 1 FROM nowhere WHERE $1 = 'a'", "does not exist"),
        (columns, "the query has one parameter, $1"),
        (
            "SELECT client_key AS key, secret FROM clients WHERE client_key = $1",
            "has no column name; select key, secret, name, permissions, enabled",
        ),
        (
            "SELECT client_key AS key, secret, title AS name, scopes AS permissions, 1 AS enabled FROM clients WHERE client_key = $1",
            "the column enabled has the type int4; make it boolean",
        ),
        (
            "SELECT client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled, false AS enabled FROM clients WHERE client_key = $1",
            "has the column enabled twice; select it once",
        ),
        (
            "SELECT client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled FROM clients WHERE length(client_key) = $1",
            "$1 is compared with a column of the type int4; write column::text = $1",
        ),
        (
            "SELECT client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled FROM clients WHERE $1 <> ''",
            "finds a row for a value that is in no table",
        ),
        (
            "INSERT INTO clients VALUES ($1) RETURNING client_key AS key, secret, title AS name, scopes AS permissions, active AS enabled",
            "syntax error",
        ),
    ];
    let problem = async |lookup: Arc<Lookup>| {
        let error: LookupError = lookup.check().await.unwrap_err();
        error.to_string()
    };
    for (sql, expected) in cases {
        for opening in [Opening::Serve, Opening::Check] {
            let error = problem(legacy.lookup_of(Some(sql), Some(TOKENS), opening)).await;
            assert!(error.starts_with("store.lookup.consumer_sql: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
    assert_eq!(legacy.sql("SELECT count(*) FROM clients"), "8");
    let reader = &legacy.reader;
    legacy.sql(&format!("REVOKE SELECT ON tokens FROM {reader}"));
    let error = problem(legacy.lookup()).await;
    assert!(
        error.starts_with("store.lookup.token_sql: ") && error.contains("permission denied"),
        "{error}"
    );
}

#[tokio::test]
async fn a_query_that_never_ends_stops_a_start_and_says_so() {
    // It outlives the program that began it, so it has a server of its own.
    let legacy = Legacy::on(Arc::new(Server::start()));
    legacy.sql(
        "CREATE FUNCTION stuck() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            LOOP
                BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;
            END LOOP;
        END $$",
    );
    let sql = CONSUMERS.to_owned() + " OR stuck()";
    let lookup = legacy.lookup_of(Some(&sql), None, Opening::Serve);
    let checked = tokio::time::timeout(crate::postgres::PATIENCE, lookup.check()).await;
    let error = checked.expect("the check ends").unwrap_err().to_string();
    assert!(error.contains("store.lookup.consumer_sql"), "{error}");
    assert!(error.contains("does not end within"), "{error}");
}
