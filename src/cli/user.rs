//! `user`: local accounts.

use std::{
    io::{self, Read as _},
    process::ExitCode,
};

use clap::Subcommand;

use super::{
    context::{self, CommandError, Context, StoreArgs},
    output::{Record, print_list},
};
use crate::{
    issue::random,
    login::{MAX_NAME_BYTES, password},
    names::UserId,
    secret::Secret,
    store::{Store as _, port::Added, record::User},
};

/// Manages local accounts.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes an account
    Add {
        /// The name to log in with
        name: String,
        /// What pages call the user
        #[arg(long)]
        display_name: Option<String>,
        /// The id that the API sees, never used again [default: a random one]
        #[arg(long)]
        id: Option<UserId>,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Lists all accounts
    List,
    /// Sets a new password and ends the user's sessions
    Passwd {
        /// The name to log in with
        name: String,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Ends sessions and access tokens, and refuses logins until enabled
    Disable {
        /// The name to log in with
        name: String,
    },
    /// Lets the user log in again; ended sessions and tokens stay ended
    Enable {
        /// The name to log in with
        name: String,
    },
    /// Ends sessions and access tokens, and removes the account for good
    Remove {
        /// The name to log in with
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct PasswordArgs {
    /// Read the password from standard input rather than ask on the terminal
    #[arg(long)]
    password_stdin: bool,
}

impl Args {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let Self { command, store } = self;
        let json = store.json;
        context::run(&store, |context| async move {
            execute(command, &context, json).await
        })
    }
}

async fn execute(command: Command, context: &Context, json: bool) -> Result<(), CommandError> {
    let store = &context.store;
    match command {
        Command::Add {
            name,
            display_name,
            id,
            password,
        } => {
            check_name(&name)?;
            if display_name
                .as_ref()
                .is_some_and(|name| name.chars().any(char::is_control) || name.len() > 255)
            {
                return Err(CommandError::Usage(
                    "--display-name: at most 255 characters without control characters".to_owned(),
                ));
            }
            let id = id.map_or_else(random_id, Ok)?;
            let user = User {
                id,
                name,
                display_name,
                password_hash: Some(password.hash()?),
                enabled: true,
                created_at: context.now,
            };
            match store.add_user(user.clone()).await? {
                Added::Added => Ok(Record::user(&user).print(json)?),
                Added::Taken => Err(CommandError::Refused(format!(
                    "the name {:?} or the id {:?} is taken, or a removed user had that id; choose others",
                    user.name, user.id
                ))),
            }
        }
        Command::List => {
            let mut records = Vec::new();
            let mut after = None;
            loop {
                let page = store.users(after.as_ref(), PAGE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.id.clone());
                records.extend(page.iter().map(Record::user));
            }
            Ok(print_list(records, json)?)
        }
        Command::Passwd { name, password } => {
            let user = find(context, &name).await?;
            let hash = password.hash()?;
            if store.set_password(&user.id, hash).await? {
                Ok(())
            } else {
                Err(unknown(&name))
            }
        }
        Command::Disable { name } => set_enabled(context, &name, false, json).await,
        Command::Enable { name } => set_enabled(context, &name, true, json).await,
        Command::Remove { name } => {
            let user = find(context, &name).await?;
            if store.remove_user(&user.id, context.now).await? {
                Ok(())
            } else {
                Err(unknown(&name))
            }
        }
    }
}

/// So many records are asked of the store at once.
const PAGE: u32 = 500;

async fn set_enabled(
    context: &Context,
    name: &str,
    enabled: bool,
    json: bool,
) -> Result<(), CommandError> {
    let user = find(context, name).await?;
    if !context
        .store
        .set_user_enabled(&user.id, enabled, context.now)
        .await?
    {
        return Err(unknown(name));
    }
    Ok(Record::user(&User { enabled, ..user }).print(json)?)
}

/// Finds a user by login name.
///
/// # Errors
/// [`CommandError::Refused`] if there is none.
pub(super) async fn find(context: &Context, name: &str) -> Result<User, CommandError> {
    context
        .store
        .user_by_name(name)
        .await?
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CommandError {
    CommandError::Refused(format!(
        "there is no user {name:?}; list them with countersign user list"
    ))
}

fn check_name(name: &str) -> Result<(), CommandError> {
    if name.trim().is_empty() || name.chars().any(char::is_control) || name.len() > MAX_NAME_BYTES {
        let problem = format!("NAME: 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(CommandError::Usage(problem));
    }
    Ok(())
}

fn random_id() -> Result<UserId, CommandError> {
    let drawn = random::identifier().map_err(io::Error::other)?;
    drawn
        .parse()
        .map_err(|error| CommandError::System(io::Error::other(error)))
}

impl PasswordArgs {
    /// Reads the password and hashes it.
    fn hash(&self) -> Result<Secret, CommandError> {
        let password = if self.password_stdin {
            from_stdin()?
        } else {
            from_terminal()?
        };
        password::hash(&password).map_err(|error| CommandError::Usage(error.to_string()))
    }
}

/// All of standard input, but for one final newline.
fn from_stdin() -> Result<Secret, CommandError> {
    let mut bytes = Vec::new();
    // One byte more than a password and its newline can have is enough to refuse it.
    let limit = (password::MAX_BYTES + 3) as u64;
    io::stdin().take(limit).read_to_end(&mut bytes)?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
    }
    Ok(Secret::from(bytes))
}

fn from_terminal() -> Result<Secret, CommandError> {
    let ask = |prompt| {
        let answer = rpassword::prompt_password(prompt);
        answer.map(Secret::from).map_err(|error| {
            CommandError::Usage(format!(
                "no terminal to ask on ({error}); use --password-stdin"
            ))
        })
    };
    let password = ask("Password: ")?;
    if password != ask("Again: ")? {
        return Err(CommandError::Refused(
            "the two passwords differ; try again".to_owned(),
        ));
    }
    Ok(password)
}
