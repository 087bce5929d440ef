//! The feed of changes.

use std::time::Duration;

use countersign::{
    base::clock::Clock,
    records::{
        store::Store,
        values::{
            record::TokenUse,
            transfer::Record,
            use_cases::{AuditFilter, Change, Exchanged},
        },
    },
    telemetry::audit::{Actor, CommandRecord},
};

use crate::store_contract::{
    records::{
        AUDIT, NOW, access_token, allow, always, authorize, consumer, exchange, id, import_list,
        issue, later, open_session, opened, populate, populated, set_enabled, user,
    },
    suite::Backend,
};

/// Follows the feed.
struct Follower(u64);

impl Follower {
    async fn start(store: &Store) -> Self {
        let changes = store.changes_since(0).await.unwrap();
        assert!(changes.changes.is_empty() && !changes.incomplete);
        Self(changes.position)
    }

    /// The changes since the last call.
    async fn news(&mut self, store: &Store) -> Vec<Change> {
        let changes = store.changes_since(self.0).await.unwrap();
        assert!(!changes.incomplete);
        self.0 = changes.position;
        changes.changes
    }
}

fn of_consumer(key: &str) -> Change {
    Change::Consumer(key.parse().unwrap())
}

fn of_token(token: &str) -> Change {
    Change::AccessToken(token.to_owned())
}

fn of_user(id: &str) -> Change {
    Change::User(id.parse().unwrap())
}

pub(crate) async fn a_new_caller_is_told_where_the_feed_stands<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    // Even on an empty store the position differs from "no position".
    let mut early = Follower::start(&store).await;
    assert_ne!(early.0, 0);
    assert_eq!(early.news(&store).await, []);
    store.add_consumer(consumer("c")).await.unwrap();
    let mut late = Follower::start(&store).await;
    assert_eq!(early.news(&store).await, [of_consumer("c")]);
    assert_eq!(late.news(&store).await, []);
    assert_eq!(early.0, late.0);
}

pub(crate) async fn tells_every_kind_once_and_in_order<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let mut follower = Follower::start(&store).await;
    let (c, u, v) = (id("c"), id("u"), id("v"));
    authorize(&store, allow()).await;
    assert_eq!(follower.news(&store).await, [of_consumer("c")]);
    assert!(matches!(
        store.exchange(exchange("r", "c")).await.unwrap(),
        Exchanged::Exchanged { .. }
    ));
    issue(&store, "a").await;
    store.revoke_access_token("a", NOW, None).await.unwrap();
    assert_eq!(
        follower.news(&store).await,
        [of_token("access-r"), of_token("a"), of_token("a")]
    );
    store.update_consumer(&c, &|_| true).await.unwrap();
    store
        .update_consumer(&c, &always(&|consumer| consumer.secret = "s".into()))
        .await
        .unwrap();
    assert_eq!(
        follower.news(&store).await,
        [of_consumer("c"), of_consumer("c")]
    );
    store
        .set_password(&u, "h".into(), false, None)
        .await
        .unwrap();
    assert_eq!(follower.news(&store).await, [of_user("u")]);

    // Removing a user reports its active tokens, each by name.
    let mut disabled = {
        set_enabled(&store, &u, false, NOW).await;
        follower.news(&store).await
    };
    disabled.sort_by_key(|change| matches!(change, Change::User(_)));
    assert_eq!(disabled, [of_token("access-r"), of_user("u")]);
    set_enabled(&store, &u, true, NOW).await;
    assert_eq!(follower.news(&store).await, [of_user("u")]);
    store.add_user(user("v")).await.unwrap();
    store
        .issue_access_token(access_token("v", "c", "v"))
        .await
        .unwrap();
    follower.news(&store).await;
    store.remove_user(&v, NOW, None).await.unwrap();
    let mut removed = follower.news(&store).await;
    removed.sort_by_key(|change| matches!(change, Change::User(_)));
    assert_eq!(removed, [of_token("v"), of_user("v")]);

    store.remove_consumer(&c, None).await.unwrap();
    assert!(follower.news(&store).await.contains(&of_consumer("c")));
    let records = vec![
        Record::Consumer(consumer("i")),
        Record::RemovedToken("gone".to_owned()),
    ];
    store.import(import_list(records)).await.unwrap();
    let mut imported = follower.news(&store).await;
    imported.retain(|change| matches!(change, Change::Consumer(_)));
    assert_eq!(imported, [of_consumer("i")]);
}

pub(crate) async fn tells_what_another_handle_changed<B: Backend>() {
    let backend = B::fresh().await;
    let (here, there) = (backend.open().await, backend.open().await);
    let mut followers = [Follower::start(&here).await, Follower::start(&here).await];
    populate(&there).await;
    here.issue_access_token(access_token("a", "c", "u"))
        .await
        .unwrap();
    there.revoke_access_token("a", NOW, None).await.unwrap();
    let expected = [of_consumer("c"), of_token("a"), of_token("a")];
    assert_eq!(followers[0].news(&here).await, expected);
    assert_eq!(followers[1].news(&there).await, expected);
    assert_eq!(followers[0].news(&there).await, []);
}

pub(crate) async fn says_nothing_of_what_did_not_change<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    issue(&store, "a").await;
    store.revoke_access_token("a", NOW, None).await.unwrap();
    let mut follower = Follower::start(&store).await;
    let (d, w) = (id("d"), id("w"));
    store.add_consumer(consumer("c")).await.unwrap();
    store.add_user(user("u")).await.unwrap();
    issue(&store, "a").await;
    store
        .revoke_access_token("a", later(1), None)
        .await
        .unwrap();
    store.revoke_access_token("none", NOW, None).await.unwrap();
    store.update_consumer(&d, &|_| true).await.unwrap();
    store.remove_consumer(&d, None).await.unwrap();
    store
        .set_password(&w, "h".into(), false, None)
        .await
        .unwrap();
    set_enabled(&store, &w, false, NOW).await;
    store.remove_user(&w, NOW, None).await.unwrap();
    store
        .import(import_list(vec![Record::Consumer(consumer("c"))]))
        .await
        .unwrap();
    // Not a change: uses happen all the time and are not reported.
    store
        .record_uses(vec![TokenUse {
            token: "a".to_owned(),
            last_used_at: NOW,
            last_used_from: None,
        }])
        .await
        .unwrap();
    open_session(&store, 1, "u").await;
    assert_eq!(follower.news(&store).await, []);
}

pub(crate) async fn admits_what_it_has_forgotten<B: Backend>() {
    let (_backend, store) = opened::<B>().await;
    let mut follower = Follower::start(&store).await;
    let behind = follower.0;
    populate(&store).await;
    issue(&store, "a").await;
    let news = follower.news(&store).await;
    assert_eq!(news.len(), 2);
    // Within the hour nothing is forgotten.
    let now = Clock::system().now();
    store.purge(now, AUDIT).await.unwrap();
    let told = store.changes_since(behind).await.unwrap();
    assert_eq!((told.changes, told.incomplete), (news, false));

    store
        .purge(now.after(Duration::from_secs(2 * 3600)), AUDIT)
        .await
        .unwrap();
    let forgotten = store.changes_since(behind).await.unwrap();
    assert!(forgotten.incomplete);
    assert_eq!(forgotten.position, follower.0);
    // A reader that kept up misses nothing, and the feed continues.
    assert_eq!(follower.news(&store).await, []);
    store.revoke_access_token("a", NOW, None).await.unwrap();
    assert!(store.changes_since(behind).await.unwrap().incomplete);
    assert_eq!(follower.news(&store).await, [of_token("a")]);
    // A position that was never given out: the store was replaced by an older one.
    let future = store.changes_since(follower.0 + 1000).await.unwrap();
    assert!(future.incomplete);
    assert_eq!(future.position, follower.0);
}

pub(crate) async fn tells_what_commands_did<B: Backend>() {
    let backend = B::fresh().await;
    let (command, store) = (backend.open().await, backend.open().await);
    let mut replicas = [Follower::start(&store).await, Follower::start(&store).await];
    let long = "x\u{e9}\n\0\u{1}".repeat(100);
    let records = ["short", &long].map(|event| CommandRecord {
        id: event.to_owned(),
        event: event.to_owned(),
        ..CommandRecord::default()
    });
    for record in &records {
        command.record_command(NOW, record).await.unwrap();
        let name = record.event.len().to_string();
        command.add_consumer(consumer(&name)).await.unwrap();
    }
    let length = long.len().to_string();
    for replica in &mut replicas {
        let news = replica.news(&store).await;
        let [short, long] = records.each_ref().map(|it| Change::Command(it.to_text()));
        let expected = [short, of_consumer("5"), long, of_consumer(&length)];
        assert_eq!(news, expected);
    }
}

pub(crate) async fn keeps_what_operators_did_for_a_time<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    let at = |number: u64| NOW.after(Duration::from_secs(number));
    let record =
        |number: u64, event: &str, consumer: Option<&str>, user: Option<&str>| CommandRecord {
            id: format!("id-{number}"),
            event: event.to_owned(),
            consumer: consumer.map(str::to_owned),
            user: user.map(str::to_owned),
            actor: Actor {
                by: if number == 2 { "console" } else { "command" }.to_owned(),
                ..Actor::default()
            },
            ..CommandRecord::default()
        };
    let records = [
        record(0, "added", Some("shop"), None),
        record(1, "added", None, Some("ada")),
        record(2, "disabled", Some("shop"), None),
        record(3, "issued", Some("other"), Some("ada")),
    ];
    for (number, record) in (0..).zip(&records) {
        store.record_command(at(number / 2), record).await.unwrap();
    }
    // The same record again is one record.
    store.record_command(at(9), &records[0]).await.unwrap();
    let list = async |filter: AuditFilter, before: Option<i64>, limit| {
        let found = store.audit_records(&filter, before, limit).await;
        let found = found.unwrap().into_iter();
        found
            .map(|entry| (entry.at, entry.record.id))
            .collect::<Vec<_>>()
    };
    let ids = |numbers: &[u64]| {
        let pairs = numbers
            .iter()
            .map(|&number| (at(number / 2), format!("id-{number}")));
        pairs.collect::<Vec<_>>()
    };
    let none = AuditFilter::default;
    assert_eq!(list(none(), None, 9).await, ids(&[3, 2, 1, 0]));
    assert_eq!(list(none(), None, 2).await, ids(&[3, 2]));
    let second = &store.audit_records(&none(), None, 2).await.unwrap()[1];
    assert_eq!(list(none(), Some(second.position), 9).await, ids(&[1, 0]));
    let some = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (
            AuditFilter {
                consumer: some("shop"),
                ..none()
            },
            &[2, 0][..],
        ),
        (
            AuditFilter {
                user: some("ada"),
                ..none()
            },
            &[3, 1],
        ),
        (
            AuditFilter {
                actor: some("console"),
                ..none()
            },
            &[2],
        ),
        (
            AuditFilter {
                event: some("added"),
                ..none()
            },
            &[1, 0],
        ),
        (
            AuditFilter {
                event: some("added"),
                user: some("ada"),
                ..none()
            },
            &[1],
        ),
        (
            AuditFilter {
                consumer: some("' OR 1=1"),
                ..none()
            },
            &[],
        ),
    ] {
        assert_eq!(
            list(filter.clone(), None, 9).await,
            ids(expected),
            "{filter:?}"
        );
    }
    let found = store.audit_records(&none(), None, 1).await.unwrap();
    assert_eq!(found[0].record, records[3]);
    store.purge(at(1).after(AUDIT), AUDIT).await.unwrap();
    assert_eq!(list(none(), None, 9).await, ids(&[3, 2]));
}

pub(crate) async fn tells_of_failed_logins_where_several_serve<B: Backend>() {
    let backend = B::fresh().await;
    let (one, other) = (backend.open().await, backend.open().await);
    let mut replicas = [Follower::start(&one).await, Follower::start(&one).await];
    for report in ["1 2 3", "1 2 3", "4 5 6"] {
        other.record_failed_login(report.to_owned()).await.unwrap();
    }
    other.add_consumer(consumer("c")).await.unwrap();
    let login = |report: &str| Change::FailedLogin(report.to_owned());
    let mut expected = vec![login("1 2 3"), login("1 2 3"), login("4 5 6")];
    // A store that has no nonce window to share is for one machine, where one process serves.
    if one.shared_window().is_none() {
        expected.clear();
    }
    expected.push(of_consumer("c"));
    for replica in &mut replicas {
        assert_eq!(replica.news(&one).await, expected);
    }
}
