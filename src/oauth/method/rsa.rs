//! RSA keys for the RSA methods, RFC 5849 §3.4.3 (RSASSA-PKCS1-v1_5), and for RSASSA-PSS.

use std::fmt;

use aws_lc_rs::{
    digest,
    rand::SystemRandom,
    rsa::PublicKey,
    signature::{self, ParsedPublicKey, RsaKeyPair, RsaParameters, RsaSignatureEncoding},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use num_bigint::BigUint;
use strum::VariantArray;
use thiserror::Error;
use x509_cert::{
    Certificate,
    der::{Decode as _, Encode as _, SliceReader},
};
use zeroize::Zeroizing;

use crate::oauth::sink::Message;

/// The hash of an RSA method, and its padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(in crate::oauth) enum RsaHash {
    Sha1,
    Sha256,
    Sha512,
    /// RSASSA-PSS, with a salt as long as the hash; keys have at least 2048 bits.
    PssSha256,
}

impl RsaHash {
    const fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 | Self::PssSha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    const fn verification(self) -> &'static RsaParameters {
        match self {
            Self::Sha1 => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            Self::Sha512 => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
            Self::PssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        }
    }

    /// The library makes no signatures over SHA-1.
    const fn signing(self) -> Option<&'static RsaSignatureEncoding> {
        match self {
            Self::Sha1 => None,
            Self::Sha256 => Some(&signature::RSA_PKCS1_SHA256),
            Self::Sha512 => Some(&signature::RSA_PKCS1_SHA512),
            Self::PssSha256 => Some(&signature::RSA_PSS_SHA256),
        }
    }

    pub(in crate::oauth) fn digest(self, message: &[u8]) -> Vec<u8> {
        let digest = digest::digest(self.algorithm(), message);
        digest.as_ref().to_vec()
    }

    /// Whether [`RsaPrivateKey::sign`] makes such signatures.
    pub(in crate::oauth) const fn can_sign(self) -> bool {
        self.signing().is_some()
    }
}

/// Why a text is not a usable public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidRsaKey {
    /// There is no PEM block in it.
    #[error("no PEM block (-----BEGIN PUBLIC KEY-----) found")]
    NoPem,
    /// A private key was given.
    #[error("this is a private key; give the public key that belongs to it")]
    PrivateKey,
    /// The PEM block is of another kind.
    #[error("the PEM block is neither PUBLIC KEY, RSA PUBLIC KEY nor CERTIFICATE")]
    Kind,
    /// The PEM block's base64 is broken.
    #[error("the PEM block is not valid base64")]
    Base64,
    /// The structure is not the one its label promises, or the key is not an RSA key.
    #[error("the PEM block does not hold an RSA public key")]
    NotRsa,
    /// Fewer than [`RsaPublicKey::MIN_BITS`] or more than [`RsaPublicKey::MAX_BITS`] bits.
    #[error("the RSA key has {0} bits; 1024 to 8192 are accepted")]
    Size(usize),
    /// The PEM block is longer than the largest key needs.
    #[error(
        "the PEM block is longer than 16384 bytes; give the public key without its certificate"
    )]
    TooLong,
}

/// A consumer's public key.
#[derive(Clone)]
pub struct RsaPublicKey {
    bits: usize,
    /// The key for each of [`RsaHash::VARIANTS`]: the library ties a parsed key to one hash.
    by_hash: [ParsedPublicKey; RsaHash::VARIANTS.len()],
}

impl RsaPublicKey {
    /// The shortest modulus: keys of that length are still in use with this protocol, and one published example has one.
    pub const MIN_BITS: usize = 1024;
    /// The longest modulus: the work grows with it.
    pub const MAX_BITS: usize = 8192;

    /// Reads the first block of a PEM file: `PUBLIC KEY` (RFC 5280), `RSA PUBLIC KEY` (RFC 8017) or `CERTIFICATE`;
    /// only the key of a certificate is looked at.
    ///
    /// # Errors
    ///
    /// [`InvalidRsaKey`] tells what is wrong with it.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidRsaKey> {
        let (label, contents) = first_block(pem).ok_or(InvalidRsaKey::NoPem)?;
        let contents = contents.ok_or(InvalidRsaKey::Base64);
        match label {
            "RSA PUBLIC KEY" | "PUBLIC KEY" => Self::from_der(&contents?),
            "CERTIFICATE" => {
                let contents = contents?;
                // What follows the certificate is not looked at.
                let certificate = SliceReader::new(&contents);
                let certificate = certificate.and_then(|mut it| Certificate::decode(&mut it));
                let key =
                    certificate.and_then(|it| it.tbs_certificate.subject_public_key_info.to_der());
                Self::from_der(&key.map_err(|_| InvalidRsaKey::NotRsa)?)
            }
            label if label.ends_with("PRIVATE KEY") => Err(InvalidRsaKey::PrivateKey),
            _ => Err(InvalidRsaKey::Kind),
        }
    }

    /// Reads a SubjectPublicKeyInfo (RFC 5280 §4.1) or an RSAPublicKey (RFC 8017 appendix A.1.1).
    fn from_der(der: &[u8]) -> Result<Self, InvalidRsaKey> {
        let key = PublicKey::from_der(der).map_err(|_| InvalidRsaKey::NotRsa)?;
        let bits = number(key.modulus().big_endian_without_leading_zero()).bits();
        let bits = usize::try_from(bits).unwrap_or(usize::MAX);
        if !(Self::MIN_BITS..=Self::MAX_BITS).contains(&bits) {
            return Err(InvalidRsaKey::Size(bits));
        }
        let parse = |hash: &RsaHash| {
            ParsedPublicKey::new(hash.verification(), key.as_ref())
                .map_err(|_| InvalidRsaKey::NotRsa)
        };
        let by_hash: Vec<_> = RsaHash::VARIANTS
            .iter()
            .map(parse)
            .collect::<Result<_, _>>()?;
        let by_hash = by_hash.try_into().map_err(|_| InvalidRsaKey::NotRsa)?;
        Ok(Self { bits, by_hash })
    }

    /// The length of the modulus in bits.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Whether `sent` is the base64 of this key's signature over `message`.
    pub(in crate::oauth) fn verifies(
        &self,
        hash: RsaHash,
        message: &impl Message,
        sent: &[u8],
    ) -> bool {
        // This engine takes padded base64 without spare bits only, which leaves one spelling.
        let mut signature = [0; Self::MAX_BITS / 8 + 3];
        let Ok(length) = STANDARD.decode_slice(sent, &mut signature) else {
            return false;
        };
        let mut context = digest::Context::new(hash.algorithm());
        message.feed(|bytes| context.update(bytes));
        let digest = context.finish();
        let key = &self.by_hash[hash as usize];
        key.verify_digest_sig(&digest, &signature[..length]).is_ok()
    }

    /// What the private key signed; nothing if it did not make this signature. For diagnosis: it proves nothing, since the
    /// padding is not checked to the last byte.
    pub(in crate::oauth) fn open(&self, signature: &[u8]) -> Option<Opened> {
        let key = PublicKey::from_der(self.by_hash[0].as_ref()).ok()?;
        let (modulus, exponent) = (key.modulus(), key.exponent());
        let modulus = modulus.big_endian_without_leading_zero();
        if signature.len() != modulus.len() {
            return None;
        }
        let exponent = number(exponent.big_endian_without_leading_zero());
        let opened = number(signature)
            .modpow(&exponent, &number(modulus))
            .to_bytes_be();
        // RFC 8017 §9.2: 00 01 FF … 00, the name of the hash, and the digest as an OCTET STRING (04, its length).
        let pkcs1 = [RsaHash::Sha1, RsaHash::Sha256, RsaHash::Sha512];
        let pkcs1 = pkcs1.into_iter().find_map(|hash| {
            let length = hash.algorithm().output_len();
            let (padding, digest) = opened.split_at_checked(opened.len().checked_sub(length)?)?;
            let end = [4, u8::try_from(length).ok()?];
            let is_padding = padding.starts_with(&[1, 0xff, 0xff]) && padding.ends_with(&end);
            is_padding.then(|| Opened {
                hash,
                digest: digest.to_vec(),
                salt: Vec::new(),
            })
        });
        pkcs1.or_else(|| open_pss(&opened, (self.bits - 1).div_ceil(8)))
    }
}

/// What a private key signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::oauth) struct Opened {
    pub(in crate::oauth) hash: RsaHash,
    pub(in crate::oauth) digest: Vec<u8>,
    /// Empty but with PSS.
    salt: Vec<u8>,
}

impl Opened {
    /// The digest that it would be of this message.
    pub(in crate::oauth) fn digest_of(&self, message: &[u8]) -> Vec<u8> {
        let digest = self.hash.digest(message);
        match self.hash {
            // RFC 8017 §9.1.1: the digest of eight zeros, the digest of the message, and the salt.
            RsaHash::PssSha256 => self.hash.digest(&[&[0; 8], &*digest, &self.salt].concat()),
            RsaHash::Sha1 | RsaHash::Sha256 | RsaHash::Sha512 => digest,
        }
    }
}

/// Takes RFC 8017 §9.1.1 apart: a masked block that ends with 01 and the salt, the digest that made the mask, and BC. `number` is
/// without its leading zeros, and `length` is that of the whole.
fn open_pss(number: &[u8], length: usize) -> Option<Opened> {
    let hash = RsaHash::PssSha256;
    let digest_length = hash.algorithm().output_len();
    let zeros = vec![0; length.checked_sub(number.len())?];
    let encoded = [&zeros, number].concat();
    let (masked, rest) = encoded.split_at_checked(length.checked_sub(digest_length + 1)?)?;
    let (digest, [0xbc]) = rest.split_at(digest_length) else {
        return None;
    };
    // MGF1 (appendix B.2.1): the digests of the seed with 0, 1, 2 and so on.
    let mask = (0_u32..).flat_map(|count| hash.digest(&[digest, &count.to_be_bytes()].concat()));
    let block: Vec<u8> = masked
        .iter()
        .zip(mask)
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    let (padding, salt) = block.split_at_checked(block.len().checked_sub(digest_length)?)?;
    (padding.last() == Some(&1)).then(|| Opened {
        hash,
        digest: digest.to_vec(),
        salt: salt.to_vec(),
    })
}

fn number(big_endian: &[u8]) -> BigUint {
    BigUint::from_bytes_be(big_endian)
}

impl fmt::Debug for RsaPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaPublicKey({} bits)", self.bits)
    }
}

/// Why a text is not a usable private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no PEM block (-----BEGIN PRIVATE KEY-----) with an RSA key of 2048 to 8192 bits found")]
pub struct InvalidPrivateKey;

/// A consumer's private key, for the consumer's side alone.
pub struct RsaPrivateKey(RsaKeyPair);

impl RsaPrivateKey {
    /// Reads the first block of a PEM file: `PRIVATE KEY` (RFC 5958) or `RSA PRIVATE KEY` (RFC 8017), not encrypted.
    ///
    /// # Errors
    /// [`InvalidPrivateKey`]
    pub fn from_pem(pem: &str) -> Result<Self, InvalidPrivateKey> {
        let (label, contents) = first_block(pem).ok_or(InvalidPrivateKey)?;
        let contents = contents.ok_or(InvalidPrivateKey)?;
        let key = match label {
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&contents),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&contents),
            _ => return Err(InvalidPrivateKey),
        };
        key.map(Self).map_err(|_| InvalidPrivateKey)
    }

    /// The base64 of this key's signature over `message`; `None` if not [`RsaHash::can_sign`].
    pub(in crate::oauth) fn sign(&self, hash: RsaHash, message: &[u8]) -> Option<String> {
        let encoding = hash.signing()?;
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(encoding, &SystemRandom::new(), message, &mut signature)
            .ok()?;
        Some(STANDARD.encode(signature))
    }
}

/// The label and the contents of the first PEM block (RFC 7468 §2); `None` for contents that are not base64.
fn first_block(pem: &str) -> Option<(&str, Option<Zeroizing<Vec<u8>>>)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, rest) = rest.split_once("-----END ")?;
    let body = body.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let body = Zeroizing::new(body.collect::<Vec<u8>>());
    let contents = STANDARD.decode(&*body).map(Zeroizing::new);
    rest.strip_prefix(label)?
        .starts_with("-----")
        .then_some((label, contents.ok()))
}

#[cfg(test)]
mod tests;
