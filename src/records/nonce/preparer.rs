//! The thread that makes the next file of the log and unmaps the full ones, so that no insertion waits for the file system.

use std::{
    fmt, io,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::{Condvar, Mutex};

use super::journal::Journal;

/// The thread. Dropping this ends it.
pub(super) struct Preparer {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Signal {
    call: Mutex<Call>,
    changed: Condvar,
}

/// What the thread has to do next.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Call {
    #[default]
    Wait,
    Prepare,
    End,
}

impl Preparer {
    /// Starts the thread, which makes a file whenever `journal` has taken the prepared one.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(journal: &Arc<Journal>) -> io::Result<Self> {
        let signal = Arc::<Signal>::default();
        let (waits, taken) = (Arc::clone(&signal), Arc::clone(&signal));
        // The window owns this thread, and not the other way round.
        let weak = Arc::downgrade(journal);
        let thread = thread::Builder::new().name("nonce-log".to_owned());
        let thread = thread.spawn(move || {
            while waits.next() {
                if let Some(journal) = weak.upgrade() {
                    journal.prepare(true);
                }
            }
        })?;
        journal.on_taken(move || taken.set(Call::Prepare));
        Ok(Self {
            signal,
            thread: Some(thread),
        })
    }
}

impl Signal {
    fn set(&self, next: Call) {
        let mut call = self.call.lock();
        if *call != Call::End {
            *call = next;
        }
        drop(call);
        self.changed.notify_one();
    }

    /// Waits for a call; `false`: the thread ends.
    fn next(&self) -> bool {
        let mut call = self.call.lock();
        self.changed
            .wait_while(&mut call, |call| *call == Call::Wait);
        if *call == Call::Prepare {
            *call = Call::Wait;
            return true;
        }
        false
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.signal.set(Call::End);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged when it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Preparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preparer").finish_non_exhaustive()
    }
}
