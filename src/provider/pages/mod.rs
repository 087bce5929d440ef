//! The pages for browsers: the login form, the consent form and a user's applications.
//!
//! The pages work without JavaScript, change nothing on GET, and keep no state but the store's, so that a reload, a
//! restart or another replica under the same name can continue.
//!
//! # Rejection of forged forms
//!
//! Every form carries a value that can be made only from this browser's secret cookie and the subject of the form
//! (`csrf.rs`). A POST that a browser marks as cross-site, or that names another origin, is rejected before that. Both
//! cookies are `HttpOnly` and `SameSite=Lax`.

use std::{
    borrow::Cow,
    cell::RefCell,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use askama::Template;
use http::{HeaderMap, Method, header};
use http_body::Body as _;

use crate::{
    base::{
        clock::{Clock, UnixTime},
        language,
        network::http_fields::{self, Initiator},
        secret::Secret,
        text::{
            names::{Permission, UserId},
            percent_encoded,
        },
    },
    oauth::ProtocolParameter,
    provider::{
        collection::CollectionRules,
        endpoints::scope::ScopeSettings,
        issue::callback::{self, OOB},
        login::{
            LoginBackend, PasswordPool, Throttle, header::UserHeaders, settings::LoginSettings,
        },
        respond::{Failure, OwnResponse},
        theme::{Theme, frame::Frame},
    },
    records::{
        credentials::feed::ChangeHub,
        store::Store,
        values::{
            StoreError,
            record::{Callback, Consumer, Dialect, OutsideUser, User},
        },
    },
    request::{
        parse::{ParseRejection, head::Head, origin::Origins, signed::is_form},
        policy::sunset::Sunset,
        route::{self, FlowPath, FlowPaths, Page},
        verify::settings::TokenSettings,
    },
    telemetry::{calls::rejections::Rejections, metrics::Verdict},
    wire::{server::request::RequestBody, url::origin::Origin},
};

mod applications;
pub(crate) mod browser;
mod consent;
pub mod developer;
mod error;
pub(crate) mod form;
#[cfg(fuzzing)]
pub mod fuzzing;
mod login;
mod password;
mod registration;
pub mod settings;

pub use browser::cookies::{CookieNames, cookie_names};

use browser::cookies;
use developer::{ChecksSignatures, DeveloperRates};
use error::PageError;
use form::{
    Form,
    csrf::{self, FormPurpose},
};
use settings::{
    AuthorizePageSettings, ConsentSettings, PermissionSettings, RegistrationSettings, Remember,
    SessionSettings,
};

/// The rules of the pages. A reload makes new [`Pages`].
#[derive(Clone)]
pub struct PageRules {
    /// The origins with pages, all of one scheme. If it is https, cookies are `Secure` and have the `__Host-` prefix.
    pub origins: Arc<Origins>,
    /// The settings of the authorization page.
    pub authorize_page: AuthorizePageSettings,
    /// The parts that all pages have in common.
    pub theme: Arc<Theme>,
    /// The settings of users who are logged in.
    pub login: LoginSettings,
    /// The limit on their sessions.
    pub sessions: SessionSettings,
    /// Users ask for consumers.
    pub registration: RegistrationSettings,
    /// A proxy in front checks who the user is, and there is no login form.
    pub user_headers: Option<UserHeaders>,
    /// The lifetimes of tokens. That of a request token counts again when the user agrees.
    pub tokens: TokenSettings,
    /// `signature.default_dialect`, for consumers without one.
    pub default_dialect: Dialect,
    /// How the address of the authorization page names permissions.
    pub scope: ScopeSettings,
    /// The question to users whether a consumer may act for them.
    pub consent: ConsentSettings,
    /// The texts of permissions. One without an entry is called by its name.
    pub permissions: Vec<PermissionSettings>,
    /// The end of OAuth 1.0a, if it is planned.
    pub sunset: Option<Arc<Sunset>>,
    /// Consumers learn the display name of a user (`tokens.profile`).
    pub gives_display_name: bool,
    /// Checks the requests of developers; `None`: `signature.advice` is off, and so are their pages.
    pub signature_check: Option<Arc<dyn ChecksSignatures>>,
    /// The facts that collections for developers have.
    pub collections: CollectionRules,
}

/// A text of the operator or of a consumer, in the language of the page or in its own.
struct Worded {
    text: String,
    /// Its language, if it is known and another than that of the page.
    lang: Option<String>,
}

/// The services that the pages use. All of them outlive a reload.
#[derive(Clone)]
pub struct PageServices {
    /// Keeps tokens, users and sessions.
    pub store: Arc<Store>,
    /// Informs the cache of credentials of revocations by a page.
    pub feed: Arc<ChangeHub>,
    /// Checks passwords.
    pub login: Arc<dyn LoginBackend>,
    /// Hashes new passwords; `None`: the store does not have the passwords.
    pub passwords: Option<Arc<PasswordPool>>,
    /// Counts failed logins.
    pub throttle: Arc<Throttle>,
    /// The wall clock.
    pub clock: Clock,
    /// The calls that were rejected, for their developers.
    pub rejections: Arc<Rejections>,
    /// Limits the pages of developers, and the requests that they check.
    pub developer_rates: DeveloperRates,
}

/// The pages.
pub struct Pages {
    rules: PageRules,
    services: PageServices,
    cookies: CookieNames,
}

impl Pages {
    /// Pages for this configuration.
    pub fn new(rules: PageRules, services: PageServices) -> Self {
        Self {
            cookies: cookie_names(rules.origins.base.origin.is_https()),
            rules,
            services,
        }
    }

    /// Finds the enabled user of the session that these fields name. `None` if there is no session cookie, more than
    /// one, or one that is not valid, or if the trusted proxy in front does not name the same user.
    ///
    /// # Errors
    /// The store's: nothing is known about the caller then.
    pub async fn session(
        &self,
        headers: &HeaderMap,
        trusted: bool,
    ) -> Result<Option<User>, StoreError> {
        let Ok(Some(id)) = cookies::read(headers, self.cookies.session) else {
            return Ok(None);
        };
        let (id, now) = (cookies::id_hash(&id), self.services.clock.now());
        let found = self.services.store.session(&id, now).await?;
        let found = found.map(|(_, user)| user);
        let found = found.filter(|user| !self.must_change_password(user));
        let Some(names) = &self.rules.user_headers else {
            return Ok(found);
        };
        let named = names.read(headers).ok().flatten().filter(|_| trusted);
        Ok(found.filter(|user| named.is_some_and(|named| named.id == user.id)))
    }

    /// Whether a user can do nothing but choose another password. It does not matter where another system has the passwords.
    fn must_change_password(&self, user: &User) -> bool {
        user.must_change_password && self.services.passwords.is_some()
    }

    /// Whether there is a session cookie, valid or not: this makes a caller of the kind `user`.
    #[must_use]
    pub fn has_session_cookie(&self, headers: &HeaderMap) -> bool {
        cookies::is_sent(headers, self.cookies.session)
    }

    /// Responds to a browser.
    ///
    /// # Errors
    /// A form that cannot be read or names a mode, a repeated Origin or Sec-Fetch-Site, an asset that does not exist, the
    /// page's own rejections, and faults of the store.
    ///
    /// # Cancel safety
    /// A change is made whole or not at all.
    pub async fn respond(
        &self,
        route: &route::RouteRules,
        page: Page,
        head: &Head<'_>,
        body: &mut RequestBody,
    ) -> Result<OwnResponse, Failure> {
        let headers = &head.parts.headers;
        let form = match !body.is_end_stream() && is_form(headers)? {
            true => Some(body.read_page_form().await?),
            false => None,
        };
        let form = form.as_deref().unwrap_or_default();
        route.check_page_form(head, form)?;
        let accepted = headers.get(header::ACCEPT_LANGUAGE);
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let page_request = PageRequest {
            pages: self,
            path: route.flow.find(&head.target).map(|(path, _)| path),
            flow: &route.flow,
            head,
            form: self.form(head, form)?,
            frame: Frame::new(&self.rules.theme, Some(&head.parts.uri), accepted),
            now: self.services.clock.now(),
            address: head.received.nearest_address.unwrap_or(loopback),
            page,
            new_cookies: RefCell::default(),
        };
        let mut response = match page {
            Page::Authorize => page_request.authorize().await?,
            Page::Applications => page_request.applications().await?,
            Page::Home => OwnResponse::see_other(page_request.frame.link("applications")),
            Page::Login => page_request.login().await?,
            Page::Logout => page_request.logout().await?,
            Page::Password => page_request.password().await?,
            Page::Developer => page_request.developer().await?,
            Page::Register => page_request.registration().await?,
            Page::Asset => {
                let path = head.target.path;
                let mut assets = self.rules.theme.assets();
                let asset = assets.find(|asset| asset.path.as_bytes() == path);
                OwnResponse::asset(asset.ok_or(route::RouteRejection::NotFound(None))?)
            }
        };
        let cookies = page_request.new_cookies.into_inner().into_iter();
        let cookies = cookies.map(|cookie| ("Set-Cookie", cookie));
        response.fields.extend(cookies);
        Ok(response)
    }

    /// The origin that a browser visits.
    fn origin(&self, head: &Head<'_>) -> &Origin {
        let origins = &self.rules.origins;
        let visited = origins.page_origin(&head.received);
        visited.unwrap_or(&origins.base.origin)
    }

    /// The form of a POST; `None` for GET and HEAD.
    ///
    /// A POST is rejected if the browser itself says that it comes from another site: by `Sec-Fetch-Site`, or by an `Origin`
    /// other than ours. A POST without either field is left to the form's own value.
    fn form(&self, head: &Head<'_>, body: &[u8]) -> Result<Option<Form>, Failure> {
        let repeated =
            |_| ParseRejection::Malformed("Origin or Sec-Fetch-Site is given more than once");
        let Initiator {
            is_own_site,
            origin,
        } = Initiator::from_headers(&head.parts.headers).map_err(repeated)?;
        if head.parts.method != Method::POST {
            return Ok(None);
        }
        let visited_origin = self.origin(head).to_string();
        if is_own_site == Some(false)
            || origin.is_some_and(|origin| origin != visited_origin.as_bytes())
        {
            return Err(PageError::ForgedForm.into());
        }
        // One of them has a field for each permission.
        let most = form::MAX_FIELDS + self.rules.permissions.len();
        let form =
            Form::parse_within(body, most).ok_or(PageError::Malformed("error-malformed-form"))?;
        Ok(Some(form))
    }
}

/// The messages about the user's last action.
const NOTICES: [&str; 7] = [
    "denied-text",
    "applications-withdrawn",
    "password-changed",
    "notice-out",
    "notice-out-all",
    "notice-out-others",
    "notice-out-one",
];

/// One request of a browser for a page.
struct PageRequest<'a> {
    pages: &'a Pages,
    head: &'a Head<'a>,
    /// The path of the authorization page by which the browser came, if it is not `service.path`.
    path: Option<&'a FlowPath>,
    /// The paths of the service.
    flow: &'a FlowPaths,
    /// The form of a POST.
    form: Option<Form>,
    /// The frame of a page, in the language of the request.
    frame: Frame<'a>,
    now: UnixTime,
    /// The address of the browser, as trusted proxies name it.
    address: IpAddr,
    page: Page,
    /// The values of `Set-Cookie` in the response.
    new_cookies: RefCell<Vec<String>>,
}

impl PageRequest<'_> {
    fn store(&self) -> &Store {
        &self.pages.services.store
    }

    /// A parameter of the query, decoded.
    fn parameter(&self, name: &str) -> Result<Option<String>, PageError> {
        let query = self.head.target.query.unwrap_or_default();
        let value = http_fields::parameter(query, name);
        let value = value.map_err(|_| PageError::Malformed("error-malformed-twice"))?;
        Ok(value.map(|value| value.into_owned()))
    }

    /// A parameter of the authorization page under its own name or another one of it; both are the same if both are there.
    fn page_parameter(&self, parameter: ProtocolParameter) -> Result<Option<String>, PageError> {
        let mut found = self.parameter(parameter.as_str())?;
        let others = self.pages.rules.authorize_page.page_parameters.0.iter();
        for (name, _) in others.filter(|(_, meant)| *meant == parameter) {
            let other = self.parameter(name)?;
            if found.is_some() && other.is_some() && found != other {
                return Err(PageError::Malformed("error-malformed-twice"));
            }
            found = found.or(other);
        }
        Ok(found)
    }

    /// The collection of a consumer, if the address names a tool.
    fn collection(&self, consumer: &Consumer) -> Result<Option<OwnResponse>, PageError> {
        let tool = self.parameter("collection")?;
        let Some(Ok(tool)) = tool.as_deref().map(str::parse) else {
            return Ok(None);
        };
        let file = self.pages.rules.collections.collection(tool, consumer);
        let mut response = OwnResponse::new(200, file.content_type, file.content, Verdict::Page);
        response.fields.extend(Theme::plain().fields("", None));
        let disposition = format!("attachment; filename=\"{}\"", file.file_name);
        Ok(Some(response.field("Content-Disposition", disposition)))
    }

    /// A field of the form; `None` for GET and HEAD.
    fn field(&self, name: &str) -> Option<&str> {
        self.form.as_ref()?.field(name)
    }

    /// The caller and the session, which is opened on a GET of a user that the trusted proxy in front names.
    async fn logged_in(&self) -> Result<Option<LoggedIn>, Failure> {
        match self.recognized().await? {
            (_, Some(caller)) => Ok(Some(caller)),
            // The browser has another user now: a form of the previous user is not valid.
            (Some(named), None) if self.form.is_none() => self.admit(named).await.map(Some),
            _ => Ok(None),
        }
    }

    /// The caller, for a GET that shows no form: no session is opened.
    async fn user(&self) -> Result<Option<User>, Failure> {
        match self.recognized().await? {
            (_, Some(caller)) => Ok(Some(caller.user)),
            (Some(named), None) => self.admitted(named).await.map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The user that the trusted proxy in front names, and the caller's session, if it is of that user.
    async fn recognized(&self) -> Result<(Option<OutsideUser>, Option<LoggedIn>), Failure> {
        // Somebody may have set a second cookie, to have the user act in a session that is not theirs: an error.
        let id = cookies::read(&self.head.parts.headers, self.pages.cookies.session)?;
        let found = match id {
            Some(id) => {
                let hash = cookies::id_hash(&id);
                let found = self.store().session(&hash, self.now).await?;
                // The session of a user who must change the password is good for that alone.
                let is_good = matches!(self.page, Page::Password | Page::Logout);
                let found = found.map(|(_, user)| LoggedIn { id, user });
                found.filter(|it| is_good || !self.pages.must_change_password(&it.user))
            }
            None => None,
        };
        let Some(names) = &self.pages.rules.user_headers else {
            return Ok((None, found));
        };
        let fields = self.head.trusted_fields();
        let named = fields.map_or(Ok(None), |fields| names.read(fields));
        let named = named.map_err(|_| PageError::Malformed("error-malformed-user"))?;
        let named = named.ok_or(PageError::NobodyNamed)?;
        let found = found.filter(|caller| caller.user.id == named.id);
        Ok((Some(named), found))
    }

    /// The caller in whose session the form was shown, for this purpose and subject; `here` is where to begin again.
    async fn sender(
        &self,
        purpose: FormPurpose,
        subject: &str,
        here: &str,
    ) -> Result<LoggedIn, Failure> {
        let sent = self.field("csrf");
        match self.logged_in().await? {
            Some(caller) if csrf::is_value(sent, &caller.id, purpose, subject) => Ok(caller),
            found => Err(self.stale(found.is_some(), here)),
        }
    }

    /// The error about a form of ours that is no longer valid, with its cause.
    fn stale(&self, is_logged_in: bool, here: &str) -> Failure {
        let (headers, cookies) = (&self.head.parts.headers, &self.pages.cookies);
        let mut names = [cookies.session, cookies.login].into_iter();
        // The session's cookie ends with the session, and a log-out leaves the other one.
        let cause = if !names.any(|name| cookies::is_sent(headers, name)) {
            "error-stale-old"
        } else if is_logged_in || self.pages.rules.user_headers.is_some() {
            "error-stale-in"
        } else {
            "error-stale-out"
        };
        PageError::StaleForm(cause, here.to_owned()).into()
    }

    /// Writes an audit record of what the user has done.
    fn audit(&self, event: &str, user: &UserId) {
        tracing::info!(target: "audit", event, %user, address = %self.address);
    }

    /// Parameters of an address that show this notice to the browser with this cookie alone; `subject` fills it in.
    fn notice_parameters(&self, cookie: &Secret, notice: &'static str, subject: &str) -> String {
        let proof = csrf::value(cookie, FormPurpose::Notice, &format!("{notice} {subject}"));
        let subject = percent_encoded(subject);
        format!("&notice={notice}&of={subject}&proof={proof}")
    }

    /// The notice that the address shows to the browser with this cookie: a message, and what fills it in.
    fn proven_notice(&self, cookie: &Secret) -> Result<Option<(&'static str, String)>, PageError> {
        let [notice, subject, proof] = ["notice", "of", "proof"].map(|name| self.parameter(name));
        let (notice, subject) = (notice?.unwrap_or_default(), subject?.unwrap_or_default());
        let known = NOTICES.into_iter().find(|known| *known == notice);
        let message = format!("{notice} {subject}");
        let is_ours = csrf::is_value(proof?.as_deref(), cookie, FormPurpose::Notice, &message);
        Ok(known.filter(|_| is_ours).map(|known| (known, subject)))
    }

    /// The texts of the page, in the language of the request.
    fn wording(&self) -> Wording<'_> {
        Wording {
            rules: &self.pages.rules,
            frame: self.frame,
        }
    }

    fn page(&self, template: &impl Template) -> OwnResponse {
        OwnResponse::page(self.frame, 200, template, "")
    }

    fn set_cookie(&self, cookie: String) {
        self.new_cookies.borrow_mut().push(cookie);
    }
}

/// Texts of a page in its language.
#[derive(Clone, Copy)]
struct Wording<'a> {
    rules: &'a PageRules,
    frame: Frame<'a>,
}

impl Wording<'_> {
    /// The title and the description of a permission, and whether it is marked.
    fn described(&self, permission: &Permission) -> (Worded, Worded, bool) {
        let rules = self.rules;
        let known = rules.permissions.iter().find(|it| it.name == *permission);
        let id = language::permission_id(permission);
        let worded = |attribute, text: &str| {
            let translated = self
                .frame
                .texts
                .in_this_language(&id, attribute)
                .map(Cow::into_owned);
            let lang = &rules.theme.rules.pages.permission_language;
            let lang = lang.as_ref().map(|lang| lang.0.clone());
            let lang = lang.filter(|lang| translated.is_none() && *lang != self.frame.texts.tag());
            Worded {
                text: translated.unwrap_or_else(|| text.to_owned()),
                lang,
            }
        };
        let title = known
            .and_then(|known| known.title.as_deref())
            .unwrap_or(permission.as_str());
        let description = known
            .and_then(|known| known.description.as_deref())
            .unwrap_or_default();
        let is_sensitive = known.is_some_and(|known| known.sensitive);
        (
            worded(None, title),
            worded(Some("description"), description),
            is_sensitive,
        )
    }

    /// Whether a user who allows this need not be asked for it again. The address of a web site under https is the only one
    /// of which it is known who gets the verifier (RFC 8252 §8.6).
    fn is_remembered(
        &self,
        consumer: &Consumer,
        callback: &Callback,
        permissions: &[Permission],
    ) -> bool {
        let is_site = matches!(callback, Callback::Uri(uri) if callback::is_assured(uri));
        let is_sensitive = |it| self.described(it).2;
        self.rules.consent.remember == Remember::Same
            && is_site
            && !consumer.callbacks.iter().any(|it| it == OOB)
            && !permissions.iter().any(is_sensitive)
    }

    /// A time in UTC: its date in words, its hour and its minute.
    fn date_and_time(&self, time: UnixTime) -> String {
        let text = time.to_string();
        let clock = text.split('T').nth(1).and_then(|clock| clock.get(..5));
        format!("{} {} UTC", self.date(time), clock.unwrap_or_default())
    }

    /// The date of a time in words, in UTC.
    fn date(&self, time: UnixTime) -> String {
        let text = time.to_string();
        let date = text.split('T').next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = date.split('-').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[year, month, day]) => {
                let numbers = [("day", day), ("month", month), ("year", year)];
                self.frame.texts.numbered("date-words", &numbers)
            }
            _ => date.to_owned(),
        }
    }
}

/// The user of a valid session, and the id in the cookie.
struct LoggedIn {
    id: Secret,
    user: User,
}

/// A user's name as pages show it.
fn displayed(user: &User) -> String {
    match &user.display_name {
        Some(display_name) if *display_name != user.name => {
            format!("{display_name} ({})", user.name)
        }
        _ => user.name.clone(),
    }
}
