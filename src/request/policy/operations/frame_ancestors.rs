//! The sites that may frame the page of a launch that failed, and to which such a launch may lead back.

use std::{fmt, net::IpAddr};

use crate::{
    base::settings::texts,
    wire::url::origin::{InvalidUrl, Origin},
};

/// A site: the only origin of its kind, or each one below a domain, as `frame-ancestors` has them (CSP Level 3 §2.3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameAncestor {
    /// The origin, or the one of the domain.
    origin: Origin,
    /// Any name below the domain.
    is_wildcard: bool,
}

texts! {
    FrameAncestor: "a site such as \"https://lms.example\" or \"https://*.lms.example\"" => Self::parse;
}

impl FrameAncestor {
    fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let (origin, is_wildcard) = match text.split_once("://*.") {
            None => (Origin::parse(text)?, false),
            Some((scheme, domain)) => (Origin::parse(&format!("{scheme}://{domain}"))?, true),
        };
        let address = origin.bare_host().parse::<IpAddr>();
        if is_wildcard && (address.is_ok() || !origin.host.contains('.')) {
            return Err(InvalidUrl("after *. comes a domain of two labels or more"));
        }
        if matches!(address, Ok(IpAddr::V6(_))) {
            return Err(InvalidUrl(
                "a browser compares no IPv6 address; write a name",
            ));
        }
        Ok(Self {
            origin,
            is_wildcard,
        })
    }

    /// Whether a page of this origin is one of the site.
    pub fn admits(&self, other: &Origin) -> bool {
        let Origin { scheme, host, port } = &self.origin;
        let is_host = match self.is_wildcard {
            false => other.host == *host,
            true => {
                let below = other.host.strip_suffix(host.as_str());
                below.is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
        };
        is_host && other.scheme == *scheme && other.port == *port
    }

    /// Whether others on the network can read and change its pages.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        self.origin.is_in_clear()
    }
}

/// As a source of CSP.
impl fmt::Display for FrameAncestor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.is_wildcard { "*." } else { "" };
        let (scheme, authority) = (self.origin.scheme.as_str(), self.origin.authority());
        write!(f, "{scheme}://{wildcard}{authority}")
    }
}

/// The sources of `frame-ancestors`; `None` where there is no site.
pub fn sources(sites: &[FrameAncestor]) -> Option<String> {
    let sources = Vec::from_iter(sites.iter().map(ToString::to_string));
    (!sources.is_empty()).then(|| sources.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_an_origin_or_every_name_below_a_domain() {
        for (written, source) in [
            ("https://LMS.example", "https://lms.example"),
            ("https://lms.example:443/", "https://lms.example"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("https://*.lms.example", "https://*.lms.example"),
            ("https://*.lms.example:8443", "https://*.lms.example:8443"),
        ] {
            assert_eq!(FrameAncestor::parse(written).unwrap().to_string(), source);
        }
        for wrong in [
            "*",
            "https://*",
            "https://*.example",
            "https://*.127.0.0.1",
            "https://a.*.example",
            "https://*.*.example.com",
            "https://lms.example/a",
            "https://lms.example;script-src *",
            "https://lms.example https://evil.example",
            "https://me@lms.example",
            "https://[::1]",
            "lms.example",
            "'self'",
        ] {
            assert!(FrameAncestor::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn page_belongs_to_a_site_by_scheme_port_and_name_below_domain() {
        let written = [
            "https://lms.example",
            "https://*.lms.test",
            "http://dev.test:81",
        ];
        let sites = written.map(|site| FrameAncestor::parse(site).unwrap());
        let admits = |origin: &str| {
            let origin = Origin::parse(origin).unwrap();
            sites.iter().any(|site| site.admits(&origin))
        };
        for admitted in [
            "https://lms.example",
            "https://a.lms.test",
            "https://a.b.lms.test:443",
            "http://dev.test:81",
        ] {
            assert!(admits(admitted), "{admitted}");
        }
        for other in [
            "http://lms.example",
            "https://lms.example:444",
            "https://a.lms.example",
            "https://lms.example.evil.test",
            "https://lms.test",
            "https://evillms.test",
            "http://a.lms.test",
            "http://dev.test",
        ] {
            assert!(!admits(other), "{other}");
        }
        let sources = "https://lms.example https://*.lms.test http://dev.test:81";
        assert_eq!(super::sources(&sites).as_deref(), Some(sources));
        assert_eq!(super::sources(&[]), None);
    }
}
