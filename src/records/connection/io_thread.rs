//! A thread with a runtime of its own, for the connections of a backend over a network.
//!
//! Callers are on many runtimes, and some of these end before the store does, so connections cannot be on any of them.

use std::{io, pin::Pin, thread};

use thiserror::Error;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::Sleep,
};
use tokio_util::task::AbortOnDropHandle;

use crate::records::values::{Result, StoreError};

/// A thread that runs a runtime until this is dropped.
pub(crate) struct IoThread {
    handle: Handle,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

/// The store was closed.
#[derive(Debug, Error)]
#[error("the store's thread has ended")]
struct Ended;

impl IoThread {
    /// Starts the thread.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
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
    pub(crate) fn here() -> Self {
        Self {
            handle: Handle::current(),
            _stop: oneshot::channel().0,
        }
    }

    /// Runs `work` on the thread; dropping the future drops `work`.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = AbortOnDropHandle::new(self.handle.spawn(work)).await;
        done.unwrap_or_else(|_| Err(StoreError::Unavailable(Box::new(Ended))))
    }

    /// The runtime of the thread.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts `work`, which ends with the thread at the latest.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// The result of `work`; `None` if `deadline` passes first.
///
/// `tokio::time::timeout` starts a timer each time. If no other timer ends earlier, that wakes the running thread by a
/// system call. Moving an existing deadline costs nothing.
pub(crate) async fn before<T>(
    deadline: Pin<&mut Sleep>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = deadline => None,
    }
}
