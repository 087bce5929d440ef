//! HTTP/1.1 without a library: sends the given bytes and reads exactly one message at a time. So a test can send what
//! no library would, and sees what a library would hide.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::{PATIENCE, tls};

/// Something to read from and write to.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// The fields of a message in the order of the wire; bytes above ASCII read as Latin-1.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, String)>);

impl Fields {
    /// The value of the first field of this name, case folded.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    /// The values of all fields of this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.0.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn parse(lines: &[u8]) -> Self {
        let text = latin1(lines);
        let lines = text.split("\r\n").filter(|line| !line.is_empty());
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
        };
        Self(lines.map(field).collect())
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|(name, value)| write!(f, "\n    {name}: {value}"))
    }
}

/// Bytes as text, each byte one character.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The first line and the fields of a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Head {
    pub first_line: String,
    pub fields: Fields,
    pub raw: Vec<u8>,
}

/// The way in which a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Empty,
    Length(usize),
    Chunked,
    UntilClose,
}

impl Head {
    /// The framing of a request with this head.
    pub fn request_framing(&self) -> Framing {
        match self.declared() {
            Framing::UntilClose => Framing::Empty,
            told => told,
        }
    }

    /// The framing of an answer with this head to a request with `method`.
    pub fn answer_framing(&self, method: &str) -> Framing {
        match self.status() {
            100..=199 | 204 | 304 => Framing::Empty,
            _ if method == "HEAD" => Framing::Empty,
            _ => self.declared(),
        }
    }

    /// The status of an answer; 0 if the first line has none.
    pub fn status(&self) -> u16 {
        let status = self.first_line.split(' ').nth(1);
        status.and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    fn declared(&self) -> Framing {
        let coding = self.fields.get("transfer-encoding").unwrap_or_default();
        if coding.to_ascii_lowercase().contains("chunked") {
            return Framing::Chunked;
        }
        let length = self.fields.get("content-length").map(str::parse);
        length.map_or(Framing::UntilClose, |length| {
            Framing::Length(length.unwrap())
        })
    }
}

/// One side of a connection, with the bytes that were read and not yet used.
pub struct Wire {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

impl Wire {
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Reads the next head; `None` if the peer closed before its first byte.
    pub fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let raw: Vec<u8> = self.buffer.drain(..end + 4).collect();
                let line_end = find(&raw, b"\r\n").unwrap_or(raw.len());
                return Ok(Some(Head {
                    first_line: latin1(&raw[..line_end]),
                    fields: Fields::parse(&raw[line_end..]),
                    raw,
                }));
            }
            if self.fill()? == 0 {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                return Err(cut_short(&format!("a head: {:?}", latin1(&self.buffer))));
            }
        }
    }

    /// Reads a whole body, each piece as it came (a chunk, or what one read returned).
    pub fn body(&mut self, framing: Framing) -> io::Result<Vec<u8>> {
        let mut body = BodyReader::new(framing);
        let mut all = Vec::new();
        while let Some(piece) = body.piece(self)? {
            all.extend(piece);
        }
        Ok(all)
    }

    /// Whether the peer closed; waits until it does or sends something.
    pub fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.buffer.is_empty() && self.fill()? == 0)
    }

    /// The rest until the peer closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while matches!(self.fill(), Ok(1..)) {}
        std::mem::take(&mut self.buffer)
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Ok(latin1(&line[..end]));
            }
            if self.fill()? == 0 {
                return Err(cut_short("a line"));
            }
        }
    }

    /// Reads this many bytes.
    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if self.fill()? == 0 {
                return Err(cut_short(&format!("{length} bytes")));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(length) => {
                    self.buffer.extend_from_slice(&piece[..length]);
                    return Ok(length);
                }
                // rustls reports a peer that closes without close_notify this way; for a test that is an end.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads a body piece by piece.
pub struct BodyReader {
    framing: Framing,
    done: bool,
    /// The lines after the last chunk.
    pub trailers: Vec<String>,
}

impl BodyReader {
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            done: framing == Framing::Empty || framing == Framing::Length(0),
            trailers: Vec::new(),
        }
    }

    /// Whether the end that the framing announces was reached.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next piece as soon as it is there; `None` after the last.
    pub fn piece(&mut self, wire: &mut Wire) -> io::Result<Option<Vec<u8>>> {
        if self.done {
            return Ok(None);
        }
        match &mut self.framing {
            Framing::Empty => Ok(None),
            Framing::Length(left) => {
                if wire.buffer.is_empty() && wire.fill()? == 0 {
                    return Err(cut_short(&format!("a body; {left} bytes are missing")));
                }
                let length = wire.buffer.len().min(*left);
                *left -= length;
                self.done = *left == 0;
                Ok(Some(wire.buffer.drain(..length).collect()))
            }
            Framing::Chunked => {
                let line = wire.line()?;
                let size = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16)
                    .map_err(|_| cut_short(&format!("a chunk size, not {line:?}")))?;
                if size == 0 {
                    loop {
                        match wire.line()? {
                            line if line.is_empty() => break,
                            line => self.trailers.push(line),
                        }
                    }
                    self.done = true;
                    return Ok(None);
                }
                let chunk = wire.exactly(size)?;
                wire.exactly(2)?;
                Ok(Some(chunk))
            }
            Framing::UntilClose => {
                if wire.buffer.is_empty() && wire.fill()? == 0 {
                    self.done = true;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut wire.buffer)))
            }
        }
    }
}

fn cut_short(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the peer closed or broke off where the test expected {what}"),
    )
}

/// These pieces in the chunked coding, with its end.
pub fn in_chunks(pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        out.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        out.extend(piece);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

/// The position of `needle` in `haystack`.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// One answer, whole.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub fields: Fields,
    pub body: Vec<u8>,
    pub framing: Framing,
    /// The statuses of the 1xx answers before it.
    pub interim: Vec<u16>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A value from a form-encoded body.
    pub fn form(&self, name: &str) -> Option<String> {
        let pairs = super::signer::form_pairs(&self.body);
        let value = pairs.into_iter().find(|(n, _)| n == name.as_bytes())?.1;
        Some(String::from_utf8(value).unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The `oauth_problem` of the body, be it a form, JSON or a page.
    pub fn problem(&self) -> Option<String> {
        self.told("oauth_problem")
    }

    /// Checks a member of the problem.
    #[track_caller]
    pub fn tells(&self, member: &str, value: &str) -> &Self {
        assert_eq!(self.told(member).as_deref(), Some(value), "{self:?}");
        self
    }

    /// A member of the problem, be the body a form, JSON or a page.
    pub fn told(&self, member: &str) -> Option<String> {
        match self.header("content-type") {
            Some(kind) if kind.starts_with("application/problem+json") => {
                self.json()[member].as_str().map(str::to_owned)
            }
            Some(kind) if kind.starts_with("application/x-www-form-urlencoded") => {
                self.form(member)
            }
            Some(kind) if kind.starts_with("text/html") => {
                let text = self.text();
                let (_, rest) = text.split_once(&format!("id=\"{member}\">"))?;
                Some(super::visitor::unescape(rest.split('<').next()?))
            }
            _ => None,
        }
    }

    /// Checks status and `oauth_problem` together, so that a failure shows the whole answer.
    #[track_caller]
    pub fn is(&self, status: u16, problem: &str) -> &Self {
        assert!(
            self.status == status && self.problem().as_deref() == Some(problem),
            "expected {status} {problem}, got {self:?}"
        );
        self
    }

    /// Checks the status; a failure shows the whole answer.
    #[track_caller]
    pub fn has_status(&self, status: u16) -> &Self {
        assert!(self.status == status, "expected {status}, got {self:?}");
        self
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, fields, text) = (self.status, &self.fields, self.text());
        write!(f, "answer {status}{fields:?}\n    body: {text:?}")
    }
}

/// A connection of a caller.
pub struct Connection(Wire);

impl Connection {
    /// Connects without TLS.
    pub fn to(address: SocketAddr) -> Self {
        Self(Wire::new(Box::new(open(address))))
    }

    /// Speaks on a stream that is connected already.
    pub fn over(stream: TcpStream) -> Self {
        Self(Wire::new(Box::new(stream)))
    }

    /// Connects by TLS to a server of that name, trusting only `roots` (PEM).
    pub fn over_tls(address: SocketAddr, name: &str, roots: &str) -> Self {
        let stream = tls::connect(open(address), name, roots);
        Self(Wire::new(Box::new(stream)))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write(bytes).expect("the proxy reads what is sent");
    }

    /// Sends what can be sent; the peer may have closed already.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }

    /// Reads the answer to a request with `method`.
    #[track_caller]
    pub fn answer(&mut self, method: &str) -> Answer {
        self.try_answer(method)
            .expect("a whole answer")
            .expect("an answer, not a closed connection")
    }

    /// Reads the answer to a request with `method`; `None` if the peer closed instead.
    pub fn try_answer(&mut self, method: &str) -> io::Result<Option<Answer>> {
        let mut interim = Vec::new();
        loop {
            let Some(head) = self.0.head()? else {
                return Ok(None);
            };
            let status = head.status();
            if (100..200).contains(&status) && status != 101 {
                interim.push(status);
                continue;
            }
            let framing = head.answer_framing(method);
            let body = self.0.body(framing)?;
            return Ok(Some(Answer {
                status,
                fields: head.fields,
                body,
                framing,
                interim,
            }));
        }
    }

    /// Reads a head and leaves its body, for answers that stream.
    #[track_caller]
    pub fn head(&mut self) -> Head {
        self.0
            .head()
            .expect("a whole head")
            .expect("a head, not a closed connection")
    }

    /// The connection's wire, to read a body piece by piece.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.0
    }

    /// Whether the peer closes this connection without another byte; waits for either.
    pub fn is_closed(&mut self) -> bool {
        // A reset is an end too: the peer may close while bytes of ours are under way.
        self.0
            .at_end()
            .unwrap_or_else(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }
}

fn open(address: SocketAddr) -> TcpStream {
    try_open(address).expect("the listener is there")
}

/// Connects, and sets the options that every connection of a test has.
pub fn try_open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends one request on a connection of its own and reads the answer.
#[track_caller]
pub fn get(address: SocketAddr, target: &str) -> Answer {
    let mut connection = Connection::to(address);
    connection.send(
        format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    connection.answer("GET")
}
