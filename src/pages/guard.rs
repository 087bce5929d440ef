//! What is checked before any form: the method, and where a POST comes from.

use super::{PageRequest, error::PageError, fields::Form};

/// What a browser wants.
pub(super) enum Act {
    /// To see the page: GET or HEAD.
    Show,
    /// To change something, by a form of ours.
    Submit(Form),
}

/// Determines what the browser wants.
///
/// A POST is rejected if the browser itself says that it comes from another site: by `Sec-Fetch-Site`, or by an `Origin`
/// other than ours. A browser that sends neither is left to the form's own value.
pub(super) fn act(request: &PageRequest<'_>, origin: &str) -> Result<Act, PageError> {
    match request.method {
        "GET" | "HEAD" => Ok(Act::Show),
        "POST" => {
            let site_is_ours = match request.sec_fetch_site {
                None => true,
                // `none` is the user's own doing, such as sending a form again.
                Some(site) => site == b"same-origin" || site == b"none",
            };
            let origin_is_ours = request.origin.is_none_or(|sent| sent == origin.as_bytes());
            if !site_is_ours || !origin_is_ours {
                return Err(PageError::ForgedForm);
            }
            let form = Form::parse(request.form)
                .map_err(|_| PageError::Malformed("error-malformed-form"))?;
            Ok(Act::Submit(form))
        }
        _ => Err(PageError::Method("GET, HEAD, POST")),
    }
}
