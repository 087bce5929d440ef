//! Imports that are rejected.

use super::*;

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
        (rich(|c| c.contact = None), "contact"),
        (rich(|c| c.from = vec![]), "from"),
        (rich(|c| c.decision = None), "decision"),
        (c(|c| c.callbacks = vec![]), "callbacks"),
        (c(|c| c.permissions = vec![]), "permissions"),
        (rich(|c| c.dialect = None), "dialect"),
        (c(|c| c.enforce = true), "enforce"),
        (c(|c| c.enabled = false), "enabled"),
        (u(|u| u.name = "other".to_owned()), "name"),
        (u(|u| u.display_name = None), "display_name"),
        (
            u(|u| u.password_hash = Some("other".into())),
            "password_hash",
        ),
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
    // A revoked token no longer needs a user, but its consumer.
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
        matches!(counted, Import::Rejected(_, count, _) if count == MAX_PROBLEMS as u64 + 1),
        "all are counted: {counted:?}"
    );
    assert_eq!(
        import(&store, &records[..=first]).await,
        Err(all[..1].to_vec())
    );
    assert_eq!(import(&store, &records).await, Err(all));
    assert_eq!(export(&store).await, before);
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
    let cut = iter::once_with(|| Err(std::io::Error::other("the end is missing")));
    let list = ImportList::new(records.chain(cut), NOW, |_| 0);
    let error = store.import(list).await.unwrap_err();
    assert_eq!(error.to_string(), "the end is missing");
    assert_eq!(export(&store).await, []);
    let mut full = |_| Err(std::io::Error::other("the disk is full"));
    let error = store.export(&mut full).await.unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(import(&store, &many(1)).await, imported(3, 0, 0, 0));
}
