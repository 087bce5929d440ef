//! The head of the response that the caller sees: the API's own, changed in place.

pub mod download;
pub mod location;

use http::{HeaderMap, HeaderValue, StatusCode, Version, header, response::Parts};

use self::location::PublicPlaces;
use super::{ForwardFault, ForwardParams};
use crate::base::network::http_fields::{
    NameFilter, all, is_hop_by_hop, list, named_by_connection, trim,
};

/// The request of a response.
#[derive(Debug)]
pub struct ResponseContext<'r> {
    /// The public addresses.
    pub places: PublicPlaces<'r>,
    /// The call was that of a user's session.
    pub by_user: bool,
}

/// Checks that no recipient could find another end of the body than hyper does (RFC 9112 §6.3): the bytes after it would be
/// taken for a response to another request.
///
/// # Errors
/// [`ForwardFault::BrokenResponse`]
pub fn check_framing(parts: &Parts, present: NameFilter) -> Result<(), ForwardFault> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        // It ends with its head, whatever its fields say.
        return Ok(());
    }
    let broken = |reason: &'static str| Err(ForwardFault::BrokenResponse(reason.into()));
    let mut lengths = parts.headers.get_all(header::CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return broken("Content-Length is given more than once");
    }
    let is_encoded = present.may_have(&header::TRANSFER_ENCODING);
    let mut encodings = is_encoded.then(|| parts.headers.get_all(header::TRANSFER_ENCODING).iter());
    let mut encodings = encodings.iter_mut().flatten();
    if let Some(encoding) = encodings.next() {
        if length.is_some() {
            return broken("Content-Length and Transfer-Encoding together");
        }
        if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return broken("Transfer-Encoding is not a single chunked");
        }
        if parts.version != Version::HTTP_11 {
            return broken("Transfer-Encoding in a version of HTTP other than 1.1");
        }
    }
    let is_number = |value: &HeaderValue| {
        // 18 digits are an exabyte; beyond them some recipient's integer overflows.
        let digits = value.as_bytes();
        (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
    };
    match length {
        Some(length) if !is_number(length) => broken("Content-Length is not a number"),
        _ => Ok(()),
    }
}

/// Turns the API's head, whose names are `present`, into the one that the caller sees.
pub fn rewrite(
    parts: &mut Parts,
    present: NameFilter,
    params: &ForwardParams,
    context: &ResponseContext<'_>,
) {
    parts.version = Version::HTTP_11;
    drop_fields(&mut parts.headers);
    if parts.status == StatusCode::NO_CONTENT {
        // RFC 9110 §8.6: "A server MUST NOT send a Content-Length header field in any response with a status code of 1xx
        // or 204".
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    // The API saw neither cookie nor Authorization, and so could not know that a cache may keep its response for others.
    if context.by_user && !decides_on_shared_caches(&parts.headers) {
        let cookie = HeaderValue::from_static("Cookie");
        parts.headers.append(header::VARY, cookie);
    }
    if present.may_have(&header::SET_COOKIE) {
        drop_our_cookies(&mut parts.headers, params);
    }
    if present.may_have(&header::LOCATION)
        && let header::Entry::Occupied(mut entry) = parts.headers.entry(header::LOCATION)
    {
        for value in entry.iter_mut() {
            let public = location::rewrite(params, context.places, value.as_bytes());
            if let Some(public) = public.and_then(|public| HeaderValue::try_from(public).ok()) {
                *value = public;
            }
        }
    }
}

/// Drops the cookies that the API sets under a name of ours.
fn drop_our_cookies(headers: &mut HeaderMap, params: &ForwardParams) {
    let is_ours = |value: &HeaderValue| params.is_reserved_cookie(cookie_name(value.as_bytes()));
    let cookies = || headers.get_all(header::SET_COOKIE).iter();
    if cookies().any(is_ours) {
        let theirs = cookies().filter(|value| !is_ours(value));
        let theirs: Vec<HeaderValue> = theirs.cloned().collect();
        headers.remove(header::SET_COOKIE);
        for value in theirs {
            headers.append(header::SET_COOKIE, value);
        }
    }
}

/// Whether the API decided on shared caches: `private` and `no-store` keep the response out of them, `public` and
/// `s-maxage` put it there (RFC 9111 §5.2.2). `max-age` alone is for every cache. `private="Set-Cookie"` keeps only that
/// field out, so a line with a quoted string does not count.
fn decides_on_shared_caches(headers: &HeaderMap) -> bool {
    let lines = all(headers, &header::CACHE_CONTROL).filter(|line| !line.contains(&b'"'));
    lines.flat_map(list).any(|directive| {
        let is = |name: &str| directive.eq_ignore_ascii_case(name.as_bytes());
        let shared = directive.first_chunk().is_some_and(|name: &[u8; 9]| {
            // It needs a number of seconds.
            name.eq_ignore_ascii_case(b"s-maxage=") && directive.len() > name.len()
        });
        shared || ["private", "no-store", "public"].into_iter().any(is)
    })
}

/// Drops the fields that are about one connection.
pub(super) fn drop_fields(headers: &mut HeaderMap) {
    // An API's Connection that is malformed names no field.
    for name in named_by_connection(headers).unwrap_or_default() {
        headers.remove(name);
    }
    // There are few such names, and mostly only Connection.
    while let Some(name) = headers.keys().find(|name| is_hop_by_hop(name)).cloned() {
        headers.remove(name);
    }
}

/// The name of the cookie that a `Set-Cookie` sets, as browsers return it. For a cookie without a name they return the
/// value alone, which may read like a name and a value.
pub(super) fn cookie_name(value: &[u8]) -> &[u8] {
    let pair = trim(value.split(|&byte| byte == b';').next().unwrap_or_default());
    let pair = pair.strip_prefix(b"=").unwrap_or(pair);
    trim(pair.split(|&byte| byte == b'=').next().unwrap_or_default())
}

/// The head of a response that switches to WebSocket.
pub fn rewrite_switching(
    parts: &mut Parts,
    present: NameFilter,
    params: &ForwardParams,
    context: &ResponseContext<'_>,
) {
    rewrite(parts, present, params, context);
    let headers = &mut parts.headers;
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}
