//! The cache of consumers and tokens.

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
        store::test_double::TestStore,
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

/// What a read of the token found.
fn outcome(answer: &Answer) -> &'static str {
    match answer {
        Ok(None) => "unknown",
        Ok(Some(found)) if found.is_revoked => "revoked",
        Ok(Some(found)) if !found.consumer.enabled => "disabled",
        Ok(Some(_)) => "valid",
        Err(StoreError::Unavailable(_)) => "unavailable",
        Err(_) => "faulty",
    }
}

/// Runs the steps of each case, which has a name, on a setup of its own; `x3` after a step repeats it.
async fn play(settings: &CacheSettings, cases: &[(&str, &str)]) {
    for (name, steps) in cases {
        let setup = setup_with(settings);
        let issued = setup.store.access_token_of("t").unwrap();
        let (mut asked, mut waiting) = (Vec::new(), Vec::new());
        for step in steps.split(", ").flat_map(|step| {
            let (step, times) = step.split_once(" x").unwrap_or((step, "1"));
            std::iter::repeat_n(step, times.parse().unwrap())
        }) {
            let at = format!("{name}: {step}");
            let token = || setup.cached.access(b"t", b"c");
            let change = |record| match record {
                "token" => token_changed(),
                "consumer" => consumer_changed(),
                _ => Change::AccessToken(record.into()),
            };
            match Vec::from_iter(step.split(' '))[..] {
                ["hold"] => setup.store.hold(),
                ["pass"] => setup.store.let_new_ones_pass(),
                ["release"] => setup.store.release(),
                ["fail"] => setup.store.fail(true),
                ["recover"] => setup.store.fail(false),
                ["revoke"] => setup.revoke(),
                ["issue"] => setup.store.put_access_token(&issued),
                ["disable"] => {
                    let disable = |consumer: &mut Consumer| consumer.enabled = false;
                    setup.store.change_consumer("c", disable);
                }
                ["remove", table] => setup.store.sql(&format!("DELETE FROM {table}")),
                ["forget", record] => setup.forget(&change(record)).await,
                ["tell", record] => setup.store.tell(change(record)),
                ["follow", expected] => {
                    let followed = setup.feed.follow().await;
                    assert_eq!(followed.is_ok(), expected == "ok", "{at}: {followed:?}");
                }
                ["later", by] => match by.strip_prefix('-') {
                    Some(back) => setup
                        .clock
                        .set(START.before(seconds(back.parse().unwrap()))),
                    None => setup.later(by.parse().unwrap()),
                },
                // A call whose read has begun, and one that waits for that read.
                ["ask"] => asked.push(setup.ask_and_be_held().await),
                ["wait"] => {
                    let mut call = Box::pin(token());
                    assert!(poll_once(call.as_mut()).await.is_none(), "{at}");
                    waiting.push(call);
                }
                ["abort"] => {
                    for call in asked.drain(..) {
                        call.abort();
                        assert!(call.await.is_err(), "{at}");
                    }
                }
                ["asked", expected] => {
                    assert!(!asked.is_empty(), "{at}");
                    for call in asked.drain(..) {
                        assert_eq!(outcome(&call.await.unwrap()), expected, "{at}");
                    }
                }
                ["waited", expected] => {
                    assert!(!waiting.is_empty(), "{at}");
                    for call in waiting.drain(..) {
                        assert_eq!(outcome(&call.await), expected, "{at}");
                    }
                }
                ["token", expected] => assert_eq!(outcome(&token().await), expected, "{at}"),
                ["consumer", expected] => {
                    let found = match setup.cached.consumer(b"c").await {
                        Ok(found) => found.map_or("unknown", |_| "valid"),
                        Err(_) => "unavailable",
                    };
                    assert_eq!(found, expected, "{at}");
                }
                ["reads", consumers, tokens] => {
                    let expected = (consumers.parse().unwrap(), tokens.parse().unwrap());
                    assert_eq!(setup.reads(), expected, "{at}");
                }
                ["stale", count] => {
                    assert_eq!(
                        setup.cached.counts().1.stale.get().to_string(),
                        count,
                        "{at}"
                    );
                }
                ["errors", count] => {
                    assert_eq!(
                        setup.cached.counts().1.errors.get().to_string(),
                        count,
                        "{at}"
                    );
                }
                _ => panic!("{at} is not a step"),
            }
        }
    }
}

async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
