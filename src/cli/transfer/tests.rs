use std::net::IpAddr;

use proptest::{collection::vec, option, prelude::*};

use super::{
    contents::{Contents, ImportWarnings},
    input::Input,
    rows::Format,
    *,
};
use crate::{
    base::{
        secret::Secret,
        text::names::{ConsumerKey, Permission},
    },
    oauth::Deviation,
    operator::manage::transfer::{export_line::Defaults, member_names},
    provider::issue::callback,
    records::values::{
        record::{AccessToken, BodyHash, Consumer, Dialect, Registration, User},
        transfer::{ExportOrigin, Record},
    },
    request::verify::tests::token,
};

const NOW: UnixTime = UnixTime(1_700_000_000);
const KEY: &str = include_str!("../../provider/issue/registration/public_key.pem");
const HASH: &str =
    "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

/// Reads JSON Lines, as both passes of an import do; the problems, if there is any.
fn read(text: &[u8]) -> Result<Vec<(usize, Record)>, Vec<String>> {
    let input = Input::from_bytes(text).unwrap();
    let defaults = Defaults {
        now: NOW,
        ..Defaults::default()
    };
    let contents = Contents::check(&input, Format::Lines, defaults, ImportWarnings::default());
    let contents = contents.unwrap();
    let problem = |(line, problem): (usize, &str)| format!("{line}: {problem}");
    match contents.problems.count {
        0 => Ok(contents
            .records(&input, Format::Lines)
            .map(|read| read.unwrap())
            .map(|read| (read.line, read.record))
            .collect()),
        _ => Err(contents.problems.first().map(problem).collect()),
    }
}

fn written(records: &[Record]) -> String {
    let mut text = Vec::new();
    let origin = ExportOrigin {
        store: "s".to_owned(),
        accepted_until: NOW,
    };
    let mut writer = ExportWriter::new(&mut text);
    for part in [
        Exported::Head(origin, records.len() as u64),
        Exported::Records(records.to_vec()),
    ] {
        writer.write(part, UnixTime(0)).unwrap();
    }
    String::from_utf8(text).unwrap()
}

/// The records of an export with these lines.
fn records(lines: &[&str]) -> Result<Vec<Record>, String> {
    let text = [&[r#"{"kind":"export","version":1}"#], lines]
        .concat()
        .join("\n");
    match read(text.as_bytes()) {
        Ok(lines) => Ok(lines.into_iter().map(|(_, record)| record).collect()),
        Err(problems) => Err(problems.join("\n")),
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let records = records(&[
        r#"{"kind":"consumer","key":"shop","secret":"s","name":"Shop"}"#,
        "",
        r#"  {"id":"4711","name":"alice","kind":"user","display_name":null}  "#,
        r#"{"kind":"token","token":"t","token_secret":"ts","consumer":"shop","user":"4711"}"#,
    ]);
    let expected = vec![
        Record::Consumer(Consumer::new(
            "shop".parse().unwrap(),
            Secret::from("s"),
            "Shop".to_owned(),
            NOW,
        )),
        Record::User(User::new("4711".parse().unwrap(), "alice".to_owned(), NOW)),
        Record::AccessToken(AccessToken {
            secret: Secret::from("ts"),
            user: "4711".parse().unwrap(),
            issued_at: NOW,
            ..token("t", "shop")
        }),
    ];
    assert_eq!(records, Ok(expected));
}

#[test]
fn a_time_is_read_in_every_known_form_and_not_guessed() {
    let created_at = |time: &str| -> Result<u64, String> {
        let line = format!(r#"{{"kind":"user","id":"u","name":"u","created_at":{time}}}"#);
        match records(&[&line])?.pop() {
            Some(Record::User(user)) => Ok(user.created_at.0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        created_at(r#""2000-01-01T02:00:01.999+02:00""#),
        Ok(946_684_801)
    );
    assert_eq!(created_at(r#""20200913122640""#), Ok(1_600_000_000));
    assert_eq!(created_at("20200913122640"), Ok(1_600_000_000));
    assert_eq!(created_at("1600000000"), Ok(1_600_000_000));
    for [time, expected] in crate::text::rows(
        r#"
        1600000000000 | 1600000000000 looks like milliseconds
        "1600000000000" | 1600000000000 looks like milliseconds
        "1970-01-01T00:00:01Z" | 1970-01-01T00:00:01Z is not between 2000-01-01 and 9999-12-31
        0 | 0 is not a time; leave the time out
        -1 | "-1" is not a time
        1.6e9 | "1600000000.0" is not a time
        "@20240229115959" | "@20240229115959" is not a time
        true | "true" is not a time
        "" | "" is not a time
    "#,
    ) {
        let problem = created_at(time).unwrap_err();
        let expected = format!("2: user \"u\": created_at: {expected}");
        assert!(problem.starts_with(&expected), "{time}: {problem}");
    }
}

#[test]
fn a_line_that_is_wrong_is_named_with_its_record_and_the_reason() {
    const FIRST: &str = r#"{"kind":"user","id":"first","name":"first"}"#;
    for [line, expected] in crate::text::rows(
        r#"
        nonsense | 3: is not a JSON object
        ["user",{"id":"u","name":"u"}] | 3: is not a JSON object
        {"kind":"user","id | 3: EOF while parsing
        {"kind":"consumr","key":"k"} | 3: the kind "consumr" is not one of consumer, user, token, removed_consumer, removed_user, removed_token
        {"key":"k"} | 3: missing field `kind`
        {"kind":"consumer","key":"k","name":"K"} | 3: consumer "k": secret is missing or empty
        {"kind":"consumer","key":"k","name":"K","secret":""} | 3: consumer "k": secret is missing or empty
        {"kind":"consumer","key":"k","name":"K","secret":"s","callbacks":["https://a/b",null]} | 3: consumer "k": callbacks[1]: invalid type: null, expected a string
        {"kind":"token","token":"t","token_secret":"s","consumer":"k","user":4711} | 3: token "t": user: invalid type: integer `4711`, expected a string
        {"kind":"consumer","key":"k","name":"K","secret":20482048} | 3: consumer "k": a secret or a hash is not in quotes
        {"kind":"consumer","key":"k","name":"K","secret":"s","secret_base64":"cw=="} | 3: consumer "k": secret and secret_base64 are both given; remove one
        {"kind":"consumer","key":"k","name":"K","secret_base64":"c"} | 3: consumer "k": secret_base64:\x20
        {"kind":"consumer","key":"k","name":"K","secret":"s","enabld":false} | 3: consumer "k": unknown field `enabld`, did you mean enabled?
        {"kind":"token","token":"t","secret":"s","token_secret":"s","consumer":"k","user":"u"} | 3: token "t": unknown field `secret`, did you mean token_secret?
        {"kind":"consumer","key":"k","name":"K","secret":"s","enabled":true,"enabled":false} | 3: consumer "k": duplicate field `enabled`
        {"kind":"consumer","key":"k","name":"K","secret":"s","previous_secret":"p"} | 3: consumer "k": previous_secret and previous_secret_until need each other
        {"kind":"consumer","key":"k","name":"K","secret":"s","previous_secret":"","previous_secret_until":"2026-01-01T00:00:00Z"} | 3: consumer "k": previous_secret is missing or empty
        {"kind":"consumer","key":"k","name":"K","secret":"s","previous_secret_until":"2026-01-01T00:00:00Z"} | 3: consumer "k": previous_secret and previous_secret_until need each other
        {"kind":"consumer","key":"k","name":"K","secret":"s","callbacks":["javascript:x"]} | 3: consumer "k": callback "javascript:x": the callback's scheme is forbidden
        {"kind":"consumer","key":"k","name":"K","secret":"s","permissions":["a b"]} | 3: consumer "k": permission "a b": a name has only
        {"kind":"consumer","key":"k","name":"K","secret":"s","callbacks":"https://a/b"} | 3: consumer "k": callbacks: expected a list of texts
        {"kind":"consumer","key":"k","name":"K","secret":"s","dialect":"rfc"} | 3: consumer "k": dialect: unknown variant `rfc`
        {"kind":"consumer","key":"k","name":"K","secret":"s","rsa_public_key":"-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----"} | 3: consumer "k": rsa_public_key: this is a private key
        {"kind":"consumer","key":"..","secret":"s","name":"x"} | 3: consumer "..": key: a key or an id cannot be
        {"kind":"consumer","key":"k","secret":"s","name":"a\\nb"} | 3: consumer "k": name: it has a control character in it
        {"kind":"user","id":"u","name":" "} | 3: user "u": name: it begins or ends with white space
        {"kind":"user","id":"u","name":"u","display_name":""} | 3: user "u": display_name: it is empty
        {"kind":"user","id":"u","name":"u","password_hash":"$2y$10$abc"} | 3: user "u": password_hash is not a hash of a known form
        {"kind":"user","id":"first","name":"other"} | 3: user "first": is on line 2 already
        {"kind":"token","token":"a b","token_secret":"s","consumer":"k","user":"u"} | 3: token "a b": token: it has other than visible ASCII characters in it
        {"kind":"token","token":"t","token_secret":"s","consumer":"k"} | 3: token "t": names no user
        {"kind":"token","token":"t","token_secret":"","consumer":"k","user":"u"} | 3: token "t": token_secret is missing or empty
        {"kind":"removed_token","token":""} | 3: removed_token "": token: it is empty
        {"kind":"removed_user","id":""} | 3: removed_user "": a name needs at least one character
        {"kind":"export","version":1} | 3: a second export begins here
    "#,
    ) {
        let error = records(&[FIRST, line]).expect_err(line);
        assert!(error.starts_with(expected), "{line}: {error}");
        assert!(!error.contains('\n'), "{line}: {error}");
    }
}

#[test]
fn a_consumer_that_signs_with_its_rsa_key_alone_needs_no_secret() {
    let rsa = serde_json::json!({"kind": "consumer", "key": "k", "name": "K", "rsa_public_key": KEY, "rsa_only": true});
    for secret in [None, Some("")] {
        let mut rsa = rsa.clone();
        if let Some(secret) = secret {
            rsa["secret"] = secret.into();
        }
        let read = records(&[&rsa.to_string()]).unwrap();
        let Record::Consumer(consumer) = &read[0] else {
            panic!("{read:?}")
        };
        assert!(consumer.rsa_only && consumer.secret.is_empty());
        // As an export writes it.
        let written = serde_json::Value::from(line(&read[0])).to_string();
        assert_eq!(records(&[&written]).unwrap()[0], read[0]);
    }
}

#[test]
fn a_password_hash_that_accepts_no_password_is_left_out() {
    for hash in [
        "!",
        "!!",
        "*",
        "!nzeQ2mq7Rk0LQ0XJ9hKXcEPmEp4W5m1gLoVzq5uJ",
        "!$6$salt$hash",
    ] {
        let user =
            serde_json::json!({"kind": "user", "id": "u", "name": "u", "password_hash": hash});
        let read = records(&[&user.to_string()]).expect(hash);
        let is_without = matches!(&read[0], Record::User(user) if user.password_hash.is_none());
        assert!(is_without, "{hash}: {read:?}");
    }
}

#[test]
fn a_text_that_is_too_long_is_named() {
    let line = |member: &str, length: usize| {
        let text = "a".repeat(length);
        let secret = match member {
            "secret" => String::new(),
            _ => r#","secret":"s""#.to_owned(),
        };
        records(&[&format!(
            r#"{{"kind":"consumer","key":"k","name":"K"{secret},"{member}":"{text}"}}"#
        )])
    };
    assert!(line("secret", 4096).is_ok());
    let problem = line("secret", 4097).unwrap_err();
    assert_eq!(
        problem,
        "2: consumer \"k\": secret is longer than 4096 bytes"
    );
    let hash = "$".repeat(1025);
    let user = format!(r#"{{"kind":"user","id":"u","name":"u","password_hash":"{hash}"}}"#);
    let problem = records(&[&user]).unwrap_err();
    assert!(
        problem.contains("password_hash is longer than 1024 bytes"),
        "{problem}"
    );
    let problem = line("website", 2049).unwrap_err();
    assert!(
        problem.ends_with("website: it is longer than 2048 bytes"),
        "{problem}"
    );
}

#[test]
fn an_error_is_one_line_whatever_the_file_has_in_it() {
    for line in [
        r#"{"kind":"a\nb"}"#,
        r#"{"kind":"user","id":"u","name":"n","a\u001b[2J\r\n":1}"#,
        r#"{"kind":"user","id":"a\nb","name":"n"}"#,
        r#"{"kind":"consumer","key":"k","secret":"s","name":"n","callbacks":["a\nb"]}"#,
    ] {
        let error = records(&[line]).unwrap_err();
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }
}

#[test]
fn the_first_line_tells_version_and_count() {
    const USER: &str = r#"{"kind":"user","id":"u","name":"u"}"#;
    for [text, expected] in crate::text::rows(
        r#"
        | 1: the file is empty
        \n\n | 1: the file is empty
        [{"kind":"user"}] | 1: is a JSON array; write each record on a line
        key,secret | 1: is not JSON; for a file of CSV
        {USER} | 1: the first line of an export is
        \nnonsense | 2: is not JSON
        {"kind":"export"} | 1: the first line of an export is
        {"kind":"export","version":2} | 1: the export does not say with store and accepted_until
        {"kind":"export","version":2,"store":"a","accepted_until":"3000-01-01T00:00:00Z"} | 1: accepted_until is 3000-01-01T00:00:00Z, more than a day from now
        {"kind":"export","version":3,"more":{}} | 1: the export is of version 3 and this program reads 2
        {"kind":"export","version":1,"more":{}} | 1: the first line of an export is
        {"kind":"export","version":1,"records":2}\n{USER}\n | 2: the file ends after 1 of 2 records
        {"kind":"export","version":1,"records":0}\n{USER}\n | 2: the file ends after 1 of 0 records
    "#,
    ) {
        let text = text.replace("{USER}", USER);
        let error = read(text.as_bytes()).expect_err(&text).join("\n");
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let text = format!("{{\"kind\":\"export\",\"version\":1,\"records\":1}}\r\n{USER}\r\n");
    let lines = read(text.as_bytes()).unwrap();
    assert_eq!((lines.len(), lines[0].0), (1, 2));
}

#[test]
fn the_address_of_a_last_use_is_an_ip_address() {
    let line = |address: &str| {
        let members = r#""kind":"token","token":"t","token_secret":"s","consumer":"c","user":"u""#;
        records(&[&format!(r#"{{{members},"last_used_from":{address}}}"#)])
    };
    for address in ["\"192.0.2.7\"", "\"2001:db8::7\"", "null"] {
        assert!(line(address).is_ok(), "{address}");
    }
    for address in ["\"printer.example\"", "\"192.0.2.7:443\"", "\"\"", "7"] {
        let problem = line(address).unwrap_err();
        let expected = format!("last_used_from: {address} is not an IP address such as 192.0.2.7");
        assert!(problem.contains(&expected), "{problem}");
    }
}

#[test]
fn a_secret_that_is_no_text_is_written_as_base64() {
    let record = Record::AccessToken(AccessToken {
        secret: Secret::from(vec![0xff, 0, b'"']),
        user: "u".parse().unwrap(),
        issued_at: NOW,
        ..token("t", "c")
    });
    let text = written(&[record]);
    assert_eq!(
        text,
        concat!(
            r#"{"kind":"export","version":2,"records":1,"store":"s","accepted_until":"2023-11-14T22:13:20Z"}"#,
            "\n",
            r#"{"kind":"token","token":"t","token_secret_base64":"/wAi","consumer":"c","user":"u","permissions":[],"#,
            r#""issued_at":"2023-11-14T22:13:20Z","expires_at":null,"last_used_at":null,"last_used_from":null,"revoked_at":null,"began":"imported","with_display_name":false}"#,
            "\n"
        )
    );
}

fn secret() -> impl Strategy<Value = Secret> {
    prop_oneof![
        vec(any::<u8>(), 1..40).prop_map(Secret::from),
        "\\PC{1,20}".prop_map(Secret::from),
        any::<String>()
            .prop_filter("a secret has a byte", |text| !text.is_empty())
            .prop_map(Secret::from),
    ]
}

fn time() -> impl Strategy<Value = UnixTime> {
    prop_oneof![
        946_684_800..4_000_000_000_u64,
        946_684_800..=253_402_300_799_u64
    ]
    .prop_map(UnixTime)
}

fn key() -> impl Strategy<Value = ConsumerKey> {
    "[!-~&&[^\",;\\\\.]]{1,255}".prop_map(|text| text.parse().unwrap())
}

fn id() -> impl Strategy<Value = UserId> {
    "[!-~&&[^\",;\\\\.]]{1,255}".prop_map(|text| text.parse().unwrap())
}

fn permissions() -> impl Strategy<Value = Vec<Permission>> {
    vec(
        "[A-Za-z0-9._~@+:-]{1,20}".prop_map(|text| text.parse().unwrap()),
        0..4,
    )
}

/// A name of any script, quotes and backslashes among it.
fn shown_name() -> impl Strategy<Value = String> {
    r#"[\PC&&[^\pZ]][\PC"\\]{0,30}[\PC&&[^\pZ]]"#.prop_filter("a name", |text| {
        crate::provider::issue::registration::shown_name(text).is_ok()
    })
}

prop_compose! {
    fn consumer()(
        (key, secret, previous_secret, rsa) in (key(), secret(), option::of((secret(), time())), any::<bool>()),
        (name, description, (website, contact), callbacks, permissions) in (
            shown_name(),
            option::of(shown_name()),
            (
                option::of("https://[a-z]{1,9}\\.test/[a-z0-9]{0,9}"),
                option::of(prop_oneof!["[a-zé.+]{1,9}@[a-z]{1,9}\\.test", "https://[a-z]{1,9}\\.test/"]),
            ),
            vec(prop_oneof![Just("oob".to_owned()), "https://[a-z]{1,9}\\.test/[a-z0-9%5B']{0,9}\\?a=b"], 0..3),
            permissions(),
        ),
        dialect in option::of(prop_oneof![Just(Dialect::Rfc5849), Just(Dialect::Legacy)]),
        (rsa_only, enforce, enabled, created_at, accept) in (any::<bool>(), any::<bool>(), any::<bool>(), time(), any::<u8>()),
        pinned in vec("[a-z_]{1,9}=[!-$&-~]{0,9}".prop_filter("no credential", |text| !text.starts_with("oauth_")), 0..3),
        body_hash in option::of(prop_oneof![Just(BodyHash::Optional), Just(BodyHash::Required)]),
        rate in option::of((1u32.., 1u32..)),
        from in vec(prop_oneof![Just("10.0.0.0/8"), Just("192.0.2.7/32"), Just("2001:db8::/32")], 0..3),
        registration in option::of((id(), 0..4_u8, option::of(shown_name()))),
    ) -> Record {
        let state = registration.as_ref().map(|(_, state, _)| match state {
            0 => Registration::Waiting,
            1 => Registration::Approved,
            2 => Registration::Unchecked,
            _ => Registration::Declined,
        });
        let enabled = enabled && !matches!(state, Some(Registration::Waiting | Registration::Declined));
        Record::Consumer(Consumer {
            key, secret, previous_secret, name, description, website, contact, permissions, dialect, enforce, enabled, created_at,
            accept: Deviation::ALL.iter().copied().filter(|it| accept & 1 << *it as u8 != 0).collect(),
            pinned: pinned.iter().map(|text| text.parse().unwrap()).collect(),
            body_hash,
            from: from.iter().map(|text| text.parse().unwrap()).collect(),
            registration: state,
            asked_callbacks: Vec::from_iter(state.map(|_| "https://asked.test/".to_owned())),
            decision: registration.as_ref().and_then(|(.., decision)| decision.clone()),
            owner: registration.map(|(owner, ..)| owner),
            rate: rate.map(|(count, period)| format!("{count} per {period}ms").parse().unwrap()),
            rsa_only: rsa && rsa_only,
            rsa_public_key: rsa.then(|| KEY.to_owned()),
            callbacks: callbacks
                .into_iter()
                .filter(|text| callback::check_registration(text).is_ok())
                .collect(),
        })
    }
}

prop_compose! {
    fn user()(
        id in id(),
        name in shown_name(),
        display_name in option::of(shown_name()),
        has_password in any::<bool>(),
        must_change_password in any::<bool>(),
        enabled in any::<bool>(),
        created_at in time(),
    ) -> Record {
        let password_hash = has_password.then(|| Secret::from(HASH));
        Record::User(User { id, name, display_name, password_hash, must_change_password, enabled, created_at })
    }
}

prop_compose! {
    fn access_token()(
        token in "[!-~]{1,255}",
        secret in secret(),
        consumer in key(),
        user in id(),
        permissions in permissions(),
        issued_at in time(),
        expires_at in option::of(time()),
        last_used_at in option::of(time()),
        last_used_from in option::of(any::<IpAddr>()),
        revoked_at in option::of(time()),
        with_display_name: bool,
    ) -> Record {
        Record::AccessToken(AccessToken {
            token, secret, consumer, user, permissions, issued_at, expires_at, last_used_at, last_used_from,
            revoked_at,
            began: Default::default(),
            with_display_name,
        })
    }
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        consumer(),
        user(),
        access_token(),
        key().prop_map(Record::RemovedConsumer),
        id().prop_map(Record::RemovedUser),
        "[!-~]{1,255}".prop_map(Record::RemovedToken),
    ]
}

proptest! {
    #[test]
    fn reads_back_what_it_writes(mut records in vec(record(), 0..8)) {
        records.sort_by_key(|record| (record.rank(), record.name()));
        records.dedup_by_key(|record| record.name());
        let text = written(&records);
        prop_assert_eq!(text.lines().count(), records.len() + 1);
        let read: Vec<Record> = read(text.as_bytes())
            .map_err(|problems| TestCaseError::fail(problems.join("\n")))?
            .into_iter()
            .map(|(_, record)| record)
            .collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn rejects_a_file_that_was_cut_off(records in vec(user(), 1..4), place in any::<prop::sample::Index>()) {
        let text = written(&records);
        let cut = place.index(text.trim_end().len());
        prop_assert!(read(&text.as_bytes()[..cut]).is_err());
    }

    #[test]
    fn never_panics_on_any_text(text in vec(any::<u8>(), 0..200)) {
        let _ = read(&text);
        let head = [&b"{\"kind\":\"export\",\"version\":1}\n"[..], &text].concat();
        let _ = read(&head);
    }
}

#[test]
fn the_names_are_those_that_an_export_writes() {
    let id: UserId = "u".parse().unwrap();
    let time = UnixTime(1);
    let consumer = Consumer {
        previous_secret: Some((Secret::from("p"), time)),
        ..Consumer::for_tests("c")
    };
    let user = User {
        password_hash: Some(Secret::from("h")),
        ..User::new(id.clone(), "u".to_owned(), time)
    };
    let token = AccessToken {
        user: id,
        ..token("t", "c")
    };
    for (kind, record) in [
        ("consumer", Record::Consumer(consumer)),
        ("user", Record::User(user)),
        ("token", Record::AccessToken(token)),
    ] {
        let mut written = line(&record);
        assert_eq!(written.shift_remove("kind"), Some(json!(kind)));
        let mut written = Vec::from_iter(written.keys().map(String::as_str));
        written.sort_unstable();
        let mut known = member_names::names(kind);
        known.retain(|name| !name.ends_with("_base64"));
        known.sort_unstable();
        assert_eq!(known, written, "{kind}");
    }
}
