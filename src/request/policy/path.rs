//! Paths as patterns see them: decoded once, and without any doubt about their segments.

use std::borrow::Cow;

use crate::oauth::percent;

/// The path as patterns see it.
pub(super) fn matchable(path: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    let decoded = decode(path)?;
    // The last segment may be empty: the path ends with a slash, or is the root.
    if let Some(inner) = decoded
        .strip_suffix(b"/")
        .or(Some(&*decoded))
        .filter(|it| !it.is_empty())
    {
        for segment in inner.split(|&byte| byte == b'/').skip(1) {
            match segment {
                b"." | b".." => return Err("the path has a dot segment"),
                b"" => return Err("the path has an empty segment"),
                _ => {}
            }
        }
    }
    Ok(decoded)
}

/// Decodes every escape once, and rejects what a second reader could decode again or split elsewhere.
pub(super) fn decode(path: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b';' | b'\\');
    if path.iter().copied().all(plain) {
        return Ok(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'%' => {
                let invalid = "the path has an invalid escape";
                let (digits, tail) = rest.split_first_chunk().ok_or(invalid)?;
                rest = tail;
                match percent::escaped(*digits).map_err(|_| invalid)? {
                    b'/' | b'\\' | b';' | b'%' => {
                        return Err("the path has an encoded / \\ ; or %");
                    }
                    0..=0x1f | 0x7f => return Err("the path has an encoded control byte"),
                    byte => decoded.push(byte),
                }
            }
            b';' | b'\\' => return Err("the path has a ; or \\"),
            byte if byte.is_ascii_graphic() => decoded.push(*byte),
            _ => return Err("the path has a control byte"),
        }
    }
    Ok(Cow::Owned(decoded))
}
