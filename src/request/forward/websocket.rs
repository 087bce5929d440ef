//! Validates WebSocket's opening handshake on both sides (RFC 6455 §4).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::{Digest as _, Sha1};

use http::{HeaderMap, HeaderName, Method, Version, header, request, response};

use super::{ForwardFault, ForwardRejection};
use crate::base::network::http_fields::{lists, single};

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A handshake that a caller has begun.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The only right value of `Sec-WebSocket-Accept`.
    accept: String,
}

impl Handshake {
    /// The handshake that a request begins, if it begins one. Offers of other protocols are passed over (RFC 9110 §7.8).
    ///
    /// # Errors
    /// [`ForwardRejection::Handshake`] if it begins one that no server could accept.
    pub fn begun_by(
        request: &request::Parts,
        has_body: bool,
    ) -> Result<Option<Self>, ForwardRejection> {
        if request.version != Version::HTTP_11
            || request.method != Method::GET
            || !switches_to_websocket(&request.headers)
        {
            return Ok(None);
        }
        Self::without_body(request, has_body).map(Some)
    }

    /// The handshake that a request begins whose version and `Connection` are not known here; nor is its body, unless it is
    /// known to have one.
    ///
    /// # Errors
    /// As [`Handshake::begun_by`].
    pub fn described_by(
        request: &request::Parts,
        has_body: bool,
    ) -> Result<Option<Self>, ForwardRejection> {
        let protocol = only(&request.headers, &header::UPGRADE);
        let is_begun = protocol.is_some_and(|it| it.eq_ignore_ascii_case(b"websocket"));
        if !is_begun || request.method != Method::GET {
            return Ok(None);
        }
        Self::without_body(request, has_body).map(Some)
    }

    fn without_body(request: &request::Parts, has_body: bool) -> Result<Self, ForwardRejection> {
        if has_body {
            let reason = "a WebSocket handshake with a body";
            return Err(ForwardRejection::Handshake(reason));
        }
        Self::read(&request.headers)
    }

    fn read(headers: &HeaderMap) -> Result<Self, ForwardRejection> {
        let key = only(headers, &header::SEC_WEBSOCKET_KEY)
            .filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16));
        let reason = "Sec-WebSocket-Key is not one value of 16 bytes in base64";
        let key = key.ok_or(ForwardRejection::Handshake(reason))?;
        let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        Ok(Self {
            accept: STANDARD.encode(digest),
        })
    }

    /// Checks that a 101 switches to WebSocket and answers this handshake (RFC 6455 §4.1). Otherwise the two sides
    /// would not speak the same protocol on one connection, and one could take the data of the other for a request.
    ///
    /// # Errors
    /// [`ForwardFault::BrokenResponse`]
    pub fn check(&self, response: &response::Parts) -> Result<(), ForwardFault> {
        let answers = response.version == Version::HTTP_11
            && switches_to_websocket(&response.headers)
            && only(&response.headers, &header::SEC_WEBSOCKET_ACCEPT)
                == Some(self.accept.as_bytes());
        if answers {
            Ok(())
        } else {
            let reason = "101 (Switching Protocols) that does not answer the handshake".into();
            Err(ForwardFault::BrokenResponse(reason))
        }
    }
}

fn switches_to_websocket(headers: &HeaderMap) -> bool {
    lists(headers, &header::UPGRADE, b"websocket")
        && lists(headers, &header::CONNECTION, b"upgrade")
}

/// The value of a field that is given once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    single(headers, name).ok().flatten()
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};

    use super::*;

    const FIELDS: &str = "Upgrade: websocket\nConnection: keep-alive, Upgrade\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n";

    fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
        text.lines().filter_map(|line| line.split_once(": "))
    }

    fn begun(
        method: &str,
        version: Version,
        text: &str,
    ) -> Result<Option<Handshake>, ForwardRejection> {
        let mut request = Request::builder().method(method).version(version);
        for (name, value) in fields(text) {
            request = request.header(name, value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        Handshake::begun_by(&parts, text.contains("Content-Length"))
    }

    #[test]
    fn answers_the_example_of_the_rfc() {
        let handshake = begun("GET", Version::HTTP_11, FIELDS);
        let handshake = handshake.expect("well-formed").expect("one is begun");
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let check = |version: Version, text: &str| {
            let mut response = Response::builder().status(101).version(version);
            for (name, value) in fields(text) {
                response = response.header(name, value);
            }
            let (parts, ()) = response.body(()).expect("a response").into_parts();
            handshake.check(&parts).is_ok()
        };
        let good = "Upgrade: WebSocket\nConnection: upgrade\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n";
        assert!(check(Version::HTTP_11, good));
        assert!(!check(Version::HTTP_10, good));
        for (from, to) in [
            ("WebSocket\n", "h2c\n"),
            ("Upgrade: WebSocket\n", ""),
            ("Connection: upgrade\n", ""),
            ("s3pP", "S3pP"),
            ("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n", ""),
            (
                "xOo=\n",
                "xOo=\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n",
            ),
        ] {
            let other = good.replace(from, to);
            assert_ne!(other, good);
            assert!(!check(Version::HTTP_11, &other), "{from} -> {to}");
        }
    }

    #[test]
    fn is_begun_only_by_a_whole_one() {
        for (method, version, text) in [
            ("POST", Version::HTTP_11, FIELDS.to_owned()),
            ("GET", Version::HTTP_10, FIELDS.to_owned()),
            ("GET", Version::HTTP_11, FIELDS.replace("websocket", "h2c")),
            ("GET", Version::HTTP_11, FIELDS.replace(", Upgrade", "")),
            ("GET", Version::HTTP_11, String::new()),
        ] {
            assert_eq!(begun(method, version, &text), Ok(None), "{method} {text}");
        }
        let offers = FIELDS.replace("websocket", "h2c, WebSocket");
        assert!(begun("GET", Version::HTTP_11, &offers).is_ok_and(|begun| begun.is_some()));
        for text in [
            FIELDS.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n", ""),
            FIELDS.replace("dGhl", ""),
            FIELDS.replace("==", ""),
            format!("{FIELDS}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"),
            format!("{FIELDS}Content-Length: 4\n"),
        ] {
            assert!(begun("GET", Version::HTTP_11, &text).is_err(), "{text}");
        }
    }
}
