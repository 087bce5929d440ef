//! Changes: each is confirmed on a page of its own that says what it ends.

use askama::Template;
use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::json;

use crate::{
    base::secret::Secret,
    operator::admin::console::{
        ConsoleRequest, Result,
        page::{ConsoleFrame, show},
        parts::path,
    },
    provider::respond::OwnResponse,
    records::values::{
        record::{Consumer, User},
        use_cases::Guard,
    },
};

/// A change before it is made.
#[derive(Default)]
pub(crate) struct PlannedChange {
    /// The question.
    pub(crate) title: String,
    /// What deserves a second look.
    pub(crate) warnings: Vec<String>,
    /// The effects of the change, and the parts that it does not affect.
    pub(crate) effects: Vec<String>,
    /// The record as it will be, or the part of it that changes.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The hidden fields of the form that makes it.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// The button that makes it.
    pub(crate) button: &'static str,
    /// A form leads to it, to which an operator may go back.
    pub(crate) may_change: bool,
    /// It ends something.
    pub(crate) is_destructive: bool,
    /// The text to type, if a button is not enough.
    pub(crate) typed: Option<String>,
    /// A sentence has to be written.
    pub(crate) has_sentence: bool,
    /// The record as it is now: the change is made to nothing else.
    pub(crate) state: String,
    /// The page to go to instead.
    pub(crate) back: String,
}

#[derive(Template)]
#[template(path = "console/confirm.html")]
struct ConfirmPage<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    change: &'a PlannedChange,
    /// Another text was typed.
    is_mistyped: bool,
}

/// A change of a record that is asked for, and made when it is confirmed.
pub(crate) struct AskedChange<T> {
    pub(crate) record: T,
    pub(crate) is_confirmed: bool,
    /// The record as it was shown.
    state: String,
    is_same: Box<dyn Fn(&T) -> bool + Sync>,
    /// The parameter that names the record, and its page.
    id: (&'static str, String),
    page: String,
}

impl<T> AskedChange<T> {
    /// Lets the change be made to the record as it was shown, and to no other.
    pub(crate) fn guard(&self) -> Guard<'_, T> {
        Some(&*self.is_same)
    }

    /// The question whether to make it.
    pub(crate) fn planned(
        self,
        title: String,
        effects: Vec<String>,
        button: &'static str,
    ) -> PlannedChange {
        PlannedChange {
            title,
            effects,
            fields: vec![self.id],
            button,
            state: self.state,
            back: self.page,
            ..PlannedChange::default()
        }
    }

    /// The question whether to make it, if it ends something.
    pub(crate) fn destructive(
        self,
        title: String,
        effects: Vec<String>,
        button: &'static str,
    ) -> PlannedChange {
        PlannedChange {
            is_destructive: true,
            ..self.planned(title, effects, button)
        }
    }

    /// Leads to the page of the record, when it is made.
    pub(crate) fn done(&self) -> OwnResponse {
        OwnResponse::see_other(format!("{}&done=1", self.page))
    }
}

impl ConsoleRequest<'_> {
    /// The change of the consumer that the request names.
    pub(crate) async fn change_of_consumer(&self) -> Result<AskedChange<Consumer>> {
        let consumer = self.named_consumer().await?;
        let id = ("key", consumer.key.to_string());
        self.asked(consumer, state_of, "/consumer", id)
    }

    /// The change of the user that the request names.
    pub(crate) async fn change_of_user(&self) -> Result<AskedChange<User>> {
        let user = self.named_user().await?;
        let id = ("id", user.id.to_string());
        self.asked(user, state_of_user, "/user", id)
    }

    fn asked<T: 'static>(
        &self,
        record: T,
        state_of: fn(&T) -> String,
        page: &str,
        id: (&'static str, String),
    ) -> Result<AskedChange<T>> {
        let state = state_of(&record);
        let shown = state.clone();
        Ok(AskedChange {
            record,
            is_confirmed: self.is_confirmed(&state)?,
            state,
            is_same: Box::new(move |now| state_of(now) == shown),
            page: path(page, &[(id.0, &*id.1)]),
            id,
        })
    }

    /// Whether the change is to be made: it was confirmed by a form of this session about the record as it is now.
    ///
    /// # Errors
    /// [`crate::operator::admin::console::Rejected::Stale`], if the record is another one than the form shows.
    pub(crate) fn is_confirmed(&self, state: &str) -> Result<bool> {
        let is_sent = self
            .form
            .as_ref()
            .is_some_and(|form| form.field("confirmed").is_some());
        if is_sent {
            self.check_form(state)?;
        }
        Ok(is_sent)
    }

    /// Asks for the confirmation of a change.
    pub(crate) fn confirm(&self, change: &PlannedChange) -> OwnResponse {
        let page = ConfirmPage {
            frame: self.shell.frame(&*change.title),
            csrf: self.csrf(&change.state),
            is_mistyped: self.form.is_some() && change.typed.is_some(),
            change,
        };
        show(200, &page)
    }
}

/// A fingerprint of a consumer with its secrets.
pub(crate) fn state_of(consumer: &Consumer) -> String {
    let previous = consumer.previous_secret.as_ref();
    fingerprint(
        consumer,
        [Some(&consumer.secret), previous.map(|(secret, _)| secret)],
    )
}

/// A fingerprint of a user, without the password's hash, which a login may replace.
pub(crate) fn state_of_user(user: &User) -> String {
    fingerprint(user, [None, None])
}

fn fingerprint(record: &impl Serialize, secrets: [Option<&Secret>; 2]) -> String {
    let mut whole = json!(record).to_string().into_bytes();
    for secret in secrets {
        whole.push(0);
        whole.extend(secret.map(Secret::expose).unwrap_or_default());
    }
    URL_SAFE_NO_PAD.encode(digest(&SHA256, &whole))
}
