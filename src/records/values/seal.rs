//! Secrets at rest: stored as they are, or sealed with AES-256-GCM under a key that is not in the store.
//!
//! A stored secret is one tag byte and what follows it: `0` and the secret itself, or `2`, the id of the key (4 bytes), the
//! nonce (12 bytes), the ciphertext and its tag (16 bytes). The name of the field and the key of its record are authenticated
//! with it, so that a writer of the store cannot put one record's secret into another. Nonces are random: one key
//! is good for 2^32 secrets.
//!
//! The first key of the configuration seals, and all open. `rekey` seals every secret with the first key
//! ([`Store::reseal`](crate::records::store::Store::reseal)).

use std::{
    fmt,
    fs::File,
    io::Read,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest::{self, SHA256},
};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{Result, StoreError};
use crate::{base::secret::Secret, telemetry::redact::RedactedToken};

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

/// Why a file is not a key file.
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
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key for hashing failed logins, the same at every process that seals with this key.
    pub fn for_logins(&self) -> Secret {
        let mut hash = digest::Context::new(&SHA256);
        hash.update(b"countersign failed logins\0");
        hash.update(&self.0[..]);
        Secret::from(hash.finish().as_ref().to_vec())
    }

    /// Reads a key file: 32 bytes as they are, or in hexadecimal or base64 with at most one final newline.
    ///
    /// # Errors
    /// [`KeyFileError::Read`] if the file cannot be read, [`KeyFileError::Shape`] if it holds something else.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        // Base64 of 32 bytes has 44 characters, hexadecimal 64; a longer text is not a key.
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
        let decode = |alphabet| {
            let padding = DecodePaddingMode::Indifferent;
            let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
            GeneralPurpose::new(alphabet, config).decode(text).ok()
        };
        let bytes = Zeroizing::new(match text.len() {
            64 => hexadecimal(text)?,
            _ => decode(&alphabet::STANDARD).or_else(|| decode(&alphabet::URL_SAFE))?,
        });
        <[u8; KEY_BYTES]>::try_from(bytes.as_slice())
            .ok()
            .map(Self::new)
    }
}

/// Reads hexadecimal digits; `None`: there is something else.
fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.chunks_exact(2)
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

const PLAIN: u8 = 0;
const SEALED: u8 = 2;

/// Identifies a key: the first bytes of a hash, which reveal nothing of the key.
type KeyId = [u8; 4];

/// A secret that none of our keys opens.
#[derive(Debug, Clone, Error)]
#[error("{problem}")]
pub struct Unopened {
    problem: String,
}

impl Unopened {
    fn new(field: &'static str, record: &str, mismatch: &Mismatch) -> Self {
        let is_token = field.contains("token");
        let record = match is_token {
            true => RedactedToken(record).to_string(),
            false => format!("{record:?}"),
        };
        let problem = match mismatch {
            Mismatch::InClear => {
                format!("the {field} of {record} is not encrypted; run countersign rekey")
            }
            Mismatch::KeyMissing(id) => {
                let key = u32::from_be_bytes(*id);
                format!(
                    "no key of store.encryption_key_file opens the {field} of {record}, which is sealed with key {key:08x}; name that key too"
                )
            }
        };
        Self { problem }
    }
}

/// Why our keys do not open a stored secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::records) enum Mismatch {
    /// It is in clear, and there is a key.
    InClear,
    /// It is sealed with another key.
    KeyMissing(KeyId),
}

/// The way in which a store keeps secrets.
#[derive(Default)]
pub struct Seal {
    /// Empty: secrets are stored as they are.
    keys: Vec<SealingKey>,
    /// Secrets in clear open although there is a key.
    accepts_clear: bool,
    /// Such a secret has been opened.
    has_met_clear: AtomicBool,
}

struct SealingKey {
    id: KeyId,
    aead: RandomizedNonceKey,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.keys.is_empty() {
            "Plain"
        } else {
            "Sealed"
        })
    }
}

impl Seal {
    /// Keeps secrets as they are.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Keeps secrets sealed with the first of `keys`, and opens those that are sealed with any. With `accepts_clear` it
    /// opens secrets in clear too: otherwise only somebody without the key can have put them there.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if the cryptographic library refuses a key.
    pub fn sealed(keys: &[SealKey], accepts_clear: bool) -> Result<Self> {
        let keys = keys.iter().map(|SealKey(key)| {
            let mut hash = digest::Context::new(&SHA256);
            hash.update(b"countersign sealing key\0");
            hash.update(&key[..]);
            let id = hash.finish();
            Some(SealingKey {
                id: *id.as_ref().first_chunk()?,
                aead: RandomizedNonceKey::new(&AES_256_GCM, key.as_slice()).ok()?,
            })
        });
        let keys: Option<Vec<SealingKey>> = keys.collect();
        Ok(Self {
            keys: keys.ok_or(StoreError::Broken("the sealing key is refused"))?,
            accepts_clear,
            ..Self::default()
        })
    }

    /// Whether there is no key at all.
    pub(in crate::records) fn has_no_key(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a secret in clear has been opened although there is a key.
    pub(in crate::records) fn has_met_clear(&self) -> bool {
        self.has_met_clear.load(Ordering::Relaxed)
    }

    /// Whether `stored` is sealed with the first key.
    pub(in crate::records) fn is_by_first(&self, stored: &[u8]) -> bool {
        let sealed = stored.strip_prefix(&[SEALED]);
        let key = self.keys.first();
        key.zip(sealed)
            .is_some_and(|(key, sealed)| sealed.starts_with(&key.id))
    }

    /// Why `stored` cannot be opened, as far as its form shows.
    pub(in crate::records) fn mismatch(&self, stored: &[u8]) -> Option<Mismatch> {
        match stored.split_first()? {
            (&PLAIN, _) if self.has_no_key() || self.accepts_clear => None,
            (&PLAIN, _) => Some(Mismatch::InClear),
            (&SEALED, rest) => {
                let id = *rest.first_chunk()?;
                let is_ours = self.keys.iter().any(|key| key.id == id);
                (!is_ours).then_some(Mismatch::KeyMissing(id))
            }
            _ => None,
        }
    }

    /// The bytes to keep for `secret`, the field `field` of the record with the key `record`.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if there is no randomness for the nonce.
    pub fn close(&self, field: &'static str, record: &str, secret: &Secret) -> Result<Vec<u8>> {
        let Some(key) = self.keys.first() else {
            let mut stored = Vec::with_capacity(1 + secret.expose().len());
            stored.push(PLAIN);
            stored.extend_from_slice(secret.expose());
            return Ok(stored);
        };
        let mut text = Zeroizing::new(Vec::with_capacity(secret.expose().len() + 16));
        text.extend_from_slice(secret.expose());
        let nonce = key
            .aead
            .seal_in_place_append_tag(Aad::from(context(field, record)), &mut *text)
            .map_err(|_| StoreError::Broken("a secret cannot be sealed"))?;
        Ok([&[SEALED], &key.id[..], nonce.as_ref(), &text].concat())
    }

    /// The secret that was kept for the field `field` of the record with the key `record`.
    ///
    /// # Errors
    /// [`StoreError::Unopened`] if none of the keys has sealed it, or it is in clear and there is a key.
    /// [`StoreError::Broken`] if it was not kept for this field of this record.
    pub fn open(&self, field: &'static str, record: &str, stored: &[u8]) -> Result<Secret> {
        if let Some(mismatch) = self.mismatch(stored) {
            return Err(Unopened::new(field, record, &mismatch).into());
        }
        match stored.split_first() {
            Some((&PLAIN, secret)) => {
                self.has_met_clear
                    .fetch_or(!self.has_no_key(), Ordering::Relaxed);
                Ok(Secret::from(secret.to_vec()))
            }
            Some((&SEALED, rest)) => {
                let mut keys = self.keys.iter();
                let opened = rest.split_first_chunk().and_then(|(id, sealed)| {
                    let key = keys.find(|key| key.id == *id)?;
                    unseal(&key.aead, &context(field, record), sealed)
                });
                opened.ok_or(StoreError::Broken("a sealed secret does not open"))
            }
            _ => Err(StoreError::Broken("a secret has no known form")),
        }
    }
}

/// The names under which secrets are sealed.
pub(in crate::records) mod field {
    pub(in crate::records) const CONSUMER: &str = "consumer.secret";
    pub(in crate::records) const CONSUMER_PREVIOUS: &str = "consumer.previous_secret";
    pub(in crate::records) const USER: &str = "user.password_hash";
    pub(in crate::records) const ACCESS_TOKEN: &str = "access_token.secret";
    pub(in crate::records) const REQUEST_TOKEN: &str = "request_token.secret";
    pub(in crate::records) const VERIFIER: &str = "request_token.verifier";
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
    use base64::engine::general_purpose;

    use super::*;
    use crate::text::has;

    fn seal(byte: u8) -> Seal {
        sealed(&[byte])
    }

    fn sealed(bytes: &[u8]) -> Seal {
        let keys: Vec<_> = bytes
            .iter()
            .map(|byte| SealKey::new([*byte; KEY_BYTES]))
            .collect();
        Seal::sealed(&keys, false).unwrap()
    }

    #[test]
    fn returns_what_was_kept() {
        for seal in [Seal::plain(), seal(1)] {
            for secret in ["", "s", "ä\0\n"] {
                let stored = seal.close("f", "r", &Secret::from(secret)).unwrap();
                assert_eq!(seal.open("f", "r", &stored).unwrap(), Secret::from(secret));
            }
        }
    }

    #[test]
    fn hides_the_secret_and_never_repeats() {
        let secret = Secret::from("a rather long secret");
        let stored = seal(1).close("f", "r", &secret).unwrap();
        assert!(!stored.windows(6).any(|part| part == b"rather"));
        assert_ne!(stored, seal(1).close("f", "r", &secret).unwrap());
    }

    #[test]
    fn opens_only_for_its_own_field_record_and_key() {
        let stored = seal(1).close("f", "r", &Secret::from("s")).unwrap();
        for (other, field, record) in [(1, "g", "r"), (1, "f", "s"), (2, "f", "r")] {
            assert!(seal(other).open(field, record, &stored).is_err());
        }
        for end in 0..stored.len() {
            assert!(seal(1).open("f", "r", &stored[..end]).is_err(), "{end}");
        }
        for place in 0..stored.len() {
            let mut changed = stored.clone();
            changed[place] ^= 1;
            assert!(seal(1).open("f", "r", &changed).is_err(), "{place}");
        }
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let both = sealed(&[2, 1]);
        let secret = Secret::from("s");
        let old = seal(1).close("f", "r", &secret).unwrap();
        assert_eq!(both.open("f", "r", &old).unwrap(), secret);
        assert!(!both.is_by_first(&old));
        let new = both.close("f", "r", &secret).unwrap();
        assert_eq!(seal(2).open("f", "r", &new).unwrap(), secret);
        assert!(both.is_by_first(&new));
        assert!(seal(1).open("f", "r", &new).is_err());
    }

    #[test]
    fn names_the_record_and_the_key_that_is_missing() {
        let stored = seal(1)
            .close(field::CONSUMER, "shop", &Secret::from("s"))
            .unwrap();
        let error = seal(2).open(field::CONSUMER, "shop", &stored).unwrap_err();
        let id = stored[1..5].iter().map(|byte| format!("{byte:02x}"));
        let id: String = id.collect();
        let expected = format!(
            "no key of store.encryption_key_file opens the consumer.secret of \"shop\", which is sealed with key {id}; \
             name that key too"
        );
        assert_eq!(error.to_string(), expected);
        let token = "0123456789abcdef0123456789abcdef";
        let stored = seal(1)
            .close(field::ACCESS_TOKEN, token, &Secret::from("s"))
            .unwrap();
        let error = seal(2).open(field::ACCESS_TOKEN, token, &stored);
        let text = error.unwrap_err().to_string();
        has(
            &text,
            &["access_token.secret of 01234567…, which is sealed with key "],
        );
    }

    #[test]
    fn refuses_the_other_form() {
        let plain = Seal::plain().close("f", "r", &Secret::from("s")).unwrap();
        let sealed = seal(1).close("f", "r", &Secret::from("s")).unwrap();
        assert!(seal(1).open("f", "r", &plain).is_err());
        let keys = [SealKey::new([1; KEY_BYTES])];
        let accepting = Seal::sealed(&keys, true).unwrap();
        assert!(!accepting.has_met_clear() && accepting.open("f", "r", &plain).is_ok());
        assert!(accepting.has_met_clear());
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
