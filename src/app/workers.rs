//! The worker threads: one runtime each, with its own listeners, its own connections to the API and its own counters.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{runtime::LocalOptions, task::spawn_local, time::interval};

use crate::{
    proxy::{Phase, Shared, Worker},
    server::{
        listener::{self, Bounds, Tcp},
        tls::Tls,
    },
};

/// How often unused connections to the API are checked.
const EVICT_EVERY: Duration = Duration::from_secs(1);

/// The parts that every worker uses.
#[derive(Clone)]
pub struct Common {
    /// The shared state of the workers.
    pub shared: Arc<Shared>,
    /// How many connections there may be.
    pub bounds: Arc<Bounds>,
    /// TLS as it is now; `None`: the listener speaks plain HTTP.
    pub tls: Option<Arc<ArcSwap<Tls>>>,
}

/// The listeners of all workers, bound.
#[derive(Default)]
pub struct Listeners {
    by_worker: Vec<Vec<TcpListener>>,
    /// Where they are bound, in the order of the configuration.
    pub addresses: Vec<SocketAddr>,
}

impl Listeners {
    /// Binds each address once for each worker.
    ///
    /// # Errors
    /// The address that cannot be bound, and why.
    pub fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Self, (SocketAddr, io::Error)> {
        let mut by_worker: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut bound = Vec::new();
        for &address in addresses {
            let at = |error| (address, error);
            // Sharing an address is meant for our own workers: another process must not have it already.
            let first = listener::bind(address, false).map_err(at)?;
            let actual = first.local_addr().map_err(at)?;
            drop(first);
            bound.push(actual);
            for listeners in &mut by_worker {
                listeners.push(listener::bind(actual, true).map_err(at)?);
            }
        }
        Ok(Self {
            by_worker,
            addresses: bound,
        })
    }
}

/// Starts the workers.
///
/// # Errors
/// The system's, if it gives no more threads or descriptors.
pub fn start(common: &Common, listeners: Listeners) -> io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for (index, listeners) in listeners.by_worker.into_iter().enumerate() {
        let common = common.clone();
        let thread = thread::Builder::new().name(format!("worker-{index}"));
        let (started, starts) = mpsc::sync_channel(1);
        threads.push(thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default());
            match runtime {
                Ok(runtime) => {
                    let _ = started.send(Ok(()));
                    runtime.block_on(run(common, listeners));
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

async fn run(common: Common, listeners: Vec<TcpListener>) {
    let worker = Rc::new(Worker::new(Arc::clone(&common.shared)));
    for listener in listeners {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "a listener cannot be used");
                continue;
            }
        };
        let tcp = Tcp {
            bounds: Arc::clone(&common.bounds),
            tls: common.tls.clone(),
        };
        let mut phase = common.shared.phase.clone();
        let stop = async move {
            let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
        };
        spawn_local(listener::accept(listener, tcp, Rc::clone(&worker), stop));
    }
    let mut evict = interval(EVICT_EVERY);
    let mut phase = common.shared.phase.clone();
    let ended = phase.wait_for(|phase| *phase == Phase::Ended);
    let mut ended = std::pin::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => return,
            _ = evict.tick() => worker.evict_idle(),
        }
    }
}
