//! A request's head is found and read as the model does it, however it arrives, and `httparse` agrees on what is accepted.

#![no_main]

use countersign::{
    http1::{
        framing::{self, Framing},
        head::{HeadError, HeadLimits, HeadLines, RequestHead, Version},
        pool::Buffer,
    },
    parse::signed::is_form,
};
use countersign_fuzz::http as model;
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 512,
    head_fields: 12,
    target_bytes: 64,
};

fuzz_target!(|input: &[u8]| {
    // The first two bytes tell the sizes of the pieces in which the rest arrives.
    let Some((cuts, input)) = input.split_at_checked(2) else {
        return;
    };
    let whole = HeadLines::default().find(input, &LIMITS);
    let mut lines = HeadLines::default();
    let mut arrived = 0;
    let mut found = Ok(None);
    for piece in model::pieces(input, cuts) {
        arrived += piece.len();
        found = lines.find(&input[..arrived], &LIMITS);
        if found != Ok(None) {
            break;
        }
    }
    match (whole, found) {
        // Which of two faults comes first may depend on the pieces; that there is one may not.
        (Err(HeadError::TooLarge), Err(_)) | (Err(_), Err(HeadError::TooLarge)) => {}
        _ => assert_eq!(whole, found),
    }
    let end = model::head_end(input);
    match whole {
        Ok(Some(length)) => assert_eq!(end, model::Found::Whole(length)),
        Ok(None) => assert_eq!(end, model::Found::Incomplete),
        Err(HeadError::LineEnd) => assert_eq!(end, model::Found::Wrong),
        Err(HeadError::TooManyFields) => {
            let lines = input.iter().filter(|&&byte| byte == b'\n').count();
            assert!(lines > LIMITS.head_fields + 1);
        }
        Err(error) => {
            assert_eq!(error, HeadError::TooLarge);
            assert!(input.len() >= LIMITS.head_bytes);
        }
    }
    // The parser stands alone: what nobody has looked at before must not make it panic either.
    let length = whole.ok().flatten().unwrap_or(input.len());
    check(&input[..length]);
});

fn parse(bytes: &[u8]) -> Result<RequestHead, HeadError> {
    let mut buffer = Buffer::take();
    buffer.extend_from_slice(bytes);
    RequestHead::parse(buffer, &LIMITS)
}

fn check(bytes: &[u8]) {
    let parsed = parse(bytes);
    let whole = model::head_end(bytes) == model::Found::Whole(bytes.len());
    let Some(expected) = model::request_head(bytes).filter(|_| whole) else {
        assert!(parsed.is_err() || !whole, "accepted {parsed:?}");
        return;
    };
    let head = match parsed {
        Ok(head) => head,
        Err(HeadError::TooManyFields) => {
            assert!(expected.fields.len() > LIMITS.head_fields);
            return;
        }
        Err(HeadError::TargetTooLong) => {
            assert!(expected.first_line[1].len() > LIMITS.target_bytes);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let fields: Vec<(&[u8], &[u8])> = head.fields.iter().map(|field| (field.name, field.value)).collect();
    assert_eq!([head.method(), head.target()], expected.first_line[..2]);
    assert_eq!(fields, expected.fields);
    let http10 = head.version == Version::Http10;
    assert_eq!(http10, expected.first_line[2] == b"HTTP/1.0");

    let written = render(&head);
    let again = parse(&written).expect("what was accepted is accepted again");
    assert_eq!(render(&again), written);
    agrees_with_httparse(bytes, &head, &fields);

    let framing = framing::request(&head).ok();
    let expected_framing = model::length(&expected, http10).map(|length| match length {
        model::Length::Unsaid | model::Length::Bytes(0) => Framing::None,
        model::Length::Bytes(length) => Framing::Length(length),
        model::Length::Chunked => Framing::Chunked,
    });
    assert_eq!(framing, expected_framing);
    let persistence = framing::persistence(&head.fields, head.version).ok();
    assert_eq!(persistence.map(|found| found.keep_alive), model::keeps_alive(&expected, http10));
    for (name, _) in &fields {
        let named = framing::is_named_by_connection(&head.fields, name);
        assert!(!named || !expected.all("connection").is_empty());
    }

    // Whatever reads as a form somewhere is either taken for one or refused.
    let form = is_form(&head);
    let types = expected.all("content-type");
    if let [only] = types[..]
        && only.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        && expected.all("content-encoding").is_empty()
    {
        assert!(matches!(form, Ok(true)));
    }
    if types.is_empty() {
        assert!(matches!(form, Ok(false)));
    }
}

fn render(head: &RequestHead) -> Vec<u8> {
    let version = if head.version == Version::Http10 { "0" } else { "1" };
    let mut out = [head.method(), b" ", head.target(), b" HTTP/1.", version.as_bytes(), b"\r\n"].concat();
    for field in head.fields.iter() {
        out.extend([field.name, b": ", field.value, b"\r\n"].concat());
    }
    out.extend(b"\r\n");
    out
}

fn agrees_with_httparse(bytes: &[u8], head: &RequestHead, fields: &[(&[u8], &[u8])]) {
    let mut lines = [httparse::EMPTY_HEADER; LIMITS.head_fields];
    let mut other = httparse::Request::new(&mut lines);
    let read = other.parse(bytes).expect("what is accepted here is accepted there");
    assert_eq!(read, httparse::Status::Complete(bytes.len()));
    assert_eq!(other.method.map(str::as_bytes), Some(head.method()));
    assert_eq!(other.path.map(str::as_bytes), Some(head.target()));
    assert_eq!(other.version, Some(u8::from(head.version == Version::Http11)));
    let theirs: Vec<(&[u8], &[u8])> = other.headers.iter().map(|line| (line.name.as_bytes(), line.value)).collect();
    assert_eq!(theirs, fields);
}
