//! `token`: access tokens without the browser flow, and revocation.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use super::context::{CommandError, Context};
use crate::{
    base::{
        clock::parse_duration,
        names::{ConsumerKey, Permission},
    },
    operator::manage::view,
    records::store::{port::TokenFilter, record::AccessToken},
    telemetry::redact::RedactedToken,
};

/// The commands for access tokens.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Issues an access token and prints it with its secret
    Issue(IssueArgs),
    /// Lists access tokens, revoked and expired ones too, without their secrets
    List {
        #[command(flatten)]
        whose: WhoseArgs,
        /// Only those whose last use, or issue if there was no use, is at least this long ago, such as 90d
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        unused_for: Option<Duration>,
        /// Only those that are valid now and end within this time, such as 14d
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        ends_within: Option<Duration>,
    },
    /// Shows an access token without its secret
    Show {
        /// The token, or the 8 characters of it that the log shows
        #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
        token: String,
    },
    /// Revokes for good one access token, or all that have the given user, consumer and time without use
    #[command(group(clap::ArgGroup::new("which").args(["token", "user", "consumer", "unused_for"]).multiple(true).required(true)))]
    Revoke {
        /// The token, or the 8 characters of it that the log shows
        #[arg(value_name = "TOKEN", allow_hyphen_values = true, conflicts_with_all = ["user", "consumer", "unused_for"])]
        token: Option<String>,
        #[command(flatten)]
        whose: WhoseArgs,
        /// Only those whose last use, or issue if there was no use, is at least this long ago, such as 90d
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        unused_for: Option<Duration>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct IssueArgs {
    /// The consumer's key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    consumer: ConsumerKey,
    /// The name or id of the user that it acts for
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    user: String,
    /// A permission that it grants; may be repeated [default: all of the consumer's]
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<Permission>,
}

/// Selects tokens by their user and their consumer.
#[derive(Debug, clap::Args)]
pub(super) struct WhoseArgs {
    /// Only those of this user, named by name or id
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    user: Option<String>,
    /// Only those of this consumer
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    consumer: Option<ConsumerKey>,
}

impl WhoseArgs {
    /// Finds user and consumer: an empty list should mean that there is no token, not that a name is mistyped.
    async fn filter(self, context: &Context) -> Result<TokenFilter, CommandError> {
        let manage = context.manage()?;
        let user = match self.user {
            Some(name) => Some(manage.user(&name).await?.id),
            None => None,
        };
        if let Some(key) = &self.consumer {
            manage.consumer(key).await?;
        }
        Ok(TokenFilter {
            user,
            consumer: self.consumer,
            ..TokenFilter::default()
        })
    }
}

pub(super) async fn execute(command: Command, context: &Context) -> Result<String, CommandError> {
    let manage = context.manage()?;
    match command {
        Command::Issue(args) => issue(args, context).await,
        Command::List {
            whose,
            unused_for,
            ends_within,
        } => {
            let mut filter = whose.filter(context).await?;
            filter.ends = ends_within.map(|time| manage.ends_within(time));
            let page = async |last: Option<&AccessToken>, limit| {
                let last = last.map(|last| &*last.token);
                manage.tokens(filter.clone(), unused_for, last, limit).await
            };
            context.list(page, |token| json!(token)).await
        }
        Command::Show { token } => {
            let (token, looked_up_at) = manage.token_found(&token, false).await?;
            Ok(context.show(&view::with_lookup(view::members(&token), looked_up_at)))
        }
        Command::Revoke {
            token: Some(token), ..
        } => {
            let token = manage.token(&token, false).await?;
            manage.revoke_token(&context.actor, &token, None).await?;
            let consumer = manage.consumer(&token.consumer).await;
            let consumer = consumer.map_or_else(|_| token.consumer.to_string(), |it| it.name);
            let user = manage.user(token.user.as_str()).await;
            let user = user.map_or_else(|_| token.user.to_string(), |it| it.name);
            // As the command for several says it, and which one it was.
            Ok(context.show(&json!({
                "revoked": u8::from(token.revoked_at.is_none()),
                "token": RedactedToken(&token.token).to_string(),
                "consumer": consumer,
                "user": user,
            })))
        }
        Command::Revoke {
            token: None,
            whose,
            unused_for,
        } => {
            let filter = whose.filter(context).await?;
            let revoked = manage
                .revoke_tokens(&context.actor, filter, unused_for)
                .await?;
            Ok(context.show(&json!({ "revoked": revoked })))
        }
    }
}

async fn issue(args: IssueArgs, context: &Context) -> Result<String, CommandError> {
    let manage = context.manage()?;
    let consumer = manage.consumer(&args.consumer).await?;
    let user = manage.user(&args.user).await?;
    let token = manage
        .issue_token(&context.actor, &consumer, &user, args.permissions)
        .await?;
    if !consumer.enabled {
        context.warn(&format!(
            "the consumer {:?} is disabled: the token works once countersign consumer enable lets it in",
            consumer.key
        ));
    }
    let issued = view::with_secret(view::members(&token), "token_secret", &token.secret);
    Ok(context.show(&issued))
}
