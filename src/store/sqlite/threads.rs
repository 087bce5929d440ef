//! The threads that speak to SQLite: one that writes, some that read, and one that watches the time.
//!
//! A use case is a closure over a transaction. Whoever asks awaits a channel, so no runtime is ever blocked, and none is
//! needed. The writer takes what has gathered while it worked into one transaction, each use case under a savepoint
//! of its own, and answers after the commit: under load many share one flush of the disk.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Context, Poll, Wake},
    thread::{self, Thread},
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{
    SqliteFault,
    answer::{Slot, Waiter, Watchdog},
    schema,
    tx::SqliteTx,
};
use crate::store::{StoreError, StoreFuture};

/// How long a caller waits for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// Callers that may wait in each line: more than connections are allowed by default.
const QUEUE_LENGTH: usize = 16_384;
/// Use cases in one transaction at most, so that a caller does not wait long for those before it.
const GROUP: usize = 64;
/// How long dropping the store waits for the threads to close their connections.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Gives the answer of a use case to its caller.
type Deliver = Box<dyn FnOnce() + Send>;
/// Runs a use case; what it returns is called once the change is durable.
type UseCase = Box<dyn FnOnce(&mut SqliteTx) -> Result<Deliver, StoreError> + Send>;

struct Task {
    waiter: Arc<dyn Waiter>,
    work: UseCase,
}

/// The connections of a store, all to the same file.
pub(super) struct Connections {
    pub(super) writer: SqliteTx,
    pub(super) readers: Vec<SqliteTx>,
}

/// The running threads; they end when this is dropped.
pub(super) struct Threads {
    // Dropping them ends the threads, once all that waits has been done.
    writes: Sender<Task>,
    reads: Sender<Task>,
    watchdog: Watchdog,
    // Dropped last.
    _shutdown: Shutdown,
}

impl Threads {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: Connections) -> io::Result<Self> {
        let Connections {
            mut writer,
            readers,
        } = connections;
        let (alive, ended) = mpsc::channel();
        let alive = Alive {
            sender: alive,
            closing: Arc::default(),
        };
        let (writes, waiting_writes) = channel(QUEUE_LENGTH);
        let (reads, waiting_reads) = channel(QUEUE_LENGTH);
        let waiting_reads = Arc::new(Mutex::new(waiting_reads));
        let end = alive.clone();
        spawn("store-write", move || {
            write(&Mutex::new(waiting_writes), &mut writer);
            end.close(writer.sql);
        })?;
        for mut reader in readers {
            let (waiting, end) = (Arc::clone(&waiting_reads), alive.clone());
            spawn("store-read", move || {
                read(&waiting, &mut reader);
                end.close(reader.sql);
            })?;
        }
        Ok(Self {
            writes,
            reads,
            watchdog: Watchdog::start()?,
            _shutdown: Shutdown(Mutex::new(ended)),
        })
    }

    /// Runs `work` in a transaction that sees one state of the store and changes nothing.
    pub(super) fn read<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut SqliteTx) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.ask(&self.reads, timeout, work)
    }

    /// Runs `work` in a transaction that is durable when the future is ready. A fault changes nothing.
    ///
    /// # Cancel safety
    /// If the future is dropped, or its time is up, before `work` has begun, it is never begun.
    pub(super) fn write<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut SqliteTx) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.ask(&self.writes, timeout, work)
    }

    fn ask<'a, T: Send + 'static>(
        &'a self,
        queue: &'a Sender<Task>,
        timeout: Duration,
        work: impl FnOnce(&mut SqliteTx) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let (slot, answer) = Slot::new();
            let waiter: Arc<dyn Waiter> = Arc::clone(&slot) as _;
            let work: UseCase = Box::new(move |tx| {
                let value = work(tx)?;
                Ok(Box::new(move || slot.answer(Ok(value))))
            });
            self.watchdog.watch(&waiter, timeout);
            queue
                .try_send(Task { waiter, work })
                .map_err(|_| SqliteFault::Overloaded)?;
            answer
                .await
                .unwrap_or_else(|_| Err(SqliteFault::Stopped.into()))
        })
    }
}

/// Disconnected when the last thread has closed its connection.
struct Shutdown(Mutex<mpsc::Receiver<()>>);

impl Drop for Shutdown {
    fn drop(&mut self) {
        // The last connection to close empties the write-ahead log into the file. A thread that hangs in the disk is
        // not waited for: the log is taken up at the next start.
        let ended = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

/// Held by each thread with a connection until it has closed it.
#[derive(Clone)]
struct Alive {
    sender: mpsc::Sender<()>,
    closing: Arc<Mutex<()>>,
}

impl Alive {
    /// Closes a connection while no other closes: of two that close at the same time, SQLite takes neither for the last,
    /// and the write-ahead log stays.
    fn close(self, connection: Connection) {
        let _turn = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        drop(connection);
        drop(self.sender);
    }
}

/// Runs a use case to its end on this thread. SQLite never lets it wait, but the stream of an export or an import may.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(body).map(drop)
}

fn read(queue: &Mutex<Receiver<Task>>, tx: &mut SqliteTx) {
    until_closed(queue, 1, tx, |tx, tasks| {
        for Task { waiter, work } in tasks {
            match read_one(tx, work) {
                Ok(deliver) => deliver(),
                Err(error) => waiter.fail(error),
            }
        }
    });
}

fn read_one(tx: &mut SqliteTx, work: UseCase) -> Result<Deliver, StoreError> {
    tx.run("BEGIN DEFERRED", [])?;
    let result = work(tx);
    // Nothing was written, so it does not matter how the transaction ends; if it does not, the next one fails.
    tx.run("ROLLBACK", [])?;
    result
}

fn write(queue: &Mutex<Receiver<Task>>, tx: &mut SqliteTx) {
    until_closed(queue, GROUP, tx, |tx, tasks| {
        let waiters: Vec<_> = tasks.iter().map(|task| Arc::clone(&task.waiter)).collect();
        match write_group(tx, tasks) {
            Ok(delivers) => delivers.into_iter().for_each(|deliver| deliver()),
            Err(error) => {
                // One cause for all. Those that have failed on their own have their answer already.
                let error = Arc::new(error);
                for waiter in waiters {
                    waiter.fail(SqliteFault::Group(Arc::clone(&error)).into());
                }
            }
        }
    });
}

/// Runs a group and commits it. An error is the group's: nothing of it is kept.
fn write_group(tx: &mut SqliteTx, tasks: Vec<Task>) -> Result<Vec<Deliver>, StoreError> {
    tx.run("BEGIN IMMEDIATE", [])?;
    if schema::version(&tx.sql)? != schema::VERSION {
        return Err(SqliteFault::Replaced.into());
    }
    let mut delivers = Vec::with_capacity(tasks.len());
    for Task { waiter, work } in tasks {
        tx.run("SAVEPOINT use_case", [])?;
        match work(tx) {
            Ok(deliver) => delivers.push(deliver),
            // SQLite itself ends the transaction after some faults, a full disk among them.
            Err(error) if tx.sql.is_autocommit() => return Err(error),
            Err(error) => {
                tx.run("ROLLBACK TO use_case", [])?;
                waiter.fail(error);
            }
        }
        tx.run("RELEASE use_case", [])?;
    }
    tx.run("COMMIT", [])?;
    Ok(delivers)
}

/// Gives `work` what still has a caller, until the queue is closed.
fn until_closed(
    queue: &Mutex<Receiver<Task>>,
    most: usize,
    tx: &mut SqliteTx,
    work: impl Fn(&mut SqliteTx, Vec<Task>),
) {
    loop {
        let mut tasks = Vec::new();
        let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.blocking_recv_many(&mut tasks, most) == 0 {
            return;
        }
        drop(waiting);
        tasks.retain(|task| task.waiter.is_waiting());
        if tasks.is_empty() {
            continue;
        }
        // A panic ends the use case and not the thread; its caller gets `Stopped`.
        if catch_unwind(AssertUnwindSafe(|| work(tx, tasks))).is_err() {
            tracing::error!("a use case of the store panicked");
        }
        if !tx.sql.is_autocommit()
            && let Err(error) = tx.sql.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction of the store cannot be rolled back");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        pin::Pin,
        sync::mpsc,
        task::{Context, Waker},
    };

    use tempfile::TempDir;

    use super::*;
    use crate::store::sqlite::{Params, open};

    fn threads() -> (TempDir, Threads) {
        let directory = tempfile::tempdir().unwrap();
        let threads = start(&directory.path().join("store.db"));
        (directory, threads)
    }

    fn start(path: &Path) -> Threads {
        let params = Params {
            path: path.to_owned(),
            keys: Vec::new(),
            accepts_clear: false,
        };
        Threads::start(open::open(&params).unwrap()).unwrap()
    }

    /// Lets a future put its use case into the line.
    fn begin<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) {
        let context = &mut Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(context).is_pending());
    }

    /// Retires a user id, for want of something simpler to write.
    fn put<'a>(threads: &'a Threads, id: &'static str) -> StoreFuture<'a, ()> {
        threads.write(TIMEOUT, move |tx| {
            tx.run("INSERT INTO removed_users (id) VALUES (?1)", [id])?;
            Ok(())
        })
    }

    async fn put_so_far(threads: &Threads) -> Vec<String> {
        let read = threads.read(TIMEOUT, |tx| {
            tx.all("SELECT id FROM removed_users ORDER BY id", [], |row| {
                Ok(row.get(0)?)
            })
        });
        read.await.unwrap()
    }

    /// Holds the writer until the sender is used or dropped, and waits until it is held.
    async fn hold(threads: &Threads) -> (mpsc::Sender<()>, StoreFuture<'_, ()>) {
        let (release, released) = mpsc::channel();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let mut held = threads.write(TIMEOUT, move |_| {
            begun.send(()).unwrap();
            let _ = released.recv();
            Ok(())
        });
        begin(&mut held);
        has_begun.await.unwrap();
        (release, held)
    }

    #[tokio::test]
    async fn one_that_fails_leaves_its_group_alone() {
        let (_directory, threads) = threads();
        let (release, held) = hold(&threads).await;
        let mut first = put(&threads, "first");
        let mut failing = threads.write::<()>(TIMEOUT, |tx| {
            tx.run("INSERT INTO removed_users (id) VALUES ('half')", [])?;
            Err(StoreError::Broken("on purpose"))
        });
        let mut taken = put(&threads, "first");
        let mut last = put(&threads, "last");
        for future in [&mut first, &mut failing, &mut taken, &mut last] {
            begin(future);
        }
        drop(release);
        held.await.unwrap();
        first.await.unwrap();
        assert!(matches!(
            failing.await,
            Err(StoreError::Broken("on purpose"))
        ));
        assert!(matches!(taken.await, Err(StoreError::Unavailable(_))));
        last.await.unwrap();
        assert_eq!(put_so_far(&threads).await, ["first", "last"]);
    }

    #[tokio::test]
    async fn one_that_ends_the_transaction_fails_its_group() {
        let (_directory, threads) = threads();
        let (release, held) = hold(&threads).await;
        let mut first = put(&threads, "first");
        // As SQLite does by itself when the disk is full.
        let mut ending = threads.write::<()>(TIMEOUT, |tx| {
            tx.run("ROLLBACK", [])?;
            Err(StoreError::Broken("on purpose"))
        });
        let mut last = put(&threads, "last");
        for future in [&mut first, &mut ending, &mut last] {
            begin(future);
        }
        drop(release);
        held.await.unwrap();
        for future in [first, ending, last] {
            assert!(matches!(future.await, Err(StoreError::Unavailable(_))));
        }
        assert!(put_so_far(&threads).await.is_empty());
        put(&threads, "after").await.unwrap();
        assert_eq!(put_so_far(&threads).await, ["after"]);
    }

    #[tokio::test]
    async fn a_panic_ends_neither_thread_nor_transaction_of_others() {
        let (_directory, threads) = threads();
        let writing = threads.write::<()>(TIMEOUT, |tx| {
            tx.run("INSERT INTO removed_users (id) VALUES ('half')", [])?;
            panic!("on purpose")
        });
        assert!(matches!(writing.await, Err(StoreError::Unavailable(_))));
        for _ in 0..4 {
            let reading = threads.read::<()>(TIMEOUT, |_| panic!("on purpose"));
            assert!(matches!(reading.await, Err(StoreError::Unavailable(_))));
        }
        put(&threads, "after").await.unwrap();
        assert_eq!(put_so_far(&threads).await, ["after"]);
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_asked_and_what_was_not_begun_never_is() {
        let (_directory, threads) = threads();
        let (release, held) = hold(&threads).await;
        let late = threads.write(Duration::ZERO, |tx| {
            tx.run("INSERT INTO removed_users (id) VALUES ('late')", [])
        });
        let error = late.await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)));
        let mut dropped = put(&threads, "dropped");
        begin(&mut dropped);
        drop(dropped);
        // Readers are not held up by the writer.
        assert!(put_so_far(&threads).await.is_empty());
        drop(release);
        held.await.unwrap();
        put(&threads, "after").await.unwrap();
        assert_eq!(put_so_far(&threads).await, ["after"]);
    }

    #[tokio::test]
    async fn readers_write_nothing() {
        let (_directory, threads) = threads();
        let writing = threads.read(TIMEOUT, |tx| {
            tx.run("INSERT INTO removed_users (id) VALUES ('r')", [])
        });
        assert!(matches!(writing.await, Err(StoreError::Unavailable(_))));
        assert!(put_so_far(&threads).await.is_empty());
    }

    #[tokio::test]
    async fn a_read_sees_one_state() {
        let (_directory, threads) = threads();
        let (go, gone) = mpsc::channel::<()>();
        let count = |tx: &SqliteTx| tx.all("SELECT id FROM removed_users", [], |_| Ok(()));
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let mut reading = threads.read(TIMEOUT, move |tx| {
            let before = count(tx)?.len();
            begun.send(()).unwrap();
            let _ = gone.recv();
            Ok((before, count(tx)?.len()))
        });
        begin(&mut reading);
        has_begun.await.unwrap();
        put(&threads, "between").await.unwrap();
        drop(go);
        assert_eq!(reading.await.unwrap(), (0, 0));
    }
}
