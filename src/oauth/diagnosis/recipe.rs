//! How a consumer makes a signature, as a list of choices; the right one has RFC 5849's, a wrong one differs in some.
//!
//! Nothing is shared with the base string of the check itself, which has no room for mistakes.

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use zeroize::Zeroizing;

use super::{
    Attempt,
    coding::{Coding, Spelling, lower_escapes},
};
use crate::oauth::{
    method::SignatureMethod,
    origin::{Scheme, split_authority},
    percent,
    shape::Place,
    signature,
    signing_key::SigningKey,
};

/// All choices that are made on the way to a signature. Has a key in it, so it does not print.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) method: Vec<u8>,
    pub(super) scheme: Scheme,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) path: Vec<u8>,
    /// How the base string URI begins.
    pub(super) start: Start,
    /// Left in the base string URI.
    pub(super) uri_query: Vec<u8>,
    /// The parameters, decoded, as they came, `oauth_signature` not among them.
    pub(super) pairs: Vec<Pair>,
    pub(super) order: Order,
    /// How names and values are encoded.
    pub(super) coding: Coding,
    /// Whether the `=` of an empty value is written.
    pub(super) bare_names: bool,
    pub(super) outer: Outer,
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) hash: Hash,
    pub(super) spelling: Spelling,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) place: Place,
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By encoded name, then encoded value.
    Right,
    /// Not sorted.
    AsListed,
    /// By decoded name, then decoded value.
    Decoded,
    /// By encoded name; equal names stay as they are.
    NameOnly,
    /// As the right one, without regard to case.
    IgnoringCase,
    /// By the text `name=value`.
    Joined,
    /// As the right one, but digits by the number that they make.
    Numbers,
}

/// What the base string URI begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Scheme,
    /// `//` and the host.
    Slashes,
    Host,
    Path,
}

/// How the three parts of the base string are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outer {
    Right,
    /// The normalized parameters as they are.
    PlainParameters,
    /// The URI as it is.
    PlainUri,
    /// Both as they are.
    Plain,
    /// Encoded with small letters in the escapes.
    LowerCase,
}

/// What is made of key and base string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    /// What the signature method says.
    Method(SignatureMethod),
    /// HMAC, but the base string is the key.
    Swapped(SignatureMethod),
    /// The hash of the base string without any key.
    Keyless(SignatureMethod),
}

impl Recipe {
    /// The right way to sign the request.
    pub(super) fn right(attempt: &Attempt<'_>) -> Self {
        let (host, port) = split_authority(attempt.authority).unwrap_or((attempt.authority, None));
        let pairs = attempt.parameters.iter().map(|parameter| Pair {
            place: parameter.place,
            name: parameter.name.into_owned(),
            value: parameter.value.into_owned(),
        });
        Self {
            method: attempt.method.to_ascii_uppercase(),
            scheme: attempt.scheme,
            host: host.to_ascii_lowercase(),
            port: port.filter(|&port| port != attempt.scheme.default_port()),
            path: if attempt.path.is_empty() {
                b"/".to_vec()
            } else {
                attempt.path.to_vec()
            },
            start: Start::Scheme,
            uri_query: Vec::new(),
            pairs: pairs
                .filter(|pair| pair.name != b"oauth_signature")
                .collect(),
            order: Order::Right,
            coding: Coding::Right,
            bare_names: false,
            outer: Outer::Right,
            key: joined(&[
                percent::encode(attempt.consumer_secret.expose()).as_bytes(),
                b"&",
                percent::encode(attempt.token_secret.expose()).as_bytes(),
            ]),
            hash: Hash::Method(attempt.signature_method),
            spelling: Spelling::Right,
        }
    }

    /// Whether this way leads to the signature that was sent.
    pub(super) fn makes(&self, attempt: &Attempt<'_>) -> bool {
        if self.hash == Hash::Method(SignatureMethod::Plaintext) {
            let sent = match self.spelling {
                Spelling::EncodedTwice => percent::decode(attempt.signature).unwrap_or_default(),
                Spelling::LineBreak => attempt.signature.trim_ascii_end().into(),
                _ => attempt.signature.into(),
            };
            return signature::equal(&sent, &self.key);
        }
        let Some(sent) = self.spelling.read(attempt.signature) else {
            return false;
        };
        let message = self.base_string();
        // What is a mistake here is the right signature of another request: how much of it was guessed shows nowhere.
        let is =
            |digest: Option<Vec<u8>>| digest.is_some_and(|digest| signature::equal(&digest, &sent));
        match self.hash {
            Hash::Method(method) if method.is_rsa() => attempt
                .rsa
                .is_some_and(|rsa| rsa.verifies_bytes(method, &&*message, &sent)),
            Hash::Method(method) => is(hmac(method, &self.key, &message)),
            Hash::Swapped(method) => is(hmac(method, &message, &self.key)),
            Hash::Keyless(method) => is(Some(keyless(method, &message))),
        }
    }

    /// The base string that comes of it.
    pub(super) fn base_string(&self) -> Vec<u8> {
        let parameters = self.normalized();
        let uri = self.uri();
        let (uri, parameters) = match self.outer {
            Outer::Right => (encoded(&uri), encoded(&parameters)),
            Outer::PlainParameters => (encoded(&uri), parameters),
            Outer::PlainUri => (uri, encoded(&parameters)),
            Outer::Plain => (uri, parameters),
            Outer::LowerCase => (
                lower_escapes(&encoded(&uri)),
                lower_escapes(&encoded(&parameters)),
            ),
        };
        [&*self.method, &*uri, &*parameters].join(&b'&')
    }

    fn uri(&self) -> Vec<u8> {
        let port = self.port.map(|port| format!(":{port}"));
        let authority = format!("{}{}", self.host, port.unwrap_or_default());
        let mut uri = match self.start {
            Start::Scheme => format!("{}://{authority}", self.scheme),
            Start::Slashes => format!("//{authority}"),
            Start::Host => authority,
            Start::Path => String::new(),
        }
        .into_bytes();
        uri.extend_from_slice(&self.path);
        uri.extend_from_slice(&self.uri_query);
        uri
    }

    fn normalized(&self) -> Vec<u8> {
        let mut pairs: Vec<&Pair> = self.pairs.iter().collect();
        let coded = |pair: &&Pair| [&pair.name, &pair.value].map(|text| self.coding.encode(text));
        match self.order {
            Order::Right => pairs.sort_by_cached_key(coded),
            Order::AsListed => {}
            Order::Decoded => pairs.sort_by_key(|&pair| (&pair.name, &pair.value)),
            Order::NameOnly => pairs.sort_by_cached_key(|pair| self.coding.encode(&pair.name)),
            Order::IgnoringCase => {
                pairs.sort_by_cached_key(|pair| coded(pair).map(|text| text.to_ascii_lowercase()))
            }
            Order::Joined => pairs.sort_by_cached_key(|pair| coded(pair).join(&b'=')),
            Order::Numbers => {
                pairs.sort_by_cached_key(|pair| coded(pair).map(|text| padded(&text)))
            }
        }
        let written = pairs.iter().map(|pair| match coded(pair) {
            [name, value] if self.bare_names && value.is_empty() => name,
            both => both.join(&b'='),
        });
        written.collect::<Vec<_>>().join(&b'&')
    }
}

pub(super) fn encoded(text: &[u8]) -> Vec<u8> {
    percent::encode(text).into_bytes()
}

/// Text in which each number has as many digits, so that sorting by bytes sorts by numbers.
fn padded(text: &[u8]) -> Vec<u8> {
    const DIGITS: usize = 10;

    let runs = text.chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit());
    runs.flat_map(|run| {
        let is_number = run.first().is_some_and(u8::is_ascii_digit);
        let zeros = if is_number {
            DIGITS.saturating_sub(run.len())
        } else {
            0
        };
        [&b"0000000000"[..zeros], run].concat()
    })
    .collect()
}

/// Joins parts of a key in memory that is wiped.
pub(super) fn joined(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(parts.concat())
}

fn hmac(method: SignatureMethod, key: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let signature = signature::sign_text(method, &SigningKey::from_text(key), message)?;
    Spelling::Right.read(signature.as_bytes())
}

fn keyless(method: SignatureMethod, message: &[u8]) -> Vec<u8> {
    match method {
        SignatureMethod::HmacMd5 => Md5::digest(message).to_vec(),
        SignatureMethod::HmacSha256 | SignatureMethod::RsaSha256 => {
            Sha256::digest(message).to_vec()
        }
        SignatureMethod::HmacSha512 | SignatureMethod::RsaSha512 => {
            Sha512::digest(message).to_vec()
        }
        SignatureMethod::HmacSha1 | SignatureMethod::RsaSha1 | SignatureMethod::Plaintext => {
            Sha1::digest(message).to_vec()
        }
    }
}
