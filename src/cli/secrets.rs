//! The secrets by which `sign` and `explain` work: from the command line, else from the store.

use std::{fs::File, io::Read, path::Path, time::Duration};

use clap::Args;

use super::{
    context::{About as _, CommandError, ConfigArgs, Context, StoreArgs, block_on},
    secret_arg::SecretArg,
};
use crate::{
    app::{self, live, services},
    clock::UnixTime,
    config::NonceScope,
    names::ConsumerKey,
    nonce::{self, NonceUse},
    oauth::{RsaPublicKey, rsa::InvalidRsaKey},
    secret::Secret,
    store::{Opening, record::Consumer, redis},
    verify,
};

/// The secrets of a consumer and a token, and the consumer's public key.
pub struct KnownSecrets {
    /// The consumer's secret.
    pub consumer_secret: Secret,
    /// The token's; empty without a token.
    pub token_secret: Secret,
    /// The key for the RSA methods.
    pub rsa_public_key: Option<RsaPublicKey>,
    /// The other facts that decide; `None` where neither configuration nor store was read.
    pub server: Option<ServerView>,
}

/// The facts other than secrets for which the server rejects a request.
pub struct ServerView {
    /// The time of the command.
    pub now: UnixTime,
    /// `signature.timestamp_window`
    pub window: Duration,
    /// The rules of verification.
    pub rules: verify::Params,
    /// The paths of the token calls.
    pub token_calls: Vec<String>,
    /// The consumer.
    pub consumer: Consumer,
    /// Why the consumer or the token is rejected, under a right signature too: the code, and a reason.
    pub state: Option<(&'static str, &'static str)>,
    /// Whether the nonce of the request was used; `None` where that cannot be known.
    pub nonce_used: Option<bool>,
}

/// The names in a request by which its secrets are found.
pub struct Asked<'a> {
    /// `oauth_consumer_key`
    pub consumer_key: &'a [u8],
    /// `oauth_token`, not empty.
    pub token: Option<&'a [u8]>,
    /// The nonce, to learn whether it was used.
    pub nonce: Option<NonceUse<'a>>,
}

/// Finds the secrets of a request where they are kept.
pub type Lookup<'a> = dyn FnMut(&Asked<'_>) -> Result<KnownSecrets, CommandError> + 'a;

/// The options that give secrets.
#[derive(Debug, Default, Args)]
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
        asked: &Asked<'_>,
        rsa_public_key: Option<RsaPublicKey>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<KnownSecrets, CommandError> {
        let given = (&self.consumer_secret, &self.token_secret);
        if let (Some(SecretArg::Stdin), Some(SecretArg::Stdin)) = given {
            return Err(CommandError::usage(
                "only one secret can come from standard input; use @FILE for the other",
            ));
        }
        let mut read = |given: &Option<SecretArg>| {
            let given = given.as_ref().map(|given| given.read(stdin));
            given.transpose()
        };
        let (consumer_secret, token_secret) = (read(given.0)?, read(given.1)?);
        if consumer_secret.is_none() && token_secret.is_none() && rsa_public_key.is_none() {
            return look_up(asked, "--consumer-secret", lookup);
        }
        Ok(KnownSecrets {
            consumer_secret: consumer_secret.unwrap_or_else(|| "".into()),
            token_secret: token_secret.unwrap_or_else(|| "".into()),
            rsa_public_key,
            server: None,
        })
    }

    /// The secrets to sign with. A token secret that is not given is looked up: an empty one would belong to no token.
    pub(super) fn read_to_sign(
        &self,
        asked: &Asked<'_>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<KnownSecrets, CommandError> {
        let mut secrets = self.read(asked, None, lookup, stdin)?;
        if let (Some(_), Some(_), None) = (asked.token, &self.consumer_secret, &self.token_secret) {
            secrets.token_secret = look_up(asked, "--token-secret", lookup)?.token_secret;
        }
        Ok(secrets)
    }
}

fn look_up(
    asked: &Asked<'_>,
    option: &str,
    lookup: &mut Lookup<'_>,
) -> Result<KnownSecrets, CommandError> {
    let consumer = String::from_utf8_lossy(asked.consumer_key);
    lookup(asked).about(format!(
        "cannot find the secrets of consumer {consumer:?}; give {option}"
    ))
}

/// Reads the PEM file of an option; `about` is what errors call it.
pub(super) fn read_pem(path: &Path, about: &str) -> Result<String, CommandError> {
    /// A certificate with its chain has some ten KiB.
    const LONGEST: u64 = 256 << 10;

    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.about("cannot be read").about(about)?;
    Ok(text)
}

/// Reads the file of `--rsa-public-key`, if it is given, as `parse` does.
pub(super) fn read_rsa_public_key<T>(
    path: Option<&Path>,
    parse: impl FnOnce(&str) -> Result<T, InvalidRsaKey>,
) -> Result<Option<T>, CommandError> {
    let Some(path) = path else { return Ok(None) };
    let option = format!("--rsa-public-key {}", path.display());
    let key = parse(&read_pem(path, &option)?);
    key.about(option).map(Some)
}

/// Finds secrets in the store of the configuration, opened on first use.
pub fn lookup(config: ConfigArgs) -> Box<Lookup<'static>> {
    let args = StoreArgs { config, log: false };
    Box::new(move |asked| {
        let context = Context::load(&args, false, Opening::Existing)?;
        let mut found = block_on(find(&context, asked))??;
        if let (Some(server), Some(nonce)) = (&mut found.server, asked.nonce) {
            server.nonce_used = nonce_used(&context, nonce);
        }
        Ok(found)
    })
}

fn nonce_used(context: &Context, nonce: NonceUse<'_>) -> Option<bool> {
    match context.config.nonce_scope() {
        NonceScope::Local => nonce::was_used(&context.config.nonce_path()?, nonce),
        NonceScope::Shared => match services::nonce_target(&context.config).ok()? {
            Some(target) => block_on(redis::nonce_used(target, nonce)).ok()?.ok(),
            None => block_on(context.store().ok()?.nonce_used(nonce))
                .ok()?
                .ok()?,
        },
    }
}

async fn find(context: &Context, asked: &Asked<'_>) -> Result<KnownSecrets, CommandError> {
    let (store, config, now) = (context.store()?, &context.config, context.now);
    let unknown = |what| CommandError::failed(format!("the store has no such {what}"));
    let key = std::str::from_utf8(asked.consumer_key).ok();
    let key: Option<ConsumerKey> = key.and_then(|key| key.parse().ok());
    let key = key.ok_or_else(|| unknown("consumer"))?;
    let consumer = store.consumer(&key).await?;
    let consumer = consumer.ok_or_else(|| unknown("consumer"))?;
    let rules = live::verify_params(config, app::first(&config.listen.address));
    let mut state = None;
    let token_secret = match asked.token.map(String::from_utf8_lossy) {
        None => Secret::from(""),
        Some(token) => match store.access_token(&token).await? {
            Some(access) if access.consumer == key => {
                let last_use = access.last_used_at.unwrap_or(access.issued_at);
                let idle = rules
                    .access_idle
                    .is_some_and(|idle| now >= last_use.after(idle));
                if idle || access.expires_at.is_some_and(|at| now >= at) {
                    state = Some(("token_expired", "the token is expired"));
                } else if access.revoked_at.is_some() {
                    state = Some(("token_revoked", "the token was revoked"));
                }
                access.secret
            }
            _ => {
                let request = store.request_token(&token).await?;
                let request = request.filter(|request| request.consumer == key);
                request.ok_or_else(|| unknown("token"))?.secret
            }
        },
    };
    if !consumer.enabled {
        state = Some(("consumer_key_refused", "the consumer is disabled"));
    }
    let service = &config.service;
    let mut token_calls = vec![service.path.clone()];
    if service.aliases {
        token_calls.extend(["/oauth/request_token", "/oauth/access_token"].map(str::to_owned));
    }
    let pem = consumer.rsa_public_key.as_deref();
    Ok(KnownSecrets {
        rsa_public_key: pem.map(RsaPublicKey::from_pem).transpose()?,
        consumer_secret: consumer.secret.clone(),
        token_secret,
        server: Some(ServerView {
            now,
            window: config.signature.timestamp_window,
            rules,
            token_calls,
            consumer,
            state,
            nonce_used: None,
        }),
    })
}
