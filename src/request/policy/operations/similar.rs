//! Paths that some API takes for another one: it ignores letter case, white space or a dot at the end of a segment, the
//! slash at the end of the path, an extension there, which it takes for the format of the response, or the name of a script.

use std::borrow::Cow;

use super::readings::readings;

/// Whether some API may read a path as this other one, which is in plain spelling.
#[must_use]
pub fn may_be_read_as(path: &[u8], other: &[u8]) -> bool {
    let Some(readings) = readings(path) else {
        return true;
    };
    let other = folded(other);
    also_by_script(readings).any(|reading| {
        let read = folded(&reading);
        read == other || without_extension(&read) == Some(&other)
    })
}

/// A decoded path without what such an API ignores.
pub(in crate::request::policy) fn folded(path: &[u8]) -> Cow<'_, [u8]> {
    if is_folded(path) {
        return Cow::Borrowed(path);
    }
    let inner = path.strip_prefix(b"/").unwrap_or(path);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    let mut whole = Vec::with_capacity(path.len());
    for segment in inner.split(|&byte| byte == b'/') {
        whole.push(b'/');
        whole.extend_from_slice(&folded_segment(segment));
    }
    Cow::Owned(whole)
}

/// A path without the extension of its last segment, such as `.json`, if it has one.
pub(in crate::request::policy) fn without_extension(path: &[u8]) -> Option<&[u8]> {
    let last = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let dot = last + memchr::memrchr(b'.', &path[last..]).filter(|dot| *dot > 0)?;
    let extension = &path[dot + 1..];
    let is_one = !extension.is_empty() && extension.iter().all(u8::is_ascii_alphanumeric);
    is_one.then(|| &path[..dot])
}

/// The paths that a script in a path may read, as PHP reads `/app/index.php/members`: what follows the name of the script,
/// also with what stands before it, and its own path. A server looks for a script no further than at the first name of one.
pub(in crate::request::policy) fn read_by_script(path: &[u8]) -> Option<[Vec<u8>; 3]> {
    memchr::memchr(b'.', path)?;
    let mut start = 0;
    let end = memchr::memchr_iter(b'/', path).skip(1).find(|&end| {
        let is_first = is_script(&path[start + 1..end]);
        start = if is_first { start } else { end };
        is_first
    })?;
    let (own, after) = path.split_at(end);
    let with_before = [&path[..start], after].concat();
    Some([after.to_vec(), with_before, own.to_vec()])
}

/// These readings of a path, and those of a script in them.
pub(in crate::request::policy) fn also_by_script(
    readings: impl Iterator<Item = Vec<u8>>,
) -> impl Iterator<Item = Vec<u8>> {
    readings.flat_map(|reading| {
        let by_script = read_by_script(&reading).into_iter().flatten();
        std::iter::once(reading).chain(by_script)
    })
}

/// Whether a segment is the name of a program that gets the rest of the path (RFC 3875 §4.1.5).
pub(in crate::request::policy) fn is_script(segment: &[u8]) -> bool {
    let dot = memchr::memrchr(b'.', segment);
    let extension = dot.map_or(&b""[..], |dot| &segment[dot + 1..]);
    [&b"php"[..], b"cgi", b"fcgi"]
        .iter()
        .any(|it| extension.eq_ignore_ascii_case(it))
}

/// A decoded segment without what such an API ignores.
pub(in crate::request::policy) fn folded_segment(segment: &[u8]) -> Cow<'_, [u8]> {
    let end = segment.iter().rposition(|byte| !is_ignored_at_end(*byte));
    // A segment of nothing else stays what it is.
    let compared = &segment[..end.map_or(segment.len(), |end| end + 1)];
    if compared
        .iter()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    {
        return Cow::Borrowed(compared);
    }
    match std::str::from_utf8(compared) {
        // The long s and the Kelvin sign are letters of ASCII in the other case.
        Ok(text) => Cow::Owned(text.to_uppercase().to_lowercase().into_bytes()),
        Err(_) => Cow::Owned(compared.to_ascii_lowercase()),
    }
}

/// Whether [`folded`] changes nothing.
fn is_folded(path: &[u8]) -> bool {
    let is_changed = |byte: &u8| byte.is_ascii_uppercase() || !byte.is_ascii();
    let ends = memchr::memchr_iter(b'/', path).chain([path.len()]);
    let mut before_ends = ends.filter_map(|end| path.get(end.checked_sub(1)?));
    !path.iter().any(is_changed)
        && !before_ends.any(|byte| is_ignored_at_end(*byte))
        && (path.len() == 1 || path.last() != Some(&b'/'))
}

const fn is_ignored_at_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'.' | 0x0b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn leaves_out_what_some_api_ignores() {
        for (path, expected) in [
            ("/", "/"),
            ("/members/7", "/members/7"),
            ("/members/7/", "/members/7"),
            ("/Members/ME", "/members/me"),
            ("/members /me./x. .", "/members/me/x"),
            ("/\u{212a}elvin/\u{17f}", "/kelvin/s"),
            ("/\u{c9}t\u{c9}", "/\u{e9}t\u{e9}"),
            ("/.../x", "/.../x"),
        ] {
            assert_eq!(folded(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_script_reads_what_follows_its_name() {
        for (path, after, with_before, own) in [
            ("/index.php/a/b", "/a/b", "/a/b", "/index.php"),
            ("/x/Index.PHP/a/", "/a/", "/x/a/", "/x/Index.PHP"),
            (
                "/x/y/a.cgi/b.fcgi/c",
                "/b.fcgi/c",
                "/x/y/b.fcgi/c",
                "/x/y/a.cgi",
            ),
            ("/.php/a", "/a", "/a", "/.php"),
        ] {
            let read = [after, with_before, own].map(|path| path.as_bytes().to_vec());
            assert_eq!(read_by_script(path.as_bytes()), Some(read), "{path}");
        }
        for path in [
            "",
            "/",
            "/index.php",
            "/php/a",
            "/index.html/a",
            "/a.php5/b",
            "//",
        ] {
            assert_eq!(read_by_script(path.as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn another_spelling_may_be_read_as_the_path() {
        let token_path = b"/oauth/request_token";
        for path in [
            "/oauth/request_token",
            "/OAuth/Request_Token/",
            "/oauth/request%5Ftoken.json",
            "//oauth//request_token",
            "/x/..%2foauth/request_token;a",
            "/index.php/oauth/request_token",
        ] {
            assert!(may_be_read_as(path.as_bytes(), token_path), "{path}");
        }
        assert!(may_be_read_as(&[b'/'; 1 << 20], token_path));
        assert!(may_be_read_as(b"/w/OAuth.php/x%2fy", b"/w/oauth.php"));
        for path in [
            "/",
            "/oauth/request_tokens",
            "/oauth",
            "/oauth/request_token/x",
        ] {
            assert!(!may_be_read_as(path.as_bytes(), token_path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_leave_out(path in "(/[a-zA-Z. \u{212a}\u{e9}\u{df}]{1,4}){1,4}/?") {
            let once = folded(path.as_bytes()).into_owned();
            prop_assert_eq!(&*folded(&once), &*once, "{:?}", path);
            prop_assert_eq!(is_folded(&once), is_folded(&once) && once == folded(&once).into_owned());
        }
    }
}
