//! Imports that change what the store has.

use super::*;

/// An import that changes what is there.
fn changing(existing: Existing, records: Vec<Record>) -> ImportList<'static> {
    ImportList {
        existing,
        ..import_list(records)
    }
}

pub(crate) async fn replaces_what_differs<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    fill(&store).await;
    let shop = Consumer {
        name: "other".to_owned(),
        secret: "other".into(),
        ..consumer("c")
    };
    let disabled = User {
        enabled: false,
        password_hash: None,
        ..user("u")
    };
    let token = AccessToken {
        secret: "other".into(),
        consumer: id("c"),
        ..access_token("revoked", "c", "u")
    };
    let position = store.changes_since(0).await.unwrap().position;
    let records = || {
        vec![
            Record::AccessToken(token.clone()),
            Record::User(disabled.clone()),
            Record::Consumer(shop.clone()),
        ]
    };
    let mut told = Vec::new();
    let list = ImportList {
        differences: Box::new(|difference| match difference {
            Difference::Changed(before, after) => {
                told.push(format!(
                    "{} {}",
                    before.name(),
                    before.differing(after).join(" ")
                ));
            }
            other => panic!("{other:?}"),
        }),
        ..changing(Existing::Replace, records())
    };
    let changed = |changed| {
        Ok(Imported {
            changed,
            ..Imported::default()
        })
    };
    assert_eq!(outcome(&store, list).await, changed(3));
    assert_eq!(
        told,
        [
            "consumer \"c\" secret name",
            "user \"u\" enabled",
            "token \"revoked\" token_secret consumer"
        ]
    );
    assert_eq!(store.consumer(&id("c")).await.unwrap(), Some(shop.clone()));
    let found = store.user(&id("u")).await.unwrap().unwrap();
    assert_eq!(found.password_hash, user("u").password_hash, "it is kept");
    assert!(!found.enabled);
    let found = store.access_token("active").await.unwrap().unwrap();
    assert!(found.revoked_at.is_some(), "as by disabling the user");
    let found = store.access_token("revoked").await.unwrap().unwrap();
    assert_eq!(found.revoked_at, Some(later(8)), "it stays revoked");
    assert_eq!(
        (found.secret, found.consumer),
        (token.secret.clone(), id("c"))
    );
    assert_ne!(store.changes_since(position).await.unwrap().changes, []);
    // Again nothing differs.
    let again = outcome(&store, changing(Existing::Replace, records())).await;
    assert_eq!(again, imported(0, 3, 0, 0));
    // The rules for new records hold for changed ones.
    let namesake = User {
        name: user("bare").name,
        ..disabled.clone()
    };
    let unknown = AccessToken {
        consumer: id("none"),
        ..token.clone()
    };
    let list = changing(
        Existing::Replace,
        vec![Record::User(namesake), Record::AccessToken(unknown)],
    );
    assert_eq!(
        outcome(&store, list).await,
        Err(vec![
            (0, Conflict::NameTaken),
            (1, Conflict::ConsumerUnknown(id("none")))
        ])
    );
}

pub(crate) async fn updates_members_and_prunes_consumers<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    fill(&store).await;
    let mut given = rich_consumer("rich");
    given.name = "other".to_owned();
    given.secret = "".into();
    given.callbacks = vec![];
    given.description = None;
    let left_out = ["secret", "previous_secret", "callbacks"];
    let line = |record, left_out: &[&str]| {
        Ok(Numbered {
            line: 7,
            record,
            left_out: left_out.iter().map(|&name| name.to_owned()).collect(),
        })
    };
    let list = |records: Vec<std::io::Result<Numbered>>| ImportList {
        existing: Existing::Update,
        ..ImportList::new(records.into_iter(), NOW, |_| 0)
    };
    let pruning = || ImportList {
        keeps: Some(Box::new(|key| key.as_str() == "rich")),
        ..list(vec![line(Record::Consumer(given.clone()), &left_out)])
    };
    let expected = Imported {
        changed: 1,
        removed: 1,
        ..Imported::default()
    };
    let before = export(&store).await;
    let dry_run = ImportList {
        dry_run: true,
        ..pruning()
    };
    assert_eq!(outcome(&store, dry_run).await, Ok(expected));
    let unexpected = ImportList {
        is_expected: Box::new(|| false),
        ..pruning()
    };
    let unexpected = store.import(unexpected).await.unwrap();
    assert_eq!(unexpected, Import::Unexpected);
    assert_eq!(export(&store).await, before);
    assert_eq!(outcome(&store, pruning()).await, Ok(expected));
    let updated = Consumer {
        name: "other".to_owned(),
        description: None,
        ..rich_consumer("rich")
    };
    assert_eq!(store.consumer(&id("rich")).await.unwrap(), Some(updated));
    assert_eq!(store.consumer(&id("c")).await.unwrap(), None);
    assert_eq!(store.access_token("active").await.unwrap(), None);
    let gone = store.add_consumer(consumer("c")).await.unwrap();
    assert_eq!(gone, Added::Taken);
    // A new consumer needs all, one that is there has to be able to sign, and other kinds are left alone.
    let new = Record::Consumer(Consumer {
        secret: "".into(),
        ..consumer("new")
    });
    let only_rsa = Record::Consumer(Consumer {
        rsa_only: true,
        rsa_public_key: None,
        ..rich_consumer("rich")
    });
    let user = Record::User(User {
        display_name: None,
        ..user("u")
    });
    for (record, left_out, conflict) in [
        (new.clone(), &["secret"][..], Conflict::Incomplete("secret")),
        (new, &["name"], Conflict::Incomplete("name")),
        (only_rsa, &[], Conflict::CannotSign),
        (user, &[], differs(&["display_name"])),
    ] {
        let list = list(vec![line(record, left_out)]);
        assert_eq!(outcome(&store, list).await, rejected(7, conflict));
    }
}
