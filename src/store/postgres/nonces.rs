//! Nonces that all replicas share: those that wait at the same time are inserted by one statement, into partitions by
//! time, which are dropped whole. The tables and functions are in [`super::schema`].
//!
//! One statement checks and inserts, so a nonce is fresh for one replica. The same statement reads up to which timestamp
//! nonces were dropped or may have been lost in a failover: none of those is ever fresh. A partition is
//! dropped in the transaction that raises this floor, alone on the table.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, mpsc, oneshot, watch},
    time::{sleep, timeout},
};
use tokio_postgres::error::SqlState;

use super::{
    PostgresStore, Trouble,
    pool::{Conn, Pool},
    tx::Tx,
};
use crate::{
    clock::UnixTime,
    nonce::{Insertion, NonceUse, OnLost, SharedInsertion, SharedWindow, Unavailable},
    store::{
        StoreError,
        port::{NoncesKept, is_of_logged_outage},
        remote::jittered,
        rows::seconds,
    },
};

/// Seconds in a partition; the functions of the schema know it too.
const SLOT: i64 = 300;
/// How many nonces wait at most; more are unavailable at once.
const QUEUE: usize = 8_192;
/// How many nonces one statement inserts at most.
const BATCH: usize = 1_000;
/// How many statements are under way at most.
const FLIGHTS: usize = 2;
/// How long a statement may take, with a new connection and what it lacks in the database.
const FLIGHT: Duration = Duration::from_millis(600);
/// How long a caller waits.
const PATIENCE: Duration = Duration::from_millis(850);
/// How often one batch is tried, if it lacks partitions or the server is another one.
const ATTEMPTS: u32 = 4;
/// The pause after partitions could not be made or dropped.
const TEND_PAUSE: Duration = Duration::from_secs(5);
/// How long the making and dropping of partitions may take.
const TEND: Duration = Duration::from_secs(10);
/// How much longer than needed partitions are kept, for replicas whose clocks are behind; and how much more timestamps
/// are given up after a failover, for those that were ahead.
const SKEW: i64 = 10;

/// The window in PostgreSQL. It ends with its store.
struct Window {
    queue: mpsc::Sender<Waiting>,
    pool: Arc<Pool>,
    lost_until: Arc<AtomicU64>,
}

/// A nonce whose caller waits.
struct Waiting {
    second: i64,
    digest: [u8; 16],
    now: Time,
    reply: oneshot::Sender<Result<Insertion, Unavailable>>,
}

/// The time of a replica, and how far timestamps may be from it, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    now: i64,
    length: i64,
}

impl Time {
    const fn slot(self) -> i64 {
        self.now / SLOT
    }
}

impl PostgresStore {
    /// Opens the shared window, whose work runs on the store's thread and connections.
    pub(super) fn open_window(&self, on_lost: OnLost) -> Box<dyn SharedWindow> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let (due, tending) = watch::channel(Time::default());
        let lost_until = Arc::new(AtomicU64::new(0));
        let recorder = Recorder {
            pool: Arc::clone(&self.pool),
            on_lost,
            lost_until: Arc::clone(&lost_until),
        };
        self.remote.spawn(insert_all(recorder, waiting, due));
        self.remote.spawn(tend(Arc::clone(&self.pool), tending));
        Box::new(Window {
            queue,
            pool: Arc::clone(&self.pool),
            lost_until,
        })
    }
}

impl Tx {
    /// Whether a nonce is in the shared window.
    pub(super) async fn nonce_used(
        &mut self,
        second: i64,
        digest: [u8; 16],
    ) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT 1 FROM nonces WHERE second = $1 AND digest = $2";
        Ok(Some(self.exists(sql, &[&second, &&digest[..]]).await?))
    }
}

impl SharedWindow for Window {
    fn insert<'a>(
        &'a self,
        now: UnixTime,
        length: Duration,
        nonce: NonceUse<'a>,
    ) -> SharedInsertion<'a> {
        let (reply, inserted) = oneshot::channel();
        let waiting = Waiting {
            second: seconds(UnixTime(nonce.timestamp)),
            digest: nonce.digest(),
            now: Time {
                now: seconds(now),
                length: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
            },
            reply,
        };
        Box::pin(async move {
            // An outage is the cause of what waits too long, if there is one.
            let unavailable = |trouble: Trouble| {
                let outage = self.pool.check().err();
                Unavailable(outage.unwrap_or_else(|| trouble.into()).into())
            };
            if self.queue.try_send(waiting).is_err() {
                return Err(unavailable(Trouble::Overloaded));
            }
            match timeout(PATIENCE, inserted).await {
                Ok(Ok(result)) => result,
                // Its reply was dropped: the store's thread has ended.
                Ok(Err(ended)) => Err(Unavailable(ended.into())),
                Err(_) => Err(unavailable(Trouble::TimedOut)),
            }
        })
    }

    fn lost_until(&self) -> UnixTime {
        UnixTime(self.lost_until.load(Ordering::Relaxed))
    }
}

/// What every insertion needs.
#[derive(Clone)]
struct Recorder {
    pool: Arc<Pool>,
    on_lost: OnLost,
    lost_until: Arc<AtomicU64>,
}

/// Inserts what waits, as long as the runtime lives. While [`FLIGHTS`] statements are under way, callers gather for the
/// next one.
async fn insert_all(
    recorder: Recorder,
    mut waiting: mpsc::Receiver<Waiting>,
    due: watch::Sender<Time>,
) {
    let flights = Arc::new(Semaphore::new(FLIGHTS));
    while let Ok(flight) = Arc::clone(&flights).acquire_owned().await {
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        if let Some(Waiting { now, .. }) = batch.last() {
            due.send_if_modified(|last| {
                let is_due = last.slot() != now.slot() || last.length != now.length;
                *last = *now;
                is_due
            });
        }
        let recorder = recorder.clone();
        tokio::spawn(async move {
            insert(&recorder, batch).await;
            drop(flight);
        });
    }
}

/// Inserts a batch and tells the callers.
async fn insert(recorder: &Recorder, mut batch: Vec<Waiting>) {
    let Recorder {
        pool,
        on_lost,
        lost_until,
    } = recorder;
    // Callers that have given up get no nonce recorded, for the sake of those that wait.
    batch.retain(|waiting| !waiting.reply.is_closed());
    if batch.is_empty() {
        return;
    }
    let inserting = timeout(FLIGHT, try_insert(pool, &batch, *on_lost));
    let inserted = inserting
        .await
        .unwrap_or_else(|_| Err(Trouble::TimedOut.into()));
    match inserted.map_err(|error| pool.failed(error)) {
        Ok(mut inserted) => {
            lost_until.fetch_max(inserted.lost.unsigned_abs(), Ordering::Relaxed);
            for Waiting {
                second,
                digest,
                reply,
                ..
            } in batch
            {
                let insertion = if inserted.fresh.remove(&digest[..]) {
                    Insertion::Fresh
                } else if second <= inserted.lost {
                    Insertion::Lost
                } else if second <= inserted.floor {
                    Insertion::Forgotten
                } else {
                    Insertion::Used
                };
                let _ = reply.send(Ok(insertion));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for waiting in batch {
                let _ = waiting
                    .reply
                    .send(Err(Unavailable(Arc::clone(&error).into())));
            }
        }
    }
}

struct Inserted {
    /// Nonces up to this timestamp were dropped.
    floor: i64,
    /// Nonces up to this timestamp may have been lost.
    lost: i64,
    /// The digests that were not there and are now.
    fresh: HashSet<Vec<u8>>,
}

async fn try_insert(
    pool: &Pool,
    batch: &[Waiting],
    on_lost: OnLost,
) -> Result<Inserted, StoreError> {
    let mut conn = pool.take().await?;
    let seconds: Vec<i64> = batch.iter().map(|waiting| waiting.second).collect();
    let digests: Vec<&[u8]> = batch.iter().map(|waiting| &waiting.digest[..]).collect();
    let time = batch.last().map(|waiting| waiting.now).unwrap_or_default();
    let waived = on_lost == OnLost::Accept;
    for _ in 0..ATTEMPTS {
        let (client, statement) = conn
            .prepare(
                "WITH state AS MATERIALIZED (
                     SELECT floor, CASE WHEN $3::boolean THEN 0 ELSE lost END AS lost, server IS NOT DISTINCT FROM nonce_server() AS same
                     FROM nonce_state
                 ), fresh AS (
                     INSERT INTO nonces (second, digest)
                     SELECT new.second, new.digest
                     FROM state, unnest($1::bigint[], $2::bytea[]) AS new (second, digest)
                     WHERE state.same AND new.second > greatest(state.floor, state.lost)
                     -- In one order, or two batches could wait for each other.
                     ORDER BY new.second, new.digest
                     ON CONFLICT DO NOTHING
                     RETURNING digest
                 ) SELECT same, floor, lost, ARRAY(SELECT digest FROM fresh) FROM state",
            )
            .await?;
        match client
            .query_one(&statement, &[&seconds, &digests, &waived])
            .await
        {
            Ok(row) if row.try_get(0)? => {
                pool.put_back(conn);
                let fresh: Vec<Vec<u8>> = row.try_get(3)?;
                return Ok(Inserted {
                    floor: row.try_get(1)?,
                    lost: row.try_get(2)?,
                    fresh: fresh.into_iter().collect(),
                });
            }
            Ok(_) => adopt_server(&mut conn, time, on_lost).await?,
            Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                make_slots(
                    &mut conn,
                    seconds.iter().map(|second| second / SLOT).collect(),
                )
                .await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Replaced.into())
}

/// Notes that the database is on another server, or on a standby that was promoted. Nonces may be missing there, so
/// every timestamp that a replica may have accepted before is given up, unless the operator waives that.
async fn adopt_server(conn: &mut Conn, time: Time, on_lost: OnLost) -> Result<(), StoreError> {
    let lost = time.now.saturating_add(time.length).saturating_add(SKEW);
    let waived = on_lost == OnLost::Accept;
    let (client, statement) = conn
        .prepare(
            "UPDATE nonce_state AS state SET server = nonce_server(),
                 lost = CASE WHEN state.server IS NULL OR $2::boolean THEN state.lost
                        ELSE greatest(state.lost, $1::bigint) END
             FROM nonce_state AS before
             WHERE state.server IS DISTINCT FROM nonce_server()
             RETURNING before.server",
        )
        .await?;
    if let Some(row) = client.query_opt(&statement, &[&lost, &waived]).await?
        && row.try_get::<_, Option<&str>>(0)?.is_some()
        && waived
    {
        tracing::warn!(
            "PostgreSQL has failed over or was restored, and nonces may be lost; nonce.on_lost waives the wait"
        );
    }
    Ok(())
}

/// In the place of the server that recorded nonces last.
const ELSEWHERE: &str = "elsewhere";

impl Tx {
    pub(super) async fn nonces_kept(&mut self) -> Result<NoncesKept, StoreError> {
        let row = self.first("SELECT server FROM nonce_state", &[]).await?;
        let server: Option<String> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        Ok(match server.as_deref() {
            None => NoncesKept::Nowhere,
            Some(ELSEWHERE) => NoncesKept::Elsewhere,
            Some(_) => NoncesKept::Here,
        })
    }

    pub(super) async fn keep_nonces_elsewhere(&mut self) -> Result<(), StoreError> {
        let note = "UPDATE nonce_state SET server = $1 WHERE server IS DISTINCT FROM $1";
        self.run(note, &[&ELSEWHERE]).await.map(drop)
    }
}

/// Makes the partitions that are missing. They are attached beside inserts that are under way and beside a dump.
async fn make_slots(conn: &mut Conn, slots: Vec<i64>) -> Result<(), StoreError> {
    let (client, statement) = conn
        .prepare("SELECT make_nonce_slot(slot) FROM unnest($1::bigint[]) AS slot")
        .await?;
    let mut slots = slots;
    slots.sort_unstable();
    slots.dedup();
    match client.query(&statement, &[&slots]).await {
        // Another replica has just made one; the next attempt finds it.
        Err(error) if error.code() == Some(&SqlState::DUPLICATE_TABLE) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Makes partitions ahead and drops old ones, each time the present gets into another one.
async fn tend(pool: Arc<Pool>, mut due: watch::Receiver<Time>) {
    while due.changed().await.is_ok() {
        let mut logged = false;
        loop {
            let time = *due.borrow_and_update();
            let tending = timeout(TEND, tend_once(&pool, time)).await;
            match tending.unwrap_or_else(|_| Err(Trouble::TimedOut.into())) {
                Ok(()) => break,
                Err(error) if !logged && !is_of_logged_outage(&error) => {
                    logged = true;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "old nonces cannot be dropped from PostgreSQL yet; tried again"
                    );
                }
                Err(_) => {}
            }
            sleep(jittered(TEND_PAUSE)).await;
        }
    }
}

async fn tend_once(pool: &Pool, Time { now, length }: Time) -> Result<(), StoreError> {
    let mut conn = pool.take().await?;
    let begun = Instant::now();
    // One at a time, so that no transaction is long.
    let (first, last) = ((now - length) / SLOT, (now + length) / SLOT + 2);
    for slot in first..=last {
        make_slots(&mut conn, vec![slot]).await?;
    }
    let age = length + SKEW;
    let old = now - age;
    while begun.elapsed() < TEND {
        let (client, statement) = conn
            .prepare("SELECT drop_nonce_slot($1::bigint, $2::bigint)")
            .await?;
        if !client
            .query_one(&statement, &[&old, &age])
            .await?
            .try_get(0)?
        {
            break;
        }
    }
    pool.put_back(conn);
    Ok(())
}
