//! The settings of the store.

use std::{path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;

use super::{
    open::{Backend, StoreParams},
    postgres::{PostgresUrl, PostgresUrlError},
};
use crate::{
    base::settings::{DAY, LONGEST, deserialize_text, distinct, duration, one_of, section, texts},
    records::values::{
        ExternalRecords,
        opening::Opening,
        seal::{KeyFileError, SealKey},
    },
    wire::{address::EndpointUrl, url::database::StoreUrl},
};

section! {
    /// The storage of consumers, users and tokens.
    StoreSettings["store"] {
        /// "sqlite": one file. "postgres": a server, which other machines can share.
        backend: StoreBackend = "sqlite", restart;
        /// The path of the file, or "postgres://USER:PASSWORD@HOST/DATABASE", encrypted and with the certificate checked unless
        /// on this machine. See docs/stores.md.
        url: StoreUrl = "countersign.db", restart;
        /// The file of a 32-byte key that encrypts secrets at rest, or a list: the first encrypts, all decrypt, and countersign
        /// rekey encrypts everything again.
        #[serde(default, deserialize_with = "distinct")]
        encryption_key_file: Vec<PathBuf> [else "none": "store.key"], restart;
    }
}

section! {
    /// Consumers and access tokens of your application, looked up at its URL if they are not registered here. See
    /// docs/lookup.md.
    #[derive(Default)]
    LookupSettings["store.lookup"] {
        /// The URL to which a consumer key or a token is posted, or "unix:" with the path of a socket, a colon and the URL's
        /// path. https unless its host is loopback.
        url: Option<EndpointUrl> [else "none": "http://127.0.0.1:9000/internal/oauth"], restart;
        /// The file of the secret that each request has, in Authorization after "Bearer".
        secret_file: Option<PathBuf> [else "none": "lookup.secret"], restart;
        /// Time for a record, all in all; then its call gets 503.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] timeout: Duration = "2s", restart;
        /// The authorities to trust there, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "shop-ca.pem"], restart;
        /// Our own certificate, PEM, for an application that demands one.
        certificate: Option<PathBuf> [else "none": "client.pem"], restart;
        /// Its private key, PEM.
        private_key: Option<PathBuf> [else "none": "client-key.pem"], restart;
    }
}

section! {
    /// The removal of tokens.
    #[derive(Copy)]
    EndedTokenSettings["tokens"] {
        /// Access tokens are removed this long after they ended. Their calls stay rejected. See docs/operating.md.
        #[serde(deserialize_with = "duration::<DAY, LONGEST, _>")] keep_expired: Duration = "30d", restart;
    }
}

/// A setting of the store that cannot be used.
#[derive(Debug, Error)]
pub enum StoreSettingError {
    /// A URL of PostgreSQL.
    #[error("store.url: {0}")]
    Url(#[from] PostgresUrlError),
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

    /// The location and the keys of the store, to be opened with these records of an application.
    ///
    /// # Errors
    /// [`StoreSettingError`]
    pub fn params(
        &self,
        opening: Opening,
        external: Option<Arc<dyn ExternalRecords>>,
    ) -> Result<StoreParams, StoreSettingError> {
        Ok(StoreParams {
            backend: match self.file() {
                Some(path) => Backend::Sqlite(path),
                None => Backend::Postgres(Box::new(PostgresUrl::parse(self.url.expose())?)),
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
deserialize_text!(StoreBackend);
