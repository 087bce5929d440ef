use proptest::prelude::*;
use url::Url;

use super::*;
use crate::text::words;

fn registered(callbacks: &[&str]) -> Vec<String> {
    callbacks
        .iter()
        .map(|callback| (*callback).to_owned())
        .collect()
}

#[test]
fn registers_absolute_uris_and_oob() {
    for callback in words(
        "oob https://app.example/cb https://app.example https://app.example:8443/cb?x=1&y=%20
         https://xn--bcher-kva.example/cb https://[2001:db8::1]:8443/cb http://127.0.0.1/cb
         http://[::1]:3000/cb http://localhost/cb com.example.app:/cb com.example.app://cb/path
         myapp: myapp:///cb urn:example:cb",
    ) {
        assert_eq!(check_registration(callback), Ok(None), "{callback}");
    }
}

#[test]
fn warns_of_an_asterisk_which_matches_itself_alone() {
    for callback in [
        "https://app.example/*",
        "http://localhost/*",
        "https://app.example/x?y=*",
    ] {
        assert_eq!(
            check_registration(callback),
            Ok(Some(ASTERISK)),
            "{callback}"
        );
    }
}

#[test]
fn warns_of_http_on_another_host() {
    for callback in [
        "http://app.example/cb",
        "HTTP://app.example/",
        "http://127.0.0.1.evil.example/",
    ] {
        assert_eq!(
            check_registration(callback),
            Ok(Some(PLAIN_HTTP)),
            "{callback}"
        );
    }
}

#[test]
fn never_registers_what_is_no_callback() {
    use CallbackError::{
        Character, DotSegment, Fragment, Host, NotAbsolute, Port, Scheme, TooLong, UserInfo,
    };
    let plain = [
        (
            "OOB Oob /cb //app.example/cb app.example/cb 1https://app.example/ :https://app.example/",
            NotAbsolute,
        ),
        (
            "javascript:alert(1) JavaScript:alert(1) javascript://app.example/%0aalert(1)
             data:text/html,x DATA:,x file:///etc/passwd blob:https://app.example/x vbscript:x
             view-source:https://app.example/",
            Scheme,
        ),
        (
            "https://app.example/<x> https://app.example/{x} https://app.example/a%2
             https://app.example/a% https://app.example/a%zz https://app.example/[x]
             https://app.example/?a[]=1",
            Character,
        ),
        (
            "https://app.example/cb/../evil https://app.example/%2e/cb com.example.app:/other/../cb
             com.example.app:/other/%2e%2e/cb",
            DotSegment,
        ),
        ("https://app.example/# https://app.example/#top", Fragment),
        (
            "https://user@app.example/ https://user:pw@app.example/ https://@app.example/",
            UserInfo,
        ),
        (
            "https: https:app.example/cb https:/app.example/cb https:// https:///app.example/cb
             https://:443/ ftp:app.example https://app%2eexample/
             https://app.example%2f.evil.example/ https://a,b/ https://[::1 https://::1]/
             https://[::1]x/ https://[fe80::1%25eth0]/ https://[v1.x]/ https://[127.0.0.1]/
             http://127.1/ http://127.0.0.01/ http://0x7f.1/ http://2130706433/ http://127.0.0.1./
             http://127.0.0.256/ http://app.example.0X/",
            Host,
        ),
        (
            "https://app.example:/ https://app.example:0/ https://app.example:080/
             https://app.example:+80/ https://app.example:65536/ https://app.example:80:80/
             https://app.example:8x/",
            Port,
        ),
    ];
    let plain = plain.iter().flat_map(|(callbacks, error)| {
        words(callbacks)
            .into_iter()
            .map(|callback| (callback, *error))
    });
    let odd = [
        ("", NotAbsolute),
        ("oob ", Character),
        ("java\tscript:alert(1)", Character),
        ("\u{1}javascript:alert(1)", Character),
        (" https://app.example/", Character),
        ("https://app.example/\r\nSet-Cookie: a=b", Character),
        ("https://app.example/\0", Character),
        ("https://app.example/\u{7f}", Character),
        ("https://app.example/\u{e9}", Character),
        ("https://app.example\\@evil.example/", Character),
        ("https:\\\\evil.example/", Character),
    ];
    for (callback, error) in plain.chain(odd) {
        assert_eq!(check_registration(callback), Err(error), "{callback:?}");
        let requested = accept(
            &registered(&[callback, "https://app.example/cb"]),
            callback.as_bytes(),
        );
        assert_eq!(
            requested,
            Err(error),
            "not even where the store holds it: {callback:?}"
        );
    }
    let long = format!("https://app.example/?{}", "x".repeat(4096));
    assert_eq!(check_registration(&long), Err(TooLong));
    assert_eq!(
        accept(&registered(&["https://app.example/"]), long.as_bytes()),
        Err(TooLong)
    );
}

#[test]
fn redirect_adds_to_the_callbacks_own_query() {
    let parameters = [("oauth_token", "t"), ("oauth_verifier", "v/ +&=\u{e9}")];
    let added = "oauth_token=t&oauth_verifier=v%2F%20%2B%26%3D%C3%A9";
    for (callback, before) in [
        ("https://a.example/cb", "https://a.example/cb?"),
        ("https://a.example", "https://a.example?"),
        ("https://a.example/cb?", "https://a.example/cb?"),
        ("https://a.example/cb?x=1", "https://a.example/cb?x=1&"),
        ("https://a.example/cb??", "https://a.example/cb??&"),
        ("https://a.example/cb?x=?", "https://a.example/cb?x=?&"),
        ("https://a.example/cb?x=1&", "https://a.example/cb?x=1&"),
        (
            "https://a.example/cb?x=%41+%2f&x",
            "https://a.example/cb?x=%41+%2f&x&",
        ),
        ("HTTPS://A.example/cb", "HTTPS://A.example/cb?"),
        ("app:/cb", "app:/cb?"),
    ] {
        assert_eq!(
            redirect(callback, &parameters),
            format!("{before}{added}"),
            "{callback}"
        );
    }
}

#[test]
fn redirect_is_a_safe_field_even_from_an_unchecked_callback() {
    let location = redirect(
        "https://a.example/\r\nSet-Cookie: a=\"b\"\\\u{e9}#x",
        &[("oauth_token", "\r\nx")],
    );
    assert_eq!(
        location,
        "https://a.example/%0D%0ASet-Cookie:%20a=%22b%22%5C%C3%A9%23x?oauth_token=%0D%0Ax"
    );
}

#[test]
fn place_names_site_and_scheme() {
    let web = destination("HTTPS://App.example:8443/cb").unwrap();
    assert_eq!(
        (web.scheme.as_str(), web.site.as_deref()),
        ("https", Some("app.example:8443"))
    );
    let native = destination("com.example.App://host/cb").unwrap();
    assert_eq!(
        (native.scheme.as_str(), native.site),
        ("com.example.app", None)
    );
    assert_eq!(destination("javascript:x"), None);
}

fn callbacks() -> impl Strategy<Value = String> {
    let query = "(\\?([A-Za-z0-9._~!$'()*+,;:@/?-]|%[0-9A-Fa-f]{2}|[&=]){0,40})?";
    let web = format!(
        "https?://[a-z][a-z0-9.-]{{0,15}}[a-z](:[1-9][0-9]{{0,3}})?(/[A-Za-z0-9_~-]{{1,9}}){{0,3}}{query}"
    );
    let native = format!("[a-z][a-z0-9+.-]{{2,9}}:/([a-z][a-z/]{{0,12}})?{query}");
    (any::<bool>(), regex(&web), regex(&native))
        .prop_map(|(first, web, native)| if first { web } else { native })
}

fn regex(pattern: &str) -> impl Strategy<Value = String> + use<> {
    proptest::string::string_regex(pattern).unwrap()
}

proptest! {
    #[test]
    fn redirect_keeps_every_byte_of_the_callback(callback in callbacks(), token in ".*", verifier in ".*") {
        // The `xn--` of a random host may not be valid Punycode: a browser rejects it altogether.
        prop_assume!(check_registration(&callback).is_ok() && Url::parse(&callback).is_ok());
        let location = redirect(&callback, &[("oauth_token", &token), ("oauth_verifier", &verifier)]);
        prop_assert!(location.starts_with(&callback));
        prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()));
        // A browser finds the same target, the callback's own query first and ours last.
        let (before, after) = (Url::parse(&callback).unwrap(), Url::parse(&location).unwrap());
        prop_assert_eq!((before.scheme(), before.host_str(), before.port(), before.path()),
            (after.scheme(), after.host_str(), after.port(), after.path()));
        let pairs: Vec<_> = after.query_pairs().into_owned().collect();
        let own: Vec<_> = before.query_pairs().into_owned().collect();
        prop_assert_eq!(&pairs[..own.len()], &own[..]);
        prop_assert_eq!(&pairs[own.len()..], &[("oauth_token".to_owned(), token), ("oauth_verifier".to_owned(), verifier)]);
    }

    /// The main property: every accepted callback leads a browser to the registered scheme, host, port and path.
    #[test]
    fn nothing_accepted_leads_a_browser_elsewhere(
        at in 0usize..40, cut in 0usize..6,
        insert in "([-A-Za-z0-9.:/?@\\\\\\[\\]%&=#\t\r\n ;,_~]|//|\\.\\.|%2[eEfF]|@evil\\.example|\\.evil){0,3}",
    ) {
        let registration = "https://good.example:8443/a/cb?q=1";
        let at = at.min(registration.len());
        let end = (at + cut).min(registration.len());
        let requested = format!("{}{insert}{}", &registration[..at], &registration[end..]);
        if let Ok(Callback::Uri(callback)) = accept(&registered(&[registration]), requested.as_bytes()) {
            let url = Url::parse(&redirect(&callback, &[("oauth_token", "t")])).unwrap();
            prop_assert_eq!(url.scheme(), "https");
            prop_assert_eq!(url.host_str(), Some("good.example"));
            prop_assert_eq!(url.port(), Some(8443));
            prop_assert_eq!(url.path(), "/a/cb");
            prop_assert_eq!(url.username(), "");
            prop_assert_eq!(url.fragment(), None);
        }
    }

    #[test]
    fn any_accepted_web_callback_is_read_alike_by_a_browser(requested in "(http|https|HTTPS?)://[a-zA-Z0-9.:@\\[\\]%_~-]{1,20}(/[!-~]{0,12})?") {
        // Registered as itself, so that only the parsers can differ.
        if let Ok(Callback::Uri(callback)) = accept(&registered(&[&requested]), requested.as_bytes()) {
            // A browser rejects broken Punycode altogether; that leads nowhere.
            if let Ok(url) = Url::parse(&callback) {
                let place = destination(&callback).unwrap();
                let site = place.site.unwrap();
                let host = url.host_str().unwrap();
                prop_assert!(host.starts_with('[') || site.split(':').next() == Some(host), "{} {}", site, host);
                prop_assert!(url.username().is_empty() && url.fragment().is_none());
            }
        }
    }

    #[test]
    fn never_panics(registration in ".*", requested in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = accept(&registered(&[&registration]), &requested);
        let _ = redirect(&registration, &[("a", "b")]);
    }
}
