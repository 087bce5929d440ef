//! How an outage of a backend over a network begins, ends and is logged.

use std::{
    error::Error as StdError,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::sleep;

use crate::{
    base::clock::{self, Clock, UnixTime},
    records::values::error::{Result, StillDown},
    telemetry::log::causes::causes,
};

/// Whether the engine answers. While it does not, requests fail at once and one task tries to reach it.
pub(crate) struct Outage {
    engine: &'static str,
    state: Mutex<Option<Down>>,
}

struct Down {
    began: Instant,
    since: UnixTime,
    cause: Arc<str>,
}

impl Outage {
    /// No outage of `engine`.
    pub(crate) const fn none(engine: &'static str) -> Self {
        Self {
            engine,
            state: Mutex::new(None),
        }
    }

    /// Succeeds unless there is an outage.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.state.lock() {
            None => Ok(()),
            Some(down) => Err(StillDown {
                engine: self.engine,
                since: down.since,
                cause: Arc::clone(&down.cause),
            })?,
        }
    }

    /// Logs that an outage begins, unless there is one already; `true`: the caller has to end it by [`Self::until`].
    pub(crate) fn begin(&self, error: &(dyn StdError + 'static)) -> bool {
        let mut state = self.state.lock();
        if state.is_some() {
            return false;
        }
        let cause: Arc<str> = causes(error).into();
        tracing::error!(engine = self.engine, %cause, "the store cannot be reached");
        *state = Some(Down {
            began: Instant::now(),
            since: Clock::system().now(),
            cause,
        });
        true
    }

    /// Tries until `attempt` succeeds, then ends the outage and logs that.
    pub(crate) async fn until<T, E, F>(&self, mut attempt: impl FnMut() -> F) -> T
    where
        E: StdError + 'static,
        F: Future<Output = Result<T, E>>,
    {
        let mut pause = SHORTEST_PAUSE;
        let reached = loop {
            sleep(jittered(pause)).await;
            match attempt().await {
                Ok(reached) => break reached,
                Err(error) => {
                    if let Some(down) = &mut *self.state.lock() {
                        down.cause = causes(&error).into();
                    }
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        if let Some(down) = self.state.lock().take() {
            let seconds = down.began.elapsed().as_secs_f32();
            tracing::info!(
                engine = self.engine,
                seconds,
                "the store can be reached again"
            );
        }
        reached
    }
}

/// The pause before the first attempt to reach an engine again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts: requests are served again within two seconds of the engine's return.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Between a half and the whole of `pause`, so that replicas do not all come at once.
pub(crate) fn jittered(pause: Duration) -> Duration {
    clock::spread(pause, 2)
}
