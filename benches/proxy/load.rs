//! The load of `benches/proxy/run`: kept connections in a closed loop, each request signed beforehand with a nonce of
//! its own, so that the same bytes can be sent to a proxy that verifies and to one that does not.
//!
//! Prints one line of JSON. Everything that is not a 200 counts as a failure.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measuring tool: it reports on standard output and stops at the first surprise"
)]

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    ops::Range,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Parser;
use hmac::{Hmac, KeyInit, Mac};
use mio::{Events, Interest, Poll, Token, net::TcpStream};
use sha1::Sha1;

#[derive(Parser)]
struct Options {
    /// Where the proxy listens.
    #[arg(long)]
    address: SocketAddr,
    /// Host that is sent; requests are signed for `http://HOST`.
    #[arg(long)]
    host: String,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    #[arg(long)]
    consumer_key: String,
    #[arg(long)]
    consumer_secret: String,
    #[arg(long)]
    token: String,
    #[arg(long)]
    token_secret: String,
}

/// All requests in one buffer, signed before the clock starts.
struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Requests {
    fn sign(options: &Options) -> Self {
        let key = format!(
            "{}&{}",
            encode(&options.consumer_secret),
            encode(&options.token_secret)
        );
        let mac = <Hmac<Sha1> as KeyInit>::new_from_slice(key.as_bytes()).expect("any key will do");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let (time, run) = (now.as_secs(), now.as_nanos());
        let (consumer, token, host) = (
            encode(&options.consumer_key),
            encode(&options.token),
            &options.host,
        );
        let mut requests = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        for number in 0..options.requests {
            let nonce = format!("{run:x}{number:x}");
            let oauth = format!(
                "oauth_consumer_key={consumer}&oauth_nonce={nonce}&oauth_signature_method=HMAC-SHA1\
                 &oauth_timestamp={time}&oauth_token={token}&oauth_version=1.0"
            );
            // Already sorted: fields, limit, oauth_…, page, sort.
            let normalized = format!("fields=id%2Cname&limit=20&{oauth}&page=3&sort=name");
            let uri = format!("http://{host}/v1/members");
            let base = format!("GET&{}&{}", encode(&uri), encode(&normalized));
            let signature = STANDARD.encode(mac.clone().chain_update(base).finalize().into_bytes());
            let request = format!(
                "GET /v1/members?fields=id%2Cname&limit=20&page=3&sort=name HTTP/1.1\r\n\
                 Host: {host}\r\nUser-Agent: load\r\nAccept: */*\r\n\
                 Authorization: OAuth oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", \
                 oauth_signature_method=\"HMAC-SHA1\", oauth_timestamp=\"{time}\", oauth_nonce=\"{nonce}\", \
                 oauth_version=\"1.0\", oauth_signature=\"{}\"\r\n\r\n",
                encode(&signature)
            );
            requests.bytes.extend_from_slice(request.as_bytes());
            requests.ends.push(requests.bytes.len());
        }
        requests
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        start..self.ends[number]
    }
}

struct Connection {
    stream: TcpStream,
    unsent: Range<usize>,
    since: Instant,
    buffer: Vec<u8>,
}

/// What the whole run came to.
struct Tally {
    answered: usize,
    failures: usize,
    first_failure: Option<String>,
    latencies: Vec<Duration>,
}

fn main() {
    let options = Options::parse();
    let requests = Requests::sign(&options);
    let mut poll = Poll::new().unwrap();
    let mut connections = Vec::new();
    let start = Instant::now();
    for number in 0..options.connections.min(options.requests) {
        let mut stream = TcpStream::connect(options.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut stream, Token(number), interest)
            .unwrap();
        connections.push(Connection {
            stream,
            unsent: requests.range(number),
            since: start,
            buffer: Vec::with_capacity(8192),
        });
    }
    let mut next = connections.len();
    let mut tally = Tally {
        answered: 0,
        failures: 0,
        first_failure: None,
        latencies: Vec::with_capacity(options.requests),
    };
    let mut events = Events::with_capacity(1024);
    while tally.answered < options.requests {
        poll.poll(&mut events, Some(Duration::from_secs(30)))
            .unwrap();
        assert!(
            !events.is_empty(),
            "no answer for 30 s; {} came",
            tally.answered
        );
        for event in &events {
            let connection = &mut connections[event.token().0];
            connection.flush(&requests.bytes);
            if event.is_readable() {
                connection.drive(&requests, &mut next, &mut tally);
            }
        }
    }
    report(tally, start.elapsed());
}

impl Connection {
    fn flush(&mut self, bytes: &[u8]) {
        while !self.unsent.is_empty() {
            match self.stream.write(&bytes[self.unsent.clone()]) {
                Ok(written) => self.unsent.start += written,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    return;
                }
                Err(error) => panic_with("writing", &error),
            }
        }
    }

    /// Reads what is there; for each whole answer sends the next request.
    fn drive(&mut self, requests: &Requests, next: &mut usize, tally: &mut Tally) {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) if self.unsent.is_empty() && *next >= requests.ends.len() => return,
                Ok(0) => panic_with("reading", &ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.buffer.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic_with("reading", &error),
            }
            if let Some((status, length)) = answer(&self.buffer) {
                tally.answered += 1;
                tally.latencies.push(self.since.elapsed());
                if status != 200 {
                    tally.failures += 1;
                    tally
                        .first_failure
                        .get_or_insert_with(|| String::from_utf8_lossy(&self.buffer).into_owned());
                }
                assert!(self.buffer.len() == length, "nothing comes after an answer");
                self.buffer.clear();
                if *next < requests.ends.len() {
                    self.unsent = requests.range(*next);
                    self.since = Instant::now();
                    *next += 1;
                    self.flush(&requests.bytes);
                }
            }
        }
    }
}

#[expect(clippy::panic, reason = "the measurement is worth nothing then")]
fn panic_with(what: &str, error: &std::io::Error) -> ! {
    panic!("{what}: {error}")
}

/// Status and length of the answer in front, once all of it is there.
fn answer(buffer: &[u8]) -> Option<(u16, usize)> {
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
    (buffer.len() >= end + length).then(|| (head.code.unwrap_or(0), end + length))
}

fn report(mut tally: Tally, elapsed: Duration) {
    tally.latencies.sort_unstable();
    let quantile = |part: usize| {
        let index = (tally.latencies.len() * part / 1000).min(tally.latencies.len() - 1);
        tally.latencies[index].as_micros()
    };
    let seconds = elapsed.as_secs_f64();
    let report = serde_json::json!({
        "requests": tally.answered,
        "failures": tally.failures,
        "first_failure": tally.first_failure,
        "seconds": seconds,
        "p50_us": quantile(500),
        "p99_us": quantile(990),
    });
    println!("{report}");
}

/// RFC 5849 section 3.6.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
