//! The `Forwarded` field (RFC 7239 §4).

use crate::base::network::http_fields::{is_token, trim};

/// One element: the report of one proxy about the request that it received.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// `for`: the sender of the request to the proxy.
    pub(super) node: Option<&'a [u8]>,
    /// `proto`: the scheme.
    pub(super) proto: Option<&'a [u8]>,
    /// `host`: the Host.
    pub(super) host: Option<&'a [u8]>,
}

/// The elements of one line, from left to right; `None` if the line is malformed.
///
/// A line is read whole or not at all. Were it split at each comma, a comma between quotes would let a caller's
/// element pass for one of the next proxy; and a quote that a caller leaves open swallows that proxy's element.
///
/// §4: "Each parameter MUST NOT occur more than once per field-value". Values are kept as written between their quotes:
/// no address, scheme or host needs a backslash, and a value with one is not valid. Without quotes a value may also
/// have `:`, `[` and `]`, since proxies write ports and IPv6 addresses in that way.
pub(super) fn elements(line: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    let mut element = None;
    let mut rest = trim(line);
    loop {
        rest = match rest.split_first() {
            None => {
                elements.extend(element);
                return Some(elements);
            }
            // RFC 9110 §5.6.1.2: empty elements of a list are passed over.
            Some((b',', tail)) => {
                elements.extend(element.take());
                tail
            }
            Some((b';', tail)) => {
                element.get_or_insert_default();
                tail
            }
            Some(_) => {
                let (name, value, tail) = pair(rest)?;
                let element = element.get_or_insert_with(Element::default);
                let mut other = None;
                let parameter = match name.to_ascii_lowercase().as_slice() {
                    b"for" => &mut element.node,
                    b"proto" => &mut element.proto,
                    b"host" => &mut element.host,
                    _ => &mut other,
                };
                if parameter.replace(value).is_some() {
                    return None;
                }
                let tail = trim(tail);
                if !matches!(tail.first(), None | Some(b',' | b';')) {
                    return None;
                }
                tail
            }
        };
        rest = trim(rest);
    }
}

/// `name=value` at the beginning of `text`: the name, the value without its quotes, and what follows.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let equals = memchr::memchr(b'=', text)?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    if !is_token(name) {
        return None;
    }
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let mut at = 0;
        loop {
            at += memchr::memchr2(b'"', b'\\', quoted.get(at..)?)?;
            if quoted[at] == b'"' {
                return Some((name, &quoted[..at], &quoted[at + 1..]));
            }
            at += 2;
        }
    }
    let end = value
        .iter()
        .position(|byte| b",; \t".contains(byte))
        .unwrap_or(value.len());
    let (value, tail) = value.split_at(end);
    let plain = |part: &[u8]| part.is_empty() || is_token(part);
    let is_value = !value.is_empty() && value.split(|byte| b":[]".contains(byte)).all(plain);
    is_value.then_some((name, value, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements as `for proto host`, `-` for what is not there, `/` between them.
    fn read(line: &str) -> Option<String> {
        let text = |value: Option<&[u8]>| {
            value.map_or("-".to_owned(), |value| {
                String::from_utf8_lossy(value).into_owned()
            })
        };
        let elements = elements(line.as_bytes())?;
        let elements = elements.iter().map(|element| {
            [element.node, element.proto, element.host]
                .map(text)
                .join(" ")
        });
        Some(elements.collect::<Vec<_>>().join(" / "))
    }

    #[test]
    fn reads_what_proxies_write() {
        for (line, elements) in [
            ("", ""),
            (" , ,\t", ""),
            ("for=192.0.2.1", "192.0.2.1 - -"),
            ("For=\"192.0.2.1:80\"", "192.0.2.1:80 - -"),
            ("for=192.0.2.1:80", "192.0.2.1:80 - -"),
            (
                "for=\"[2001:db8::1]:4711\";proto=https;by=203.0.113.43",
                "[2001:db8::1]:4711 https -",
            ),
            ("for=[2001:db8::1]:80", "[2001:db8::1]:80 - -"),
            (
                "for=a, for=b;host=h , proto=http",
                "a - - / b - h / - http -",
            ),
            ("for=a ; proto=https; host=h", "a https h"),
            (";for=a;;", "a - -"),
            (";, for=a", "- - - / a - -"),
            ("for=_hidden, for=unknown", "_hidden - - / unknown - -"),
            ("secret=\"a,b;for=x\", for=c", "- - - / c - -"),
            ("by=\"\\\", for=x\";for=c", "c - -"),
            ("for=\"\"", " - -"),
            ("for=\"a\\\"b\"", "a\\\"b - -"),
            ("host=\"h:80\";host2=x;forx=y", "- - h:80"),
        ] {
            assert_eq!(read(line).as_deref(), Some(elements), "{line}");
        }
    }

    #[test]
    fn rejects_what_could_be_read_in_two_ways() {
        for line in [
            "for=\"192.0.2.1",
            "for=\"a\\\"",
            "for=\"a\\",
            "for=a;for=b",
            "for=a;FOR=a",
            "proto=http;proto=https",
            "host=a;for=x;host=b",
            "for",
            "for=",
            "for=;proto=http",
            "=a",
            "for =a",
            "for= a",
            "for=a b",
            "for=a\"b\"",
            "for=\"a\"b",
            "for=\"a\"\"b\"",
            "for=a/b",
            "for=a=b",
            "f\u{e9}r=a",
            "for=\"x, for=192.0.2.1;host=\"h\"",
            "for=\"x, for=\"[2001:db8::1]\"",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
