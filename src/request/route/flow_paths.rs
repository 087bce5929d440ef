//! The paths that name a call of the three-legged flow.

use super::{
    flow_path::FlowPath,
    service::{self, Page, ServiceCall, TokenCall, aliases, mode_of},
    settings::{FlowAt, FlowSettings, Role},
};
use crate::{base::network::http_fields, oauth::Parameters, request::parse::target};

/// The paths of the calls of the flow.
#[derive(Debug, Clone)]
pub struct FlowPaths {
    /// `service.path`: the path of the endpoints that `mode` selects.
    pub endpoint: String,
    /// The paths that name a call themselves.
    named: Vec<(FlowPath, ServiceCall)>,
    /// Those that go to the API, whose own flow is there.
    of_api: Vec<(FlowPath, ServiceCall)>,
    /// The API stays the provider (`service.role`): its token calls are verified too.
    guards: bool,
}

impl FlowPaths {
    /// `service.path`, and the aliases if they are on and the further paths, where these are ours.
    ///
    /// `registration`: users can ask for consumers.
    pub fn new(settings: &FlowSettings, at: FlowAt, registration: bool) -> Self {
        let is_on = |call: ServiceCall| registration || call != ServiceCall::Page(Page::Register);
        let aliases = aliases().filter(|(_, call)| settings.aliases && is_on(*call));
        let aliases = aliases.filter_map(|(path, call)| Some((path.parse().ok()?, call)));
        let further = settings.further_paths().into_iter();
        let further =
            further.flat_map(|(_, call, paths)| paths.iter().map(move |path| (path.clone(), call)));
        let paths = aliases.chain(further);
        let (named, of_api) = match at {
            FlowAt::Here => (paths.collect(), Vec::new()),
            FlowAt::Api => (Vec::new(), paths.collect()),
        };
        Self {
            endpoint: settings.path.clone(),
            named,
            of_api,
            guards: settings.role == Role::Guard,
        }
    }

    /// Whether the API stays the provider.
    pub const fn guards(&self) -> bool {
        self.guards
    }

    /// The paths that name a call themselves, as consumers know them.
    fn known(&self) -> &[(FlowPath, ServiceCall)] {
        match self.guards {
            true => &self.of_api,
            false => &self.named,
        }
    }

    /// The paths that name a call themselves.
    pub fn named(&self) -> &[(FlowPath, ServiceCall)] {
        &self.named
    }

    /// The paths of the authorization page, in addition to `service.path`.
    pub fn authorization_pages(&self) -> impl Iterator<Item = &str> {
        let named = self.named.iter();
        let pages = named.filter(|(_, call)| *call == ServiceCall::Page(Page::Authorize));
        pages.map(|(path, _)| path.path())
    }

    /// The paths of token calls, each with the query that it needs.
    pub fn token_paths(&self) -> Vec<String> {
        let is_token = |call: &ServiceCall| matches!(call, ServiceCall::Token(_));
        let named = self.known().iter().filter(|(_, call)| is_token(call));
        let named = named.map(|(path, _)| path.to_string());
        let calls = [TokenCall::RequestToken, TokenCall::AccessToken].map(ServiceCall::Token);
        let calls = calls.into_iter().filter(|_| !self.guards);
        let by_mode = calls.map(|call| self.by_mode(call));
        named.chain(by_mode).collect()
    }

    /// The paths that go to the API, whose own flow is there.
    pub fn of_api(&self) -> impl Iterator<Item = &FlowPath> {
        self.of_api.iter().map(|(path, _)| path)
    }

    /// Whether a request is for the flow of the API, and is forwarded whatever its signature.
    pub fn is_api_path(&self, target: &target::RequestTarget<'_>) -> bool {
        let mut paths = self.of_api.iter();
        paths.any(|(path, _)| path.matches(target)) && self.guarded_token_call(target).is_none()
    }

    /// The token call of the API that a request is for, if such calls are verified here.
    pub fn guarded_token_call(&self, target: &target::RequestTarget<'_>) -> Option<TokenCall> {
        let mut paths = self.of_api.iter().filter(|_| self.guards);
        match paths.find(|(path, _)| path.matches(target))? {
            (_, ServiceCall::Token(call)) => Some(*call),
            (_, ServiceCall::Page(_) | ServiceCall::JwkSet) => None,
        }
    }

    /// Whether an API that stays the provider may read a request with these parameters as one for a new token, whatever else
    /// another API reads it as. `is_path`: whether it may read the path that was sent as another one.
    pub fn may_be_grant(
        &self,
        path: &[u8],
        parameters: &Parameters,
        is_path: fn(&[u8], &[u8]) -> bool,
    ) -> bool {
        let is_grant = |call| matches!(call, ServiceCall::Token(call) if call.is_grant());
        let mut paths = self.of_api.iter().filter(|_| self.guards);
        paths.any(|(grant, call)| is_grant(*call) && grant.may_match(path, parameters, is_path))
    }

    /// Whether a request to this path can be a token call.
    pub fn is_token_call(&self, path: &str) -> bool {
        let mut named = self.known().iter();
        path == self.endpoint && !self.guards
            || named
                .any(|(known, call)| matches!(call, ServiceCall::Token(_)) && known.path() == path)
    }

    /// The token call for which a request was made that is only shown, and may lack its query or its form; `None`: it is for
    /// none, or does not say for which. A request that arrives has to name one exactly:
    /// [`RouteRules::token_call`](super::RouteRules::token_call).
    pub fn shown_token_call(
        &self,
        path: &str,
        query: Option<&str>,
        form: &str,
        parameters: &Parameters,
    ) -> Option<TokenCall> {
        let target = target::RequestTarget {
            absolute: None,
            path: path.as_bytes(),
            query: query.map(str::as_bytes),
        };
        match self.known().iter().find(|(path, _)| path.matches(&target)) {
            Some((_, ServiceCall::Token(call))) => return Some(*call),
            Some(_) => return None,
            None if !self.is_token_call(path) => return None,
            None => {}
        }
        let modes = [query.unwrap_or_default(), form].into_iter();
        let mut modes =
            modes.filter_map(|pairs| http_fields::parameter(pairs.as_bytes(), "mode").ok()?);
        match modes.find(|_| path == self.endpoint) {
            Some(mode) => match service::by_mode(&mode)? {
                ServiceCall::Token(call) => Some(call),
                ServiceCall::Page(_) | ServiceCall::JwkSet => None,
            },
            None => TokenCall::by_parameters(parameters),
        }
    }

    /// The path, with its query, by which the call is known best: one from the configuration, else the alias, else that with a
    /// `mode`.
    pub fn best_of(&self, call: ServiceCall) -> String {
        let mut named = self.known().iter().rev();
        match named.find(|(_, known)| *known == call) {
            Some((path, _)) => path.to_string(),
            None => self.by_mode(call),
        }
    }

    /// The authorization page, as [`Self::best_of`] has it, up to the token in its query.
    pub fn authorization_page(&self) -> String {
        let page = self.best_of(ServiceCall::Page(Page::Authorize));
        let joint = if page.contains('?') { '&' } else { '?' };
        format!("{page}{joint}oauth_token=")
    }

    /// `service.path` with the mode of the call.
    fn by_mode(&self, call: ServiceCall) -> String {
        format!(
            "{}?mode={}",
            self.endpoint,
            mode_of(call).unwrap_or_default()
        )
    }

    /// Whether a request to this path and query is for the service itself.
    pub fn is_own(&self, path: &str, query: Option<&str>) -> bool {
        let target = target::RequestTarget {
            absolute: None,
            path: path.as_bytes(),
            query: query.map(str::as_bytes),
        };
        path == self.endpoint || self.find(&target).is_some()
    }

    /// The entry that a request is for.
    pub fn find(&self, target: &target::RequestTarget<'_>) -> Option<&(FlowPath, ServiceCall)> {
        self.named.iter().find(|(path, _)| path.matches(target))
    }
}
