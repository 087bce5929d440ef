//! The nonce window that replicas share: each nonce is fresh once, whatever happens to partitions and servers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant, UNIX_EPOCH},
};

use countersign::{
    base::clock::UnixTime,
    records::{
        nonce::{
            Insertion::{self, Forgotten, Fresh, Lost, Used},
            NonceUse, OnLost, SharedWindow, Unavailable,
            redis::{RedisOpenError, RedisUrl, nonce_used, open_nonces},
        },
        store::Store,
        values::use_cases::NonceLocation,
    },
};
use tokio::task::JoinSet;

use crate::{
    store_contract::{
        postgres::{PATIENCE, serve},
        redis::causes,
    },
    support::{
        postgres::Postgres as Server,
        redis::{RedisServer, cluster, wait, with_sentinel},
    },
};

const LENGTH: Duration = Duration::from_secs(300);

pub(crate) struct Replica {
    // A window in PostgreSQL ends with its store.
    store: Option<Arc<Store>>,
    url: String,
    on_lost: OnLost,
    pub(crate) window: Box<dyn SharedWindow>,
    /// The id of the window in a Redis.
    pub(crate) id: String,
}

impl Replica {
    pub(crate) fn on(url: &str, on_lost: OnLost) -> Self {
        let store = serve(url);
        let window = store.shared_window().unwrap();
        Self {
            store: Some(store),
            url: url.to_owned(),
            on_lost,
            window,
            id: String::new(),
        }
    }

    /// Opens a window in a Redis: as the first replica if it is empty, else as another one.
    pub(crate) async fn in_redis(url: &str, on_lost: OnLost) -> Result<Self, RedisOpenError> {
        let kept = NonceLocation::Nowhere;
        Self::after(url, on_lost, kept).await
    }

    pub(crate) async fn after(
        url: &str,
        on_lost: OnLost,
        kept: NonceLocation,
    ) -> Result<Self, RedisOpenError> {
        let target = RedisUrl::parse(url).unwrap();
        let now = UnixTime(today());
        let (window, id) = open_nonces(target, &kept, now, LENGTH).await?;
        Ok(Self {
            store: None,
            url: url.to_owned(),
            on_lost,
            window,
            id,
        })
    }

    async fn open(url: &str, on_lost: OnLost) -> Self {
        if url.starts_with("redis") {
            Self::in_redis(url, on_lost).await.unwrap()
        } else {
            Self::on(url, on_lost)
        }
    }

    async fn has(&self, nonce: NonceUse<'_>) -> bool {
        match &self.store {
            Some(store) => store.nonce_used(nonce).await.unwrap().unwrap(),
            None => nonce_used(RedisUrl::parse(&self.url).unwrap(), nonce)
                .await
                .unwrap(),
        }
    }

    pub(crate) async fn insert(
        &self,
        now: u64,
        timestamp: u64,
        nonce: &str,
    ) -> Result<Insertion, Unavailable> {
        self.insert_within(LENGTH, now, timestamp, nonce).await
    }

    async fn insert_within(
        &self,
        length: Duration,
        now: u64,
        timestamp: u64,
        nonce: &str,
    ) -> Result<Insertion, Unavailable> {
        let nonce = of_nonce(timestamp, nonce);
        let now = UnixTime(now);
        self.window.insert(now, length, self.on_lost, nonce).await
    }

    /// Inserts; retries while the server takes too long, as on a busy machine. The first attempt may have inserted the
    /// nonce all the same: if no attempt has returned `Fresh`, it is fresh.
    pub(crate) async fn inserted(&self, now: u64, timestamp: u64, nonce: &str) -> Insertion {
        self.inserted_within(LENGTH, now, timestamp, nonce).await
    }

    async fn inserted_within(
        &self,
        length: Duration,
        now: u64,
        timestamp: u64,
        nonce: &str,
    ) -> Insertion {
        static TOLD: Mutex<BTreeSet<(String, u64, String)>> = Mutex::new(BTreeSet::new());
        let (begun, mut late) = (Instant::now(), false);
        let insertion = loop {
            match self.insert_within(length, now, timestamp, nonce).await {
                Ok(insertion) => break insertion,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
            }
            late = true;
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let used = (self.url.clone(), timestamp, nonce.to_owned());
        let is_new = matches!(insertion, Fresh | Used) && TOLD.lock().unwrap().insert(used);
        if late && is_new { Fresh } else { insertion }
    }
}

pub(crate) fn today() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn of_nonce(timestamp: u64, nonce: &str) -> NonceUse<'_> {
    NonceUse {
        timestamp,
        consumer: b"consumer",
        token: b"token",
        nonce: nonce.as_bytes(),
    }
}

async fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The number of partitions and the floor.
fn partitions(server: &Server, database: &str) -> (usize, u64) {
    let tables = server.sql(
        database,
        "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'nonces\\_%'",
    );
    let floor = server.sql(database, "SELECT floor FROM countersign.nonce_state");
    (tables.parse().unwrap(), floor.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nonce_is_fresh_once_whoever_asks() {
    is_fresh_once(&Server::shared().database()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nonce_is_fresh_once_in_redis_whoever_asks() {
    let server = RedisServer::start();
    is_fresh_once(&server.url()).await;
}

async fn is_fresh_once(url: &str) {
    let open = async || Arc::new(Replica::open(url, OnLost::Refuse).await);
    let replicas = [open().await, open().await, open().await];
    let (now, begun) = (today(), Instant::now());
    let (mut round, mut whole) = (0, 0);
    while whole < 5 {
        assert!(
            begun.elapsed() < PATIENCE,
            "{whole} rounds without a late call"
        );
        round += 1;
        let mut calls = JoinSet::new();
        for number in 0..60_u64 {
            for replica in &replicas {
                let replica = Arc::clone(replica);
                // Over several partitions, in different orders.
                let number = if calls.len() % 2 == 0 {
                    number
                } else {
                    59 - number
                };
                calls.spawn(async move {
                    let timestamp = now - LENGTH.as_secs() + number * 10;
                    let nonce = format!("{round} {number}");
                    (number, replica.insert(now, timestamp, &nonce).await)
                });
            }
        }
        let (mut fresh, mut asked, mut late) = ([0; 60], [0; 60], 0);
        for (number, insertion) in calls.join_all().await {
            let number = usize::try_from(number).unwrap();
            asked[number] += 1;
            match insertion {
                Ok(Fresh) => fresh[number] += 1,
                Ok(other) => assert_eq!(other, Used),
                // Not in time, on a busy machine: it may have been inserted.
                Err(_) => late += 1,
            }
        }
        for (fresh, asked) in fresh.into_iter().zip(asked) {
            assert!(fresh <= 1 && (late > 0 || fresh == asked.min(1)), "{round}");
        }
        whole += u32::from(late == 0);
    }
    // Any process can look one up, whichever process inserted it.
    for (round, timestamp, used) in [
        (round, 290, true),
        (round, 280, false),
        (round + 1, 290, false),
    ] {
        let nonce = format!("{round} 59");
        let nonce = of_nonce(now + timestamp, &nonce);
        assert_eq!(replicas[0].has(nonce).await, used, "{nonce:?}");
    }
}

#[tokio::test]
async fn timestamp_consumer_token_and_nonce_count() {
    let server = Server::shared();
    let replica = Replica::on(&server.database(), OnLost::Refuse);
    let now = today();
    let window = &replica.window;
    let of = async |timestamp, consumer: &str, token: &str, nonce: &str| {
        let nonce = NonceUse {
            timestamp,
            consumer: consumer.as_bytes(),
            token: token.as_bytes(),
            nonce: nonce.as_bytes(),
        };
        let now = UnixTime(now);
        let inserted = window.insert(now, LENGTH, OnLost::Refuse, nonce).await;
        inserted.unwrap()
    };
    for (timestamp, consumer, token, nonce) in [
        (now, "a", "b", "c"),
        (now + 1, "a", "b", "c"),
        (now, "ab", "", "c"),
        (now, "", "ab", "c"),
        (now, "a", "", "bc"),
        (now, "b", "a", "c"),
    ] {
        assert_eq!(of(timestamp, consumer, token, nonce).await, Fresh);
        assert_eq!(of(timestamp, consumer, token, nonce).await, Used);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_dropped_is_never_fresh_again() {
    let server = Server::shared();
    let url = server.database();
    let database = crate::store_contract::postgres::database_of(&url);
    let replicas = [0, 1].map(|_| Arc::new(Replica::on(&url, OnLost::Refuse)));
    let now = today();
    // In a window with room for them all.
    let (old, long) = (now - 7_200, Duration::from_secs(10_000));
    for step in 0..10 {
        let inserted = replicas[0].inserted_within(long, now, old + step * 60, "used");
        assert_eq!(inserted.await, Fresh);
    }
    let (before, floor) = partitions(&server, database);
    assert!(before >= 3 && floor == 0, "{before} {floor}");
    // One replica still has the long window and continues to insert while the other drops.
    let behind = Arc::clone(&replicas[1]);
    let repeating = tokio::spawn(async move {
        let mut forgotten = 0;
        while forgotten < 10 {
            forgotten = 0;
            for step in 0..10 {
                match behind
                    .insert_within(long, now, old + step * 60, "used")
                    .await
                {
                    Ok(Forgotten) => forgotten += 1,
                    Ok(Used) | Err(_) => {}
                    Ok(other) => panic!("{other:?}"),
                }
            }
        }
    });
    assert_eq!(replicas[0].inserted(now, now, "new").await, Fresh);
    let last = old + 9 * 60;
    until("the old partitions are dropped", || {
        partitions(&server, database).1 >= last
    })
    .await;
    repeating.await.unwrap();
    for replica in &replicas {
        assert_eq!(replica.inserted(now, old, "used").await, Forgotten);
        assert_eq!(replica.inserted(now, last, "else").await, Forgotten);
        assert_eq!(replica.inserted(now, now, "new").await, Used);
    }
    // Timestamps in the window stay.
    let edge = now - LENGTH.as_secs();
    assert_eq!(replicas[0].inserted(now, edge, "edge").await, Fresh);
    assert_eq!(replicas[1].inserted(now, edge, "edge").await, Used);
}

#[tokio::test]
async fn replica_with_a_wrong_clock_is_unavailable_and_drops_nothing() {
    let server = Server::shared();
    let url = server.database();
    let database = crate::store_contract::postgres::database_of(&url);
    let [wrong, right] = [0, 1].map(|_| Replica::on(&url, OnLost::Refuse));
    let now = today();
    assert_eq!(right.inserted(now, now, "used").await, Fresh);
    let future = now + 100_000;
    for wrong_now in [now - 100, now + 100, future] {
        let error = wrong.insert(wrong_now, wrong_now, "other").await;
        let error = std::error::Error::source(&error.unwrap_err()).map(causes);
        assert!(error.unwrap().contains("clocks"), "{wrong_now}");
    }
    let bearable = now + 50;
    assert_eq!(wrong.inserted(bearable, bearable, "n").await, Fresh);
    assert!(wrong.insert(future, future, "other").await.is_err());
    let last = (future + LENGTH.as_secs()) / 300 + 2;
    until("the replica has looked for old partitions", || {
        let made = format!("SELECT count(*) FROM pg_tables WHERE tablename = 'nonces_{last}'");
        server.sql(database, &made) == "1"
    })
    .await;
    assert_eq!(right.inserted(now, now, "used").await, Used);
    assert_eq!(right.inserted(now, now, "new").await, Fresh);
}

#[tokio::test]
async fn a_dump_does_not_keep_nonces_from_being_recorded() {
    let server = Server::shared();
    let url = server.database();
    let replica = Replica::on(&url, OnLost::Refuse);
    let now = today();
    assert_eq!(replica.inserted(now, now, "first").await, Fresh);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("BEGIN; LOCK TABLE countersign.nonces IN ACCESS SHARE MODE")
        .await
        .unwrap();
    // In a partition that does not exist yet.
    let later = now + 3_000;
    assert_eq!(replica.inserted(now, later, "second").await, Fresh);
    assert_eq!(replica.inserted(now, later, "second").await, Used);
}

#[tokio::test]
async fn after_a_failover_what_may_be_lost_is_rejected() {
    let server = Server::start();
    let url = server.database();
    let replica = Replica::on(&url, OnLost::Refuse);
    let now = today();
    assert_eq!(replica.inserted(now, now, "used").await, Fresh);
    // A crash of the same server loses nothing.
    server.stop();
    server.start_again();
    assert_eq!(recovered(&replica, now, "after a crash").await, Fresh);
    assert_eq!(replica.inserted(now, now, "used").await, Used);

    server.fail_over();
    assert_eq!(recovered(&replica, now, "after a failover").await, Lost);
    let other = Replica::on(&url, OnLost::Refuse);
    let latest = now + LENGTH.as_secs();
    for replica in [&replica, &other] {
        assert_eq!(replica.inserted(now, now, "used").await, Lost);
        assert_eq!(replica.inserted(now, latest, "n").await, Lost);
    }
    // Nonces that a replica whose clock was ahead may have accepted are lost too.
    let later = latest + 300;
    assert_eq!(replica.inserted(now, latest + 60, "n").await, Lost);
    assert_eq!(replica.inserted(now, later, "n").await, Fresh);

    server.fail_over();
    let waives = Replica::on(&url, OnLost::Accept);
    assert_eq!(recovered(&waives, now, "waived").await, Fresh);
    assert_eq!(waives.inserted(now, later, "n").await, Used);
}

/// Inserts once the server is reachable again.
pub(crate) async fn recovered(replica: &Replica, now: u64, nonce: &str) -> Insertion {
    let begun = Instant::now();
    let mut attempt = 0;
    loop {
        attempt += 1;
        match replica
            .insert(now, now, &format!("{nonce} {attempt}"))
            .await
        {
            Ok(insertion) => return insertion,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_hangs_every_caller_is_told_within_a_second() {
    let server = Server::start();
    let replica = Replica::on(&server.database(), OnLost::Refuse);
    // More than the queue holds.
    tells_all_callers(replica, 12_000, || server.hang(), || server.go_on()).await;
    let redis = RedisServer::start();
    let replica = Replica::open(&redis.url(), OnLost::Refuse).await;
    tells_all_callers(replica, 1_000, || redis.hang(), || redis.go_on()).await;
}

/// Within a second once at least: a busy machine may take longer.
async fn tells_all_callers(replica: Replica, count: u32, hang: impl Fn(), go_on: impl Fn()) {
    let (replica, now) = (Arc::new(replica), today());
    assert_eq!(replica.inserted(now, now, "first").await, Fresh);
    let first = Instant::now();
    for round in 0.. {
        hang();
        let mut calls = JoinSet::new();
        for number in 0..count {
            let replica = Arc::clone(&replica);
            calls.spawn(async move {
                let begun = Instant::now();
                let result = replica.insert(now, now, &format!("{round} {number}")).await;
                assert!(result.is_err(), "{result:?}");
                begun.elapsed()
            });
        }
        let slowest = calls.join_all().await.into_iter().max();
        go_on();
        let again = format!("again {round}");
        assert_eq!(recovered(&replica, now, &again).await, Fresh);
        if slowest < Some(Duration::from_secs(1)) {
            break;
        }
        assert!(first.elapsed() < PATIENCE, "{slowest:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_by_sentinels_what_may_be_lost_is_rejected() {
    let (mut primary, replica, sentinel) = with_sentinel();
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    loses_what_may_be_lost(&url, || {
        primary.wait_for_replica();
        primary.kill();
        wait("the Sentinel promotes the replica", || {
            replica.ask(&["role"]).starts_with("master")
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_in_a_cluster_what_may_be_lost_is_rejected() {
    let mut nodes = cluster();
    let hosts = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
    let hosts: Vec<_> = hosts.collect();
    let url = format!("redis+cluster://{}", hosts.join(","));
    drop(Replica::in_redis(&url, OnLost::Refuse).await.unwrap());
    let used = nodes.iter().position(|node| node.ask(&["dbsize"]) != "0");
    let place = used.unwrap();
    let replica = RedisServer::replica_in_cluster(&nodes[place], &nodes);
    // The first replica changes the identity of a server: the store has to be made after that.
    assert_eq!(nodes[place].ask(&["flushall"]), "OK");
    loses_what_may_be_lost(&url, || {
        nodes[place].wait_for_replica();
        nodes[place].kill();
        wait("the replica takes over", || {
            replica.ask(&["role"]).starts_with("master")
        });
    })
    .await;
}

/// Nonces may be lost up to a window and a minute after the loss, which was noticed between `begun` and now.
#[track_caller]
fn assert_lost_since(replica: &Replica, begun: u64) {
    let UnixTime(lost) = replica.window.lost_until();
    assert!((begun + 360..=today() + 360).contains(&lost), "{lost}");
}

async fn loses_what_may_be_lost(url: &str, fail_over: impl FnOnce()) {
    let now = today();
    let refuses = Replica::open(url, OnLost::Refuse).await;
    let waives = Replica::open(url, OnLost::Accept).await;
    assert_eq!(refuses.inserted(now, now, "used").await, Fresh);
    assert_eq!(waives.inserted(now, now, "used").await, Used);
    fail_over();
    assert_eq!(recovered(&refuses, now, "refused").await, Lost);
    let latest = now + LENGTH.as_secs();
    assert_eq!(refuses.inserted(now, latest, "n").await, Lost);
    assert_lost_since(&refuses, now);
    let later = latest + 300;
    assert_eq!(refuses.inserted(now, later, "n").await, Fresh);
    assert_eq!(recovered(&waives, now, "waived").await, Fresh);
    assert_eq!(waives.inserted(now, later, "n").await, Used);
}

#[tokio::test]
async fn a_redis_without_its_state_rejects_what_may_be_lost() {
    let server = RedisServer::start();
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    let now = today();
    assert_eq!(replica.inserted(now, now, "used").await, Fresh);
    assert_eq!(server.ask(&["del", "cs:1:{store}:nonces"]), "1");
    assert_eq!(replica.inserted(now, now, "new").await, Lost);
}

#[tokio::test]
async fn a_full_redis_records_nothing_and_deletes_nothing() {
    let server = RedisServer::start();
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    let now = today();
    assert_eq!(replica.inserted(now, now, "used").await, Fresh);
    server.ask(&["config", "set", "maxmemory", "1"]);
    for nonce in ["new", "used"] {
        assert!(replica.insert(now, now, nonce).await.is_err(), "{nonce}");
    }
    server.ask(&["config", "set", "maxmemory", "0"]);
    assert_eq!(replica.inserted(now, now, "new").await, Fresh);
    assert_eq!(replica.inserted(now, now, "used").await, Used);
}

#[tokio::test]
async fn a_restarted_redis_rejects_what_may_be_lost() {
    for (on_lost, expected) in [(OnLost::Refuse, Lost), (OnLost::Accept, Fresh)] {
        let mut server = RedisServer::with(&[&["--appendonly", "yes"]]);
        let replica = Replica::open(&server.url(), on_lost).await;
        let other = Replica::open(&server.url(), on_lost).await;
        let now = today();
        assert_eq!(replica.inserted(now, now, "used").await, Fresh);
        server.kill();
        server.start_again();
        for (replica, nonce) in [(&replica, "one"), (&other, "other")] {
            assert_eq!(recovered(replica, now, nonce).await, expected);
        }
        let fresh = replica.inserted(now, now + LENGTH.as_secs(), "n").await;
        assert_eq!(fresh, expected);
        let later = now + LENGTH.as_secs() + 300;
        assert_eq!(other.inserted(now, later, "n").await, Fresh);
        assert_eq!(replica.inserted(now, later, "n").await, Used);
    }
}

#[tokio::test]
async fn a_redis_that_lost_nonces_or_never_had_them_waits() {
    let server = RedisServer::start();
    let now = today();
    let open = async |on_lost, kept| Replica::after(&server.url(), on_lost, kept).await.unwrap();
    let first = open(OnLost::Refuse, NonceLocation::Nowhere).await;
    assert_eq!(first.inserted(now, now, "a").await, Fresh);
    let second = open(OnLost::Refuse, NonceLocation::Elsewhere(first.id.clone())).await;
    assert_eq!(second.inserted(now, now, "a").await, Used);
    assert_eq!(second.inserted(now, now, "b").await, Fresh);

    assert_eq!(server.ask(&["flushall"]), "OK");
    for window in [&first, &second] {
        assert_eq!(window.inserted(now, now, "a").await, Lost);
        assert_lost_since(window, now);
    }
    // The nonces that the store kept are not in this Redis.
    let moved = open(OnLost::Refuse, NonceLocation::Here).await;
    assert_eq!(moved.inserted(now, now, "a").await, Lost);
    assert_eq!(server.ask(&["flushall"]), "OK");
    let waives = open(OnLost::Accept, NonceLocation::Elsewhere(first.id.clone())).await;
    assert_eq!(waives.inserted(now, now, "a").await, Fresh);
    assert_eq!(first.inserted(now, now, "a").await, Used);
}

#[tokio::test]
async fn a_redis_that_is_used_again_waits_for_what_another_one_kept() {
    let (server, other) = (RedisServer::start(), RedisServer::start());
    let open = async |server: &RedisServer, kept| {
        let url = server.url();
        Replica::after(&url, OnLost::Refuse, kept).await.unwrap()
    };
    let (now, later) = (today(), today() + LENGTH.as_secs() + 300);
    let first = open(&server, NonceLocation::Nowhere).await;
    assert_eq!(first.inserted(now, now, "a").await, Fresh);
    let second = open(&other, NonceLocation::Elsewhere(first.id.clone())).await;
    assert_eq!(second.inserted(now, now, "b").await, Lost);
    assert_eq!(second.inserted(now, later, "b").await, Fresh);
    // The first one has run all the time, and has its own nonces, but not those of the other one.
    let third = open(&server, NonceLocation::Elsewhere(second.id.clone())).await;
    for window in [&third, &first] {
        assert_eq!(window.inserted(now, now, "c").await, Lost);
        assert_lost_since(window, now);
    }
    let fourth = open(&server, NonceLocation::Elsewhere(third.id.clone())).await;
    assert_eq!(fourth.inserted(now, later, "d").await, Fresh);
    assert_eq!(third.inserted(now, later, "d").await, Used);
}

#[tokio::test]
async fn what_was_kept_elsewhere_is_lost_to_postgresql() {
    let server = Server::shared();
    let url = server.database();
    let replica = Replica::on(&url, OnLost::Refuse);
    let store = replica.store.as_ref().unwrap();
    let kept = async || store.nonce_location().await.unwrap();
    assert_eq!(kept().await, NonceLocation::Nowhere);
    let now = today();
    assert_eq!(replica.inserted(now, now, "a").await, Fresh);
    assert_eq!(kept().await, NonceLocation::Here);
    store.keep_nonces_elsewhere("a window").await.unwrap();
    let elsewhere = NonceLocation::Elsewhere("a window".to_owned());
    assert_eq!(kept().await, elsewhere);
    assert_eq!(replica.inserted(now, now, "b").await, Lost);
    assert_eq!(kept().await, NonceLocation::Here);
}

#[tokio::test]
async fn a_window_that_grows_in_redis_admits_nothing_that_had_left_it() {
    let server = RedisServer::start();
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    let now = today();
    let insert = async |length, timestamp| {
        let nonce = of_nonce(timestamp, "nonce");
        let length = Duration::from_secs(length);
        let inserted = replica
            .window
            .insert(UnixTime(now), length, OnLost::Refuse, nonce);
        inserted.await.unwrap()
    };
    assert_eq!(insert(10, now).await, Fresh);
    assert_eq!(insert(10, now - 11).await, Forgotten);
    for length in [300, 600] {
        assert_eq!(insert(length, now - 11).await, Forgotten);
        assert_eq!(insert(length, now).await, Used);
    }
    assert_eq!(insert(600, now - 9).await, Fresh);
    assert_eq!(insert(600, now + 590).await, Fresh);
}

#[tokio::test]
async fn redis_restarted_with_every_write_on_disk_continues() {
    let mut server = RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]]);
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    let other = Replica::open(&server.url(), OnLost::Refuse).await;
    let now = today();
    for round in ["one", "two"] {
        assert_eq!(replica.inserted(now, now, round).await, Fresh);
        assert_eq!(other.inserted(now, now, round).await, Used);
        server.kill();
        server.start_again();
        let after = format!("after {round}");
        assert_eq!(recovered(&replica, now, &after).await, Fresh);
        assert_eq!(replica.inserted(now, now, round).await, Used);
        let other_after = format!("other after {round}");
        assert_eq!(recovered(&other, now, &other_after).await, Fresh);
    }
    // A new process does not know the least state that the former server had.
    server.kill();
    server.start_again();
    let kept = NonceLocation::Elsewhere(replica.id.clone());
    let late = Replica::after(&server.url(), OnLost::Refuse, kept).await;
    assert_eq!(recovered(&late.unwrap(), now, "n").await, Lost);
}

#[tokio::test]
async fn a_redis_whose_writes_may_be_lost_waits_after_a_restart() {
    let durable: &[&[&str]] = &[&["--appendonly", "yes"], &["--appendfsync", "always"]];
    for case in ["an older copy", "other settings meanwhile"] {
        let mut server = RedisServer::with(durable);
        let replica = Replica::open(&server.url(), OnLost::Refuse).await;
        let other = Replica::open(&server.url(), OnLost::Refuse).await;
        let now = today();
        assert_eq!(replica.inserted(now, now, "a").await, Fresh);
        match case {
            "an older copy" => {
                let files = server.directory.path().join("appendonlydir");
                let copy = tempfile::tempdir().unwrap();
                copy_files(&files, copy.path());
                assert_eq!(other.inserted(now, now, "b").await, Fresh);
                server.kill();
                copy_files(copy.path(), &files);
            }
            _ => {
                server.ask(&["config", "set", "appendfsync", "everysec"]);
                server.ask(&["client", "kill", "type", "normal"]);
                recovered_at_all(&replica, now).await;
                server.kill();
            }
        }
        server.start_again();
        // The first one may not know that writes of the other are missing.
        recovered_at_all(&replica, now).await;
        recovered_at_all(&other, now).await;
        for replica in [&replica, &other] {
            assert_eq!(replica.inserted(now, now, "b").await, Lost, "{case}");
        }
    }
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Waits until the window responds, with whatever result.
async fn recovered_at_all(replica: &Replica, now: u64) {
    let _ = recovered(replica, now, "recovered at all").await;
}

#[tokio::test]
async fn nonces_that_may_have_expired_by_a_redis_clock_are_not_fresh() {
    let server = RedisServer::with_clock();
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    let now = today();
    assert_eq!(replica.inserted(now, now, "used").await, Fresh);
    server.set_clock(1_200);
    until("the nonce has expired", || {
        // A read expires the entries that are due.
        server.ask(&["dbsize"]) == "1" || {
            server.ask(&["keys", "*"]);
            false
        }
    })
    .await;
    assert!(replica.insert(now, now, "while it is ahead").await.is_err());
    server.set_clock(0);
    assert_eq!(recovered(&replica, now, "again").await, Lost);
    assert_eq!(replica.inserted(now, now, "used").await, Lost);
    let safe = now + 1_500;
    assert_eq!(replica.inserted(now, safe, "n").await, Fresh);
    let waives = Replica::open(&server.url(), OnLost::Accept).await;
    assert_eq!(waives.inserted(now, now, "new").await, Fresh);
}

#[tokio::test]
async fn a_redis_whose_clock_is_wrong_is_unavailable() {
    let server = RedisServer::start();
    let replica = Replica::open(&server.url(), OnLost::Refuse).await;
    for now in [today() - 100, today() + 100] {
        assert!(replica.insert(now, now, "n").await.is_err());
    }
    let now = today() + 50;
    assert_eq!(replica.inserted(now, now, "n").await, Fresh);
}
