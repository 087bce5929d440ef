//! The part of the program that responds: a token call, a page, or the API.

use std::{borrow::Cow, fmt, str::FromStr};

use http::Method;
use thiserror::Error;

use crate::{
    base::{
        fields,
        settings::{distinct, section, texts},
    },
    oauth::{Parameters, ProtocolParameter, percent},
    request::parse::{
        head::Head,
        origin::{Origins, PrefixMode, PublicUrl},
        target,
    },
    telemetry::metrics::Verdict,
    wire::problem::Problem,
};

/// Why a request has no route.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The service does not have this host.
    #[error("Host names no public URL of this service; use {public}")]
    Misdirected {
        /// The host that was received.
        host: String,
        /// The public URLs, separated by commas.
        public: String,
    },
    /// The API could read the path as one above the published prefix.
    #[error("the path leads out of what is public")]
    PathAbovePrefix,
    /// The host is for pages alone, and has no page at this path.
    #[error("no such page{}", .0.as_ref().map(|page| format!("; the authorization page is {page}")).unwrap_or_default())]
    NotFound(Option<String>),
    /// Another proxy describes a token call or a page.
    #[error(
        "token calls and pages are on the public listener: the proxy in front has to send this path there"
    )]
    NotForApi,
    /// `mode` is missing or repeated.
    #[error("parameter 'mode' is missing or repeated")]
    ModeNotOnce,
    /// `mode` has an unknown value.
    #[error("parameter 'mode' is one of {}", MODES.map(|(name, _)| name).join(", "))]
    ModeUnknown,
    /// The endpoint does not have the method.
    #[error("method not allowed")]
    MethodNotAllowed {
        /// The value of `Allow`.
        allow: &'static str,
    },
}

impl Rejection {
    /// The content of the response.
    pub fn problem(&self) -> Problem {
        match self {
            Self::Misdirected { .. } => {
                Problem::plain(421, Verdict::Misdirected).advise(self.to_string())
            }
            Self::PathAbovePrefix => Problem::malformed(self),
            Self::NotFound(None) => Problem::plain(404, Verdict::NotFound),
            Self::NotFound(Some(_)) | Self::NotForApi => {
                Problem::plain(404, Verdict::NotFound).advise(self.to_string())
            }
            Self::ModeNotOnce | Self::ModeUnknown => Problem::rejected("mode", self.to_string()),
            Self::MethodNotAllowed { allow } => Problem::method_not_allowed(allow),
        }
    }
}

/// A call of a consumer at the service itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCall {
    /// `mode=req_req_token`: gives out a request token (RFC 5849 §2.1).
    RequestToken,
    /// `mode=req_acc_token`: exchanges a request token for an access token (RFC 5849 §2.3).
    AccessToken,
    /// `mode=revoke_token`: revokes the access token that signs the call.
    RevokeToken,
    /// `mode=exchange`: gives out an OAuth 2 access token for the access token that signs the call.
    Exchange,
}

/// A page for a user's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// `mode=auth_req_token`: the authorization page (RFC 5849 §2.2).
    Authorize,
    /// `mode=applications`: the user's connected applications.
    Applications,
    /// An address without a page, such as `/` where the API is under another host or path: leads to the user's
    /// applications.
    Home,
    /// `mode=login`: direct login.
    Login,
    /// `mode=logout`: a GET asks, a POST ends browser sessions.
    Logout,
    /// `mode=password`: a user sets another password.
    Password,
    /// A file that pages refer to.
    Asset,
}

/// The part of the program that a request is for.
#[derive(Debug)]
pub enum Target<'o, 'r> {
    /// A token call; `None` where neither path nor query name it: see [`Params::token_call`].
    Token(Option<TokenCall>),
    /// A token call that its parameters or its form name, or else a call to the API, which has the same path.
    TokenOrApi(ApiCall<'o, 'r>),
    /// A page.
    Page(Page),
    /// The public keys of our signatures.
    JwkSet,
    /// The API, if the call is permitted.
    Api(ApiCall<'o, 'r>),
}

/// A call that is meant for the API.
#[derive(Debug, Clone, Copy)]
pub struct ApiCall<'o, 'r> {
    /// The public URL for which it was signed.
    pub url: &'o PublicUrl,
    /// The prefix to put in front of the received path for the signature; empty but for [`PrefixMode::Restore`].
    pub restored_prefix: &'o str,
    /// The path to match and to forward.
    pub path: &'r [u8],
}

impl ApiCall<'_, '_> {
    /// The path for which a call with this received path was signed.
    pub fn signed_path<'r>(&self, received: &'r [u8]) -> Cow<'r, [u8]> {
        match self.restored_prefix {
            "" => received.into(),
            prefix => [prefix.as_bytes(), received].concat().into(),
        }
    }
}

/// A call of the three-legged flow that has paths of its own, beside `service.path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowCall {
    /// The request token call (RFC 5849 §2.1).
    RequestToken,
    /// The authorization page (RFC 5849 §2.2).
    Authorize,
    /// The access token call (RFC 5849 §2.3).
    AccessToken,
}

impl FlowCall {
    const fn mode(self) -> Mode {
        match self {
            Self::RequestToken => Mode::Token(TokenCall::RequestToken),
            Self::Authorize => Mode::Page(Page::Authorize),
            Self::AccessToken => Mode::Token(TokenCall::AccessToken),
        }
    }
}

/// The paths that many client libraries expect (`service.aliases`).
pub const ALIASES: [(&str, FlowCall); 4] = [
    ("/oauth/request_token", FlowCall::RequestToken),
    ("/oauth/authorize", FlowCall::Authorize),
    ("/oauth/authenticate", FlowCall::Authorize),
    ("/oauth/access_token", FlowCall::AccessToken),
];

/// Why a text is not a [`FlowPath`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidFlowPath {
    /// It has no slash at its beginning.
    #[error("it begins with no slash")]
    NoSlash,
    /// It is the root.
    #[error("every other path is below /")]
    Root,
    /// A byte of it cannot be in a path or a query.
    #[error("a byte in it must be percent-encoded")]
    Byte,
    /// A part of its path is not the same to every reader.
    #[error(
        "its path has an empty segment inside, a dot segment, a ; or a \\, or an invalid escape"
    )]
    Path,
    /// A part of its query is not `name=value`.
    #[error(
        "its query is not of the form name=value&name=value, with good escapes and each name once"
    )]
    Query,
    /// Its query has a parameter that token calls read.
    #[error("the parameter {0:?} is one of the call itself")]
    Parameter(String),
}

/// A path of a call of the flow, with the query that has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPath {
    text: String,
    path_length: usize,
    /// The parameters that a request to the path must have, decoded, each once; others may be beside them.
    query: Vec<(String, String)>,
}

impl FlowPath {
    /// The path, without the query.
    pub fn path(&self) -> &str {
        &self.text[..self.path_length]
    }

    /// Whether it demands a query.
    pub fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    /// The names of the parameters in that query.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(|(name, _)| name.as_str())
    }

    /// Whether some request is for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let differs = |(name, value): &(String, String)| {
            let mut others = other.query.iter();
            others.any(|(other, another)| other == name && another != value)
        };
        self.path() == other.path() && !self.query.iter().any(differs)
    }

    fn matches(&self, target: &target::Target<'_>) -> bool {
        let query = target.query.unwrap_or_default();
        target.path == self.path().as_bytes()
            && self.query.iter().all(|(name, value)| {
                let sent = fields::parameter(query, name);
                sent.is_ok_and(|sent| sent.as_deref() == Some(value))
            })
    }
}

impl fmt::Display for FlowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FlowPath {
    type Err = InvalidFlowPath;

    fn from_str(text: &str) -> Result<Self, InvalidFlowPath> {
        let (path, pairs) = match text.split_once('?') {
            Some((path, pairs)) => (path, Some(pairs)),
            None => (text, None),
        };
        let inner = path.strip_prefix('/').ok_or(InvalidFlowPath::NoSlash)?;
        if inner.is_empty() {
            return Err(InvalidFlowPath::Root);
        }
        let is_of_uri = |byte: u8| byte.is_ascii_graphic() && !b"\"<>^`{|}#".contains(&byte);
        if !text.bytes().all(is_of_uri) {
            return Err(InvalidFlowPath::Byte);
        }
        let whole = inner.strip_suffix('/').unwrap_or(inner).as_bytes();
        let decoded = percent::decode(whole).map_err(|_| InvalidFlowPath::Path)?;
        let is_unclear = |segment: &[u8]| {
            matches!(segment, b"" | b"." | b"..")
                || segment.iter().any(|byte| b";\\".contains(byte))
        };
        if decoded.split(|byte| *byte == b'/').any(is_unclear) {
            return Err(InvalidFlowPath::Path);
        }
        let mut query: Vec<(String, String)> = Vec::new();
        for pair in pairs.into_iter().flat_map(|pairs| pairs.split('&')) {
            let (name, value) = pair.split_once('=').ok_or(InvalidFlowPath::Query)?;
            let [name, value] = [name, value].map(|text| {
                let text = percent::decode_form(text.as_bytes()).ok()?;
                String::from_utf8(text.into_owned()).ok()
            });
            let name = name.filter(|name| !name.is_empty());
            let (name, value) = name.zip(value).ok_or(InvalidFlowPath::Query)?;
            if name == "mode" || name.starts_with("oauth_") {
                return Err(InvalidFlowPath::Parameter(name));
            }
            if query.iter().any(|(known, _)| *known == name) {
                return Err(InvalidFlowPath::Query);
            }
            query.push((name, value));
        }
        Ok(Self {
            text: text.to_owned(),
            path_length: path.len(),
            query,
        })
    }
}

section! {
    /// The paths of the token calls and of the pages.
    FlowSettings["service"] {
        /// The path of the token endpoint, under base_url only.
        path: String = "/service.oauth", reload;
        /// Also serves /oauth/request_token, /oauth/authorize, /oauth/authenticate and /oauth/access_token, which many client libraries expect.
        aliases: bool = true, reload;
        /// Further paths of the request token call, under base_url. An entry may have a query that must be there, beside which other parameters may stand; other requests to its path go to the API.
        #[serde(default, deserialize_with = "distinct")]
        request_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/initiate"]], reload;
        /// Further paths of the authorization page.
        #[serde(default, deserialize_with = "distinct")]
        authorize_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/authorize"]], reload;
        /// Further paths of the access token call.
        #[serde(default, deserialize_with = "distinct")]
        access_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/token"]], reload;
    }
}

texts! {
    FlowPath: "a path such as \"/oauth/initiate\", with or without a query" => |text: &str| text.parse::<FlowPath>();
}

/// The paths of the calls of the flow.
#[derive(Debug, Clone)]
pub struct FlowPaths {
    /// `service.path`: the path of the endpoints that `mode` selects.
    pub endpoint: String,
    /// The paths that name a call themselves.
    named: Vec<(FlowPath, FlowCall)>,
}

impl FlowPaths {
    /// `service.path`, the aliases if they are on, and the paths in the configuration.
    pub fn new<'p>(
        endpoint: &str,
        aliases: bool,
        written: impl IntoIterator<Item = (FlowCall, &'p Vec<FlowPath>)>,
    ) -> Self {
        let aliases = ALIASES.into_iter().filter(|_| aliases);
        let aliases = aliases.filter_map(|(path, call)| Some((path.parse().ok()?, call)));
        let written = written.into_iter();
        let written =
            written.flat_map(|(call, paths)| paths.iter().map(move |path| (path.clone(), call)));
        Self {
            endpoint: endpoint.to_owned(),
            named: aliases.chain(written).collect(),
        }
    }

    /// The paths that name a call themselves.
    pub fn named(&self) -> &[(FlowPath, FlowCall)] {
        &self.named
    }

    /// Whether a request to this path can be a token call.
    pub fn is_token_call(&self, path: &str) -> bool {
        let mut named = self.named.iter();
        path == self.endpoint
            || named.any(|(known, call)| *call != FlowCall::Authorize && known.path() == path)
    }

    /// Whether a request to this path with this query is a request token call.
    pub fn is_request_token_call(&self, path: &str, query: Option<&str>) -> bool {
        let query = query.map(str::as_bytes);
        let target = target::Target {
            absolute: None,
            path: path.as_bytes(),
            query,
        };
        let mode = fields::parameter(query.unwrap_or_default(), "mode");
        let is_mode = || matches!(mode, Ok(Some(mode)) if mode == "req_req_token");
        match self.find(&target) {
            Some((_, call)) => *call == FlowCall::RequestToken,
            None => path == self.endpoint && is_mode(),
        }
    }

    /// The path, with its query, by which the call is known best: one from the configuration, else the alias, else that with a
    /// `mode`.
    pub fn of(&self, call: FlowCall) -> String {
        let mut named = self.named.iter().rev();
        match named.find(|(_, known)| *known == call) {
            Some((path, _)) => path.to_string(),
            None => {
                let mut modes = MODES.iter();
                let mode = modes.find(|(_, mode)| *mode == call.mode());
                format!(
                    "{}?mode={}",
                    self.endpoint,
                    mode.map_or("", |(name, _)| name)
                )
            }
        }
    }

    /// The authorization page, for a browser that comes with a request token to another path.
    fn hint(&self, head: &Head<'_>) -> Option<String> {
        let query = head.target.query.unwrap_or_default();
        let token = fields::parameter(query, ProtocolParameter::Token.as_str());
        matches!(token, Ok(Some(_))).then(|| self.of(FlowCall::Authorize))
    }

    /// The entry that a request is for.
    pub fn find(&self, target: &target::Target<'_>) -> Option<&(FlowPath, FlowCall)> {
        self.named.iter().find(|(path, _)| path.matches(target))
    }
}

/// The rules of routing.
#[derive(Debug, Clone)]
pub struct Params {
    /// The paths of the token endpoints.
    pub flow: FlowPaths,
    /// `mode=exchange` too.
    pub exchange: bool,
    /// `/.well-known/jwks.json` too.
    pub jwk_set: bool,
    /// The paths of the files that pages refer to.
    pub assets: Vec<String>,
}

impl Params {
    /// The token call of a request with this form, which is empty where the request has none. `named` is the call that
    /// path or query name. If neither names one, the protocol parameters decide: Net::OAuth drops the query of the URL. `None` if
    /// nothing names one.
    ///
    /// # Errors
    /// [`Rejection::ModeNotOnce`], [`Rejection::ModeUnknown`] and [`Rejection::MethodNotAllowed`].
    pub fn token_call(
        &self,
        named: Option<TokenCall>,
        head: &Head<'_>,
        form: &[u8],
        parameters: &Parameters,
    ) -> Result<Option<TokenCall>, Rejection> {
        let in_form = self.mode_of_form(head, form)?;
        let call = match (named, in_form) {
            (Some(call), None) | (None, Some(Mode::Token(call))) => call,
            (None, None) if parameters.was_sent(ProtocolParameter::Verifier) => {
                TokenCall::AccessToken
            }
            (None, None) if parameters.was_sent(ProtocolParameter::Callback) => {
                TokenCall::RequestToken
            }
            (None, None) => return Ok(None),
            // The mode of a page belongs in the query.
            (Some(_), Some(_)) | (None, Some(Mode::Page(_))) => {
                return Err(Rejection::ModeNotOnce);
            }
        };
        Mode::Token(call).check_method(&head.parts.method)?;
        Ok(Some(call))
    }

    /// Checks that the form of a page does not name a mode too.
    ///
    /// # Errors
    /// [`Rejection::ModeNotOnce`] and [`Rejection::ModeUnknown`].
    pub fn check_page_form(&self, head: &Head<'_>, form: &[u8]) -> Result<(), Rejection> {
        match self.mode_of_form(head, form)? {
            None => Ok(()),
            Some(_) => Err(Rejection::ModeNotOnce),
        }
    }

    /// The `mode` of a form. Under the other paths, which name the call themselves, it is a parameter like any other.
    fn mode_of_form(&self, head: &Head<'_>, form: &[u8]) -> Result<Option<Mode>, Rejection> {
        if head.target.path == self.flow.endpoint.as_bytes() {
            self.by_mode(form)
        } else {
            Ok(None)
        }
    }

    /// The call or the page that `mode` names in a query or a form; `None` if it is not there.
    fn by_mode(&self, pairs: &[u8]) -> Result<Option<Mode>, Rejection> {
        let mode = fields::parameter(pairs, "mode").map_err(|_| Rejection::ModeNotOnce)?;
        let is_on = |named| self.exchange || !matches!(named, Mode::Token(TokenCall::Exchange));
        let known = |mode| {
            let mut modes = MODES.into_iter();
            let named = modes.find(|(name, named)| *name == mode && is_on(*named));
            named.map(|(_, named)| named).ok_or(Rejection::ModeUnknown)
        };
        mode.map(known).transpose()
    }

    /// The call or the page that path and query name; `None` under other paths.
    fn named(&self, head: &Head<'_>) -> Result<Option<Target<'static, 'static>>, Rejection> {
        let target = &head.target;
        let mode = match target.path {
            path if path == self.flow.endpoint.as_bytes() => {
                match self.by_mode(target.query.unwrap_or_default())? {
                    None => return Ok(Some(Target::Token(None))),
                    Some(mode) => mode,
                }
            }
            b"/.well-known/jwks.json" if self.jwk_set => {
                Mode::Page(Page::Asset).check_method(&head.parts.method)?;
                return Ok(Some(Target::JwkSet));
            }
            path if self.assets.iter().any(|asset| asset.as_bytes() == path) => {
                Mode::Page(Page::Asset)
            }
            _ => match self.flow.find(target) {
                Some((_, call)) => call.mode(),
                None => return Ok(None),
            },
        };
        mode.check_method(&head.parts.method)?;
        Ok(Some(match mode {
            Mode::Token(call) => Target::Token(Some(call)),
            Mode::Page(page) => Target::Page(page),
        }))
    }
}

/// The most characters of a host in a log line; no name has more (RFC 1035 §2.3.4).
const MAX_HOST_CHARS: usize = 255;

/// Finds the part of the program that a request is for.
///
/// # Errors
/// [`Rejection`]
pub fn route<'o, 'r>(
    params: &Params,
    origins: &'o Origins,
    head: &Head<'r>,
) -> Result<Target<'o, 'r>, Rejection> {
    let (received, target) = (&head.received, &head.target);
    let is_base = origins.is_base(received);
    let has_pages = is_base || origins.is_page_host(received);
    // A call of the endpoint that its path and its query do not name.
    let mut is_undecided = false;
    if has_pages {
        match params.named(head)? {
            Some(Target::Token(None)) => is_undecided = is_base,
            Some(page @ Target::Page(_)) => return Ok(page),
            Some(named) if is_base => return Ok(named),
            _ => {}
        }
    }
    let url = match origins.choose(received, target.path) {
        Some(url) => url,
        None if is_undecided => return Ok(Target::Token(None)),
        None if has_pages && target.path == b"/" => {
            Mode::Page(Page::Home).check_method(&head.parts.method)?;
            return Ok(Target::Page(Page::Home));
        }
        None if has_pages => return Err(Rejection::NotFound(params.flow.hint(head))),
        None => {
            let host = received.authority.host.chars();
            return Err(Rejection::Misdirected {
                host: host.take(MAX_HOST_CHARS).collect(),
                public: origins.all_urls(),
            });
        }
    };
    let (path, restored_prefix) = match origins.prefix_mode {
        PrefixMode::Keep => {
            if !url.prefix.is_empty() && target::climbs(&target.path[url.prefix.len()..]) {
                return Err(Rejection::PathAbovePrefix);
            }
            (target.path, "")
        }
        PrefixMode::Restore => (target.path, url.prefix.as_str()),
        PrefixMode::Strip => match &target.path[url.prefix.len()..] {
            [] => (&b"/"[..], ""),
            path => (path, ""),
        },
    };
    let call = ApiCall {
        url,
        restored_prefix,
        path,
    };
    Ok(match is_undecided {
        true => Target::TokenOrApi(call),
        false => Target::Api(call),
    })
}

/// A call or a page that `mode` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Token(TokenCall),
    Page(Page),
}

impl Mode {
    fn check_method(self, method: &Method) -> Result<(), Rejection> {
        let allow = match self {
            Self::Token(TokenCall::RequestToken | TokenCall::AccessToken) => "GET, POST",
            Self::Token(TokenCall::RevokeToken | TokenCall::Exchange) => "POST",
            Self::Page(Page::Home | Page::Asset) => "GET, HEAD",
            Self::Page(_) => "GET, HEAD, POST",
        };
        match allow.split(", ").any(|known| known == method) {
            true => Ok(()),
            false => Err(Rejection::MethodNotAllowed { allow }),
        }
    }
}

/// The values of `mode`.
const MODES: [(&str, Mode); 9] = [
    ("req_req_token", Mode::Token(TokenCall::RequestToken)),
    ("auth_req_token", Mode::Page(Page::Authorize)),
    ("req_acc_token", Mode::Token(TokenCall::AccessToken)),
    ("revoke_token", Mode::Token(TokenCall::RevokeToken)),
    ("exchange", Mode::Token(TokenCall::Exchange)),
    ("applications", Mode::Page(Page::Applications)),
    ("login", Mode::Page(Page::Login)),
    ("logout", Mode::Page(Page::Logout)),
    ("password", Mode::Page(Page::Password)),
];
