//! `mode=password`: the form by which the user of a local account sets another password.

use super::{
    LoggedIn, OwnResponse, PageRequest, Pages,
    csrf::{self, FormPurpose},
    displayed,
    error::PageError,
    fields::Form,
    guard::{Act, act},
    login::{Attempted, LoginPlace, Notice},
    view,
};
use crate::{
    login::{
        Login, LoginError,
        new_password::{self, Weakness},
        password,
        pool::PoolError,
    },
    secret::Secret,
};

const CURRENT: &str = "current_password";
const NEW: &str = "new_password";
const AGAIN: &str = "new_password_again";

impl Pages {
    /// Answers the page on which a user changes the password; 404 where the store does not have the passwords.
    pub async fn password(&self, request: PageRequest<'_>) -> OwnResponse {
        self.answer(&request, self.try_password(&request).await)
    }

    /// Where that page is, if there is one.
    pub(super) fn password_path(&self, request: &PageRequest<'_>) -> Option<String> {
        self.services.passwords.as_ref()?;
        Some(self.in_same_language(request, format!("{}?mode=password", self.params.path)))
    }

    async fn try_password(&self, request: &PageRequest<'_>) -> Result<OwnResponse, PageError> {
        let here = self.password_path(request).ok_or(PageError::NoPasswords)?;
        let place = LoginPlace::of(&here);
        match act(request, &self.params.origin)? {
            Act::Show => match self.logged_in(request).await? {
                Some(caller) => self.password_form(request, &here, &caller, "", None),
                None => self.show_login(request, &place),
            },
            Act::Submit(form) if form.field(NEW).is_some() => {
                self.change_password(request, &form, &here).await
            }
            Act::Submit(form) => self.log_in(request, &form, &place).await,
        }
    }

    async fn change_password(
        &self,
        request: &PageRequest<'_>,
        form: &Form,
        here: &str,
    ) -> Result<OwnResponse, PageError> {
        let sender = self.sender(request, form, FormPurpose::ChangePassword, "", here);
        let caller = sender.await?;
        let [current, new, again] =
            [CURRENT, NEW, AGAIN].map(|name| Secret::from(form.field(name).unwrap_or_default()));
        let user = &caller.user;
        let problem = if [&current, &new, &again]
            .iter()
            .any(|field| field.is_empty())
        {
            Some(("password-fields-missing", ""))
        } else if !password::is_length_allowed(&current) {
            // As on the login page: it cannot be right, so it is not checked and counts nowhere.
            Some(("password-wrong", CURRENT))
        } else if new != again {
            Some(("password-differs", AGAIN))
        } else {
            let weakness = new_password::check(&new, Some(&current), user).err();
            weakness.map(|weakness| (message(weakness), NEW))
        };
        if let Some((id, wrong)) = problem {
            let notice = Notice {
                status: if wrong == CURRENT { 403 } else { 400 },
                text: self.frame(request).texts.text(id),
                retry_after: None,
            };
            return self.password_form(request, here, &caller, wrong, Some(notice));
        }
        let entry = self.replace_password(request, here, &caller, current, new);
        let attempt = self.attempt(request, &user.name, "password-wrong", entry);
        attempt.await?.or_else(|notice| {
            let wrong = match notice.retry_after {
                None => CURRENT,
                Some(_) => "",
            };
            self.password_form(request, here, &caller, wrong, Some(notice))
        })
    }

    /// Checks the current password and puts the new one in its place, with a new session in place of all others.
    async fn replace_password(
        &self,
        request: &PageRequest<'_>,
        here: &str,
        caller: &LoggedIn,
        current: Secret,
        new: Secret,
    ) -> Result<Attempted, PageError> {
        let pool = self.services.passwords.as_ref();
        let pool = pool.ok_or(PageError::NoPasswords)?;
        let mut was_right = false;
        // A second time if the hash is another since it was read: a login at the same time may have hashed the same
        // password anew.
        for _ in 0..2 {
            let login = self
                .services
                .login
                .login(&caller.user.name, current.clone());
            let verified = match login.await {
                Ok(Login { user, .. }) if user.id == caller.user.id => user.password_hash,
                Ok(_) => None,
                Err(LoginError::Rejected { .. }) if was_right => None,
                Err(error) => return Ok(Err(error)),
            };
            let Some(verified) = verified else { break };
            was_right = true;
            let password = new.clone();
            let hashed = pool.run(move || password::hash(&password)).await;
            let hash = match hashed.and_then(|hash| hash.map_err(|_| PoolError::Failed)) {
                Ok(hash) => hash,
                Err(error) => return Ok(Err(error.into())),
            };
            let (id, session) = self.new_session(request, &caller.user.id)?;
            let store = &self.services.store;
            if store.change_password(session, verified, hash).await? {
                tracing::info!(target: "audit", event = "password_changed", user = %caller.user.id, address = %request.peer);
                let next = format!("{}&changed=1", self.applications_path(request));
                return Ok(Ok(self.with_cookie(OwnResponse::see_other(next), &id)));
            }
        }
        Err(PageError::PasswordReplaced(here.to_owned()))
    }

    fn password_form(
        &self,
        request: &PageRequest<'_>,
        here: &str,
        caller: &LoggedIn,
        wrong: &'static str,
        notice: Option<Notice<'_>>,
    ) -> Result<OwnResponse, PageError> {
        let notice = notice.as_ref();
        let frame = self.frame(request);
        let template = view::PasswordPage {
            frame,
            applications: &self.applications_path(request),
            action: here,
            csrf: &csrf::value(&caller.id, FormPurpose::ChangePassword, ""),
            user: &displayed(&caller.user),
            username: &caller.user.name,
            fields: [
                (CURRENT, "password-current", "current-password"),
                (NEW, "password-new", "new-password"),
                (AGAIN, "password-again", "new-password"),
            ],
            least: new_password::MIN_CHARACTERS as u64,
            problem: notice.map(|notice| &*notice.text),
            wrong,
        };
        Notice::page(notice, frame, &template)
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
