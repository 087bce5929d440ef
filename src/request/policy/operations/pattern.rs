//! The path patterns of operations: `/members/{id}/albums/{*rest}`.

use std::{borrow::Cow, fmt, str::FromStr};

use super::similar::folded_segment;
use crate::{
    request::{
        parse::target::has_dot_segment,
        policy::path::{AmbiguousPath, SegmentData, decode},
    },
    wire::url::origin::plain_segment,
};

/// Why a text is not a pattern.
type Reason = Cow<'static, str>;

/// A path pattern, checked: it begins with a slash, and each part of it can match a path that is let through at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    pub(in crate::request::policy) text: String,
    pub(in crate::request::policy) shape: Vec<PathSegment>,
}

/// The matches of a segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::request::policy) enum PathSegment {
    /// This, all its escapes decoded.
    Literal(Vec<u8>),
    /// Any one segment.
    Parameter,
    /// All that is left, one segment at least.
    Rest,
}

impl PathPattern {
    /// Whether the two match the same paths: they are equal once escapes are decoded and parameters have no names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.shape == other.shape
    }

    /// What of it matches only where that is data of a segment.
    pub fn ambiguities(&self) -> impl Iterator<Item = AmbiguousPath> {
        let has = |texts: &[&str]| texts.iter().any(|text| self.text.contains(text));
        let met = [
            (
                AmbiguousPath::EncodedSeparator,
                has(&["%2F", "%5C", "%25", "%3B"]),
            ),
            (AmbiguousPath::Parameters, has(&[";"])),
            (AmbiguousPath::EmptySegment, has(&["//"])),
        ];
        met.into_iter()
            .filter_map(|(what, is_met)| is_met.then_some(what))
    }

    /// A path that it matches.
    pub fn example(&self) -> String {
        let segments = self.text.split('/').map(|segment| match segment {
            segment if segment.starts_with('{') => "1",
            segment => segment,
        });
        Vec::from_iter(segments).join("/")
    }

    /// Whether it has neither parameters nor a rest.
    pub(in crate::request::policy) fn is_literal(&self) -> bool {
        let is_literal = |segment: &PathSegment| matches!(segment, PathSegment::Literal(_));
        self.shape.iter().all(is_literal)
    }

    /// Whether its last segment, a slash at the end aside, is a literal.
    pub(in crate::request::policy) fn ends_in_literal(&self) -> bool {
        let slash = PathSegment::Literal(Vec::new());
        let shape = self.shape.strip_suffix(&[slash]).unwrap_or(&self.shape);
        matches!(shape.last(), Some(PathSegment::Literal(_)))
    }

    /// Its segments without what some APIs ignore.
    pub(in crate::request::policy) fn folded_shape(&self) -> Vec<PathSegment> {
        let slash = PathSegment::Literal(Vec::new());
        let shape = self.shape.strip_suffix(&[slash]).unwrap_or(&self.shape);
        let folded = shape.iter().map(|segment| match segment {
            PathSegment::Literal(literal) => {
                PathSegment::Literal(folded_segment(literal).into_owned())
            }
            other => other.clone(),
        });
        folded.collect()
    }

    /// Whether some path matches both, and one has a parameter where the other has a literal: an API that ignores case
    /// can then take a value of the parameter for the literal.
    #[must_use]
    pub fn is_confusable(&self, other: &Self) -> bool {
        let is_literal = |segment: &PathSegment| matches!(segment, PathSegment::Literal(_));
        let (one, other) = (&self.shape, &other.shape);
        let met = one.iter().zip(other).position(|(one, other)| {
            matches!(
                (one, other),
                (PathSegment::Rest, _) | (_, PathSegment::Rest)
            ) || one != other && is_literal(one) && is_literal(other)
        });
        let same_length = one.len() == other.len();
        let same = met.unwrap_or(one.len().min(other.len()));
        let differs = one[..same] != other[..same];
        match met.map(|at| (&one[at], &other[at])) {
            None => same_length && differs,
            Some((PathSegment::Rest, _)) => differs || other[same..].iter().any(is_literal),
            Some((_, PathSegment::Rest)) => differs || one[same..].iter().any(is_literal),
            Some(_) => false,
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PathPattern {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let Some(segments) = text.strip_prefix('/') else {
            return Err("it begins with no slash".into());
        };
        let mut shape = Vec::new();
        let mut names = Vec::new();
        let mut ended = false;
        let mut segments = segments.split('/').peekable();
        while let Some(segment) = segments.next() {
            if ended {
                return Err("{*…} is the last segment".into());
            }
            match parameter(segment)? {
                Some((name, rest)) => {
                    if names.contains(&name) {
                        return Err("two of its parameters have one name".into());
                    }
                    names.push(name);
                    ended = rest;
                    shape.push(if rest {
                        PathSegment::Rest
                    } else {
                        PathSegment::Parameter
                    });
                }
                // The root has no segment.
                None if segment.is_empty() && segments.peek().is_none() && shape.is_empty() => {}
                // A slash at the end is an empty segment.
                None if segment.is_empty() && segments.peek().is_none() => {
                    shape.push(PathSegment::Literal(Vec::new()));
                }
                None => {
                    plain_segment(segment, true).map_err(|error| error.to_string())?;
                    if has_dot_segment(segment.as_bytes()) {
                        return Err("it has a dot segment".into());
                    }
                    let literal = decode(segment.as_bytes(), SegmentData::ALL);
                    let literal = literal.map_err(|error| error.to_string())?;
                    shape.push(PathSegment::Literal(literal.text.into_owned()));
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
fn parameter(segment: &str) -> Result<Option<(&str, bool)>, Reason> {
    if !segment.contains(['{', '}']) {
        if let Some(name) = segment.strip_prefix(':').filter(|name| !name.is_empty()) {
            return Err(format!(
                "\":{name}\" is not a parameter; write {{{name}}}, or %3A for a colon"
            )
            .into());
        }
        if segment.contains('*') {
            return Err(
                "\"*\" matches nothing but itself; write {name} for one segment, {*rest} for all that is left, or %2A \
                 for an asterisk"
                    .into(),
            );
        }
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

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[test]
    fn finds_patterns_that_an_api_without_case_confuses() {
        for (one, other, confusable) in [
            ("/users/me", "/users/{id}", true),
            ("/{a}/me", "/users/{b}", true),
            ("/users/me", "/{*rest}", true),
            ("/users/{id}/x", "/users/me/{*rest}", true),
            ("/users/{id}", "/{*rest}", true),
            ("/{a}/{b}", "/{*rest}", false),
            ("/users/me", "/users/you", false),
            ("/users/me", "/users/{id}/x", false),
            ("/users/{id}", "/members/{*rest}", false),
            ("/users/{a}", "/users/{b}", false),
            ("/", "/{*rest}", false),
        ] {
            let (one, other) = (pattern(one), pattern(other));
            assert_eq!(one.is_confusable(&other), confusable, "{one} {other}");
            assert_eq!(other.is_confusable(&one), confusable, "{other} {one}");
        }
    }

    #[test]
    fn compares_patterns_decoded_and_without_names() {
        for (one, other, same) in [
            ("/", "/", true),
            ("/members/{id}", "/members/{name}", true),
            ("/members/{id}/{*rest}", "/members/{x}/{*y}", true),
            ("/users/%40me", "/users/@me", true),
            ("/{a}/%40me", "/{b}/@me", true),
            ("/v1/items%3Apurge", "/v1/items:purge", true),
            ("/%C3%A9", "/%C3%A9", true),
            ("/%C3%A9", "/%C3%A8", false),
            ("/%7Bid%7D", "/{id}", false),
            ("/{id}", "/{*id}", false),
            ("/a", "/a/b", false),
            ("/a", "/a/", false),
            ("/{a}/", "/{b}/", true),
            ("/a", "/A", false),
        ] {
            let (one, other) = (pattern(one), pattern(other));
            assert_eq!(one.is_same(&other), same, "{one} {other}");
        }
    }

    const WILDCARD: &str = "\"*\" matches nothing but itself; write {name} for one segment, {*rest} for all that is left, or %2A for an asterisk";

    #[test]
    fn rejects_patterns_that_could_never_match() {
        for [text, reason] in crate::text::rows(
            r#"
                       | it begins with no slash
            members    | it begins with no slash
            /members/  |
            //         |
            /a//b      |
            /{*rest}/  | {*…} is the last segment
            /a/../b    | it has a dot segment
            /a;b       |
            /a%2Fb     |
            /a%2fb     | an escape is % and two of 0-9 A-F
            /a\\b      | it has a ; or \\ in it, which never matches
            /a%2F..    | it has a dot segment
            /..;x      | it has a dot segment
            /%252E./a  | it has a dot segment
            /a?b       | a byte in it must be percent-encoded
            /users/:id | ":id" is not a parameter; write {id}, or %3A for a colon
            /a/*       | {WILDCARD}
            /a/**      | {WILDCARD}
            /a*        | {WILDCARD}
            /a%2A      |
            /a:b       |
            /é         | a byte in it must be percent-encoded
            /%7Euser   | letters, digits and - . _ ~ are written without escape
            /a{id}     | a parameter is a whole segment
            /{id}.json | a parameter is a whole segment
            /{}        | the name of a parameter has only A-Z a-z 0-9 _ in it
            /{*}       | the name of a parameter has only A-Z a-z 0-9 _ in it
            /{{a}}     | the name of a parameter has only A-Z a-z 0-9 _ in it
            /{*rest}/a | {*…} is the last segment
            /{a}/{a}   | two of its parameters have one name
        "#,
        ) {
            let read = text
                .parse::<PathPattern>()
                .map(|_| ())
                .map_err(Reason::into_owned);
            let expected = match reason {
                "" => Ok(()),
                reason => Err(reason.replace("{WILDCARD}", WILDCARD)),
            };
            assert_eq!(read, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "[/{}*a%.~é;]{0,12}") {
            let _ = text.parse::<PathPattern>();
        }
    }
}
