//! The head of an HTTP/2 request, as the head that HTTP/1.1 would have sent (RFC 9113 §8.3.1).

use http::{header, request::Parts};

use crate::{
    http1::{pool::Buffer, write},
    refusal::Refusal,
};

/// Writes the head; it is parsed and judged like any other.
///
/// # Errors
/// [`Refusal::Malformed`] for a scheme that is not HTTP's, and for a Host that is another than `:authority`.
pub(super) fn head(parts: &Parts) -> Result<Buffer, Refusal> {
    let malformed = |reason: &'static str| Refusal::Malformed(reason.into());
    if let Some(scheme) = parts.uri.scheme_str()
        && scheme != "http"
        && scheme != "https"
    {
        return Err(malformed(":scheme is neither http nor https"));
    }
    let authority = parts
        .uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let mut bytes = Buffer::take();
    bytes.extend_from_slice(parts.method.as_str().as_bytes());
    bytes.push(b' ');
    match parts.uri.path_and_query() {
        Some(path) if parts.method != http::Method::CONNECT => {
            bytes.extend_from_slice(path.as_str().as_bytes());
        }
        // CONNECT names an authority and nothing else (RFC 9113 §8.5).
        _ => bytes.extend_from_slice(authority.unwrap_or_default()),
    }
    bytes.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority {
        write::field(&mut bytes, b"host", authority);
    }
    for (name, value) in &parts.headers {
        if name == header::HOST
            && let Some(authority) = authority
        {
            if !value.as_bytes().eq_ignore_ascii_case(authority) {
                return Err(malformed("Host and :authority disagree"));
            }
            continue;
        }
        if name != header::COOKIE {
            write::field(&mut bytes, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    // RFC 9113 §8.2.3: cookie crumbs are put together before the fields go where HTTP/1.1 is spoken.
    let mut crumbs = parts.headers.get_all(header::COOKIE).iter();
    if let Some(first) = crumbs.next() {
        bytes.extend_from_slice(b"cookie: ");
        bytes.extend_from_slice(first.as_bytes());
        for crumb in crumbs {
            bytes.extend_from_slice(b"; ");
            bytes.extend_from_slice(crumb.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn written(request: http::request::Builder) -> Result<String, Refusal> {
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        head(&parts).map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[test]
    fn writes_what_http_1_1_would_have_sent() {
        let request = Request::get("https://api.example.com:8443/a?b=c")
            .header("cookie", "a=1")
            .header("x-y", "1")
            .header("x-y", "2")
            .header("cookie", "b=2");
        assert_eq!(
            written(request).as_deref(),
            Ok(
                "GET /a?b=c HTTP/1.1\r\nhost: api.example.com:8443\r\nx-y: 1\r\nx-y: 2\r\ncookie: a=1; b=2\r\n\r\n"
            )
        );
    }

    #[test]
    fn a_host_counts_where_there_is_no_authority_and_must_agree_where_there_is() {
        assert_eq!(
            written(Request::get("/a").header("host", "h")).as_deref(),
            Ok("GET /a HTTP/1.1\r\nhost: h\r\n\r\n")
        );
        assert_eq!(
            written(Request::get("http://h/a").header("host", "H")).as_deref(),
            Ok("GET /a HTTP/1.1\r\nhost: h\r\n\r\n")
        );
        assert!(written(Request::get("http://h/a").header("host", "other")).is_err());
        assert!(
            written(
                Request::get("http://h/a")
                    .header("host", "h")
                    .header("host", "other")
            )
            .is_err()
        );
    }

    #[test]
    fn knows_two_schemes_and_no_tunnel() {
        assert!(written(Request::get("ftp://h/a")).is_err());
        assert_eq!(
            written(Request::connect("h:443")).as_deref(),
            Ok("CONNECT h:443 HTTP/1.1\r\nhost: h:443\r\n\r\n")
        );
    }
}
