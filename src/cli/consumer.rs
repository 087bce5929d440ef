//! `consumer`: the life of a consumer.

use std::{io, time::Duration};

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{
    context::{About as _, CommandError, Confirmation, Context, FilterArgs, new_name},
    field_options::{FieldArgs, OfConsumer},
    secret_arg::SecretArg,
};
use crate::{
    base::{clock::parse_duration, names::ConsumerKey, secret::Secret},
    oauth::Deviation,
    operator::manage::{self, ManageError, check_secret, view},
    provider::issue::callback,
    records::store::{port::RecordFilter, record::Consumer},
    run::app,
};

/// The commands for consumers.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Registers a consumer and prints its key and secret
    Add(AddArgs),
    /// Lists all consumers
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// Only those registered at least this long ago, such as 90d, that signed no call since
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        unused_for: Option<Duration>,
        /// Only those with a contact, or with this text in it
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        contact: Option<String>,
    },
    /// Shows a consumer
    Show(KeyArg),
    /// Changes the given fields; a list is replaced whole
    Update {
        #[command(flatten)]
        key: KeyArg,
        #[command(flatten)]
        changes: FieldArgs<OfConsumer, false>,
    },
    /// Gives it a new secret and prints it
    RotateSecret {
        #[command(flatten)]
        key: KeyArg,
        /// The time the previous secret also verifies, such as 24h [default: not at all]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        grace: Option<Duration>,
        /// The new secret, @FILE, or - for standard input [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        secret: Option<SecretArg>,
        /// Make no new secret, but end the grace of the previous one now, and forget it: rejections no longer name it as the mistake
        #[arg(long, conflicts_with_all = ["grace", "secret"])]
        end_grace: bool,
    },
    /// Refuses its calls until it is enabled
    Disable(KeyArg),
    /// Accepts its calls again
    Enable(KeyArg),
    /// Prints a link by which its developer sees its rejected calls for 24 hours
    Link {
        #[command(flatten)]
        key: KeyArg,
        /// End its link, and make no new one
        #[arg(long)]
        revoke: bool,
    },
    /// Removes it with all its tokens; its key is never used again
    Remove {
        #[command(flatten)]
        key: KeyArg,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// Its key [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    key: Option<ConsumerKey>,
    /// Its secret, @FILE, or - for standard input [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    secret: Option<SecretArg>,
    #[command(flatten)]
    fields: FieldArgs<OfConsumer, true>,
}

/// A consumer by its key.
#[derive(Debug, clap::Args)]
pub(super) struct KeyArg {
    /// Its key
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: ConsumerKey,
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    let actor = &context.actor;
    match command {
        Command::Add(arguments) => add(context, arguments).await,
        Command::List {
            filter,
            unused_for,
            contact,
        } => {
            let manage = context.manage()?;
            let shown = contact.is_some().then_some("contact");
            let filter = RecordFilter {
                contact,
                ..filter.into()
            };
            let page = async |last: Option<&(Consumer, _)>, limit| {
                let after = last.map(|(last, _)| &last.key);
                let consumers = manage
                    .consumers(filter.clone(), unused_for, after, limit)
                    .await?;
                manage.views(consumers).await
            };
            let view = |(_, view): &(_, Map<String, Value>)| view.clone().into();
            context.list_with(shown, page, view).await
        }
        Command::Show(KeyArg { key }) => {
            let manage = context.manage()?;
            let (consumer, looked_up_at) = manage.consumer_found(&key).await?;
            let views = manage.views(vec![consumer]).await?.into_iter();
            let views = views.map(|(_, view)| view::with_lookup(view, looked_up_at));
            Ok(views.map(|view| context.show(&view)).collect())
        }
        Command::Update {
            key: KeyArg { key },
            changes,
        } => {
            let members = changes.members()?;
            warn(context, &members);
            let manage = context.manage()?;
            let changed = manage.patch_consumer(actor, &key, None, &members);
            show(context, &changed.await?)
        }
        Command::RotateSecret {
            key: KeyArg { key },
            end_grace: true,
            ..
        } => {
            let consumer = context.manage()?.end_grace(actor, &key, None).await?;
            show(context, &consumer)
        }
        Command::RotateSecret {
            key: KeyArg { key },
            grace,
            secret,
            ..
        } => {
            let secret = read_secret(secret, false)?;
            let manage = context.manage()?;
            let consumer = manage
                .rotate_secret(actor, &key, None, secret, grace)
                .await?;
            issued(context, &consumer)
        }
        Command::Disable(KeyArg { key }) => set_enabled(context, &key, false).await,
        Command::Enable(KeyArg { key }) => set_enabled(context, &key, true).await,
        Command::Link {
            key: KeyArg { key },
            revoke: true,
        } => {
            let revoked = context.manage()?.revoke_developer_link(actor, &key);
            revoked.await?;
            Ok(String::new())
        }
        Command::Link {
            key: KeyArg { key },
            ..
        } => make_link(context, &key).await,
        Command::Remove {
            key: KeyArg { key },
            confirmation,
        } => remove(context, &key, &confirmation).await,
    }
}

async fn add(context: &Context, arguments: AddArgs) -> Result<String, CommandError> {
    let AddArgs {
        key,
        secret,
        fields,
    } = arguments;
    let mut members = fields.members()?;
    warn(context, &members);
    let key = new_name("--key", key)?;
    members.extend(key.map(|key| ("key".to_owned(), json!(key))));
    let empty = Deviation::EmptySecret.as_str();
    let accepted = members.get("accept").and_then(Value::as_array);
    let may_be_empty = accepted.is_some_and(|accepted| accepted.contains(&json!(empty)));
    let secret = read_secret(secret, may_be_empty)?;
    let consumer = manage::new_consumer(members, secret, context.now)?;
    let registered = context.manage()?.add_consumer(&context.actor, consumer);
    issued(context, &registered.await?)
}

/// Makes the link of a developer, and prints its address.
async fn make_link(context: &Context, key: &ConsumerKey) -> Result<String, CommandError> {
    let made = context.manage()?.make_developer_link(&context.actor, key);
    let (link, config) = (made.await?, &context.config);
    let base = config.base_url(app::first(&config.listen.address));
    let url = link.url(&base.to_string(), &config.flow_paths());
    let view = json!({ "url": url, "expires_at": link.until });
    Ok(context.show(view.as_object().unwrap_or(&Map::new())))
}

async fn remove(
    context: &Context,
    key: &ConsumerKey,
    confirmation: &Confirmation,
) -> Result<String, CommandError> {
    let manage = context.manage()?;
    manage.consumer(key).await?;
    let question = format!("Remove the consumer {key:?} with all its tokens?");
    confirmation.ask(&question)?;
    manage.remove_consumer(&context.actor, key, None).await?;
    if context.config.lookup.url.is_some() {
        context.note(&format!(
            "the key {key:?} is unknown from now on, also where store.lookup.url finds it"
        ));
    }
    Ok(String::new())
}

/// Warns of what is valid and unwise.
fn warn(context: &Context, members: &Map<String, Value>) {
    let items = |name| {
        let items = members.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    };
    for callback in items("callbacks") {
        if let Ok(Some(warning)) = callback::check_registration(callback) {
            context.warn(&format!("--callback {callback}: {warning}"));
        }
    }
    let permissions = items("permissions").filter_map(|name| name.parse().ok());
    context.warn_of_undeclared("--permission", &Vec::from_iter(permissions));
}

async fn set_enabled(
    context: &Context,
    key: &ConsumerKey,
    enabled: bool,
) -> Result<String, CommandError> {
    let manage = context.manage()?;
    let set = manage.set_consumer_enabled(&context.actor, key, None, enabled);
    show(context, &set.await?)
}

fn show(context: &Context, consumer: &Consumer) -> Result<String, CommandError> {
    Ok(context.show(&context.manage()?.view(consumer)))
}

fn issued(context: &Context, consumer: &Consumer) -> Result<String, CommandError> {
    let view = context.manage()?.view(consumer);
    Ok(context.show(&view::with_secret(view, "secret", &consumer.secret)))
}

/// Reads a secret. It is checked here, before the store is opened.
fn read_secret(
    argument: Option<SecretArg>,
    may_be_empty: bool,
) -> Result<Option<Secret>, CommandError> {
    let Some(argument) = argument else {
        return Ok(None);
    };
    let secret = argument.read(&mut io::stdin())?;
    if secret.is_empty() && !may_be_empty {
        return Err(CommandError::from(ManageError::EmptySecret).about("--secret"));
    }
    check_secret(&secret).about("--secret")?;
    Ok(Some(secret))
}
