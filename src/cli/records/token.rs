//! `token`: access tokens without the browser flow, and revocation.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use super::consumer::named;
use crate::{
    base::{
        clock::parse_duration,
        text::{counted, names::Permission},
    },
    cli::context::{CommandError, Context},
    operator::manage::view,
    records::values::{record::AccessToken, use_cases::TokenFilter},
    telemetry::redact::RedactedToken,
};

/// The commands for access tokens.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Issues an access token, also a developer's for their own consumer, and prints it with its secret
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
pub(in crate::cli) struct IssueArgs {
    /// The consumer's key, or its name if no other consumer has it
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    consumer: String,
    /// The name or id of the user that it acts for
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    user: String,
    /// A permission that it grants; may be repeated [default: all of the consumer's]
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<Permission>,
}

/// Selects tokens by their user and their consumer.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WhoseArgs {
    /// Only those of this user, named by name or id
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    user: Option<String>,
    /// Only those of this consumer, named by key or name
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    consumer: Option<String>,
}

impl WhoseArgs {
    /// Finds user and consumer: an empty list should mean that there is no token, not that a name is mistyped.
    async fn filter(self, context: &Context) -> Result<TokenFilter, CommandError> {
        let user = match self.user {
            Some(name) => Some(context.user(&name).await?.id),
            None => None,
        };
        let consumer = match self.consumer {
            Some(name) => Some(context.consumer(&name).await?.key),
            None => None,
        };
        Ok(TokenFilter {
            user,
            consumer,
            ..TokenFilter::default()
        })
    }
}

pub(in crate::cli) async fn execute(
    command: Command,
    context: &Context,
) -> Result<String, CommandError> {
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
            filter.unused_since = manage.unused_since(unused_for);
            let page = async |last: Option<&AccessToken>, limit| {
                let last = last.map(|last| &*last.token);
                Ok((manage.store).access_tokens(&filter, last, limit).await?)
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
            context.operator()?.revoke_token(&token, None).await?;
            let consumer = manage.consumer(&token.consumer).await;
            let consumer = consumer.map_or_else(|_| token.consumer.to_string(), |it| it.name);
            let user = manage.user(token.user.as_str()).await;
            let user = user.map_or_else(|_| token.user.to_string(), |it| it.name);
            let start = RedactedToken(&token.token).to_string();
            let (is_new, whose) = (token.revoked_at.is_none(), format!("{consumer}, {user}"));
            let text = match is_new {
                true => format!("Revoked {start} ({whose})."),
                false => format!("{start} ({whose}) was revoked before."),
            };
            // As the command for several says it, and which one it was.
            let view = json!({
                "revoked": u8::from(is_new), "token": start, "consumer": consumer, "user": user,
            });
            Ok(context.told(&view, &text))
        }
        Command::Revoke {
            token: None,
            whose,
            unused_for,
        } => {
            let filter = whose.filter(context).await?;
            let operator = context.operator()?;
            let revoked = operator.revoke_tokens(filter, unused_for).await?;
            let text = match revoked {
                0 => "No access token matches that was not revoked before.".to_owned(),
                count => format!("Revoked {}.", counted(count, "access token")),
            };
            Ok(context.told(&json!({ "revoked": revoked }), &text))
        }
    }
}

async fn issue(args: IssueArgs, context: &Context) -> Result<String, CommandError> {
    let consumer = context.consumer(&args.consumer).await?;
    let user = context.user(&args.user).await?;
    let operator = context.operator()?;
    let issued = operator.issue_token(&consumer, &user, args.permissions);
    let token = issued.await?;
    if !consumer.enabled {
        context.warn(&format!(
            "the consumer {:?} is disabled: the token works once countersign consumer enable lets it in",
            consumer.key
        ));
    }
    if !context.config.sunset.new_grants {
        context.warn("sunset.new_grants is false, which does not hold for this command");
    }
    let issued = view::with_secret(view::members(&token), "token_secret", &token.secret);
    let permissions = Vec::from_iter(token.permissions.iter().map(Permission::as_str)).join(", ");
    let with = match permissions.is_empty() {
        true => "without a permission".to_owned(),
        false => format!("with {permissions}"),
    };
    let text = format!(
        "Issued an access token of {} for {}, {with}. Its secret is shown this once.",
        named(&consumer),
        user.name
    );
    Ok(context.told_with(&issued, &text, &["token", "token_secret"]))
}
