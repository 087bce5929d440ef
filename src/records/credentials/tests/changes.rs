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
async fn changes_count_once_the_feed_reports_them() {
    let cases = [
        (
            "a change is followed, once",
            "follow ok, token valid, revoke, tell token, token valid, follow ok, token revoked, reads 1 2, follow ok, \
             token revoked, reads 1 2",
        ),
        (
            "what was read before the feed was first read is in doubt",
            "token valid, revoke, tell token, follow ok, token revoked",
        ),
        (
            "all changes that wait are followed at once",
            "follow ok, token valid, tell other x4, revoke, tell token, follow ok, token revoked",
        ),
        (
            "an issued token is known at once",
            "follow ok, remove access_tokens, token unknown, issue, tell token, follow ok, token valid",
        ),
        (
            "a change of a consumer reaches its tokens",
            "follow ok, token valid, disable, tell consumer, follow ok, token disabled, remove consumers, tell consumer, \
             follow ok, token unknown",
        ),
        (
            "a failed feed continues where it stopped",
            "follow ok, token valid, revoke, tell token, fail, follow fails, recover, follow ok, token revoked",
        ),
    ];
    play(&settings(), &cases).await;
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
