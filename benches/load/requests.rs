//! Signs requests (RFC 5849 section 3) before the clock starts.

use std::{
    fmt::Write,
    fs,
    ops::Range,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::options::Options;

/// All heads in one buffer, and the body that all requests share.
pub(crate) struct Requests {
    heads: Vec<u8>,
    ends: Vec<usize>,
    body: Vec<u8>,
}

impl Requests {
    pub(crate) fn sign(options: &Options) -> Self {
        let mut signer = Signer::new(options);
        let mut heads = String::new();
        // One more for each kept connection: the first request on it is not measured.
        let first = if options.fresh {
            0
        } else {
            options.connections
        };
        let count = first + options.requests;
        let mut ends = Vec::with_capacity(count);
        for number in 0..count {
            signer.write_head(number, &mut heads);
            ends.push(heads.len());
        }
        Self {
            heads: heads.into_bytes(),
            ends,
            body: signer.body.into_bytes(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The unsent rest of a request of which `sent` bytes were sent; empty once all are.
    pub(crate) fn rest(&self, number: usize, sent: usize) -> &[u8] {
        let head = &self.heads[self.range(number)];
        if sent < head.len() {
            &head[sent..]
        } else {
            &self.body[sent - head.len()..]
        }
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[number]
    }
}

/// Prints signed targets for a generator that cannot sign.
pub(crate) fn print_targets(options: &Options) {
    let mut signer = Signer::new(options);
    let mut out = String::new();
    for number in 0..options.requests {
        let oauth = signer.sign(number);
        let pairs: Vec<String> = oauth
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        let separator = if signer.target.contains('?') {
            '&'
        } else {
            '?'
        };
        _ = writeln!(out, "{}{separator}{}", signer.target, pairs.join("&"));
    }
    print!("{out}");
}

/// A consumer, with the inner and outer states of its key.
struct Consumer {
    key: String,
    token: String,
    mac: Hmac<Sha1>,
}

struct Signer<'a> {
    options: &'a Options,
    consumers: Vec<Consumer>,
    method: &'static str,
    target: String,
    body: String,
    fields: String,
    /// The signed parameters other than the protocol parameters, encoded.
    parameters: Vec<(String, String)>,
    time: u64,
    run: u128,
}

impl<'a> Signer<'a> {
    fn new(options: &'a Options) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let query = query(options.query);
        let mut parameters = pairs(&query);
        let mut fields = String::new();
        let mut body = String::new();
        if let Some(bytes) = options.form {
            body = form(bytes);
            parameters.extend(pairs(&body));
            fields = "Content-Type: application/x-www-form-urlencoded\r\n".to_owned();
        } else if let Some(bytes) = options.upload {
            body = "x".repeat(bytes);
            fields = "Content-Type: application/octet-stream\r\n".to_owned();
        }
        let has_body = options.form.is_some() || options.upload.is_some();
        if has_body {
            _ = write!(fields, "Content-Length: {}\r\n", body.len());
        }
        if let Some(cookie) = &options.cookie {
            _ = write!(fields, "Cookie: {cookie}\r\n");
        }
        Self {
            consumers: consumers(options),
            options,
            method: if has_body { "POST" } else { "GET" },
            target: if query.is_empty() {
                options.path.clone()
            } else {
                format!("{}?{query}", options.path)
            },
            body,
            fields,
            parameters,
            time: now.as_secs(),
            run: now.as_nanos(),
        }
    }

    /// The protocol parameters of a request, not encoded.
    fn sign(&mut self, number: usize) -> [(&'static str, String); 7] {
        let consumer = &self.consumers[(self.options.first + number) % self.consumers.len()];
        let mut oauth = [
            ("oauth_consumer_key", consumer.key.clone()),
            ("oauth_token", consumer.token.clone()),
            ("oauth_signature_method", "HMAC-SHA1".to_owned()),
            ("oauth_timestamp", self.time.to_string()),
            ("oauth_nonce", format!("{:x}{number:x}", self.run)),
            ("oauth_version", "1.0".to_owned()),
            ("oauth_signature", String::new()),
        ];
        let encoded: Vec<(&str, String)> = oauth[..6]
            .iter()
            .map(|(name, value)| (*name, encode(value)))
            .collect();
        let plain = self
            .parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let protocol = encoded.iter().map(|(name, value)| (*name, value.as_str()));
        let mut all: Vec<(&str, &str)> = plain.chain(protocol).collect();
        all.sort_unstable();
        let all: Vec<String> = all
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let scheme = if self.options.tls { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", self.options.host, self.options.path);
        let base = format!(
            "{}&{}&{}",
            self.method,
            encode(&uri),
            encode(&all.join("&"))
        );
        let mac = consumer.mac.clone().chain_update(base);
        oauth[6].1 = STANDARD.encode(mac.finalize().into_bytes());
        oauth
    }

    fn write_head(&mut self, number: usize, out: &mut String) {
        let oauth = self.sign(number);
        _ = write!(
            out,
            "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: load\r\nAccept: */*\r\n{}Authorization: OAuth ",
            self.method, self.target, self.options.host, self.fields
        );
        for (at, (name, value)) in oauth.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            _ = write!(out, "{comma}{name}=\"{}\"", encode(value));
        }
        out.push_str("\r\n\r\n");
    }
}

fn consumers(options: &Options) -> Vec<Consumer> {
    let text = fs::read_to_string(&options.credentials).expect("a file of credentials");
    let parse = |line: &str| {
        let mut fields = line.split(' ').map(str::to_owned);
        let mut next = || fields.next().expect("key, secret, token, token secret");
        let (key, secret, token, token_secret) = (next(), next(), next(), next());
        let mac = format!("{}&{}", encode(&secret), encode(&token_secret));
        Consumer {
            key,
            token,
            mac: <Hmac<Sha1> as KeyInit>::new_from_slice(mac.as_bytes()).expect("any key will do"),
        }
    };
    text.lines().map(parse).collect()
}

fn query(parameters: Option<usize>) -> String {
    match parameters {
        None => "fields=id%2Cname&limit=20&page=3&sort=name".to_owned(),
        Some(count) => {
            let pairs: Vec<String> = (0..count)
                .map(|at| format!("name{at:02}=value%20{at:02}"))
                .collect();
            pairs.join("&")
        }
    }
}

/// Pairs of about 30 bytes each, as a browser would send them.
fn form(bytes: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    while out.len() + 31 < bytes {
        let separator = if at == 0 { "" } else { "&" };
        _ = write!(out, "{separator}field{at:04}=value+%26+more{at:08}");
        at += 1;
    }
    out
}

/// Names and values as they are signed: decoded, then encoded by RFC 3986.
fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| (encode(&name), encode(&value)))
        .collect()
}

/// RFC 5849 section 3.6.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
