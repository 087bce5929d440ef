//! Limits the heaps of the allocator, and returns memory that it keeps free to the system.
//!
//! glibc gives each thread a heap of its own, up to eight heaps for each processor. The threads of the store read records,
//! and some texts of these stay in the cache. Other threads cannot use the memory that is freed between them: 280 of the
//! 2,000 bytes of a cached pair of consumer and token.
//!
//! glibc returns free pages only from the end of a heap. Connections that were busy at the same time leave holes all over it
//! when they are parked, so the process would stay as large as it was when most of them were busy: 21 KB for each of 9,900
//! idle connections, instead of 6.

#![allow(
    unsafe_code,
    reason = "glibc's mallopt and malloc_trim, which no safe crate offers"
)]

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicU32, Ordering},
};

/// Trim the heap after this many connections have been parked. Each frees about 15 KB.
const WORTH_IT: u32 = 256;

static PARKED: AtomicU32 = AtomicU32::new(0);

/// Lets all threads share one heap for each worker and one more, so that no worker waits for a thread of the store. Called before
/// there are threads: one that has a heap keeps it.
pub fn limit_heaps(workers: NonZeroUsize) {
    let heaps = i32::try_from(workers.get()).unwrap_or(i32::MAX);
    // SAFETY: it sets a number of the allocator, and may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, heaps.saturating_add(1));
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = heaps;
}

/// Counts a connection that has freed its buffers.
pub fn connection_parked() {
    PARKED.fetch_add(1, Ordering::Relaxed);
}

/// Returns free pages to the system if enough connections have been parked since the last time.
///
/// Took 0.1 to 1.5 ms after up to 7,500 connections; a thread that allocates from the same heap waits for this long.
pub fn return_free_pages() {
    if PARKED.load(Ordering::Relaxed) < WORTH_IT {
        return;
    }
    PARKED.store(0, Ordering::Relaxed);
    let since = std::time::Instant::now();
    // SAFETY: it may be called from any thread at any time, and 0 is a valid number of bytes to leave at the end of the heap.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    tracing::debug!(took = ?since.elapsed(), "returned free pages");
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;

    use super::*;

    const MIB: usize = 1 << 20;

    fn resident() -> usize {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    }

    #[test]
    fn holes_are_returned_once_enough_connections_are_parked() {
        let pieces: Vec<Vec<u8>> = (0..128 * MIB / 8192).map(|_| vec![1; 8192]).collect();
        let kept: Vec<Vec<u8>> = pieces
            .into_iter()
            .enumerate()
            .filter_map(|(index, piece)| (index % 8 == 0).then_some(piece))
            .collect();
        let full = resident();
        return_free_pages();
        assert!(resident() + 16 * MIB > full, "no connection is parked");
        for _ in 0..WORTH_IT {
            connection_parked();
        }
        return_free_pages();
        assert!(resident() + 64 * MIB < full, "{} of {full}", resident());
        assert!(kept.iter().all(|piece| piece.iter().all(|&byte| byte == 1)));
    }
}
