//! Logging in, wherever a page needs it, and `mode=login` and `mode=logout`.

use std::{borrow::Cow, time::Duration};

use percent_encoding::utf8_percent_encode;

use super::{
    LoggedIn, OwnResponse, PageRequest, Pages,
    authorize::in_words,
    cookies::{self, Cookie},
    csrf::{self, FormPurpose},
    error::PageError,
    fields::{self, Form},
    guard::{Act, act},
    return_to, view,
};
use crate::{
    issue::{callback::ESCAPED, random},
    login::{Login, LoginError, MAX_NAME_BYTES, password, throttle::Attempt},
    names::UserId,
    respond::look::Frame,
    secret::Secret,
    store::{
        port::{Admitted, VerifiedPassword, is_of_logged_outage},
        record::{OutsideUser, Session, User},
    },
};

/// How long a browser is told to wait when the hashing threads are busy.
const BUSY_RETRY: Duration = Duration::from_secs(2);

/// Where a login form is shown.
pub(super) struct LoginPlace<'a> {
    /// The path and query that show it, which it posts back to.
    pub(super) here: &'a str,
    /// Where a login leads.
    pub(super) next: &'a str,
    /// The consumer whose request brought the user here.
    pub(super) consumer: Option<&'a str>,
}

impl<'a> LoginPlace<'a> {
    /// A page that a login leads back to.
    pub(super) fn of(here: &'a str) -> Self {
        Self {
            here,
            next: here,
            consumer: None,
        }
    }
}

/// What a form with a password says about the attempt before.
pub(super) struct Notice<'a> {
    pub(super) status: u16,
    pub(super) text: Cow<'a, str>,
    /// How long to wait; `None` if what was typed is at fault.
    pub(super) retry_after: Option<Duration>,
}

/// What becomes of an attempt: the page that it opens, or why it opens none. A password that is no longer right is wrong.
pub(super) type Attempted = Result<OwnResponse, LoginError>;

impl Notice<'_> {
    /// The page of such a form.
    pub(super) fn page(
        notice: Option<&Self>,
        frame: Frame<'_>,
        template: &impl askama::Template,
    ) -> Result<OwnResponse, PageError> {
        let mut page =
            OwnResponse::html(frame, notice.map_or(200, |notice| notice.status), template)?;
        if let Some(wait) = notice.and_then(|notice| notice.retry_after) {
            page.retry_after(wait);
        }
        Ok(page)
    }
}

impl Pages {
    /// Answers `mode=login`: a direct login, after which `return_to`, a path of our own origin, is shown, else the user's
    /// applications.
    pub async fn login(&self, request: PageRequest<'_>) -> OwnResponse {
        self.answer(&request, self.try_login(&request).await)
    }

    /// Answers `mode=logout`, a POST of a form on the page of applications: the one that ends this session, or the one
    /// that ends all sessions of the user.
    pub async fn logout(&self, request: PageRequest<'_>) -> OwnResponse {
        self.answer(&request, self.try_logout(&request).await)
    }

    async fn try_login(&self, request: &PageRequest<'_>) -> Result<OwnResponse, PageError> {
        let act = act(request, &self.params.origin)?;
        let wanted = fields::parameter(request.query, "return_to")
            .map_err(|_| PageError::Malformed("error-malformed-twice"))?;
        let wanted = wanted.and_then(|path| return_to::local_path(&path, &self.params.origin));
        let mut here = self.in_same_language(request, format!("{}?mode=login", self.params.path));
        if let Some(path) = &wanted {
            here.push_str("&return_to=");
            here.extend(utf8_percent_encode(path, ESCAPED));
        }
        let leads_to_api = wanted.is_some();
        let next = wanted.unwrap_or_else(|| self.applications_path(request));
        let place = LoginPlace {
            next: &next,
            ..LoginPlace::of(&here)
        };
        match act {
            // A page opens the session that it needs, so only a way back into the API needs one from here.
            Act::Show if leads_to_api => match self.logged_in(request).await? {
                Some(caller) => Ok(self.with_session(OwnResponse::see_other(next), &caller)),
                None => self.show_login(request, &place),
            },
            Act::Show => match self.user(request).await? {
                Some(_) => Ok(OwnResponse::see_other(next)),
                None => self.show_login(request, &place),
            },
            Act::Submit(form) => self.log_in(request, &form, &place).await,
        }
    }

    async fn try_logout(&self, request: &PageRequest<'_>) -> Result<OwnResponse, PageError> {
        let form = match act(request, &self.params.origin)? {
            Act::Submit(form) => form,
            Act::Show => return Err(PageError::Method("POST")),
        };
        let next = format!("{}?mode=login", self.params.path);
        let Some(caller) = self.logged_in(request).await? else {
            return Ok(OwnResponse::see_other(next));
        };
        let is_everywhere = form.field("everywhere").is_some();
        let purpose = match is_everywhere {
            true => FormPurpose::LogOutEverywhere,
            false => FormPurpose::LogOut,
        };
        if !csrf::is_value(form.field("csrf"), &caller.id, purpose, "") {
            return Err(PageError::StaleForm(self.applications_path(request)));
        }
        if is_everywhere {
            self.services.store.close_sessions(&caller.user.id).await?;
            tracing::info!(target: "audit", event = "logged_out_everywhere", user = %caller.user.id, address = %request.peer);
            return Ok(self.logged_out(next));
        }
        self.log_out(&caller, next, request).await
    }

    /// Shows the login form.
    pub(super) fn show_login(
        &self,
        request: &PageRequest<'_>,
        place: &LoginPlace<'_>,
    ) -> Result<OwnResponse, PageError> {
        self.login_form(request, place, "", None)
    }

    /// Checks a login form that was sent to `place`.
    pub(super) async fn log_in(
        &self,
        request: &PageRequest<'_>,
        form: &Form,
        place: &LoginPlace<'_>,
    ) -> Result<OwnResponse, PageError> {
        if self.params.user_headers.is_some() {
            return Err(PageError::StaleForm(place.here.to_owned()));
        }
        // Bound to the browser and to the place: another site can neither log the user in as somebody else nor make
        // failures count against the user's address.
        let is_ours = self.login_cookie(request)?.is_some_and(|cookie| {
            csrf::is_value(form.field("csrf"), &cookie, FormPurpose::LogIn, place.here)
        });
        if !is_ours {
            let again = place.here.to_owned();
            return Err(match cookies::read(&request.cookies, self.cookies.login) {
                Cookie::None => PageError::NoCookie(again),
                Cookie::One(_) | Cookie::Invalid | Cookie::Several => PageError::StaleForm(again),
            });
        }
        let username = form.field("username").unwrap_or_default();
        let password = form.field("password").unwrap_or_default();
        let texts = self.frame(request).texts;
        let show = |username, notice| self.login_form(request, place, username, Some(notice));
        let notice = |status, id| Notice {
            status,
            text: texts.text(id),
            retry_after: None,
        };
        if username.is_empty() || password.is_empty() {
            return show(username, notice(400, "login-fields-missing"));
        }
        let password = Secret::from(password);
        if username.len() > MAX_NAME_BYTES || !password::is_length_allowed(&password) {
            return show("", notice(403, "login-wrong"));
        }
        let entry = self.let_in(request, place, username, password);
        let attempt = self.attempt(request, username, "login-wrong", entry);
        attempt.await?.or_else(|notice| show(username, notice))
    }

    /// Makes an attempt to prove a password under the throttle. The page that it opens, or what the form then says; the
    /// message `wrong` if the password is.
    pub(super) async fn attempt(
        &self,
        request: &PageRequest<'_>,
        username: &str,
        wrong: &'static str,
        entry: impl Future<Output = Result<Attempted, PageError>>,
    ) -> Result<Result<OwnResponse, Notice<'_>>, PageError> {
        let texts = self.frame(request).texts;
        let notice = |status, text, retry_after| {
            Ok(Err(Notice {
                status,
                text,
                retry_after,
            }))
        };
        let throttle = &self.services.throttle;
        let attempt = match throttle.begin(username, request.peer, request.now) {
            Ok(attempt) => attempt,
            Err(throttled) => {
                tracing::info!(target: "audit", event = "login_throttled", address = %request.peer);
                let wait = throttled.retry_after;
                let in_words = in_words(texts, wait);
                let text = texts.filled("login-throttled", &[("wait", in_words)]);
                return notice(429, text.into(), Some(wait));
            }
        };
        let outcome = entry.await;
        match outcome.inspect_err(|_| throttle.withdrawn(&attempt, request.now))? {
            Ok(page) => {
                throttle.succeeded(&attempt, request.now);
                Ok(Ok(page))
            }
            Err(LoginError::Rejected { account }) => {
                // The name is not logged: people type passwords into it.
                let user = account.as_ref().map(|id| id.as_str());
                tracing::info!(target: "audit", event = "login_failed", user, address = %request.peer);
                self.report(&attempt).await;
                notice(403, texts.text(wrong), None)
            }
            Err(LoginError::Busy) => {
                throttle.withdrawn(&attempt, request.now);
                notice(503, texts.text("login-busy"), Some(BUSY_RETRY))
            }
            Err(LoginError::Fault(fault)) => {
                if fault.is_unchecked() {
                    throttle.withdrawn(&attempt, request.now);
                } else {
                    self.report(&attempt).await;
                }
                tracing::error!(
                    error = &fault as &dyn std::error::Error,
                    "a login could not be checked"
                );
                notice(503, texts.text("login-unavailable"), Some(BUSY_RETRY))
            }
        }
    }

    /// Reports a failed attempt to the other processes on the store. Without the store it still counts in this process.
    async fn report(&self, attempt: &Attempt) {
        let report = attempt.report().to_owned();
        if let Err(error) = self.services.store.record_failed_login(report).await
            && !is_of_logged_outage(&error)
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a failed login is counted at this process only"
            );
        }
    }

    /// Checks name and password and opens the session.
    async fn let_in(
        &self,
        request: &PageRequest<'_>,
        place: &LoginPlace<'_>,
        username: &str,
        password: Secret,
    ) -> Result<Attempted, PageError> {
        let mut account = None;
        // A second time if the user or the hash is another since it was read. The password may still be right: a login
        // of the same user at the same time may have replaced the hash.
        for _ in 0..2 {
            let login = self.services.login.login(username, password.clone());
            let Login { user, rehashed } = match login.await {
                Ok(login) => login,
                Err(error) => return Ok(Err(error)),
            };
            account = Some(user.id.clone());
            if let Some(id) = self.open_session(request, user, rehashed).await? {
                let mut page = self.with_cookie(OwnResponse::see_other(place.next.to_owned()), &id);
                page.set("Set-Cookie", self.cookies.forget(self.cookies.login));
                return Ok(Ok(page));
            }
        }
        Ok(Err(LoginError::Rejected { account }))
    }

    /// Registers the user that the proxy in front names, or brings the names up to date.
    pub(super) async fn admitted(
        &self,
        request: &PageRequest<'_>,
        named: OutsideUser,
    ) -> Result<User, PageError> {
        let admitted = self.services.store.admit_user(named, request.now).await?;
        let Admitted::User(user) = admitted else {
            tracing::warn!(
                ?admitted,
                "the user that the proxy in front names is not admitted"
            );
            return Err(PageError::NotAdmitted);
        };
        Ok(user)
    }

    /// Opens a session for the user that the proxy in front names.
    pub(super) async fn admit(
        &self,
        request: &PageRequest<'_>,
        named: OutsideUser,
    ) -> Result<LoggedIn, PageError> {
        let user = self.admitted(request, named).await?;
        let id = self.open_session(request, user.clone(), None).await?;
        let id = id.ok_or(PageError::NotAdmitted)?;
        Ok(LoggedIn {
            id,
            user,
            is_new: true,
        })
    }

    /// A page for the caller, with the cookie of a session that was just opened.
    pub(super) fn with_session(&self, page: OwnResponse, caller: &LoggedIn) -> OwnResponse {
        if caller.is_new {
            self.with_cookie(page, &caller.id)
        } else {
            page
        }
    }

    /// A page with the cookie of this session.
    pub(super) fn with_cookie(&self, mut page: OwnResponse, id: &Secret) -> OwnResponse {
        let cookie = self.cookies.set_session(id, self.params.session_ttl);
        page.set("Set-Cookie", cookie);
        page
    }

    /// The caller in whose session the form was shown, for this purpose and subject.
    pub(super) async fn sender(
        &self,
        request: &PageRequest<'_>,
        form: &Form,
        purpose: FormPurpose,
        subject: &str,
        here: &str,
    ) -> Result<LoggedIn, PageError> {
        let is_ours =
            |caller: &LoggedIn| csrf::is_value(form.field("csrf"), &caller.id, purpose, subject);
        let caller = self.logged_in(request).await?;
        let caller = caller.filter(is_ours);
        caller.ok_or_else(|| PageError::StaleForm(here.to_owned()))
    }

    /// Opens a session under an id that nobody has seen before, and ends the one the browser had. `None` if the user may
    /// not log in with this password any more.
    async fn open_session(
        &self,
        request: &PageRequest<'_>,
        user: User,
        rehashed: Option<Secret>,
    ) -> Result<Option<Secret>, PageError> {
        let store = &self.services.store;
        let (id, session) = self.new_session(request, &user.id)?;
        let verified = VerifiedPassword {
            hash: user.password_hash,
            rehashed,
        };
        let most = self.params.sessions_per_user;
        if !store.open_session(session, verified, most).await? {
            return Ok(None);
        }
        if let Cookie::One(old) = cookies::read(&request.cookies, self.cookies.session) {
            store.close_session(&cookies::id_hash(&old)).await?;
        }
        tracing::info!(target: "audit", event = "login_succeeded", user = %user.id, address = %request.peer);
        Ok(Some(id))
    }

    /// A session under an id that nobody has seen before, which is still to be kept.
    pub(super) fn new_session(
        &self,
        request: &PageRequest<'_>,
        user: &UserId,
    ) -> Result<(Secret, Session), PageError> {
        let id = random::session_id()?;
        let session = Session {
            id_hash: cookies::id_hash(&id),
            user: user.clone(),
            created_at: request.now,
            expires_at: request.now.after(self.params.session_ttl),
        };
        Ok((id, session))
    }

    /// Ends the caller's session and leads to `next`.
    pub(super) async fn log_out(
        &self,
        caller: &LoggedIn,
        next: String,
        request: &PageRequest<'_>,
    ) -> Result<OwnResponse, PageError> {
        let store = &self.services.store;
        store.close_session(&cookies::id_hash(&caller.id)).await?;
        tracing::info!(target: "audit", event = "logged_out", user = %caller.user.id, address = %request.peer);
        Ok(self.logged_out(next))
    }

    fn logged_out(&self, next: String) -> OwnResponse {
        let mut page = OwnResponse::see_other(next);
        page.set("Set-Cookie", self.cookies.forget(self.cookies.session));
        page
    }

    fn login_form(
        &self,
        request: &PageRequest<'_>,
        place: &LoginPlace<'_>,
        username: &str,
        notice: Option<Notice<'_>>,
    ) -> Result<OwnResponse, PageError> {
        // A cookie that is there is kept, so that forms in several tabs all stay good.
        let kept = self.login_cookie(request)?;
        let is_new = kept.is_none();
        let cookie = match kept {
            Some(cookie) => cookie,
            None => random::session_id()?,
        };
        let notice = notice.as_ref();
        let frame = self.frame(request);
        let template = view::LoginPage {
            frame,
            applications: &self.applications_path(request),
            action: place.here,
            csrf: &csrf::value(&cookie, FormPurpose::LogIn, place.here),
            consumer: place.consumer,
            username,
            problem: notice.map(|notice| &*notice.text),
            invalid: notice.is_some_and(|notice| notice.retry_after.is_none()),
        };
        let mut page = Notice::page(notice, frame, &template)?;
        if is_new {
            page.set("Set-Cookie", self.cookies.set_login(&cookie));
        }
        // Without an attempt the form is shown only to those whose session cookie, if any, opens nothing.
        if notice.is_none() && self.has_session_cookie(&request.cookies) {
            page.set("Set-Cookie", self.cookies.forget(self.cookies.session));
        }
        Ok(page)
    }

    fn login_cookie(&self, request: &PageRequest<'_>) -> Result<Option<Secret>, PageError> {
        match cookies::read(&request.cookies, self.cookies.login) {
            Cookie::One(cookie) => Ok(Some(cookie)),
            Cookie::None | Cookie::Invalid => Ok(None),
            Cookie::Several => Err(PageError::SeveralSessionCookies),
        }
    }
}
