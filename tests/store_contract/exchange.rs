//! The exchange of a request token for an access token.

use std::sync::Arc;

use countersign::records::store::{
    Store,
    port::{
        ConsentDecision,
        Exchanged::{self, Denied, Expired, Undecided, Unknown, Used, WrongVerifier},
        MAX_WRONG_VERIFIERS, TokenExchange,
    },
    record::{AccessToken, RequestTokenState, TokenBeginning},
};

use crate::{
    records::{
        NOW, allow, ask, authorize, consumer, decide_as, exchange, id, later, opened, populated,
        populated_twice, request_token, set_enabled, until_answered, user, with_redirect_token,
    },
    suite::Backend,
};

fn wrong(token: &str) -> TokenExchange {
    TokenExchange {
        verifier: "the verifies".into(),
        ..exchange(token, "c")
    }
}

async fn outcome(store: &Arc<Store>, exchange: TokenExchange) -> Exchanged {
    store.exchange(exchange).await.unwrap()
}

async fn succeeds(store: &Arc<Store>, exchange: TokenExchange) -> bool {
    let outcome = outcome(store, exchange).await;
    matches!(outcome, Exchanged::Exchanged { .. })
}

async fn state(store: &Arc<Store>, token: &str) -> RequestTokenState {
    store.request_token(token).await.unwrap().unwrap().state
}

pub(crate) async fn gives_one_access_token<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, allow()).await;
    let expected = AccessToken {
        token: "access-r".to_owned(),
        secret: "access secret".into(),
        consumer: id("c"),
        user: id("u"),
        permissions: request_token("r", "c").permissions,
        issued_at: later(10),
        expires_at: Some(later(9999)),
        last_used_at: None,
        last_used_from: None,
        revoked_at: None,
        began: TokenBeginning::Consent,
        with_display_name: true,
    };
    assert_eq!(
        outcome(&store, exchange("r", "c")).await,
        Exchanged::Exchanged {
            access_token: expected.clone(),
            user: Box::new(user("u"))
        }
    );
    assert_eq!(
        store.access_token("access-r").await.unwrap(),
        Some(expected)
    );
    assert_eq!(state(&store, "r").await, RequestTokenState::Exchanged);
    let again = TokenExchange {
        access_token: "second".to_owned(),
        ..exchange("r", "c")
    };
    assert_eq!(outcome(&store, again).await, Used);
    assert_eq!(store.access_token("second").await.unwrap(), None);
}

pub(crate) async fn takes_the_token_of_the_redirect<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, with_redirect_token()).await;
    let by_redirect = exchange("redirect", "c");
    assert!(succeeds(&store, by_redirect.clone()).await);
    assert_eq!(outcome(&store, by_redirect).await, Used);
    assert_eq!(outcome(&store, exchange("r", "c")).await, Used);
}

pub(crate) async fn answers_in_the_order_of_the_port<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, allow()).await;
    let user = id("u");
    for token in ["issued", "denied"] {
        ask(&store, token).await;
    }
    decide_as(&store, "denied", &user, ConsentDecision::Deny, NOW)
        .await
        .unwrap();
    let late = |token: &str, seconds| TokenExchange {
        now: later(seconds),
        ..wrong(token)
    };

    assert_eq!(outcome(&store, wrong("none")).await, Unknown);
    assert_eq!(outcome(&store, wrong("issued")).await, Undecided);
    assert_eq!(outcome(&store, wrong("denied")).await, Denied);
    assert_eq!(outcome(&store, wrong("r")).await, WrongVerifier);
    // Expired comes before each of them, and from the very second on.
    assert_eq!(outcome(&store, late("issued", 599)).await, Undecided);
    assert_eq!(outcome(&store, late("issued", 600)).await, Expired);
    assert_eq!(outcome(&store, late("denied", 600)).await, Expired);
    assert_eq!(outcome(&store, late("r", 1199)).await, WrongVerifier);
    assert_eq!(outcome(&store, late("r", 1200)).await, Expired);
    // Two wrong verifiers were counted, not four: expired tries do not count.
    let found = store.request_token("r").await.unwrap().unwrap();
    assert_eq!(found.wrong_verifiers, 2);

    assert!(succeeds(&store, exchange("r", "c")).await);
    assert_eq!(outcome(&store, wrong("r")).await, Used);
    assert_eq!(outcome(&store, late("r", 1200)).await, Expired);
    // Another consumer's token is unknown, whatever its state.
    store.add_consumer(consumer("d")).await.unwrap();
    for token in ["r", "issued", "denied"] {
        let foreign = TokenExchange {
            consumer: id("d"),
            ..late(token, 5000)
        };
        assert_eq!(outcome(&store, foreign).await, Unknown);
    }
}

pub(crate) async fn five_wrong_verifiers_void_the_token<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, with_redirect_token()).await;
    for number in 1..=MAX_WRONG_VERIFIERS {
        // Both names of the token share one count.
        let token = if number % 2 == 0 { "r" } else { "redirect" };
        assert_eq!(outcome(&store, wrong(token)).await, WrongVerifier);
        let found = store.request_token("r").await.unwrap().unwrap();
        assert_eq!(found.wrong_verifiers, number);
    }
    assert_eq!(state(&store, "r").await, RequestTokenState::Voided);
    assert_eq!(outcome(&store, exchange("r", "c")).await, Unknown);
    assert_eq!(outcome(&store, exchange("redirect", "c")).await, Unknown);
    assert_eq!(store.access_token("access-r").await.unwrap(), None);
}

pub(crate) async fn four_wrong_verifiers_do_not<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, allow()).await;
    for verifier in ["", "the verifie", "the verifier ", "THE VERIFIER"] {
        let exchange = TokenExchange {
            verifier: verifier.into(),
            ..exchange("r", "c")
        };
        assert_eq!(outcome(&store, exchange).await, WrongVerifier);
    }
    assert!(succeeds(&store, exchange("r", "c")).await);
}

pub(crate) async fn is_bound_to_its_consumer<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    authorize(&store, with_redirect_token()).await;
    store.add_consumer(consumer("d")).await.unwrap();
    for token in ["r", "redirect"] {
        for _ in 0..=MAX_WRONG_VERIFIERS {
            // Another consumer's right verifier does not exchange it either, and its wrong ones do not void it.
            assert_eq!(outcome(&store, exchange(token, "d")).await, Unknown);
            let wrong = TokenExchange {
                consumer: id("d"),
                ..wrong(token)
            };
            assert_eq!(outcome(&store, wrong).await, Unknown);
        }
    }
    assert!(succeeds(&store, exchange("r", "c")).await);
}

/// Exchanges at once over two handles; returns the outcome of each.
async fn race<B: Backend>(backend: &B, exchanges: Vec<TokenExchange>) -> Vec<Exchanged> {
    let stores = [backend.open().await, backend.open().await];
    let tasks: Vec<_> = exchanges
        .into_iter()
        .zip(stores.iter().cycle().cloned())
        .map(|(exchange, store)| {
            tokio::spawn(async move { until_answered(|| store.exchange(exchange.clone())).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn assert_one_succeeds<B: Backend>(backend: &B, exchanges: Vec<TokenExchange>) {
    let count = exchanges.len();
    let outcomes = race(backend, exchanges).await;
    let given: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Exchanged::Exchanged { access_token, .. } => Some(access_token.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(given.len(), 1);
    let used = outcomes.iter().filter(|outcome| **outcome == Used).count();
    assert_eq!(used, count - 1);
    let store = backend.open().await;
    let kept = store
        .access_tokens(&Default::default(), None, 1000)
        .await
        .unwrap();
    assert_eq!(kept, given);
}

pub(crate) async fn of_racing_exchanges_one_succeeds<B: Backend>() {
    let backend = B::fresh().await;
    authorize(&backend.open().await, allow()).await;
    let exchanges = (0..100)
        .map(|number| TokenExchange {
            access_token: format!("a{number}"),
            ..exchange("r", "c")
        })
        .collect();
    assert_one_succeeds(&backend, exchanges).await;
}

pub(crate) async fn of_racing_exchanges_by_both_tokens_one_succeeds<B: Backend>() {
    let backend = B::fresh().await;
    authorize(&backend.open().await, with_redirect_token()).await;
    let exchanges = (0..100)
        .map(|number| {
            let token = if number % 3 == 0 { "redirect" } else { "r" };
            TokenExchange {
                access_token: format!("a{number}"),
                ..exchange(token, "c")
            }
        })
        .collect();
    assert_one_succeeds(&backend, exchanges).await;
}

pub(crate) async fn wrong_verifiers_at_once_are_all_counted<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    authorize(&store, allow()).await;
    let outcomes = race(&backend, (0..40).map(|_| wrong("r")).collect()).await;
    let counted = outcomes
        .iter()
        .filter(|outcome| **outcome == WrongVerifier)
        .count();
    assert_eq!(counted, MAX_WRONG_VERIFIERS as usize);
    assert!(
        outcomes
            .iter()
            .all(|outcome| { matches!(outcome, WrongVerifier | Unknown) })
    );
    assert_eq!(outcome(&store, exchange("r", "c")).await, Unknown);
}

pub(crate) async fn ends_with_its_user<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let user = id("u");
    for token in ["disabled", "removed"] {
        ask(&store, token).await;
    }
    decide_as(&store, "disabled", &user, allow(), NOW)
        .await
        .unwrap();
    assert!(set_enabled(&store, &user, false, NOW).await);
    assert_eq!(outcome(&store, exchange("disabled", "c")).await, Unknown);
    // Enabling brings nothing back.
    assert!(set_enabled(&store, &user, true, NOW).await);
    assert_eq!(outcome(&store, exchange("disabled", "c")).await, Unknown);
    decide_as(&store, "removed", &user, allow(), NOW)
        .await
        .unwrap();
    assert!(store.remove_user(&user, NOW, None).await.unwrap());
    assert_eq!(outcome(&store, exchange("removed", "c")).await, Unknown);
    // Unknown comes before expired.
    let late = TokenExchange {
        now: later(5000),
        ..exchange("removed", "c")
    };
    assert_eq!(outcome(&store, late).await, Unknown);
}

pub(crate) async fn no_racing_one_outlives_its_user<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    let user = id("u");
    for number in 0..40 {
        let token = format!("t{number}");
        ask(&stores[0], &token).await;
        let decided = decide_as(&stores[0], &token, &user, allow(), NOW);
        decided.await.unwrap();
    }
    let task = |number: usize| {
        let store = stores[number % 2].clone();
        let exchange = exchange(&format!("t{number}"), "c");
        tokio::spawn(async move { until_answered(|| store.exchange(exchange.clone())).await })
    };
    let mut tasks: Vec<_> = (0..20).map(task).collect();
    let ending = set_enabled(&stores[0], &user, false, NOW);
    let (ended, late) = tokio::join!(ending, async { (20..40).map(task).collect::<Vec<_>>() });
    assert!(ended);
    tasks.extend(late);
    let mut given = 0;
    for task in tasks {
        match task.await.unwrap() {
            Exchanged::Exchanged { .. } => given += 1,
            outcome => assert_eq!(outcome, Unknown),
        }
    }
    let kept = stores[1]
        .access_tokens(&Default::default(), None, 1000)
        .await
        .unwrap();
    assert_eq!(kept.len(), given);
    assert!(
        kept.iter().all(|token| token.revoked_at.is_some()),
        "{kept:?}"
    );
}
