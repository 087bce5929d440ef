//! `user`: local accounts.

use clap::Subcommand;
use serde_json::json;

use crate::{
    base::text::{counted, names::UserId},
    cli::{
        arguments::{
            field_options::{FieldArgs, UserRecord},
            named::UserArg,
            password::PasswordArgs,
        },
        context::{CommandError, Confirmation, Context, FilterArgs, new_name},
    },
    operator::manage,
    provider::issue::registration,
    records::values::record::{Session, User},
    run::app::services,
};

/// The commands for local accounts.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Makes an account
    Add(AddArgs),
    /// Lists all accounts
    List(FilterArgs),
    /// Shows an account
    Show(UserArg),
    /// Changes the given fields
    Update {
        #[command(flatten)]
        which: UserArg,
        #[command(flatten)]
        changes: FieldArgs<UserRecord, false>,
    },
    /// Sets a new password and ends the user's sessions
    Passwd {
        #[command(flatten)]
        which: UserArg,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Ends sessions and access tokens, and refuses logins until enabled
    Disable(UserArg),
    /// Lets the user log in again; ended sessions and tokens stay ended
    Enable(UserArg),
    /// Removes the account for good, with its sessions and access tokens
    Remove {
        #[command(flatten)]
        which: UserArg,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Lists the open sessions, the newest first
    Sessions(UserArg),
    /// Ends all sessions; access tokens stay valid
    EndSessions(UserArg),
    /// Ends the pauses after failed logins, so that the user can try again
    Unlock(UserArg),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AddArgs {
    /// The name to log in with
    #[arg(value_name = "NAME", value_parser = registration::login_name)]
    name: String,
    #[command(flatten)]
    fields: FieldArgs<UserRecord, true>,
    /// The id that the API sees, never used again [default: a random one]
    #[arg(long, allow_hyphen_values = true)]
    id: Option<UserId>,
    #[command(flatten)]
    password: PasswordArgs,
}

pub(in crate::cli) async fn execute(
    command: Command,
    context: &Context,
) -> Result<String, CommandError> {
    match command {
        Command::Add(args) => add(args, context).await,
        Command::List(filter) => {
            let (manage, filter) = (context.manage()?, filter.into());
            let page = async |last: Option<&User>, limit| {
                let last = last.map(|last| &last.id);
                Ok(manage.store.users(&filter, last, limit).await?)
            };
            context.list(page, |user| json!(user)).await
        }
        Command::Show(which) => Ok(context.show(&context.user(&which.user).await?)),
        Command::Update { which, changes } => {
            let members = changes.members()?;
            let id = context.user(&which.user).await?.id;
            let operator = context.operator()?;
            let user = operator.patch_user(&id, None, &members).await?;
            let names = Vec::from_iter(members.keys().map(String::as_str));
            let text = format!("Changed the user {}: {}.", user.name, names.join(", "));
            Ok(context.told(&user, &text))
        }
        Command::Sessions(which) => {
            let (id, manage) = (context.user(&which.user).await?.id, context.manage()?);
            let page = async |last: Option<&Session>, _| match last {
                None => Ok(manage.store.sessions_of(&id, context.now).await?),
                Some(_) => Ok(Vec::new()),
            };
            context.list(page, |session| json!(session)).await
        }
        Command::EndSessions(which) => {
            let user = context.user(&which.user).await?;
            let sessions = open_sessions(context, &user).await?;
            context.operator()?.end_sessions(&user.id, None).await?;
            let text = format!(
                "Ended {sessions} of {}. Access tokens stay valid.",
                user.name
            );
            Ok(context.done(&text))
        }
        Command::Unlock(which) => {
            let user = context.user(&which.user).await?;
            let report = services::throttle(&context.config)?.report_of_end(&user.name);
            let operator = context.operator()?;
            operator.end_login_pauses(&user.id, report).await?;
            Ok(context.done(&format!("{} can try to log in again.", user.name)))
        }
        Command::Passwd { which, password } => {
            let user = context.user(&which.user).await?;
            let hash = password.hash(context, &user)?;
            let sessions = open_sessions(context, &user).await?;
            let (operator, must_change) = (context.operator()?, !password.permanent);
            let set = operator.set_password(&user, None, hash, must_change);
            set.await?;
            let text = format!("{} has the new password; ended {sessions}.", user.name);
            let text = text + until(must_change);
            Ok(context.done(&text))
        }
        Command::Disable(which) => set_enabled(context, &which, false).await,
        Command::Enable(which) => set_enabled(context, &which, true).await,
        Command::Remove {
            which,
            confirmation,
        } => {
            let user = context.user(&which.user).await?;
            let name = &user.name;
            confirmation.ask(&format!(
                "Remove the user {name:?} with sessions and tokens?"
            ))?;
            context.operator()?.remove_user(&user, None).await?;
            let text = format!("Removed the user {name} with sessions and access tokens.");
            Ok(context.done(&text))
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
    user.must_change_password = !args.password.permanent;
    context.operator()?.add_user(&user).await?;
    let text = format!("Added the user {} (id {}).", user.name, user.id);
    let text = text + until(user.must_change_password);
    Ok(context.told(&user, &text))
}

/// The end of the sentence about a password.
const fn until(must_change: bool) -> &'static str {
    match must_change {
        true => " The user has to choose another one after the next login.",
        false => "",
    }
}

/// The open sessions of a user, in words.
async fn open_sessions(context: &Context, user: &User) -> Result<String, CommandError> {
    let open = context.store()?.sessions_of(&user.id, context.now).await?;
    Ok(counted(open.len() as u64, "session"))
}

async fn set_enabled(
    context: &Context,
    which: &UserArg,
    enabled: bool,
) -> Result<String, CommandError> {
    let id = context.user(&which.user).await?.id;
    let operator = context.operator()?;
    let user = operator.set_user_enabled(&id, None, enabled).await?;
    let text = match enabled {
        true => "can log in again; sessions and tokens that were ended stay ended",
        false => "cannot log in; sessions and access tokens are ended for good",
    };
    Ok(context.told(&user, &format!("{} {text}.", user.name)))
}
