//! Connections to PostgreSQL: deadpool keeps and lends them; this module makes them and detects outages.

use std::{
    future::{pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use deadpool_postgres::{
    BuildError, ClientWrapper, Connect, Manager, ManagerConfig, Object, Pool, PoolError,
    RecyclingMethod, Runtime, TimeoutType,
};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Error, SimpleQueryMessage, Statement, error::SqlState,
};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::AbortOnDropHandle;

use super::{
    COMMAND_TIMEOUT, PostgresFault, REACH,
    schema::{SEARCH_PATH, WRITER},
    url::{CONNECT_TIMEOUT, Servers},
};
use crate::records::{
    connection::outage::{Outage, jittered},
    store::engine::TimedOut,
    values::{Opening, Result, StoreError},
};

/// The purpose of a connection. A connection is never used for another purpose.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// Use cases of the store.
    UseCases,
    /// Nonces of the store; one more connection listens.
    Nonces,
}

impl Purpose {
    /// The most connections.
    const fn connections(self) -> usize {
        match self {
            Self::UseCases => 16,
            Self::Nonces => 3,
        }
    }
}

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
    pub(super) const fn for_opening(opening: Opening) -> Self {
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

/// The connections to a server, or to several that stand in for each other.
pub(super) struct PostgresPool {
    pub(super) connector: Connector,
    /// Those of each [`Purpose`].
    pools: [Pool; 2],
    outage: Outage,
    /// Notified when something may have changed.
    changed: Arc<Notify>,
}

/// A server, and how to use it. Connections are made on the thread of the store: the runtimes of callers may end before them.
#[derive(Clone)]
pub(super) struct Connector {
    /// The addresses and the login.
    pub(super) servers: Servers,
    /// TLS, if the addresses ask for it.
    pub(super) tls: MakeRustlsConnect,
    /// The runtime of the thread of the connections.
    pub(super) thread: Handle,
    /// The times that callers wait.
    pub(super) timeouts: Timeouts,
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let Self { servers, tls, .. } = self.clone();
        let settings = settings(self.timeouts);
        let connect = async move {
            let (client, connection) = servers.addressed().await.connect(tls).await?;
            // It ends with an error when the connection breaks, and every request on it fails with that.
            let task = tokio::spawn(async { drop(connection.await) });
            client.batch_execute(&settings).await?;
            Ok((client, task))
        };
        let connecting = AbortOnDropHandle::new(self.thread.spawn(connect));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected,
                // `unless_it_panics` makes an error of it.
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                // The store was closed; callers have a deadline.
                Err(_) => pending().await,
            }
        })
    }
}

/// Waits for what makes a connection. A panic on the way comes here through the pool, whose trait for connectors has no
/// error for it.
async fn unless_it_panics<T>(connecting: impl Future<Output = T>) -> Result<T, PostgresFault> {
    let mut connecting = pin!(connecting);
    poll_fn(|context| {
        // The future is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| connecting.as_mut().poll(context)));
        polled.map_or(Poll::Ready(Err(PostgresFault::ConnectPanicked)), |polled| {
            polled.map(Ok)
        })
    })
    .await
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
    /// No server is reached yet.
    ///
    /// # Errors
    /// The pool cannot be made.
    pub(super) fn new(connector: Connector, changed: Arc<Notify>) -> Result<Self, BuildError> {
        let timeouts = connector.timeouts;
        let pool = |purpose: Purpose| {
            let recycling_method = RecyclingMethod::Fast;
            let settings = ManagerConfig { recycling_method };
            let named = connector.servers.named.clone();
            let manager = Manager::from_connect(named, connector.clone(), settings);
            let pool = Pool::builder(manager)
                .max_size(purpose.connections())
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(timeouts.connection))
                .create_timeout(Some(CONNECT_TIMEOUT.max(timeouts.connection)));
            pool.build()
        };
        Ok(Self {
            pools: [pool(Purpose::UseCases)?, pool(Purpose::Nonces)?],
            connector,
            outage: Outage::none("postgres"),
            changed,
        })
    }

    /// Succeeds unless there is an outage.
    pub(super) fn check(&self) -> Result<()> {
        self.outage.check()
    }

    /// Lends a connection.
    pub(super) async fn take(&self, purpose: Purpose) -> Result<Conn> {
        self.outage.check()?;
        let taken = unless_it_panics(self.pools[purpose as usize].get()).await?;
        let taken = taken.map_err(|error| match error {
            PoolError::Backend(error) => PostgresFault::Connect(error).into(),
            PoolError::Timeout(TimeoutType::Wait) => PostgresFault::Overloaded.into(),
            PoolError::Timeout(_) => StoreError::from(TimedOut),
            error => StoreError::Unavailable(Box::new(error)),
        });
        Ok(Conn(Some(taken?)))
    }

    /// Makes a connection and closes it again.
    pub(super) async fn probe(&self) -> Result<()> {
        let connecting = self.connector.connect(&self.connector.servers.named);
        let (_, connection) = unless_it_panics(connecting).await??;
        connection.abort();
        Ok(())
    }

    /// Tries to reach a server, for longer than a request would, and looks at what its sessions are.
    ///
    /// # Errors
    /// The last failure.
    pub(super) async fn session(&self) -> Result<Session> {
        let session = timeout(REACH, self.examine()).await;
        session.unwrap_or_else(|_| Err(PostgresFault::Silent.into()))
    }

    /// A pooler gives a backend that is free to the next transaction, whoever begins it. While a second connection is in a
    /// transaction, either both have one backend, or the first connection has another one than before. After it, the next
    /// transactions of the first connection get the backend that the other one has given back, or take turns.
    async fn examine(&self) -> Result<Session> {
        let connect = async || -> Result<(Client, AbortOnDropHandle<()>)> {
            let connecting = self.connector.connect(&self.connector.servers.named);
            let (client, task) = unless_it_panics(connecting).await??;
            Ok((client, AbortOnDropHandle::new(task)))
        };
        let (client, _driven) = connect().await?;
        let encoding = first_value(&client, "SHOW server_encoding").await?;
        const BACKEND: &str = "SELECT pg_backend_pid()";
        let before = first_value(&client, BACKEND).await?;
        let (other, _driven) = connect().await?;
        let mut is_kept = true;
        for _ in 0..3 {
            other.batch_execute("BEGIN").await?;
            // Of a pooler with one backend, the first connection would wait for the end of that transaction.
            is_kept = is_kept
                && before != first_value(&other, BACKEND).await?
                && before == first_value(&client, BACKEND).await?;
            other.batch_execute("ROLLBACK").await?;
            for _ in 0..2 {
                is_kept = is_kept && before == first_value(&client, BACKEND).await?;
            }
        }
        Ok(Session { encoding, is_kept })
    }

    /// The session that keeps others from writing, as far as our role may see it.
    pub(super) async fn writer(&self) -> Option<String> {
        let conn = self.take(Purpose::UseCases).await.ok()?;
        let found = timeout(CONNECT_TIMEOUT, first_value(conn.client().ok()?, WRITER));
        found.await.ok()?.ok().filter(|found| !found.is_empty())
    }

    /// Examines an error; begins an outage if the server cannot be reached or cannot serve.
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
            (_, Some(PostgresFault::ConnectPanicked)) => true,
            _ => source.is::<TimedOut>(),
        };
        if !is_outage {
            return error;
        }
        if self.outage.begin(&**source) {
            for pool in &self.pools {
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
            let _ = unless_it_panics(self.follow()).await;
            sleep(jittered(Duration::from_millis(500))).await;
        }
    }

    async fn follow(&self) -> Result<()> {
        let connecting = async {
            let Connector { servers, tls, .. } = &self.connector;
            servers.addressed().await.connect(tls.clone()).await
        };
        // A server that accepts the connection and says nothing is not waited for.
        let connected = timeout(REACH, connecting).await;
        let (client, mut connection) = connected.map_err(|_| TimedOut)??;
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
            pending::<Result<(), Error>>().await
        };
        Ok(tokio::select! {
            ended = messages => ended,
            failed = listening => failed,
        }?)
    }
}

/// What the sessions of a server are.
pub(super) struct Session {
    /// `server_encoding`.
    pub(super) encoding: String,
    /// A connection has one session from its begin to its end.
    pub(super) is_kept: bool,
}

/// The first value that a query returns, or a batch with one query that returns any.
pub(super) async fn first_value(client: &Client, sql: &str) -> Result<String, Error> {
    let messages = client.simple_query(sql).await?;
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(value.unwrap_or_default().to_owned())
}

/// The settings of every connection.
fn settings(timeouts: Timeouts) -> String {
    let statement = statement_timeout(timeouts.request);
    // A process that hangs in a transaction must not block the others for long.
    let idle = statement.max(2000);
    format!(
        "SET search_path = {SEARCH_PATH}; SET statement_timeout = {statement}; SET idle_in_transaction_session_timeout = {idle}; \
         SET client_min_messages = warning"
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

#[cfg(test)]
mod tests {
    use rustls::{
        ClientConfig, RootCertStore,
        crypto::{CryptoProvider, GetRandomFailed, SecureRandom, aws_lc_rs},
    };
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::{super::url::PostgresUrl, *};

    /// A source of randomness that panics, as a bug in the code of connections would.
    #[derive(Debug)]
    struct Panics;

    impl SecureRandom for Panics {
        fn fill(&self, _: &mut [u8]) -> Result<(), GetRandomFailed> {
            panic!("a bug");
        }
    }

    /// A server that agrees to TLS, and the connections to it, each of which panics in the handshake.
    async fn panicking() -> Arc<PostgresPool> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 8];
                stream.read_exact(&mut request).await.unwrap();
                stream.write_all(b"S").await.unwrap();
            }
        });
        let provider = CryptoProvider {
            secure_random: &Panics,
            ..aws_lc_rs::default_provider()
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let url = format!("postgres://u@127.0.0.1:{port}/c?sslmode=require");
        let connector = Connector {
            servers: PostgresUrl::parse(&url).unwrap().connector().unwrap().0,
            tls: MakeRustlsConnect::new(tls),
            thread: Handle::current(),
            timeouts: Timeouts::for_opening(Opening::Serve),
        };
        Arc::new(PostgresPool::new(connector, Arc::default()).unwrap())
    }

    #[tokio::test]
    async fn panic_while_connecting_is_reported_and_begins_an_outage() {
        let is_panic = |error: &StoreError| match error {
            StoreError::Unavailable(source) => {
                matches!(source.downcast_ref(), Some(PostgresFault::ConnectPanicked))
            }
            _ => false,
        };
        let pool = panicking().await;
        let probed = pool.probe().await.unwrap_err();
        assert!(is_panic(&probed), "{probed:?}");
        // More often than the pool has connections: none is lost by a panic.
        for _ in 0..=Purpose::Nonces.connections() {
            let taken = pool.take(Purpose::Nonces).await.err().unwrap();
            assert!(is_panic(&taken), "{taken:?}");
        }
        assert!(pool.check().is_ok());
        pool.failed(probed);
        let down = pool.check().unwrap_err();
        let causes = crate::telemetry::log::causes::causes(&down);
        assert!(causes.contains("panicked"), "{causes}");
    }
}
