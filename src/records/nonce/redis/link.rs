//! The connection to the primary: finds it, keeps the connection, and replaces it when it fails.
//!
//! All calls share one connection and are pipelined over it. When the connection has broken, the next call looks up the
//! primary again. If that fails, or the server hangs, all calls fail at once until an attempt succeeds.
//!
//! A primary that the Sentinels have replaced may not know that, and serve on. Its successor treats all timestamps of a
//! window as lost, so that for this time no request can pass at both. Meanwhile the Sentinels are asked again.

use std::{
    collections::HashMap,
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, ServerErrorKind, Value,
    aio::MultiplexedConnection, cmd,
};
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Mutex,
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::{
    keys::STATE,
    url::{RedisLogin, RedisNode, RedisUrl, Sentinel},
};
use crate::{
    records::{
        connection::{
            io_thread::{IoThread, before},
            outage::{Outage, jittered},
        },
        values::{Result, StoreError, error::EngineFault},
    },
    wire::{outbound::Dialer, stream::HandshakeError},
};

/// The time that a call may take: callers are to get a response within a second.
const TIMEOUT: Duration = Duration::from_millis(900);
/// The time that one attempt to connect may take, from the first name looked up to the last command of the login.
const CONNECT: Duration = Duration::from_millis(900);
/// The time in which a Sentinel has to answer, a part of [`CONNECT`].
const SENTINEL: Duration = Duration::from_millis(300);
/// The time between two questions to the Sentinels whether the primary is still the same.
const CONFIRM_EVERY: Duration = Duration::from_secs(2);
/// The time for which a primary is used although no Sentinel answers: less than the clocks may be apart, which the
/// successor adds to the window.
const CONFIRM_WITHIN: Duration = Duration::from_secs(20);
/// The longest pause before a call connects again.
const PAUSE: Duration = Duration::from_millis(20);

/// Why Redis did not carry out a request.
#[derive(Debug, Error)]
pub(super) enum RedisFault {
    #[error("Redis did not answer in time")]
    TimedOut,
    #[error("Redis made no TLS connection in time; write redis:// if it has no TLS on that port")]
    TlsTimedOut,
    #[error("{0} is a replica, not the primary")]
    Replica(String),
    #[error("the Sentinels know no primary of {0}")]
    UnknownService(String),
    #[error("the Sentinels name different primaries of {0}")]
    Disagreement(String),
    #[error(
        "the user of nonce.url may not run INFO, which tells whether nonces are lost; give it +info in its ACL"
    )]
    InfoDenied(#[source] RedisError),
    /// The policy.
    #[error("{}", evicts(.0))]
    Evicts(String),
    #[error("{0} cannot be the name in a certificate")]
    Name(String),
    #[error("the connection to Redis failed")]
    Io(#[from] io::Error),
    #[error("Redis rejects the call")]
    Redis(#[from] RedisError),
}

impl EngineFault for RedisFault {}

/// The problem of a `maxmemory-policy`, and the fix.
pub(super) fn evicts(policy: &str) -> String {
    format!(
        "Redis has maxmemory-policy {policy}: when its memory is full it deletes used nonces, and their requests can be \
         replayed; set noeviction"
    )
}

/// A connection, and the task that drives it.
type Driven = (MultiplexedConnection, AbortOnDropHandle<()>);

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A request to the primary.
pub(super) trait Request: Send + Sync + 'static {
    /// Sends it and returns the reply. `is_durable`: the settings of the server keep every write at a power loss.
    fn send(
        &self,
        connection: &mut MultiplexedConnection,
        is_durable: bool,
    ) -> impl Future<Output = Result<Value, RedisError>> + Send;
}

impl Request for Cmd {
    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        _: bool,
    ) -> Result<Value, RedisError> {
        self.query_async(connection).await
    }
}

/// The connection to the primary, made again when it has ended; it is closed when this is dropped.
pub(super) struct Link {
    thread: IoThread,
    shared: Arc<LinkState>,
}

struct LinkState {
    url: RedisUrl,
    tls: Option<TlsConnector>,
    /// `None`: the next call connects.
    connection: Mutex<Option<Shareable>>,
    outage: Outage,
}

/// A connection that is up.
#[derive(Clone)]
struct Shareable {
    connection: MultiplexedConnection,
    node: Arc<RedisNode>,
    is_durable: bool,
    /// Ends once no task has the connection.
    driver: Arc<AbortOnDropHandle<()>>,
}

impl Link {
    /// Starts the thread of the connection.
    pub(super) fn new(url: RedisUrl, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let thread = IoThread::start("nonces-redis")?;
        let shared = Arc::new(LinkState {
            url,
            tls: tls.map(TlsConnector::from),
            connection: Mutex::default(),
            outage: Outage::none("redis of nonce.url"),
        });
        if let Some(sentinel) = shared.url.sentinel.clone() {
            thread.spawn(Arc::clone(&shared).confirm(sentinel));
        }
        Ok(Self { thread, shared })
    }

    /// Connects within a second.
    pub(super) async fn connect(&self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let connect = async move { Ok(shared.put_up().await?) };
        self.thread.run(connect).await
    }

    /// The thread of the connection.
    pub(super) const fn thread(&self) -> &IoThread {
        &self.thread
    }

    /// Whether there is no outage.
    ///
    /// # Errors
    /// The outage, for callers.
    pub(super) fn check(&self) -> Result<()> {
        self.shared.outage.check()
    }

    /// Asks the primary. A request that was sent may be carried out although its caller no longer waits.
    pub(super) async fn call(&self, request: impl Request) -> Result<Value> {
        let shared = Arc::clone(&self.shared);
        let call = async move { shared.call(&request, pin!(sleep(TIMEOUT))).await };
        self.thread.run(call).await
    }

    /// As [`Self::call`], from the thread of the connection and until `deadline`.
    pub(super) async fn call_here(
        &self,
        request: &impl Request,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Value> {
        self.shared.call(request, deadline).await
    }
}

impl LinkState {
    async fn call(
        self: &Arc<Self>,
        request: &impl Request,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Value> {
        self.outage.check()?;
        let mut used = None;
        let called = before(deadline, async {
            let mut up = self.connected().await?;
            used = Some(Arc::clone(&up.driver));
            let sent = request.send(&mut up.connection, up.is_durable).await;
            if sent.as_ref().is_err_and(ends_connection) {
                self.forget(&up);
                self.outage.check()?;
            }
            Ok(sent.map_err(RedisFault::from)?)
        });
        match called.await {
            Some(called) => called,
            // Another call has replaced the connection, or is about to.
            None if used.is_some_and(|used| !self.is_current(&used)) => {
                Err(RedisFault::TimedOut.into())
            }
            None => Err(self.failed(RedisFault::TimedOut)),
        }
    }

    /// The connection, a new one if it has ended.
    async fn connected(self: &Arc<Self>) -> Result<Shareable> {
        let mut connection = self.connection.lock().await;
        if let Some(up) = connection.as_ref().filter(|up| !up.driver.is_finished()) {
            return Ok(up.clone());
        }
        // An outage may have begun while this call waited for the lock.
        self.outage.check()?;
        sleep(jittered(PAUSE)).await;
        match self.connect().await {
            Ok(up) => Ok(connection.insert(up).clone()),
            Err(fault) => Err(self.failed(fault)),
        }
    }

    fn is_current(&self, driver: &Arc<AbortOnDropHandle<()>>) -> bool {
        let connection = self.connection.try_lock();
        connection.is_ok_and(|up| {
            up.as_ref()
                .is_some_and(|up| Arc::ptr_eq(&up.driver, driver))
        })
    }

    /// Ends a connection: the next call makes another one.
    fn forget(&self, up: &Shareable) {
        up.driver.abort();
        if let Ok(mut connection) = self.connection.try_lock() {
            connection.take_if(|current| Arc::ptr_eq(&current.driver, &up.driver));
        }
    }

    /// Begins an outage, which ends when a new connection is up; returns the error for callers.
    fn failed(self: &Arc<Self>, fault: RedisFault) -> StoreError {
        if self.outage.begin(&fault) {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.outage.until(|| shared.put_up()).await });
        }
        self.outage.check().err().unwrap_or_else(|| fault.into())
    }

    /// Connects and gives the connection to all calls.
    async fn put_up(self: &Arc<Self>) -> Result<(), RedisFault> {
        let up = self.connect().await?;
        if let Some(old) = self.connection.lock().await.replace(up) {
            old.driver.abort();
        }
        Ok(())
    }

    /// Ends the connection when the Sentinels name another primary, name several, or do not answer for
    /// [`CONFIRM_WITHIN`].
    async fn confirm(self: Arc<Self>, sentinel: Sentinel) {
        let mut confirmed = Instant::now();
        loop {
            sleep(CONFIRM_EVERY).await;
            let up = self.connection.lock().await.clone();
            let Some(up) = up.filter(|up| !up.driver.is_finished()) else {
                // The next connection is to the primary that the Sentinels name then.
                confirmed = Instant::now();
                continue;
            };
            let cause = match self.ask_sentinels(&sentinel).await {
                Ok(node) if node == *up.node => {
                    confirmed = Instant::now();
                    continue;
                }
                Ok((host, port)) => format!("the Sentinels name {host}:{port}"),
                Err(fault @ RedisFault::Disagreement(_)) => fault.to_string(),
                Err(_) if confirmed.elapsed() < CONFIRM_WITHIN => continue,
                Err(_) => "no Sentinel answers".to_owned(),
            };
            let (host, port) = &*up.node;
            tracing::warn!(cause, "{host}:{port} is no longer used");
            self.forget(&up);
        }
    }

    /// Finds the primary and connects to it, within [`CONNECT`].
    async fn connect(self: &Arc<Self>) -> Result<Shareable, RedisFault> {
        let (nodes, time) = match &self.url.sentinel {
            None => (self.url.nodes.clone(), CONNECT),
            Some(sentinel) => {
                let primary = self.ask_sentinels(sentinel).await?;
                (vec![primary], CONNECT - SENTINEL)
            }
        };
        // A node that hangs must not keep the others from being asked.
        let share = time / u32::try_from(nodes.len()).unwrap_or(1).max(1);
        let mut fault = match self.tls {
            Some(_) => RedisFault::TlsTimedOut,
            None => RedisFault::TimedOut,
        };
        for node in nodes {
            let attempt = async {
                let connected = self.connect_to_primary(&node).await;
                let moved = match &connected {
                    Err(RedisFault::Redis(error)) if self.url.is_cluster => moved(error, &node),
                    _ => None,
                };
                match moved {
                    Some(other) => (self.connect_to_primary(&other).await, other),
                    None => (connected, node.clone()),
                }
            };
            match timeout(share, attempt).await {
                Ok((Ok((mut connection, driver)), node)) => {
                    let is_durable = timeout(CONNECT, is_durable(&mut connection)).await;
                    return Ok(Shareable {
                        connection,
                        node: node.into(),
                        is_durable: is_durable.unwrap_or(false),
                        driver: driver.into(),
                    });
                }
                Ok((Err(error), _)) => fault = error,
                Err(_) => {}
            }
        }
        Err(fault)
    }

    /// The primary that the Sentinels name. All that answer must name the same: one that is cut off from the others may
    /// name the former one.
    async fn ask_sentinels(self: &Arc<Self>, sentinel: &Sentinel) -> Result<RedisNode, RedisFault> {
        let mut asked = JoinSet::new();
        for node in self.url.nodes.clone() {
            let (shared, sentinel) = (Arc::clone(self), sentinel.clone());
            asked.spawn(async move {
                let answer = timeout(SENTINEL, shared.ask_sentinel(&node, &sentinel)).await;
                answer.unwrap_or(Err(RedisFault::TimedOut))
            });
        }
        let (mut named, mut fault) = (None, RedisFault::TimedOut);
        while let Some(answer) = asked.join_next().await {
            match answer.unwrap_or(Err(RedisFault::TimedOut)) {
                Ok(node) if named.as_ref().is_none_or(|known| *known == node) => {
                    named = Some(node);
                }
                Ok(_) => return Err(RedisFault::Disagreement(sentinel.service.clone())),
                Err(error) => fault = error,
            }
        }
        named.ok_or(fault)
    }

    /// The time for one node: one that hangs must not keep the others from being asked.
    fn share(&self) -> Duration {
        CONNECT / u32::try_from(self.url.nodes.len()).unwrap_or(1).max(1)
    }

    async fn ask_sentinel(
        &self,
        node: &RedisNode,
        Sentinel { service, login }: &Sentinel,
    ) -> Result<RedisNode, RedisFault> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
        let (connection, _driver) = &mut self.dial(node, login, 0).await?;
        let primary: Option<RedisNode> = question.query_async(connection).await?;
        primary.ok_or_else(|| RedisFault::UnknownService(service.clone()))
    }

    async fn connect_to_primary(&self, node: &RedisNode) -> Result<Driven, RedisFault> {
        let RedisUrl { login, db, .. } = &self.url;
        let mut driven = self.dial(node, login, *db).await?;
        let connection = &mut driven.0;
        // Reading a key shows that the data is loaded and, in a Cluster, which node has it. HELLO reports the role and
        // needs no permission.
        let mut exists = cmd("EXISTS");
        let _: bool = exists.arg(STATE).query_async(connection).await?;
        if !is_primary(&cmd("HELLO").query_async(connection).await?) {
            return Err(RedisFault::Replica(format!("{}:{}", node.0, node.1)));
        }
        // The script needs INFO as well, so every user that can record nonces may ask.
        let memory = cmd("INFO").arg("memory").query_async(connection).await;
        let memory: String = memory.map_err(|error| match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoPerm) => RedisFault::InfoDenied(error),
            _ => error.into(),
        })?;
        match setting(&memory, "maxmemory_policy") {
            "noeviction" => Ok(driven),
            other => Err(RedisFault::Evicts(other.to_owned())),
        }
    }

    async fn dial(
        &self,
        (host, port): &RedisNode,
        login: &RedisLogin,
        db: i64,
    ) -> Result<Driven, RedisFault> {
        let deadline = Instant::now() + self.share();
        let tcp = Dialer::default().connect(host, *port, deadline).await?;
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| RedisFault::Name(host.clone()))?;
                let tls = tls.connect(name, tcp).await;
                Box::new(tls.map_err(HandshakeError::named)?)
            }
        };
        let mut info = RedisConnectionInfo::default()
            .set_db(db)
            .set_skip_set_lib_name();
        if let Some(user) = &login.user {
            info = info.set_username(user);
        }
        if let Some(password) = &login.password {
            info = info.set_password(&*password.expose_text());
        }
        // The callers set deadlines.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None);
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await?;
        Ok((connection, AbortOnDropHandle::new(tokio::spawn(driver))))
    }
}

/// The node of a Cluster that has the nonces, if `node` redirects to another one.
fn moved(error: &RedisError, node: &RedisNode) -> Option<RedisNode> {
    let (address, _) = error.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    // A node that does not know its own name is where it was asked.
    let host = match host {
        "" | "?" => &node.0,
        host => host,
    };
    Some((host.to_owned(), port.parse().ok()?))
}

/// Whether every write is on the disk before its reply is sent; `false` if we may not read the settings.
async fn is_durable(connection: &mut MultiplexedConnection) -> bool {
    let mut ask = cmd("CONFIG");
    let settings = ask.arg("GET").arg("append*").query_async(connection).await;
    let settings: HashMap<String, String> = settings.unwrap_or_default();
    let is = |name, value| settings.get(name).is_some_and(|found| found == value);
    is("appendonly", "yes") && is("appendfsync", "always")
}

/// A value in a reply to INFO; "unknown" if it is not there.
fn setting<'i>(info: &'i str, name: &str) -> &'i str {
    let pairs = info
        .lines()
        .filter_map(|line| line.trim_end().split_once(':'));
    let mut values = pairs.filter_map(|(found, value)| (found == name).then_some(value));
    values.next().unwrap_or("unknown")
}

fn is_primary(hello: &Value) -> bool {
    let Value::Array(fields) = hello else {
        return false;
    };
    fields.chunks_exact(2).any(|pair| {
        matches!(pair, [Value::BulkString(name), Value::BulkString(role)]
            if name == b"role" && role == b"master")
    })
}

/// Whether another connection may get another reply: this one is broken, or its server is no longer the primary.
fn ends_connection(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly};
    match error.kind() {
        ErrorKind::Server(kind) => {
            matches!(
                kind,
                Ask | BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly
            )
        }
        ErrorKind::Io | ErrorKind::Parse => true,
        _ => false,
    }
}
