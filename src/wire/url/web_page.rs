//! Addresses of web pages that pages and responses link to.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;
use url::Url;

use crate::base::{
    settings::{deserialize_text, texts},
    text::longest,
};

/// Why a text is not the address of a web page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidWebPage {
    /// The text is not a URL.
    #[error(transparent)]
    Url(#[from] url::ParseError),
    /// The scheme is not one of a web server.
    #[error("it is neither https:// nor http://")]
    Scheme,
    /// The URL has a user name or a password.
    #[error("it has a user name in it")]
    UserInfo,
    /// The text has more than [`longest::WEB_PAGE`] bytes.
    #[error("it is longer than {} bytes", longest::WEB_PAGE)]
    TooLong,
    /// A browser reads the text as this other one, in which each character is one of a URL.
    #[error("it is not written as a URL is; write {0}")]
    Spelling(String),
    /// The text has a character that a URL has only as an escape.
    #[error("it has {0:?} in it, which a URL cannot have; write {1} there")]
    Character(char, String),
}

/// The address of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(pub String);

texts! {
    WebUrl: "the address of a web page such as \"https://example.com/terms\"" => |text| web_page(text).map(Self);
}
deserialize_text!(WebUrl);

/// Checks the address of a web page that pages link to, and keeps it as it is written.
///
/// # Errors
/// [`InvalidWebPage`], if the text is not an absolute URL of a web server.
pub fn web_page(text: &str) -> Result<String, InvalidWebPage> {
    if text.len() > longest::WEB_PAGE {
        return Err(InvalidWebPage::TooLong);
    }
    let url = Url::parse(text)?;
    // A browser resolves `https:example.com` against the page with the link.
    let rest = text.trim_start().get(url.scheme().len()..);
    let is_absolute = rest.is_some_and(|rest| rest.starts_with("://"));
    if !matches!(url.scheme(), "https" | "http") || !is_absolute {
        return Err(InvalidWebPage::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidWebPage::UserInfo);
    }
    match foreign(text) {
        None => Ok(text.to_owned()),
        Some(_) if foreign(url.as_str()).is_none() => Err(InvalidWebPage::Spelling(url.into())),
        Some(foreign) => {
            let escapes = utf8_percent_encode(&foreign.to_string(), NON_ALPHANUMERIC).to_string();
            Err(InvalidWebPage::Character(foreign, escapes))
        }
    }
}

/// The first character that a URI does not have at its place (RFC 3986 §2 and §3): white space, a control, a delimiter, one
/// beyond ASCII, a bracket after the host, a second #, or a % before anything but two hexadecimal digits.
fn foreign(text: &str) -> Option<char> {
    let host = text.find("://").map_or(0, |at| at + 3);
    let path = text[host..].find(['/', '?', '#']).map(|at| host + at);
    let fragment = text.find('#');
    let is_escape = |at: usize| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut all = text.char_indices();
    let found = all.find(|&(at, character)| match character {
        '%' => !is_escape(at),
        '#' => fragment != Some(at),
        '[' | ']' => path.is_some_and(|path| at > path),
        other => !other.is_ascii_graphic() || "\"<>\\^`{|}".contains(other),
    });
    found.map(|(_, character)| character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_on_a_web_server_and_kept_as_it_is_written() {
        for page in [
            "https://A.test",
            "HTTPS://a.test:443/b/../c",
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
        for other in ["javascript:alert(1)", "data:text/html,x", "ftp://a.test/"] {
            assert_eq!(web_page(other), Err(InvalidWebPage::Scheme), "{other}");
        }
        for named in ["https://a@b.test/", "https://:a@b.test/"] {
            assert_eq!(web_page(named), Err(InvalidWebPage::UserInfo), "{named}");
        }
        let long = |count| format!("https://a.test/{}", "a".repeat(count));
        assert!(web_page(&long(2033)).is_ok());
        assert_eq!(web_page(&long(2034)), Err(InvalidWebPage::TooLong));
        for broken in [
            "",
            "/terms",
            "a.test",
            "https://",
            "https://a b.test/",
            "https://a.test:65536/",
        ] {
            assert!(
                matches!(web_page(broken), Err(InvalidWebPage::Url(_))),
                "{broken}"
            );
        }
    }

    #[test]
    fn an_error_says_how_the_page_is_written() {
        for (text, written) in [
            ("http://ä.test/\"?b", "http://xn--4ca.test/%22?b"),
            ("https://a.test/my page", "https://a.test/my%20page"),
            (" https://a.test/", "https://a.test/"),
            ("https://a.test/\n", "https://a.test/"),
            ("https://a.test/\u{7f}", "https://a.test/%7F"),
            ("https://a.test/a\\b", "https://a.test/a/b"),
        ] {
            assert_eq!(
                web_page(text),
                Err(InvalidWebPage::Spelling(written.to_owned()))
            );
            assert!(web_page(written).is_ok(), "{written}");
        }
        for (text, says) in [
            (
                "https://a.test/?a|b",
                "'|' in it, which a URL cannot have; write %7C",
            ),
            ("https://a.test/?a\\", "write %5C"),
            ("https://a.test/?a[]", "write %5B"),
            ("https://a.test/#a#b", "write %23"),
            ("https://a.test/100%", "write %25"),
            ("https://a.test/%zz", "write %25"),
        ] {
            let error = web_page(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
