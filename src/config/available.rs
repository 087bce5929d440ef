//! Keys of features that are not there yet: refused, so that nobody relies on what does nothing.

use super::{
    error::Problems,
    tree::{Table, Value},
};

/// Which values are refused.
enum Refused {
    /// All.
    Any,
    /// These words.
    Words(&'static [&'static str]),
}

/// What cannot be set yet. To lift one, delete its line.
const NOT_YET: &[(&str, Refused)] = &[
    ("admin.token_file", Refused::Any),
    ("identity.assertion.header", Refused::Any),
    ("identity.assertion.key_file", Refused::Any),
    ("login.backend", Refused::Words(&["http"])),
    ("login.url", Refused::Any),
    ("nonce.scope", Refused::Words(&["shared"])),
    ("store.backend", Refused::Words(&["postgres", "redis"])),
];

pub(super) fn check(tree: &Table, problems: &mut Problems) {
    for (key, refused) in NOT_YET {
        let Some(node) = tree.find_key(key) else {
            continue;
        };
        if problems.concern(key) {
            continue;
        }
        let message = match (refused, &node.value) {
            (Refused::Any, _) => "not yet available; leave it out".to_owned(),
            (Refused::Words(words), Value::Text(text)) if words.contains(&text.as_str()) => {
                format!("{text:?} is not yet available; leave it out")
            }
            _ => continue,
        };
        problems.add(&node.place, key, message);
    }
}

/// Whether `key` cannot be set at all.
pub(super) fn is_available(key: &str) -> bool {
    !NOT_YET
        .iter()
        .any(|(known, refused)| *known == key && matches!(refused, Refused::Any))
}
