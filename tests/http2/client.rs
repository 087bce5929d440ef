//! Callers that speak HTTP/2: one uses a library, one writes bytes.

use std::{
    future::poll_fn,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, Uri};

use crate::support::{Call, PATIENCE, Proxy};

/// Runs a caller to its end.
pub(crate) fn run<T>(caller: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, caller).await })
        .expect("a caller ends in time")
}

/// A connection by prior knowledge.
#[derive(Clone)]
pub(crate) struct Client {
    send: SendRequest<Bytes>,
    origin: String,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn has_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) async fn to(proxy: &Proxy) -> Self {
        let stream = tokio::net::TcpStream::connect(proxy.address())
            .await
            .unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        let send = send.ready().await.unwrap();
        Self {
            send,
            origin: proxy.origin(),
        }
    }

    /// The head of a call as it is on the wire of HTTP/1.1, without the fields that HTTP/2 does not have, and its body.
    pub(crate) fn request(&self, call: &Call) -> (Request<()>, Vec<u8>) {
        let authority = self.origin.split_once("://").unwrap().1;
        let wire = call.wire(&self.origin, authority);
        let end = wire
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = std::str::from_utf8(&wire[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap().split(' ');
        let method = Method::from_bytes(first.next().unwrap().as_bytes()).unwrap();
        let target = first.next().unwrap();
        let mut request = Request::builder().method(method);
        let mut host = authority;
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            if name.eq_ignore_ascii_case("host") {
                host = value;
            } else {
                request = request.header(name, value);
            }
        }
        let uri: Uri = format!("http://{host}{target}").parse().unwrap();
        let request = request.uri(uri).body(()).unwrap();
        (request, wire[end + 4..].to_vec())
    }

    /// Sends a call and reads its answer.
    pub(crate) async fn send(&mut self, call: Call) -> Answer {
        let (request, body) = self.request(&call);
        self.send_request(request, &body).await.unwrap()
    }

    /// Sends a call that has to pass.
    pub(crate) async fn passes(&mut self, call: Call) -> Answer {
        self.send(call).await.has_status(200)
    }

    /// Sends a request with this body, in frames of 16 KiB at most.
    pub(crate) async fn send_request(
        &mut self,
        request: Request<()>,
        body: &[u8],
    ) -> Result<Answer, h2::Error> {
        let mut send = self.send.clone().ready().await?;
        let (response, mut stream) = send.send_request(request, body.is_empty())?;
        let mut rest = Bytes::copy_from_slice(body);
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len().min(16 * 1024));
            let capacity = match poll_fn(|context| stream.poll_capacity(context)).await {
                Some(Ok(0)) => continue,
                Some(Ok(capacity)) => capacity,
                // The answer may have come before the body was requested.
                Some(Err(_)) | None => break,
            };
            let piece = rest.split_to(capacity.min(rest.len()));
            if stream.send_data(piece, rest.is_empty()).is_err() {
                break;
            }
        }
        read(response.await?).await
    }

    pub(crate) fn sender(&self) -> SendRequest<Bytes> {
        self.send.clone()
    }
}

/// Reads the whole of an answer.
pub(crate) async fn read(response: http::Response<h2::RecvStream>) -> Result<Answer, h2::Error> {
    let (parts, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    while let Some(data) = incoming.data().await {
        let data = data?;
        body.extend_from_slice(&data);
        incoming.flow_control().release_capacity(data.len())?;
    }
    Ok(Answer {
        status: parts.status.as_u16(),
        fields: parts.headers,
        body,
    })
}

/// A frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// The end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// GOAWAY with this code, then closed.
    GoAway(u32),
    /// Closed without one.
    Closed,
}

/// A caller that writes its frames byte by byte.
pub(crate) struct Raw {
    stream: TcpStream,
    arrived: Vec<u8>,
}

impl Raw {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut raw = Self {
            stream,
            arrived: Vec::new(),
        };
        raw.bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        raw.frame(SETTINGS, 0, 0, &[]).unwrap();
        raw
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        self.bytes(&frame(kind, flags, stream, payload))
    }

    /// The next frame; `None` when the connection has ended.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if self.arrived.len() >= 9 {
                let length = usize::from(self.arrived[0]) << 16
                    | usize::from(self.arrived[1]) << 8
                    | usize::from(self.arrived[2]);
                if self.arrived.len() >= 9 + length {
                    let rest = self.arrived.split_off(9 + length);
                    let frame = std::mem::replace(&mut self.arrived, rest);
                    return Some(Frame {
                        kind: frame[3],
                        flags: frame[4],
                        stream: u32::from_be_bytes(frame[5..9].try_into().unwrap()),
                        payload: frame[9..].to_vec(),
                    });
                }
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.arrived.extend(&bytes[..count]),
                Err(error) => {
                    assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "nothing came");
                    return None;
                }
            }
        }
    }

    /// The next frame of that kind.
    pub(crate) fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().expect("the connection goes on");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Waits for the end.
    pub(crate) fn end(&mut self) -> End {
        let mut code = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                code = Some(u32::from_be_bytes(frame.payload[4..8].try_into().unwrap()));
            }
        }
        code.map_or(End::Closed, End::GoAway)
    }

    /// Sends the same bytes again and again until the other side ends the connection; returns how it ended. The other
    /// side is read in the background so that nothing blocks.
    pub(crate) fn flood(mut self, limit: Duration, mut next: impl FnMut() -> Vec<u8>) -> End {
        let mut reader = Self {
            stream: self.stream.try_clone().unwrap(),
            arrived: std::mem::take(&mut self.arrived),
        };
        let reading = std::thread::spawn(move || reader.end());
        let start = Instant::now();
        while start.elapsed() < limit && !reading.is_finished() {
            if self.bytes(&next()).is_err() {
                break;
            }
        }
        assert!(start.elapsed() < limit, "the flood is not ended");
        reading.join().unwrap()
    }
}

/// A frame's bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The header block of a request to the proxy, with these additional fields.
pub(crate) fn head(proxy: &Proxy, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let host = proxy.host();
    let four = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", &host),
    ];
    block(&[&four[..], more].concat())
}

/// A header block of literals that are not indexed (RFC 7541 section 6.2.2), without Huffman coding.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let string = |block: &mut Vec<u8>, text: &str| {
        let length = text.len();
        if length < 127 {
            block.push(u8::try_from(length).unwrap());
        } else {
            block.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                block.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            block.push(u8::try_from(rest).unwrap());
        }
        block.extend(text.as_bytes());
    };
    for (name, value) in fields {
        block.push(0);
        string(&mut block, name);
        string(&mut block, value);
    }
    block
}
