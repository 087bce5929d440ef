//! `mode=password`: the form by which the user of a local account sets another password. It leads to `return_to`, a path of our
//! own origin, else to the user's applications.

use askama::Template;

use super::{
    LoggedIn, PageError, PageRequest,
    login::{AttemptError, LoginForm, Notice},
    settings::Remember,
};
use crate::{
    base::secret::Secret,
    provider::{
        login::{
            Login, LoginError,
            new_password::{self, MIN_CHARACTERS, Weakness},
            password,
            pool::PoolError,
        },
        pages::form::{
            csrf::{self, FormPurpose},
            return_to,
        },
        respond::{Failure, OwnResponse},
        theme::frame::Frame,
    },
    records::values::record::User,
};

const CURRENT: &str = "current_password";
const NEW: &str = "new_password";
const AGAIN: &str = "new_password_again";

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordPage<'a> {
    frame: Frame<'a>,
    action: &'a str,
    csrf: &'a str,
    user: &'a User,
    /// The fewest characters.
    least: u64,
    notice: Option<&'a Notice>,
    /// The name of the field that the notice is about, if it is about one.
    wrong: &'static str,
}

impl PageRequest<'_> {
    /// Responds to the page on which a user changes the password; 404 where the store does not have the passwords.
    pub(super) async fn password(&self) -> Result<OwnResponse, Failure> {
        if self.pages.services.passwords.is_none() {
            return Err(PageError::NoPasswords.into());
        }
        let next = self.parameter("return_to")?;
        let next = next.and_then(|path| return_to::local_path(&path));
        let next = next.as_deref();
        if self.field(NEW).is_some() {
            return self.change_password(next).await;
        }
        let here = self.leading_to("password", next);
        let login = LoginForm::leading_back_to(&here);
        let caller = self.caller_or_form(&login).await?;
        let form = |caller| self.password_form(next, &caller, "", None);
        Ok(caller.map_or_else(|login| login, form))
    }

    async fn change_password(&self, next: Option<&str>) -> Result<OwnResponse, Failure> {
        let here = self.leading_to("password", next);
        let sender = self.sender(FormPurpose::ChangePassword, "", &here);
        let caller = sender.await?;
        let [current, new, repeated] =
            [CURRENT, NEW, AGAIN].map(|name| Secret::from(self.field(name).unwrap_or_default()));
        let weakness = new_password::check(&new, Some(&current), &caller.user).err();
        let problem = if current.is_empty() || new.is_empty() || repeated.is_empty() {
            Some(("password-fields-missing", ""))
        } else if !password::is_length_allowed(&current) {
            // As on the login page: it cannot be right, so it is neither checked nor counted.
            Some(("password-wrong", CURRENT))
        } else if new != repeated {
            Some(("password-differs", AGAIN))
        } else {
            weakness.map(|weakness| (message(weakness), NEW))
        };
        if let Some((id, wrong)) = problem {
            let notice = self.notice(if wrong == CURRENT { 403 } else { 400 }, id);
            return Ok(self.password_form(next, &caller, wrong, Some(&notice)));
        }
        let entry = self.replace_password(next, &caller, current, new);
        let attempt = self.attempt(&caller.user.name, "password-wrong", entry, |notice| {
            let wrong = match notice.retry_after {
                None => CURRENT,
                Some(_) => "",
            };
            Ok(self.password_form(next, &caller, wrong, Some(notice)))
        });
        attempt.await
    }

    /// Checks the current password and puts the new one in its place, with a new session instead of all others.
    async fn replace_password(
        &self,
        next: Option<&str>,
        caller: &LoggedIn,
        current: Secret,
        new: Secret,
    ) -> Result<OwnResponse, AttemptError> {
        let services = &self.pages.services;
        let pool = services.passwords.as_ref();
        let pool = pool.ok_or(PageError::NoPasswords).map_err(Failure::from)?;
        let mut was_right = false;
        // A second time if the hash was changed after it was read: a login at the same time may have hashed the same password
        // again.
        for _ in 0..2 {
            let login = services
                .login
                .login(self.address, &caller.user.name, current.clone());
            let verified = match login.await {
                Ok(Login { user, .. }) if user.id == caller.user.id => user.password_hash,
                Ok(_) => None,
                Err(LoginError::Rejected { .. }) if was_right => None,
                Err(error) => return Err(error.into()),
            };
            let Some(verified) = verified else { break };
            was_right = true;
            let password = new.clone();
            let hashed = pool
                .run(Some(self.address), move || password::hash(&password))
                .await;
            let hash = hashed.and_then(|hash| hash.map_err(|_| PoolError::Failed));
            let hash = hash.map_err(LoginError::from)?;
            let (id, session) = self.new_session(&caller.user.id)?;
            let changing = self.store().change_password(session, verified, hash);
            if changing.await.map_err(Failure::from)? {
                self.audit("password_changed", &caller.user.id);
                self.set_session(&id);
                let notice = || self.notice_parameters(&id, "password-changed", "");
                let applications = || self.frame.link("applications") + &notice();
                let next = next.map_or_else(applications, str::to_owned);
                return Ok(OwnResponse::see_other(next));
            }
        }
        let here = self.leading_to("password", next);
        Err(Failure::from(PageError::PasswordReplaced(here)).into())
    }

    fn password_form(
        &self,
        next: Option<&str>,
        caller: &LoggedIn,
        wrong: &'static str,
        notice: Option<&Notice>,
    ) -> OwnResponse {
        let template = PasswordPage {
            frame: self.frame,
            action: &self.leading_to("password", next),
            csrf: &csrf::value(&caller.id, FormPurpose::ChangePassword, ""),
            user: &caller.user,
            least: MIN_CHARACTERS as u64,
            notice,
            wrong,
        };
        // As at a login: a browser checks the redirect of a consent that is remembered too.
        let is_remembered = self.pages.rules.consent.remember == Remember::Same;
        let further = if next.is_some() && is_remembered {
            " https:"
        } else {
            ""
        };
        self.noticed(notice, &template, further)
    }
}

/// The message that says what is wrong with the new password.
const fn message(weakness: Weakness) -> &'static str {
    match weakness {
        Weakness::Short => "password-short",
        Weakness::Long => "password-long",
        Weakness::Current => "password-same",
        Weakness::Name => "password-name",
        Weakness::Common => "password-common",
    }
}
