//! Connections to PostgreSQL: kept, lent, and replaced after an outage.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Statement, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{PostgresFault, url::CONNECT_TIMEOUT};
use crate::store::{
    StoreError,
    remote::{Outage, jittered},
};

/// Connections for use cases at most; one more listens.
const CONNECTIONS: usize = 16;
/// How long a use case waits for a connection while all are in use.
const WAIT: Duration = Duration::from_millis(250);
/// How long a statement may take, if its use case does not allow more. The server ends it before the caller gives up,
/// so that a slow statement is told from a server that hangs.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_millis(500);
/// The channel on which changes are reported.
pub(super) const CHANNEL: &str = "countersign";

/// The connections of a store.
pub(super) struct PostgresPool {
    config: Config,
    tls: MakeRustlsConnect,
    idle: Mutex<Vec<Conn>>,
    permits: Semaphore,
    outage: Outage,
    /// Something may have changed.
    pub(super) changed: Notify,
}

/// One connection. Dropping it closes it, whatever it is waiting for.
pub(super) struct Conn {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    task: AbortHandle,
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Conn {
    /// The client and a statement, prepared the first time.
    pub(super) async fn prepare(
        &mut self,
        sql: &'static str,
    ) -> Result<(&Client, Statement), Error> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        Ok((&self.client, statement))
    }

    /// The client, for statements without parameters.
    pub(super) const fn client(&self) -> &Client {
        &self.client
    }
}

impl PostgresPool {
    pub(super) fn new(config: Config, tls: MakeRustlsConnect) -> Self {
        Self {
            config,
            tls,
            idle: Mutex::default(),
            permits: Semaphore::new(CONNECTIONS),
            outage: Outage::none("postgres"),
            changed: Notify::new(),
        }
    }

    /// Succeeds unless there is an outage.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.outage.check()
    }

    /// Waits until a connection may be used, which [`Self::take`] gives out.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.outage.check()?;
        match timeout(WAIT, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(PostgresFault::Overloaded.into()),
        }
    }

    /// Gives a connection out, to be given back by [`Self::put_back`] if it is still good.
    pub(super) async fn take(&self) -> Result<Conn, StoreError> {
        // An outage may have begun during the wait.
        self.outage.check()?;
        while let Some(conn) = self.pop() {
            if !conn.client.is_closed() {
                return Ok(conn);
            }
        }
        Ok(self.connect().await.map_err(PostgresFault::Connect)?)
    }

    fn pop(&self) -> Option<Conn> {
        self.idle().pop()
    }

    /// Keeps a connection for the next use case.
    pub(super) fn put_back(&self, conn: Conn) {
        if !conn.client.is_closed() {
            self.idle().push(conn);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a connection.
    pub(super) async fn connect(&self) -> Result<Conn, Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        // It ends with an error when the connection breaks, and every request on it fails with that.
        let task = tokio::spawn(async { drop(connection.await) }).abort_handle();
        let conn = Conn {
            client,
            statements: HashMap::new(),
            task,
        };
        conn.client.batch_execute(&settings()).await?;
        Ok(conn)
    }

    /// Looks at the error of a use case; begins an outage if the server cannot be reached or cannot serve.
    pub(super) fn failed(self: &Arc<Self>, error: StoreError) -> StoreError {
        let StoreError::Unavailable(source) = &error else {
            return error;
        };
        let is_outage = match (source.downcast_ref::<Error>(), source.downcast_ref()) {
            (Some(error), _) => is_outage(error),
            (_, Some(PostgresFault::Connect(error))) => {
                // The connections that there are serve on.
                error.code() != Some(&SqlState::TOO_MANY_CONNECTIONS)
            }
            (_, Some(PostgresFault::TimedOut)) => true,
            _ => false,
        };
        if !is_outage {
            return error;
        }
        if self.outage.begin(&**source) {
            self.idle().clear();
            self.recover();
        }
        self.outage.check().err().unwrap_or(error)
    }

    fn recover(self: &Arc<Self>) {
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let attempt = || async {
                let connecting = timeout(CONNECT_TIMEOUT, pool.connect());
                let conn = connecting.await.map_err(|_| PostgresFault::TimedOut)??;
                pool.put_back(conn);
                Ok::<_, PostgresFault>(())
            };
            pool.outage.until(attempt).await;
            // Nobody was told of changes meanwhile.
            pool.changed.notify_one();
        });
    }

    /// Listens for changes, as long as the runtime lives.
    pub(super) async fn listen(&self) {
        loop {
            // Not logged: the feed is asked regularly as well, and use cases report an outage.
            let _ = self.follow().await;
            sleep(jittered(Duration::from_millis(500))).await;
        }
    }

    async fn follow(&self) -> Result<(), Error> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
        let messages = async {
            loop {
                match poll_fn(|cx| connection.poll_message(cx)).await {
                    Some(Ok(AsyncMessage::Notification(_))) => self.changed.notify_one(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                }
            }
        };
        let listening = async {
            client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
            // What changed before is in the table.
            self.changed.notify_one();
            std::future::pending::<Result<(), Error>>().await
        };
        tokio::select! {
            ended = messages => ended,
            failed = listening => failed,
        }
    }
}

/// What every connection for use cases is set to.
fn settings() -> String {
    let statement = STATEMENT_TIMEOUT.as_millis();
    // A process that hangs in a transaction must not hold up the others for long.
    format!(
        "SET search_path = countersign; SET statement_timeout = {statement}; \
         SET idle_in_transaction_session_timeout = 2000; SET client_min_messages = warning"
    )
}

/// Whether the server cannot be reached or cannot serve anybody, so that the next use case would fail too.
fn is_outage(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // Not the server's word: the connection or its setup.
        return true;
    };
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
        ]
        .contains(code)
}
