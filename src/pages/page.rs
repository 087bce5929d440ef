//! The response to a browser, with the fields that every page has.

use std::time::Duration;

use super::error::PageError;
use crate::respond::html;

/// A response: status, fields and HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// All fields but Content-Length and Date; each value is visible ASCII and spaces.
    pub fields: Vec<(&'static str, String)>,
    /// The HTML in UTF-8; the server leaves it out for HEAD.
    pub body: String,
}

impl Page {
    /// A page whose forms come back to this origin.
    pub(super) fn html(status: u16, template: &impl askama::Template) -> Result<Self, PageError> {
        Self::with_forms_to(status, template, "")
    }

    /// A page whose forms come back to this origin and then lead on to `further`, a list of CSP sources.
    pub(super) fn with_forms_to(
        status: u16,
        template: &impl askama::Template,
        further: &str,
    ) -> Result<Self, PageError> {
        let body = template.render().map_err(PageError::Template)?;
        let mut page = Self {
            body,
            ..Self::empty_with_forms_to(status, further)
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
        Self::empty_with_forms_to(status, "")
    }

    fn empty_with_forms_to(status: u16, further: &str) -> Self {
        Self {
            status,
            fields: html::fields(further),
            body: String::new(),
        }
    }

    pub(super) fn set(&mut self, name: &'static str, value: String) {
        self.fields.push((name, value));
    }

    pub(super) fn retry_after(&mut self, wait: Duration) {
        self.set("Retry-After", wait.as_secs().max(1).to_string());
    }
}
