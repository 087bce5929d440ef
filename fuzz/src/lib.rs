//! RFC 5849 and HTTP/1.1 in the obvious way, slow and plain: the model with which the fuzz targets compare the program.

pub mod http;
pub mod service;

use std::sync::LazyLock;

/// A name and a value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Percent-encodes, §3.6.
pub fn encode(plain: &[u8]) -> Vec<u8> {
    static CODED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let coded = |byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => vec![byte],
            _ => format!("%{byte:02X}").into_bytes(),
        };
        (0..=u8::MAX).map(coded).collect()
    });
    plain
        .iter()
        .flat_map(|&byte| &CODED[usize::from(byte)])
        .copied()
        .collect()
}

/// Decodes, or fails at a `%` without two hexadecimal digits; with `form`, a `+` is a space.
pub fn decode(coded: &[u8], form: bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < coded.len() {
        if coded[at] == b'%' {
            let high = char::from(*coded.get(at + 1)?).to_digit(16)?;
            let low = char::from(*coded.get(at + 2)?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
            at += 3;
        } else {
            out.push(if form && coded[at] == b'+' {
                b' '
            } else {
                coded[at]
            });
            at += 1;
        }
    }
    Some(out)
}

/// The pairs of a query or form body, or nothing if an escape is broken.
pub fn form(raw: &[u8]) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    for pair in raw.split(|&byte| byte == b'&') {
        if pair.is_empty() {
            continue;
        }
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let name = decode(halves.next().unwrap_or_default(), true)?;
        let value = decode(halves.next().unwrap_or_default(), true)?;
        pairs.push((name, value));
    }
    Some(pairs)
}

/// The parameters of an Authorization value but for `realm`, or nothing if it is malformed.
pub fn header(field_value: &[u8]) -> Option<Vec<Pair>> {
    let mut text: std::collections::VecDeque<u8> = field_value.iter().copied().collect();
    let scheme: Vec<u8> = text.drain(..text.len().min(5)).collect();
    if !scheme.eq_ignore_ascii_case(b"oauth") {
        return None;
    }
    if !matches!(text.front(), None | Some(b' ' | b'\t' | b',')) {
        return None;
    }
    let mut pairs = Vec::new();
    loop {
        while matches!(text.front(), Some(b' ' | b'\t' | b',')) {
            text.pop_front();
        }
        if text.is_empty() {
            return Some(pairs);
        }

        let mut name = Vec::new();
        while text.front().is_some_and(|&byte| byte != b'=') {
            name.extend(text.pop_front());
        }
        if name.is_empty()
            || !name
                .iter()
                .all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        {
            return None;
        }
        let name = decode(&name, false)?;
        if text.pop_front()? != b'=' || text.pop_front()? != b'"' {
            return None;
        }

        let realm = name.eq_ignore_ascii_case(b"realm");
        let mut value = Vec::new();
        loop {
            match text.pop_front()? {
                b'"' => break,
                b'\\' if realm => {
                    text.pop_front()?;
                }
                byte if !realm && (byte < 0x20 || byte == 0x7f || byte == b'\\') => return None,
                byte => value.push(byte),
            }
        }
        if !realm {
            pairs.push((name, decode(&value, false)?));
        }

        while matches!(text.front(), Some(b' ' | b'\t')) {
            text.pop_front();
        }
        if !matches!(text.front(), None | Some(b',')) {
            return None;
        }
    }
}

/// The normalized parameters, §3.4.1.3.2.
pub fn normalized(pairs: &[Pair]) -> Vec<u8> {
    let mut encoded: Vec<Pair> = pairs
        .iter()
        .filter(|(name, _)| name != b"oauth_signature")
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    encoded.sort();
    let joined: Vec<Vec<u8>> = encoded
        .iter()
        .map(|(name, value)| [&name[..], b"=", value].concat())
        .collect();
    joined.join(&b'&')
}

/// The base string, §3.4.1.1.
pub fn base_string(method: &[u8], origin: &str, path: &[u8], pairs: &[Pair]) -> Vec<u8> {
    let path = if path.is_empty() { b"/" } else { path };
    let uri = [origin.as_bytes(), path].concat();
    [
        encode(&method.to_ascii_uppercase()),
        encode(&uri),
        encode(&normalized(pairs)),
    ]
    .join(&b'&')
}
