//! Names of header fields in settings.

use http::HeaderName;
use serde::de::{Deserialize, Deserializer};
use toml::Value;

use super::folded::FoldedNames;
use crate::base::settings::{Reason, SettingValue, Text, list, plain_values, value_of};

/// Fields that carry the message itself or credentials: setting or dropping one of them would break either.
const RESERVED: &str = "authorization connection content-length content-type content-encoding cookie date expect \
    forwarded host keep-alive proxy-authenticate proxy-authorization proxy-connection range set-cookie te trailer \
    transfer-encoding upgrade via www-authenticate x-forwarded-for x-forwarded-host x-forwarded-prefix x-forwarded-proto";

/// Fields without which a message has no frame, so that they cannot be dropped.
const FRAMING: &[&str] = &["connection", "content-length", "host", "transfer-encoding"];

/// The name as CGI or WSGI passes it to an API: in lower case, with `-` for every byte that is not a letter or digit.
pub fn fold(name: &HeaderName) -> String {
    // It is in lower case already.
    name.as_str()
        .replace(|character: char| !character.is_ascii_alphanumeric(), "-")
}

/// Whether an identity header must not have this name.
#[must_use]
pub fn is_reserved(name: &HeaderName) -> bool {
    let folded = fold(name);
    RESERVED.split(' ').any(|reserved| reserved == folded)
}

/// Names of header fields to drop: one name or, with `*` at the end, every name with this beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPattern(String);

impl HeaderPattern {
    /// The pattern as written, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A field that frames messages and that the pattern would drop.
    pub fn framing_field(&self) -> Option<&'static str> {
        let dropped = FoldedNames::new([&self.0]);
        let mut framing = FRAMING.iter().copied();
        framing.find(|name| dropped.contains(name.as_bytes()))
    }
}

impl Text for HeaderPattern {
    const EXPECTED: &'static str =
        "the name of a header field such as \"X-Real-IP\" or \"X-SSL-Client-*\", or \"default\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        let begin = text.strip_suffix('*').unwrap_or(text);
        if begin.contains('*') {
            return Err("`*` is allowed at the end only".into());
        }
        let name: HeaderName = begin.parse().map_err(|_| "")?;
        let star = &text[begin.len()..];
        Ok(Self(format!("{name}{star}")))
    }
}

plain_values!(HeaderPattern);

/// Names of header fields that are dropped; `"default"` in a written list means the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedHeaders(pub Vec<HeaderPattern>);

impl<'de> Deserialize<'de> for DroppedHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list(deserializer).map(Self)
    }
}

impl SettingValue for DroppedHeaders {
    fn schema() -> serde_json::Value {
        Vec::<HeaderPattern>::schema()
    }

    fn over_default(written: Value, default: &str) -> Value {
        let items = |value| match value {
            Value::Array(items) => items,
            one => vec![one],
        };
        let is_default = |item: &Value| {
            let text = item.as_str();
            text.is_some_and(|text| text.eq_ignore_ascii_case("default"))
        };
        let written = items(written).into_iter();
        let expanded = written.flat_map(|item| match is_default(&item) {
            true => items(value_of(default)),
            false => vec![item],
        });
        Value::Array(expanded.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_an_api_may_confuse() {
        assert_eq!(fold(&HeaderName::from_static("x_auth.user")), "x-auth-user");
        assert!(is_reserved(&HeaderName::from_static("content_length")));
        assert!(is_reserved(&HeaderName::from_static("transfer.encoding")));
        assert!(!is_reserved(&HeaderName::from_static("x-auth-user")));
    }

    #[test]
    fn reads_patterns() {
        let read = |text| HeaderPattern::parse(text).map(|pattern| pattern.0);
        assert_eq!(read("X-Real-IP").as_deref(), Ok("x-real-ip"));
        assert_eq!(read("X_SSL-Client-*").as_deref(), Ok("x_ssl-client-*"));
        for text in ["", "*", "**", "X-*-Y", "X-**", "X y", "X:"] {
            assert!(read(text).is_err(), "{text}");
        }
        let framing = |text| HeaderPattern::parse(text).unwrap().framing_field();
        assert_eq!(framing("Host"), Some("host"));
        assert_eq!(framing("Transfer_Encoding"), Some("transfer-encoding"));
        assert_eq!(framing("Con*"), Some("connection"));
        assert_eq!(framing("Content-L*"), Some("content-length"));
        assert_eq!(framing("Content-Length-*"), None);
        assert_eq!(framing("Content-Type"), None);
    }
}
