//! RSA keys for the RSA methods, RFC 5849 §3.4.3 (RSASSA-PKCS1-v1_5).

mod der;

use std::fmt;

use aws_lc_rs::{
    digest,
    rand::SystemRandom,
    signature::{
        ParsedPublicKey, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512,
        RsaEncoding, RsaKeyPair, RsaParameters,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{method::SignatureMethod, signing_key::Message};

/// Why a text is no usable public key.
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
}

/// A consumer's public key.
pub struct RsaPublicKey {
    bits: usize,
    // The library ties a parsed key to one hash.
    sha1: ParsedPublicKey,
    sha256: ParsedPublicKey,
    sha512: ParsedPublicKey,
}

impl RsaPublicKey {
    /// The shortest modulus: keys of that length are still in use with this protocol, and one published example has one.
    pub const MIN_BITS: usize = 1024;
    /// The longest modulus: the work grows with it.
    pub const MAX_BITS: usize = 8192;

    /// Reads the first block of a PEM file: `PUBLIC KEY` (RFC 5280), `RSA PUBLIC KEY` (RFC 8017) or `CERTIFICATE`, of which
    /// nothing but the key is looked at.
    ///
    /// # Errors
    ///
    /// [`InvalidRsaKey`] tells what is wrong with it.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidRsaKey> {
        let (label, body) = first_block(pem).ok_or(InvalidRsaKey::NoPem)?;
        let body: Vec<u8> = body
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let contents = STANDARD.decode(body).map_err(|_| InvalidRsaKey::Base64);
        let public_key = match label {
            "RSA PUBLIC KEY" => Some(contents?),
            "PUBLIC KEY" => der::rsa_key_of_spki(&contents?).map(<[u8]>::to_vec),
            "CERTIFICATE" => der::spki_of_certificate(&contents?)
                .and_then(der::rsa_key_of_spki)
                .map(<[u8]>::to_vec),
            label if label.ends_with("PRIVATE KEY") => return Err(InvalidRsaKey::PrivateKey),
            _ => return Err(InvalidRsaKey::Kind),
        };
        Self::from_pkcs1(&public_key.ok_or(InvalidRsaKey::NotRsa)?)
    }

    /// Reads the `RSAPublicKey` structure of RFC 8017 appendix A.1.1.
    pub(super) fn from_pkcs1(contents: &[u8]) -> Result<Self, InvalidRsaKey> {
        let bits = der::modulus_bits(contents).ok_or(InvalidRsaKey::NotRsa)?;
        if !(Self::MIN_BITS..=Self::MAX_BITS).contains(&bits) {
            return Err(InvalidRsaKey::Size(bits));
        }
        let parse = |parameters: &'static RsaParameters| {
            ParsedPublicKey::new(parameters, contents).map_err(|_| InvalidRsaKey::NotRsa)
        };
        Ok(Self {
            bits,
            sha1: parse(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY)?,
            sha256: parse(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY)?,
            sha512: parse(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY)?,
        })
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Whether `sent` is the base64 of this key's signature over `message`; never with a method that is not RSA.
    pub(super) fn verifies(
        &self,
        method: SignatureMethod,
        message: &impl Message,
        sent: &[u8],
    ) -> bool {
        // This engine takes padded base64 without spare bits only, which leaves one spelling.
        let mut signature = [0; Self::MAX_BITS / 8 + 3];
        match STANDARD.decode_slice(sent, &mut signature) {
            Ok(length) => self.verifies_bytes(method, message, &signature[..length]),
            Err(_) => false,
        }
    }

    /// As [`Self::verifies`], for the bytes themselves.
    pub(super) fn verifies_bytes(
        &self,
        method: SignatureMethod,
        message: &impl Message,
        signature: &[u8],
    ) -> bool {
        let (key, algorithm) = match method {
            SignatureMethod::RsaSha1 => (&self.sha1, &digest::SHA1_FOR_LEGACY_USE_ONLY),
            SignatureMethod::RsaSha256 => (&self.sha256, &digest::SHA256),
            SignatureMethod::RsaSha512 => (&self.sha512, &digest::SHA512),
            _ => return false,
        };
        let mut context = digest::Context::new(algorithm);
        message.feed(|bytes| context.update(bytes));
        key.verify_digest_sig(&context.finish(), signature).is_ok()
    }
}

impl fmt::Debug for RsaPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaPublicKey({} bits)", self.bits)
    }
}

/// Why a text is no usable private key.
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
        let (label, body) = first_block(pem).ok_or(InvalidPrivateKey)?;
        let body = body.bytes().filter(|byte| !byte.is_ascii_whitespace());
        let body = Zeroizing::new(body.collect::<Vec<u8>>());
        let contents = STANDARD.decode(&*body).map_err(|_| InvalidPrivateKey)?;
        let contents = Zeroizing::new(contents);
        let key = match label {
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&contents),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&contents),
            _ => return Err(InvalidPrivateKey),
        };
        key.map(Self).map_err(|_| InvalidPrivateKey)
    }

    /// The base64 of this key's signature over `message`; `None` for every method but RSA-SHA256 and RSA-SHA512: the
    /// library makes no signatures over SHA-1.
    pub(super) fn sign(&self, method: SignatureMethod, message: &[u8]) -> Option<String> {
        let encoding: &'static dyn RsaEncoding = match method {
            SignatureMethod::RsaSha256 => &RSA_PKCS1_SHA256,
            SignatureMethod::RsaSha512 => &RSA_PKCS1_SHA512,
            _ => return None,
        };
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(encoding, &SystemRandom::new(), message, &mut signature)
            .ok()?;
        Some(STANDARD.encode(signature))
    }
}

/// The label and the base64 text of the first PEM block (RFC 7468 §2).
fn first_block(pem: &str) -> Option<(&str, &str)> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, rest) = rest.split_once("-----END ")?;
    rest.strip_prefix(label)?
        .starts_with("-----")
        .then_some((label, body))
}

#[cfg(test)]
mod tests;
