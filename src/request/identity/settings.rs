//! The settings of the identity that the API gets.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::HeaderName;

use super::{
    Identity,
    assertion::{Assertion, Bind, TYP},
    keys::Keys,
};
use crate::{
    base::{
        clock::Clock,
        settings::{DAY, choices, distinct, optional, seconds, section, text},
        text::names::NameEncoding,
    },
    request::policy::settings::OperationSettings,
    wire::url::origin::Origin,
};

section! {
    /// The fields that identify the caller to the API. A caller's own fields of these names are dropped.
    IdentitySettings["identity"] {
        /// The user's id.
        #[serde(deserialize_with = "text")] user_header: HeaderName = "X-Auth-User", reload;
        /// The consumer's key.
        #[serde(deserialize_with = "text")] consumer_header: HeaderName = "X-Auth-Consumer", reload;
        /// The permissions granted, separated by spaces.
        #[serde(deserialize_with = "text")] permissions_header: HeaderName = "X-Auth-Permissions", reload;
        /// "consumer", "application", "user" or "anonymous"; always sent.
        #[serde(deserialize_with = "text")] kind_header: HeaderName = "X-Auth-Kind", reload;
        /// The spelling of keys and ids there. "none": visible ASCII other than " , ; and \\. "percent": percent-encoded UTF-8
        /// (RFC 3986), as My%20School%202026, with any character but controls; the API has to decode it.
        encoding: NameEncoding = "none", restart;
        /// Forwards the oauth_ credentials untouched, for an API that verifies them itself.
        forward_authorization: Option<bool> [else "false; true where service.role is \"guard\"": true], reload;
    }
}

section! {
    /// A JWT that names the caller to the API. See docs/assertion.md.
    AssertionSettings["identity.assertion"] {
        /// The field that has it. A caller's own is dropped.
        #[serde(default, deserialize_with = "optional")] header: Option<HeaderName> [else "none": "X-Auth-Assertion"], reload;
        /// Files with a private key each, PEM. The first signs; the public keys of all are published. Read again on SIGHUP.
        #[serde(default, deserialize_with = "distinct")] key_files: Vec<PathBuf> [else "none": ["assertion.pem"]], reload;
        /// The claim aud, which the API has to check. Required where upstream.api_url is a Unix socket or absent.
        audience: Option<String> [else "the origin of upstream.api_url": "https://api.internal"], reload;
        /// The lifetime of a JWT.
        #[serde(deserialize_with = "seconds::<DAY, _>")] ttl: Duration = "60s", reload;
        /// "request": one for the method and the URL of each request; "none": one serves a token for half its life, which costs
        /// less.
        bind: Bind = "request", reload;
    }
}

impl IdentitySettings {
    /// The fields that tell the API who calls, `assertion` and the fields of the operations among them.
    pub fn identity(
        &self,
        assertion: Option<Assertion>,
        operations: &[OperationSettings],
        forward_authorization: bool,
    ) -> Identity {
        let headers = operations.iter().flat_map(|it| &it.headers.0);
        Identity {
            user: self.user_header.clone(),
            consumer: self.consumer_header.clone(),
            permissions: self.permissions_header.clone(),
            kind: self.kind_header.clone(),
            assertion,
            parameters: headers.map(|header| header.name.clone()).collect(),
            forward_authorization,
        }
    }
}

impl AssertionSettings {
    /// Makes the assertions of `issuer` for `audience`, if there is a field for them, and a key.
    pub fn assertion(
        &self,
        issuer: &Origin,
        audience: Option<String>,
        keys: Option<&Keys>,
        clock: &Clock,
    ) -> Option<Assertion> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Some(Assertion {
            header: self.header.clone()?,
            issuer: issuer.to_string(),
            audience: audience?,
            ttl: self.ttl,
            bind: self.bind,
            clock: clock.clone(),
            signer: keys?.signer(TYP),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        })
    }
}

choices!(Bind, NameEncoding);
