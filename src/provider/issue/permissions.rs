//! The permissions that a request token asks for.

use crate::base::names::Permission;

/// It names nothing: neither "all" nor "none" is a safe guess.
const EMPTY: &str = "scope names no permission";
/// It names a permission that the consumer is not registered for, or that does not exist.
const NOT_REGISTERED: &str = "scope names a permission that the consumer is not registered for";

/// Narrows a consumer's registered permissions to those that `scope` names, in the order of registration.
///
/// `scope` is the decoded value of the parameter, names separated by spaces; `None`, the parameter being absent, means
/// all that are registered.
///
/// # Errors
///
/// Why the scope is rejected: `400 parameter_rejected` on the request token call.
pub fn narrow(
    registered: &[Permission],
    scope: Option<&[u8]>,
) -> Result<Vec<Permission>, &'static str> {
    let Some(scope) = scope else {
        return Ok(registered.to_vec());
    };
    let asked: Vec<&[u8]> = scope
        .split(|byte| *byte == b' ')
        .filter(|name| !name.is_empty())
        .collect();
    if asked.is_empty() {
        return Err(EMPTY);
    }
    let is_registered = |name: &&[u8]| {
        registered
            .iter()
            .any(|permission| permission.as_str().as_bytes() == *name)
    };
    if !asked.iter().all(is_registered) {
        return Err(NOT_REGISTERED);
    }
    let is_asked = |permission: &&Permission| asked.contains(&permission.as_str().as_bytes());
    Ok(registered.iter().filter(is_asked).cloned().collect())
}
