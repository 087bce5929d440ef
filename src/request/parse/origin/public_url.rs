//! The URLs under which consumers sign.

use http::HeaderValue;

use crate::{
    oauth::{Authority, EncodedOrigin},
    wire::url::origin::{HttpUrl, Origin},
};

/// A public URL under which consumers sign.
#[derive(Debug, Clone)]
pub struct PublicUrl {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The path in front of the API's own, without a slash at its end; mostly empty.
    pub prefix: String,
    /// The prefix as `X-Forwarded-Prefix` has it, if there is one.
    pub(super) prefix_field: Option<HeaderValue>,
    /// The origin as it is in base strings.
    pub encoded: EncodedOrigin,
    /// Host and port as most callers write them.
    host: String,
}

impl From<HttpUrl> for PublicUrl {
    fn from(HttpUrl { origin, path }: HttpUrl) -> Self {
        Self {
            encoded: EncodedOrigin::new(origin.scheme, &origin.host, Some(origin.port)),
            host: origin.authority(),
            origin,
            prefix_field: HeaderValue::from_str(&path)
                .ok()
                .filter(|path| !path.is_empty()),
            prefix: path,
        }
    }
}

/// Whether an origin has this host and port.
pub(super) fn is_at(origin: &Origin, authority: &Authority<'_>) -> bool {
    let Origin { scheme, host, port } = origin;
    // Nearly always it comes in lower case.
    (authority.host == host || authority.host.eq_ignore_ascii_case(host))
        && authority.port.unwrap_or(scheme.default_port()) == *port
}

impl PublicUrl {
    pub(super) fn is_at(&self, authority: &Authority<'_>) -> bool {
        is_at(&self.origin, authority)
    }

    /// Its authority, as [`Authority::parse`] reads it, if `host` is the text that most callers write.
    pub(super) fn if_written(&self, host: &[u8]) -> Option<Authority<'_>> {
        let Origin { scheme, port, .. } = self.origin;
        (self.host.as_bytes() == host).then_some(Authority {
            host: &self.origin.host,
            port: Some(port).filter(|&port| port != scheme.default_port()),
        })
    }

    /// Whether `path` lies below the prefix.
    pub fn covers(&self, path: &[u8]) -> bool {
        path.strip_prefix(self.prefix.as_bytes())
            .is_some_and(|rest| self.prefix.is_empty() || matches!(rest, [] | [b'/', ..]))
    }
}

/// The treatment of the prefix in a public URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrefixMode {
    /// The prefix is in the received path, is signed, and is not forwarded.
    Strip,
    /// The prefix is in the received path, is signed, and is forwarded.
    Keep,
    /// The proxy in front has removed the prefix: it is added for the signature alone.
    Restore,
}
