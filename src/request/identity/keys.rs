//! Keys that sign JWTs, and the set by which others verify them (RFC 7517).
//!
//! The `jsonwebtoken` crate parses the private key again for each JWT, so keys are parsed here, once; JWKs, their thumbprints
//! and headers are that crate's.

use std::{path::PathBuf, sync::Arc};

use aws_lc_rs::{
    error::Unspecified,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, Signature,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use jsonwebtoken::{
    Algorithm, DecodingKey, Header,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use serde::Serialize;

use super::Fault;
use crate::base::network::tls::{self, TlsFileError};

/// Signs a message.
type Sign = dyn Fn(&[u8]) -> Result<Signature, Unspecified> + Send + Sync;

/// A private key of the configuration.
struct Key {
    algorithm: Algorithm,
    sign: Box<Sign>,
    kid: String,
}

/// Reads a private key, PKCS #8 or another DER form of it, with its public key; `None`: it is of another kind.
fn read(der: &[u8]) -> Option<(Algorithm, DecodingKey, Box<Sign>)> {
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
        let public = DecodingKey::from_ed_der(pair.public_key().as_ref());
        let sign = Box::new(move |message: &[u8]| pair.try_sign(message));
        return Some((Algorithm::EdDSA, public, sign));
    }
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::from_private_key_der(algorithm, der).ok()?;
    let public = DecodingKey::from_ec_der(pair.public_key().as_ref());
    let sign = Box::new(move |message: &[u8]| pair.sign(&SystemRandom::new(), message));
    Some((Algorithm::ES256, public, sign))
}

/// The keys of the configuration.
pub struct Keys {
    first: Arc<Key>,
    /// The ids of all keys (RFC 7638), the one that signs first.
    pub ids: Vec<String>,
    /// The public keys as a JWK set (RFC 7517 §5).
    pub set: Bytes,
}

impl Keys {
    /// Reads the files, each with one private key, PEM; `None` without files. The first key signs.
    ///
    /// # Errors
    /// [`TlsFileError`] names the file.
    pub fn read(paths: &[PathBuf]) -> Result<Option<Self>, TlsFileError> {
        let (mut first, mut ids, mut jwks) = (None, Vec::new(), Vec::new());
        for path in paths {
            let problem = |problem: &str| TlsFileError::new(path, problem.to_owned());
            let der = tls::private_key(path)?;
            let kinds = "neither an Ed25519 nor a P-256 key; make one with openssl genpkey -algorithm ed25519";
            let (algorithm, public, sign) = read(der.secret_der()).ok_or_else(|| problem(kinds))?;
            let (jwk, kid) = public_jwk(algorithm, &public)
                .map_err(|_| problem("its public key cannot be written; make another key"))?;
            if ids.contains(&kid) {
                return Err(problem("another file has the same key; name it once"));
            }
            first.get_or_insert_with(|| {
                let kid = kid.clone();
                Arc::new(Key {
                    algorithm,
                    sign,
                    kid,
                })
            });
            ids.push(kid);
            jwks.push(jwk);
        }
        let set = serde_json::to_vec(&JwkSet { keys: jwks }).unwrap_or_default();
        let set = Bytes::from(set);
        Ok(first.map(|first| Self { first, ids, set }))
    }

    /// Signs JWTs of this `typ` (RFC 8725 §3.11) with the first key.
    pub fn signer(&self, typ: &str) -> Signer {
        let key = Arc::clone(&self.first);
        let mut header = Header::new(key.algorithm);
        header.typ = Some(typ.to_owned());
        header.kid = Some(key.kid.clone());
        let mut begin = encoded(&header);
        begin.push('.');
        Signer { key, begin }
    }
}

/// The public key that others verify with, and its id.
fn public_jwk(
    algorithm: Algorithm,
    public: &DecodingKey,
) -> jsonwebtoken::errors::Result<(Jwk, String)> {
    let mut jwk = Jwk::from_decoding_key(public, Some(algorithm))?;
    let kid = jwk.thumbprint(ThumbprintHash::SHA256)?;
    jwk.common.key_id = Some(kid.clone());
    jwk.common.public_key_use = Some(PublicKeyUse::Signature);
    Ok((jwk, kid))
}

/// Signs JWTs of one type with one key.
pub struct Signer {
    key: Arc<Key>,
    /// The encoded header and the dot after it.
    begin: String,
}

impl Signer {
    /// The claims as a signed JWT (RFC 7515 §7.1).
    ///
    /// # Errors
    /// [`Fault`]
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, Fault> {
        let mut jwt = self.begin.clone();
        jwt.push_str(&encoded(claims));
        let signature = (self.key.sign)(jwt.as_bytes());
        let signature = signature.map_err(|_| Fault("a JWT cannot be signed"))?;
        jwt.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.as_ref(), &mut jwt);
        Ok(jwt)
    }
}

/// A part of a JWT. Structs of texts and numbers always have a JSON form.
fn encoded(part: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
        -----END PRIVATE KEY-----\n";

    fn read(texts: &[&str]) -> Result<Option<Keys>, String> {
        let directory = tempfile::tempdir().unwrap();
        let write = |(number, text): (usize, &&str)| {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, text).unwrap();
            path
        };
        let paths: Vec<_> = texts.iter().enumerate().map(write).collect();
        Keys::read(&paths).map_err(|error| error.to_string())
    }

    #[test]
    fn the_document_names_every_algorithm_to_those_who_verify() {
        let kinds = [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256];
        let pem = kinds.map(|kind| rcgen::KeyPair::generate_for(kind).unwrap().serialize_pem());
        let keys = read(&pem.each_ref().map(String::as_str)).unwrap().unwrap();
        let set: JwkSet = serde_json::from_slice(&keys.set).unwrap();
        let known = set.keys.iter().map(|key| key.common.key_algorithm.unwrap());
        let known =
            Vec::from_iter(known.map(|known| known.to_string().parse::<Algorithm>().unwrap()));
        let document = concat!(
            include_str!("../../../docs/assertion.md"),
            include_str!("../../../deploy/assertion/claims.mjs"),
            include_str!("../../../deploy/assertion/claims.rb"),
        );
        let is_list = |line: &&str| line.contains("algorithms") || line.contains("`alg` `");
        let named = document.lines().filter(is_list).map(|line| {
            let words = line.split(|character: char| !character.is_ascii_alphanumeric());
            Vec::from_iter(words.filter_map(|word| word.parse::<Algorithm>().ok()))
        });
        let named = Vec::from_iter(named.filter(|named| !named.is_empty()));
        assert_eq!(named, vec![known; 4]);
    }

    #[test]
    fn the_id_of_a_key_is_its_thumbprint() {
        // The key of RFC 8037 §A.1, its thumbprint in §A.3, and its signature over other bytes in §A.4.
        let keys = read(&[ED25519]).unwrap().unwrap();
        let kid = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
        assert_eq!(keys.ids, [kid]);
        let set: serde_json::Value = serde_json::from_slice(&keys.set).unwrap();
        let expected = serde_json::json!({"keys": [{
            "use": "sig", "alg": "EdDSA", "kid": kid, "kty": "OKP", "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        }]});
        assert_eq!(set, expected);
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = (keys.first.sign)(message).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(signature.as_ref()),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
    }

    #[test]
    fn rejects_what_is_no_key_and_the_same_key_twice() {
        assert!(read(&[]).unwrap().is_none());
        for (texts, reason) in [
            (&[""][..], "nothing of that kind"),
            (&[ED25519, ED25519], "name it once"),
            (
                &["-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"],
                "openssl genpkey",
            ),
        ] {
            let error = read(texts).err().unwrap();
            assert!(error.contains(reason), "{error}");
        }
    }
}
