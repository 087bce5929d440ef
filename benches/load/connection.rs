//! One connection to the proxy, which carries one request at a time.

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use mio::{Interest, Registry, Token, net::TcpStream};
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};

use crate::requests::Requests;

/// One complete answer, with its body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) latency: Duration,
    /// The first read, from the head on, to look for the cause of a failure.
    pub(crate) head: String,
}

pub(crate) struct Connection {
    token: Token,
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    /// Opened for the first request.
    stream: Option<Stream>,
    /// The number of the request under way, how many bytes of it were sent, and when it was due or began.
    request: Option<(usize, usize, Instant)>,
    /// The head of the answer, until it is complete.
    head: Vec<u8>,
    /// Status of the answer, and the bytes of its body still to come.
    body: Option<(u16, usize)>,
    piece: Box<[u8]>,
}

impl Connection {
    pub(crate) fn new(token: Token, address: SocketAddr, tls: Option<Arc<ClientConfig>>) -> Self {
        Self {
            stream: None,
            token,
            address,
            tls,
            request: None,
            head: Vec::new(),
            body: None,
            piece: vec![0; 16 * 1024].into(),
        }
    }

    /// Closes the connection; the next request opens another one.
    pub(crate) fn close(&mut self) {
        self.stream = None;
    }

    pub(crate) fn send(
        &mut self,
        registry: &Registry,
        number: usize,
        since: Instant,
        requests: &Requests,
    ) {
        self.stream.get_or_insert_with(|| {
            Stream::open(registry, self.token, self.address, self.tls.clone())
        });
        self.request = Some((number, 0, since));
        self.write(requests);
    }

    /// Writes and reads as far as possible; returns the answer once it is complete.
    pub(crate) fn drive(&mut self, requests: &Requests) -> Option<Answer> {
        self.write(requests);
        loop {
            let length = match self.stream.as_mut()?.read(&mut self.piece) {
                Ok(0) if self.request.is_none() => return None,
                Ok(0) => panic_with("reading", &ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if later(&error) => return None,
                Err(error) => panic_with("reading", &error),
            };
            if let Some(answer) = self.take(length) {
                return Some(answer);
            }
        }
    }

    /// Consumes `length` bytes of an answer.
    fn take(&mut self, length: usize) -> Option<Answer> {
        let (status, left) = match self.body {
            Some((status, left)) => (status, left.checked_sub(length)),
            None => {
                self.head.extend_from_slice(&self.piece[..length]);
                let (status, head, body) = head(&self.head)?;
                (status, (head + body).checked_sub(self.head.len()))
            }
        };
        let left = left.expect("nothing comes after an answer");
        if left > 0 {
            self.body = Some((status, left));
            return None;
        }
        self.body = None;
        let Some((_, _, since)) = self.request.take() else {
            unasked(&self.head)
        };
        let head = if status == 200 {
            String::new()
        } else {
            String::from_utf8_lossy(&self.head).into_owned()
        };
        self.head.clear();
        Some(Answer {
            status,
            latency: since.elapsed(),
            head,
        })
    }

    fn write(&mut self, requests: &Requests) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        if let Some((number, sent, _)) = &mut self.request {
            loop {
                let rest = requests.rest(*number, *sent);
                if rest.is_empty() {
                    break;
                }
                match stream.write(rest) {
                    Ok(written) => *sent += written,
                    Err(error) if later(&error) => break,
                    Err(error) => panic_with("writing", &error),
                }
            }
        }
        match stream.flush() {
            Err(error) if !later(&error) => panic_with("writing", &error),
            _ => {}
        }
    }
}

fn later(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected
    )
}

#[expect(clippy::panic, reason = "the measurement is worth nothing then")]
fn unasked(head: &[u8]) -> ! {
    panic!("an answer to nothing: {}", String::from_utf8_lossy(head))
}

#[expect(clippy::panic, reason = "the measurement is worth nothing then")]
fn panic_with(what: &str, error: &std::io::Error) -> ! {
    panic!("{what}: {error}")
}

/// Status, length of the head and length of the body of the first answer, once its head is complete.
fn head(buffer: &[u8]) -> Option<(u16, usize, usize)> {
    let end = memchr::memmem::find(buffer, b"\r\n\r\n")? + 4;
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    head.parse(&buffer[..end]).expect("an answer of HTTP/1.1");
    let length = head
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let length: usize = length
        .and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok())
        .expect("an answer with Content-Length");
    Some((head.code.unwrap_or(0), end, length))
}

/// TCP, or TLS over it.
struct Stream {
    tcp: TcpStream,
    tls: Option<ClientConnection>,
}

impl Stream {
    fn open(
        registry: &Registry,
        token: Token,
        address: SocketAddr,
        tls: Option<Arc<ClientConfig>>,
    ) -> Self {
        let mut tcp = TcpStream::connect(address).unwrap();
        tcp.set_nodelay(true).unwrap();
        registry
            .register(&mut tcp, token, Interest::READABLE | Interest::WRITABLE)
            .unwrap();
        let name = ServerName::try_from("api.test").unwrap();
        let tls = tls.map(|config| ClientConnection::new(config, name).unwrap());
        Self { tcp, tls }
    }

    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).read(piece),
            None => self.tcp.read(piece),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).write(bytes),
            None => self.tcp.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).flush(),
            None => Ok(()),
        }
    }
}
