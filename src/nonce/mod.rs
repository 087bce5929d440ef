//! Which nonces have been used (RFC 5849 §3.3): "The nonce value MUST be unique across all requests with the same
//! timestamp, client credentials, and token combinations."
//!
//! [`LocalWindow`] keeps them for one process, in memory that is a file: exact, bounded, about 13 bytes each, there
//! again after `kill -9`, and without a system call per request. Opening it tells what became of earlier runs
//! ([`Continuity`]), from which and the store's high-water mark follows how long nothing may be accepted
//! ([`Blackout`]).
//!
//! ```text
//! local     the window: insert, expire, close    open      making it or taking it up
//! bucket    one second, in 16 shards             blackout       what may have been lost
//! segment   61 fingerprints                      idle      when a second is out of use
//! memory    segments for all buckets             recover   reading the file back
//! map       the mapped file                      header    its first page
//! look      asking the file from another process
//! ```

mod blackout;
mod boot;
mod bucket;
mod fingerprint;
#[cfg(fuzzing)]
pub mod fuzzing;
mod header;
mod idle;
mod local;
mod look;
mod map;
mod memory;
mod open;
mod recover;
mod segment;
#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_lc_rs::digest;
use thiserror::Error;

pub use blackout::{
    Blackout, Continuity, MARK_AHEAD, MARK_EVERY, OnLost, high_water_mark_covers,
    next_high_water_mark,
};
pub use local::LocalWindow;
pub use look::was_used;
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

/// One use of a nonce; the four together must be unique.
#[derive(Debug, Clone, Copy)]
pub struct NonceUse<'a> {
    /// `oauth_timestamp`.
    pub timestamp: u64,
    /// `oauth_consumer_key`.
    pub consumer: &'a [u8],
    /// `oauth_token`; empty if there is none.
    pub token: &'a [u8],
    /// `oauth_nonce`.
    pub nonce: &'a [u8],
}

impl NonceUse<'_> {
    /// What a shared window keeps of it: half of a SHA-256, from which nothing can be read, and for which nobody finds
    /// another use.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(b"countersign nonce\0");
        hash.update(&self.timestamp.to_be_bytes());
        for part in [self.consumer, self.token, self.nonce] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let half = hash.finish().as_ref().first_chunk().copied();
        half.unwrap_or_default()
    }
}

/// A nonce window that several processes share, behind the [`LocalWindow`] of each (`nonce.scope = "shared"`).
///
/// The local window is asked first and without waiting: what this process has seen is rejected there. What is fresh
/// there is inserted here, and the request is forwarded only after that.
///
/// # What must be atomic
///
/// The check and the insertion are one step of the backend: of any number of calls with the same [`NonceUse`], in all
/// processes, exactly one returns [`Insertion::Fresh`].
///
/// # What may be lost
///
/// No nonce for which a call returned [`Insertion::Fresh`], as long as a process may accept its timestamp: until its
/// clock is past `timestamp + length`. When `length` grows, timestamps that had left the shorter one are
/// [`Insertion::Forgotten`]. A backend never drops a nonce to make room: it returns [`Insertion::Full`]. After a
/// fail-over or a restore from which nonces may be missing, it returns [`Insertion::Lost`] until their timestamps have
/// left.
///
/// The reply may be lost, also to a deadline, which the backend sets itself: the call then returns [`Unavailable`],
/// whether or not the nonce was inserted. The same request sent again is rejected as used.
///
/// # Cancel safety
///
/// A call that is dropped may have inserted the nonce.
pub trait SharedWindow: Send + Sync + 'static {
    /// Inserts a nonce if it is not there; atomic. `length` is how far a timestamp may be from `now`, either way. With
    /// [`OnLost::Accept`] no timestamp is [`Insertion::Lost`].
    fn insert<'a>(
        &'a self,
        now: UnixTime,
        length: Duration,
        on_lost: OnLost,
        nonce: NonceUse<'a>,
    ) -> SharedInsertion<'a>;

    /// Up to which timestamp nonces may have been lost, as far as the insertions of this process have shown.
    fn lost_until(&self) -> UnixTime;
}

/// What [`SharedWindow::insert`] returns.
pub type SharedInsertion<'a> =
    Pin<Box<dyn Future<Output = Result<Insertion, Unavailable>> + Send + 'a>>;

/// The shared window cannot be reached, or is too slow (503).
#[derive(Debug, Error)]
#[error("the shared nonce window is unavailable")]
pub struct Unavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Locks, also after a panic of another holder: what the locks guard is valid after every single step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
