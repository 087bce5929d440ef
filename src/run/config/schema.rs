//! The JSON schema of the configuration file: an editor that has it completes keys, explains them, and marks mistakes.

use serde_json::{Map, Value, json};

use super::SECTIONS;
use crate::base::settings::{KeySchema, SectionSchema, Unwritten, paragraph, value_of};

/// The schema, made from the declarations. It admits every valid file. It does not have the rules on more than one key, nor the
/// ranges of durations and sizes: [`super::load`] checks these.
pub fn json_schema() -> String {
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The configuration of countersign",
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    for section in SECTIONS {
        let mut table = &mut root;
        for name in section.name.split('.') {
            let tables = &mut table["properties"];
            if tables[name].is_null() {
                tables[name] = empty(section);
            }
            table = &mut tables[name];
        }
        let keys = if section.list {
            &mut table["items"]
        } else {
            table
        };
        let schemas = section
            .keys
            .iter()
            .map(|key| (key.name.to_owned(), member(key)));
        if let Some(properties) = keys["properties"].as_object_mut() {
            properties.extend(schemas);
        }
    }
    format!("{root:#}\n")
}

/// The schema of a section without its keys.
fn empty(section: &SectionSchema) -> Value {
    let mut table = json!({
        "description": paragraph(section.doc),
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    if !section.list {
        return table;
    }
    // A key that is not in a list can come from the environment too, so the file may lack it.
    let keys = section.keys.iter();
    let required = keys.filter(|key| matches!(key.unwritten, Unwritten::Required { .. }));
    table["required"] = required.map(|key| key.name).collect();
    json!({ "description": table["description"], "type": "array", "items": table })
}

/// The schema of a key: that of its type, with its documentation.
fn member(key: &KeySchema) -> Value {
    let mut text = paragraph(key.doc);
    let json = |written: &str| serde_json::to_value(value_of(written)).unwrap_or_default();
    let (name, value) = match key.unwritten {
        Unwritten::Default(value) => ("default", json(value)),
        Unwritten::Required { example, .. } => {
            text.push_str(" Required.");
            ("examples", json!([json(example)]))
        }
        Unwritten::Absent(words, example) => {
            text.push_str(&format!(" Default: {words}."));
            ("examples", json!([json(example)]))
        }
    };
    text.push_str(match key.when {
        "reload" => " SIGHUP applies a change.",
        _ => " A restart applies a change.",
    });
    let mut schema = Map::from_iter([("description".to_owned(), text.into())]);
    if let Value::Object(of_type) = (key.value_type.schema)() {
        schema.extend(of_type);
    }
    schema.insert(name.to_owned(), value);
    schema.into()
}
