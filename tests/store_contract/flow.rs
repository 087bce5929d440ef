//! Request tokens and the user's decision.

use std::sync::atomic::{AtomicU32, Ordering};

use countersign::{
    base::clock::UnixTime,
    records::values::{
        record::{AccessToken, Callback, Consumer, RequestToken, RequestTokenState, Session},
        use_cases::{ConsentDecision, Decided, Earlier, Exchanged, Issued, TokenFilter},
    },
};

use crate::store_contract::{
    records::{
        MOST_SESSIONS, NOW, VERIFIER, access_token, allow, always, ask, authorize, consumer,
        decide_as, exchange, id, later, opened, populated, populated_twice, request_token, session,
        set_enabled, until_answered, user, verified, with_redirect_token,
    },
    suite::Backend,
};

pub(crate) async fn keeps_a_request_token<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let bare = RequestToken {
        secret: "".into(),
        callback: Callback::Oob,
        permissions: vec![],
        ..request_token("bare", "c")
    };
    for token in [request_token("r", "c"), bare] {
        store.issue_request_token(token.clone(), 9).await.unwrap();
        assert_eq!(
            store.request_token(&token.token).await.unwrap(),
            Some(token)
        );
    }
    assert_eq!(store.request_token("R").await.unwrap(), None);
}

pub(crate) async fn has_a_limit_for_the_open_ones_of_a_consumer<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("other")).await.unwrap();
    let issue = async |name: &str, consumer: &str, now| {
        let token = RequestToken {
            issued_at: now,
            expires_at: UnixTime(now.0 + 600),
            ..request_token(name, consumer)
        };
        store.issue_request_token(token, 3).await.unwrap()
    };
    for name in ["a", "b", "r"] {
        assert_eq!(issue(name, "c", NOW).await, Issued::Issued);
    }
    assert_eq!(issue("d", "c", NOW).await, Issued::TooManyOpen);
    assert_eq!(store.request_token("d").await.unwrap(), None);
    assert_eq!(issue("o", "other", NOW).await, Issued::Issued);
    // One that is allowed can still be exchanged; one that is exchanged or denied is over.
    let user = id("u");
    decide_as(&store, "r", &user, allow(), NOW).await.unwrap();
    assert_eq!(issue("d", "c", later(1)).await, Issued::TooManyOpen);
    store.exchange(exchange("r", "c")).await.unwrap();
    assert_eq!(issue("d", "c", later(2)).await, Issued::Issued);
    assert_eq!(issue("e", "c", later(2)).await, Issued::TooManyOpen);
    let denied = decide_as(&store, "a", &user, ConsentDecision::Deny, later(2)).await;
    assert_eq!(denied.unwrap(), Decided::Recorded);
    assert_eq!(issue("e", "c", later(2)).await, Issued::Issued);
    // Neither does one that has ended count.
    assert_eq!(issue("f", "c", later(599)).await, Issued::TooManyOpen);
    assert_eq!(issue("f", "c", later(600)).await, Issued::Issued);
}

pub(crate) async fn finds_it_by_the_token_of_its_redirect<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let decision = with_redirect_token();
    authorize(&store, decision).await;
    let expected = RequestToken {
        expires_at: later(1200),
        state: RequestTokenState::Authorized {
            user: id("u"),
            verifier: VERIFIER.into(),
            redirect_token: Some("redirect".to_owned()),
        },
        ..request_token("r", "c")
    };
    for token in ["r", "redirect"] {
        assert_eq!(
            store.request_token(token).await.unwrap(),
            Some(expected.clone())
        );
    }
    // The browser's step uses the identifier alone.
    let user = id("u");
    assert_eq!(
        decide_as(&store, "redirect", &user, ConsentDecision::Deny, NOW)
            .await
            .unwrap(),
        Decided::Unknown
    );
    // It is found in every later state too.
    set_enabled(&store, &user, false, NOW).await;
    for token in ["r", "redirect"] {
        let found = store.request_token(token).await.unwrap().unwrap();
        assert_eq!(
            (found.token.as_str(), found.state),
            ("r", RequestTokenState::Voided)
        );
    }
}

pub(crate) async fn records_one_decision<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, allow()).await;
    ask(&store, "s").await;
    let user = id("u");
    let decide = async |token, decision| {
        decide_as(&store, token, &user, decision, NOW)
            .await
            .unwrap()
    };
    assert_eq!(decide("s", ConsentDecision::Deny).await, Decided::Recorded);
    assert_eq!(decide("s", allow()).await, Decided::AlreadyDecided);
    assert_eq!(
        decide("r", ConsentDecision::Deny).await,
        Decided::AlreadyDecided
    );
    assert_eq!(decide("r", allow()).await, Decided::AlreadyDecided);
    let denied = store.request_token("s").await.unwrap().unwrap();
    assert_eq!(denied.state, RequestTokenState::Denied);
    // A denial leaves the lifetime as it is.
    assert_eq!(denied.expires_at, later(600));
    let allowed = store.request_token("r").await.unwrap().unwrap();
    assert!(matches!(
        allowed.state,
        RequestTokenState::Authorized { .. }
    ));
}

pub(crate) async fn an_expired_token_is_not_decided<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    ask(&store, "r").await;
    let user = id("u");
    for decision in [allow(), ConsentDecision::Deny] {
        assert_eq!(
            decide_as(&store, "r", &user, decision, later(600))
                .await
                .unwrap(),
            Decided::Expired
        );
    }
    assert_eq!(
        store.request_token("r").await.unwrap(),
        Some(request_token("r", "c"))
    );
    assert_eq!(
        decide_as(&store, "r", &user, allow(), later(599))
            .await
            .unwrap(),
        Decided::Recorded
    );
}

pub(crate) async fn refuses_decisions_for_what_is_gone_or_disabled<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    ask(&store, "r").await;
    let (u, v) = (id("u"), id("v"));
    let decide = async |token, user| decide_as(&store, token, user, allow(), NOW).await.unwrap();
    assert_eq!(decide("none", &u).await, Decided::Unknown);
    assert_eq!(decide("r", &v).await, Decided::Unknown);
    store.add_user(user("v")).await.unwrap();
    set_enabled(&store, &v, false, NOW).await;
    assert_eq!(decide("r", &v).await, Decided::Unknown);
    let key = id("c");
    let set = async |enabled| {
        let change = |c: &mut Consumer| c.enabled = enabled;
        store.update_consumer(&key, &always(&change)).await.unwrap();
    };
    set(false).await;
    assert_eq!(decide("r", &u).await, Decided::Unknown);
    set(true).await;
    assert_eq!(
        store.request_token("r").await.unwrap(),
        Some(request_token("r", "c"))
    );
    assert_eq!(decide("r", &u).await, Decided::Recorded);
}

pub(crate) async fn a_decision_gives_at_most_what_was_asked_for<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let asked = RequestToken {
        permissions: ["read", "write:all"].map(id).into(),
        ..request_token("r", "c")
    };
    store.issue_request_token(asked, 9).await.unwrap();
    let some = ConsentDecision::Allow {
        permissions: ["admin", "write:all"].map(id).into(),
        shown: None,
        earlier: None,
        verifier: VERIFIER.into(),
        redirect_token: None,
        expires_at: later(1200),
    };
    let user = id("u");
    decide_as(&store, "r", &user, some, NOW).await.unwrap();
    let exchanged = store.exchange(exchange("r", "c")).await.unwrap();
    let Exchanged::Exchanged { access_token, .. } = exchanged else {
        panic!("{exchanged:?}");
    };
    assert_eq!(access_token.permissions, ["write:all"].map(id));
}

/// The consent to a consumer as it is shown, by the user or, with `earlier`, without asking them.
fn consent(shown: &Consumer, earlier: Option<Earlier>) -> ConsentDecision {
    ConsentDecision::Allow {
        permissions: ["read", "write:all"].map(id).into(),
        shown: Some(shown.shown()),
        earlier,
        verifier: VERIFIER.into(),
        redirect_token: None,
        expires_at: later(1200),
    }
}

const EARLIER: Option<Earlier> = Some(Earlier {
    used_after: None,
    with_display_name: true,
});

pub(crate) async fn repeats_only_what_the_user_allowed<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    let number = AtomicU32::new(0);
    // A request for these permissions, and its decision in the session of this user at this time.
    let decide = async |key: &str, permissions: &[&str], by: &str, decision, at| {
        let name = number.fetch_add(1, Ordering::Relaxed).to_string();
        let asked = RequestToken {
            permissions: permissions.iter().map(|name| id(name)).collect(),
            expires_at: later(9_000),
            ..request_token(&name, key)
        };
        store.issue_request_token(asked, 1_000).await.unwrap();
        let decided = decide_as(&store, &name, &id(by), decision, at).await;
        let decided = decided.unwrap();
        let state = store.request_token(&name).await.unwrap().unwrap().state;
        let is_allowed = matches!(state, RequestTokenState::Authorized { .. });
        assert_eq!(is_allowed, decided == Decided::Recorded);
        (decided, name)
    };
    let c = consumer("c");
    let both = ["read", "write:all"];
    let repeat = async |key: &str, permissions: &[&str], by: &str| {
        let shown = store.consumer(&id(key)).await.unwrap().unwrap();
        let decision = consent(&shown, EARLIER);
        decide(key, permissions, by, decision, later(20)).await.0
    };
    const NEW: Decided = Decided::NotAllowedBefore;
    const AGAIN: Decided = Decided::Recorded;

    assert_eq!(repeat("c", &["read"], "u").await, NEW);
    // Neither an imported token nor a consent of which nothing was kept is enough.
    let imported = AccessToken {
        permissions: both.map(id).into(),
        ..access_token("imported", "c", "u")
    };
    store.issue_access_token(imported).await.unwrap();
    assert_eq!(repeat("c", &["read"], "u").await, NEW);
    let (_, name) = decide("c", &["read"], "u", allow(), NOW).await;
    store.exchange(exchange(&name, "c")).await.unwrap();
    assert_eq!(repeat("c", &["read"], "u").await, NEW);
    // A decision that was not exchanged is no token.
    let (_, name) = decide("c", &["read"], "u", consent(&c, None), NOW).await;
    assert_eq!(repeat("c", &["read"], "u").await, NEW);
    store.exchange(exchange(&name, "c")).await.unwrap();
    let token = format!("access-{name}");

    assert_eq!(repeat("c", &["read"], "u").await, AGAIN);
    assert_eq!(repeat("c", &[], "u").await, AGAIN);
    assert_eq!(repeat("c", &both, "u").await, NEW);
    assert_eq!(repeat("c", &["read"], "v").await, NEW);
    assert_eq!(repeat("d", &["read"], "u").await, NEW);
    // By the time, and by the facts that the consumer has learnt.
    let earlier = |used_after, with_display_name| Earlier {
        used_after,
        with_display_name,
    };
    for (earlier, at, expected) in [
        (earlier(Some(later(9)), true), later(20), AGAIN),
        (earlier(Some(later(10)), true), later(20), NEW),
        (earlier(None, true), later(9998), AGAIN),
        (earlier(None, true), later(9999), NEW),
    ] {
        let asked = RequestToken {
            expires_at: later(99_999),
            ..request_token(&format!("at-{earlier:?}-{at:?}"), "c")
        };
        store.issue_request_token(asked.clone(), 99).await.unwrap();
        let session = Session {
            id_hash: asked.token.bytes().fold([0; 32], |mut hash, byte| {
                hash.rotate_left(1);
                hash[0] ^= byte;
                hash
            }),
            expires_at: later(99_999),
            ..session(7, "u")
        };
        let hash = session.id_hash;
        let verified = verified(&store, "u").await;
        let opened = store.open_session(session, verified, MOST_SESSIONS).await;
        assert!(opened.unwrap());
        let decision = consent(&c, Some(earlier));
        let decided = store.record_decision(&asked.token, &hash, decision, at);
        assert_eq!(decided.await.unwrap(), expected, "{earlier:?} {at:?}");
    }
    // The consumer as it is now, as the page had it, and as the user saw it, are the same.
    let change = |change: fn(&mut Consumer)| {
        let store = store.clone();
        async move {
            let change = always(&change);
            store.update_consumer(&id("c"), &change).await.unwrap();
        }
    };
    for other in [
        (|it| it.name.push('!')) as fn(&mut Consumer),
        |it| it.callbacks.push("https://other.example/".to_owned()),
        |it| it.permissions.push(id("more")),
    ] {
        change(other).await;
        let outdated = decide("c", &["read"], "u", consent(&c, EARLIER), later(20)).await;
        assert_eq!(outdated.0, NEW);
        assert_eq!(repeat("c", &["read"], "u").await, NEW);
        change(|it| {
            let Consumer {
                name,
                callbacks,
                permissions,
                ..
            } = consumer("c");
            (it.name, it.callbacks, it.permissions) = (name, callbacks, permissions);
        })
        .await;
        assert_eq!(repeat("c", &["read"], "u").await, AGAIN);
    }
    // What is said beside these is no reason to ask.
    change(|it| it.description = Some("new words".to_owned())).await;
    assert_eq!(repeat("c", &["read"], "u").await, AGAIN);
    let revoked = store.revoke_access_token(&token, later(20), None).await;
    assert!(revoked.unwrap());
    assert_eq!(repeat("c", &["read"], "u").await, NEW);
}

pub(crate) async fn no_repeated_decision_outlives_a_revocation<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let user = id("u");
    for round in 0..10 {
        let first = format!("first-{round}");
        ask(&stores[0], &first).await;
        let asked = consent(&consumer("c"), None);
        let decided = decide_as(&stores[0], &first, &user, asked, NOW).await;
        assert_eq!(decided.unwrap(), Decided::Recorded);
        stores[0].exchange(exchange(&first, "c")).await.unwrap();
        let tasks = (0..6).map(|number| {
            let store = stores[number % 2].clone();
            let (name, user) = (format!("again-{round}-{number}"), user.clone());
            tokio::spawn(async move {
                if number == 3 {
                    let filter = TokenFilter {
                        user: Some(user),
                        consumer: Some(id("c")),
                        ..TokenFilter::default()
                    };
                    until_answered(|| store.revoke_access_tokens(&filter, NOW, 99)).await;
                    return;
                }
                ask(&store, &name).await;
                let decision = consent(&consumer("c"), EARLIER);
                until_answered(|| decide_as(&store, &name, &user, decision.clone(), NOW)).await;
                until_answered(|| store.exchange(exchange(&name, "c"))).await;
            })
        });
        for task in Vec::from_iter(tasks) {
            task.await.unwrap();
        }
        let live = TokenFilter {
            live: true,
            ..TokenFilter::default()
        };
        let left = stores[0].access_tokens(&live, None, 9).await.unwrap();
        assert_eq!(left, []);
    }
}

pub(crate) async fn starts_a_new_lifetime<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    ask(&store, "r").await;
    let shorter = ConsentDecision::Allow {
        permissions: vec![],
        shown: None,
        earlier: None,
        verifier: VERIFIER.into(),
        redirect_token: None,
        expires_at: later(60),
    };
    let user = id("u");
    decide_as(&store, "r", &user, shorter, NOW).await.unwrap();
    let found = store.request_token("r").await.unwrap().unwrap();
    assert_eq!(found.expires_at, later(60));
    assert_eq!(found.issued_at, NOW);
}

pub(crate) async fn of_racing_decisions_one_is_recorded<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    stores[0].add_consumer(consumer("d")).await.unwrap();
    ask(&stores[0], "r").await;
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move {
                let decision = match number % 3 {
                    0 => ConsentDecision::Deny,
                    _ => ConsentDecision::Allow {
                        permissions: vec![],
                        shown: None,
                        earlier: None,
                        verifier: format!("verifier {number}").into(),
                        redirect_token: Some(format!("redirect {number}")),
                        expires_at: later(1200),
                    },
                };
                let user = id("u");
                until_answered(|| decide_as(&store, "r", &user, decision.clone(), NOW)).await
            })
        })
        .collect();
    let mut recorded = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Decided::Recorded => recorded.push(number),
            other => assert_eq!(other, Decided::AlreadyDecided),
        }
    }
    assert_eq!(recorded.len(), 1);
    // The stored state is the whole of that one decision.
    let expected = match recorded[0] {
        number if number % 3 == 0 => RequestTokenState::Denied,
        number => RequestTokenState::Authorized {
            user: id("u"),
            verifier: format!("verifier {number}").into(),
            redirect_token: Some(format!("redirect {number}")),
        },
    };
    let found = stores[1].request_token("r").await.unwrap().unwrap();
    assert_eq!(found.state, expected);
}
