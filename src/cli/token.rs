//! `token`: access tokens without the browser flow, and revocation.

use std::{io, process::ExitCode};

use clap::Subcommand;

use super::{
    context::{self, CommandError, Context, StoreArgs},
    output::{Record, print_list},
    user,
};
use crate::{
    issue::random,
    names::{ConsumerKey, Permission},
    store::{
        Store as _,
        port::{Added, TokenFilter},
        record::AccessToken,
    },
};

/// Issues, lists and revokes access tokens.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Issues an access token and prints it with its secret
    Issue {
        /// The consumer's key
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        consumer: ConsumerKey,
        /// The user's name
        #[arg(long, value_name = "NAME")]
        user: String,
        /// A permission that it grants; may be given again [default: all of the consumer's]
        #[arg(long = "permission", value_name = "P")]
        permissions: Vec<Permission>,
    },
    /// Lists access tokens, without their secrets
    List {
        /// Only those of this user
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Only those of this consumer
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        consumer: Option<ConsumerKey>,
    },
    /// Revokes an access token for good
    Revoke {
        /// The token
        #[arg(allow_hyphen_values = true)]
        token: String,
    },
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
        Command::Issue {
            consumer,
            user,
            permissions,
        } => {
            let token = issue(context, consumer, &user, permissions).await?;
            Ok(Record::token(&token, true).print(json)?)
        }
        Command::List { user, consumer } => {
            let user = match user {
                Some(name) => Some(user::find(context, &name).await?.id),
                None => None,
            };
            let filter = TokenFilter { user, consumer };
            let mut records = Vec::new();
            let mut after: Option<String> = None;
            loop {
                let page = store.access_tokens(&filter, after.as_deref(), PAGE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.token.clone());
                records.extend(page.iter().map(|token| Record::token(token, false)));
            }
            Ok(print_list(records, json)?)
        }
        Command::Revoke { token } => {
            if store.revoke_access_token(&token, context.now).await? {
                Ok(())
            } else {
                let problem =
                    "there is no such access token; list them with countersign token list";
                Err(CommandError::Refused(problem.to_owned()))
            }
        }
    }
}

/// So many records are asked of the store at once.
const PAGE: u32 = 500;

async fn issue(
    context: &Context,
    consumer: ConsumerKey,
    user: &str,
    permissions: Vec<Permission>,
) -> Result<AccessToken, CommandError> {
    let found = context.store.consumer(&consumer).await?;
    let found = found.ok_or_else(|| {
        CommandError::Refused(format!(
            "no consumer has the key {consumer:?}; list them with countersign consumer list"
        ))
    })?;
    let user = user::find(context, user).await?;
    if let Some(foreign) = permissions
        .iter()
        .find(|permission| !found.permissions.contains(permission))
    {
        return Err(CommandError::Refused(format!(
            "the consumer has no permission {foreign}; give it one with countersign consumer update"
        )));
    }
    let permissions = if permissions.is_empty() {
        found.permissions
    } else {
        permissions
    };
    let lifetime = context.config.tokens.access_ttl.duration();
    let token = AccessToken {
        token: random::token().map_err(io::Error::other)?,
        secret: random::secret().map_err(io::Error::other)?,
        consumer,
        user: user.id,
        permissions,
        issued_at: context.now,
        expires_at: lifetime.map(|lifetime| context.now.after(lifetime)),
        last_used_at: None,
        revoked_at: None,
    };
    match context.store.issue_access_token(token.clone()).await? {
        Added::Added => Ok(token),
        Added::Taken => Err(CommandError::Refused(
            "the user is disabled, or consumer or user have just been removed".to_owned(),
        )),
    }
}
