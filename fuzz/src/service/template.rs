//! Requests that are signed correctly, or wrong in one thing, by a signer that shares nothing with the program's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use crate::{Pair, base_string, encode};

/// The public URL's host; its scheme is https.
pub const HOST: &str = "api.test";
/// The time at which everything happens, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

pub const CONSUMER: &str = "ck";
pub const CONSUMER_SECRET: &str = "consumer secret";
pub const TOKEN: &str = "at";
pub const REVOKED_TOKEN: &str = "rt";
pub const TOKEN_SECRET: &str = "token&secret";
pub const USER: &str = "id-u";
pub const PERMISSION: &str = "members.read";
/// The id of the session of [`USER`].
pub const SESSION: &str = "sssssssssssssssssssssssssssssssssssssssssss";

/// The key of [`SESSION`] in the store.
pub fn session_hash() -> [u8; 32] {
    Sha256::digest(SESSION).into()
}

/// The place of the credentials.
#[derive(Clone, Copy, PartialEq)]
enum ParameterLocation {
    Header,
    Query,
    Body,
}

#[derive(Clone, Copy, PartialEq)]
enum Body {
    Nothing,
    Form,
    /// Not signed.
    Json,
    /// Signed by its hash.
    Hashed,
}

/// The identity under which a call may reach the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// A consumer with an access token.
    Consumer,
    /// A consumer alone.
    Application,
    /// Neither.
    Never,
}

struct Kind {
    method: &'static str,
    path: &'static str,
    place: ParameterLocation,
    body: Body,
    chunked: bool,
    token: Option<&'static str>,
    token_secret: &'static str,
    /// The seconds by which the consumer's clock is slow.
    late: u64,
    fields: &'static [(&'static str, &'static str)],
    http10: bool,
    bearer: Bearer,
}

const GET: Kind = Kind {
    method: "GET",
    path: "/members/7",
    place: ParameterLocation::Header,
    body: Body::Nothing,
    chunked: false,
    token: Some(TOKEN),
    token_secret: TOKEN_SECRET,
    late: 0,
    fields: &[],
    http10: false,
    bearer: Bearer::Consumer,
};

const FORM: Kind = Kind {
    method: "POST",
    path: "/form",
    body: Body::Form,
    ..GET
};

const UPLOAD: Kind = Kind {
    path: "/upload",
    body: Body::Json,
    ..FORM
};

const SPOOFED: &[(&str, &str)] = &[
    ("X-Auth-User", "root"),
    ("x_auth_consumer", "root"),
    ("X-Auth-Kind", "user"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("Connection", "close, x-auth-user, authorization"),
];

const WEBSOCKET: &[(&str, &str)] = &[
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The answer to the handshake of [`WEBSOCKET`] (RFC 6455 §1.3).
pub const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The number of templates.
pub const COUNT: usize = 24;

/// Whether a request of this kind reaches the API.
pub fn passes(kind: usize) -> bool {
    KINDS[kind].bearer != Bearer::Never
}

/// Whether a description of a request of this kind is permitted: its signature covers no body.
pub fn passes_described(kind: usize) -> bool {
    passes(kind) && matches!(KINDS[kind].body, Body::Nothing | Body::Json)
}

const KINDS: [Kind; COUNT] = [
    GET,
    Kind {
        place: ParameterLocation::Query,
        ..GET
    },
    FORM,
    Kind {
        place: ParameterLocation::Body,
        ..FORM
    },
    UPLOAD,
    Kind {
        chunked: true,
        ..UPLOAD
    },
    Kind {
        chunked: true,
        place: ParameterLocation::Body,
        ..FORM
    },
    Kind {
        method: "PUT",
        body: Body::Hashed,
        ..UPLOAD
    },
    Kind {
        path: "/app",
        token: None,
        bearer: Bearer::Application,
        ..GET
    },
    Kind {
        path: "/ws",
        fields: WEBSOCKET,
        ..GET
    },
    Kind {
        token: Some(REVOKED_TOKEN),
        bearer: Bearer::Never,
        ..GET
    },
    Kind {
        token_secret: "another",
        bearer: Bearer::Never,
        ..GET
    },
    Kind {
        path: "/secret",
        bearer: Bearer::Never,
        ..GET
    },
    Kind {
        method: "HEAD",
        ..GET
    },
    Kind {
        late: 3600,
        bearer: Bearer::Never,
        ..GET
    },
    Kind {
        fields: &[("Expect", "100-continue")],
        ..FORM
    },
    Kind {
        http10: true,
        ..GET
    },
    Kind {
        http10: true,
        fields: &[("Connection", "keep-alive")],
        ..GET
    },
    Kind {
        fields: SPOOFED,
        ..GET
    },
    Kind {
        fields: SPOOFED,
        place: ParameterLocation::Body,
        ..FORM
    },
    Kind {
        path: "/unlisted",
        bearer: Bearer::Never,
        ..GET
    },
    Kind {
        chunked: true,
        body: Body::Hashed,
        ..UPLOAD
    },
    Kind {
        method: "DELETE",
        path: "/members/7",
        ..GET
    },
    Kind {
        fields: &[("Expect", "100-continue")],
        ..UPLOAD
    },
];

/// The signed parts of a request, and the identity under which it may pass.
pub struct Signed {
    pub method: &'static str,
    pub path: &'static str,
    /// Without credentials, sorted.
    pub query: Vec<Pair>,
    /// The same of the form; empty if the body is not a form.
    pub form: Vec<Pair>,
    pub body: Option<Vec<u8>>,
    pub bearer: Bearer,
}

/// A request as it is sent.
pub struct Message {
    method: &'static str,
    target: Vec<u8>,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
    http10: bool,
}

fn pair(name: &str, value: &str) -> Pair {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}

fn written(pairs: &[Pair]) -> Vec<u8> {
    let each: Vec<Vec<u8>> = pairs
        .iter()
        .map(|(name, value)| [&encode(name)[..], b"=", &encode(value)].concat())
        .collect();
    each.join(&b'&')
}

/// The `kind`th template, with a nonce of its own, which is in the query as `n` as well.
pub fn make(kind: usize, nonce: &str, number: usize) -> (Signed, Message) {
    let kind = &KINDS[kind % KINDS.len()];
    let number = number.to_string();
    let mut query = vec![pair("n", &number), pair("a", "b c")];
    let mut form = match kind.body {
        Body::Form => vec![pair("f", "1+1=2"), pair("n", &number)],
        _ => Vec::new(),
    };
    let mut body = match kind.body {
        Body::Nothing | Body::Form => Vec::new(),
        Body::Json | Body::Hashed => format!("{{\"n\":{number}}}").into_bytes(),
    };
    let mut oauth = vec![
        pair("oauth_consumer_key", CONSUMER),
        pair("oauth_signature_method", "HMAC-SHA1"),
        pair("oauth_timestamp", &(NOW - kind.late).to_string()),
        pair("oauth_nonce", nonce),
    ];
    if let Some(token) = kind.token {
        oauth.push(pair("oauth_token", token));
    }
    if kind.body == Body::Hashed {
        oauth.push(pair(
            "oauth_body_hash",
            &STANDARD.encode(Sha1::digest(&body)),
        ));
    }
    let all = [&query[..], &form, &oauth].concat();
    let base = base_string(
        kind.method.as_bytes(),
        &format!("https://{HOST}"),
        kind.path.as_bytes(),
        &all,
    );
    let mut key = encode(CONSUMER_SECRET.as_bytes());
    key.push(b'&');
    if kind.token.is_some() {
        key.extend(encode(kind.token_secret.as_bytes()));
    }
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).expect("any length");
    mac.update(&base);
    oauth.push(pair(
        "oauth_signature",
        &STANDARD.encode(mac.finalize().into_bytes()),
    ));

    query.sort();
    form.sort();
    let signed = Signed {
        method: kind.method,
        path: kind.path,
        query: query.clone(),
        form: form.clone(),
        body: (kind.body == Body::Hashed).then(|| body.clone()),
        bearer: kind.bearer,
    };
    let mut fields = Vec::new();
    match kind.place {
        ParameterLocation::Header => {
            let each: Vec<String> = oauth
                .iter()
                .map(|(name, value)| {
                    let text = |bytes: &[u8]| String::from_utf8(encode(bytes)).expect("ASCII");
                    format!("{}=\"{}\"", text(name), text(value))
                })
                .collect();
            fields.push((
                "Authorization".to_owned(),
                format!("OAuth {}", each.join(", ")),
            ));
        }
        ParameterLocation::Query => query.extend(oauth),
        ParameterLocation::Body => form.extend(oauth),
    }
    match kind.body {
        Body::Nothing => {}
        Body::Form => {
            body = written(&form);
            fields.push((
                "Content-Type".to_owned(),
                "application/x-www-form-urlencoded".to_owned(),
            ));
        }
        Body::Json | Body::Hashed => {
            fields.push(("Content-Type".to_owned(), "application/json".to_owned()))
        }
    }
    fields.extend(
        kind.fields
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned())),
    );
    let message = Message {
        method: kind.method,
        target: [kind.path.as_bytes(), b"?", &written(&query)].concat(),
        fields,
        body,
        chunked: kind.chunked,
        http10: kind.http10,
    };
    (signed, message)
}

/// A request of the user's session, as the service's own pages make it.
pub fn of_session() -> Message {
    Message {
        method: "GET",
        target: b"/me".to_vec(),
        fields: vec![
            (
                "Cookie".to_owned(),
                format!("a=1; __Host-countersign={SESSION}; b=2"),
            ),
            ("Sec-Fetch-Site".to_owned(), "same-origin".to_owned()),
        ],
        body: Vec::new(),
        chunked: false,
        http10: false,
    }
}

impl Signed {
    /// Whether a description shows everything that its signature covers.
    pub fn is_describable(&self) -> bool {
        self.form.is_empty() && self.body.is_none()
    }
}

impl Message {
    /// As a proxy in front describes it.
    pub fn described(&self, way: u8) -> Vec<u8> {
        let target = String::from_utf8_lossy(&self.target);
        let (method, line, host, fields) = match way % 3 {
            0 => (
                "GET",
                "/nginx".to_owned(),
                "gate",
                vec![
                    ("X-Original-Method", self.method.to_owned()),
                    ("X-Original-URL", format!("https://{HOST}{target}")),
                ],
            ),
            1 => (
                "GET",
                "/forwarded".to_owned(),
                "gate",
                vec![
                    ("X-Forwarded-Method", self.method.to_owned()),
                    ("X-Forwarded-Proto", "https".to_owned()),
                    ("X-Forwarded-Host", HOST.to_owned()),
                    ("X-Forwarded-Uri", target.into_owned()),
                ],
            ),
            _ => (self.method, format!("/verify{target}"), HOST, Vec::new()),
        };
        let mut out = format!("{method} {line} HTTP/1.1\r\nHost: {host}\r\n");
        let own = self
            .fields
            .iter()
            .map(|(name, value)| (&**name, value.clone()));
        for (name, value) in fields.into_iter().chain(own) {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        (out + "\r\n").into_bytes()
    }

    /// As HTTP/1.1 sends it.
    pub fn http1(&self) -> Vec<u8> {
        let version = if self.http10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let mut out = [
            self.method.as_bytes(),
            b" ",
            &self.target,
            b" ",
            version.as_bytes(),
            b"\r\n",
        ]
        .concat();
        out.extend(format!("Host: {HOST}\r\n").bytes());
        for (name, value) in &self.fields {
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        if self.chunked {
            out.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let (front, back) = self.body.split_at(self.body.len() / 2);
            for piece in [front, back].into_iter().filter(|piece| !piece.is_empty()) {
                out.extend(format!("{:x}\r\n", piece.len()).bytes());
                out.extend([piece, b"\r\n"].concat());
            }
            out.extend(b"0\r\n\r\n");
        } else {
            if !self.body.is_empty() {
                out.extend(format!("Content-Length: {}\r\n", self.body.len()).bytes());
            }
            out.extend(b"\r\n");
            out.extend(&self.body);
        }
        out
    }

    /// As HTTP/2 sends it, on a stream.
    pub fn http2(&self, stream: u32) -> Vec<u8> {
        let mut block = Vec::new();
        field(&mut block, b":method", self.method.as_bytes());
        field(&mut block, b":scheme", b"https");
        field(&mut block, b":path", &self.target);
        field(&mut block, b":authority", HOST.as_bytes());
        for (name, value) in &self.fields {
            if !["Connection", "Upgrade"].contains(&&**name) {
                field(
                    &mut block,
                    name.to_ascii_lowercase().as_bytes(),
                    value.as_bytes(),
                );
            }
        }
        let ends = self.body.is_empty();
        let mut out = frame(1, if ends { 5 } else { 4 }, stream, &block);
        if !ends {
            out.extend(frame(0, 1, stream, &self.body));
        }
        out
    }
}

/// A frame (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short");
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A field without the tables of HPACK (RFC 7541 §6.2.2).
fn field(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    block.push(0);
    for text in [name, value] {
        let mut length = text.len();
        if length < 127 {
            block.extend(u8::try_from(length));
        } else {
            block.push(127);
            length -= 127;
            while length >= 128 {
                block.push(u8::try_from(length % 128).expect("below 128") | 128);
                length /= 128;
            }
            block.extend(u8::try_from(length));
        }
        block.extend(text);
    }
}
