//! A way to sign a request, as a list of choices, and the changes that mistakes make to them.
//!
//! This shares nothing with the base string of the check itself, which has no room for mistakes.

use std::{
    cell::OnceCell,
    ops::{Deref, DerefMut},
    rc::Rc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use super::WrongSignature;
use crate::{
    base::secret::Secret,
    oauth::{
        base_string::origin::Scheme,
        method::{Family, SignatureMethod, rsa::Opened, signing_key::SigningKey},
        parameters::shape::ParameterLocation,
        percent, signature,
    },
};

/// A parameter, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Its location in the request.
    pub location: ParameterLocation,
    /// Its name.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

impl Pair {
    pub(super) fn new(location: ParameterLocation, name: &[u8], value: &[u8]) -> Self {
        let (name, value) = (name.to_vec(), value.to_vec());
        Self {
            location,
            name,
            value,
        }
    }
}

/// Changes the bytes of a text.
pub(super) type Bytes = fn(&[u8]) -> Vec<u8>;
/// Joins the consumer's secret and the token's to a key.
type Join = fn(&[u8], &[u8]) -> Vec<u8>;
/// Makes the sort key of a pair, from the pair and its encoded form.
type Order = fn(&Pair, &[Vec<u8>; 2]) -> [Vec<u8>; 2];
/// Makes the bytes of a signature from a key and a base string, in this order; `None` if they cannot be made here.
type Mac = fn(SignatureMethod, &[u8], &[u8]) -> Option<Vec<u8>>;

/// The choices on the way to a signature; those on the way to its base string are in [`Text`]. It holds a key, so it is not
/// printable.
#[derive(Clone)]
pub(super) struct Recipe<'a> {
    pub(super) attempt: &'a WrongSignature,
    text: Rc<Text>,
    /// The consumer's secret and the token's.
    pub(super) secrets: [Zeroizing<Vec<u8>>; 2],
    join: Join,
    pub(super) signature_method: SignatureMethod,
    pub(super) mac: Mac,
    /// The signature that was sent, in each way in which it can be read.
    pub(super) readings: Rc<[Reading]>,
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
    /// The encodings of names and values.
    pub(super) codings: [Coding; 2],
    /// Whether the `=` of an empty value is left out.
    pub(super) bare_names: bool,
    /// The encodings of the URI and of the normalized parameters.
    pub(super) outer: [Coding; 2],
    /// Changes the finished base string.
    pub(super) whole: Bytes,
    /// The base string, once it was needed: changes of the key share it.
    base_string: OnceCell<Vec<u8>>,
}

/// The percent-encoding of a text.
#[derive(Clone, Copy)]
pub(super) struct Coding {
    /// Changes the text before it is encoded.
    pub(super) bytes: Bytes,
    /// The reserved characters that are left as they are.
    pub(super) unescaped: &'static str,
    /// The unreserved characters that are escaped.
    pub(super) escaped: &'static str,
    /// Whether a space is written as `+`.
    pub(super) plus: bool,
    /// Whether escapes have lower-case letters.
    pub(super) lower: bool,
    /// Whether the text is not encoded at all.
    pub(super) plain: bool,
}

impl Coding {
    /// RFC 5849 §3.6.
    pub(super) const RIGHT: Self = Self {
        bytes: <[u8]>::to_vec,
        unescaped: "",
        escaped: "",
        plus: false,
        lower: false,
        plain: false,
    };

    /// Not encoded.
    pub(super) const PLAIN: Self = Self {
        plain: true,
        ..Self::RIGHT
    };

    fn encode(self, text: &[u8]) -> Vec<u8> {
        let text = (self.bytes)(text);
        if self.plain {
            return text;
        }
        let [unescaped, escaped] = [self.unescaped, self.escaped].map(str::as_bytes);
        let mut out = Vec::with_capacity(2 * text.len());
        for byte in text {
            let is_plain = percent::is_unreserved(byte) && !escaped.contains(&byte);
            match byte {
                b' ' if self.plus => out.push(b'+'),
                _ if is_plain || unescaped.contains(&byte) => out.push(byte),
                _ if self.lower => out.extend(format!("%{byte:02x}").bytes()),
                _ => out.extend(format!("%{byte:02X}").bytes()),
            }
        }
        out
    }
}

/// The bytes that a way to sign has to lead to, for one reading of the signature that was sent.
pub(super) enum Reading {
    /// They are a signature that needs no RSA key.
    Bytes(Vec<u8>),
    /// An RSA method signed this.
    Rsa(Opened),
}

impl Reading {
    /// The readings of `sent` that a key of the consumer can have led to.
    fn all(attempt: &WrongSignature, sent: &[u8]) -> Rc<[Self]> {
        let decoded = STANDARD.decode(sent).ok();
        // A public key opens what its private key signed: one operation instead of one for each recipe.
        let key = attempt.rsa.as_ref().zip(decoded.as_ref());
        let opened = key.and_then(|(key, signature)| key.open(signature));
        let hash = decoded.filter(|bytes| matches!(bytes.len(), 16 | 20 | 32 | 64));
        // The secrets themselves, as under PLAINTEXT, have an '&' between them.
        let plain = attempt.signature_method == SignatureMethod::Plaintext || sent.contains(&b'&');
        let plain = plain.then(|| sent.to_vec());
        let unsigned = [hash, plain].into_iter().flatten().map(Self::Bytes);
        unsigned.chain(opened.map(Self::Rsa)).collect()
    }
}

impl Deref for Recipe<'_> {
    type Target = Text;

    fn deref(&self) -> &Text {
        &self.text
    }
}

impl DerefMut for Recipe<'_> {
    /// Detaches the text from other recipes, and forgets its base string.
    fn deref_mut(&mut self) -> &mut Text {
        let text = Rc::make_mut(&mut self.text);
        text.base_string.take();
        text
    }
}

impl<'a> Recipe<'a> {
    /// The right way to sign the request.
    pub(super) fn right(attempt: &'a WrongSignature) -> Self {
        let text = Text {
            method: attempt.method.to_ascii_uppercase(),
            scheme: prefix_of(attempt.scheme),
            host: attempt.host.to_ascii_lowercase(),
            port: attempt
                .port
                .filter(|&port| port != attempt.scheme.default_port()),
            path: match &*attempt.path {
                b"" => b"/".to_vec(),
                path => path.to_vec(),
            },
            uri_query: Vec::new(),
            pairs: Rc::new(attempt.parameters.clone()),
            order: |_, encoded| encoded.clone(),
            codings: [Coding::RIGHT; 2],
            bare_names: false,
            outer: [Coding::RIGHT; 2],
            whole: <[u8]>::to_vec,
            base_string: OnceCell::new(),
        };
        Self {
            attempt,
            text: Rc::new(text),
            secrets: [&attempt.consumer_secret, &attempt.token_secret]
                .map(|secret| Zeroizing::new(secret.expose().to_vec())),
            join: |consumer, token| [&*encoded(consumer), b"&", &encoded(token)].concat(),
            signature_method: attempt.signature_method,
            mac,
            readings: Reading::all(attempt, &attempt.signature),
        }
    }

    /// Whether this way leads to the signature that was sent, in one of its readings.
    pub(super) fn leads_to_sent(&self) -> bool {
        // A mistake that matches is the right signature of another request, so timing must not show how much was right.
        self.readings.iter().any(|reading| match reading {
            Reading::Rsa(opened) => {
                let is_method = Family::Rsa(opened.hash) == self.signature_method.family();
                let digest = || opened.digest_of(self.base_string());
                is_method && signature::equal(&digest(), &opened.digest)
            }
            Reading::Bytes(bytes) => {
                let computed = self.signature();
                computed.is_some_and(|computed| signature::equal(&computed, bytes))
            }
        })
    }

    /// The bytes of the signature; nothing for the RSA methods, whose private key is not here.
    pub(super) fn signature(&self) -> Option<Vec<u8>> {
        let [consumer, token] = &self.secrets;
        let key = Zeroizing::new((self.join)(consumer, token));
        (self.mac)(self.signature_method, &key, self.base_string())
    }

    /// The recipe with one change.
    pub(super) fn one(&self, change: impl FnOnce(&mut Self)) -> Vec<Self> {
        let mut changed = self.clone();
        change(&mut changed);
        vec![changed]
    }

    /// One recipe for each value.
    pub(super) fn each<V>(
        &self,
        values: impl IntoIterator<Item = V>,
        change: impl Fn(&mut Self, V),
    ) -> Vec<Self> {
        let values = values.into_iter();
        values
            .flat_map(|value| self.one(|recipe| change(recipe, value)))
            .collect()
    }

    pub(super) fn joins<const N: usize>(&self, joins: [Join; N]) -> Vec<Self> {
        self.each(joins, |recipe, join| recipe.join = join)
    }

    /// With other secrets, the consumer's and the token's; `None` leaves one as it is.
    pub(super) fn with_secrets<'s>(
        &self,
        secrets: impl IntoIterator<Item = [Option<&'s [u8]>; 2]>,
    ) -> Vec<Self> {
        self.each(secrets, |recipe, secrets| {
            for (secret, other) in recipe.secrets.iter_mut().zip(secrets) {
                if let Some(other) = other {
                    *secret = Zeroizing::new(other.to_vec());
                }
            }
        })
    }

    /// Changes both secrets or one, to each of the texts that `change` makes of it.
    pub(super) fn each_secret(&self, change: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> Vec<Self> {
        let [consumer, token] = self.secrets.each_ref().map(|secret| change(secret));
        let (consumer, token) = (
            consumer.iter().map(|it| Some(&**it)),
            token.iter().map(|it| Some(&**it)),
        );
        let both = consumer.clone().zip(token.clone()).map(<[_; 2]>::from);
        let one = consumer
            .map(|it| [it, None])
            .chain(token.map(|it| [None, it]));
        self.with_secrets(both.chain(one))
    }

    /// The signature that was sent was meant to be `text`.
    pub(super) fn meant(&self, text: impl IntoIterator<Item = Vec<u8>>) -> Vec<Self> {
        self.each(text, |recipe, text| {
            recipe.readings = Reading::all(recipe.attempt, &text);
        })
    }

    /// Names and values encoded in that way, but for reserved characters that are left as they are and unreserved ones that are
    /// escaped: `[unescaped, escaped]`.
    pub(super) fn coded<const N: usize>(
        &self,
        coding: Coding,
        characters: [[&'static str; 2]; N],
    ) -> Vec<Self> {
        self.each(characters, |recipe, [unescaped, escaped]| {
            let coding = Coding {
                unescaped,
                escaped,
                ..coding
            };
            recipe.codings = [coding; 2];
        })
    }

    /// Names and values with characters left as they are: one recipe with the characters of each of `words`.
    pub(super) fn leaving(&self, words: &'static str) -> Vec<Self> {
        let ways = words
            .split(' ')
            .map(|unescaped| self.coded(Coding::RIGHT, [[unescaped, ""]]));
        ways.flatten().collect()
    }

    pub(super) fn sorted(&self, order: Order) -> Vec<Self> {
        self.one(|recipe| recipe.order = order)
    }

    pub(super) fn paths<P: AsRef<[u8]>>(&self, paths: impl IntoIterator<Item = P>) -> Vec<Self> {
        self.each(paths, |recipe, path| recipe.path = path.as_ref().to_vec())
    }

    /// With other pairs.
    pub(super) fn with_pairs(&self, change: impl FnOnce(&mut Vec<Pair>)) -> Vec<Self> {
        self.one(|recipe| change(Rc::make_mut(&mut recipe.pairs)))
    }

    pub(super) fn each_pair(&self, change: impl FnMut(&mut Pair)) -> Vec<Self> {
        self.with_pairs(|pairs| pairs.iter_mut().for_each(change))
    }

    pub(super) fn keep(&self, is_wanted: impl FnMut(&Pair) -> bool) -> Vec<Self> {
        self.with_pairs(|pairs| pairs.retain(is_wanted))
    }

    pub(super) fn add(&self, name: &[u8], value: &[u8]) -> Vec<Self> {
        self.with_pairs(|pairs| pairs.push(Pair::new(ParameterLocation::Body, name, value)))
    }
}

impl Text {
    /// The base string that these choices lead to.
    pub(super) fn base_string(&self) -> &[u8] {
        self.base_string.get_or_init(|| {
            let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
            let origin = [self.scheme, &self.host, &port].concat();
            let uri = [origin.as_bytes(), &self.path, &self.uri_query].concat();
            let [uri_coding, parameters_coding] = self.outer;
            let parameters = parameters_coding.encode(&self.normalized());
            (self.whole)(&[&*self.method, &uri_coding.encode(&uri), &parameters].join(&b'&'))
        })
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
            match self.bare_names && value.is_empty() {
                true => name,
                false => [name, value].join(&b'='),
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

/// The signature of a method that shares a secret.
pub(super) fn mac(method: SignatureMethod, key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    if method == SignatureMethod::Plaintext {
        return Some(key.to_vec());
    }
    let key = SigningKey::consumer_secret_alone(&Secret::from(key.to_vec()));
    let signature = signature::sign(method, &key, &text)?;
    STANDARD.decode(signature).ok()
}
