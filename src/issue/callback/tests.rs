use proptest::prelude::*;
use url::Url;

use super::*;

fn registered(callbacks: &[&str]) -> Vec<String> {
    callbacks
        .iter()
        .map(|callback| (*callback).to_owned())
        .collect()
}

fn accepts(registration: &str, requested: &str) -> bool {
    let callback = accept(&registered(&[registration]), requested.as_bytes());
    if let Ok(callback) = &callback {
        assert_eq!(
            *callback,
            Callback::Uri(requested.to_owned()),
            "kept as it came"
        );
    }
    callback.is_ok()
}

#[test]
fn registers_absolute_uris_and_oob() {
    for callback in [
        "oob",
        "https://app.example/cb",
        "https://app.example",
        "https://app.example:8443/cb?x=1&y=%20",
        "https://xn--bcher-kva.example/cb",
        "https://[2001:db8::1]:8443/cb",
        "http://127.0.0.1/cb",
        "http://[::1]:3000/cb",
        "http://localhost/cb",
        "com.example.app:/cb",
        "com.example.app://cb/path",
        "myapp:",
        "myapp:///cb",
        "urn:example:cb",
    ] {
        assert_eq!(check_registration(callback), Ok(None), "{callback}");
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
    for (callback, error) in [
        ("", NotAbsolute),
        ("OOB", NotAbsolute),
        ("Oob", NotAbsolute),
        ("oob ", Character),
        ("/cb", NotAbsolute),
        ("//app.example/cb", NotAbsolute),
        ("app.example/cb", NotAbsolute),
        ("1https://app.example/", NotAbsolute),
        (":https://app.example/", NotAbsolute),
        ("javascript:alert(1)", Scheme),
        ("JavaScript:alert(1)", Scheme),
        ("javascript://app.example/%0aalert(1)", Scheme),
        ("data:text/html,x", Scheme),
        ("DATA:,x", Scheme),
        ("file:///etc/passwd", Scheme),
        ("blob:https://app.example/x", Scheme),
        ("vbscript:x", Scheme),
        ("view-source:https://app.example/", Scheme),
        ("java\tscript:alert(1)", Character),
        ("\u{1}javascript:alert(1)", Character),
        (" https://app.example/", Character),
        ("https://app.example/\r\nSet-Cookie: a=b", Character),
        ("https://app.example/\0", Character),
        ("https://app.example/\u{7f}", Character),
        ("https://app.example/\u{e9}", Character),
        ("https://app.example\\@evil.example/", Character),
        ("https:\\\\evil.example/", Character),
        ("https://app.example/<x>", Character),
        ("https://app.example/{x}", Character),
        ("https://app.example/a%2", Character),
        ("https://app.example/a%", Character),
        ("https://app.example/a%zz", Character),
        ("https://app.example/[x]", Character),
        ("https://app.example/?a[]=1", Character),
        ("https://app.example/cb/../evil", DotSegment),
        ("https://app.example/%2e/cb", DotSegment),
        ("https://app.example/#", Fragment),
        ("https://app.example/#top", Fragment),
        ("https://user@app.example/", UserInfo),
        ("https://user:pw@app.example/", UserInfo),
        ("https://@app.example/", UserInfo),
        ("https:", Host),
        ("https:app.example/cb", Host),
        ("https:/app.example/cb", Host),
        ("https://", Host),
        ("https:///app.example/cb", Host),
        ("https://:443/", Host),
        ("ftp:app.example", Host),
        ("https://app%2eexample/", Host),
        ("https://app.example%2f.evil.example/", Host),
        ("https://a,b/", Host),
        ("https://[::1", Host),
        ("https://::1]/", Host),
        ("https://[::1]x/", Host),
        ("https://[fe80::1%25eth0]/", Host),
        ("https://[v1.x]/", Host),
        ("https://[127.0.0.1]/", Host),
        ("http://127.1/", Host),
        ("http://127.0.0.01/", Host),
        ("http://0x7f.1/", Host),
        ("http://2130706433/", Host),
        ("http://127.0.0.1./", Host),
        ("http://127.0.0.256/", Host),
        ("http://app.example.0X/", Host),
        ("https://app.example:/", Port),
        ("https://app.example:0/", Port),
        ("https://app.example:080/", Port),
        ("https://app.example:+80/", Port),
        ("https://app.example:65536/", Port),
        ("https://app.example:80:80/", Port),
        ("https://app.example:8x/", Port),
    ] {
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
fn accepts_what_is_registered_with_any_query() {
    let registration = "https://app.example/cb";
    for requested in [
        "https://app.example/cb",
        "https://app.example/cb?",
        "https://app.example/cb?state=1&next=https://elsewhere.example/?a",
        "https://app.example:443/cb",
        "HTTPS://APP.example/cb",
    ] {
        assert!(accepts(registration, requested), "{requested}");
    }
    assert!(accepts(
        "https://app.example/cb?registered=1",
        "https://app.example/cb?other=2"
    ));
    assert!(accepts("https://app.example", "https://app.example/"));
    assert!(accepts("http://app.example:80/", "http://app.example?x"));
    assert!(accepts("myapp://Host/cb", "myapp://Host/cb?x=1"));
    assert!(accepts("com.example.app:/cb", "com.example.app:/cb"));
}

#[test]
fn rejects_what_is_not_registered() {
    let registration = "https://good.example/cb";
    for requested in [
        "https://evil.example/cb",
        "https://good.example.evil/cb",
        "http://good.example.evil/cb",
        "https://evil-good.example/cb",
        "https://good.example./cb",
        "https://goodXexample/cb",
        "http://good.example/cb",
        "https://good.example:8443/cb",
        "https://good.example:80/cb",
        "https://good.example/",
        "https://good.example",
        "https://good.example/cb/",
        "https://good.example/CB",
        "https://good.example/cb/x",
        "https://good.example//cb",
        "https://good.example/%63b",
        "https://good.example/cb;x",
        "https://evil.example/?https://good.example/cb",
        "https://[::ffff:1.2.3.4]/cb",
        "custom://good.example/cb",
        "https+x://good.example/cb",
    ] {
        assert_eq!(
            accept(&registered(&[registration]), requested.as_bytes()),
            Err(CallbackError::NotRegistered),
            "{requested}"
        );
    }
    assert!(!accepts("myapp://host/cb", "myapp://HOST/cb"));
    assert!(!accepts("myapp:/cb", "myapp:cb"));
    assert!(!accepts("myapp:/cb", "myapp:///cb"));
    assert!(!accepts("myapp://localhost/cb", "myapp://localhost:1/cb"));
}

#[test]
fn loopback_takes_any_port_and_nothing_else() {
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        for (registered, requested) in [("", ":1"), (":3000", ""), (":3000", ":65535")] {
            let registration = format!("http://{host}{registered}/cb");
            assert!(accepts(
                &registration,
                &format!("http://{host}{requested}/cb?x=1")
            ));
            assert!(!accepts(
                &registration,
                &format!("http://{host}{requested}/other")
            ));
            assert!(!accepts(
                &registration,
                &format!("https://{host}{requested}/cb")
            ));
        }
    }
    assert!(!accepts("http://localhost/cb", "http://127.0.0.1/cb"));
    assert!(!accepts("http://127.0.0.1/cb", "http://127.0.0.2/cb"));
    assert!(!accepts("http://127.0.0.2/cb", "http://127.0.0.2:1/cb"));
    assert!(!accepts(
        "http://localhost.evil.example/cb",
        "http://localhost.evil.example:99/cb"
    ));
}

#[test]
fn oob_needs_registration_or_none_at_all() {
    assert_eq!(accept(&[], b"oob"), Ok(Callback::Oob));
    assert_eq!(accept(&registered(&["oob"]), b"oob"), Ok(Callback::Oob));
    let url = "https://app.example/cb";
    assert_eq!(
        accept(&registered(&[url, "oob"]), b"oob"),
        Ok(Callback::Oob)
    );
    assert_eq!(
        accept(&registered(&[url]), b"oob"),
        Err(CallbackError::NotRegistered)
    );
    for spelling in [
        "OOB", "Oob", "oob ", " oob", "oob\0", "o%6fb", "oob:", "oob:x",
    ] {
        assert!(accept(&[], spelling.as_bytes()).is_err(), "{spelling:?}");
        assert!(
            accept(&registered(&["oob"]), spelling.as_bytes()).is_err(),
            "{spelling:?}"
        );
    }
}

#[test]
fn a_uri_without_any_registration_is_rejected() {
    let url = b"https://app.example/cb";
    assert_eq!(accept(&[], url), Err(CallbackError::NotRegistered));
    assert_eq!(
        accept(&registered(&["oob"]), url),
        Err(CallbackError::NotRegistered)
    );
    assert_eq!(
        accept(&registered(&[""]), url),
        Err(CallbackError::NotRegistered)
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
        // The `xn--` of a random host may be no Punycode: a browser rejects it altogether.
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

    /// The heart of it: whatever is accepted leads a browser to the registered scheme, host, port and path.
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
            // Broken Punycode a browser rejects altogether; that leads nowhere.
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
