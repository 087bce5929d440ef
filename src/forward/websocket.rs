//! WebSocket's opening handshake (RFC 6455 §4), as far as a proxy answers for it: that one was asked for, and that the
//! API agreed to this one.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::{Digest as _, Sha1};

use crate::{
    http1::{
        framing::{self, Framing},
        head::{Field, Fields, RequestHead, ResponseHead, Version},
        name::Name,
        token::list,
    },
    refusal::{Fault, Refusal},
};

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
    /// [`Refusal::Malformed`] if it begins one that no server could accept.
    pub fn begun_by(head: &RequestHead, framing: Framing) -> Result<Option<Self>, Refusal> {
        if head.version != Version::Http11
            || head.method() != b"GET"
            || !names(&head.fields, Name::Upgrade, b"websocket")
            || !framing::is_named_by_connection(&head.fields, b"upgrade")
        {
            return Ok(None);
        }
        let malformed = |reason: &'static str| Refusal::Malformed(reason.into());
        if framing != Framing::None {
            return Err(malformed("a WebSocket handshake with a body"));
        }
        let key = only(&head.fields, b"sec-websocket-key")
            .filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16))
            .ok_or_else(|| malformed("Sec-WebSocket-Key is not one value of 16 bytes in base64"))?;
        let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        Ok(Some(Self {
            accept: STANDARD.encode(digest),
        }))
    }

    /// Checks that a 101 switches to WebSocket and answers this handshake (RFC 6455 §4.1). Otherwise the two sides would
    /// not speak the same protocol on one connection, and what one means as data the other may take for a request.
    ///
    /// # Errors
    /// [`Fault::BrokenAnswer`]
    pub fn check(&self, head: &ResponseHead) -> Result<(), Fault> {
        let answers = head.version == Version::Http11
            && names(&head.fields, Name::Upgrade, b"websocket")
            && framing::is_named_by_connection(&head.fields, b"upgrade")
            && only(&head.fields, b"sec-websocket-accept") == Some(self.accept.as_bytes());
        if answers {
            Ok(())
        } else {
            let reason = "101 (Switching Protocols) that does not answer the handshake".into();
            Err(Fault::BrokenAnswer(reason))
        }
    }
}

fn names(fields: &Fields, name: Name, element: &[u8]) -> bool {
    fields
        .all(name)
        .flat_map(list)
        .any(|listed| listed.eq_ignore_ascii_case(element))
}

/// The value of a field that stands once.
fn only<'f>(fields: &'f Fields, name: &[u8]) -> Option<&'f [u8]> {
    let mut found = fields
        .iter()
        .filter(|field: &Field<'_>| field.name.eq_ignore_ascii_case(name));
    let first = found.next()?;
    found.next().is_none().then_some(first.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{head::HeadLimits, pool::Buffer};

    const LIMITS: HeadLimits = HeadLimits {
        head_bytes: 4096,
        head_fields: 20,
        target_bytes: 1000,
    };

    fn bytes(text: &str) -> Buffer {
        let mut bytes = Buffer::take();
        bytes.extend_from_slice(text.replace('\n', "\r\n").as_bytes());
        bytes
    }

    fn begun(first: &str, fields: &str) -> Result<Option<Handshake>, Refusal> {
        let head = RequestHead::parse(bytes(&format!("{first}\nHost: h\n{fields}\n")), &LIMITS);
        let head = head.expect("a good head");
        let framing = framing::request(&head).expect("a good framing");
        Handshake::begun_by(&head, framing)
    }

    const FIELDS: &str = "Upgrade: websocket\nConnection: keep-alive, Upgrade\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n";

    #[test]
    fn answers_the_example_of_the_rfc() {
        let handshake = begun("GET /chat HTTP/1.1", FIELDS);
        let handshake = handshake.expect("well-formed").expect("one is begun");
        assert_eq!(handshake.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let check = |text: &str| {
            let head = ResponseHead::parse(bytes(text), &LIMITS).expect("a good head");
            handshake.check(&head).is_ok()
        };
        let good = "HTTP/1.1 101 Switching Protocols\nUpgrade: WebSocket\nConnection: upgrade\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n\n";
        assert!(check(good));
        for (from, to) in [
            ("WebSocket", "h2c"),
            ("Upgrade: WebSocket\n", ""),
            ("Connection: upgrade\n", ""),
            ("s3pP", "S3pP"),
            ("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n", ""),
            (
                "\n\n",
                "\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n\n",
            ),
            ("HTTP/1.1", "HTTP/1.0"),
        ] {
            assert!(!check(&good.replace(from, to)), "{from} -> {to}");
        }
    }

    #[test]
    fn is_begun_only_by_a_whole_one() {
        for (first, fields) in [
            ("POST /chat HTTP/1.1", FIELDS.to_owned()),
            ("GET /chat HTTP/1.0", FIELDS.to_owned()),
            ("GET /chat HTTP/1.1", FIELDS.replace("websocket", "h2c")),
            ("GET /chat HTTP/1.1", FIELDS.replace(", Upgrade", "")),
            ("GET /chat HTTP/1.1", String::new()),
        ] {
            assert_eq!(begun(first, &fields), Ok(None), "{first} {fields}");
        }
        assert!(
            begun(
                "GET / HTTP/1.1",
                &FIELDS.replace("websocket", "h2c, WebSocket")
            )
            .is_ok_and(|begun| begun.is_some())
        );
        for fields in [
            FIELDS.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n", ""),
            FIELDS.replace("dGhl", ""),
            FIELDS.replace("==", ""),
            format!("{FIELDS}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"),
            format!("{FIELDS}Content-Length: 4\n"),
        ] {
            assert!(begun("GET / HTTP/1.1", &fields).is_err(), "{fields}");
        }
    }
}
