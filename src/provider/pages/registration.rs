//! `mode=register`: a user asks for consumers, and manages them: another secret, other callbacks, rejected calls, their end.
//!
//! Every change names its consumer, of which the user has to be the owner in the transaction that changes it. The key of a new
//! consumer is in its form, so that a form that is sent twice registers once.

mod checks;
pub(super) mod own_token;

use std::time::Duration;

use askama::Template;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use self::checks::{NAME, own_callbacks, own_name};
use super::{
    LoggedIn, PageError, PageRequest, Worded, developer, login::LoginForm,
    settings::RegistrationMode,
};
use crate::{
    base::{
        secret::{Secret, random},
        text::{
            longest,
            names::{ConsumerKey, Permission},
        },
    },
    provider::{
        issue::registration,
        pages::{
            browser::cookies,
            form::csrf::{self, FormPurpose},
        },
        respond::{Failure, OwnResponse},
        theme::frame::Frame,
    },
    records::values::{
        record::{Consumer, Registration, User},
        use_cases::{Asked, RegistrationBounds, Updated},
    },
    request::route::{Page, ServiceCall, TokenCall},
    telemetry::audit::{Actor, CommandRecord, changed_value},
    wire::url::web_page::web_page,
};

/// The length of a key, of 132 random bits.
const KEY: usize = 22;
/// The time for which the secret before a new one also verifies, if its owner wants that.
const GRACE: Duration = Duration::from_secs(24 * 3600);
/// The lifetime of the link to the rejected calls.
const LINK: Duration = Duration::from_secs(3600);

#[derive(Template)]
#[template(path = "registration.html")]
struct RegistrationPage<'a> {
    frame: Frame<'a>,
    user: &'a User,
    problem: Option<Problem>,
    consumers: &'a [Consumer],
    /// The form of another one; `None`: the user has as many as may be.
    form: Option<NewForm>,
    /// An operator decides on each.
    needs_approval: bool,
    /// No user gets another one, and a page about that, if there is one.
    ended: Option<Option<String>>,
}

/// Why nothing was changed: a message, the field at fault, and what is wrong with it in English.
struct Problem {
    message: &'static str,
    field: &'static str,
    details: Option<String>,
}

/// The problem of what the user wrote into a field.
fn invalid(field: &'static str, details: impl ToString) -> Problem {
    Problem {
        message: "register-invalid",
        field,
        details: Some(details.to_string()),
    }
}

/// A consumer of the user.
#[derive(Template)]
#[template(path = "own-consumer.html")]
struct OwnPage<'a> {
    frame: Frame<'a>,
    problem: Option<Problem>,
    consumer: &'a Consumer,
    /// The class and the message of its state.
    state: (&'static str, &'static str),
    callbacks: &'a str,
    shows_rejections: bool,
    /// The values of the forms that make a new secret, change the callbacks, and lead to the rejected calls.
    csrf: [String; 3],
    /// Its owner may make a token of it.
    makes_token: bool,
}

/// The form of a new consumer, with what was in it.
struct NewForm {
    key: String,
    csrf: String,
    fields: [Field; 5],
    permissions: Vec<WantedPermission>,
    /// Some of them are sensitive.
    has_sensitive: bool,
}

/// A field of the form.
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
    longest: usize,
    is_wrong: bool,
}

/// A permission that the form can ask for.
struct WantedPermission {
    name: Permission,
    title: Worded,
    is_sensitive: bool,
    is_wanted: bool,
}

/// A secret that was just made.
#[derive(Template)]
#[template(path = "registered.html")]
struct RegisteredPage<'a> {
    frame: Frame<'a>,
    consumer: &'a Consumer,
    secret: &'a str,
    waits: bool,
    /// The addresses of the flow by their English names.
    addresses: [(&'static str, String); 3],
}

/// The question before a consumer ends.
#[derive(Template)]
#[template(path = "end-consumer.html")]
struct EndPage<'a> {
    frame: Frame<'a>,
    csrf: &'a str,
    consumer: &'a Consumer,
}

/// The names of the fields of a new consumer, their labels, and their longest texts.
const FIELDS: [(&str, &str, usize); 5] = [
    ("name", "register-name", NAME),
    (
        "description",
        "register-description",
        longest::SHOWN_CHARACTERS,
    ),
    ("website", "register-website", longest::WEB_PAGE),
    ("contact", "register-contact", longest::CONTACT),
    ("callbacks", "register-callbacks", longest::CALLBACK),
];

impl PageRequest<'_> {
    /// Responds to the page of a user's own consumers.
    pub(super) async fn registration(&self) -> Result<OwnResponse, Failure> {
        let key = self.field("key").unwrap_or_default();
        match self.field("act") {
            Some("register") => self.ask_for(key).await,
            Some("rotate") => self.rotate_own(key).await,
            Some("callbacks") => self.change_callbacks(key).await,
            Some("rejections") => self.lead_to_rejections(key).await,
            Some("token") => self.make_own_token(key).await,
            Some("end") => self.end_own(key).await,
            Some(_) => Err(PageError::Malformed("error-malformed-form").into()),
            None => {
                let here = self.frame.link("register");
                let login = LoginForm::leading_back_to(&here);
                let caller = match self.caller_or_form(&login).await? {
                    Ok(caller) => caller,
                    Err(login) => return Ok(login),
                };
                let named = |name| self.parameter(name);
                match (named("of")?, named("token")?, named("end")?) {
                    (None, None, None) => self.own_consumers(&caller, None).await,
                    (Some(key), ..) => {
                        let consumer = self.own(&caller, &key).await?;
                        match self.collection(&consumer)? {
                            Some(file) => Ok(file),
                            None => Ok(self.own_consumer(&caller, &consumer, None)),
                        }
                    }
                    (None, Some(key), _) => {
                        let consumer = self.own(&caller, &key).await?;
                        self.ask_own_token(&caller, &consumer)
                    }
                    (None, None, Some(key)) => {
                        let consumer = self.own(&caller, &key).await?;
                        Ok(self.page(&EndPage {
                            frame: self.frame,
                            csrf: &self.value(&caller, "end", &key),
                            consumer: &consumer,
                        }))
                    }
                }
            }
        }
    }

    /// The value of the form that does `act` to a consumer.
    pub(super) fn value(&self, caller: &LoggedIn, act: &str, key: &str) -> String {
        csrf::value(&caller.id, FormPurpose::Register, &format!("{act} {key}"))
    }

    /// The user who sent the form that does `act` to a consumer.
    async fn owner(&self, act: &str, key: &str) -> Result<LoggedIn, Failure> {
        let (purpose, here) = (FormPurpose::Register, self.frame.link("register"));
        self.sender(purpose, &format!("{act} {key}"), &here).await
    }

    /// The user who sent the form that does an act to a consumer as it is, and that consumer.
    pub(super) async fn owner_of(
        &self,
        act: impl FnOnce(&Consumer) -> String,
        key: &str,
    ) -> Result<(LoggedIn, Consumer), Failure> {
        let caller = self.logged_in().await?;
        let caller = caller.ok_or_else(|| self.stale(false, &self.frame.link("register")))?;
        let consumer = self.own(&caller, key).await?;
        let caller = self.owner(&act(&consumer), key).await?;
        Ok((caller, consumer))
    }

    /// A consumer of this user.
    pub(super) async fn own(&self, caller: &LoggedIn, key: &str) -> Result<Consumer, Failure> {
        let unknown = || Failure::from(PageError::ApplicationUnknown);
        let key: ConsumerKey = key.parse().map_err(|_| unknown())?;
        let found = self.store().consumer(&key).await?;
        let owned = found.filter(|found| found.owner.as_ref() == Some(&caller.user.id));
        owned.ok_or_else(unknown)
    }

    /// Lists the user's consumers, with the form of another one.
    async fn own_consumers(
        &self,
        caller: &LoggedIn,
        problem: Option<Problem>,
    ) -> Result<OwnResponse, Failure> {
        let rules = &self.pages.rules;
        let most = rules.registration.per_user.get();
        let owned = self.store().consumers_of_owner(&caller.user.id, most);
        let owned = owned.await?;
        let wrong = problem.as_ref().map_or("", |problem| problem.field);
        let ended = self.ended();
        let may_ask = ended.is_none() && owned.len() < most as usize;
        let form = may_ask.then(|| self.new_form(caller, wrong));
        let status = if problem.is_some() { 400 } else { 200 };
        let template = RegistrationPage {
            frame: self.frame,
            user: &caller.user,
            problem,
            consumers: &owned,
            form: form.transpose()?,
            needs_approval: rules.registration.mode == RegistrationMode::Approval,
            ended,
        };
        Ok(OwnResponse::page(self.frame, status, &template, ""))
    }

    /// That no user gets another consumer, and a page about it.
    fn ended(&self) -> Option<Option<String>> {
        let sunset = self.pages.rules.sunset.as_deref();
        let ended = sunset.filter(|sunset| !sunset.new_consumers());
        ended.map(|sunset| sunset.page())
    }

    /// Shows one of the user's consumers.
    fn own_consumer(
        &self,
        caller: &LoggedIn,
        consumer: &Consumer,
        problem: Option<Problem>,
    ) -> OwnResponse {
        let key = consumer.key.as_str();
        let rotation = rotation(consumer);
        let callbacks = change_of_callbacks(consumer);
        let acts = [&*rotation, &*callbacks, "rejections"];
        let status = if problem.is_some() { 400 } else { 200 };
        let registered = consumer.callbacks.join("\n");
        let template = OwnPage {
            frame: self.frame,
            consumer,
            state: state(consumer),
            callbacks: self
                .field("callbacks")
                .filter(|_| problem.is_some())
                .unwrap_or(&registered),
            problem,
            shows_rejections: self.pages.rules.signature_check.is_some(),
            csrf: acts.map(|act| self.value(caller, act, key)),
            makes_token: self.makes_own_token(consumer),
        };
        OwnResponse::page(self.frame, status, &template, "")
    }

    fn new_form(&self, caller: &LoggedIn, wrong: &str) -> Result<NewForm, Failure> {
        let key = random::name::<ConsumerKey>()?.to_string();
        let permissions = self.pages.rules.permissions.iter().map(|declared| {
            let name = &declared.name;
            WantedPermission {
                name: name.clone(),
                title: self.wording().described(name).0,
                is_sensitive: declared.sensitive,
                is_wanted: self.wants(name),
            }
        });
        Ok(NewForm {
            csrf: self.value(caller, "register", &key),
            key,
            fields: FIELDS.map(|(name, label, longest)| Field {
                name,
                label,
                value: self.field(name).unwrap_or_default().to_owned(),
                longest,
                is_wrong: name == wrong,
            }),
            permissions: permissions.collect(),
            has_sensitive: self.pages.rules.permissions.iter().any(|it| it.sensitive),
        })
    }

    /// Whether the form asks for a permission.
    fn wants(&self, permission: &Permission) -> bool {
        self.field(&format!("permission {permission}")).is_some()
    }

    /// Registers a consumer.
    async fn ask_for(&self, key: &str) -> Result<OwnResponse, Failure> {
        let caller = self.owner("register", key).await?;
        let here = self.frame.link("register");
        let rules = &self.pages.rules;
        if self.ended().is_some() {
            // The page says so.
            return Ok(OwnResponse::see_other(here));
        }
        // The field distinguishes two forms. The user can write any value in it, but cannot choose the key of the consumer.
        let mut key = csrf::value(&caller.id, FormPurpose::Register, &format!("key {key}"));
        key.truncate(KEY);
        let key = key.parse();
        let key = key.map_err(|_| PageError::Malformed("error-malformed-form"))?;
        let new = Consumer::new(key, random::secret()?, String::new(), self.now);
        let consumer = match self.asked(new, &caller) {
            Ok(consumer) => consumer,
            Err(problem) => return self.own_consumers(&caller, Some(problem)).await,
        };
        let bounds = RegistrationBounds {
            per_user: rules.registration.per_user.get(),
            per_day: rules.registration.per_day.get(),
        };
        let asking =
            self.store()
                .ask_for_consumer(consumer.clone(), &caller.user.id, bounds, self.now);
        let (message, field) = match asking.await? {
            Asked::Registered => {
                self.record_own("consumer_asked", &caller, &consumer)
                    .await?;
                return Ok(self.registered(&consumer));
            }
            // The same form again.
            Asked::Before => return Ok(OwnResponse::see_other(here)),
            Asked::NameTaken => ("register-taken", "name"),
            Asked::TooMany => ("register-too-many", ""),
        };
        let problem = Problem {
            message,
            field,
            details: None,
        };
        self.own_consumers(&caller, Some(problem)).await
    }

    /// The consumer that a form asks for.
    fn asked(&self, new: Consumer, caller: &LoggedIn) -> Result<Consumer, Problem> {
        let rules = &self.pages.rules;
        let [name, description, website, contact, callbacks] =
            FIELDS.map(|(name, ..)| self.field(name).unwrap_or_default().trim());
        let wanted = rules.permissions.iter().filter(|it| self.wants(&it.name));
        let is_sensitive = wanted.clone().any(|it| it.sensitive);
        let waits = is_sensitive || rules.registration.mode != RegistrationMode::Open;
        let name = own_name(name, rules.theme.rules.name());
        let description = registration::shown_name(description);
        let website = (!website.is_empty()).then(|| web_page(website)).transpose();
        Ok(Consumer {
            name: name.map_err(|it| invalid("name", it))?,
            description: Some(description.map_err(|it| invalid("description", it))?),
            website: website.map_err(|it| invalid("website", it))?,
            contact: Some(registration::contact(contact).map_err(|it| invalid("contact", it))?),
            callbacks: own_callbacks(callbacks).map_err(|it| invalid("callbacks", it))?,
            permissions: wanted.map(|it| it.name.clone()).collect(),
            owner: Some(caller.user.id.clone()),
            registration: Some(match waits {
                true => Registration::Waiting,
                false => Registration::Unchecked,
            }),
            enabled: !waits,
            ..new
        })
    }

    /// Gives a consumer another secret, which is shown this once.
    async fn rotate_own(&self, key: &str) -> Result<OwnResponse, Failure> {
        // The form names the secret that it replaces: sent twice, it makes one new secret.
        let (caller, before) = self.owner_of(rotation, key).await?;
        let secret = random::secret()?;
        let (now, grace) = (self.now, self.field("grace").map(|_| GRACE));
        let rotate = |consumer: &mut Consumer| {
            let is_same = consumer.secret == before.secret;
            consumer.replace_secret(secret.clone(), now, grace);
            is_same
        };
        let consumer = self.update_own(&caller, &before, &rotate).await?;
        self.record_own("consumer_secret_rotated", &caller, &consumer)
            .await?;
        Ok(self.registered(&consumer))
    }

    /// Changes the callbacks of a consumer, or asks for that.
    async fn change_callbacks(&self, key: &str) -> Result<OwnResponse, Failure> {
        // The form names the state that it changes: sent again after a decision, it asks for nothing.
        let (caller, before) = self.owner_of(change_of_callbacks, key).await?;
        let callbacks = match own_callbacks(self.field("callbacks").unwrap_or_default()) {
            Ok(callbacks) => callbacks,
            Err(details) => {
                let problem = Some(invalid("", details));
                return Ok(self.own_consumer(&caller, &before, problem));
            }
        };
        let is_open = self.pages.rules.registration.mode == RegistrationMode::Open;
        let state = change_of_callbacks(&before);
        let change = |consumer: &mut Consumer| {
            let is_same = change_of_callbacks(consumer) == state;
            let (asked, own) = (&mut consumer.asked_callbacks, &mut consumer.callbacks);
            match is_open && consumer.registration == Some(Registration::Unchecked) {
                true => own.clone_from(&callbacks),
                false => asked.clone_from(&callbacks),
            }
            // Asked for before, under the other mode or by an operator.
            if *own == callbacks {
                asked.clear();
            }
            consumer.decision = None;
            consumer.enabled && is_same
        };
        let consumer = self.update_own(&caller, &before, &change).await?;
        let changes = [
            ("callbacks", &before.callbacks, &consumer.callbacks),
            (
                "asked_callbacks",
                &before.asked_callbacks,
                &consumer.asked_callbacks,
            ),
        ];
        let changes = changes
            .into_iter()
            .filter(|(_, before, after)| before != after);
        let changes =
            changes.map(|(name, before, after)| changed_value(name, &json!(before), &json!(after)));
        let record = self.record_of("consumer_callbacks_asked", &caller, &consumer)?;
        self.keep(CommandRecord {
            changes: Some(Vec::from_iter(changes).join("; ")),
            ..record
        })
        .await?;
        Ok(OwnResponse::see_other(
            self.frame.link_with("register", "of", key),
        ))
    }

    /// Leads to the rejected calls of a consumer.
    async fn lead_to_rejections(&self, key: &str) -> Result<OwnResponse, Failure> {
        let caller = self.owner("rejections", key).await?;
        let consumer = self.own(&caller, key).await?;
        if !consumer.enabled || self.pages.rules.signature_check.is_none() {
            return Err(PageError::LinkUnknown.into());
        }
        let link: Secret = random::secret()?;
        let (hash, until) = (cookies::id_hash(&link), self.now.after(LINK));
        let put = self.store().put_developer_link(&consumer.key, &hash, until);
        put.await?;
        self.record_own("developer_link_made", &caller, &consumer)
            .await?;
        let (name, link) = (developer::PARAMETER, link.expose_text());
        let page = self.frame.link_with("developer", name, &link);
        Ok(OwnResponse::see_other(page))
    }

    /// Removes a consumer with all its tokens.
    async fn end_own(&self, key: &str) -> Result<OwnResponse, Failure> {
        let caller = self.owner("end", key).await?;
        let consumer = self.own(&caller, key).await?;
        let is_own = |found: &Consumer| found.owner == consumer.owner;
        let removing = self.store().remove_consumer(&consumer.key, Some(&is_own));
        if removing.await? {
            self.record_own("consumer_removed", &caller, &consumer)
                .await?;
        }
        Ok(OwnResponse::see_other(self.frame.link("register")))
    }

    /// Changes a consumer of this user.
    async fn update_own(
        &self,
        caller: &LoggedIn,
        before: &Consumer,
        change: &(dyn Fn(&mut Consumer) -> bool + Sync),
    ) -> Result<Consumer, Failure> {
        let change = |consumer: &mut Consumer| {
            consumer.owner.as_ref() == Some(&caller.user.id) && change(consumer)
        };
        match self.store().update_consumer(&before.key, &change).await? {
            Updated::Updated(consumer) => Ok(*consumer),
            Updated::Refused | Updated::Unknown => Err(PageError::ApplicationUnknown.into()),
        }
    }

    /// Records what the user did to a consumer, and lets it take effect here at once.
    async fn record_own(
        &self,
        event: &str,
        caller: &LoggedIn,
        consumer: &Consumer,
    ) -> Result<(), Failure> {
        self.keep(self.record_of(event, caller, consumer)?).await
    }

    pub(super) fn record_of(
        &self,
        event: &str,
        caller: &LoggedIn,
        consumer: &Consumer,
    ) -> Result<CommandRecord, Failure> {
        Ok(CommandRecord {
            id: random::identifier()?,
            event: event.to_owned(),
            consumer: Some(consumer.key.to_string()),
            user: Some(caller.user.id.to_string()),
            actor: Actor {
                address: Some(self.address.to_string()),
                ..Actor::of_process("page")
            },
            ..CommandRecord::default()
        })
    }

    pub(super) async fn keep(&self, record: CommandRecord) -> Result<(), Failure> {
        self.store().record_command(self.now, &record).await?;
        self.pages.services.feed.follow().await?;
        Ok(())
    }

    /// Shows a secret that was just made.
    fn registered(&self, consumer: &Consumer) -> OwnResponse {
        let base = &self.pages.rules.origins.base.origin;
        let calls = [
            ("Request token", ServiceCall::Token(TokenCall::RequestToken)),
            ("Authorization page", ServiceCall::Page(Page::Authorize)),
            ("Access token", ServiceCall::Token(TokenCall::AccessToken)),
        ];
        self.page(&RegisteredPage {
            frame: self.frame,
            consumer,
            secret: &consumer.secret.expose_text(),
            waits: consumer.is_unapproved(),
            addresses: calls
                .map(|(name, call)| (name, format!("{base}{}", self.flow.best_of(call)))),
        })
    }
}

/// The act that replaces the secret which a consumer has.
fn rotation(consumer: &Consumer) -> String {
    let hash = cookies::id_hash(&consumer.secret);
    format!("rotate {}", URL_SAFE_NO_PAD.encode(hash))
}

/// The act that changes the callbacks of a consumer as they are, and as the operator last decided.
fn change_of_callbacks(consumer: &Consumer) -> String {
    let (own, asked) = (&consumer.callbacks, &consumer.asked_callbacks);
    let state = json!([own, asked, consumer.registration, consumer.decision]);
    let hash = cookies::id_hash(&Secret::from(state.to_string()));
    format!("callbacks {}", URL_SAFE_NO_PAD.encode(hash))
}

/// The class and the message of the state of a consumer.
fn state(consumer: &Consumer) -> (&'static str, &'static str) {
    match consumer.registration {
        Some(Registration::Waiting) => ("warn", "register-waiting"),
        Some(Registration::Declined) => ("bad", "register-declined"),
        _ if !consumer.enabled => ("bad", "register-disabled"),
        _ => ("", "register-works"),
    }
}
