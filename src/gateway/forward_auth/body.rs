//! The body that comes with a description: whether it is the whole body of the described request.
//!
//! It is, if the request that describes has the length of the described one. A proxy that buffers up to a limit may cut a longer
//! body and write the length of what is left; it has to say so, or the operator has to name the limit.

use http::{HeaderMap, HeaderName};
use http_body::Body as _;

use crate::{
    base::network::http_fields::all, request::parse::unseen_body::UnseenBody,
    wire::server::request::RequestBody,
};

/// Envoy's field: whether the body is only the beginning.
static X_ENVOY_AUTH_PARTIAL_BODY: HeaderName = HeaderName::from_static("x-envoy-auth-partial-body");

/// Checks that the body is whole and has at most `limit` bytes.
///
/// # Errors
/// Why it may not be verified as the described body.
pub(super) fn check(
    headers: &HeaderMap,
    body: &RequestBody,
    limit: usize,
) -> Result<(), UnseenBody> {
    if body.is_end_stream() {
        return Err(UnseenBody::Absent);
    }
    let mut is_partial = all(headers, &X_ENVOY_AUTH_PARTIAL_BODY);
    if !is_partial.all(|it| it.eq_ignore_ascii_case(b"false")) {
        return Err(UnseenBody::Cut);
    }
    // hyper reads as many bytes as Content-Length says, or none of them count.
    let length = body.size_hint().exact().ok_or(UnseenBody::NoLength)?;
    if length > limit as u64 {
        return Err(UnseenBody::TooLarge { limit });
    }
    Ok(())
}
