//! The response to a browser, with the fields that every page has.

use std::time::Duration;

use super::error::PageError;
use crate::{
    respond::{
        OwnResponse, html,
        look::{Frame, Look},
    },
    telemetry::metrics::Verdict,
};

impl OwnResponse {
    /// A page whose forms come back to this origin.
    pub(super) fn html(
        frame: Frame<'_>,
        status: u16,
        template: &impl askama::Template,
    ) -> Result<Self, PageError> {
        Self::with_forms_to(frame, status, template, "")
    }

    /// A page whose forms come back to this origin and then lead on to `further`, a list of CSP sources.
    pub(super) fn with_forms_to(
        frame: Frame<'_>,
        status: u16,
        template: &impl askama::Template,
        further: &str,
    ) -> Result<Self, PageError> {
        let mut page = Self {
            status,
            fields: frame.look.fields(further),
            body: template.render().map_err(PageError::Template)?.into(),
            verdict: Verdict::Page,
        };
        page.set("Content-Type", html::CONTENT_TYPE.to_owned());
        Ok(page)
    }

    /// 303: the browser goes on with GET (RFC 9110 §15.4.4).
    pub(super) fn see_other(location: String) -> Self {
        let mut page = Self::empty(303);
        page.set("Location", location);
        page
    }

    /// A response without HTML: a redirect, or the last resort when the page of an error cannot be rendered.
    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            fields: Look::plain().fields(""),
            body: bytes::Bytes::new(),
            verdict: Verdict::Page,
        }
    }

    pub(super) fn set(&mut self, name: &'static str, value: String) {
        self.fields.push((name, value));
    }

    pub(super) fn retry_after(&mut self, wait: Duration) {
        self.set("Retry-After", wait.as_secs().max(1).to_string());
    }
}
