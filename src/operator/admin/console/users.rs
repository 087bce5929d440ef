//! Users: the list, one user, and what can be done with an account.

use super::{
    ConsoleRequest, LISTED, PageParts, Rejected, Reply, Result,
    change::{PlannedChange, state_of_user},
    consumers::next,
    page::{InputField, Section},
    parts::{Table, counted, enabled, line, link, path, time},
};
use crate::{
    base::names::UserId,
    operator::manage::{USER_FIELDS, view},
    records::store::{
        port::{Guard, RecordFilter, TokenFilter},
        record::{Session, User},
    },
};

/// Sessions on the page of a user.
const SESSIONS: usize = 100;

impl ConsoleRequest<'_> {
    pub(super) async fn users(&self) -> Result<PageParts> {
        let q = self.field("q");
        let filter = RecordFilter {
            q: (!q.is_empty()).then(|| q.to_owned()),
            ..RecordFilter::default()
        };
        let after: Option<UserId> = self.field("cursor").parse().ok();
        let found = self
            .backend
            .manage
            .users(&filter, after.as_ref(), LISTED)
            .await?;
        let next = next(&found, |last| {
            path("/users", &[("q", q), ("cursor", last.id.as_str())])
        });
        let row = |user: &User| {
            let id = user.id.as_str();
            vec![
                vec![link(user.name.clone(), path("/user", &[("id", id)]))],
                line(user.display_name.as_deref().unwrap_or("–")),
                line(id),
                vec![enabled(user.enabled)],
                line(time(user.created_at)),
            ]
        };
        let sections = vec![
            Section::search(
                "/users",
                "Search",
                vec![InputField::line("q", "Part of name or id", q)],
            ),
            Section::Table(Table {
                caption: "Users by id".to_owned(),
                head: vec!["name", "shown as", "id", "state", "made"],
                rows: found.iter().map(row).collect(),
                empty: "There is no such user.",
                next,
            }),
        ];
        Ok(("Users".to_owned(), sections))
    }

    /// The user that `id` names.
    async fn named_user(&self) -> Result<User> {
        let id: Option<UserId> = self.field("id").parse().ok();
        Ok(self
            .backend
            .manage
            .user_of_id(&id.ok_or(Rejected::NotFound)?)
            .await?)
    }

    pub(super) async fn user(&self) -> Result<PageParts> {
        let user = self.named_user().await?;
        let id = user.id.as_str();
        let mut sections = self.done_note();
        let members = view::members(&user);
        let fields = USER_FIELDS.iter().map(|field| {
            let text = Some(field.text(&members)).filter(|text| !text.is_empty());
            (field.label, line(text.unwrap_or_else(|| "–".to_owned())))
        });
        let mut facts = vec![("Id", line(id))];
        facts.extend(fields);
        facts.push(("State", vec![enabled(user.enabled)]));
        facts.push(("Made", line(time(user.created_at))));
        sections.push(Section::Facts(facts));
        if self.may_write() {
            let at = |page: &str| path(page, &[("id", id)]);
            sections.push(Section::Actions(vec![
                match user.enabled {
                    true => link("Disable", at("/user/disable")),
                    false => link("Enable", at("/user/enable")),
                },
                link("End all sessions", at("/user/end-sessions")),
                link("Revoke all tokens", path("/tokens/revoke", &[("user", id)])),
            ]));
        }
        let row = |session: &Session| {
            let text = |text: &Option<String>| line(text.as_deref().unwrap_or("–"));
            vec![
                line(time(session.created_at)),
                line(time(session.expires_at)),
                text(&session.browser),
                text(&session.system),
            ]
        };
        let open = self.backend.manage.sessions(&user.id).await?;
        sections.push(Section::Heading("Open sessions".to_owned()));
        sections.push(Section::Table(Table {
            caption: format!(
                "{}, the newest first",
                counted(open.len() as u64, "open session")
            ),
            head: vec!["logged in", "ends", "browser", "system"],
            rows: open.iter().take(SESSIONS).map(row).collect(),
            empty: "No session is open.",
            next: None,
        }));
        sections.push(Section::Heading("Access tokens".to_owned()));
        let filter = TokenFilter {
            user: Some(user.id.clone()),
            ..TokenFilter::default()
        };
        sections.extend(self.some_tokens(filter, &[("user", id)]).await?);
        Ok((user.name.clone(), sections))
    }

    pub(super) async fn change_user(&self) -> Result<Reply> {
        self.check_write()?;
        let user = self.named_user().await?;
        let (manage, by, name) = (&self.backend.manage, self.actor(), user.name.clone());
        let state = state_of_user(&user);
        let is_same = |now: &User| state_of_user(now) == state;
        let guard: Guard<'_, User> = Some(&is_same);
        let at = path("/user", &[("id", user.id.as_str())]);
        let is_enabled = self.path == "/user/enable";
        if self.is_confirmed(&state)? {
            match self.path {
                "/user/end-sessions" => manage.end_sessions(&by, &user.id, guard).await?,
                _ => drop(
                    manage
                        .set_user_enabled(&by, &user.id, guard, is_enabled)
                        .await?,
                ),
            }
            return Ok(Reply::Redirect(format!("{at}&done=1")));
        }
        let open = manage.sessions(&user.id).await?.len() as u64;
        let open = counted(open, "open session");
        let (title, effects, button) = match self.path {
            "/user/disable" => {
                let filter = TokenFilter {
                    user: Some(user.id.clone()),
                    ..TokenFilter::default()
                };
                let tokens = self.counted_tokens(filter, None).await?;
                let effects = vec![
                    format!("It ends {open} and revokes {tokens}; they stay ended."),
                    "The user cannot log in until the account is enabled.".to_owned(),
                ];
                (format!("Disable {name}?"), effects, "Disable")
            }
            "/user/enable" => {
                let effect =
                    "The user can log in again. Tokens and sessions that were ended stay ended.";
                let effects = vec![effect.to_owned()];
                (format!("Enable {name}?"), effects, "Enable")
            }
            _ => {
                let effects = vec![format!(
                    "It ends {open}: the user has to log in again. Access tokens stay valid."
                )];
                let title = format!("End all sessions of {name}?");
                (title, effects, "End sessions")
            }
        };
        Ok(self.confirm(PlannedChange {
            title,
            effects,
            fields: vec![InputField::hidden("id", user.id.as_str())],
            button,
            state,
            back: at,
        }))
    }
}
