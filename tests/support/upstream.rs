//! The API behind the proxy: records every byte it receives, and answers as the test says. Its record is the oracle for
//! the bytes that the proxy forwarded, and for those that it did not.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::{
    PATIENCE,
    http::{BodyReader, Fields, Framing, Stream, Wire},
    tls::{self, Certificate},
};

/// One request as the API saw it.
#[derive(Clone)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub fields: Fields,
    pub framing: Framing,
    /// The part of the body that was read, without its framing.
    pub body: Vec<u8>,
    /// The head, byte for byte.
    pub head: Vec<u8>,
    /// The body came to the end that its framing announces.
    pub whole: bool,
    /// The lines of the trailers of a whole body.
    pub trailers: Vec<String>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, target, fields) = (&self.method, &self.target, &self.fields);
        write!(
            f,
            "{method} {target}{fields:?}\n    body: {:?}",
            self.text()
        )
    }
}

/// An answer to send.
#[derive(Debug, Clone)]
pub struct Reply {
    status: String,
    fields: Vec<(String, String)>,
    body: Sent,
    closing: bool,
}

#[derive(Debug, Clone)]
enum Sent {
    Length(Vec<u8>),
    Chunked(Vec<Vec<u8>>),
    UntilClose(Vec<u8>),
    Raw(Vec<u8>),
    Nothing,
}

impl Reply {
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status("200 OK").body(body)
    }

    /// `status` is the code with its reason.
    pub fn status(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            fields: Vec::new(),
            body: Sent::Length(Vec::new()),
            closing: false,
        }
    }

    /// These bytes and nothing else.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            body: Sent::Raw(bytes.as_ref().to_vec()),
            ..Self::status("")
        }
    }

    /// No answer at all, on a connection that stays open.
    pub fn silence() -> Self {
        Self {
            body: Sent::Nothing,
            ..Self::status("")
        }
    }

    /// Closes instead of answering.
    pub fn hang_up() -> Self {
        Self::raw("").closing()
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Sent::Length(body.as_ref().to_vec());
        self
    }

    pub fn chunked(mut self, chunks: &[&str]) -> Self {
        let chunks = chunks.iter().map(|chunk| chunk.as_bytes().to_vec());
        self.body = Sent::Chunked(chunks.collect());
        self
    }

    /// A body that ends with the connection.
    pub fn until_close(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Sent::UntilClose(body.as_ref().to_vec());
        self.closing = true;
        self
    }

    /// Closes the connection after this answer.
    pub fn closing(mut self) -> Self {
        self.closing = true;
        self
    }

    fn wire(&self, head_only: bool) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {}\r\n", self.status).into_bytes();
        for (name, value) in &self.fields {
            out.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        let body = match &self.body {
            Sent::Length(body) => {
                if !self.status.starts_with("204") && !self.status.starts_with("304") {
                    out.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
                }
                body.clone()
            }
            Sent::Chunked(chunks) => {
                out.extend(b"Transfer-Encoding: chunked\r\n");
                super::http::in_chunks(chunks)
            }
            Sent::UntilClose(body) => {
                out.extend(b"Connection: close\r\n");
                body.clone()
            }
            Sent::Raw(bytes) => return bytes.clone(),
            Sent::Nothing => return Vec::new(),
        };
        out.extend(b"\r\n");
        if !head_only {
            out.extend(body);
        }
        out
    }
}

/// The state of a connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Keep,
    Close,
}

/// A request under way, for handlers that watch the body arrive or send the answer in pieces.
pub struct Exchange<'a> {
    /// The head; its body is still empty.
    pub seen: Seen,
    wire: &'a mut Wire,
    reader: BodyReader,
    record: &'a Record,
    index: usize,
}

impl Exchange<'_> {
    /// The next piece of the body; `None` at its end.
    pub fn body_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let piece = self.reader.piece(self.wire)?;
        let recorded = &mut self.record.requests.lock().unwrap()[self.index];
        if let Some(piece) = &piece {
            self.seen.body.extend(piece);
            recorded.body.extend(piece);
        }
        recorded.whole = self.reader.is_done();
        recorded.trailers.clone_from(&self.reader.trailers);
        self.seen.whole = recorded.whole;
        Ok(piece)
    }

    pub fn whole_body(&mut self) -> io::Result<()> {
        while self.body_piece()?.is_some() {}
        Ok(())
    }

    /// The next bytes on the connection, whatever they are; `None` at its end.
    pub fn raw_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        BodyReader::new(Framing::UntilClose).piece(self.wire)
    }

    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.wire.write(bytes.as_ref())
    }

    /// Whether the peer closed; waits for it.
    pub fn peer_closed(&mut self) -> bool {
        self.wire.at_end().unwrap_or(true)
    }
}

type Handler = dyn Fn(&mut Exchange<'_>) -> io::Result<After> + Send + Sync;

#[derive(Default)]
struct Record {
    requests: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    stopped: AtomicBool,
}

/// A running API. Dropping it closes its listener.
pub struct Upstream {
    url: String,
    unblock: Box<dyn Fn() + Send + Sync>,
    record: Arc<Record>,
    /// The port of a TCP listener, which a proxy in front of this API holds too: no listener of a later program gets it by
    /// chance.
    port: Option<Arc<HeldPort>>,
    _directory: Option<TempDir>,
}

impl Upstream {
    /// An API that answers everything with 200 and a line of text.
    pub fn start() -> Self {
        Self::replying(|_| Reply::ok("hello from the API\n").header("Content-Type", "text/plain"))
    }

    /// An API that reads each request whole and answers this way.
    pub fn replying(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::handling(by_reply(answer))
    }

    /// An API whose every exchange is run by `handler`, from the head on.
    pub fn handling(
        handler: impl Fn(&mut Exchange<'_>) -> io::Result<After> + Send + Sync + 'static,
    ) -> Self {
        Self::on_port("http://127.0.0.1", handler, |stream| Ok(Box::new(stream)))
    }

    /// An API at this address of this machine that answers this way; port 0 is one of its own.
    pub fn at(
        address: SocketAddr,
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let origin = format!("http://{}", address.ip());
        Self::accepting(address, &origin, by_reply(answer), |stream| {
            Ok(Box::new(stream))
        })
    }

    /// An API on a port of its own, with connections that `wrap` changes.
    fn on_port(
        origin: &str,
        handler: impl Fn(&mut Exchange<'_>) -> io::Result<After> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + 'static,
    ) -> Self {
        Self::accepting(ANY_PORT, origin, handler, wrap)
    }

    fn accepting(
        address: SocketAddr,
        origin: &str,
        handler: impl Fn(&mut Exchange<'_>) -> io::Result<After> + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + 'static,
    ) -> Self {
        let port = HeldPort::at(address);
        let address = port.address();
        let listener = TcpListener::bind(address).unwrap();
        let wake = move || drop(TcpStream::connect(address));
        let accept = move || {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            wrap(stream)
        };
        let url = format!("{origin}:{}", address.port());
        let mut api = Self::run(url, None, Arc::new(handler), Box::new(wake), accept);
        api.port = Some(Arc::new(port));
        api
    }

    /// An API behind TLS with this certificate.
    pub fn over_tls(certificate: &Certificate) -> Self {
        Self::over_tls_with(certificate.server())
    }

    /// An API behind TLS as configured.
    pub fn over_tls_with(config: Arc<rustls::ServerConfig>) -> Self {
        Self::replying_over_tls(config, |_| Reply::ok("hello from the API\n"))
    }

    /// An API behind TLS that answers this way.
    pub fn replying_over_tls(
        config: Arc<rustls::ServerConfig>,
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::on_port("https://localhost", by_reply(answer), move |stream| {
            Ok(Box::new(tls::accept(stream, Arc::clone(&config))))
        })
    }

    /// An API on a Unix socket.
    pub fn on_unix_socket() -> Self {
        Self::replying_on_unix_socket(|_| Reply::ok("hello from the API\n"))
    }

    /// An API on a Unix socket that answers this way.
    pub fn replying_on_unix_socket(
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let path: PathBuf = directory.path().join("api.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let url = format!("unix:{}", path.display());
        let handler = by_reply(answer);
        let wake = Box::new(move || drop(UnixStream::connect(&path)));
        Self::run(url, Some(directory), Arc::new(handler), wake, move || {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(Box::new(stream))
        })
    }

    fn run(
        url: String,
        directory: Option<TempDir>,
        handler: Arc<Handler>,
        unblock: Box<dyn Fn() + Send + Sync>,
        accept: impl Fn() -> io::Result<Box<dyn Stream>> + Send + 'static,
    ) -> Self {
        let record = Arc::new(Record::default());
        let shared = Arc::clone(&record);
        std::thread::spawn(move || {
            while let Ok(stream) = accept() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (shared, handler) = (Arc::clone(&shared), Arc::clone(&handler));
                // An error on a connection is the proxy's doing (it hung up); the test looks at what was recorded.
                std::thread::spawn(move || drop(serve(stream, &shared, &*handler)));
            }
        });
        Self {
            url,
            unblock,
            record,
            port: None,
            _directory: directory,
        }
    }

    /// The value for `upstream.api_url`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port, to be held beyond the end of this API; `None` on a Unix socket.
    pub fn port(&self) -> Option<Arc<HeldPort>> {
        self.port.clone()
    }

    /// `host:port` of a TCP upstream.
    pub fn authority(&self) -> &str {
        self.url.split_once("://").unwrap_or_default().1
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.record.requests.lock().unwrap().clone()
    }

    /// Those after the first `count`.
    pub fn requests_since(&self, count: usize) -> Vec<Seen> {
        self.record.requests.lock().unwrap()[count..].to_vec()
    }

    /// The number of requests until now.
    pub fn count(&self) -> usize {
        self.record.requests.lock().unwrap().len()
    }

    /// The number of connections accepted until now.
    pub fn connections(&self) -> usize {
        self.record.connections.load(Ordering::SeqCst)
    }

    /// The one request that came.
    #[track_caller]
    pub fn only_request(&self) -> Seen {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "one request: {requests:#?}");
        requests.into_iter().next().unwrap()
    }

    /// The request that came last.
    #[track_caller]
    pub fn last_request(&self) -> Seen {
        self.requests().pop().expect("a request reached the API")
    }

    /// Waits until this many requests came.
    pub fn wait_for(&self, count: usize) {
        let what = format!("{count} requests reach the API");
        super::until(&what, || self.count() >= count);
    }

    /// Checks that no request came.
    #[track_caller]
    pub fn saw_nothing(&self) {
        let requests = self.requests();
        assert!(requests.is_empty(), "nothing: {requests:#?}");
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.record.stopped.store(true, Ordering::SeqCst);
        (self.unblock)();
    }
}

fn by_reply(
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> impl Fn(&mut Exchange<'_>) -> io::Result<After> + Send + Sync + 'static {
    move |exchange| {
        if exchange.seen.header("expect").is_some() {
            exchange.write("HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        exchange.whole_body()?;
        let reply = answer(&exchange.seen);
        exchange.write(reply.wire(exchange.seen.method == "HEAD"))?;
        Ok(if reply.closing {
            After::Close
        } else {
            After::Keep
        })
    }
}

fn serve(stream: Box<dyn Stream>, record: &Record, handler: &Handler) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(head) = wire.head()? {
        let framing = head.request_framing();
        let mut words = head.first_line.split(' ').map(str::to_owned);
        let seen = Seen {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            fields: head.fields,
            framing,
            body: Vec::new(),
            head: head.raw,
            whole: BodyReader::new(framing).is_done(),
            trailers: Vec::new(),
        };
        let index = {
            let mut requests = record.requests.lock().unwrap();
            requests.push(seen.clone());
            requests.len() - 1
        };
        let mut exchange = Exchange {
            seen,
            wire: &mut wire,
            reader: BodyReader::new(framing),
            record,
            index,
        };
        if handler(&mut exchange)? == After::Close {
            break;
        }
    }
    Ok(())
}

/// Any free port of this machine's own address.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A port that the system does not give to a program that asks for any free one. A listener may be bound to it; without one,
/// connections are refused.
pub struct HeldPort(Socket);

impl HeldPort {
    fn at(address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&address.into()).unwrap();
        Self(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap().as_socket().unwrap()
    }
}

/// A port where connections are refused until the tests end.
pub fn refusing_address() -> SocketAddr {
    let port = HeldPort::at(ANY_PORT);
    let address = port.address();
    std::mem::forget(port);
    address
}
