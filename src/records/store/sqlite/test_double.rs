//! SQLite in memory, for tests and fuzz targets: it can be paused and made to fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{self, Notify, OwnedMutexGuard, Semaphore};

use super::{schema, statement};
use crate::records::{
    store::engine::{Connection, Deadline, Engine, Isolation, Statements, TimeLimit},
    values::{
        Result, StoreError,
        value::{Row, Value},
    },
};

/// The faults of the store, and the gate at which use cases wait.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) fails: AtomicBool,
    pub(crate) is_held: AtomicBool,
    pub(crate) gate: Semaphore,
    pub(crate) arrived: Notify,
    /// The statements that were run, with their number.
    pub(crate) statements: Mutex<BTreeMap<String, usize>>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            fails: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            gate: Semaphore::new(0),
            arrived: Notify::new(),
            statements: Mutex::default(),
        }
    }
}

/// A database in memory, which works on the thread of its caller, so that tests can pause the time, and does not check
/// references between records.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) sql: Arc<sync::Mutex<Mutex<rusqlite::Connection>>>,
    pub(crate) statements: &'static Statements,
    /// The faults; `None`: it never fails and never waits.
    pub(crate) held: Option<Arc<Held>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        super::open::allocate_single_pages();
        let sql = rusqlite::Connection::open_in_memory().unwrap();
        sql.pragma_update(None, "foreign_keys", false).unwrap();
        sql.pragma_update(None, "ignore_check_constraints", true)
            .unwrap();
        Self {
            sql: Arc::new(sync::Mutex::new(Mutex::new(sql))),
            statements: &schema::STATEMENTS,
            held: None,
        }
    }
}

#[async_trait]
impl Engine for Memory {
    fn statements(&self) -> &'static Statements {
        self.statements
    }

    async fn begin(
        &self,
        isolation: Isolation,
        deadline: Deadline,
    ) -> Result<(Box<dyn Connection>, TimeLimit)> {
        let sql = Arc::clone(&self.sql).lock_owned().await;
        if !matches!(isolation, Isolation::Single | Isolation::NoTransaction) {
            sql.lock().execute_batch("BEGIN")?;
        }
        let connection = MemoryConnection {
            sql: Some(sql),
            held: self.held.clone(),
        };
        let limit = TimeLimit::new(deadline, Duration::from_secs(5));
        Ok((Box::new(connection), limit))
    }
}

/// A connection whose use case waits at the gate once it is done and no longer blocks others.
struct MemoryConnection {
    sql: Option<OwnedMutexGuard<Mutex<rusqlite::Connection>>>,
    /// The faults; `None`: it never fails and never waits.
    pub(crate) held: Option<Arc<Held>>,
}

impl MemoryConnection {
    fn run<T>(&self, sql: &str, work: impl FnOnce(&rusqlite::Connection) -> T) -> T {
        if let Some(held) = &self.held {
            *held.statements.lock().entry(sql.to_owned()).or_default() += 1;
        }
        work(&self.sql.as_ref().unwrap().lock())
    }
}

impl Drop for MemoryConnection {
    fn drop(&mut self) {
        if let Some(sql) = &self.sql
            && !sql.lock().is_autocommit()
        {
            sql.lock().execute_batch("ROLLBACK").unwrap();
        }
    }
}

#[async_trait]
impl Connection for MemoryConnection {
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        self.run(sql, |conn| statement::execute(conn, sql, params.to_vec()))
    }

    async fn rows(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>> {
        self.run(sql, |conn| statement::rows(conn, sql, params.to_vec()))
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run(sql, |conn| statement::batch(conn, sql))
    }

    async fn commit(&mut self) -> Result<()> {
        let fails = self
            .held
            .as_ref()
            .is_some_and(|held| held.fails.load(SeqCst));
        let has_begun = !self.sql.as_ref().unwrap().lock().is_autocommit();
        if has_begun {
            self.batch(if fails { "ROLLBACK" } else { "COMMIT" })
                .await?;
        }
        self.sql = None;
        if let Some(held) = &self.held
            && held.is_held.load(SeqCst)
        {
            held.arrived.notify_one();
            held.gate.acquire().await.unwrap().forget();
        }
        match fails {
            true => Err(StoreError::Unavailable("switched off".into())),
            false => Ok(()),
        }
    }
}
