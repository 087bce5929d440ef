//! The common parts of backends over a network: a thread with a runtime of its own for their connections, and how
//! an outage begins, ends and is logged.
//!
//! Callers are on many runtimes, and some of these end before the store does, so connections cannot be on any of them.

use std::{
    error::Error as StdError,
    io,
    pin::Pin,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinSet,
    time::{Sleep, sleep},
};

use super::{Result, StoreError};
use crate::{
    base::clock::{self, Clock, UnixTime},
    telemetry::causes::causes,
};

/// A thread that runs a runtime until this is dropped.
pub(super) struct Remote {
    handle: Handle,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// The store was closed.
#[derive(Debug, Error)]
#[error("the store's thread has ended")]
struct Ended;

impl Remote {
    /// Starts the thread.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || drop(runtime.block_on(stopped)))?;
        Ok(Self {
            handle,
            _stop: stop,
        })
    }

    /// The runtime of a test in its place.
    #[cfg(test)]
    pub(super) fn here() -> Self {
        Self {
            handle: Handle::current(),
            _stop: oneshot::channel().0,
        }
    }

    /// Runs `work` on the thread; dropping the future drops `work`.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let mut task = JoinSet::new();
        task.spawn_on(work, &self.handle);
        match task.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => Err(StoreError::Unavailable(Box::new(Ended))),
        }
    }

    /// The runtime of the thread.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts `work`, which ends with the thread at the latest.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// The result of `work`; `None` if `deadline` passes first.
///
/// `tokio::time::timeout` starts a timer each time. If no other timer ends earlier, that wakes the running thread by a
/// system call. Moving an existing deadline costs nothing.
pub(super) async fn before<T>(
    deadline: Pin<&mut Sleep>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = deadline => None,
    }
}

/// Whether the engine answers. While it does not, requests fail at once and one task tries to reach it.
pub(super) struct Outage {
    engine: &'static str,
    state: Mutex<Option<Down>>,
}

struct Down {
    began: Instant,
    since: UnixTime,
    cause: Arc<str>,
}

/// The engine did not answer before, and has not been reached since.
#[derive(Debug, Error)]
#[error("{engine} cannot be reached since {since}: {cause}")]
pub(super) struct StillDown {
    engine: &'static str,
    since: UnixTime,
    cause: Arc<str>,
}

impl Outage {
    /// No outage of `engine`.
    pub(super) const fn none(engine: &'static str) -> Self {
        Self {
            engine,
            state: Mutex::new(None),
        }
    }

    /// Succeeds unless there is an outage.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.state.lock() {
            None => Ok(()),
            Some(down) => Err(StoreError::Unavailable(Box::new(StillDown {
                engine: self.engine,
                since: down.since,
                cause: Arc::clone(&down.cause),
            }))),
        }
    }

    /// Logs that an outage begins, unless there is one already; `true`: the caller has to end it by [`Self::until`].
    pub(super) fn begin(&self, error: &(dyn StdError + 'static)) -> bool {
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
    pub(super) async fn until<T, E, F>(&self, mut attempt: impl FnMut() -> F) -> T
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
pub(super) fn jittered(pause: Duration) -> Duration {
    clock::spread(pause, 2)
}
