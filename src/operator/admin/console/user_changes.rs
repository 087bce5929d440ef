//! New accounts, and new passwords. The form itself says what it ends: a password is not repeated on a further page.

use askama::Template;
use serde_json::{Map, Value};

use super::{
    ConsoleRequest, Rejected, Result,
    change::state_of_user,
    page::{ConsoleFrame, InputField, InputKind, show},
    parts::{counted, path},
};
use crate::{
    base::secret::Secret,
    operator::manage::{ManageError, USER_FIELDS, new_user},
    provider::respond::OwnResponse,
    records::store::record::User,
};

#[derive(Template)]
#[template(path = "console/user-form.html")]
struct UserForm<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    problem: Option<String>,
    effect: String,
    /// The user whose password is set.
    id: Option<&'a str>,
    fields: Vec<InputField>,
    button: &'static str,
    back: String,
}

impl ConsoleRequest<'_> {
    /// Makes an account.
    pub(super) async fn add_user(&self) -> Result<OwnResponse> {
        self.check_write()?;
        let problem = match self.form {
            None => None,
            Some(_) => {
                self.check_form("")?;
                match self.added().await? {
                    Ok(user) => {
                        let parameters = [("id", user.id.as_str()), ("done", "1")];
                        return Ok(OwnResponse::see_other(path("/user", &parameters)));
                    }
                    Err(problem) => Some(problem),
                }
            }
        };
        let mut fields = Vec::from_iter(
            USER_FIELDS
                .iter()
                .map(|field| InputField::for_record(field, self.field(field.name).to_owned())),
        );
        let mut id = InputField::line("id", "Id", self.field("id"));
        "What the API sees of the user; without one a random one".clone_into(&mut id.help);
        fields.push(id);
        fields.extend(passwords());
        let page = UserForm {
            frame: self.shell.frame("Add a user"),
            csrf: self.csrf(""),
            problem,
            effect: "Without a password the user cannot log in by one. It is not shown again."
                .to_owned(),
            id: None,
            fields,
            button: "Add",
            back: "/users".to_owned(),
        };
        Ok(show(200, &page))
    }

    /// The user that was added, or why none was.
    async fn added(&self) -> Result<Result<User, String>> {
        let members = USER_FIELDS.iter().map(|field| field.name).chain(["id"]);
        let members = members.filter(|name| !self.field(name).is_empty());
        let members = members.map(|name| (name.to_owned(), Value::from(self.field(name))));
        let user = new_user(Map::from_iter(members), self.now);
        let mut user = match user {
            Ok(user) => user,
            Err(error) => return Ok(Err(problem(error)?)),
        };
        if !self.typed("password").is_empty() || !self.typed("again").is_empty() {
            user.password_hash = match self.hashed().await? {
                Ok(hash) => Some(hash),
                Err(problem) => return Ok(Err(problem)),
            };
        }
        match self.backend.manage.add_user(&self.actor(), &user).await {
            Ok(()) => Ok(Ok(user)),
            Err(error) => Ok(Err(problem(error)?)),
        }
    }

    /// Sets the password of a user.
    pub(super) async fn set_password(&self) -> Result<OwnResponse> {
        self.check_write()?;
        let user = self.named_user().await?;
        let state = state_of_user(&user);
        let mut problem = None;
        if self.form.is_some() {
            self.check_form(&state)?;
            match self.hashed().await? {
                Ok(hash) => {
                    let is_same = |now: &User| state_of_user(now) == state;
                    let (manage, by) = (&self.backend.manage, self.actor());
                    manage
                        .set_password(&by, &user, Some(&is_same), hash)
                        .await?;
                    let parameters = [("id", user.id.as_str()), ("done", "1")];
                    return Ok(OwnResponse::see_other(path("/user", &parameters)));
                }
                Err(found) => problem = Some(found),
            }
        }
        let open = self.backend.manage.sessions(&user.id).await?.len() as u64;
        let page = UserForm {
            frame: self
                .shell
                .frame(format!("Set the password of {}", user.name)),
            csrf: self.csrf(&state),
            problem,
            effect: format!(
                "It ends the old password and {}. Access tokens stay valid.",
                counted(open, "open session")
            ),
            id: Some(user.id.as_str()),
            fields: passwords().into(),
            button: "Set the password",
            back: path("/user", &[("id", user.id.as_str())]),
        };
        Ok(show(200, &page))
    }

    /// A field as it was typed, with its white space.
    fn typed(&self, name: &str) -> &str {
        let form = self.form.as_ref().and_then(|form| form.field(name));
        form.unwrap_or_default()
    }

    /// The hash of the password of the form, or why there is none.
    async fn hashed(&self) -> Result<Result<Secret, String>> {
        let (password, again) = (self.typed("password"), self.typed("again"));
        if password != again {
            return Ok(Err("The two passwords differ.".to_owned()));
        }
        let hashed = self.admin.hash(Secret::from(password)).await;
        match hashed.map_err(|_| Rejected::Busy)? {
            Ok(hash) => Ok(Ok(hash)),
            Err(error) => Ok(Err(format!("Password: {error}"))),
        }
    }
}

fn passwords() -> [InputField; 2] {
    [("password", "Password"), ("again", "Repeat the password")]
        .map(|(name, label)| InputField::new(InputKind::Password, name, label, ""))
}

/// The message for a form that makes no account; other errors are returned.
fn problem(error: ManageError) -> Result<String> {
    match error {
        ManageError::Invalid(invalid) => Ok(invalid.detail),
        ManageError::UserExists(_)
        | ManageError::UserIdTaken(_)
        | ManageError::UserAmbiguous(_) => Ok(error.to_string()),
        error => Err(error.into()),
    }
}
