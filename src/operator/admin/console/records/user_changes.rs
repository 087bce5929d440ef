//! Changes of accounts. The form itself says what it ends: a password is not repeated on a further page.

use askama::Template;
use serde_json::Value;

use super::change::{AskedChange, state_of_user};
use crate::{
    base::secret::{Secret, random},
    operator::{
        admin::console::{
            ConsoleRequest, Rejected, Result,
            page::{ConsoleFrame, InputField, InputKind, show},
            parts::{counted, path},
        },
        manage::{ManageError, RecordField, USER_FIELDS, new_user, view},
    },
    provider::{
        login::new_password::{self, Weakness},
        respond::OwnResponse,
    },
    records::values::{record::User, use_cases::TokenFilter},
};

#[derive(Template)]
#[template(path = "console/user-form.html")]
struct UserForm<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    problem: Option<String>,
    effect: String,
    /// The user who is changed; `None`: one is made.
    id: Option<&'a str>,
    fields: Vec<InputField>,
    /// A password may be made here.
    may_be_random: bool,
    button: &'static str,
    back: String,
}

impl ConsoleRequest<'_> {
    /// Makes an account.
    pub(crate) async fn add_user(&self) -> Result<OwnResponse> {
        let problem = match self.form {
            None => None,
            Some(_) => {
                self.check_form("")?;
                match self.added().await? {
                    Ok((user, Some(random))) => return Ok(self.hand_over_password(&user, &random)),
                    Ok((user, None)) => return Ok(done(&user)),
                    Err(problem) => Some(problem),
                }
            }
        };
        let mut fields = Vec::from_iter(USER_FIELDS.iter().map(|field| self.input(field)));
        let mut id = InputField::line("id", "Id", self.field("id"));
        "What the API sees of the user; without one a random one".clone_into(&mut id.help);
        fields.push(id);
        fields.extend(self.passwords(problem.as_ref()));
        let page = UserForm {
            frame: self.shell.frame("Add a user"),
            csrf: self.csrf(""),
            problem: problem.map(|it| it.text),
            effect: "Without a password the user cannot log in by one. It is not shown again."
                .to_owned(),
            id: None,
            fields,
            may_be_random: true,
            button: "Add",
            back: "/users".to_owned(),
        };
        Ok(show(200, &page))
    }

    /// The user that was added, with a password that was made here, or why none was.
    async fn added(&self) -> Result<Result<(User, Option<Secret>), Problem>> {
        let sent = USER_FIELDS
            .iter()
            .map(|field| (field.name, field.value(self.field(field.name))));
        let sent = sent.chain([("id", Value::from(self.field("id")))]);
        let sent = sent.filter(|(name, _)| !self.field(name).is_empty());
        let members = sent.map(|(name, value)| (name.to_owned(), value));
        let user = new_user(members.collect(), self.now);
        let mut user = match user {
            Ok(user) => user,
            Err(error) => return Ok(Err(problem(error)?.into())),
        };
        let mut random = None;
        if ["password", "again", "random"]
            .iter()
            .any(|name| !self.typed(name).is_empty())
        {
            let hashed = match self.hashed(&user).await? {
                Ok(hashed) => hashed,
                Err(problem) => return Ok(Err(problem)),
            };
            (user.password_hash, random) = (Some(hashed.hash), hashed.random);
        }
        match self.operator().add_user(&user).await {
            Ok(()) => Ok(Ok((user, random))),
            Err(error) => Ok(Err(problem(error)?.into())),
        }
    }

    /// Changes the fields of a user.
    pub(crate) async fn edit_user(&self) -> Result<OwnResponse> {
        let user = self.named_user().await?;
        let state = state_of_user(&user);
        let mut problem = None;
        if self.form.is_some() {
            self.check_form(&state)?;
            let sent = USER_FIELDS.iter().map(|field| {
                let value = field.value(self.field(field.name));
                (field.name.to_owned(), value)
            });
            let is_same = |now: &User| state_of_user(now) == state;
            let members = sent.collect();
            match self
                .operator()
                .patch_user(&user.id, Some(&is_same), &members)
                .await
            {
                Ok(_) => return Ok(done(&user)),
                Err(error) => problem = Some(self::problem(error)?),
            }
        }
        let members = view::members(&user);
        let fields = USER_FIELDS.iter().map(|field| {
            let value = match &self.form {
                Some(_) => self.field(field.name).to_owned(),
                None => field.text(&members),
            };
            InputField::for_record(field, value)
        });
        let page = UserForm {
            frame: self.shell.frame(format!("Edit {}", user.name)),
            csrf: self.csrf(&state),
            problem,
            effect: "Another login name holds from the next login on. Open sessions and access tokens stay, and so does the id that \
                     the API gets."
                .to_owned(),
            id: Some(user.id.as_str()),
            fields: fields.collect(),
            may_be_random: false,
            button: "Change",
            back: path("/user", &[("id", user.id.as_str())]),
        };
        Ok(show(200, &page))
    }

    /// Sets the password of a user.
    pub(crate) async fn set_password(&self) -> Result<OwnResponse> {
        let user = self.named_user().await?;
        let state = state_of_user(&user);
        let mut problem = None;
        if self.form.is_some() {
            self.check_form(&state)?;
            match self.hashed(&user).await? {
                Ok(Hashed { hash, random }) => {
                    let is_same = |now: &User| state_of_user(now) == state;
                    let must_change = !self.field(MUST_CHANGE).is_empty();
                    self.operator()
                        .set_password(&user, Some(&is_same), hash, must_change)
                        .await?;
                    return Ok(match random {
                        Some(random) => self.hand_over_password(&user, &random),
                        None => done(&user),
                    });
                }
                Err(found) => problem = Some(found),
            }
        }
        let open = self.open_sessions(&user).await?;
        let page = UserForm {
            frame: self
                .shell
                .frame(format!("Set the password of {}", user.name)),
            csrf: self.csrf(&state),
            fields: {
                let must_change = USER_FIELDS.iter().filter(|field| field.name == MUST_CHANGE);
                let passwords = self.passwords(problem.as_ref()).into_iter();
                passwords
                    .chain(must_change.map(|field| self.input(field)))
                    .collect()
            },
            problem: problem.map(|it| it.text),
            may_be_random: true,
            effect: format!("It ends the old password and {open}. Access tokens stay valid."),
            id: Some(user.id.as_str()),
            button: "Set the password",
            back: path("/user", &[("id", user.id.as_str())]),
        };
        Ok(show(200, &page))
    }

    /// The open sessions of a user, in words.
    async fn open_sessions(&self, user: &User) -> Result<String> {
        let store = &self.backend.manage.store;
        let open = store.sessions_of(&user.id, self.now).await?;
        Ok(counted(open.len() as u64, "open session"))
    }

    /// Disables or enables an account.
    async fn set_enabled(&self, asked: &AskedChange<User>, enabled: bool) -> Result<OwnResponse> {
        let user = &asked.record.id;
        self.operator()
            .set_user_enabled(user, asked.guard(), enabled)
            .await?;
        Ok(asked.done())
    }

    pub(crate) async fn disable_user(&self) -> Result<OwnResponse> {
        let asked = self.change_of_user().await?;
        if asked.is_confirmed {
            return self.set_enabled(&asked, false).await;
        }
        let filter = TokenFilter::for_user(&asked.record.id);
        let open = self.open_sessions(&asked.record).await?;
        let tokens = self.counted_tokens(&filter).await?;
        let effects = vec![
            format!("It ends {open} and revokes {tokens}; they stay ended."),
            "The user cannot log in until the account is enabled.".to_owned(),
        ];
        let title = format!("Disable {}?", asked.record.name);
        Ok(self.confirm(&asked.destructive(title, effects, "Disable")))
    }

    pub(crate) async fn enable_user(&self) -> Result<OwnResponse> {
        let asked = self.change_of_user().await?;
        if asked.is_confirmed {
            return self.set_enabled(&asked, true).await;
        }
        let effect = "The user can log in again. Tokens and sessions that were ended stay ended.";
        let title = format!("Enable {}?", asked.record.name);
        Ok(self.confirm(&asked.planned(title, vec![effect.to_owned()], "Enable")))
    }

    /// Ends all sessions of a user.
    pub(crate) async fn end_sessions(&self) -> Result<OwnResponse> {
        let asked = self.change_of_user().await?;
        if asked.is_confirmed {
            self.operator()
                .end_sessions(&asked.record.id, asked.guard())
                .await?;
            return Ok(asked.done());
        }
        let open = self.open_sessions(&asked.record).await?;
        let effects = vec![format!(
            "It ends {open}: the user has to log in again. Access tokens stay valid."
        )];
        let title = format!("End all sessions of {}?", asked.record.name);
        Ok(self.confirm(&asked.destructive(title, effects, "End sessions")))
    }

    /// Ends the pauses of logins after failed ones of a user.
    pub(crate) async fn end_pauses(&self) -> Result<OwnResponse> {
        let asked = self.change_of_user().await?;
        let user = &asked.record;
        if asked.is_confirmed {
            let report = self.backend.throttle.report_of_end(&user.name);
            self.operator().end_login_pauses(&user.id, report).await?;
            return Ok(asked.done());
        }
        let effects = vec![
            "The failed logins of this account are forgotten, at every address and on every replica: the user, and \
             whoever guessed the password, can try again at once."
                .to_owned(),
            "Who sent the failures is in the audit log: login_failed, with the address. The pause of an address that \
             failed with many accounts stays."
                .to_owned(),
        ];
        let title = format!("End the pauses of {}?", user.name);
        Ok(self.confirm(&asked.planned(title, effects, "End the pauses")))
    }

    /// The input of a field beside a new password. An operator's password is to be changed unless the form says otherwise.
    fn input(&self, field: &RecordField) -> InputField {
        let value = match self.form {
            None if field.name == MUST_CHANGE => "1",
            _ => self.field(field.name),
        };
        InputField::for_record(field, value.to_owned())
    }

    /// A field as it was typed, with its white space.
    fn typed(&self, name: &str) -> &str {
        let form = self.form.as_ref().and_then(|form| form.field(name));
        form.unwrap_or_default()
    }

    /// The hash of the password of the form, or of a random one, or why there is none.
    async fn hashed(&self, user: &User) -> Result<Result<Hashed, Problem>> {
        let (password, again) = (self.typed("password"), self.typed("again"));
        let random = match self.typed("random") {
            "" => None,
            _ => Some(Secret::from(random::identifier()?)),
        };
        let password = match &random {
            Some(random) => random.clone(),
            None if password != again => {
                return Ok(Err("The two passwords differ.".to_owned().into()));
            }
            None => Secret::from(password),
        };
        if self.typed(WEAK).is_empty()
            && !password.is_empty()
            && let Err(weakness) = new_password::check(&password, None, user)
            && weakness != Weakness::Long
        {
            return Ok(Err(Problem {
                text: format!("The password {weakness}. Nothing was changed."),
                is_weak: true,
            }));
        }
        let hashed = self.admin.hash(password).await;
        match hashed.map_err(|_| Rejected::Busy)? {
            Ok(hash) => Ok(Ok(Hashed { hash, random })),
            Err(error) => Ok(Err(format!("Password: {error}").into())),
        }
    }

    /// The fields of a new password. A weak one can be set all the same, once somebody has read that it is.
    fn passwords(&self, problem: Option<&Problem>) -> Vec<InputField> {
        let field = |(name, label)| InputField::new(InputKind::Password, name, label, "");
        let fields = [("password", "Password"), ("again", "Repeat the password")].map(field);
        let label = "Set it all the same: the page for users would reject it";
        let weak = InputField::new(InputKind::Check, WEAK, label, self.typed(WEAK));
        let weak = problem.filter(|problem| problem.is_weak).map(|_| weak);
        fields.into_iter().chain(weak).collect()
    }
}

/// The box that has the user choose another password.
const MUST_CHANGE: &str = "must_change_password";

/// The box that lets a weak password be set.
const WEAK: &str = "weak";

/// A new password.
struct Hashed {
    hash: Secret,
    /// The password, if it was made here.
    random: Option<Secret>,
}

/// Why there is no account, or no password.
struct Problem {
    text: String,
    /// The password can be set all the same.
    is_weak: bool,
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        let is_weak = false;
        Self { text, is_weak }
    }
}

/// The message for a form that makes or changes no account; other errors are returned.
fn problem(error: ManageError) -> Result<String> {
    match error {
        ManageError::Invalid(invalid) => Ok(invalid.detail),
        ManageError::UserExists(_)
        | ManageError::UserIdTaken(_)
        | ManageError::UserAmbiguous(_) => Ok(error.to_string()),
        error => Err(error.into()),
    }
}

/// Leads to the page of a user, which says that the change was made.
fn done(user: &User) -> OwnResponse {
    let parameters = [("id", user.id.as_str()), ("done", "1")];
    OwnResponse::see_other(path("/user", &parameters))
}
