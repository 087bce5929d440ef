use async_trait::async_trait;

use super::*;
use crate::records::values::ExternalRecords;

/// An application with the consumers `x` and `y` and the token `e` of `x`, which it finds for `x` alone.
#[derive(Default)]
struct Application {
    /// What it was asked, and whether it was a refresh.
    asked: Mutex<Vec<(String, bool)>>,
    fails: std::sync::atomic::AtomicBool,
}

impl Application {
    fn note(&self, asked: String, is_refresh: bool) -> Result<()> {
        self.asked.lock().push((asked, is_refresh));
        match self.fails.load(SeqCst) {
            true => Err(StoreError::Broken("fails")),
            false => Ok(()),
        }
    }

    fn take(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut *self.asked.lock())
    }
}

#[async_trait]
impl ExternalRecords for Arc<Application> {
    async fn consumer(&self, key: &ConsumerKey, is_refresh: bool) -> Result<Option<Consumer>> {
        self.note(key.to_string(), is_refresh)?;
        let is_here = matches!(key.as_str(), "x" | "y");
        Ok(is_here.then(|| Consumer::for_tests(key.as_str())))
    }

    async fn access_token(
        &self,
        name: &str,
        consumer: Option<&ConsumerKey>,
        is_refresh: bool,
    ) -> Result<Option<AccessToken>> {
        let consumer = consumer.map_or("", ConsumerKey::as_str);
        self.note(format!("{name} of {consumer}"), is_refresh)?;
        Ok((name == "e" && consumer == "x").then(|| token("e", "x")))
    }
}

fn beside_application() -> (Setup, Arc<Application>) {
    let application = Arc::<Application>::default();
    let store = TestStore::beside(Some(Arc::new(Arc::clone(&application))));
    (setup_in(store, &settings()), application)
}

fn asked(name: &str, is_refresh: bool) -> (String, bool) {
    (name.to_owned(), is_refresh)
}

#[tokio::test]
async fn another_consumer_cannot_make_a_token_unknown() {
    let (setup, application) = beside_application();
    assert!(setup.cached.access(b"e", b"y").await.unwrap().is_none());
    assert!(setup.cached.access(b"e", b"y").await.unwrap().is_none());
    let once = [asked("y", false), asked("e of y", false)];
    assert_eq!(application.take(), once);
    assert!(setup.cached.access(b"e", b"x").await.unwrap().is_some());
    let found = setup.cached.access(b"e", b"y").await.unwrap().unwrap();
    assert_eq!(found.consumer.key.as_str(), "x");
    assert_eq!(
        application.take(),
        [asked("x", false), asked("e of x", false)]
    );
}

#[tokio::test]
async fn a_token_of_an_unknown_consumer_is_not_looked_up() {
    let (setup, application) = beside_application();
    for name in 0..3 {
        let name = format!("made up {name}");
        assert!(
            setup
                .cached
                .access(name.as_bytes(), b"nobody")
                .await
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(application.take(), [asked("nobody", false)]);
}

#[tokio::test]
async fn known_record_is_refreshed_and_a_forgotten_one_is_new() {
    let (setup, application) = beside_application();
    assert!(setup.cached.consumer(b"x").await.unwrap().is_some());
    setup.later(61);
    assert!(setup.cached.consumer(b"x").await.unwrap().is_some());
    setup.forget(&Change::Consumer("x".parse().unwrap())).await;
    assert!(setup.cached.consumer(b"x").await.unwrap().is_some());
    let flags = application
        .take()
        .into_iter()
        .map(|(_, is_refresh)| is_refresh);
    assert_eq!(Vec::from_iter(flags), [false, true, false]);
}

#[tokio::test]
async fn external_record_is_used_no_longer_than_a_missed_report_may() {
    let (setup, application) = beside_application();
    assert!(setup.cached.access(b"e", b"x").await.unwrap().is_some());
    setup.later(20);
    assert!(setup.cached.access(b"e", b"x").await.unwrap().is_some());
    assert_eq!(application.take().len(), 2);
    // The feed is no longer read, so that a report of its revocation cannot arrive.
    setup.store.fail(true);
    setup.later(9);
    assert!(setup.cached.access(b"e", b"x").await.unwrap().is_some());
    setup.later(2);
    assert!(setup.cached.access(b"e", b"x").await.is_err());
    assert_eq!(application.take(), []);
}

#[tokio::test]
async fn external_record_is_not_kept_by_the_feed_in_an_outage() {
    let (setup, application) = beside_application();
    assert!(setup.cached.consumer(b"x").await.unwrap().is_some());
    application.fails.store(true, SeqCst);
    setup.later(59);
    assert!(setup.cached.consumer(b"x").await.unwrap().is_some());
    setup.later(2);
    assert!(setup.cached.consumer(b"x").await.is_err());
}
