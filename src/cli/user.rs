//! `user`: local accounts.

use clap::Subcommand;
use serde_json::json;

use super::{
    context::{CommandError, Confirmation, Context, FilterArgs, new_name},
    field_options::{FieldArgs, OfUser},
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
        changes: FieldArgs<OfUser, false>,
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
    /// Ends the pauses after failed logins, so that the user can try again
    Unlock(NameArg),
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The name to log in with
    #[arg(value_name = "NAME", value_parser = registration::login_name)]
    name: String,
    #[command(flatten)]
    fields: FieldArgs<OfUser, true>,
    /// The id that the API sees, never used again [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    id: Option<UserId>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// A user by name or id.
#[derive(Debug, clap::Args)]
pub(super) struct NameArg {
    /// The name to log in with, or the id
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    user: String,
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
        Command::Show(NameArg { user: name }) => {
            let user = context.manage()?.user(&name).await?;
            Ok(context.show(&user))
        }
        Command::Update {
            name: NameArg { user: name },
            changes,
        } => {
            let members = changes.members()?;
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            let user = manage.patch_user(actor, &id, None, &members).await?;
            Ok(context.show(&user))
        }
        Command::Sessions(NameArg { user: name }) => {
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            let page = async |last: Option<&Session>, _| match last {
                None => manage.sessions(&id).await,
                Some(_) => Ok(Vec::new()),
            };
            context.list(page, |session| json!(session)).await
        }
        Command::EndSessions(NameArg { user: name }) => {
            let manage = context.manage()?;
            let id = manage.user(&name).await?.id;
            manage.end_sessions(actor, &id, None).await?;
            Ok(String::new())
        }
        Command::Unlock(NameArg { user: name }) => {
            let manage = context.manage()?;
            let user = manage.user(&name).await?;
            let report = services::throttle(&context.config)?.report_of_end(&user.name);
            manage.end_login_pauses(actor, &user.id, report).await?;
            Ok(String::new())
        }
        Command::Passwd {
            name: NameArg { user: name },
            password,
        } => {
            let manage = context.manage()?;
            let user = manage.user(&name).await?;
            let hash = password.hash(context, &user)?;
            manage.set_password(actor, &user, None, hash).await?;
            Ok(String::new())
        }
        Command::Disable(NameArg { user: name }) => set_enabled(context, &name, false).await,
        Command::Enable(NameArg { user: name }) => set_enabled(context, &name, true).await,
        Command::Remove {
            name: NameArg { user: name },
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
    let mut members = args.fields.members()?;
    members.insert("name".to_owned(), args.name.into());
    let id = new_name("--id", args.id)?;
    members.extend(id.map(|id| ("id".to_owned(), json!(id))));
    let mut user = manage::new_user(members, context.now)?;
    // Before the password is asked for.
    if !services::is_store_missing(&context.config) {
        context.manage()?.check_name(&user.name).await?;
    }
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
