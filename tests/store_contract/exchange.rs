//! The exchange of a request token for an access token.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use countersign::records::{
    store::Store,
    values::{
        record::{AccessToken, RequestToken, RequestTokenState, TokenBeginning},
        use_cases::{
            Change, ConsentDecision, Decided,
            Exchanged::{self, Denied, Expired, Undecided, Unknown, Used, WrongVerifier},
            MAX_WRONG_VERIFIERS, TokenExchange, TokenFilter,
        },
    },
};

use crate::store_contract::{
    records::{
        NOW, allow, ask, authorize, consumer, decide_as, exchange, id, issue, later, opened,
        populated, populated_twice, request_token, set_enabled, until_answered, user,
        with_redirect_token,
    },
    suite::Backend,
    tokens::used,
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

/// Asks for permissions, allows them and exchanges: the token that the consumer gets at that time.
async fn walk(
    store: &Arc<Store>,
    name: &str,
    permissions: &[&str],
    exchanged: TokenExchange,
) -> AccessToken {
    let permissions = Vec::from_iter(permissions.iter().map(|name| id(name)));
    let asked = RequestToken {
        permissions: permissions.clone(),
        expires_at: later(100_000),
        ..request_token(name, "c")
    };
    store.issue_request_token(asked, 1_000).await.unwrap();
    let ConsentDecision::Allow { verifier, .. } = allow() else {
        unreachable!()
    };
    let decision = ConsentDecision::Allow {
        permissions,
        shown: None,
        earlier: None,
        verifier,
        redirect_token: None,
        expires_at: later(100_000),
    };
    let decided = decide_as(store, name, &id("u"), decision, NOW).await;
    assert_eq!(decided.unwrap(), Decided::Recorded);
    let exchanged = TokenExchange {
        token: name.to_owned(),
        access_token: format!("access-{name}"),
        ..exchanged
    };
    match outcome(store, exchanged).await {
        Exchanged::Exchanged { access_token, .. } => access_token,
        other => panic!("{name}: {other:?}"),
    }
}

pub(crate) async fn gives_out_a_token_again<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let reuse = |at: u64, end: Option<u64>| TokenExchange {
        now: later(at),
        expires_at: end.map(later),
        reuse: true,
        ..exchange("", "c")
    };
    let first = walk(&store, "a", &["read"], reuse(10, None)).await;
    let name = async |name: &str, permissions: &[&str], exchanged| {
        walk(&store, name, permissions, exchanged).await.token
    };
    // What another process issues, or an import brings, was not allowed by the user.
    issue(&store, "imported").await;
    let again = walk(&store, "b", &["read"], reuse(20, None)).await;
    assert_eq!(again, first);
    assert_eq!(store.access_token("access-b").await.unwrap(), None);
    assert_eq!(state(&store, "b").await, RequestTokenState::Exchanged);
    // Other permissions, another end, and a name that the consumer has not learnt yet need another token.
    assert_eq!(name("c", &["write:all"], reuse(30, None)).await, "access-c");
    assert_eq!(
        name("d", &["read"], reuse(40, Some(1040))).await,
        "access-d"
    );
    let half = reuse(540, Some(1540));
    assert_eq!(name("e", &["read"], half).await, "access-d");
    let less = reuse(541, Some(1541));
    assert_eq!(name("f", &["read"], less).await, "access-f");
    let unused = TokenExchange {
        idle: Some(Duration::from_secs(1000)),
        ..reuse(511, None)
    };
    assert_eq!(name("g", &["read"], unused.clone()).await, "access-g");
    store
        .record_uses(vec![used("access-a", 600)])
        .await
        .unwrap();
    let used = TokenExchange {
        now: later(700),
        ..unused
    };
    assert_eq!(name("h", &["read"], used).await, "access-a");
    let revoked = store.revoke_access_token("access-a", later(700), None);
    assert!(revoked.await.unwrap());
    assert_eq!(name("i", &["read"], reuse(710, None)).await, "access-g");
    let other = TokenExchange {
        reuse: false,
        ..reuse(720, None)
    };
    assert_eq!(name("j", &["read"], other).await, "access-j");
}

pub(crate) async fn ends_tokens_past_the_limit<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_user(user("v")).await.unwrap();
    issue(&store, "imported").await;
    let most = |at: u64| TokenExchange {
        now: later(at),
        expires_at: None,
        most: NonZeroU32::new(2),
        ..exchange("", "c")
    };
    for (name, at) in [("a", 10), ("b", 20)] {
        walk(&store, name, &["read"], most(at)).await;
    }
    store.record_uses(vec![used("access-a", 25)]).await.unwrap();
    let position = store.changes_since(0).await.unwrap().position;
    walk(&store, "c", &["read"], most(30)).await;
    let live = async || {
        let filter = TokenFilter {
            live: true,
            ..TokenFilter::default()
        };
        let tokens = store.access_tokens(&filter, None, 99).await.unwrap();
        let names = tokens.into_iter().map(|token| token.token);
        Vec::from_iter(names).join(" ")
    };
    // The one that was unused for longest has ended, and every process learns it.
    assert_eq!(live().await, "access-a access-c imported");
    let ended = store.access_token("access-b").await.unwrap().unwrap();
    assert_eq!(ended.revoked_at, Some(later(30)));
    let changes = store.changes_since(position).await.unwrap().changes;
    assert!(changes.contains(&Change::AccessToken("access-b".to_owned())));
    // A token that is given out again ends no other one, and is not ended itself.
    let again = TokenExchange {
        reuse: true,
        ..most(40)
    };
    walk(&store, "d", &["read"], again).await;
    assert_eq!(live().await, "access-a access-c imported");
    let one = TokenExchange {
        most: NonZeroU32::new(1),
        reuse: true,
        ..most(50)
    };
    walk(&store, "e", &["read"], one).await;
    assert_eq!(live().await, "access-c imported");
}

pub(crate) async fn of_racing_exchanges_all_get_one_token<B: Backend>() {
    let (backend, stores) = populated_twice::<B>().await;
    let exchanges = (0..20).map(|number| TokenExchange {
        access_token: format!("a{number}"),
        reuse: true,
        ..exchange(&format!("t{number}"), "c")
    });
    let exchanges = Vec::from_iter(exchanges);
    for exchange in &exchanges {
        ask(&stores[0], &exchange.token).await;
        let user = id("u");
        let decided = decide_as(&stores[0], &exchange.token, &user, allow(), NOW);
        decided.await.unwrap();
    }
    let given = race(&backend, exchanges).await;
    let tokens = given.into_iter().map(|outcome| match outcome {
        Exchanged::Exchanged { access_token, .. } => access_token.token,
        other => panic!("{other:?}"),
    });
    assert_eq!(BTreeSet::from_iter(tokens).len(), 1);
}

pub(crate) async fn a_revocation_ends_what_was_not_exchanged<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    let decided = async |name: &str, consumer: &str, user: &str| {
        let token = request_token(name, consumer);
        store.issue_request_token(token, 99).await.unwrap();
        let decided = decide_as(&store, name, &id(user), allow(), NOW).await;
        assert_eq!(decided.unwrap(), Decided::Recorded);
    };
    for (name, consumer, user) in [("a", "c", "u"), ("b", "c", "v"), ("e", "d", "u")] {
        decided(name, consumer, user).await;
    }
    let filter = |user: &str, consumer: &str, unused: Option<u64>| TokenFilter {
        user: user.parse().ok(),
        consumer: consumer.parse().ok(),
        unused_since: unused.map(later),
        ..TokenFilter::default()
    };
    let revoke = async |filter| {
        let revoked = store.revoke_access_tokens(&filter, NOW, 9).await;
        assert_eq!(revoked.unwrap(), 0);
    };
    // To end unused tokens says nothing about new ones.
    revoke(filter("u", "c", Some(9))).await;
    revoke(filter("u", "c", None)).await;
    assert_eq!(outcome(&store, exchange("a", "c")).await, Unknown);
    assert!(succeeds(&store, exchange("b", "c")).await);
    assert!(succeeds(&store, exchange("e", "d")).await);
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
