//! The operator's console: HTML on the admin listener, with the rules of the pages.
//!
//! It works without JavaScript and changes nothing on GET. An admin token opens a session, which lives in memory and ends with
//! the token. Every form that changes something carries a value that only this session can make (`pages/csrf.rs`), and
//! every change asks for a confirmation that says what it ends. All changes go through [`crate::operator::manage`].

mod change;
mod chart;
mod configuration;
mod consumer;
mod consumers;
mod login;
mod operations;
mod overview;
mod page;
mod parts;
mod rejections;
mod session;
mod signature;
mod tokens;
mod users;

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use http::{Method, Request, header};
use http_body::Body as _;

pub use self::{
    overview::ShownCertificate,
    session::{COOKIE, SECURE_COOKIE},
};
use self::{
    page::{Person, Section},
    parts::{line, link},
    session::{Arrivals, OperatorSession, Sessions},
};
use super::{
    Admin, Backend, admin_actor, host_of,
    tokens::{TokenKind, Tokens},
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        http_fields::{SEC_FETCH_MODE, SEC_FETCH_SITE, single},
        random,
        secret::Secret,
    },
    oauth::Authority,
    operator::manage::{Actor, ManageError, setting::EffectiveSetting},
    provider::{
        pages::{
            csrf::{self, FormPurpose},
            form::Form,
        },
        respond::OwnResponse,
    },
    request::parse::signed::is_form,
    telemetry::{causes::causes, charts::Charts, rejections::RecordedRejection},
    wire::{
        origin::{is_localhost, is_loopback, without_brackets},
        server::{rejection::BodyRejection, request::RequestBody},
    },
};

/// The pages of the menu.
const PAGES: [(&str, &str); 8] = [
    ("/", "Overview"),
    ("/consumers", "Consumers"),
    ("/users", "Users"),
    ("/tokens", "Tokens"),
    ("/rejections", "Rejections"),
    ("/operations", "Operations"),
    ("/signature", "Check a signature"),
    ("/configuration", "Configuration"),
];

/// The console's own host name on this machine. A cookie belongs to a host name with all its ports.
const OWN_HOST: &str = "countersign.localhost";

/// The parameter with which a browser arrives there.
const SENT: &str = "from";

/// Records on a page of a list.
const LISTED: u32 = 100;

/// The state of the console, which outlives a reload.
pub struct Console {
    /// The effective configuration.
    pub settings: ArcSwap<Vec<EffectiveSetting>>,
    /// The certificates that are shown to callers and to the API.
    pub certificates: Box<dyn Fn() -> Vec<ShownCertificate> + Send + Sync>,
    /// The counts of the last hour and the last day.
    pub charts: Arc<Charts>,
    /// The wall clock.
    pub clock: Clock,
    sessions: Sessions,
    arrivals: Arrivals,
}

impl Console {
    /// A console without sessions.
    pub fn new(
        certificates: Box<dyn Fn() -> Vec<ShownCertificate> + Send + Sync>,
        charts: Arc<Charts>,
        clock: Clock,
    ) -> Self {
        Self {
            settings: ArcSwap::default(),
            certificates,
            charts,
            clock,
            sessions: Sessions::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// Ends the sessions of a token that is not one of these any more.
    pub fn end_sessions_of_others(&self, tokens: Option<&Tokens>) {
        self.sessions.purge(tokens);
    }
}

/// Why a page is not shown, or a change not made.
enum Rejected {
    /// The request cannot be read; the reason.
    Malformed(&'static str),
    /// The form came from elsewhere.
    Forged,
    /// The form is no longer valid; where to begin again.
    Stale(String),
    /// The session is one of the read token.
    ReadOnly,
    /// There is no such page.
    NotFound,
    /// The method is not one of the page.
    OtherMethod,
    /// The input cannot be used; the reason.
    Invalid(String),
    Body(BodyRejection),
    /// Too much is computed at once.
    Busy,
    Manage(ManageError),
}

impl From<BodyRejection> for Rejected {
    fn from(rejection: BodyRejection) -> Self {
        Self::Body(rejection)
    }
}

impl<E: Into<ManageError>> From<E> for Rejected {
    fn from(error: E) -> Self {
        Self::Manage(error.into())
    }
}

/// A page: its title and its parts.
type PageParts = (String, Vec<Section>);

/// The result of a request.
enum Reply {
    Page(PageParts),
    /// Leads to another page.
    Redirect(String),
}

type Result<T, E = Rejected> = std::result::Result<T, E>;

/// Responds to a browser of an operator.
pub(super) async fn respond(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> OwnResponse {
    let path = request.uri().path().to_owned();
    let menu_page = PAGES.iter().find(|(known, _)| *known == path);
    let menu_page = menu_page.map_or("", |(known, _)| known);
    let service = admin.shared.live.load().theme.rules.name().to_owned();
    let console = &admin.control.console;
    let now = console.clock.now();
    let is_secure = admin.any_host || !is_at_loopback(request);
    let id = session::cookie(request.headers(), is_secure);
    let session = id.and_then(|id| console.sessions.find(&backend.tokens, id, now));
    let person = session.as_ref().map(|session| Person {
        kind: session.kind.into(),
        logout_csrf: csrf::value(&session.id, FormPurpose::Console, "/logout"),
    });
    let show = |status, title: &str, sections: &[Section]| {
        page::show(
            &service,
            menu_page,
            person.as_ref(),
            status,
            title,
            sections,
        )
    };
    let sent = read(request).await;
    let sent = match sent {
        Ok(sent) => sent,
        Err(refused) => return refused.response(&path, &show),
    };
    if let Some(id) = sent.query.field(SENT) {
        console.arrivals.note(&Secret::from(id));
    }
    let peer = request.body().caller().peer.address;
    let peer = peer.map(|peer| peer.to_canonical());
    let Some(session) = session else {
        if !is_secure && let Some(elsewhere) = to_own_host(console, request) {
            return elsewhere;
        }
        let login = login::LoginRequest {
            admin,
            backend,
            peer,
            is_secure,
            is_back: request.headers().contains_key(header::COOKIE),
        };
        return login.respond(&path, request.uri(), sent, &show);
    };
    let console_request = ConsoleRequest {
        admin,
        backend,
        path: &path,
        query: sent.query,
        form: sent.form,
        session,
        peer,
        now,
    };
    match console_request.respond().await {
        Ok(Reply::Page((title, sections))) => show(200, &title, &sections),
        Ok(Reply::Redirect(location)) if path == "/logout" => OwnResponse::see_other(location)
            .field("Set-Cookie", session::set_cookie(None, is_secure)),
        Ok(Reply::Redirect(location)) => OwnResponse::see_other(location),
        Err(refused) => refused.response(&path, &show),
    }
}

/// The parameters of a request.
struct Sent {
    query: Form,
    /// The form of a POST.
    form: Option<Form>,
}

/// Reads query and form. A POST that a browser marks as cross-site, or that names another origin, is rejected.
async fn read(request: &mut Request<RequestBody>) -> Result<Sent> {
    let query = request.uri().query().unwrap_or_default();
    let query = Form::parse(query.as_bytes());
    let query = query.ok_or(Rejected::Malformed("the query cannot be read"))?;
    let form = match *request.method() {
        Method::GET | Method::HEAD => None,
        Method::POST => {
            check_origin(request)?;
            let is_form = is_form(request.headers()).unwrap_or(false);
            if !is_form && !request.body().is_end_stream() {
                return Err(Rejected::Malformed("the body is not a form"));
            }
            let body = request.body_mut().read_admin_body().await?;
            let form = Form::parse(&body);
            Some(form.ok_or(Rejected::Malformed("the form cannot be read"))?)
        }
        _ => return Err(Rejected::OtherMethod),
    };
    Ok(Sent { query, form })
}

/// The methods of a page.
fn allowed(path: &str) -> &'static str {
    let changes = [
        "/consumer/",
        "/user/",
        "/token/",
        "/tokens/",
        "/login",
        "/signature",
    ];
    match path {
        "/logout" => "POST",
        path if changes.iter().any(|change| path.starts_with(change)) => "GET, HEAD, POST",
        _ => "GET, HEAD",
    }
}

/// The listener does not know by which names and ports it is reached, so an Origin has to be that of Host, which was checked.
fn check_origin(request: &Request<RequestBody>) -> Result<()> {
    let single = |name| single(request.headers(), name).map_err(|_| Rejected::Forged);
    let (site, origin) = (single(&SEC_FETCH_SITE)?, single(&header::ORIGIN)?);
    let host = host_of(request);
    let is_own_site = site.is_none_or(|site| site == b"same-origin" || site == b"none");
    let is_own = |origin: &[u8]| {
        let schemes = [b"http://".as_slice(), b"https://"];
        let mut authorities = schemes
            .iter()
            .filter_map(|scheme| origin.strip_prefix(*scheme));
        authorities.any(|authority| {
            Authority::parse(authority).is_ok() && authority.eq_ignore_ascii_case(host)
        })
    };
    match is_own_site && origin.is_none_or(is_own) {
        true => Ok(()),
        false => Err(Rejected::Forged),
    }
}

/// Whether the browser reaches the listener by a loopback host; under any other one a proxy in front speaks https.
fn is_at_loopback(request: &Request<RequestBody>) -> bool {
    Authority::parse(host_of(request)).is_ok_and(|Authority { host, .. }| {
        let ip = without_brackets(host).parse();
        ip.map_or_else(|_| is_localhost(host), is_loopback)
    })
}

/// Sends a browser without a session from 127.0.0.1 or `localhost` to the console's own host name: browsers send a cookie to
/// every port of its host. It is sent once, and again only if it arrived there, since it may not know the name.
fn to_own_host(console: &Console, request: &Request<RequestBody>) -> Option<OwnResponse> {
    let (headers, target) = (request.headers(), request.uri().path_and_query()?.as_str());
    let is_navigation = single(headers, &SEC_FETCH_MODE) == Ok(Some(b"navigate"))
        && matches!(*request.method(), Method::GET | Method::HEAD);
    let Authority { host, port } = Authority::parse(host_of(request)).ok()?;
    let is_shared = host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost");
    if !is_navigation || !is_shared {
        return None;
    }
    let sent = session::cookie(headers, false);
    if sent.is_some() && !console.arrivals.has(sent.as_ref()?) {
        return None;
    }
    let id = sent.map_or_else(random::secret, Ok).ok()?;
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let joint = if target.contains('?') { '&' } else { '?' };
    // The scheme stays: a tunnel may add TLS.
    let value = id.expose_text();
    let there = format!("//{OWN_HOST}{port}{target}{joint}{SENT}={}", *value);
    Some(OwnResponse::see_other(there).field("Set-Cookie", session::arrival_cookie(&id)))
}

impl Rejected {
    fn response(
        self,
        path: &str,
        show: &dyn Fn(u16, &str, &[Section]) -> OwnResponse,
    ) -> OwnResponse {
        let begin_again = |text: &str, here| {
            let text = Section::Text(line(text));
            vec![text, Section::Actions(vec![link("Begin again", here)])]
        };
        let (status, title, sections) = match self {
            Self::Malformed(why) => (400, "Request not understood", begin_again(why, "/")),
            Self::Forged => {
                let text = "The form did not come from this console. Open the console again and send its own form.";
                (403, "Form rejected", begin_again(text, "/"))
            }
            Self::Stale(here) => {
                let text = "The form is no longer valid: the session is another one, or the record has changed since it was \
                            shown. Nothing was changed.";
                (403, "Form no longer valid", begin_again(text, &*here))
            }
            Self::ReadOnly => {
                let text = "You are logged in with the read token, which changes nothing. Log in with the token of \
                            admin.token_file.";
                (403, "Not permitted", begin_again(text, "/"))
            }
            Self::NotFound => (
                404,
                "Page not found",
                begin_again("There is nothing here.", "/"),
            ),
            Self::OtherMethod => {
                let text =
                    "Pages are opened with GET, and the forms of changes are sent with POST.";
                (405, "Method not allowed", begin_again(text, "/"))
            }
            Self::Invalid(why) => (422, "Not accepted", begin_again(&why, "/")),
            Self::Body(BodyRejection::TooLarge) => {
                let text = "The form is larger than 64 KiB.";
                (413, "Too large", begin_again(text, "/"))
            }
            Self::Body(_) => {
                let text = "The form did not arrive whole, or too slowly. Send it again.";
                (408, "Form incomplete", begin_again(text, "/"))
            }
            Self::Busy => {
                let text = "Too much is computed at once. Send it again.";
                (503, "Busy", begin_again(text, "/"))
            }
            Self::Manage(error) => {
                let (status, mut text) = (error.status(), error.to_string());
                let title = match status {
                    500.. => {
                        tracing::error!(error = causes(&error), "console: the store fails");
                        "The store does not answer. Nothing was changed; the log says more."
                            .clone_into(&mut text);
                        "Store unavailable"
                    }
                    404 => "Not found",
                    _ => "Not possible",
                };
                (status, title, begin_again(&text, "/"))
            }
        };
        let response = show(status, title, &sections);
        match status {
            405 => response.field("Allow", allowed(path)),
            _ => response,
        }
    }
}

/// One request of an operator who is logged in.
struct ConsoleRequest<'a> {
    admin: &'a Admin,
    backend: &'a Backend,
    path: &'a str,
    query: Form,
    /// The form of a POST.
    form: Option<Form>,
    session: OperatorSession,
    peer: Option<IpAddr>,
    now: UnixTime,
}

impl ConsoleRequest<'_> {
    async fn respond(&self) -> Result<Reply> {
        let page = match self.path {
            "/logout" => return self.log_out(),
            "/login" => return Ok(Reply::Redirect("/".to_owned())),
            "/consumer/add"
            | "/consumer/edit"
            | "/consumer/rotate"
            | "/consumer/end-grace"
            | "/consumer/disable"
            | "/consumer/enable"
            | "/consumer/remove" => {
                return self.change_consumer().await;
            }
            "/user/disable" | "/user/enable" | "/user/end-sessions" => {
                return self.change_user().await;
            }
            "/token/revoke" | "/tokens/revoke" => return self.revoke_tokens().await,
            "/signature" => return self.signature().await,
            _ if self.form.is_some() => return Err(Rejected::OtherMethod),
            "/" => self.overview().await,
            "/consumers" => self.consumers().await,
            "/consumer" => self.consumer().await,
            "/users" => self.users().await,
            "/user" => self.user().await,
            "/tokens" => self.tokens().await,
            "/rejections" => self.rejections(),
            "/operations" => self.operations(),
            "/configuration" => self.configuration(),
            _ => Err(Rejected::NotFound),
        };
        page.map(Reply::Page)
    }

    fn log_out(&self) -> Result<Reply> {
        self.check_form("")?;
        self.admin.control.console.sessions.close(&self.session);
        self.audit("console_logout");
        Ok(Reply::Redirect("/login".to_owned()))
    }

    /// A field of the form, else of the query, without white space around it; empty if it is missing.
    fn field(&self, name: &str) -> &str {
        let sent = self.form.as_ref().and_then(|form| form.field(name));
        let value = sent.or_else(|| self.query.field(name));
        value.unwrap_or_default().trim()
    }

    const fn may_write(&self) -> bool {
        matches!(self.session.kind, TokenKind::Write)
    }

    /// The value of a form that is sent to this path; `state` is what it is about.
    fn csrf(&self, state: &str) -> String {
        csrf::value(
            &self.session.id,
            FormPurpose::Console,
            &subject(self.path, state),
        )
    }

    /// Checks that the form was shown in this session, for this path and state.
    fn check_form(&self, state: &str) -> Result<()> {
        let Some(form) = &self.form else {
            return Err(Rejected::OtherMethod);
        };
        let (sent, about) = (form.field("csrf"), subject(self.path, state));
        match csrf::is_value(sent, &self.session.id, FormPurpose::Console, &about) {
            true => Ok(()),
            false => {
                let token = match self.field("token") {
                    "" => String::new(),
                    _ => self.session.sealed(&self.named_token()),
                };
                let names = ["key", "id", "consumer", "user", "unused_for"];
                let mut about = Vec::from(names.map(|name| (name, self.field(name))));
                about.push(("token", &*token));
                let here = if self.path == "/logout" {
                    "/"
                } else {
                    self.path
                };
                Err(Rejected::Stale(parts::path(here, &about)))
            }
        }
    }

    fn actor(&self) -> Actor {
        admin_actor("console", self.session.kind, self.peer)
    }

    fn audit(&self, event: &str) {
        let token: &str = self.session.kind.into();
        let address = self.peer.map(tracing::field::display);
        tracing::info!(target: "audit", event, by = "console", admin_token = token, address);
    }

    fn rejected(&self) -> Vec<RecordedRejection> {
        self.admin.shared.rejections.newest()
    }
}

fn subject(path: &str, state: &str) -> String {
    match state {
        "" => path.to_owned(),
        state => format!("{path}\0{state}"),
    }
}
