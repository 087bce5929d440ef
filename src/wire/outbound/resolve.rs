//! The addresses of names.
//!
//! The system's look-up blocks and cannot be cancelled, so each name has at most one under way, which all callers share,
//! and the process has at most [`THREADS`] threads for them. While looking a name up fails or hangs, its last good
//! addresses serve for a limited time.

use std::{
    collections::{HashMap, VecDeque},
    io, mem,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// The most threads that look names up; they end when there is nothing left to look up.
const THREADS: usize = 4;
/// The most names that are known at once.
const NAMES: usize = 64;
/// A look-up that takes longer counts as failing where there are earlier addresses.
const LATE: Duration = Duration::from_millis(250);
/// The age from which addresses no longer serve, even if looking up has begun to fail only now: another machine may have
/// them.
const OLDEST: Duration = Duration::from_secs(60 * 60);

/// The addresses of a name, at least one, in the system's order; their port is 0.
pub(super) type Addresses = Arc<[SocketAddr]>;

/// Looks up the addresses of a host, which may be an address itself. While that fails or hangs, its last good addresses
/// serve for `stale`.
///
/// # Errors
/// The system's; the name has no address.
///
/// # Cancel safety
/// The look-up goes on, and the next caller shares it.
pub async fn addresses(host: &str, stale: Duration) -> io::Result<Addresses> {
    static SYSTEM: LazyLock<Arc<Resolver>> = LazyLock::new(|| {
        Resolver::new(|host| Ok((host, 0).to_socket_addrs()?.collect::<Vec<_>>()))
    });
    match host.parse() {
        Ok(address) => Ok([SocketAddr::new(address, 0)].into()),
        Err(_) => SYSTEM.addresses(host, stale).await,
    }
}

/// The result of a look-up, which all its waiters get.
type Outcome = Result<Addresses, (io::ErrorKind, Arc<str>)>;

type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

struct Resolver {
    look_up: Box<LookUp>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: HashMap<Arc<str>, Name>,
    queue: VecDeque<Job>,
    threads: usize,
}

#[derive(Default)]
struct Name {
    /// The last good addresses, and the time of their look-up.
    good: Option<(Addresses, Instant)>,
    /// The beginning of the first look-up that failed since then.
    failing_since: Option<Instant>,
    under_way: Option<UnderWay>,
    /// It is logged that the last good addresses serve.
    is_reported: bool,
}

/// A look-up that has not ended.
#[derive(Clone)]
struct UnderWay {
    began: Instant,
    outcome: watch::Receiver<Option<Outcome>>,
}

struct Job {
    name: Arc<str>,
    began: Instant,
    outcome: watch::Sender<Option<Outcome>>,
}

impl Resolver {
    fn new(
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            look_up: Box::new(look_up),
            state: Mutex::default(),
        })
    }

    async fn addresses(self: &Arc<Self>, host: &str, stale: Duration) -> io::Result<Addresses> {
        let (mut under_way, last_good) = self.join(host, stale)?;
        let ended = async {
            let outcome = under_way.outcome.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            let lost = (io::ErrorKind::Other, "the look-up ended".into());
            outcome
                .unwrap_or(Err(lost))
                .map_err(|(kind, text)| io::Error::new(kind, &*text))
        };
        let Some(last_good) = last_good else {
            return ended.await;
        };
        match timeout_at(under_way.began + LATE, ended).await {
            Ok(Ok(addresses)) => Ok(addresses),
            failed => {
                self.report(host, failed.ok().and_then(Result::err));
                Ok(last_good)
            }
        }
    }

    /// The look-up of the name that is under way, a new one if there is none, and the addresses that may serve in its
    /// place.
    fn join(
        self: &Arc<Self>,
        host: &str,
        stale: Duration,
    ) -> io::Result<(UnderWay, Option<Addresses>)> {
        let now = Instant::now();
        let state = &mut *self.state.lock();
        if state.names.len() >= NAMES && !state.names.contains_key(host) {
            state.names.retain(|_, name| name.under_way.is_some());
            if state.names.len() >= NAMES {
                return Err(io::Error::other("too many names are being looked up"));
            }
        }
        let name = state.names.entry(host.into()).or_default();
        let under_way = match &name.under_way {
            Some(under_way) => under_way.clone(),
            None => {
                if state.threads < THREADS {
                    let this = Arc::clone(self);
                    let thread = thread::Builder::new().name("resolver".to_owned());
                    match thread.spawn(move || this.work()) {
                        Ok(_) => state.threads += 1,
                        // A thread that runs comes to this name later.
                        Err(_) if state.threads > 0 => {}
                        Err(error) => return Err(error),
                    }
                }
                let (sender, outcome) = watch::channel(None);
                state.queue.push_back(Job {
                    name: host.into(),
                    began: now,
                    outcome: sender,
                });
                let began = now;
                name.under_way.insert(UnderWay { began, outcome }).clone()
            }
        };
        let failing_since = name.failing_since.unwrap_or(under_way.began);
        let last_good = name
            .good
            .as_ref()
            .filter(|(_, at)| now < failing_since + stale && now < *at + OLDEST)
            .map(|(addresses, _)| Arc::clone(addresses));
        Ok((under_way, last_good))
    }

    /// Looks names up until none waits.
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.state.lock();
                let Some(job) = state.queue.pop_front() else {
                    state.threads -= 1;
                    return;
                };
                job
            };
            let outcome = match (self.look_up)(&job.name) {
                Ok(found) if !found.is_empty() => Ok(found.into()),
                Ok(_) => Err((io::ErrorKind::NotFound, "the name has no address".into())),
                Err(error) => Err((error.kind(), error.to_string().into())),
            };
            self.end(&job, &outcome);
            job.outcome.send_replace(Some(outcome));
        }
    }

    fn end(&self, job: &Job, outcome: &Outcome) {
        let mut state = self.state.lock();
        let Some(name) = state.names.get_mut(&job.name) else {
            return;
        };
        name.under_way = None;
        match outcome {
            Ok(addresses) => {
                name.good = Some((Arc::clone(addresses), job.began));
                name.failing_since = None;
                if mem::take(&mut name.is_reported) {
                    tracing::info!(name = %job.name, "the name is resolved again");
                }
            }
            Err(_) if name.good.is_none() => drop(state.names.remove(&job.name)),
            Err(_) => {
                name.failing_since.get_or_insert(job.began);
            }
        }
    }

    /// Logs that the last good addresses of a name serve, once until it is resolved again.
    fn report(&self, host: &str, error: Option<io::Error>) {
        let mut state = self.state.lock();
        let Some(name) = state.names.get_mut(host).filter(|name| !name.is_reported) else {
            return;
        };
        name.is_reported = true;
        drop(state);
        let error = error.map_or_else(|| "no response yet".to_owned(), |error| error.to_string());
        tracing::warn!(
            name = host,
            error,
            "the name cannot be resolved, using its last addresses"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use tokio::{
        task::JoinSet,
        time::{advance, timeout},
    };

    use super::*;

    const STALE: Duration = Duration::from_secs(60);

    /// A resolver whose look-ups each wait for a result from the test, and the number of those that run.
    fn resolver() -> (
        Arc<Resolver>,
        mpsc::Sender<io::Result<Vec<SocketAddr>>>,
        Arc<AtomicUsize>,
    ) {
        let (sender, results) = mpsc::channel();
        let (results, running) = (Mutex::new(results), Arc::<AtomicUsize>::default());
        let count = Arc::clone(&running);
        let resolver = Resolver::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let result = results.lock().recv();
            count.fetch_sub(1, Ordering::SeqCst);
            result.unwrap_or_else(|_| Err(io::Error::other("the test ended")))
        });
        (resolver, sender, running)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 0))
    }

    #[tokio::test]
    async fn callers_of_one_name_share_a_look_up() {
        let (resolver, results, running) = resolver();
        let mut callers = JoinSet::new();
        for _ in 0..100 {
            let resolver = Arc::clone(&resolver);
            callers.spawn(async move { resolver.addresses("api.test", STALE).await });
        }
        while running.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // One result for all of them.
        results.send(Ok(vec![address(1)])).unwrap();
        while let Some(found) = callers.join_next().await {
            assert_eq!(*found.unwrap().unwrap(), [address(1)]);
        }
        // Nothing is cached: the next caller gets what the name has now.
        results.send(Ok(vec![address(2)])).unwrap();
        // On a busy machine the look-up may be so late that the last good addresses serve meanwhile.
        let second = async {
            loop {
                let found = resolver.addresses("api.test", STALE).await.unwrap();
                if *found != [address(1)] {
                    break found;
                }
                tokio::task::yield_now().await;
            }
        };
        let found = timeout(Duration::from_secs(30), second).await.unwrap();
        assert_eq!(*found, [address(2)]);
    }

    #[tokio::test]
    async fn look_ups_that_hang_have_four_threads_at_most_and_leave_nothing() {
        let (resolver, results, running) = resolver();
        for round in 0..20 {
            for name in 0..20 {
                let host = format!("host-{name}.test");
                let waits = resolver.addresses(&host, STALE);
                let given_up = timeout(Duration::from_millis(1), waits).await;
                assert!(given_up.is_err(), "{round} {name}");
            }
        }
        {
            let state = resolver.state.lock();
            assert_eq!((state.threads, state.names.len()), (THREADS, 20));
            assert!(state.queue.len() <= 20, "{}", state.queue.len());
        }
        assert!(running.load(Ordering::SeqCst) <= THREADS);
        drop(results);
        while resolver.state.lock().threads > 0 {
            tokio::task::yield_now().await;
        }
        assert!(resolver.state.lock().names.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_addresses_serve_for_a_while_when_a_look_up_fails_or_hangs() {
        let (resolver, results, _) = resolver();
        results.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses("api.test", STALE).await.unwrap();
        // Long after it, so that what counts is the time of the first failure.
        advance(STALE * 2).await;
        results.send(Err(io::Error::other("SERVFAIL"))).unwrap();
        let found = resolver.addresses("api.test", STALE).await;
        assert_eq!(*found.unwrap(), [address(1)]);
        let began = Instant::now();
        while resolver.state.lock().threads > 0 {
            tokio::task::yield_now().await;
        }
        // This one hangs.
        for _ in 0..3 {
            let found = resolver.addresses("api.test", STALE).await;
            assert_eq!(*found.unwrap(), [address(1)]);
        }
        assert!(began.elapsed() <= LATE, "only the first waits");
        advance(STALE).await;
        let given_up = timeout(LATE * 4, resolver.addresses("api.test", STALE)).await;
        assert!(given_up.is_err(), "{given_up:?}");
        results.send(Ok(vec![address(2)])).unwrap();
        let found = resolver.addresses("api.test", STALE).await;
        assert_eq!(*found.unwrap(), [address(2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_of_long_ago_do_not_serve() {
        let (resolver, results, _) = resolver();
        results.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses("api.test", STALE).await.unwrap();
        advance(OLDEST).await;
        let given_up = timeout(LATE * 4, resolver.addresses("api.test", STALE)).await;
        assert!(given_up.is_err(), "{given_up:?}");
    }
}
