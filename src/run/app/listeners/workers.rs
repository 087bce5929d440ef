//! The worker threads: one runtime each, with its own listeners, its own connections to the API and its own counters.

use std::{
    io,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwap;
use socket2::Socket;
use tokio::{
    runtime::LocalOptions,
    task::spawn_local,
    time::{interval, sleep},
};

use super::bound::BoundListener;
use crate::{
    gateway::{
        forward_auth::ForwardAuthHandler,
        live::{Phase, Shared},
        proxy::Worker,
    },
    telemetry::heartbeats::Heartbeats,
    wire::server::{
        bounds::Bounds,
        listener::{self, AcceptRules},
        tls::Tls,
    },
};

/// The time between two checks of unused connections to the API.
const EVICT_EVERY: Duration = Duration::from_secs(1);

/// The time between two checks whether the last requests are decided.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The parts that every worker uses.
#[derive(Clone)]
pub struct Common {
    /// The shared state of the workers.
    pub shared: Arc<Shared>,
    /// The limits on connections.
    pub bounds: Arc<Bounds>,
    /// The limits on connections to the listener for forward-auth.
    pub forward_auth_bounds: Arc<Bounds>,
    /// TLS as it is now; `None`: the listener speaks plain HTTP.
    pub tls: Option<Arc<ArcSwap<Tls>>>,
    /// The public listeners speak the PROXY protocol.
    pub proxy_protocol: bool,
    /// The interval at which each worker shows that it runs.
    pub beat: Duration,
    /// The last heartbeats of the workers.
    pub heartbeats: Arc<Heartbeats>,
    /// Workers that may still use nonces or the store.
    pub staying: Arc<AtomicUsize>,
}

impl Common {
    /// The connections that are open to the workers.
    pub fn open_connections(&self) -> usize {
        self.all_bounds().map(Bounds::open).sum()
    }

    /// The bounds of every listener of the workers.
    pub fn all_bounds(&self) -> impl Iterator<Item = &Bounds> {
        [&*self.bounds, &*self.forward_auth_bounds].into_iter()
    }
}

/// The listeners of all workers, bound.
#[derive(Default)]
pub struct Listeners {
    by_worker: Vec<Vec<Socket>>,
    is_passed: bool,
    /// The bound addresses, in the order of the configuration.
    pub addresses: Vec<SocketAddr>,
    /// The one for forward-auth, which all workers share.
    pub forward_auth: Option<BoundListener>,
}

impl Listeners {
    /// Binds each address once for each worker.
    ///
    /// # Errors
    /// The address that cannot be bound, and why.
    pub fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Self, (SocketAddr, io::Error)> {
        let mut by_worker: Vec<Vec<Socket>> = (0..workers).map(|_| Vec::new()).collect();
        let mut bound = Vec::new();
        for &address in addresses {
            let at = |error| (address, error);
            // Sharing an address is meant for our own workers: another process must not have it already.
            let first = listener::bind(address, false).map_err(at)?;
            let actual = first.local_addr().map_err(at)?;
            drop(first);
            bound.push(actual);
            for listeners in &mut by_worker {
                listeners.push(listener::bind(actual, true).map_err(at)?.into());
            }
        }
        Ok(Self {
            by_worker,
            is_passed: false,
            addresses: bound,
            forward_auth: None,
        })
    }

    /// Every socket of the public listeners.
    pub fn public(&self) -> impl Iterator<Item = &Socket> {
        self.by_worker.iter().flatten()
    }

    /// Shares passed sockets among the workers, which accept from one queue.
    ///
    /// # Errors
    /// The system's.
    pub fn share(passed: &[BoundListener], workers: usize) -> io::Result<Self> {
        let copies = || passed.iter().map(|it| it.listener.try_clone()).collect();
        Ok(Self {
            by_worker: (0..workers).map(|_| copies()).collect::<io::Result<_>>()?,
            is_passed: true,
            addresses: passed
                .iter()
                .filter_map(|it| it.at.tcp().copied())
                .collect(),
            forward_auth: None,
        })
    }
}

/// Starts the workers.
///
/// # Errors
/// The system's, if it cannot create a thread or has no free descriptor.
pub fn start(common: &Common, listeners: Listeners) -> io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for (index, public) in listeners.by_worker.into_iter().enumerate() {
        let (common, is_passed) = (common.clone(), listeners.is_passed);
        let forward_auth = listeners.forward_auth.as_ref();
        let forward_auth = forward_auth.map(BoundListener::try_clone).transpose()?;
        let thread = thread::Builder::new().name(format!("worker-{index}"));
        let (started, starts) = mpsc::sync_channel(1);
        threads.push(thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default());
            match runtime {
                Ok(runtime) => {
                    let _ = started.send(Ok(()));
                    runtime.block_on(run(common, index, public, is_passed, forward_auth));
                    // DNS lookups may still run on the runtime's own threads: nothing waits for them.
                    runtime.shutdown_background();
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?);
        starts.recv().map_err(io::Error::other)??;
    }
    Ok(threads)
}

async fn run(
    common: Common,
    index: usize,
    public: Vec<Socket>,
    is_passed: bool,
    forward_auth: Option<BoundListener>,
) {
    let worker = Rc::new(Worker::new(Arc::clone(&common.shared)));
    let connections = Rc::default();
    let stop = || {
        let mut phase = common.shared.phase.clone();
        async move {
            let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
        }
    };
    for listener in public {
        let rules = AcceptRules {
            bounds: Arc::clone(&common.bounds),
            connections: Rc::clone(&connections),
            tls: common.tls.clone(),
            is_passed,
            proxy_protocol: common.proxy_protocol,
        };
        let handler = Rc::clone(&worker);
        spawn_local(listener::accept(listener, rules, handler, stop()));
    }
    if let Some(forward_auth) = forward_auth {
        let rules = AcceptRules {
            bounds: Arc::clone(&common.forward_auth_bounds),
            connections: Rc::default(),
            tls: None,
            is_passed: forward_auth.is_passed,
            proxy_protocol: false,
        };
        let handler = Rc::new(ForwardAuthHandler::new(Rc::clone(&worker)));
        spawn_local(listener::accept(
            forward_auth.listener,
            rules,
            handler,
            stop(),
        ));
    }
    let mut evict = interval(EVICT_EVERY);
    let mut beat = interval(common.beat);
    let mut is_staying = true;
    let mut phase = common.shared.phase.clone();
    let ended = phase.wait_for(|phase| *phase == Phase::Ended);
    let mut ended = std::pin::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => return,
            _ = evict.tick() => worker.evict_idle(),
            _ = beat.tick() => common.heartbeats.beat(index),
            () = decided_all(&worker, &common.shared), if is_staying => {
                is_staying = false;
                common.staying.fetch_sub(1, Ordering::Release);
            }
        }
    }
}

/// Ready once no request of the worker is left that may use nonces or the store.
async fn decided_all(worker: &Worker, shared: &Shared) {
    let mut phase = shared.phase.clone();
    let _ = phase.wait_for(|phase| *phase >= Phase::DecidingLast).await;
    while !worker.has_left() {
        sleep(LOOK_EVERY).await;
    }
}
