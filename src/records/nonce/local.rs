//! The window of one process: insertions, expiry, and the state that a start finds.

mod opened;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

pub use self::opened::Opened;
use super::{
    Insertion, NonceFiles, NonceUse, WindowOpenError,
    bucket::Bucket,
    journal::{Continuity, Journal},
    key::MAX_SECOND,
    state::{State, current_boot},
};
use crate::base::clock::UnixTime;

/// The most seconds that one call of [`LocalWindow::maintain`] drops.
const MAX_DROPPED: usize = 64;
/// Buckets that are found without a lock: those of the default window back and ahead, and more.
const RECENT: usize = 1024;
/// The value of `not_before` once the window is closed.
const CLOSED: u64 = u64::MAX;

/// Settings of a local window.
#[derive(Debug, Clone)]
pub struct WindowParams {
    /// The file of the state; the log is next to it, in files whose names begin with this one. Files are made with mode
    /// 0600. `None`: memory, which ends with the process.
    pub path: Option<PathBuf>,
    /// The most that a timestamp may be from the clock, either way, until [`LocalWindow::set_length`] changes it.
    pub window: Duration,
    /// The most nonces that are held; beyond it insertions are rejected as [`Insertion::Full`].
    pub max_entries: u64,
}

/// The nonces that this process has accepted and must not accept again.
///
/// An insertion is exact and atomic: of any number of racing insertions of one nonce exactly one is
/// [`Insertion::Fresh`]. It makes no system call, unless the log needs a file that [`Self::maintain`] has not made ahead of time.
///
/// # How long a nonce is kept
///
/// A second's nonces are dropped when the wall clock is more than the window past that second, *and* by a clock that
/// does not jump the last of them was inserted more than a window ago, *and* all seconds before have been dropped. So a
/// wall clock that jumps ahead and is put right within a window loses nothing. Nonces of consumers whose clocks are
/// behind stay for up to two windows, and so do all after a restart. Nonces accepted while the clock was wrong by years
/// stay until it gets there: they could be replayed whenever the clock is wrong again.
///
/// # Which timestamps are rejected
///
/// Timestamps up to `not_before` are rejected, in this run and in later ones: those that were dropped; those that had
/// left the window when it became wider, by [`Self::set_length`] or from one run to the next; and those that may have
/// been accepted with nonces that are missing here.
///
/// # What survives
///
/// Nonces survive any end of the process once [`Opened::start`] has returned, a power loss only after [`Self::close`].
pub struct LocalWindow {
    not_before: AtomicU64,
    /// These three as in the state, to be read without waiting for a write of it.
    dropped_until: AtomicU64,
    lost_until: AtomicU64,
    closed_until: AtomicU64,
    /// The bucket of each second.
    buckets: Mutex<BTreeMap<u64, Arc<Bucket>>>,
    /// The bucket used last of each second modulo [`RECENT`], so that few insertions wait for the lock.
    recent: Box<[ArcSwapOption<Bucket>]>,
    journal: Journal,
    /// The nonces that are held, and those that are counted for a moment until it is known that they do not fit.
    entries: AtomicU64,
    max_entries: u64,
    /// The window in seconds. It decides how far a timestamp may be from the clock, which nonces are kept, and how far
    /// the high-water mark has to reach. Changed under `maintenance`.
    length: AtomicU64,
    maintenance: Mutex<()>,
    opened: Instant,
}

impl LocalWindow {
    /// Opens the window: a new one, or the one in the files.
    ///
    /// # Errors
    ///
    /// Each variant of [`WindowOpenError`]; a file that is not ours, or is in use, has not been changed.
    pub fn open(params: &WindowParams) -> Result<Opened, WindowOpenError> {
        Self::open_on(params, current_boot())
    }

    pub(super) fn open_on(params: &WindowParams, boot: String) -> Result<Opened, WindowOpenError> {
        let (journal, mut continuity) = Journal::open(params.path.as_deref(), &boot)?;
        let mut window = Self {
            not_before: AtomicU64::new(CLOSED),
            dropped_until: AtomicU64::new(0),
            lost_until: AtomicU64::new(0),
            closed_until: AtomicU64::new(0),
            buckets: Mutex::default(),
            recent: [const { ArcSwapOption::const_empty() }; RECENT].into(),
            journal,
            entries: AtomicU64::new(0),
            max_entries: params.max_entries,
            length: AtomicU64::new(params.window.as_secs()),
            maintenance: Mutex::new(()),
            opened: Instant::now(),
        };
        if continuity == Continuity::Continued {
            let dropped_until = window.journal.state(|state| state.dropped_until);
            let replayed = window.journal.replay(|second, fingerprint| {
                if second > dropped_until {
                    let is_new = window.in_bucket(second, |bucket| {
                        bucket.shard(fingerprint).insert(fingerprint)
                    });
                    window.entries.fetch_add(is_new.into(), Ordering::Relaxed);
                }
            });
            if let Err(error) = replayed {
                continuity = window.journal.lost(&error);
                window.buckets = Mutex::default();
                window.recent = [const { ArcSwapOption::const_empty() }; RECENT].into();
                window.entries = AtomicU64::new(0);
            }
        }
        Ok(Opened {
            window,
            known_version: 0,
            continuity,
            boot,
        })
    }

    /// Inserts a nonce if it is not there; atomic.
    ///
    /// The caller has checked that the timestamp is no further than the window from the clock, and that the signature
    /// holds.
    pub fn insert(&self, nonce: &NonceUse<'_>) -> Insertion {
        let second = nonce.timestamp;
        // Before a bucket is made for it.
        if let Some(rejection) = self.rejection(second) {
            return rejection;
        }
        let fingerprint = self.journal.key.fingerprint(nonce);
        self.in_bucket(second, |bucket| self.insert_into(bucket, fingerprint))
    }

    fn insert_into(&self, bucket: &Bucket, fingerprint: u64) -> Insertion {
        let mut held = bucket.shard(fingerprint);
        // Again, under the lock: `maintain` raises `not_before` before it takes this lock and empties the shard.
        if let Some(rejection) = self.rejection(bucket.second) {
            return rejection;
        }
        if !held.insert(fingerprint) {
            return Insertion::Used;
        }
        let is_full = self.entries.fetch_add(1, Ordering::Relaxed) >= self.max_entries;
        if !is_full && !bucket.is_used.load(Ordering::Relaxed) {
            bucket.is_used.store(true, Ordering::Relaxed);
        }
        if is_full || !self.journal.append(bucket.second, fingerprint) {
            held.remove(&fingerprint);
            self.entries.fetch_sub(1, Ordering::Relaxed);
            return Insertion::Full;
        }
        Insertion::Fresh
    }

    /// Why a timestamp is not accepted, if it is not.
    #[inline]
    fn rejection(&self, second: u64) -> Option<Insertion> {
        let not_before = self.not_before.load(Ordering::Relaxed);
        if second > not_before && second <= MAX_SECOND {
            None
        } else if not_before == CLOSED {
            Some(Insertion::Closed)
        } else if second <= self.lost_until().0 {
            Some(Insertion::Lost)
        } else {
            Some(Insertion::Forgotten)
        }
    }

    /// Does `work` with the bucket of a second, which is made if there is none.
    #[inline]
    fn in_bucket<T>(&self, second: u64, work: impl FnOnce(&Bucket) -> T) -> T {
        #[expect(clippy::cast_possible_truncation, reason = "less than RECENT")]
        let recent = &self.recent[(second % RECENT as u64) as usize];
        if let Some(bucket) = &*recent.load()
            && bucket.second == second
        {
            return work(bucket);
        }
        // Either `close` sees this bucket, or whoever finds it sees that the window is closed.
        let mut buckets = self.buckets.lock();
        let bucket = buckets.entry(second);
        let bucket = Arc::clone(bucket.or_insert_with(|| Arc::new(Bucket::new(second))));
        drop(buckets);
        recent.store(Some(Arc::clone(&bucket)));
        work(&bucket)
    }

    /// Drops seconds that are out of use, and their files, and makes the next file of the log. To be called about once a second,
    /// from a thread that may wait for the file system. Late calls make nonces stay longer and insertions wait for a file.
    ///
    /// # Errors
    ///
    /// The files cannot be changed; the next call tries again.
    pub fn maintain(&self, now: UnixTime) -> io::Result<()> {
        self.maintain_at(now, self.opened.elapsed())
    }

    /// [`Self::maintain`] with the time since the open given, by a clock that never jumps; for tests that move time.
    ///
    /// # Errors
    ///
    /// As [`Self::maintain`].
    pub fn maintain_at(&self, now: UnixTime, since_open: Duration) -> io::Result<()> {
        let _maintenance = self.maintenance.lock();
        if self.not_before.load(Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        let (steady, length) = (since_open.as_secs(), self.length());
        let buckets = self.buckets();
        for bucket in &buckets {
            if bucket.is_used.swap(false, Ordering::Relaxed) {
                bucket.idle_since.store(steady, Ordering::Relaxed);
            }
        }
        let dropped_until = self.dropped_until().0;
        let is_out_of_use = |bucket: &Bucket| {
            let idle_since = bucket.idle_since.load(Ordering::Relaxed);
            // Whole seconds hide up to one.
            bucket.second <= dropped_until
                || now > UnixTime(bucket.second).after(length)
                    && steady.saturating_sub(idle_since) > length.as_secs()
        };
        let dropped = buckets.iter().take(MAX_DROPPED);
        let dropped: Vec<_> = dropped.take_while(|bucket| is_out_of_use(bucket)).collect();
        if let Some(last) = dropped.last() {
            self.drop_until(last.second, |_| ())?;
        }
        for bucket in &dropped {
            self.buckets.lock().remove(&bucket.second);
            let forgotten = bucket.sum(|held| std::mem::take(held).len() as u64);
            self.entries.fetch_sub(forgotten, Ordering::Relaxed);
        }
        let dropped_until = self.dropped_until().0;
        self.journal.maintain(steady, dropped_until)
    }

    /// Rejects timestamps up to `second` from now on, in this run and in later ones. In the file first: a later run must
    /// not accept what this one has dropped.
    fn drop_until(&self, second: u64, change: impl FnOnce(&mut State)) -> io::Result<()> {
        self.journal.update(|state| {
            state.dropped_until = state.dropped_until.max(second);
            change(state);
        })?;
        self.raise_not_before();
        Ok(())
    }

    fn raise_not_before(&self) {
        let (dropped_until, lost_until) = self
            .journal
            .state(|state| (state.dropped_until, state.lost_until));
        // They may have been raised since the state was read.
        self.dropped_until
            .fetch_max(dropped_until, Ordering::Relaxed);
        self.lost_until.fetch_max(lost_until, Ordering::Relaxed);
        let not_before = dropped_until.max(lost_until);
        self.not_before.fetch_max(not_before, Ordering::Relaxed);
    }

    /// The most that a timestamp may be from the clock, either way.
    pub fn length(&self) -> Duration {
        // A thread that sees a longer one also sees `not_before`, which was raised earlier.
        Duration::from_secs(self.length.load(Ordering::Acquire))
    }

    /// Changes the length at `now`. A longer one needs a high-water mark in the store that covers it first.
    ///
    /// # Errors
    ///
    /// The file cannot be written; the old length stays.
    pub fn set_length(&self, now: UnixTime, length: Duration) -> io::Result<()> {
        let _maintenance = self.maintenance.lock();
        let before = self.length();
        let until = if length > before {
            last_to_leave(now, before)
        } else {
            0
        };
        self.drop_until(until, |state| state.window = length.as_secs())?;
        self.length.store(length.as_secs(), Ordering::Release);
        Ok(())
    }

    /// Notes that `mark` is about to be written into the store: a later start that finds a much higher one there knows
    /// that another run has accepted nonces that are not in these files.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn note_high_water_mark(&self, mark: UnixTime) -> io::Result<()> {
        self.journal.advance(|state| {
            state.high_water_mark = state.high_water_mark.max(mark.0);
        })
    }

    /// The files as they are; `None`: the window is in memory.
    pub fn files(&self) -> Option<NonceFiles> {
        self.journal.files()
    }

    /// Notes that timestamps up to `until` may have been accepted with nonces that are not here.
    ///
    /// # Errors
    ///
    /// The file cannot be written; the timestamps are rejected until the process ends.
    pub fn note_lost(&self, until: UnixTime) -> io::Result<()> {
        if until <= self.lost_until() {
            return Ok(());
        }
        let noted = self
            .journal
            .update(|state| state.lost_until = state.lost_until.max(until.0));
        if noted.is_ok() {
            self.lost_until.fetch_max(until.0, Ordering::Relaxed);
        }
        self.not_before.fetch_max(until.0, Ordering::Relaxed);
        noted
    }

    /// Accepts timestamps from now on whose nonces may be lost.
    ///
    /// # Errors
    ///
    /// The file cannot be written; nothing has changed.
    pub fn waive(&self) -> io::Result<()> {
        let _maintenance = self.maintenance.lock();
        if self.lost_until() > UnixTime(0) && self.not_before.load(Ordering::Relaxed) != CLOSED {
            self.journal
                .update(|state| (state.lost_until, state.closed_until) = (0, 0))?;
            self.closed_until.store(0, Ordering::Relaxed);
            self.lost_until.store(0, Ordering::Relaxed);
            self.not_before
                .store(self.dropped_until().0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Timestamps up to this one may have been accepted with nonces that are not here; 1970 if none may.
    pub fn lost_until(&self) -> UnixTime {
        UnixTime(self.lost_until.load(Ordering::Relaxed))
    }

    /// The time until which the caller must not accept any timestamp: then those that a lost run may have accepted have
    /// left the window. 1970 if no run was lost.
    pub fn closed_until(&self) -> UnixTime {
        UnixTime(self.closed_until.load(Ordering::Relaxed))
    }

    /// Timestamps up to this one have left the window for good; 1970 if none has. If it is ahead of the clock, the clock
    /// was wrong for longer than a window and is right again, or the other way round.
    pub fn dropped_until(&self) -> UnixTime {
        UnixTime(self.dropped_until.load(Ordering::Relaxed))
    }

    /// The time until the oldest nonces leave, at least a second.
    pub fn frees_after(&self, now: UnixTime) -> Duration {
        let oldest = self.buckets.lock().keys().next().copied();
        let oldest = oldest.map_or(now, |second| now.min(UnixTime(second)));
        let leaves = oldest.after(self.length());
        // A second is dropped once it is past, and `maintain` is called once a second.
        Duration::from_secs(leaves.0.saturating_sub(now.0) + 2)
    }

    /// Whether it has been closed.
    pub fn is_closed(&self) -> bool {
        self.not_before.load(Ordering::Relaxed) == CLOSED
    }

    /// Nonces held.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the nonces take, without the overhead of the allocator.
    pub fn bytes(&self) -> u64 {
        self.buckets().iter().map(|bucket| bucket.bytes()).sum()
    }

    /// All buckets, the oldest first.
    fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.buckets.lock().values().cloned().collect()
    }

    /// Ends the window: writes everything to the disk, so that it survives a power loss as well, and releases the lock
    /// on the files: another process may go on with them at once. Insertions are [`Insertion::Closed`] from here on,
    /// and no call changes the files. Dropping the window does the same.
    ///
    /// # Errors
    ///
    /// The write to the disk failed; the files are good only until the machine goes down.
    pub fn close(&self) -> io::Result<()> {
        let _maintenance = self.maintenance.lock();
        if self.not_before.swap(CLOSED, Ordering::Relaxed) == CLOSED {
            return Ok(());
        }
        // An insertion that did not see it has ended once this thread has had the lock of its shard.
        for bucket in self.buckets() {
            bucket.wait_for_insertions();
        }
        self.journal.close()
    }
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

/// The last second that has left a window of this length.
fn last_to_leave(now: UnixTime, length: Duration) -> u64 {
    now.before(length).0.saturating_sub(1)
}
