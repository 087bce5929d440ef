//! The read that an entry is from, and whether a change was announced since.
//!
//! [`Announced`] counts announcements of changes. A read remembers the count from before it. Announcing a change raises
//! the count and then removes the entry. So an entry in moka is current if the count is still that of its read. Once
//! that is confirmed, the entry stays current while it is in moka, because a later announcement removes it.
//!
//! A token refers to its consumer, which moka may have dropped, so that a later announcement does not reach it. The consumer of a
//! token is therefore looked up in moka too.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use crate::{base::clock::UnixTime, records::values::use_cases::Source};

/// The announced changes of all kinds of records.
#[derive(Debug, Default)]
pub(super) struct Announced {
    pub(super) generation: AtomicU64,
    /// Everything read before this generation is out of date.
    everything: AtomicU64,
    /// The beginning of the last completed read of the feed, in seconds since 1970.
    pub(super) feed_read_at: AtomicU32,
}

impl Announced {
    /// Announces changes: their entries are removed after this.
    pub(super) fn advance(&self) -> u64 {
        self.generation.fetch_add(1, SeqCst) + 1
    }

    /// Announces that every record may have changed.
    pub(super) fn advance_everything(&self) {
        self.everything.store(self.advance(), SeqCst);
    }

    /// The feed was read to its end by a read that began at `at`.
    pub(super) fn set_feed_read_at(&self, at: UnixTime) {
        self.feed_read_at.store(in_32_bits(at), SeqCst);
    }

    pub(super) fn is_unchanged_since(&self, stamp: &Stamp) -> bool {
        self.generation.load(SeqCst) == stamp.generation
    }

    /// Whether an entry that was found in moka is current.
    pub(super) fn is_current(&self, stamp: &Stamp) -> bool {
        let is_confirmed = stamp.is_confirmed.load(SeqCst);
        if !is_confirmed && self.is_unchanged_since(stamp) {
            stamp.is_confirmed.store(true, SeqCst);
            return true;
        }
        is_confirmed && stamp.generation >= self.everything.load(SeqCst)
    }
}

/// The read that an entry is from.
#[derive(Debug)]
pub(super) struct Stamp {
    /// The generation from before the read.
    pub(super) generation: u64,
    /// While the entry was in moka, no change had been announced since.
    is_confirmed: AtomicBool,
    /// The record is not in the store: a feed without a change of it does not show that it is still the same.
    pub(super) is_external: bool,
    /// The beginning of the read, or of the last one that found the same, in seconds since 1970.
    pub(super) read_at: AtomicU32,
    /// The time when the store last failed to tell whether it is still so.
    pub(super) failed_at: AtomicU32,
}

impl Stamp {
    pub(super) fn new(generation: u64, read_at: UnixTime) -> Self {
        Self {
            generation,
            is_confirmed: AtomicBool::new(false),
            is_external: false,
            read_at: AtomicU32::new(in_32_bits(read_at)),
            failed_at: AtomicU32::new(0),
        }
    }

    /// That of an entry that is in no cache.
    pub(super) fn outside() -> Self {
        Self::new(0, UnixTime(0))
    }

    /// Notes where the record was found.
    pub(super) fn found_in(self, source: Source) -> Self {
        Self {
            is_external: source == Source::External,
            ..self
        }
    }
}

/// Whether at `now` less than `span` has passed since `at`. A clock that was set back makes everything old.
pub(super) fn is_within(at: &AtomicU32, span: Duration, now: UnixTime) -> bool {
    let at = UnixTime(at.load(SeqCst).into());
    at <= now && now < at.after(span)
}

/// A time in half the memory. After the year 2106 nothing is fresh.
pub(super) fn in_32_bits(time: UnixTime) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}
