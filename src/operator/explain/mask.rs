//! Secrets stay out of an explanation: people paste it into tickets and chats.
//!
//! A secret is hidden where it is the whole value of a parameter, and nowhere else: a gap within a text would reveal it.

use super::{KnownSecrets, readable};
use crate::{
    base::secret::Secret,
    oauth::{SignatureMethod, percent},
};

/// The text instead of a value that is always hidden.
const HIDDEN: &str = "<hidden; --show-secrets shows it>";

/// Parameters whose value is known to everyone: that it equals a short secret would reveal the secret.
const PUBLIC: [&[u8]; 3] = [
    b"oauth_version",
    b"oauth_signature_method",
    b"oauth_timestamp",
];

/// Hides secrets in what is printed; with `--show-secrets` it hides nothing.
pub struct Mask {
    show: bool,
    /// The secrets that are known, and what is printed instead.
    secrets: Vec<(Secret, &'static str)>,
}

impl Mask {
    /// Hides `secrets`, if they are known.
    pub fn new(show: bool, secrets: Option<&KnownSecrets>) -> Self {
        let named = secrets.into_iter().flat_map(|known| {
            let token = (&known.token_secret, "<token secret>");
            [(&known.consumer_secret, "<consumer secret>"), token]
        });
        let named = named.filter(|(secret, _)| !secret.is_empty());
        let secrets = named.map(|(secret, name)| (secret.clone(), name)).collect();
        Self { show, secrets }
    }

    /// The value of a parameter, decoded, unless it is a secret.
    pub fn value(&self, name: &[u8], value: &[u8]) -> String {
        match self.hidden(name, value) {
            Some(instead) => instead.to_owned(),
            None => readable(value),
        }
    }

    /// Normalized parameters without the values that are secrets.
    pub fn normalized(&self, text: &[u8]) -> String {
        self.pairs(text, &["&"], "=")
    }

    /// A base string without the values that are secrets.
    pub fn base_string(&self, text: &[u8]) -> String {
        match memchr::memmem::find(text, b"%3D") {
            Some(_) => self.pairs(text, &["&", "%26", "%3F"], "%3D"),
            None => self.pairs(text, &["&", "?"], "="),
        }
    }

    fn pairs(&self, text: &[u8], separators: &[&str], equals: &str) -> String {
        let text = readable(text);
        let mut out = String::with_capacity(text.len());
        let mut rest = &*text;
        while !rest.is_empty() {
            let ends = separators
                .iter()
                .filter_map(|end| Some((rest.find(end)?, end.len())));
            let (end, separator) = ends.min().unwrap_or((rest.len(), 0));
            let pair = &rest[..end];
            let instead = pair.split_once(equals).and_then(|(name, value)| {
                let instead = self.hidden(name.as_bytes(), value.as_bytes())?;
                Some([name, equals, instead].concat())
            });
            out += instead.as_deref().unwrap_or(pair);
            out += &rest[end..end + separator];
            rest = &rest[end + separator..];
        }
        out
    }

    /// The text instead of the value, if it is a secret: as it is, or once or twice percent-encoded.
    fn hidden(&self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        if self.show || PUBLIC.contains(&name) {
            return None;
        }
        if name.ends_with(b"secret") || name.ends_with(b"password") {
            return Some(HIDDEN);
        }
        let once = percent::decode(value).unwrap_or_default();
        let twice = percent::decode(&once).unwrap_or_default();
        let readings = [value, &once, &twice];
        let mut known = self.secrets.iter();
        let known = known.find(|(secret, _)| readings.contains(&secret.expose()));
        known.map(|(_, instead)| *instead)
    }

    /// The signature that was sent. With PLAINTEXT it is the secrets themselves, and a consumer that confuses the methods
    /// may send them under another: it is shown only where it can be nothing but a signature.
    pub fn sent(&self, method: Option<SignatureMethod>, signature: &[u8]) -> String {
        let plain = matches!(method, None | Some(SignatureMethod::Plaintext))
            || signature.contains(&b'&')
            || memchr::memmem::find(signature, b"%26").is_some()
            || self.hidden(b"", signature).is_some();
        if plain && !self.show {
            return HIDDEN.to_owned();
        }
        readable(signature)
    }

    /// The signature that is expected.
    pub fn expected(&self, method: SignatureMethod, signature: &str) -> String {
        if method == SignatureMethod::Plaintext && !self.show {
            return "<consumer secret>&<token secret>".to_owned();
        }
        signature.to_owned()
    }
}
