//! Connections to PostgreSQL: deadpool keeps and lends them; this module makes them and detects outages.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use deadpool_postgres::{
    ClientWrapper, Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
    Runtime, TimeoutType,
};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Statement, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    COMMAND_TIMEOUT, PostgresFault,
    url::{CONNECT_TIMEOUT, addressed},
};
use crate::store::{
    Opening, Result, StoreError,
    open::OpenProblem,
    remote::{Outage, jittered},
    sql::TimedOut,
};

/// The most connections for use cases.
const CONNECTIONS: usize = 16;
/// The most connections for nonces; one more listens.
const NONCE_CONNECTIONS: usize = 3;

/// The times that callers wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// For a connection while all are in use.
    pub(super) connection: Duration,
    /// For a use case on the way of a request.
    pub(super) request: Duration,
}

impl Timeouts {
    /// Less than a second for requests that are served, and more for a command.
    pub(super) const fn of(opening: Opening) -> Self {
        match opening {
            // `check` rejects what a start would reject.
            Opening::Serve | Opening::Check => Self {
                connection: Duration::from_millis(300),
                request: Duration::from_millis(625),
            },
            _ => Self {
                connection: COMMAND_TIMEOUT,
                request: COMMAND_TIMEOUT,
            },
        }
    }
}

/// The time that a statement may take within `limit`, in milliseconds. The server ends it before the caller gives up: a
/// slow statement is not an outage, but a server that hangs is one.
pub(super) const fn statement_timeout(limit: Duration) -> u128 {
    limit.as_millis() * 4 / 5
}

/// The connections of a store.
pub(super) struct PostgresPool {
    config: Config,
    connector: Connector,
    /// The times that callers wait.
    pub(super) timeouts: Timeouts,
    use_cases: Pool,
    nonces: Pool,
    outage: Outage,
    /// Notified when something may have changed.
    changed: Arc<Notify>,
}

/// Makes connections on the thread of the store: the runtimes of callers may end before them.
#[derive(Clone)]
struct Connector {
    tls: MakeRustlsConnect,
    thread: Handle,
    timeouts: Timeouts,
}

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move {
            let mut connecting = pin!(async {
                let config = addressed(&config).await;
                let (client, connection) = config.connect(self.tls.clone()).await?;
                // It ends with an error when the connection breaks, and every request on it fails with that.
                let task = tokio::spawn(async { drop(connection.await) });
                client.batch_execute(&settings(self.timeouts)).await?;
                Ok((client, task))
            });
            poll_fn(|context| {
                let _entered = self.thread.enter();
                connecting.as_mut().poll(context)
            })
            .await
        })
    }
}

/// A connection that is lent. Dropped before [`Conn::put_back`], it is closed, whatever it is waiting for.
pub(super) struct Conn(Option<Object>);

impl Conn {
    /// The client.
    pub(super) fn client(&self) -> Result<&ClientWrapper, PostgresFault> {
        self.0.as_deref().ok_or(PostgresFault::PutBack)
    }

    /// The client and a statement, which is prepared at its first use.
    pub(super) async fn prepare(&self, sql: &str) -> Result<(&ClientWrapper, Statement)> {
        let client = self.client()?;
        Ok((client, client.prepare_cached(sql).await?))
    }

    /// Returns the connection to the pool.
    pub(super) fn put_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

impl PostgresPool {
    pub(super) fn new(
        config: Config,
        tls: MakeRustlsConnect,
        thread: Handle,
        changed: Arc<Notify>,
        timeouts: Timeouts,
    ) -> Result<Self, OpenProblem> {
        let connector = Connector {
            tls,
            thread,
            timeouts,
        };
        let pool = |size| {
            let recycling_method = RecyclingMethod::Fast;
            let settings = ManagerConfig { recycling_method };
            let manager = Manager::from_connect(config.clone(), connector.clone(), settings);
            let pool = Pool::builder(manager)
                .max_size(size)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(timeouts.connection))
                .create_timeout(Some(CONNECT_TIMEOUT.max(timeouts.connection)));
            pool.build()
                .map_err(|error| OpenProblem::Failed(error.into()))
        };
        Ok(Self {
            use_cases: pool(CONNECTIONS)?,
            nonces: pool(NONCE_CONNECTIONS)?,
            config,
            connector,
            timeouts,
            outage: Outage::none("postgres"),
            changed,
        })
    }

    /// Succeeds unless there is an outage.
    pub(super) fn check(&self) -> Result<()> {
        self.outage.check()
    }

    /// Lends a connection for a use case.
    pub(super) async fn take(&self) -> Result<Conn> {
        self.take_from(&self.use_cases).await
    }

    /// Lends a connection for nonces.
    pub(super) async fn take_for_nonces(&self) -> Result<Conn> {
        self.take_from(&self.nonces).await
    }

    async fn take_from(&self, pool: &Pool) -> Result<Conn> {
        self.outage.check()?;
        let taken = pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => PostgresFault::Connect(error).into(),
            PoolError::Timeout(TimeoutType::Wait) => PostgresFault::Overloaded.into(),
            PoolError::Timeout(_) => StoreError::from(TimedOut),
            error => StoreError::Unavailable(Box::new(error)),
        });
        Ok(Conn(Some(taken?)))
    }

    /// Makes a connection and closes it again.
    pub(super) async fn probe(&self) -> Result<()> {
        let (_, connection) = self.connector.connect(&self.config).await?;
        connection.abort();
        Ok(())
    }

    /// Looks at an error; begins an outage if the server cannot be reached or cannot serve.
    pub(super) fn failed(self: &Arc<Self>, error: StoreError) -> StoreError {
        let StoreError::Unavailable(source) = &error else {
            return error;
        };
        let is_outage = match (source.downcast_ref::<Error>(), source.downcast_ref()) {
            (Some(error), _) => is_outage(error),
            (_, Some(PostgresFault::Connect(error))) => {
                // Existing connections still serve.
                error.code() != Some(&SqlState::TOO_MANY_CONNECTIONS)
            }
            _ => source.is::<TimedOut>(),
        };
        if !is_outage {
            return error;
        }
        if self.outage.begin(&**source) {
            for pool in [&self.use_cases, &self.nonces] {
                pool.retain(|_, _| false);
            }
            let pool = Arc::clone(self);
            self.connector.thread.spawn(async move {
                let probe = async || {
                    let probing = timeout(CONNECT_TIMEOUT, pool.probe()).await;
                    probing.unwrap_or_else(|_| Err(TimedOut.into()))
                };
                pool.outage.until(probe).await;
                // No change was reported meanwhile.
                pool.changed.notify_one();
            });
        }
        self.outage.check().err().unwrap_or(error)
    }

    /// Listens for changes, as long as the thread lives.
    pub(super) async fn listen(self: Arc<Self>) {
        loop {
            // Not logged: the feed is asked regularly as well, and use cases report an outage.
            let _ = self.follow().await;
            sleep(jittered(Duration::from_millis(500))).await;
        }
    }

    async fn follow(&self) -> Result<(), Error> {
        let config = addressed(&self.config).await;
        let (client, mut connection) = config.connect(self.connector.tls.clone()).await?;
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
            client.batch_execute("LISTEN countersign").await?;
            // Earlier changes are in the table.
            self.changed.notify_one();
            std::future::pending::<Result<(), Error>>().await
        };
        tokio::select! {
            ended = messages => ended,
            failed = listening => failed,
        }
    }
}

/// The settings of every connection for use cases.
fn settings(timeouts: Timeouts) -> String {
    let statement = statement_timeout(timeouts.request);
    // A process that hangs in a transaction must not block the others for long.
    let idle = statement.max(2000);
    format!(
        "SET search_path = countersign; SET statement_timeout = {statement}; \
         SET idle_in_transaction_session_timeout = {idle}; SET client_min_messages = warning"
    )
}

/// Whether the server cannot be reached or cannot serve anybody, so that the next use case would fail too.
fn is_outage(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // Not an error of the server: the connection or its setup failed.
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
