//! Access tokens: the list with its filters, and revocation.

use std::time::Duration;

use super::{
    ConsoleRequest, LISTED, PageParts, Rejected, Reply, Result,
    change::PlannedChange,
    consumers::next,
    page::{InputField, Section},
    parts::{Table, counted, line, link, listed, path, tag, time},
};
use crate::{
    base::clock::UnixTime,
    records::store::{port::TokenFilter, record::AccessToken},
    telemetry::redact::SHOWN_TOKEN_CHARS,
};

/// The fields of the filter.
const FILTER: [&str; 3] = ["consumer", "user", "unused_for"];

impl ConsoleRequest<'_> {
    /// The filter of the query or the form.
    fn filter(&self) -> Result<(TokenFilter, Option<Duration>)> {
        let wrong = |text: &str| Rejected::Invalid(text.to_owned());
        let consumer = Some(self.field("consumer")).filter(|key| !key.is_empty());
        let user = Some(self.field("user")).filter(|id| !id.is_empty());
        let filter = TokenFilter {
            consumer: consumer
                .map(|key| {
                    key.parse()
                        .map_err(|_| wrong("consumer: not a valid consumer key"))
                })
                .transpose()?,
            user: user
                .map(|id| id.parse().map_err(|_| wrong("user: not a valid user id")))
                .transpose()?,
            ..TokenFilter::default()
        };
        Ok((filter, self.duration("unused_for")?))
    }

    /// The fields of the filter with their values.
    fn filter_fields(&self) -> [(&'static str, &str); 3] {
        FILTER.map(|name| (name, self.field(name)))
    }

    pub(super) async fn tokens(&self) -> Result<PageParts> {
        let (filter, unused_for) = self.filter()?;
        // The list is sorted by last use.
        let cursor = self.session.opened(self.field("cursor"));
        let cursor = cursor.as_deref().and_then(|cursor| cursor.split_once('.'));
        let (used, token) = cursor.unwrap_or_default();
        let after = (UnixTime(used.parse().unwrap_or_default()), token);
        let manage = &self.backend.manage;
        let found = manage
            .live_tokens(filter, unused_for, after, LISTED)
            .await?;
        let [consumer, user, unused] = self.filter_fields();
        let next = next(&found, |last| {
            let used = last.last_used_at.unwrap_or(last.issued_at);
            let cursor = self.session.sealed(&format!("{}.{}", used.0, last.token));
            path("/tokens", &[consumer, user, unused, ("cursor", &cursor)])
        });
        let mut sections = Vec::new();
        if let Ok(revoked) = self.field("revoked").parse::<u64>() {
            let text = format!("Revoked: {}.", counted(revoked, "access token"));
            sections.push(Section::Note("good", line(text)));
        }
        sections.push(Section::search(
            "/tokens",
            "Show",
            vec![
                InputField::line("consumer", "Consumer key", consumer.1),
                InputField::line("user", "User id", user.1),
                InputField::line("unused_for", "Unused for, such as 90d", unused.1),
            ],
        ));
        let filtered = [consumer, user, unused];
        let has_filter = filtered.iter().any(|(_, value)| !value.is_empty());
        let mut actions = vec![link(
            "Unused for 90 days",
            path("/tokens", &[consumer, user, ("unused_for", "90d")]),
        )];
        if has_filter && self.may_write() {
            actions.push(link(
                "Revoke all of these",
                path("/tokens/revoke", &filtered),
            ));
        }
        sections.push(Section::Actions(actions));
        sections.push(Section::Table(self.token_table(
            "Access tokens that are not revoked".to_owned(),
            &found,
            next,
        )));
        Ok(("Tokens".to_owned(), sections))
    }

    pub(super) fn token_table(
        &self,
        caption: String,
        tokens: &[AccessToken],
        next: Option<String>,
    ) -> Table {
        let row = |token: &AccessToken| {
            let is_live =
                token.revoked_at.is_none() && token.expires_at.is_none_or(|end| self.now < end);
            let state = match (token.revoked_at, token.expires_at) {
                (Some(at), _) => tag(format!("revoked {}", time(at)), "tag bad"),
                (None, Some(end)) if !is_live => tag(format!("expired {}", time(end)), "tag bad"),
                (None, Some(end)) => tag(format!("until {}", time(end)), "tag good"),
                (None, None) => tag("valid", "tag good"),
            };
            let mut state = vec![state];
            if token.revoked_at.is_none() && self.may_write() {
                state.push(link(
                    "Revoke",
                    path(
                        "/token/revoke",
                        &[("token", &self.session.sealed(&token.token))],
                    ),
                ));
            }
            let (consumer, user) = (token.consumer.as_str(), token.user.as_str());
            vec![
                line(redacted(token)),
                vec![link(consumer, path("/consumer", &[("key", consumer)]))],
                vec![link(user, path("/user", &[("id", user)]))],
                line(listed(&token.permissions)),
                line(time(token.issued_at)),
                line(token.last_used_at.map_or_else(|| "never".to_owned(), time)),
                state,
            ]
        };
        Table {
            caption,
            head: vec![
                "token",
                "consumer",
                "user",
                "permissions",
                "issued",
                "last used",
                "state",
            ],
            rows: tokens.iter().map(row).collect(),
            empty: "No token matches.",
            next,
        }
    }

    /// The token of the page's own link, else the one that was typed.
    pub(super) fn named_token(&self) -> String {
        let token = self.field("token");
        let opened = self.session.opened(token);
        opened.unwrap_or_else(|| token.to_owned())
    }

    /// The number of tokens of a filter that are not revoked. Counting stops at `MOST`.
    pub(super) async fn counted_tokens(
        &self,
        filter: TokenFilter,
        unused_for: Option<Duration>,
    ) -> Result<String> {
        const MOST: u32 = 10_000;

        let count = self.backend.manage.count_tokens(filter, unused_for, MOST);
        let count = count.await?;
        Ok(match count < u64::from(MOST) {
            true => counted(count, "access token"),
            false => format!("{MOST} or more access tokens"),
        })
    }

    /// Revokes one token, or all of a filter.
    pub(super) async fn revoke_tokens(&self) -> Result<Reply> {
        self.check_write()?;
        let (manage, by) = (&self.backend.manage, self.actor());
        if self.path == "/token/revoke" {
            let token = manage.token(&self.named_token(), true).await?;
            let state = token.token.clone();
            if self.is_confirmed(&state)? {
                manage.revoke_token(&by, &token, None).await?;
                return Ok(Reply::Redirect("/tokens?revoked=1".to_owned()));
            }
            let (consumer, user) = (&token.consumer, &token.user);
            let effects = vec![format!(
                "It ends the access of {consumer} to {user} by this token within a second, for good. The user has to agree again."
            )];
            return Ok(self.confirm(PlannedChange {
                title: format!("Revoke the token {}?", redacted(&token)),
                effects,
                fields: vec![InputField::hidden("token", token.token.as_str())],
                button: "Revoke",
                state,
                back: "/tokens".to_owned(),
            }));
        }
        let (filter, unused_for) = self.filter()?;
        let fields = self.filter_fields();
        if fields.iter().all(|(_, value)| value.is_empty()) {
            return Err(Rejected::Invalid(
                "choose a consumer, a user, or for how long tokens are unused".to_owned(),
            ));
        }
        let [consumer, user, unused] = fields.map(|(_, value)| value);
        let state = format!("{consumer}\0{user}\0{unused}");
        if self.is_confirmed(&state)? {
            let revoked = manage.revoke_tokens(&by, filter, unused_for).await?;
            let revoked = path("/tokens", &[("revoked", &revoked.to_string())]);
            return Ok(Reply::Redirect(revoked));
        }
        let count = self.counted_tokens(filter, unused_for).await?;
        let of = |label: &str, value: &str| match value {
            "" => String::new(),
            value => format!(" {label} {value}"),
        };
        let what = [
            of("of the consumer", consumer),
            of("of the user", user),
            of("unused for", unused),
        ]
        .concat();
        let effects = vec![
            format!("It revokes {count}{what}, for good, within a second on every replica."),
            "Consumers that still want access have to ask the users again.".to_owned(),
        ];
        Ok(self.confirm(PlannedChange {
            title: format!("Revoke {count}?"),
            effects,
            fields: fields
                .map(|(name, value)| InputField::hidden(name, value))
                .into(),
            button: "Revoke all of them",
            state,
            back: path("/tokens", &fields),
        }))
    }
}

/// The beginning of a token, as the log shows it.
fn redacted(token: &AccessToken) -> String {
    token
        .token
        .chars()
        .take(SHOWN_TOKEN_CHARS)
        .collect::<String>()
        + "…"
}
