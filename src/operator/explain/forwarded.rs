//! The parts of a call that go on to the API because its operation says so.

use super::{Examined, Mask};
use crate::{oauth::Parameters, request::policy::operations::Operation};

/// What the API gets of an accepted call in addition to the usual, by the rules of its operation; nothing while the signature
/// is not accepted, since it depends on what the signature covers.
pub(super) fn forwarded(
    operation: &Operation,
    parameters: &Parameters,
    examined: &Examined,
    mask: &Mask,
) -> Vec<String> {
    let Some(proof) = &examined.proof else {
        return Vec::new();
    };
    let fields = operation.rules.headers.0.iter().map(|header| {
        let parameter = header.parameter.as_bytes();
        match header.value(&proof.values(parameters, parameter)) {
            Some(value) => {
                let value = mask.value(parameter, value.as_bytes());
                format!("{}: {value}", header.name)
            }
            None => format!(
                "no {}: the signature covers no {}, or two values of it, or one that does not fit in a header field",
                header.name, header.parameter
            ),
        }
    });
    let credentials = operation.credentials().map(str::to_owned);
    fields.chain(credentials).collect()
}
