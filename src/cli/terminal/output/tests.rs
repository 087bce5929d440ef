use serde_json::json;

use super::*;
use crate::{
    base::{clock::UnixTime, secret::Secret},
    operator::manage::view,
    records::values::record::{AccessToken, Consumer, Dialect, User},
};

fn issued(consumer: &Consumer, default: Dialect) -> Value {
    json!(view::with_secret(
        view::consumer(consumer, default),
        "secret",
        &consumer.secret
    ))
}

fn shown(consumer: &Consumer) -> Value {
    json!(view::consumer(consumer, Dialect::Rfc5849))
}

fn consumer() -> Consumer {
    Consumer {
        secret: Secret::from("s3cret"),
        name: "Shop".to_owned(),
        callbacks: vec!["https://a.test/x".to_owned(), "oob".to_owned()],
        ..Consumer::for_tests("shop")
    }
}

fn token() -> AccessToken {
    AccessToken {
        token: "t".to_owned(),
        secret: Secret::from("s"),
        consumer: "shop".parse().unwrap(),
        user: "u-1".parse().unwrap(),
        permissions: vec!["read".parse().unwrap(), "write".parse().unwrap()],
        issued_at: UnixTime(0),
        expires_at: None,
        last_used_at: Some(UnixTime(60)),
        last_used_from: Some("192.0.2.7".parse().unwrap()),
        revoked_at: None,
        began: Default::default(),
        with_display_name: false,
    }
}

#[test]
fn an_object_has_the_promised_names_in_their_order() {
    assert_eq!(
        record(&issued(&consumer(), Dialect::Legacy), true),
        concat!(
            r#"{"key":"shop","secret":"s3cret","name":"Shop","callbacks":["https://a.test/x","oob"],"permissions":[],"#,
            r#""dialect":"legacy","description":null,"website":null,"contact":null,"has_rsa_public_key":false,"rsa_only":false,"accept":[],"pinned":[],"body_hash":null,"from":[],"rate":null,"enforce":false,"enabled":true,"#,
            r#""owner":null,"registration":null,"decision":null,"asked_callbacks":[],"created_at":"2023-11-14T22:13:20Z","previous_secret_until":null}"#,
            "\n"
        )
    );
    assert_eq!(
        record(
            &json!(view::with_secret(
                view::members(&token()),
                "token_secret",
                &token().secret
            )),
            true
        ),
        concat!(
            r#"{"token":"t","token_secret":"s","consumer":"shop","user":"u-1","permissions":["read","write"],"#,
            r#""issued_at":"1970-01-01T00:00:00Z","expires_at":null,"last_used_at":"1970-01-01T00:01:00Z","last_used_from":"192.0.2.7","revoked_at":null,"began":"imported","with_display_name":false}"#,
            "\n"
        )
    );
    let user = User {
        password_hash: Some(Secret::from("hash")),
        enabled: false,
        ..User::new("u-1".parse().unwrap(), "alice".to_owned(), UnixTime(0))
    };
    assert_eq!(
        record(&json!(user), true),
        concat!(
            r#"{"id":"u-1","name":"alice","display_name":null,"must_change_password":false,"enabled":false,"created_at":"1970-01-01T00:00:00Z"}"#,
            "\n"
        )
    );
}

#[test]
fn a_secret_is_shown_only_where_it_is_issued() {
    for as_json in [true, false] {
        assert!(!record(&shown(&consumer()), as_json).contains("s3cret"));
        let issued = issued(&consumer(), Dialect::Rfc5849);
        assert!(record(&issued, as_json).contains("s3cret"));
    }
}

#[test]
fn a_secret_that_is_no_text_is_not_shown_as_one() {
    let odd = Consumer {
        secret: Secret::from(vec![0xff, 0]),
        ..consumer()
    };
    let text = record(&issued(&odd, Dialect::Rfc5849), true);
    assert!(text.contains(r#""secret_base64":"/wA=""#), "{text}");
    assert!(!text.contains(r#""secret":"#), "{text}");
}

#[test]
fn people_get_a_member_a_line() {
    let text = record(&json!(token()), false);
    assert_eq!(
        text,
        "token              t\n\
         consumer           shop\n\
         user               u-1\n\
         permissions        read write\n\
         issued_at          1970-01-01T00:00:00Z\n\
         expires_at         -\n\
         last_used_at       1970-01-01T00:01:00Z\n\
         last_used_from     192.0.2.7\n\
         revoked_at         -\n\
         began              imported\n\
         with_display_name  no\n"
    );
}

#[test]
fn people_get_lists_as_a_table() {
    let mut listing = Listing::new(false, &[]);
    for name in ["Shop", "Ünïcode \u{1b}[31m"] {
        let consumer = Consumer {
            name: name.to_owned(),
            callbacks: vec![],
            ..consumer()
        };
        listing.push(&shown(&consumer));
    }
    assert_eq!(
        listing.finish(None),
        "KEY   NAME           CALLBACKS  PERMISSIONS  DIALECT  ENABLED  CREATED AT\n\
         shop  Shop           -          -            rfc5849  yes      2023-11-14T22:13:20Z\n\
         shop  Ünïcode \u{fffd}[31m  -          -            rfc5849  yes      2023-11-14T22:13:20Z\n"
    );
    assert_eq!(Listing::new(false, &[]).finish(None), "");
}

#[test]
fn programs_get_an_object_a_line() {
    let mut listing = Listing::new(true, &[]);
    listing.push(&json!(token()));
    listing.push(&json!(token()));
    let text = listing.finish(Some(10));
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["token"], "t");
    }
}

#[test]
fn a_table_fits_the_terminal_and_its_first_column_stays_whole() {
    let table = |limit| {
        let mut listing = Listing::new(false, &[]);
        let consumer = Consumer {
            name: "A name that is longer than the others are".to_owned(),
            callbacks: vec!["https://shop.example/a/long/way/back".to_owned()],
            ..Consumer::for_tests("a-key-that-is-copied")
        };
        listing.push(&shown(&consumer));
        listing.finish(limit)
    };
    assert_eq!(
        table(Some(110)),
        "KEY                   NAME                CALLBACKS           PERMISSIONS  DIALECT  ENABLED  CREATED AT\n\
         a-key-that-is-copied  A name that is lo…  https://shop.exam…  -            rfc5849  yes      2023-11-14T22:13…\n"
    );
    assert!(table(None).contains("longer than the others are"));
    // Too narrow for anything: as narrow as it goes.
    assert!(table(Some(10)).contains("a-key-that-is-copied  A name …  https:/…"));
}

#[test]
fn columns_align_after_wide_characters_and_combining_marks() {
    let list = |limit| {
        let mut list = Listing::new(false, &[]);
        for name in ["东京照片打印与相册商店", "ab", "e\u{301}cole", "👩‍👧 photos"]
        {
            list.push(&json!({ "id": "u", "name": name, "state": "yes" }));
        }
        list.finish(limit)
    };
    for (limit, shown) in [(None, "东京照片打印与相册商店"), (Some(20), "东京照片…")]
    {
        let text = list(limit);
        let lines = Vec::from_iter(text.lines());
        assert!(lines[1].contains(&format!("{shown} ")), "{text}");
        let before = |line: &&str| line.rsplit_once(' ').map(|(before, _)| before.width());
        let places = Vec::from_iter(lines.iter().map(before));
        assert!(places.iter().all(|it| *it == places[0]), "{text}");
        assert!(limit.is_none_or(|limit| lines.iter().all(|it| it.width() <= limit)));
    }
}
