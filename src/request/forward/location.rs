//! `Location` of the API's responses, made public.

use url::{Position, Url};

use super::ForwardParams;
use crate::request::parse::origin::{Origins, PrefixMode, PublicUrl};

/// The public form of a `Location` at the API's own origin, or at the public host under a scheme or port that is not public;
/// `None`: it stays as it is.
///
/// The value is parsed as a browser parses it; comparing the text's beginning would take `http://api@elsewhere` for ours.
pub fn rewrite(
    params: &ForwardParams,
    public: &PublicUrl,
    origins: &Origins,
    value: &[u8],
) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let location = Url::parse(text).ok()?;
    let is_of_api = params.api_origin.as_ref() == Some(&location.origin());
    if !is_of_api && !is_misnamed(&location, public, origins)
        || !location.username().is_empty()
        || location.password().is_some()
    {
        return None;
    }
    let rest = &location[Position::BeforePath..];
    let rest = match rest.strip_prefix(params.api_path.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#']) => rest,
        // It is outside the published part of the API and has no public URL.
        _ if !params.api_path.is_empty() => return None,
        _ => rest,
    };
    let prefix = match origins.prefix_mode {
        PrefixMode::Strip | PrefixMode::Restore => public.prefix.as_str(),
        PrefixMode::Keep => "",
    };
    Some(format!("{}{prefix}{rest}", public.origin))
}

/// Whether a framework that does not know about the proxy wrote it: it takes the host from the request and adds its own
/// scheme or port. The scheme and port of `service.base_url` or of another public URL at that host are right. A
/// loopback host has a service on every port, so only its scheme can be wrong.
fn is_misnamed(location: &Url, public: &PublicUrl, origins: &Origins) -> bool {
    let secure = match location.scheme() {
        "https" => true,
        "http" => false,
        _ => return false,
    };
    let (host, port) = (location.host_str(), location.port_or_known_default());
    let is_at_host = |url: &PublicUrl| host == Some(url.origin.host.as_str());
    is_at_host(public)
        && (port == Some(public.origin.port) || !public.origin.is_loopback())
        && ![&origins.base]
            .into_iter()
            .chain(&origins.public)
            .any(|url| {
                is_at_host(url) && port == Some(url.origin.port) && secure == url.origin.is_https()
            })
}
