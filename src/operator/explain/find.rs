//! Finds in the store what a request is checked with.

use std::sync::Arc;

use thiserror::Error;

use super::{Asked, KnownSecrets, ParsedRequest, ServerView};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey, secret::Secret},
    oauth::{RsaPublicKey, diagnosis::OtherUrl, rsa::InvalidRsaKey},
    records::store::{Store, StoreError},
    request::{
        policy::operations::{Operation, Operations},
        route::FlowPaths,
        verify::VerifyRules,
    },
};

/// Why nothing is found.
#[derive(Debug, Error)]
pub enum FindError {
    /// No consumer has the key.
    #[error("the store has no such consumer")]
    Consumer,
    /// The consumer has no such token, of either kind.
    #[error("the store has no such token")]
    Token,
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key of the consumer in the store is broken.
    #[error(transparent)]
    RsaKey(#[from] InvalidRsaKey),
}

/// The rules of the server.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules of verification.
    pub verify: VerifyRules,
    /// The paths of the token calls.
    pub flow: FlowPaths,
    /// The protected operations.
    pub operations: Arc<Operations>,
}

impl Rules {
    /// The operation that a request is for, if it is for one.
    pub(super) fn operation(&self, request: &ParsedRequest<'_>) -> Option<&Operation> {
        let (uri, method) = (&request.uri, request.method.as_bytes());
        if self.flow.is_token_call(uri.path) {
            return None;
        }
        let is_of_host = |url: &&OtherUrl| {
            let is_same_host = url.host.eq_ignore_ascii_case(uri.authority.host);
            !url.internal && url.scheme == uri.scheme && is_same_host
        };
        let urls = self.verify.other_urls.iter().filter(is_of_host);
        let below = urls.filter_map(|url| uri.path.strip_prefix(&*url.prefix));
        let mut paths = below.chain([uri.path]);
        paths.find_map(|path| {
            self.operations
                .find(path.as_bytes(), method)
                .ok()?
                .operation()
        })
    }
}

/// Finds the secrets and states of consumer and token. Whether the nonce was used is not known here.
///
/// # Errors
/// [`FindError`]
pub async fn find(
    store: &Store,
    rules: Rules,
    now: UnixTime,
    asked: &Asked<'_>,
) -> Result<KnownSecrets, FindError> {
    let key = std::str::from_utf8(asked.consumer_key).ok();
    let key: Option<ConsumerKey> = key.and_then(|key| key.parse().ok());
    let key = key.ok_or(FindError::Consumer)?;
    let consumer = store.consumer(&key).await?.ok_or(FindError::Consumer)?;
    let (mut state, mut token_permissions) = (None, None);
    let token_secret = match asked.token.map(String::from_utf8_lossy) {
        None => Secret::from(""),
        Some(token) => match store.access_token(&token).await? {
            Some(access) if access.consumer == key => {
                let last_use = access.last_used_at.unwrap_or(access.issued_at);
                let idle = rules
                    .verify
                    .tokens
                    .access_idle
                    .0
                    .is_some_and(|idle| now >= last_use.after(idle));
                if idle || access.expires_at.is_some_and(|at| now >= at) {
                    state = Some(("token_expired", "the token is expired"));
                } else if access.revoked_at.is_some() {
                    state = Some(("token_revoked", "the token was revoked"));
                }
                token_permissions = Some(access.permissions);
                access.secret
            }
            _ => {
                let request = store.request_token(&token).await?;
                let request = request.filter(|request| request.consumer == key);
                request.ok_or(FindError::Token)?.secret
            }
        },
    };
    if !consumer.enabled {
        state = Some(("consumer_key_refused", "the consumer is disabled"));
    }
    let pem = consumer.rsa_public_key.as_deref();
    Ok(KnownSecrets {
        rsa_public_key: pem.map(RsaPublicKey::from_pem).transpose()?,
        consumer_secret: consumer.secret.clone(),
        token_secret,
        server: Some(ServerView {
            now,
            rules,
            consumer,
            state,
            token_permissions,
            nonce_used: None,
        }),
    })
}
