//! Changes of a consumer.

use std::time::Duration;

use askama::Template;
use serde_json::{Map, Value};

use super::{
    ConsoleRequest, Rejected, Result,
    change::{PlannedChange, state_of},
    handover::HandedOver,
    page::{ConsoleFrame, InputField, show},
    parts::{counted, field_text, listed, path, time},
};
use crate::{
    base::clock::parse_duration,
    operator::manage::{CONSUMER_FIELDS, ManageError, RecordField, patched, view},
    provider::{issue::callback, respond::OwnResponse},
    records::store::{
        port::{Guard, TokenFilter},
        record::Consumer,
    },
};

/// The times of a grace; the first one is preselected, and the last one is an outage by design.
const GRACES: &[(&str, &str)] = &[
    ("7d", "7 days"),
    ("1d", "1 day"),
    ("1h", "1 hour"),
    ("30d", "30 days"),
    ("", "none: its calls fail until it has the new secret"),
];

/// The fields at the top of the form, in this order. The others are about signing, but for the permissions.
const FIRST: [&str; 4] = ["name", "description", "website", "callbacks"];

#[derive(Template)]
#[template(path = "console/consumer-form.html")]
struct ConsumerForm<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    problem: Option<String>,
    /// The key of the consumer that is edited.
    key: Option<String>,
    /// The field for the key of a new one.
    new_key: InputField,
    first: Vec<InputField>,
    boxes: Vec<PermissionBox>,
    /// Permissions that the configuration does not have.
    others: InputField,
    signing: Vec<InputField>,
    back: String,
}

/// The box of a permission.
struct PermissionBox {
    name: String,
    title: String,
    is_declared: bool,
    is_sensitive: bool,
    is_ticked: bool,
}

#[derive(Template)]
#[template(path = "console/rotate.html")]
struct RotatePage<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    key: &'a str,
    grace: InputField,
    back: String,
}

impl ConsoleRequest<'_> {
    pub(super) async fn change_consumer(&self) -> Result<OwnResponse> {
        self.check_write()?;
        if self.path == "/consumer/add" {
            return self.add_consumer().await;
        }
        let consumer = self.named_consumer().await?;
        match self.path {
            "/consumer/edit" => self.edit_consumer(&consumer).await,
            "/consumer/rotate" => self.rotate(&consumer).await,
            "/consumer/link" => self.make_link(&consumer).await,
            _ => self.change_state(&consumer).await,
        }
    }

    /// Changes that need no more than the confirmation.
    async fn change_state(&self, consumer: &Consumer) -> Result<OwnResponse> {
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
                let used = match self.admin.shared.previous_secrets.uses_by(key.as_str()) {
                    None => "This process has not seen it used.".to_owned(),
                    Some((count, last)) => format!(
                        "This process has seen {} with it, the last at {}.",
                        counted(count, "call"),
                        time(last)
                    ),
                };
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
            "/consumer/end-link" => {
                if is_confirmed {
                    manage.revoke_developer_link(&by, key).await?;
                }
                let effects =
                    vec!["The page of its developer ends at once, on every replica.".to_owned()];
                (
                    format!("End the developer’s link of {name}?"),
                    effects,
                    "End the link",
                )
            }
            "/consumer/remove" => return self.remove_consumer(consumer).await,
            _ => return Err(Rejected::NotFound),
        };
        if is_confirmed {
            return Ok(Self::done(consumer));
        }
        Ok(self.confirm(&PlannedChange {
            title,
            effects,
            fields: vec![("key", key.to_string())],
            button,
            is_destructive: self.path != "/consumer/enable",
            state,
            back: path("/consumer", &[("key", key.as_str())]),
            ..PlannedChange::default()
        }))
    }

    /// Removes a consumer. If it has live tokens, its key has to be typed.
    async fn remove_consumer(&self, consumer: &Consumer) -> Result<OwnResponse> {
        let (manage, key, state) = (&self.backend.manage, &consumer.key, state_of(consumer));
        let is_same = |now: &Consumer| state_of(now) == state;
        let filter = TokenFilter {
            consumer: Some(key.clone()),
            ..TokenFilter::default()
        };
        let has_tokens = manage.count_tokens(filter, None, 1).await? > 0;
        let is_typed = !has_tokens || self.field("typed") == key.as_str();
        if self.is_confirmed(&state)? && is_typed {
            let by = self.actor();
            manage.remove_consumer(&by, key, Some(&is_same)).await?;
            return Ok(OwnResponse::see_other("/consumers".to_owned()));
        }
        let tokens = self.live_tokens(consumer).await?;
        Ok(self.confirm(&PlannedChange {
            title: format!("Remove {}?", consumer.name),
            effects: vec![
                format!("It ends {tokens}, and every authorization that has begun."),
                "Nothing brings it back: its key is never used again. To stop it for a while, disable it.".to_owned(),
            ],
            fields: vec![("key", key.to_string())],
            button: "Remove for good",
            is_destructive: true,
            typed: has_tokens.then(|| key.to_string()),
            state,
            back: path("/consumer", &[("key", key.as_str())]),
            ..PlannedChange::default()
        }))
    }

    /// Makes the link of its developer, and shows it this once.
    async fn make_link(&self, consumer: &Consumer) -> Result<OwnResponse> {
        let (backend, state) = (self.backend, state_of(consumer));
        let (key, name) = (&consumer.key, &consumer.name);
        if self.is_confirmed(&state)? {
            let by = self.actor();
            let link = backend.manage.make_developer_link(&by, key).await?;
            let url = link.url(&backend.base_url, &backend.rules.flow);
            return Ok(self.hand_over_link(consumer, url, link.until));
        }
        Ok(self.confirm(&PlannedChange {
            title: format!("A link for the developer of {name}?"),
            effects: vec![
                "Whoever has the link sees, for 24 hours, which calls of this consumer were rejected and why, and can have a request \
                 checked. It shows no secret, no user and nothing of other consumers."
                    .to_owned(),
                "A link that was made before ends.".to_owned(),
            ],
            fields: vec![("key", key.to_string())],
            button: "Make the link",
            state,
            back: path("/consumer", &[("key", key.as_str())]),
            ..PlannedChange::default()
        }))
    }

    fn done(consumer: &Consumer) -> OwnResponse {
        let parameters = [("key", consumer.key.as_str()), ("done", "1")];
        OwnResponse::see_other(path("/consumer", &parameters))
    }

    async fn live_tokens(&self, consumer: &Consumer) -> Result<String> {
        let filter = TokenFilter {
            consumer: Some(consumer.key.clone()),
            ..TokenFilter::default()
        };
        self.counted_tokens(filter, None).await
    }

    async fn rotate(&self, consumer: &Consumer) -> Result<OwnResponse> {
        let (state, key, name) = (state_of(consumer), consumer.key.as_str(), &consumer.name);
        let is_same = |now: &Consumer| state_of(now) == state;
        let guard: Guard<'_, Consumer> = Some(&is_same);
        let grace = self.duration("grace")?;
        let back = path("/consumer", &[("key", key)]);
        if self.form.is_none() {
            let page = RotatePage {
                frame: self.shell.frame(format!("Rotate the secret of {name}")),
                csrf: self.csrf(""),
                key,
                grace: InputField::choice("grace", "Grace of the previous secret", GRACES, "7d"),
                back,
            };
            return Ok(show(200, &page));
        }
        if !self.is_confirmed(&state)? {
            let mut effects = vec![match grace {
                None => "The current secret ends at once: calls that are signed with it get 401 until the consumer has the new one.".to_owned(),
                Some(grace) => {
                    let until = time(self.now.after(grace));
                    format!("The current secret also verifies until {until}, then it ends.")
                }
            }];
            if consumer.graced_secret(self.now).is_some() {
                effects
                    .push("The previous secret, which is in its grace, ends at once.".to_owned());
            }
            effects.push(
                "Access tokens stay valid. The new secret is shown once, on the next page."
                    .to_owned(),
            );
            return Ok(self.confirm(&PlannedChange {
                title: format!("Rotate the secret of {name}?"),
                effects,
                fields: vec![
                    ("key", key.to_owned()),
                    ("grace", self.field("grace").to_owned()),
                ],
                button: "Rotate",
                is_destructive: grace.is_none(),
                state,
                back,
                ..PlannedChange::default()
            }));
        }
        let by = self.actor();
        let rotated = self
            .backend
            .manage
            .rotate_secret(&by, &consumer.key, guard, None, grace);
        let title = format!("New secret of {name}");
        Ok(self.hand_over(HandedOver::Rotated, title, &rotated.await?))
    }

    async fn add_consumer(&self) -> Result<OwnResponse> {
        if self.form.is_none() {
            return Ok(self.ask(None, None));
        }
        let mut members = self.sent(None);
        if !self.field("key").is_empty() {
            members.insert("key".to_owned(), self.field("key").into());
        }
        // The key is chosen before the confirmation: a form that is sent twice registers one consumer.
        let manage = &self.backend.manage;
        let consumer = match manage.new_consumer(members, None) {
            Ok(consumer) => consumer,
            Err(error) => return Ok(self.ask(None, Some(problem(error)?))),
        };
        let state = consumer.key.to_string();
        if !self.is_confirmed(&state)? {
            let mut facts = vec![("Key", state.clone())];
            facts.extend(described(&consumer));
            return Ok(self.confirm(&PlannedChange {
                title: format!("Register {}?", consumer.name),
                warnings: self.warnings(&consumer),
                facts,
                fields: hidden(&consumer),
                button: "Register",
                state,
                back: "/consumers".to_owned(),
                ..PlannedChange::default()
            }));
        }
        let added = manage.add_consumer(&self.actor(), consumer).await?;
        let title = format!("{} is registered", added.name);
        Ok(self.hand_over(HandedOver::Registered, title, &added))
    }

    async fn edit_consumer(&self, consumer: &Consumer) -> Result<OwnResponse> {
        let (name, state) = (&consumer.name, state_of(consumer));
        let ask = |problem| Ok(self.ask(Some(consumer), problem));
        if self.form.is_none() {
            return ask(None);
        }
        let members = self.sent(Some(consumer));
        let changed = match patched(consumer, members.clone()) {
            Ok(changed) => changed,
            Err(error) => return ask(Some(problem(error)?)),
        };
        if self.is_confirmed(&state)? {
            let is_same = |now: &Consumer| state_of(now) == state;
            let (manage, by) = (&self.backend.manage, self.actor());
            let patch = manage.patch_consumer(&by, &consumer.key, Some(&is_same), &members);
            patch.await?;
            return Ok(Self::done(consumer));
        }
        if changed == *consumer {
            return ask(Some("Nothing is changed.".to_owned()));
        }
        let (before, mut facts) = (described(consumer), described(&changed));
        facts.retain(|fact| !before.contains(fact));
        let known = self.warnings(consumer);
        let mut warnings = self.warnings(&changed);
        warnings.retain(|warning| !known.contains(warning));
        let mut effects = Vec::new();
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
        Ok(self.confirm(&PlannedChange {
            title: format!("Change {name}?"),
            warnings,
            is_destructive: !effects.is_empty(),
            effects,
            facts,
            fields: hidden(&changed),
            button: "Change",
            state,
            back: path("/consumer", &[("key", consumer.key.as_str())]),
            ..PlannedChange::default()
        }))
    }

    /// Shows the form: as it was sent, else as the consumer is.
    fn ask(&self, consumer: Option<&Consumer>, problem: Option<String>) -> OwnResponse {
        let members = consumer.map(view::members).unwrap_or_default();
        let input = |field: &RecordField| {
            let value = match &self.form {
                Some(form) => form.field(field.name).unwrap_or_default().to_owned(),
                None => field.text(&members),
            };
            InputField::for_record(field, value)
        };
        let named = |name: &str| CONSUMER_FIELDS.iter().find(|field| field.name == name);
        let signing = CONSUMER_FIELDS
            .iter()
            .filter(|field| !FIRST.contains(&field.name) && field.name != "permissions");
        let mut others = InputField::line("permissions", "Other permissions", "");
        others.help =
            "With spaces between them; the configuration has no entry for these".to_owned();
        if self.form.is_some() {
            self.field("permissions").clone_into(&mut others.value);
        }
        let key = consumer.map(|consumer| consumer.key.to_string());
        let page = ConsumerForm {
            frame: self.shell.frame(match consumer {
                None => "Register a consumer".to_owned(),
                Some(consumer) => format!("Edit {}", consumer.name),
            }),
            csrf: self.csrf(""),
            problem,
            back: match &key {
                None => "/consumers".to_owned(),
                Some(key) => path("/consumer", &[("key", key)]),
            },
            key,
            new_key: InputField::line("key", "Key (empty: a random one)", self.field("key")),
            first: FIRST.into_iter().filter_map(named).map(input).collect(),
            boxes: self.permission_boxes(consumer),
            others,
            signing: signing.map(input).collect(),
        };
        show(200, &page)
    }

    /// A box for each permission of the configuration, and for others that the consumer has.
    fn permission_boxes(&self, consumer: Option<&Consumer>) -> Vec<PermissionBox> {
        let own = consumer.map_or(&[][..], |consumer| &consumer.permissions);
        let declared = &self.backend.permissions;
        let is_ticked = |name: &str| match &self.form {
            Some(form) => form.field(&box_name(name)).is_some(),
            None => own.iter().any(|permission| permission.as_str() == name),
        };
        let boxes = declared.iter().map(|it| PermissionBox {
            name: it.name.to_string(),
            title: it.title.clone().unwrap_or_else(|| it.name.to_string()),
            is_declared: true,
            is_sensitive: it.sensitive,
            is_ticked: is_ticked(it.name.as_str()),
        });
        let others = own.iter().filter(|name| !self.is_declared(name.as_str()));
        let others = others.map(|name| PermissionBox {
            name: name.to_string(),
            title: "the configuration does not have it".to_owned(),
            is_declared: false,
            is_sensitive: false,
            is_ticked: is_ticked(name.as_str()),
        });
        boxes.chain(others).collect()
    }

    fn is_declared(&self, permission: &str) -> bool {
        let mut declared = self.backend.permissions.iter();
        declared.any(|it| it.name.as_str() == permission)
    }

    /// The members that a form has.
    fn sent(&self, consumer: Option<&Consumer>) -> Map<String, Value> {
        let boxes = self.permission_boxes(consumer).into_iter();
        let ticked = boxes.filter(|it| it.is_ticked).map(|it| it.name);
        let ticked = Vec::from_iter(ticked).join(" ");
        let member = |field: &RecordField| {
            // Browsers end lines with two characters.
            let mut text = self.field(field.name).replace('\r', "");
            if field.name == "permissions" {
                text = format!("{ticked} {text}");
            }
            (field.name.to_owned(), field.value(&text))
        };
        CONSUMER_FIELDS.iter().map(member).collect()
    }

    /// What deserves a second look before a consumer is registered or changed.
    fn warnings(&self, consumer: &Consumer) -> Vec<String> {
        let undeclared = consumer
            .permissions
            .iter()
            .filter(|it| !self.is_declared(it.as_str()));
        let undeclared = undeclared.map(|name| {
            format!("Permission {name}: the configuration has no [[permission]] of that name, so no operation can need it.")
        });
        let callbacks = consumer.callbacks.iter().filter_map(|callback| {
            let warning = callback::check_registration(callback).ok()??;
            Some(format!("Callback {callback}: {warning}"))
        });
        undeclared.chain(callbacks).collect()
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

/// The name of the box of a permission.
fn box_name(permission: &str) -> String {
    format!("permission.{permission}")
}

/// A consumer as the hidden fields of a form.
fn hidden(consumer: &Consumer) -> Vec<(&'static str, String)> {
    let members = view::members(consumer);
    let fields = CONSUMER_FIELDS.iter();
    let fields = fields.map(|field| (field.name, field.text(&members)));
    let key = ("key", consumer.key.to_string());
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

/// The fields of a consumer as texts.
fn described(consumer: &Consumer) -> Vec<(&'static str, String)> {
    let members = view::members(consumer);
    let text = |field: &RecordField| (field.label, field_text(field, &members));
    CONSUMER_FIELDS.iter().map(text).collect()
}
