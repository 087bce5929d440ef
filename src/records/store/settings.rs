//! The settings of the store.

use std::{path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
use toml::Value;

use super::{
    open::{Backend, StoreParams},
    opening::Opening,
    postgres::{Lookup, LookupParams, PostgresUrl, PostgresUrlError},
    seal::{KeyFileError, SealKey},
};
use crate::{
    base::settings::{
        DAY, LONGEST, Reason, SettingValue, Text, deserialize_text, distinct, duration, one_of,
        section, texts,
    },
    records::url::StoreUrl,
};

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

section! {
    /// The removal of tokens.
    #[derive(Copy)]
    EndedTokenSettings["tokens"] {
        /// Access tokens are removed from the store this long after they expired or were revoked. Their calls stay rejected, as those of unknown tokens. Those that were only unused for access_idle stay.
        #[serde(deserialize_with = "duration::<DAY, LONGEST, _>")] keep_expired: Duration = "30d", restart;
    }
}

/// A setting of the store that cannot be used.
#[derive(Debug, Error)]
pub enum StoreSettingError {
    /// A URL of PostgreSQL.
    #[error("{key}: {source}")]
    Url {
        /// Its key.
        key: &'static str,
        /// The cause.
        source: PostgresUrlError,
    },
    /// A file with a key for secrets.
    #[error("store.encryption_key_file: {}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: KeyFileError,
    },
}

impl StoreSettings {
    /// The file of the store; `None`: it is on a server, which several machines share.
    pub fn file(&self) -> Option<PathBuf> {
        (self.backend == StoreBackend::Sqlite).then(|| self.url.sqlite_path())
    }

    /// The location and the keys of the store, to be opened with these credentials of an existing system.
    ///
    /// # Errors
    /// [`StoreSettingError`]
    pub fn params(
        &self,
        opening: Opening,
        external: Option<Arc<Lookup>>,
    ) -> Result<StoreParams, StoreSettingError> {
        Ok(StoreParams {
            backend: match self.file() {
                Some(path) => Backend::Sqlite(path),
                None => Backend::Postgres(Box::new(postgres_url("store.url", &self.url)?)),
            },
            keys: self.keys()?,
            opening,
            external,
        })
    }

    /// Reads the keys for secrets, if there are any.
    ///
    /// # Errors
    /// [`StoreSettingError::Key`]
    pub fn keys(&self) -> Result<Vec<SealKey>, StoreSettingError> {
        let paths = self.encryption_key_file.iter();
        let keys = paths.map(|path| {
            let path = path.clone();
            SealKey::read(&path).map_err(|source| StoreSettingError::Key { path, source })
        });
        keys.collect()
    }
}

impl LookupSettings {
    /// The database and the queries, if there is a URL.
    ///
    /// # Errors
    /// [`StoreSettingError::Url`]
    pub fn params(&self) -> Result<Option<LookupParams>, StoreSettingError> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let sql = |sql: &Option<Sql>| sql.as_ref().map(|Sql(text)| text.clone());
        Ok(Some(LookupParams {
            url: postgres_url("store.lookup.url", url)?,
            consumer_sql: sql(&self.consumer_sql),
            token_sql: sql(&self.token_sql),
        }))
    }
}

fn postgres_url(key: &'static str, url: &StoreUrl) -> Result<PostgresUrl, StoreSettingError> {
    PostgresUrl::parse(url.expose()).map_err(|source| StoreSettingError::Url { key, source })
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
    }, one_of(&["sqlite", "postgres"]);
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
