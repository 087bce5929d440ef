//! Input of browsers to the pages: forms are read as `url` reads them, cookies as a plain search does, and a login
//! never redirects to another origin.

#![no_main]

use std::{borrow::Cow, collections::BTreeMap};

use countersign::provider::pages::fuzzing;
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use url::{Url, form_urlencoded};

const ORIGIN: &str = "https://service.test";

fuzz_target!(|input: &[u8]| {
    form(input);
    cookie(input);
    if let Ok(wanted) = std::str::from_utf8(input) {
        return_to(wanted);
    }
});

fn form(body: &[u8]) {
    let expected: Vec<(Cow<'_, str>, Cow<'_, str>)> = form_urlencoded::parse(body).collect();
    let names: BTreeMap<&str, &str> = expected
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    // `url` replaces bytes that are not UTF-8, and so cannot distinguish them from a replacement character that was sent.
    let replaced = expected
        .iter()
        .any(|(name, value)| name.contains('\u{fffd}') || value.contains('\u{fffd}'));
    match fuzzing::form(body, names.keys().copied()) {
        Some(values) => {
            assert!(values.len() == expected.len() && expected.len() <= 32);
            if !replaced {
                assert_eq!(
                    values,
                    names
                        .values()
                        .map(|value| Some((*value).to_owned()))
                        .collect::<Vec<_>>()
                );
            }
        }
        None => assert!(replaced || names.len() < expected.len() || expected.len() > 32),
    }
}

fn cookie(field: &[u8]) {
    let name = b"countersign";
    let (front, back) = field.split_at(field.len() / 2);
    for fields in [&[field][..], &[front, back]] {
        let values: Vec<&[u8]> = fields
            .iter()
            .flat_map(|field| field.split(|&byte| byte == b';'))
            .filter_map(|pair| {
                let pair = pair.trim_ascii();
                let end = pair
                    .iter()
                    .position(|&byte| byte == b'=')
                    .unwrap_or(pair.len());
                (pair[..end].trim_ascii_end() == name)
                    .then(|| pair.get(end + 1..).unwrap_or_default())
            })
            .collect();
        let good = |value: &&[u8]| value.len() == 43 && value.iter().all(u8::is_ascii_alphanumeric);
        let expected = match values[..] {
            [only] => Some(only).filter(good),
            _ => None,
        };
        let mut headers = HeaderMap::new();
        for field in fields {
            let Ok(field) = HeaderValue::from_bytes(field) else {
                return;
            };
            headers.append(header::COOKIE, field);
        }
        assert_eq!(
            fuzzing::cookie(&headers, "countersign").as_deref(),
            expected
        );
    }
}

fn return_to(wanted: &str) {
    let Some(path) = fuzzing::local_path(wanted) else {
        return;
    };
    assert!(
        path.starts_with('/')
            && !path.starts_with("//")
            && path.bytes().all(|byte| byte.is_ascii_graphic()),
        "{path:?}"
    );
    let base = Url::parse(ORIGIN).expect("a URL");
    let target = base.join(&path).expect("a path");
    assert_eq!(target.origin(), base.origin());
    assert_eq!(
        fuzzing::local_path(&path).as_deref(),
        Some(&*path),
        "it is its own"
    );
}
