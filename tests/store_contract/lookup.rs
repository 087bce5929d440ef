//! Credentials that an existing system keeps in the same PostgreSQL.

use std::sync::Arc;

use countersign::{
    names::ConsumerKey,
    store::{
        Backend, OpenError, Opening, Params, Store, StoreError, open_store,
        port::Change,
        postgres::{Lookup, Url},
    },
};

use crate::{
    postgres::database_of,
    postgres_server::Postgres as Server,
    records::{NOW, access_token, ask, consumer, id, populate, request_token, set_enabled, user},
};

const CONSUMERS: &str = "SELECT secret, title AS name, scopes AS permissions, active AS enabled
    FROM clients WHERE client_key = $1";
const TOKENS: &str = "SELECT secret, client_key AS consumer, uid AS user_id, scopes AS permissions,
    expires AS expires_at, revoked FROM tokens WHERE token = $1";
const LEGACY: &str = "
    CREATE TABLE clients (
        client_key text, secret varchar(99), title text, scopes text[], active boolean);
    INSERT INTO clients VALUES
        ('shop', 's3cret', 'The Shop', '{read,write:all}', true),
        ('off', 's', NULL, NULL, false),
        ('null', NULL, 'n', '{}', true),
        ('twice', 'a', 'n', '{}', true), ('twice', 'b', 'n', '{}', true),
        ('scope', 's', 'n', '{\"no name\"}', true);
    CREATE TABLE tokens (
        token text, secret text, client_key text, uid bigint, scopes text, expires timestamptz, revoked boolean);
    INSERT INTO tokens VALUES
        ('t', 'ts', 'shop', 4711, 'read  write:all', '2033-05-18 03:33:20+00', false),
        ('for-own', 'ts', 'c', 4711, '', NULL, false),
        ('revoked', 'ts', 'shop', 4711, NULL, NULL, true),
        ('other', 'ts', 'shop', 4712, '', NULL, false),
        ('name', 'ts', 'no name', 4711, '', NULL, false),
        ('null', 'ts', 'shop', 4711, '', NULL, NULL);
";

struct Legacy {
    server: Arc<Server>,
    url: String,
}

impl Legacy {
    fn new() -> Self {
        Self::on(Server::shared())
    }

    fn on(server: Arc<Server>) -> Self {
        let url = server.database();
        server.sql(database_of(&url), LEGACY);
        Self { server, url }
    }

    fn open(&self, lookup: Lookup, opening: Opening) -> Result<Arc<dyn Store>, OpenError> {
        let url = Url::parse(&self.url).unwrap();
        open_store(Params {
            backend: Backend::Postgres(Box::new(url), lookup),
            keys: Vec::new(),
            opening,
        })
    }

    fn serve(&self) -> Arc<dyn Store> {
        let lookup = Lookup {
            consumer_sql: Some(CONSUMERS),
            token_sql: Some(TOKENS),
        };
        self.open(lookup, Opening::Serve).unwrap()
    }
}

fn key(text: &str) -> ConsumerKey {
    text.parse().unwrap()
}

fn names(permissions: &[countersign::names::Permission]) -> Vec<String> {
    permissions.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn finds_what_is_not_registered_here() {
    let legacy = Legacy::new();
    let store = legacy.serve();
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
    for name in ["null", "twice", "scope", "nobody"] {
        assert_eq!(store.consumer(&key(name)).await.unwrap(), None, "{name}");
    }
    for name in ["name", "null", "nobody", "", "nul\0"] {
        assert_eq!(store.access_token(name).await.unwrap(), None, "{name}");
    }
    // A consumer registered here takes precedence, and neither list nor export has the other.
    store.add_consumer(consumer("shop")).await.unwrap();
    let own = store.consumer(&key("shop")).await.unwrap();
    assert_eq!(own, Some(consumer("shop")));
    assert_eq!(store.export().await.unwrap().records.len(), 1);
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
    let store = legacy.serve();
    populate(&store).await;
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
    set_enabled(&store, &id, false, NOW).await;
    assert!(is_revoked("other").await);
    set_enabled(&store, &id, true, NOW).await;
    assert!(!is_revoked("other").await);
    store.remove_user(&id, NOW, None).await.unwrap();
    assert!(is_revoked("other").await);
}

#[tokio::test]
async fn a_consumer_of_the_other_system_gets_no_new_tokens() {
    let legacy = Legacy::new();
    let store = legacy.serve();
    populate(&store).await;
    let issued = store.issue_request_token(request_token("r", "shop")).await;
    assert!(matches!(issued, Err(StoreError::Broken(_))), "{issued:?}");
    ask(&store, "r").await;
    let issued = store
        .issue_access_token(access_token("a", "shop", "u"))
        .await;
    assert_eq!(issued.unwrap(), countersign::store::port::Added::Taken);
}

#[tokio::test]
async fn says_what_is_wrong_with_a_query() {
    let legacy = Legacy::new();
    let columns =
        "SELECT secret, title AS name, scopes AS permissions, active AS enabled FROM clients";
    let cases = [
        ("SELEC", "syntax error"),
        ("SELECT 1 FROM nowhere WHERE $1 = 'a'", "does not exist"),
        (columns, "the query has one parameter, $1"),
        (
            "SELECT secret FROM clients WHERE client_key = $1",
            "has no column name; select secret, name, permissions, enabled",
        ),
        (
            "SELECT secret, title AS name, scopes AS permissions, 1 AS enabled FROM clients WHERE client_key = $1",
            "the column enabled has the type int4; make it boolean",
        ),
        (
            "SELECT secret, title AS name, scopes AS permissions, active AS enabled, false AS enabled FROM clients WHERE client_key = $1",
            "has the column enabled twice; select it once",
        ),
        (
            "SELECT secret, title AS name, scopes AS permissions, active AS enabled FROM clients WHERE length(client_key) = $1",
            "$1 is compared with a column of the type int4; write column::text = $1",
        ),
        (
            "SELECT secret, title AS name, scopes AS permissions, active AS enabled FROM clients WHERE $1 <> ''",
            "finds a row for a value that is in no table",
        ),
        (
            "INSERT INTO clients VALUES ($1) RETURNING secret, title AS name, scopes AS permissions, active AS enabled",
            "read-only transaction",
        ),
    ];
    drop(legacy.open(Lookup::default(), Opening::Serve).unwrap());
    for (sql, expected) in cases {
        let lookup = Lookup {
            consumer_sql: Some(sql),
            token_sql: Some(TOKENS),
        };
        for opening in [Opening::Serve, Opening::Check] {
            let error = legacy.open(lookup, opening).err().unwrap().to_string();
            assert!(error.starts_with("store.lookup.consumer_sql: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
    let count = legacy
        .server
        .sql(database_of(&legacy.url), "SELECT count(*) FROM clients");
    assert_eq!(count, "6");
    // A name is not looked up in our own tables.
    let lookup = Lookup {
        consumer_sql: None,
        token_sql: Some("SELECT secret, consumer, \"user\" AS user_id, permissions, expires_at, false AS revoked
            FROM access_tokens WHERE token = $1"),
    };
    let error = legacy
        .open(lookup, Opening::Serve)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("store.lookup.token_sql: ") && error.contains("does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn a_query_that_never_ends_stops_a_start_and_says_so() {
    // It outlives the program that began it, so it has a server of its own.
    let legacy = Legacy::on(Arc::new(Server::start()));
    legacy.server.sql(
        database_of(&legacy.url),
        "CREATE FUNCTION stuck() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            LOOP
                BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;
            END LOOP;
        END $$",
    );
    let lookup = Lookup {
        consumer_sql: Some(
            "SELECT secret, title AS name, scopes AS permissions, active AS enabled
             FROM clients WHERE client_key = $1 OR stuck()",
        ),
        token_sql: None,
    };
    let (ended, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let error = legacy.open(lookup, Opening::Serve).err();
        ended.send(error.map(|error| error.to_string()))
    });
    let error = ends.recv_timeout(std::time::Duration::from_secs(60));
    let error = error
        .expect("the start ends")
        .expect("the query is an error");
    assert!(error.contains("store.lookup.consumer_sql"), "{error}");
    assert!(error.contains("does not end within"), "{error}");
}
