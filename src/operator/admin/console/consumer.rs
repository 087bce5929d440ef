//! Changes of a consumer.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    ConsoleRequest, Rejected, Reply, Result,
    change::{PlannedChange, state_of},
    page::{InputField, InputKind, Section},
    parts::{counted, field_text, line, link, listed, path, time},
};
use crate::{
    base::clock::parse_duration,
    operator::manage::{CONSUMER_FIELDS, ManageError, RecordField, patched, view},
    provider::issue::callback,
    records::store::{
        port::{Guard, TokenFilter},
        record::Consumer,
    },
};

const GRACES: &[(&str, &str)] = &[
    ("", "none: it ends at once"),
    ("1h", "1 hour"),
    ("1d", "1 day"),
    ("7d", "7 days"),
    ("30d", "30 days"),
];

impl ConsoleRequest<'_> {
    pub(super) async fn change_consumer(&self) -> Result<Reply> {
        self.check_write()?;
        if self.path == "/consumer/add" {
            return self.add_consumer().await;
        }
        let consumer = self.named_consumer().await?;
        match self.path {
            "/consumer/edit" => self.edit_consumer(&consumer).await,
            "/consumer/rotate" => self.rotate(&consumer).await,
            _ => self.change_state(&consumer).await,
        }
    }

    /// Changes that need no more than the confirmation.
    async fn change_state(&self, consumer: &Consumer) -> Result<Reply> {
        let (manage, by, key) = (&self.backend.manage, self.actor(), &consumer.key);
        let state = state_of(consumer);
        let is_same = |now: &Consumer| state_of(now) == state;
        let guard: Guard<'_, Consumer> = Some(&is_same);
        let is_confirmed = self.is_confirmed(&state)?;
        let tokens = match is_confirmed {
            true => String::new(),
            false => self.live_tokens(consumer).await?,
        };
        let name = &consumer.name;
        let (title, effects, button) = match self.path {
            "/consumer/disable" => {
                if is_confirmed {
                    manage.set_consumer_enabled(&by, key, guard, false).await?;
                }
                let effects = vec![
                    "All its calls get 401 within a second, on every replica.".to_owned(),
                    format!("It keeps {tokens} for the time when it is enabled again."),
                ];
                (format!("Disable {name}?"), effects, "Disable")
            }
            "/consumer/enable" => {
                if is_confirmed {
                    manage.set_consumer_enabled(&by, key, guard, true).await?;
                }
                let effects = vec![format!("Its calls are accepted again, with its {tokens}.")];
                (format!("Enable {name}?"), effects, "Enable")
            }
            "/consumer/end-grace" => {
                if is_confirmed {
                    manage.end_grace(&by, key, guard).await?;
                }
                let uses = self.admin.shared.previous_secrets.uses_by(key.as_str());
                let used = uses.map_or_else(
                    || "This process has not seen it used.".to_owned(),
                    |(count, last)| {
                        format!(
                            "This process has seen {} with it, the last at {}.",
                            counted(count, "call"),
                            time(last)
                        )
                    },
                );
                let effects = vec![
                    "The previous secret ends at once: calls that are signed with it get 401."
                        .to_owned(),
                    used,
                ];
                (
                    format!("End the grace of {name}?"),
                    effects,
                    "End the grace",
                )
            }
            "/consumer/remove" => {
                if is_confirmed {
                    manage.remove_consumer(&by, key, guard).await?;
                    return Ok(Reply::Redirect("/consumers".to_owned()));
                }
                let effects = vec![
                    format!("It ends {tokens}, and every authorization that has begun."),
                    "Nothing brings it back: its key is never used again. To stop it for a while, disable it.".to_owned(),
                ];
                (format!("Remove {name}?"), effects, "Remove for good")
            }
            _ => return Err(Rejected::NotFound),
        };
        if is_confirmed {
            return Ok(self.done(consumer));
        }
        Ok(self.confirm(PlannedChange {
            title,
            effects,
            fields: vec![InputField::hidden("key", key.as_str())],
            button,
            state,
            back: path("/consumer", &[("key", key.as_str())]),
        }))
    }

    fn done(&self, consumer: &Consumer) -> Reply {
        let parameters = [("key", consumer.key.as_str()), ("done", "1")];
        Reply::Redirect(path("/consumer", &parameters))
    }

    async fn live_tokens(&self, consumer: &Consumer) -> Result<String> {
        let filter = TokenFilter {
            consumer: Some(consumer.key.clone()),
            ..TokenFilter::default()
        };
        self.counted_tokens(filter, None).await
    }

    async fn rotate(&self, consumer: &Consumer) -> Result<Reply> {
        let (state, key, name) = (state_of(consumer), consumer.key.as_str(), &consumer.name);
        let is_same = |now: &Consumer| state_of(now) == state;
        let guard: Guard<'_, Consumer> = Some(&is_same);
        let grace = self.duration("grace")?;
        if self.form.is_none() {
            let text = line(
                "A new random secret is made and shown once. During the grace the previous one also verifies.",
            );
            let fields = vec![
                InputField::hidden("key", key),
                InputField::new(
                    InputKind::Choice(GRACES.into()),
                    "grace",
                    "Grace of the previous secret",
                    "",
                ),
            ];
            let title = format!("Rotate the secret of {name}");
            return Ok(Reply::Page(self.ask(title, text, None, fields, "Go on")));
        }
        if !self.is_confirmed(&state)? {
            let mut effects = vec![match grace {
                None => "The current secret ends at once: calls that are signed with it get 401 until the consumer has the new one.".to_owned(),
                Some(grace) => {
                    let until = time(self.now.after(grace));
                    format!("The current secret also verifies until {until}, then it ends.")
                }
            }];
            if consumer.previous_secret.is_some() {
                effects
                    .push("The previous secret, which is in its grace, ends at once.".to_owned());
            }
            effects.push(
                "Access tokens stay valid. The new secret is shown once, on the next page."
                    .to_owned(),
            );
            return Ok(self.confirm(PlannedChange {
                title: format!("Rotate the secret of {name}?"),
                effects,
                fields: vec![
                    InputField::hidden("key", key),
                    InputField::hidden("grace", self.field("grace")),
                ],
                button: "Rotate",
                state,
                back: path("/consumer", &[("key", key)]),
            }));
        }
        let by = self.actor();
        let rotated = self
            .backend
            .manage
            .rotate_secret(&by, &consumer.key, guard, None, grace);
        Ok(with_secret(
            format!("New secret of {name}"),
            &rotated.await?,
        ))
    }

    async fn add_consumer(&self) -> Result<Reply> {
        let key = InputField::line("key", "Key (empty: a random one)", self.field("key"));
        let ask = |problem| {
            let title = "Register a consumer".to_owned();
            let text = line("Key and secret are random. The secret is shown once.");
            let fields = self.fields(key, None);
            Ok(Reply::Page(self.ask(title, text, problem, fields, "Go on")))
        };
        if self.form.is_none() {
            return ask(None);
        }
        let mut members = self.sent();
        if !self.field("key").is_empty() {
            members.insert("key".to_owned(), self.field("key").into());
        }
        // The key is chosen before the confirmation: a form that is sent twice registers one consumer.
        let manage = &self.backend.manage;
        let consumer = match manage.new_consumer(members, None) {
            Ok(consumer) => consumer,
            Err(error) => return ask(Some(problem(error)?)),
        };
        let state = consumer.key.to_string();
        if !self.is_confirmed(&state)? {
            let mut effects = vec![format!("Key: {state}")];
            effects.extend(described(&consumer));
            effects.push("It ends nothing.".to_owned());
            return Ok(self.confirm(PlannedChange {
                title: format!("Register {}?", consumer.name),
                effects,
                fields: hidden(&consumer),
                button: "Register",
                state,
                back: "/consumers".to_owned(),
            }));
        }
        let added = manage.add_consumer(&self.actor(), consumer).await?;
        Ok(with_secret(format!("{} is registered", added.name), &added))
    }

    async fn edit_consumer(&self, consumer: &Consumer) -> Result<Reply> {
        let (name, state) = (&consumer.name, state_of(consumer));
        let key = InputField::hidden("key", consumer.key.as_str());
        let ask = |problem| {
            let title = format!("Edit {name}");
            let text = line("Users see name, description and web page on the consent page.");
            let fields = self.fields(key, Some(consumer));
            Ok(Reply::Page(self.ask(title, text, problem, fields, "Go on")))
        };
        if self.form.is_none() {
            return ask(None);
        }
        let members = self.sent();
        let changed = match patched(consumer, members.clone()) {
            Ok(changed) => changed,
            Err(error) => return ask(Some(problem(error)?)),
        };
        if self.is_confirmed(&state)? {
            let is_same = |now: &Consumer| state_of(now) == state;
            let (manage, by) = (&self.backend.manage, self.actor());
            let patch = manage.patch_consumer(&by, &consumer.key, Some(&is_same), &members);
            patch.await?;
            return Ok(self.done(consumer));
        }
        if changed == *consumer {
            return ask(Some("Nothing is changed.".to_owned()));
        }
        let (before, after) = (described(consumer), described(&changed));
        let mut effects = Vec::from_iter(after.into_iter().filter(|line| !before.contains(line)));
        let mut lost = consumer.permissions.clone();
        lost.retain(|one| !changed.permissions.contains(one));
        if !lost.is_empty() {
            let tokens = self.live_tokens(consumer).await?;
            let lost = listed(&lost);
            effects.push(format!("It ends {lost} for its {tokens}, within a second."));
        }
        if changed.rsa_only && !consumer.rsa_only {
            effects.push(
                "It ends every method but RSA: calls that are signed with its secret get 401."
                    .to_owned(),
            );
        }
        Ok(self.confirm(PlannedChange {
            title: format!("Change {name}?"),
            effects,
            fields: hidden(&changed),
            button: "Change",
            state,
            back: path("/consumer", &[("key", consumer.key.as_str())]),
        }))
    }

    /// The fields of a form: as they were sent, else as the consumer has them.
    fn fields(&self, key: InputField, consumer: Option<&Consumer>) -> Vec<InputField> {
        let members = consumer.map(view::members).unwrap_or_default();
        let field = |field: &'static RecordField| {
            let value = match &self.form {
                Some(form) => form.field(field.name).unwrap_or_default().to_owned(),
                None => field.text(&members),
            };
            InputField::for_record(field, value)
        };
        let fields = CONSUMER_FIELDS.iter().map(field);
        [key].into_iter().chain(fields).collect()
    }

    /// The members that a form has.
    fn sent(&self) -> Map<String, Value> {
        let member = |field: &RecordField| {
            // Browsers end lines with two characters.
            let text = self.field(field.name).replace('\r', "");
            (field.name.to_owned(), field.value(&text))
        };
        CONSUMER_FIELDS.iter().map(member).collect()
    }

    /// A duration of the form or the query; `None` if it is empty.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>> {
        match self.field(name) {
            "" => Ok(None),
            text => match parse_duration(text) {
                Ok(duration) => Ok(Some(duration)),
                Err(problem) => Err(Rejected::Invalid(format!("{name}: {problem}"))),
            },
        }
    }
}

/// A consumer as the hidden fields of a form.
fn hidden(consumer: &Consumer) -> Vec<InputField> {
    let members = view::members(consumer);
    let fields = CONSUMER_FIELDS.iter();
    let fields = fields.map(|field| InputField::hidden(field.name, field.text(&members)));
    let key = InputField::hidden("key", consumer.key.as_str());
    [key].into_iter().chain(fields).collect()
}

/// The message for a form that makes no valid consumer; other errors are returned.
fn problem(error: ManageError) -> Result<String> {
    match error {
        ManageError::Invalid(invalid) => Ok(invalid.detail),
        ManageError::CannotSign => Ok(error.to_string()),
        error => Err(error.into()),
    }
}

/// The fields of a consumer, one line each, and the warnings about them.
fn described(consumer: &Consumer) -> Vec<String> {
    let members = view::members(consumer);
    let line = |field: &RecordField| format!("{}: {}", field.label, field_text(field, &members));
    let warned = consumer.callbacks.iter().filter_map(|callback| {
        let warning = callback::check_registration(callback).ok()??;
        Some(format!("Callback {callback}: {warning}"))
    });
    CONSUMER_FIELDS.iter().map(line).chain(warned).collect()
}

/// The one page that shows a secret.
fn with_secret(title: String, consumer: &Consumer) -> Reply {
    let secret = consumer.secret.expose_text();
    let facts = [
        ("Key", line(consumer.key.as_str())),
        ("Secret", line(&**secret)),
    ];
    let at = path("/consumer", &[("key", consumer.key.as_str())]);
    let sections = vec![
        Section::Note(
            "warn",
            line("Copy the secret now: it is never shown again."),
        ),
        Section::Facts(facts.into()),
        Section::Actions(vec![link("I have copied it", at)]),
    ];
    Reply::Page((title, sections))
}
