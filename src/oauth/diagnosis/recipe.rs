//! A way to sign a request, as a list of choices. The right one makes those of RFC 5849; a mistake changes some of them.
//!
//! This shares nothing with the base string of the check itself, which has no room for mistakes.

use std::{cell::OnceCell, rc::Rc};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use zeroize::Zeroizing;

use super::Attempt;
use crate::oauth::{
    method::SignatureMethod,
    origin::{Scheme, split_authority},
    percent,
    shape::Place,
    signature,
    signing_key::SigningKey,
};

/// A parameter, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Where it stood.
    pub place: Place,
    /// Its name.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// Makes other bytes of a text.
pub(super) type Bytes = fn(&[u8]) -> Vec<u8>;
/// Joins the consumer's secret and the token's.
pub(super) type Join = fn(&[u8], &[u8]) -> Vec<u8>;
/// Makes what a pair is sorted by, of the pair and its encoded form.
pub(super) type Order = fn(&Pair, &[Vec<u8>; 2]) -> [Vec<u8>; 2];

/// The choices on the way to a signature. It holds a key, so it is not printable.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) text: Text,
    /// The base string, once it was needed: changes of the key share it.
    base_string: OnceCell<Rc<[u8]>>,
    /// The consumer's secret and the token's.
    pub(super) secrets: [Zeroizing<Vec<u8>>; 2],
    pub(super) join: Join,
    pub(super) hash: Hash,
    pub(super) spelling: Spelling,
}

/// The choices on the way to a base string.
#[derive(Clone)]
pub(super) struct Text {
    pub(super) method: Vec<u8>,
    /// `https://`
    pub(super) scheme: &'static str,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) path: Vec<u8>,
    /// The text after the path in the base string URI.
    pub(super) uri_query: Vec<u8>,
    pub(super) pairs: Rc<Vec<Pair>>,
    pub(super) order: Order,
    /// How names and values are encoded.
    pub(super) codings: [Coding; 2],
    /// Whether the `=` of an empty value is written.
    pub(super) bare_names: bool,
    /// How the URI and the normalized parameters are encoded.
    pub(super) outer: [Coding; 2],
}

/// How a text is percent-encoded.
#[derive(Clone, Copy)]
pub(super) struct Coding {
    /// Changes the text before it is encoded.
    pub(super) bytes: Bytes,
    /// The reserved characters that are left as they are.
    pub(super) left: &'static str,
    /// The unreserved characters that are escaped.
    pub(super) escaped: &'static str,
    /// Whether a space is written as `+`.
    pub(super) plus: bool,
    /// Whether escapes have lower-case letters.
    pub(super) lower: bool,
    /// How often the text is encoded.
    pub(super) times: u8,
}

impl Coding {
    /// RFC 5849 §3.6.
    pub(super) const RIGHT: Self = Self {
        bytes: <[u8]>::to_vec,
        left: "",
        escaped: "",
        plus: false,
        lower: false,
        times: 1,
    };

    /// Not encoded.
    pub(super) const PLAIN: Self = Self {
        times: 0,
        ..Self::RIGHT
    };

    pub(super) fn encode(self, text: &[u8]) -> Vec<u8> {
        (0..self.times).fold((self.bytes)(text), |text, _| self.encode_once(&text))
    }

    fn encode_once(self, text: &[u8]) -> Vec<u8> {
        let [left, escaped] = [self.left, self.escaped].map(str::as_bytes);
        let mut out = Vec::with_capacity(2 * text.len());
        for &byte in text {
            let is_plain = percent::is_unreserved(byte) && !escaped.contains(&byte);
            match byte {
                b' ' if self.plus => out.push(b'+'),
                _ if is_plain || left.contains(&byte) => out.push(byte),
                _ if self.lower => out.extend(format!("%{byte:02x}").bytes()),
                _ => out.extend(format!("%{byte:02X}").bytes()),
            }
        }
        out
    }
}

/// How key and base string are joined to a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    /// As the signature method does.
    Method(SignatureMethod),
    /// HMAC, but the base string is the key.
    Swapped(SignatureMethod),
    /// The hash of the base string without any key.
    Keyless(SignatureMethod),
}

/// How the bytes of a signature are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Padded base64.
    Right,
    /// Base64 without its `=`.
    Unpadded,
    /// Base64 with `-` and `_`, padded or not.
    UrlSafe,
    /// Hexadecimal digits, or base64 of them.
    Hex,
    /// Base64, percent-encoded once more than its place asks for.
    EncodedTwice,
    /// Base64, not percent-encoded for its place, so that each `+` arrived as a space.
    NotEncoded,
    /// Base64 with a line break at the end or within.
    LineBreak,
}

impl Spelling {
    const ALL: [Self; 7] = [
        Self::Right,
        Self::Unpadded,
        Self::UrlSafe,
        Self::Hex,
        Self::EncodedTwice,
        Self::NotEncoded,
        Self::LineBreak,
    ];

    /// The bytes that `sent` spells in this way, and no simpler one.
    fn read(self, sent: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Right => STANDARD.decode(sent).ok(),
            Self::Unpadded => STANDARD_NO_PAD.decode(sent).ok(),
            Self::UrlSafe => URL_SAFE
                .decode(sent)
                .or_else(|_| URL_SAFE_NO_PAD.decode(sent))
                .ok(),
            Self::Hex => unhex(sent).or_else(|| unhex(&STANDARD.decode(sent).ok()?)),
            Self::EncodedTwice => STANDARD.decode(percent::decode(sent).ok()?).ok(),
            Self::NotEncoded => STANDARD.decode(replaced(sent, b" ", b"+")).ok(),
            Self::LineBreak => {
                let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n');
                let rest: Vec<u8> = sent.iter().copied().filter(|byte| !breaks(byte)).collect();
                STANDARD.decode(rest).ok()
            }
        }
    }

    /// The secrets that `sent` spells under PLAINTEXT.
    fn read_plain(self, sent: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Right => Some(sent.to_vec()),
            Self::EncodedTwice => Some(percent::decode(sent).ok()?.into_owned()),
            Self::LineBreak => Some(sent.trim_ascii_end().to_vec()),
            _ => None,
        }
    }
}

/// The bytes that a way to sign has to lead to, for one reading of the signature that was sent.
pub(super) struct Target {
    spelling: Spelling,
    bytes: Vec<u8>,
    /// The bytes are what this method of RSA signed.
    rsa: Option<SignatureMethod>,
}

impl Target {
    /// The targets of all readings that a key of the consumer can have led to.
    pub(super) fn all(attempt: &Attempt) -> Vec<Self> {
        let sent = &attempt.signature;
        let rsa = attempt.secrets.rsa.as_ref();
        let mut targets: Vec<Self> = Vec::new();
        // The secrets themselves, as under PLAINTEXT, have an '&' between them.
        let plain = attempt.signature_method == SignatureMethod::Plaintext || sent.contains(&b'&');
        for spelling in Spelling::ALL {
            let read = spelling.read(sent);
            let hash = read
                .iter()
                .filter(|bytes| matches!(bytes.len(), 16 | 20 | 32 | 64));
            let hash = hash.map(|bytes| (bytes.clone(), None));
            let plain = plain.then(|| spelling.read_plain(sent)).flatten();
            // A public key opens what its private key signed: one operation in place of one for each recipe.
            let opened = rsa
                .zip(read.as_ref())
                .and_then(|(rsa, read)| rsa.open(read));
            let opened = opened.map(|(method, digest)| (digest, Some(method)));
            let all = hash.chain(plain.map(|bytes| (bytes, None))).chain(opened);
            for (bytes, rsa) in all {
                if targets.iter().all(|simpler| simpler.bytes != bytes) {
                    targets.push(Self {
                        spelling,
                        bytes,
                        rsa,
                    });
                }
            }
        }
        targets
    }
}

impl Recipe {
    /// The right way to sign the request.
    pub(super) fn right(attempt: &Attempt) -> Self {
        let url = &attempt.url;
        let (host, port) = split_authority(&url.authority).unwrap_or((&url.authority, None));
        Self {
            text: Text {
                method: attempt.method.to_ascii_uppercase(),
                scheme: prefix_of(url.scheme),
                host: host.to_ascii_lowercase(),
                port: port.filter(|&port| port != url.scheme.default_port()),
                path: match &*url.path {
                    b"" => b"/".to_vec(),
                    path => path.to_vec(),
                },
                uri_query: Vec::new(),
                pairs: Rc::new(attempt.parameters.clone()),
                order: |_, encoded| encoded.clone(),
                codings: [Coding::RIGHT; 2],
                bare_names: false,
                outer: [Coding::RIGHT; 2],
            },
            base_string: OnceCell::new(),
            secrets: [&attempt.secrets.consumer, &attempt.secrets.token]
                .map(|secret| Zeroizing::new(secret.expose().to_vec())),
            join: |consumer, token| [&*encoded(consumer), b"&", &encoded(token)].concat(),
            hash: Hash::Method(attempt.signature_method),
            spelling: Spelling::Right,
        }
    }

    /// The recipe with other choices for the base string.
    pub(super) fn with_text(&self, change: impl FnOnce(&mut Text)) -> Self {
        let mut changed = Self {
            base_string: OnceCell::new(),
            ..self.clone()
        };
        change(&mut changed.text);
        changed
    }

    /// Whether this way leads to the signature that was sent, read in that way.
    pub(super) fn leads_to(&self, target: &Target) -> bool {
        if self.spelling != target.spelling {
            return false;
        }
        // A mistake that matches is the right signature of another request, so time must not tell how much of it was right.
        let made = match (target.rsa, self.hash) {
            (Some(method), Hash::Method(named)) => {
                (method == named).then(|| method.digest(self.base_string()))
            }
            (Some(_), _) => None,
            (None, _) => self.signature(),
        };
        made.is_some_and(|made| signature::equal(&made, &target.bytes))
    }

    /// The bytes of the signature; nothing for the RSA methods, whose private key is not here.
    pub(super) fn signature(&self) -> Option<Vec<u8>> {
        let [consumer, token] = &self.secrets;
        let key = Zeroizing::new((self.join)(consumer, token));
        match self.hash {
            Hash::Method(SignatureMethod::Plaintext) => Some(key.to_vec()),
            Hash::Method(method) => hmac(method, &key, self.base_string()),
            Hash::Swapped(method) => hmac(method, self.base_string(), &key),
            Hash::Keyless(method) => Some(method.digest(self.base_string())),
        }
    }

    /// The base string that these choices lead to.
    pub(super) fn base_string(&self) -> &[u8] {
        self.base_string
            .get_or_init(|| self.text.base_string().into())
    }
}

impl Text {
    fn base_string(&self) -> Vec<u8> {
        let port = self.port.map(|port| format!(":{port}"));
        let origin = [self.scheme, &self.host, port.as_deref().unwrap_or_default()].concat();
        let uri = [origin.as_bytes(), &self.path, &self.uri_query].concat();
        let [uri_coding, parameters_coding] = self.outer;
        [
            &*self.method,
            &uri_coding.encode(&uri),
            &parameters_coding.encode(&self.normalized()),
        ]
        .join(&b'&')
    }

    fn normalized(&self) -> Vec<u8> {
        let [names, values] = self.codings;
        let encoded = self.pairs.iter().map(|pair| {
            let encoded = [names.encode(&pair.name), values.encode(&pair.value)];
            ((self.order)(pair, &encoded), encoded)
        });
        let mut encoded: Vec<_> = encoded.collect();
        encoded.sort_by(|(left, _), (right, _)| left.cmp(right));
        let written = encoded.into_iter().map(|(_, [name, value])| {
            if self.bare_names && value.is_empty() {
                name
            } else {
                [name, value].join(&b'=')
            }
        });
        written.collect::<Vec<_>>().join(&b'&')
    }
}

pub(super) const fn prefix_of(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Http => "http://",
        Scheme::Https => "https://",
    }
}

/// The text, percent-encoded as it has to be.
pub(super) fn encoded(text: &[u8]) -> Vec<u8> {
    percent::encode(text).into_bytes()
}

/// The text with each `from` written as `to`.
pub(super) fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut start = 0;
    for at in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(&text[start..at]);
        out.extend_from_slice(to);
        start = at + from.len();
    }
    out.extend_from_slice(&text[start..]);
    out
}

/// The bytes of hexadecimal digits.
pub(super) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks();
    let bytes = pairs.iter().map(|&digits| percent::escaped(digits).ok());
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

fn hmac(method: SignatureMethod, key: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let signature = signature::sign_text(method, &SigningKey::from_text(key), message)?;
    STANDARD.decode(signature).ok()
}
