//! Heads that must be read in one way, and heads that must not be read at all.

use proptest::prelude::*;

use super::*;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 4096,
    head_fields: 20,
    target_bytes: 1000,
};

fn up_to(head_bytes: usize) -> HeadLimits {
    HeadLimits {
        head_bytes,
        ..LIMITS
    }
}

fn request(text: &[u8]) -> Result<RequestHead, HeadError> {
    let mut bytes = Buffer::take();
    bytes.extend_from_slice(text);
    RequestHead::parse(bytes, &LIMITS)
}

fn response(text: &[u8]) -> Result<ResponseHead, HeadError> {
    let mut bytes = Buffer::take();
    bytes.extend_from_slice(text);
    ResponseHead::parse(bytes, &LIMITS)
}

#[test]
fn reads_a_request() {
    let head = request(b"GET /a?b HTTP/1.1\r\nHost: x\r\nX-A:\t b c \t\r\nx-empty:\r\n\r\n")
        .expect("good");
    assert_eq!((head.method(), head.target()), (&b"GET"[..], &b"/a?b"[..]));
    assert_eq!(head.version, Version::Http11);
    let fields: Vec<_> = head
        .fields
        .iter()
        .map(|field| (field.name, field.value))
        .collect();
    assert_eq!(
        fields,
        [
            (&b"Host"[..], &b"x"[..]),
            (b"X-A", b"b c"),
            (b"x-empty", b"")
        ]
    );
    assert_eq!(head.fields.single(Name::Host), Ok(Some(&b"x"[..])));
    assert_eq!(head.fields.single(Name::Cookie), Ok(None));
}

#[test]
fn refuses_what_is_not_exactly_a_request() {
    use HeadError as E;
    for (text, error) in [
        (&b"GET / HTTP/1.1\nHost: x\r\n\r\n"[..], E::LineEnd),
        (b"GET / HTTP/1.1\r\nHost: x\n\r\n", E::LineEnd),
        (b"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", E::FieldValue),
        (b"GET / HTTP/1.1\r\nA: b\x00\r\n\r\n", E::FieldValue),
        (b"GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n", E::FieldValue),
        (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", E::Folded),
        (b"GET / HTTP/1.1\r\n A: b\r\n\r\n", E::Folded),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", E::FieldName),
        (b"GET / HTTP/1.1\r\nA\r\n\r\n", E::FieldName),
        (b"GET / HTTP/1.1\r\n: b\r\n\r\n", E::FieldName),
        (b"GET / HTTP/1.1\r\nA\xc3: b\r\n\r\n", E::FieldName),
        (b"GET / HTTP/1.1\r\nA\x00: b\r\n\r\n", E::FieldName),
        (
            b"GET / HTTP/1.1\r\nSixteen-letters-: b\rc\r\n\r\n",
            E::FieldValue,
        ),
        (
            b"GET / HTTP/1.1\r\nSixteen-letters-and no more word: b\r\n\r\n",
            E::FieldName,
        ),
        (
            b"GET / HTTP/1.1\r\nSixteen-letters-\x00nd-no-more-word: b\r\n\r\n",
            E::FieldName,
        ),
        (b"GET / HTTP/1.1\r\nA: b\r\n\rB: c\r\n\r\n", E::FieldName),
        (b"GET / HTTP/1.1\r\r\nA: b\r\n\r\n", E::Version),
        (b"GET  / HTTP/1.1\r\n\r\n", E::StartLine),
        (b"GET /  HTTP/1.1\r\n\r\n", E::StartLine),
        (b"GET / HTTP/1.1 \r\n\r\n", E::Version),
        (b" GET / HTTP/1.1\r\n\r\n", E::StartLine),
        (b"GET /\r\n\r\n", E::StartLine),
        (b"GET\r\n\r\n", E::StartLine),
        (b"\r\n", E::StartLine),
        (b"G@T / HTTP/1.1\r\n\r\n", E::StartLine),
        (b"GET / http/1.1\r\n\r\n", E::StartLine),
        (b"GET / HTTP/2.0\r\n\r\n", E::Version),
        (b"GET / HTTP/1.11\r\n\r\n", E::Version),
        (b"GET /\t HTTP/1.1\r\n\r\n", E::Target),
        (b"GET /\x01 HTTP/1.1\r\n\r\n", E::Target),
        (b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", E::Target),
        (b"GET /a#b HTTP/1.1\r\n\r\n", E::Target),
    ] {
        assert_eq!(
            request(text).err(),
            Some(error),
            "{:?}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn bounds_fields_and_target() {
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(21));
    assert_eq!(
        request(many.as_bytes()).err(),
        Some(HeadError::TooManyFields)
    );
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1000));
    assert_eq!(
        request(long.as_bytes()).err(),
        Some(HeadError::TargetTooLong)
    );
}

#[test]
fn finds_the_end_whatever_the_pieces() {
    let text = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nbody";
    for first in 0..text.len() {
        let mut lines = HeadLines::default();
        let early = lines.find(&text[..first], &LIMITS).expect("no error yet");
        let found = early.or_else(|| lines.find(text, &LIMITS).expect("good"));
        assert_eq!(found, Some(27), "{first}");
    }
    assert_eq!(
        HeadLines::default().find(b"GET / HTTP/1.1\n", &LIMITS),
        Err(HeadError::LineEnd)
    );
    assert_eq!(
        HeadLines::default().find(b"GET / HTTP/1.1\r\n\n", &LIMITS),
        Err(HeadError::LineEnd)
    );
    assert_eq!(
        HeadLines::default().find(&[b'a'; 50], &up_to(50)),
        Err(HeadError::TooLarge)
    );
    assert_eq!(
        HeadLines::default().find(text, &up_to(26)),
        Err(HeadError::TooLarge)
    );
}

#[test]
fn reads_an_answer() {
    let head = response(b"HTTP/1.1 404 Not Found\r\nServer: x\r\n\r\n").expect("good");
    assert_eq!((head.status, head.reason()), (404, &b"Not Found"[..]));
    assert_eq!(
        response(b"HTTP/1.0 200\r\n\r\n").expect("good").reason(),
        b""
    );
    assert_eq!(
        response(b"HTTP/1.1 200 \r\n\r\n").expect("good").reason(),
        b""
    );
}

#[test]
fn refuses_what_is_not_exactly_an_answer() {
    for text in [
        &b"HTTP/1.1 20 OK\r\n\r\n"[..],
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 200 O\x01K\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"200 OK\r\n\r\n",
    ] {
        assert!(
            response(text).is_err(),
            "{:?}",
            String::from_utf8_lossy(text)
        );
    }
}

proptest! {
    /// What this parser takes, httparse takes too, and reads alike.
    #[test]
    fn agrees_with_httparse(text in prop::collection::vec(prop_oneof![
        Just(b"GET / HTTP/1.1\r\n".to_vec()), Just(b"A: b\r\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"\n".to_vec()),
        Just(b"Host:x\r\n".to_vec()), Just(b" ".to_vec()), Just(b"\t".to_vec()), prop::collection::vec(any::<u8>(), 1..4),
    ], 1..8)) {
        let mut text = text.concat();
        text.extend_from_slice(b"\r\n\r\n");
        let Ok(Some(end)) = HeadLines::default().find(&text, &LIMITS) else { return Ok(()) };
        if let Ok(ours) = request(&text[..end]) {
            let mut headers = [httparse::EMPTY_HEADER; 20];
            let mut theirs = httparse::Request::new(&mut headers);
            prop_assert!(theirs.parse(&text[..end]).is_ok_and(|status| status.is_complete()));
            prop_assert_eq!(theirs.method.map(str::as_bytes), Some(ours.method()));
            prop_assert_eq!(theirs.path.map(str::as_bytes), Some(ours.target()));
            let ours: Vec<_> = ours.fields.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
            let theirs: Vec<_> = theirs.headers.iter().map(|field| (field.name.as_bytes().to_vec(), field.value.to_vec())).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
