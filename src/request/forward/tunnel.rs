//! A connection that has switched to another protocol: bytes pass on both ways, and nothing is read in them.

use std::time::Duration;

use tokio::{
    io::copy_bidirectional_with_sizes,
    time::{Instant, sleep_until},
};

use crate::wire::watched::{Watch, WatchedStream};

/// The buffer of each direction, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// Passes bytes on both ways until both sides have ended. Both may be silent for `idle`; a side that takes nothing, or stays
/// open when the other has ended, for `stalled`. A tunnel that breaks is reset on both sides.
pub async fn run(
    mut caller: WatchedStream,
    mut upstream: WatchedStream,
    idle: Duration,
    stalled: Duration,
) {
    let watches = [caller.watch(), upstream.watch()];
    let copied = {
        let copy =
            copy_bidirectional_with_sizes(&mut caller, &mut upstream, BUFFER_BYTES, BUFFER_BYTES);
        tokio::select! {
            copied = copy => copied.is_ok(),
            () = silence([&watches[0], &watches[1]], idle, stalled) => false,
        }
    };
    if !copied {
        caller.reset();
        upstream.reset();
    }
}

/// Ready once nothing has moved for too long.
async fn silence(watches: [&Watch; 2], idle: Duration, stalled: Duration) {
    let mut moved = 0;
    let mut moved_at = Instant::now();
    loop {
        let now = Instant::now();
        let bytes = watches.iter().map(|watch| watch.moved()).sum();
        if std::mem::replace(&mut moved, bytes) != bytes {
            moved_at = now;
        }
        let waits = |watch: &&Watch| watch.blocked_since().is_some() || watch.has_ended();
        let limit = if watches.iter().any(waits) {
            stalled
        } else {
            idle
        };
        if now >= moved_at + limit {
            return;
        }
        // Bytes may move and the limit may change in the meantime.
        sleep_until((moved_at + limit).min(now + stalled.min(idle) / 4)).await;
    }
}
