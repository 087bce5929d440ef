//! The settings of used nonces.

use std::{num::NonZeroU64, path::PathBuf, time::Duration};

use super::{OnLost, local::WindowParams};
use crate::{
    base::settings::{DataPath, choices, section},
    wire::url::database::StoreUrl,
};

section! {
    /// Used nonces, by which a replayed request is rejected.
    NonceSettings["nonce"] {
        /// "local": this process alone; "shared": in the store or nonce.url, for replicas.
        scope: Option<NonceScope> [else "local with sqlite, else shared": "local"], restart;
        /// A Redis or Valkey for shared nonces, beside "postgres": redis://, rediss:// for TLS, redis+sentinel:// or
        /// redis+cluster://. See docs/stores.md.
        url: Option<StoreUrl> [else "none": "redis://nonces.internal"], restart;
        /// Past it signed requests get 503; no valid nonce is forgotten. 10 to 25 bytes each in memory, and 16 on the disk.
        max_entries: NonZeroU64 = 50_000_000, restart;
        /// The nonce log, of one process at a time.
        path: Option<DataPath> [else "beside the SQLite file": "countersign.db.nonces"], restart;
        /// After a loss of nonces: "refuse" signed requests until no earlier one could be replayed, or "accept" them at once.
        on_lost: OnLost = "refuse", reload;
    }
}

impl NonceSettings {
    /// The window of this process, of the longest window of timestamps. `scope` and `path` are as written, or follow from
    /// the store.
    pub fn window(
        &self,
        scope: NonceScope,
        path: Option<PathBuf>,
        longest: Duration,
    ) -> WindowParams {
        WindowParams {
            // Shared nonces are not lost with a process.
            path: path.filter(|_| scope == NonceScope::Local),
            window: longest,
            max_entries: self.max_entries.get(),
        }
    }
}

/// The memory of used nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NonceScope {
    /// In this process.
    Local,
    /// In the store, for several replicas.
    Shared,
}

choices!(NonceScope, OnLost);
