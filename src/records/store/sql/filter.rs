//! Conditions of lists.

use crate::records::store::{
    port::RecordFilter,
    value::{Value, escaped},
};

/// The condition of a filter on records that follow `after` by the column `key`, and its parameters.
pub(super) fn condition(filter: &RecordFilter, key: &str, after: &str) -> (String, Vec<Value>) {
    let (mut condition, mut params) = (format!("{key} > $1"), vec![after.into()]);
    if let Some(enabled) = filter.enabled {
        params.push(enabled.into());
        condition += &format!(" AND enabled = ${}", params.len());
    }
    if let Some(q) = &filter.q {
        // The tables have collations by which `lower` folds ASCII letters alone.
        let pattern = q.to_ascii_lowercase().replace('!', "!!");
        let pattern = pattern.replace('%', "!%").replace('_', "!_");
        params.push(escaped(&format!("%{pattern}%")).into());
        let like = format!("LIKE ${} ESCAPE '!'", params.len());
        let text = match key {
            "id" => "display_name",
            _ => "description",
        };
        condition +=
            &format!(" AND (lower({key}) {like} OR lower(name) {like} OR lower({text}) {like})");
    }
    (condition, params)
}
