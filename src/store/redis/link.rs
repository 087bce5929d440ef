//! The connection to the primary: found, kept, replaced when it fails.
//!
//! All calls share one connection and are pipelined over it. When the connection breaks, the primary is looked up
//! again. Calls wait for the first attempt; if that fails, or the server hangs, they fail at once until an attempt
//! succeeds.

use std::{
    collections::HashMap,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisConnectionInfo, RedisError,
    ServerErrorKind, Value, aio::MultiplexedConnection, cmd,
};
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{Notify, Semaphore, watch},
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::TlsConnector;

use super::{
    nonces::STATE,
    target::{RedisLogin, RedisNode, Target, Topology},
};
use crate::store::{
    StoreError,
    remote::{Outage, Remote, before, jittered},
};

/// How long a call may take: callers are to get a response within a second.
const TIMEOUT: Duration = Duration::from_millis(900);
/// How long one attempt to connect may take, from the first name looked up to the last command of the login.
const CONNECT: Duration = Duration::from_millis(900);
/// The longest pause before a cut connection is replaced.
const PAUSE: Duration = Duration::from_millis(20);
/// Calls that may be under way: more than connections are allowed by default.
const MOST_CALLS: usize = 16_384;

/// Why Redis did not do what it was asked.
#[derive(Debug, Error)]
pub(super) enum RedisFault {
    #[error("Redis did not answer in time")]
    TimedOut,
    #[error("too many callers wait for Redis")]
    Overloaded,
    #[error("{0} is a replica, not the primary")]
    Replica(String),
    #[error("the Sentinels know no primary of {0}")]
    UnknownService(String),
    #[error("no node of the Cluster has the slot of the nonces")]
    NoSlot,
    #[error("{0} cannot be the name in a certificate")]
    Name(String),
    #[error("the connection to Redis failed")]
    Io(#[from] io::Error),
    #[error("Redis rejects the call")]
    Redis(#[from] RedisError),
}

impl RedisFault {
    fn cut() -> Self {
        Self::Io(io::ErrorKind::ConnectionReset.into())
    }
}

impl From<RedisFault> for StoreError {
    fn from(fault: RedisFault) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// What the primary is asked.
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

/// The running connection; it is closed when this is dropped.
pub(super) struct Link {
    remote: Remote,
    shared: Arc<LinkState>,
}

struct LinkState {
    target: Target,
    tls: Option<TlsConnector>,
    /// `None`: broken, and the first attempt to connect again is under way.
    connection: watch::Sender<Option<Shareable>>,
    outage: Outage,
    calls: Semaphore,
}

/// A connection that is up.
#[derive(Clone)]
struct Shareable {
    connection: MultiplexedConnection,
    is_durable: bool,
    /// Notified by a call that finds that it must be replaced.
    broken: Arc<Notify>,
}

impl Link {
    /// Starts the thread of the connection.
    pub(super) fn new(target: Target, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        Ok(Self {
            remote: Remote::start("nonces-redis")?,
            shared: Arc::new(LinkState {
                target,
                tls: tls.map(TlsConnector::from),
                connection: watch::Sender::new(None),
                outage: Outage::none("redis of nonce.url"),
                calls: Semaphore::new(MOST_CALLS),
            }),
        })
    }

    /// Connects, and keeps the connection from then on. Blocks the thread for a second at most.
    pub(super) fn connect(&self) -> Result<(), RedisFault> {
        let shared = Arc::clone(&self.shared);
        let driver = self.remote.wait_for(async move { shared.put_up().await });
        let driver = driver.ok_or_else(RedisFault::cut)??;
        let shared = Arc::clone(&self.shared);
        self.remote.spawn(async move { shared.keep(driver).await });
        Ok(())
    }

    /// The thread of the connection.
    pub(super) const fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Whether there is no outage.
    ///
    /// # Errors
    /// The outage, for callers.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.shared.outage.check()
    }

    /// Asks the primary. A request that was sent is carried out although nobody waits any more.
    pub(super) async fn call(&self, request: impl Request) -> Result<Value, StoreError> {
        let shared = Arc::clone(&self.shared);
        let call = async move { shared.call(&request, pin!(sleep(TIMEOUT))).await };
        self.remote.run(call).await
    }

    /// As [`Self::call`], from the thread of the connection and until `deadline`.
    pub(super) async fn call_here(
        &self,
        request: &impl Request,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Value, StoreError> {
        self.shared.call(request, deadline).await
    }
}

impl LinkState {
    async fn call(
        &self,
        request: &impl Request,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Value, StoreError> {
        self.outage.check()?;
        let _permit = self
            .calls
            .try_acquire()
            .map_err(|_| RedisFault::Overloaded)?;
        let mut connections = self.connection.subscribe();
        let up = before(deadline.as_mut(), connections.wait_for(Option::is_some)).await;
        let Some(Ok(Some(Shareable {
            mut connection,
            is_durable,
            broken,
        }))) = up.map(|up| up.map(|up| up.clone()))
        else {
            self.outage.check()?;
            return Err(RedisFault::TimedOut.into());
        };
        match before(deadline, request.send(&mut connection, is_durable)).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                if is_of_the_connection(&error) {
                    broken.notify_one();
                    self.outage.check()?;
                }
                Err(RedisFault::from(error).into())
            }
            None => {
                // All of this is on one thread, so that `keep` cannot replace the connection in between.
                if self.is_current(&broken) {
                    self.outage.begin(&RedisFault::TimedOut);
                    broken.notify_one();
                }
                self.outage.check()?;
                Err(RedisFault::TimedOut.into())
            }
        }
    }

    fn is_current(&self, broken: &Arc<Notify>) -> bool {
        let current = self.connection.borrow();
        current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.broken, broken))
    }

    /// Drives the connection, and replaces it whenever it breaks.
    async fn keep(&self, (mut driver, mut broken): (Driver, Arc<Notify>)) {
        loop {
            tokio::select! {
                () = driver => {}
                () = broken.notified() => {}
            }
            self.connection.send_replace(None);
            // After a timeout there is an outage already.
            let connected = match self.outage.check() {
                Ok(()) => {
                    sleep(jittered(PAUSE)).await;
                    self.put_up().await
                }
                Err(_) => Err(RedisFault::TimedOut),
            };
            (driver, broken) = match connected {
                Ok(connected) => connected,
                Err(fault) => {
                    self.outage.begin(&fault);
                    self.outage.until(|| self.put_up()).await
                }
            };
        }
    }

    /// Connects and gives the connection to all calls.
    async fn put_up(&self) -> Result<(Driver, Arc<Notify>), RedisFault> {
        let (mut connection, mut driver) = self.connect().await?;
        let is_durable = is_durable(&mut connection, &mut driver);
        let is_durable = timeout(CONNECT, is_durable).await.unwrap_or(false);
        let broken = Arc::new(Notify::new());
        self.connection.send_replace(Some(Shareable {
            connection,
            is_durable,
            broken: Arc::clone(&broken),
        }));
        Ok((driver, broken))
    }

    /// Finds the primary and connects to it, within [`CONNECT`].
    async fn connect(&self) -> Result<(MultiplexedConnection, Driver), RedisFault> {
        let Target {
            nodes,
            topology,
            login,
            ..
        } = &self.target;
        // A node that hangs must not keep the others from being asked.
        let share = CONNECT / u32::try_from(nodes.len()).unwrap_or(1).max(1);
        let mut fault = RedisFault::TimedOut;
        for node in nodes {
            let attempt = async {
                let primary = match topology {
                    Topology::Single => node.clone(),
                    Topology::Sentinel { service, login } => {
                        self.ask_sentinel(node, service, login).await?
                    }
                    Topology::Cluster => self.ask_cluster(node).await?,
                };
                self.connect_to_primary(&primary, login).await
            };
            match timeout(share, attempt).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => fault = error,
                Err(_) => {}
            }
        }
        Err(fault)
    }

    async fn ask_sentinel(
        &self,
        node: &RedisNode,
        service: &str,
        login: &RedisLogin,
    ) -> Result<RedisNode, RedisFault> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
        let (mut connection, mut driver) = self.dial(node, login, 0).await?;
        let asked = question.query_async(&mut connection);
        let primary: Option<RedisNode> = driven(&mut driver, asked).await?;
        primary.ok_or_else(|| RedisFault::UnknownService(service.to_owned()))
    }

    async fn ask_cluster(&self, node: &RedisNode) -> Result<RedisNode, RedisFault> {
        let (mut connection, mut driver) = self.dial(node, &self.target.login, 0).await?;
        let mut slot = cmd("CLUSTER");
        slot.arg("KEYSLOT").arg(STATE);
        let mut slots = cmd("CLUSTER");
        slots.arg("SLOTS");
        let asked = async {
            let slot: u16 = slot.query_async(&mut connection).await?;
            let ranges: Vec<Vec<Value>> = slots.query_async(&mut connection).await?;
            Ok::<_, RedisError>((slot, ranges))
        };
        let (slot, ranges) = driven(&mut driver, asked).await?;
        for range in ranges {
            let [first, last, primary, ..] = &*range else {
                continue;
            };
            let (first, last) = (
                u16::from_redis_value_ref(first),
                u16::from_redis_value_ref(last),
            );
            let (Ok(first), Ok(last), Value::Array(primary)) = (first, last, primary) else {
                continue;
            };
            if let ([host, port, ..], true) = (&**primary, (first..=last).contains(&slot)) {
                // A node that does not know its own name is where it was asked.
                let host: Option<String> =
                    FromRedisValue::from_redis_value_ref(host).map_err(RedisError::from)?;
                let host = host.filter(|host| !host.is_empty() && host != "?");
                let port = u16::from_redis_value_ref(port).map_err(RedisError::from)?;
                return Ok((host.unwrap_or_else(|| node.0.clone()), port));
            }
        }
        Err(RedisFault::NoSlot)
    }

    async fn connect_to_primary(
        &self,
        node: &RedisNode,
        login: &RedisLogin,
    ) -> Result<(MultiplexedConnection, Driver), RedisFault> {
        let (mut connection, mut driver) = self.dial(node, login, self.target.db).await?;
        // HELLO reports the role and needs no permission. Reading a key shows that the data is loaded.
        let mut first = redis::pipe();
        first.cmd("HELLO").cmd("EXISTS").arg(STATE);
        let asked = first.query_async(&mut connection);
        let (hello, _): (Value, bool) = driven(&mut driver, asked).await?;
        if !is_primary(&hello) {
            return Err(RedisFault::Replica(format!("{}:{}", node.0, node.1)));
        }
        Ok((connection, driver))
    }

    async fn dial(
        &self,
        (host, port): &RedisNode,
        login: &RedisLogin,
        db: i64,
    ) -> Result<(MultiplexedConnection, Driver), RedisFault> {
        let tcp = TcpStream::connect((host.as_str(), *port)).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| RedisFault::Name(host.clone()))?;
                Box::new(tls.connect(name, tcp).await?)
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
        Ok((connection, Box::pin(driver)))
    }
}

/// What is asked over a connection that `driver` drives.
async fn driven<T>(
    driver: &mut Driver,
    asked: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, RedisFault> {
    tokio::select! {
        answer = asked => Ok(answer?),
        () = driver => Err(RedisFault::cut()),
    }
}

/// Whether every write is on the disk before its reply is sent; no, if we may not read the settings.
async fn is_durable(connection: &mut MultiplexedConnection, driver: &mut Driver) -> bool {
    let mut ask = cmd("CONFIG");
    ask.arg("GET").arg("append*");
    let settings = driven(driver, ask.query_async(connection)).await;
    let settings: HashMap<String, String> = settings.unwrap_or_default();
    let is = |name, value| settings.get(name).is_some_and(|found| found == value);
    is("appendonly", "yes") && is("appendfsync", "always")
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

/// Whether another connection may be answered otherwise: this one is broken, or its server is not the primary any more.
fn is_of_the_connection(error: &RedisError) -> bool {
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
