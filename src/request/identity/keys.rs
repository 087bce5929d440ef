//! Keys that sign JWTs, and the set by which others verify them (RFC 7517).
//!
//! The `jsonwebtoken` crate parses the private key again for each JWT, so keys are parsed here, once; JWKs, their thumbprints
//! and headers are that crate's.

use std::{path::PathBuf, sync::Arc};

use aws_lc_rs::{
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
use rustls::pki_types::PrivateKeyDer;
use serde::Serialize;

use super::Fault;
use crate::base::tls::{self, TlsFileError};

/// A private key of the configuration.
struct Key {
    pair: KeyPair,
    kid: String,
}

enum KeyPair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
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
    /// Reads the files, each with one Ed25519 or P-256 key, PEM; `None` without files. The first key signs.
    ///
    /// # Errors
    /// [`TlsFileError`] names the file.
    pub fn read(paths: &[PathBuf]) -> Result<Option<Self>, TlsFileError> {
        let (mut first, mut ids, mut jwks) = (None, Vec::new(), Vec::new());
        for path in paths {
            let problem = |problem: &str| TlsFileError::new(path, problem.to_owned());
            let der = tls::private_key(path)?;
            let pair = KeyPair::read(&der).ok_or_else(|| {
                problem("neither an Ed25519 nor a P-256 key; make one with openssl genpkey -algorithm ed25519")
            })?;
            let (jwk, kid) = pair
                .jwk()
                .map_err(|_| problem("its public key cannot be written; make another key"))?;
            if ids.contains(&kid) {
                return Err(problem("another file has the same key; name it once"));
            }
            first.get_or_insert_with(|| {
                let kid = kid.clone();
                Arc::new(Key { pair, kid })
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
        let mut header = Header::new(key.pair.algorithm());
        header.typ = Some(typ.to_owned());
        header.kid = Some(key.kid.clone());
        let mut begin = encoded(&header);
        begin.push('.');
        Signer { key, begin }
    }
}

impl KeyPair {
    fn read(der: &PrivateKeyDer<'_>) -> Option<Self> {
        let bytes = der.secret_der();
        let ed25519 = Ed25519KeyPair::from_pkcs8(bytes).map(Self::Ed25519);
        let p256 = |_| {
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            EcdsaKeyPair::from_private_key_der(algorithm, bytes).map(Self::P256)
        };
        ed25519.or_else(p256).ok()
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::EdDSA,
            Self::P256(_) => Algorithm::ES256,
        }
    }

    /// The public key, and its id.
    fn jwk(&self) -> jsonwebtoken::errors::Result<(Jwk, String)> {
        let public = match self {
            Self::Ed25519(pair) => DecodingKey::from_ed_der(pair.public_key().as_ref()),
            Self::P256(pair) => DecodingKey::from_ec_der(pair.public_key().as_ref()),
        };
        let mut jwk = Jwk::from_decoding_key(&public, Some(self.algorithm()))?;
        let kid = jwk.thumbprint(ThumbprintHash::SHA256)?;
        jwk.common.key_id = Some(kid.clone());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok((jwk, kid))
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, Fault> {
        let signed = match self {
            Self::Ed25519(pair) => pair.try_sign(message),
            Self::P256(pair) => pair.sign(&SystemRandom::new(), message),
        };
        signed.map_err(|_| Fault("a JWT cannot be signed"))
    }
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
        let signature = self.key.pair.sign(jwt.as_bytes())?;
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
        let signature = keys.first.pair.sign(message).unwrap();
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
