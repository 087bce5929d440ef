//! The secrets by which `sign` and `explain` work: from the command line, else from the store.

use std::{fs::File, io::Read, path::Path};

use clap::Args;

use super::{
    context::{CommandError, ConfigArgs, Context, StoreFile, block_on},
    secret_arg::SecretArg,
};
use crate::{names::ConsumerKey, oauth::RsaPublicKey, secret::Secret, store::Store};

/// The secrets of a consumer and a token, and the consumer's public key.
#[derive(Debug)]
pub struct KnownSecrets {
    /// The consumer's secret.
    pub consumer_secret: Secret,
    /// The token's; empty without a token.
    pub token_secret: Secret,
    /// The key for the RSA methods.
    pub rsa_public_key: Option<RsaPublicKey>,
}

/// Finds the secrets that belong to a consumer key and a token, where they are kept.
pub type Lookup<'a> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<KnownSecrets, CommandError> + 'a;

/// The options that give secrets.
#[derive(Debug, Args)]
pub struct SecretArgs {
    /// Consumer secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    pub(super) consumer_secret: Option<SecretArg>,

    /// Token secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    pub(super) token_secret: Option<SecretArg>,
}

impl SecretArgs {
    /// The secrets that are given; `lookup` is asked if neither a secret nor `rsa_public_key` is.
    pub(super) fn read(
        &self,
        consumer_key: &[u8],
        token: Option<&[u8]>,
        rsa_public_key: Option<RsaPublicKey>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<KnownSecrets, CommandError> {
        let given = [self.consumer_secret.as_ref(), self.token_secret.as_ref()];
        let [consumer_secret, token_secret] = SecretArg::read_all(given, stdin)?;
        if consumer_secret.is_none() && token_secret.is_none() && rsa_public_key.is_none() {
            let token = token.filter(|token| !token.is_empty());
            let consumer = String::from_utf8_lossy(consumer_key);
            return lookup(consumer_key, token).map_err(|error| {
                error.about(format!(
                    "cannot find the secrets of consumer {consumer:?}; give --consumer-secret"
                ))
            });
        }
        let none = || Secret::from("");
        Ok(KnownSecrets {
            consumer_secret: consumer_secret.unwrap_or_else(none),
            token_secret: token_secret.unwrap_or_else(none),
            rsa_public_key,
        })
    }
}

/// Reads the PEM file of `--rsa-public-key`.
pub(super) fn read_pem(path: &Path) -> Result<String, CommandError> {
    /// A certificate with a chain behind it has some ten.
    const LONGEST: u64 = 256 << 10;

    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.map_err(|error| {
        CommandError::from(error)
            .about("cannot be read")
            .about(option(path))
    })?;
    Ok(text)
}

/// How errors call that file.
pub(super) fn option(path: &Path) -> String {
    format!("--rsa-public-key {}", path.display())
}

/// Finds secrets in the store of the configuration, opened on first use.
#[must_use]
pub fn lookup(config: ConfigArgs) -> Box<Lookup<'static>> {
    let args = config.into();
    Box::new(move |consumer_key, token| {
        let context = Context::load(&args, false, StoreFile::MustExist)?;
        block_on(find(context.store()?, consumer_key, token))?
    })
}

async fn find(
    store: &dyn Store,
    consumer_key: &[u8],
    token: Option<&[u8]>,
) -> Result<KnownSecrets, CommandError> {
    let unknown = |what| CommandError::failed(format!("the store has no such {what}"));
    let key = std::str::from_utf8(consumer_key).ok();
    let key: Option<ConsumerKey> = key.and_then(|key| key.parse().ok());
    let key = key.ok_or_else(|| unknown("consumer"))?;
    let consumer = store.consumer(&key).await?;
    let consumer = consumer.ok_or_else(|| unknown("consumer"))?;
    let token_secret = match token.map(String::from_utf8_lossy) {
        None => Secret::from(""),
        Some(token) => match store.access_token(&token).await? {
            Some(access) => access.secret,
            None => {
                let request = store.request_token(&token).await?;
                request.ok_or_else(|| unknown("token"))?.secret
            }
        },
    };
    let pem = consumer.rsa_public_key.as_deref();
    Ok(KnownSecrets {
        rsa_public_key: pem.map(RsaPublicKey::from_pem).transpose()?,
        consumer_secret: consumer.secret,
        token_secret,
    })
}
