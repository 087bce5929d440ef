//! The three ways in which a proxy describes a request. Only the fields of one way count, each given once.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri, header, request::Parts, uri::PathAndQuery,
};

use crate::{
    base::network::http_fields::all,
    oauth::Authority,
    request::parse::{
        ParseRejection,
        origin::{INVALID_HOST, Origins},
        target::{INVALID_BYTE, INVALID_FORM},
    },
    wire::url::origin::Scheme,
};

/// A field of a way: its name, and as documents and rejections spell it.
type OwnField = (HeaderName, &'static str);

static X_ORIGINAL_METHOD: OwnField = own("x-original-method", "X-Original-Method");
static X_ORIGINAL_URL: OwnField = own("x-original-url", "X-Original-URL");
static X_FORWARDED_METHOD: OwnField = own("x-forwarded-method", "X-Forwarded-Method");
static X_FORWARDED_PROTO: OwnField = own("x-forwarded-proto", "X-Forwarded-Proto");
static X_FORWARDED_HOST: OwnField = own("x-forwarded-host", "X-Forwarded-Host");
static X_FORWARDED_URI: OwnField = own("x-forwarded-uri", "X-Forwarded-Uri");
static HOST: OwnField = (header::HOST, "Host");

const fn own(name: &'static str, spelling: &'static str) -> OwnField {
    (HeaderName::from_static(name), spelling)
}

/// The path in front of the described one in [`Way::Verify`].
const VERIFY: &str = "/verify";

const INVALID_SCHEME: ParseRejection =
    ParseRejection::Malformed("the described scheme is not http or https");

/// The paths of the ways.
pub(super) const WAYS: &str = "/nginx, /forwarded or /verify/…";

/// The way in which the proxy in front describes a request, by the path of its own request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `/nginx`: `X-Original-Method` and `X-Original-URL`, a whole URL.
    Nginx,
    /// `/forwarded`: `X-Forwarded-Method`, `-Proto`, `-Host` and `-Uri`.
    Forwarded,
    /// `/verify/…`: the request line after the prefix, Host, and `X-Forwarded-Proto` if it is there.
    Verify,
}

/// The origin that is described; method, target and fields are in the head.
#[derive(Debug)]
pub(super) struct Described {
    host: HeaderValue,
    scheme: Option<Scheme>,
}

impl Way {
    /// The way of this path, if it is one.
    pub(super) fn by_path(uri: &Uri) -> Option<Self> {
        match uri.path() {
            _ if uri.authority().is_some() => None,
            "/nginx" => Some(Self::Nginx),
            "/forwarded" => Some(Self::Forwarded),
            path => path
                .strip_prefix(VERIFY)
                .filter(|rest| rest.starts_with('/'))
                .map(|_| Self::Verify),
        }
    }

    /// Makes the head of the described request from the one that describes it.
    ///
    /// # Errors
    /// [`ParseRejection::Description`]: a field of the way is missing, empty or repeated. [`ParseRejection::Malformed`]: it
    /// is not valid.
    pub(super) fn read(self, parts: &mut Parts) -> Result<Described, ParseRejection> {
        let headers = &mut parts.headers;
        let (method, scheme, host, target) = match self {
            Self::Nginx => {
                let method = take(headers, &X_ORIGINAL_METHOD)?;
                let (scheme, host, target) = split_url(&take(headers, &X_ORIGINAL_URL)?)?;
                (Some(method), Some(scheme), host, target)
            }
            Self::Forwarded => (
                Some(take(headers, &X_FORWARDED_METHOD)?),
                Some(take_scheme(headers)?),
                take(headers, &X_FORWARDED_HOST)?,
                parse_target(take(headers, &X_FORWARDED_URI)?.as_bytes())?,
            ),
            Self::Verify => {
                let is_given = headers.contains_key(&X_FORWARDED_PROTO.0);
                let scheme = is_given.then(|| take_scheme(headers)).transpose()?;
                let host = take(headers, &HOST)?;
                let target = parts.uri.path_and_query().map(PathAndQuery::as_str);
                let target = target.and_then(|target| target.strip_prefix(VERIFY));
                let target = parse_target(target.unwrap_or_default().as_bytes())?;
                (None, scheme, host, target)
            }
        };
        if let Some(method) = method {
            parts.method = Method::from_bytes(method.as_bytes())
                .map_err(|_| ParseRejection::Malformed("the described method is malformed"))?;
        }
        parts.uri = target.into();
        // A proxy that takes `Upgrade` out of the description, as one of a connection, may still pass it on.
        if parts.headers.contains_key(header::SEC_WEBSOCKET_KEY) {
            let websocket = HeaderValue::from_static("websocket");
            parts.headers.entry(header::UPGRADE).or_insert(websocket);
        }
        Ok(Described { host, scheme })
    }
}

impl Described {
    /// Host and port.
    ///
    /// # Errors
    /// [`INVALID_HOST`]
    pub(super) fn authority(&self) -> Result<Authority<'_>, ParseRejection> {
        Authority::parse(self.host.as_bytes()).map_err(|_| INVALID_HOST)
    }

    /// The scheme; if none is described, that of the public URLs at this host.
    ///
    /// # Errors
    /// [`ParseRejection::Malformed`] if that is not one scheme.
    pub(super) fn scheme(
        &self,
        origins: &Origins,
        authority: &Authority<'_>,
    ) -> Result<Scheme, ParseRejection> {
        let scheme = self.scheme.or_else(|| origins.only_scheme(authority));
        scheme.ok_or(ParseRejection::Malformed(
            "X-Forwarded-Proto is missing, and the host has public URLs of both schemes",
        ))
    }
}

/// The size of a described head, as it was on the wire.
pub(super) fn head_bytes(parts: &Parts) -> usize {
    let fields = parts.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let target = parts
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let line = parts.method.as_str().len() + target + "  HTTP/1.1\r\n".len();
    line + fields.sum::<usize>()
}

/// Takes the only line of a field of the way, which is not empty.
fn take(headers: &mut HeaderMap, own: &OwnField) -> Result<HeaderValue, ParseRejection> {
    let &(ref name, field) = own;
    let is_repeated = all(headers, name).nth(1).is_some();
    let wrong = match headers.remove(name) {
        _ if is_repeated => "repeated",
        None => "missing",
        Some(value) if value.is_empty() => "empty",
        Some(value) => return Ok(value),
    };
    Err(ParseRejection::Description { field, wrong })
}

/// Splits an absolute URL into scheme, host and target. Unlike a parser for browsers it repairs nothing.
fn split_url(url: &HeaderValue) -> Result<(Scheme, HeaderValue, PathAndQuery), ParseRejection> {
    let text = url.to_str().map_err(|_| INVALID_BYTE)?;
    let (scheme, rest) = text.split_once("://").ok_or(INVALID_FORM)?;
    let end = rest.find('/').ok_or(INVALID_FORM)?;
    let host = HeaderValue::from_str(&rest[..end]).map_err(|_| INVALID_HOST)?;
    let target = parse_target(&rest.as_bytes()[end..])?;
    Ok((Scheme::parse(scheme).ok_or(INVALID_SCHEME)?, host, target))
}

fn take_scheme(headers: &mut HeaderMap) -> Result<Scheme, ParseRejection> {
    let scheme = take(headers, &X_FORWARDED_PROTO)?;
    Scheme::from_forwarded(scheme.as_bytes()).ok_or(INVALID_SCHEME)
}

/// Reads a path with its query. A fragment is rejected: the proxy in front may pass it on, and [`PathAndQuery`] drops it.
fn parse_target(text: &[u8]) -> Result<PathAndQuery, ParseRejection> {
    if text.first() != Some(&b'/') {
        return Err(INVALID_FORM);
    }
    if text.contains(&b'#') {
        return Err(INVALID_BYTE);
    }
    PathAndQuery::try_from(text).map_err(|_| INVALID_BYTE)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_url_is_read_as_every_byte_of_it_or_not_at_all(
            scheme in "https?|HTTPS|ftp|",
            host in "[a-zA-Z0-9.@:%\\[\\]\\\\ -]{0,12}",
            target in "[a-z/?#%.;\\\\&=:@\t\u{e9}-]{0,16}",
        ) {
            let url = format!("{scheme}://{host}/{target}");
            let request = Request::get("/nginx")
                .header(&X_ORIGINAL_METHOD.0, "PUT")
                .header(&X_ORIGINAL_URL.0, url.as_bytes());
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            if let Ok(described) = Way::Nginx.read(&mut parts)
                && described.authority().is_ok()
            {
                prop_assert_eq!(parts.method, "PUT");
                prop_assert!(parts.headers.is_empty());
                let read = format!("{}://{}{}", scheme, described.host.to_str().unwrap(), parts.uri);
                prop_assert_eq!(read, &*url);
                prop_assert!(!url.contains(['#', '@', '\\', '\t', ' ']) || target.contains(['@', '\\']));
            }
        }
    }
}
