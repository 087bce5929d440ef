//! An accepted callback is the registered place to a browser (`url`) as well, and the redirect leads there.

#![no_main]

use countersign::{
    provider::issue::callback::{accept, check_registration, destination, redirect},
    records::values::record::Callback,
};
use libfuzzer_sys::fuzz_target;
use url::Url;

const REGISTERED: [&str; 6] = [
    "https://app.test/done",
    "https://app.test:8443/a/b?c=d",
    "http://127.0.0.1:5000/cb",
    "http://localhost/",
    "http://[::1]/cb",
    "com.app.test:/cb",
];

const ADDED: [(&str, &str); 2] = [
    ("oauth_token", "t\u{e9} &=#%"),
    ("oauth_verifier", "v+/?\r\n"),
];

fuzz_target!(|input: &[u8]| {
    let registered: Vec<String> = REGISTERED.iter().map(|&text| text.to_owned()).collect();
    match accept(&registered, input) {
        Ok(Callback::Oob) => panic!("oob is not registered"),
        Ok(Callback::Uri(text)) => {
            assert_eq!(text.as_bytes(), input);
            led_to(&text);
            let found = Url::parse(&text).expect("a URL to a browser");
            assert!(
                REGISTERED
                    .iter()
                    .any(|known| same_place(&Url::parse(known).expect("a URL"), &found)),
                "{text}"
            );
        }
        Err(_) => {}
    }
    // Registered alone, every callback that can be registered is accepted as itself.
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    // The redirect is safe to send whatever the store contains.
    let location = redirect(text, &ADDED);
    assert!(
        location.bytes().all(|byte| byte.is_ascii_graphic()),
        "{location:?}"
    );
    let shown = destination(text);
    if check_registration(text).is_err() || text == "oob" {
        assert!(text == "oob" || shown.is_none());
        return;
    }
    assert_eq!(
        accept(&[text.to_owned()], input),
        Ok(Callback::Uri(text.to_owned()))
    );
    led_to(text);
    let shown = shown.expect("a place");
    if let (Some(site), Ok(found)) = (shown.site, Url::parse(text)) {
        assert_eq!(found.scheme(), shown.scheme);
        let named = Url::parse(&format!("{}://{site}/", shown.scheme)).expect("a site");
        assert_eq!(
            named.host(),
            found.host(),
            "the page shows where the browser goes"
        );
        assert_eq!(named.port_or_known_default(), found.port_or_known_default());
    }
});

/// The redirect leads to the callback, with the parameters added at the end of its query, once.
fn led_to(text: &str) {
    let location = redirect(text, &ADDED);
    assert!(location.starts_with(text), "{location}");
    let (Ok(asked), Ok(sent)) = (Url::parse(text), Url::parse(&location)) else {
        return;
    };
    assert_eq!(
        (asked.scheme(), asked.host(), asked.port(), asked.path()),
        (sent.scheme(), sent.host(), sent.port(), sent.path())
    );
    assert!(sent.fragment().is_none());
    let count = asked.query_pairs().count();
    let added: Vec<(String, String)> = sent
        .query_pairs()
        .skip(count)
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let expected: Vec<(String, String)> = ADDED
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(added, expected);
}

fn same_place(registered: &Url, found: &Url) -> bool {
    let loopback = registered.scheme() == "http";
    registered.scheme() == found.scheme()
        && registered.host() == found.host()
        && (loopback || registered.port_or_known_default() == found.port_or_known_default())
        && registered.path() == found.path()
        && found.username().is_empty()
        && found.password().is_none()
}
