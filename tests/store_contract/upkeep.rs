//! Readiness, the high-water mark of local nonces, purging, and state that survives closing.

use std::time::Duration;

use countersign::{
    base::clock::UnixTime,
    records::{
        nonce::NonceFiles,
        store::Store,
        values::{
            record::{AccessToken, RequestToken, RequestTokenState, Session, TokenBeginning},
            transfer::{Import, Record},
            use_cases::{Added, ConsentDecision, Decided, Ended, Issued, TokenFilter},
        },
    },
};

use crate::store_contract::{
    records::{
        AUDIT, MOST_SESSIONS, NOW, access_token, allow, ask, authorize, decide_as, exchange,
        exported, id, import_list, issue, later, open_session, populated, populated_twice,
        request_token, session, verified, with_redirect_token,
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

const DAY: u64 = 24 * 3600;
/// `tokens.keep_expired`.
const KEEP: Duration = Duration::from_secs(30 * DAY);

/// The numbers that [`Store::remove_ended`] adds.
async fn remove_ended(store: &Store, now: UnixTime) -> Ended {
    let mut ended = Ended::default();
    store.remove_ended(now, KEEP, &mut ended).await.unwrap();
    ended
}

pub(crate) async fn removes_request_tokens_and_sessions_a_day_after_their_end<B: Backend>() {
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
    store.close_sessions(&id("u"), None, None).await.unwrap();
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
    for (consumer, byte, ends) in [("c", 1, 0), ("d", 2, DAY)] {
        let key = consumer.parse().unwrap();
        let hash = [byte; 32];
        let put = store.put_developer_link(&key, &hash, later(ends));
        put.await.unwrap();
    }
    let links = async || {
        let mut found = Vec::new();
        for byte in [1, 2] {
            let link = store
                .developer_link(&[byte; 32], UnixTime(0))
                .await
                .unwrap();
            found.push(link.is_some());
        }
        found
    };
    // There may be many that are not decided.
    let undecided = token("undecided", 0);
    store.issue_request_token(undecided, 9).await.unwrap();
    for (after, is_there) in [(600, true), (601, false)] {
        store.purge(later(after), AUDIT).await.unwrap();
        let found = store.request_token("undecided").await.unwrap();
        assert_eq!(found.is_some(), is_there, "{after}");
    }
    assert_eq!(links().await, [false, true]);
    let both = |count| Ended {
        request_tokens: count,
        sessions: count,
        ..Ended::default()
    };
    for (after, removed, stay) in [
        (DAY, 0, [true; 4]),
        (DAY + 1, 1, [false, true, false, true]),
        (10 * DAY, 1, [false; 4]),
        (10 * DAY, 0, [false; 4]),
    ] {
        let ended = remove_ended(&store, later(after)).await;
        assert_eq!(ended, both(removed), "{after}");
        assert_eq!(there().await, stay, "{after}");
    }
    // A shorter time for tokens is also theirs.
    denied("short", 20 * DAY).await;
    let mut ended = Ended::default();
    let hour = Duration::from_secs(3600);
    let now = later(20 * DAY + 3601);
    store.remove_ended(now, hour, &mut ended).await.unwrap();
    assert_eq!(ended.request_tokens, 1);
}

pub(crate) async fn removes_access_tokens_some_time_after_their_end<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let token = |name: &str, expires_at, revoked_at, began| AccessToken {
        expires_at,
        revoked_at,
        began,
        ..access_token(name, "c", "u")
    };
    let far = Some(later(1_000 * DAY));
    let (at, next) = (Some(later(0)), Some(later(1)));
    use TokenBeginning::{Consent, Imported, Issued};
    for token in [
        token("expired", at, None, Consent),
        token("expired, then revoked", at, next, Issued),
        token("expired and imported", at, None, Imported),
        token("revoked", None, at, Consent),
        token("revoked early", far, at, Consent),
        token("expired later", next, None, Consent),
        token("revoked later", None, next, Consent),
        token("usable", far, None, Consent),
        token("usable for ever", None, None, Imported),
    ] {
        assert_eq!(store.issue_access_token(token).await.unwrap(), Added::Added);
    }
    let backup = exported(&store).await.records;
    let feed = store.changes_since(0).await.unwrap().position;
    let rest = async || {
        let all = TokenFilter::default();
        let rest = store.access_tokens(&all, None, 99).await.unwrap();
        rest.into_iter().map(|one| one.token).collect::<Vec<_>>()
    };
    let end = 30 * DAY;
    for (after, removed) in [(end, 0), (end + 1, 5), (end + 1, 0)] {
        let ended = remove_ended(&store, later(after)).await;
        assert_eq!(ended.access_tokens, removed, "{after}");
    }
    let stay = [
        "expired later",
        "revoked later",
        "usable",
        "usable for ever",
    ];
    assert_eq!(rest().await, stay);
    // Whoever reads the feed has nothing to forget: the tokens were rejected before.
    assert_eq!(store.changes_since(0).await.unwrap().position, feed);
    // What another copy of the record would make usable again, here or in another system, is marked.
    let records = exported(&store).await.records.into_iter();
    let mut marks = records.filter_map(|record| match record {
        Record::RemovedToken(token) => Some(token),
        _ => None,
    });
    let marked = ["expired and imported", "revoked", "revoked early"];
    assert_eq!(marks.by_ref().collect::<Vec<_>>(), marked);
    for name in marked {
        assert_eq!(issue(&store, name).await, Added::Taken, "{name}");
    }
    // A backup restores none of the marked ones. The others are as they were: expired.
    let active: Vec<_> = backup
        .into_iter()
        .map(|record| match record {
            Record::AccessToken(token) => Record::AccessToken(AccessToken {
                revoked_at: None,
                ..token
            }),
            other => other,
        })
        .collect();
    let Import::Imported(imported) = store.import(import_list(active)).await.unwrap() else {
        panic!("the backup was rejected");
    };
    assert_eq!((imported.added, imported.not_restored), (2, 3));
    assert_eq!(remove_ended(&store, later(end + 1)).await.access_tokens, 2);
    assert_eq!(rest().await, stay);
    assert_eq!(remove_ended(&store, later(end + 2)).await.access_tokens, 2);
    assert_eq!(rest().await, ["usable", "usable for ever"]);
}

pub(crate) async fn several_processes_remove_each_token_once<B: Backend>() {
    const COUNT: usize = 3_000;
    let (_backend, stores) = populated_twice::<B>().await;
    let token = |number| {
        Record::AccessToken(AccessToken {
            // In two places of the index: each is found once.
            revoked_at: (number % 2 == 0).then(|| later(1)),
            ..access_token(&format!("token-{number}"), "c", "u")
        })
    };
    let tokens = import_list((0..COUNT).map(token).collect());
    let imported = stores[0].import(tokens).await.unwrap();
    assert!(matches!(imported, Import::Imported(it) if it.added == COUNT as u64));
    let now = later(40 * DAY);
    let [a, b] = &stores;
    let (a, b) = tokio::join!(remove_ended(a, now), remove_ended(b, now));
    assert_eq!(a.access_tokens + b.access_tokens, COUNT as u64);
    let all = TokenFilter::default();
    let rest = stores[0].access_tokens(&all, None, 9).await.unwrap();
    assert_eq!(rest, []);
}

pub(crate) async fn everything_is_there_when_opened_again<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    let decision = with_redirect_token();
    authorize(&store, decision).await;
    ask(&store, "used").await;
    let user = id("u");
    decide_as(&store, "used", &user, allow(), NOW)
        .await
        .unwrap();
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
