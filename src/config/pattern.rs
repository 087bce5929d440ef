//! The path patterns of operations: `/members/{id}/albums/{*rest}`.

use std::{borrow::Cow, fmt};

use super::{setting::Text, url::plain_segment};

/// A path pattern, checked: it begins with a slash, and each part of it can match a path that is let through at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    shape: String,
}

impl PathPattern {
    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pattern without the names of its parameters: two patterns of one shape match the same paths.
    #[must_use]
    pub fn shape(&self) -> &str {
        &self.shape
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Text for PathPattern {
    fn expected() -> Cow<'static, str> {
        "a path such as \"/members/{id}\" or \"/files/{*rest}\"".into()
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let Some(segments) = text.strip_prefix('/') else {
            return Err("it begins with no slash".into());
        };
        let mut shape = String::new();
        let mut names = Vec::new();
        let mut ended = false;
        for segment in segments.split('/') {
            if ended {
                return Err("{*…} is the last segment".into());
            }
            shape.push('/');
            match parameter(segment)? {
                Some((name, rest)) => {
                    if names.contains(&name) {
                        return Err("two of its parameters have one name".into());
                    }
                    names.push(name);
                    ended = rest;
                    shape.push_str(if rest { "{*}" } else { "{}" });
                }
                None if segment.is_empty() && segments.is_empty() => {}
                None if segment.is_empty() => {
                    return Err(
                        "an empty segment never matches; a path does not end with a slash".into(),
                    );
                }
                None => {
                    plain_segment(segment)?;
                    shape.push_str(segment);
                }
            }
        }
        Ok(Self {
            text: text.to_owned(),
            shape,
        })
    }
}

/// Reads a segment as a parameter: its name, and whether it takes all that is left.
fn parameter(segment: &str) -> Result<Option<(&str, bool)>, Cow<'static, str>> {
    if !segment.contains(['{', '}']) {
        return Ok(None);
    }
    let inner = segment
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .ok_or("a parameter is a whole segment")?;
    let (name, rest) = match inner.strip_prefix('*') {
        Some(name) => (name, true),
        None => (inner, false),
    };
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(valid) {
        return Err("the name of a parameter has only A-Z a-z 0-9 _ in it".into());
    }
    Ok(Some((name, rest)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tells_patterns_of_one_shape() {
        for (text, shape) in [
            ("/", "/"),
            ("/members", "/members"),
            ("/members/{id}", "/members/{}"),
            (
                "/members/{member_id}/albums/{*rest}",
                "/members/{}/albums/{*}",
            ),
            ("/{*all}", "/{*}"),
            ("/caf%C3%A9/a:b@c", "/caf%C3%A9/a:b@c"),
        ] {
            let pattern = PathPattern::parse(text).unwrap();
            assert_eq!(pattern.shape(), shape, "{text}");
        }
    }

    #[test]
    fn refuses_patterns_that_could_never_match() {
        for (text, reason) in [
            ("", "it begins with no slash"),
            ("members", "it begins with no slash"),
            (
                "/members/",
                "an empty segment never matches; a path does not end with a slash",
            ),
            (
                "//",
                "an empty segment never matches; a path does not end with a slash",
            ),
            ("/a/../b", "it has a dot segment"),
            ("/a;b", "it has a ; or \\ in it, which never matches"),
            ("/a?b", "a byte in it must be percent-encoded"),
            ("/a*", ""),
            ("/é", "a byte in it must be percent-encoded"),
            (
                "/%7Euser",
                "letters, digits and - . _ ~ are written without escape",
            ),
            ("/a{id}", "a parameter is a whole segment"),
            ("/{id}.json", "a parameter is a whole segment"),
            (
                "/{}",
                "the name of a parameter has only A-Z a-z 0-9 _ in it",
            ),
            (
                "/{*}",
                "the name of a parameter has only A-Z a-z 0-9 _ in it",
            ),
            (
                "/{{a}}",
                "the name of a parameter has only A-Z a-z 0-9 _ in it",
            ),
            ("/{*rest}/a", "{*…} is the last segment"),
            ("/{a}/{a}", "two of its parameters have one name"),
        ] {
            let read = PathPattern::parse(text)
                .map(|_| ())
                .map_err(Cow::into_owned);
            let expected = if reason.is_empty() {
                Ok(())
            } else {
                Err(reason.to_owned())
            };
            assert_eq!(read, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "[/{}*a%.~é;]{0,12}") {
            let _ = PathPattern::parse(&text);
        }
    }
}
