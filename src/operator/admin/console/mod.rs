//! The operator's console: HTML on the admin listener, with the rules of the pages.
//!
//! It works without JavaScript and changes nothing on GET. An admin token opens a session, which lives in memory and ends with
//! the token. Every form that changes something carries a value that only this session can make (`pages/csrf.rs`), and
//! every change asks for a confirmation that says what it ends. All changes go through [`crate::operator::manage`].

mod calls;
mod chart;
mod configuration;
mod page;
mod parts;
mod records;
mod routes;
mod search;
mod session;

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use http::{Method, Request, header};
use http_body::Body as _;

pub use self::session::{COOKIE, SECURE_COOKIE};
use self::{
    page::{Person, Shell},
    session::{Arrivals, OperatorSession, Sessions},
};
use super::{
    Admin, Backend, admin_actor, host_of,
    tokens::{TokenKind, Tokens},
};
pub use crate::operator::admin::console::{
    calls::overview::ShownCertificate, session::invitation::LIFETIME as INVITATION_LIFETIME,
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        network::http_fields::{Initiator, SEC_FETCH_MODE, single},
        secret::{
            Secret,
            random::{self, NoRandomness},
        },
    },
    oauth::Authority,
    operator::{
        admin::console::{calls::rejected::Rejected, session::invitation::Invitation},
        manage::{Operator, Tool, setting::EffectiveSetting},
    },
    provider::{
        pages::form::{
            Form,
            csrf::{self, FormPurpose},
        },
        respond::OwnResponse,
    },
    request::parse::signed::is_form,
    telemetry::charts::Charts,
    wire::{
        server::request::RequestBody,
        url::origin::{is_localhost, is_loopback, without_brackets},
    },
};

/// The console's own host name on this machine. A cookie belongs to a host name with all its ports.
const OWN_HOST: &str = "countersign.localhost";

/// The parameter with which a browser arrives there.
const SENT: &str = "from";

/// The most fields of a form: one that registers a consumer has a box for each permission.
const MAX_FIELDS: usize = 256;

/// Records on a page of a list.
const LISTED: u32 = 100;

/// The state of the console, which outlives a reload.
pub struct Console {
    /// The effective configuration.
    pub settings: ArcSwap<Vec<EffectiveSetting>>,
    /// The warnings of `countersign check` about it.
    pub warnings: ArcSwap<Vec<String>>,
    /// The certificates that are shown to callers and to the API.
    pub certificates: Box<dyn Fn() -> Vec<ShownCertificate> + Send + Sync>,
    /// The counts of the last hour and the last day.
    pub charts: Arc<Charts>,
    /// The wall clock.
    pub clock: Clock,
    sessions: Sessions,
    arrivals: Arrivals,
    invitation: Invitation,
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
            warnings: ArcSwap::default(),
            certificates,
            charts,
            clock,
            sessions: Sessions::default(),
            arrivals: Arrivals::default(),
            invitation: Invitation::default(),
        }
    }

    /// Path and query of a page that opens one session with the rights of `admin.token_file`, for whoever has it first.
    ///
    /// # Errors
    /// [`NoRandomness`]
    pub fn invite(&self) -> std::result::Result<Secret, NoRandomness> {
        let token = self.invitation.open(self.clock.now())?;
        let token = token.expose_text();
        let path = parts::path("/login", &[(session::invitation::PARAMETER, &token)]);
        Ok(Secret::from(path))
    }

    /// Shows this configuration, and what is unwise in it.
    pub fn show(&self, settings: &[EffectiveSetting], warnings: Vec<String>) {
        self.settings.store(Arc::new(settings.to_vec()));
        self.warnings.store(Arc::new(warnings));
    }

    /// Ends the sessions of a token that is no longer one of these.
    pub fn end_sessions_of_others(&self, tokens: Option<&Tokens>) {
        self.sessions.purge(tokens);
    }
}

type Result<T, E = Rejected> = std::result::Result<T, E>;

/// Responds to a browser of an operator.
pub(super) async fn respond(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> OwnResponse {
    let path = request.uri().path().to_owned();
    let console = &admin.control.console;
    let now = console.clock.now();
    let is_secure = admin.any_host || !is_at_loopback(request);
    let id = session::cookie(request.headers(), is_secure);
    let session = id.and_then(|id| console.sessions.find(&backend.tokens, id, now));
    let person = session.as_ref().map(|session| Person {
        name: session.holder.name.clone(),
        kind: session.holder.kind,
        logout_csrf: csrf::value(&session.id, FormPurpose::Console, "/logout"),
    });
    let shell = Shell {
        service: admin.shared.live.load().theme.rules.name().to_owned(),
        path: &path,
        person,
        now,
    };
    let sent = read(request).await;
    let sent = match sent {
        Ok(sent) => sent,
        Err(refused) => return refused.response(&shell),
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
        let login = session::login::LoginRequest {
            admin,
            backend,
            peer,
            is_secure,
            is_back: request.headers().contains_key(header::COOKIE),
            shell: &shell,
            is_get: *request.method() == Method::GET,
        };
        return login.respond(request.uri(), sent);
    };
    let console_request = ConsoleRequest {
        admin,
        backend,
        path: &path,
        shell: &shell,
        query: sent.query,
        form: sent.form,
        session,
        peer,
        now,
    };
    match console_request.respond().await {
        Ok(response) if path == "/logout" => {
            response.field("Set-Cookie", session::set_cookie(None, is_secure))
        }
        Ok(response) => response,
        Err(refused) => refused.response(&shell),
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
            let form = Form::parse_within(&body, MAX_FIELDS);
            Some(form.ok_or(Rejected::Malformed("the form cannot be read"))?)
        }
        _ => return Err(Rejected::OtherMethod),
    };
    Ok(Sent { query, form })
}

/// The listener does not know by which names and ports it is reached, so an Origin has to be that of Host, which was checked.
fn check_origin(request: &Request<RequestBody>) -> Result<()> {
    let Initiator {
        is_own_site,
        origin,
    } = Initiator::from_headers(request.headers()).map_err(|_| Rejected::Forged)?;
    let host = host_of(request);
    let is_own = |origin: &[u8]| {
        let schemes = [b"http://".as_slice(), b"https://"];
        let mut authorities = schemes
            .iter()
            .filter_map(|scheme| origin.strip_prefix(*scheme));
        authorities.any(|authority| {
            Authority::parse(authority).is_ok() && authority.eq_ignore_ascii_case(host)
        })
    };
    match is_own_site != Some(false) && origin.is_none_or(is_own) {
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

/// One request of an operator who is logged in.
struct ConsoleRequest<'a> {
    admin: &'a Admin,
    backend: &'a Backend,
    path: &'a str,
    shell: &'a Shell<'a>,
    query: Form,
    /// The form of a POST.
    form: Option<Form>,
    session: OperatorSession,
    peer: Option<IpAddr>,
    now: UnixTime,
}

impl ConsoleRequest<'_> {
    /// Responds to a request for the login of an operator who is logged in: an invitation is used up, since the history of the
    /// browser keeps its address.
    fn is_logged_in(&self) -> OwnResponse {
        let token = self.query.field(session::invitation::PARAMETER);
        let invitation = &self.admin.control.console.invitation;
        token.map(|token| invitation.take(token, self.now));
        OwnResponse::see_other("/".to_owned())
    }

    fn log_out(&self) -> Result<OwnResponse> {
        self.check_form("")?;
        self.admin.control.console.sessions.close(&self.session);
        self.session.audit("console_logout", self.peer);
        Ok(OwnResponse::see_other("/login".to_owned()))
    }

    /// A field of the form, else of the query, without white space around it; empty if it is missing.
    fn field(&self, name: &str) -> &str {
        let sent = self.form.as_ref().and_then(|form| form.field(name));
        let value = sent.or_else(|| self.query.field(name));
        value.unwrap_or_default().trim()
    }

    const fn may_write(&self) -> bool {
        matches!(self.session.holder.kind, TokenKind::Write)
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
                Err(Rejected::Stale(match self.path {
                    "/logout" => "/".to_owned(),
                    _ => self.here(&[("token", &token), ("back", self.field("back"))]),
                }))
            }
        }
    }

    /// The address of this page with its records and its filter, and with these parameters.
    fn here(&self, more: &[(&str, &str)]) -> String {
        let names = ["key", "id", "consumer", "user", "unused_for"];
        let about = names.map(|name| (name, self.field(name)));
        parts::path(self.path, &[&about[..], more].concat())
    }

    /// The page of this console from which the browser came to a change, as the link there said it.
    fn back_or(&self, usual: &str) -> String {
        let back = self.field("back");
        let path = back.split('?').next().unwrap_or_default();
        // It becomes a header field.
        let is_url = back.bytes().all(|byte| byte.is_ascii_graphic());
        match is_url && routes::is_page(path) {
            true => back.to_owned(),
            false => usual.to_owned(),
        }
    }

    /// Changes records as the operator of the session.
    fn operator(&self) -> Operator<'_> {
        let actor = admin_actor(Tool::Console, &self.session.holder, self.peer);
        self.backend.manage.operator(actor)
    }
}

fn subject(path: &str, state: &str) -> String {
    match state {
        "" => path.to_owned(),
        state => format!("{path}\0{state}"),
    }
}
