//! Changes of a consumer.

use std::time::Duration;

use super::{
    Rejected, Result, Shown, Visit,
    change::{Change, state_of},
    consumers::listed,
    page::{Field, FieldKind, Section, counted, line, link, path, time},
};
use crate::{
    clock::parse_duration,
    issue::{callback, random, registration},
    manage::{check_consumer, new_consumer},
    names::Permission,
    store::{
        port::{Guard, TokenFilter},
        record::{Consumer, Dialect},
    },
};

const DIALECTS: &[(&str, &str)] = &[
    ("", "the default"),
    ("rfc5849", "rfc5849"),
    ("legacy", "legacy: the query may be unsigned"),
];

const GRACES: &[(&str, &str)] = &[
    ("", "none: it ends at once"),
    ("1h", "1 hour"),
    ("1d", "1 day"),
    ("7d", "7 days"),
    ("30d", "30 days"),
];

impl Visit<'_> {
    pub(super) async fn change_consumer(&self) -> Result<Shown> {
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
    async fn change_state(&self, consumer: &Consumer) -> Result<Shown> {
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
                let uses = self.admin.shared.previous_secrets.of(key.as_str());
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
                    return Ok(Shown::Elsewhere("/consumers".to_owned()));
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
        Ok(self.confirm(Change {
            title,
            effects,
            fields: vec![Field::hidden("key", key.as_str())],
            button,
            state,
            back: path("/consumer", &[("key", key.as_str())]),
        }))
    }

    fn done(&self, consumer: &Consumer) -> Shown {
        let parameters = [("key", consumer.key.as_str()), ("done", "1")];
        Shown::Elsewhere(path("/consumer", &parameters))
    }

    async fn live_tokens(&self, consumer: &Consumer) -> Result<String> {
        let filter = TokenFilter {
            consumer: Some(consumer.key.clone()),
            ..TokenFilter::default()
        };
        let count = self.backend.manage.count_tokens(filter, None).await?;
        Ok(counted(count, "access token"))
    }

    async fn rotate(&self, consumer: &Consumer) -> Result<Shown> {
        let (state, key, name) = (state_of(consumer), consumer.key.as_str(), &consumer.name);
        let is_same = |now: &Consumer| state_of(now) == state;
        let guard: Guard<'_, Consumer> = Some(&is_same);
        let grace = self.duration("grace")?;
        if self.form.is_none() {
            let text = line(
                "A new random secret is made and shown once. During the grace the previous one also verifies.",
            );
            let fields = vec![
                Field::hidden("key", key),
                Field::new(
                    FieldKind::Choice(GRACES),
                    "grace",
                    "Grace of the previous secret",
                    "",
                ),
            ];
            let title = format!("Rotate the secret of {name}");
            return Ok(Shown::Page(self.ask(title, text, None, fields, "Go on")));
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
            return Ok(self.confirm(Change {
                title: format!("Rotate the secret of {name}?"),
                effects,
                fields: vec![
                    Field::hidden("key", key),
                    Field::hidden("grace", self.field("grace")),
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

    async fn add_consumer(&self) -> Result<Shown> {
        let title = "Register a consumer".to_owned();
        let text = line("Key and secret are random. The secret is shown once.");
        let ask = |problem| {
            Ok(Shown::Page(self.ask(
                title.clone(),
                text.clone(),
                problem,
                self.fields(None),
                "Go on",
            )))
        };
        if self.form.is_none() {
            return ask(None);
        }
        // The key is chosen before the confirmation: a form that is sent twice registers one consumer.
        let key = match self.field("key") {
            "" => random::name().map_err(Rejected::from)?,
            key => match key.parse() {
                Ok(key) => key,
                Err(error) => return ask(Some(format!("Key: {error}"))),
            },
        };
        let mut consumer = new_consumer(Some(key), None, String::new(), self.now)?;
        if let Err(problem) = self.fill(&mut consumer) {
            return ask(Some(problem));
        }
        let state = consumer.key.to_string();
        if !self.is_confirmed(&state)? {
            let mut effects = described(&consumer);
            effects.push("It ends nothing.".to_owned());
            return Ok(self.confirm(Change {
                title: format!("Register {}?", consumer.name),
                effects,
                fields: self.hidden(&consumer),
                button: "Register",
                state,
                back: "/consumers".to_owned(),
            }));
        }
        let added = self
            .backend
            .manage
            .add_consumer(&self.actor(), consumer)
            .await?;
        Ok(with_secret(format!("{} is registered", added.name), &added))
    }

    async fn edit_consumer(&self, consumer: &Consumer) -> Result<Shown> {
        let (name, state) = (&consumer.name, state_of(consumer));
        let ask = |problem| {
            let (title, text) = (
                format!("Edit {name}"),
                line("Users see name, description and web page on the consent page."),
            );
            Ok(Shown::Page(self.ask(
                title,
                text,
                problem,
                self.fields(Some(consumer)),
                "Go on",
            )))
        };
        if self.form.is_none() {
            return ask(None);
        }
        let mut changed = consumer.clone();
        if let Err(problem) = self.fill(&mut changed) {
            return ask(Some(problem));
        }
        let is_same = |now: &Consumer| state_of(now) == state;
        if self.is_confirmed(&state)? {
            let fill = |consumer: &mut Consumer| {
                let (secret, previous) =
                    (consumer.secret.clone(), consumer.previous_secret.clone());
                *consumer = Consumer {
                    secret,
                    previous_secret: previous,
                    enabled: consumer.enabled,
                    ..changed.clone()
                };
            };
            self.backend
                .manage
                .update_consumer(&self.actor(), &consumer.key, Some(&is_same), fill)
                .await?;
            return Ok(self.done(consumer));
        }
        if changed == *consumer {
            return ask(Some("Nothing is changed.".to_owned()));
        }
        let (before, after) = (described(consumer), described(&changed));
        let mut effects = Vec::from_iter(after.into_iter().filter(|line| !before.contains(line)));
        let lost = consumer
            .permissions
            .iter()
            .filter(|one| !changed.permissions.contains(one));
        let lost = Vec::from_iter(lost);
        if !lost.is_empty() {
            let tokens = self.live_tokens(consumer).await?;
            effects.push(format!(
                "It ends {} for its {tokens}, within a second.",
                listed(&lost)
            ));
        }
        if changed.rsa_only && !consumer.rsa_only {
            effects.push(
                "It ends every method but RSA: calls that are signed with its secret get 401."
                    .to_owned(),
            );
        }
        Ok(self.confirm(Change {
            title: format!("Change {name}?"),
            effects,
            fields: self.hidden(&changed),
            button: "Change",
            state,
            back: path("/consumer", &[("key", consumer.key.as_str())]),
        }))
    }

    /// The fields of a consumer: as they were sent, else as it is.
    fn fields(&self, consumer: Option<&Consumer>) -> Vec<Field> {
        let values = |name: &str| match (&self.form, consumer) {
            (Some(form), _) => form.field(name).unwrap_or_default().to_owned(),
            (None, Some(consumer)) => value(consumer, name),
            (None, None) => String::new(),
        };
        let field = |kind, name, label| Field::new(kind, name, label, values(name));
        let key = match consumer {
            Some(consumer) => Field::hidden("key", consumer.key.as_str()),
            None => Field::line("key", "Key (empty: a random one)", values("key")),
        };
        vec![
            key,
            field(FieldKind::Line, "name", "Name"),
            field(FieldKind::Line, "description", "Description"),
            field(FieldKind::Line, "website", "Web page"),
            field(FieldKind::Choice(DIALECTS), "dialect", "Dialect"),
            field(
                FieldKind::Lines,
                "callbacks",
                "Callbacks, one a line: URLs, or oob",
            ),
            field(FieldKind::Lines, "permissions", "Permissions, one a line"),
            field(
                FieldKind::Lines,
                "rsa_public_key",
                "RSA public key as PEM, for the RSA methods",
            ),
            field(
                FieldKind::Check,
                "rsa_only",
                "Accept the RSA methods only, never its secret",
            ),
            field(
                FieldKind::Check,
                "enforce",
                "Enforce its calls also where signatures are only observed",
            ),
        ]
    }

    fn hidden(&self, consumer: &Consumer) -> Vec<Field> {
        let names = [
            "key",
            "name",
            "description",
            "website",
            "dialect",
            "callbacks",
            "permissions",
            "rsa_public_key",
            "rsa_only",
            "enforce",
        ];
        names
            .map(|name| Field::hidden(name, value(consumer, name)))
            .into()
    }

    /// Puts what was sent into a consumer, or says what is wrong with it.
    fn fill(&self, consumer: &mut Consumer) -> Result<(), String> {
        let given = |name: &str| Some(self.field(name).to_owned()).filter(|text| !text.is_empty());
        self.field("name").clone_into(&mut consumer.name);
        consumer.description = given("description");
        consumer.website = given("website");
        consumer.dialect = match self.field("dialect") {
            "rfc5849" => Some(Dialect::Rfc5849),
            "legacy" => Some(Dialect::Legacy),
            _ => None,
        };
        consumer.callbacks = distinct(self.field("callbacks"), |text| Ok(text.to_owned()))?;
        consumer.permissions = distinct(self.field("permissions"), |text| {
            let read: Result<Permission, _> = text.parse();
            read.map_err(|error| format!("permission {text}: {error}"))
        })?;
        let pem =
            given("rsa_public_key").map(|pem| registration::rsa_public_key(&pem.replace('\r', "")));
        consumer.rsa_public_key = pem
            .transpose()
            .map_err(|error| format!("RSA public key: {error}"))?;
        consumer.rsa_only = !self.field("rsa_only").is_empty();
        consumer.enforce = !self.field("enforce").is_empty();
        check_consumer(consumer).map_err(|error| error.to_string())
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

/// The words of a text, each once.
fn distinct<T: PartialEq>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    for word in text.split_ascii_whitespace() {
        let item = read(word)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

/// A field of a consumer as forms have it.
fn value(consumer: &Consumer, name: &str) -> String {
    let lines = |items: Vec<String>| items.join("\n");
    let check = |is_set: bool| if is_set { "1" } else { "" }.to_owned();
    match name {
        "key" => consumer.key.to_string(),
        "name" => consumer.name.clone(),
        "description" => consumer.description.clone().unwrap_or_default(),
        "website" => consumer.website.clone().unwrap_or_default(),
        "dialect" => match consumer.dialect {
            None => String::new(),
            Some(Dialect::Rfc5849) => "rfc5849".to_owned(),
            Some(Dialect::Legacy) => "legacy".to_owned(),
        },
        "callbacks" => lines(consumer.callbacks.clone()),
        "permissions" => lines(
            consumer
                .permissions
                .iter()
                .map(ToString::to_string)
                .collect(),
        ),
        "rsa_public_key" => consumer.rsa_public_key.clone().unwrap_or_default(),
        "rsa_only" => check(consumer.rsa_only),
        "enforce" => check(consumer.enforce),
        _ => String::new(),
    }
}

/// What the fields of a consumer say, one line each.
fn described(consumer: &Consumer) -> Vec<String> {
    let or_none = |text: String| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text
        }
    };
    let yes = |is_so| if is_so { "yes" } else { "no" };
    let mut lines = vec![
        format!("Key: {}", consumer.key),
        format!("Name: {}", consumer.name),
    ];
    for (label, name) in [("Description", "description"), ("Web page", "website")] {
        lines.push(format!("{label}: {}", or_none(value(consumer, name))));
    }
    let dialect = value(consumer, "dialect");
    lines.push(format!(
        "Dialect: {}",
        if dialect.is_empty() {
            "the default"
        } else {
            &dialect
        }
    ));
    lines.push(format!("Callbacks: {}", listed(&consumer.callbacks)));
    lines.push(format!("Permissions: {}", listed(&consumer.permissions)));
    let key = consumer.rsa_public_key.as_deref().unwrap_or_default();
    lines.push(format!("RSA key: {}", or_none(key.to_owned())));
    lines.push(format!("RSA methods only: {}", yes(consumer.rsa_only)));
    lines.push(format!("Always enforced: {}", yes(consumer.enforce)));
    let warned = consumer.callbacks.iter().filter_map(|callback| {
        let warning = callback::check_registration(callback).ok()??;
        Some(format!("Callback {callback}: {warning}"))
    });
    lines.extend(warned);
    lines
}

/// The one page that shows a secret.
fn with_secret(title: String, consumer: &Consumer) -> Shown {
    let secret = consumer.secret.expose_text();
    let facts = [("Key", consumer.key.as_str()), ("Secret", &secret)];
    let facts = facts.map(|(name, value)| (name.to_owned(), line(value)));
    let at = path("/consumer", &[("key", consumer.key.as_str())]);
    let sections = vec![
        Section::Note(
            "warn",
            line("Copy the secret now: it is never shown again."),
        ),
        Section::Facts(facts.into()),
        Section::Actions(vec![link("I have copied it", at)]),
    ];
    Shown::Page((title, sections))
}
