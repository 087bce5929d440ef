//! One use case as the script takes it, and what it returns.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use redis::{
    ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value, aio::MultiplexedConnection, cmd,
};
use sha1::{Digest, Sha1};

use super::link::{RedisFault, Request};
use crate::{
    clock::UnixTime,
    store::{StoreError, rows::Columns},
};

/// All use cases.
static USE_CASES: Script = Script::new(include_str!("script.lua"));

/// A script that Redis keeps.
pub(super) struct Script {
    text: &'static str,
    /// The name under which Redis keeps it.
    hash: OnceLock<String>,
}

impl Script {
    pub(super) const fn new(text: &'static str) -> Self {
        Self {
            text,
            hash: OnceLock::new(),
        }
    }

    /// Runs it.
    pub(super) async fn run(
        &self,
        keys: &[&[u8]],
        arguments: &[Vec<u8>],
        connection: &mut MultiplexedConnection,
    ) -> Result<Value, RedisError> {
        let hash = self.hash.get_or_init(|| hex(&Sha1::digest(self.text)));
        let command = |name, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        let run = command("EVALSHA", hash).query_async(connection).await;
        match run {
            // Redis has been restarted, or somebody has emptied its cache of scripts.
            Err(error) if is_missing(&error) => {
                command("EVAL", self.text).query_async(connection).await
            }
            result => result,
        }
    }
}

fn is_missing(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The use case and its arguments, behind what the script checks first.
pub(super) struct Step(Vec<Vec<u8>>);

impl Step {
    /// `schema` and `sealed` are those that the store was opened with.
    pub(super) fn new(schema: u64, sealed: &[u8], use_case: &str) -> Self {
        Self(vec![]).number(schema).arg(sealed).arg(use_case)
    }

    pub(super) fn arg(mut self, value: impl AsRef<[u8]>) -> Self {
        self.0.push(value.as_ref().to_vec());
        self
    }

    pub(super) fn number(self, value: impl Into<u64>) -> Self {
        self.arg(value.into().to_string())
    }

    pub(super) fn time(self, time: UnixTime) -> Self {
        self.number(time.0)
    }

    pub(super) fn flag(self, value: bool) -> Self {
        self.number(value)
    }

    pub(super) fn args(mut self, more: Args) -> Self {
        self.0.extend(more.0);
        self
    }

    /// The same for a store that keeps another word.
    pub(super) fn sealed(&self, sealed: &[u8]) -> Self {
        let mut args = self.0.clone();
        args[1] = sealed.to_vec();
        Self(args)
    }
}

impl Request for Arc<Step> {
    async fn send(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        USE_CASES
            .run(&[super::META.as_bytes()], &self.0, connection)
            .await
    }
}

/// Names and values of a record's fields; a field that is absent is left out.
#[derive(Default)]
pub(super) struct Args(pub(super) Vec<Vec<u8>>);

impl Args {
    pub(super) fn field(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.optional(name, Some(value))
    }

    pub(super) fn optional(mut self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        if let Some(value) = value {
            self.0.push(name.as_bytes().to_vec());
            self.0.push(value.as_ref().to_vec());
        }
        self
    }

    pub(super) fn time(self, name: &str, time: impl Into<Option<UnixTime>>) -> Self {
        self.optional(name, time.into().map(|time| time.0.to_string()))
    }

    pub(super) fn flag(self, name: &str, value: bool) -> Self {
        self.field(name, if value { "1" } else { "0" })
    }
}

/// The fields of a record as the script returns them.
pub(super) type Fields = HashMap<String, Vec<u8>>;

/// A record: its key, under the name of the key's column, and its fields.
pub(super) struct Row {
    pub(super) key_column: &'static str,
    pub(super) key: String,
    pub(super) fields: Fields,
}

impl Columns for Row {
    fn text(&self, column: &str) -> Result<Option<String>, StoreError> {
        let text = self.bytes(column)?.map(String::from_utf8).transpose();
        text.map_err(|_| StoreError::Broken("a field is not UTF-8"))
    }

    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if column == self.key_column {
            return Ok(Some(self.key.clone().into_bytes()));
        }
        Ok(self.fields.get(column).cloned())
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        // A time beyond the signed integers is far behind every real date.
        let number = |text: String| text.parse::<u64>();
        let number = self.text(column)?.map(number).transpose();
        let number = number.map_err(|_| StoreError::Broken("a field is no number"))?;
        Ok(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn flag(&self, column: &str) -> Result<Option<bool>, StoreError> {
        match self.fields.get(column).map(Vec::as_slice) {
            None => Ok(None),
            Some(b"0") => Ok(Some(false)),
            Some(b"1") => Ok(Some(true)),
            Some(_) => Err(StoreError::Broken("a field is neither 0 nor 1")),
        }
    }
}

/// Reads what a use case returned.
pub(super) fn read<T: FromRedisValue>(reply: Value) -> Result<T, StoreError> {
    T::from_redis_value(reply).map_err(|_| StoreError::Broken("a reply has another form"))
}

/// Whether the script refused the stamp of a call.
pub(super) fn is_of_stamp(error: &StoreError) -> bool {
    let StoreError::Unavailable(source) = error else {
        return false;
    };
    matches!(source.downcast_ref(), Some(RedisFault::Redis(error)) if error.code() == Some("STAMP"))
}

/// The fault that an error means.
pub(super) fn fault(fault: RedisFault) -> StoreError {
    if let RedisFault::Redis(error) = &fault
        && error.code() == Some("BROKEN")
    {
        return StoreError::Broken("the store in Redis is incomplete");
    }
    fault.into()
}
