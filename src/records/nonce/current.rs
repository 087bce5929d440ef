//! The file of the log that is appended to, the prepared one that follows it, and those that it followed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use super::segment::{HEAD_RECORDS, RECORD_BYTES, Segment};

/// The time for which a file should have room at the rate of the one before.
const LASTS: Duration = Duration::from_secs(10);
/// Bytes of the smallest file.
const SMALLEST: usize = 64 << 10;
/// Bytes of the largest file: room for 100 ms of 5 million nonces a second. A larger one takes longer to unmap.
const LARGEST: usize = 8 << 20;
/// A file has at most this many times the bytes of the nonces in the one before: a few early ones do not fill the disk.
const GROWTH: usize = 16;
/// Records of the smallest file.
pub(super) const FEW_RECORDS: usize = records(SMALLEST);

/// The file that is appended to; `None` until there is one.
pub(super) struct Current {
    file: ArcSwapOption<Segment>,
    queue: Mutex<Queue>,
}

/// Never locked during a system call: insertions wait for it.
struct Queue {
    /// The next file, which is in the state already.
    prepared: Option<Arc<Segment>>,
    /// Files that were current, in their order.
    retired: Vec<Arc<Segment>>,
    /// The time when the current file was taken.
    begun: Instant,
    /// Bytes of the next file to make.
    next_bytes: usize,
}

impl Current {
    pub(super) fn new() -> Self {
        Self {
            file: ArcSwapOption::empty(),
            queue: Mutex::new(Queue {
                prepared: None,
                retired: Vec::new(),
                begun: Instant::now(),
                next_bytes: SMALLEST,
            }),
        }
    }

    #[inline]
    pub(super) fn load(&self) -> Guard<Option<Arc<Segment>>> {
        self.file.load()
    }

    /// The records of the current file, and its capacity.
    pub(super) fn fill(&self) -> (usize, usize) {
        self.load().as_ref().map_or((0, 0), |file| file.fill())
    }

    /// Records of the next file to make.
    pub(super) fn next_records(&self) -> usize {
        records(self.queue.lock().next_bytes)
    }

    pub(super) fn has_prepared(&self) -> bool {
        self.queue.lock().prepared.is_some()
    }

    /// Whether there is a prepared file that may turn out to have no room for its pages.
    pub(super) fn has_unfilled(&self) -> bool {
        let queue = self.queue.lock();
        queue
            .prepared
            .as_ref()
            .is_some_and(|next| !next.is_filled())
    }

    /// Keeps a file until it is needed.
    pub(super) fn prepare(&self, next: Arc<Segment>) {
        self.queue.lock().prepared = Some(next);
    }

    /// Takes the prepared file, without appending to it.
    pub(super) fn take_prepared(&self) -> Option<Arc<Segment>> {
        self.queue.lock().prepared.take()
    }

    /// Takes this file, unless it is in use already. Returns whether it was there.
    pub(super) fn take_back(&self, file: &Arc<Segment>) -> bool {
        let prepared = &mut self.queue.lock().prepared;
        prepared.take_if(|next| Arc::ptr_eq(next, file)).is_some()
    }

    /// Appends to the prepared file from now on, if `full` is still the current one. Returns whether it has been replaced, by
    /// this call or another one.
    pub(super) fn replace_full(&self, full: Option<&Segment>) -> bool {
        let mut queue = self.queue.lock();
        let number = |file: Option<&Segment>| file.map(|file| file.number);
        if number(self.load().as_deref()) != number(full) {
            return true;
        }
        let next = queue.prepared.take();
        let is_prepared = next.is_some();
        if let Some(next) = next {
            self.swap(&mut queue, next);
        }
        is_prepared
    }

    /// Appends to this file from now on.
    pub(super) fn replace(&self, next: Arc<Segment>) {
        self.swap(&mut self.queue.lock(), next);
    }

    fn swap(&self, queue: &mut Queue, next: Arc<Segment>) {
        let now = Instant::now();
        if let Some(old) = self.file.swap(Some(next)) {
            queue.next_bytes = next_bytes(old.written(), now - queue.begun);
            queue.retired.push(old);
        }
        queue.begun = now;
    }

    /// The files that were current since the last call.
    pub(super) fn take_retired(&self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.queue.lock().retired)
    }
}

/// The records of a file of this size.
const fn records(bytes: usize) -> usize {
    bytes / RECORD_BYTES - HEAD_RECORDS
}

/// Bytes of the file after one that took this many records in this time.
fn next_bytes(filled: usize, took: Duration) -> usize {
    let filled = filled * RECORD_BYTES;
    let fitting = filled as u128 * LASTS.as_micros() / took.as_micros().max(1);
    let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
    fitting
        .min(filled.saturating_mul(GROWTH))
        .clamp(SMALLEST, LARGEST)
        .next_multiple_of(4096)
}

#[cfg(test)]
mod tests {
    use super::{super::key::Key, *};

    #[test]
    fn a_file_has_room_for_ten_seconds_at_the_rate_of_the_one_before() {
        for (filled, milliseconds, bytes) in [
            (0, 120_000, SMALLEST),
            (100, 0, SMALLEST),
            (4_000, 60_000, SMALLEST),
            // A thousand a second.
            (4_000, 4_000, 160 << 10),
            (10_000, 10_000, 160 << 10),
            // Five thousand a second, in whole pages.
            (10_240, 2_048, 196 << 12),
            // No faster than by the growth.
            (4_096, 1, 1 << 20),
            (61_440, 12, LARGEST),
            (520_000, 100, LARGEST),
            // After a burst.
            (520_000, 120_000, 170 << 12),
        ] {
            let next = next_bytes(filled, Duration::from_millis(milliseconds));
            assert_eq!(next, bytes, "{filled} in {milliseconds} ms");
        }
    }

    #[test]
    fn a_sealed_file_counts_with_the_records_that_it_took() {
        let directory = tempfile::tempdir().unwrap();
        let current = Current::new();
        for number in 1..=2 {
            let path = directory.path().join(number.to_string());
            let file = Segment::create(&path, number, 100_000, Key([1, 2])).unwrap();
            file.seal();
            current.replace(Arc::new(file));
        }
        assert_eq!(current.next_records(), FEW_RECORDS);
    }
}
