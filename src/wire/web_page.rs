//! Addresses of web pages that pages and responses link to.

use std::net::{Ipv4Addr, Ipv6Addr};

use thiserror::Error;
use url::Url;

use crate::base::{
    longest,
    settings::{deserialize_text, texts},
};

/// Why a text is not the address of a web page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidWebPage {
    /// It is not a URL.
    #[error(transparent)]
    Url(#[from] url::ParseError),
    /// It leads elsewhere than to a web server.
    #[error("it is neither https:// nor http://")]
    Scheme,
    /// It has a user name or a password in it.
    #[error("it has a user name in it")]
    UserInfo,
    /// It has more than [`longest::WEB_PAGE`] bytes.
    #[error("it is longer than {} bytes", longest::WEB_PAGE)]
    TooLong,
    /// A browser reads it, but calls it by another address.
    #[error("it is not written as a URL is; write {0}")]
    Spelling(String),
    /// It has a character that a URL has only as an escape.
    #[error("it has {0:?} in it, which a URL cannot have; write {1} there")]
    Character(char, String),
    /// It has a `%` that begins no escape.
    #[error(
        "it has a % that is not followed by two hexadecimal digits; write %25 for the character %"
    )]
    Escape,
    /// Its host or its port is written in another way.
    #[error(
        "its host is not a name, an IPv4 address or an IPv6 address in brackets, or its port is not a number from 1 to 65535"
    )]
    Authority,
}

/// The address of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(pub String);

texts! {
    WebUrl: "the address of a web page such as \"https://example.com/terms\"" => |text| web_page(text).map(Self);
}
deserialize_text!(WebUrl);

/// Checks the address of a web page that pages link to. The pattern `WebPage` of the OpenAPI document accepts the same texts.
///
/// # Errors
/// [`InvalidWebPage`]
pub fn web_page(text: &str) -> Result<String, InvalidWebPage> {
    if text.len() > longest::WEB_PAGE {
        return Err(InvalidWebPage::TooLong);
    }
    match is_web_page(text) {
        true => Ok(text.to_owned()),
        false => Err(mistake(text)),
    }
}

/// Whether this is an absolute URI of RFC 3986 with one of two schemes, a host that no parser reads in two ways, and no user name.
fn is_web_page(text: &str) -> bool {
    let rest = text.strip_prefix("https://");
    let Some(rest) = rest.or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // The port is after the last colon, unless that is one of an IPv6 address.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    is_host(host)
        && port.is_none_or(is_port)
        && has_only(path, b"/")
        && has_only(query, b"/?")
        && has_only(fragment, b"/?")
}

/// A name whose last label begins with a letter, so that nobody reads a number in it, or an address in its usual form.
fn is_host(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(address) = bare {
        return !address.contains('.') && address.parse::<Ipv6Addr>().is_ok();
    }
    let is_label = |label: &str| {
        let has_ends = [label.bytes().next(), label.bytes().next_back()]
            .iter()
            .all(|it| it.is_some_and(|byte| byte.is_ascii_alphanumeric()));
        has_ends
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = host.rsplit('.').next().unwrap_or(host);
    let is_name = last.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name && host.split('.').all(is_label) || host.parse::<Ipv4Addr>().is_ok()
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit())
        && !port.starts_with('0')
        && port.parse::<u16>().is_ok()
}

/// Characters of a path segment (RFC 3986 §3.3), those in `more`, and escapes.
fn has_only(text: &str, more: &[u8]) -> bool {
    let mut parts = text.split('%');
    let is_plain = |part: &str| {
        part.bytes()
            .all(|byte| is_plain(byte) || more.contains(&byte))
    };
    parts.next().is_none_or(is_plain)
        && parts.all(|part| is_escape(part) && part.get(2..).is_some_and(is_plain))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

/// Whether these digits after a `%` make an escape.
fn is_escape(after: &str) -> bool {
    let digits = after.as_bytes().get(..2);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Finds why a text is not the address of a web page.
fn mistake(text: &str) -> InvalidWebPage {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return error.into(),
    };
    // A browser would also take `https:example.com` for an address.
    let rest = text.trim_start().get(url.scheme().len()..);
    let is_whole = rest.is_some_and(|rest| rest.starts_with("://"));
    if !matches!(url.scheme(), "https" | "http") || !is_whole {
        return InvalidWebPage::Scheme;
    }
    if !url.username().is_empty() || url.password().is_some() {
        return InvalidWebPage::UserInfo;
    }
    // Escapes make it longer.
    if url.as_str().len() > longest::WEB_PAGE {
        return InvalidWebPage::TooLong;
    }
    if is_web_page(url.as_str()) {
        return InvalidWebPage::Spelling(url.into());
    }
    let is_unknown = |it: &char| !it.is_ascii() || !is_plain(*it as u8) && !"/?#%[]".contains(*it);
    let after_host = url[url::Position::BeforePath..].to_owned();
    if let Some(unknown) = after_host
        .chars()
        .find(|it| is_unknown(it) || "[]".contains(*it))
    {
        let escapes = unknown
            .to_string()
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        return InvalidWebPage::Character(unknown, escapes);
    }
    if after_host.split('%').skip(1).any(|part| !is_escape(part)) {
        return InvalidWebPage::Escape;
    }
    // A second # is left.
    match after_host.matches('#').count() {
        0 | 1 => InvalidWebPage::Authority,
        _ => InvalidWebPage::Character('#', "%23".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_on_a_web_server() {
        for page in [
            "https://A.test",
            "http://4.my_shop.xn--4ca.test:8080/a;b=(1)/%C3%A9?q=a/b?&#top",
            "http://192.168.0.1",
            "https://[2001:db8::1]:65535?a",
            "https://localhost#a",
        ] {
            assert_eq!(web_page(page).as_deref(), Ok(page));
        }
        for half in ["https:a.test", "https:/a.test", "http:\\\\a.test"] {
            assert_eq!(web_page(half), Err(InvalidWebPage::Scheme), "{half}");
        }
        assert_eq!(web_page("javascript:alert(1)"), Err(InvalidWebPage::Scheme));
        assert_eq!(web_page("data:text/html,x"), Err(InvalidWebPage::Scheme));
        assert_eq!(web_page("https://a@b.test/"), Err(InvalidWebPage::UserInfo));
        let long = |count| format!("https://a.test/{}", "é".repeat(count));
        assert!(web_page(&format!("https://a.test/{}", "a".repeat(2033))).is_ok());
        for count in [339, 1_000_000] {
            assert_eq!(web_page(&long(count)), Err(InvalidWebPage::TooLong));
        }
        for broken in ["", "/terms", "a.test", "https://"] {
            assert!(
                matches!(web_page(broken), Err(InvalidWebPage::Url(_))),
                "{broken}"
            );
        }
    }

    #[test]
    fn an_error_says_how_the_page_is_written() {
        for (text, written) in [
            ("HTTPS://A.test", "https://a.test/"),
            ("http://ä.test/\"?b", "http://xn--4ca.test/%22?b"),
            ("https://a.test/my page", "https://a.test/my%20page"),
            (" https://a.test/", "https://a.test/"),
            ("https://1.2.3/", "https://1.2.0.3/"),
            ("https://a.test:/", "https://a.test/"),
            ("https://a.test:0443/", "https://a.test/"),
        ] {
            assert_eq!(
                web_page(text),
                Err(InvalidWebPage::Spelling(written.to_owned()))
            );
            assert!(web_page(written).is_ok(), "{written}");
        }
        let says = |text: &str| web_page(text).unwrap_err().to_string();
        assert!(
            says("https://a.test/?a|b").contains("'|' in it, which a URL cannot have; write %7C")
        );
        assert!(says("https://a.test/?a[]").contains("write %5B"));
        assert!(says("https://a.test/#a#b").contains("write %23"));
        assert!(says("https://a.test/100%").contains("write %25"));
        for host in [
            "https://a.-b.test/",
            "https://a.test./",
            "https://a.test:0/",
        ] {
            assert_eq!(web_page(host), Err(InvalidWebPage::Authority), "{host}");
        }
        assert!(says("https://a.test:65536/").contains("port"));
    }
}
