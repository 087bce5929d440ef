//! `user`: local accounts.

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{
    context::{CommandError, Confirmation, Context, FilterArgs},
    password::PasswordArgs,
};
use crate::{
    base::names::UserId,
    operator::manage,
    provider::issue::registration,
    records::store::record::{Session, User},
    run::app::services,
};

/// The commands for local accounts.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes an account
    Add(AddArgs),
    /// Lists all accounts
    List(FilterArgs),
    /// Shows an account
    Show(NameArg),
    /// Changes the given fields
    Update {
        #[command(flatten)]
        name: NameArg,
        #[command(flatten)]
        changes: UpdateArgs,
    },
    /// Sets a new password and ends the user's sessions
    Passwd {
        #[command(flatten)]
        name: NameArg,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Ends sessions and access tokens, and refuses logins until enabled
    Disable(NameArg),
    /// Lets the user log in again; ended sessions and tokens stay ended
    Enable(NameArg),
    /// Removes the account for good, with its sessions and access tokens
    Remove {
        #[command(flatten)]
        name: NameArg,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Lists the open sessions, the newest first
    Sessions(NameArg),
    /// Ends all sessions; access tokens stay valid
    EndSessions(NameArg),
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The name to log in with
    #[arg(value_name = "NAME", value_parser = registration::login_name)]
    name: String,
    /// The name of the user on pages [default: the name]
    #[arg(long, value_parser = registration::shown_name)]
    display_name: Option<String>,
    /// The id that the API sees, never used again [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    id: Option<UserId>,
    #[command(flatten)]
    password: PasswordArgs,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(super) struct UpdateArgs {
    /// The name to log in with
    #[arg(long = "name", value_name = "NAME", value_parser = registration::login_name)]
    login_name: Option<String>,
    /// The name of the user on pages
    #[arg(long, value_parser = registration::shown_name)]
    display_name: Option<String>,
    /// Let pages show the name to log in with
    #[arg(long, conflicts_with = "display_name")]
    no_display_name: bool,
}

impl UpdateArgs {
    /// The given fields, as a JSON Merge Patch (RFC 7396).
    fn members(self) -> Map<String, Value> {
        let display_name = match self.no_display_name {
            true => Some(Value::Null),
            false => self.display_name.map(Value::from),
        };
        let name = self.login_name.map(Value::from);
        let members = [("name", name), ("display_name", display_name)].into_iter();
        members
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

/// A user by name or id.
#[derive(Debug, clap::Args)]
pub(super) struct NameArg {
    /// The name to log in with, or the id
    #[arg(allow_hyphen_values = true)]
    name: String,
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    let actor = &context.actor;
    match command {
        Command::Add(args) => add(args, context).await,
        Command::List(filter) => {
            let (manage, filter) = (context.manage()?, filter.into());
            let page = async |last: Option<&User>, limit| {
                manage
                    .users(&filter, last.map(|last| &last.id), limit)
                    .await
            };
            context.list(page, |user| json!(user)).await
        }
        Command::Show(NameArg { name }) => {
            let user = context.manage()?.user(&name).await?;
            Ok(context.show(&user))
        }
        Command::Update {
            name: NameArg { name },
            changes,
        } => {
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            let members = changes.members();
            let user = manage.patch_user(actor, &id, None, &members).await?;
            Ok(context.show(&user))
        }
        Command::Sessions(NameArg { name }) => {
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            let page = async |last: Option<&Session>, _| match last {
                None => manage.sessions(&id).await,
                Some(_) => Ok(Vec::new()),
            };
            context.list(page, |session| json!(session)).await
        }
        Command::EndSessions(NameArg { name }) => {
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            manage.end_sessions(actor, &id, None).await?;
            Ok(String::new())
        }
        Command::Passwd {
            name: NameArg { name },
            password,
        } => {
            let manage = context.manage()?;
            let user = manage.user(&name).await?;
            let hash = password.hash(context, &user)?;
            manage.set_password(actor, &user, None, hash).await?;
            Ok(String::new())
        }
        Command::Disable(NameArg { name }) => set_enabled(context, &name, false).await,
        Command::Enable(NameArg { name }) => set_enabled(context, &name, true).await,
        Command::Remove {
            name: NameArg { name },
            confirmation,
        } => {
            let manage = context.manage()?;
            let user = manage.user(&name).await?;
            let name = &user.name;
            confirmation.ask(&format!(
                "Remove the user {name:?} with sessions and tokens?"
            ))?;
            manage.remove_user(actor, &user, None).await?;
            Ok(String::new())
        }
    }
}

async fn add(args: AddArgs, context: &Context) -> Result<String, CommandError> {
    // Before the password is asked for.
    if !services::is_store_missing(&context.config) {
        context.manage()?.check_name(&args.name).await?;
    }
    let mut user = manage::new_user(args.id, args.name, args.display_name, context.now)?;
    user.password_hash = Some(args.password.hash(context, &user)?);
    context.manage()?.add_user(&context.actor, &user).await?;
    Ok(context.show(&user))
}

async fn set_enabled(context: &Context, name: &str, enabled: bool) -> Result<String, CommandError> {
    let manage = context.manage()?;
    let user = manage.user(name).await?;
    let user = manage
        .set_user_enabled(&context.actor, &user.id, None, enabled)
        .await?;
    Ok(context.show(&user))
}
