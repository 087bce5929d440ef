//! The demands on a body that is not a form: a hash of it, and that it cannot have a pinned parameter.

use super::settings::OperationSettings;
use crate::{
    oauth::{Parameters, ProtocolParameter, ShapeError},
    records::{credentials::ConsumerCredentials, values::record::BodyHash},
    request::verify::VerifyRejection,
};

/// Checks that a call has an `oauth_body_hash`, if its body is not a form and the consumer or the operation needs one.
///
/// # Errors
/// [`ShapeError::Absent`] if it is not there.
pub fn check_is_sent(
    consumer: &ConsumerCredentials,
    rules: Option<&OperationSettings>,
    parameters: &Parameters,
    has_other_body: bool,
) -> Result<(), ShapeError> {
    let by_operation = rules.is_some_and(|it| it.body_hash == BodyHash::Required);
    let is_needed = consumer.needs_body_hash || by_operation;
    if is_needed && has_other_body && !parameters.was_sent(ProtocolParameter::BodyHash) {
        let names = [ProtocolParameter::BodyHash].into_iter().collect();
        return Err(ShapeError::Absent(names));
    }
    Ok(())
}

/// Rejects a body that is not a form of a consumer with pinned parameters, since the API could find another value in it.
/// The operation permits it if it forwards each such parameter as a header field.
///
/// # Errors
/// [`VerifyRejection::PinnedOtherwise`]
pub fn check_pinned(
    consumer: &ConsumerCredentials,
    rules: Option<&OperationSettings>,
) -> Result<(), VerifyRejection> {
    let is_forwarded = |name: &[u8]| {
        let mut headers = rules.into_iter().flat_map(|it| &it.headers.0);
        headers.any(|header| header.parameter.as_bytes() == name)
    };
    let mut pinned = consumer.pinned.iter();
    match pinned.find(|pinned| !is_forwarded(pinned.name())) {
        Some(pinned) => Err(VerifyRejection::PinnedOtherwise {
            name: pinned.written_name().to_owned(),
            is_hidden: true,
        }),
        None => Ok(()),
    }
}
