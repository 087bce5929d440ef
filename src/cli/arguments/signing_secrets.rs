//! The secrets that `sign` and `explain` use: from the command line, else from the store.

use std::{fs::File, io::Read, path::Path};

use clap::Args;

use crate::{
    base::clock::Clock,
    cli::{
        arguments::secret_source::SecretArg,
        context::{About as _, CommandError, ConfigArgs, Context, StoreArgs, block_on},
    },
    oauth::RsaPublicKey,
    operator::explain::{Asked, KnownSecrets, find},
    records::{
        nonce::{self, NonceUse, redis, settings::NonceScope},
        values::Opening,
    },
    run::app::{self, live, services},
};

/// Finds the secrets of a request where they are kept.
pub type Lookup<'a> = dyn FnMut(&Asked<'_>) -> Result<KnownSecrets, CommandError> + 'a;

/// The options that give secrets.
#[derive(Debug, Default, Args)]
pub struct SecretArgs {
    /// Consumer secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    pub(in crate::cli) consumer_secret: Option<SecretArg>,

    /// Token secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    pub(in crate::cli) token_secret: Option<SecretArg>,
}

impl SecretArgs {
    /// The secrets that are given; `lookup` is asked if neither a secret nor `rsa_public_key` is given.
    pub(in crate::cli) fn read(
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
    pub(in crate::cli) fn read_to_sign(
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

/// Reads the PEM file of an option; errors call it `about`.
pub(in crate::cli) fn read_pem(path: &Path, about: &str) -> Result<String, CommandError> {
    /// A certificate with its chain has some ten KiB.
    const LONGEST: u64 = 256 << 10;

    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.about("cannot be read").about(about)?;
    Ok(text)
}

/// Finds secrets in the store of the configuration, opened on first use.
pub fn lookup(config: ConfigArgs) -> Box<Lookup<'static>> {
    let args = StoreArgs { config, log: false };
    Box::new(move |asked| {
        let context = Context::load(&args, false, Opening::Existing)?;
        let listener = app::first(&context.config.listen.address);
        let rules = live::explain_rules(&context.config, listener, &Clock::system());
        let mut found = block_on(find(context.store()?, rules, context.now, asked))??;
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
