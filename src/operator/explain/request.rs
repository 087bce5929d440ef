//! A request that is explained or signed: METHOD, URL, header fields and body as texts.

use http::{HeaderName, Method};
use thiserror::Error;

use crate::{
    oauth::{
        BaseString, DeviationSet, Parameters, RequestUri, Selection, ShapeError,
        base_string::origin::InvalidUrl, is_form_content_type,
    },
    request::parse::origin::PublicUrl,
    wire::url::origin::{HttpUrl, Origin},
};

/// Why texts make no request. Nothing of URL and header fields is repeated, which may hold secrets.
#[derive(Debug, Error)]
pub enum InvalidRequest {
    /// The method or the URL is missing.
    #[error("METHOD and URL are missing")]
    Missing,
    /// The method is not a token.
    #[error("METHOD {0:?} is not an HTTP method")]
    Method(String),
    /// The URL is not one that can be called.
    #[error("URL: {0}")]
    Url(#[source] InvalidUrl),
    /// This header field, counted from one, is not a name, a colon and a value.
    #[error("header {0} is not of the form 'Name: value'")]
    Header(usize),
}

/// A request as texts.
#[derive(Debug, Default)]
pub struct RequestText {
    /// The method.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// Header fields, `Name: value` each.
    pub headers: Vec<String>,
    /// The body.
    pub data: Option<String>,
}

impl RequestText {
    /// Parses the request.
    ///
    /// # Errors
    /// [`InvalidRequest`]
    pub fn request(&self) -> Result<ParsedRequest<'_>, InvalidRequest> {
        ParsedRequest::new(&self.method, &self.url, &self.headers, self.data.as_deref())
    }
}

/// The parsed request.
pub struct ParsedRequest<'a> {
    /// The method as written.
    pub method: &'a str,
    /// The parts of the URL.
    pub uri: RequestUri<'a>,
    /// The URL up to its path.
    pub url: PublicUrl,
    /// The header fields.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body.
    pub data: Option<&'a str>,
}

impl<'a> ParsedRequest<'a> {
    /// Parses the request.
    ///
    /// # Errors
    /// [`InvalidRequest`]
    pub fn new(
        method: &'a str,
        url: &'a str,
        headers: &'a [String],
        data: Option<&'a str>,
    ) -> Result<Self, InvalidRequest> {
        if method.is_empty() || url.is_empty() {
            return Err(InvalidRequest::Missing);
        }
        if Method::from_bytes(method.as_bytes()).is_err() {
            return Err(InvalidRequest::Method(method.to_owned()));
        }
        let uri = RequestUri::parse(url).map_err(InvalidRequest::Url)?;
        let headers = headers.iter().enumerate().map(|(index, header)| {
            let field = header.split_once(':');
            let field = field.filter(|(name, _)| HeaderName::from_bytes(name.as_bytes()).is_ok());
            let field = field.filter(|(_, value)| !value.contains(['\r', '\n']));
            let (name, value) = field.ok_or(InvalidRequest::Header(index + 1))?;
            Ok((name, value.trim_matches([' ', '\t'])))
        });
        Ok(ParsedRequest {
            method,
            uri,
            url: PublicUrl::from(HttpUrl {
                origin: Origin {
                    scheme: uri.scheme,
                    host: uri.authority.host.to_owned(),
                    port: uri.authority.port.unwrap_or(uri.scheme.default_port()),
                },
                path: String::new(),
            }),
            headers: headers.collect::<Result<_, _>>()?,
            data,
        })
    }

    /// The values of the header fields with that name.
    pub fn header(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The body, if its parameters are signed. One without a Content-Type is taken for a form, as `curl --data` sends it.
    pub fn form(&self) -> Option<&'a str> {
        let form = |content_type: &str| is_form_content_type(content_type.as_bytes());
        self.data
            .filter(|_| self.header("Content-Type").next().is_none_or(form))
    }

    /// Reads query and form; goes on after an error, which comes back from [`Parameters::protocol`] as well.
    ///
    /// # Errors
    /// [`ShapeError`]
    pub fn read_into(&self, parameters: &mut Parameters) -> Result<(), ShapeError> {
        let query = parameters.read_query(self.uri.query.unwrap_or_default().as_bytes());
        let form = parameters.read_body(self.form().unwrap_or_default().as_bytes());
        query.and(form)
    }

    /// The base string of RFC 5849.
    pub fn base_string<'b>(&'b self, parameters: &'b Parameters) -> BaseString<'b> {
        BaseString {
            method: self.method.as_bytes(),
            origin: &self.url.encoded,
            path: self.uri.path.as_bytes(),
            parameters,
            selection: Selection::Rfc5849,
            deviations: DeviationSet::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(method: &str, url: &str, headers: &[&str]) -> RequestText {
        RequestText {
            method: method.into(),
            url: url.into(),
            data: Some("a=1".into()),
            headers: headers.iter().map(|&header| header.into()).collect(),
        }
    }

    #[test]
    fn takes_headers_apart_whatever_their_spacing() {
        let args = args(
            "GET",
            "http://h/",
            &["content-TYPE:text/plain", "X-A:  b: c \t", "X-Empty:"],
        );
        let request = args.request().unwrap();
        assert_eq!(
            request.headers,
            [
                ("content-TYPE", "text/plain"),
                ("X-A", "b: c"),
                ("X-Empty", "")
            ]
        );
        assert_eq!(request.form(), None);
    }

    #[test]
    fn a_body_is_a_form_unless_its_content_type_is_another() {
        for (headers, form) in [
            (&[][..], true),
            (&["Content-Type: application/x-www-form-urlencoded"], true),
            (
                &["Content-Type: application/X-WWW-form-urlencoded ; charset=UTF-8"],
                true,
            ),
            // To some frameworks it is one all the same, so the proxy takes it for one.
            (&["Content-Type: application/x-www-form-urlencoded2"], true),
            (&["Content-Type: application/json"], false),
            (&["Content-Type:"], false),
        ] {
            let args = args("POST", "http://h/", headers);
            assert_eq!(
                args.request().unwrap().form().is_some(),
                form,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn reports_what_makes_no_request_without_what_may_be_secret() {
        let error = |args: &RequestText| args.request().map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            error(&args("G T", "http://h/", &[])),
            "METHOD \"G T\" is not an HTTP method"
        );
        for url in ["h/x?hunter2", "https://user:hunter2@h/"] {
            let line = error(&args("GET", url, &[]));
            assert!(line.starts_with("URL: "), "{line}");
            assert!(!line.contains("hunter2"), "{line}");
        }
        for header in [
            "hunter2",
            ": hunter2",
            "X A: hunter2",
            "X-A: hunter2\nX-B: c",
        ] {
            assert_eq!(
                error(&args("GET", "http://h/", &["X-First: 1", header])),
                "header 2 is not of the form 'Name: value'"
            );
        }
    }
}
