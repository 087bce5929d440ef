//! Rows of any engine as records, and the values of columns.
//!
//! Columns have the names of the record's fields. Times are seconds since 1970, lists are JSON, and secrets have the
//! form that [`Seal`] gives them.

use std::{borrow::Cow, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest as hash};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, IntoDeserializer, Visitor, value::Error, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::Value as Json;

use super::{
    Result, StoreError,
    port::Change,
    record::{AccessToken, Consumer, ConsumerUse, RequestToken, RequestTokenState, Session, User},
    seal::{Seal, field},
};
use crate::base::{clock::UnixTime, secret::Secret};

/// A value of a column, or of a parameter of a statement.
#[derive(Debug, Clone)]
pub enum Value {
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
pub struct Row {
    /// The names of the columns.
    pub columns: Arc<[String]>,
    /// Their values.
    pub values: Vec<Value>,
}

impl Row {
    fn value(&self, column: &str) -> Result<&Value> {
        let place = self.columns.iter().position(|name| name == column);
        let value = place.and_then(|place| self.values.get(place));
        value.ok_or(StoreError::Broken("a column is missing"))
    }

    /// A value that is not bytes; that of an `Option` may be missing.
    pub(super) fn get<'de, T: Deserialize<'de>>(&'de self, column: &str) -> Result<T> {
        T::deserialize(Cell(self.value(column)?)).map_err(broken)
    }

    pub(super) fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>> {
        match self.value(column)? {
            Value::Bytes(bytes) => Ok(Some(bytes.clone())),
            Value::Null => Ok(None),
            _ => Err(StoreError::Broken("a column has a value of another type")),
        }
    }

    /// A record whose fields have the names of columns; secrets are not among them.
    ///
    /// A field without its column is an error, also one that an import may leave out.
    fn record<'de, T: Deserialize<'de> + Serialize>(&'de self) -> Result<T> {
        let cells = self.columns.iter().zip(&self.values);
        let cells = cells.map(|(name, value)| (name.as_str(), Cell(value)));
        let record = T::deserialize(MapDeserializer::new(cells)).map_err(broken)?;
        for (field, _) in columns(&record)? {
            if field != "previous_secret_until" {
                self.value(&field)?;
            }
        }
        Ok(record)
    }

    fn secret(
        &self,
        seal: &Seal,
        column: &str,
        field: &'static str,
        record: &str,
    ) -> Result<Option<Secret>> {
        let kept = self.bytes(column)?;
        kept.map(|kept| seal.open(field, record, &kept)).transpose()
    }
}

fn broken(_: Error) -> StoreError {
    StoreError::Broken("a column has a value of another type")
}

/// A value as serde reads it: times are seconds, lists are JSON, texts have the form that [`kept_text`] gives them.
struct Cell<'de>(&'de Value);

impl<'de> IntoDeserializer<'de, Error> for Cell<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Cell<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Text(text) => visitor.visit_str(&free_text(text)),
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Integer(number) => visitor.visit_bool(*number != 0),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(list) => serde_json::Deserializer::from_str(list)
                .deserialize_seq(visitor)
                .map_err(Error::custom),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A text of any characters as a column holds it: PostgreSQL has no NUL, so it and the character that marks an escape are
/// escaped.
pub(super) fn kept_text(text: &str) -> String {
    text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0")
}

/// The text that [`kept_text`] was given.
fn free_text(kept: &str) -> Cow<'_, str> {
    match kept.contains('\u{1}') {
        true => Cow::Owned(kept.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")),
        false => Cow::Borrowed(kept),
    }
}

/// The columns of a record, without its secrets.
pub(super) fn columns(record: &impl Serialize) -> Result<Vec<(String, Value)>> {
    const UNWRITABLE: StoreError = StoreError::Broken("a record cannot be written");
    let Ok(Json::Object(members)) = serde_json::to_value(record) else {
        return Err(UNWRITABLE);
    };
    let column = |(name, member): (String, Json)| {
        let value = match member {
            Json::Null => Value::Null,
            Json::Bool(flag) => flag.into(),
            Json::Number(number) => number.as_i64().ok_or(UNWRITABLE)?.into(),
            Json::String(_) if name.ends_with("_at") => {
                let time: UnixTime = serde_json::from_value(member).map_err(|_| UNWRITABLE)?;
                time.into()
            }
            Json::String(text) => kept_text(&text).into(),
            list => list.to_string().into(),
        };
        Ok((name, value))
    };
    members.into_iter().map(column).collect()
}

/// Reads a row as a record.
pub(super) type Read<T> = fn(&Row, &Seal) -> Result<T>;

/// Reads a row of `consumers`.
pub(super) fn consumer(row: &Row, seal: &Seal) -> Result<Consumer> {
    let read: Consumer = row.record()?;
    let secret = |column, field| row.secret(seal, column, field, read.key.as_str());
    let previous = secret("previous_secret", field::CONSUMER_PREVIOUS)?;
    Ok(Consumer {
        secret: needed(secret("secret", field::CONSUMER)?)?,
        previous_secret: previous.zip(row.get("previous_until")?),
        ..read
    })
}

/// Reads a row of `consumer_uses`.
pub(super) fn consumer_use(row: &Row, _: &Seal) -> Result<ConsumerUse> {
    row.record()
}

/// Reads a row of `users`.
pub(super) fn user(row: &Row, seal: &Seal) -> Result<User> {
    let read: User = row.record()?;
    Ok(User {
        password_hash: row.secret(seal, "password_hash", field::USER, read.id.as_str())?,
        ..read
    })
}

/// Reads a row of `access_tokens`.
pub(super) fn access_token(row: &Row, seal: &Seal) -> Result<AccessToken> {
    let read: AccessToken = row.record()?;
    let secret = row.secret(seal, "secret", field::ACCESS_TOKEN, &read.token)?;
    Ok(AccessToken {
        secret: needed(secret)?,
        ..read
    })
}

/// Reads the identifier of a token.
pub(super) fn token(row: &Row, _: &Seal) -> Result<String> {
    row.get("token")
}

/// Reads a row of `request_tokens`.
pub(super) fn request_token(row: &Row, seal: &Seal) -> Result<RequestToken> {
    let mut read: RequestToken = row.record()?;
    let secret = row.secret(seal, "secret", field::REQUEST_TOKEN, &read.token)?;
    read.secret = needed(secret)?;
    if let RequestTokenState::Authorized { verifier, .. } = &mut read.state {
        *verifier = needed(row.secret(seal, "verifier", field::VERIFIER, &read.token)?)?;
    }
    Ok(read)
}

/// Reads a row of `sessions`.
pub(super) fn session(row: &Row, _: &Seal) -> Result<Session> {
    let id_hash = needed(row.bytes("id_hash")?)?;
    let other_length = |_| StoreError::Broken("the hash of a session id does not have 32 bytes");
    Ok(Session {
        id_hash: id_hash.try_into().map_err(other_length)?,
        user: row.get("user")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        browser: row.get("browser")?,
        system: row.get("system")?,
    })
}

/// Reads a row of `changes`.
pub(super) fn change(row: &Row, _: &Seal) -> Result<Change> {
    row.record()
}

/// A time as a column holds it; the greatest signed integer for later times, which is far after every real date.
pub(super) fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// A list as a column holds it.
pub(super) fn json<T: Serialize>(list: &[T]) -> Result<String> {
    serde_json::to_string(list).map_err(|_| StoreError::Broken("a list cannot be written"))
}

/// The SHA-256 of a replaced password hash, as a column holds it.
pub(super) fn digest(replaced: &Secret) -> Vec<u8> {
    hash(&SHA256, replaced.expose()).as_ref().to_vec()
}

/// A value that every record has.
pub(super) fn needed<T>(value: Option<T>) -> Result<T> {
    value.ok_or(StoreError::Broken("a value is missing"))
}
