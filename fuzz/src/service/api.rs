//! The API: reads HTTP/1.1 strictly, judges the requests, and answers as the script says.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    time::sleep,
};

use super::{
    Seen,
    template::{self, Bearer, Signed},
};
use crate::{Pair, form, http as model};

/// The text of a response to no request.
pub const SURPLUS: &[u8] = b"SURPLUS";

/// The requests that the API expects and has seen, and its next answers.
#[derive(Default)]
pub struct Api {
    /// The signed requests, by number.
    pub signed: RefCell<Vec<Signed>>,
    /// The ways to answer the next requests.
    pub turns: RefCell<VecDeque<Turn>>,
    seen: RefCell<BTreeMap<usize, Sighting>>,
    others: Cell<usize>,
    described: Cell<usize>,
}

pub enum Turn {
    Usual(u8),
    Raw(Vec<u8>),
}

/// The record of a request that was seen.
struct Sighting {
    times: usize,
    /// The proxy may send it again: it came on a connection that had served another, and nothing was answered.
    repeatable: bool,
}

struct Request {
    method: String,
    target: Vec<u8>,
    fields: Vec<(String, Vec<u8>)>,
}

enum Length {
    Bytes(usize),
    Chunked,
}

impl Request {
    fn all(&self, name: &str) -> Vec<&[u8]> {
        let same = self
            .fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name));
        same.map(|(_, value)| &**value).collect()
    }

    fn only(&self, name: &str) -> Option<&[u8]> {
        let values = self.all(name);
        assert!(values.len() < 2, "{name} is given more than once");
        values.first().copied()
    }

    /// As the most lenient framework might see it.
    fn is_form(&self) -> bool {
        let mut letters = self.all("content-type").concat().to_ascii_lowercase();
        letters.retain(u8::is_ascii_alphabetic);
        letters.windows(10).any(|part| part == b"urlencoded")
    }

    fn length(&self) -> Length {
        match (self.only("content-length"), self.only("transfer-encoding")) {
            (None, None) => Length::Bytes(0),
            (Some(length), None) => {
                assert!(length.iter().all(u8::is_ascii_digit), "{length:?}");
                Length::Bytes(
                    std::str::from_utf8(length)
                        .expect("digits")
                        .parse()
                        .expect("a length"),
                )
            }
            (None, Some(coding)) => {
                assert_eq!(coding, b"chunked");
                Length::Chunked
            }
            (Some(_), Some(_)) => panic!("a length beside a coding"),
        }
    }
}

/// The name as the most lenient API might read it.
fn folded(name: &str) -> String {
    name.chars()
        .map(|found| {
            if found.is_ascii_alphanumeric() {
                found.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}

/// The head at the front, and its length; nothing if it is incomplete.
fn head(input: &[u8]) -> Option<(Request, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut fields);
    let length = match parsed.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(error) => panic!("{error} in {:?}", String::from_utf8_lossy(input)),
    };
    let bytes = &input[..length];
    for (at, &byte) in bytes.iter().enumerate() {
        let lone = match byte {
            b'\n' => at == 0 || bytes[at - 1] != b'\r',
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            b'\0' => true,
            _ => false,
        };
        assert!(
            !lone,
            "a lone {byte:#x} in {:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    assert_eq!(parsed.version, Some(1));
    let request = Request {
        method: parsed.method.expect("complete").to_owned(),
        target: parsed.path.expect("complete").as_bytes().to_vec(),
        fields: parsed
            .headers
            .iter()
            .map(|field| (field.name.to_owned(), field.value.to_vec()))
            .collect(),
    };
    Some((request, length))
}

fn body(request: &Request, input: &[u8]) -> Option<(Vec<u8>, usize)> {
    match request.length() {
        Length::Bytes(length) => input.get(..length).map(|body| (body.to_vec(), length)),
        Length::Chunked => match model::chunked(input) {
            model::Found::Whole(found) => Some(found),
            model::Found::Incomplete => None,
            model::Found::Wrong => panic!("a broken coding: {:?}", String::from_utf8_lossy(input)),
        },
    }
}

/// The pairs without credentials.
fn plain(pairs: Option<Vec<Pair>>) -> Vec<Pair> {
    let pairs = pairs.expect("what was verified can be decoded");
    assert!(
        !pairs.iter().any(|(name, _)| name.starts_with(b"oauth_")),
        "credentials: {pairs:?}"
    );
    pairs
}

/// Reads the responses to descriptions; counts those that permit a call, by identity.
pub fn permitted(mut input: &[u8]) -> [usize; 2] {
    let mut counts = [0; 2];
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Response::new(&mut fields);
        let Ok(httparse::Status::Complete(length)) = parsed.parse(input) else {
            return counts;
        };
        let only = |name: &str| {
            let mut values = parsed
                .headers
                .iter()
                .filter(|field| field.name.eq_ignore_ascii_case(name));
            let value = values
                .next()
                .map(|field| std::str::from_utf8(field.value).expect("ASCII"));
            assert!(values.next().is_none(), "{name} is given more than once");
            value
        };
        if parsed.code == Some(200) {
            let names = [
                "x-auth-kind",
                "x-auth-consumer",
                "x-auth-user",
                "x-auth-permissions",
            ];
            match names.map(|name| only(name).expect("an identity header, empty or not")) {
                [
                    "consumer",
                    template::CONSUMER,
                    template::USER,
                    template::PERMISSION,
                ] => counts[0] += 1,
                ["application", template::CONSUMER, "", template::PERMISSION] => counts[1] += 1,
                ["user", "", template::USER, ""] | ["anonymous", "", "", ""] => {}
                other => panic!("{other:?}"),
            }
        }
        let body = only("content-length").map_or(0, |length| length.parse().expect("a length"));
        input = input.get(length + body..).unwrap_or_default();
    }
}

impl Api {
    /// Checks that at most as many calls were permitted as were signed and may pass, counting both ways together.
    pub fn judge_permitted(&self, described: [usize; 2]) {
        self.described.set(described.iter().sum());
        let (signed, seen) = (self.signed.borrow(), self.seen.borrow());
        for (bearer, described) in [Bearer::Consumer, Bearer::Application]
            .into_iter()
            .zip(described)
        {
            let left = |(number, signed): &(usize, &Signed)| {
                signed.bearer == bearer && signed.is_describable() && !seen.contains_key(number)
            };
            let left = signed.iter().enumerate().filter(left).count();
            assert!(
                described <= left,
                "{described} descriptions of {bearer:?} pass, and {left} may"
            );
        }
    }

    /// The requests seen until now.
    pub fn seen(&self) -> Seen {
        Seen {
            signed: self.seen.borrow().keys().copied().collect(),
            others: self.others.get(),
            described: self.described.get(),
        }
    }

    /// Serves a connection of the proxy.
    pub async fn serve(&self, mut stream: DuplexStream) {
        let mut input = Vec::new();
        let mut served = 0_usize;
        loop {
            let (request, length) = loop {
                if let Some(found) = head(&input) {
                    break found;
                }
                if stream
                    .read_buf(&mut input)
                    .await
                    .is_ok_and(|read| read == 0)
                {
                    return;
                }
            };
            input.drain(..length);
            let turn = self
                .turns
                .borrow_mut()
                .pop_front()
                .unwrap_or(Turn::Usual(0));
            let answers_early = matches!(turn, Turn::Usual(1 | 2));
            let mut early = None;
            if !request.is_form() {
                early = self.judge(&request, None, served);
                if answers_early && !self.answer(&mut stream, &request, &turn, early).await {
                    return;
                }
            }
            let (sent, length) = loop {
                if let Some(found) = body(&request, &input) {
                    break found;
                }
                if stream
                    .read_buf(&mut input)
                    .await
                    .is_ok_and(|read| read == 0)
                {
                    return;
                }
            };
            input.drain(..length);
            let number = if request.is_form() {
                self.judge(&request, Some(&sent), served)
            } else {
                early
            };
            if let Some(number) = number
                && let Some(hashed) = &self.signed.borrow()[number].body
            {
                assert_eq!(*hashed, sent);
            }
            let answered = !request.is_form() && answers_early;
            if !answered && !self.answer(&mut stream, &request, &turn, number).await {
                return;
            }
            served += 1;
        }
    }

    /// Checks that the request is one that was verified; returns its number if it was a signed one.
    fn judge(&self, request: &Request, body: Option<&[u8]>, served: usize) -> Option<usize> {
        for (name, value) in &request.fields {
            let known = [
                "x-auth-user",
                "x-auth-consumer",
                "x-auth-permissions",
                "x-auth-kind",
                "authorization",
                "cookie",
            ];
            let folded = folded(name);
            assert!(
                !known.contains(&&*folded) || name.eq_ignore_ascii_case(&folded),
                "{name} passes for another"
            );
            let text = String::from_utf8_lossy(value);
            match &*folded {
                "authorization" => {
                    assert!(!text.to_ascii_lowercase().starts_with("oauth"), "{text}")
                }
                "cookie" => {
                    let mut names = text
                        .split(';')
                        .map(|pair| pair.split('=').next().unwrap_or_default().trim());
                    assert!(!names.any(|name| name == "__Host-countersign"), "{text}");
                }
                _ => {}
            }
        }
        assert_eq!(request.only("x-forwarded-for"), Some(&b"192.0.2.7"[..]));
        assert_eq!(request.only("x-forwarded-proto"), Some(&b"https"[..]));
        let host = request.only("host").expect("Host").to_ascii_lowercase();
        assert!(
            [&b"api.test"[..], b"api.test:443"].contains(&&*host),
            "{host:?}"
        );
        let text = |name| {
            request
                .only(name)
                .map(|value| std::str::from_utf8(value).expect("ASCII"))
        };
        let identity = (
            text("x-auth-kind"),
            text("x-auth-consumer"),
            text("x-auth-user"),
            text("x-auth-permissions"),
        );
        let mut halves = request.target.splitn(2, |&byte| byte == b'?');
        let path = halves.next().unwrap_or_default();
        let query = halves.next().unwrap_or_default();
        match identity.0 {
            Some("anonymous") => {
                assert_eq!((identity.1, identity.2, identity.3), (None, None, None));
                assert!(path.starts_with(b"/open/"), "{path:?}");
                self.others.set(self.others.get() + 1);
                return None;
            }
            Some("user") => {
                assert_eq!(
                    (identity.1, identity.2, identity.3),
                    (None, Some(template::USER), None)
                );
                assert_eq!(path, b"/me");
                assert!(
                    ["GET", "HEAD"].contains(&&*request.method),
                    "{}",
                    request.method
                );
                self.others.set(self.others.get() + 1);
                return None;
            }
            _ => {}
        }
        let query = plain(form(query));
        let number = query
            .iter()
            .chain(&plain(form(body.unwrap_or_default())))
            .find(|(name, _)| name == b"n")
            .cloned();
        let (_, number) = number.expect("every template has a number");
        let number: usize = std::str::from_utf8(&number)
            .expect("digits")
            .parse()
            .expect("a number");
        let signed = self.signed.borrow();
        let signed = signed.get(number).expect("it was signed");
        assert!(
            signed.method.eq_ignore_ascii_case(&request.method),
            "{}",
            request.method
        );
        assert_eq!(signed.path.as_bytes(), path);
        // A signature does not say whether a parameter was in the query or in the form (RFC 5849 §3.4.1.3).
        let mut found = [query, plain(form(body.unwrap_or_default()))].concat();
        let mut expected = [&signed.query[..], &signed.form].concat();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        let permissions = Some(template::PERMISSION);
        assert_eq!(
            identity,
            match signed.bearer {
                Bearer::Consumer => (
                    Some("consumer"),
                    Some(template::CONSUMER),
                    Some(template::USER),
                    permissions
                ),
                Bearer::Application => (
                    Some("application"),
                    Some(template::CONSUMER),
                    None,
                    permissions
                ),
                Bearer::Never => panic!("{number} must not pass"),
            }
        );
        let mut seen = self.seen.borrow_mut();
        let sighting = seen.entry(number).or_insert(Sighting {
            times: 0,
            repeatable: false,
        });
        assert!(
            sighting.times == 0 || sighting.repeatable,
            "{number} passes again"
        );
        let is_safe_to_repeat =
            ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains(&&*request.method);
        let has_body = matches!(request.length(), Length::Bytes(1..) | Length::Chunked);
        *sighting = Sighting {
            times: sighting.times + 1,
            repeatable: sighting.times == 0 && served > 0 && is_safe_to_repeat && !has_body,
        };
        Some(number)
    }

    /// Answers; `false` if the connection ends with it.
    async fn answer(
        &self,
        stream: &mut DuplexStream,
        request: &Request,
        turn: &Turn,
        number: Option<usize>,
    ) -> bool {
        let silent = match turn {
            Turn::Usual(code) => matches!(code, 3 | 4),
            Turn::Raw(bytes) => bytes.is_empty(),
        };
        if !silent && let Some(number) = number {
            // A proxy that has had a response has no reason to send the request again.
            if let Some(sighting) = self.seen.borrow_mut().get_mut(&number) {
                sighting.repeatable = false;
            }
        }
        let head_only = request.method == "HEAD";
        let mut goes_on = true;
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        match turn {
            Turn::Raw(bytes) => {
                pieces.push(bytes.clone());
                goes_on = false;
            }
            Turn::Usual(code) => match code {
                // Early.
                1 => pieces.push(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n".to_vec()),
                2 => {
                    pieces.push(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec());
                    goes_on = false;
                }
                3 => goes_on = false,
                // Never.
                4 => {
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                    return false;
                }
                5 => {
                    pieces.push(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec());
                    if !head_only {
                        pieces.push(b"3\r\nabc\r\n".to_vec());
                        pieces.push(b"0\r\nX-Trailer: 1\r\n\r\n".to_vec());
                    }
                }
                6 => pieces.push(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
                7 => pieces.push(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n".to_vec()),
                8 => {
                    pieces.push(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec());
                    pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec());
                }
                9 => {
                    pieces.push(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
                    pieces.push(b"until the end".to_vec());
                    goes_on = false;
                }
                // Cut off.
                10 => {
                    pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab".to_vec());
                    goes_on = false;
                }
                11 => {
                    pieces.push(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab".to_vec());
                    goes_on = false;
                }
                12 | 13 => {
                    let accept = if *code == 12 { template::ACCEPT } else { "other" };
                    let head = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\nhi"
                    );
                    let _ = stream.write_all(head.as_bytes()).await;
                    let mut buffer = [0; 256];
                    while let Ok(1..) = stream.read(&mut buffer).await {
                        let _ = stream.write_all(b"ho").await;
                    }
                    return false;
                }
                // A second response that answers no request, in one piece with the first.
                14 | 15 => {
                    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
                    bytes.extend(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
                    bytes.extend(SURPLUS);
                    pieces.push(bytes);
                    goes_on = *code == 14;
                }
                16 => pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec()),
                17 => pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc".to_vec()),
                18 => pieces.push(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n".to_vec()),
                19 => pieces.push(b"no HTTP at all\r\n\r\n".to_vec()),
                // In pieces, with waits that are shorter than any limit.
                20 => {
                    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" {
                        sleep(Duration::from_millis(500)).await;
                        pieces.push(vec![*byte]);
                    }
                }
                21 => {
                    sleep(Duration::from_secs(20)).await;
                    pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec());
                }
                22 => {
                    pieces.push(b"HTTP/1.1 302 Found\r\nLocation: http://localhost/x\r\nSet-Cookie: __Host-countersign=x\r\nConnection: x-a, close\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n".to_vec());
                }
                // More than a caller that does not read takes.
                23 => {
                    let head = if head_only { "" } else { "Content-Length: 200000\r\n" };
                    pieces.push(format!("HTTP/1.1 200 OK\r\n{head}\r\n").into_bytes());
                    if head_only {
                        goes_on = false;
                    } else {
                        pieces.push(vec![b'x'; 200_000]);
                    }
                }
                // A late close.
                24 => {
                    pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec());
                    let written = stream.write_all(&pieces[0]).await;
                    sleep(Duration::from_secs(1)).await;
                    return written.is_err();
                }
                _ if head_only => pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".to_vec()),
                _ => pieces.push(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
            },
        }
        for piece in pieces {
            if stream.write_all(&piece).await.is_err() {
                return false;
            }
            if goes_on {
                tokio::task::yield_now().await;
            }
        }
        goes_on
    }
}
