//! Finds in the store what a request is checked with.

use std::sync::Arc;

use thiserror::Error;

use super::{Asked, KnownSecrets, ParsedRequest, ServerView, TokenRecord};
use crate::{
    base::{clock::UnixTime, secret::Secret, text::names::ConsumerKey},
    oauth::{Parameters, RsaPublicKey, diagnosis::OtherUrl, method::rsa::InvalidRsaKey},
    provider::endpoints::exchange::is_key_of_user,
    records::{store::Store, values::StoreError},
    request::{
        policy::{
            operations::{Operation, Operations},
            sunset::Sunset,
        },
        route::{FlowPaths, TokenCall},
        verify::{Purpose, VerifyRules},
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
    /// The end of OAuth 1.0a, if it is planned.
    pub sunset: Option<Arc<Sunset>>,
}

impl Rules {
    /// The token call that path, query, form and parameters name; `None`: it is a call to the API.
    pub(super) fn token_call(
        &self,
        request: &ParsedRequest<'_>,
        parameters: &Parameters,
    ) -> Option<TokenCall> {
        let (uri, form) = (&request.uri, request.form().unwrap_or_default());
        self.flow
            .shown_token_call(uri.path, uri.query, form, parameters)
    }

    /// The purpose of a call.
    pub(super) fn purpose(&self, request: &ParsedRequest<'_>, parameters: &Parameters) -> Purpose {
        let call = self.token_call(request, parameters);
        call.map_or(Purpose::Api, Purpose::from_call)
    }

    /// The operation that a call to the API is for, if it is for one.
    pub(super) fn operation<'a>(&'a self, request: &ParsedRequest<'a>) -> Option<&'a Operation> {
        let (uri, method) = (&request.uri, request.method.as_bytes());
        let has_host = |url: &&OtherUrl| {
            let is_same_host = url.host.eq_ignore_ascii_case(uri.authority.host);
            !url.internal && url.scheme == uri.scheme && is_same_host
        };
        let urls = self.verify.other_urls.iter().filter(has_host);
        let below = urls.filter_map(|url| uri.path.strip_prefix(&*url.prefix));
        let mut paths = below.chain([uri.path]);
        paths.find_map(|path| self.operations.find(path.as_bytes(), method).operation())
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
    let token = match asked.token.map(String::from_utf8_lossy) {
        None => None,
        Some(token) => match store.access_token_from(&token, Some(&key), false).await? {
            Some((access, _)) if access.consumer == key => Some(TokenRecord::Access(access)),
            _ => {
                let request = store.request_token(&token).await?;
                let request = request.filter(|request| request.consumer == key);
                Some(TokenRecord::Request(request.ok_or(FindError::Token)?))
            }
        },
    };
    let pem = consumer.rsa_public_key.as_deref();
    Ok(KnownSecrets {
        rsa_public_key: pem.map(RsaPublicKey::from_pem).transpose()?,
        consumer_secret: consumer.secret.clone(),
        token_secret: match &token {
            None => Secret::from(""),
            Some(TokenRecord::Access(access)) => access.secret.clone(),
            Some(TokenRecord::Request(request)) => request.secret.clone(),
        },
        server: Some(ServerView {
            now,
            rules,
            consumer,
            token,
            is_token_unknown: false,
            is_key_of_user: is_key_of_user(store, &key).await?,
            nonce_used: None,
        }),
    })
}
