//! Request tokens and the user's decision.

use countersign::base::clock::UnixTime;
use countersign::records::store::{
    port::{ConsentDecision, Decided, Exchanged, Issued},
    record::{Callback, Consumer, RequestToken, RequestTokenState},
};

use crate::{
    records::{
        NOW, VERIFIER, allow, always, ask, authorize, consumer, decide_as, exchange, id, later,
        opened, populated, populated_twice, request_token, set_enabled, until_answered, user,
        with_redirect_token,
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

pub(crate) async fn a_decision_gives_no_more_than_was_asked_for<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let asked = RequestToken {
        permissions: ["read", "write:all"].map(id).into(),
        ..request_token("r", "c")
    };
    store.issue_request_token(asked, 9).await.unwrap();
    let some = ConsentDecision::Allow {
        permissions: ["admin", "write:all"].map(id).into(),
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

pub(crate) async fn counts_the_lifetime_anew<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    ask(&store, "r").await;
    let shorter = ConsentDecision::Allow {
        permissions: vec![],
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
