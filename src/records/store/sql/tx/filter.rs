//! Conditions of lists.

use crate::records::values::{
    port::RecordFilter,
    value::{Value, escaped},
};

/// The condition of a filter on records that follow `after` by the column `key`, and its parameters.
pub(in crate::records::store::sql) fn condition(
    filter: &RecordFilter,
    key: &str,
    after: &str,
) -> (String, Vec<Value>) {
    let (mut condition, mut params) = (format!("{key} > $1"), vec![after.into()]);
    if let Some(enabled) = filter.enabled {
        params.push(enabled.into());
        condition += &format!(" AND enabled = ${}", params.len());
    }
    // The tables have collations by which `lower` folds ASCII letters alone.
    let pattern = |text: &str| {
        let pattern = text.to_ascii_lowercase().replace('!', "!!");
        let pattern = pattern.replace('%', "!%").replace('_', "!_");
        Value::from(escaped(&format!("%{pattern}%")))
    };
    if let Some(contact) = &filter.contact {
        params.push(pattern(contact));
        condition += &format!(" AND lower(contact) LIKE ${} ESCAPE '!'", params.len());
    }
    if let Some(q) = &filter.q {
        params.push(pattern(q));
        let like = format!("LIKE ${} ESCAPE '!'", params.len());
        let texts = match key {
            "id" => &["id", "name", "display_name"][..],
            _ => &["key", "name", "description", "contact"],
        };
        let texts = texts.iter().map(|text| format!("lower({text}) {like}"));
        condition += &format!(" AND ({})", Vec::from_iter(texts).join(" OR "));
    }
    (condition, params)
}
