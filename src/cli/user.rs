//! `user`: local accounts.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    context::{self, CommandError, Context, OutputArgs, StoreArgs, StoreFile},
    output::Record,
    password::PasswordArgs,
};
use crate::{
    issue::{
        random,
        registration::{self, InvalidText},
    },
    names::UserId,
    store::{port::Added, record::User},
};

/// Manages local accounts.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
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
struct AddArgs {
    /// The name to log in with
    #[arg(value_name = "NAME", value_parser = login_name)]
    name: String,
    /// What pages call the user [default: the name]
    #[arg(long, value_parser = shown_name)]
    display_name: Option<String>,
    /// The id that the API sees, never used again [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    id: Option<UserId>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// The user meant.
#[derive(Debug, clap::Args)]
struct NameArg {
    /// The name to log in with
    name: String,
}

fn login_name(text: &str) -> Result<String, InvalidText> {
    registration::login_name(text).map(|()| text.to_owned())
}

fn shown_name(text: &str) -> Result<String, InvalidText> {
    registration::shown_name(text).map(|()| text.to_owned())
}

impl Args {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let file = match self.command {
            Command::Add(_) => StoreFile::MayBeMade,
            _ => StoreFile::IsThere,
        };
        context::run(&self.store, self.output.json, file, async |context| {
            execute(self.command, context).await
        })
    }
}

async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    match command {
        Command::Add(args) => add(args, context).await,
        Command::List => list(context).await,
        Command::Passwd {
            name: NameArg { name },
            password,
        } => {
            let user = find(context, &name).await?;
            let hash = password.hash()?;
            if !context.store()?.set_password(&user.id, hash).await? {
                return Err(unknown(&name));
            }
            audit("password_changed", &user);
            Ok(String::new())
        }
        Command::Disable(NameArg { name }) => set_enabled(context, &name, false).await,
        Command::Enable(NameArg { name }) => set_enabled(context, &name, true).await,
        Command::Remove(NameArg { name }) => {
            let user = find(context, &name).await?;
            let store = context.store()?;
            if !store.remove_user(&user.id, context.now).await? {
                return Err(unknown(&name));
            }
            audit("user_removed", &user);
            Ok(String::new())
        }
    }
}

async fn add(args: AddArgs, context: &Context) -> Result<String, CommandError> {
    let AddArgs {
        name,
        display_name,
        id,
        password,
    } = args;
    let name_taken = || {
        CommandError::Refused(format!(
            "there is a user {name:?}; choose another name (letters' case makes none)"
        ))
    };
    // Nobody should have to think of a password for nothing.
    if context.is_store_there() && context.store()?.user_by_name(&name).await?.is_some() {
        return Err(name_taken());
    }
    let is_id_given = id.is_some();
    let user = User {
        id: id.map_or_else(random_id, Ok)?,
        name: name.clone(),
        display_name,
        password_hash: Some(password.hash()?),
        enabled: true,
        created_at: context.now,
    };
    match context.store()?.add_user(user.clone()).await? {
        Added::Added => {
            audit("user_added", &user);
            Ok(context.show(Record::user(&user)))
        }
        Added::Taken if is_id_given => Err(CommandError::Refused(format!(
            "the id {:?} is taken or was before; give another --id, or none for a random one",
            user.id
        ))),
        Added::Taken => Err(name_taken()),
    }
}

async fn list(context: &Context) -> Result<String, CommandError> {
    /// So many are asked of the store at once.
    const PAGE: u32 = 500;

    let mut listing = context.listing();
    let mut after = None;
    loop {
        let page = context.store()?.users(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for user in &page {
            listing.push(&Record::user(user));
        }
    }
    Ok(listing.finish())
}

async fn set_enabled(context: &Context, name: &str, enabled: bool) -> Result<String, CommandError> {
    let user = find(context, name).await?;
    let store = context.store()?;
    if !store
        .set_user_enabled(&user.id, enabled, context.now)
        .await?
    {
        return Err(unknown(name));
    }
    audit(
        if enabled {
            "user_enabled"
        } else {
            "user_disabled"
        },
        &user,
    );
    Ok(context.show(Record::user(&User { enabled, ..user })))
}

/// Finds a user by login name.
///
/// # Errors
/// [`CommandError::Refused`] if there is none.
pub(super) async fn find(context: &Context, name: &str) -> Result<User, CommandError> {
    let found = context.store()?.user_by_name(name).await?;
    found.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CommandError {
    CommandError::Refused(format!(
        "there is no user {name:?}; list them with countersign user list"
    ))
}

fn random_id() -> Result<UserId, CommandError> {
    // What is drawn is of the alphabet of ids.
    random::identifier()?
        .parse()
        .map_err(|error| CommandError::Refused(format!("the id that was drawn is none: {error}")))
}

fn audit(event: &'static str, user: &User) {
    tracing::info!(target: "audit", event, by = "command", user = %user.id);
}
