//! Access tokens: the list with its filters, and revocation.

use std::{net::IpAddr, str::FromStr, time::Duration};

use askama::Template;

use super::{change::PlannedChange, consumers::UNUSED};
use crate::{
    base::clock::UnixTime,
    operator::admin::console::{
        ConsoleRequest, LISTED, Rejected, Result,
        page::{ConsoleFrame, InputField, show},
        parts::{Moment, Named, Number, OtherPages, counted, listed, path},
    },
    provider::respond::OwnResponse,
    records::values::{
        record::{AccessToken, TokenBeginning},
        use_cases::TokenFilter,
    },
    telemetry::redact::RedactedToken,
};

/// The fields of the filter.
const FILTER: [&str; 3] = ["consumer", "user", "unused_for"];

#[derive(Template)]
#[template(path = "console/tokens.html")]
struct TokensPage<'a> {
    frame: ConsoleFrame<'a>,
    /// The tokens that were just revoked.
    revoked: Option<String>,
    problem: Option<String>,
    /// The consumers and users that a part of a name fits, if there are several.
    several: Vec<Named>,
    fields: [InputField; 3],
    unused: String,
    revoke_all: Option<String>,
    tokens: Vec<TokenRow>,
    tokens_of: &'static str,
    next: Option<OtherPages>,
}

/// A row of a table of tokens.
pub(crate) struct TokenRow {
    pub(crate) token: String,
    pub(crate) consumer: Named,
    pub(crate) user: Named,
    pub(crate) permissions: String,
    pub(crate) issued: Moment,
    pub(crate) began: &'static str,
    pub(crate) last_used: Option<Moment>,
    pub(crate) last_used_from: Option<IpAddr>,
    pub(crate) state: &'static str,
    pub(crate) class: &'static str,
    /// The time of its end.
    pub(crate) end: Option<Moment>,
    /// The link that revokes it.
    pub(crate) revoke: Option<String>,
}

impl ConsoleRequest<'_> {
    /// The filter of the query or the form, and the records that its texts fit if they are several.
    async fn filter(&self) -> Result<(TokenFilter, Vec<Named>)> {
        let (consumer, mut several) = self.meant("consumer").await?;
        let (user, others) = self.meant("user").await?;
        several.extend(others);
        let filter = TokenFilter {
            consumer: named(consumer, "No consumer has this in its key or name.")?,
            user: named(user, "No user has this in name or id.")?,
            ..TokenFilter::default()
        };
        Ok((filter, several))
    }

    /// The time of a filter, or what is wrong with it.
    pub(super) fn duration_of(
        &self,
        name: &'static str,
        label: &str,
    ) -> (Option<Duration>, Option<String>) {
        match self.duration(name) {
            Ok(duration) => (duration, None),
            Err(_) => {
                let text = "choose one of the times, or write one such as 90d in the address.";
                (None, Some(format!("{label}: {text}")))
            }
        }
    }

    /// The tokens that were just revoked, in words.
    pub(crate) fn revoked(&self) -> Option<String> {
        let count = self.field("revoked").parse::<u64>().ok();
        count.map(|count| counted(count, "access token"))
    }

    pub(crate) async fn tokens(&self) -> Result<OwnResponse> {
        let (unused_for, mut problem) = self.duration_of("unused_for", "Unused for");
        let (filter, several) = match self.filter().await {
            Ok((filter, several)) => (Some(filter), several),
            Err(Rejected::Invalid(text)) => {
                problem = Some(text);
                (None, Vec::new())
            }
            Err(other) => return Err(other),
        };
        // The list is sorted by last use.
        let cursor = self.session.opened(self.field("cursor"));
        let cursor = cursor.as_deref().and_then(|cursor| cursor.split_once('.'));
        let after = cursor.and_then(|(used, token)| Some((UnixTime(used.parse().ok()?), token)));
        let manage = &self.backend.manage;
        let found = match filter.filter(|_| problem.is_none() && several.is_empty()) {
            Some(mut filter) => {
                filter.unused_since = manage.unused_since(unused_for);
                (manage.store)
                    .recent_access_tokens(&filter, after, LISTED)
                    .await?
            }
            None => Vec::new(),
        };
        let filtered = FILTER.map(|name| (name, self.field(name)));
        let [consumer, user, unused] = filtered;
        let cursor = |last: &AccessToken| {
            let used = last.last_used_at.unwrap_or(last.issued_at);
            self.session.sealed(&format!("{}.{}", used.0, last.token))
        };
        let link = |cursor: &str| path("/tokens", &[consumer, user, unused, ("cursor", cursor)]);
        let has_filter = filtered.iter().any(|(_, value)| !value.is_empty());
        let may_revoke = has_filter && self.may_write() && problem.is_none();
        let page = TokensPage {
            frame: self.shell.frame("Tokens"),
            revoked: self.revoked(),
            problem,
            several,
            fields: [
                InputField::line("consumer", "Consumer: key, or part of its name", consumer.1),
                InputField::line("user", "User: id, or part of its name", user.1),
                InputField::choice("unused_for", "Unused for", UNUSED, unused.1),
            ],
            unused: path("/tokens", &[consumer, user, ("unused_for", "90d")]),
            revoke_all: (may_revoke && !found.is_empty())
                .then(|| path("/tokens/revoke", &filtered)),
            tokens: self.token_rows(&found).await?,
            tokens_of: "",
            next: self.other_pages(&found, cursor, link),
        };
        Ok(show(200, &page))
    }

    pub(crate) async fn token_rows(&self, tokens: &[AccessToken]) -> Result<Vec<TokenRow>> {
        let consumers = tokens.iter().map(|token| token.consumer.as_str());
        let users = tokens.iter().map(|token| token.user.as_str());
        let names = self.names(consumers, users).await?;
        let here = self.here(&[]);
        let row = |token: &AccessToken| {
            let (state, class, end) = match (token.revoked_at, token.expires_at) {
                (Some(at), _) => ("revoked", "bad", Some(at)),
                (None, Some(end)) if self.now >= end => ("expired", "bad", Some(end)),
                (None, Some(end)) => ("ends", "good", Some(end)),
                (None, None) => ("valid", "good", None),
            };
            let may_revoke = token.revoked_at.is_none() && self.may_write();
            let revoke = || {
                let sealed = self.session.sealed(&token.token);
                path("/token/revoke", &[("token", &sealed), ("back", &here)])
            };
            TokenRow {
                token: RedactedToken(&token.token).to_string(),
                consumer: names.consumer(token.consumer.as_str()),
                user: names.user(token.user.as_str()),
                permissions: listed(&token.permissions),
                issued: self.moment(token.issued_at),
                began: match token.began {
                    TokenBeginning::Consent => "allowed by its user",
                    TokenBeginning::Issued => "issued by an operator",
                    TokenBeginning::Own => "made by the owner of its consumer",
                    TokenBeginning::Imported => "imported",
                },
                last_used: token.last_used_at.map(|last| self.moment(last)),
                last_used_from: token.last_used_from,
                state,
                class,
                end: end.map(|end| self.moment(end)),
                revoke: may_revoke.then(revoke),
            }
        };
        Ok(tokens.iter().map(row).collect())
    }

    /// The token of the page's own link, else the one that was typed.
    pub(crate) fn named_token(&self) -> String {
        let token = self.field("token");
        let opened = self.session.opened(token);
        opened.unwrap_or_else(|| token.to_owned())
    }

    /// The number of tokens of a filter that are not revoked. Counting stops at `MOST`.
    pub(crate) async fn counted_tokens(&self, filter: &TokenFilter) -> Result<String> {
        const MOST: u32 = 10_000;

        let store = &self.backend.manage.store;
        let count = store.count_access_tokens(filter, MOST).await?;
        Ok(match count < u64::from(MOST) {
            true => counted(count, "access token"),
            false => format!("{} or more access tokens", Number(MOST.into())),
        })
    }

    /// Revokes one token.
    pub(crate) async fn revoke_token(&self) -> Result<OwnResponse> {
        let manage = &self.backend.manage;
        let token = manage.token(&self.named_token(), true).await?;
        let (state, back) = (token.token.clone(), self.back_or("/tokens"));
        if self.is_confirmed(&state)? {
            self.operator().revoke_token(&token, None).await?;
            return Ok(revoked(&back, 1));
        }
        let consumers = std::iter::once(token.consumer.as_str());
        let users = std::iter::once(token.user.as_str());
        let names = self.names(consumers, users).await?;
        let consumer = names.consumer(token.consumer.as_str()).name;
        let user = names.user(token.user.as_str()).name;
        let effects = vec![format!(
            "{consumer} loses access to {user}’s account by this token within a second. This cannot be undone: the user has to agree again."
        )];
        Ok(self.confirm(&PlannedChange {
            title: format!("Revoke the token {}?", RedactedToken(&token.token)),
            effects,
            fields: vec![("token", token.token.clone()), ("back", back.clone())],
            button: "Revoke",
            is_destructive: true,
            state,
            back,
            ..PlannedChange::default()
        }))
    }

    /// Revokes all tokens of a filter.
    pub(crate) async fn revoke_tokens(&self) -> Result<OwnResponse> {
        let manage = &self.backend.manage;
        let ((filter, several), unused_for) = (self.filter().await?, self.duration("unused_for")?);
        if !several.is_empty() {
            let text = "several consumers or users have this in their name; write more of it, or the key or id";
            return Err(Rejected::Invalid(text.to_owned()));
        }
        // What was typed may be a part of a name: the change is about the consumer and the user that it names now.
        let consumer = filter.consumer.as_ref().map(ToString::to_string);
        let user = filter.user.as_ref().map(ToString::to_string);
        let (consumer, user) = (consumer.unwrap_or_default(), user.unwrap_or_default());
        let values = [&*consumer, &*user, self.field("unused_for")];
        let [consumer, user, unused] = values;
        let fields = [0, 1, 2].map(|index| (FILTER[index], values[index]));
        if values.iter().all(|value| value.is_empty()) {
            return Err(Rejected::Invalid(
                "choose a consumer, a user, or for how long tokens are unused".to_owned(),
            ));
        }
        let state = format!("{consumer}\0{user}\0{unused}");
        let back = self.back_or(&path("/tokens", &fields));
        if self.is_confirmed(&state)? {
            let count = self.operator().revoke_tokens(filter, unused_for).await?;
            return Ok(revoked(&back, count));
        }
        let counted = TokenFilter {
            unused_since: manage.unused_since(unused_for),
            ..filter
        };
        let count = self.counted_tokens(&counted).await?;
        let some = |value| {
            Some(value)
                .filter(|value: &&str| !value.is_empty())
                .into_iter()
        };
        let names = self.names(some(consumer), some(user)).await?;
        let of = |label: &str, value: &str, name: String| match value {
            "" => String::new(),
            value if value == name => format!(" {label} {value}"),
            value => format!(" {label} {name} ({value})"),
        };
        let what = [
            of("of the consumer", consumer, names.consumer(consumer).name),
            of("of the user", user, names.user(user).name),
            of("unused for", unused, unused.to_owned()),
        ]
        .concat();
        let effects = vec![
            format!("It revokes {count}{what}, for good, within a second on every replica."),
            "Consumers that still want access have to ask the users again.".to_owned(),
        ];
        Ok(self.confirm(&PlannedChange {
            title: format!("Revoke {count}?"),
            effects,
            fields: (fields
                .map(|(name, value)| (name, value.to_owned()))
                .into_iter())
            .chain([("back", back.clone())])
            .collect(),
            button: "Revoke all of them",
            is_destructive: true,
            state,
            back,
            ..PlannedChange::default()
        }))
    }
}

/// The key or the id that a text means, if it can be one.
fn named<N: FromStr>(text: Option<String>, unknown: &str) -> Result<Option<N>> {
    let read = text.map(|text| text.parse());
    read.transpose()
        .map_err(|_| Rejected::Invalid(unknown.to_owned()))
}

/// Leads to the page from which tokens were revoked, which says how many were.
fn revoked(back: &str, count: u64) -> OwnResponse {
    let joint = if back.contains('?') { '&' } else { '?' };
    OwnResponse::see_other(format!("{back}{joint}revoked={count}"))
}
