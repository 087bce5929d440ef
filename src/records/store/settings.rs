//! The settings of the store.

use std::path::PathBuf;

use crate::{
    base::settings::{Reason, SettingValue, Text, deserialize_text, distinct, section, texts},
    records::url::StoreUrl,
};
use toml::Value;

section! {
    /// The storage of consumers, users and tokens.
    StoreSettings["store"] {
        /// "sqlite": one file, no server. "postgres": a server of PostgreSQL, which other machines can share.
        backend: StoreBackend = "sqlite", restart;
        /// The path of the file, or the URL of the server: "postgres://USER:PASSWORD@HOST/DATABASE". The connection is encrypted and the certificate checked unless the server is on this machine; sslrootcert, sslcert and sslkey name PEM files, sslmode=disable turns it off.
        url: StoreUrl = "countersign.db", restart;
        /// The file of a 32-byte key with which secrets are encrypted at rest, or a list: the first key encrypts, all decrypt, and countersign rekey encrypts everything again. Without it a copy of the store is a copy of every secret.
        #[serde(default, deserialize_with = "distinct")]
        encryption_key_file: Vec<PathBuf> [else "none": "store.key"], restart;
    }
}

section! {
    /// Consumers and access tokens that an existing system keeps in PostgreSQL, with any store.backend: found by queries of your own when they are not registered here. Read only. A key that was removed here, and a token that was revoked here, stay so.
    #[derive(Default)]
    LookupSettings["store.lookup"] {
        /// The URL of the database, in the form of store.url for PostgreSQL. Its role may read the tables of the queries and has no right on the schema countersign: the queries can run code of whoever owns those tables.
        url: Option<StoreUrl> [else "none": "postgres://lookup:PASSWORD@legacy.internal/shop"], restart;
        /// Finds a consumer by its key, $1: columns key, secret, name, permissions, enabled. A row with another key, byte for byte, or an empty secret is not used.
        consumer_sql: Option<Sql> [else "none": "SELECT client_key AS key, secret, name, scopes AS permissions, active AS enabled FROM legacy.clients WHERE client_key = $1"], restart;
        /// Finds an access token, $1: columns token, secret, consumer, user_id, permissions, expires_at, revoked.
        token_sql: Option<Sql> [else "none": "SELECT token, secret, client_key AS consumer, user_id, scopes AS permissions, expires_at, revoked FROM legacy.tokens WHERE token = $1"], restart;
    }
}

/// The kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreBackend {
    /// A file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

texts! {
    StoreBackend: "\"sqlite\" or \"postgres\"" => |text| match text {
        "sqlite" => Ok(Self::Sqlite),
        "postgres" => Ok(Self::Postgres),
        "redis" => Err("Redis keeps shared nonces only (nonce.url): records live in SQLite or PostgreSQL"),
        _ => Err(""),
    };
}
deserialize_text!(Sql, StoreBackend);

/// A query of the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql(pub String);

impl Text for Sql {
    const EXPECTED: &'static str = "a query such as \"SELECT … WHERE key = $1\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if text.trim().is_empty() {
            return Err("it is empty".into());
        }
        // It may have several lines.
        if text.contains('\0') {
            return Err("it has a NUL in it".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl SettingValue for Sql {
    /// A query may have a key in it.
    fn redacted(_: Value) -> Option<Value> {
        None
    }

    /// It may have several lines.
    fn resolved(
        written: Value,
        _: crate::base::settings::Directories<'_>,
    ) -> Result<Value, &'static str> {
        Ok(written)
    }
}
