//! The fields of a consumer that operators write, as its type describes them. The options of the command line, the
//! columns of CSV, the forms and facts of the console and the schemas of the admin API are made from these.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use utoipa::PartialSchema as _;

use super::InvalidInput;
use crate::{
    base::names::Permission,
    oauth::{Deviation, Pinned},
    provider::issue::{callback, registration},
    records::store::record::{BodyHash, Consumer, Dialect},
    wire::web_page::web_page,
};

/// A field of a consumer.
#[derive(Debug)]
pub struct Field {
    /// The name of the member and of the column.
    pub name: String,
    /// The name as people read it.
    pub label: String,
    /// The name of its option on the command line; a list has the name of one item.
    pub option: String,
    /// The name of its value in help texts.
    pub value_name: String,
    /// The name of the option that takes it away.
    pub removal: String,
    /// What it is, in a sentence without its full stop.
    pub help: String,
    /// What it holds.
    pub kind: Kind,
    /// Every consumer has it.
    pub is_needed: bool,
}

/// What a field holds.
#[derive(Debug)]
pub enum Kind {
    /// One line, or nothing.
    Text,
    /// The text of a file, or nothing.
    File,
    /// Words, each once.
    List,
    /// Yes or no.
    Flag,
    /// One of these words, or nothing.
    Choice(Vec<String>),
}

/// The fields that forms and options write, in the order of the type. The others are changed in other ways.
pub fn fields() -> &'static [Field] {
    const OTHERS: [&str; 4] = ["key", "enabled", "created_at", "previous_secret_until"];

    static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
        let schema = json!(Consumer::schema());
        let members = schema["properties"].as_object().into_iter().flatten();
        let members = members.filter(|(name, _)| !OTHERS.contains(&name.as_str()));
        members
            .map(|(name, schema)| Field::new(name, schema))
            .collect()
    });
    &FIELDS
}

impl Field {
    /// Members of other kinds are not supported: a number, or an enum whose words are not read here.
    fn new(name: &str, schema: &Value) -> Self {
        let kind = match (name, schema["type"].as_str()) {
            ("rsa_public_key", _) => Kind::File,
            (_, Some("array")) => Kind::List,
            (_, Some("boolean")) => Kind::Flag,
            _ if schema.get("oneOf").is_some() => {
                let mut described = match name {
                    "body_hash" => json!(BodyHash::schema()),
                    _ => json!(Dialect::schema()),
                };
                let words = described["enum"].take();
                let words = words.as_array().into_iter().flatten();
                Kind::Choice(words.filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => Kind::Text,
        };
        let described = schema["description"].as_str();
        let described = described.or_else(|| schema["oneOf"][0]["description"].as_str());
        let help = described.unwrap_or_default().trim_end_matches('.');
        let words = name.strip_prefix("rsa_").map(|rest| format!("RSA {rest}"));
        let words = words.unwrap_or(name.to_owned()).replace('_', " ");
        let mut letters = words.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let dashed = name.replace('_', "-");
        let option = match kind {
            Kind::List => dashed.trim_end_matches('s'),
            _ => &dashed,
        };
        Self {
            name: name.to_owned(),
            label: first.into_iter().chain(letters).collect(),
            value_name: match kind {
                Kind::File => "FILE".to_owned(),
                _ => option.to_uppercase(),
            },
            option: option.to_owned(),
            removal: format!("no-{dashed}"),
            help: help.replace('`', ""),
            kind,
            is_needed: schema["type"] == "string",
        }
    }

    /// Checks a text of this field, and returns it as it is kept.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(&self, text: &str) -> Result<String, String> {
        let same = || text.to_owned();
        match (&*self.name, &self.kind) {
            ("callbacks", _) => callback::check_registration(text)
                .map(|_| same())
                .map_err(|error| error.to_string()),
            ("permissions", _) => text
                .parse()
                .map(|_: Permission| same())
                .map_err(|error| error.to_string()),
            ("accept", _) => text
                .parse()
                .map(|_: Deviation| same())
                .map_err(|error| error.to_string()),
            ("pinned", _) => text
                .parse()
                .map(|_: Pinned| same())
                .map_err(|error| error.to_string()),
            ("website", _) => web_page(text).map_err(|error| error.to_string()),
            ("rsa_public_key", _) => {
                registration::rsa_public_key(text).map_err(|error| error.to_string())
            }
            // Its type has these words alone.
            (_, Kind::Choice(_)) => Ok(same()),
            _ => registration::shown_name(text).map_err(|error| error.to_string()),
        }
    }

    /// A value of this field as the lines of a text; empty if there is none.
    pub fn text(&self, value: Option<&Value>) -> String {
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => {
                let lines = items.iter().filter_map(Value::as_str);
                lines.collect::<Vec<_>>().join("\n")
            }
            Some(Value::Bool(true)) => "yes".to_owned(),
            _ => String::new(),
        }
    }

    /// The value that the lines of a text hold.
    pub fn value(&self, text: &str) -> Value {
        match self.kind {
            Kind::List => text.split_ascii_whitespace().collect(),
            Kind::Flag => (!text.is_empty()).into(),
            _ if text.is_empty() && !self.is_needed => Value::Null,
            _ => text.into(),
        }
    }
}

/// Checks the members of a consumer beyond their types, and writes each as it is kept.
///
/// # Errors
/// [`InvalidInput`]
pub fn check_members(members: &mut Map<String, Value>) -> Result<(), InvalidInput> {
    for field in fields() {
        let name = &field.name;
        match members.get_mut(name) {
            Some(Value::String(text)) => {
                let checked = field
                    .checked(text)
                    .map_err(|problem| InvalidInput::member(name, format!("{name}: {problem}")));
                *text = checked?;
            }
            Some(Value::Array(items)) => {
                let texts = items.iter().enumerate();
                for (place, text) in texts.filter_map(|(at, item)| Some((at, item.as_str()?))) {
                    field.checked(text).map_err(|problem| {
                        let detail = format!("{} {text:?}: {problem}", field.option);
                        InvalidInput::member(&format!("{name}/{place}"), detail)
                    })?;
                }
            }
            // Reading the members into their type rejects a value of another type.
            _ => {}
        }
    }
    Ok(())
}
