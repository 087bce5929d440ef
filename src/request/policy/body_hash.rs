//! The demand for a hash of a body that the signature does not cover otherwise.

use super::operations::Operation;
use crate::{
    oauth::{Parameters, ProtocolParameter, ShapeError},
    records::store::cached::ConsumerCredentials,
};

/// Checks that a call has an `oauth_body_hash`, if its body is not a form and the consumer or the operation needs one.
///
/// # Errors
/// [`ShapeError::Absent`] if it is not there.
pub fn check_is_sent(
    consumer: &ConsumerCredentials,
    operation: Option<&Operation>,
    parameters: &Parameters,
    has_other_body: bool,
) -> Result<(), ShapeError> {
    let is_needed = consumer.needs_body_hash || operation.is_some_and(|it| it.needs_body_hash);
    if is_needed && has_other_body && !parameters.was_sent(ProtocolParameter::BodyHash) {
        let names = [ProtocolParameter::BodyHash].into_iter().collect();
        return Err(ShapeError::Absent(names));
    }
    Ok(())
}
