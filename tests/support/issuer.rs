//! An OAuth 2 server that signs access tokens (RFC 9068), serves its public keys, and says what opaque tokens are (RFC 7662).

use std::sync::{Arc, Mutex};

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{
    fresh,
    http::Answer,
    now,
    proxy::Builder,
    tls::write_secret,
    upstream::{Reply, Seen, Upstream},
};

/// The audience of the tokens.
pub const AUDIENCE: &str = "https://api.example.com";

/// A key of an issuer.
pub enum Key {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    /// A secret, as no issuer has one.
    Secret(Vec<u8>),
}

impl Key {
    pub fn ed25519() -> Self {
        Self::Ed25519(Ed25519KeyPair::generate().unwrap())
    }

    /// The same, with its private part as a PEM file has it.
    pub fn ed25519_pem() -> (Self, String) {
        let pair = Ed25519KeyPair::generate().unwrap();
        let der = STANDARD.encode(pair.to_pkcs8v1().unwrap());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
        (Self::Ed25519(pair), pem)
    }

    pub fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    /// The algorithm of a token by this key.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
            Self::Rsa(_) => "RS256",
            Self::Secret(_) => "HS256",
        }
    }

    /// The public part.
    pub fn public(&self) -> Vec<u8> {
        match self {
            Self::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
            Self::P256(pair) => pair.public_key().as_ref().to_vec(),
            Self::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Self::Secret(secret) => secret.clone(),
        }
    }

    /// The public part as a JWK with this id.
    pub fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match self {
            Self::Ed25519(_) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(&self.public())}),
            Self::P256(_) => {
                let point = self.public();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Self::Rsa(pair) => {
                let public = pair.public_key();
                let (n, e) = (public.modulus(), public.exponent());
                json!({
                    "kty": "RSA",
                    "n": text(n.big_endian_without_leading_zero()),
                    "e": text(e.big_endian_without_leading_zero()),
                })
            }
            Self::Secret(secret) => json!({"kty": "oct", "k": text(secret)}),
        };
        jwk["kid"] = json!(id);
        jwk
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Self::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding = &RSA_PKCS1_SHA256;
                pair.sign(padding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Self::Secret(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, message).as_ref().to_vec()
            }
        }
    }

    /// A JWT with this head and these claims.
    pub fn jwt(&self, head: &Value, claims: &Value) -> String {
        let part = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let mut jwt = format!("{}.{}", part(head), part(claims));
        let signature = self.sign(jwt.as_bytes());
        jwt.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut jwt);
        jwt
    }
}

/// What an issuer serves.
#[derive(Default)]
struct Served {
    keys: Vec<Value>,
    opaque: Vec<(String, Value)>,
    /// The response to everything instead.
    reply: Option<Reply>,
}

/// A running issuer.
pub struct Issuer {
    pub name: String,
    pub key: Key,
    http: Upstream,
    served: Arc<Mutex<Served>>,
}

impl Issuer {
    /// An issuer with a key of Ed25519, whose id is `first`.
    pub fn start() -> Self {
        Self::with(Key::ed25519())
    }

    pub fn with(key: Key) -> Self {
        let served = Arc::<Mutex<Served>>::default();
        let shown = Arc::clone(&served);
        let http = Upstream::replying(move |seen| answer(&shown.lock().unwrap(), seen));
        served.lock().unwrap().keys.push(key.jwk("first"));
        Self {
            name: "https://login.example.com".to_owned(),
            key,
            http,
            served,
        }
    }

    /// The section of the configuration that accepts its tokens, with these further keys.
    pub fn section(&self, more: &str) -> String {
        format!(
            "[[bearer.issuer]]\nissuer = '{}'\naudience = '{AUDIENCE}'\njwks_url = '{}/jwks'\n{more}\n",
            self.name,
            self.http.url()
        )
    }

    /// The section by which it is asked for each token; writes the secret beside the configuration.
    pub fn asked_section(&self, builder: &Builder) -> String {
        write_secret(
            &builder.directory().join("issuer.secret"),
            "of the gate:way+".replace(' ', "-"),
        );
        format!(
            "[[bearer.issuer]]\nissuer = '{}'\naudience = '{AUDIENCE}'\nintrospection_url = '{}/introspect'\n\
             client_id = 'gate way'\nclient_secret_file = 'issuer.secret'\n",
            self.name,
            self.http.url()
        )
    }

    /// Serves these keys from now on.
    pub fn serves(&self, keys: &[Value]) {
        self.served.lock().unwrap().keys = keys.to_vec();
    }

    /// Knows this opaque token.
    pub fn knows(&self, token: &str, claims: Value) {
        let mut served = self.served.lock().unwrap();
        served.opaque.retain(|(known, _)| known != token);
        served.opaque.push((token.to_owned(), claims));
    }

    /// Responds this way from now on, or as usual.
    pub fn replies(&self, reply: impl Into<Option<Reply>>) {
        self.served.lock().unwrap().reply = reply.into();
    }

    /// The number of requests so far.
    pub fn asked(&self) -> usize {
        self.http.count()
    }

    /// The claims of a token for a client that acts for a user.
    pub fn claims(&self, client: &str, user: &str, scope: &str) -> Value {
        json!({
            "iss": self.name, "aud": AUDIENCE, "exp": now() + 300, "iat": now(), "jti": fresh("jti-"),
            "client_id": client, "sub": user, "scope": scope,
        })
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        let head = json!({"typ": "at+jwt", "alg": self.key.algorithm(), "kid": "first"});
        self.key.jwt(&head, claims)
    }
}

fn answer(served: &Served, seen: &Seen) -> Reply {
    if let Some(reply) = &served.reply {
        return reply.clone();
    }
    if seen.target == "/jwks" {
        return Reply::ok(json!({ "keys": served.keys }).to_string());
    }
    let client = STANDARD.encode("gate%20way:of-the-gate%3Away%2B");
    if seen.header("Authorization") != Some(&format!("Basic {client}")) {
        return Reply::status("401 Unauthorized");
    }
    let text = seen.text();
    let token = text
        .strip_prefix("token=")
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    let mut known = served.opaque.iter();
    let claims = known.find_map(|(known, claims)| (known == token).then(|| claims.clone()));
    Reply::ok(claims.unwrap_or(json!({ "active": false })).to_string())
}

/// The error that a response names (RFC 6750 §3).
pub fn bearer_error(answer: &Answer) -> Option<&str> {
    let challenges = answer.fields.all("WWW-Authenticate");
    let mut challenges = challenges.into_iter();
    let bearer = challenges.find(|it| it.starts_with("Bearer "))?;
    Some(
        bearer
            .split_once("error=\"")
            .map_or("", |(_, rest)| rest.split('"').next().unwrap()),
    )
}
