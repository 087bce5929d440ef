//! The options of `consumer add` and `consumer update`, checked before the store is opened.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    super::context::{CommandError, Context},
    read_secret,
};
use crate::{
    cli::{secret_arg::SecretArg, secrets::read_rsa_public_key},
    clock::UnixTime,
    issue::{
        callback::{self, CallbackError},
        registration,
    },
    manage,
    names::{ConsumerKey, Permission},
    store::record::{Consumer, Dialect},
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
    #[command(flatten)]
    pub(super) details: ConsumerDetails,
}

/// The options of `consumer update`; what is not given does not change.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(in crate::cli) struct UpdateArgs {
    /// What the consent page calls it
    #[arg(long, value_parser = registration::shown_name)]
    name: Option<String>,
    #[command(flatten)]
    removals: Removals,
    #[command(flatten)]
    pub(super) details: ConsumerDetails,
}

/// The options that take something away.
#[derive(Debug, Default, PartialEq, clap::Args)]
struct Removals {
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
    /// Accept its secret too
    #[arg(long, conflicts_with = "rsa_only")]
    no_rsa_only: bool,
    /// Treat its calls as the configuration says
    #[arg(long, conflicts_with = "enforce")]
    no_enforce: bool,
}

/// The options of both.
#[derive(Debug, Default, PartialEq, clap::Args)]
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
    /// Accept only the RSA methods from it, never its secret
    #[arg(long)]
    rsa_only: bool,
    /// Enforce its calls even where the configuration only observes
    #[arg(long)]
    enforce: bool,
}

fn dialects() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(["rfc5849", "legacy"]).map(|name| match &*name {
        "legacy" => Dialect::Legacy,
        _ => Dialect::Rfc5849,
    })
}

impl AddArgs {
    /// The consumer to register.
    pub(super) fn consumer(self, now: UnixTime) -> Result<Consumer, CommandError> {
        let change = self.details.change(Removals::default())?;
        let secret = read_secret(self.secret)?;
        let mut consumer = manage::new_consumer(self.key, secret, self.name, now)?;
        change(&mut consumer);
        Ok(consumer)
    }
}

impl UpdateArgs {
    /// Whether nothing is given.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The change to make.
    pub(super) fn change(self) -> Result<impl Fn(&mut Consumer) + Sync, CommandError> {
        let change = self.details.change(self.removals)?;
        Ok(move |consumer: &mut Consumer| {
            if let Some(name) = &self.name {
                consumer.name.clone_from(name);
            }
            change(consumer);
        })
    }
}

/// Sets or removes a value.
fn set<T: Clone>(value: &mut Option<T>, given: &Option<T>, is_removed: bool) {
    if is_removed || given.is_some() {
        value.clone_from(given);
    }
}

/// Sets or empties a list, in which each item is once, in the order of their first places.
fn set_list<T: Clone + PartialEq>(list: &mut Vec<T>, given: &[T], is_removed: bool) {
    if is_removed || !given.is_empty() {
        list.clear();
    }
    for item in given {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
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

    /// The change to make, with what is taken away. Reads and checks the key file.
    fn change(self, removals: Removals) -> Result<impl Fn(&mut Consumer) + Sync, CommandError> {
        let pem = self.rsa_public_key.as_deref();
        let pem = read_rsa_public_key(pem, registration::rsa_public_key)?;
        Ok(move |to: &mut Consumer| {
            set_list(&mut to.callbacks, &self.callbacks, removals.no_callbacks);
            set_list(
                &mut to.permissions,
                &self.permissions,
                removals.no_permissions,
            );
            set(
                &mut to.description,
                &self.description,
                removals.no_description,
            );
            set(&mut to.website, &self.website, removals.no_website);
            set(&mut to.dialect, &self.dialect, removals.no_dialect);
            set(&mut to.rsa_public_key, &pem, removals.no_rsa_public_key);
            to.rsa_only = (to.rsa_only || self.rsa_only) && !removals.no_rsa_only;
            to.enforce = (to.enforce || self.enforce) && !removals.no_enforce;
        })
    }
}
