//! `Location` of the API's responses, made public.

use url::{Position, Url};

use crate::{
    request::{
        forward::ForwardParams,
        parse::origin::{Origins, PrefixMode, PublicUrl},
        route::FlowPaths,
    },
    wire::url::origin::Origin,
};

/// The public addresses, from the point of view of one call.
#[derive(Debug, Clone, Copy)]
pub struct PublicPlaces<'r> {
    /// The public URL of the call.
    pub url: &'r PublicUrl,
    /// All public URLs.
    pub origins: &'r Origins,
    /// The paths of the pages of this program, and of its token calls.
    pub flow: &'r FlowPaths,
}

/// The public form of a `Location` at the API's own origin, at that of the public URL, or at the public host under a scheme or
/// port that is not public; a path alone is one at the public URL. `None`: it stays as it is.
///
/// The value is parsed as a browser parses it; comparing the text's beginning would take `http://api@elsewhere` for ours.
pub fn rewrite(params: &ForwardParams, places: PublicPlaces<'_>, value: &[u8]) -> Option<String> {
    let (public, origins) = (places.url, places.origins);
    let text = std::str::from_utf8(value).ok()?;
    let is_relative = text.starts_with('/');
    let location = match is_relative {
        true => Url::parse(&public.origin.to_string())
            .ok()?
            .join(text)
            .ok()?,
        false => Url::parse(text).ok()?,
    };
    let is_public = is_at(&location, &public.origin);
    let is_api = !is_relative && params.api_origin.as_ref() == Some(&location.origin());
    let is_ours = is_api || is_public || !is_relative && is_misnamed(&location, public, origins);
    if !is_ours || !location.username().is_empty() || location.password().is_some() {
        return None;
    }
    let whole = &location[Position::BeforePath..];
    // An API that writes its own origin knows nothing of the public one.
    let is_published = !is_api && is_published(&location, places);
    let below = whole.strip_prefix(params.api_path.as_str());
    let below = below.filter(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
    let (rest, needs_prefix) = match below {
        Some(rest) if !params.api_path.is_empty() => (rest, true),
        _ if is_published => (whole, false),
        Some(rest) => (rest, true),
        // It is outside the published part of the API and has no public URL.
        None => return None,
    };
    let prefix = match origins.prefix_mode {
        PrefixMode::Strip | PrefixMode::Restore if needs_prefix => public.prefix.as_str(),
        _ => "",
    };
    if is_public && prefix.is_empty() && rest.len() == whole.len() {
        return None;
    }
    let mapped = format!("{prefix}{rest}");
    // Two slashes would begin with a host.
    match is_relative && mapped.starts_with('/') && !mapped.starts_with("//") {
        true => Some(mapped),
        false => Some(format!("{}{mapped}", public.origin)),
    }
}

/// Whether the path at the origin of the public URL is public as it is: below a prefix that an API has written which learnt of
/// it, or that of a page of this program.
fn is_published(location: &Url, places: PublicPlaces<'_>) -> bool {
    let PublicPlaces { url, origins, flow } = places;
    let origin = &url.origin;
    let (path, query) = (location.path(), location.query());
    let mut urls = origins.public.iter();
    urls.any(|url| url.origin == *origin && url.covers(path.as_bytes()))
        || origins.base.origin == *origin && flow.is_own(path, query)
}

/// Whether a location has this scheme, host and port.
fn is_at(location: &Url, origin: &Origin) -> bool {
    location.scheme() == origin.scheme.as_str()
        && location.host_str() == Some(origin.host.as_str())
        && location.port_or_known_default() == Some(origin.port)
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
