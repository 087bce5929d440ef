//! Secrets that `sign` and `explain` were not given, looked up in the store.

use std::{error::Error, path::PathBuf};

use super::{
    context::{CommandError, Context, StoreArgs, StoreFile, block_on},
    request::{KnownSecrets, Lookup},
};
use crate::{names::ConsumerKey, oauth::RsaPublicKey, secret::Secret, store::Store};

/// Finds the secrets of a consumer and a token in the store of the configuration, opened when first asked.
#[must_use]
pub fn lookup(config: Option<PathBuf>) -> Box<Lookup<'static>> {
    Box::new(move |consumer, token| {
        let context = Context::load(&StoreArgs::of(config.clone()), false, StoreFile::IsThere)?;
        let key: ConsumerKey = std::str::from_utf8(consumer)?.parse()?;
        let token = token.map(std::str::from_utf8).transpose()?;
        block_on(find(context.store()?, &key, token))?
    })
}

/// The exit code for secrets that could not be looked up: 2 if it was the configuration, else 1.
#[must_use]
pub fn exit_code(error: &(dyn Error + 'static)) -> u8 {
    error
        .downcast_ref::<CommandError>()
        .map_or(1, CommandError::exit_code)
}

async fn find(
    store: &dyn Store,
    key: &ConsumerKey,
    token: Option<&str>,
) -> Result<KnownSecrets, Box<dyn Error>> {
    let found = store.consumer(key).await?;
    let consumer = found.ok_or("the store has no such consumer")?;
    let token_secret = match token.filter(|token| !token.is_empty()) {
        None => Secret::from(""),
        Some(token) => secret_of(store, token)
            .await?
            .ok_or("the store has no such token")?,
    };
    let pem = consumer.rsa_public_key.as_deref();
    Ok(KnownSecrets {
        rsa_public_key: pem.map(RsaPublicKey::from_pem).transpose()?,
        consumer_secret: consumer.secret,
        token_secret,
    })
}

async fn secret_of(store: &dyn Store, token: &str) -> Result<Option<Secret>, Box<dyn Error>> {
    if let Some(access) = store.access_token(token).await? {
        return Ok(Some(access.secret));
    }
    let request = store.request_token(token).await?;
    Ok(request.map(|request| request.secret))
}
