//! The window of one process: insertions, expiry, and the stop.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Insertion, OpenError, Opened, Params,
    boot::{Boot, BootId},
    fingerprint::fingerprint,
    gap::{Gap, MARK_SLACK},
    header::{self, Field, FileKey, HEADER_BLOCKS, MAX_VALUE, Origin},
    lock,
    map::{BLOCK_BYTES, Map},
    open,
    pool::Pool,
    quiet::Quiet,
    recover::Recovered,
    segment::shard_of,
    shard::{Ground, Shard},
};
use crate::clock::UnixTime;

/// Seconds that one call of [`LocalWindow::expire`] drops at most; each takes a few microseconds.
const SECONDS_PER_EXPIRE: usize = 64;
/// What `refused_through` is once the window is closed.
const CLOSED: u64 = u64::MAX;

/// The nonces that this process has accepted and must not accept again.
///
/// An insertion is exact and atomic: of any number of racing insertions of one nonce exactly one is
/// [`Insertion::Fresh`]. It makes no system call, but where memory is needed that `expire` has not got ahead of time.
///
/// # What is kept, and for how long
///
/// A second's nonces are dropped when the wall clock is more than the window past that second, *and* by a clock that
/// does not jump the last of them went in more than a window ago, *and* all seconds before have been dropped. So a
/// wall clock that jumps ahead and is put right within a window loses nothing; the price is that nonces of consumers
/// whose clocks are behind stay for up to two windows. Nonces accepted while the clock was wrong by years stay until
/// it gets there: they count against `max_entries`, because they could be replayed whenever the clock is wrong again.
///
/// The highest dropped second is kept for good (the floor), and nothing at or below it is accepted any more. A clock
/// that is set back therefore never admits what had been dropped. When the window becomes wider, by
/// [`Self::set_length`] or from one run to the next, the floor rises to the last second that had left the narrower one:
/// what has left the window once never comes back, used or not.
///
/// # What survives
///
/// The end of the process in any way, once [`Opened::start`] has returned; a power loss only after [`Self::close`]. What
/// was lost otherwise shows as [`super::Continuity`].
pub struct LocalWindow {
    /// Nothing at or below is accepted: what was dropped, or lost; [`CLOSED`] after the end.
    refused_through: AtomicU64,
    /// Timestamps up to this one may belong to nonces that are lost; 0: none.
    lost_until: u64,
    /// The first second in which insertions are accepted again, if nonces are lost; else 0.
    gap_end: u64,
    ground: Ground,
    shards: Vec<Line<Mutex<Shard>>>,
    seconds: Mutex<Seconds>,
    expiry: Mutex<Quiet>,
    /// The window in seconds: the one place that says how far a timestamp may be from the clock. Changed under `expiry`.
    length: AtomicU64,
    boot: BootId,
    /// Seconds since the boot, and the process's own clock, at the open.
    began: (u64, Instant),
}

/// Keeps neighbours off each other's cache lines.
#[repr(align(128))]
struct Line<T>(T);

/// Which seconds any shard holds.
struct Seconds {
    live: BTreeSet<u64>,
    highest: u64,
}

impl LocalWindow {
    /// Opens the window, made anew or taken up from the file.
    ///
    /// # Errors
    ///
    /// [`OpenError`] tells each; a file that is not ours, or is in use, has not been changed.
    pub fn open(params: &Params, now: UnixTime) -> Result<Opened, OpenError> {
        open::open(params, now, Boot::read())
    }

    /// Looks whether the file can be a window, whoever has it open; changes nothing.
    ///
    /// # Errors
    ///
    /// [`OpenError`], but for what only opening can find.
    pub fn look_at(path: &Path) -> Result<(), OpenError> {
        open::look_at(path)
    }

    pub(super) fn new(
        params: &Params,
        map: Map,
        key: FileKey,
        recovered: Recovered,
        floor: u64,
        boot: Boot,
    ) -> Self {
        let began = boot.uptime.unwrap_or(0);
        let shards = recovered.shards.into_iter();
        Self {
            refused_through: AtomicU64::new(floor),
            lost_until: 0,
            gap_end: 0,
            ground: Ground {
                pool: Pool::new(map, key, recovered.used_blocks, params.path.clone()),
                key,
                entries: AtomicU64::new(recovered.entries),
                max_entries: params.max_entries,
                tick: AtomicU64::new(began),
            },
            shards: shards.map(|shard| Line(Mutex::new(shard))).collect(),
            seconds: Mutex::new(Seconds {
                highest: recovered.seconds.last().copied().unwrap_or(0),
                live: recovered.seconds,
            }),
            expiry: Mutex::new(Quiet::new(params.window.as_secs(), began)),
            length: AtomicU64::new(params.window.as_secs()),
            boot: boot.id,
            began: (began, Instant::now()),
        }
    }

    /// Notes in the file what is lost, and that from now on it is in use.
    pub(super) fn settle(&mut self, gap: Gap, now: UnixTime) -> io::Result<()> {
        let length = self.length();
        (self.lost_until, self.gap_end) = match gap {
            Gap::None => (0, 0),
            Gap::Until(until) => (until.before(length).0, until.0.saturating_add(1)),
        };
        // Zero: no run was there before.
        let earlier = Duration::from_secs(self.header(Field::Window));
        if !earlier.is_zero() && length > earlier {
            self.raise_floor(last_to_leave(now, earlier));
        }
        self.refused_through
            .fetch_max(self.lost_until, Ordering::Relaxed);
        let highest = self.header(Field::Highest);
        {
            let mut seconds = lock(&self.seconds);
            seconds.highest = seconds.highest.max(highest);
        }
        self.write_header(Field::Clean, 0);
        if let Some(block) = self.ground.pool.map.block(0) {
            header::write_boot(block, self.boot);
        }
        self.write_header(Field::Window, length.as_secs());
        self.write_header(Field::Lost, self.lost_until);
        // Last: until it is there, the next start finds what this one found.
        self.write_header(Field::Origin, Origin::Settled as u64);
        self.ground.pool.map.sync(HEADER_BLOCKS)
    }

    /// How far a timestamp may be from the clock, either way: what is accepted, what is kept, and how far the mark in the
    /// store has to reach all follow from this one length.
    #[must_use]
    pub fn length(&self) -> Duration {
        // Whoever sees a longer one also sees the floor that rose before.
        Duration::from_secs(self.length.load(Ordering::Acquire))
    }

    /// Changes the length at `now`. A longer one needs a mark in the store that covers it first; it is in the file, with
    /// the floor that it raises, before it counts.
    ///
    /// # Errors
    ///
    /// The disk does not take the longer length; the old one stays. A shorter one always counts at once.
    pub fn set_length(&self, now: UnixTime, length: Duration) -> io::Result<()> {
        let mut expiry = lock(&self.expiry);
        if self.refused_through.load(Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        let before = self.length();
        self.write_header(Field::Window, length.as_secs());
        if length > before {
            self.raise_floor(last_to_leave(now, before));
            self.ground.pool.map.sync(HEADER_BLOCKS)?;
        }
        expiry.set_window(length.as_secs());
        self.length.store(length.as_secs(), Ordering::Release);
        Ok(())
    }

    /// Notes that `mark` is about to be written into the store, or is there and need not be minded. A later start takes a
    /// mark that is much higher for one of a run that this file knows nothing of.
    pub fn vouch(&self, mark: UnixTime) {
        let explained = mark.after(MARK_SLACK).0;
        self.write_header(Field::Vouches, explained.max(self.header(Field::Vouches)));
    }

    /// Nothing at or below this second is accepted from now on, in this run and in later ones.
    fn raise_floor(&self, second: u64) {
        // In the file first: not one segment may be used again while the second could still be taken for a live one.
        self.write_header(Field::Floor, second.max(self.header(Field::Floor)));
        self.refused_through.fetch_max(second, Ordering::Relaxed);
    }

    /// Inserts a nonce if it is not there; atomic.
    ///
    /// Nonces are unique for the same consumer, token and timestamp. The caller has checked that `timestamp` is no
    /// further than the window from `now`, and that the signature holds.
    pub fn insert(
        &self,
        now: UnixTime,
        timestamp: u64,
        consumer: &[u8],
        token: &[u8],
        nonce: &[u8],
    ) -> Insertion {
        let fingerprint = fingerprint(&self.ground.key, consumer, token, nonce);
        let Some(shard) = self.shards.get(shard_of(fingerprint)) else {
            return Insertion::Full;
        };
        let mut shard = lock(&shard.0);
        // Read under the lock: whoever raises it takes the lock afterwards, before anything is dropped.
        let refused_through = self.refused_through.load(Ordering::Relaxed);
        if timestamp <= refused_through || now.0 < self.gap_end || timestamp > MAX_VALUE {
            return self.refusal(now, refused_through);
        }
        let outcome = shard.insert(&self.ground, timestamp, fingerprint);
        if outcome.began_second {
            self.note_second(timestamp);
        }
        outcome.insertion
    }

    #[cold]
    fn refusal(&self, now: UnixTime, refused_through: u64) -> Insertion {
        if refused_through == CLOSED {
            Insertion::Full
        } else if now.0 < self.gap_end {
            Insertion::Lost
        } else {
            Insertion::Forgotten
        }
    }

    #[cold]
    fn note_second(&self, second: u64) {
        let mut seconds = lock(&self.seconds);
        seconds.live.insert(second);
        if second > seconds.highest {
            seconds.highest = second;
            self.write_header(Field::Highest, second);
        }
    }

    /// Drops what is out of use, and gets memory ahead of need. To be called about once a second, from a thread that may
    /// wait for the file system; insertions do not wait for it. Late calls only make nonces stay longer.
    pub fn expire(&self, now: UnixTime) {
        self.expire_at(now, self.began.1.elapsed());
    }

    /// [`Self::expire`] with the time since the open given, by a clock that never jumps; for tests that move time.
    pub fn expire_at(&self, now: UnixTime, since_open: Duration) {
        let mut expiry = lock(&self.expiry);
        if self.refused_through.load(Ordering::Relaxed) == CLOSED {
            return;
        }
        let tick = expiry.advance(self.began.0.saturating_add(since_open.as_secs()));
        self.ground.tick.store(tick, Ordering::Relaxed);
        for _ in 0..SECONDS_PER_EXPIRE {
            let oldest = lock(&self.seconds).live.first().copied();
            let Some(second) = oldest else { break };
            let expired = now > UnixTime(second).after(self.length());
            let quiet = |shard: &Line<Mutex<Shard>>| {
                let touched = lock(&shard.0).touched(second);
                touched.is_none_or(|touched| expiry.is_past(touched))
            };
            if !expired || !self.shards.iter().all(quiet) {
                break;
            }
            self.drop_second(second);
        }
        self.ground.pool.grow_ahead();
    }

    fn drop_second(&self, second: u64) {
        self.raise_floor(second);
        for shard in &self.shards {
            let dropped = lock(&shard.0).drop_second(second);
            self.ground.entries.fetch_sub(dropped, Ordering::Relaxed);
        }
        // After the last shard: an insertion that still saw the old floor has noted the second again before.
        lock(&self.seconds).live.remove(&second);
    }

    /// Nonces held.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.ground.entries.load(Ordering::Relaxed)
    }

    /// Nothing at or below this second is accepted any more; 1970 if nothing was ever dropped. If it lies ahead of the
    /// clock, the clock was wrong for longer than a window and is right again, or the other way round.
    #[must_use]
    pub fn floor(&self) -> UnixTime {
        UnixTime(self.header(Field::Floor))
    }

    /// The earliest timestamp that may be accepted at all, whatever the clock says.
    #[must_use]
    pub fn earliest(&self) -> u64 {
        let refused_through = self.refused_through.load(Ordering::Relaxed);
        refused_through.saturating_add(1)
    }

    /// Bytes of the file, or of the memory, in whole chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.ground.pool.map.blocks() * BLOCK_BYTES) as u64
    }

    /// The gap that [`Self::insert`] enforces.
    #[must_use]
    pub fn gap(&self) -> Gap {
        match self.gap_end.checked_sub(1) {
            Some(until) => Gap::Until(UnixTime(until)),
            None => Gap::None,
        }
    }

    /// Ends the window: brings everything to the disk and marks the file as clean, so that it is good after a power loss
    /// as well. Insertions are refused from here on. Dropping the window does the same.
    ///
    /// # Errors
    ///
    /// The disk does not take it; the file is not marked, and good only until the machine goes down.
    pub fn close(&self) -> io::Result<()> {
        let _no_expiry = lock(&self.expiry);
        if self.refused_through.swap(CLOSED, Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        // Whoever is inside has finished once its lock was had.
        for shard in &self.shards {
            drop(lock(&shard.0));
        }
        let map = &self.ground.pool.map;
        map.sync(map.blocks())?;
        self.write_header(Field::Clean, 1);
        map.sync(HEADER_BLOCKS)
    }

    /// The address of the first byte, to which a journal's addresses are relative.
    #[cfg(test)]
    pub(super) fn first_word(&self) -> usize {
        let block = self.ground.pool.map.block(0).unwrap();
        std::ptr::from_ref(block).addr()
    }

    fn header(&self, field: Field) -> u64 {
        // The header was whole at the open, and nobody else writes it.
        let block = self.ground.pool.map.block(0);
        block.map_or(0, |block| {
            header::read(block, &self.ground.key, field).unwrap_or(0)
        })
    }

    fn write_header(&self, field: Field, value: u64) {
        if let Some(block) = self.ground.pool.map.block(0) {
            header::write(block, &self.ground.key, field, value);
        }
    }
}

/// The last second that has left a window of this length.
fn last_to_leave(now: UnixTime, length: Duration) -> u64 {
    now.before(length).0.saturating_sub(1)
}

impl Drop for LocalWindow {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the nonce window could not be written to the disk"
            );
        }
    }
}
