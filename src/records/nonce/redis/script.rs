//! The script that inserts nonces, and replies of Redis as types.

use redis::{
    ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value, aio::MultiplexedConnection, cmd,
};
use sha1::{Digest, Sha1};

use super::link::Request;
use crate::{
    base::text::hexadecimal::hexadecimal,
    records::values::{Result, StoreError},
};

const SCRIPT: &str = include_str!("nonces.lua");

/// One run of `nonces.lua`.
pub(super) struct Insert {
    pub(super) keys: Vec<Vec<u8>>,
    /// The arguments before the durability of the settings.
    pub(super) arguments: [String; 6],
    pub(super) timestamps: Vec<u64>,
}

impl Request for Insert {
    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        is_durable: bool,
    ) -> Result<Value, RedisError> {
        let run = |name, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(self.keys.len());
            command.arg(&self.keys).arg(&self.arguments);
            command.arg(u8::from(is_durable)).arg(&self.timestamps);
            command
        };
        let hash = hexadecimal(&Sha1::digest(SCRIPT));
        match run("EVALSHA", &hash).query_async(connection).await {
            // Redis was restarted, or its cache of scripts was emptied.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                run("EVAL", SCRIPT).query_async(connection).await
            }
            result => result,
        }
    }
}

/// Reads a reply.
///
/// # Errors
/// [`StoreError::Broken`] if it has another type.
pub(super) fn read<T: FromRedisValue>(reply: Value) -> Result<T> {
    T::from_redis_value(reply).map_err(|_| StoreError::Broken("a reply has another form"))
}
