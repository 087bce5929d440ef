use std::{borrow::Cow, collections::BTreeSet};

use proptest::prelude::*;

use super::{
    super::settings::{Ambiguous, ParameterHeaders},
    *,
};
use crate::{
    oauth::percent, records::values::record::BodyHash, request::parse::target,
    telemetry::calls::facts::OperationRule, text::words,
};

fn operation(path: &str, methods: &[&str]) -> OperationSettings {
    OperationSettings {
        path: path.parse().unwrap(),
        methods: methods
            .iter()
            .map(|method| method.parse().unwrap())
            .collect(),
        permission: None,
        access: vec![CallerKind::Consumer],
        from: Vec::new(),
        enforcement: None,
        upgrade: Vec::new(),
        body_hash: BodyHash::Optional,
        timestamp_window: None,
        response_timeout: None,
        silence_timeout: None,
        forward_authorization: None,
        headers: ParameterHeaders::default(),
        launch: false,
        framed_by: Vec::new(),
    }
}

impl PathSettings {
    /// Nothing is data, and no path is taken for another.
    pub(crate) const STRICT: Self = Self::with(Similar::Reject, Ambiguous::Reject);

    const fn with(similar: Similar, ambiguous: Ambiguous) -> Self {
        Self {
            similar,
            encoded: ambiguous,
            parameters: ambiguous,
            empty_segments: ambiguous,
        }
    }
}

fn prepared(list: Vec<OperationSettings>, similar: Similar, ambiguous: Ambiguous) -> Operations {
    let paths = PathSettings::with(similar, ambiguous);
    Operations::new(list, Access::NOBODY, true, paths)
}

fn operations() -> Operations {
    let list = vec![
        operation("/members/{id}", &["GET"]),
        operation("/members/{name}", &["DELETE"]),
        operation("/members/me", &["GET"]),
        operation("/members/{id}/photos", &["GET", "POST"]),
        operation("/members/{id}/photos/", &["GET"]),
        operation("/files/{*rest}", &["GET"]),
        operation("/", &["GET"]),
        operation("/items:purge", &["POST"]),
        operation("/{kind}", &["POST"]),
        operation("/members/%40all", &["GET"]),
        operation("/members/%7Bid%7D", &["GET"]),
        operation("/members/a%20b", &["GET"]),
        operation("/members/%C3%A9", &["GET"]),
        operation("/both", &["GET"]),
        operation("/both", &["HEAD", "POST"]),
    ];
    prepared(list, Similar::Wider, Ambiguous::Reject)
}

fn found(path: &str, method: &str) -> String {
    match operations().find(path.as_bytes(), method.as_bytes()) {
        Found::Operation(operation) if operation.rules.path.text == "/both" => {
            format!("/both {}", operation.methods()[0])
        }
        Found::Operation(operation) => operation.rules.path.to_string(),
        Found::OtherMethod(others) => format!("405 {}", allowed_methods(&others)),
        Found::Unlisted(_) => "unlisted".to_owned(),
        Found::Similar { resembled, .. } => format!("similar to {}", resembled.rules.path),
        Found::Ambiguous { .. } => "400".to_owned(),
    }
}

#[test]
fn the_most_specific_pattern_wins() {
    for (path, method, expected) in [
        ("/", "GET", "/"),
        ("/members/1", "GET", "/members/{id}"),
        ("/members/1", "HEAD", "/members/{id}"),
        ("/members/1", "DELETE", "/members/{name}"),
        ("/members/1", "POST", "405 DELETE, GET, HEAD"),
        ("/members/me", "GET", "/members/me"),
        ("/members/me", "DELETE", "405 GET, HEAD"),
        ("/members/%6De", "GET", "/members/me"),
        ("/members/@all", "GET", "/members/%40all"),
        ("/members/%40all", "GET", "/members/%40all"),
        ("/members/%40%61ll", "HEAD", "/members/%40all"),
        ("/items%3Apurge", "POST", "/items:purge"),
        ("/items%3apurge", "POST", "/items:purge"),
        ("/items%3apurge", "GET", "405 POST"),
        ("/items%21purge", "POST", "/{kind}"),
        ("/members/%7bid%7D", "GET", "/members/%7Bid%7D"),
        ("/members/{id}", "GET", "/members/%7Bid%7D"),
        ("/members/{id}/photos", "GET", "/members/{id}/photos"),
        ("/members/a%20b", "GET", "/members/a%20b"),
        ("/members/a+b", "GET", "/members/{id}"),
        ("/members/%c3%a9", "GET", "/members/%C3%A9"),
        ("/members/%c3%a8", "GET", "/members/{id}"),
        ("/members/%e9", "GET", "/members/{id}"),
        ("/both", "HEAD", "/both HEAD"),
        ("/both", "GET", "/both GET"),
        ("/members/1/photos", "POST", "/members/{id}/photos"),
        ("/members/%c3%a9/photos", "GET", "/members/{id}/photos"),
        ("/files/a/b", "GET", "/files/{*rest}"),
        ("/members", "GET", "405 POST"),
        ("/none/at/all", "GET", "unlisted"),
        ("/members/1/", "GET", "unlisted"),
        ("/files/a/", "GET", "/files/{*rest}"),
        ("/files/", "GET", "unlisted"),
        ("/members/1/photos/", "GET", "/members/{id}/photos/"),
        ("/members/1//photos", "GET", "400"),
        ("/Members/1", "GET", "unlisted"),
        ("/members/1", "get", "405 DELETE, GET, HEAD"),
    ] {
        assert_eq!(found(path, method), expected, "{method} {path}");
    }
}

#[test]
fn a_script_gets_what_follows_its_name() {
    let list = [("/{*rest}", None), ("/admin.php", Some("admin"))];
    let list = list.map(|(path, permission)| OperationSettings {
        permission: permission.map(|permission| permission.parse().unwrap()),
        ..operation(path, &[])
    });
    let operations = prepared(list.to_vec(), Similar::Reject, Ambiguous::Reject);
    for path in ["/admin.php/x", "/admin.php/", "/Admin.php/x/y"] {
        let found = operations.find(path.as_bytes(), b"GET");
        let is_rejected = matches!(&found, Found::Similar { resembled, .. } if resembled.rules.path.text == "/admin.php");
        assert!(is_rejected, "{path}: {found:?}");
    }
    let found = operations.find(b"/other.php/x", b"GET");
    assert!(matches!(found, Found::Operation(_)), "{found:?}");
}

#[test]
fn a_parameter_may_stand_beside_all_that_is_left() {
    let list = words("/{*all} /{kind}/{id} /files/{*rest} /files/{id}/meta");
    let list = list.iter().map(|path| operation(path, &[])).collect();
    let operations = prepared(list, Similar::Wider, Ambiguous::Reject);
    for (path, expected) in [
        ("/", None),
        ("/a", Some("/{*all}")),
        ("/a/b", Some("/{kind}/{id}")),
        ("/a/b/c", Some("/{*all}")),
        ("/files", Some("/{*all}")),
        ("/files/1", Some("/files/{*rest}")),
        ("/files/1/meta", Some("/files/{id}/meta")),
        ("/files/1/meta/x", Some("/files/{*rest}")),
    ] {
        let found = match operations.find(path.as_bytes(), b"GET") {
            Found::Operation(operation) => Some(&*operation.rules.path.text),
            _ => None,
        };
        assert_eq!(found, expected, "{path}");
    }
}

/// What a path is found to be where everything is data of a segment.
fn found_with_data(path: &str, similar: Similar) -> String {
    let list = [
        ("/items/{id}", Some(Enforcement::Observe)),
        ("/items/{id}/secret", Some(Enforcement::Enforce)),
        ("/items/me", None),
        ("//v1/{id}", None),
        ("/v1/{id}", None),
        ("/{*rest}", None),
        ("/a%2Fb", None),
    ];
    let list = list
        .into_iter()
        .map(|(path, enforcement)| OperationSettings {
            enforcement,
            ..operation(path, &["GET"])
        });
    let operations = prepared(list.collect(), similar, Ambiguous::Data);
    match operations.find(path.as_bytes(), b"GET") {
        Found::Operation(operation) => operation.rules.path.to_string(),
        Found::Similar { resembled, .. } => format!("similar to {}", resembled.rules.path),
        Found::OtherMethod(_) => "405".to_owned(),
        Found::Unlisted(_) => "unlisted".to_owned(),
        Found::Ambiguous { reason, .. } => reason.to_string(),
    }
}

#[test]
fn data_stays_in_its_segment() {
    for (path, found, exactly) in [
        (
            "/items/24%2FMB01",
            "similar to /{*rest}",
            "similar to /{*rest}",
        ),
        ("/v1/24%2FMB01", "/v1/{id}", "/v1/{id}"),
        ("/v1/a%25b%5C;c%3b", "/v1/{id}", "/v1/{id}"),
        ("//v1/7", "//v1/{id}", "//v1/{id}"),
        ("//v1/7;x", "//v1/{id}", "//v1/{id}"),
        ("/a%2fb", "/a%2Fb", "/a%2Fb"),
        ("/a%252fb", "/{*rest}", "/{*rest}"),
        ("/x//y", "/{*rest}", "/{*rest}"),
        ("//", "/{*rest}", "/{*rest}"),
        ("//items/7", "/{*rest}", "/{*rest}"),
        (
            "/x%2F..;y",
            "the path has a dot segment",
            "the path has a dot segment",
        ),
        (
            "/items/7%2Fsecret",
            "similar to /items/{id}/secret",
            "similar to /items/{id}/secret",
        ),
        (
            "/items/7/secret;x",
            "similar to /items/{id}/secret",
            "similar to /items/{id}/secret",
        ),
        ("/v1/ME;x", "/v1/{id}", "/v1/{id}"),
        ("/items/ME;x", "similar to /items/me", "/items/{id}"),
        (
            "/items/7%00",
            "the path has an encoded control byte",
            "the path has an encoded control byte",
        ),
    ] {
        assert_eq!(found_with_data(path, Similar::Reject), found, "{path}");
        assert_eq!(found_with_data(path, Similar::Wider), exactly, "{path}");
    }
}

/// The specificity of each segment of a pattern where it matches a path; `None` if it does not.
fn match_slowly(pattern: &str, path: &str) -> Option<Vec<u8>> {
    let mut segments = path.split('/').peekable();
    let mut specific = Vec::new();
    for part in pattern.split('/') {
        let segment = segments.next()?;
        let ends = segment.is_empty() && segments.peek().is_none();
        specific.push(match part.as_bytes() {
            [b'{', ..] if ends => return None,
            [b'{', b'*', ..] => {
                specific.push(0);
                return Some(specific);
            }
            [b'{', ..] => 1,
            literal if percent(literal) == percent(segment.as_bytes()) => 2,
            _ => return None,
        });
    }
    segments.next().is_none().then_some(specific)
}

/// The pattern with a name of its own for each parameter.
fn numbered(pattern: &str) -> String {
    let segments = pattern.split('/').enumerate();
    let segments =
        segments.map(|(index, segment)| segment.replace("{x}", &format!("{{x{index}}}")));
    segments.collect::<Vec<_>>().join("/")
}

fn percent(bytes: &[u8]) -> Cow<'_, [u8]> {
    percent::decode(bytes).expect("good escapes")
}

proptest! {
    #[test]
    fn finds_what_a_slow_search_finds(
        patterns in prop::collection::btree_set("(/(a|%40|@a|ab|\\{x\\})){1,3}(/\\{\\*r\\})?", 1..8),
        paths in prop::collection::vec("(/(a|%61|@|%40|@a|%40%61|ab|b)){1,4}", 8),
    ) {
        let mut known = BTreeSet::new();
        let decoded = |pattern: &str| percent(pattern.as_bytes()).into_owned();
        let patterns = patterns.iter().filter(|pattern| known.insert(decoded(pattern)));
        let patterns: Vec<String> = patterns.map(|pattern| numbered(pattern)).collect();
        let list = patterns.iter().map(|pattern| operation(pattern, &[])).collect();
        let operations = prepared(list, Similar::Wider, Ambiguous::Reject);
        for path in &paths {
            let matching = |pattern: &&String| match_slowly(pattern, path);
            let best = patterns.iter().max_by_key(matching);
            let best = best.filter(|pattern| matching(pattern).is_some()).map(|best| best.as_str());
            let found = match operations.find(path.as_bytes(), b"GET") {
                Found::Operation(operation) => Some(&*operation.rules.path.text),
                _ => None,
            };
            prop_assert_eq!(found, best, "{} in {:?}", path, patterns);
        }
    }
}

proptest! {
    /// Splits at each slash of a path as it was sent, and decodes once.
    #[test]
    fn data_of_segments_is_found_as_a_slow_search_finds_it(
        patterns in prop::collection::btree_set("(/(a|a;b|a%2Fb|%25|\\{x\\})?){1,3}(/\\{\\*r\\})?", 1..6),
        paths in prop::collection::vec("(/(a|a;b|a%2fb|%25|b%252F)?){1,4}", 8),
    ) {
        let read: Vec<String> = patterns.iter().map(|pattern| numbered(pattern)).collect();
        let list = read.iter().map(|pattern| operation(pattern, &[])).collect();
        let operations = prepared(list, Similar::Wider, Ambiguous::Data);
        for path in &paths {
            let matching = |pattern: &&String| match_slowly(pattern, path);
            let best = read.iter().max_by_key(matching).filter(|it| matching(it).is_some());
            let found = match operations.find(path.as_bytes(), b"GET") {
                Found::Operation(operation) => Some(&operation.rules.path.text),
                _ => None,
            };
            prop_assert_eq!(found, best, "{} in {:?}", path, read);
        }
    }

    /// However an API reads a path, each operation that it finds asks at most what the one that was found here asks.
    #[test]
    fn no_reading_finds_an_operation_that_asks_more(
        path in "(/|//|%2F|%5c|%25(2F|25|2e|5C)|;|%3b|a|b|\\.|%2e|%00){1,12}",
    ) {
        let path = format!("/{path}");
        let list = words("/a /a/b /{x} /{x}/b /{*rest} /b/{*rest}");
        let list = list.iter().enumerate().map(|(index, path)| OperationSettings {
            permission: (index % 2 == 0).then(|| format!("p{index}").parse().unwrap()),
            ..operation(path, &[])
        });
        let operations = prepared(list.collect(), Similar::Reject, Ambiguous::Data);
        if let Found::Operation(own) = operations.find(path.as_bytes(), b"GET") {
            for reading in readings(path.as_bytes()).unwrap() {
                for other in operations.listed_at(operations.root.find_path(&reading)) {
                    let asks = other.rules.permission.is_some() && other.rules.permission != own.rules.permission;
                    let is_literal = own.rules.path.is_literal();
                    prop_assert!(!asks || is_literal, "{} is {} and {}", path, own.rules.path, other.rules.path);
                }
            }
            for segment in path.split('/') {
                prop_assert!(!target::has_dot_segment(segment.as_bytes()), "{}", path);
            }
        }
    }
}

#[test]
fn rejects_paths_that_the_api_could_read_as_others() {
    for path in words(
        r"/members/1;x /members\1 /members/a%2fb /members/a%2Fb /members/a%5cb /members/a%3Bb
         /members/a%25b /members//1 //members/1 /members/./1 /members/../1 /members/%2e%2e/1
         /members/.%2E /members/% /members/%4 /members/%zz /members/%00 /members/%0a
         /members/%7f",
    ) {
        assert_eq!(found(path, "GET"), "400", "{path}");
    }
}

#[test]
fn passes_any_path_on_where_no_operation_is_listed() {
    let operations = Operations::new(
        Vec::new(),
        Access::to(&[CallerKind::Consumer]),
        true,
        PathSettings::STRICT,
    );
    for path in ["/a//../%2f;x\\%zz", "/"] {
        let found = operations.find(path.as_bytes(), b"GET");
        assert!(matches!(found, Found::Unlisted(access) if access.admits(CallerKind::Consumer)));
    }
}

#[test]
fn admits_the_addresses_of_its_networks_alone() {
    for (networks, address, is_admitted) in [
        ("", Some("192.0.2.1"), true),
        ("", None, true),
        ("10.0.0.0/8", None, false),
        ("10.0.0.0/8", Some("10.255.0.1"), true),
        ("10.0.0.0/8", Some("11.0.0.1"), false),
        ("10.0.0.0/8", Some("::ffff:10.0.0.1"), true),
        ("10.0.0.0/8", Some("::ffff:11.0.0.1"), false),
        ("10.0.0.0/8", Some("::10.0.0.1"), false),
        ("0.0.0.0/0", Some("2001:db8::1"), false),
        ("::/0", Some("::ffff:10.0.0.1"), false),
        ("192.0.2.1/32 2001:db8::/32", Some("2001:db8::1"), true),
        ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.1"), true),
        ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.2"), false),
    ] {
        let all = words(networks).into_iter();
        let from = all.map(|text| text.parse().unwrap()).collect();
        let address = address.map(|text| text.parse().unwrap());
        let list = vec![OperationSettings {
            from,
            ..operation("/", &[])
        }];
        let operations = prepared(list, Similar::Reject, Ambiguous::Reject);
        let unmet = operations.find(b"/", b"GET").unmet_by(address);
        let expected = (!is_admitted).then_some(UnmetRule::Other(OperationRule::From));
        assert_eq!(unmet, expected, "{address:?} in {networks}");
    }
}
