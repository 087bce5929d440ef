//! Names of header fields in settings.

use std::borrow::Cow;

use http::HeaderName;

use super::setting::Text;

/// Fields that carry the message itself or credentials: setting or dropping one of them would break either.
const RESERVED: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "content-encoding",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-prefix",
    "x-forwarded-proto",
];

/// Fields without which a message has no frame, so that they cannot be dropped.
const FRAMING: &[&str] = &["connection", "content-length", "host", "transfer-encoding"];

/// The name as an API behind CGI or WSGI sees it: without case, every byte but letters and digits a `-`.
pub(super) fn fold(name: &str) -> String {
    name.chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() {
                character.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}

/// Whether an identity header must not have this name.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    RESERVED.contains(&fold(name.as_str()).as_str())
}

/// Whether a field of this name frames the message.
pub(super) fn is_framing(name: &HeaderName) -> bool {
    FRAMING.contains(&name.as_str())
}

impl Text for HeaderName {
    fn expected() -> Cow<'static, str> {
        "the name of a header field such as \"X-Auth-User\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        text.parse().map_err(|_| Cow::Borrowed(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_an_api_may_confuse() {
        assert_eq!(fold("X_Auth.User"), "x-auth-user");
        assert!(is_reserved(&HeaderName::from_static("content_length")));
        assert!(is_reserved(&HeaderName::from_static("transfer.encoding")));
        assert!(!is_reserved(&HeaderName::from_static("x-auth-user")));
    }
}
