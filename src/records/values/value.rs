//! Values of columns and of parameters, and the Rust types that they are read as: times are seconds since 1970, and lists
//! are JSON.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use serde::{
    Serialize,
    de::{
        DeserializeOwned, IntoDeserializer,
        value::{Error, StrDeserializer},
    },
};
use serde_json::Value as Json;

use super::{Result, StoreError};
use crate::base::{
    clock::UnixTime,
    rate::Rate,
    text::names::{ConsumerKey, UserId},
};

/// A value of a column, or of a parameter of a statement.
#[derive(Debug, Clone)]
pub(in crate::records) enum Value {
    /// A missing value.
    Null,
    /// A number, a time, or 0 and 1 for no and yes.
    Integer(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

macro_rules! values {
    ($($from:ty: $value:pat => $to:expr;)+) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $to
            }
        }
    )+};
}

values! {
    i64: number => Self::Integer(number);
    bool: flag => Self::Integer(flag.into());
    UnixTime: time => Self::Integer(seconds(time));
    &str: text => Self::Text(text.to_owned());
    String: text => Self::Text(text);
    Vec<u8>: bytes => Self::Bytes(bytes);
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row, read by column.
///
/// # Errors
/// Every method: [`StoreError::Broken`] if a column is missing or has a value of another type.
#[derive(Debug)]
pub(in crate::records) struct Row {
    /// The names of the columns.
    pub(in crate::records) columns: Arc<[String]>,
    /// Their values.
    pub(in crate::records) values: Vec<Value>,
}

const OTHER_TYPE: StoreError = StoreError::Broken("a column has a value of another type");

impl Row {
    /// A row of values as an engine converts them.
    pub(in crate::records) fn new<E>(
        columns: &Arc<[String]>,
        value: impl Fn(usize) -> Result<Value, E>,
    ) -> Result<Self> {
        let values = (0..columns.len()).map(value).collect::<Result<_, _>>();
        Ok(Self {
            values: values.map_err(|_| OTHER_TYPE)?,
            columns: Arc::clone(columns),
        })
    }

    fn value(&self, column: &str) -> Result<&Value> {
        let index = self.columns.iter().position(|name| name == column);
        let value = index.and_then(|index| self.values.get(index));
        value.ok_or(StoreError::Broken("a column is missing"))
    }

    /// A value that is not bytes; that of an `Option` may be missing.
    pub(in crate::records) fn get<T: ColumnType>(&self, column: &str) -> Result<T> {
        T::read(self.value(column)?).ok_or(OTHER_TYPE)
    }

    /// Bytes; `None`: the value is missing.
    pub(in crate::records) fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>> {
        match self.value(column)? {
            Value::Bytes(bytes) => Ok(Some(bytes.clone())),
            Value::Null => Ok(None),
            _ => Err(OTHER_TYPE),
        }
    }
}

/// A type of fields of records, each of which is one column.
pub(in crate::records) trait ColumnType: Sized {
    /// `None`: the column has a value of another type.
    fn read(value: &Value) -> Option<Self>;

    /// # Errors
    /// [`StoreError::Broken`]: it cannot be written.
    fn write(&self) -> Result<Value>;
}

impl ColumnType for i64 {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }
}

impl ColumnType for u32 {
    fn read(value: &Value) -> Option<Self> {
        i64::read(value)?.try_into().ok()
    }

    fn write(&self) -> Result<Value> {
        Ok(i64::from(*self).into())
    }
}

impl ColumnType for bool {
    fn read(value: &Value) -> Option<Self> {
        Some(i64::read(value)? != 0)
    }

    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }
}

impl ColumnType for UnixTime {
    fn read(value: &Value) -> Option<Self> {
        i64::read(value)?.try_into().ok().map(Self)
    }

    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }
}

impl ColumnType for String {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(unescaped(text).into_owned()),
            _ => None,
        }
    }

    fn write(&self) -> Result<Value> {
        Ok(escaped(self).into())
    }
}

impl<T: ColumnType> ColumnType for Option<T> {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }

    fn write(&self) -> Result<Value> {
        self.as_ref().map_or(Ok(Value::Null), T::write)
    }
}

/// A list is JSON.
impl<T: Serialize + DeserializeOwned> ColumnType for Vec<T> {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(list) => serde_json::from_str(list).ok(),
            _ => None,
        }
    }

    fn write(&self) -> Result<Value> {
        json(self).map(Value::Text)
    }
}

/// Types of names and words, whose columns have the text that serde writes.
macro_rules! words {
    ($($word:ty)+) => {$(
        impl ColumnType for $word {
            fn read(value: &Value) -> Option<Self> {
                $crate::records::values::value::word(value)
            }

            fn write(&self) -> Result<Value> {
                $crate::records::values::value::word_value(self)
            }
        }
    )+};
}
pub(in crate::records) use words;

words! { ConsumerKey UserId Rate IpAddr }

/// The name or word that a column holds.
pub(in crate::records) fn word<T: DeserializeOwned>(value: &Value) -> Option<T> {
    let Value::Text(text) = value else {
        return None;
    };
    let text: StrDeserializer<'_, Error> = text.as_str().into_deserializer();
    T::deserialize(text).ok()
}

/// A name or a word as a column holds it.
pub(in crate::records) fn word_value(word: &impl Serialize) -> Result<Value> {
    match serde_json::to_value(word) {
        Ok(Json::String(text)) => Ok(text.into()),
        _ => Err(StoreError::Broken("a word cannot be written")),
    }
}

/// Reads and writes the fields of a record that are columns of the same name. Those after the semicolon are the secrets, and
/// others that are not a column each.
macro_rules! columns {
    ($record:ident: $($field:ident)+; $($other:ident: $type:ty),+) => {
        impl $record {
            /// Reads a row; the other fields are given.
            pub(in crate::records) fn from_row(row: &Row, $($other: $type),+) -> Result<Self> {
                Ok(Self {
                    $($field: row.get(stringify!($field))?,)+
                    $($other),+
                })
            }

            /// The columns for an insertion, without those of the other fields.
            pub(in crate::records) fn columns(&self) -> Result<Vec<(&'static str, Value)>> {
                Ok(vec![$((stringify!($field), self.$field.write()?)),+])
            }
        }
    };
}
pub(in crate::records) use columns;

/// A text of any characters as a column holds it: PostgreSQL has no NUL, so it and the character that marks an escape are
/// escaped.
pub(in crate::records) fn escaped(text: &str) -> String {
    text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0")
}

/// The text that [`escaped`] was given.
fn unescaped(text: &str) -> Cow<'_, str> {
    match text.contains('\u{1}') {
        true => Cow::Owned(text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")),
        false => Cow::Borrowed(text),
    }
}

/// A time as a column holds it; the greatest signed integer for later times, which is far after every real date.
pub(in crate::records) fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// A list as a column holds it.
pub(in crate::records) fn json<T: Serialize>(list: &[T]) -> Result<String> {
    serde_json::to_string(list).map_err(|_| StoreError::Broken("a list cannot be written"))
}

/// A value that every record has.
pub(in crate::records) fn needed<T>(value: Option<T>) -> Result<T> {
    value.ok_or(StoreError::Broken("a value is missing"))
}
