//! Taking the `oauth_…` pairs out of a query or form, every other byte left as it is.

use std::borrow::Cow;

use crate::oauth::percent;

/// `pairs` without those whose name begins with `oauth_`, each with its `&`; `None` if there are none.
pub fn strip(pairs: &[u8]) -> Option<Vec<u8>> {
    if !pairs.split(|&byte| byte == b'&').any(is_credential) {
        return None;
    }
    let mut kept = Vec::with_capacity(pairs.len());
    let mut first = true;
    for pair in pairs
        .split(|&byte| byte == b'&')
        .filter(|pair| !is_credential(pair))
    {
        if !first {
            kept.push(b'&');
        }
        first = false;
        kept.extend_from_slice(pair);
    }
    Some(kept)
}

/// Whether the decoded name of a pair begins with `oauth_`.
fn is_credential(pair: &[u8]) -> bool {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    // The shortest is all six characters as escapes; the usual case needs no decoding.
    if name.starts_with(b"oauth_") {
        return true;
    }
    if !name.contains(&b'%') {
        return false;
    }
    percent::decode(name).is_ok_and(|decoded: Cow<'_, [u8]>| decoded.starts_with(b"oauth_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_every_other_byte() {
        for (pairs, expected) in [
            ("a=1&b=2", None),
            ("", None),
            ("xoauth_a=1&a=oauth_b", None),
            ("oauth_a=1", Some("")),
            ("a=1&oauth_a=1", Some("a=1")),
            ("oauth_a=1&a=1", Some("a=1")),
            ("a=%zz+%41&oauth_a=1&&b", Some("a=%zz+%41&&b")),
            ("&oauth_a&", Some("&")),
            ("o%61uth%5Fnonce=1&a", Some("a")),
            ("oauth_token=x&a=1&oauth_nonce=y&a=1", Some("a=1&a=1")),
        ] {
            let stripped = strip(pairs.as_bytes());
            assert_eq!(stripped.as_deref(), expected.map(str::as_bytes), "{pairs}");
        }
    }
}
