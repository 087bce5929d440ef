//! Changes: each is confirmed on a page of its own that says what it ends.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::json;

use super::{
    ConsoleRequest, PageParts, Rejected, Reply, Result,
    page::{InputField, PageForm, Section},
    parts::{Line, line, link},
};
use crate::{
    base::secret::Secret,
    records::store::record::{Consumer, User},
};

/// A change before it is made.
pub(super) struct PlannedChange {
    /// The question.
    pub(super) title: String,
    /// The effects of the change, and the parts that it does not affect.
    pub(super) effects: Vec<String>,
    /// The fields of the form that makes it.
    pub(super) fields: Vec<InputField>,
    /// The button that makes it.
    pub(super) button: &'static str,
    /// The record as it is now: the change is made to nothing else.
    pub(super) state: String,
    /// The page to go to instead.
    pub(super) back: String,
}

impl ConsoleRequest<'_> {
    /// Checks that the session may change something.
    pub(super) const fn check_write(&self) -> Result<()> {
        if self.may_write() {
            Ok(())
        } else {
            Err(Rejected::ReadOnly)
        }
    }

    /// Whether the change is to be made: it was confirmed by a form of this session about the record as it is now.
    ///
    /// # Errors
    /// [`Rejected::Stale`]
    pub(super) fn is_confirmed(&self, state: &str) -> Result<bool> {
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
    pub(super) fn confirm(&self, change: PlannedChange) -> Reply {
        let csrf = self.csrf(&change.state);
        let mut fields = change.fields;
        fields.push(InputField::hidden("confirmed", "1"));
        let sections = vec![
            Section::List(change.effects.into_iter().map(line).collect()),
            Section::Form(PageForm {
                action: self.path.to_owned(),
                csrf: Some(csrf),
                fields,
                button: change.button.to_owned(),
            }),
            Section::Actions(vec![link("Cancel", change.back)]),
        ];
        Reply::Page((change.title, sections))
    }

    /// A form that leads to a confirmation. `problem` is the error in the form that was sent.
    pub(super) fn ask(
        &self,
        title: String,
        text: Line,
        problem: Option<String>,
        fields: Vec<InputField>,
        button: &str,
    ) -> PageParts {
        let problem = problem.map(|problem| Section::Note("bad", line(problem)));
        let form = Section::Form(PageForm {
            action: self.path.to_owned(),
            csrf: Some(self.csrf("")),
            fields,
            button: button.to_owned(),
        });
        let sections = problem.into_iter().chain([Section::Text(text), form]);
        (title, sections.collect())
    }
}

/// A fingerprint of a consumer with its secrets.
pub(super) fn state_of(consumer: &Consumer) -> String {
    let previous = consumer.previous_secret.as_ref();
    fingerprint(
        consumer,
        [Some(&consumer.secret), previous.map(|(secret, _)| secret)],
    )
}

/// A fingerprint of a user, without the password's hash, which a login may replace.
pub(super) fn state_of_user(user: &User) -> String {
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
