//! The request that `sign` and `explain` are given: METHOD, URL, `--header` and `--data`.

use clap::Args;
use http::{HeaderName, Method};

use super::context::CommandError;
use crate::oauth::{
    BaseString, EncodedOrigin, Parameters, RequestUri, Selection, ShapeError, is_form_content_type,
};

/// The request that is signed or explained.
#[derive(Debug, Default, Args)]
pub struct RequestArgs {
    /// HTTP method, such as GET
    #[arg(value_name = "METHOD", default_value = "", hide_default_value = true)]
    pub method: String,

    /// Absolute URL as it is called, query included
    #[arg(value_name = "URL", default_value = "", hide_default_value = true)]
    pub url: String,

    /// Body; a form, unless --header 'Content-Type: …' says otherwise
    #[arg(long, value_name = "BODY", allow_hyphen_values = true)]
    pub data: Option<String>,

    /// Header field of the request, 'Name: value'; may be repeated
    #[arg(
        long = "header",
        short = 'H',
        value_name = "H",
        allow_hyphen_values = true
    )]
    pub headers: Vec<String>,
}

/// The parsed request.
pub(super) struct ParsedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) uri: RequestUri<'a>,
    pub(super) origin: EncodedOrigin,
    pub(super) headers: Vec<(&'a str, &'a str)>,
    pub(super) data: Option<&'a str>,
}

impl RequestArgs {
    /// Parses the request. A problem repeats nothing of URL and header fields, which may hold secrets.
    pub(super) fn request(&self) -> Result<ParsedRequest<'_>, CommandError> {
        if self.method.is_empty() || self.url.is_empty() {
            return Err(CommandError::usage("METHOD and URL are missing"));
        }
        if Method::from_bytes(self.method.as_bytes()).is_err() {
            let problem = format!("METHOD {:?} is not an HTTP method", self.method);
            return Err(CommandError::usage(problem));
        }
        let uri = RequestUri::parse(&self.url);
        let uri = uri.map_err(|problem| CommandError::usage(problem).about("URL"))?;
        let headers = self.headers.iter().enumerate().map(|(index, header)| {
            let field = header.split_once(':');
            let field = field.filter(|(name, _)| HeaderName::from_bytes(name.as_bytes()).is_ok());
            let field = field.filter(|(_, value)| !value.contains(['\r', '\n']));
            let (name, value) = field.ok_or_else(|| {
                let number = index + 1;
                CommandError::usage(format!(
                    "--header {number} is not of the form 'Name: value'"
                ))
            })?;
            Ok((name, value.trim_matches([' ', '\t'])))
        });
        Ok(ParsedRequest {
            method: &self.method,
            uri,
            origin: uri.origin(),
            headers: headers.collect::<Result<_, CommandError>>()?,
            data: self.data.as_deref(),
        })
    }
}

impl<'a> ParsedRequest<'a> {
    /// The values of the header fields with that name.
    pub(super) fn header(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The body, if its parameters are signed. One without a Content-Type is taken for a form, as `curl --data` sends it.
    pub(super) fn form(&self) -> Option<&'a str> {
        let form = |content_type: &str| is_form_content_type(content_type.as_bytes());
        self.data
            .filter(|_| self.header("Content-Type").next().is_none_or(form))
    }

    /// Reads query and form; goes on after an error, which comes back from [`Parameters::protocol`] as well.
    pub(super) fn read_into(&self, parameters: &mut Parameters) -> Result<(), ShapeError> {
        let query = parameters.read_query(self.uri.query.unwrap_or_default().as_bytes());
        let form = parameters.read_body(self.form().unwrap_or_default().as_bytes());
        query.and(form)
    }

    pub(super) fn base_string<'b>(&'b self, parameters: &'b Parameters) -> BaseString<'b> {
        BaseString {
            method: self.method.as_bytes(),
            origin: &self.origin,
            path: self.uri.path.as_bytes(),
            parameters,
            selection: Selection::Rfc5849,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(method: &str, url: &str, headers: &[&str]) -> RequestArgs {
        RequestArgs {
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
        let error = |args: &RequestArgs| args.request().map(|_| ()).unwrap_err().to_string();
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
                "--header 2 is not of the form 'Name: value'"
            );
        }
    }
}
