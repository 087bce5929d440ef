//! The settings of Bearer tokens.

use std::{path::PathBuf, time::Duration};

use jsonwebtoken::{Algorithm, AlgorithmFamily};
use serde_json::{Map, Value};

use crate::{
    base::settings::{
        LONGEST, deserialize_text, distinct, duration, filled, one_of, section, texts,
    },
    wire::address::EndpointUrl,
};

section! {
    /// Calls with a Bearer token, treated as signed ones. See docs/bearer.md.
    #[derive(Copy)]
    BearerSettings["bearer"] {
        /// Accepts the tokens that the exchange gives out.
        own: bool = false, reload;
    }
}

section! {
    /// An OAuth 2 server whose access tokens are accepted.
    IssuerSettings["bearer.issuer", list] {
        /// The claim iss of its tokens, byte for byte.
        issuer: ClaimText [required: "https://login.example.com"], reload;
        /// The names of this API: each token has one in its claim aud.
        #[serde(deserialize_with = "filled")] audience: Vec<ClaimText> [required: ["https://api.example.com"]], reload;
        /// Its public keys, a JWK set of at most 64 KiB. https unless its host is loopback.
        jwks_url: Option<EndpointUrl> [else "none": "https://login.example.com/jwks.json"], reload;
        /// The same from a file. Read again on SIGHUP.
        jwks_file: Option<PathBuf> [else "none": "issuer.jwks"], reload;
        /// The URL for tokens that are not JWTs (RFC 7662), of one issuer at most.
        introspection_url: Option<EndpointUrl> [else "none": "https://login.example.com/introspect"], reload;
        /// false: every token of the issuer counts, although the response about it names no audience (aud).
        audience_required: bool = true, reload;
        /// The name of countersign as a client there.
        client_id: Option<ClaimText> [else "none": "api-gateway"], reload;
        /// The file of the client's secret.
        client_secret_file: Option<PathBuf> [else "none": "issuer.secret"], reload;
        /// The authorities to trust there, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "issuer-ca.pem"], reload;
        /// Time for a request there, all in all.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] timeout: Duration = "2s", reload;
        /// Accepted algorithms, never "none" or a symmetric one.
        #[serde(deserialize_with = "filled")] algorithms: Vec<TokenAlgorithm> = ["RS256", "ES256", "EdDSA"], reload;
        /// Accepted types, the member typ of the head: "at+jwt" (RFC 9068), "JWT" of other servers.
        #[serde(deserialize_with = "filled")] token_types: Vec<ClaimText> = ["at+jwt"], reload;
        /// The claim with the key of a registered consumer.
        consumer_claim: ClaimText = "client_id", reload;
        /// The claim with the user's id. Without it, or with the consumer's key, the call is the consumer's own
        /// ("application").
        user_claim: ClaimText = "sub", reload;
        /// The claim that only users' tokens have, or "name=value". A token without it is the consumer's own, or rejected.
        user_mark: Option<ClaimMark> [else "none: each user_claim that is not the client's is a user": "sid"], reload;
        /// The claim that only tokens without a user have. Such a token is the consumer's own.
        client_mark: Option<ClaimMark> [else "none": "idtyp=app"], reload;
        /// The claim with the permissions, a text or a list, without those that the consumer lacks.
        permissions_claim: ClaimText = "scope", reload;
    }
}

/// A text that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimText(pub String);

/// A claim that tells two kinds of tokens apart, by its presence or by its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimMark {
    name: String,
    value: Option<String>,
}

impl ClaimMark {
    /// Whether these claims have it.
    pub(super) fn is_in(&self, claims: &Map<String, Value>) -> bool {
        let claim = claims.get(&self.name).filter(|claim| !claim.is_null());
        match &self.value {
            None => claim.is_some(),
            Some(value) => claim.and_then(Value::as_str) == Some(value),
        }
    }
}

/// An asymmetric algorithm of JWTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenAlgorithm(pub Algorithm);

/// The names of the algorithms.
const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

texts! {
    ClaimText: "a text that is not empty" => |text: &str| match text {
        "" => Err(""),
        text => Ok(Self(text.to_owned())),
    };
    ClaimMark: "the name of a claim, such as \"sid\", or name and value, such as \"idtyp=app\"" => |text: &str| {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match name.is_empty() || value == Some("") {
            true => Err(""),
            false => Ok(Self { name: name.to_owned(), value: value.map(str::to_owned) }),
        }
    };
    TokenAlgorithm: "an asymmetric algorithm such as \"ES256\"" => |text: &str| match text.parse::<Algorithm>() {
        Ok(algorithm) if algorithm.family() != AlgorithmFamily::Hmac => Ok(Self(algorithm)),
        Ok(_) => Err("it is symmetric: who verifies with its key can also sign with it"),
        Err(_) => Err(""),
    }, one_of(&ALGORITHMS);
}
deserialize_text!(ClaimText, ClaimMark);
