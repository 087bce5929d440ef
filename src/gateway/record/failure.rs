//! The response to a rejection or a fault.

use http::{HeaderMap, Method, header};

use super::RequestRecord;
use crate::{
    gateway::live::{Served, Shared},
    provider::{
        respond::{self, Failure, Format, OwnResponse, Schemes},
        theme::frame::Frame,
    },
    request::forward::ForwardFault,
    telemetry::conditions::Condition,
};

impl RequestRecord {
    /// Logs a failure and responds to it, in this format or else in the one that the request prefers.
    #[cold]
    #[inline(never)]
    pub fn fail(
        &mut self,
        failure: Failure,
        headers: &HeaderMap,
        format: Option<Format>,
    ) -> OwnResponse {
        let request_id = self.request_id.as_str();
        log_failure(&failure, request_id, &self.current.shared);
        let format = match (&failure, self.served) {
            _ if let Some(format) = format => format,
            // A page would take memory for a request that is not counted.
            (Failure::Busy | Failure::Ending, _) => Format::Form,
            (_, Served::Page) => Format::Html,
            _ if self.launch.is_some() => Format::Launch,
            _ => Format::preferred_by(headers),
        };
        // A GET to the same target shows a page, or is the same request.
        let is_shown = matches!(self.served, Served::Page) || self.method == Method::GET;
        let (target, language) = match format {
            Format::Html => (
                Some(&self.target).filter(|_| is_shown),
                headers.get(header::ACCEPT_LANGUAGE),
            ),
            Format::Launch => (None, headers.get(header::ACCEPT_LANGUAGE)),
            Format::Form | Format::Json | Format::Challenge => (None, None),
        };
        let schemes = match &self.current.live.authorizer.bearer {
            Some(_) => failure.schemes(self.facts.is_bearer),
            None => Schemes::OAuth,
        };
        let frame = Frame::new(&self.current.live.theme, target, language);
        let response = match self.launch() {
            Some((launch, operation)) if format == Format::Launch => {
                launch.response_to(&failure, frame, operation, request_id)
            }
            _ => respond::failure(&failure, frame, format, request_id, schemes),
        };
        (self.verdict, self.status) = (response.verdict, response.status);
        self.failure = Some(Box::new(failure));
        response
    }
}

/// Logs a fault with its causes, unless the beginning and the end of its cause are logged.
fn log_failure(failure: &Failure, request_id: &str, shared: &Shared) {
    if !failure.is_fault() {
        return;
    }
    let condition = failure.condition();
    let is_logged = condition.is_some() || failure.is_logged_outage();
    if let Some((condition, text)) = condition
        && (condition != Condition::Upstream || is_outage(failure, shared))
    {
        shared.conditions.set(condition, Some(text));
    }
    let error: &(dyn std::error::Error + 'static) = failure;
    if is_logged {
        tracing::debug!(%request_id, error, "request failed");
    } else {
        tracing::error!(%request_id, error, "request failed");
    }
}

/// Whether a call failed because the API is away. While it is, each call that cannot reach it lets the outage last.
fn is_outage(failure: &Failure, shared: &Shared) -> bool {
    let (metrics, conditions) = (&shared.metrics, &shared.conditions);
    let is_unreachable = matches!(failure, Failure::Upstream(ForwardFault::Unreachable(_)));
    let is_away = metrics.api_failed(is_unreachable, conditions.now());
    is_away || is_unreachable && conditions.lasts(Condition::Upstream)
}
