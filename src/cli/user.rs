//! `user`: local accounts.

use clap::Subcommand;

use super::{
    context::{CommandError, Context},
    output::Members,
    password::PasswordArgs,
};
use crate::{
    app::services,
    issue::{random, registration},
    names::UserId,
    store::{port::Added, record::User},
    telemetry::audit::CommandRecord,
};

/// What to do with local accounts.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes an account
    Add(AddArgs),
    /// Lists all accounts
    List,
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
    Remove(NameArg),
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
    /// The name to log in with
    name: String,
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    match command {
        Command::Add(args) => add(args, context).await,
        Command::List => list(context).await,
        Command::Passwd {
            name: NameArg { name },
            password,
        } => {
            let user = find(context, &name).await?;
            let hash = password.hash(context, &user)?;
            let is_done = context.store()?.set_password(&user.id, hash).await?;
            done(context, is_done, "password_changed", &user).await?;
            Ok(String::new())
        }
        Command::Disable(NameArg { name }) => set_enabled(context, &name, false).await,
        Command::Enable(NameArg { name }) => set_enabled(context, &name, true).await,
        Command::Remove(NameArg { name }) => {
            let user = find(context, &name).await?;
            let store = context.store()?;
            let is_done = store.remove_user(&user.id, context.now).await?;
            done(context, is_done, "user_removed", &user).await?;
            Ok(String::new())
        }
    }
}

async fn add(args: AddArgs, context: &Context) -> Result<String, CommandError> {
    let name = args.name;
    let name_taken = || {
        CommandError::failed(format!(
            "there is a user {name:?}; choose another name (upper and lower case count as the same)"
        ))
    };
    // Before the password is asked for.
    if !services::is_store_missing(&context.config)
        && context.store()?.user_by_name(&name).await?.is_some()
    {
        return Err(name_taken());
    }
    let is_id_given = args.id.is_some();
    let mut user = User {
        id: args.id.map_or_else(random::name, Ok)?,
        name: name.clone(),
        display_name: args.display_name,
        password_hash: None,
        enabled: true,
        created_at: context.now,
    };
    user.password_hash = Some(args.password.hash(context, &user)?);
    match context.store()?.add_user(user.clone()).await? {
        Added::Added => {
            done(context, true, "user_added", &user).await?;
            Ok(context.show(Members::user(&user)))
        }
        Added::Taken if is_id_given => Err(CommandError::failed(format!(
            "the id {:?} is taken or was before; give another --id, or none for a random one",
            user.id
        ))),
        Added::Taken => Err(name_taken()),
    }
}

async fn list(context: &Context) -> Result<String, CommandError> {
    let store = context.store()?;
    let page =
        async |last: Option<&User>, limit| store.users(last.map(|last| &last.id), limit).await;
    context.list(page, Members::user).await
}

async fn set_enabled(context: &Context, name: &str, enabled: bool) -> Result<String, CommandError> {
    let user = find(context, name).await?;
    let store = context.store()?;
    let event = match enabled {
        true => "user_enabled",
        false => "user_disabled",
    };
    let is_done = store.set_user_enabled(&user.id, enabled, context.now);
    done(context, is_done.await?, event, &user).await?;
    Ok(context.show(Members::user(&User { enabled, ..user })))
}

/// Finds a user by login name.
///
/// # Errors
/// There is none.
pub(super) async fn find(context: &Context, name: &str) -> Result<User, CommandError> {
    let found = context.store()?.user_by_name(name).await?;
    found.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CommandError {
    CommandError::failed(format!(
        "there is no user {name:?}; list them with countersign user list"
    ))
}

/// Records the event, unless the user was removed since it was looked up.
async fn done(
    context: &Context,
    is_done: bool,
    event: &str,
    user: &User,
) -> Result<(), CommandError> {
    if !is_done {
        return Err(unknown(&user.name));
    }
    let about = CommandRecord {
        event: event.to_owned(),
        user: Some(user.id.to_string()),
        ..CommandRecord::default()
    };
    context.audit(about).await;
    Ok(())
}
