//! Export and import.
//!
//! Promise (Storage and operation): An import is all or nothing, and does not restore revoked or removed records. A value that is not a
//! time from 2000 to 9999 is an error that says what it looks like; it is never read as another time. Also in
//! `tests/commands/transfer.rs`.

use std::{collections::BTreeSet, sync::Arc};

use countersign::{
    base::clock::UnixTime,
    records::store::{
        Store,
        port::Added,
        record::{AccessToken, Consumer, ConsumerUse, User},
        transfer::{
            BATCH, Conflict, Difference, Existing, Import, ImportList, Imported, MAX_PROBLEMS,
            Numbered, Origin, Record,
        },
    },
};

use crate::{
    records::{
        NOW, access_token, consumer, exported, id, import_list, issue, later, opened, populate,
        populated, rich_consumer, user,
    },
    suite::Backend,
};

/// A store with a record of every kind.
async fn fill(store: &Arc<Store>) {
    populate(store).await;
    store.add_consumer(rich_consumer("rich")).await.unwrap();
    store.add_consumer(consumer("removed")).await.unwrap();
    store
        .add_user(User {
            password_hash: None,
            display_name: None,
            ..user("bare")
        })
        .await
        .unwrap();
    store.add_user(user("removed")).await.unwrap();
    for token in [
        access_token("active", "c", "u"),
        access_token("revoked", "rich", "u"),
        access_token("of a removed user", "c", "removed"),
        access_token("of a removed consumer", "removed", "u"),
    ] {
        assert_eq!(store.issue_access_token(token).await.unwrap(), Added::Added);
    }
    store
        .record_uses(vec![("active".to_owned(), later(7))])
        .await
        .unwrap();
    store
        .revoke_access_token("revoked", later(8), None)
        .await
        .unwrap();
    store
        .remove_user(&id("removed"), later(9), None)
        .await
        .unwrap();
    store.remove_consumer(&id("removed"), None).await.unwrap();
}

/// A place for every kind of record, so that lists can be compared whatever their order.
fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| match record {
        Record::Consumer(consumer) => (0, consumer.key.to_string()),
        Record::User(user) => (1, user.id.to_string()),
        Record::AccessToken(token) => (2, token.token.clone()),
        Record::RemovedUser(id) => (3, id.to_string()),
        Record::RemovedToken(token) => (4, token.clone()),
        Record::RemovedConsumer(key) => (5, key.to_string()),
    });
    records
}

async fn export(store: &Arc<Store>) -> Vec<Record> {
    sorted(exported(store).await.records)
}

/// The counts of an import, or its problems, each with the place of its record.
type Outcome = Result<Imported, Vec<(usize, Conflict)>>;

async fn import(store: &Arc<Store>, records: &[Record]) -> Outcome {
    outcome(store, import_list(records.to_vec())).await
}

async fn outcome(store: &Arc<Store>, list: ImportList<'_>) -> Outcome {
    match store.import(list).await.unwrap() {
        Import::Imported(imported) => Ok(imported),
        Import::Rejected(problems, count) => {
            assert!(count == problems.len() as u64 || problems.len() == MAX_PROBLEMS);
            Err(problems
                .into_iter()
                .map(|problem| (problem.line, problem.conflict))
                .collect())
        }
        Import::Unexpected => panic!("every change is expected"),
    }
}

fn differs(members: &[&str]) -> Conflict {
    Conflict::Differs(members.iter().map(|&name| name.to_owned()).collect())
}

fn imported(added: u64, unchanged: u64, revoked: u64, not_restored: u64) -> Outcome {
    Ok(Imported {
        added,
        unchanged,
        revoked,
        not_restored,
        ..Imported::default()
    })
}

fn rejected(place: usize, conflict: Conflict) -> Outcome {
    Err(vec![(place, conflict)])
}

pub(crate) async fn round_trip_gives_the_same_records<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    fill(&from).await;
    let records = export(&from).await;
    let revoked = |token: AccessToken, at| AccessToken {
        revoked_at: Some(at),
        ..token
    };
    let used = AccessToken {
        last_used_at: Some(later(7)),
        ..access_token("active", "c", "u")
    };
    let expected = vec![
        Record::Consumer(consumer("c")),
        Record::Consumer(rich_consumer("rich")),
        Record::User(User {
            password_hash: None,
            display_name: None,
            ..user("bare")
        }),
        Record::User(user("u")),
        Record::AccessToken(used),
        Record::AccessToken(revoked(
            access_token("of a removed user", "c", "removed"),
            later(9),
        )),
        Record::AccessToken(revoked(access_token("revoked", "rich", "u"), later(8))),
        Record::RemovedUser(id("removed")),
        Record::RemovedToken("of a removed consumer".to_owned()),
        Record::RemovedConsumer(id("removed")),
    ];
    assert_eq!(records, expected);
    let count = records.len() as u64;
    assert_eq!(import(&to, &records).await, imported(count, 0, 0, 0));
    assert_eq!(export(&to).await, records);
    // The last use of a token, or its issue, was one of its consumer.
    let used = |key, last_used_at| ConsumerUse {
        consumer: id(key),
        last_used_at,
        method: None,
        dialect: None,
    };
    let keys = [id("c"), id("rich")];
    let mut uses = to.consumer_uses(&keys).await.unwrap();
    uses.sort_by_key(|used| used.consumer.clone());
    let issued = access_token("revoked", "rich", "u").issued_at;
    assert_eq!(uses, [used("c", later(7)), used("rich", issued)]);
    let future = AccessToken {
        last_used_at: Some(UnixTime(1 << 40)),
        ..access_token("future", "c", "u")
    };
    let future = [Record::AccessToken(future)];
    assert_eq!(import(&to, &future).await, imported(1, 0, 0, 0));
    let uses = to.consumer_uses(&keys[..1]).await.unwrap();
    assert_eq!(uses, [used("c", later(7))]);
}

pub(crate) async fn is_idempotent<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    assert_eq!(import(&store, &[]).await, imported(0, 0, 0, 0));
    fill(&store).await;
    let records = export(&store).await;
    let count = records.len() as u64;
    assert_eq!(import(&store, &records).await, imported(0, count, 0, 0));
    assert_eq!(export(&store).await, records);
    // Times of registering, issuing and using are not compared, and the store keeps its own.
    let other_times = records
        .iter()
        .cloned()
        .map(|record| match record {
            Record::Consumer(consumer) => Record::Consumer(Consumer {
                created_at: later(99),
                ..consumer
            }),
            Record::User(user) => Record::User(User {
                created_at: later(99),
                ..user
            }),
            Record::AccessToken(token) => Record::AccessToken(AccessToken {
                issued_at: later(99),
                last_used_at: Some(later(99)),
                revoked_at: token.revoked_at.map(|_| later(99)),
                ..token
            }),
            record => record,
        })
        .collect::<Vec<_>>();
    assert_eq!(import(&store, &other_times).await, imported(0, count, 0, 0));
    assert_eq!(export(&store).await, records);
}

pub(crate) async fn takes_all_or_nothing<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    fill(&store).await;
    let before = export(&store).await;
    let position = store.changes_since(0).await.unwrap().position;
    let other = Consumer {
        name: "other".to_owned(),
        ..consumer("c")
    };
    let records = [
        Record::AccessToken(access_token("new", "new", "new")),
        Record::AccessToken(AccessToken {
            revoked_at: Some(NOW),
            ..access_token("active", "c", "u")
        }),
        Record::User(user("new")),
        Record::Consumer(consumer("new")),
        Record::RemovedUser(id("gone")),
        Record::RemovedToken("gone".to_owned()),
        Record::Consumer(other),
    ];
    assert_eq!(
        import(&store, &records).await,
        rejected(6, differs(&["name"]))
    );
    assert_eq!(export(&store).await, before);
    assert_eq!(store.changes_since(position).await.unwrap().changes, []);
    // Without the record at fault all of it is imported, and the store still works.
    assert_eq!(import(&store, &records[..6]).await, imported(5, 0, 1, 0));
}

pub(crate) async fn rejects_other_content<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(rich_consumer("rich")).await.unwrap();
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    let before = export(&store).await;
    let changed = |mut consumer: Consumer, change: fn(&mut Consumer)| {
        change(&mut consumer);
        Record::Consumer(consumer)
    };
    let c = |change| changed(consumer("c"), change);
    let rich = |change| changed(rich_consumer("rich"), change);
    let u = |change: fn(&mut User)| {
        let mut user = user("u");
        change(&mut user);
        Record::User(user)
    };
    let a = |change: fn(&mut AccessToken)| {
        let mut token = token.clone();
        change(&mut token);
        Record::AccessToken(token)
    };
    let differing = [
        (c(|c| c.secret = "other".into()), "secret"),
        (
            c(|c| c.previous_secret = Some(("p".into(), NOW))),
            "previous_secret previous_secret_until",
        ),
        (
            rich(|c| c.previous_secret = Some(("before".into(), later(61)))),
            "previous_secret_until",
        ),
        (rich(|c| c.rsa_public_key = None), "rsa_public_key"),
        (rich(|c| c.description = None), "description"),
        (rich(|c| c.website = None), "website"),
        (c(|c| c.callbacks = vec![]), "callbacks"),
        (c(|c| c.permissions = vec![]), "permissions"),
        (rich(|c| c.dialect = None), "dialect"),
        (c(|c| c.enforce = true), "enforce"),
        (c(|c| c.enabled = false), "enabled"),
        (u(|u| u.name = "other".to_owned()), "name"),
        (u(|u| u.display_name = None), "display_name"),
        (u(|u| u.password_hash = None), "password_hash"),
        (u(|u| u.enabled = false), "enabled"),
        (a(|token| token.secret = "other".into()), "token_secret"),
        (a(|token| token.consumer = id("rich")), "consumer"),
        (a(|token| token.user = id("v")), "user"),
        (a(|token| token.permissions = vec![]), "permissions"),
        (a(|token| token.expires_at = None), "expires_at"),
        // A revocation does not hide the other differences.
        (
            a(|token| {
                token.revoked_at = Some(NOW);
                token.expires_at = None;
            }),
            "expires_at",
        ),
    ];
    for (record, members) in differing {
        let records = [Record::Consumer(consumer("new")), record];
        let members = Vec::from_iter(members.split(' '));
        assert_eq!(
            import(&store, &records).await,
            rejected(1, differs(&members)),
            "{records:?}"
        );
    }
    // The mark of a removed user is not the user.
    assert_eq!(
        import(&store, &[Record::RemovedUser(id("u"))]).await,
        rejected(0, Conflict::NotRemoved)
    );
    let name_taken = User {
        name: "U@EXAMPLE.org".to_owned(),
        ..user("v")
    };
    assert_eq!(
        import(&store, &[Record::User(name_taken)]).await,
        rejected(0, Conflict::NameTaken)
    );
    assert_eq!(export(&store).await, before);
}

pub(crate) async fn keeps_removed_ones_out<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    for token in [access_token("a", "c", "u"), access_token("b", "d", "u")] {
        store.issue_access_token(token).await.unwrap();
    }
    let backup = export(&store).await;
    store.remove_user(&id("u"), later(1), None).await.unwrap();
    store.remove_consumer(&id("d"), None).await.unwrap();
    // The removed consumer, its token and the removed user stay out. The other token is here, revoked, and stays so.
    assert_eq!(import(&store, &backup).await, imported(0, 2, 0, 3));
    assert_eq!(store.consumer(&id("d")).await.unwrap(), None);
    assert_eq!(store.user(&id("u")).await.unwrap(), None);
    assert_eq!(store.access_token("b").await.unwrap(), None);
    let kept = store.access_token("a").await.unwrap().unwrap();
    assert_eq!(kept.revoked_at, Some(later(1)));
    // Active tokens that were never here, of a removed user and of a removed consumer.
    let tokens = [("new", "c", "u"), ("other", "d", "v")];
    let tokens = tokens.map(|(token, consumer, user)| access_token(token, consumer, user));
    let tokens = tokens.map(Record::AccessToken);
    assert_eq!(import(&store, &tokens).await, imported(0, 0, 0, 2));
    assert_eq!(store.access_token("new").await.unwrap(), None);
}

pub(crate) async fn takes_marks_of_removed_ones<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    issue(&store, "here").await;
    let marks = [
        Record::RemovedConsumer(id("gone")),
        Record::RemovedUser(id("gone")),
        Record::RemovedToken("gone".to_owned()),
        // The token was removed elsewhere: here it is revoked.
        Record::RemovedToken("here".to_owned()),
    ];
    assert_eq!(import(&store, &marks).await, imported(3, 0, 1, 0));
    assert_eq!(import(&store, &marks).await, imported(0, 4, 0, 0));
    let gone = store.add_consumer(consumer("gone")).await.unwrap();
    assert_eq!(gone, Added::Taken);
    assert_eq!(store.add_user(user("gone")).await.unwrap(), Added::Taken);
    assert_eq!(issue(&store, "gone").await, Added::Taken);
    let here = store.access_token("here").await.unwrap().unwrap();
    assert!(here.revoked_at.is_some());
    // In one list with the records that they mark, the marks win.
    let both = [
        Record::User(user("both")),
        Record::AccessToken(access_token("both", "c", "u")),
        Record::RemovedUser(id("both")),
        Record::RemovedToken("both".to_owned()),
    ];
    assert_eq!(import(&store, &both).await, imported(2, 0, 0, 2));
    assert_eq!(store.user(&id("both")).await.unwrap(), None);
    assert_eq!(store.access_token("both").await.unwrap(), None);
}

pub(crate) async fn revokes_one_way<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    let active = [Record::AccessToken(token.clone())];
    let revoked = [Record::AccessToken(AccessToken {
        revoked_at: Some(later(5)),
        ..token
    })];
    assert_eq!(import(&store, &active).await, imported(0, 1, 0, 0));
    assert_eq!(import(&store, &revoked).await, imported(0, 0, 1, 0));
    assert_eq!(import(&store, &revoked).await, imported(0, 1, 0, 0));
    assert_eq!(import(&store, &active).await, imported(0, 1, 0, 0));
    let kept = store.access_token("a").await.unwrap().unwrap();
    assert_eq!(kept.revoked_at, Some(later(5)));
}

pub(crate) async fn needs_consumer_and_user<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store
        .add_user(User {
            enabled: false,
            ..user("disabled")
        })
        .await
        .unwrap();
    let refusals = [
        (
            access_token("a", "none", "u"),
            Conflict::ConsumerUnknown(id("none")),
        ),
        (
            access_token("a", "c", "none"),
            Conflict::UserUnknown(id("none")),
        ),
        (access_token("a", "c", "disabled"), Conflict::UserDisabled),
    ];
    for (token, refusal) in &refusals {
        let records = [Record::AccessToken(token.clone())];
        assert_eq!(import(&store, &records).await, rejected(0, refusal.clone()));
    }
    // A revoked token needs no user any more, but its consumer.
    let revoke = |token: &AccessToken| {
        [Record::AccessToken(AccessToken {
            revoked_at: Some(NOW),
            ..token.clone()
        })]
    };
    assert_eq!(
        import(&store, &revoke(&refusals[0].0)).await,
        rejected(0, Conflict::ConsumerUnknown(id("none")))
    );
    assert_eq!(
        import(&store, &revoke(&refusals[1].0)).await,
        imported(1, 0, 0, 0)
    );
}

pub(crate) async fn takes_records_in_any_order<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    fill(&from).await;
    let mut records = export(&from).await;
    let expected = records.clone();
    records.reverse();
    let count = records.len() as u64;
    assert_eq!(import(&to, &records).await, imported(count, 0, 0, 0));
    assert_eq!(export(&to).await, expected);
}

pub(crate) async fn bounds_what_passwords_cost<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let with = |number: usize, cost: usize| {
        let hash = format!("$argon2id$v=19$m={cost},t=1,p=1$c2FsdA$aGFzaA");
        Record::User(User {
            password_hash: Some(hash.as_str().into()),
            ..user(&format!("u{number}"))
        })
    };
    // Each cost takes 300 ms, and all together at most a second.
    let list = |users: &[Record]| ImportList {
        milliseconds: |_| 300,
        ..import_list(users.to_vec())
    };
    let three: Vec<_> = (0..9).map(|number| with(number, number % 3)).collect();
    assert_eq!(outcome(&store, list(&three)).await, imported(9, 0, 0, 0));
    let fourth = [with(9, 0), with(10, 3)];
    assert_eq!(
        outcome(&store, list(&fourth)).await,
        rejected(1, Conflict::PasswordCosts)
    );
    assert_eq!(
        store
            .users(&Default::default(), None, 100)
            .await
            .unwrap()
            .len(),
        9
    );
    let known = outcome(&store, list(&fourth[..1])).await;
    assert_eq!(known, imported(1, 0, 0, 0));
}

/// A consumer, a user and this many tokens of theirs.
fn many(tokens: usize) -> Vec<Record> {
    let mut records = vec![
        Record::Consumer(consumer("many")),
        Record::User(user("many")),
    ];
    records.extend(
        (0..tokens).map(|number| {
            Record::AccessToken(access_token(&format!("t{number:06}"), "many", "many"))
        }),
    );
    records
}

pub(crate) async fn imports_more_than_one_step<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    let position = from.changes_since(0).await.unwrap().position;
    // More changes than caches are notified of one by one.
    let records = many(10_500);
    let count = records.len() as u64;
    assert_eq!(import(&from, &records).await, imported(count, 0, 0, 0));
    assert!(from.changes_since(position).await.unwrap().incomplete);
    assert_eq!(import(&from, &records).await, imported(0, count, 0, 0));
    let exported = export(&from).await;
    assert_eq!(import(&to, &exported).await, imported(count, 0, 0, 0));
    assert_eq!(export(&to).await, sorted(records));
}

pub(crate) async fn reports_problems_together<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let before = export(&store).await;
    let taken = User {
        name: "u@example.org".to_owned(),
        ..user("v")
    };
    let mut records = vec![
        Record::AccessToken(access_token("a", "c", "none")),
        // A record that only follows from another problem is not reported.
        Record::AccessToken(access_token("b", "c", "v")),
        Record::User(taken),
        Record::AccessToken(access_token("d", "none", "u")),
    ];
    let unknown = |place| (place, Conflict::UserUnknown(id("none")));
    assert_eq!(
        import(&store, &records).await,
        Err(vec![
            (2, Conflict::NameTaken),
            unknown(0),
            (3, Conflict::ConsumerUnknown(id("none"))),
        ])
    );
    // A problem after many good records, and more than are reported.
    records = many(2 * BATCH);
    let first = records.len();
    let token = |number| Record::AccessToken(access_token(&format!("z{number}"), "c", "none"));
    records.extend((0..MAX_PROBLEMS + 1).map(token));
    let all: Vec<_> = (first..first + MAX_PROBLEMS).map(unknown).collect();
    let counted = store.import(import_list(records.clone())).await.unwrap();
    assert!(
        matches!(counted, Import::Rejected(_, count) if count == MAX_PROBLEMS as u64 + 1),
        "all are counted: {counted:?}"
    );
    assert_eq!(
        import(&store, &records[..=first]).await,
        Err(all[..1].to_vec())
    );
    assert_eq!(import(&store, &records).await, Err(all));
    assert_eq!(export(&store).await, before);
}

pub(crate) async fn a_dry_run_changes_nothing<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let position = store.changes_since(0).await.unwrap().position;
    let list = |dry_run| ImportList {
        dry_run,
        origin: Some(Origin {
            store: "other".to_owned(),
            accepted_until: NOW,
        }),
        ..import_list(many(3))
    };
    assert_eq!(outcome(&store, list(true)).await, imported(5, 0, 0, 0));
    assert_eq!(export(&store).await, []);
    assert_eq!(store.imported_nonces_until().await.unwrap(), None);
    assert_eq!(store.changes_since(position).await.unwrap().changes, []);
    assert_eq!(outcome(&store, list(false)).await, imported(5, 0, 0, 0));
    assert_eq!(store.imported_nonces_until().await.unwrap(), Some(NOW));
}

pub(crate) async fn notes_what_another_store_accepted<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    let from_store = exported(&from).await.origin;
    assert_ne!(from_store.store, exported(&to).await.origin.store);
    from.set_local_nonces_until(later(5), None).await.unwrap();
    let until = async |store: &Arc<Store>| store.imported_nonces_until().await.unwrap();
    let import = async |to: &Arc<Store>, origin: Origin| {
        let list = ImportList {
            origin: Some(origin),
            ..import_list(Vec::new())
        };
        to.import(list).await.unwrap();
    };
    let origin = exported(&from).await.origin;
    assert_eq!(origin.accepted_until, later(5));
    import(&from, origin.clone()).await;
    assert_eq!(until(&from).await, None, "a store knows its own nonces");
    import(&to, origin.clone()).await;
    let earlier = Origin {
        accepted_until: later(4),
        ..origin
    };
    import(&to, earlier).await;
    assert_eq!(until(&to).await, Some(later(5)), "never lowered");
    // A third store gets it too.
    to.set_local_nonces_until(later(1), None).await.unwrap();
    let origin = exported(&to).await.origin;
    assert_eq!(origin.accepted_until, later(5));
}

pub(crate) async fn an_export_beside_changes_can_be_imported<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    import(&from, &many(3 * BATCH)).await.unwrap();
    let change = async {
        for round in 0..20 {
            let (key, id) = (format!("c{round}"), format!("u{round}"));
            from.add_consumer(consumer(&key)).await.unwrap();
            from.add_user(user(&id)).await.unwrap();
            let new = access_token(&format!("z{round}"), &key, &id);
            assert_eq!(from.issue_access_token(new).await.unwrap(), Added::Added);
            let old = format!("t{:06}", round * 50);
            from.revoke_access_token(&old, NOW, None).await.unwrap();
        }
        from.remove_consumer(&id("c0"), None).await.unwrap();
    };
    let (exported, ()) = tokio::join!(exported(&from), change);
    let exported = exported.records;
    let count = exported.len() as u64;
    let taken = import(&to, &exported).await.unwrap();
    assert_eq!(taken.added + taken.not_restored, count);
    let tokens = |records: &[Record]| -> BTreeSet<String> {
        let token = |record: &Record| match record {
            Record::AccessToken(token) => Some(token.token.clone()),
            _ => None,
        };
        records.iter().filter_map(token).collect()
    };
    // Nothing that was there before the export is missing.
    let old = tokens(&many(3 * BATCH));
    assert!(tokens(&export(&to).await).is_superset(&old));
}

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

pub(crate) async fn a_file_that_cannot_be_read_to_its_end_is_not_imported<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let records = many(BATCH).into_iter().map(|record| {
        Ok(Numbered {
            line: 1,
            record,
            left_out: Vec::new(),
        })
    });
    let cut = std::iter::once_with(|| Err(std::io::Error::other("the end is missing")));
    let list = ImportList::new(records.chain(cut), NOW, |_| 0);
    let error = store.import(list).await.unwrap_err();
    assert_eq!(error.to_string(), "the end is missing");
    assert_eq!(export(&store).await, []);
    let mut full = |_| Err(std::io::Error::other("the disk is full"));
    let error = store.export(&mut full).await.unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(import(&store, &many(1)).await, imported(3, 0, 0, 0));
}
