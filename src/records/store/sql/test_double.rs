//! A store for tests and fuzz targets: SQLite in memory, which can be paused and made to fail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    path::Path,
    pin::pin,
    sync::atomic::Ordering::SeqCst,
    task::{Context, Poll, Waker},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::unconstrained,
};

use super::*;
use crate::{
    base::clock::UnixTime,
    records::{
        store::sqlite::{
            SqliteStore,
            test_double::{Held, Memory},
        },
        values::{
            Opening,
            record::{AccessToken, Consumer, Session, User},
            use_cases::Change,
        },
    },
};

/// An enabled user without a password, whose id is `id-` and the name.
pub fn user(name: &str) -> User {
    let id = format!("id-{name}").parse().unwrap();
    User::new(id, name.to_owned(), UnixTime(0))
}

/// The store. Records that the methods here put into it are not in the feed.
pub struct TestStore {
    store: Arc<Store>,
    held: Arc<Held>,
    /// The same records, without the gate and faults.
    quiet: Store,
}

impl Default for TestStore {
    fn default() -> Self {
        Self::beside(None)
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
    /// A store beside an application with external records.
    pub fn beside(external: Option<Arc<dyn ExternalRecords>>) -> Self {
        let memory = Memory::new();
        let held = Arc::<Held>::default();
        let holding = Memory {
            held: Some(Arc::clone(&held)),
            ..memory.clone()
        };
        let quiet = Store::new(memory, Seal::plain(), None);
        now(quiet.prepare(Opening::Serve)).unwrap();
        Self {
            store: Arc::new(Store::new(holding, Seal::plain(), external)),
            held,
            quiet,
        }
    }

    /// A store in a file that the program would open, with threads of its own, instead of one in memory. It never fails and
    /// never waits.
    pub fn in_file(path: &Path) -> Self {
        let open = || Store::new(SqliteStore::open(path, false).unwrap(), Seal::plain(), None);
        let quiet = open();
        now(quiet.prepare(Opening::Serve)).unwrap();
        Self {
            store: Arc::new(open()),
            held: Arc::default(),
            quiet,
        }
    }

    /// The store as the program has it.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// From now on every call fails, or none.
    pub fn fail(&self, fails: bool) {
        self.held.fails.store(fails, SeqCst);
    }

    /// Whether every call fails.
    pub fn fails(&self) -> bool {
        self.held.fails.load(SeqCst)
    }

    /// From now on use cases come to their end and then wait at the gate.
    pub fn hold(&self) {
        self.held.is_held.store(true, SeqCst);
    }

    /// Use cases that come from now on do not wait; those at the gate still do.
    pub fn let_new_ones_pass(&self) {
        self.held.is_held.store(false, SeqCst);
    }

    /// Lets everything through.
    pub fn release(&self) {
        self.let_new_ones_pass();
        self.held.gate.add_permits(1_000);
    }

    /// Waits until a use case is at the gate.
    pub async fn arrived(&self) {
        self.held.arrived.notified().await;
    }

    /// The number of statements with this text that were run.
    pub fn statements_with(&self, text: &str) -> usize {
        let statements = self.held.statements.lock();
        let found = statements.iter().filter(|(sql, _)| sql.contains(text));
        found.map(|(_, count)| count).sum()
    }

    /// Runs `work` without gate, faults and feed.
    fn quietly<T>(&self, work: impl AsyncFnOnce(&mut Tx) -> Result<T>) -> T {
        let work = async |tx: &mut Tx| {
            let value = work(tx).await?;
            tx.clear_changes();
            Ok(value)
        };
        now(self.quiet.run("test", EXCLUSIVE, work)).unwrap()
    }

    /// Reports a change in the feed.
    pub fn tell(&self, change: Change) {
        let report = async |tx: &mut Tx| {
            tx.changed(change);
            Ok(())
        };
        now(self.quiet.run("test", EXCLUSIVE, report)).unwrap();
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
            tokens::insert(tx, tokens).await
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
            tokens::insert(tx, std::slice::from_ref(token)).await
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
        now(self.quiet.access_token(token)).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{
        store::engine::Schema,
        values::{
            OpenProblem,
            value::{ColumnType as _, escaped},
        },
    };

    async fn prepared() -> (Memory, Store) {
        let memory = Memory::new();
        let store = Store::new(memory.clone(), Seal::plain(), None);
        store.prepare(Opening::Serve).await.unwrap();
        (memory, store)
    }

    /// A store that a later version of the program opens, whose schema has these steps more.
    fn later(memory: Memory, steps: &[&'static str]) -> Store {
        let old = memory.statements;
        let statements = Box::leak(Box::new(Statements {
            schema: Schema {
                steps: Vec::leak([old.schema.steps, steps].concat()),
                is_shared: true,
                ..old.schema
            },
            ..*old
        }));
        let memory = Memory {
            statements,
            ..memory
        };
        Store::new(memory, Seal::plain(), None)
    }

    #[tokio::test]
    async fn later_version_adds_its_steps_and_an_earlier_one_keeps_them() {
        let (memory, store) = prepared().await;
        let later = later(memory, &["ALTER TABLE users ADD COLUMN later TEXT"]);
        store.add_user(user("anna")).await.unwrap();
        for opening in [Opening::Command, Opening::Check] {
            let older = later.prepare(opening).await;
            assert!(matches!(
                older,
                Err(OpenProblem::OlderSchema { found: 1, known: 2 })
            ));
        }
        for opening in [Opening::Serve, Opening::Command] {
            later.prepare(opening).await.unwrap();
        }
        let found = later.user_by_name("anna").await.unwrap();
        assert_eq!(found, Some(user("anna")));
        let newer = store.prepare(Opening::Serve).await;
        assert!(matches!(
            newer,
            Err(OpenProblem::NewerSchema { found: 2, known: 1 })
        ));
    }

    #[tokio::test]
    async fn steps_that_fail_leave_the_schema_as_it_was() {
        let (memory, store) = prepared().await;
        let table = "CREATE TABLE first (a TEXT)";
        let later = later(memory, &[table, table]);
        later.prepare(Opening::Serve).await.unwrap_err();
        store.prepare(Opening::Serve).await.unwrap();
        let make = async |tx: &mut Tx| tx.batch(table).await;
        store.run("test", EXCLUSIVE, make).await.unwrap();
    }

    #[test]
    fn keeps_every_character_of_a_name() {
        for name in ["", "Ä", "a\0b", "\u{1}", "\u{1}0", "\u{1}1\0", "\0\u{1}01"] {
            let column = escaped(name);
            assert!(!column.contains('\0'));
            assert_eq!(String::read(&column.into()).unwrap(), name);
        }
    }
}
