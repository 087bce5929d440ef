//! Last uses.

use std::net::{IpAddr, Ipv6Addr};

use super::*;
use crate::{
    oauth::SignatureMethod,
    records::values::record::{ConsumerUse, Dialect},
};

const RECORD_USES: &str = "UPDATE countersign.access_tokens SET last_used_at";
const RECORD_CONSUMER_USES: &str = "INSERT INTO countersign.consumer_uses";

fn written(setup: &Setup) -> (Option<UnixTime>, Option<IpAddr>) {
    let token = setup.store.access_token_of("t").unwrap();
    (token.last_used_at, token.last_used_from)
}

/// The caller of a use at that time has an address of its own.
fn from(later: u64) -> Option<IpAddr> {
    Some(IpAddr::from(Ipv6Addr::from(
        0x2001 << 112 | u128::from(later),
    )))
}

fn used(later: u64) -> (Option<UnixTime>, Option<IpAddr>) {
    (Some(at(later)), from(later))
}

fn at(later: u64) -> UnixTime {
    START.after(seconds(later))
}

#[tokio::test]
async fn uses_are_written_once_with_the_latest_time() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    for later in [1, 3, 2, 3] {
        setup.cached.touch(&found, at(later), from(later));
    }
    assert_eq!(found.last_used(), Some(at(3)));
    setup.cached.flush_uses().await.unwrap();
    setup.cached.flush_uses().await.unwrap();
    setup.cached.touch(&found, at(3), from(3));
    setup.cached.flush_uses().await.unwrap();
    setup.cached.touch(&found, at(4), from(4));
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(4));
    assert_eq!(setup.store.statements_with(RECORD_USES), 2);
}

#[tokio::test]
async fn uses_that_could_not_be_written_are_kept() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    setup.cached.touch(&found, at(1), from(1));
    setup.store.fail(true);
    assert!(setup.cached.flush_uses().await.is_err());
    setup.cached.touch(&found, at(2), from(2));
    assert!(setup.cached.flush_uses().await.is_err());
    setup.store.fail(false);
    setup.cached.flush_uses().await.unwrap();
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(2));
}

#[tokio::test]
async fn uses_are_kept_when_writing_is_given_up() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    setup.cached.touch(&found, at(1), from(1));
    setup.store.hold();
    let cached = Arc::clone(&setup.cached);
    let flush = tokio::spawn(async move { cached.flush_uses().await });
    setup.store.arrived().await;
    flush.abort();
    assert!(flush.await.is_err());
    setup.store.release();
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(1));
}

#[tokio::test]
async fn many_uses_are_written_in_parts_and_all_of_them() {
    let setup = setup_with(&CacheSettings {
        max_entries: 20_000,
        ..settings()
    });
    for number in 0..12_000 {
        let name = format!("t{number}");
        setup.store.put_access_token(&token(&name, "c"));
        let found = setup
            .cached
            .access(name.as_bytes(), b"c")
            .await
            .unwrap()
            .unwrap();
        setup.cached.touch(&found, at(1), from(1));
    }
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(setup.store.statements_with(RECORD_USES), 3);
    assert_eq!(
        setup.store.count("access_tokens WHERE last_used_at > 0"),
        12_000
    );
}

#[tokio::test]
async fn a_use_that_is_not_written_yet_outlives_the_entry() {
    let setup = setup();
    setup
        .cached
        .touch(&setup.access().await.unwrap(), at(50), from(50));
    setup
        .store
        .change_access_token("t", |token| token.expires_at = Some(at(500)));
    setup.later(60);
    let found = setup.access().await.unwrap();
    assert_eq!(found.expires_at, Some(at(500)));
    assert_eq!(found.last_used(), Some(at(50)));
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(50));
}

#[tokio::test]
async fn a_later_use_in_the_store_is_seen() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    setup.cached.touch(&found, at(10), from(10));
    // Another process was used later.
    setup
        .store
        .change_access_token("t", |token| token.last_used_at = Some(at(20)));
    setup.later(30);
    assert_eq!(setup.access().await.unwrap().last_used(), Some(at(10)));
    assert_eq!(
        setup
            .cached
            .access_reloaded(b"t", b"c")
            .await
            .unwrap()
            .unwrap()
            .last_used(),
        Some(at(20))
    );
    setup
        .store
        .change_access_token("t", |token| token.last_used_at = Some(at(70)));
    setup.later(60);
    assert_eq!(setup.access().await.unwrap().last_used(), Some(at(70)));
}

#[tokio::test]
async fn reloading_loses_no_use() {
    let setup = setup();
    setup
        .cached
        .touch(&setup.access().await.unwrap(), at(10), from(10));
    let found = setup
        .cached
        .access_reloaded(b"t", b"c")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.last_used(), Some(at(10)));
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(10));
}

#[tokio::test]
async fn time_and_address_of_a_use_are_of_one_call() {
    let setup = setup();
    let found = setup.access().await.unwrap();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (setup, found) = (&setup, &found);
            scope.spawn(move || {
                for later in (1..2_000).filter(|later| later % 4 == first) {
                    setup.cached.touch(found, at(later), from(later));
                }
            });
        }
    });
    // A later call in the same second does not count, nor does an earlier one.
    setup.cached.touch(&found, at(1_999), from(1));
    setup.cached.touch(&found, at(1_998), from(1));
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(written(&setup), used(1_999));
}

#[tokio::test]
async fn the_use_of_a_consumer_is_written_with_its_method_and_dialect() {
    let setup = setup();
    let consumer = setup.cached.consumer(b"c").await.unwrap().unwrap();
    let touch = |later, method, dialect| {
        setup
            .cached
            .touch_consumer(&consumer, at(later), method, dialect);
    };
    for &method in SignatureMethod::ALL {
        for (number, dialect) in [(0, Dialect::Rfc5849), (1, Dialect::Legacy)] {
            let later = 10 * (method as u64 + 1) + number;
            touch(later, method, dialect);
            // Only the first use in a second counts, and an earlier use does not.
            touch(later, SignatureMethod::HmacSha1, Dialect::Rfc5849);
            touch(later - 5, SignatureMethod::HmacSha1, Dialect::Rfc5849);
            setup.store.fail(true);
            assert!(setup.cached.flush_uses().await.is_err());
            setup.store.fail(false);
            setup.cached.flush_uses().await.unwrap();
            let keys = ["c".parse().unwrap()];
            let uses = setup.store.store().consumer_uses(&keys).await.unwrap();
            let expected = ConsumerUse {
                consumer: "c".parse().unwrap(),
                last_used_at: at(later),
                method: Some(method.as_str().to_owned()),
                dialect: Some(dialect),
            };
            assert_eq!(uses, [expected]);
        }
    }
    let written = setup.store.statements_with(RECORD_CONSUMER_USES);
    setup.cached.flush_uses().await.unwrap();
    assert_eq!(setup.store.statements_with(RECORD_CONSUMER_USES), written);
}
