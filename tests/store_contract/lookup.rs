//! Records that an application keeps, beside a store of any kind.
//!
//! Promise (Permissions and identity): Consumers and tokens that an application keeps verify without an import; local records
//! and removals come first. Also in `tests/acceptance/records/lookup.rs`, `tests/acceptance/operator/admin_api.rs`,
//! `tests/providers/lookup.rs`.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use countersign::{
    base::text::names::{ConsumerKey, NameEncoding},
    records::{
        store::{Backend, Store, StoreParams, open_store, postgres::PostgresUrl},
        values::{
            ExternalRecords, Opening, StoreError,
            record::{AccessToken, Consumer},
            use_cases::{Added, Change, Source},
        },
    },
};

use crate::{
    store_contract::records::{
        NOW, access_token, ask, consumer, exported, id, populate, request_token, set_enabled, user,
    },
    support::postgres::Postgres as Server,
};

/// An application with the consumers `shop` and `off` and their tokens.
struct Application;

#[async_trait]
impl ExternalRecords for Application {
    async fn consumer(&self, key: &ConsumerKey, _: bool) -> Result<Option<Consumer>, StoreError> {
        let is_here = matches!(key.as_str(), "shop" | "off");
        Ok(is_here.then(|| Consumer {
            name: "theirs".to_owned(),
            ..consumer(key.as_str())
        }))
    }

    async fn access_token(
        &self,
        token: &str,
        _: Option<&ConsumerKey>,
        _: bool,
    ) -> Result<Option<AccessToken>, StoreError> {
        Ok(match token {
            "t" => Some(access_token("t", "shop", "4711")),
            "other" => Some(access_token("other", "shop", "4712")),
            _ => None,
        })
    }
}

/// Runs `test` on a store of each kind, beside the application.
async fn on_each(test: impl AsyncFn(&Arc<Store>)) {
    NameEncoding::None.set();
    let (server, directory) = (Server::shared(), tempfile::tempdir().unwrap());
    let url = PostgresUrl::parse(&server.database()).unwrap();
    for backend in [
        Backend::Postgres(Box::new(url)),
        Backend::Sqlite(PathBuf::from(directory.path()).join("store")),
    ] {
        let opened = open_store(StoreParams {
            backend,
            keys: Vec::new(),
            opening: Opening::Serve,
            external: Some(Arc::new(Application)),
        });
        test(&opened.unwrap()).await;
    }
}

fn key(text: &str) -> ConsumerKey {
    text.parse().unwrap()
}

#[tokio::test]
async fn records_of_an_application_are_found_and_not_kept() {
    on_each(async |store| {
        let (shop, source) = store
            .consumer_from(&key("shop"), false)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((&*shop.name, source), ("theirs", Source::External));
        let token = store.access_token("t").await.unwrap().unwrap();
        assert_eq!(token.user.as_str(), "4711");
        for name in ["nobody", "", "nul\0"] {
            assert_eq!(store.access_token(name).await.unwrap(), None, "{name}");
        }
        assert_eq!(store.consumer(&key("nobody")).await.unwrap(), None);
        // One that is registered here comes first, and neither list nor export has the others.
        store.add_consumer(consumer("shop")).await.unwrap();
        let (own, source) = store
            .consumer_from(&key("shop"), false)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((own, source), (consumer("shop"), Source::Store));
        assert_eq!(exported(store).await.records.len(), 1);
        let listed = store.consumers(&Default::default(), None, 9).await;
        assert_eq!(listed.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_ended_here_is_ended_whatever_the_application_says() {
    on_each(ends_in).await;
}

async fn ends_in(store: &Arc<Store>) {
    populate(store).await;
    store.add_user(user("4712")).await.unwrap();
    let is_revoked = async |token: &str| {
        let found = store.access_token(token).await.unwrap().unwrap();
        found.revoked_at.is_some()
    };
    assert!(!is_revoked("t").await && !is_revoked("other").await);
    let position = store.changes_since(0).await.unwrap().position;
    assert!(store.revoke_access_token("t", NOW, None).await.unwrap());
    assert!(store.revoke_access_token("t", NOW, None).await.unwrap());
    assert!(is_revoked("t").await);
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, [Change::AccessToken("t".to_owned())]);
    assert!(
        !store
            .revoke_access_token("nobody", NOW, None)
            .await
            .unwrap()
    );
    // The state of a user who is known here counts; an unknown one does not matter.
    let id = id("4712");
    set_enabled(store, &id, false, NOW).await;
    assert!(is_revoked("other").await);
    set_enabled(store, &id, true, NOW).await;
    assert!(!is_revoked("other").await);
    store.remove_user(&id, NOW, None).await.unwrap();
    assert!(is_revoked("other").await);
    // A consumer that was removed here stays away, although the application has its key.
    store.add_consumer(consumer("shop")).await.unwrap();
    assert!(store.remove_consumer(&key("shop"), None).await.unwrap());
    assert_eq!(store.consumer(&key("shop")).await.unwrap(), None);
    assert!(store.consumer(&key("off")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_consumer_of_an_application_gets_no_new_tokens() {
    on_each(async |store| {
        populate(store).await;
        let issued = store
            .issue_request_token(request_token("r", "shop"), 9)
            .await;
        assert!(matches!(issued, Err(StoreError::Broken(_))), "{issued:?}");
        ask(store, "r").await;
        let issued = store
            .issue_access_token(access_token("a", "shop", "u"))
            .await;
        assert_eq!(issued.unwrap(), Added::Taken);
    })
    .await;
}
