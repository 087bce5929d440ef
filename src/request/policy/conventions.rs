//! The service's conventions for resource paths, as far as a machine can decide them.
//!
//! The description numbers nine rules. Rule 2 (the method is the action), the `Accept` half of rule 7 and rule 9
//! (plural collections) are the API's to keep; rule 8's shape follows from rules 1 and 3.

use std::borrow::Cow;

use crate::oauth::percent;

/// Returns the first rule that `path` breaks, its escapes decoded.
pub fn broken_rule(path: &[u8]) -> Option<&'static str> {
    let inner = path.strip_prefix(b"/").unwrap_or(path);
    if inner.is_empty() {
        return None;
    }
    if inner.ends_with(b"/") {
        return Some("rule 4: a path does not end with a slash");
    }
    for segment in inner.split(|&byte| byte == b'/') {
        if segment.is_empty() {
            return Some("rule 3: a slash separates hierarchy levels, and none is empty");
        }
        let segment = percent::decode(segment).unwrap_or(Cow::Borrowed(segment));
        if VERBS.iter().any(|verb| verb.as_bytes() == &*segment) {
            return Some("rule 1: a path names a resource with nouns, it has no verbs");
        }
        if segment.contains(&b'_') {
            return Some("rule 5: an underscore is not used in paths");
        }
        if segment.iter().any(u8::is_ascii_uppercase) {
            return Some("rule 6: paths are lowercase");
        }
    }
    let last = inner.rsplit(|&byte| byte == b'/').next();
    let last = last.unwrap_or_default();
    if has_extension(&percent::decode(last).unwrap_or(Cow::Borrowed(last))) {
        return Some("rule 7: a path has no file extension");
    }
    None
}

/// Verbs for actions that rule 2 leaves to the method; verbs that are nouns too (`order`, `search`) are not listed.
const VERBS: [&str; 14] = [
    "add", "create", "delete", "destroy", "edit", "fetch", "get", "insert", "modify", "patch",
    "put", "remove", "save", "update",
];

/// Whether a name is followed by a dot and one to five letters or digits, the first a letter: `a.json`, but not `v1.2`.
fn has_extension(segment: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', segment) else {
        return false;
    };
    let extension = &segment[dot + 1..];
    dot > 0
        && (1..=5).contains(&extension.len())
        && extension.first().is_some_and(u8::is_ascii_alphabetic)
        && extension.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_rule() {
        for (path, rule) in [
            ("/", None),
            ("/members/1", None),
            ("/members/%C3%A9", None),
            ("/versions/v1.2", None),
            ("/members/1/blog-posts", None),
            ("/members/delete/1", Some("rule 1")),
            ("/members/d%65lete/1", Some("rule 1")),
            ("/blog%5Fposts", Some("rule 5")),
            ("/%4Dembers", Some("rule 6")),
            ("/members/1%2Ejson", Some("rule 7")),
            ("/members/%zz", None),
            ("/members//1", Some("rule 3")),
            ("/members/", Some("rule 4")),
            ("/blog_posts", Some("rule 5")),
            ("/Members", Some("rule 6")),
            ("/members/1.json", Some("rule 7")),
        ] {
            let broken = broken_rule(path.as_bytes());
            assert_eq!(broken.map(|text| &text[..6]), rule, "{path}");
        }
    }
}
