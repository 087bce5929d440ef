//! The nonces that have been used (RFC 5849 §3.3): "The nonce value MUST be unique across all requests with the same
//! timestamp, client credentials, and token combinations."
//!
//! ```text
//! local     the window of one process: a bucket for each second
//! bucket    the nonces of one second: fingerprints, in shards
//! journal   its files: the state, and the log of nonces from which a start fills the sets
//! segment   one memory-mapped file of the log
//! state     the other facts that a start needs
//! key       fingerprints and checksums
//! shared    the window of all replicas, as its backends have in common
//! redis     that window in Redis; the one in PostgreSQL is `store/postgres/nonce_window`
//! windows   the local window and the shared one, as verification asks them
//! ```
//!
//! # Nonces that may be missing
//!
//! The store keeps a *high-water mark*: a timestamp later than any that a process may have accepted, written ahead of
//! time and never lowered. If a start finds that nonces of an earlier run are missing, because the file was removed, is
//! damaged or an old copy, or because the machine lost power, then no timestamp up to that mark is ever accepted.
//!
//! An old copy is noticed by its version ([`NonceFiles`]), which file and store get at each start, at each clean stop, and
//! with each mark. Only a copy that was taken while a process ran, less than [`MARK_EVERY`] before that process was
//! killed, has the same version as the files that it replaces.

mod bucket;
#[cfg(fuzzing)]
pub mod fuzzing;
mod journal;
mod key;
mod local;
pub mod redis;
mod segment;
pub mod settings;
pub(in crate::records) mod shared;
mod state;
#[cfg(test)]
mod tests;
mod windows;

use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest;
use thiserror::Error;

pub use journal::was_used;
pub use local::{LocalWindow, Opened, WindowParams};
pub use state::{WindowOpenError, check_file};
pub use windows::{Elsewhere, NonceError, NonceFault, Nonces};

use crate::base::clock::UnixTime;

/// The time that [`next_high_water_mark`] reaches ahead.
pub const MARK_AHEAD: Duration = Duration::from_secs(60);
/// The interval at which it is written: twice before it is reached, so that one failed write does no harm.
pub const MARK_EVERY: Duration = Duration::from_secs(30);

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// It was not there and is now: the one result that lets a request pass.
    Fresh,
    /// It is there: the request is a repetition (401 `nonce_used`).
    Used,
    /// There is no room; nothing was changed (503).
    Full,
    /// The window was closed, because this process ends; nothing was changed (503).
    Closed,
    /// Nonces of this timestamp may be missing (503).
    Lost,
    /// Nonces of this timestamp have been dropped (401 `timestamp_refused`). Only after a change of the clock or of the
    /// window can it still be inside the window.
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

/// The files of a local window at one moment. Each state of a window that the store knows has a higher version than those before,
/// so files with a lower one are an old copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonceFiles {
    /// The random name of the window.
    pub id: String,
    /// The number of the state.
    pub version: u64,
}

impl NonceUse<'_> {
    /// The form in which a shared window keeps it: half of a SHA-256. It reveals nothing, and an attacker cannot find another
    /// use with the same one.
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

/// The reaction to lost nonces (`nonce.on_lost`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    /// Reject signed requests until nothing can be replayed.
    #[default]
    Refuse,
    /// Serve at once: requests of the last minutes may be replayed.
    Accept,
}

/// The high-water mark to write into the store at `now`: a timestamp above any that is accepted within [`MARK_AHEAD`].
/// Write it before the first request is accepted and then every [`MARK_EVERY`].
pub fn next_high_water_mark(now: UnixTime, window: Duration) -> UnixTime {
    now.after(window).after(MARK_AHEAD)
}

/// Why every signed request, or every one whose clock is right, is rejected at present.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Outage {
    /// Nonces of an earlier run are missing, or records were imported from a store whose nonces are not known here.
    #[error(
        "nonces of an earlier run are lost, or records were imported from a store whose nonces are not known here: \
         signed requests get 503 until {until}; nonce.on_lost = \"accept\" waives this"
    )]
    Lost {
        /// The last timestamp that is rejected.
        until: UnixTime,
    },
    /// The engine that keeps the nonces of all replicas is not the one that recorded them, or was restarted.
    #[error(
        "the engine that keeps nonces was restarted, restored or has failed over, and nonces may be lost: signed \
         requests get 503 until {until}; nonce.on_lost = \"accept\" waives this"
    )]
    LostShared {
        /// The last timestamp that is rejected.
        until: UnixTime,
    },
    /// The window of all replicas records nothing.
    #[error("nonces cannot be recorded since {since}, so signed requests get 503: {cause}")]
    Unavailable {
        /// The time when that was noticed.
        since: UnixTime,
        /// The causes.
        cause: String,
    },
    /// The high-water mark in the store does not cover the timestamps that would be accepted now.
    #[error(
        "the store has not been told how far nonces are accepted: signed requests get 503 until it can be written"
    )]
    Unmarked,
    /// Timestamps that have left the window for good are ahead of the clock.
    #[error(
        "timestamps up to {until} have left the nonce window for good, and the clock is not there yet: requests are \
         refused until then; if it is the clock that was wrong, stop, remove the file of nonce.path, and start with \
         nonce.on_lost = \"accept\""
    )]
    ClockSetBack {
        /// The last timestamp that is rejected.
        until: UnixTime,
    },
}

/// A nonce window that several processes share (`nonce.scope = "shared"`). Each process asks its [`LocalWindow`] first,
/// which rejects what this process has seen, and forwards a request only after this window has returned
/// [`Insertion::Fresh`].
///
/// # What must be atomic
///
/// The check and the insertion are one step of the backend: of any number of calls with the same [`NonceUse`], in all
/// processes, exactly one returns [`Insertion::Fresh`].
///
/// # What may be lost
///
/// No nonce may be lost for which a call returned [`Insertion::Fresh`], while any process may accept its timestamp:
/// until its clock is past `timestamp + length`. When `length` grows, timestamps that had left the shorter one are
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
#[async_trait]
pub trait SharedWindow: Send + Sync + 'static {
    /// Inserts a nonce if it is not there; atomic. `length` is how far a timestamp may be from `now`, either way. With
    /// [`OnLost::Accept`] no timestamp is [`Insertion::Lost`].
    async fn insert(
        &self,
        now: UnixTime,
        length: Duration,
        on_lost: OnLost,
        nonce: NonceUse<'_>,
    ) -> Result<Insertion, Unavailable>;

    /// The timestamp up to which nonces may have been lost, as far as the insertions of this process have shown.
    fn lost_until(&self) -> UnixTime;

    /// Why all signed requests are rejected at `now`, if they are.
    fn outage(&self, now: UnixTime) -> Option<Outage>;

    /// Inserts a nonce that belongs to no request, so that an outage and its end are noticed even without requests. To
    /// be called once a second.
    async fn maintain(&self, now: UnixTime, length: Duration, on_lost: OnLost);
}

/// The shared window cannot be reached, or is too slow (503).
#[derive(Debug, Error)]
#[error("the shared nonce window is unavailable")]
pub struct Unavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);
