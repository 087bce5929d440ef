//! Who may not log in at present, after failed logins.

use askama::Template;

use super::{
    ConsoleRequest, Result,
    page::{ConsoleFrame, show},
    parts::{Moment, Named, OtherPages, counted, numbered_page, path},
};
use crate::{
    operator::manage::{LoginPause, PauseKind},
    provider::respond::OwnResponse,
};

#[derive(Template)]
#[template(path = "console/pauses.html")]
struct PausesPage<'a> {
    frame: ConsoleFrame<'a>,
    caption: String,
    pauses: Vec<PauseRow>,
    next: Option<OtherPages>,
}

/// A row of the page.
struct PauseRow {
    user: Option<Named>,
    /// Who it is, if it is no user.
    other: &'static str,
    address: Option<String>,
    until: Moment,
    /// The link that ends the pauses of the user.
    end: Option<String>,
}

impl ConsoleRequest<'_> {
    pub(super) async fn login_pauses(&self) -> Result<OwnResponse> {
        let (manage, throttle) = (&self.backend.manage, &self.backend.throttle);
        let pauses = manage.login_pauses(throttle).await?;
        let row = |pause: &LoginPause| PauseRow {
            user: pause.user.as_ref().map(|id| {
                let name = pause.name.as_deref().unwrap_or_default();
                Named::user(id.as_str(), name)
            }),
            other: match pause.kind {
                PauseKind::Account => "a name of none of the first 20,000 users",
                PauseKind::Address => "every account",
            },
            address: pause.address.map(|address| address.to_string()),
            until: self.moment(pause.until),
            end: pause
                .user
                .as_ref()
                .filter(|_| self.may_write())
                .map(|id| path("/user/end-pauses", &[("id", id.as_str())])),
        };
        let before = self.field("cursor").parse().unwrap_or_default();
        let (range, next) = numbered_page(pauses.len(), before, "/users/pauses");
        let all = counted(pauses.len() as u64, "pause");
        let shown = match &next {
            None => all,
            Some(_) => format!("{} to {} of {all}", range.start + 1, range.end),
        };
        let page = PausesPage {
            frame: self.shell.frame("Paused logins"),
            caption: format!("{shown} of this process, the last to end first"),
            pauses: pauses[range].iter().map(row).collect(),
            next,
        };
        Ok(show(200, &page))
    }
}
