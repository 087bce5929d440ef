//! A few threads of their own for password hashing, so that logins can never starve the proxy.
//!
//! argon2 takes milliseconds of a core and megabytes each time. On the workers it would stop every connection of that
//! worker; on an unbounded pool a flood of logins would take the machine. Here at most [`PasswordPool`]'s threads hash, at a
//! lower priority than the workers, and a job that finds the short queue full, or a quarter of it taken by its own address,
//! fails at once.

use std::{io, net::IpAddr, sync::Arc};

use thiserror::Error;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use super::pending_checks::PendingChecks;

/// Threads for short, expensive work. They end when the pool is dropped.
#[derive(Debug)]
pub struct PasswordPool {
    /// Only its threads are used. Taken when the pool is dropped.
    runtime: Option<Runtime>,
    /// One for each job that runs or waits.
    pending: Arc<PendingChecks>,
}

/// Why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The queue is full, in all or for this address: try again later.
    #[error("too many jobs are waiting")]
    Busy,
    /// The job panicked, or its thread is gone.
    #[error("the job failed")]
    Failed,
}

impl PasswordPool {
    /// Threads of the usual pool: two hash at a time, 38 MiB; up to 256 MiB while there are imported hashes that take as much.
    pub const THREADS: usize = 2;
    /// Jobs that may wait in the usual pool: about a fifth of a second's work. An import is rejected if a check would take
    /// more than a second, so the work is never more than nine seconds.
    pub const QUEUE: usize = 16;

    /// A pool of at most `threads` threads and `queue` waiting jobs.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn start(threads: usize, queue: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_name("password")
            .on_thread_start(|| {
                // On Linux a priority belongs to the thread that sets it. Without it logins only compete on equal terms.
                let _ = rustix::process::setpriority_process(None, 10);
            })
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            pending: PendingChecks::new(threads + queue),
        })
    }

    /// Runs `job` on one of the threads: for a caller at an address, or for the operator.
    ///
    /// # Errors
    ///
    /// [`PoolError::Busy`] at once if the queue is full, or if the address has a quarter of it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before the job has begun, it is never begun.
    pub async fn run<T: Send + 'static>(
        &self,
        address: Option<IpAddr>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let check = self.pending.admit(address).ok_or(PoolError::Busy)?;
        let runtime = self.runtime.as_ref().ok_or(PoolError::Failed)?;
        let job = move || {
            let _check = check;
            job()
        };
        // Unlike a handle, a set takes its job back when it is dropped.
        let mut jobs = JoinSet::new();
        jobs.spawn_blocking_on(job, runtime.handle());
        let done = jobs.join_next().await.ok_or(PoolError::Failed)?;
        done.map_err(|error| {
            tracing::error!(%error, "a job of the password pool failed");
            PoolError::Failed
        })
    }
}

impl Drop for PasswordPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        task::{Context, Poll, Waker},
    };

    use super::*;

    /// Begins a job as an executor would, and leaves it waiting.
    fn poll<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn runs_a_job_and_survives_one_that_panics() {
        let pool = PasswordPool::start(1, 4).unwrap();
        assert_eq!(pool.run(None, || 1 + 1).await, Ok(2));
        assert_eq!(
            pool.run(None, || -> u8 { panic!("on purpose") }).await,
            Err(PoolError::Failed)
        );
        assert_eq!(pool.run(None, || 3).await, Ok(3));
    }

    #[tokio::test]
    async fn fails_at_once_when_the_queue_is_full() {
        let pool = PasswordPool::start(2, 3).unwrap();
        let (started, starts) = mpsc::channel();
        let (gate, gated) = mpsc::channel::<()>();
        let gated = Arc::new(Mutex::new(gated));
        let occupy = || {
            let (started, gated) = (started.clone(), Arc::clone(&gated));
            pool.run(None, move || {
                started.send(()).unwrap();
                let _ = gated.lock().unwrap().recv();
            })
        };
        let (mut first, mut second) = (pin!(occupy()), pin!(occupy()));
        assert!(poll(first.as_mut()).is_pending());
        starts.recv().unwrap();
        assert!(poll(second.as_mut()).is_pending());
        starts.recv().unwrap();
        // Both threads are taken: three wait, the fourth is turned away.
        let mut waiting: Vec<_> = (0..3)
            .map(|number| Box::pin(pool.run(None, move || number)))
            .collect();
        for job in &mut waiting {
            assert!(poll(job.as_mut()).is_pending());
        }
        assert_eq!(pool.run(None, || 0).await, Err(PoolError::Busy));
        drop(gate);
        for (number, job) in waiting.into_iter().enumerate() {
            assert_eq!(job.await, Ok(number));
        }
        assert_eq!((first.await, second.await), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn begins_no_job_without_a_waiter() {
        let pool = PasswordPool::start(1, 4).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let (started, starts) = mpsc::channel();
        let (gate, gated) = mpsc::channel::<()>();
        let mut first = pin!(pool.run(None, move || {
            started.send(()).unwrap();
            let _ = gated.recv();
        }));
        assert!(poll(first.as_mut()).is_pending());
        starts.recv().unwrap();
        {
            let ran = Arc::clone(&ran);
            let mut given_up = Box::pin(pool.run(None, move || ran.fetch_add(1, Ordering::SeqCst)));
            assert!(poll(given_up.as_mut()).is_pending());
        }
        drop(gate);
        first.await.unwrap();
        assert_eq!(pool.run(None, || ()).await, Ok(()));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }
}
