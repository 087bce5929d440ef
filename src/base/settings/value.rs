//! What the type of a key does with a value as it is written: its form, what may be shown of it, and what its relative
//! paths mean.

use std::{
    num::{NonZeroU16, NonZeroU32, NonZeroU64},
    path::{Path, PathBuf},
};

use serde::Deserialize as _;
use serde_json::json;
use toml::{Value, de::ValueDeserializer};

/// The directories to which relative paths belong.
#[derive(Debug, Clone, Copy)]
pub struct Directories<'a> {
    /// That of the configuration file.
    pub file: &'a Path,
    /// That of the files which the process writes.
    pub data: &'a Path,
}

/// The type of a key's value. A type that may hold a secret, or that holds a path, overrides what it needs.
pub trait SettingValue {
    /// The JSON schema of a written value, by default of any string. It admits every value that the type reads; a value that it
    /// admits can still be wrong.
    fn schema() -> serde_json::Value {
        json!({ "type": "string" })
    }

    /// The part of a written value that may be shown: no password and no key; `None`: only that it is set. By default URLs
    /// lose the parts that may have one.
    fn redacted(written: Value) -> Option<Value> {
        Some(without_password(written))
    }

    /// A written value, checked for control characters, with its paths made absolute.
    ///
    /// # Errors
    /// The problem. It repeats nothing of the value: a key may be pasted instead of the name of its file.
    fn resolved(written: Value, _: Directories<'_>) -> Result<Value, &'static str> {
        let is_broken = |text: &str| text.contains(char::is_control);
        match &written {
            Value::String(text) if is_broken(text) => Err(CONTROL_CHARACTER),
            Value::Array(items) if items.iter().filter_map(Value::as_str).any(is_broken) => {
                Err(CONTROL_CHARACTER)
            }
            _ => Ok(written),
        }
    }

    /// A written value of a key that has this default.
    fn over_default(written: Value, _default: &str) -> Value {
        written
    }
}

const CONTROL_CHARACTER: &str = "it has a control character in it";

/// What a key's type does with its value.
#[derive(Debug, Clone, Copy)]
pub struct ValueType {
    /// [`SettingValue::schema`]
    pub schema: fn() -> serde_json::Value,
    /// [`SettingValue::redacted`]
    pub redacted: fn(Value) -> Option<Value>,
    /// [`SettingValue::resolved`]
    pub resolved: fn(Value, Directories<'_>) -> Result<Value, &'static str>,
    /// [`SettingValue::over_default`]
    pub over_default: fn(Value, &str) -> Value,
}

impl ValueType {
    /// That of `T`.
    pub const fn new<T: SettingValue>() -> Self {
        Self {
            schema: T::schema,
            redacted: T::redacted,
            resolved: T::resolved,
            over_default: T::over_default,
        }
    }
}

/// Declares types of values that hold neither a secret nor a path, and are written as strings; else with their schema:
/// `type: schema`.
macro_rules! plain_values {
    ($($type:ty $(: $schema:expr)?),+ $(,)?) => {$(
        impl $crate::base::settings::SettingValue for $type {
            $(fn schema() -> serde_json::Value {
                $schema
            })?
        }
    )+};
}
pub(crate) use plain_values;

/// Declares enums that are written as one of their words.
macro_rules! choices {
    ($($type:ty),+ $(,)?) => {
        $crate::base::settings::plain_values!(
            $($type: $crate::base::settings::one_of($crate::base::settings::words_of::<$type>())),+
        );
    };
}
pub(crate) use choices;

plain_values!(
    bool: json!({ "type": "boolean" }),
    u16: json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX }),
    u32: json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
    u64: json!({ "type": "integer", "minimum": 0 }),
    NonZeroU16: json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
    NonZeroU32: json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
    NonZeroU64: json!({ "type": "integer", "minimum": 1 }),
    String
);

impl<T: SettingValue> SettingValue for Option<T> {
    fn schema() -> serde_json::Value {
        T::schema()
    }

    fn redacted(written: Value) -> Option<Value> {
        T::redacted(written)
    }

    fn resolved(written: Value, directories: Directories<'_>) -> Result<Value, &'static str> {
        T::resolved(written, directories)
    }
}

/// A single value is a list of one.
impl<T: SettingValue> SettingValue for Vec<T> {
    fn schema() -> serde_json::Value {
        json!({ "anyOf": [T::schema(), { "type": "array", "items": T::schema() }] })
    }

    fn redacted(written: Value) -> Option<Value> {
        match written {
            Value::Array(items) => {
                let items = items.into_iter().map(T::redacted);
                items.collect::<Option<_>>().map(Value::Array)
            }
            one => T::redacted(one),
        }
    }

    fn resolved(written: Value, directories: Directories<'_>) -> Result<Value, &'static str> {
        match written {
            Value::Array(items) => {
                let items = items.into_iter();
                let items = items.map(|item| T::resolved(item, directories));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            one => T::resolved(one, directories),
        }
    }
}

/// The path of a file that is read.
impl SettingValue for PathBuf {
    fn resolved(written: Value, directories: Directories<'_>) -> Result<Value, &'static str> {
        absolute(written, directories.file)
    }
}

/// The path of a file that the process writes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct DataPath(pub PathBuf);

impl SettingValue for DataPath {
    fn resolved(written: Value, directories: Directories<'_>) -> Result<Value, &'static str> {
        absolute(written, directories.data)
    }
}

fn absolute(written: Value, directory: &Path) -> Result<Value, &'static str> {
    match written {
        Value::String(text) if text.contains(char::is_control) => Err(CONTROL_CHARACTER),
        Value::String(text) if text.is_empty() => Err("it is empty; name the file"),
        Value::String(text) => Ok(directory.join(text).to_string_lossy().into_owned().into()),
        other => Ok(other),
    }
}

/// A value that is written in TOML, or else a string.
pub fn value_of(text: &str) -> Value {
    let value = ValueDeserializer::parse(text).and_then(Value::deserialize);
    value.unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// URLs without the parts that may be a name, a password or a key: the text before the `@`, and the query. If these
/// parts cannot be separated with certainty, only the scheme is left.
pub fn without_password(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(match text.split_once("://") {
            Some((scheme, rest)) => {
                let (place, query) = rest
                    .split_once(['?', '#'])
                    .map_or((rest, None), |(place, query)| (place, Some(query)));
                let (hidden, host) = match place.rsplit_once('@') {
                    _ if query.is_some_and(|query| query.contains('@')) => ("…", ""),
                    Some((_, host)) => ("…@", host),
                    None => ("", place),
                };
                let query = query.map_or("", |_| "?…");
                format!("{scheme}://{hidden}{host}{query}")
            }
            None => text,
        }),
        Value::Array(items) => Value::Array(items.into_iter().map(without_password).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type whose name says nothing of what it holds.
    struct Plain;

    impl SettingValue for Plain {
        fn redacted(_: Value) -> Option<Value> {
            None
        }
    }

    #[test]
    fn secrets_are_never_shown_whatever_type_holds_them() {
        type Renamed = Option<Plain>;
        let secret = || Value::from("hunter2");
        let list = || Value::from(vec!["hunter2"]);
        for redacted in [
            ValueType::new::<Plain>().redacted,
            ValueType::new::<Renamed>().redacted,
            ValueType::new::<Vec<Plain>>().redacted,
            ValueType::new::<Option<Vec<Plain>>>().redacted,
        ] {
            assert_eq!((redacted(secret()), redacted(list())), (None, None));
        }
        let url = || Value::from("postgres://me:hunter2@db/x");
        let shown = Some(Value::from("postgres://…@db/x"));
        assert_eq!(Option::<String>::redacted(url()), shown);
        assert_eq!(Vec::<PathBuf>::redacted(url()), shown);
    }

    #[test]
    fn paths_become_absolute_whatever_type_holds_them() {
        let directories = Directories {
            file: Path::new("/etc"),
            data: Path::new("/data"),
        };
        let resolved = |value: ValueType, written: &str| {
            let one = (value.resolved)(written.into(), directories)?;
            let list = (value.resolved)(vec![written].into(), directories);
            assert!(list.is_ok(), "{written}");
            Ok(one.as_str().unwrap_or_default().to_owned())
        };
        for (value, expected) in [
            (ValueType::new::<PathBuf>(), "/etc/a"),
            (ValueType::new::<Option<PathBuf>>(), "/etc/a"),
            (ValueType::new::<Vec<PathBuf>>(), "/etc/a"),
            (ValueType::new::<Option<DataPath>>(), "/data/a"),
            (ValueType::new::<String>(), "a"),
        ] {
            assert_eq!(resolved(value, "a").as_deref(), Ok(expected));
            assert_eq!(resolved(value, "a\n"), Err(CONTROL_CHARACTER));
        }
    }
}
