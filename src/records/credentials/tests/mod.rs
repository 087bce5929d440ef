//! The cache of consumers and tokens.
//!
//! Promise (Permissions and identity): Unknown keys do not evict known ones from the cache.

mod changes;
mod consumers_of_tokens;
mod expiry;
mod external;
mod loading;
mod uses;

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use super::*;
use crate::{
    records::{
        credentials::feed::ChangeHub,
        store::double::TestStore,
        values::{
            StoreError,
            record::{AccessToken, Consumer},
        },
    },
    telemetry::calls::rejections::{KeptCall, Rejections},
};

const START: UnixTime = UnixTime(1_000_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settings() -> CacheSettings {
    CacheSettings {
        max_entries: 1_000,
        ttl: seconds(60),
        negative_ttl: seconds(5),
        stale_if_error: seconds(10),
    }
}

fn token(token: &str, consumer: &str) -> AccessToken {
    AccessToken {
        token: token.to_owned(),
        secret: Secret::from("token secret"),
        consumer: consumer.parse().unwrap(),
        user: "user".parse().unwrap(),
        permissions: Vec::new(),
        issued_at: START,
        expires_at: None,
        last_used_at: None,
        last_used_from: None,
        revoked_at: None,
        began: Default::default(),
        with_display_name: false,
    }
}

fn token_changed() -> Change {
    Change::AccessToken("t".into())
}

fn consumer_changed() -> Change {
    Change::Consumer("c".parse().unwrap())
}

/// A store with the consumer `c` and its token `t`, a cache in front of it, and their clock.
struct Setup {
    store: Arc<TestStore>,
    cached: Arc<Cached>,
    clock: Clock,
    feed: ChangeHub,
    /// The failed logins that the feed has reported.
    failed_logins: Arc<Mutex<Vec<String>>>,
    rejections: Arc<Rejections>,
}

fn setup_with(settings: &CacheSettings) -> Setup {
    setup_in(TestStore::default(), settings)
}

fn setup_in(store: TestStore, settings: &CacheSettings) -> Setup {
    let store = Arc::new(store);
    store.put_consumer(&Consumer::for_tests("c"));
    store.put_access_token(&token("t", "c"));
    let clock = Clock::manual(START);
    let underlying = store.store();
    let cached = Arc::new(Cached::new(
        Arc::clone(&underlying),
        settings,
        clock.clone(),
    ));
    let rejections = Arc::new(Rejections::new(clock.clone()));
    let failed_logins = Arc::<Mutex<Vec<String>>>::default();
    let failed = Arc::clone(&failed_logins);
    let on_failed_login = move |report: &str| failed.lock().push(report.to_owned());
    Setup {
        feed: ChangeHub::new(
            underlying,
            clock.clone(),
            Arc::clone(&cached),
            Arc::clone(&rejections),
            on_failed_login,
        ),
        cached,
        store,
        clock,
        failed_logins,
        rejections,
    }
}

fn setup() -> Setup {
    setup_with(&settings())
}

impl Setup {
    async fn forget(&self, change: &Change) {
        self.cached.forget(std::slice::from_ref(change)).await;
    }

    /// Reads of consumers and of tokens so far.
    fn reads(&self) -> (usize, usize) {
        (
            self.store
                .statements_with("FROM countersign.consumers WHERE key = $1"),
            self.store
                .statements_with("FROM countersign.access_tokens WHERE token = $1"),
        )
    }

    /// Moves the clock, and reads the feed to its end unless the store fails.
    fn later(&self, by: u64) {
        self.clock.advance(seconds(by));
        if !self.store.fails() {
            let now = self.clock.now();
            self.cached.feed_read_at(now);
        }
    }

    /// Revokes `t` in the store, without a report to the cache.
    fn revoke(&self) {
        let revoke = |token: &mut AccessToken| token.revoked_at = Some(START);
        self.store.change_access_token("t", revoke);
    }

    async fn access(&self) -> Option<Arc<AccessCredentials>> {
        self.cached.access(b"t", b"c").await.unwrap()
    }

    async fn is_revoked(&self) -> bool {
        self.access().await.unwrap().is_revoked
    }

    /// Asks for `t` in a task of its own, and returns when its read is at the gate.
    async fn ask_and_be_held(&self) -> tokio::task::JoinHandle<Answer> {
        let cached = Arc::clone(&self.cached);
        let task = tokio::spawn(async move { cached.access(b"t", b"c").await });
        self.store.arrived().await;
        task
    }
}

type Answer = Result<Option<Arc<AccessCredentials>>, StoreError>;
