//! The link to a Redis that keeps shared nonces: logins, TLS, Sentinels, a Cluster, and connections that break.
//!
//! Promise (Replay): A Redis that may evict nonces is not used; after an eviction signed requests get 503 for the window.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use countersign::{
    base::clock::UnixTime,
    records::{
        nonce::{
            Insertion::{Fresh, Lost, Used},
            OnLost,
            redis::{RedisOpenError, RedisUrl, check_nonces},
        },
        values::use_cases::NonceLocation,
    },
};

use crate::{
    store_contract::{
        postgres::PATIENCE,
        shared_nonces::{Replica, recovered, today},
    },
    support::redis::{RedisServer, cluster, wait, with_sentinel},
};

async fn open(url: &str) -> Result<Replica, RedisOpenError> {
    Replica::in_redis(url, OnLost::Accept).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_is_unavailable_and_comes_back() {
    let mut server = RedisServer::start();
    let replica = open(&server.url()).await.unwrap();
    let now = today();
    server.kill();
    assert!(replica.insert(now, now, "down").await.is_err());
    // Until the first attempt to connect again has failed too, a call may wait for it; a busy machine is slow at times.
    let begun = Instant::now();
    loop {
        let start = Instant::now();
        for _ in 0..4 {
            assert!(replica.insert(now, now, "down").await.is_err());
        }
        if start.elapsed() < Duration::from_secs(1) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE);
    }
    server.start_again();
    assert_eq!(recovered(&replica, now, "up").await, Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_replaced_unnoticed() {
    let server = RedisServer::start();
    let replica = open(&server.url()).await.unwrap();
    let now = today();
    for nonce in ["a", "b", "c"] {
        server.ask(&["client", "kill", "type", "normal"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(replica.insert(now, now, nonce).await.unwrap(), Fresh);
    }
}

/// Forwards connections to a server, and cuts them after this many more bytes of responses.
fn relay(port: u16, left: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for caller in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let mut ends = (caller.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut ends.0, &mut ends.1);
                let _ = ends.1.shutdown(Shutdown::Both);
            });
            let (mut caller, mut server, left) = (caller, server, Arc::clone(&left));
            std::thread::spawn(move || {
                let mut byte = [0];
                let take = |left: usize| left.checked_sub(1);
                let may_pass = || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
                while server.read_exact(&mut byte).is_ok()
                    && may_pass().is_ok()
                    && caller.write_all(&byte).is_ok()
                {}
                let _ = caller.shutdown(Shutdown::Both);
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_response_that_is_cut_the_nonce_is_not_fresh() {
    let server = RedisServer::start();
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let port = relay(server.port, Arc::clone(&left));
    let replica = open(&format!("redis://127.0.0.1:{port}")).await.unwrap();
    let now = today();
    for (nonce, length) in [("a", 1), ("b", 6), ("c", 12)] {
        left.store(length, Ordering::SeqCst);
        assert!(replica.insert(now, now, nonce).await.is_err());
        left.store(usize::MAX, Ordering::SeqCst);
        let after = format!("after {nonce}");
        assert_eq!(recovered(&replica, now, &after).await, Fresh);
        assert_eq!(replica.inserted(now, now, nonce).await, Used);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_cache_of_scripts_is_filled_again() {
    let server = RedisServer::start();
    let replica = open(&server.url()).await.unwrap();
    let now = today();
    for nonce in ["a", "b"] {
        server.ask(&["script", "flush"]);
        assert_eq!(replica.inserted(now, now, nonce).await, Fresh);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_in_with_a_password_or_as_a_user_in_its_database_alone() {
    let user = [
        "--user",
        "app",
        "on",
        ">p@ss:word",
        "~cs:*",
        "+@all",
        "-@admin",
    ];
    let server = RedisServer::with(&[&["--requirepass", "s3cret"], &user]);
    let at = |login: &str, db: &str| format!("redis://{login}127.0.0.1:{}{db}", server.port);
    let now = today();
    let as_user = at("app:p%40ss%3Aword@", "/3");
    for (url, expected) in [
        (at(":s3cret@", "/3"), Fresh),
        (as_user.clone(), Used),
        (at(":s3cret@", "/4"), Fresh),
    ] {
        let replica = open(&url).await.unwrap();
        assert_eq!(replica.inserted(now, now, "n").await, expected, "{url}");
    }
    for login in ["", ":wr0ng@", "app:s3cret@"] {
        let error = open(&at(login, "")).await.err().unwrap();
        assert!(
            matches!(error, RedisOpenError::Unreachable { .. }),
            "{error}"
        );
        let text = format!("{error} {error:?}");
        assert!(
            !text.contains("s3cret") && !text.contains("wr0ng"),
            "{text}"
        );
    }
    // This user may not read settings; the check reports that.
    let findings = check_nonces(RedisUrl::parse(&as_user).unwrap())
        .await
        .unwrap();
    assert!(findings[0].contains("does not let"), "{findings:?}");
    // Without INFO nonces cannot be kept.
    let denied = ["-a", "s3cret", "acl", "setuser", "app", "-info"];
    assert!(server.ask(&denied).contains("OK"));
    let error = check_nonces(RedisUrl::parse(&as_user).unwrap()).await;
    let error = error.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("+info"), "{error} {cause}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn speaks_tls_to_a_server_that_it_can_trust() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = RedisServer::with_tls(&certificate, &key, false);
    let files = tempfile::tempdir().unwrap();
    let trusting = |certificate: &str| {
        let path = files.path().join("ca.pem");
        std::fs::write(&path, certificate).unwrap();
        format!("rediss://127.0.0.1:{}?ca={}", server.port, path.display())
    };
    let replica = open(&trusting(&certificate)).await.unwrap();
    let now = today();
    assert_eq!(replica.inserted(now, now, "n").await, Fresh);
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let by_the_system = format!("rediss://127.0.0.1:{}", server.port);
    for url in [trusting(&other.cert.pem()), by_the_system] {
        let error = open(&url).await.err().unwrap();
        assert!(causes(&error).contains("certificate"), "{error:?}");
    }
    let error = open(&trusting("no certificate")).await.err().unwrap();
    assert!(matches!(error, RedisOpenError::Tls(_)), "{error}");
    // Without TLS there is no response.
    let plain = format!("redis://127.0.0.1:{}", server.port);
    assert!(open(&plain).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shows_its_certificate_to_a_server_that_asks_for_it() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = RedisServer::with_tls(&certificate, &key, true);
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (file("own.pem", &certificate), file("own.key", &key));
    let trusting = format!("rediss://127.0.0.1:{}?ca={certificate}", server.port);
    let shown = format!("{trusting}&certificate={certificate}&key={key}");
    let window = open(&shown).await.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "n").await, Fresh);
    assert!(open(&trusting).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_over_tls_names_a_primary_that_has_to_prove_itself() {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let primary = RedisServer::with_tls(&certificate, &key, false);
    let impostor =
        RedisServer::with_tls(&other.cert.pem(), &other.signing_key.serialize_pem(), false);
    let files = tempfile::tempdir().unwrap();
    let ca = files.path().join("ca.pem");
    std::fs::write(&ca, &certificate).unwrap();
    for (named, is_trusted) in [(&primary, true), (&impostor, false)] {
        let sentinel = RedisServer::sentinel_with_tls(named, "main", &certificate, &key);
        let port = sentinel.port;
        let url = format!(
            "rediss+sentinel://127.0.0.1:{port}/main?ca={}",
            ca.display()
        );
        match open(&url).await {
            Ok(window) => {
                assert!(is_trusted);
                let now = today();
                assert_eq!(window.inserted(now, now, "n").await, Fresh);
            }
            Err(error) => {
                assert!(!is_trusted, "{error:?}");
                assert!(causes(&error).contains("certificate"), "{error:?}");
            }
        }
        // The Sentinel itself is not asked in clear.
        let plain = format!("redis+sentinel://127.0.0.1:{port}/main");
        assert!(open(&plain).await.is_err());
    }
}

/// The error with its causes.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error}: ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_taken_for_the_primary() {
    let primary = RedisServer::start();
    let replica = RedisServer::replica_of(&primary);
    let error = open(&replica.url()).await.err().unwrap();
    assert!(causes(&error).contains("is a replica"), "{error:?}");
    // A primary that becomes a replica is rejected as well.
    let window = open(&primary.url()).await.unwrap();
    let now = today();
    replica.ask(&["replicaof", "no", "one"]);
    primary.ask(&["replicaof", "127.0.0.1", &replica.port.to_string()]);
    for nonce in ["a", "b"] {
        assert!(window.insert(now, now, nonce).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follows_the_sentinels_to_the_new_primary() {
    let (mut primary, replica, sentinel) = with_sentinel();
    // The first of the Sentinels is not there, the second hangs.
    let hung = RedisServer::start();
    hung.hang();
    let url = format!(
        "redis+sentinel://127.0.0.1:1,127.0.0.1:{},127.0.0.1:{}/main",
        hung.port, sentinel.port
    );
    let window = open(&url).await.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "used").await, Fresh);
    primary.wait_for_replica();
    primary.kill();
    assert!(window.insert(now, now, "down").await.is_err());
    wait("the Sentinel promotes the replica", || {
        replica.ask(&["role"]).starts_with("master")
    });
    assert_eq!(recovered(&window, now, "up").await, Fresh);
    assert_eq!(window.inserted(now, now, "used").await, Used);
    let unknown = format!("redis+sentinel://127.0.0.1:{}/other", sentinel.port);
    let error = open(&unknown).await.err().unwrap();
    assert!(causes(&error).contains("no primary of other"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaves_a_primary_that_the_sentinels_replaced_while_it_runs() {
    // It is cut off from the Sentinel, and does not know that there is another one.
    let (former, next) = (RedisServer::start(), RedisServer::start());
    let sentinel = RedisServer::sentinel(&former, "main");
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    let window = Replica::in_redis(&url, OnLost::Refuse).await.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "used").await, Fresh);
    let port = next.port.to_string();
    sentinel.ask(&["sentinel", "remove", "main"]);
    sentinel.ask(&["sentinel", "monitor", "main", "127.0.0.1", &port, "1"]);
    let begun = Instant::now();
    for number in 0.. {
        // The next one has none of the nonces.
        let nonce = number.to_string();
        if matches!(window.insert(now, now, &nonce).await, Ok(Lost)) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(former.ask(&["role"]).starts_with("master"));
    // Another process that starts now gets the next one as well, and neither accepts what the former one may have.
    let kept = NonceLocation::Elsewhere(window.id.clone());
    let other = Replica::after(&url, OnLost::Refuse, kept).await;
    assert_eq!(other.unwrap().inserted(now, now + 300, "used").await, Lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_name_different_primaries_are_not_believed() {
    let (one, other) = (RedisServer::start(), RedisServer::start());
    let sentinels = [&one, &other].map(|primary| RedisServer::sentinel(primary, "main"));
    let ports = sentinels.each_ref().map(|sentinel| sentinel.port);
    let url = format!(
        "redis+sentinel://127.0.0.1:{},127.0.0.1:{}/main",
        ports[0], ports[1]
    );
    let error = open(&url).await.err().unwrap();
    assert!(causes(&error).contains("different primaries"), "{error:?}");
    sentinels[1].ask(&["sentinel", "remove", "main"]);
    let window = open(&url).await.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "n").await, Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_sentinel_a_primary_is_used_for_some_seconds() {
    let primary = RedisServer::start();
    let mut sentinel = RedisServer::sentinel(&primary, "main");
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    let window = open(&url).await.unwrap();
    let now = today();
    sentinel.kill();
    assert_eq!(window.inserted(now, now, "n").await, Fresh);
    let begun = Instant::now();
    for number in 0.. {
        let nonce = format!("then {number}");
        if window.insert(now, now, &nonce).await.is_err() {
            break;
        }
        assert!(begun.elapsed() < 2 * PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_its_node_in_a_cluster_and_follows_its_slot_to_another() {
    let nodes = cluster();
    let now = today();
    // Any node may be named.
    for (place, node) in nodes.iter().enumerate() {
        let url = format!("redis+cluster://127.0.0.1:{}", node.port);
        let window = open(&url).await.unwrap();
        let expected = [Fresh, Used][place.min(1)];
        assert_eq!(window.inserted(now, now, "used").await, expected);
    }
    let url = format!("redis+cluster://127.0.0.1:{}", nodes[0].port);
    let window = Replica::in_redis(&url, OnLost::Refuse).await.unwrap();
    let size = |node: &&RedisServer| node.ask(&["dbsize"]).parse::<u32>().unwrap();
    let (full, empty): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| size(node) > 0);
    let ([from], [to, _]) = (&*full, &*empty) else {
        panic!("the nonces are on {} nodes", full.len());
    };
    move_slot(&nodes, from, to);
    // Another process records now, as after a failover.
    assert_eq!(recovered(&window, now, "new").await, Lost);
    assert!(size(to) > 0);
}

/// Moves the slot of the nonces with their state, as an operator who reshards a Cluster does.
fn move_slot(nodes: &[RedisServer], from: &RedisServer, to: &RedisServer) {
    const STATE: &str = "cs:1:{store}:nonces";
    let id = |node: &RedisServer| node.ask(&["cluster", "myid"]);
    let slot = from.ask(&["cluster", "keyslot", STATE]);
    let set = |node: &RedisServer, state: &str, other: &RedisServer| {
        let set = node.ask(&["cluster", "setslot", &slot, state, &id(other)]);
        assert_eq!(set, "OK");
    };
    set(to, "importing", from);
    set(from, "migrating", to);
    let port = to.port.to_string();
    let migrated = from.ask(&["migrate", "127.0.0.1", &port, STATE, "0", "5000"]);
    assert_eq!(migrated, "OK");
    assert_eq!(from.ask(&["flushall"]), "OK");
    set(to, "node", to);
    for node in nodes {
        set(node, "node", to);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warns_of_settings_that_lose_nonces() {
    let server = RedisServer::start();
    let findings = async || {
        let target = RedisUrl::parse(&server.url()).unwrap();
        check_nonces(target).await.unwrap()
    };
    let warns = async |word: &str| {
        let findings = findings().await;
        assert!(
            findings.len() == 1 && findings[0].contains(word),
            "{findings:?}"
        );
    };
    let set = |name, value| server.ask(&["config", "set", name, value]);
    warns("appendonly no").await;
    set("appendonly", "yes");
    for fsync in ["always", "everysec"] {
        set("appendfsync", fsync);
        assert_eq!(findings().await, [""; 0]);
    }
    set("appendfsync", "no");
    warns("appendfsync no").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_that_may_evict_is_rejected_whatever_its_user_may_read() {
    let user = ["--user", "app", "on", ">pass", "~cs:*", "+@all", "-@admin"];
    let server = RedisServer::with(&[&user]);
    let url = format!("redis://app:pass@127.0.0.1:{}", server.port);
    let window = open(&url).await.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "a").await, Fresh);
    for policy in ["allkeys-lru", "volatile-ttl"] {
        server.ask(&["config", "set", "maxmemory-policy", policy]);
        let checked = check_nonces(RedisUrl::parse(&url).unwrap()).await.err();
        for error in [checked.unwrap(), open(&url).await.err().unwrap()] {
            let text = error.to_string();
            assert!(matches!(error, RedisOpenError::Evicts { .. }), "{text}");
            assert!(
                text.contains(policy) && text.contains("noeviction"),
                "{text}"
            );
        }
    }
    // Neither is it used after a reconnection.
    server.ask(&["client", "kill", "type", "normal"]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(window.insert(now, now, "b").await.is_err());
    server.ask(&["config", "set", "maxmemory-policy", "noeviction"]);
    assert_eq!(recovered(&window, now, "c").await, Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_redis_has_evicted_is_not_fresh() {
    let server = RedisServer::start();
    let window = Replica::in_redis(&server.url(), OnLost::Refuse).await;
    let window = window.unwrap();
    let now = today();
    assert_eq!(window.inserted(now, now, "used").await, Fresh);
    // Only keys that expire, which are the nonces and not their state.
    server.ask(&["config", "set", "maxmemory-policy", "volatile-lru"]);
    server.ask(&["config", "set", "maxmemory", "1"]);
    wait("Redis evicts", || server.ask(&["dbsize"]) == "1");
    server.ask(&["config", "set", "maxmemory", "0"]);
    server.ask(&["config", "set", "maxmemory-policy", "noeviction"]);
    assert_eq!(window.inserted(now, now, "used").await, Lost);
    assert!(window.window.lost_until().0 >= now + 360);
    // One loss is one wait.
    let later = now + 700;
    assert_eq!(window.inserted(now, later, "n").await, Fresh);
    let UnixTime(lost) = window.window.lost_until();
    server.ask(&["config", "resetstat"]);
    assert_eq!(window.inserted(now, later, "n").await, Used);
    assert!(window.window.lost_until().0 >= lost);
    let waives = open(&server.url()).await.unwrap();
    assert_eq!(waives.inserted(now, now, "waived").await, Fresh);
}
