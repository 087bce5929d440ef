//! Users: the list, one user, and what can be done with an account.

use askama::Template;

use super::tokens::TokenRow;
use crate::{
    base::text::names::UserId,
    operator::{
        admin::console::{
            ConsoleRequest, LISTED, Rejected, Result,
            page::{ConsoleFrame, InputField, show},
            parts::{Moment, Named, OtherPages, Tag, counted, path},
        },
        manage::{USER_FIELDS, view},
    },
    provider::respond::OwnResponse,
    records::values::{
        record::{Session, User},
        use_cases::{AuditFilter, RecordFilter, TokenFilter},
    },
};

/// Sessions on the page of a user.
const SESSIONS: usize = 100;

#[derive(Template)]
#[template(path = "console/users.html")]
struct UsersPage<'a> {
    frame: ConsoleFrame<'a>,
    may_write: bool,
    fields: [InputField; 1],
    has_filter: bool,
    users: Vec<UserRow>,
    next: Option<OtherPages>,
}

struct UserRow {
    user: Named,
    shown_as: String,
    state: Vec<Tag>,
    made: Moment,
}

#[derive(Template)]
#[template(path = "console/user.html")]
struct UserPage<'a> {
    frame: ConsoleFrame<'a>,
    is_done: bool,
    revoked: Option<String>,
    last_acts: Vec<(String, String, Moment)>,
    user: &'a User,
    state: Tag,
    made: Moment,
    facts: Vec<(&'static str, String)>,
    may_write: bool,
    /// The pauses after failed logins: the number of addresses, and the end of the last one.
    pauses: Option<(String, Moment)>,
    /// `?id=` of this user.
    query: String,
    sessions_text: String,
    /// The newest ones.
    sessions: &'a [Session],
    tokens: Vec<TokenRow>,
    tokens_of: &'static str,
    /// `?user=` with the id.
    of: String,
    revoke_all: String,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn users(&self) -> Result<OwnResponse> {
        let q = self.field("q");
        let filter = RecordFilter::containing(q);
        let after: Option<UserId> = self.field("cursor").parse().ok();
        let store = &self.backend.manage.store;
        let found = store.users(&filter, after.as_ref(), LISTED).await?;
        let throttle = &self.backend.throttle;
        let paused = throttle.paused(self.now);
        let row = |user: &User| {
            let mut state = vec![Tag::enabled(user.enabled)];
            if throttle.pauses_of(&user.name, &paused).is_some() {
                state.push(Tag::new("login paused", "warn"));
            }
            UserRow {
                user: Named::user(user.id.as_str(), &user.name),
                shown_as: user.display_name.as_deref().unwrap_or("–").to_owned(),
                state,
                made: self.moment(user.created_at),
            }
        };
        let link = |cursor: &str| path("/users", &[("q", q), ("cursor", cursor)]);
        let page = UsersPage {
            frame: self.shell.frame("Users"),
            may_write: self.may_write(),
            fields: [InputField::line("q", "Part of name or id", q)],
            has_filter: !q.is_empty(),
            users: found.iter().map(row).collect(),
            next: self.other_pages(&found, |last| last.id.to_string(), link),
        };
        Ok(show(200, &page))
    }

    /// The user that `id` names.
    pub(crate) async fn named_user(&self) -> Result<User> {
        let id: Option<UserId> = self.field("id").parse().ok();
        let id = id.ok_or(Rejected::NotFound)?;
        Ok(self.backend.manage.user_of_id(&id).await?)
    }

    pub(crate) async fn user(&self) -> Result<OwnResponse> {
        let user = self.named_user().await?;
        let id = user.id.as_str();
        let members = view::members(&user);
        let facts = USER_FIELDS.iter().map(|field| {
            let text = Some(field.text(&members)).filter(|text| !text.is_empty());
            (field.label, text.unwrap_or_else(|| "–".to_owned()))
        });
        let store = &self.backend.manage.store;
        let open = store.sessions_of(&user.id, self.now).await?;
        let throttle = &self.backend.throttle;
        let pauses = throttle.pauses_of(&user.name, &throttle.paused(self.now));
        let page = UserPage {
            frame: self.shell.frame(&*user.name),
            is_done: !self.field("done").is_empty(),
            revoked: self.revoked(),
            last_acts: self.last_acts(AuditFilter::for_user(id)).await?,
            user: &user,
            state: Tag::enabled(user.enabled),
            made: self.moment(user.created_at),
            facts: facts.collect(),
            may_write: self.may_write(),
            pauses: pauses.map(|it| (counted(it.addresses, "address"), self.moment(it.until))),
            query: path("", &[("id", id)]),
            sessions_text: counted(open.len() as u64, "open session") + ", the newest first",
            sessions: &open[..open.len().min(SESSIONS)],
            tokens: self.some_tokens(TokenFilter::for_user(&user.id)).await?,
            tokens_of: "user",
            of: path("", &[("user", id)]),
            revoke_all: path("/tokens/revoke", &[("user", id), ("back", &self.here(&[]))]),
        };
        Ok(show(200, &page))
    }
}
