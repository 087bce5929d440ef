//! The feed of changes.

use super::*;
use crate::telemetry::{calls::record::CallRecord, metrics::Verdict};

impl Setup {
    fn tell(&self, change: Change) {
        self.store.tell(change);
    }

    async fn follow(&self) {
        self.feed.follow().await.unwrap();
    }
}

#[tokio::test]
async fn a_change_is_seen_once_it_was_followed() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    setup.revoke();
    setup.tell(Change::AccessToken("t".into()));
    assert!(!setup.is_revoked().await);
    setup.follow().await;
    assert!(setup.is_revoked().await);
    // A change is followed once.
    let before = setup.reads();
    setup.follow().await;
    setup.access().await;
    assert_eq!(setup.reads(), before);
}

#[tokio::test]
async fn what_was_read_before_the_feed_was_first_asked_is_in_doubt() {
    let setup = setup();
    setup.access().await;
    setup.revoke();
    setup.tell(Change::AccessToken("t".into()));
    setup.follow().await;
    assert!(setup.is_revoked().await);
}

#[tokio::test]
async fn all_that_waits_is_followed_at_once() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    for other in ["a", "b", "d", "e"] {
        setup.tell(Change::AccessToken(other.into()));
    }
    setup.revoke();
    setup.tell(Change::AccessToken("t".into()));
    setup.follow().await;
    assert!(setup.is_revoked().await);
}

#[tokio::test]
async fn a_token_given_out_is_known_at_once() {
    let setup = setup();
    setup.follow().await;
    assert!(setup.cached.access(b"new", b"c").await.unwrap().is_none());
    setup.store.put_access_token(&token("new", "c"));
    setup.tell(Change::AccessToken("new".into()));
    setup.follow().await;
    assert!(setup.cached.access(b"new", b"c").await.unwrap().is_some());
}

#[tokio::test]
async fn a_change_of_a_consumer_reaches_its_tokens() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    let key: ConsumerKey = "c".parse().unwrap();
    setup
        .store
        .change_consumer("c", |consumer| consumer.enabled = false);
    setup.tell(Change::Consumer(key.clone()));
    setup.follow().await;
    assert!(!setup.access().await.unwrap().consumer.enabled);
    setup.store.sql("DELETE FROM consumers");
    setup.tell(Change::Consumer(key));
    setup.follow().await;
    assert!(setup.access().await.is_none());
}

#[tokio::test]
async fn rejections_of_a_removed_consumer_are_forgotten() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    let call = CallRecord {
        consumer: Some("c".into()),
        verdict: Verdict::NonceUsed,
        ..CallRecord::default()
    };
    setup.rejections.add(KeptCall {
        is_registered: true,
        ..KeptCall::from(call)
    });
    let key: ConsumerKey = "c".parse().unwrap();
    setup.tell(Change::Consumer(key.clone()));
    setup.follow().await;
    assert_eq!(setup.rejections.reasons(None).len(), 1, "only changed");
    setup.store.sql("DELETE FROM access_tokens");
    setup.store.sql("DELETE FROM consumers");
    setup.tell(Change::Consumer(key));
    setup.follow().await;
    assert!(setup.rejections.reasons(None).is_empty());
    assert!(setup.rejections.newest().is_empty());
}

#[tokio::test]
async fn a_gap_in_the_feed_puts_everything_in_doubt() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    setup.store.hold();
    let held = {
        let cached = Arc::clone(&setup.cached);
        setup.store.put_access_token(&token("u", "c"));
        let task = tokio::spawn(async move { cached.access(b"u", b"c").await });
        setup.store.arrived().await;
        task
    };
    setup.store.let_new_ones_pass();
    setup.revoke();
    setup
        .store
        .change_access_token("u", |token| token.revoked_at = Some(START));
    setup
        .store
        .sql("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'changes'");
    setup.follow().await;
    assert!(setup.is_revoked().await);
    setup.store.release();
    assert!(held.await.unwrap().unwrap().unwrap().is_revoked);
}

#[tokio::test]
async fn a_failing_feed_is_taken_up_where_it_was_left() {
    let setup = setup();
    setup.follow().await;
    setup.access().await;
    setup.revoke();
    setup.tell(Change::AccessToken("t".into()));
    setup.store.fail(true);
    assert!(setup.feed.follow().await.is_err());
    setup.store.fail(false);
    setup.follow().await;
    assert!(setup.is_revoked().await);
}

#[tokio::test]
async fn of_two_that_follow_at_once_one_reports() {
    let setup = setup();
    setup.follow().await;
    for report in ["one", "two"] {
        setup.tell(Change::FailedLogin(report.to_owned()));
    }
    let (one, other) = tokio::join!(setup.feed.follow(), setup.feed.follow());
    one.and(other).unwrap();
    assert_eq!(*setup.failed_logins.lock(), ["one", "two"]);
}
