//! `token`: access tokens without the browser flow, and revocation.

use clap::Subcommand;

use super::{
    consumer,
    context::{CommandError, Context},
    output::{Members, Shown},
    user,
};
use crate::{
    issue::random,
    names::{ConsumerKey, Permission},
    store::{
        port::{Added, TokenFilter},
        record::{AccessToken, Consumer},
    },
    telemetry::{audit::CommandRecord, redact::RedactedToken},
};

/// What to do with access tokens.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Issues an access token and prints it with its secret
    Issue(IssueArgs),
    /// Lists access tokens, revoked and expired ones too, without their secrets
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
        #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
        token: String,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct IssueArgs {
    /// The consumer's key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    consumer: ConsumerKey,
    /// The name of the user that it acts for
    #[arg(long, value_name = "NAME")]
    user: String,
    /// A permission that it grants; may be repeated [default: all of the consumer's]
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<Permission>,
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    match command {
        Command::Issue(args) => issue(args, context).await,
        Command::List { user, consumer } => list(context, user, consumer).await,
        Command::Revoke { token } => {
            let store = context.store()?;
            let known = store.access_token(&token).await?;
            if !store.revoke_access_token(&token, context.now).await? {
                let problem =
                    "there is no such access token; list them with countersign token list";
                return Err(CommandError::failed(problem));
            }
            let about = CommandRecord {
                event: "token_revoked".to_owned(),
                consumer: known.as_ref().map(|token| token.consumer.to_string()),
                user: known.as_ref().map(|token| token.user.to_string()),
                token: Some(RedactedToken(&token).to_string()),
                ..CommandRecord::default()
            };
            context.audit(about).await;
            Ok(String::new())
        }
    }
}

async fn issue(args: IssueArgs, context: &Context) -> Result<String, CommandError> {
    let consumer = consumer::find(context, &args.consumer).await?;
    let user = user::find(context, &args.user).await?;
    if !user.enabled {
        return Err(CommandError::failed(format!(
            "the user {:?} is disabled; enable it with countersign user enable",
            user.name
        )));
    }
    let lifetime = context.config.tokens.access_ttl.duration();
    let token = AccessToken {
        token: random::token()?,
        secret: random::secret()?,
        permissions: granted(&consumer, args.permissions)?,
        consumer: consumer.key,
        user: user.id,
        issued_at: context.now,
        expires_at: lifetime.map(|lifetime| context.now.after(lifetime)),
        last_used_at: None,
        revoked_at: None,
    };
    if context.store()?.issue_access_token(token.clone()).await? == Added::Taken {
        let problem = "the consumer or the user has just been removed or disabled; look again";
        return Err(CommandError::failed(problem));
    }
    if !consumer.enabled {
        context.warn(&format!(
            "the consumer {:?} is disabled: the token works once countersign consumer enable lets it in",
            token.consumer
        ));
    }
    let about = CommandRecord {
        event: "access_token_issued".to_owned(),
        consumer: Some(token.consumer.to_string()),
        user: Some(token.user.to_string()),
        token: Some(RedactedToken(&token.token).to_string()),
        ..CommandRecord::default()
    };
    context.audit(about).await;
    Ok(context.show(Members::token(&token, Shown::WithSecret)))
}

/// What the token grants: what was asked for, if the consumer has it all, else all that the consumer has.
fn granted(
    consumer: &Consumer,
    mut asked: Vec<Permission>,
) -> Result<Vec<Permission>, CommandError> {
    if asked.is_empty() {
        return Ok(consumer.permissions.clone());
    }
    if let Some(foreign) = asked
        .iter()
        .find(|permission| !consumer.permissions.contains(permission))
    {
        return Err(CommandError::failed(format!(
            "--permission {foreign}: the consumer {:?} does not have it; give it with countersign consumer update",
            consumer.key
        )));
    }
    asked.sort();
    asked.dedup();
    Ok(asked)
}

async fn list(
    context: &Context,
    user: Option<String>,
    consumer: Option<ConsumerKey>,
) -> Result<String, CommandError> {
    // An empty list should mean that there is no token, not that a name is mistyped.
    let user = match user {
        Some(name) => Some(user::find(context, &name).await?.id),
        None => None,
    };
    if let Some(key) = &consumer {
        consumer::find(context, key).await?;
    }
    let filter = TokenFilter { user, consumer };
    let store = context.store()?;
    let page = async |last: Option<&AccessToken>, limit| {
        let last = last.map(|last| &*last.token);
        store.access_tokens(&filter, last, limit).await
    };
    let members = |token: &_| Members::token(token, Shown::WithoutSecret);
    context.list(page, members).await
}
