//! The head of the answer that the caller sees.

use super::{Params, location};
use crate::{
    http1::{
        framing::{self, Framing},
        head::{Fate, ResponseHead, Version},
        name::Name,
        token::trim,
        write,
    },
    parse::origin::PublicUrl,
};

/// How the answer's body goes on to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As the API delimits it, or without a body.
    AsIs,
    /// As chunks.
    Chunked,
    /// Until the connection closes, or the HTTP/2 stream ends: only HTTP/1.1 knows chunks.
    UntilClose,
}

/// Chooses how a body of `framing` goes on.
#[must_use]
pub fn delivery(framing: Framing, caller: Version) -> Delivery {
    match (framing, caller) {
        (Framing::None | Framing::Length(_), _) => Delivery::AsIs,
        (Framing::Chunked | Framing::UntilClose, Version::Http11) => Delivery::Chunked,
        (Framing::Chunked | Framing::UntilClose, Version::Http10 | Version::Http2) => {
            Delivery::UntilClose
        }
    }
}

/// What the answer's head depends on besides the API's.
#[derive(Debug)]
pub struct Outline<'r> {
    /// The public URL of the request.
    pub url: &'r PublicUrl,
    /// The public URL's prefix was taken off.
    pub strip: bool,
    /// The caller's version.
    pub version: Version,
    /// The connection goes on.
    pub keep_alive: bool,
    /// The call was that of a user's session.
    pub of_user: bool,
}

/// Writes the head.
pub fn write(
    out: &mut Vec<u8>,
    params: &Params,
    outline: &Outline<'_>,
    head: &ResponseHead,
    delivery: Delivery,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write::decimal(out, head.status.into());
    out.push(b' ');
    out.extend_from_slice(head.reason());
    out.extend_from_slice(b"\r\n");
    let named = framing::names_fields(&head.fields);
    let mut says_who_may_keep_it = false;
    head.fields.send_on(out, |field| match field.known {
        name if name.is_hop_by_hop() => Fate::Goes,
        _ if named && framing::is_named_by_connection(&head.fields, field.name) => Fate::Goes,
        // RFC 9110 §8.6: "A server MUST NOT send a Content-Length header field in any response with a status code of 1xx or 204".
        Name::ContentLength if head.status == 204 || delivery != Delivery::AsIs => Fate::Goes,
        Name::SetCookie if params.is_own_cookie(cookie_name(field.value)) => Fate::Goes,
        Name::Location => {
            match location::rewrite(params, outline.url, outline.strip, field.value) {
                Some(public) => Fate::Becomes(public.into()),
                None => Fate::Stays,
            }
        }
        _ => {
            says_who_may_keep_it |= outline.of_user
                && field.name.eq_ignore_ascii_case(b"Cache-Control")
                && !field.value.is_empty();
            Fate::Stays
        }
    });
    // The API saw neither cookie nor Authorization, and so could not know that a cache may keep its answer for others.
    if outline.of_user && !says_who_may_keep_it {
        write::field(out, b"Vary", b"Cookie");
    }
    if delivery == Delivery::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if !outline.keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if outline.version == Version::Http10 {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the head of an answer that switches to WebSocket.
pub fn write_switching(out: &mut Vec<u8>, params: &Params, head: &ResponseHead) {
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
    head.fields.send_on(out, |field| match field.known {
        name if name.is_hop_by_hop() => Fate::Goes,
        _ if framing::is_named_by_connection(&head.fields, field.name) => Fate::Goes,
        Name::ContentLength => Fate::Goes,
        Name::SetCookie if params.is_own_cookie(cookie_name(field.value)) => Fate::Goes,
        _ => Fate::Stays,
    });
    out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/// The name of the cookie that a `Set-Cookie` sets, as it will come back: of one without a name, browsers return the
/// value alone, and that may read like a name and a value.
pub(super) fn cookie_name(value: &[u8]) -> &[u8] {
    let pair = trim(value.split(|&byte| byte == b';').next().unwrap_or_default());
    let pair = pair.strip_prefix(b"=").unwrap_or(pair);
    trim(pair.split(|&byte| byte == b'=').next().unwrap_or_default())
}
