//! The addresses of names.
//!
//! The system's lookup blocks and cannot be cancelled, so each name has at most one under way, which all callers share,
//! and the process runs at most [`LOOK_UPS`] at once. While looking a name up fails or hangs, its last good
//! addresses serve for a limited time.

use std::{
    collections::HashMap,
    io, mem,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, LazyLock},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

/// The most lookups that run at once, each on a thread.
const LOOK_UPS: usize = 4;
/// The most names that are known at once.
const NAMES: usize = 64;
/// A lookup that takes longer counts as failing where there are earlier addresses.
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
/// The lookup goes on, and the next caller shares it.
pub async fn addresses(host: &str, stale: Duration) -> io::Result<Addresses> {
    static SYSTEM: LazyLock<Arc<Resolver>> = LazyLock::new(|| {
        Resolver::new(|host| Ok((host, 0).to_socket_addrs()?.collect::<Vec<_>>()))
    });
    match host.parse() {
        Ok(address) => Ok([SocketAddr::new(address, 0)].into()),
        Err(_) => SYSTEM.addresses(host, stale).await,
    }
}

/// The result of a lookup, which all its waiters get.
type Outcome = Result<Addresses, (io::ErrorKind, Arc<str>)>;

type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

struct Resolver {
    look_up: Box<LookUp>,
    names: Mutex<HashMap<Arc<str>, Name>>,
    permits: Semaphore,
}

#[derive(Default)]
struct Name {
    /// The last good addresses, and the time of their lookup.
    good: Option<(Addresses, Instant)>,
    /// The beginning of the first lookup that failed since then.
    failing_since: Option<Instant>,
    under_way: Option<UnderWay>,
    /// It is logged that the last good addresses serve.
    is_reported: bool,
}

/// A lookup that has not ended.
#[derive(Clone)]
struct UnderWay {
    began: Instant,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Resolver {
    fn new(
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            look_up: Box::new(look_up),
            names: Mutex::default(),
            permits: Semaphore::new(LOOK_UPS),
        })
    }

    async fn addresses(self: &Arc<Self>, host: &str, stale: Duration) -> io::Result<Addresses> {
        let (mut under_way, last_good) = self.join(host, stale)?;
        let ended = async {
            let outcome = under_way.outcome.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            let lost = (io::ErrorKind::Other, "the lookup ended".into());
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

    /// The lookup of the name that is under way, a new one if there is none, and the addresses that may serve in its
    /// place.
    fn join(
        self: &Arc<Self>,
        host: &str,
        stale: Duration,
    ) -> io::Result<(UnderWay, Option<Addresses>)> {
        let now = Instant::now();
        let names = &mut *self.names.lock();
        if names.len() >= NAMES && !names.contains_key(host) {
            names.retain(|_, name| name.under_way.is_some());
            if names.len() >= NAMES {
                return Err(io::Error::other("too many names are being looked up"));
            }
        }
        let name = names.entry(host.into()).or_default();
        // Without a sender its runtime has ended before it.
        name.under_way
            .take_if(|under_way| under_way.outcome.has_changed().is_err());
        let under_way = name.under_way.get_or_insert_with(|| {
            let (sender, outcome) = watch::channel(None);
            tokio::spawn(Arc::clone(self).run(host.into(), now, sender));
            UnderWay {
                began: now,
                outcome,
            }
        });
        let under_way = under_way.clone();
        let failing_since = name.failing_since.unwrap_or(under_way.began);
        let last_good = name
            .good
            .as_ref()
            .filter(|(_, at)| now < failing_since + stale && now < *at + OLDEST)
            .map(|(addresses, _)| Arc::clone(addresses));
        Ok((under_way, last_good))
    }

    /// Looks a name up, notes the result and passes it to all waiters. A caller that gives up does not end it.
    async fn run(
        self: Arc<Self>,
        host: Arc<str>,
        began: Instant,
        outcome: watch::Sender<Option<Outcome>>,
    ) {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let (this, name) = (Arc::clone(&self), Arc::clone(&host));
        let found = spawn_blocking(move || (this.look_up)(&name)).await;
        let found = match found.unwrap_or_else(|error| Err(error.into())) {
            Ok(found) if !found.is_empty() => Ok(found.into()),
            Ok(_) => Err((io::ErrorKind::NotFound, "the name has no address".into())),
            Err(error) => Err((error.kind(), error.to_string().into())),
        };
        self.note(&host, began, &found);
        outcome.send_replace(Some(found));
    }

    fn note(&self, host: &str, began: Instant, outcome: &Outcome) {
        let mut names = self.names.lock();
        let Some(name) = names.get_mut(host) else {
            return;
        };
        name.under_way = None;
        match outcome {
            Ok(addresses) => {
                name.good = Some((Arc::clone(addresses), began));
                name.failing_since = None;
                if mem::take(&mut name.is_reported) {
                    tracing::info!(name = host, "the name is resolved again");
                }
            }
            Err(_) if name.good.is_none() => drop(names.remove(host)),
            Err(_) => {
                name.failing_since.get_or_insert(began);
            }
        }
    }

    /// Logs that the last good addresses of a name serve, once until it is resolved again.
    fn report(&self, host: &str, error: Option<io::Error>) {
        let mut names = self.names.lock();
        let Some(name) = names.get_mut(host).filter(|name| !name.is_reported) else {
            return;
        };
        name.is_reported = true;
        drop(names);
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
        runtime::Builder,
        task::JoinSet,
        time::{advance, timeout},
    };

    use super::*;

    const STALE: Duration = Duration::from_secs(60);

    /// A resolver whose lookups each wait for a result from the test, and the number of those that run.
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

    /// Moves the time while it waits; tokio does not do that beside a lookup.
    async fn passing<T>(time: Duration, waits: impl Future<Output = T>) -> T {
        tokio::join!(waits, advance(time)).0
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
        // On a busy machine the lookup may be so late that the last good addresses serve meanwhile.
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
    async fn at_most_four_look_ups_hang_at_once_and_leave_nothing() {
        let (resolver, results, running) = resolver();
        for round in 0..20 {
            for name in 0..20 {
                let host = format!("host-{name}.test");
                let waits = resolver.addresses(&host, STALE);
                let given_up = timeout(Duration::from_millis(1), waits).await;
                assert!(given_up.is_err(), "{round} {name}");
            }
        }
        assert_eq!(resolver.names.lock().len(), 20);
        assert_eq!(resolver.permits.available_permits(), 0);
        assert!(running.load(Ordering::SeqCst) <= LOOK_UPS);
        drop(results);
        while !resolver.names.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn last_addresses_serve_for_a_while_if_a_lookup_fails_or_hangs() {
        let (resolver, results, _) = resolver();
        results.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses("api.test", STALE).await.unwrap();
        // Long after it, so that what counts is the time of the first failure.
        advance(STALE * 2).await;
        results.send(Err(io::Error::other("SERVFAIL"))).unwrap();
        let found = resolver.addresses("api.test", STALE).await;
        assert_eq!(*found.unwrap(), [address(1)]);
        let is_under_way = || resolver.names.lock()["api.test"].under_way.is_some();
        while is_under_way() {
            tokio::task::yield_now().await;
        }
        // This one hangs.
        let found = passing(LATE, resolver.addresses("api.test", STALE)).await;
        assert_eq!(*found.unwrap(), [address(1)]);
        for _ in 0..3 {
            let found = resolver.addresses("api.test", STALE).await;
            assert_eq!(*found.unwrap(), [address(1)]);
        }
        advance(STALE).await;
        let waits = timeout(LATE * 4, resolver.addresses("api.test", STALE));
        let given_up = passing(LATE * 4, waits).await;
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
        let waits = timeout(LATE * 4, resolver.addresses("api.test", STALE));
        let given_up = passing(LATE * 4, waits).await;
        assert!(given_up.is_err(), "{given_up:?}");
    }

    #[test]
    fn a_look_up_whose_runtime_has_ended_is_made_again() {
        let (resolver, results, _) = resolver();
        let run = |limit| {
            let runtime = Builder::new_current_thread().enable_time().build();
            let runtime = runtime.unwrap();
            let found = async { timeout(limit, resolver.addresses("api.test", STALE)).await };
            let found = runtime.block_on(found);
            runtime.shutdown_background();
            found
        };
        assert!(run(Duration::from_millis(1)).is_err());
        // One result for each of the two.
        for _ in 0..2 {
            results.send(Ok(vec![address(1)])).unwrap();
        }
        let found = run(Duration::from_secs(30)).unwrap();
        assert_eq!(*found.unwrap(), [address(1)]);
    }
}
