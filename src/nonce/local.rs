//! The window of one process: insertions, expiry, and the stop.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use moka::sync::Cache;

use super::{
    Insertion, OpenError, Opened, Params,
    blackout::{Blackout, MARK_SLACK},
    boot::{Boot, BootId},
    bucket::Bucket,
    fingerprint::fingerprint,
    header::{self, Field, FileKey, HEADER_BLOCKS, MAX_VALUE, Stage},
    idle::Idle,
    lock,
    map::{BLOCK_BYTES, Map},
    memory::Memory,
    open,
    recover::Recovered,
    segment::shard_of,
};
use crate::clock::UnixTime;

/// Seconds that one call of [`LocalWindow::expire`] drops at most; each takes a few microseconds.
const SECONDS_PER_EXPIRE: usize = 64;
/// What `rejected_through` is once the window is closed.
const CLOSED: u64 = u64::MAX;
/// Buckets that each thread keeps at hand: those of the default window back and ahead, and more.
const RECENT: usize = 1024;

thread_local! {
    /// The buckets that this thread used last, each at its second modulo [`RECENT`]. moka's look-up would add some 150
    /// ns to an insertion. A bucket that has been dropped meanwhile rejects insertions.
    static RECENT_BUCKETS: RefCell<[Option<Recent>; RECENT]> = const { RefCell::new([const { None }; RECENT]) };
}

struct Recent {
    window: u64,
    second: u64,
    bucket: Arc<Bucket>,
}

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
/// The end of the process in any way, once [`Opened::start`] has returned; a power loss only after [`Self::close`].
/// What was lost otherwise shows as [`super::Continuity`].
pub struct LocalWindow {
    /// The number of this window in the process, see [`Recent`].
    number: u64,
    /// Nothing at or below is accepted: what was dropped, or lost; [`CLOSED`] after the end.
    rejected_through: AtomicU64,
    /// The first second in which insertions are accepted again, if nonces are lost; else 0.
    blackout_end: AtomicU64,
    memory: Memory,
    /// Finds the bucket of a second. It has no capacity and no time to live, and it owns nothing: a bucket that it did
    /// not find is found in `seconds`. So neither moka's clock nor its policy decides what is forgotten.
    directory: Cache<u64, Arc<Bucket>>,
    seconds: Mutex<Seconds>,
    expiry: Mutex<Idle>,
    /// The window in seconds: the one place that says how far a timestamp may be from the clock. Changed under
    /// `expiry`.
    length: AtomicU64,
    boot: BootId,
    /// Seconds since the boot, and the process's own clock, at the open.
    began: (u64, Instant),
}

/// The buckets in the order of their seconds.
struct Seconds {
    live: BTreeMap<u64, Arc<Bucket>>,
    highest: u64,
}

impl LocalWindow {
    /// Opens the window: a new one, or the one in the file.
    ///
    /// # Errors
    ///
    /// Each variant of [`OpenError`]; a file that is not ours, or is in use, has not been changed.
    pub fn open(params: &Params, now: UnixTime) -> Result<Opened, OpenError> {
        open::open(params, now, Boot::read())
    }

    /// Checks whether the file can be a window, also while another process has it open; changes nothing.
    ///
    /// # Errors
    ///
    /// [`OpenError`], but for what only opening can find.
    pub fn check_file(path: &Path) -> Result<(), OpenError> {
        open::check_file(path)
    }

    pub(super) fn new(
        params: &Params,
        map: Map,
        key: FileKey,
        mut recovered: Recovered,
        floor: u64,
        boot: Boot,
    ) -> Self {
        static WINDOWS: AtomicU64 = AtomicU64::new(0);
        let began = boot.uptime.unwrap_or(0);
        let memory = Memory::new(map, key, &mut recovered, params);
        memory.tick.store(began, Ordering::Relaxed);
        let highest = recovered.buckets.last_key_value();
        Self {
            number: WINDOWS.fetch_add(1, Ordering::Relaxed),
            rejected_through: AtomicU64::new(floor),
            blackout_end: AtomicU64::new(0),
            memory,
            directory: Cache::builder().build(),
            seconds: Mutex::new(Seconds {
                highest: highest.map_or(0, |(second, _)| *second),
                live: recovered.buckets,
            }),
            expiry: Mutex::new(Idle::new(params.window.as_secs(), began)),
            length: AtomicU64::new(params.window.as_secs()),
            boot: boot.id,
            began: (began, Instant::now()),
        }
    }

    /// Writes to the file what is lost, and that from now on it is in use.
    pub(super) fn start(&mut self, blackout: Blackout, now: UnixTime) -> io::Result<()> {
        let length = self.length();
        let memory = &self.memory;
        let (lost_until, blackout_end) = match blackout {
            Blackout::None => (0, 0),
            Blackout::Until(until) => (until.before(length).0, until.0.saturating_add(1)),
        };
        self.blackout_end = AtomicU64::new(blackout_end);
        // Zero: no run was there before.
        let earlier = Duration::from_secs(memory.header(Field::Window));
        if !earlier.is_zero() && length > earlier {
            self.raise_floor(last_to_leave(now, earlier));
        }
        self.rejected_through
            .fetch_max(lost_until, Ordering::Relaxed);
        {
            let mut seconds = lock(&self.seconds);
            seconds.highest = seconds.highest.max(memory.header(Field::Highest));
        }
        memory.write_header(Field::Clean, 0);
        if let Some(block) = memory.map.block(0) {
            header::write_boot(block, self.boot);
        }
        memory.write_header(Field::Window, length.as_secs());
        memory.write_header(Field::Lost, lost_until);
        // Last: until it is there, the next start finds what this one found.
        memory.write_header(Field::Stage, Stage::Settled as u64);
        memory.map.sync(HEADER_BLOCKS)
    }

    /// How far a timestamp may be from the clock, either way: what is accepted, what is kept, and how far the
    /// high-water mark in the store has to reach all follow from this one length.
    #[must_use]
    pub fn length(&self) -> Duration {
        // A thread that sees a longer one also sees the floor that rose before.
        Duration::from_secs(self.length.load(Ordering::Acquire))
    }

    /// Changes the length at `now`. A longer one needs a high-water mark in the store that covers it first; it is in
    /// the file, with the floor that it raises, before it counts.
    ///
    /// # Errors
    ///
    /// The disk does not take the longer length; the old one stays. A shorter one always counts at once.
    pub fn set_length(&self, now: UnixTime, length: Duration) -> io::Result<()> {
        let mut expiry = lock(&self.expiry);
        if self.rejected_through.load(Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        let before = self.length();
        self.memory.write_header(Field::Window, length.as_secs());
        if length > before {
            self.raise_floor(last_to_leave(now, before));
            self.memory.map.sync(HEADER_BLOCKS)?;
        }
        expiry.set_window(length.as_secs());
        self.length.store(length.as_secs(), Ordering::Release);
        Ok(())
    }

    /// Notes that `mark` is about to be written into the store, or is there and accounts for nothing that is lost. A
    /// later start takes a high-water mark that is much higher for one of a run that this file knows nothing of.
    pub fn note_high_water_mark(&self, mark: UnixTime) {
        let known = mark.after(MARK_SLACK).0;
        let memory = &self.memory;
        memory.write_header(Field::Mark, known.max(memory.header(Field::Mark)));
    }

    /// Nothing at or below this second is accepted from now on, in this run and in later ones.
    fn raise_floor(&self, second: u64) {
        // In the file first: not one segment may be used again while the second could still be taken for a live one.
        let floor = second.max(self.memory.header(Field::Floor));
        self.memory.write_header(Field::Floor, floor);
        self.rejected_through.fetch_max(second, Ordering::Relaxed);
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
        // Before a bucket is begun for it.
        if let Some(rejection) = self.rejection(now, timestamp) {
            return rejection;
        }
        let fingerprint = fingerprint(&self.memory.key, consumer, token, nonce);
        RECENT_BUCKETS.with_borrow_mut(|recent| {
            #[expect(clippy::cast_possible_truncation, reason = "less than RECENT")]
            let place = &mut recent[(timestamp % RECENT as u64) as usize];
            let bucket = match place {
                Some(recent) if recent.second == timestamp && recent.window == self.number => {
                    &recent.bucket
                }
                _ => match self.bucket(timestamp) {
                    Some(bucket) => {
                        &place
                            .insert(Recent {
                                window: self.number,
                                second: timestamp,
                                bucket,
                            })
                            .bucket
                    }
                    None => return self.rejection(now, timestamp).unwrap_or(Insertion::Full),
                },
            };
            let mut shard = bucket.shard(shard_of(fingerprint));
            // Again, under the lock: `drop_oldest` raises the floor before it takes this lock and empties the shard.
            match self.rejection(now, timestamp) {
                None => shard.insert(&self.memory, timestamp, fingerprint),
                Some(rejection) => rejection,
            }
        })
    }

    /// Why a timestamp is not accepted, if it is not.
    #[inline]
    fn rejection(&self, now: UnixTime, timestamp: u64) -> Option<Insertion> {
        let rejected_through = self.rejected_through.load(Ordering::Relaxed);
        let blackout_end = self.blackout_end.load(Ordering::Relaxed);
        if timestamp > rejected_through && now.0 >= blackout_end && timestamp <= MAX_VALUE {
            None
        } else if rejected_through == CLOSED {
            Some(Insertion::Full)
        } else if now.0 < blackout_end {
            Some(Insertion::Lost)
        } else {
            Some(Insertion::Forgotten)
        }
    }

    /// The bucket of a second, begun if there is none; `None` if the second was dropped meanwhile.
    #[cold]
    fn bucket(&self, second: u64) -> Option<Arc<Bucket>> {
        if let Some(bucket) = self.directory.get(&second) {
            return Some(bucket);
        }
        let mut seconds = lock(&self.seconds);
        // A thread that raises the floor to drop this second, or closes the window, takes this lock afterwards and sees
        // the bucket.
        if second <= self.rejected_through.load(Ordering::Relaxed) {
            return None;
        }
        let bucket = Arc::clone(seconds.live.entry(second).or_default());
        self.directory.insert(second, Arc::clone(&bucket));
        if second > seconds.highest {
            seconds.highest = second;
            self.memory.write_header(Field::Highest, second);
        }
        Some(bucket)
    }

    /// Drops what is out of use, and gets memory ahead of need. To be called about once a second, from a thread that
    /// may wait for the file system; insertions do not wait for it. Late calls only make nonces stay longer.
    pub fn expire(&self, now: UnixTime) {
        self.expire_at(now, self.began.1.elapsed());
    }

    /// [`Self::expire`] with the time since the open given, by a clock that never jumps; for tests that move time.
    pub fn expire_at(&self, now: UnixTime, since_open: Duration) {
        let mut expiry = lock(&self.expiry);
        if self.rejected_through.load(Ordering::Relaxed) == CLOSED {
            return;
        }
        let tick = expiry.advance(self.began.0.saturating_add(since_open.as_secs()));
        self.memory.tick.store(tick, Ordering::Relaxed);
        for _ in 0..SECONDS_PER_EXPIRE {
            if !self.drop_oldest(now, &expiry) {
                break;
            }
        }
        self.directory.run_pending_tasks();
        self.memory.grow_ahead();
    }

    /// Drops the oldest bucket, if it is out of use.
    fn drop_oldest(&self, now: UnixTime, expiry: &Idle) -> bool {
        let mut seconds = lock(&self.seconds);
        let Some(oldest) = seconds.live.first_entry() else {
            return false;
        };
        let second = *oldest.key();
        let is_expired = now > UnixTime(second).after(self.length());
        let is_idle = || {
            let mut shards = oldest.get().shards();
            shards.all(|shard| shard.directory.is_empty() || expiry.is_past(shard.touched))
        };
        if !is_expired || !is_idle() {
            return false;
        }
        self.raise_floor(second);
        oldest.remove().drain(&self.memory);
        self.directory.invalidate(&second);
        true
    }

    /// How long until the oldest nonces leave, at least a second.
    #[must_use]
    pub fn frees_after(&self, now: UnixTime) -> Duration {
        let oldest = lock(&self.seconds).live.keys().next().copied();
        let leaves = UnixTime(oldest.unwrap_or(now.0)).after(self.length());
        // A second is dropped once it is past, and `expire` is called once a second.
        Duration::from_secs(leaves.0.saturating_sub(now.0) + 2)
    }

    /// Nonces held.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.memory.entries.load(Ordering::Relaxed)
    }

    /// Nothing at or below this second is accepted any more; 1970 if nothing was ever dropped. If it lies ahead of the
    /// clock, the clock was wrong for longer than a window and is right again, or the other way round.
    #[must_use]
    pub fn floor(&self) -> UnixTime {
        UnixTime(self.memory.header(Field::Floor))
    }

    /// The earliest timestamp that may be accepted at all, whatever the clock says.
    #[must_use]
    pub fn earliest(&self) -> u64 {
        let rejected_through = self.rejected_through.load(Ordering::Relaxed);
        rejected_through.saturating_add(1)
    }

    /// Bytes of the file, or of the memory, in whole chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.memory.map.blocks() * BLOCK_BYTES) as u64
    }

    /// The blackout that [`Self::insert`] enforces.
    #[must_use]
    pub fn blackout(&self) -> Blackout {
        match self.blackout_end.load(Ordering::Relaxed).checked_sub(1) {
            Some(until) => Blackout::Until(UnixTime(until)),
            None => Blackout::None,
        }
    }

    /// Ends the blackout: what may be lost is accepted from now on.
    ///
    /// # Errors
    /// The disk does not take it; the next start finds the blackout again.
    pub fn waive(&self) -> io::Result<()> {
        let _no_expiry = lock(&self.expiry);
        if self.blackout_end.swap(0, Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let rejected_through = &self.rejected_through;
        if rejected_through.load(Ordering::Relaxed) != CLOSED {
            rejected_through.store(self.memory.header(Field::Floor), Ordering::Relaxed);
        }
        self.memory.write_header(Field::Lost, 0);
        self.memory.map.sync(HEADER_BLOCKS)
    }

    /// Ends the window: brings everything to the disk and marks the file as clean, so that it is good after a power
    /// loss as well. Insertions are rejected from here on. Dropping the window does the same.
    ///
    /// # Errors
    ///
    /// The disk does not take it; the file is not marked, and good only until the machine goes down.
    pub fn close(&self) -> io::Result<()> {
        let _no_expiry = lock(&self.expiry);
        if self.rejected_through.swap(CLOSED, Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        // An insertion that did not see it has finished once its shard's lock was had.
        for bucket in lock(&self.seconds).live.values() {
            bucket.shards().for_each(drop);
        }
        let map = &self.memory.map;
        map.sync(map.blocks())?;
        self.memory.write_header(Field::Clean, 1);
        map.sync(HEADER_BLOCKS)
    }

    /// The file, or what errors call the memory.
    pub(super) fn path(&self) -> &Path {
        &self.memory.path
    }

    /// The address of the first byte, to which a journal's addresses are relative.
    #[cfg(test)]
    pub(super) fn first_word(&self) -> usize {
        let block = self.memory.map.block(0).unwrap();
        std::ptr::from_ref(block).addr()
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const NOW: UnixTime = UnixTime(1_700_000_000);

    fn window() -> LocalWindow {
        let params = Params {
            path: None,
            window: Duration::from_secs(10),
            max_entries: 100,
        };
        let opened = LocalWindow::open(&params, NOW).unwrap();
        opened.start(Blackout::None).unwrap()
    }

    fn insert(window: &LocalWindow, timestamp: u64) -> Insertion {
        window.insert(NOW, timestamp, b"consumer", b"token", b"nonce")
    }

    #[test]
    fn forgets_nothing_if_moka_loses_a_second() {
        let window = window();
        assert_eq!(insert(&window, NOW.0), Insertion::Fresh);
        window.directory.invalidate_all();
        window.directory.run_pending_tasks();
        assert_eq!(window.directory.entry_count(), 0);
        // Another thread, which has no bucket at hand.
        let again = thread::scope(|scope| scope.spawn(|| insert(&window, NOW.0)).join());
        assert_eq!(again.unwrap(), Insertion::Used);
        assert_eq!(window.entries(), 1);
    }

    #[test]
    fn keeps_no_second_that_was_dropped() {
        let window = window();
        for second in 0..100 {
            let now = UnixTime(NOW.0 + second);
            window.expire_at(now, Duration::from_secs(second));
            assert_eq!(insert(&window, now.0), Insertion::Fresh);
            assert_eq!(insert(&window, now.0), Insertion::Used);
            // Too late: it begins no bucket.
            if window.floor().0 > 0 {
                assert_eq!(insert(&window, window.floor().0), Insertion::Forgotten);
            }
        }
        window.directory.run_pending_tasks();
        let live = lock(&window.seconds).live.len() as u64;
        assert_eq!(
            (window.directory.entry_count(), window.entries()),
            (live, live)
        );
        assert!(live < 15, "{live}");
    }

    #[test]
    fn takes_no_bucket_at_hand_for_another_windows() {
        let windows = [window(), window()];
        for expected in [Insertion::Fresh, Insertion::Used] {
            for window in &windows {
                assert_eq!(insert(window, NOW.0), expected);
            }
        }
    }
}
