//! The fields and the secret of a consumer: registering, changing, rotating.

use std::time::Duration;

use askama::Template;
use serde_json::{Map, Value};

use super::{change::PlannedChange, consumer::is_usual, handover::HandedOver};
use crate::{
    base::{clock::parse_duration, text::names::Permission},
    operator::{
        admin::console::{
            ConsoleRequest, Rejected, Result,
            page::{ConsoleFrame, InputField, show},
            parts::{field_text, listed, path, time},
        },
        manage::{CONSUMER_FIELDS, ManageError, RecordField, new_consumer, patched, view},
    },
    provider::{
        endpoints::exchange::after_rotation, issue::callback, pages::settings::PermissionSettings,
        respond::OwnResponse,
    },
    records::values::record::Consumer,
};

/// The times of a grace; the first one is preselected, and the last one is an outage by design.
const GRACES: &[(&str, &str)] = &[
    ("7d", "7 days"),
    ("1d", "1 day"),
    ("1h", "1 hour"),
    ("30d", "30 days"),
    ("", "none: its calls fail until it has the new secret"),
];

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
    /// Gives a consumer another secret.
    pub(crate) async fn rotate_secret(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        let grace = self.duration("grace")?;
        if self.form.is_none() {
            let page = RotatePage {
                frame: self.shell.frame(format!("Rotate the secret of {name}")),
                csrf: self.csrf(""),
                key: key.as_str(),
                grace: InputField::choice(
                    "grace",
                    "How long the old secret still works",
                    GRACES,
                    "7d",
                ),
                back: path("/consumer", &[("key", key.as_str())]),
            };
            return Ok(show(200, &page));
        }
        if asked.is_confirmed {
            let operator = self.operator();
            let rotated = operator.rotate_secret(key, asked.guard(), None, grace);
            let title = format!("New secret of {name}");
            return Ok(self.hand_over(HandedOver::Rotated, title, &rotated.await?));
        }
        let mut effects = vec![match grace {
            None => "The current secret ends at once: calls that are signed with it get 401 until the consumer has the new one.".to_owned(),
            Some(grace) => {
                let until = time(self.now.after(grace));
                format!("The current secret also verifies until {until}, then it ends.")
            }
        }];
        if asked.record.graced_secret(self.now).is_some() {
            let ended = "The previous secret, which is in its grace, ends at once.";
            effects.push(ended.to_owned());
        }
        let stays = "Access tokens stay valid. The new secret is shown once, on the next page.";
        effects.push(stays.to_owned());
        if let Some(exchange) = &self.admin.shared.live.load().endpoints.exchange {
            let (ttl, names_token) = (exchange.ttl, exchange.names_token);
            effects.push(after_rotation(ttl, names_token, key));
        }
        let title = format!("Rotate the secret of {name}?");
        let mut change = asked.planned(title, effects, "Rotate");
        change.is_destructive = grace.is_none();
        let grace = self.field("grace").to_owned();
        change.fields.push(("grace", grace));
        Ok(self.confirm(&change))
    }

    /// Registers a consumer.
    pub(crate) async fn add_consumer(&self) -> Result<OwnResponse> {
        if self.form.is_none() {
            return Ok(self.ask(None, None, None));
        }
        let mut members = self.sent(None);
        if !self.field("key").is_empty() {
            members.insert("key".to_owned(), self.field("key").into());
        }
        // The key is chosen before the confirmation: a form that is sent twice registers one consumer.
        let consumer = match new_consumer(members, None, self.now) {
            Ok(consumer) => consumer,
            Err(error) => return Ok(self.ask(None, None, Some(problem(error)?))),
        };
        if self.is_changing() {
            return Ok(self.ask(None, Some(&consumer), None));
        }
        let state = consumer.key.to_string();
        if !self.is_confirmed(&state)? {
            let mut facts = vec![("Key", state.clone())];
            facts.extend(
                described(&consumer)
                    .into_iter()
                    .filter(|(_, text)| !is_usual(text)),
            );
            let mut warnings = self.warnings(&consumer);
            let live = self.admin.shared.live.load();
            let operations = live.authorizer.operations.listed();
            let needs = operations
                .iter()
                .filter(|it| it.rules.permission.is_some())
                .count();
            if consumer.permissions.is_empty() && needs > 0 {
                warnings.insert(0, format!("It has no permission: its calls of the {needs} operations that need one are rejected."));
            }
            return Ok(self.confirm(&PlannedChange {
                title: format!("Register {}?", consumer.name),
                warnings,
                facts,
                fields: hidden(&consumer),
                button: "Register",
                may_change: true,
                state,
                back: "/consumers".to_owned(),
                ..PlannedChange::default()
            }));
        }
        let added = self.operator().add_consumer(consumer).await?;
        let title = format!("{} is registered", added.name);
        Ok(self.hand_over(HandedOver::Registered, title, &added))
    }

    /// Changes the fields of a consumer.
    pub(crate) async fn edit_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let consumer = &asked.record;
        let ask = |problem| Ok(self.ask(Some(consumer), None, problem));
        if self.form.is_none() {
            return Ok(self.ask(Some(consumer), Some(consumer), None));
        }
        let members = self.sent(Some(consumer));
        let changed = match patched(consumer, members.clone()) {
            Ok(changed) => changed,
            Err(error) => return ask(Some(problem(error)?)),
        };
        if self.is_changing() {
            return Ok(self.ask(Some(consumer), Some(&changed), None));
        }
        if asked.is_confirmed {
            self.operator()
                .patch_consumer(&consumer.key, asked.guard(), &members)
                .await?;
            return Ok(asked.done());
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
        let is_destructive = !effects.is_empty();
        let title = format!("Change {}?", consumer.name);
        Ok(self.confirm(&PlannedChange {
            warnings,
            is_destructive,
            facts,
            fields: hidden(&changed),
            may_change: true,
            ..asked.planned(title, effects, "Change")
        }))
    }

    /// Whether the operator goes back from the review to the form.
    fn is_changing(&self) -> bool {
        !self.field("change").is_empty()
    }

    /// Shows the form of a registered consumer or of a new one: as `shown` is, else as it was sent.
    fn ask(
        &self,
        consumer: Option<&Consumer>,
        shown: Option<&Consumer>,
        problem: Option<String>,
    ) -> OwnResponse {
        let members = shown.map(view::members);
        let input = |field: &RecordField| {
            let value = match &members {
                Some(members) => field.text(members),
                None => self.field(field.name).to_owned(),
            };
            InputField::for_record(field, value)
        };
        let (first, others): (Vec<_>, Vec<_>) = CONSUMER_FIELDS
            .iter()
            .filter(|field| field.name != "permissions")
            .partition(|field| field.is_asked_first);
        let inputs = |fields: Vec<_>| fields.into_iter().map(input).collect();
        let mut undeclared = InputField::line("permissions", "Other permissions", "");
        undeclared.help =
            "With spaces between them; the configuration has no entry for these".to_owned();
        let boxes = self.permission_boxes(consumer, shown);
        undeclared.value = match shown {
            None => self.field("permissions").to_owned(),
            Some(shown) => {
                let has_box = |name: &&Permission| boxes.iter().any(|it| it.name == name.as_str());
                let others = shown.permissions.iter().filter(|name| !has_box(name));
                Vec::from_iter(others.map(Permission::as_str)).join(" ")
            }
        };
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
            first: inputs(first),
            boxes,
            others: undeclared,
            signing: inputs(others),
        };
        show(200, &page)
    }

    /// A box for each permission of the configuration, and for others that the consumer has.
    fn permission_boxes(
        &self,
        consumer: Option<&Consumer>,
        shown: Option<&Consumer>,
    ) -> Vec<PermissionBox> {
        let own = consumer.map_or(&[][..], |consumer| &consumer.permissions);
        let declared = &self.backend.permissions;
        let is_ticked = |name: &str| match shown {
            None => !self.field(&format!("permission.{name}")).is_empty(),
            Some(shown) => shown.permissions.iter().any(|it| it.as_str() == name),
        };
        let boxes = declared.iter().map(|it| PermissionBox {
            name: it.name.to_string(),
            title: it.title.clone().unwrap_or_else(|| it.name.to_string()),
            is_declared: true,
            is_sensitive: it.sensitive,
            is_ticked: is_ticked(it.name.as_str()),
        });
        let is_declared = |name: &Permission| declared.iter().any(|it| it.name == *name);
        let others = own.iter().filter(|name| !is_declared(name));
        let others = others.map(|name| PermissionBox {
            name: name.to_string(),
            title: "the configuration does not have it".to_owned(),
            is_declared: false,
            is_sensitive: false,
            is_ticked: is_ticked(name.as_str()),
        });
        boxes.chain(others).collect()
    }

    /// The members that a form has.
    fn sent(&self, consumer: Option<&Consumer>) -> Map<String, Value> {
        let boxes = self.permission_boxes(consumer, None).into_iter();
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
        let declared = &self.backend.permissions;
        let undeclared = consumer.permissions.iter().filter_map(|name| {
            let warning = PermissionSettings::undeclared(declared, name)?;
            Some(format!("Permission {warning}."))
        });
        let callbacks = consumer.callbacks.iter().filter_map(|callback| {
            let warning = callback::check_registration(callback).ok()??;
            Some(format!("Callback {callback}: {warning}"))
        });
        undeclared.chain(callbacks).collect()
    }

    /// A duration of the form or the query; `None` if it is empty.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>> {
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
