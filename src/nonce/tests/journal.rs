//! Records the writes of this thread, so that a test can stop the world after any one of them.

use std::{cell::RefCell, sync::atomic::AtomicU64};

thread_local! {
    static JOURNAL: RefCell<Option<Vec<(usize, u64)>>> = const { RefCell::new(None) };
}

/// Notes a write, if this thread records.
pub(in crate::nonce) fn record(word: &AtomicU64, value: u64) {
    JOURNAL.with_borrow_mut(|journal| {
        if let Some(journal) = journal {
            journal.push((std::ptr::from_ref(word).addr(), value));
        }
    });
}

/// Runs `work` and returns the addresses and values that it wrote, in order.
pub(super) fn of(work: impl FnOnce()) -> Vec<(usize, u64)> {
    JOURNAL.set(Some(Vec::new()));
    work();
    JOURNAL.take().unwrap()
}

/// How many writes there have been since [`of`] began.
pub(super) fn stores() -> usize {
    JOURNAL.with_borrow(|journal| journal.as_ref().map_or(0, Vec::len))
}
