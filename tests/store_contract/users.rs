//! Users.

use countersign::{
    base::text::names::UserId,
    records::values::{
        record::{OutsideUser, RequestTokenState, User},
        use_cases::{Added, Admitted, Decided, TokenFilter},
    },
};

use crate::store_contract::{
    records::{
        NOW, access_token, allow, ask, authorize, decide_as, id, issue, later, open_session,
        opened, populated, set_enabled, user,
    },
    suite::Backend,
};

pub(crate) async fn keeps_every_field<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let bare = User {
        name: "Zoë \0".to_owned(),
        display_name: None,
        password_hash: None,
        enabled: false,
        created_at: later(1),
        ..user("bare")
    };
    for user in [user("u"), bare] {
        assert_eq!(store.add_user(user.clone()).await.unwrap(), Added::Added);
        assert_eq!(store.user(&user.id).await.unwrap(), Some(user.clone()));
        assert_eq!(store.user_by_name(&user.name).await.unwrap(), Some(user));
    }
    assert_eq!(store.user(&id("U")).await.unwrap(), None);
    assert_eq!(store.user_by_name("nobody").await.unwrap(), None);
}

pub(crate) async fn takes_an_id_and_a_name_once<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    store.add_user(user("u")).await.unwrap();
    let same_id = User {
        name: "other".to_owned(),
        ..user("u")
    };
    let same_name = User {
        name: "U@Example.ORG".to_owned(),
        ..user("v")
    };
    for user in [same_id, same_name] {
        assert_eq!(store.add_user(user).await.unwrap(), Added::Taken);
    }
    assert_eq!(
        store.users(&Default::default(), None, 10).await.unwrap(),
        [user("u")]
    );
}

pub(crate) async fn admits_whom_an_outside_login_vouches_for<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let outside = |id: &str, name: Option<&str>, display_name: Option<&str>| OutsideUser {
        id: id.parse().unwrap(),
        name: name.map(str::to_owned),
        display_name: display_name.map(str::to_owned),
    };
    let known = |id: &str, name: &str, display_name: Option<&str>| User {
        name: name.to_owned(),
        display_name: display_name.map(str::to_owned),
        password_hash: None,
        ..user(id)
    };
    let named = |id: &str, name: &str| User {
        name: name.to_owned(),
        ..user(id)
    };
    let position = store.changes_since(0).await.unwrap().position;
    for (said, expected) in [
        (outside("7", None, None), known("7", "7", None)),
        (outside("7", Some("ada"), None), known("7", "ada", None)),
        (
            outside("7", None, Some("Ada")),
            known("7", "ada", Some("Ada")),
        ),
        (
            outside("7", Some("Ada"), None),
            known("7", "Ada", Some("Ada")),
        ),
        (
            outside("8", Some("eve"), Some("E")),
            known("8", "eve", Some("E")),
        ),
    ] {
        let admitted = store.admit_user(said, NOW).await.unwrap();
        assert_eq!(admitted, Admitted::User(expected.clone()));
        assert_eq!(store.user(&expected.id).await.unwrap(), Some(expected));
    }
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes.len(), 3, "{changes:?}");
    // The new name is found, and the old one is free.
    let ada = store.user_by_name("ADA").await.unwrap();
    assert_eq!(ada, Some(known("7", "Ada", Some("Ada"))));
    assert_eq!(store.user_by_name("7").await.unwrap(), None);
    // The name of another user, in any case, cannot be taken over; the user is admitted all the same.
    store.add_user(named("10", "11")).await.unwrap();
    store.add_user(named("12", "11.2")).await.unwrap();
    for (said, expected) in [
        (outside("9", Some("ADA"), None), known("9", "9", None)),
        (
            outside("8", Some("ada"), None),
            known("8", "eve", Some("E")),
        ),
        // Neither is it with a name that is the id of one who logs in for the first time.
        (outside("11", Some("ada"), None), known("11", "11.3", None)),
        (outside("11", None, None), known("11", "11.3", None)),
        (outside("11", Some("free"), None), known("11", "free", None)),
    ] {
        let admitted = store.admit_user(said, NOW).await.unwrap();
        assert_eq!(admitted, Admitted::User(expected.clone()));
        assert_eq!(store.user(&expected.id).await.unwrap(), Some(expected));
    }
    let ada = store.user_by_name("ada").await.unwrap();
    assert_eq!(ada.map(|ada| ada.id), Some(id("7")));
    // A local account keeps its password.
    store.add_user(user("local")).await.unwrap();
    let said = outside("local", Some("grace"), Some("Grace"));
    let Admitted::User(local) = store.admit_user(said, NOW).await.unwrap() else {
        panic!("a user");
    };
    assert_eq!(local.password_hash, user("local").password_hash);
    // Disabled and removed ones stay so.
    let eve: UserId = id("8");
    set_enabled(&store, &eve, false, NOW).await;
    let admitted = store.admit_user(outside("8", Some("x"), None), NOW).await;
    assert_eq!(
        admitted.unwrap(),
        Admitted::User(User {
            enabled: false,
            ..known("8", "eve", Some("E"))
        })
    );
    store.remove_user(&eve, NOW, None).await.unwrap();
    let admitted = store.admit_user(outside("8", Some("x"), None), NOW).await;
    assert_eq!(admitted.unwrap(), Admitted::Removed);
    assert_eq!(store.user(&eve).await.unwrap(), None);
}

pub(crate) async fn folds_ascii_case_of_names_only<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let upper = User {
        name: "Émile".to_owned(),
        ..user("upper")
    };
    let lower = User {
        name: "émile".to_owned(),
        ..user("lower")
    };
    for user in [&upper, &lower] {
        assert_eq!(store.add_user(user.clone()).await.unwrap(), Added::Added);
    }
    assert_eq!(store.user_by_name("ÉMILE").await.unwrap(), Some(upper));
    assert_eq!(store.user_by_name("éMILE").await.unwrap(), Some(lower));
    // Not a pattern.
    assert_eq!(store.user_by_name("%mile").await.unwrap(), None);
    assert_eq!(store.user_by_name("émile ").await.unwrap(), None);
}

pub(crate) async fn ends_sessions_with_a_new_password<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let (u, v): (UserId, UserId) = (id("u"), id("v"));
    assert!(
        !store
            .set_password(&u, "hash".into(), false, None)
            .await
            .unwrap()
    );
    for id in ["u", "v"] {
        store.add_user(user(id)).await.unwrap();
    }
    open_session(&store, 1, "u").await;
    open_session(&store, 2, "v").await;
    assert!(
        store
            .set_password(&u, "hash".into(), false, None)
            .await
            .unwrap()
    );
    let changed = User {
        password_hash: Some("hash".into()),
        ..user("u")
    };
    assert_eq!(store.user(&u).await.unwrap(), Some(changed));
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    assert!(store.session(&[2; 32], NOW).await.unwrap().is_some());
    assert_eq!(store.user(&v).await.unwrap(), Some(user("v")));
}

pub(crate) async fn disabling_ends_everything_for_good<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let id: UserId = id("u");
    assert!(!set_enabled(&store, &id, false, NOW).await);
    authorize(&store, allow()).await;
    store.add_user(user("v")).await.unwrap();
    for token in [
        access_token("a", "c", "u"),
        access_token("b", "c", "u"),
        access_token("v", "c", "v"),
    ] {
        store.issue_access_token(token).await.unwrap();
    }
    store
        .revoke_access_token("b", later(1), None)
        .await
        .unwrap();
    open_session(&store, 1, "u").await;
    open_session(&store, 2, "v").await;
    ask(&store, "fresh").await;

    assert!(set_enabled(&store, &id, false, later(2)).await);
    let disabled = User {
        enabled: false,
        ..user("u")
    };
    assert_eq!(store.user(&id).await.unwrap(), Some(disabled));
    let revoked = |at: u64| Some(later(at));
    let revoked_at = async |token| store.access_token(token).await.unwrap().unwrap().revoked_at;
    assert_eq!(revoked_at("a").await, revoked(2));
    assert_eq!(revoked_at("b").await, revoked(1));
    assert_eq!(revoked_at("v").await, None);
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    assert!(store.session(&[2; 32], NOW).await.unwrap().is_some());
    let state = async |token| store.request_token(token).await.unwrap().unwrap().state;
    assert_eq!(state("r").await, RequestTokenState::Voided);
    assert_eq!(state("fresh").await, RequestTokenState::Issued);
    // Nothing new begins for a disabled user, and a login that was under way opens no session.
    assert_eq!(issue(&store, "n").await, Added::Taken);
    assert_eq!(
        decide_as(&store, "fresh", &id, allow(), NOW).await.unwrap(),
        Decided::Unknown
    );
    open_session(&store, 3, "u").await;

    assert!(set_enabled(&store, &id, true, later(3)).await);
    assert_eq!(store.user(&id).await.unwrap(), Some(user("u")));
    assert_eq!(revoked_at("a").await, revoked(2));
    for byte in [1, 3] {
        assert_eq!(store.session(&[byte; 32], NOW).await.unwrap(), None);
    }
    assert_eq!(state("r").await, RequestTokenState::Voided);
}

pub(crate) async fn removal_ends_everything_and_retires_the_id<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    let id: UserId = id("u");
    assert!(!store.remove_user(&id, NOW, None).await.unwrap());
    authorize(&store, allow()).await;
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    open_session(&store, 1, "u").await;

    assert!(store.remove_user(&id, later(2), None).await.unwrap());
    assert!(!store.remove_user(&id, later(3), None).await.unwrap());
    assert_eq!(store.user(&id).await.unwrap(), None);
    assert_eq!(store.user_by_name("u@example.org").await.unwrap(), None);
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    // The token is reported as revoked, not as unknown.
    let kept = store.access_token("a").await.unwrap().unwrap();
    assert_eq!(kept.revoked_at, Some(later(2)));
    assert_eq!(
        store.request_token("r").await.unwrap().unwrap().state,
        RequestTokenState::Voided
    );
    // The id is gone for ever, the name is free again.
    let again = User {
        name: "another".to_owned(),
        ..user("u")
    };
    assert_eq!(store.add_user(again.clone()).await.unwrap(), Added::Taken);
    let heir = User {
        name: user("u").name,
        ..user("heir")
    };
    assert_eq!(store.add_user(heir).await.unwrap(), Added::Added);
    assert!(
        !store
            .set_password(&id, "h".into(), false, None)
            .await
            .unwrap()
    );
    assert!(!set_enabled(&store, &id, true, NOW).await);
    assert_eq!(store.issue_access_token(token).await.unwrap(), Added::Taken);
    let all = TokenFilter::default();
    assert_eq!(store.access_tokens(&all, None, 10).await.unwrap(), [kept]);
    // Also when opened again.
    drop(store);
    assert_eq!(
        backend.open().await.add_user(again).await.unwrap(),
        Added::Taken
    );
}

pub(crate) async fn lists_in_pages<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for id in ["z", "B", "a"] {
        store.add_user(user(id)).await.unwrap();
    }
    let first = store.users(&Default::default(), None, 3).await.unwrap();
    assert_eq!(first, [user("B"), user("a"), user("u")]);
    let rest = store
        .users(&Default::default(), Some(&first[2].id), 3)
        .await
        .unwrap();
    assert_eq!(rest, [user("z")]);
    assert!(
        store
            .users(&Default::default(), Some(&rest[0].id), 3)
            .await
            .unwrap()
            .is_empty()
    );
    // A place between ids, where a user was removed.
    let between = id("b");
    assert_eq!(
        store
            .users(&Default::default(), Some(&between), 1)
            .await
            .unwrap(),
        [user("u")]
    );
}

pub(crate) async fn tells_what_passwords_cost<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    let costs = async || {
        let account = store.account("nobody").await.unwrap();
        assert_eq!(account.user, None);
        account.costs
    };
    assert!(costs().await.is_empty());
    let with = |id: &str, hash: &str| User {
        password_hash: Some(hash.into()),
        ..user(id)
    };
    let bare = User {
        password_hash: None,
        ..user("bare")
    };
    for user in [
        bare,
        with("a", "$argon2id$v=19$m=65536,t=2,p=1$c2FsdA$aGFzaA"),
        with("b", "$argon2id$v=19$m=65536,t=2,p=1$b3RoZXI$aGFzaGVk"),
        with("c", "$argon2id$m=8,t=1,p=1$c2FsdA$aGFzaA"),
        User {
            enabled: false,
            ..with("d", "$argon2id$v=19$m=256,t=2,p=1$c2FsdA$aGFzaA")
        },
    ] {
        store.add_user(user).await.unwrap();
    }
    let all = [
        "$argon2id$m=8,t=1,p=1",
        "$argon2id$v=19$m=256,t=2,p=1",
        "$argon2id$v=19$m=65536,t=2,p=1",
    ];
    assert_eq!(costs().await, all);
    let account = store.account("A@EXAMPLE.org").await.unwrap();
    assert_eq!(account.user.unwrap().id.as_str(), "a");
    assert_eq!(account.costs, all);
    // A cost that is no longer that of a hash is not listed.
    let (a, b, c) = (id("a"), id("b"), id("c"));
    let new = "$argon2id$v=19$m=256,t=2,p=1$bmV3$aGFzaA";
    store
        .set_password(&a, new.into(), false, None)
        .await
        .unwrap();
    store.remove_user(&c, NOW, None).await.unwrap();
    assert_eq!(costs().await, all[1..]);
    store
        .set_password(&b, new.into(), false, None)
        .await
        .unwrap();
    assert_eq!(costs().await, all[1..2]);
    // As another process sees it.
    let other = backend.open().await;
    assert_eq!(other.account("").await.unwrap().costs, all[1..2]);
}
