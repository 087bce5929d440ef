//! Readiness, the high-water mark of local nonces, purging, and state that survives closing.

use countersign::{
    base::clock::UnixTime,
    records::{
        nonce::NonceFiles,
        store::{
            port::{ConsentDecision, Decided, Issued},
            record::{RequestToken, RequestTokenState, Session},
        },
    },
};

use crate::{
    records::{
        AUDIT, MOST_SESSIONS, NOW, VERIFIER, ask, authorize, decide_as, exchange, exported, id,
        issue, later, open_session, populated, request_token, session, verified,
        with_redirect_token,
    },
    suite::Backend,
};

pub(crate) async fn answers_a_ping<B: Backend>() {
    let backend = B::fresh().await;
    backend.open().await.ping().await.unwrap();
}

pub(crate) async fn the_mark_of_nonces_only_rises<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    assert_eq!(store.local_nonces_until().await.unwrap(), None);
    for (written, kept) in [(5, 5), (4, 5), (9, 9), (0, 9)] {
        store
            .set_local_nonces_until(later(written), None)
            .await
            .unwrap();
        assert_eq!(store.local_nonces_until().await.unwrap(), Some(later(kept)));
    }
    let files = |id: &str, version| NonceFiles {
        id: id.to_owned(),
        version,
    };
    assert_eq!(store.nonce_files("a").await.unwrap(), None);
    for (id, written, kept) in [("a", 5, 5), ("a", 4, 5), ("a", 9, 9), ("b", 1, 1)] {
        let noted = Some(files(id, written));
        store.set_local_nonces_until(later(0), noted).await.unwrap();
        assert_eq!(store.nonce_files(id).await.unwrap(), Some(kept));
    }
    let other = backend.open().await;
    assert_eq!(other.local_nonces_until().await.unwrap(), Some(later(9)));
    assert_eq!(other.nonce_files("a").await.unwrap(), Some(9));
}

pub(crate) async fn purges_what_ended_a_day_ago<B: Backend>() {
    const DAY: u64 = 24 * 3600;
    let (_backend, store) = populated::<B>().await;
    let token = |token: &str, ends| RequestToken {
        expires_at: later(ends),
        ..request_token(token, "c")
    };
    let denied = async |name: &str, ends| {
        let issued = store.issue_request_token(token(name, ends), 9).await;
        assert_eq!(issued.unwrap(), Issued::Issued);
        let denied = decide_as(&store, name, &id("u"), ConsentDecision::Deny, UnixTime(0)).await;
        assert_eq!(denied.unwrap(), Decided::Recorded);
    };
    for (name, ends) in [("old", 0), ("young", 2)] {
        denied(name, ends).await;
    }
    for (byte, ends) in [(1, 0), (2, 2)] {
        let session = Session {
            expires_at: later(ends),
            ..session(byte, "u")
        };
        let verified = verified(&store, "u").await;
        assert!(
            store
                .open_session(session, verified, MOST_SESSIONS)
                .await
                .unwrap()
        );
    }
    issue(&store, "a").await;
    let there = async || {
        let old = store.request_token("old").await.unwrap().is_some();
        let young = store.request_token("young").await.unwrap().is_some();
        // Sessions that have ended are found by an earlier time.
        let first = store
            .session(&[1; 32], UnixTime(0))
            .await
            .unwrap()
            .is_some();
        let second = store
            .session(&[2; 32], UnixTime(0))
            .await
            .unwrap()
            .is_some();
        [old, young, first, second]
    };
    // Of those that nobody has decided on there may be many.
    let undecided = token("undecided", 0);
    store.issue_request_token(undecided, 9).await.unwrap();
    for (after, is_there) in [(600, true), (601, false)] {
        store.purge(later(after), AUDIT).await.unwrap();
        let found = store.request_token("undecided").await.unwrap();
        assert_eq!(found.is_some(), is_there, "{after}");
    }
    store.purge(later(DAY), AUDIT).await.unwrap();
    assert_eq!(there().await, [true; 4]);
    store.purge(later(DAY + 1), AUDIT).await.unwrap();
    assert_eq!(there().await, [false, true, false, true]);
    store.purge(later(10 * DAY), AUDIT).await.unwrap();
    assert_eq!(there().await, [false; 4]);
    // Access tokens and their identifiers are never purged.
    assert!(store.access_token("a").await.unwrap().is_some());
}

pub(crate) async fn everything_is_there_when_opened_again<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    let decision = with_redirect_token();
    authorize(&store, decision).await;
    ask(&store, "used").await;
    let user = id("u");
    let simple = ConsentDecision::Allow {
        verifier: VERIFIER.into(),
        redirect_token: None,
        expires_at: later(1200),
    };
    decide_as(&store, "used", &user, simple, NOW).await.unwrap();
    store.exchange(exchange("used", "c")).await.unwrap();
    open_session(&store, 1, "u").await;
    let records = exported(&store).await;
    let position = store.changes_since(0).await.unwrap().position;
    drop(store);

    let store = backend.open().await;
    assert_eq!(exported(&store).await, records);
    assert_eq!(store.changes_since(0).await.unwrap().position, position);
    assert!(store.session(&[1; 32], NOW).await.unwrap().is_some());
    let used = store.request_token("used").await.unwrap().unwrap();
    assert_eq!(used.state, RequestTokenState::Exchanged);
    assert!(matches!(
        store
            .request_token("redirect")
            .await
            .unwrap()
            .unwrap()
            .state,
        RequestTokenState::Authorized { .. }
    ));
}
