//! The rules of verification, which a reload replaces.

use super::settings::{SignatureSettings, TokenSettings};
use crate::{oauth::diagnosis::OtherUrl, wire::url::origin::HttpUrl};

/// The rules of verification.
#[derive(Debug, Clone)]
pub struct VerifyRules {
    /// Those of signatures.
    pub signature: SignatureSettings,
    /// The lifetimes of tokens.
    pub tokens: TokenSettings,
    /// The public URLs, those of the listener and the API's own, for the advice in a response to a wrong signature.
    pub other_urls: Vec<OtherUrl>,
    /// The paths of token calls, each with its query, for the same advice.
    pub token_paths: Vec<String>,
}

impl VerifyRules {
    /// These rules; a consumer may sign the `public` URLs, or `internal` ones, instead of the one that it calls.
    pub fn new(
        signature: SignatureSettings,
        tokens: TokenSettings,
        public: impl IntoIterator<Item = HttpUrl>,
        internal: impl IntoIterator<Item = HttpUrl>,
        token_paths: Vec<String>,
    ) -> Self {
        let other = |HttpUrl { origin, path }: HttpUrl, internal| OtherUrl {
            scheme: origin.scheme,
            host: origin.host,
            port: origin.port,
            prefix: path,
            internal,
        };
        let public = public.into_iter().map(|url| other(url, false));
        let internal = internal.into_iter().map(|url| other(url, true));
        Self {
            signature,
            tokens,
            other_urls: public.chain(internal).collect(),
            token_paths,
        }
    }

    /// The paths of token calls, if `path` is one of them.
    pub fn token_paths_for(&self, path: &[u8]) -> Vec<String> {
        let mut paths = self.token_paths.iter();
        let without_query = |known: &str| known.split('?').next() == str::from_utf8(path).ok();
        match paths.any(|known| without_query(known)) {
            true => self.token_paths.clone(),
            false => Vec::new(),
        }
    }
}
