//! Redis, its secrets plain and sealed; and what is particular to it.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use countersign::{
    clock::Clock,
    names::{ConsumerKey, UserId},
    store::{
        Backend as Engine, Opening, Store, StoreError,
        port::{Added, Change, TokenFilter},
        redis::{OpenError, Params, RedisStore, Target},
        seal::SealKey,
        transfer::{self, Import, Part, Record, Source},
    },
};

use crate::{
    records::{access_token, consumer, later, populate, request_token, rich_consumer, user},
    redis_server::{RedisServer, ask, cluster, wait},
    suite::Backend,
};

mod plain {
    contract!(crate::redis::Redis<false>);
}

mod sealed {
    contract!(crate::redis::Redis<true>);
}

/// A server of its own.
pub(crate) struct Redis<const SEALED: bool>(RedisServer);

impl<const SEALED: bool> Backend for Redis<SEALED> {
    async fn fresh() -> Self {
        Self(RedisServer::start())
    }

    fn engine(&self) -> Engine {
        Engine::Redis(Box::new(Target::parse(&self.0.url()).unwrap()))
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.0.url(), SEALED.then_some(7)).unwrap())
    }
}

fn params(url: &str, key: Option<u8>) -> Params {
    Params {
        target: Target::parse(url).unwrap(),
        keys: key
            .into_iter()
            .map(|byte| SealKey::new([byte; 32]))
            .collect(),
        opening: Opening::Serve,
    }
}

pub(crate) fn open(url: &str, key: Option<u8>) -> Result<RedisStore, OpenError> {
    RedisStore::open(params(url, key))
}

#[track_caller]
fn is_unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Unavailable(_))),
        "{result:?}"
    );
}

/// Asks until the store answers; at most two seconds.
async fn recovers(store: &RedisStore) {
    let start = Instant::now();
    while store.ping().await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(2), "recovers in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Checks that every call fails within a second, and the later ones at once.
async fn fails_fast(store: &RedisStore) {
    let c = "c".parse().unwrap();
    let start = Instant::now();
    is_unavailable(store.consumer(&c).await);
    assert!(start.elapsed() < Duration::from_secs(1));
    // Until the first try to connect again has failed too.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    is_unavailable(store.consumer(&c).await);
    is_unavailable(store.revoke_access_token("a", later(1)).await);
    is_unavailable(store.remove_consumer(&c).await);
    is_unavailable(store.ping().await);
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_is_unavailable_and_comes_back() {
    let mut server = RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]]);
    let store = open(&server.url(), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    server.kill();
    fails_fast(&store).await;
    server.start_again();
    recovers(&store).await;
    let found = store.consumer(&"c".parse().unwrap()).await.unwrap();
    assert_eq!(found, Some(consumer("c")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_server_is_unavailable_and_comes_back() {
    let server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    server.hang();
    fails_fast(&store).await;
    server.go_on();
    recovers(&store).await;
    let found = store.consumer(&"c".parse().unwrap()).await.unwrap();
    assert_eq!(found, Some(consumer("c")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_replaced_unnoticed() {
    let server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    for _ in 0..3 {
        server.ask(&["client", "kill", "type", "normal"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
        store.ping().await.unwrap();
        // A connection that holds for less than a second counts as broken.
        tokio::time::sleep(Duration::from_millis(1000)).await;
    }
}

/// Passes connections on to a server, and cuts them once it has passed on so many more bytes of responses.
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
                while server.read_exact(&mut byte).is_ok()
                    && left
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                            left.checked_sub(1)
                        })
                        .is_ok()
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
async fn a_response_that_is_cut_is_no_response() {
    let server = RedisServer::start();
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let port = relay(server.port, Arc::clone(&left));
    let store = open(&format!("redis://127.0.0.1:{port}"), None).unwrap();
    let c = "c".parse().unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    // Wherever the record is cut, nothing is made of its beginning.
    for length in [1, 60, 200] {
        left.store(length, Ordering::SeqCst);
        is_unavailable(store.consumer(&c).await);
        left.store(usize::MAX, Ordering::SeqCst);
        recovers(&store).await;
        assert_eq!(store.consumer(&c).await.unwrap(), Some(consumer("c")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_that_lost_all_records_is_no_empty_store() {
    let mut server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    populate(&store).await;
    server.kill();
    server.start_again();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // A good token must not look unknown.
    is_unavailable(store.consumer(&"c".parse().unwrap()).await);
    is_unavailable(store.access_token("a").await);
    is_unavailable(store.add_consumer(consumer("d")).await);
    is_unavailable(store.ping().await);
    assert_eq!(server.ask(&["dbsize"]), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_cache_of_scripts_is_filled_again() {
    let server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    server.ask(&["script", "flush"]);
    assert_eq!(
        store.add_consumer(consumer("c")).await.unwrap(),
        Added::Added
    );
    server.ask(&["script", "flush"]);
    store.export().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_left_as_it_is() {
    let server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    server.ask(&["hset", "cs:{store}", "schema", "2"]);
    let before = server.content();
    let error = open(&server.url(), Some(7)).unwrap_err();
    assert!(matches!(error, OpenError::NewerSchema { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("127.0.0.1:{}", server.port))
    );
    let error = RedisStore::open(Params {
        opening: Opening::Check,
        ..params(&server.url(), None)
    });
    assert!(matches!(error, Err(OpenError::NewerSchema { .. })));
    // Neither does a process change anything that had opened the store before.
    is_unavailable(store.add_consumer(consumer("d")).await);
    is_unavailable(store.import(vec![Record::Consumer(consumer("e"))]).await);
    is_unavailable(store.purge(Clock::system().now()).await);
    assert_eq!(server.content(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_creates_nothing() {
    let server = RedisServer::start();
    let check = || {
        RedisStore::open(Params {
            opening: Opening::Check,
            ..params(&server.url(), None)
        })
    };
    assert!(matches!(check(), Err(OpenError::Missing(_))));
    assert_eq!(server.ask(&["dbsize"]), "0");
    open(&server.url(), None).unwrap();
    check().unwrap().ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_takes_nothing_and_answers() {
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(open(&server.url(), None).unwrap());
    populate(&store).await;
    server.ask(&["config", "set", "maxmemory", "1"]);
    let before = server.content();
    is_unavailable(store.add_consumer(consumer("d")).await);
    is_unavailable(store.issue_request_token(request_token("r", "c")).await);
    is_unavailable(store.issue_access_token(access_token("a", "c", "u")).await);
    assert!(
        store
            .consumer(&"c".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(server.content(), before);
    server.ask(&["config", "set", "maxmemory", "0"]);
    assert_eq!(
        store.add_consumer(consumer("d")).await.unwrap(),
        Added::Added
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_a_failover_lost_are_admitted() {
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(open(&server.url(), None).unwrap());
    populate(&store).await;
    let position = store.changes_since(0).await.unwrap().position;
    // The new primary never got the entry that was read last, and has taken others since.
    server.ask(&["xdel", "cs:1:{store}:feed", &format!("{position}-0")]);
    store.add_consumer(consumer("d")).await.unwrap();
    let changes = store.changes_since(position).await.unwrap();
    assert!(changes.incomplete && changes.position > position);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_imports_of_the_same_records_add_them_once() {
    let server = RedisServer::start();
    let stores: Vec<Arc<RedisStore>> = (0..4)
        .map(|_| Arc::new(open(&server.url(), None).unwrap()))
        .collect();
    let mut records = vec![Record::User(user("u")), Record::Consumer(consumer("c"))];
    // More than one run of the script takes at once.
    records.extend(
        (0..1500).map(|number| Record::AccessToken(access_token(&format!("t{number}"), "c", "u"))),
    );
    let count = records.len() as u64;
    let imports = stores.iter().map(|store| {
        let (store, records) = (Arc::clone(store), records.clone());
        tokio::spawn(async move { store.import(records).await })
    });
    let mut added = 0;
    for import in imports.collect::<Vec<_>>() {
        let Import::Imported(imported) = import.await.unwrap().unwrap() else {
            panic!("refused");
        };
        assert_eq!(imported.added + imported.unchanged, count);
        added += imported.added;
    }
    assert_eq!(added, count);
    assert_eq!(stores[0].export().await.unwrap().len() as u64, count);
    assert_eq!(server.ask(&["keys", "*staged*"]), "");
}

/// More records than are taken in at once, in the order of an import.
fn many() -> Vec<Record> {
    let mut records = vec![Record::Consumer(consumer("c")), Record::User(user("u"))];
    let token = |number| access_token(&format!("t{number:05}"), "c", "u");
    records.extend((0..12_000).map(|number| Record::AccessToken(token(number))));
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_by_parts_waits_for_a_redis_that_is_away() {
    let mut server = RedisServer::with(&[&["--appendonly", "yes"], &["--appendfsync", "always"]]);
    let store = Arc::new(open(&server.url(), None).unwrap());
    let (records, importing) = (many(), Arc::clone(&store));
    let count = records.len();
    let import = tokio::spawn(async move { importing.import(records).await });
    let tokens = || server.ask(&["zcard", "cs:1:{store}:tokens"]);
    wait("a part is there", || !["0", "12000"].contains(&&*tokens()));
    assert_eq!(store.unended_imports().await.unwrap().len(), 1);
    server.kill();
    assert!(!import.is_finished());
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.start_again();
    let Import::Imported(imported) = import.await.unwrap().unwrap() else {
        panic!("refused");
    };
    assert_eq!(imported.added + imported.unchanged, count as u64);
    assert_eq!(store.export().await.unwrap().len(), count);
    assert_eq!(store.unended_imports().await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_by_parts_that_did_not_end_is_known_until_the_same_one_completes_it() {
    let server = RedisServer::start();
    let [store, other] = [0, 1].map(|_| open(&server.url(), None).unwrap());
    let readings = AtomicUsize::new(0);
    // The second reading, of what is taken in, ends too early.
    let cut: Source = Arc::new(move || {
        let (sender, receiver) = transfer::stream();
        let ends = readings.fetch_add(1, Ordering::Relaxed) == 0;
        tokio::spawn(async move {
            let records: Vec<_> = many().into_iter().enumerate().collect();
            let parts = records.chunks(500).take(if ends { usize::MAX } else { 7 });
            for part in parts {
                sender.send(Part::Records(part.to_vec())).await.unwrap();
            }
            if ends {
                sender.send(Part::End).await.unwrap();
            }
        });
        receiver
    });
    let error = store.import_from(cut).await.unwrap_err();
    let causes = causes(&error);
    assert!(causes.contains("3500 of 12002 records"), "{causes}");
    let unended = other.unended_imports().await.unwrap();
    let [sentence] = &*unended else {
        panic!("{unended:?}");
    };
    let begins = "an import of 12002 records that began at 20";
    assert!(sentence.starts_with(begins), "{sentence}");
    // Another import of as many records does not end it.
    let mut others = many();
    others.pop();
    others.push(Record::RemovedToken("gone".to_owned()));
    store.import(others).await.unwrap();
    assert_eq!(other.unended_imports().await.unwrap(), unended);
    let Import::Imported(imported) = other.import(many()).await.unwrap() else {
        panic!("refused");
    };
    assert_eq!((imported.added, imported.unchanged), (1, 12_001));
    assert_eq!(store.unended_imports().await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belonged_to_a_removed_consumer_is_gone_before_it_is_deleted() {
    const SCRIPT: &str = include_str!("../../src/store/redis/script.lua");
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(open(&server.url(), None).unwrap());
    populate(&store).await;
    let (c, u): (ConsumerKey, UserId) = ("c".parse().unwrap(), "u".parse().unwrap());
    store.add_consumer(consumer("d")).await.unwrap();
    let tokens: Vec<String> = (0..1200).map(|number| format!("t{number:04}")).collect();
    let mut records: Vec<Record> = tokens
        .iter()
        .map(|token| Record::AccessToken(access_token(token, "c", "u")))
        .collect();
    records.push(Record::AccessToken(access_token("other", "d", "u")));
    store.import(records).await.unwrap();
    store
        .issue_request_token(request_token("r", "c"))
        .await
        .unwrap();
    // As a process does that is killed right after the removal.
    let step = ["1", "cs:{store}", "1", "", "remove_consumer", "c"];
    let command: Vec<&str> = ["eval", SCRIPT].into_iter().chain(step).collect();
    assert_eq!(server.ask(&command), "1");
    let is_gone = async || {
        assert_eq!(store.access_token(&tokens[7]).await.unwrap(), None);
        assert!(
            !store
                .revoke_access_token(&tokens[7], later(1))
                .await
                .unwrap()
        );
        assert_eq!(store.request_token("r").await.unwrap(), None);
        let filter = TokenFilter {
            user: Some(u.clone()),
            consumer: None,
        };
        let listed = store.access_tokens(&filter, None, 9).await.unwrap();
        assert_eq!(listed, [access_token("other", "d", "u")]);
        // The identifiers stay taken.
        let again = store
            .issue_access_token(access_token(&tokens[7], "d", "u"))
            .await;
        assert_eq!(again.unwrap(), Added::Taken);
    };
    is_gone().await;
    assert!(
        server
            .ask(&["exists", "cs:1:{store}:a:t0007"])
            .contains('1')
    );
    // The same key again does not bring them back.
    assert_eq!(
        store.add_consumer(consumer("c")).await.unwrap(),
        Added::Added
    );
    assert!(
        server
            .ask(&["exists", "cs:1:{store}:a:t0007"])
            .contains('0')
    );
    is_gone().await;
    let mut records = store.export().await.unwrap();
    records.retain(|record| matches!(record, Record::RemovedToken(_)));
    assert_eq!(records.len(), tokens.len());
    assert!(store.remove_consumer(&c).await.unwrap());
    assert_eq!(server.ask(&["keys", "cs:1:{store}:c[ar]:c"]), "");
    assert_eq!(server.ask(&["exists", "cs:1:{store}:orphans"]), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_store_is_sealed_by_a_key() {
    let server = RedisServer::start();
    let url = server.url();
    let plain: Arc<dyn Store> = Arc::new(open(&url, None).unwrap());
    populate(&plain).await;
    plain.add_consumer(rich_consumer("rich")).await.unwrap();
    plain
        .issue_access_token(access_token("a", "c", "u"))
        .await
        .unwrap();
    plain
        .issue_request_token(request_token("r", "c"))
        .await
        .unwrap();
    let records = plain.export().await.unwrap();
    let is_in_clear = || content_has(&server, "secret of ");
    assert!(is_in_clear());

    // A command leaves it as it is, and works.
    let command = Params {
        opening: Opening::Command,
        ..params(&url, Some(7))
    };
    let command = RedisStore::open(command).unwrap();
    assert_eq!(command.export().await.unwrap(), records);
    assert!(is_in_clear());

    let sealed = open(&url, Some(7)).unwrap();
    assert_eq!(sealed.export().await.unwrap(), records);
    let token = sealed.request_token("r").await.unwrap().unwrap();
    assert_eq!(token, request_token("r", "c"));
    assert!(!is_in_clear());
    // A process that has no key must not write secrets in clear now.
    is_unavailable(plain.add_consumer(consumer("d")).await);
    assert!(matches!(open(&url, None), Err(OpenError::KeyMissing(_))));
    assert!(matches!(open(&url, Some(8)), Err(OpenError::WrongKey(_))));
    assert!(!is_in_clear());
}

fn content_has(server: &RedisServer, text: &str) -> bool {
    let keys = server.ask(&["keys", "cs:1:{store}:[cuar]:*"]);
    assert!(!keys.is_empty());
    keys.lines()
        .any(|key| server.ask(&["hgetall", key]).contains(text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_in_with_a_password_or_as_a_user_and_keeps_to_its_database() {
    let server = RedisServer::with(&[
        &["--requirepass", "s3cret"],
        &[
            "--user",
            "app",
            "on",
            ">p@ss:word",
            "~cs:*",
            "+@all",
            "-@admin",
        ],
    ]);
    let at = |login: &str, db: &str| format!("redis://{login}127.0.0.1:{}{db}", server.port);
    let store = open(&at(":s3cret@", "/3"), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    let as_user = open(&at("app:p%40ss%3Aword@", "/3"), None).unwrap();
    assert!(
        as_user
            .consumer(&"c".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    let elsewhere = open(&at(":s3cret@", "/4"), None).unwrap();
    assert_eq!(elsewhere.consumers(None, 9).await.unwrap(), []);
    for login in ["", ":wr0ng@", "app:s3cret@"] {
        let error = open(&at(login, ""), None).unwrap_err();
        assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
        let text = format!("{error} {error:?}");
        assert!(
            !text.contains("s3cret") && !text.contains("wr0ng"),
            "{text}"
        );
    }
    // This user may not read settings, which is told rather than passed over.
    let findings = as_user.findings().await.unwrap();
    assert!(findings[0].contains("does not let"), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn speaks_tls_to_a_server_that_it_can_trust() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = RedisServer::with_tls(&certificate, &key);
    let files = tempfile::tempdir().unwrap();
    let trusting = |certificate: &str| {
        let path = files.path().join("ca.pem");
        std::fs::write(&path, certificate).unwrap();
        format!("rediss://127.0.0.1:{}?ca={}", server.port, path.display())
    };
    let store = open(&trusting(&certificate), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    assert!(server.ask(&["dbsize"]).parse::<u32>().unwrap() > 0);
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let by_the_system = format!("rediss://127.0.0.1:{}", server.port);
    for url in [trusting(&other.cert.pem()), by_the_system] {
        let error = open(&url, None).unwrap_err();
        assert!(causes(&error).contains("certificate"), "{error:?}");
    }
    let error = open(&trusting("no certificate"), None).unwrap_err();
    assert!(matches!(error, OpenError::Tls(_)), "{error}");
    // Without TLS there is no answer.
    assert!(open(&format!("redis://127.0.0.1:{}", server.port), None).is_err());
}

/// The error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error}: ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_taken_for_the_primary() {
    let primary = RedisServer::start();
    let replica = RedisServer::replica_of(&primary);
    let error = open(&replica.url(), None).unwrap_err();
    assert!(causes(&error).contains("is a replica"), "{error:?}");
    // A primary that becomes a replica is not written to and not read from.
    let store = open(&primary.url(), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    replica.ask(&["replicaof", "no", "one"]);
    primary.ask(&["replicaof", "127.0.0.1", &replica.port.to_string()]);
    is_unavailable(store.add_consumer(consumer("d")).await);
    tokio::time::sleep(Duration::from_millis(500)).await;
    is_unavailable(store.consumer(&"c".parse().unwrap()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follows_the_sentinels_to_the_new_primary() {
    let mut primary = RedisServer::start();
    let replica = RedisServer::replica_of(&primary);
    let sentinel = RedisServer::sentinel(&primary, "main");
    wait("the Sentinel knows the replica", || {
        sentinel
            .ask(&["sentinel", "replicas", "main"])
            .contains(&replica.port.to_string())
    });
    // The first of the Sentinels is not there, the second hangs.
    let hung = RedisServer::start();
    hung.hang();
    let url = format!(
        "redis+sentinel://127.0.0.1:1,127.0.0.1:{},127.0.0.1:{}/main",
        hung.port, sentinel.port
    );
    let store = open(&url, None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    assert_eq!(primary.ask(&["wait", "1", "5000"]), "1");
    primary.kill();
    is_unavailable(store.add_consumer(consumer("d")).await);
    wait("the Sentinel promotes the replica", || {
        replica.ask(&["role"]).starts_with("master")
    });
    recovers(&store).await;
    assert!(
        store
            .consumer(&"c".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store.add_consumer(consumer("d")).await.unwrap(),
        Added::Added
    );
    let unknown = format!("redis+sentinel://127.0.0.1:{}/other", sentinel.port);
    let error = open(&unknown, None).unwrap_err();
    assert!(causes(&error).contains("no primary of other"), "{error:?}");
}

/// The Cluster of [`works_in_a_cluster`], emptied for each fact.
struct Emptied;

/// The ports of its nodes. The nodes themselves belong to the test: what is static is never dropped.
static CLUSTER: OnceLock<Vec<u16>> = OnceLock::new();

impl Backend for Emptied {
    async fn fresh() -> Self {
        for port in CLUSTER.get().unwrap() {
            assert_eq!(ask(*port, &[], &["flushall"]), "OK");
        }
        Self
    }

    fn engine(&self) -> Engine {
        Engine::Redis(Box::new(Target::parse(&cluster_url(0)).unwrap()))
    }

    async fn open(&self) -> Arc<dyn Store> {
        // Whichever node is named, the store is found.
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let place = OPENED.fetch_add(1, Ordering::Relaxed);
        Arc::new(open(&cluster_url(place), Some(7)).unwrap())
    }
}

fn cluster_url(place: usize) -> String {
    let ports = CLUSTER.get().unwrap();
    let port = ports[place % ports.len()];
    format!("redis+cluster://127.0.0.1:{port}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_in_a_cluster() {
    let nodes = cluster();
    CLUSTER
        .set(nodes.iter().map(|node| node.port).collect())
        .unwrap();
    crate::consumers::changes_only_what_is_asked::<Emptied>().await;
    crate::consumers::removes_what_belongs_to_it::<Emptied>().await;
    crate::users::removal_ends_everything_and_retires_the_id::<Emptied>().await;
    crate::users::tells_what_passwords_cost::<Emptied>().await;
    crate::tokens::lists_by_user_and_consumer_in_pages::<Emptied>().await;
    crate::tokens::keeps_the_latest_use::<Emptied>().await;
    crate::flow::of_racing_decisions_one_is_recorded::<Emptied>().await;
    crate::exchange::of_racing_exchanges_by_both_tokens_one_succeeds::<Emptied>().await;
    crate::exchange::five_wrong_verifiers_void_the_token::<Emptied>().await;
    crate::sessions::no_racing_login_outlives_the_old_password::<Emptied>().await;
    crate::changes::tells_every_kind_once_and_in_order::<Emptied>().await;
    crate::transfer::is_idempotent::<Emptied>().await;
    crate::transfer::takes_all_or_nothing::<Emptied>().await;
    crate::reseal::keeps_what_changes_meanwhile::<Emptied>().await;
    crate::upkeep::purges_what_ended_a_day_ago::<Emptied>().await;
    crate::upkeep::everything_is_there_when_opened_again::<Emptied>().await;

    // All keys of the store are on one node, and the store follows its slot to another.
    Emptied::fresh().await;
    let store = open(&cluster_url(0), None).unwrap();
    store.add_consumer(consumer("c")).await.unwrap();
    let size = |node: &&RedisServer| node.ask(&["dbsize"]).parse::<u32>().unwrap();
    let (full, empty): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| size(node) > 0);
    let ([from], [to, _]) = (&*full, &*empty) else {
        panic!("the store is on {} nodes", full.len());
    };
    move_slot(&nodes, from, to);
    assert_eq!((size(from), size(to) > 0), (0, true));
    recovers(&store).await;
    let found = store.consumer(&"c".parse().unwrap()).await.unwrap();
    assert_eq!(found, Some(consumer("c")));
    assert_eq!(
        store.add_consumer(consumer("d")).await.unwrap(),
        Added::Added
    );
}

/// Moves the slot of the store with all its keys, as an operator who reshards a Cluster does.
fn move_slot(nodes: &[RedisServer], from: &RedisServer, to: &RedisServer) {
    let id = |node: &RedisServer| node.ask(&["cluster", "myid"]);
    let slot = from.ask(&["cluster", "keyslot", "cs:{store}"]);
    let set = |node: &RedisServer, state: &str, other: &RedisServer| {
        let set = node.ask(&["cluster", "setslot", &slot, state, &id(other)]);
        assert_eq!(set, "OK");
    };
    set(to, "importing", from);
    set(from, "migrating", to);
    let (keys, port) = (from.ask(&["keys", "*"]), to.port.to_string());
    let mut migrate = vec!["migrate", "127.0.0.1", &port, "", "0", "5000", "keys"];
    migrate.extend(keys.lines());
    assert_eq!(from.ask(&migrate), "OK");
    set(to, "node", to);
    for node in nodes {
        set(node, "node", to);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warns_of_settings_that_lose_records() {
    let server = RedisServer::start();
    let store = open(&server.url(), None).unwrap();
    let warns = async |word: &str| {
        let findings = store.findings().await.unwrap();
        assert!(
            findings.len() == 1 && findings[0].contains(word),
            "{findings:?}"
        );
    };
    warns("appendonly no").await;
    server.ask(&["config", "set", "appendonly", "yes"]);
    for fsync in ["always", "everysec"] {
        server.ask(&["config", "set", "appendfsync", fsync]);
        assert_eq!(store.findings().await.unwrap(), [""; 0]);
    }
    server.ask(&["config", "set", "maxmemory-policy", "allkeys-lru"]);
    warns("allkeys-lru").await;
    server.ask(&[
        "config",
        "set",
        "maxmemory-policy",
        "noeviction",
        "appendfsync",
        "no",
    ]);
    warns("appendfsync no").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_told_to_other_processes_and_not_lost_by_a_cut() {
    let server = RedisServer::start();
    let (here, there) = (
        open(&server.url(), None).unwrap(),
        open(&server.url(), None).unwrap(),
    );
    let position = here.changes_since(0).await.unwrap().position;
    there.add_consumer(consumer("c")).await.unwrap();
    server.ask(&["client", "kill", "type", "normal"]);
    recovers(&here).await;
    let changes = here.changes_since(position).await.unwrap();
    assert_eq!(changes.changes, [Change::Consumer("c".parse().unwrap())]);
    assert!(!changes.incomplete);
}
