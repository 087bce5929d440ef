//! The search in the header: consumers, users, tokens and rejections by what an operator knows of them.

use std::borrow::Cow;

use askama::Template;

use super::{
    ConsoleRequest, Result,
    page::{ConsoleFrame, show},
    parts::{Named, path},
};
use crate::{
    operator::admin::console::calls::call,
    provider::respond::OwnResponse,
    records::values::{
        record::{AccessToken, Consumer},
        use_cases::{AuditFilter, RecordFilter, TokenFilter},
    },
    telemetry::redact::{RedactedToken, SHOWN_TOKEN_CHARS},
};

/// The most hits of each kind.
const MOST: u32 = 20;

/// The fewest characters by which tokens are found.
const SHORTEST_TOKEN_START: usize = 4;

#[derive(Template)]
#[template(path = "console/search.html")]
struct SearchPage<'a> {
    frame: ConsoleFrame<'a>,
    /// The text, of which a page shows only as much as a log shows of a token.
    q: Cow<'a, str>,
    hits: Vec<Hit>,
}

struct Hit {
    kind: &'static str,
    /// The key or the id of a record that is there.
    id: String,
    /// The name of a record.
    name: String,
    text: String,
    href: String,
}

impl ConsoleRequest<'_> {
    /// Leads to the page of the one hit, or lists all.
    pub(super) async fn search(&self) -> Result<OwnResponse> {
        let q = self.field("q");
        let mut hits = match q {
            "" => Vec::new(),
            q => self.hits(q).await?,
        };
        // A whole key, id or name is one hit, though it may be a part of others.
        let exact = hits.iter().position(|hit| hit.id == q);
        let named = |hit: &Hit| !hit.name.is_empty() && hit.name == q;
        let mut by_name = hits.iter().enumerate().filter(|(_, hit)| named(hit));
        let by_name = match (by_name.next(), by_name.next()) {
            (Some((only, _)), None) => Some(only),
            _ => None,
        };
        let only = exact.or(by_name).or((hits.len() == 1).then_some(0));
        if let Some(only) = only {
            return Ok(OwnResponse::see_other(hits.swap_remove(only).href));
        }
        let page = SearchPage {
            frame: self.shell.frame("Search"),
            q: shown(q),
            hits,
        };
        Ok(show(200, &page))
    }

    /// The tokens that a text may mean: the one that it is, else those that begin as it does.
    async fn tokens_beginning(&self, text: &str) -> Result<Vec<Hit>> {
        let manage = &self.backend.manage;
        let all = TokenFilter::default();
        let start: String = text.chars().take(SHOWN_TOKEN_CHARS).collect();
        let found = match text.chars().count() {
            0..SHORTEST_TOKEN_START => return Ok(Vec::new()),
            _ if text.contains('\0') => return Ok(Vec::new()),
            length if length > SHOWN_TOKEN_CHARS => self.token_beginning(text).await?,
            _ => None,
        };
        let found = match found {
            Some(whole) => vec![whole],
            None => {
                // Identifiers are listed in their order, so those that begin with these characters come next.
                let mut next = (manage.store)
                    .access_tokens(&all, Some(&start), MOST)
                    .await?;
                next.retain(|next| next.token.starts_with(&start));
                next
            }
        };
        let keys = found.iter().map(|token| token.consumer.as_str());
        let ids = found.iter().map(|token| token.user.as_str());
        let names = self.names(keys, ids).await?;
        let hit = |token: &AccessToken| {
            let (key, id) = (token.consumer.as_str(), token.user.as_str());
            let (consumer, user) = (names.consumer(key).name, names.user(id).name);
            let shown = RedactedToken(&token.token).to_string();
            let text = format!("{shown} of {consumer} for {user}");
            let href = path("/tokens", &[("consumer", key), ("user", id)]);
            Hit::unnamed("access token", shown.trim_end_matches('…'), text, href)
        };
        Ok(found.iter().map(hit).collect())
    }

    async fn hits(&self, q: &str) -> Result<Vec<Hit>> {
        let (manage, filter) = (&self.backend.manage, RecordFilter::containing(q));
        let users = manage.store.users(&filter, None, MOST).await?;
        let consumers = manage.store.consumers(&filter, None, MOST).await?;
        let users = users.iter().map(|it| Named::user(it.id.as_str(), &it.name));
        let users = users.map(|user| Hit::new("user", user));
        let mut hits = Vec::from_iter(consumers.iter().map(Hit::consumer).chain(users));
        // One that the application has is found by its whole key.
        if !hits.iter().any(|hit| hit.id == q)
            && let Ok(key) = q.parse()
            && let Ok((consumer, Some(_))) = manage.consumer_found(&key).await
        {
            hits.insert(0, Hit::consumer(&consumer));
        }
        hits.extend(self.tokens_beginning(q.trim_end_matches('…')).await?);
        let rejections = self.admin.shared.rejections.newest();
        let mut calls = rejections.iter();
        if let Some(one) = calls.find(|one| one.call.request_id.as_deref() == Some(q)) {
            hits.push(Hit::unnamed("rejection", q, q.to_owned(), call::href(one)));
        }
        // A key that is not registered may be that of a removed consumer, or a wrong one that callers send.
        if !hits.iter().any(|hit| hit.id == q) {
            let mut calls = rejections.iter();
            if calls.any(|one| one.call.named_consumer() == Some(q)) {
                let href = path("/rejections", &[("consumer", q)]);
                hits.push(Hit::elsewhere("rejected calls that name this key", q, href));
            }
            let filters = [
                ("consumer", AuditFilter::for_consumer(q)),
                ("user", AuditFilter::for_user(q)),
            ];
            for (filter, acts) in filters {
                if !(manage.store.audit_records(&acts, None, 1).await?).is_empty() {
                    let href = path("/audit", &[(filter, q)]);
                    hits.push(Hit::elsewhere("acts on a record that was removed", q, href));
                }
            }
        }
        Ok(hits)
    }
}

/// A text as a page repeats it: of one that may be a token, the beginning that a log shows.
fn shown(q: &str) -> Cow<'_, str> {
    /// Keys that are random have fewer characters than tokens.
    const SHORT: usize = 24;

    let may_be_token = |it: char| it.is_ascii_alphanumeric() || "-_.~+/=".contains(it);
    match q.chars().count() > SHORT && q.chars().all(may_be_token) {
        true => RedactedToken(q).to_string().into(),
        false => q.into(),
    }
}

impl Hit {
    /// Pages about something that was removed, or never existed.
    fn elsewhere(kind: &'static str, text: &str, href: String) -> Self {
        Self::unnamed(kind, "", shown(text).into_owned(), href)
    }

    fn unnamed(kind: &'static str, id: &str, text: String, href: String) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            name: String::new(),
            text,
            href,
        }
    }

    fn consumer(consumer: &Consumer) -> Self {
        let named = Named::consumer(consumer.key.as_str(), &consumer.name);
        Self::new("consumer", named)
    }

    fn new(kind: &'static str, Named { id, name, href, .. }: Named) -> Self {
        let text = match id == name {
            true => id.clone(),
            false => format!("{name} · {id}"),
        };
        Self {
            name,
            ..Self::unnamed(kind, &id, text, href)
        }
    }
}
