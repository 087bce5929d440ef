//! Export and import.
//!
//! Promise (Storage and operation): An import, also of CSV, is all or nothing, and does not restore revoked or removed records.
//! Also in `tests/commands/transfer.rs`.

mod problems;
mod updates;

pub(crate) use self::{problems::*, updates::*};

use std::{
    collections::BTreeSet,
    error::Error,
    iter,
    sync::{Arc, mpsc},
    thread,
};

use countersign::{
    base::clock::UnixTime,
    records::{
        store::Store,
        values::{
            record::{AccessToken, Consumer, ConsumerUse, TokenUse, User},
            transfer::{
                BATCH, Conflict, Difference, Existing, ExportOrigin, Import, ImportList, Imported,
                MAX_PROBLEMS, Numbered, Record,
            },
            use_cases::Added,
        },
    },
};

use crate::store_contract::{
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
        .record_uses(vec![TokenUse {
            token: "active".to_owned(),
            last_used_at: later(7),
            last_used_from: Some("192.0.2.7".parse().unwrap()),
        }])
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
        Import::Rejected(problems, count, _) => {
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
        last_used_from: Some("192.0.2.7".parse().unwrap()),
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
                last_used_from: None,
                revoked_at: token.revoked_at.map(|_| later(99)),
                ..token
            }),
            record => record,
        })
        .collect::<Vec<_>>();
    assert_eq!(import(&store, &other_times).await, imported(0, count, 0, 0));
    assert_eq!(export(&store).await, records);
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

pub(crate) async fn a_dry_run_changes_nothing<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let position = store.changes_since(0).await.unwrap().position;
    let list = |dry_run| ImportList {
        dry_run,
        origin: Some(ExportOrigin {
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

/// A command that waits in vain for an import learns which process it is, since when it runs, and what to do.
pub(crate) async fn names_the_import_that_others_wait_for<B: Backend>() {
    let backend = B::fresh().await;
    let (first, other) = (backend.open().await, backend.open().await);
    let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
    let importing = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // The file of the import: it goes on when the other command has ended.
        let mut records = import_list(many(1)).records;
        let held = iter::once_with(|| {
            begins.send(()).unwrap();
            ends.recv().unwrap();
            records.next().unwrap()
        });
        let list = ImportList {
            records: Box::new(held),
            ..import_list(Vec::new())
        };
        let import = outcome(&first, list);
        runtime.block_on(import)
    });
    tokio::task::spawn_blocking(move || begun.recv().unwrap())
        .await
        .unwrap();
    let error = other.add_consumer(consumer("c")).await.unwrap_err();
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(one) = cause {
        text += &format!(": {one}");
        cause = one.source();
    }
    let process = format!("process {}", std::process::id());
    for part in [
        "the store is unavailable: ",
        &process,
        " since 20",
        "writes to it; try again when that has ended",
    ] {
        assert!(text.contains(part), "{text}");
    }
    end.send(()).unwrap();
    assert_eq!(importing.join().unwrap(), imported(1, 0, 0, 0));
    assert_eq!(
        other.add_consumer(consumer("c")).await.unwrap(),
        Added::Added
    );
}

pub(crate) async fn notes_what_another_store_accepted<B: Backend>() {
    let (from, to) = (B::fresh().await, B::fresh().await);
    let (from, to) = (from.open().await, to.open().await);
    let from_store = exported(&from).await.origin;
    assert_ne!(from_store.store, exported(&to).await.origin.store);
    from.set_local_nonces_until(later(5), None).await.unwrap();
    let until = async |store: &Arc<Store>| store.imported_nonces_until().await.unwrap();
    let import = async |to: &Arc<Store>, origin: ExportOrigin| {
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
    let earlier = ExportOrigin {
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
