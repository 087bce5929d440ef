//! A store for tests and fuzz targets: SQLite in memory, which can be paused and made to fail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Semaphore,
    task::unconstrained,
};

use super::*;
use crate::{
    base::clock::UnixTime,
    records::store::{
        OpenProblem, Opening,
        record::{RequestToken, Session, User},
        sqlite::SqliteStore,
    },
};

/// An enabled user without a password, whose id is `id-` and the name.
pub fn user(name: &str) -> User {
    User {
        id: format!("id-{name}").parse().unwrap(),
        name: name.to_owned(),
        display_name: None,
        password_hash: None,
        enabled: true,
        created_at: UnixTime(0),
    }
}

/// The store. Records that the methods here put into it are not in the feed.
pub struct TestStore {
    sqlite: SqliteStore,
    state: Arc<State>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
}

struct State {
    fails: AtomicBool,
    is_held: AtomicBool,
    gate: Semaphore,
    arrived: Notify,
    /// The statements of a later version of the program.
    statements: OnceLock<&'static Statements>,
}

impl Default for TestStore {
    fn default() -> Self {
        let sqlite = SqliteStore::in_memory();
        now(schema::prepare(&sqlite, Opening::Serve)).unwrap();
        Self {
            sqlite,
            state: Arc::new(State {
                fails: AtomicBool::new(false),
                is_held: AtomicBool::new(false),
                gate: Semaphore::new(0),
                arrived: Notify::new(),
                statements: OnceLock::new(),
            }),
            calls: Mutex::default(),
        }
    }
}

/// The result of a use case, which waits for nothing but use cases on other threads.
fn now<T>(work: impl Future<Output = T>) -> T {
    let runtime = Handle::try_current()
        .is_err()
        .then(|| Builder::new_current_thread().enable_time().build().unwrap());
    let _entered = runtime.as_ref().map(Runtime::enter);
    let mut work = pin!(unconstrained(work));
    loop {
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

impl TestStore {
    /// From now on every call fails, or none.
    pub fn fail(&self, fails: bool) {
        self.state.fails.store(fails, SeqCst);
    }

    /// Whether every call fails.
    pub fn fails(&self) -> bool {
        self.state.fails.load(SeqCst)
    }

    /// From now on use cases come to their end and then wait at the gate.
    pub fn hold(&self) {
        self.state.is_held.store(true, SeqCst);
    }

    /// Use cases that come from now on do not wait; those at the gate still do.
    pub fn let_new_ones_pass(&self) {
        self.state.is_held.store(false, SeqCst);
    }

    /// Lets everything through.
    pub fn release(&self) {
        self.let_new_ones_pass();
        self.state.gate.add_permits(1_000);
    }

    /// Waits until a use case is at the gate.
    pub async fn arrived(&self) {
        self.state.arrived.notified().await;
    }

    /// The number of calls of a use case.
    pub fn calls_of(&self, use_case: &str) -> usize {
        self.calls
            .lock()
            .unwrap()
            .get(use_case)
            .copied()
            .unwrap_or(0)
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls.lock().unwrap().values().sum()
    }

    /// Runs `work` without gate, faults and feed.
    fn quietly<T>(&self, work: impl AsyncFnOnce(&mut Tx) -> Result<T, StoreError>) -> T {
        let result = now(run(
            &self.sqlite,
            "test",
            (Mode::Alone, Pace::Request),
            async |tx| {
                let value = work(tx).await?;
                tx.changes.clear();
                Ok(value)
            },
        ));
        result.unwrap()
    }

    /// Reports a change in the feed.
    pub fn tell(&self, change: Change) {
        let report = async |tx: &mut Tx| {
            tx.changed(change);
            Ok(())
        };
        now(run(
            &self.sqlite,
            "test",
            (Mode::Alone, Pace::Request),
            report,
        ))
        .unwrap();
    }

    /// Runs statements.
    pub fn sql(&self, statements: &str) {
        self.quietly(async |tx| tx.batch(statements).await);
    }

    /// The number of rows in a table.
    pub fn count(&self, table: &str) -> usize {
        let rows = format!("SELECT 1 AS one FROM {table}");
        self.quietly(async |tx| tx.rows(&rows, &[], |_, _| Ok(())).await)
            .len()
    }

    /// Inserts or replaces a user.
    pub fn put_user(&self, user: User) {
        self.quietly(async |tx| {
            let delete = "DELETE FROM users WHERE id = $1";
            tx.execute(delete, &[user.id.as_str().into()]).await?;
            users::insert(tx, &user).await
        });
    }

    /// Keeps many new consumers and access tokens.
    pub fn put_all(&self, consumers: &[Consumer], tokens: &[AccessToken]) {
        self.quietly(async |tx| {
            for consumer in consumers {
                consumers::put(tx, consumer).await?;
            }
            tokens::insert(tx, &tokens.iter().collect::<Vec<_>>()).await
        });
    }

    /// Inserts or replaces a consumer.
    pub fn put_consumer(&self, consumer: &Consumer) {
        self.quietly(async |tx| consumers::put(tx, consumer).await);
    }

    /// Inserts or replaces an access token.
    pub fn put_access_token(&self, token: &AccessToken) {
        self.quietly(async |tx| {
            let delete = "DELETE FROM access_tokens WHERE token = $1";
            tx.execute(delete, &[token.token.as_str().into()]).await?;
            tokens::insert(tx, &[token]).await
        });
    }

    /// Inserts or replaces a request token.
    pub fn put_request_token(&self, token: &RequestToken) {
        self.quietly(async |tx| {
            let delete = "DELETE FROM request_tokens WHERE token = $1";
            tx.execute(delete, &[token.token.as_str().into()]).await?;
            flow::issue(tx, token).await
        });
    }

    /// Keeps a new session.
    pub fn put_session(&self, session: &Session) {
        self.quietly(async |tx| sessions::insert(tx, session).await);
    }

    /// Changes a consumer, which must be there.
    pub fn change_consumer(&self, key: &str, change: impl FnOnce(&mut Consumer)) {
        let key = key.parse().unwrap();
        let mut consumer = self
            .quietly(async |tx| consumers::find(tx, &key).await)
            .unwrap();
        change(&mut consumer);
        self.put_consumer(&consumer);
    }

    /// Changes an access token, which must be there.
    pub fn change_access_token(&self, token: &str, change: impl FnOnce(&mut AccessToken)) {
        let mut token = self.access_token_of(token).unwrap();
        change(&mut token);
        self.put_access_token(&token);
    }

    /// The access token of this identifier.
    pub fn access_token_of(&self, token: &str) -> Option<AccessToken> {
        now(self.sqlite.access_token(token)).unwrap()
    }

    /// The request token of this identifier.
    pub fn request_token_of(&self, token: &str) -> Option<RequestToken> {
        now(self.sqlite.request_token(token)).unwrap()
    }

    /// The user of this name, who must be there.
    pub fn user_named(&self, name: &str) -> User {
        now(self.sqlite.user_by_name(name)).unwrap().unwrap()
    }
}

#[async_trait]
impl Engine for TestStore {
    async fn begin(
        &self,
        use_case: &'static str,
        mode: Mode,
        pace: Pace,
    ) -> Result<Tx, StoreError> {
        *self.calls.lock().unwrap().entry(use_case).or_default() += 1;
        let mut tx = self.sqlite.begin(use_case, mode, pace).await?;
        tx.connection = Box::new(Gated {
            connection: Some(tx.connection),
            state: Arc::clone(&self.state),
        });
        Ok(tx)
    }

    fn extensions(&self) -> &Extensions {
        self.sqlite.extensions()
    }
}

/// A connection whose use case waits at the gate once it is done and no longer blocks others.
struct Gated {
    connection: Option<Box<dyn Connection>>,
    state: Arc<State>,
}

impl Gated {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut **self.connection.as_mut().unwrap()
    }
}

#[async_trait]
impl Connection for Gated {
    fn statements(&self) -> &'static Statements {
        let own = self.connection.as_ref().unwrap().statements();
        self.state.statements.get().unwrap_or(&own)
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, StoreError> {
        self.connection().execute(sql, params).await
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        self.connection().rows(sql, params).await
    }

    async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.connection().batch(sql).await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        let fails = self.state.fails.load(SeqCst);
        let connection = self.connection.take();
        if !fails {
            connection.unwrap().commit().await?;
        }
        if self.state.is_held.load(SeqCst) {
            self.state.arrived.notify_one();
            self.state.gate.acquire().await.unwrap().forget();
        }
        match fails {
            true => Err(StoreError::Unavailable("switched off".into())),
            false => Ok(()),
        }
    }

    fn failed(&self, error: StoreError) -> StoreError {
        error
    }
}

/// A store that a later version of the program opens, whose schema has these steps more.
async fn store_of_later(steps: &[&'static str]) -> TestStore {
    let store = TestStore::default();
    let old = store.sqlite.begin("test", Mode::Single, Pace::Request);
    let old = old.await.unwrap().statements();
    let later = Statements {
        schema: schema::Schema {
            steps: Vec::leak([old.schema.steps, steps].concat()),
            words: &[("WORD", "TEXT")],
            is_shared: true,
            ..old.schema
        },
        ..*old
    };
    let _ = store.state.statements.set(Box::leak(Box::new(later)));
    store
}

#[tokio::test]
async fn a_later_version_adds_its_steps_and_an_earlier_one_leaves_them() {
    let store = store_of_later(&["ALTER TABLE users ADD COLUMN later WORD"]).await;
    store.put_user(user("anna"));
    for opening in [Opening::Command, Opening::Check] {
        let older = schema::prepare(&store, opening).await;
        assert!(matches!(
            older,
            Err(OpenProblem::OlderSchema { found: 1, known: 2 })
        ));
    }
    for opening in [Opening::Serve, Opening::Command] {
        schema::prepare(&store, opening).await.unwrap();
    }
    assert_eq!(store.user_named("anna"), user("anna"));
    let newer = schema::prepare(&store.sqlite, Opening::Serve).await;
    assert!(matches!(
        newer,
        Err(OpenProblem::NewerSchema { found: 2, known: 1 })
    ));
}

#[tokio::test]
async fn steps_that_fail_leave_the_schema_as_it_was() {
    let table = "CREATE TABLE first (a WORD)";
    let store = store_of_later(&[table, table]).await;
    schema::prepare(&store, Opening::Serve).await.unwrap_err();
    schema::prepare(&store.sqlite, Opening::Serve)
        .await
        .unwrap();
    store.sql("CREATE TABLE first (a TEXT)");
}

#[test]
fn keeps_every_character_of_a_name() {
    for name in ["", "Ä", "a\0b", "\u{1}", "\u{1}0", "\u{1}1\0", "\0\u{1}01"] {
        let kept = rows::kept_text(name);
        assert!(!kept.contains('\0'));
        let row = Row {
            columns: Arc::new(["name".to_owned()]),
            values: vec![Value::Text(kept)],
        };
        assert_eq!(row.get::<String>("name").unwrap(), name);
    }
}
