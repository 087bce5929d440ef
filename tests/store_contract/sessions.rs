//! Browser sessions.

use std::{num::NonZeroU32, sync::Arc};

use countersign::{
    base::{secret::Secret, text::names::UserId},
    records::{
        store::Store,
        values::{
            record::{RequestToken, Session, User},
            transfer::{Conflict, Import, Record},
            use_cases::{Change, Decided, VerifiedPassword},
        },
    },
};

use crate::store_contract::{
    records::{
        MOST_SESSIONS, NOW, access_token, allow, id, import_list, later, open_session, populated,
        populated_twice, request_token, session, set_enabled, until_answered, user, verified,
    },
    suite::Backend,
};

pub(crate) async fn opens_finds_and_closes<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    for byte in [1, 2] {
        assert!(open_session(&store, byte, "u").await);
    }
    assert_eq!(
        store.session(&[1; 32], NOW).await.unwrap(),
        Some((session(1, "u"), user("u")))
    );
    store.close_session(&[1; 32]).await.unwrap();
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    store.close_session(&[1; 32]).await.unwrap();
    assert!(store.session(&[2; 32], NOW).await.unwrap().is_some());
}

pub(crate) async fn keeps_the_newest_sessions_of_a_user<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let store = &stores[0];
    store.add_user(user("other")).await.unwrap();
    assert!(open_session(store, 100, "other").await);
    let most = NonZeroU32::new(3).unwrap();
    let verified = verified(store, "u").await;
    let at = |byte: u8, seconds| Session {
        created_at: later(seconds),
        ..session(byte, "u")
    };
    for (byte, seconds) in [(1, 20), (2, 10), (3, 30), (4, 30), (5, 30)] {
        let opened = store.open_session(at(byte, seconds), verified.clone(), most);
        assert!(opened.await.unwrap());
    }
    for (byte, is_there) in [
        (1, false),
        (2, false),
        (3, true),
        (4, true),
        (5, true),
        (100, true),
    ] {
        let found = store.session(&[byte; 32], NOW).await.unwrap();
        assert_eq!(found.is_some(), is_there, "{byte}");
    }
    // Many at once, in two processes.
    let opened = (10..30).map(|byte: u8| {
        let (store, verified) = (Arc::clone(&stores[usize::from(byte) % 2]), verified.clone());
        tokio::spawn(async move {
            until_answered(|| store.open_session(at(byte, 40), verified.clone(), most)).await
        })
    });
    for opened in opened.collect::<Vec<_>>() {
        assert!(opened.await.unwrap());
    }
    let open = store.sessions_of(&id("u"), NOW).await.unwrap();
    assert_eq!(open.len(), 3);
}

pub(crate) async fn lists_and_closes_those_of_one_user<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    stores[0].add_user(user("other")).await.unwrap();
    let id: UserId = id("u");
    let open = async |now| {
        let open = stores[1].sessions_of(&id, now).await.unwrap();
        Vec::from_iter(open.iter().map(|session| session.id_hash[0]))
    };
    assert_eq!(open(NOW).await, [0_u8; 0]);
    // Closing no session is not an error.
    stores[0].close_sessions(&id, None, None).await.unwrap();
    for (byte, opened_at) in [(1, 20), (2, 10), (3, 30)] {
        let session = Session {
            created_at: later(opened_at),
            expires_at: later(opened_at + 1000),
            ..session(byte, "u")
        };
        let verified = verified(&stores[0], "u").await;
        assert!(
            stores[0]
                .open_session(session, verified, MOST_SESSIONS)
                .await
                .unwrap()
        );
    }
    assert!(open_session(&stores[0], 4, "other").await);
    assert_eq!(open(later(1009)).await, [3, 1, 2], "the newest first");
    assert_eq!(open(later(1010)).await, [3, 1]);
    assert_eq!(open(later(1030)).await, [0_u8; 0]);
    // One of them, and none of another user.
    let close = async |byte| stores[0].close_session_of(&id, &[byte; 32]).await.unwrap();
    assert!(close(1).await && !close(1).await && !close(4).await);
    assert_eq!(open(NOW).await, [3, 2]);
    stores[0]
        .close_sessions(&id, Some(&[2; 32]), None)
        .await
        .unwrap();
    assert_eq!(open(NOW).await, [2]);
    // The kept session is another user's, which makes no difference to the sessions of this user.
    stores[0]
        .close_sessions(&id, Some(&[4; 32]), None)
        .await
        .unwrap();
    for byte in [1, 2, 3] {
        let found = stores[1].session(&[byte; 32], later(40)).await.unwrap();
        assert_eq!(found, None, "{byte}");
    }
    assert_eq!(open(later(40)).await, [0_u8; 0]);
    assert!(stores[1].session(&[4; 32], NOW).await.unwrap().is_some());
    // The user can log in again.
    assert!(open_session(&stores[1], 1, "u").await);
    let absent = "absent".parse().unwrap();
    stores[0].close_sessions(&absent, None, None).await.unwrap();
}

pub(crate) async fn ends_in_time<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    open_session(&store, 1, "u").await;
    assert!(store.session(&[1; 32], later(999)).await.unwrap().is_some());
    assert_eq!(store.session(&[1; 32], later(1000)).await.unwrap(), None);
}

pub(crate) async fn belongs_to_an_enabled_user<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    // A user who was removed while the login was under way gets no session, then or later.
    assert!(!open_session(&store, 1, "unknown").await);
    store.add_user(user("unknown")).await.unwrap();
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
}

pub(crate) async fn opens_only_with_the_password_that_was_verified<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let bare = User {
        password_hash: None,
        ..user("bare")
    };
    store.add_user(bare).await.unwrap();
    let (u, b): (UserId, UserId) = (id("u"), id("bare"));
    let (old, none) = (verified(&store, "u").await, verified(&store, "bare").await);
    let open = async |byte, user, verified: &VerifiedPassword| {
        let opened = store.open_session(session(byte, user), verified.clone(), MOST_SESSIONS);
        let opened = opened.await.unwrap();
        let found = store.session(&[byte; 32], NOW).await.unwrap();
        assert_eq!(found.is_some(), opened);
        opened
    };
    assert!(open(1, "u", &old).await);
    assert!(open(2, "bare", &none).await);
    // A missing hash does not match a hash, a hash does not match a missing one, and hashes must be equal.
    assert!(!open(3, "u", &none).await);
    assert!(!open(3, "bare", &old).await);
    store
        .set_password(&u, "another".into(), false, None)
        .await
        .unwrap();
    store
        .set_password(&b, "another".into(), false, None)
        .await
        .unwrap();
    assert!(!open(3, "u", &old).await);
    assert!(!open(3, "bare", &none).await);
    // A refused login does not replace the hash either.
    let rehashed = VerifiedPassword {
        rehashed: Some("of the thief".into()),
        ..old
    };
    assert!(!open(3, "u", &rehashed).await);
    let now = verified(&store, "u").await;
    assert_eq!(now.hash, Some("another".into()));
    set_enabled(&store, &u, false, NOW).await;
    let rehashed = VerifiedPassword {
        rehashed: Some("of a disabled user".into()),
        ..now
    };
    assert!(!open(3, "u", &rehashed).await);
    assert_eq!(verified(&store, "u").await.hash, Some("another".into()));
}

pub(crate) async fn a_login_renews_the_hash_of_the_password<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let id: UserId = id("u");
    let import = async |hash: Option<&str>| {
        let user = User {
            password_hash: hash.map(Secret::from),
            ..user("u")
        };
        let import = store.import(import_list(vec![Record::User(user)]));
        match import.await.unwrap() {
            Import::Imported(_) => None,
            Import::Rejected(problems, ..) => Some(problems[0].conflict.clone()),
            Import::Unexpected => panic!("every change is expected"),
        }
    };
    let old = user("u").password_hash.unwrap();
    let old = std::str::from_utf8(old.expose()).unwrap().to_owned();
    assert!(open_session(&store, 1, "u").await);
    let before = verified(&store, "u").await;
    let rehashed = VerifiedPassword {
        rehashed: Some("$ours$v=1$salt$hash".into()),
        ..before.clone()
    };
    let position = store.changes_since(0).await.unwrap().position;
    assert!(
        store
            .open_session(session(2, "u"), rehashed, MOST_SESSIONS)
            .await
            .unwrap()
    );
    let now = Some(Secret::from("$ours$v=1$salt$hash"));
    assert_eq!(verified(&store, "u").await.hash, now);
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, [Change::User(id.clone())]);
    assert_eq!(
        store.account(&user("u").name).await.unwrap().costs,
        ["$ours$v=1"]
    );
    // It is the same password: no session ends. Of two logins at once the second has to check again.
    for byte in [1, 2] {
        assert!(store.session(&[byte; 32], NOW).await.unwrap().is_some());
    }
    assert!(
        !store
            .open_session(session(3, "u"), before, MOST_SESSIONS)
            .await
            .unwrap()
    );
    assert!(open_session(&store, 3, "u").await);
    // Only the hash that was imported can be imported again.
    assert_eq!(import(Some(&old)).await, None);
    assert_eq!(verified(&store, "u").await.hash, now);
    assert_eq!(
        import(Some("other")).await,
        Some(Conflict::Differs(vec!["password_hash".to_owned()]))
    );
    // A file without one says nothing about it.
    assert_eq!(import(None).await, None);
    assert_eq!(verified(&store, "u").await.hash, now);
    // Until the password changes.
    store
        .set_password(&id, "set".into(), false, None)
        .await
        .unwrap();
    assert_eq!(
        import(Some(&old)).await,
        Some(Conflict::Differs(vec!["password_hash".to_owned()]))
    );
    // One that an operator sets is to be changed until the user changes it, however often it is hashed again.
    let must_change = async || store.user(&id).await.unwrap().unwrap().must_change_password;
    assert!(!must_change().await);
    store
        .set_password(&id, "given".into(), true, None)
        .await
        .unwrap();
    let rehashed = VerifiedPassword {
        rehashed: Some("of the same".into()),
        ..verified(&store, "u").await
    };
    let opened = store.open_session(session(4, "u"), rehashed, MOST_SESSIONS);
    assert!(opened.await.unwrap() && must_change().await);
    let given = "of the same".into();
    let changed = store.change_password(session(5, "u"), given, "own".into());
    assert!(changed.await.unwrap() && !must_change().await);
}

pub(crate) async fn no_racing_login_outlives_the_old_password<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let id: UserId = id("u");
    let old = verified(&stores[0], "u").await;
    let task = |number: u8| {
        let (store, old): (Arc<Store>, _) = (stores[usize::from(number) % 2].clone(), old.clone());
        tokio::spawn(async move {
            until_answered(|| store.open_session(session(number, "u"), old.clone(), MOST_SESSIONS))
                .await
        })
    };
    let mut tasks: Vec<_> = (0..40).map(task).collect();
    let changed = stores[0].set_password(&id, "new".into(), false, None);
    let (changed, late) = tokio::join!(changed, async { (40..80).map(task).collect::<Vec<_>>() });
    assert!(changed.unwrap());
    tasks.extend(late);
    for task in tasks {
        task.await.unwrap();
    }
    for number in 0..80 {
        let found = stores[1].session(&[number; 32], NOW).await.unwrap();
        assert_eq!(found, None, "{number}");
    }
    assert!(open_session(&stores[1], 1, "u").await);
}

pub(crate) async fn a_decision_ends_with_its_session<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for token in ["r", "s"] {
        let token = request_token(token, "c");
        store.issue_request_token(token, 9).await.unwrap();
    }
    let decide = async |token, byte, now| {
        let session = [byte; 32];
        let decided = store.record_decision(token, &session, allow(), now);
        decided.await.unwrap()
    };
    assert_eq!(decide("r", 1, NOW).await, Decided::Unknown);
    for byte in [1, 2, 3] {
        assert!(open_session(&store, byte, "u").await);
    }
    store.close_session(&[1; 32]).await.unwrap();
    assert_eq!(decide("r", 1, NOW).await, Decided::Unknown);
    assert_eq!(decide("r", 2, NOW).await, Decided::Recorded);
    let late = later(1000);
    let long = RequestToken {
        expires_at: later(2000),
        ..request_token("long", "c")
    };
    store.issue_request_token(long, 9).await.unwrap();
    assert_eq!(decide("long", 2, late).await, Decided::Unknown);
    let id = id("u");
    store
        .set_password(&id, "new".into(), false, None)
        .await
        .unwrap();
    assert_eq!(decide("s", 3, NOW).await, Decided::Unknown);
    assert_eq!(
        store.request_token("s").await.unwrap(),
        Some(request_token("s", "c"))
    );
}

pub(crate) async fn a_changed_password_leaves_one_session<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let store = &stores[0];
    store.add_user(user("other")).await.unwrap();
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    let id: UserId = id("u");
    for byte in [1, 2] {
        assert!(open_session(store, byte, "u").await);
    }
    assert!(open_session(store, 3, "other").await);
    let old = verified(store, "u").await.hash.unwrap();
    let change = async |byte, verified: &Secret, hash: &str| {
        let change =
            store.change_password(session(byte, "u"), verified.clone(), Secret::from(hash));
        change.await.unwrap()
    };
    let position = store.changes_since(0).await.unwrap().position;
    // With a hash other than the user's nothing happens.
    assert!(!change(4, &"of the thief".into(), "$ours$v=1$salt$thief").await);
    assert_eq!(verified(store, "u").await.hash, Some(old.clone()));
    for (byte, is_open) in [(1, true), (2, true), (4, false)] {
        let found = stores[1].session(&[byte; 32], NOW).await.unwrap();
        assert_eq!(found.is_some(), is_open, "{byte}");
    }
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, []);

    assert!(change(4, &old, "$ours$v=1$salt$new").await);
    let new = Secret::from("$ours$v=1$salt$new");
    assert_eq!(verified(&stores[1], "u").await.hash, Some(new.clone()));
    let costs = store.account(&user("u").name).await.unwrap().costs;
    assert!(costs.contains(&"$ours$v=1".to_owned()), "{costs:?}");
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, [Change::User(id.clone())]);
    for (byte, is_open) in [(1, false), (2, false), (3, true), (4, true)] {
        let found = stores[1].session(&[byte; 32], NOW).await.unwrap();
        assert_eq!(found.is_some(), is_open, "{byte}");
    }
    assert_eq!(store.access_token("a").await.unwrap(), Some(token));
    // The old hash is no longer valid, neither for a login nor for another change nor for an import.
    let stale = VerifiedPassword {
        hash: Some(old.clone()),
        rehashed: None,
    };
    assert!(
        !store
            .open_session(session(5, "u"), stale, MOST_SESSIONS)
            .await
            .unwrap()
    );
    assert!(!change(5, &old, "$ours$v=1$salt$third").await);
    let imported = store
        .import(import_list(vec![Record::User(user("u"))]))
        .await
        .unwrap();
    let differs = |member: &str| Conflict::Differs(vec![member.to_owned()]);
    assert!(
        matches!(imported, Import::Rejected(problems, 1, _) if problems[0].conflict == differs("password_hash"))
    );

    set_enabled(store, &id, false, NOW).await;
    assert!(!change(5, &new, "$ours$v=1$salt$disabled").await);
    assert_eq!(verified(store, "u").await.hash, Some(new.clone()));
    store.remove_user(&id, NOW, None).await.unwrap();
    assert!(!change(5, &new, "$ours$v=1$salt$removed").await);
    assert_eq!(store.user(&id).await.unwrap(), None);
}

pub(crate) async fn of_racing_password_changes_one_succeeds<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let id: UserId = id("u");
    let hash = |number: u8| Secret::from(format!("$ours$v=1$salt${number}"));
    for round in 0..10 {
        let old = verified(&stores[0], "u").await.hash.unwrap();
        let task = |number: u8| {
            let store: Arc<Store> = stores[usize::from(number) % 2].clone();
            let (session, old, new) = (session(number, "u"), old.clone(), hash(number));
            tokio::spawn(async move { store.change_password(session, old, new).await.unwrap() })
        };
        let numbers = 8 * round..8 * round + 8;
        let tasks: Vec<_> = numbers
            .clone()
            .map(|number| (number, task(number)))
            .collect();
        // In every other round the operator sets a password too.
        if round % 2 == 1 {
            assert!(
                stores[1]
                    .set_password(&id, hash(255), false, None)
                    .await
                    .unwrap()
            );
        }
        let mut changed = Vec::new();
        for (number, task) in tasks {
            changed.extend(task.await.unwrap().then_some(number));
        }
        let now = verified(&stores[0], "u").await.hash.unwrap();
        let open = stores[0].sessions_of(&id, NOW).await.unwrap().len();
        if round % 2 == 1 {
            // It came first and no change took place, or it came last and ended the session that one had opened.
            assert!(changed.len() <= 1, "{changed:?}");
            assert_eq!((now, open), (hash(255), 0));
        } else {
            assert_eq!((changed.len(), open), (1, 1), "{changed:?}");
            assert_eq!(now, hash(changed[0]));
            let found = stores[1].session(&[changed[0]; 32], NOW).await.unwrap();
            assert!(found.is_some());
        }
    }
}
