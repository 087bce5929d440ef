//! Scripts of other origins in browsers (Fetch, CORS protocol): the preflights of token calls, and the fields by which a
//! script may read a token response or a rejection. No response allows cookies, so it shows nothing that a request without
//! them would not.

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};

use crate::{
    base::network::http_fields::single, provider::respond::OwnResponse,
    telemetry::metrics::Verdict, wire::url::origin::Origin,
};

/// The fields of our responses that a script may read, besides those that it always may (Fetch, CORS-safelisted
/// response-header name).
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "WWW-Authenticate, X-Request-Id, Retry-After, Date, Link, RateLimit, RateLimit-Policy, Deprecation, Sunset",
);

/// Seconds for which a browser may remember a preflight. A reload that takes an origin away reaches it after that.
const MAX_AGE: &str = "600";

/// An origin of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigin {
    /// Every one.
    Any,
    /// The one that browsers write like this.
    One(String),
}

impl CorsOrigin {
    /// Reads `*`, an origin of the web, or one of another scheme, as extensions of browsers and apps have.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        if let Ok(origin) = Origin::parse(text) {
            return Some(Self::One(origin.to_string()));
        }
        let (scheme, host) = text.split_once("://")?;
        let is_scheme_byte =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
        let is_host_byte = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:".contains(&byte)
        };
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(is_scheme_byte)
            && !matches!(scheme, "http" | "https" | "file");
        (is_scheme && !host.is_empty() && host.bytes().all(is_host_byte))
            .then(|| Self::One(text.to_owned()))
    }
}

/// The origins whose scripts may make token calls and read rejections; empty: none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors(pub Vec<CorsOrigin>);

impl Cors {
    /// The value of `Access-Control-Allow-Origin` in the response to a request with these fields.
    fn allowed<'h>(&self, request: &'h HeaderMap) -> Option<&'h str> {
        if self.0.contains(&CorsOrigin::Any) {
            return Some("*");
        }
        let sent = str::from_utf8(single(request, &header::ORIGIN).ok()??).ok()?;
        let mut known = self.0.iter();
        known
            .any(|it| matches!(it, CorsOrigin::One(known) if known == sent))
            .then_some(sent)
    }

    /// The value of `Vary`, if responses depend on the origin of the request.
    fn varies(&self) -> Option<&'static str> {
        (!self.0.is_empty() && !self.0.contains(&CorsOrigin::Any)).then_some("Origin")
    }

    /// Lets scripts read the response to a request with these fields, if its origin is one of these.
    pub fn expose(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if let Some(varies) = self.varies() {
            response.append(header::VARY, HeaderValue::from_static(varies));
        }
        let allowed = self.allowed(request).map(HeaderValue::from_str);
        if let Some(Ok(origin)) = allowed {
            response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }

    /// The response to the preflight of a token call; `None`: it is not one, or not of these origins.
    pub fn preflight(&self, parts: &Parts) -> Option<OwnResponse> {
        let origin = self
            .allowed(&parts.headers)
            .filter(|_| is_preflight(parts))?;
        let mut response = OwnResponse::empty(204, Verdict::Page)
            .field("Access-Control-Allow-Origin", origin)
            .field("Access-Control-Allow-Methods", "GET, POST")
            .field("Access-Control-Max-Age", MAX_AGE);
        if let Some(varies) = self.varies() {
            response = response.field("Vary", varies);
        }
        // A token call reads none but those of HTTP and of the signature, so any others do no harm.
        let asked = single(&parts.headers, &header::ACCESS_CONTROL_REQUEST_HEADERS).ok()?;
        if let Some(asked) = asked.and_then(|asked| str::from_utf8(asked).ok()) {
            response = response.field("Access-Control-Allow-Headers", asked);
        }
        Some(response)
    }
}

/// Whether a browser sends this head by itself before a request of another origin (Fetch, CORS-preflight request): it never
/// has credentials.
pub fn is_preflight(parts: &Parts) -> bool {
    let headers = &parts.headers;
    let has = |name| single(headers, name).is_ok_and(|sent| sent.is_some());
    parts.method == Method::OPTIONS
        && has(&header::ORIGIN)
        && has(&header::ACCESS_CONTROL_REQUEST_METHOD)
        && !headers.contains_key(header::AUTHORIZATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_as_browsers_write_it() {
        let one = |text: &str| Some(CorsOrigin::One(text.to_owned()));
        for (text, read) in [
            ("*", Some(CorsOrigin::Any)),
            ("https://editor.example", one("https://editor.example")),
            ("https://Editor.example:443/", one("https://editor.example")),
            ("http://127.0.0.1:8000", one("http://127.0.0.1:8000")),
            (
                "chrome-extension://abcdefgh",
                one("chrome-extension://abcdefgh"),
            ),
            ("capacitor://localhost", one("capacitor://localhost")),
            ("null", None),
            ("file://", None),
            ("editor.example", None),
            ("https://editor.example/map", None),
            ("https://*.example", None),
            ("app://a b", None),
            ("app://a/b", None),
        ] {
            assert_eq!(CorsOrigin::parse(text), read, "{text}");
        }
    }
}
