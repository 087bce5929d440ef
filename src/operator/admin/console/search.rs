//! The search in the header: consumers, users, tokens and rejections by what a person has at hand.

use askama::Template;

use super::{
    ConsoleRequest, Result,
    page::{ConsoleFrame, show},
    parts::path,
};
use crate::{
    provider::respond::OwnResponse,
    records::store::port::{AuditFilter, RecordFilter},
    telemetry::redact::SHOWN_TOKEN_CHARS,
};

/// The most hits of each kind.
const MOST: u32 = 20;

#[derive(Template)]
#[template(path = "console/search.html")]
struct SearchPage<'a> {
    frame: ConsoleFrame<'a>,
    q: &'a str,
    hits: Vec<Hit>,
}

struct Hit {
    kind: &'static str,
    /// The key or the id of a record that is there.
    id: String,
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
        // A whole key or id is one hit, though it may be a part of others.
        let exact = hits.iter().position(|hit| hit.id == q);
        let only = exact.or((hits.len() == 1).then_some(0));
        if let Some(only) = only {
            return Ok(OwnResponse::see_other(hits.swap_remove(only).href));
        }
        let page = SearchPage {
            frame: self.shell.frame("Search"),
            q,
            hits,
        };
        Ok(show(200, &page))
    }

    async fn hits(&self, q: &str) -> Result<Vec<Hit>> {
        let (manage, filter) = (
            &self.backend.manage,
            RecordFilter {
                q: Some(q.to_owned()),
                ..RecordFilter::default()
            },
        );
        let mut hits = Vec::new();
        for user in manage.users(&filter, None, MOST).await? {
            hits.push(Hit::new(
                "user",
                user.id.as_str(),
                &user.name,
                "/user",
                "id",
            ));
        }
        let consumers = manage.consumers(filter, None, None, MOST).await?;
        // Consumers come first.
        let consumers = consumers
            .iter()
            .map(|it| Hit::new("consumer", it.key.as_str(), &it.name, "/consumer", "key"));
        hits.splice(0..0, consumers);
        // One that the application has is found by its whole key.
        if !hits.iter().any(|hit| hit.id == q)
            && let Ok(key) = q.parse()
            && let Ok((consumer, Some(_))) = manage.consumer_found(&key).await
        {
            let key = consumer.key.as_str();
            hits.insert(
                0,
                Hit::new("consumer", key, &consumer.name, "/consumer", "key"),
            );
        }
        let start = q.trim_end_matches('…');
        if start.chars().count() == SHOWN_TOKEN_CHARS
            && let Ok(token) = manage.token(start, false).await
        {
            let (key, id) = (token.consumer.as_str(), token.user.as_str());
            let names = self.names(std::iter::once(key), std::iter::once(id));
            let names = names.await?;
            let (consumer, user) = (names.consumer(key).name, names.user(id).name);
            hits.push(Hit {
                kind: "access token",
                id: start.to_owned(),
                text: format!("{start}… of {consumer} for {user}"),
                href: path("/tokens", &[("consumer", key), ("user", id)]),
            });
        }
        let rejections = self.admin.shared.rejections.newest();
        let mut calls = rejections.iter();
        if calls.any(|one| one.call.request_id.as_deref() == Some(q)) {
            hits.push(Hit {
                kind: "rejection",
                id: q.to_owned(),
                text: q.to_owned(),
                href: path("/rejections", &[("request_id", q)]),
            });
        }
        // A key that is not registered may be that of a removed consumer, or a wrong one that callers send.
        if !hits.iter().any(|hit| hit.id == q) {
            let mut calls = rejections.iter();
            if calls.any(|one| one.call.named_consumer() == Some(q)) {
                let href = path("/rejections", &[("consumer", q)]);
                hits.push(Hit::elsewhere("rejected calls that name this key", q, href));
            }
            for filter in ["consumer", "user"] {
                let named = |name: &str| (filter == name).then(|| q.to_owned());
                let acts = AuditFilter {
                    consumer: named("consumer"),
                    user: named("user"),
                    ..AuditFilter::default()
                };
                if !manage.audit_records(&acts, None, 1).await?.is_empty() {
                    let href = path("/audit", &[(filter, q)]);
                    hits.push(Hit::elsewhere("acts on a record that was removed", q, href));
                }
            }
        }
        Ok(hits)
    }
}

impl Hit {
    /// Pages that tell of something that is not there any more, or never was.
    fn elsewhere(kind: &'static str, text: &str, href: String) -> Self {
        Self {
            kind,
            id: String::new(),
            text: text.to_owned(),
            href,
        }
    }

    fn new(kind: &'static str, id: &str, name: &str, page: &str, parameter: &str) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            text: match id == name {
                true => id.to_owned(),
                false => format!("{name} · {id}"),
            },
            href: path(page, &[(parameter, id)]),
        }
    }
}
