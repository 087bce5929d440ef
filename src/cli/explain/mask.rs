//! Secrets stay out of an explanation: people paste it into tickets and chats.

use std::borrow::Cow;

use memchr::memmem;
use zeroize::Zeroizing;

use super::{KnownSecrets, readable};
use crate::oauth::{SignatureMethod, percent};

/// A shorter secret is not searched for: it occurs by chance, and the gap would reveal it.
const MIN_SEARCHED_BYTES: usize = 6;

/// Hides secrets in what is printed; with `--show-secrets` it hides nothing.
pub(super) struct Mask {
    show: bool,
    /// Every spelling of a secret, longer ones first, and what is printed instead.
    spellings: Vec<(Zeroizing<Vec<u8>>, &'static str)>,
}

impl Mask {
    /// Hides `secrets`, if they are known, wherever they occur.
    pub(super) fn new(show: bool, secrets: Option<&KnownSecrets>) -> Self {
        let mut spellings = Vec::new();
        let named = secrets.map(|known| {
            [
                (&known.consumer_secret, "<consumer secret>"),
                (&known.token_secret, "<token secret>"),
            ]
        });
        for (secret, name) in named.into_iter().flatten() {
            let mut spelling = Zeroizing::new(secret.expose().to_vec());
            // As it is, percent-encoded (normalized parameters), and encoded again (base string).
            for _ in 0..3 {
                let encoded = percent::encode(&spelling).as_bytes().to_vec();
                spellings.push((spelling, name));
                spelling = Zeroizing::new(encoded);
            }
        }
        spellings.retain(|(spelling, _)| !spelling.is_empty());
        spellings.sort_by_key(|(spelling, _)| std::cmp::Reverse(spelling.len()));
        Self { show, spellings }
    }

    /// Text in which the secrets are replaced by their names.
    pub(super) fn text(&self, bytes: &[u8]) -> String {
        if self.show {
            return readable(bytes);
        }
        let mut text = Cow::Borrowed(bytes);
        for (spelling, name) in &self.spellings {
            if spelling.len() >= MIN_SEARCHED_BYTES && memmem::find(&text, spelling).is_some() {
                text = Cow::Owned(replace(&text, spelling, name.as_bytes()));
            }
        }
        readable(&text)
    }

    /// The signature that was sent. With PLAINTEXT it is the secrets themselves, and a consumer that confuses the methods
    /// may send them under another: it is shown only where it can be nothing but a signature.
    pub(super) fn sent(&self, method: Option<SignatureMethod>, signature: &[u8]) -> String {
        let plain = matches!(method, None | Some(SignatureMethod::Plaintext))
            || signature.contains(&b'&')
            || memmem::find(signature, b"%26").is_some()
            || self
                .spellings
                .iter()
                .any(|(spelling, _)| **spelling == *signature);
        if plain && !self.show {
            return "<hidden; --show-secrets shows it>".to_owned();
        }
        self.text(signature)
    }

    /// The signature that is expected.
    pub(super) fn expected(&self, method: SignatureMethod, signature: &str) -> String {
        if method == SignatureMethod::Plaintext && !self.show {
            return "<consumer secret>&<token secret>".to_owned();
        }
        signature.to_owned()
    }
}

fn replace(text: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    let (mut replaced, mut end) = (Vec::with_capacity(text.len()), 0);
    for at in memmem::find_iter(text, part) {
        replaced.extend([&text[end..at], by].concat());
        end = at + part.len();
    }
    replaced.extend(&text[end..]);
    replaced
}
