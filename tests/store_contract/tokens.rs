//! Access tokens outside the flow.

use std::{net::IpAddr, sync::Arc};

use countersign::{
    base::clock::UnixTime,
    records::{
        store::Store,
        values::{
            record::{AccessToken, Consumer, ConsumerUse, TokenBeginning, TokenUse},
            use_cases::{Added, Change, OwnToken, RecordFilter, TokenFilter},
        },
    },
};

use crate::store_contract::{
    records::{
        NOW, access_token, always, consumer, id, issue, later, open_session, populated,
        populated_twice, session, set_enabled, until_answered, user,
    },
    suite::Backend,
};

pub(crate) async fn keeps_every_field<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    let rich = AccessToken {
        permissions: vec![id("a"), "b:c".parse().unwrap()],
        secret: vec![0u8, 1, 255].into(),
        last_used_at: Some(later(3)),
        last_used_from: Some("2001:db8::7".parse().unwrap()),
        revoked_at: Some(later(4)),
        ..access_token("Rich \"token\"/é", "c", "u")
    };
    let bare = AccessToken {
        permissions: vec![],
        expires_at: None,
        ..access_token("bare", "c", "u")
    };
    for token in [rich, bare] {
        assert_eq!(
            store.issue_access_token(token.clone()).await.unwrap(),
            Added::Added
        );
        assert_eq!(store.access_token(&token.token).await.unwrap(), Some(token));
    }
    for unknown in ["BARE", "bare ", "", "%", "bar"] {
        assert_eq!(store.access_token(unknown).await.unwrap(), None);
    }
}

pub(crate) async fn refuses_a_token_that_could_not_be_used<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    let token = access_token("a", "c", "u");
    store.issue_access_token(token.clone()).await.unwrap();
    for refused in [
        access_token("a", "d", "u"),
        access_token("b", "unknown", "u"),
        access_token("b", "c", "unknown"),
    ] {
        assert_eq!(
            store.issue_access_token(refused).await.unwrap(),
            Added::Taken
        );
    }
    assert_eq!(store.access_token("a").await.unwrap(), Some(token));
    assert_eq!(store.access_token("b").await.unwrap(), None);
    // A disabled consumer's tokens wait for it.
    let disable = |d: &mut Consumer| d.enabled = false;
    store
        .update_consumer(&id("d"), &always(&disable))
        .await
        .unwrap();
    assert_eq!(
        store
            .issue_access_token(access_token("b", "d", "u"))
            .await
            .unwrap(),
        Added::Added
    );
}

pub(crate) async fn revokes_once_and_for_all<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    assert!(!store.revoke_access_token("a", NOW, None).await.unwrap());
    for token in ["a", "b"] {
        issue(&store, token).await;
    }
    assert!(
        store
            .revoke_access_token("a", later(1), None)
            .await
            .unwrap()
    );
    assert!(
        store
            .revoke_access_token("a", later(2), None)
            .await
            .unwrap()
    );
    let expected = AccessToken {
        revoked_at: Some(later(1)),
        ..access_token("a", "c", "u")
    };
    assert_eq!(store.access_token("a").await.unwrap(), Some(expected));
    assert_eq!(
        store.access_token("b").await.unwrap(),
        Some(access_token("b", "c", "u"))
    );
    assert_eq!(issue(&store, "a").await, Added::Taken);
}

pub(crate) async fn lists_by_user_and_consumer_in_pages<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    for (token, consumer, user) in [
        ("5", "d", "v"),
        ("1", "c", "u"),
        ("3", "d", "u"),
        ("2", "c", "v"),
        ("4", "c", "u"),
        ("Z", "c", "u"),
    ] {
        store
            .issue_access_token(access_token(token, consumer, user))
            .await
            .unwrap();
    }
    let list = async |user: &str, consumer: &str, after: Option<&str>, limit| {
        let filter = TokenFilter {
            user: user.parse().ok(),
            consumer: consumer.parse().ok(),
            ..TokenFilter::default()
        };
        let tokens = store.access_tokens(&filter, after, limit).await.unwrap();
        tokens
            .into_iter()
            .map(|token| token.token)
            .collect::<String>()
    };
    assert_eq!(list("", "", None, 9).await, "12345Z");
    assert_eq!(list("u", "", None, 9).await, "134Z");
    assert_eq!(list("", "c", None, 9).await, "124Z");
    assert_eq!(list("u", "c", None, 9).await, "14Z");
    assert_eq!(list("w", "", None, 9).await, "");
    assert_eq!(list("", "", None, 2).await, "12");
    assert_eq!(list("", "", Some("2"), 2).await, "34");
    assert_eq!(list("u", "", Some("2"), 2).await, "34");
    assert_eq!(list("", "c", Some("3"), 9).await, "4Z");
    assert_eq!(list("u", "c", Some("4"), 9).await, "Z");
    assert_eq!(list("", "", Some("Z"), 9).await, "");
}

pub(crate) async fn lists_the_longest_unused_first<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    for (token, consumer, user, issued, used) in [
        ("1", "c", "u", 0, Some(7)),
        ("2", "d", "u", 5, None),
        ("3", "c", "v", 0, Some(5)),
        ("4", "c", "u", 9, None),
        ("5", "c", "u", 0, None),
    ] {
        let token = AccessToken {
            issued_at: later(issued),
            last_used_at: used.map(later),
            ..access_token(token, consumer, user)
        };
        store.issue_access_token(token).await.unwrap();
    }
    let revoked = store.revoke_access_token("5", later(9), None).await;
    assert!(revoked.unwrap());
    let list = async |user: &str, consumer: &str, unused: Option<u64>, after, limit| {
        let filter = TokenFilter {
            user: user.parse().ok(),
            consumer: consumer.parse().ok(),
            unused_since: unused.map(later),
            ..TokenFilter::default()
        };
        let tokens = store.idle_access_tokens(&filter, after, limit);
        let tokens = tokens.await.unwrap().into_iter();
        tokens.map(|token| token.token).collect::<String>()
    };
    let start = (UnixTime(0), "");
    assert_eq!(list("", "", None, start, 9).await, "2314");
    assert_eq!(list("", "", None, start, 2).await, "23");
    assert_eq!(list("", "", None, (later(5), "2"), 2).await, "31");
    assert_eq!(list("u", "", None, start, 9).await, "214");
    assert_eq!(list("", "c", None, (later(5), "3"), 9).await, "14");
    assert_eq!(list("u", "c", Some(7), start, 9).await, "1");
    assert_eq!(list("v", "d", None, start, 9).await, "");
    assert_eq!(list("", "", Some(4), start, 9).await, "");
    let recent = async |user: &str, consumer: &str, after, limit| {
        let filter = TokenFilter {
            user: user.parse().ok(),
            consumer: consumer.parse().ok(),
            ..TokenFilter::default()
        };
        let tokens = store.recent_access_tokens(&filter, after, limit);
        let tokens = tokens.await.unwrap().into_iter();
        tokens.map(|token| token.token).collect::<String>()
    };
    assert_eq!(recent("", "", None, 9).await, "4132");
    assert_eq!(recent("", "", None, 2).await, "41");
    assert_eq!(recent("", "", Some((later(7), "1")), 9).await, "32");
    assert_eq!(recent("", "", Some((later(5), "3")), 9).await, "2");
    assert_eq!(recent("u", "", None, 9).await, "412");
    assert_eq!(recent("", "d", None, 9).await, "2");
}

pub(crate) async fn lists_what_ends_in_a_time<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for (token, end) in [
        ("1", None),
        ("2", Some(4)),
        ("3", Some(5)),
        ("4", Some(9)),
        ("5", Some(10)),
        ("6", Some(7)),
    ] {
        let token = AccessToken {
            expires_at: end.map(later),
            ..access_token(token, "c", "u")
        };
        store.issue_access_token(token).await.unwrap();
    }
    let revoked = store.revoke_access_token("6", later(0), None).await;
    assert!(revoked.unwrap());
    let filter = |user: &str| TokenFilter {
        ends: Some((later(4), later(9))),
        user: user.parse().ok(),
        ..TokenFilter::default()
    };
    let text = |tokens: Vec<AccessToken>| {
        let tokens = tokens.into_iter().map(|token| token.token);
        tokens.collect::<String>()
    };
    let listed = store.access_tokens(&filter(""), None, 9).await;
    assert_eq!(text(listed.unwrap()), "34");
    let listed = store.access_tokens(&filter("u"), Some("3"), 9).await;
    assert_eq!(text(listed.unwrap()), "4");
    let start = (UnixTime(0), "");
    let listed = store.idle_access_tokens(&filter(""), start, 9).await;
    assert_eq!(text(listed.unwrap()), "34");
    assert_eq!(store.count_access_tokens(&filter("v"), 9).await.unwrap(), 0);
}

/// A use at a time, by a caller with an address of its own.
pub(crate) fn used(token: &str, at: u64) -> TokenUse {
    TokenUse {
        token: token.to_owned(),
        last_used_at: later(at),
        last_used_from: Some(IpAddr::from(
            (0x2001_u128 << 112 | u128::from(at)).to_be_bytes(),
        )),
    }
}

pub(crate) async fn keeps_the_latest_use<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for token in ["a", "b"] {
        issue(&store, token).await;
    }
    let uses =
        |list: &[(&str, u64)]| Vec::from_iter(list.iter().map(|(token, at)| used(token, *at)));
    let last = async |token| {
        let token = store.access_token(token).await.unwrap().unwrap();
        (token.last_used_at, token.last_used_from)
    };
    let by = |at| (Some(later(at)), used("", at).last_used_from);
    store.record_uses(uses(&[])).await.unwrap();
    assert_eq!(last("a").await, (None, None));
    store
        .record_uses(uses(&[("a", 5), ("gone", 6), ("b", 7), ("b", 6)]))
        .await
        .unwrap();
    assert_eq!(last("a").await, by(5));
    assert_eq!(last("b").await, by(7));
    store
        .record_uses(uses(&[("a", 4), ("b", 8)]))
        .await
        .unwrap();
    assert_eq!(last("a").await, by(5));
    assert_eq!(last("b").await, by(8));
    // The address of the last caller is not known: that of the one before is not its own.
    let unknown = TokenUse {
        last_used_from: None,
        ..used("a", 9)
    };
    store.record_uses(vec![unknown]).await.unwrap();
    assert_eq!(last("a").await, (Some(later(9)), None));
    assert_eq!(store.access_token("gone").await.unwrap(), None);
}

/// More than one transaction's worth.
pub(crate) async fn keeps_many_uses<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for token in ["first", "last"] {
        issue(&store, token).await;
    }
    let mut uses = vec![used("first", 1)];
    uses.extend((0..12_000).map(|number| used(&format!("unknown {number}"), 0)));
    uses.push(used("last", 2));
    store.record_uses(uses).await.unwrap();
    for expected in [used("first", 1), used("last", 2)] {
        let kept = store.access_token(&expected.token).await.unwrap().unwrap();
        assert_eq!(kept.last_used_at, Some(expected.last_used_at));
        assert_eq!(kept.last_used_from, expected.last_used_from);
    }
}

pub(crate) async fn revokes_all_of_a_user_and_a_consumer<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    for (token, consumer, user) in [
        ("1", "c", "u"),
        ("2", "c", "v"),
        ("3", "d", "u"),
        ("4", "d", "v"),
    ] {
        let token = access_token(token, consumer, user);
        store.issue_access_token(token).await.unwrap();
    }
    let revoke = async |user: &str, consumer: &str| {
        let filter = TokenFilter {
            user: user.parse().ok(),
            consumer: consumer.parse().ok(),
            ..TokenFilter::default()
        };
        store
            .revoke_access_tokens(&filter, later(1), u32::MAX)
            .await
            .unwrap()
    };
    let left = async || {
        let all = TokenFilter::default();
        let tokens = store.access_tokens(&all, None, 9).await.unwrap();
        tokens
            .into_iter()
            .filter(|token| token.revoked_at.is_none())
            .map(|token| token.token)
            .collect::<String>()
    };
    let of_user = TokenFilter {
        user: "u".parse().ok(),
        ..TokenFilter::default()
    };
    for (limit, count) in [(9, 2), (1, 1)] {
        let counted = store.count_access_tokens(&of_user, limit).await;
        assert_eq!(counted.unwrap(), count);
    }
    assert_eq!(revoke("", "").await, 0);
    assert_eq!(revoke("w", "c").await, 0);
    assert_eq!(left().await, "1234");
    assert_eq!(
        (revoke("v", "c").await, left().await),
        (1, "134".to_owned())
    );
    assert_eq!((revoke("v", "").await, left().await), (1, "13".to_owned()));
    assert_eq!((revoke("", "c").await, left().await), (1, "3".to_owned()));
    let position = store.changes_since(0).await.unwrap().position;
    assert_eq!((revoke("u", "").await, left().await), (1, String::new()));
    let changes = store.changes_since(position).await.unwrap().changes;
    assert_eq!(changes, [Change::AccessToken("3".to_owned())]);
}

pub(crate) async fn finds_what_is_unused<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    for (key, created_at) in [("d", NOW), ("e", NOW), ("f", later(9))] {
        let consumer = Consumer {
            created_at,
            ..consumer(key)
        };
        store.add_consumer(consumer).await.unwrap();
    }
    for (token, consumer, issued, used) in [
        ("1", "c", 0, Some(7)),
        ("2", "c", 0, None),
        ("3", "d", 8, None),
        ("4", "e", 0, Some(5)),
    ] {
        let token = AccessToken {
            issued_at: later(issued),
            last_used_at: used.map(later),
            ..access_token(token, consumer, "u")
        };
        store.issue_access_token(token).await.unwrap();
    }
    let used = [("c", 7), ("d", 8), ("e", 5)].map(|(key, at)| ConsumerUse {
        consumer: id(key),
        last_used_at: later(at),
        method: None,
        dialect: None,
    });
    store.record_consumer_uses(used.into()).await.unwrap();
    let tokens = async |since| {
        let filter = TokenFilter {
            unused_since: Some(later(since)),
            ..TokenFilter::default()
        };
        let tokens = store.access_tokens(&filter, None, 9).await.unwrap();
        tokens
            .into_iter()
            .map(|token| token.token)
            .collect::<String>()
    };
    let consumers = async |since, after: &str| {
        let after = after.parse().ok();
        let filter = RecordFilter {
            unused_since: Some(later(since)),
            ..RecordFilter::default()
        };
        let unused = store.consumers(&filter, after.as_ref(), 9);
        let keys = unused.await.unwrap().into_iter();
        keys.map(|consumer| consumer.key.to_string())
            .collect::<String>()
    };
    assert_eq!(
        (tokens(4).await, consumers(4, "").await),
        ("2".to_owned(), String::new())
    );
    assert_eq!(tokens(5).await, "24");
    assert_eq!(consumers(5, "").await, "e");
    assert_eq!(consumers(8, "").await, "cde");
    assert_eq!(consumers(9, "c").await, "def");
}

/// A token that the owner of consumer `c` makes.
fn own(token: &str) -> AccessToken {
    AccessToken {
        began: TokenBeginning::Own,
        ..access_token(token, "c", "u")
    }
}

async fn make_own(store: &Arc<Store>, token: AccessToken) -> OwnToken {
    let (hash, any) = (session(1, "u").id_hash, |_: &Consumer| true);
    until_answered(|| store.issue_own_token(token.clone(), &hash, Some(&any))).await
}

/// The tokens that are not revoked.
async fn live(store: &Store) -> String {
    let filter = TokenFilter {
        live: true,
        ..TokenFilter::default()
    };
    let tokens = store.access_tokens(&filter, None, 1_000).await.unwrap();
    let tokens = tokens.into_iter().map(|token| token.token);
    Vec::from_iter(tokens).join(" ")
}

pub(crate) async fn an_own_one_ends_the_own_ones_before<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_consumer(consumer("d")).await.unwrap();
    store.add_user(user("v")).await.unwrap();
    for (byte, user) in [(1, "u"), (2, "v")] {
        assert!(open_session(&store, byte, user).await);
    }
    let issued =
        |ended: &[&str]| OwnToken::Issued(Vec::from_iter(ended.iter().map(ToString::to_string)));
    // Neither a token of the flow, nor one of another user or consumer, nor one that has ended.
    issue(&store, "flow").await;
    let of_others = [
        AccessToken {
            user: id("v"),
            ..own("theirs")
        },
        AccessToken {
            consumer: id("d"),
            ..own("other")
        },
        AccessToken {
            expires_at: Some(NOW),
            ..own("expired")
        },
    ];
    for token in of_others {
        store.issue_access_token(token).await.unwrap();
    }
    assert_eq!(make_own(&store, own("a")).await, issued(&[]));
    let position = store.changes_since(0).await.unwrap().position;
    assert_eq!(make_own(&store, own("b")).await, issued(&["a"]));
    let changes = store.changes_since(position).await.unwrap().changes;
    let expected = ["b", "a"].map(|token| Change::AccessToken(token.to_owned()));
    assert_eq!(changes, expected);
    assert_eq!(live(&store).await, "b expired flow other theirs");
    let before = store.access_token("a").await.unwrap().unwrap();
    assert_eq!(before.revoked_at, Some(NOW));
    // The same one again ends nothing.
    for used in ["a", "b"] {
        assert_eq!(make_own(&store, own(used)).await, OwnToken::Taken);
    }
    assert_eq!(live(&store).await, "b expired flow other theirs");
}

pub(crate) async fn makes_no_own_one_of_what_has_ended<B: Backend>() {
    let (_backend, store) = populated::<B>().await;
    store.add_user(user("v")).await.unwrap();
    for (byte, user) in [(1, "u"), (2, "v")] {
        assert!(open_session(&store, byte, user).await);
    }
    make_own(&store, own("a")).await;
    let refused = async |token: AccessToken, byte, is_wanted: bool| {
        let hash = &session(byte, "u").id_hash;
        let guard = move |_: &Consumer| is_wanted;
        let made = store.issue_own_token(token, hash, Some(&guard)).await;
        assert_eq!(made.unwrap(), OwnToken::Refused);
        assert_eq!(live(&store).await, "a");
    };
    // The session of another user, one that has ended, a consumer that is another by now, or is gone.
    refused(own("b"), 2, true).await;
    refused(own("b"), 3, true).await;
    let late = AccessToken {
        issued_at: later(1_000),
        ..own("b")
    };
    refused(late, 1, true).await;
    refused(own("b"), 1, false).await;
    let gone = AccessToken {
        consumer: id("gone"),
        ..own("b")
    };
    refused(gone, 1, true).await;
    let disable = |c: &mut Consumer| c.enabled = false;
    let disable = always(&disable);
    store.update_consumer(&id("c"), &disable).await.unwrap();
    refused(own("b"), 1, true).await;
    let enable = |c: &mut Consumer| c.enabled = true;
    let enable = always(&enable);
    store.update_consumer(&id("c"), &enable).await.unwrap();
    // Disabling ends sessions and tokens, and enabling brings none back.
    for enabled in [false, true] {
        set_enabled(&store, &id("u"), enabled, NOW).await;
        let made = make_own(&store, own("b")).await;
        assert_eq!(made, OwnToken::Refused);
        assert_eq!(live(&store).await, "");
    }
}

pub(crate) async fn of_racing_own_ones_one_stays<B: Backend>() {
    let (_backend, stores) = populated_twice::<B>().await;
    assert!(open_session(&stores[0], 1, "u").await);
    let racing = (0..40).map(|number| {
        let store = Arc::clone(&stores[number % 2]);
        // Each form is sent twice.
        let token = own(&format!("t{:02}", number / 2));
        tokio::spawn(async move { make_own(&store, token).await })
    });
    let mut ended = Vec::new();
    for made in Vec::from_iter(racing) {
        match made.await.unwrap() {
            OwnToken::Issued(some) => ended.extend(some),
            OwnToken::Taken => {}
            OwnToken::Refused => panic!("the session is open"),
        }
    }
    let stays = live(&stores[0]).await;
    ended.push(stays);
    ended.sort();
    assert_eq!(ended, Vec::from_iter((0..20).map(|n| format!("t{n:02}"))));
}

pub(crate) async fn no_racing_own_one_outlives_its_user_or_consumer<B: Backend>() {
    for removes_user in [true, false] {
        let (_backend, stores) = populated_twice::<B>().await;
        assert!(open_session(&stores[0], 1, "u").await);
        let racing = (0..20).map(|number| {
            let store = Arc::clone(&stores[number % 2]);
            let token = own(&format!("t{number:02}"));
            tokio::spawn(async move { make_own(&store, token).await })
        });
        let racing = Vec::from_iter(racing);
        let (user, consumer) = (id("u"), id("c"));
        if removes_user {
            until_answered(|| stores[1].remove_user(&user, NOW, None)).await;
        } else {
            until_answered(|| stores[1].remove_consumer(&consumer, None)).await;
        }
        for made in racing {
            made.await.unwrap();
        }
        assert_eq!(live(&stores[0]).await, "", "{removes_user}");
    }
}
