//! Records and requests as JSON that an operator has written.

use std::fmt::{self, Write as _};

use serde::{
    Deserializer as _, Serialize,
    de::{self, DeserializeOwned},
};
use serde_json::{Map, Value, json};
use serde_path_to_error::{Path, Segment};
use thiserror::Error;

/// A mistake in a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[error("{pointer}{}{detail}", if .pointer.is_empty() { "" } else { ": " })]
pub struct InvalidInput {
    /// The place of the member, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The mistake.
    pub detail: String,
}

impl InvalidInput {
    /// A mistake in the member of this name, which may be any text.
    pub fn named(name: &str, detail: impl ToString) -> Self {
        Self::member(&escaped(name), detail)
    }

    /// A mistake in the member of this name; an index may follow the name.
    pub fn member(name: &str, detail: impl ToString) -> Self {
        Self {
            pointer: format!("/{name}"),
            detail: detail.to_string(),
        }
    }
}

/// The members of an object.
///
/// # Errors
/// The text is not JSON, not an object, or has a member twice.
pub fn distinct_members(text: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    struct Distinct;
    impl<'de> de::Visitor<'de> for Distinct {
        type Value = Map<String, Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut members = Map::new();
            while let Some((name, value)) = access.next_entry::<String, Value>()? {
                if members.contains_key(&name) {
                    let problem = format_args!("duplicate field `{name}`");
                    return Err(de::Error::custom(problem));
                }
                members.insert(name, value);
            }
            Ok(members)
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let members = reader.deserialize_map(Distinct)?;
    reader.end().map(|()| members)
}

/// The members of an object, as [`distinct_members`] reads them.
///
/// # Errors
/// [`InvalidInput`]
pub fn members(text: &[u8]) -> Result<Map<String, Value>, InvalidInput> {
    distinct_members(text).map_err(|error| {
        let detail = error.to_string();
        let repeated = detail.strip_prefix("duplicate field `");
        let repeated = repeated.and_then(|rest| Some(rest.rsplit_once('`')?.0));
        let pointer = repeated.map(|name| format!("/{}", escaped(name)));
        InvalidInput {
            pointer: pointer.unwrap_or_default(),
            detail,
        }
    })
}

/// Reads a value.
///
/// # Errors
/// [`InvalidInput`]: a member is missing, unknown or of another type.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, InvalidInput> {
    serde_path_to_error::deserialize(value).map_err(|error| InvalidInput {
        pointer: pointer(error.path()),
        detail: error.inner().to_string(),
    })
}

fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        // Writing to a `String` never fails.
        let _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key } => {
                write!(pointer, "/{}", escaped(key))
            }
            Segment::Enum { .. } | Segment::Unknown => Ok(()),
        };
        pointer
    })
}

/// Takes the key or the id of a new record out of its members, if it is given.
///
/// # Errors
/// [`InvalidInput`]: it cannot be one, or the record has no name for people.
pub(super) fn take_name<N: DeserializeOwned>(
    members: &mut Map<String, Value>,
    member: &str,
) -> Result<Option<N>, InvalidInput> {
    let given = members.remove(member).unwrap_or_default();
    let given = serde_json::from_value(given);
    let given = given.map_err(|error| InvalidInput::member(member, error))?;
    match members.contains_key("name") {
        true => Ok(given),
        false => Err(InvalidInput::member("name", "a name is needed")),
    }
}

/// Merges a JSON Merge Patch (RFC 7396) into a record, without its secrets. A member that is removed gets the value of a
/// new record.
///
/// # Errors
/// [`InvalidInput`]: a member is unknown, one of `fixed`, or has a value that the record cannot have.
pub(super) fn merged<T: Serialize + DeserializeOwned>(
    record: &T,
    patch: Map<String, Value>,
    fixed: &[&str],
) -> Result<T, InvalidInput> {
    /// Without a name there is no record, and a removal must not enable it.
    const NEEDED: [&str; 2] = ["name", "enabled"];

    let mut document = json!(record);
    for (name, value) in &patch {
        let problem = match document.get(name) {
            None => "no member of this name can be given",
            Some(_) if fixed.contains(&name.as_str()) => "this member cannot be given here",
            Some(_) if value.is_null() && NEEDED.contains(&name.as_str()) => {
                "this member cannot be removed"
            }
            Some(_) => continue,
        };
        return Err(InvalidInput::named(name, problem));
    }
    // The members of a record are no objects, so one level is all there is to merge.
    if let Value::Object(members) = &mut document {
        members.extend(patch);
        members.retain(|_, value| !value.is_null());
    }
    read(document)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
