//! The two forms of a head over HTTP/1.1 are one, and that over HTTP/2 has the same fields.

use std::task::{Context, Waker};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::{
    base::network::http_fields::{NameFilter, named_by_connection},
    request::forward::tests::params,
    wire::{
        stream::Stream,
        watched::{HeadWaits, WatchedStream},
        written_head::stand_in,
    },
};

/// What a head is rewritten from.
struct Sent {
    parts: Parts,
    target: PathAndQuery,
    names: FieldNames,
    params: ForwardParams,
    permit: Permit,
    request_id: HeaderValue,
    believed: Option<ForwardedFamily>,
    keeps_state: Option<bool>,
    prefix: Option<HeaderValue>,
}

impl Sent {
    fn new(method: &str, target: &'static str, headers: HeaderMap) -> Self {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = method.parse().expect("a method");
        let names = FieldNames {
            present: NameFilter::new(&headers),
            in_connection: named_by_connection(&headers).expect("well-formed"),
        };
        parts.headers = headers;
        Self {
            parts,
            target: PathAndQuery::from_static(target),
            names,
            params: params(),
            permit: Permit::danger_without_verification(),
            request_id: constant("id"),
            believed: None,
            keeps_state: None,
            prefix: None,
        }
    }

    fn head(&self) -> UpstreamHead<'_> {
        UpstreamHead {
            parts: &self.parts,
            names: &self.names,
            params: &self.params,
            permit: &self.permit,
            request_id: &self.request_id,
            target: self.target.clone(),
            received: ReceivedAs {
                authority: constant("api.test:81"),
                secure: true,
                believed: self.believed,
                forwarded_for: Some(constant("192.0.2.1")),
            },
            prefix: self.prefix.as_ref(),
            assertion: None,
            trace: self.keeps_state.map(|keeps_state| ToApi {
                traceparent: constant("ours"),
                keeps_state,
            }),
            response_timeout: self.params.response_timeout,
            websocket: false,
        }
    }
}

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).expect("a value");
    let field = |&(name, sent)| (HeaderName::from_static(name), value(sent));
    let mut headers = HeaderMap::new();
    fields.iter().map(field).for_each(|(name, value)| {
        headers.append(name, value);
    });
    headers
}

/// The end of a connection that hyper writes to, with room for that many bytes, and its other end.
fn connection(room: usize) -> (WatchedStream, DuplexStream) {
    let (ours, theirs) = duplex(room);
    (WatchedStream::new(Stream::Memory(ours)), theirs)
}

/// The bytes that arrive at the API, and the fields of the response, if there was one. `head` is written for the head of
/// `request`.
async fn arriving(
    head: Option<WrittenHead>,
    request: Request<UpstreamBody>,
    room: usize,
) -> (Vec<u8>, Option<HeaderMap>) {
    let (wire, mut api) = connection(room);
    let watch = wire.watch();
    let mut builder = http1::Builder::new();
    let builder = builder.title_case_headers(true).writev(false);
    let (mut sender, connection) = builder.handshake(TokioIo::new(wire)).await.expect("hyper");
    if let Some(head) = head {
        watch.write_head(head).expect("no other head");
    }
    let responding = async {
        let mut arrived = Vec::new();
        while !arrived.ends_with(b"\r\n\r\n") {
            if api.read_buf(&mut arrived).await.unwrap_or(0) == 0 {
                return arrived;
            }
        }
        api.write_all(b"HTTP/1.1 204 No Content\r\nAge: 1\r\n\r\n")
            .await
            .expect("hyper reads");
        arrived
    };
    let sending = async move {
        let response = sender.send_request(request).await.ok()?;
        Some(response.into_parts().0.headers)
    };
    let (arrived, fields, _) = tokio::join!(responding, sending, connection);
    (arrived, fields)
}

/// The lines of a head, those after the first in a fixed order.
fn lines(head: &[u8]) -> Vec<String> {
    let head = String::from_utf8_lossy(head);
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const FIELDS: [(&str, &str); 28] = [
    ("host", "api.test:81"),
    ("accept", "*/*"),
    ("accept", "text/html"),
    ("x", ""),
    ("x-", "a"),
    ("-x", "a"),
    ("x--y-z9z-9z", "a  b"),
    ("x_y.z", "caf\u{e9}"),
    (
        "a-name-that-is-longer-than-sixty-four-bytes-and-so-kept-by-http-in-another-way",
        "a",
    ),
    ("cookie", "a=1"),
    ("cookie", "b=2; __Host-countersign=x"),
    ("cookie", "__Host-countersign=y"),
    ("connection", "keep-alive, x-y"),
    ("connection", "close"),
    ("x-y", "dropped"),
    ("te", "trailers"),
    ("expect", "100-continue"),
    ("content-length", "0"),
    ("content-type", "text/plain"),
    ("authorization", "OAuth realm=\"\""),
    ("forwarded", "for=192.0.2.9"),
    ("x-forwarded-for", "192.0.2.9"),
    ("x-forwarded-prefix", "/v1"),
    ("x_forwarded_for", "192.0.2.9"),
    ("countersign-hop", "other"),
    ("x-request-id", "theirs"),
    ("traceparent", "theirs"),
    ("tracestate", "theirs"),
];

#[tokio::test]
async fn a_written_head_has_the_lines_that_hyper_would_write() {
    let seed = std::time::UNIX_EPOCH.elapsed();
    let seed = seed.map_or(1, |elapsed| elapsed.subsec_nanos().into());
    let mut random = Lcg(seed);
    for _ in 0..400 {
        let fields: Vec<_> = (0..random.below(24)).map(|_| random.of(&FIELDS)).collect();
        let method = random.of(&["GET", "HEAD", "POST", "DELETE", "PURGE"]);
        let target = random.of(&["/", "/a%20b?c=%2F&d", "/a?", "?a=b", "//a"]);
        let mut call = Sent::new(method, target, map(&fields));
        call.params.forwarded = random.below(2) == 0;
        if random.below(2) == 0 {
            call.params.host = HostMode::Fixed(constant("upstream"));
        }
        let families = [ForwardedFamily::Forwarded, ForwardedFamily::XForwarded];
        let [forwarded, x_forwarded] = families.map(Some);
        call.believed = random.of(&[None, forwarded, x_forwarded]);
        call.prefix = random.of(&[None, Some("/v2")]).map(constant);
        call.keeps_state = random.of(&[None, Some(false), Some(true)]);
        let outgoing = call.head();
        let head = outgoing.written_head(Vec::new()).expect("a head");
        let room = random.of(&[1, 7, 64, 4096]);
        let memory = HeaderMap::with_capacity(random.of(&[0, 40]));
        let capacity = memory.capacity();
        let request = stand_in(&call.parts.method, memory);
        let (written, responded) = arriving(Some(head), request, room).await;
        let received = responded.unwrap_or_else(|| panic!("no response; seed {seed}: {fields:?}"));
        assert_eq!(received.get("age"), Some(&constant("1")));
        assert!(received.len() == 1 && received.capacity() >= capacity);
        let general = outgoing.over_http1(UpstreamBody::Empty).expect("a request");
        let (by_hyper, _) = arriving(None, general, room).await;
        assert_eq!(lines(&written), lines(&by_hyper), "seed {seed}: {fields:?}");
        let begins = written.starts_with(method.as_bytes());
        assert!(begins, "seed {seed}: {fields:?}");
    }
}

#[tokio::test]
async fn a_head_is_written_for_nothing_but_its_stand_in() {
    let call = Sent::new("GET", "/", HeaderMap::new());
    for other in ["POST", "GE", "GETS"] {
        let head = call.head().written_head(Vec::new()).expect("a head");
        let other = stand_in(&other.parse().expect("a method"), HeaderMap::new());
        assert_eq!(arriving(Some(head), other, 4096).await, (Vec::new(), None));
    }
    let general = call.head().over_http1(UpstreamBody::Whole("x".into()));
    let head = call.head().written_head(Vec::new()).expect("a head");
    let arrived = arriving(Some(head), general.expect("a request"), 4096).await;
    assert_eq!(arrived, (Vec::new(), None));
}

#[tokio::test]
async fn no_head_goes_on_in_the_middle_of_another() {
    let call = Sent::new("GET", "/", HeaderMap::new());
    let head = || call.head().written_head(Vec::new()).expect("a head");
    // The API responds while most of the head has no room.
    let (mut wire, mut api) = connection(8);
    let watch = wire.watch();
    assert_eq!(watch.write_head(head()), Ok(()));
    let stand_in = b"GET / HTTP/1.1\r\n\r\n";
    let mut writing = Box::pin(wire.write(stand_in));
    let mut context = Context::from_waker(Waker::noop());
    assert!(writing.as_mut().poll(&mut context).is_pending());
    assert_eq!(watch.write_head(head()), Err(HeadWaits));
    let mut arrived = Vec::new();
    while writing.as_mut().poll(&mut context).is_pending() {
        assert!(watch.has_head());
        api.read_buf(&mut arrived).await.expect("bytes");
    }
    assert!(!watch.has_head() && watch.write_head(head()).is_ok());
    assert!(arrived.starts_with(b"GET / HTTP/1.1\r\nHost: api.test:81\r\n"));
}

#[test]
fn a_head_over_http_2_has_the_fields_of_one_over_http_1_1() {
    let headers = map(&[("accept", "*/*"), ("x-y", "1"), ("x-y", "2")]);
    let call = Sent::new("POST", "/a?b=%20", headers);
    for body in [|| UpstreamBody::Empty, || UpstreamBody::Whole("x".into())] {
        let http2 = call.head().over_http2(body(), true).expect("a URL");
        assert_eq!(http2.uri(), "https://api.test:81/a?b=%20");
        assert_eq!(http2.version(), Version::HTTP_2);
        assert_eq!(http2.method(), "POST");
        let http1 = call.head().over_http1(body()).expect("a request");
        assert_eq!(http1.uri(), "/a?b=%20");
        let mut fields = http2.headers().clone();
        assert_eq!(fields.remove(header::TE), Some(constant("trailers")));
        fields.insert(header::HOST, constant("api.test:81"));
        assert_eq!(&fields, http1.headers());
    }
}
