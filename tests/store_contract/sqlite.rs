//! SQLite, its secrets plain and sealed.

use std::{path::PathBuf, sync::Arc};

use countersign::records::{
    store::{Backend as Engine, Store, StoreParams, open_store},
    values::{Opening, seal::SealKey},
};
use tempfile::TempDir;

use crate::store_contract::suite::Backend;

mod plain {
    contract!(crate::store_contract::sqlite::Sqlite<false>);
}

mod sealed {
    contract!(crate::store_contract::sqlite::Sqlite<true>);
}

/// A file in a directory of its own.
pub(crate) struct Sqlite<const SEALED: bool>(TempDir);

impl<const SEALED: bool> Sqlite<SEALED> {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }
}

impl<const SEALED: bool> Backend for Sqlite<SEALED> {
    async fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn engine(&self) -> Engine {
        Engine::Sqlite(self.path())
    }

    async fn open(&self) -> Arc<Store> {
        let key = SEALED.then(|| SealKey::new([7; 32]));
        let params = StoreParams {
            backend: self.engine(),
            keys: key.into_iter().collect(),
            opening: Opening::Serve,
            external: None,
        };
        open_store(params).unwrap()
    }
}
