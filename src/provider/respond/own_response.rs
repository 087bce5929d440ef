//! A response of this program itself, whole before it is sent.

use askama::Template;
use bytes::Bytes;
use http::{Method, Response, StatusCode};

use crate::{
    base::text::names::UserId,
    oauth::percent,
    provider::theme::{Theme, asset::Asset, frame::Frame},
    telemetry::metrics::Verdict,
    wire::server::response::ResponseBody,
};

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A response of this program itself.
#[derive(Debug, Clone)]
pub struct OwnResponse {
    /// The status code.
    pub status: u16,
    /// Field lines, without those that the body and the connection add.
    pub fields: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: Bytes,
    /// Its verdict in metrics and logs.
    pub verdict: Verdict,
    /// The account to which a login failed.
    pub account: Option<UserId>,
}

impl OwnResponse {
    /// A response with a body of the given type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>, verdict: Verdict) -> Self {
        Self {
            status,
            fields: vec![("Content-Type", content_type.to_owned())],
            body: body.into(),
            verdict,
            account: None,
        }
    }

    /// A page. Its forms come back to this origin and then lead on to `further`, a list of CSP sources.
    pub fn page(frame: Frame<'_>, status: u16, template: &impl Template, further: &str) -> Self {
        match template.render() {
            Ok(mut html) => {
                // It may wait for a slow caller.
                html.shrink_to_fit();
                let mut page = Self::new(status, "text/html; charset=utf-8", html, Verdict::Page);
                page.fields
                    .extend(frame.theme.fields(further, frame.ancestors));
                page
            }
            // No value in a template fails to print.
            Err(error) => {
                tracing::error!(%error, "a page cannot be rendered");
                Self::new(500, "text/plain", "", Verdict::InternalError).never_stored()
            }
        }
    }

    /// A file that pages refer to. It is its operator's, but an image can have scripts in it, which must not run.
    pub fn asset(asset: &Asset) -> Self {
        Self::new(200, asset.content_type, asset.body.clone(), Verdict::Page)
            .field(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            )
            .field("X-Content-Type-Options", "nosniff")
            .field("Cache-Control", "public, max-age=31536000, immutable")
    }

    /// A response without a body.
    pub const fn empty(status: u16, verdict: Verdict) -> Self {
        Self {
            status,
            fields: Vec::new(),
            body: Bytes::new(),
            verdict,
            account: None,
        }
    }

    /// 303: the browser goes on with GET (RFC 9110 §15.4.4).
    pub fn see_other(location: String) -> Self {
        Self {
            fields: Theme::plain().fields("", None),
            ..Self::empty(303, Verdict::Page)
        }
        .field("Location", location)
    }

    /// A token response (RFC 5849 §2.1, §2.3): form-encoded, never stored.
    pub fn form(pairs: &[(&str, &str)], verdict: Verdict) -> Self {
        Self::new(200, FORM, form(pairs.iter().copied()), verdict).never_stored()
    }

    /// The response with the field that keeps it out of caches.
    pub fn never_stored(self) -> Self {
        self.field("Cache-Control", "no-store")
    }

    /// The response with this field.
    pub fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// The response as HTTP; to HEAD without the body.
    pub fn into_response(self, method: &Method) -> Response<ResponseBody> {
        let body = if *method == Method::HEAD {
            ResponseBody::announced(self.body.len() as u64)
        } else {
            ResponseBody::whole(self.body)
        };
        let response = Response::builder().status(self.status);
        let fields = self.fields.into_iter();
        let response = fields.fold(response, |response, (name, value)| {
            response.header(name, value)
        });
        response.body(body).unwrap_or_else(|error| {
            tracing::error!(%error, "a response cannot be sent");
            let mut response = Response::new(ResponseBody::none());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }
}

/// Pairs as RFC 5849 §2.1 has token responses encoded; the percent-encoding of §3.6 is a subset of the form's.
pub(super) fn form<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    for (name, value) in pairs {
        if !body.is_empty() {
            body.push(b'&');
        }
        percent::encode_to(&mut body, name.as_bytes());
        body.push(b'=');
        percent::encode_to(&mut body, value.as_bytes());
    }
    body
}
