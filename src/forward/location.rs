//! `Location` of the API's answers, made public.

use url::{Position, Url};

use super::Params;
use crate::parse::origin::PublicUrl;

/// The public form of a `Location` at the API's own origin; `None`: it stays as it is.
///
/// The value is parsed as a browser parses it; comparing the text's beginning would take `http://api@elsewhere` for ours.
#[must_use]
pub fn rewrite(params: &Params, public: &PublicUrl, strip: bool, value: &[u8]) -> Option<String> {
    let api = params.api_origin.as_ref()?;
    let text = std::str::from_utf8(value).ok()?;
    let location = Url::parse(text).ok()?;
    if location.origin() != *api || !location.username().is_empty() || location.password().is_some()
    {
        return None;
    }
    let rest = &location[Position::BeforePath..];
    let rest = match rest.strip_prefix(params.api_path.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#']) => rest,
        // Beside the part of the API that is published: there is no public URL for it.
        _ if !params.api_path.is_empty() => return None,
        _ => rest,
    };
    let prefix = if strip { public.prefix.as_str() } else { "" };
    Some(format!("{}{prefix}{rest}", public.origin()))
}
