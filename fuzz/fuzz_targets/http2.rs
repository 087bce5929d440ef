//! Frames are counted alike however they arrive. A head of HTTP/2 says in HTTP/1.1 what it said, and nothing more.

#![no_main]

use countersign::{
    http1::head::{HeadLimits, RequestHead},
    server::http2::{PREFACE, fuzzing},
};
use countersign_fuzz::http as model;
use http::{HeaderName, HeaderValue, Method, Request, header, request::Parts};
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 4096,
    head_fields: 64,
    target_bytes: 1024,
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

fuzz_target!(|input: &[u8]| {
    let Some((cuts, input)) = input.split_at_checked(2) else {
        return;
    };
    frames(cuts, input);
    if let Some(parts) = request(input) {
        head(&parts);
    }
});

fn frames(cuts: &[u8], input: &[u8]) {
    let bytes = [PREFACE, input].concat();
    let whole = fuzzing::frames(&[&bytes]);
    assert_eq!(fuzzing::frames(&model::pieces(&bytes, cuts)), whole);

    let (mut rest, mut expected, mut open, mut unfinished) = (input, Vec::new(), false, false);
    while let Some((head, behind)) = rest.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        expected.push((kind, flags, length));
        if matches!(kind, HEADERS | CONTINUATION) {
            open = flags & END_HEADERS == 0;
        }
        unfinished = length > behind.len() && kind != DATA;
        rest = &behind[length.min(behind.len())..];
    }
    assert_eq!(whole, (expected, open || unfinished || !rest.is_empty()));
}

/// What the HTTP/2 library might hand over: method, target and fields as lines of the input.
fn request(input: &[u8]) -> Option<Parts> {
    let mut lines = input.split(|&byte| byte == b'\n');
    let method = Method::from_bytes(lines.next()?).ok()?;
    let target = lines.next()?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = std::str::from_utf8(target).ok()?.parse().ok()?;
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(&line[colon + 1..]).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request.into_parts().0)
}

fn head(parts: &Parts) {
    let Some(bytes) = fuzzing::head(parts) else {
        return;
    };
    let Ok(head) = RequestHead::parse(bytes, &LIMITS) else {
        return;
    };
    assert_eq!(head.method(), parts.method.as_str().as_bytes());
    let trimmed = |value: &HeaderValue| value.as_bytes().trim_ascii().to_vec();
    let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if let Some(authority) = parts.uri.authority() {
        expected.push((b"host".to_vec(), authority.as_str().as_bytes().to_vec()));
        for host in parts.headers.get_all(header::HOST) {
            assert!(
                host.as_bytes()
                    .eq_ignore_ascii_case(authority.as_str().as_bytes())
            );
        }
    }
    for (name, value) in &parts.headers {
        let told = name == header::HOST && parts.uri.authority().is_some();
        if !told && name != header::COOKIE {
            expected.push((name.as_str().as_bytes().to_vec(), trimmed(value)));
        }
    }
    let crumbs: Vec<&[u8]> = parts
        .headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if !crumbs.is_empty() {
        expected.push((
            b"cookie".to_vec(),
            crumbs.join(&b"; "[..]).trim_ascii().to_vec(),
        ));
    }
    let fields: Vec<_> = head
        .fields
        .iter()
        .map(|field| (field.name.to_vec(), field.value.to_vec()))
        .collect();
    assert_eq!(fields, expected);
}
