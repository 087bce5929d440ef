//! The settings of verification.

use std::time::Duration;

use serde::Deserializer;

use super::advice::Advice;
use crate::{
    base::settings::{
        DAY, LONGEST, Lifetime, choices, filled, one_of, optional_seconds, plain_values, seconds,
        section, texts,
    },
    oauth::{MethodSet, SignatureMethod},
    records::values::record::{BodyHash, Dialect},
};

section! {
    /// Rules for signatures.
    #[derive(Copy)]
    SignatureSettings["signature"] {
        /// Accepted methods. PLAINTEXT, which sends the secrets themselves, has to be added.
        #[serde(deserialize_with = "methods")]
        methods: MethodSet = ["HMAC-SHA1", "HMAC-MD5", "HMAC-SHA256", "HMAC-SHA512", "RSA-SHA1", "RSA-SHA256", "RSA-SHA512", "RSA-PSS"], reload;
        /// The error that a consumer's clock may have, either way. Nonces are kept for twice as long. A wider window admits
        /// nothing that had left the old one.
        #[serde(deserialize_with = "seconds::<DAY, _>")] timestamp_window: Duration = "300s", reload;
        /// The base string of consumers without a dialect: "rfc5849" or "legacy".
        default_dialect: Dialect = "rfc5849", reload;
        /// Token calls also accept the base string and key of the service's own description.
        accept_description: bool = true, reload;
        /// "observe" verifies, counts and logs, but lets protected calls through.
        enforcement: Enforcement = "enforce", reload;
        /// The help in a response to a wrong signature: "off" (none, and no page for developers), "hint" (the mistake), "full"
        /// (also the base string computed here).
        advice: Advice = "hint", reload;
    }
}

impl SignatureSettings {
    /// PLAINTEXT is accepted.
    #[must_use]
    pub fn accepts_plaintext(&self) -> bool {
        self.methods.contains(SignatureMethod::Plaintext)
    }

    /// Nothing but HMAC-MD5 and PLAINTEXT is accepted.
    #[must_use]
    pub fn accepts_only_weak(&self) -> bool {
        let weak = [SignatureMethod::HmacMd5, SignatureMethod::Plaintext];
        self.methods.iter().all(|method| weak.contains(&method))
    }
}

section! {
    /// Lifetimes of tokens.
    #[derive(Copy)]
    TokenSettings["tokens"] {
        /// Time to approve a request token, and again to exchange it.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] request_ttl: Duration = "10m", reload;
        /// Access tokens expire this long after issue.
        access_ttl: Lifetime = "never", reload;
        /// Unused access tokens expire after this.
        access_idle: Lifetime = "never", reload;
        /// This long before an access token ends, responses to its verified calls have its end in the field X-Auth-Token-Expires.
        #[serde(default, deserialize_with = "optional_seconds::<LONGEST, _>")] announce: Option<Duration> [else "off": "7d"], reload;
    }
}

fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MethodSet, D::Error> {
    let methods: Vec<SignatureMethod> = filled(deserializer)?;
    Ok(methods.into_iter().collect())
}

/// The treatment of protected calls that fail verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// They are rejected.
    Enforce,
    /// They are counted, logged and forwarded, without any identity.
    Observe,
}

texts! {
    SignatureMethod: "a signature method such as \"HMAC-SHA1\"" => str::parse::<Self>,
        one_of(&Vec::from_iter(Self::ALL.iter().map(|method| method.as_str())));
}
choices!(Advice, BodyHash, Dialect, Enforcement);
plain_values!(MethodSet: Vec::<SignatureMethod>::schema());
