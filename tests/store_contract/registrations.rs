//! Consumers that users ask for: their bounds hold for processes that ask at once.

use countersign::{
    base::text::names::{ConsumerKey, UserId},
    records::values::{
        record::{Consumer, Registration},
        use_cases::{Asked, RegistrationBounds},
    },
};

use crate::store_contract::{
    records::{consumer, id, later, opened_twice},
    suite::Backend,
};

const BOUNDS: RegistrationBounds = RegistrationBounds {
    per_user: 2,
    per_day: 3,
};

fn asked(key: &str, owner: &UserId) -> Consumer {
    Consumer {
        owner: Some(owner.clone()),
        registration: Some(Registration::Waiting),
        enabled: false,
        ..consumer(key)
    }
}

pub(crate) async fn bounds_count_a_user_and_a_day<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    let [dora, eve, fred]: [UserId; 3] = ["dora", "eve", "fred"].map(id);
    let ask = async |store: usize, key: &str, owner: &UserId, at| {
        let consumer = asked(key, owner);
        let asking = stores[store].ask_for_consumer(consumer, owner, BOUNDS, later(at));
        asking.await.unwrap()
    };
    assert_eq!(ask(0, "a", &dora, 0).await, Asked::Registered);
    assert_eq!(ask(1, "a", &dora, 0).await, Asked::Before);
    assert_eq!(ask(1, "b", &dora, 10).await, Asked::Registered);
    assert_eq!(ask(0, "c", &dora, 20).await, Asked::TooMany);
    // A removed one counts for a day, and its key is not given again.
    let key: ConsumerKey = id("a");
    assert!(stores[1].remove_consumer(&key, None).await.unwrap());
    assert_eq!(ask(0, "c", &dora, 20).await, Asked::TooMany);
    assert_eq!(ask(0, "a", &eve, 20).await, Asked::Before);
    assert_eq!(ask(0, "d", &eve, 20).await, Asked::Registered);
    assert_eq!(ask(1, "e", &fred, 30).await, Asked::TooMany);
    assert_eq!(ask(1, "c", &dora, 86_400).await, Asked::Registered);
    assert_eq!(ask(1, "f", &dora, 200_000).await, Asked::TooMany);
}

pub(crate) async fn names_are_taken_in_any_ascii_case<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    stores[0].add_consumer(consumer("shop")).await.unwrap();
    let dora: UserId = id("dora");
    let namesake = Consumer {
        name: "CONSUMER Shop".to_owned(),
        ..asked("mine", &dora)
    };
    let asking = stores[1].ask_for_consumer(namesake, &dora, BOUNDS, later(0));
    assert_eq!(asking.await.unwrap(), Asked::NameTaken);
}

pub(crate) async fn lists_those_of_an_owner_and_those_to_decide<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    let store = &stores[0];
    let [dora, eve]: [UserId; 2] = ["dora", "eve"].map(id);
    for (key, owner) in [("b", &dora), ("c", &eve), ("a", &dora)] {
        let asking = store.ask_for_consumer(asked(key, owner), owner, BOUNDS, later(0));
        assert_eq!(asking.await.unwrap(), Asked::Registered);
    }
    store.add_consumer(consumer("d")).await.unwrap();
    let keys = |found: Vec<Consumer>| {
        let keys = found.into_iter().map(|one| one.key.to_string());
        Vec::from_iter(keys).join(" ")
    };
    let owned = stores[1].consumers_of_owner(&dora, 9).await.unwrap();
    assert_eq!(keys(owned), "a b");
    let undecided = async |after: Option<&str>, limit| {
        let after = after.map(id::<ConsumerKey>);
        keys(
            store
                .undecided_consumers(after.as_ref(), limit)
                .await
                .unwrap(),
        )
    };
    assert_eq!(undecided(None, 2).await, "a b");
    assert_eq!(undecided(Some("b"), 2).await, "c");
    assert_eq!(store.count_undecided().await.unwrap(), 3);
    let approve = |consumer: &mut Consumer| {
        (consumer.enabled, consumer.registration) = (true, Some(Registration::Approved));
        true
    };
    store.update_consumer(&id("a"), &approve).await.unwrap();
    let callbacks = |consumer: &mut Consumer| {
        consumer.asked_callbacks = vec!["oob".to_owned()];
        true
    };
    store.update_consumer(&id("d"), &callbacks).await.unwrap();
    assert_eq!(undecided(None, 9).await, "b c d");
    assert_eq!(store.count_undecided().await.unwrap(), 3);
}

pub(crate) async fn of_racing_ones_as_many_succeed_as_are_allowed<B: Backend>() {
    let (_backend, stores) = opened_twice::<B>().await;
    let dora: UserId = id("dora");
    let asking = (0..8).map(|number| {
        let (store, owner) = (stores[number % 2].clone(), dora.clone());
        tokio::spawn(async move {
            let consumer = asked(&format!("c{number}"), &owner);
            let asking = store.ask_for_consumer(consumer, &owner, BOUNDS, later(0));
            asking.await.unwrap()
        })
    });
    let mut outcomes = Vec::new();
    for one in Vec::from_iter(asking) {
        outcomes.push(one.await.unwrap());
    }
    let registered = outcomes.iter().filter(|it| **it == Asked::Registered);
    assert_eq!(registered.count(), 2, "{outcomes:?}");
}
