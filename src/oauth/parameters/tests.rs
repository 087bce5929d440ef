use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::{
    base::findings::First,
    oauth::{method::MethodSet, parameters::shape::LocationRule, percent},
    text::words,
};

const REPEATED: &str = "given more than once";
const SCATTERED: &str = "not in one place with the other oauth_ parameters";
const EMPTY: &str = "empty";

fn header(value: &str) -> Result<Parameters, ShapeError> {
    let mut parameters = Parameters::new();
    parameters.read_header(value.as_bytes())?;
    Ok(parameters)
}

fn query(raw: &str) -> Result<Parameters, ShapeError> {
    let mut parameters = Parameters::new();
    parameters.read_query(raw.as_bytes())?;
    Ok(parameters)
}

fn pairs(parameters: &Parameters) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    parameters
        .iter()
        .map(|parameter| (text(parameter.name), text(parameter.value)))
        .collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn normalized(parameters: &Parameters) -> String {
    String::from_utf8(parameters.normalized(Selection::Rfc5849)).unwrap()
}

fn in_one_place(read: &Parameters) -> Result<(), ShapeError> {
    read.check_oauth_names(LocationRule::OneLocation, &mut First)
}

fn names(checked: Result<(), ShapeError>, expected: &str) -> String {
    match checked {
        Err(ShapeError::Rejected { names, reason }) if reason == expected => names.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_an_authorization_value_whatever_its_spacing() {
    for value in [
        "OAuth a=\"1\", b=\"%32\"",
        "oauth a=\"1\",b=\"2\"",
        "OAUTH\ta=\"1\" \t, \tb=\"2\" ",
        "OAuth   ,a=\"1\",, b=\"2\",",
        "OAuth, a=\"1\", b=\"2\"",
        "OAuth,a=\"1\",b=\"2\"",
    ] {
        assert_eq!(
            pairs(&header(value).unwrap()),
            [pair("a", "1"), pair("b", "2")],
            "{value}"
        );
    }
}

#[test]
fn header_values_are_percent_decoded_and_a_plus_stays() {
    let read =
        header("OAuth a=\"x+y%2Bz\", %62%20=\"r%20b\", c=\"\", d=\"a&b=c;'\", e=\"é\"").unwrap();
    let expected = [
        pair("a", "x+y+z"),
        pair("b ", "r b"),
        pair("c", ""),
        pair("d", "a&b=c;'"),
        pair("e", "é"),
    ];
    assert_eq!(pairs(&read), expected);
    assert_eq!(
        normalized(&read),
        "a=x%2By%2Bz&b%20=r%20b&c=&d=a%26b%3Dc%3B%27&e=%C3%A9"
    );
}

#[test]
fn keeps_the_realm_aside() {
    let read = header("OAuth Realm=\"http://h/%zz, \\\" a=\\\"1\", a=\"2\"").unwrap();
    assert_eq!(read.realm(), Some(&b"http://h/%zz, \\\" a=\\\"1"[..]));
    assert_eq!(pairs(&read), [pair("a", "2")]);
    assert_eq!(header("OAuth realm=\"\"").unwrap().realm(), Some(&b""[..]));
    assert_eq!(header("OAuth a=\"realm\"").unwrap().realm(), None);
}

#[test]
fn a_realm_in_query_or_body_is_a_parameter_like_any_other() {
    assert_eq!(normalized(&query("realm=x").unwrap()), "realm=x");
}

#[test]
fn reads_form_pairs() {
    let read = query("b5=%3D%253D&a3=a&c%40=&a2=r%20b&c2&a3=2+q&=&&=x&a=b=c&%c3%A9=!*'()").unwrap();
    let expected = [
        pair("b5", "=%3D"),
        pair("a3", "a"),
        pair("c@", ""),
        pair("a2", "r b"),
        pair("c2", ""),
        pair("a3", "2 q"),
        pair("", ""),
        pair("", "x"),
        pair("a", "b=c"),
        pair("é", "!*'()"),
    ];
    assert_eq!(pairs(&read), expected);
    assert_eq!(
        normalized(&read),
        "=&=x&%C3%A9=%21%2A%27%28%29&a=b%3Dc&a2=r%20b&a3=2%20q&a3=a&b5=%3D%253D&c%40=&c2="
    );
}

#[test]
fn sorts_by_encoded_bytes_name_before_value() {
    // `a%20` follows `a` although `%` is smaller than the `=` after `a`; a shorter value precedes.
    let read = query("a+=0&a=1&a=&a=1+&ab=0&abcdefgh2=&abcdefgh1=&abcdefg=&a%25=x").unwrap();
    assert_eq!(
        normalized(&read),
        "a=&a=1&a=1%20&a%20=0&a%25=x&ab=0&abcdefg=&abcdefgh1=&abcdefgh2="
    );
}

#[test]
fn bytes_need_not_be_utf_8() {
    let read = query("a=%ff%00&%fe=1").unwrap();
    assert_eq!(normalized(&read), "%FE=1&a=%FF%00");
}

#[test]
fn the_signature_is_found_and_never_signed() {
    for read in [
        header("OAuth oauth_signature=\"a%2Bb%3D\", x=\"1\"").unwrap(),
        query("oauth_signature=a%2Bb%3D&x=1").unwrap(),
        query("%6Fauth_signature=a%2Bb%3D&x=1").unwrap(),
    ] {
        assert_eq!(normalized(&read), "x=1");
        assert_eq!(
            read.protocol_value(ProtocolParameter::Signature),
            Some(&b"a+b="[..])
        );
        assert_eq!(read.find("oauth_signature").count(), 1);
    }
}

#[test]
fn only_exact_names_are_protocol_parameters() {
    for raw in words("oauth_token=x a=1&oauth_nonce %6fauth_body_hash= oauth_version=%zz") {
        let mut read = Parameters::new();
        let _ = read.read_query(raw.as_bytes());
        assert!(read.has_protocol_parameter(), "{raw}");
    }
    for raw in [
        "",
        "OAUTH_TOKEN=x",
        "oauth_=x",
        "oauth_tokens=x",
        "xoauth_token=x",
        "a=oauth_token",
        "oauth_problem=x",
    ] {
        assert!(!query(raw).unwrap().has_protocol_parameter(), "{raw}");
    }
}

#[test]
fn a_usual_spelling_is_read_as_any_other() {
    let read = |text: String| {
        let mut parameters = Parameters::new();
        let outcome = parameters.read_header(text.as_bytes());
        let values = ProtocolParameter::ALL.iter().map(|&parameter| {
            let value = parameters.protocol_value(parameter)?;
            Some(value.to_vec())
        });
        (outcome, pairs(&parameters), Vec::from_iter(values))
    };
    for name in ProtocolParameter::ALL.iter().map(|name| name.as_str()) {
        for written in [
            name,
            &name[..name.len() - 1],
            &format!("{name}x"),
            &name.to_uppercase(),
        ] {
            for rest in [
                "=\"v\"",
                "=\"v%20\", a=\"b\"",
                "=\"\"",
                "=\"v",
                "=v",
                "\"v\"",
                "=",
                "",
            ] {
                let usual = format!("OAuth {written}{rest}");
                let escaped = format!(
                    "OAuth %{:02x}{}{rest}",
                    written.as_bytes()[0],
                    &written[1..]
                );
                assert_eq!(read(usual.clone()), read(escaped), "{usual}");
            }
        }
    }
}

#[test]
fn a_broken_pair_is_told_and_does_not_hide_the_others() {
    for raw in [
        "x=%&oauth_token=t&z=1",
        "%=1&oauth_token=t&z=1",
        "oauth_token=t&z=1&x=%4",
    ] {
        let mut read = Parameters::new();
        let error = read.read_query(raw.as_bytes()).unwrap_err();
        assert!(read.has_protocol_parameter(), "{raw}");
        assert_eq!(
            pairs(&read),
            [pair("oauth_token", "t"), pair("z", "1")],
            "{raw}"
        );
        // Reading on does not clear the error.
        read.read_body(b"a=1").unwrap();
        assert_eq!(
            read.protocol(MethodSet::ALL, LocationRule::OneLocation)
                .unwrap_err(),
            error,
            "{raw}"
        );
        read.clear();
        assert!(
            read.protocol(MethodSet::ALL, LocationRule::OneLocation)
                .is_ok()
        );
    }
}

#[test]
fn rejects_repeated_names() {
    let checked = |raw: &str| in_one_place(&query(raw).unwrap());
    for raw in [
        "oauth_nonce=1&oauth_nonce=1",
        "oauth_nonce=1&oauth_nonce=2",
        "oauth_nonce=1&a=1&%6fauth_nonce=1",
    ] {
        assert_eq!(names(checked(raw), REPEATED), "oauth_nonce", "{raw}");
    }
    assert_eq!(
        names(checked("oauth_signature=1&oauth_signature=1"), REPEATED),
        "oauth_signature"
    );
    let several = "oauth_x%26=1&oauth_token=1&oauth_x%26=2&oauth_token=1&oauth_y=1&a=1&a=1";
    assert_eq!(names(checked(several), REPEATED), "oauth_x%26&oauth_token");
    assert_eq!(
        checked("oauth_x=1&oauth_y=1&a=1&a=1&realm=1&realm=1"),
        Ok(())
    );
}

#[test]
fn rejects_a_broken_value_sent_twice_as_malformed() {
    let mut read = Parameters::new();
    assert!(read.read_query(b"oauth_nonce=%&oauth_nonce=1").is_err());
    assert!(matches!(
        in_one_place(&read),
        Err(ShapeError::Malformed { .. })
    ));
}

#[test]
fn rejects_names_outside_the_one_place() {
    let mut read = header("OAuth oauth_token=\"t\"").unwrap();
    read.read_query(b"oauth_nonce=n&a=1&oauth_other=1").unwrap();
    assert_eq!(
        names(in_one_place(&read), SCATTERED),
        "oauth_nonce&oauth_other"
    );

    let mut read = query("oauth_token=t").unwrap();
    read.read_body(b"oauth_nonce=n").unwrap();
    assert_eq!(names(in_one_place(&read), SCATTERED), "oauth_token");

    // The same name in two places is a repeated one.
    let mut read = header("OAuth oauth_token=\"t\"").unwrap();
    read.read_query(b"oauth_token=t").unwrap();
    assert_eq!(names(in_one_place(&read), REPEATED), "oauth_token");

    let mut read = header("OAuth oauth_token=\"t\"").unwrap();
    read.read_query(b"a=1").unwrap();
    read.read_body(b"a=1").unwrap();
    assert_eq!(in_one_place(&read), Ok(()));
}

#[test]
fn rejects_empty_values_but_for_the_token() {
    let checked = |raw: &str| in_one_place(&query(raw).unwrap());
    assert_eq!(checked("oauth_token=&a="), Ok(()));
    assert_eq!(
        names(checked("oauth_nonce=&oauth_token"), EMPTY),
        "oauth_nonce"
    );
    assert_eq!(
        names(checked("oauth_x&oauth_callback="), EMPTY),
        "oauth_x&oauth_callback"
    );
}

#[test]
fn clear_forgets_everything() {
    let mut read =
        header("OAuth realm=\"r\", oauth_token=\"a%20b\", oauth_token=\"c\", oauth_x=\"1\"")
            .unwrap();
    let _ = read.read_query(b"%");
    read.clear();
    assert_eq!(read.iter().count(), 0);
    assert_eq!(read.realm(), None);
    assert!(!read.has_protocol_parameter());
    assert_eq!(read.normalized(Selection::Rfc5849), b"");
    assert_eq!(in_one_place(&read), Ok(()));
    read.read_query(b"oauth_token=1").unwrap();
    assert_eq!(in_one_place(&read), Ok(()));
}

#[test]
fn clear_gives_the_memory_of_a_huge_form_back() {
    let mut read = Parameters::new();
    read.read_body("a=%26&".repeat(100_000).as_bytes()).unwrap();
    read.clear();
    assert!(read.text.capacity() <= KEPT_BYTES);
    assert!(read.entries.capacity() <= KEPT_ENTRIES);
    assert!(read.order.capacity() <= KEPT_ENTRIES);
}

#[test]
fn tells_what_a_request_takes_beyond_what_is_kept() {
    let mut read = Parameters::new();
    read.read_query(b"a=1&b=2").unwrap();
    assert_eq!(read.extra_bytes(), 0);
    // 100,000 fields, each an entry and a rank, and its name and value.
    read.read_body("a=%26&".repeat(100_000).as_bytes()).unwrap();
    let least = 100_000 * (2 + size_of::<Entry>() + size_of::<Rank>());
    assert!(
        read.extra_bytes() > least - 100_000,
        "{}",
        read.extra_bytes()
    );
    assert!(read.extra_bytes() < 3 * least, "{}", read.extra_bytes());
    read.clear();
    assert_eq!(read.extra_bytes(), 0);
}

#[test]
fn counts_fields_without_reading_them() {
    for (form, fields) in [
        ("", 0),
        ("&&&&", 0),
        ("a", 1),
        ("=", 1),
        ("a=1&b=2", 2),
        ("&a&&b&", 2),
        ("a&a&a", 3),
        ("a;a;a", 1),
    ] {
        let more_than = |limit| has_more_fields(form.as_bytes(), limit);
        assert!(!more_than(fields), "{form}");
        assert!(fields == 0 || more_than(fields - 1), "{form}");
        let mut read = Parameters::new();
        read.read_body(form.as_bytes()).unwrap();
        assert_eq!(read.iter().count(), fields, "{form}");
    }
}

#[test]
fn debug_prints_no_value() {
    let read = header("OAuth oauth_signature=\"secret%26\"").unwrap();
    assert_eq!(format!("{read:?}"), "Parameters { count: 1, .. }");
}

/// The obvious way to do the same: split, decode, encode, sort.
mod model {
    pub(super) fn form(raw: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        raw.split(|&byte| byte == b'&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
                    Some(at) => (&pair[..at], &pair[at + 1..]),
                    None => (pair, &b""[..]),
                };
                Some((plain(name, true)?, plain(value, true)?))
            })
            .collect()
    }

    pub(super) fn normalized(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut encoded: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| (encoded(name), encoded(value)))
            .collect();
        encoded.sort();
        let joined: Vec<String> = encoded
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        joined.join("&").into_bytes()
    }

    pub(super) fn encoded(bytes: &[u8]) -> String {
        let mut out = String::new();
        for &byte in bytes {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    out.push(byte.into())
                }
                other => out += &format!("%{other:02X}"),
            }
        }
        out
    }

    pub(super) fn plain(bytes: &[u8], form: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'%' => {
                    let digits = bytes.get(at + 1..at + 3)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                    at += 2;
                }
                b'+' if form => out.push(b' '),
                other => out.push(other),
            }
            at += 1;
        }
        Some(out)
    }
}

/// Bytes that make trouble more often than random ones would.
fn troublesome() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        Just(b"&".to_vec()),
        Just(b"=".to_vec()),
        Just(b"%".to_vec()),
        Just(b"+".to_vec()),
        Just(b"oauth_token".to_vec()),
        any::<u8>().prop_map(|byte| format!("%{byte:02x}").into_bytes()),
        any::<u8>().prop_map(|byte| format!("%{byte:02X}").into_bytes()),
        "[a-c~._-]{0,9}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn same_pairs(parameters: &Parameters, expected: &[(Vec<u8>, Vec<u8>)]) -> bool {
    parameters
        .iter()
        .map(|parameter| (parameter.name.to_vec(), parameter.value.to_vec()))
        .eq(expected.iter().cloned())
}

proptest! {
    #[test]
    fn percent_coding_is_the_model_s(bytes in troublesome()) {
        prop_assert_eq!(percent::encode(&bytes), model::encoded(&bytes));
        prop_assert_eq!(percent::decode(&bytes).ok().map(Cow::into_owned), model::plain(&bytes, false));
        prop_assert_eq!(percent::decode_form(&bytes).ok().map(Cow::into_owned), model::plain(&bytes, true));
        let encoded = percent::encode(&bytes);
        prop_assert_eq!(&*percent::decode(encoded.as_bytes()).unwrap(), &*bytes);
    }

    #[test]
    fn forms_are_read_as_the_model_reads_them(raw in troublesome()) {
        let mut read = Parameters::new();
        let outcome = read.read_body(&raw);
        match model::form(&raw) {
            None => prop_assert!(outcome.is_err()),
            Some(expected) => {
                prop_assert!(outcome.is_ok());
                prop_assert!(same_pairs(&read, &expected));
                let signed: Vec<_> = expected.into_iter().filter(|(name, _)| name != b"oauth_signature").collect();
                prop_assert_eq!(read.normalized(Selection::Rfc5849), model::normalized(&signed));
            }
        }
    }

    #[test]
    fn header_written_by_the_rules_is_read_back(
        pairs in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..12), prop::collection::vec(any::<u8>(), 0..20)), 0..20),
        separators in prop::collection::vec("[ \t]{0,2},[ \t]{0,2}", 20),
    ) {
        let mut value = "OAuth ".to_owned();
        for ((name, plain), separator) in pairs.iter().zip(separators) {
            value += &format!("{}=\"{}\"{separator}", model::encoded(name), model::encoded(plain));
        }
        let read = header(&value).unwrap();
        let kept: Vec<_> = pairs.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"realm")).collect();
        prop_assert!(same_pairs(&read, &kept));
    }

    #[test]
    fn no_authorization_value_makes_it_panic(value in troublesome(), quotes in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut value = value;
        for at in quotes {
            let at = at.index(value.len() + 1);
            value.insert(at, b'"');
        }
        let mut read = Parameters::new();
        let _ = read.read_header(&[b"OAuth ", &value[..]].concat());
        let _ = read.read_header(&value);
    }

    #[test]
    fn the_order_of_reading_does_not_matter(
        (pairs, shuffled) in prop::collection::vec("[ab%&= ]{0,3}", 0..40)
            .prop_flat_map(|pairs| (Just(pairs.clone()), Just(pairs).prop_shuffle()))
    ) {
        let normalized = |pairs: &[String], cut: usize| {
            let form = |pairs: &[String]| pairs.iter().map(|pair| format!("{}=1", model::encoded(pair.as_bytes()))).collect::<Vec<_>>().join("&");
            let mut read = Parameters::new();
            read.read_query(form(&pairs[..cut]).as_bytes()).unwrap();
            read.read_body(form(&pairs[cut..]).as_bytes()).unwrap();
            read.normalized(Selection::Rfc5849)
        };
        prop_assert_eq!(normalized(&pairs, 0), normalized(&shuffled, shuffled.len() / 3));
    }
}

#[test]
fn takes_every_spelling_of_a_form_for_one() {
    for form in [
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-URLEncoded; charset=utf-8",
        "application/x-url-encoded",
        "x-www_form urlencoded",
        "application/x-www-form-url\tencoded",
        "application/x-www-form-u.r.l.e.n.c.o.d.e.d",
        "text/plain, application/x-www-form-urlencoded",
        "application/uurlencoded",
        "application/urlurlencoded",
    ] {
        assert!(is_form_content_type(form.as_bytes()), "{form}");
    }
    for other in [
        "",
        "application/json",
        "multipart/form-data; boundary=url",
        "application/x-www-form-urlencode",
        "application/x-www-form-urlxencoded",
        "application/encodedurl",
    ] {
        assert!(!is_form_content_type(other.as_bytes()), "{other}");
    }
}

#[test]
fn rejects_names_that_frameworks_read_as_protocol_parameters() {
    let checked = |raw: &str| {
        let read = query(raw).unwrap();
        names(
            read.check_oauth_names(LocationRule::FlowApart, &mut First),
            "the API could read it as a name that begins with oauth_",
        )
    };
    for (raw, name) in [
        ("oauth.token=x", "oauth.token"),
        ("oauth%5Btoken=x", "oauth%5Btoken"),
        ("oauth%20token=x", "oauth%20token"),
        ("oauth+token=x", "oauth%20token"),
        ("+oauth_token=x", "%20oauth_token"),
        ("%20%20oauth.nonce=x", "%20%20oauth.nonce"),
        ("%09oauth_token=x", "%09oauth_token"),
        ("OAuth.token=x", "OAuth.token"),
        ("oauth_token[]=x", "oauth_token%5B%5D"),
    ] {
        assert_eq!(checked(&format!("{raw}&oauth_nonce=y")), name, "{raw}");
    }
    for raw in [
        "oauth2_token=x",
        "oauth=x",
        "oauth-token=x",
        "xoauth_token=x",
        "OAuthtoken=x",
        "a.b=x",
        "+=x",
        "=x",
    ] {
        let read = query(raw).unwrap();
        assert_eq!(in_one_place(&read), Ok(()), "{raw}");
    }
}

#[test]
fn protocol_parameters_are_encoded_once_if_unambiguous() {
    let unencoded = DeviationSet::NONE.with(Deviation::ValuesUnencoded);
    for (raw, text) in [
        (
            "oauth_consumer_key=a%21b&oauth_nonce=n&p=%21",
            Some("oauth_consumer_key%3Da%21b%26oauth_nonce%3Dn%26p%3D%2521"),
        ),
        // Unknown parameters keep their escapes.
        (
            "oauth_nonce=%3D&oauth_other=%21",
            Some("oauth_nonce%3D%3D%26oauth_other%3D%2521"),
        ),
        // It changes nothing.
        ("oauth_nonce=n&p=%21", None),
        // It would read as two parameters.
        ("oauth_nonce=n%26oauth_p%3D1&oauth_token=%21", None),
    ] {
        let read = query(raw).unwrap();
        let set = read.deviations_in_text(unencoded);
        assert_eq!(!set.is_empty(), text.is_some(), "{raw}");
        let Some(text) = text else { continue };
        let mut written = Vec::new();
        read.write_encoded(Selection::Rfc5849, set, &mut written);
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }
}
