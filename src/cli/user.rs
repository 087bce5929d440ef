//! `user`: local accounts.

use clap::Subcommand;
use serde_json::json;

use super::{
    context::{CommandError, Confirmation, Context},
    password::PasswordArgs,
};
use crate::{
    app::services,
    issue::registration,
    manage,
    names::UserId,
    store::{port::RecordFilter, record::User},
};

/// The commands for local accounts.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes an account
    Add(AddArgs),
    /// Lists all accounts
    List,
    /// Shows an account
    Show(NameArg),
    /// Sets a new password and ends the user's sessions
    Passwd {
        #[command(flatten)]
        name: NameArg,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Ends sessions and access tokens, and refuses logins until enabled
    Disable(NameArg),
    /// Lets the user log in again; what disabling ended stays ended
    Enable(NameArg),
    /// Removes the account for good, with its sessions and access tokens
    Remove {
        #[command(flatten)]
        name: NameArg,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The name to log in with
    #[arg(value_name = "NAME", value_parser = registration::login_name)]
    name: String,
    /// What pages call the user [default: the name]
    #[arg(long, value_parser = registration::shown_name)]
    display_name: Option<String>,
    /// The id that the API sees, never used again [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    id: Option<UserId>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// The user meant.
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
        Command::List => {
            let manage = context.manage()?;
            let page = async |last: Option<&User>, limit| {
                let filter = RecordFilter::default();
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
        .set_user_enabled(&context.actor, user, enabled)
        .await?;
    Ok(context.show(&user))
}
