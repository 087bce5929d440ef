//! Callbacks: their registration, their acceptance, and the redirect itself.
//!
//! RFC 5849 §2.1 takes any absolute URI; here it must also be one that the consumer registered, so that a stolen
//! consumer key sends no user to an attacker.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;
use url::{ParseError, Url};

use crate::{
    base::text::{longest, percent_encoded},
    oauth::{Scheme, split_port},
    records::values::record::Callback,
    wire::url::origin::Origin,
};

/// The one spelling of "the user types the verifier" (RFC 5849 §2.1).
pub const OOB: &str = "oob";

/// Schemes that run or read something on the user's machine instead of opening an application.
const FORBIDDEN_SCHEMES: [&str; 9] = [
    "javascript",
    "data",
    "file",
    "blob",
    "vbscript",
    "about",
    "filesystem",
    "view-source",
    "jar",
];

/// Why a callback is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallbackError {
    /// It has more than [`longest::CALLBACK`] bytes.
    #[error("the callback is longer than {} bytes", longest::CALLBACK)]
    TooLong,
    /// It has no scheme, or is not the lower-case `oob`.
    #[error("the callback is neither an absolute URI nor oob")]
    NotAbsolute,
    /// A character that RFC 3986 does not allow there, or half an escape.
    #[error("the callback has a character that a URI cannot have")]
    Character,
    /// Its scheme can never be a callback's.
    #[error("the callback's scheme is forbidden")]
    Scheme,
    /// It has a name or password before the host.
    #[error("the callback has user-info")]
    UserInfo,
    /// It has a fragment.
    #[error("the callback has a fragment")]
    Fragment,
    /// Its path has a dot segment, which browsers resolve.
    #[error("the callback has a dot segment in its path")]
    DotSegment,
    /// Its host is missing, escaped, or not an IPv6 address between brackets.
    #[error("the callback's host is invalid")]
    Host,
    /// Its port is not a number from 1 to 65535.
    #[error("the callback's port is invalid")]
    Port,
    /// The consumer is not registered for it.
    #[error("the callback is not registered for this consumer")]
    NotRegistered,
}

/// The risk of a callback that is http on a host other than this machine.
pub const PLAIN_HTTP: &str =
    "the callback is http on another host: the verifier travels unprotected";

/// A callback with an asterisk, which matches itself alone.
pub const ASTERISK: &str =
    "the * in it is compared as it is, and matches nothing else: register each address";

/// Checks a callback before it is registered: an absolute URI or `oob`. Returns the warning to give, if there is one.
///
/// # Errors
///
/// Every [`CallbackError`] but `NotRegistered`.
pub fn check_registration(callback: &str) -> Result<Option<&'static str>, CallbackError> {
    if callback == OOB {
        return Ok(None);
    }
    let url = parse(callback.as_bytes())?;
    if callback.contains('*') {
        return Ok(Some(ASTERISK));
    }
    Ok((url.scheme() == "http" && !is_loopback(&url)).then_some(PLAIN_HTTP))
}

/// Checks the decoded `oauth_callback` of a request token call against the consumer's registration.
///
/// Scheme, host, port and path are as registered, the query is free; a registered loopback callback matches with any
/// port. `oob` is accepted if it is registered or nothing is; a URI never without registration.
///
/// # Errors
///
/// [`CallbackError`]: `400 parameter_rejected`.
pub fn accept(registered: &[String], requested: &[u8]) -> Result<Callback, CallbackError> {
    if requested == OOB.as_bytes() {
        return if registered.is_empty() || registered.iter().any(|callback| callback == OOB) {
            Ok(Callback::Oob)
        } else {
            Err(CallbackError::NotRegistered)
        };
    }
    let url = parse(requested)?;
    // A registration that would be rejected today matches nothing, however it came into the store.
    let matches = |callback: &String| {
        let registered = parse(callback.as_bytes()).ok().filter(|_| callback != OOB);
        registered.is_some_and(|registered| {
            let any_port = is_loopback(&registered);
            target(registered, any_port) == target(url.clone(), any_port)
        })
    };
    if !registered.iter().any(matches) {
        return Err(CallbackError::NotRegistered);
    }
    let text = str::from_utf8(requested).map_err(|_| CallbackError::Character)?;
    Ok(Callback::Uri(text.to_owned()))
}

/// Adds `parameters` to the end of the callback's own query (RFC 5849 §2.2), leaving every other byte as it is.
///
/// The values are percent-encoded. The result is safe in a `Location` field whatever `callback` is: characters that a
/// URI cannot have are escaped there too.
pub fn redirect(callback: &str, parameters: &[(&str, &str)]) -> String {
    let mut location = String::with_capacity(callback.len() + 128);
    for character in callback.chars() {
        if character.is_ascii_graphic() && !"\"<>\\^`{|}#".contains(character) {
            location.push(character);
        } else {
            location.extend(utf8_percent_encode(
                character.encode_utf8(&mut [0; 4]),
                NON_ALPHANUMERIC,
            ));
        }
    }
    for (name, value) in parameters {
        match location.split_once('?') {
            None => location.push('?'),
            Some((_, query)) if query.is_empty() || query.ends_with('&') => {}
            Some(_) => location.push('&'),
        }
        location.extend(percent_encoded(name));
        location.push('=');
        location.extend(percent_encoded(value));
    }
    location
}

/// The part of an accepted callback that a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The scheme, in lower case.
    pub scheme: String,
    /// Host and port, if it leads to a web site.
    pub site: Option<String>,
}

/// Returns where a callback leads; `None` if it is invalid.
pub fn destination(callback: &str) -> Option<Destination> {
    let url = parse(callback.as_bytes()).ok()?;
    let host = url.host_str().filter(|_| is_web(&url));
    Some(Destination {
        scheme: url.scheme().to_owned(),
        site: host.map(|host| match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }),
    })
}

/// Whether only the owner of a web site gets what is sent there: it is https, and not on the user's machine.
pub fn is_assured(callback: &str) -> bool {
    let url = parse(callback.as_bytes());
    url.is_ok_and(|url| url.scheme() == "https" && !is_loopback(&url))
}

/// Returns the host and port of a web page.
pub fn site(page: &str) -> Option<String> {
    destination(page)?.site
}

/// Returns the origin of a web page to which a browser may be sent: one that every parser finds there.
pub fn web_origin(page: &[u8]) -> Option<Origin> {
    let url = parse(page).ok()?;
    let scheme = match url.scheme() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    Some(Origin {
        scheme,
        host: url.host_str()?.to_owned(),
        port: url.port_or_known_default()?,
    })
}

/// Parses an absolute URI as browsers do, and only if it is written as they read it.
///
/// Attackers use the difference between two parsers to redirect users elsewhere. So a backslash, white space, control
/// bytes, user-info and an escape in a host are rejected; a web scheme needs its `//` and a host, and an IPv4 address
/// there has four decimal numbers.
fn parse(text: &[u8]) -> Result<Url, CallbackError> {
    if text.len() > longest::CALLBACK {
        return Err(CallbackError::TooLong);
    }
    let text = uri_characters(text)?;
    let url = Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => CallbackError::NotAbsolute,
        ParseError::InvalidPort => CallbackError::Port,
        _ => CallbackError::Host,
    })?;
    if FORBIDDEN_SCHEMES.contains(&url.scheme()) {
        return Err(CallbackError::Scheme);
    }
    // Brackets are allowed around an IPv6 address only.
    if [url.path(), url.query().unwrap_or_default()]
        .iter()
        .any(|part| part.contains(['[', ']']))
    {
        return Err(CallbackError::Character);
    }
    let after_scheme = &text[url.scheme().len() + 1..];
    let Some(rest) = after_scheme.strip_prefix("//") else {
        // `https:host` means https://host/ to a browser.
        return if url.has_host() {
            Err(CallbackError::Host)
        } else if after_scheme.split('?').next() != Some(url.path()) {
            Err(CallbackError::DotSegment)
        } else {
            Ok(url)
        };
    };
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err(CallbackError::UserInfo);
    }
    let (host, port) = split_port(authority);
    // A port has no leading zero, is not 0, and is not empty.
    if port.is_some_and(|port| !port.starts_with(|first: char| ('1'..='9').contains(&first))) {
        return Err(CallbackError::Port);
    }
    // A browser decodes escapes in a host, and reads `127.1`, `0x7f.1` and `2130706433` as IPv4 addresses.
    let read = url.host_str().unwrap_or_default();
    let is_name = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    if !(host.starts_with('[') || is_name && host.eq_ignore_ascii_case(read)) {
        return Err(CallbackError::Host);
    }
    let path = rest[authority.len()..]
        .split('?')
        .next()
        .unwrap_or_default();
    if !path.is_empty() && path != url.path() {
        return Err(CallbackError::DotSegment);
    }
    Ok(url)
}

/// Checks that there are only characters of RFC 3986 §2 and whole escapes, and no fragment.
fn uri_characters(text: &[u8]) -> Result<&str, CallbackError> {
    let known =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(byte);
    if text.contains(&b'#') {
        return Err(CallbackError::Fragment);
    }
    let is_escape = |after: &[u8]| matches!(after, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !text.iter().all(known) || !text.split(|byte| *byte == b'%').skip(1).all(is_escape) {
        return Err(CallbackError::Character);
    }
    str::from_utf8(text).map_err(|_| CallbackError::Character)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Whether it is http or https on this machine: `127.0.0.1`, `[::1]` or `localhost`.
fn is_loopback(url: &Url) -> bool {
    is_web(url) && matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"))
}

/// The URL without the parts that a registration leaves free.
fn target(mut url: Url, any_port: bool) -> Url {
    url.set_query(None);
    if any_port {
        // It has a host, so this cannot fail.
        let _ = url.set_port(None);
    }
    url
}

#[cfg(test)]
mod tests;
