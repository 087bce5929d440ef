//! An answer's head is read as the model does it, and `httparse` agrees on what is accepted.

#![no_main]

use countersign::http1::{
    framing::{self, Framing},
    head::{HeadError, HeadLimits, ResponseHead, Version},
    pool::Buffer,
};
use countersign_fuzz::http as model;
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 512,
    head_fields: 12,
    target_bytes: 64,
};

fuzz_target!(|input: &[u8]| {
    let model::Found::Whole(length) = model::head_end(input) else {
        // Never looked at in the program; it must not panic all the same.
        let _ = parse(input);
        return;
    };
    let bytes = &input[..length];
    let parsed = parse(bytes);
    let Some(expected) = model::response_head(bytes) else {
        assert!(parsed.is_err(), "accepted {parsed:?}");
        return;
    };
    let head = match parsed {
        Ok(head) => head,
        Err(HeadError::TooManyFields) => {
            assert!(expected.fields.len() > LIMITS.head_fields);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let [version, status, reason] = expected.first_line[..] else {
        unreachable!();
    };
    let fields: Vec<(&[u8], &[u8])> = head.fields.iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(fields, expected.fields);
    assert_eq!(head.reason(), reason);
    assert_eq!(head.status.to_string().as_bytes(), status);
    let http10 = head.version == Version::Http10;
    assert_eq!(http10, version == b"HTTP/1.0");

    let mut lines = [httparse::EMPTY_HEADER; LIMITS.head_fields];
    let mut other = httparse::Response::new(&mut lines);
    let read = other.parse(bytes).expect("what is accepted here is accepted there");
    assert_eq!(read, httparse::Status::Complete(length));
    assert_eq!((other.code, other.version), (Some(head.status), Some(u8::from(!http10))));
    // It shows no reason that is not ASCII.
    if reason.is_ascii() {
        assert_eq!(other.reason.map(str::as_bytes), Some(reason));
    }
    let theirs: Vec<(&[u8], &[u8])> = other.headers.iter().map(|line| (line.name.as_bytes(), line.value)).collect();
    assert_eq!(theirs, fields);

    let length = model::length(&expected, http10);
    for to_head in [false, true] {
        let bodiless = to_head || matches!(head.status, 100..=199 | 204 | 304);
        let expected = length.as_ref().map(|length| match length {
            _ if bodiless => Framing::None,
            model::Length::Unsaid => Framing::UntilClose,
            model::Length::Bytes(0) => Framing::None,
            model::Length::Bytes(length) => Framing::Length(*length),
            model::Length::Chunked => Framing::Chunked,
        });
        assert_eq!(framing::response(&head, to_head).ok(), expected);
    }
    let persistence = framing::persistence(&head.fields, head.version).ok();
    assert_eq!(persistence.map(|found| found.keep_alive), model::keeps_alive(&expected, http10));
});

fn parse(bytes: &[u8]) -> Result<ResponseHead, HeadError> {
    let mut buffer = Buffer::take();
    buffer.extend_from_slice(bytes);
    ResponseHead::parse(buffer, &LIMITS)
}
