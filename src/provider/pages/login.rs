//! Logging in, wherever a page needs it, and `mode=login` and `mode=logout`.

use std::time::Duration;

use askama::Template;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use thiserror::Error;

use super::{LoggedIn, PageError, PageRequest, browser};
use crate::{
    base::{
        secret::{Secret, random},
        text::{longest, names::UserId},
    },
    provider::{
        login::{Login, LoginError, password},
        pages::{
            browser::cookies,
            form::{
                csrf::{self, FormPurpose},
                return_to,
            },
        },
        respond::{Failure, OwnResponse, duration::in_words},
        theme::frame::Frame,
    },
    records::values::{
        is_logged_outage,
        record::{OutsideUser, Session, User},
        use_cases::{Admitted, VerifiedPassword},
    },
    telemetry::metrics::Verdict,
};

/// The `Retry-After` while the hashing threads are busy.
const BUSY_RETRY: Duration = Duration::from_secs(2);

/// A login form: where it stands, and where it leads.
pub(super) struct LoginForm<'a> {
    /// The path and query that show it, to which it is posted.
    pub(super) url: &'a str,
    /// The target of a login.
    pub(super) return_to: &'a str,
    /// The name of the consumer whose request brought the user here.
    pub(super) consumer: Option<&'a str>,
    /// The CSP sources of its target, beside this origin, to which a login can lead on.
    pub(super) further: &'static str,
}

impl<'a> LoginForm<'a> {
    /// The form on a page that a login leads back to.
    pub(super) fn leading_back_to(url: &'a str) -> Self {
        Self {
            url,
            return_to: url,
            consumer: None,
            further: "",
        }
    }
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    frame: Frame<'a>,
    action: &'a str,
    csrf: &'a str,
    consumer: Option<&'a str>,
    username: &'a str,
    notice: Option<&'a Notice>,
    /// The message about the user's last action.
    done: Option<&'a str>,
}

/// The question before sessions end.
#[derive(Template)]
#[template(path = "logout.html")]
struct LogoutPage<'a> {
    frame: Frame<'a>,
    csrf: &'a str,
    user: &'a User,
    /// The name of the button.
    name: &'static str,
    title: String,
    /// A message.
    text: &'static str,
}

/// The message of a form with a password about the previous attempt.
pub(super) struct Notice {
    pub(super) status: u16,
    pub(super) text: String,
    /// The time to wait; `None` if the input is at fault.
    pub(super) retry_after: Option<Duration>,
    /// The account whose password was wrong.
    pub(super) account: Option<UserId>,
}

/// Why an attempt opens no page.
#[derive(Debug, Error)]
pub(super) enum AttemptError {
    /// The password is wrong, no longer right, or cannot be checked.
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error(transparent)]
    Failure(#[from] Failure),
}

impl PageRequest<'_> {
    /// Responds to `mode=login`: a direct login, which leads to `return_to`, a path of our own origin, else to the user's
    /// applications.
    pub(super) async fn login(&self) -> Result<OwnResponse, Failure> {
        let wanted = self.parameter("return_to")?;
        let wanted = wanted.and_then(|path| return_to::local_path(&path));
        let url = self.leading_to("login", wanted.as_deref());
        let leads_to_api = wanted.is_some();
        let next = wanted.unwrap_or_else(|| self.frame.link("applications"));
        let form = LoginForm {
            return_to: &next,
            ..LoginForm::leading_back_to(&url)
        };
        if self.form.is_some() {
            return self.log_in(&form).await;
        }
        // Only a way back into the API needs a session from here; a page opens the session that it needs.
        let is_logged_in = match leads_to_api {
            true => self.logged_in().await?.is_some(),
            false => self.user().await?.is_some(),
        };
        match is_logged_in {
            true => Ok(OwnResponse::see_other(next)),
            false => self.login_form(&form, "", None),
        }
    }

    /// The address of a page that leads to this path of our own origin afterwards.
    pub(super) fn leading_to(&self, mode: &str, path: Option<&str>) -> String {
        match path {
            Some(path) => self.frame.link_with(mode, "return_to", path),
            None => self.frame.link(mode),
        }
    }

    /// Responds to `mode=logout`. A GET asks, also about all (`which=all`) or all other sessions (`which=others`); a POST ends
    /// this session, all of them, all others, or one other.
    pub(super) async fn logout(&self) -> Result<OwnResponse, Failure> {
        let Some(caller) = self.logged_in().await? else {
            return Ok(OwnResponse::see_other(self.frame.link("login")));
        };
        if self.form.is_none() {
            let which = self.parameter("which")?.unwrap_or_default();
            return Ok(self.logout_form(&caller, &which));
        }
        let applications = self.frame.link("applications");
        let end = async |purpose, subject| self.sender(purpose, subject, &applications).await;
        let (user, current) = (&caller.user.id, cookies::id_hash(&caller.id));
        let store = self.store();
        let (event, notice) = if let Some(session) = self.field("session") {
            end(FormPurpose::EndSession, session).await?;
            let id_hash = URL_SAFE_NO_PAD.decode(session).ok();
            if let Some(id_hash) = id_hash.and_then(|hash| hash.try_into().ok()) {
                store.close_session_of(user, &id_hash).await?;
            }
            ("logged_out_elsewhere", "notice-out-one")
        } else if self.field("others").is_some() {
            end(FormPurpose::LogOutElsewhere, "").await?;
            store.close_sessions(user, Some(&current), None).await?;
            ("logged_out_elsewhere", "notice-out-others")
        } else if self.field("everywhere").is_some() {
            end(FormPurpose::LogOutEverywhere, "").await?;
            store.close_sessions(user, None, None).await?;
            ("logged_out_everywhere", "notice-out-all")
        } else {
            end(FormPurpose::LogOut, "").await?;
            store.close_session(&current).await?;
            ("logged_out", "notice-out")
        };
        self.audit(event, user);
        if event == "logged_out_elsewhere" {
            let notice = self.notice_parameters(&caller.id, notice, "");
            return Ok(OwnResponse::see_other(applications + &notice));
        }
        self.forget_session();
        let notice = self.notice_parameters(&self.login_cookie_or_new()?, notice, "");
        Ok(OwnResponse::see_other(self.frame.link("login") + &notice))
    }

    /// Asks whether sessions are to end.
    fn logout_form(&self, caller: &LoggedIn, which: &str) -> OwnResponse {
        let service = self.pages.rules.theme.rules.name();
        let (purpose, name, [title, text]) = match which {
            "others" => (
                FormPurpose::LogOutElsewhere,
                "others",
                ["logout-others-title", "logout-others-text"],
            ),
            "all" => (
                FormPurpose::LogOutEverywhere,
                "everywhere",
                ["logout-all-title", "logout-all-text"],
            ),
            _ => (FormPurpose::LogOut, "here", ["logout-title", "logout-text"]),
        };
        self.page(&LogoutPage {
            frame: self.frame,
            csrf: &csrf::value(&caller.id, purpose, ""),
            user: &caller.user,
            name,
            title: self.frame.texts.title(title, &[("service", service)]),
            text,
        })
    }

    /// Ends the caller's session and leads to `next`.
    pub(super) async fn log_out(
        &self,
        caller: &LoggedIn,
        next: String,
    ) -> Result<OwnResponse, Failure> {
        let id_hash = cookies::id_hash(&caller.id);
        self.store().close_session(&id_hash).await?;
        self.audit("logged_out", &caller.user.id);
        self.forget_session();
        Ok(OwnResponse::see_other(next))
    }

    /// The caller of a page for users, or the login that leads back to the page.
    pub(super) async fn caller_or_form(
        &self,
        form: &LoginForm<'_>,
    ) -> Result<Result<LoggedIn, OwnResponse>, Failure> {
        if self.form.is_some() {
            return Ok(Err(self.log_in(form).await?));
        }
        match self.logged_in().await? {
            Some(caller) => Ok(Ok(caller)),
            None => Ok(Err(self.login_form(form, "", None)?)),
        }
    }

    /// Checks a login form that was sent to `form`.
    pub(super) async fn log_in(&self, form: &LoginForm<'_>) -> Result<OwnResponse, Failure> {
        if self.pages.rules.user_headers.is_some() {
            return Err(self.stale(false, form.url));
        }
        // Bound to the browser and to the URL of the form: another site can neither log the user in as somebody else nor make
        // failures count against the user's address.
        let is_ours = |cookie: Secret| {
            csrf::is_value(self.field("csrf"), &cookie, FormPurpose::LogIn, form.url)
        };
        if !self.login_cookie()?.is_some_and(is_ours) {
            let headers = &self.head.parts.headers;
            let names = [self.pages.cookies.login, self.pages.cookies.session];
            if !names.iter().any(|name| cookies::is_sent(headers, name)) {
                return Err(PageError::NoCookie(form.url.to_owned()).into());
            }
            let is_logged_in = self.logged_in().await?.is_some();
            return Err(self.stale(is_logged_in, form.url));
        }
        let username = self.field("username").unwrap_or_default();
        let password = Secret::from(self.field("password").unwrap_or_default());
        let show = |username, status, id| {
            let notice = self.notice(status, id);
            self.login_form(form, username, Some(&notice))
        };
        if username.is_empty() || password.is_empty() {
            return show(username, 400, "login-fields-missing");
        }
        if username.len() > longest::LOGIN_NAME || !password::is_length_allowed(&password) {
            return show("", 403, "login-wrong");
        }
        let entry = self.let_in(form, username, password);
        let attempt = self.attempt(username, "login-wrong", entry, |notice| {
            self.login_form(form, username, Some(notice))
        });
        attempt.await
    }

    /// Makes an attempt to prove a password, under the throttle: `entry` checks it and makes the page, and `show` makes the
    /// form again, with a notice. `wrong` is the message for a wrong password.
    pub(super) async fn attempt(
        &self,
        username: &str,
        wrong: &'static str,
        entry: impl Future<Output = Result<OwnResponse, AttemptError>>,
        show: impl FnOnce(&Notice) -> Result<OwnResponse, Failure>,
    ) -> Result<OwnResponse, Failure> {
        let throttle = &self.pages.services.throttle;
        let attempt = match throttle.begin(username, self.address, self.now) {
            Ok(attempt) => attempt,
            Err(wait) => {
                tracing::info!(target: "audit", event = "login_throttled", address = %self.address);
                let in_words = in_words(self.frame.texts, wait);
                return show(&Notice {
                    status: 429,
                    text: (self.frame.texts).filled("login-throttled", &[("wait", in_words)]),
                    retry_after: Some(wait),
                    account: None,
                });
            }
        };
        let (status, id, counts, account) = match entry.await {
            Ok(page) => {
                throttle.succeeded(&attempt, self.now);
                return Ok(page);
            }
            Err(AttemptError::Failure(failure)) => {
                throttle.withdrawn(&attempt, self.now);
                return Err(failure);
            }
            Err(AttemptError::Login(LoginError::Rejected { account })) => {
                // The name is not logged: people type passwords into it.
                let user = account.as_ref().map(UserId::as_str);
                tracing::info!(target: "audit", event = "login_failed", user, address = %self.address);
                (403, wrong, true, account)
            }
            Err(AttemptError::Login(LoginError::Busy)) => (503, "login-busy", false, None),
            Err(AttemptError::Login(LoginError::Fault(fault))) => {
                let error = &fault as &dyn std::error::Error;
                tracing::error!(error, "a login could not be checked");
                (503, "login-unavailable", !fault.is_unchecked(), None)
            }
        };
        if !counts {
            throttle.withdrawn(&attempt, self.now);
        } else if let Err(error) = self
            .store()
            .record_failed_login(attempt.report().to_owned())
            .await
            && !is_logged_outage(&error)
        {
            // The other processes do not learn of it.
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "a failed login is counted in this process only");
        }
        show(&Notice {
            retry_after: (status == 503).then_some(BUSY_RETRY),
            account,
            ..self.notice(status, id)
        })
    }

    /// A notice about the input.
    pub(super) fn notice(&self, status: u16, id: &str) -> Notice {
        Notice {
            status,
            text: self.frame.texts.text(id).into_owned(),
            retry_after: None,
            account: None,
        }
    }

    /// Checks name and password and opens the session.
    async fn let_in(
        &self,
        form: &LoginForm<'_>,
        username: &str,
        password: Secret,
    ) -> Result<OwnResponse, AttemptError> {
        let mut account = None;
        // A second time if the user or the hash was changed after it was read. The password may still be right: a login of the
        // same user at the same time may have replaced the hash.
        let backend = &self.pages.services.login;
        for _ in 0..2 {
            let login = backend.login(self.address, username, password.clone());
            let Login { user, rehashed } = login.await?;
            if self.open_session(&user, rehashed).await?.is_some() {
                self.set_cookie(self.pages.cookies.forget(self.pages.cookies.login));
                let next = match self.pages.must_change_password(&user) {
                    true => self.leading_to("password", Some(form.return_to)),
                    false => form.return_to.to_owned(),
                };
                return Ok(OwnResponse::see_other(next));
            }
            account = Some(user.id);
        }
        Err(LoginError::Rejected { account }.into())
    }

    /// Registers the user that the proxy in front names, or brings the names up to date.
    pub(super) async fn admitted(&self, named: OutsideUser) -> Result<User, Failure> {
        match self.store().admit_user(named, self.now).await? {
            Admitted::User(user) => Ok(user),
            admitted => {
                tracing::warn!(
                    ?admitted,
                    "the user that the proxy in front names is not admitted"
                );
                Err(PageError::NotAdmitted.into())
            }
        }
    }

    /// Opens a session for the user that the proxy in front names.
    pub(super) async fn admit(&self, named: OutsideUser) -> Result<LoggedIn, Failure> {
        let user = self.admitted(named).await?;
        let id = self.open_session(&user, None).await?;
        let id = id.ok_or(PageError::NotAdmitted)?;
        Ok(LoggedIn { id, user })
    }

    /// Opens a session under a new id, and ends the one that the browser had. `None` if the user may no longer log in with
    /// this password.
    async fn open_session(
        &self,
        user: &User,
        rehashed: Option<Secret>,
    ) -> Result<Option<Secret>, Failure> {
        let (id, session) = self.new_session(&user.id)?;
        let verified = VerifiedPassword {
            hash: user.password_hash.clone(),
            rehashed,
        };
        let most = self.pages.rules.sessions.sessions_per_user;
        if !self.store().open_session(session, verified, most).await? {
            return Ok(None);
        }
        let session_cookie = self.pages.cookies.session;
        if let Ok(Some(old)) = cookies::read(&self.head.parts.headers, session_cookie) {
            self.store().close_session(&cookies::id_hash(&old)).await?;
        }
        self.audit("login_succeeded", &user.id);
        self.set_session(&id);
        Ok(Some(id))
    }

    /// A session under a new id, which is not yet stored.
    pub(super) fn new_session(&self, user: &UserId) -> Result<(Secret, Session), Failure> {
        let id = random::secret()?;
        let named = browser::named(&self.head.parts.headers);
        let [browser, system] = named.map(|name| name.map(str::to_owned));
        let session = Session {
            id_hash: cookies::id_hash(&id),
            user: user.clone(),
            created_at: self.now,
            expires_at: self.now.after(self.pages.rules.login.session_ttl),
            address: self.address,
            browser,
            system,
        };
        Ok((id, session))
    }

    /// Gives the browser this session.
    pub(super) fn set_session(&self, id: &Secret) {
        let lifetime = self.pages.rules.login.session_ttl;
        self.set_cookie(self.pages.cookies.set_session(id, lifetime));
    }

    fn forget_session(&self) {
        self.set_cookie(self.pages.cookies.forget(self.pages.cookies.session));
    }

    pub(super) fn login_form(
        &self,
        form: &LoginForm<'_>,
        username: &str,
        notice: Option<&Notice>,
    ) -> Result<OwnResponse, Failure> {
        let cookie = self.login_cookie_or_new()?;
        let done = self.proven_notice(&cookie)?;
        let done = done.map(|(notice, _)| self.frame.texts.text(notice));
        let template = LoginPage {
            frame: self.frame,
            action: form.url,
            csrf: &csrf::value(&cookie, FormPurpose::LogIn, form.url),
            consumer: form.consumer,
            username,
            notice,
            done: done.as_deref().filter(|_| notice.is_none()),
        };
        // Without an attempt the form is shown only to callers without a valid session cookie.
        if notice.is_none() && self.pages.has_session_cookie(&self.head.parts.headers) {
            self.forget_session();
        }
        Ok(self.noticed(notice, &template, form.further))
    }

    /// The page of a form with a password.
    pub(super) fn noticed(
        &self,
        notice: Option<&Notice>,
        template: &impl Template,
        further: &str,
    ) -> OwnResponse {
        let status = notice.map_or(200, |notice| notice.status);
        let mut page = OwnResponse::page(self.frame, status, template, further);
        page.verdict = match status {
            400 => Verdict::BadRequest,
            403 => Verdict::LoginFailed,
            429 => Verdict::LoginThrottled,
            503 => Verdict::Unavailable,
            _ => Verdict::Page,
        };
        page.account = notice.and_then(|notice| notice.account.clone());
        match notice.and_then(|notice| notice.retry_after) {
            Some(wait) => page.field("Retry-After", wait.as_secs().max(1).to_string()),
            None => page,
        }
    }

    /// The cookie of login forms. One that is there is kept, so that forms in several tabs all stay valid.
    fn login_cookie_or_new(&self) -> Result<Secret, Failure> {
        if let Some(cookie) = self.login_cookie()? {
            return Ok(cookie);
        }
        let cookie = random::secret()?;
        self.set_cookie(self.pages.cookies.set_login(&cookie));
        Ok(cookie)
    }

    fn login_cookie(&self) -> Result<Option<Secret>, PageError> {
        cookies::read(&self.head.parts.headers, self.pages.cookies.login)
    }
}
