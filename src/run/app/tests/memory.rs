//! The memory that a consumer with a token takes in the whole process, once it is in use.

use std::{net::IpAddr, num::NonZeroUsize, process::Command, sync::Arc, time::Duration};

use crate::{
    base::{
        clock::{Clock, UnixTime},
        memory,
        secret::Secret,
    },
    oauth::{SignatureMethod, sign},
    records::{
        credentials::{CacheSettings, Cached, LocalAccess},
        nonce::{Insertion, LocalWindow, NonceUse, OnLost, WindowParams},
        store::test_double::{TestStore, user},
        values::record::{AccessToken, Consumer, ConsumerUse, Dialect},
    },
    request::policy::rate_limit::ConsumerRates,
};

/// The pairs up to which memory is counted, from half of them on: in between the tables of the cache grow, as they do up to a
/// million pairs. Another number can be set in [`PAIRS`].
const USUAL: usize = 40_000;
/// Names the number of pairs, such as 200000, which take a minute of a core.
const PAIRS: &str = "COUNTERSIGN_TEST_PAIRS";
/// The pairs that are put into the store at once.
const BATCH: usize = 10_000;
/// The pairs whose uses are written at once.
const USES: usize = 1_000;
/// The most bytes of a pair, as the process of the program takes them: with the threads of a store in a file, whose own
/// memory is limited.
const MOST_BYTES: u64 = 1_950;
/// Set in the process whose memory is counted.
const FILLS: &str = "COUNTERSIGN_TEST_FILLS_PROCESS";
const NOW: UnixTime = UnixTime(1_000_000);

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// The number of pairs, in whole batches.
fn pairs() -> usize {
    let set = std::env::var(PAIRS).ok();
    let pairs = set.map_or(USUAL, |text| text.parse().unwrap());
    pairs.next_multiple_of(2 * BATCH)
}

fn name(what: &str, number: usize) -> String {
    format!("{what}{number:07}{}", "x".repeat(19))
}

/// Returns what is free to the system, as after enough parked connections.
fn return_free_pages() {
    (0..256).for_each(|_| memory::connection_parked());
    memory::return_free_pages();
}

/// Puts the pairs into the store, each used before: so that their next use takes no room there.
async fn put_pairs(store: &TestStore, pairs: usize) {
    let before = UnixTime(NOW.0 - 1);
    store.put_user(user("user"));
    for first in (0..pairs).step_by(BATCH) {
        let (mut consumers, mut tokens) = (Vec::new(), Vec::new());
        for number in first..first + BATCH {
            let mut consumer = Consumer::for_tests(&name("consumer", number));
            consumer.secret = Secret::from(name("secret", number));
            consumer.permissions = vec!["members.read".parse().unwrap()];
            tokens.push(AccessToken {
                token: name("token", number),
                secret: Secret::from(name("secret", number)),
                consumer: consumer.key.clone(),
                user: "id-user".parse().unwrap(),
                permissions: consumer.permissions.clone(),
                issued_at: NOW,
                expires_at: None,
                last_used_at: Some(before),
                last_used_from: Some(IpAddr::from([192, 0, 2, 7])),
                revoked_at: None,
                began: Default::default(),
                with_display_name: false,
            });
            consumers.push(consumer);
        }
        store.put_all(&consumers, &tokens);
        let uses = consumers.into_iter().map(|consumer| ConsumerUse {
            consumer: consumer.key,
            last_used_at: before,
            method: Some("HMAC-SHA1".to_owned()),
            dialect: Some(Dialect::Rfc5849),
        });
        let written = store.store().record_consumer_uses(uses.collect()).await;
        written.unwrap();
    }
}

/// Uses each pair once, with all that a request does with it, and prints the bytes that a pair takes.
async fn fill() {
    memory::limit_heaps(NonZeroUsize::MIN);
    let directory = tempfile::tempdir().unwrap();
    let (store, pairs) = (
        TestStore::in_file(&directory.path().join("store.db")),
        pairs(),
    );
    put_pairs(&store, pairs).await;
    // Memory that is free now would be used again, and not be counted.
    return_free_pages();
    let settings = CacheSettings {
        max_entries: pairs as u64,
        // Longer than this takes, so that moka drops none of them.
        ttl: Duration::from_secs(3600),
        negative_ttl: Duration::from_secs(5),
        stale_if_error: Duration::from_secs(10),
    };
    let clock = Clock::manual(NOW);
    let cached = Arc::new(Cached::new(store.store(), &settings, clock));
    let rates = ConsumerRates::new("100 per 1h".parse().ok());
    let nonces = LocalWindow::open(&WindowParams {
        path: None,
        window: Duration::from_secs(300),
        // A shard of a second takes room for several nonces at once.
        max_entries: 2 * pairs as u64,
    });
    let nonces = nonces.unwrap().start(NOW, None, OnLost::Refuse).unwrap();
    let mut counted = Vec::new();
    for number in 0..pairs {
        let (token, moment) = (name("token", number), cached.moment(NOW));
        let found = cached
            .access(token.as_bytes(), b"c")
            .await
            .unwrap()
            .unwrap();
        let (_, key) = found.keys(NOW).next().unwrap();
        assert!(sign(SignatureMethod::HmacSha1, key, &b"text".as_slice()).is_some());
        cached.keep_at_hand(&LocalAccess::from(Arc::clone(&found)), moment);
        let insertion = nonces.insert(&NonceUse {
            timestamp: NOW.0 + number as u64 / 1_000,
            consumer: found.consumer.key.as_str().as_bytes(),
            token: token.as_bytes(),
            nonce: b"nonce",
        });
        assert_eq!(insertion, Insertion::Fresh);
        cached.touch(&found, NOW, Some(IpAddr::from([192, 0, 2, 8])));
        cached.touch_consumer(
            &found.consumer,
            NOW,
            SignatureMethod::HmacSha1,
            Dialect::Rfc5849,
        );
        rates.pass(&found.consumer, &mut None).unwrap();
        let values = found.field_values().unwrap();
        let sent = [
            values.user.as_ref(),
            Some(&values.consumer),
            Some(&values.permissions),
        ];
        assert!(sent.map(Option::<&_>::cloned).iter().all(Option::is_some));
        if (number + 1) % USES == 0 {
            cached.flush_uses().await.unwrap();
        }
        if (number + 1) % (pairs / 2) == 0 {
            // As the process does while connections come and go.
            return_free_pages();
            counted.push(resident());
        }
    }
    println!("bytes {}", (counted[1] - counted[0]) / (pairs as u64 / 2));
    let (hits, misses) = (&cached.counts().1.hits, &cached.counts().1.misses);
    assert_eq!((hits.get(), misses.get()), (0, pairs as u64));
    for number in (0..pairs).step_by(BATCH) {
        let token = name("token", number);
        cached
            .access(token.as_bytes(), b"c")
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(misses.get(), pairs as u64, "some were dropped");
}

#[test]
fn a_consumer_with_a_token_in_use_takes_at_most_1950_bytes() {
    if std::env::var_os(FILLS).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        return runtime.unwrap().block_on(fill());
    }
    // In a process of its own, where no other test takes memory.
    let name = std::thread::current().name().unwrap().to_owned();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(FILLS, "1")
        .output()
        .unwrap();
    let [text, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let bytes = text.lines().find_map(|line| line.strip_prefix("bytes "));
    let bytes: u64 = bytes.expect(&errors).parse().unwrap();
    println!("{bytes} bytes for each pair");
    assert!(
        output.status.success() && bytes <= MOST_BYTES,
        "{bytes}: {errors}"
    );
}
