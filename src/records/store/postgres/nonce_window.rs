//! Nonces that all replicas share: pending nonces are inserted by one statement, into partitions by time, which are
//! dropped whole. The tables and functions are in [`super::schema`].
//!
//! One statement checks and inserts, so a nonce is fresh for one replica. The same statement reads up to which
//! timestamp nonces were dropped or may have been lost in a failover: none of those is ever fresh. A partition is
//! dropped in the transaction that raises this floor, alone on the table.

use std::{
    collections::HashSet,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::watch,
    time::{Sleep, sleep, timeout},
};
use tokio_postgres::error::SqlState;

use super::pool::{Conn, PostgresPool, Purpose};
use crate::{
    base::clock::UnixTime,
    records::{
        connection::{
            io_thread::{IoThread, before},
            outage::jittered,
        },
        nonce::{
            Insertion, OnLost, SharedWindow,
            shared::{self, CLOCK_SKEW, ClocksApart, QueuedNonce, Writer, Written},
        },
        store::engine::{Migrated, TimedOut},
        values::{Result, StoreError, is_logged_outage, value::seconds},
    },
};

/// Seconds in a partition, for the functions of the schema.
const SLOT: i64 = 300;
/// The most attempts to write one batch, if it lacks partitions or the server is another one.
const ATTEMPTS: u32 = 4;
/// The pause after partitions could not be created or dropped.
const MAINTAIN_PAUSE: Duration = Duration::from_secs(5);
/// The time that it may take to create and drop partitions.
const MAINTAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Partitions are kept this many seconds longer than needed, for replicas whose clocks are behind; and after a failover
/// this many more timestamps are rejected, for those whose clocks were ahead.
const SKEW: i64 = CLOCK_SKEW.cast_signed();

/// Inserts by one statement.
struct PostgresInserter {
    pool: Arc<PostgresPool>,
    /// Changes when partitions have to be created and dropped.
    due: watch::Sender<Time>,
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

/// Opens the shared window, whose work runs on the store's thread and connections. It ends with the store.
pub(super) fn open_window(pool: &Arc<PostgresPool>, thread: &IoThread) -> Box<dyn SharedWindow> {
    let (due, changed) = watch::channel(Time::default());
    thread.spawn(maintain(Arc::clone(pool), changed));
    let inserter = PostgresInserter {
        pool: Arc::clone(pool),
        due,
    };
    shared::open(inserter, thread)
}

impl Writer for PostgresInserter {
    fn check(&self) -> Result<()> {
        self.pool.check()
    }

    async fn write(&self, nonces: &[QueuedNonce], deadline: Pin<&mut Sleep>) -> Result<Written> {
        let time = nonces.last().map(|nonce| Time {
            now: seconds(nonce.now),
            length: i64::try_from(nonce.length.as_secs()).unwrap_or(i64::MAX),
        });
        let time = time.unwrap_or_default();
        self.due.send_if_modified(|last| {
            let is_due = last.slot() != time.slot() || last.length != time.length;
            *last = time;
            is_due
        });
        let inserted = before(deadline, self.insert(nonces, time)).await;
        let inserted = inserted.unwrap_or_else(|| Err(TimedOut.into()));
        inserted.map_err(|error| self.pool.failed(error))
    }
}

impl PostgresInserter {
    async fn insert(&self, nonces: &[QueuedNonce], time: Time) -> Result<Written> {
        let mut conn = self.pool.take(Purpose::Nonces).await?;
        let second = |nonce: &QueuedNonce| seconds(UnixTime(nonce.timestamp));
        let seconds: Vec<i64> = nonces.iter().map(second).collect();
        let digests: Vec<&[u8]> = nonces.iter().map(|nonce| &nonce.digest[..]).collect();
        let waived = nonces
            .last()
            .is_some_and(|nonce| nonce.on_lost == OnLost::Accept);
        for _ in 0..ATTEMPTS {
            let (client, statement) = conn
                .prepare(
                    "WITH state AS MATERIALIZED (
                         SELECT floor, CASE WHEN $3::boolean THEN 0 ELSE lost END AS lost,
                             server IS NOT DISTINCT FROM countersign.nonce_server() AS same,
                             abs(extract(epoch FROM clock_timestamp()) - $4::bigint) > $5::bigint AS apart
                         FROM countersign.nonce_state
                     ), fresh AS (
                         INSERT INTO countersign.nonces (second, digest)
                         SELECT new.second, new.digest
                         FROM state, unnest($1::bigint[], $2::bytea[]) AS new (second, digest)
                         WHERE state.same AND NOT state.apart AND new.second > greatest(state.floor, state.lost)
                         -- In one order, or two batches could wait for each other.
                         ORDER BY new.second, new.digest
                         ON CONFLICT DO NOTHING
                         RETURNING digest
                     ) SELECT apart OR same, apart, floor, lost, ARRAY(SELECT digest FROM fresh) FROM state",
                )
                .await?;
            match client
                .query_one(&statement, &[&seconds, &digests, &waived, &time.now, &SKEW])
                .await
            {
                Ok(row) if row.try_get(0)? => {
                    conn.put_back();
                    if row.try_get(1)? {
                        return Err(StoreError::Unavailable(ClocksApart.into()));
                    }
                    let (floor, lost): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
                    let fresh: Vec<Vec<u8>> = row.try_get(4)?;
                    let mut fresh: HashSet<_> = fresh.into_iter().collect();
                    let insertions = nonces.iter().zip(&seconds).map(|(nonce, &second)| {
                        if fresh.remove(&nonce.digest[..]) {
                            Insertion::Fresh
                        } else if second <= lost {
                            Insertion::Lost
                        } else if second <= floor {
                            Insertion::Forgotten
                        } else {
                            Insertion::Used
                        }
                    });
                    return Ok(Written {
                        insertions: insertions.collect(),
                        lost: lost.unsigned_abs(),
                    });
                }
                Ok(_) => adopt_server(&conn, time, waived).await?,
                Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                    make_slots(&conn, seconds.iter().map(|second| second / SLOT).collect()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Migrated.into())
    }
}

/// Notes that the database is on another server, or on a standby that was promoted. Nonces may be missing there, so
/// every timestamp that a replica may have accepted before is rejected, unless the operator waives that.
async fn adopt_server(conn: &Conn, time: Time, waived: bool) -> Result<()> {
    let length = time.length.saturating_add(SKEW);
    let (client, statement) = conn
        .prepare(
            "UPDATE countersign.nonce_state AS state SET server = countersign.nonce_server(),
                 lost = CASE WHEN state.server IS NULL OR $2::boolean THEN state.lost
                        ELSE greatest(state.lost, greatest($1::bigint, floor(extract(epoch FROM clock_timestamp()))::bigint) + $3::bigint) END
             FROM countersign.nonce_state AS before
             WHERE state.server IS DISTINCT FROM countersign.nonce_server()
             RETURNING before.server",
        )
        .await?;
    if let Some(row) = client
        .query_opt(&statement, &[&time.now, &waived, &length])
        .await?
        && row.try_get::<_, Option<&str>>(0)?.is_some()
        && waived
    {
        tracing::warn!(
            "PostgreSQL has failed over or was restored, and nonces may be lost; nonce.on_lost waives the wait"
        );
    }
    Ok(())
}

/// Makes the partitions that are missing. They can be attached during inserts and during a dump.
async fn make_slots(conn: &Conn, slots: Vec<i64>) -> Result<()> {
    let (client, statement) = conn
        .prepare("SELECT countersign.make_nonce_slot(slot, $2::bigint) FROM unnest($1::bigint[]) AS slot")
        .await?;
    let mut slots = slots;
    slots.sort_unstable();
    slots.dedup();
    match client.query(&statement, &[&slots, &SLOT]).await {
        // Another replica has just made one; the next attempt finds it.
        Err(error) if error.code() == Some(&SqlState::DUPLICATE_TABLE) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Makes partitions ahead and drops old ones, each time the clock enters another one.
async fn maintain(pool: Arc<PostgresPool>, mut due: watch::Receiver<Time>) {
    while due.changed().await.is_ok() {
        let mut logged = false;
        loop {
            let time = *due.borrow_and_update();
            let maintained = timeout(MAINTAIN_TIMEOUT, maintain_once(&pool, time)).await;
            match maintained.unwrap_or_else(|_| Err(TimedOut.into())) {
                Ok(()) => break,
                Err(error) if !logged && !is_logged_outage(&error) => {
                    logged = true;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "old nonces cannot be dropped from PostgreSQL yet; tried again"
                    );
                }
                Err(_) => {}
            }
            sleep(jittered(MAINTAIN_PAUSE)).await;
        }
    }
}

async fn maintain_once(pool: &PostgresPool, Time { now, length }: Time) -> Result<()> {
    let mut conn = pool.take(Purpose::Nonces).await?;
    let begun = Instant::now();
    // One at a time, so that no transaction is long.
    let (first, last) = ((now - length) / SLOT, (now + length) / SLOT + 2);
    for slot in first..=last {
        make_slots(&conn, vec![slot]).await?;
    }
    let age = length + SKEW;
    let old = now - age;
    while begun.elapsed() < MAINTAIN_TIMEOUT {
        let (client, statement) = conn
            .prepare("SELECT countersign.drop_nonce_slot($1::bigint, $2::bigint, $3::bigint)")
            .await?;
        if !client
            .query_one(&statement, &[&old, &age, &SLOT])
            .await?
            .try_get(0)?
        {
            break;
        }
    }
    conn.put_back();
    Ok(())
}
