//! Which nonces have been used (RFC 5849 §3.3): "The nonce value MUST be unique across all requests with the same
//! timestamp, client credentials, and token combinations."
//!
//! [`LocalWindow`] keeps them for one process, in memory that is a file: exact, bounded, about 13 bytes each, there
//! again after `kill -9`, and without a system call per request. Opening it tells what became of earlier runs
//! ([`Continuity`]), from which and the store's mark follows how long nothing may be accepted ([`Gap`]).
//!
//! ```text
//! local     the window: insert, expire, close    open      making it or taking it up
//! bucket    one second, in 16 shards             gap       what may have been lost
//! segment   61 fingerprints                      idle      when a second is out of use
//! memory    segments for all buckets             recover   reading the file back
//! map       the mapped file                      header    its first page
//! ```

mod boot;
mod bucket;
mod fingerprint;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gap;
mod header;
mod idle;
mod local;
mod map;
mod memory;
mod open;
mod recover;
mod segment;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use gap::{Continuity, Gap, MARK_AHEAD, MARK_EVERY, OnLost, mark_covers, next_mark};
pub use local::LocalWindow;
pub use open::{OpenError, Opened, Params};

use crate::clock::UnixTime;

/// What became of a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// It was not there and is now: the one result that lets a request pass.
    Fresh,
    /// It is there: the request is a repetition (401 `nonce_used`).
    Used,
    /// There is no room, or the window is closed; nothing was changed (503).
    Full,
    /// Nonces of this time may have been lost, so nobody knows (503).
    Lost,
    /// Its timestamp lies where nonces have been dropped already (401 `timestamp_refused`). Only after a change of the
    /// clock or of the window can it still be inside the window.
    Forgotten,
}

/// Where nonces are kept (`nonce.scope`).
pub enum NonceWindow {
    /// In this process.
    Local(LocalWindow),
}

impl NonceWindow {
    /// Inserts a nonce if it is not there; atomic. See [`LocalWindow::insert`].
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped may have inserted the nonce.
    pub async fn insert(
        &self,
        now: UnixTime,
        timestamp: u64,
        consumer: &[u8],
        token: &[u8],
        nonce: &[u8],
    ) -> Insertion {
        match self {
            Self::Local(window) => window.insert(now, timestamp, consumer, token, nonce),
        }
    }
}

/// Locks, also after a panic of another holder: what the locks guard is valid after every single step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
