//! Which permissions a request token asks for.

use crate::names::Permission;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(names: &[&str]) -> Vec<Permission> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn absent_scope_means_all_that_are_registered() {
        let registered = permissions(&["read", "write"]);
        assert_eq!(narrow(&registered, None), Ok(registered.clone()));
        assert_eq!(narrow(&[], None), Ok(vec![]));
    }

    #[test]
    fn scope_narrows_and_counts_a_name_once() {
        let registered = permissions(&["read", "write", "delete"]);
        let narrowed = narrow(&registered, Some(b"delete read  read"));
        assert_eq!(narrowed, Ok(permissions(&["read", "delete"])));
    }

    #[test]
    fn rejects_what_is_not_registered() {
        let registered = permissions(&["read"]);
        for scope in [
            "write",
            "read write",
            "READ",
            "rea",
            "read,write",
            "read\twrite",
            "r\u{e9}ad",
        ] {
            let narrowed = narrow(&registered, Some(scope.as_bytes()));
            assert_eq!(narrowed, Err(NOT_REGISTERED), "{scope:?}");
        }
        assert_eq!(narrow(&[], Some(b"read")), Err(NOT_REGISTERED));
        assert_eq!(narrow(&registered, Some(b"\xff")), Err(NOT_REGISTERED));
    }

    #[test]
    fn rejects_a_scope_that_names_nothing() {
        for scope in ["", " ", "   "] {
            assert_eq!(narrow(&[], Some(scope.as_bytes())), Err(EMPTY));
        }
    }
}
