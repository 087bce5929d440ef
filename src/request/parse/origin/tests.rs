//! The public URL of a request, and the reports about it that are believed.

use http::{HeaderValue, Request};

use super::*;
use crate::{text::words, wire::url::origin::HttpUrl};

/// The head in a text of HTTP/1.1.
fn head(text: &str) -> Parts {
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let first: Vec<&str> = lines.next().expect("a request line").split(' ').collect();
    let mut request = Request::builder().method(first[0]).uri(first[1]);
    if first[2] == "HTTP/1.0" {
        request = request.version(Version::HTTP_10);
    }
    for line in lines {
        let (name, value) = line.split_once(':').expect("a field");
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).expect("a value");
        request = request.header(name, value);
    }
    request.body(()).expect("a request").into_parts().0
}

fn public_url(text: &str) -> PublicUrl {
    HttpUrl::parse(text).expect("a URL").into()
}

fn origins(public: &[PublicUrl], prefix_mode: PrefixMode) -> Origins {
    Origins {
        base: public_url("https://auth.example"),
        pages: Vec::new(),
        public: public.to_vec(),
        prefix_mode,
        trusted_proxies: vec!["10.0.0.0/8".parse().expect("a network")],
        family: ForwardedFamily::XForwarded,
    }
}

fn peer(address: &str) -> Peer {
    Peer {
        address: Some(address.parse().expect("an address")),
        secure: false,
        is_relay: false,
    }
}

fn received_by(
    family: ForwardedFamily,
    text: &str,
    from: &str,
) -> Result<(String, bool, String), ParseRejection> {
    let head = head(text);
    let target = RequestTarget::split(&head.uri).expect("a target");
    let origins = Origins {
        family,
        ..origins(&[], PrefixMode::Strip)
    };
    let received = origins.receive(&head, &target, peer(from))?;
    let host = received.authority.host.to_owned();
    let address = received
        .nearest_address
        .map(|address| address.to_string())
        .unwrap_or_default();
    Ok((host, received.secure, address))
}

/// Each of two proxies appends to what it received, as Apache does.
#[test]
fn the_proxy_that_names_the_caller_names_host_and_scheme_too() {
    let read = |fields: &str| {
        let names = [("For", 0), ("Host", 1), ("Proto", 2)];
        let mut values = fields.split(';').map(str::trim);
        let lines = names.map(|(name, _)| {
            let values = values.next().unwrap_or_default();
            format!("X-Forwarded-{name}: {values}\r\n")
        });
        let text = format!("GET / HTTP/1.1\r\nHost: inner\r\n{}\r\n", lines.concat());
        received_by(ForwardedFamily::XForwarded, &text, "10.2.2.2").expect("an origin")
    };
    for [fields, host, secure, address] in crate::text::rows(
        r"
        203.0.113.9, 10.1.1.1; a, inner; https, http          | a     | true  | 203.0.113.9
        203.0.113.9, 10.3.3.3, 10.1.1.1; a, b, c; https, http, http | a | true | 203.0.113.9
        # What the caller wrote stands to the left of its own address.
        6.6.6.6, 203.0.113.9, 10.1.1.1; evil, a, inner; http, https, http | a | true | 203.0.113.9
        6.6.6.6, 203.0.113.9; evil, a; http, https            | a     | true  | 203.0.113.9
        # The same if the address is not one, or that of a trusted proxy.
        10.6.6.6, 203.0.113.9, 10.1.1.1; evil, a, inner; http, https, http | a | true | 203.0.113.9
        unknown, 10.1.1.1; a, inner; https, http              | a     | true  | 10.1.1.1
        10.1.1.2, 10.1.1.1; a, inner; https, http             | a     | true  | 10.1.1.2
        # A list of another length may begin with the caller's words: the last one counts.
        203.0.113.9, 10.1.1.1; evil, a, inner; https          | inner | true  | 203.0.113.9
        203.0.113.9, 10.1.1.1; a; https, http                 | a     | true  | 203.0.113.9
        203.0.113.9; evil, a; http, https                     | a     | true  | 203.0.113.9
        203.0.113.9; a; https                                 | a     | true  | 203.0.113.9
    ",
    ) {
        let expected = (host.to_owned(), secure == "true", address.to_owned());
        assert_eq!(read(fields), expected, "{fields}");
    }
}

/// The report of a trusted proxy in `Forwarded`: host, https or not, and the caller's address.
#[test]
fn forwarded_is_read_from_the_right_through_trusted_proxies() {
    let read = |lines: &[&str]| {
        let lines: String = lines
            .iter()
            .map(|line| format!("Forwarded: {line}\r\n"))
            .collect();
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        received_by(ForwardedFamily::Forwarded, &text, "10.2.2.2")
    };
    for [lines, host, secure, address] in crate::text::rows(
        r#"
                                                         | a | false | 10.2.2.2
        for=203.0.113.9                                  | a | false | 203.0.113.9
        for=203.0.113.9;proto=https;host=b               | b | true  | 203.0.113.9
        for="[2001:db8::7]:99";proto=HTTPS               | a | true  | 2001:db8::7
        for="203.0.113.9:_x"                             | a | false | 203.0.113.9
        # A caller's own text is to the left of the caller's address.
        for=6.6.6.6;proto=https;host=evil, for=203.0.113.9 | a | false | 203.0.113.9
        for=6.6.6.6;proto=https;host=evil\nfor=203.0.113.9 | a | false | 203.0.113.9
        for=6.6.6.6;proto=https, for=203.0.113.9;proto=http;host=b | b | false | 203.0.113.9
        # Through two trusted proxies: the nearest word that there is.
        for=6.6.6.6, for=203.0.113.9;proto=https;host=b, for=10.1.1.1 | b | true  | 203.0.113.9
        for=203.0.113.9;proto=https;host=b\nfor=10.1.1.1;proto=http | b | false | 203.0.113.9
        # No caller is named: the text to the left proves nothing.
        for=6.6.6.6;proto=https, proto=http;by=10.2.2.2  | a | false | 10.2.2.2
        for=6.6.6.6;host=evil, for=unknown               | a | false | 10.2.2.2
        for=6.6.6.6;host=evil, for=_secret               | a | false | 10.2.2.2
        for=6.6.6.6;host=evil, for=""                    | a | false | 10.2.2.2
        for=6.6.6.6, for="1\\92.0.2.1"                   | a | false | 10.2.2.2
        for=6.6.6.6;host=evil, ;                         | a | false | 10.2.2.2
        for=6.6.6.6, for=_secret, for=10.1.1.1           | a | false | 10.1.1.1
        # Commas and semicolons between quotes separate nothing.
        for="6.6.6.6, for=203.0.113.8", for=203.0.113.9  | a | false | 203.0.113.9
        for=203.0.113.9;by="x, for=6.6.6.6;proto=https;host=evil" | a | false | 203.0.113.9
        # A malformed line of a caller is not read.
        for="6.6.6.6\nfor=203.0.113.9                    | a | false | 203.0.113.9
        for=203.0.113.9\n                                | a | false | 203.0.113.9
    "#,
    ) {
        let lines = &lines.split('\n').collect::<Vec<_>>()[..];
        let secure = secure == "true";
        let expected = (host.to_owned(), secure, address.to_owned());
        assert_eq!(read(lines), Ok(expected), "{lines:?}");
    }
    for lines in [
        // An open quote swallows the text that the proxy wrote after it.
        &["for=\"6.6.6.6, for=203.0.113.9"][..],
        &["for=\"6.6.6.6, for=203.0.113.9;host=\"b\""],
        &["for=203.0.113.9;for=6.6.6.6"],
        &["for=203.0.113.9;proto=gopher"],
        &["for=203.0.113.9;host=\"a/b\""],
        &["for=203.0.113.9;host=\"evil\\.test\""],
        &["for=203.0.113.9;host=\"\""],
        &["for=203.0.113.9", "for=10.1.1.1;x"],
    ] {
        assert_eq!(read(lines), Err(INVALID_FORWARDED), "{lines:?}");
    }
}

fn chosen(
    public: &[PublicUrl],
    mode: PrefixMode,
    host: &str,
    secure: bool,
    path: &str,
) -> Option<String> {
    let origins = origins(public, mode);
    let authority = Authority::parse(host.as_bytes()).expect("a host");
    let received = RequestOrigin {
        authority,
        host: None,
        secure,
        nearest_address: None,
        own_address: None,
        trusted: false,
        family: ForwardedFamily::XForwarded,
    };
    let url = origins.choose(&received, path.as_bytes())?;
    Some(format!("{}{}", url.origin, url.prefix))
}

#[test]
fn the_host_of_a_public_url_is_what_would_be_read() {
    let urls = words(
        "https://api.example http://api.example http://api.example:8080/v1 https://api.example:80 https://192.0.2.1:444
         http://[2001:db8::1] http://[2001:db8::1]:443 https://localhost:8443",
    );
    let urls: Vec<PublicUrl> = urls.into_iter().map(public_url).collect();
    let origins = origins(&urls, PrefixMode::Strip);
    let ports = ["", ":", ":80", ":443", ":0443", ":444", ":8080", ":8443"];
    let names = urls.iter().map(|url| url.origin.host.clone());
    let written = names.flat_map(|name| ports.map(|port| format!("{name}{port}")));
    let mut known = 0;
    for host in written.chain(["API.example", "other.example", "auth.example"].map(str::to_owned)) {
        let head = head(&format!("GET / HTTP/1.1\r\nHost: {host}"));
        let target = RequestTarget::split(&head.uri).expect("a target");
        let received = origins.receive(&head, &target, peer("192.0.2.1"));
        let read = Authority::parse(host.as_bytes()).map_err(|_| INVALID_HOST);
        assert_eq!(received.map(|received| received.authority), read, "{host}");
        known += usize::from(
            urls.iter()
                .any(|url| url.if_written(host.as_bytes()).is_some()),
        );
    }
    assert!(known >= urls.len());
}

#[test]
fn host_chooses_and_the_scheme_only_between_two_of_one_host() {
    let urls = [
        public_url("https://API.example"),
        public_url("http://api.example"),
        public_url("https://other.example:8443"),
    ];
    let choose = |host, secure| chosen(&urls, PrefixMode::Strip, host, secure, "/");
    assert_eq!(
        choose("api.example", true).as_deref(),
        Some("https://api.example")
    );
    assert_eq!(
        choose("api.example", false).as_deref(),
        Some("http://api.example")
    );
    assert_eq!(
        choose("Api.Example:443", false).as_deref(),
        Some("https://api.example")
    );
    assert_eq!(
        choose("other.example:8443", false).as_deref(),
        Some("https://other.example:8443")
    );
    for other in words("other.example api.example. xapi.example api.example:8080") {
        assert_eq!(choose(other, true), None, "{other}");
    }
}

#[test]
fn the_longest_prefix_on_a_segment_boundary_wins() {
    let urls = [public_url("https://a/v1"), public_url("https://a/v1/x/")];
    let choose = |path| chosen(&urls, PrefixMode::Strip, "a", true, path);
    assert_eq!(choose("/v1/x/y").as_deref(), Some("https://a/v1/x"));
    assert_eq!(choose("/v1/xy").as_deref(), Some("https://a/v1"));
    assert_eq!(choose("/v1").as_deref(), Some("https://a/v1"));
    assert_eq!(choose("/v10"), None);
    assert_eq!(choose("/"), None);
    let restored = chosen(&urls[..1], PrefixMode::Restore, "a", true, "/y");
    assert_eq!(restored.as_deref(), Some("https://a/v1"));
}

#[test]
fn a_forwarded_address_is_whole_or_none() {
    for (text, address) in [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:80", "192.0.2.1"),
        ("192.0.2.1:_x.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:65535", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
    ] {
        let found = parse_address(text.as_bytes()).map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some(address), "{text}");
    }
    for text in [
        "",
        "unknown",
        "_hidden",
        "192.0.2.1:",
        "192.0.2.1:x",
        "192.0.2.1:80x",
        "192.0.2.1:123456",
        "192.0.2.1:_",
        "::e:7*",
        "2001:db8::1:x",
        "[192.0.2.1]",
        "[2001:db8::1]x",
        "[2001:db8::1]:",
        "[2001:db8::1",
        "2001:db8::1]",
        "[2001:db8::1%eth0]",
    ] {
        assert_eq!(parse_address(text.as_bytes()), None, "{text}");
    }
}
