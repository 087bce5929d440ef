//! Callbacks: which can be registered, which are accepted, and the redirect itself.
//!
//! RFC 5849 §2.1 takes any absolute URI; here it must also be one that the consumer registered, so that a stolen
//! consumer key sends no user to a stranger.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;

use super::uri::Uri;
use crate::store::record::Callback;

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

/// The characters that are escaped in a query's value: all but RFC 3986's unreserved ones.
pub const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why a callback is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallbackError {
    /// It has more than 4096 bytes.
    #[error("the callback is longer than 4096 bytes")]
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
    /// Its host is missing, escaped, or no IPv6 address between brackets.
    #[error("the callback's host is invalid")]
    Host,
    /// Its port is not a number from 1 to 65535.
    #[error("the callback's port is invalid")]
    Port,
    /// The consumer is not registered for it.
    #[error("the callback is not registered for this consumer")]
    NotRegistered,
}

/// A risk of a valid callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// http on a host other than this machine: the network in between can read the verifier.
    PlainHttp,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainHttp => f.write_str(
                "the callback is http on another host: the verifier travels unprotected",
            ),
        }
    }
}

/// Checks a callback before it is registered: an absolute URI or `oob`.
///
/// # Errors
///
/// Every [`CallbackError`] but `NotRegistered`.
pub fn check_registration(callback: &str) -> Result<Option<Warning>, CallbackError> {
    if callback == OOB {
        return Ok(None);
    }
    let uri = parse(callback.as_bytes())?;
    Ok((uri.has_scheme("http") && !uri.is_loopback()).then_some(Warning::PlainHttp))
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
    let uri = parse(requested)?;
    // A registration that would be rejected today matches nothing, however it came into the store.
    let matches = |callback: &String| {
        callback != OOB
            && parse(callback.as_bytes()).is_ok_and(|registered| is_same_target(&registered, &uri))
    };
    if !registered.iter().any(matches) {
        return Err(CallbackError::NotRegistered);
    }
    let text = str::from_utf8(requested).map_err(|_| CallbackError::Character)?;
    Ok(Callback::Uri(text.to_owned()))
}

/// Adds `parameters` to the end of the callback's own query (RFC 5849 §2.2), leaving every other byte as it is.
///
/// The values are percent-encoded. The result is safe in a `Location` field whatever `callback` is: what a URI cannot
/// have is escaped there too.
#[must_use]
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
        location.extend(utf8_percent_encode(name, ESCAPED));
        location.push('=');
        location.extend(utf8_percent_encode(value, ESCAPED));
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
#[must_use]
pub fn destination(callback: &str) -> Option<Destination> {
    let uri = parse(callback.as_bytes()).ok()?;
    let site = uri
        .authority
        .filter(|_| uri.is_web())
        .map(|authority| match authority.port {
            Some(port) => format!("{}:{port}", authority.host.to_ascii_lowercase()),
            None => authority.host.to_ascii_lowercase(),
        });
    Some(Destination {
        scheme: uri.scheme.to_ascii_lowercase(),
        site,
    })
}

fn parse(text: &[u8]) -> Result<Uri<'_>, CallbackError> {
    let uri = Uri::parse(text)?;
    if FORBIDDEN_SCHEMES
        .iter()
        .any(|scheme| uri.has_scheme(scheme))
    {
        return Err(CallbackError::Scheme);
    }
    Ok(uri)
}

fn is_same_target(registered: &Uri<'_>, requested: &Uri<'_>) -> bool {
    let same_host = match (registered.authority, requested.authority) {
        (None, None) => true,
        // Only web schemes are known to ignore the case of a host.
        (Some(a), Some(b)) if registered.is_web() => a.host.eq_ignore_ascii_case(b.host),
        (Some(a), Some(b)) => a.host == b.host,
        _ => false,
    };
    registered.scheme.eq_ignore_ascii_case(requested.scheme)
        && same_host
        && (registered.port() == requested.port() || registered.is_loopback())
        && registered.effective_path() == requested.effective_path()
}

#[cfg(test)]
mod tests;
