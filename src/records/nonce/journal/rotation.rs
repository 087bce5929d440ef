//! The replacement of a full or old file by the next one.
//!
//! The next file is made before it is needed, and a full one is unmapped, by a thread that no insertion waits for
//! ([`crate::records::nonce::preparer`]). An insertion that fills a file takes the next one, under a lock that is never held during a system
//! call. If none is prepared, because the disk is full or slow, it makes one.

use std::{
    error::Error,
    fs, io,
    sync::{Arc, atomic::Ordering},
};

use super::{
    Journal,
    files::{Files, SealedFile},
};
use crate::records::nonce::{current::FEW_RECORDS, segment::Segment};

/// The time for which a file is appended to, in seconds.
const FILE_SECONDS: u64 = 120;

impl Journal {
    /// Replaces the current file, unless another thread has replaced `full` already.
    #[cold]
    pub(super) fn replace_full(&self, full: Option<&Segment>) {
        if !self.current.replace_full(full) {
            let mut files = self.files.lock();
            // Another thread may have made one before this one had the lock.
            if !self.current.replace_full(full) {
                let begun = files.begun;
                self.replace(&mut files, begun);
            }
        }
        if let Some(preparer) = self.preparer.get() {
            preparer.unpark();
        }
    }

    /// Makes the next file, if there is none and the log is in use, and unmaps the full ones; not for an insertion. A failure
    /// is not reported: the insertion that needs the file tries again, and reports it. A file whose pages cannot be filled is
    /// deleted, unless it is in use already: then it keeps its place in the log, and takes no further nonce.
    pub(in crate::records::nonce) fn prepare(&self) {
        let mut files = self.files.lock();
        self.seal_retired(&mut files);
        let is_wanted = files.file.is_some() && !self.current.has_prepared();
        if !is_wanted || self.is_stuck.load(Ordering::Relaxed) {
            return;
        }
        let records = self.current.next_records();
        let created = self.create(&files, records);
        let Ok(segment) = created.and_then(|segment| files.add(segment)) else {
            return;
        };
        self.current.prepare(Arc::clone(&segment));
        drop(files);
        if segment.fill_pages().is_ok() {
            return;
        }
        let mut files = self.files.lock();
        if !self.current.take_back(&segment) {
            return;
        }
        // It is the last file: none is made while there is a prepared one.
        let number = segment.number;
        match files.update(|state| state.logs.end = number) {
            // `create` replaces a file that cannot be deleted.
            Ok(()) => _ = fs::remove_file(self.log(number)),
            // The log has it still, so it takes its place when the current file is full.
            Err(_) => self.current.prepare(segment),
        }
    }

    /// Seals the files that were current, and unmaps those that no insertion looks at any more.
    fn seal_retired(&self, files: &mut Files) {
        for old in self.current.take_retired() {
            let (number, highest) = (old.number, old.seal());
            files.sealed.push_back(SealedFile { number, highest });
            files.mapped.push(old);
        }
        files.mapped.retain(|old| Arc::strong_count(old) > 1);
    }

    /// Makes the file that follows the log, for this many records. [`Files::add`] makes it a part of the log.
    fn create(&self, files: &Files, records: usize) -> io::Result<Segment> {
        let number = files.state.logs.end;
        Segment::create(&self.log(number), number, records, self.key)
    }

    pub(super) fn replace_if_due(&self, now: u64) {
        let mut files = self.files.lock();
        let (used, capacity) = self.current.fill();
        let is_old = used > 0 && now >= files.begun.saturating_add(FILE_SECONDS);
        // A file with room is not given up for one that may turn out to have none.
        if used == capacity || is_old && !self.current.has_unfilled() {
            self.replace(&mut files, now);
        }
    }

    /// Appends to the prepared file from then on, or makes one, or one for fewer records. While that fails, a full current
    /// file rejects nonces.
    fn replace(&self, files: &mut Files, now: u64) {
        if self.path.is_none() {
            return;
        }
        let path = self.log(files.state.logs.end);
        let replaced = match self.current.take_prepared() {
            Some(prepared) => {
                self.current.replace(prepared);
                Ok(())
            }
            None => self.make_current(files),
        };
        let was_stuck = self.is_stuck.swap(replaced.is_err(), Ordering::Relaxed);
        let path = tracing::field::display(path.display());
        match replaced {
            Ok(()) => {
                files.begun = now;
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

    /// Makes a file and appends to it from then on. One whose pages cannot be filled is deleted, and the current one
    /// stays.
    fn make_current(&self, files: &mut Files) -> io::Result<()> {
        let records = match self.is_stuck.load(Ordering::Relaxed) {
            true => FEW_RECORDS,
            false => self.current.next_records(),
        };
        let made = self
            .create_filled(files, records)
            .or_else(|_| self.create_filled(files, FEW_RECORDS))?;
        self.current.replace(files.add(made)?);
        Ok(())
    }

    fn create_filled(&self, files: &Files, records: usize) -> io::Result<Segment> {
        let made = self.create(files, records)?;
        let filled = made.fill_pages();
        filled.inspect_err(|_| _ = fs::remove_file(self.log(made.number)))?;
        Ok(made)
    }
}
