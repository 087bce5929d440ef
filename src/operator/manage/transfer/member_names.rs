//! The members that the lines of an import may have.

use strsim::damerau_levenshtein;

use crate::operator::manage::record_fields::{CONSUMER_FIELDS, USER_FIELDS};

/// Members of a consumer beside [`CONSUMER_FIELDS`].
const OF_CONSUMER: [&str; 12] = [
    "key",
    "secret",
    "secret_base64",
    "previous_secret",
    "previous_secret_base64",
    "previous_secret_until",
    "enabled",
    "owner",
    "registration",
    "decision",
    "asked_callbacks",
    "created_at",
];

/// Members of a user beside [`USER_FIELDS`].
const OF_USER: [&str; 4] = ["id", "password_hash", "enabled", "created_at"];

const OF_TOKEN: [&str; 13] = [
    "token",
    "token_secret",
    "token_secret_base64",
    "consumer",
    "user",
    "permissions",
    "issued_at",
    "expires_at",
    "last_used_at",
    "last_used_from",
    "revoked_at",
    "began",
    "with_display_name",
];

/// The names of the members of a kind of record; none for a kind without a record.
pub(crate) fn names(kind: &str) -> Vec<&'static str> {
    let (fields, others): (_, &[_]) = match kind {
        "consumer" => (CONSUMER_FIELDS, &OF_CONSUMER),
        "user" => (USER_FIELDS, &OF_USER),
        "token" => (&CONSUMER_FIELDS[..0], &OF_TOKEN),
        _ => (&CONSUMER_FIELDS[..0], &[]),
    };
    let fields = fields.iter().map(|field| field.name);
    others.iter().copied().chain(fields).collect()
}

/// A hint at the right member, if records of this kind have no member `name`. `None` also for an unknown kind, whose members are
/// not checked.
pub(crate) fn hint_if_unknown(kind: &str, name: &str) -> Option<String> {
    let known = names(kind);
    let is_unknown = !known.is_empty() && !known.contains(&name);
    is_unknown.then(|| hint(name, known))
}

/// A known name of which one of the two is the end of the other, or that differs by a few typing mistakes; otherwise a list
/// of all names.
fn hint(unknown: &str, mut known: Vec<&str>) -> String {
    known.retain(|name| !name.ends_with("_base64"));
    let distance = |name: &&&str| damerau_levenshtein(unknown, name);
    let is_near = |name: &&&str| {
        let is_end = name.ends_with(unknown) || unknown.ends_with(&format!("_{name}"));
        is_end || distance(name) <= name.len().div_ceil(3)
    };
    match known.iter().filter(is_near).min_by_key(distance) {
        Some(near) => format!(", did you mean {near}?"),
        None => format!("; the fields are {}", known.join(", ")),
    }
}
