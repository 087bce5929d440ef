//! The methods of operations.

use std::borrow::Cow;

use super::setting::Text;

/// The standard methods (RFC 9110 §9.3, RFC 5789) that an operation may list.
const STANDARD: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// A method of an operation: any token but CONNECT and TRACE, which are never forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MethodName(String);

impl MethodName {
    /// The method as it stands in a request line.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Text for MethodName {
    fn expected() -> Cow<'static, str> {
        "a method such as \"GET\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let upper = text.to_ascii_uppercase();
        if matches!(upper.as_str(), "CONNECT" | "TRACE") {
            return Err("CONNECT and TRACE are never forwarded".into());
        }
        // Methods are compared with case, and an API that knows `get` is yet to be met.
        if upper != text && STANDARD.contains(&upper.as_str()) {
            return Err(format!("write {upper:?}").into());
        }
        match http::Method::from_bytes(text.as_bytes()) {
            Ok(method) => Ok(Self(method.as_str().to_owned())),
            Err(_) => Err(Cow::Borrowed("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_tokens_with_case() {
        for (text, reason) in [
            ("connect", "CONNECT and TRACE are never forwarded"),
            ("TRACE", "CONNECT and TRACE are never forwarded"),
            ("get", "write \"GET\""),
            ("GET POST", ""),
            ("", ""),
        ] {
            assert_eq!(MethodName::parse(text).unwrap_err(), reason, "{text}");
        }
        for text in ["GET", "PROPFIND", "m-search"] {
            assert_eq!(MethodName::parse(text).unwrap().as_str(), text);
        }
    }
}
