//! Reading field values of HTTP: lists, tokens, cookies and fields that may be given once (RFC 9110 §5); and parameters of
//! queries and forms.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, header};
use url::form_urlencoded::parse;

/// The field in which a browser reports what caused a request (Fetch Metadata).
pub static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// See [`SEC_FETCH_SITE`]: `navigate` for what a user opens.
pub static SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// See [`SEC_FETCH_SITE`]: `document` for a whole window.
pub static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// A field or a parameter that may be given once is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

/// A filter of the names in a head, by which most lookups of an absent field are skipped. A name has one of 64 bits;
/// another name may have the same.
#[derive(Debug, Clone, Copy)]
pub struct NameFilter(u64);

impl NameFilter {
    /// A filter of the names of all fields of a head.
    pub fn new(headers: &HeaderMap) -> Self {
        Self(headers.keys().fold(0, |names, name| names | bit(name)))
    }

    /// Whether `headers`, of which this is the filter, have the field.
    #[must_use]
    pub fn has(self, headers: &HeaderMap, name: &HeaderName) -> bool {
        self.may_have(name) && headers.contains_key(name)
    }

    /// Whether the head may have the field; `false`: it has not.
    #[must_use]
    pub fn may_have(self, name: &HeaderName) -> bool {
        self.0 & bit(name) != 0
    }
}

/// The bit of a name, of its length and its ends.
fn bit(name: &HeaderName) -> u64 {
    let name = name.as_str().as_bytes();
    let (first, last) = (name.first(), name.last());
    let ends = [first, last].map(|byte| usize::from(*byte.unwrap_or(&0)));
    1 << ((name.len() * 5 + ends[0] * 3 + ends[1]) % 64)
}

/// The values of all lines of a field.
// One copy of the lookup, which is long, for its many uses.
#[inline(never)]
pub fn all<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers
        .get_all(name)
        .iter()
        .map(http::HeaderValue::as_bytes)
}

/// The value of the only line of a field.
///
/// # Errors
/// [`Repeated`] if there are several lines.
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h [u8]>, Repeated> {
    let mut values = all(headers, name);
    let first = values.next();
    match values.next() {
        Some(_) => Err(Repeated),
        None => Ok(first),
    }
}

/// What a browser says of the page from which a request comes.
#[derive(Debug, Clone, Copy)]
pub struct Initiator<'h> {
    /// Whether it is a page of the same origin, or the user, who sends a form again or types the address; `None`: it is not said.
    pub is_own_site: Option<bool>,
    /// The `Origin` field.
    pub origin: Option<&'h [u8]>,
}

impl<'h> Initiator<'h> {
    /// Reads it.
    ///
    /// # Errors
    /// [`Repeated`] if one of the two fields has several lines.
    pub fn from_headers(headers: &'h HeaderMap) -> Result<Self, Repeated> {
        let site = single(headers, &SEC_FETCH_SITE)?;
        Ok(Self {
            is_own_site: site.map(|site| matches!(site, b"same-origin" | b"none")),
            origin: single(headers, &header::ORIGIN)?,
        })
    }
}

/// The cookies of one `Cookie` line (RFC 6265 §4.2.1), each with its name.
pub fn cookies(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    line.split(|&byte| byte == b';').map(trim).map(|cookie| {
        let name = cookie.split(|&byte| byte == b'=').next();
        (trim(name.unwrap_or_default()), cookie)
    })
}

/// The decoded value of a parameter in a query or a form, however its name is escaped.
///
/// # Errors
/// [`Repeated`] if there are several of this name.
pub fn parameter<'p>(pairs: &'p [u8], name: &str) -> Result<Option<Cow<'p, str>>, Repeated> {
    // A value of another name may be a password: decoding it would leave a copy.
    let is_named = |pair: &&[u8]| {
        let encoded = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
        parse(encoded).any(|(known, _)| known == name)
    };
    let mut named = pairs.split(|&byte| byte == b'&').filter(is_named);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(Repeated),
        (first, None) => Ok(first
            .and_then(|pair| parse(pair).next())
            .map(|(_, value)| value)),
    }
}

/// The elements of a comma-separated list without their surrounding white space; empty elements are skipped
/// (RFC 9110 §5.6.1.2).
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(trim)
        .filter(|element| !element.is_empty())
}

/// `bytes` without the spaces and tabs around it (RFC 9110 §5.6.3: `OWS`).
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Whether `bytes` is a token (RFC 9110 §5.6.2): one byte or more of those that a field name has.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    HeaderName::from_bytes(bytes).is_ok()
}

/// Whether an element of a list field is `element`, in any case.
#[must_use]
pub fn lists(headers: &HeaderMap, name: &HeaderName, element: &[u8]) -> bool {
    all(headers, name)
        .flat_map(list)
        .any(|listed| listed.eq_ignore_ascii_case(element))
}

/// Whether the field is about one connection only and never forwarded (RFC 9110 §7.6.1), the fields that `Connection`
/// names aside.
#[must_use]
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Why `Connection` cannot be obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// An option is not a token.
    #[error("Connection is malformed")]
    Malformed,
    /// The lines are longer than [`MAX_CONNECTION_BYTES`].
    #[error("Connection is too long")]
    TooLong,
}

/// The values of all `Connection` lines of a message together may be that long, in bytes.
pub const MAX_CONNECTION_BYTES: usize = 1024;

/// The fields that `Connection` names, other than `close` and `keep-alive` (RFC 9110 §7.6.1: "an intermediary MUST parse a
/// received Connection header field before a message is forwarded and, for each connection-option in this field, remove
/// any header or trailer field(s)").
///
/// # Errors
/// [`ConnectionError`]
pub fn named_by_connection(headers: &HeaderMap) -> Result<Vec<HeaderName>, ConnectionError> {
    let mut named = Vec::new();
    let mut length = 0;
    for line in all(headers, &header::CONNECTION) {
        length += line.len();
        if length > MAX_CONNECTION_BYTES {
            return Err(ConnectionError::TooLong);
        }
        // Nearly every line says only this.
        if line == b"keep-alive" {
            continue;
        }
        for option in list(line) {
            let name = HeaderName::from_bytes(option).map_err(|_| ConnectionError::Malformed)?;
            if !matches!(name.as_str(), "close" | "keep-alive") {
                named.push(name);
            }
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn splits_lists() {
        let elements: Vec<&[u8]> = list(b" close ,, x-a\t,").collect();
        assert_eq!(elements, [&b"close"[..], b"x-a"]);
    }

    #[test]
    fn names_miss_no_field() {
        let mut headers = HeaderMap::new();
        assert!(!NameFilter::new(&headers).may_have(&header::HOST));
        for number in 0..40 {
            let name = HeaderName::try_from(format!("x-{number}")).expect("a name");
            headers.append(name.clone(), HeaderValue::from(number));
            headers.append(name, HeaderValue::from(number));
        }
        headers.append(header::HOST, HeaderValue::from_static("api.test"));
        let names = NameFilter::new(&headers);
        assert!(headers.keys().all(|name| names.may_have(name)));
        // Another name of the same length and ends has the same bit.
        let colliding = HeaderName::from_static("hxxt");
        assert!(names.may_have(&colliding) && !names.has(&headers, &colliding));
        assert!(names.has(&headers, &header::HOST));
    }
}
