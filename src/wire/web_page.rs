//! Addresses of web pages that pages and responses link to.

use thiserror::Error;
use url::Url;

use crate::base::{
    longest,
    settings::{deserialize_text, texts},
};

/// Why a text is not the address of a web page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
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
}

/// The address of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(pub String);

texts! {
    WebUrl: "the address of a web page such as \"https://example.com/terms\"" => |text| web_page(text).map(Self);
}
deserialize_text!(WebUrl);

/// Checks the address of a web page that pages link to, and returns it as a browser writes it.
///
/// # Errors
/// [`InvalidWebPage`]
pub fn web_page(text: &str) -> Result<String, InvalidWebPage> {
    if text.len() > longest::WEB_PAGE {
        return Err(InvalidWebPage::TooLong);
    }
    let url = Url::parse(text)?;
    // A browser would also take `https:example.com` for an address.
    let rest = text.get(url.scheme().len()..);
    let is_whole = rest.is_some_and(|rest| rest.starts_with("://"));
    if !matches!(url.scheme(), "https" | "http") || !is_whole {
        return Err(InvalidWebPage::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidWebPage::UserInfo);
    }
    // Escapes make it longer.
    if url.as_str().len() > longest::WEB_PAGE {
        return Err(InvalidWebPage::TooLong);
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_on_a_web_server() {
        assert_eq!(web_page("HTTPS://A.test").unwrap(), "https://a.test/");
        assert_eq!(
            web_page("http://ä.test/\"?b").unwrap(),
            "http://xn--4ca.test/%22?b"
        );
        for half in ["https:a.test", "https:/a.test", "http:\\\\a.test"] {
            assert_eq!(web_page(half), Err(InvalidWebPage::Scheme), "{half}");
        }
        assert_eq!(web_page("javascript:alert(1)"), Err(InvalidWebPage::Scheme));
        assert_eq!(web_page("data:text/html,x"), Err(InvalidWebPage::Scheme));
        assert_eq!(web_page("https://a@b.test/"), Err(InvalidWebPage::UserInfo));
        let long = |count| format!("https://a.test/{}", "é".repeat(count));
        assert_eq!(web_page(&long(338)).unwrap().len(), 2043);
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
}
