//! Secrets at rest: kept as they are, or sealed with AES-256-GCM under a key that stands outside the store.
//!
//! A kept secret is one tag byte and what follows it: `0` and the secret itself, or `1`, the nonce (12 bytes),
//! the ciphertext and its tag (16 bytes). The name of the field and the key of its record are authenticated with
//! it, so that nobody who can write to the store can put one record's secret into another.
//! Nonces are random: one key is good for 2^32 secrets.

use std::{fmt, fs::File, io::Read, path::Path};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine, engine::general_purpose};
use thiserror::Error;
use zeroize::Zeroizing;

use super::StoreError;
use crate::secret::Secret;

/// The length of a sealing key.
pub const KEY_BYTES: usize = 32;

/// A key that seals secrets.
#[derive(Clone)]
pub struct SealKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Why a key file is none.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the file; check the path and its rights")]
    Read(#[from] std::io::Error),
    /// It does not hold 32 bytes, as they are, in hexadecimal or in base64.
    #[error(
        "not a key of 32 bytes, as they are, in hexadecimal or in base64; make one with openssl rand -out FILE 32"
    )]
    Shape,
}

impl SealKey {
    /// Takes 32 bytes as a key.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a key file: 32 bytes as they are, or in hexadecimal or base64 with at most one final newline.
    ///
    /// # Errors
    /// [`KeyFileError::Read`] if the file cannot be read, [`KeyFileError::Shape`] if it holds something else.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        // Base64 of 32 bytes has 44 characters, hexadecimal 64; what is longer is no key.
        const LONGEST: u64 = 66;
        let mut content = Zeroizing::new(Vec::with_capacity(128));
        File::open(path)?.take(LONGEST).read_to_end(&mut content)?;
        Self::parse(&content).ok_or(KeyFileError::Shape)
    }

    fn parse(content: &[u8]) -> Option<Self> {
        if let Ok(raw) = <[u8; KEY_BYTES]>::try_from(content) {
            return Some(Self::new(raw));
        }
        let text = content.strip_suffix(b"\n").unwrap_or(content);
        let bytes = Zeroizing::new(match text.len() {
            64 => hexadecimal(text)?,
            43 => general_purpose::STANDARD_NO_PAD
                .decode(text)
                .or_else(|_| general_purpose::URL_SAFE_NO_PAD.decode(text))
                .ok()?,
            44 => general_purpose::STANDARD
                .decode(text)
                .or_else(|_| general_purpose::URL_SAFE.decode(text))
                .ok()?,
            _ => return None,
        });
        <[u8; KEY_BYTES]>::try_from(bytes.as_slice())
            .ok()
            .map(Self::new)
    }
}

fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.chunks_exact(2)
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// How a store keeps secrets: one value for the whole store.
pub struct Seal(Option<RandomizedNonceKey>);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_sealed() { "Sealed" } else { "Plain" })
    }
}

impl Seal {
    /// Keeps secrets as they are.
    #[must_use]
    pub fn plain() -> Self {
        Self(None)
    }

    /// Keeps secrets sealed with `key`.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if the cryptographic library refuses the key.
    pub fn sealed(key: &SealKey) -> Result<Self, StoreError> {
        RandomizedNonceKey::new(&AES_256_GCM, key.0.as_slice())
            .map(|key| Self(Some(key)))
            .map_err(|_| StoreError::Broken("the sealing key is refused"))
    }

    /// Whether secrets are sealed.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.0.is_some()
    }

    /// What to keep for `secret`, the field `field` of the record with the key `record`.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if there is no randomness for the nonce.
    pub fn close(
        &self,
        field: &'static str,
        record: &str,
        secret: &Secret,
    ) -> Result<Vec<u8>, StoreError> {
        let Some(key) = &self.0 else {
            let mut kept = Vec::with_capacity(1 + secret.expose().len());
            kept.push(PLAIN);
            kept.extend_from_slice(secret.expose());
            return Ok(kept);
        };
        let mut text = Zeroizing::new(Vec::with_capacity(secret.expose().len() + 16));
        text.extend_from_slice(secret.expose());
        let nonce = key
            .seal_in_place_append_tag(Aad::from(context(field, record)), &mut *text)
            .map_err(|_| StoreError::Broken("a secret cannot be sealed"))?;
        let mut kept = Vec::with_capacity(1 + NONCE_LEN + text.len());
        kept.push(SEALED);
        kept.extend_from_slice(nonce.as_ref());
        kept.extend_from_slice(&text);
        Ok(kept)
    }

    /// The secret that was kept for the field `field` of the record with the key `record`.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if it was not kept by this key for this field of this record. A plain secret in a
    /// sealed store is refused too: only somebody without the key can have put it there.
    pub fn open(
        &self,
        field: &'static str,
        record: &str,
        kept: &[u8],
    ) -> Result<Secret, StoreError> {
        match (&self.0, kept.split_first()) {
            (None, Some((&PLAIN, secret))) => Ok(Secret::from(secret.to_vec())),
            (Some(key), Some((&SEALED, sealed))) => unseal(key, &context(field, record), sealed)
                .ok_or(StoreError::Broken("a sealed secret does not open")),
            (None, Some((&SEALED, _))) => {
                Err(StoreError::Broken("a secret is sealed and there is no key"))
            }
            (Some(_), Some((&PLAIN, _))) => Err(StoreError::Broken(
                "a secret of a sealed store is not sealed",
            )),
            _ => Err(StoreError::Broken("a secret has no known form")),
        }
    }
}

/// The names under which secrets are sealed.
pub(super) mod field {
    pub(in super::super) const CONSUMER: &str = "consumer.secret";
    pub(in super::super) const CONSUMER_PREVIOUS: &str = "consumer.previous_secret";
    pub(in super::super) const USER: &str = "user.password_hash";
    pub(in super::super) const ACCESS_TOKEN: &str = "access_token.secret";
    pub(in super::super) const REQUEST_TOKEN: &str = "request_token.secret";
    pub(in super::super) const VERIFIER: &str = "request_token.verifier";
}

/// A column that holds secrets.
pub(super) struct Column {
    pub(super) table: &'static str,
    /// The column of the record's key.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) field: &'static str,
}

/// Every column that holds secrets.
pub(super) const COLUMNS: [Column; 6] = [
    column("consumers", "key", "secret", field::CONSUMER),
    column(
        "consumers",
        "key",
        "previous_secret",
        field::CONSUMER_PREVIOUS,
    ),
    column("users", "id", "password_hash", field::USER),
    column("access_tokens", "token", "secret", field::ACCESS_TOKEN),
    column("request_tokens", "token", "secret", field::REQUEST_TOKEN),
    column("request_tokens", "token", "verifier", field::VERIFIER),
];

const fn column(
    table: &'static str,
    key: &'static str,
    name: &'static str,
    field: &'static str,
) -> Column {
    Column {
        table,
        key,
        name,
        field,
    }
}

/// What is sealed to recognise the key by.
const WORD: &str = "countersign";
const WORD_FIELD: &str = "meta.sealed";

/// How a store keeps its secrets.
pub(super) enum Settled {
    /// As this seal does.
    With(Seal),
    /// In clear, and there is a key: the store can be sealed with this, and then keeps this word.
    Unsealed(Seal, Vec<u8>),
}

/// Why key and store do not go together.
#[derive(Debug)]
pub(super) enum Mismatch {
    /// The store is sealed and there is no key.
    KeyMissing,
    /// The store is sealed with another key.
    WrongKey,
    /// The store failed.
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for Mismatch {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// Finds how a store keeps its secrets by the word in it, if there is one.
pub(super) fn settle(word: Option<&[u8]>, key: Option<&SealKey>) -> Result<Settled, Mismatch> {
    let seal = key.map_or_else(|| Ok(Seal::plain()), Seal::sealed)?;
    match (word, key) {
        (None, None) => Ok(Settled::With(seal)),
        (Some(_), None) => Err(Mismatch::KeyMissing),
        (Some(word), Some(_)) => match seal.open(WORD_FIELD, "", word) {
            Ok(word) if word == Secret::from(WORD) => Ok(Settled::With(seal)),
            _ => Err(Mismatch::WrongKey),
        },
        (None, Some(_)) => {
            let word = seal.close(WORD_FIELD, "", &Secret::from(WORD))?;
            Ok(Settled::Unsealed(seal, word))
        }
    }
}

fn unseal(key: &RandomizedNonceKey, context: &[u8], sealed: &[u8]) -> Option<Secret> {
    let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = Zeroizing::new(text.to_vec());
    let secret = key
        .open_in_place(nonce, Aad::from(context), &mut text)
        .ok()?;
    Some(Secret::from(secret.to_vec()))
}

/// A field's name has no NUL, so that no two pairs read alike.
fn context(field: &'static str, record: &str) -> Vec<u8> {
    [field.as_bytes(), b"\0", record.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(byte: u8) -> Seal {
        Seal::sealed(&SealKey::new([byte; KEY_BYTES])).unwrap()
    }

    #[test]
    fn returns_what_was_kept() {
        for seal in [Seal::plain(), seal(1)] {
            for secret in ["", "s", "ä\0\n"] {
                let kept = seal.close("f", "r", &Secret::from(secret)).unwrap();
                assert_eq!(seal.open("f", "r", &kept).unwrap(), Secret::from(secret));
            }
        }
    }

    #[test]
    fn hides_the_secret_and_never_repeats() {
        let secret = Secret::from("a rather long secret");
        let kept = seal(1).close("f", "r", &secret).unwrap();
        assert!(!kept.windows(6).any(|part| part == b"rather"));
        assert_ne!(kept, seal(1).close("f", "r", &secret).unwrap());
    }

    #[test]
    fn opens_only_for_its_own_field_record_and_key() {
        let kept = seal(1).close("f", "r", &Secret::from("s")).unwrap();
        for (other, field, record) in [(1, "g", "r"), (1, "f", "s"), (2, "f", "r")] {
            assert!(seal(other).open(field, record, &kept).is_err());
        }
        for end in 0..kept.len() {
            assert!(seal(1).open("f", "r", &kept[..end]).is_err(), "{end}");
        }
        for place in 0..kept.len() {
            let mut changed = kept.clone();
            changed[place] ^= 1;
            assert!(seal(1).open("f", "r", &changed).is_err(), "{place}");
        }
    }

    #[test]
    fn refuses_the_other_form() {
        let plain = Seal::plain().close("f", "r", &Secret::from("s")).unwrap();
        let sealed = seal(1).close("f", "r", &Secret::from("s")).unwrap();
        assert!(seal(1).open("f", "r", &plain).is_err());
        assert!(Seal::plain().open("f", "r", &sealed).is_err());
    }

    #[test]
    fn reads_a_key_in_every_spelling() {
        let raw: [u8; KEY_BYTES] = std::array::from_fn(|i| 255 - u8::try_from(i).unwrap());
        let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        let spellings = [
            raw.to_vec(),
            hex.clone().into_bytes(),
            format!("{}\n", hex.to_uppercase()).into_bytes(),
            general_purpose::STANDARD.encode(raw).into_bytes(),
            format!("{}\n", general_purpose::URL_SAFE_NO_PAD.encode(raw)).into_bytes(),
        ];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for spelling in spellings {
            std::fs::write(&path, &spelling).unwrap();
            assert_eq!(*SealKey::read(&path).unwrap().0, raw);
        }
        for wrong in [
            &raw[..31],
            b"",
            &hex.as_bytes()[..63],
            &[b'z'; 64],
            format!("{hex}\n\n").as_bytes(),
        ] {
            std::fs::write(&path, wrong).unwrap();
            assert!(matches!(SealKey::read(&path), Err(KeyFileError::Shape)));
        }
        assert!(matches!(
            SealKey::read(&directory.path().join("none")),
            Err(KeyFileError::Read(_))
        ));
    }
}
