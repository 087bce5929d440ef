//! `consumer`: the life of a consumer.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use clap::Subcommand;
use serde_json::{Map, Value, json};
use strum::VariantArray as _;

use crate::{
    base::{
        clock::parse_duration,
        file::new_file::create_new,
        secret::Secret,
        text::names::{ConsumerKey, Permission},
    },
    cli::{
        arguments::{
            field_options::{ConsumerRecord, FieldArgs},
            named::ConsumerArg,
            secret_source::SecretArg,
        },
        context::{
            About as _, CommandError, Confirmation, Context, FilterArgs, RecordOrder, new_name,
        },
        service::admin_api::AdminApi,
    },
    oauth::Deviation,
    operator::manage::{self, ManageError, check_secret, view},
    provider::{collection::Tool, endpoints::exchange::after_rotation, issue::callback},
    records::values::{record::Consumer, use_cases::RecordFilter},
    request::verify::settings::Enforcement,
    run::app::{self, live},
    telemetry::calls::facts::Door,
};

/// The commands for consumers.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Registers a consumer and prints its key and secret
    Add(AddArgs),
    /// Lists all consumers
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// Only those registered at least this long ago, such as 90d, that signed no call since
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        unused_for: Option<Duration>,
        /// Only those that signed a call in this time, with their contacts, and the calls of the last day by signature and by
        /// Bearer token
        #[arg(long, value_name = "DURATION", value_parser = parse_duration, num_args = 0..=1, default_missing_value = "30d")]
        still_signing: Option<Duration>,
        /// Only those on which an operator has to decide: users ask for them, or for other callbacks
        #[arg(long, conflicts_with_all = ["search", "enabled", "unused_for", "contact", "still_signing"])]
        waiting: bool,
        /// Only those with a contact, or with this text in it
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        contact: Option<String>,
        /// The order; "rejected" asks the running process for the calls that it rejected, the most first
        #[arg(long, value_name = "ORDER", default_value = "key")]
        sort: Order,
    },
    /// Shows a consumer
    Show(ConsumerArg),
    /// Changes the given fields; a list is replaced whole
    Update {
        #[command(flatten)]
        which: ConsumerArg,
        #[command(flatten)]
        changes: FieldArgs<ConsumerRecord, false>,
    },
    /// Gives it a new secret and prints it
    RotateSecret {
        #[command(flatten)]
        which: ConsumerArg,
        /// The time the previous secret also verifies, such as 24h [default: not at all]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        grace: Option<Duration>,
        /// The new secret, @FILE, or - for standard input [default: a random one]
        #[arg(long, allow_hyphen_values = true)]
        secret: Option<SecretArg>,
        /// Make no new secret, but end the grace of the previous one now, and forget it: rejections no longer name it as
        /// the mistake
        #[arg(long, conflicts_with_all = ["grace", "secret"])]
        end_grace: bool,
    },
    /// Refuses its calls until it is enabled
    Disable(ConsumerArg),
    /// Accepts its calls again
    Enable(ConsumerArg),
    /// Enables one that a user has asked for, or gives it the callbacks that the user asks for
    Approve {
        #[command(flatten)]
        which: ConsumerArg,
        /// A callback that it will have, as it was listed; needed for each, since the user may ask for others meanwhile; may be
        /// repeated
        #[arg(long = "callback", value_name = "CALLBACK")]
        callbacks: Vec<String>,
    },
    /// Declines what a user has asked for
    Decline {
        #[command(flatten)]
        which: ConsumerArg,
        /// A sentence for the user
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Prints a link by which its developer sees its rejected calls for 24 hours
    Link {
        #[command(flatten)]
        which: ConsumerArg,
        /// End its link, and make no new one
        #[arg(long)]
        revoke: bool,
    },
    /// Removes it with all its tokens; its key is never used again
    Remove {
        #[command(flatten)]
        which: ConsumerArg,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(in crate::cli) enum Order {
    Key,
    Name,
    LastUsed,
    Rejected,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AddArgs {
    /// Its key [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    key: Option<ConsumerKey>,
    /// Its secret, @FILE, or - for standard input [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    secret: Option<SecretArg>,
    /// Write collections of requests for Bruno and Postman into this directory, without any secret
    #[arg(long, value_name = "DIRECTORY")]
    collections: Option<PathBuf>,
    #[command(flatten)]
    fields: FieldArgs<ConsumerRecord, true>,
}

pub(in crate::cli) async fn execute(
    command: Command,
    context: &Context,
) -> Result<String, CommandError> {
    match command {
        Command::Add(arguments) => add(context, arguments).await,
        Command::List {
            filter,
            unused_for,
            still_signing,
            contact,
            sort,
            waiting,
        } => {
            let manage = context.manage()?;
            let shown = match (still_signing, &contact) {
                _ if waiting => &["contact", "permissions", "callbacks", "asked_callbacks"][..],
                (Some(_), _) => &["contact", "last_signed_at"],
                (None, Some(_)) => &["contact"],
                (None, None) => &[],
            };
            let filter = RecordFilter {
                contact,
                signed_since: still_signing.map(|within| context.now.before(within)),
                unused_since: manage.unused_since(unused_for),
                ..filter.into()
            };
            let page = async |last: Option<&(Consumer, _)>, limit| {
                let after = last.map(|(last, _)| &last.key);
                let consumers = match waiting {
                    true => manage.store.undecided_consumers(after, limit).await,
                    false => manage.store.consumers(&filter, after, limit).await,
                };
                manage.views(consumers?).await
            };
            let rejected = match sort {
                Order::Rejected => rejected(context)?,
                _ => HashMap::new(),
            };
            let doors = match still_signing {
                Some(within) => doors(context, within),
                None => HashMap::new(),
            };
            let view = |(consumer, view): &(Consumer, Map<String, Value>)| {
                let mut view = view.clone();
                if still_signing.is_some() {
                    let calls = doors.get(consumer.key.as_str());
                    for door in [Door::Bearer, Door::Signature] {
                        let door: &str = door.into();
                        let count = calls.map_or(&Value::Null, |calls| &calls[door]);
                        view.shift_insert(2, format!("{door}_calls"), count.clone());
                    }
                }
                if sort == Order::Rejected {
                    let count = rejected.get(consumer.key.as_str());
                    view.shift_insert(2, "rejected".to_owned(), json!(count.unwrap_or(&0)));
                }
                Value::Object(view)
            };
            let order: Option<RecordOrder> = match sort {
                Order::Key => None,
                Order::Name => Some(|one, other| text(one, "name").cmp(&text(other, "name"))),
                // Times of one form have the order of their texts.
                Order::LastUsed => {
                    Some(|one, other| text(other, "last_used_at").cmp(&text(one, "last_used_at")))
                }
                Order::Rejected => {
                    Some(|one, other| other["rejected"].as_u64().cmp(&one["rejected"].as_u64()))
                }
            };
            context.list_with((shown, order), page, view).await
        }
        Command::Show(which) => {
            let manage = context.manage()?;
            let key = context.consumer(&which.consumer).await?.key;
            let (consumer, looked_up_at) = manage.consumer_found(&key).await?;
            let views = manage.views(vec![consumer]).await?.into_iter();
            let views = views.map(|(_, view)| view::with_lookup(view, looked_up_at));
            Ok(views.map(|view| context.show(&view)).collect())
        }
        Command::Update { which, changes } => {
            let members = changes.members()?;
            warn(context, &members);
            let key = context.consumer(&which.consumer).await?.key;
            let operator = context.operator()?;
            let changed = operator.patch_consumer(&key, None, &members).await?;
            let names = Vec::from_iter(members.keys().map(String::as_str));
            let text = format!("Changed {}: {}.", named(&changed), names.join(", "));
            told(context, &changed, &text)
        }
        Command::RotateSecret {
            which,
            end_grace: true,
            ..
        } => {
            let key = context.consumer(&which.consumer).await?.key;
            let consumer = context.operator()?.end_grace(&key, None).await?;
            let text = format!(
                "The previous secret of {} is no longer accepted.",
                named(&consumer)
            );
            told(context, &consumer, &text)
        }
        Command::RotateSecret {
            which,
            grace,
            secret,
            ..
        } => {
            let secret = read_secret(secret, false)?;
            let key = context.consumer(&which.consumer).await?.key;
            let operator = context.operator()?;
            let rotated = operator.rotate_secret(&key, None, secret, grace);
            let consumer = rotated.await?;
            let previous = match consumer.graced_secret(context.now) {
                Some((_, until)) => format!("the previous one works until {until}"),
                None => "the previous one is no longer accepted".to_owned(),
            };
            let text = format!(
                "{} has a new secret, shown this once; {previous}.",
                named(&consumer)
            );
            let exchange = &context.config.exchange;
            if exchange.audience.is_some() {
                let names_token = context.config.bearer.own;
                context.note(&after_rotation(exchange.ttl, names_token, &consumer.key));
            }
            issued(context, &consumer, &text)
        }
        Command::Disable(which) => set_enabled(context, &which, false).await,
        Command::Enable(which) => set_enabled(context, &which, true).await,
        Command::Approve { which, callbacks } => {
            let key = context.consumer(&which.consumer).await?.key;
            let operator = context.operator()?;
            let approved = operator.approve_consumer(&key, None, Some(&callbacks));
            let approved = approved.await?;
            let list = |all: Vec<&str>| match &all[..] {
                [] => "none".to_owned(),
                all => all.join(" "),
            };
            let callbacks = approved.callbacks.iter().map(String::as_str);
            let permissions = approved.permissions.iter().map(Permission::as_str);
            let text = format!(
                "Approved {}. Callbacks: {}. Permissions: {}.{}",
                named(&approved),
                list(callbacks.collect()),
                list(permissions.collect()),
                match approved.enabled {
                    true => "",
                    false => " It stays disabled, until you enable it.",
                }
            );
            told(context, &approved, &text)
        }
        Command::Decline { which, reason } => {
            let key = context.consumer(&which.consumer).await?.key;
            let operator = context.operator()?;
            let declined = operator.decline_consumer(&key, None, &reason).await?;
            let text = format!("Declined what was asked for {}.", named(&declined));
            told(context, &declined, &text)
        }
        Command::Link {
            which,
            revoke: true,
        } => {
            let consumer = context.consumer(&which.consumer).await?;
            let operator = context.operator()?;
            operator.revoke_developer_link(&consumer.key).await?;
            let consumer = named(&consumer);
            Ok(context.done(&format!("Ended the link for the developer of {consumer}.")))
        }
        Command::Link { which, .. } => make_link(context, &which).await,
        Command::Remove {
            which,
            confirmation,
        } => remove(context, &which, &confirmation).await,
    }
}

/// The rejected calls of each consumer, in the running process.
fn rejected(context: &Context) -> Result<HashMap<String, u64>, CommandError> {
    let api = AdminApi::new(&context.config, "")?;
    let mut counts = HashMap::new();
    for reason in api.items("/v1/rejections/summary")? {
        let (key, count) = (reason["consumer"].as_str(), reason["count"].as_u64());
        *counts
            .entry(key.unwrap_or_default().to_owned())
            .or_default() += count.unwrap_or(0);
    }
    Ok(counts)
}

/// The calls of the last day by their doors of each consumer that has signed, in the running process. They are left out where
/// it cannot
/// be asked: what the store knows is the answer.
fn doors(context: &Context, within: Duration) -> HashMap<String, Value> {
    let page = format!("/v1/consumers?signed_within={}s", within.as_secs());
    let asked = AdminApi::new(&context.config, "").and_then(|api| api.items(&page));
    let asked = asked.inspect_err(|error| {
        context.note(&format!("the doors of their calls are not known: {error}"));
    });
    let consumers = asked.unwrap_or_default().into_iter();
    let doors = consumers.map(|mut consumer| {
        let calls = consumer["calls_in_day"].take();
        (
            consumer["key"].as_str().unwrap_or_default().to_owned(),
            calls,
        )
    });
    doors.collect()
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_lowercase()
}

async fn add(context: &Context, arguments: AddArgs) -> Result<String, CommandError> {
    let AddArgs {
        key,
        secret,
        collections,
        fields,
    } = arguments;
    let mut members = fields.members()?;
    warn(context, &members);
    if !context.config.sunset.new_consumers {
        context.warn(
            "sunset.new_consumers is false: register only what is to use OAuth 2, for new consumers are not to sign",
        );
    }
    let key = new_name("--key", key)?;
    members.extend(key.map(|key| ("key".to_owned(), json!(key))));
    let empty = Deviation::EmptySecret.as_str();
    let accepted = members.get("accept").and_then(Value::as_array);
    let may_be_empty = accepted.is_some_and(|accepted| accepted.contains(&json!(empty)));
    let secret = read_secret(secret, may_be_empty)?;
    let consumer = manage::new_consumer(members, secret, context.now)?;
    let registered = context.operator()?.add_consumer(consumer).await?;
    if let Some(directory) = collections {
        let rules = live::collections(&context.config, app::first(&context.config.listen.address));
        for tool in Tool::VARIANTS {
            let file = rules.collection(*tool, &registered);
            let path = directory.join(file.file_name);
            let written = create_new(&path).and_then(|mut new| new.write_all(&file.content));
            // The secret is shown this once, whatever becomes of the file.
            match written {
                Ok(()) => context.note(&format!("wrote {}", path.display())),
                Err(error) => context.warn(&format!("--collections: {}: {error}", path.display())),
            }
        }
    }
    let text = format!(
        "Registered {}. Its secret is shown this once.",
        registered.name
    );
    issued(context, &registered, &text)
}

/// Makes the link of a developer, and prints its address.
async fn make_link(context: &Context, which: &ConsumerArg) -> Result<String, CommandError> {
    let consumer = context.consumer(&which.consumer).await?;
    let operator = context.operator()?;
    let link = operator.make_developer_link(&consumer.key).await?;
    let config = &context.config;
    let base = config.base_url(app::first(&config.listen.address));
    let url = link.url(&base.to_string(), &config.flow_paths());
    let view = json!({ "url": url, "expires_at": link.until });
    let until = link.until;
    let text = format!(
        "A link for the developer of {}, until {until}:\n{url}",
        named(&consumer)
    );
    Ok(context.told(&view, &text))
}

async fn remove(
    context: &Context,
    which: &ConsumerArg,
    confirmation: &Confirmation,
) -> Result<String, CommandError> {
    let consumer = context.consumer(&which.consumer).await?;
    let (key, name) = (&consumer.key, named(&consumer));
    confirmation.ask(&format!("Remove the consumer {name} with all its tokens?"))?;
    context.operator()?.remove_consumer(key, None).await?;
    if context.config.lookup.url.is_some() {
        context.note(&format!(
            "the key {key:?} is unknown from now on, also where store.lookup.url finds it"
        ));
    }
    Ok(context.done(&format!("Removed {name} with all its tokens.")))
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
    which: &ConsumerArg,
    enabled: bool,
) -> Result<String, CommandError> {
    let key = context.consumer(&which.consumer).await?.key;
    let operator = context.operator()?;
    let set = operator.set_consumer_enabled(&key, None, enabled).await?;
    let observes = context.config.signature.enforcement == Enforcement::Observe;
    let effect = match enabled {
        true => "its calls are accepted again",
        false if observes && !set.enforce => {
            "its token calls get 401; its calls to the API still pass, because signatures are only observed"
        }
        false => "its calls get 401; its tokens work again once it is enabled",
    };
    let done = if enabled { "Enabled" } else { "Disabled" };
    told(context, &set, &format!("{done} {}: {effect}.", named(&set)))
}

/// A consumer in a sentence: its name, and the key.
pub(in crate::cli) fn named(consumer: &Consumer) -> String {
    format!("{} ({})", consumer.name, consumer.key)
}

fn told(context: &Context, consumer: &Consumer, text: &str) -> Result<String, CommandError> {
    Ok(context.told(&context.manage()?.view(consumer), text))
}

/// Shows a new secret.
fn issued(context: &Context, consumer: &Consumer, text: &str) -> Result<String, CommandError> {
    let view = context.manage()?.view(consumer);
    let view = view::with_secret(view, "secret", &consumer.secret);
    Ok(context.told_with(&view, text, &["key", "secret"]))
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
