//! The options of `consumer add` and `consumer update`, checked before the store is opened.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    super::context::{CommandError, Context},
    read_secret,
};
use crate::{
    cli::{secret_arg::SecretArg, secrets::read_rsa_public_key},
    issue::{
        callback::{self, CallbackError},
        registration,
    },
    manage::NewConsumer,
    names::{ConsumerKey, Permission},
    store::record::{ConsumerUpdate, Dialect},
};

/// The options of `consumer add`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AddArgs {
    /// What the consent page calls it
    #[arg(long, value_parser = registration::shown_name)]
    name: String,
    /// Its key [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    key: Option<ConsumerKey>,
    /// Its secret, @FILE, or - for standard input [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    secret: Option<SecretArg>,
    /// Accept only the RSA methods from it, never its secret
    #[arg(long, requires = "rsa_public_key")]
    rsa_only: bool,
    /// Enforce its calls even where the configuration only observes
    #[arg(long)]
    enforce: bool,
    #[command(flatten)]
    pub(super) details: ConsumerDetails,
}

/// The options of `consumer update`; what is not given does not change.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UpdateArgs {
    /// What the consent page calls it
    #[arg(long, value_parser = registration::shown_name)]
    name: Option<String>,
    /// Take all callbacks away
    #[arg(long, conflicts_with = "callbacks")]
    no_callbacks: bool,
    /// Take all permissions away
    #[arg(long, conflicts_with = "permissions")]
    no_permissions: bool,
    /// Take the description away
    #[arg(long, conflicts_with = "description")]
    no_description: bool,
    /// Take the web page away
    #[arg(long, conflicts_with = "website")]
    no_website: bool,
    /// Follow signature.default_dialect
    #[arg(long, conflicts_with = "dialect")]
    no_dialect: bool,
    /// Take the RSA key away
    #[arg(long, conflicts_with = "rsa_public_key")]
    no_rsa_public_key: bool,
    /// Accept only the RSA methods from it, never its secret
    #[arg(long)]
    rsa_only: bool,
    /// Accept its secret too
    #[arg(long, conflicts_with = "rsa_only")]
    no_rsa_only: bool,
    /// Enforce its calls even where the configuration only observes
    #[arg(long)]
    enforce: bool,
    /// Treat its calls as the configuration says
    #[arg(long, conflicts_with = "enforce")]
    no_enforce: bool,
    #[command(flatten)]
    pub(super) details: ConsumerDetails,
}

/// The options of both.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConsumerDetails {
    /// Where users may be sent after deciding, or oob; may be repeated
    #[arg(long = "callback", value_name = "URL|oob", value_parser = callback)]
    callbacks: Vec<String>,
    /// A permission that it may ask for; may be repeated
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<Permission>,
    /// What the consent page says of it
    #[arg(long, value_name = "TEXT", value_parser = registration::shown_name)]
    description: Option<String>,
    /// Its web page, to which the consent page links
    #[arg(long, value_name = "URL", value_parser = registration::web_page)]
    website: Option<String>,
    /// Which base string it signs protected calls with; without one it follows signature.default_dialect
    #[arg(long, value_parser = dialects())]
    dialect: Option<Dialect>,
    /// PEM file with its public key, for the RSA methods
    #[arg(long, value_name = "FILE")]
    rsa_public_key: Option<PathBuf>,
}

fn dialects() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(["rfc5849", "legacy"]).map(|name| match &*name {
        "legacy" => Dialect::Legacy,
        _ => Dialect::Rfc5849,
    })
}

impl AddArgs {
    /// The consumer to register.
    pub(super) fn consumer(self) -> Result<NewConsumer, CommandError> {
        Ok(NewConsumer {
            key: self.key,
            rsa_public_key: self.details.rsa_public_key()?,
            secret: read_secret(self.secret)?,
            name: self.name,
            description: self.details.description,
            website: self.details.website,
            callbacks: self.details.callbacks,
            permissions: self.details.permissions,
            dialect: self.details.dialect,
            enforce: self.enforce,
            rsa_only: self.rsa_only,
        })
    }
}

impl UpdateArgs {
    /// The change to make.
    pub(super) fn update(self) -> Result<ConsumerUpdate, CommandError> {
        let rsa_public_key = self.details.rsa_public_key()?;
        Ok(ConsumerUpdate {
            name: self.name,
            description: value(self.details.description, self.no_description),
            website: value(self.details.website, self.no_website),
            callbacks: list(self.details.callbacks, self.no_callbacks),
            permissions: list(self.details.permissions, self.no_permissions),
            dialect: value(self.details.dialect, self.no_dialect),
            rsa_public_key: value(rsa_public_key, self.no_rsa_public_key),
            enforce: flag(self.enforce, self.no_enforce),
            rsa_only: flag(self.rsa_only, self.no_rsa_only),
            enabled: None,
            end_grace: false,
        })
    }
}

/// The new list, or none to keep the old one.
fn list<T>(given: Vec<T>, is_cleared: bool) -> Option<Vec<T>> {
    (is_cleared || !given.is_empty()).then_some(given)
}

/// The new value, `Some(None)` to remove it, or none to keep the old one.
fn value<T>(given: Option<T>, is_cleared: bool) -> Option<Option<T>> {
    if is_cleared {
        Some(None)
    } else {
        given.map(Some)
    }
}

fn flag(is_set: bool, is_cleared: bool) -> Option<bool> {
    (is_set || is_cleared).then_some(is_set)
}

fn callback(text: &str) -> Result<String, CallbackError> {
    callback::check_registration(text).map(|_| text.to_owned())
}

impl ConsumerDetails {
    /// Warns of what is valid and unwise.
    pub(super) fn warn(&self, context: &Context) {
        for callback in &self.callbacks {
            if let Ok(Some(warning)) = callback::check_registration(callback) {
                context.warn(&format!("--callback {callback}: {warning}"));
            }
        }
        context.warn_of_undeclared("--permission", &self.permissions);
    }

    /// Reads and checks the key file.
    fn rsa_public_key(&self) -> Result<Option<String>, CommandError> {
        read_rsa_public_key(self.rsa_public_key.as_deref(), registration::rsa_public_key)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn update(arguments: &[&str]) -> UpdateArgs {
        let command = UpdateArgs::augment_args(clap::Command::new("update"));
        let all = std::iter::once("update").chain(arguments.iter().copied());
        UpdateArgs::from_arg_matches(&command.try_get_matches_from(all).unwrap()).unwrap()
    }

    #[test]
    fn leaves_alone_what_is_not_given() {
        assert_eq!(update(&[]).update().unwrap(), ConsumerUpdate::default());
        let change = update(&["--name", "New"]).update().unwrap();
        assert_eq!(change.name.as_deref(), Some("New"));
        assert_eq!(change.callbacks, None);
        assert_eq!(change.permissions, None);
        assert_eq!(change.dialect, None);
        assert_eq!(change.rsa_public_key, None);
        assert_eq!((change.rsa_only, change.enforce), (None, None));
        assert_eq!(change.enabled, None);
    }

    #[test]
    fn takes_away_what_is_to_go() {
        let every = [
            "--no-callbacks",
            "--no-permissions",
            "--no-description",
            "--no-website",
            "--no-dialect",
            "--no-rsa-public-key",
            "--no-rsa-only",
            "--no-enforce",
        ];
        for flag in every {
            let change = update(&[flag]).update().unwrap();
            assert_ne!(change, ConsumerUpdate::default(), "{flag}");
        }
        let change = update(&every).update().unwrap();
        assert_eq!(change.callbacks, Some(vec![]));
        assert_eq!(change.permissions, Some(vec![]));
        assert_eq!(change.dialect, Some(None));
        assert_eq!(change.rsa_public_key, Some(None));
        assert_eq!(
            (change.rsa_only, change.enforce),
            (Some(false), Some(false))
        );
        let change = update(&["--enforce", "--rsa-only", "--dialect", "legacy"])
            .update()
            .unwrap();
        assert_eq!((change.rsa_only, change.enforce), (Some(true), Some(true)));
        assert_eq!(change.dialect, Some(Some(Dialect::Legacy)));
    }

    #[test]
    fn refuses_to_give_and_to_take_at_once() {
        for arguments in [
            ["--callback=oob", "--no-callbacks"],
            ["--permission=a", "--no-permissions"],
            ["--dialect=legacy", "--no-dialect"],
            ["--description=x", "--no-description"],
            ["--website=https://a.test/", "--no-website"],
            ["--rsa-public-key=x", "--no-rsa-public-key"],
            ["--enforce", "--no-enforce"],
            ["--rsa-only", "--no-rsa-only"],
        ] {
            let command = UpdateArgs::augment_args(clap::Command::new("update"));
            let all = std::iter::once("update").chain(arguments);
            assert!(command.try_get_matches_from(all).is_err(), "{arguments:?}");
        }
    }
}
