//! The thread that makes the next file of the log and unmaps the full ones, so that no insertion waits for the file system.

use std::{
    io,
    sync::{Arc, Weak},
    thread::{self, JoinHandle, Thread},
};

use super::journal::Journal;

/// The thread. Drop it after the journal: it ends once the journal is gone.
pub(super) struct Preparer(Option<JoinHandle<()>>);

impl Preparer {
    /// Starts the thread, which works whenever an insertion has taken the prepared file.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(journal: &Arc<Journal>) -> io::Result<Self> {
        let weak = Arc::downgrade(journal);
        let thread = thread::Builder::new().name("nonce-log".to_owned());
        let thread = thread.spawn(move || prepare(&weak))?;
        journal.set_preparer(thread.thread().clone());
        Ok(Self(Some(thread)))
    }
}

fn prepare(journal: &Weak<Journal>) {
    // A wake-up during the work is not lost: `park` then returns at once.
    while let Some(journal) = journal.upgrade() {
        journal.prepare();
        drop(journal);
        thread::park();
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            Thread::unpark(thread.thread());
            // A panic of the thread was logged when it happened.
            let _ = thread.join();
        }
    }
}
