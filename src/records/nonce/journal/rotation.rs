//! The replacement of a full or old file by the next one.
//!
//! [`Journal::maintain`] makes the next file before the current one is full, and unmaps those that were replaced. An insertion
//! that finds the file full all the same, because the rate has risen or the disk was full, makes the next one itself.

use std::{
    error::Error,
    io,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Journal,
    files::{Files, SealedFile},
};
use crate::records::nonce::segment::{HEAD_RECORDS, RECORD_BYTES, Segment};

/// The time for which a file is appended to, in seconds.
const FILE_SECONDS: u64 = 120;
/// The time for which a file should have room at the rate of the one before.
const LASTS: Duration = Duration::from_secs(10);
/// Bytes of the smallest file.
const SMALLEST: usize = 64 << 10;
/// Bytes of the largest file: room for 65,280 nonces. At more than that a second insertions make files themselves, and wait
/// meanwhile: less than a millisecond for this size, 4 to 12 ms for 8 MiB.
const LARGEST: usize = 1 << 20;
/// Records of the smallest file.
pub(crate) const FEW_RECORDS: usize = records(SMALLEST);

impl Journal {
    /// Replaces the current file, unless another thread has replaced `full` already.
    #[cold]
    pub(super) fn replace_full(&self, full: Option<&Segment>) {
        let mut files = self.files.lock();
        let number = |file: Option<&Segment>| file.map(|file| file.number);
        if number(self.current.load().as_deref()) == number(full) {
            let begun = files.begun;
            self.replace(&mut files, begun);
        }
    }

    /// Replaces the current file if it is old or will be full soon.
    pub(super) fn replace_if_due(&self, now: u64) {
        let mut files = self.files.lock();
        files.mapped.retain(|old| Arc::strong_count(old) > 1);
        let current = self.current.load();
        let (used, capacity) = current.as_ref().map_or((0, 0), |file| file.fill());
        // Twice as much as in the last second has to fit.
        let is_filling = capacity - used <= 2 * used.saturating_sub(files.seen);
        let is_old = used > 0 && now >= files.begun.saturating_add(FILE_SECONDS);
        files.seen = used;
        if is_filling || is_old {
            self.replace(&mut files, now);
        }
    }

    /// Makes the next file, or one for fewer records, and appends to it from then on. If that fails, the current file stays,
    /// and rejects nonces once it is full.
    fn replace(&self, files: &mut Files, now: u64) {
        if self.path.is_none() {
            return;
        }
        let path = self.log(files.state.logs.end);
        let current = self.current.load();
        let records = match &*current {
            Some(current) if !self.is_stuck.load(Ordering::Relaxed) => {
                records(next_bytes(current.written(), files.made.elapsed()))
            }
            _ => FEW_RECORDS,
        };
        let made = self
            .create(files, records)
            .or_else(|_| self.create(files, FEW_RECORDS));
        let has_room = current.as_ref().is_some_and(|current| {
            let (used, capacity) = current.fill();
            used < capacity
        });
        if made.is_err() && has_room {
            // The insertion that needs the file tries again, and reports it.
            return;
        }
        let was_stuck = self.is_stuck.swap(made.is_err(), Ordering::Relaxed);
        let path = tracing::field::display(path.display());
        match made {
            Ok(next) => {
                if let Some(old) = self.current.swap(Some(next)) {
                    let (number, highest) = (old.number, old.seal());
                    files.sealed.push_back(SealedFile { number, highest });
                    files.mapped.push(old);
                }
                (files.begun, files.made, files.seen) = (now, Instant::now(), 0);
                if was_stuck {
                    tracing::info!(path, "the nonce window grows again");
                }
            }
            Err(error) if !was_stuck => {
                let error = &error as &dyn Error;
                tracing::error!(
                    path,
                    error,
                    "the nonce window cannot grow: signed requests are rejected until old nonces expire or there is room"
                );
            }
            Err(_) => {}
        }
    }

    /// Makes the file that follows the log, for this many records. It is in the state before the first nonce is in it.
    fn create(&self, files: &mut Files, records: usize) -> io::Result<Arc<Segment>> {
        let number = files.state.logs.end;
        let made = Segment::create(&self.log(number), number, records, self.key)?;
        files.update(|state| state.logs.end = number + 1)?;
        Ok(Arc::new(made))
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
    fitting.clamp(SMALLEST, LARGEST).next_multiple_of(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_has_room_for_ten_seconds_at_the_previous_files_rate() {
        for (filled, milliseconds, bytes) in [
            (0, 120_000, SMALLEST),
            (4_000, 60_000, SMALLEST),
            // A thousand a second.
            (4_000, 4_000, 160 << 10),
            (10_000, 10_000, 160 << 10),
            // Five thousand a second, in whole pages.
            (10_240, 2_048, 196 << 12),
            (65_280, 6, LARGEST),
            (100, 0, LARGEST),
            // After a burst.
            (61_440, 120_000, 20 << 12),
        ] {
            let next = next_bytes(filled, Duration::from_millis(milliseconds));
            assert_eq!(next, bytes, "{filled} in {milliseconds} ms");
        }
    }
}
