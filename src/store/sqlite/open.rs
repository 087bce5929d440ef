//! Opening the file: what it is, that it is ours, and that it is ready before any thread starts.

use std::{
    error::Error,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use thiserror::Error;

use super::{
    Params, schema,
    threads::{Connections, block_on},
    tx::SqliteTx,
};
use crate::store::{
    StoreError,
    seal::{Mismatch, Seal},
    sql::{sealing::mismatch, users::fill_costs},
};

/// Why a store cannot be opened. Each names the file and the fix; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The directory of the file is missing.
    #[error("{}: its directory does not exist; make it, or correct store.url", .0.display())]
    DirectoryMissing(PathBuf),
    /// Neither a file nor absent.
    #[error("{}: is not a file; correct store.url", .0.display())]
    NotAFile(PathBuf),
    /// The file or its directory cannot be read and written.
    #[error("{}: cannot be read and written; give this user the right to, on the file and on its directory", .path.display())]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file has other content.
    #[error("{}: is not an SQLite database; move it away, or correct store.url", .0.display())]
    NotADatabase(PathBuf),
    /// The file is an SQLite database, but none of ours.
    #[error("{}: is the database of another program; correct store.url", .0.display())]
    OfAnotherProgram(PathBuf),
    /// A newer version of countersign has migrated the file.
    #[error("{}: has schema {found} and this version knows schema {known}; run the newer version", .path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// Another process holds the file for too long.
    #[error("{}: is locked by another process; wait for it or end it, and try again", .0.display())]
    Locked(PathBuf),
    /// The secrets are sealed.
    #[error("{}: is encrypted; name its key in store.encryption_key_file", .0.display())]
    KeyMissing(PathBuf),
    /// The secrets are in clear, and there is a key.
    #[error("{}: has secrets that are not encrypted; encrypt them with countersign rekey", .0.display())]
    InClear(PathBuf),
    /// The secrets are sealed with another key.
    #[error("{}: is encrypted with another key; correct store.encryption_key_file", .0.display())]
    WrongKey(PathBuf),
    /// Something else: the disk, the system, a damaged file.
    #[error("{}: cannot be opened; see the cause, and restore a backup if the file is damaged", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Connections that read.
const READERS: usize = 2;
/// How long one step waits for the lock of another process: less than callers wait for an answer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes to which the write-ahead log is cut back when it has been emptied into the file.
const LOG_BYTES: u32 = 16 << 20;
/// Statements kept ready by each connection: all there are.
const STATEMENTS: usize = 128;

/// Makes or takes up the file and brings it to the newest schema.
pub(super) fn open(params: &Params) -> Result<Connections, OpenError> {
    // A relative name could read as `:memory:` or as a URI.
    let path = &std::path::absolute(&params.path).map_err(|error| failed(&params.path, error))?;
    create_or_check(path)?;
    let has_log = log_of(path).metadata().is_ok_and(|log| log.len() > 0);
    let step = |error| explain(path, error);
    let mut tx = SqliteTx {
        sql: connect(path).map_err(step)?,
        seal: Arc::new(
            Seal::sealed(&params.keys, params.accepts_clear)
                .map_err(|error| failed(path, error))?,
        ),
    };
    if tx.sql.is_readonly("main").map_err(step)? {
        let source = io::Error::from(io::ErrorKind::ReadOnlyFilesystem).into();
        return Err(OpenError::NotWritable {
            path: path.clone(),
            source,
        });
    }
    // Looked at before anything is written, for a file that is not ours or newer stays as it is, and so does a log that
    // somebody who was killed has left beside it.
    keep_log(&tx.sql, has_log).map_err(step)?;
    if !schema::is_ours(&tx.sql).map_err(step)? {
        return Err(OpenError::OfAnotherProgram(path.clone()));
    }
    refuse_newer(path, &tx.sql)?;
    use_log(&tx.sql).map_err(step)?;
    prepare(path, params, &mut tx)?;
    keep_log(&tx.sql, false).map_err(step)?;
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        let sql = connect(path).map_err(step)?;
        sql.pragma_update(None, "query_only", true).map_err(step)?;
        let seal = Arc::clone(&tx.seal);
        readers.push(SqliteTx { sql, seal });
    }
    Ok(Connections {
        writer: tx,
        readers,
    })
}

/// Makes an empty file that only its owner can read, before SQLite would make one that others can; its companions get
/// their mode from it.
fn create_or_check(path: &Path) -> Result<(), OpenError> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let directory = path.parent().unwrap_or(path);
    match created {
        Ok(_) => {
            tracing::info!(path = %path.display(), "the store is created");
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| failed(path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(path),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(OpenError::DirectoryMissing(path.to_owned()))
        }
        Err(error) => Err(unwritable(path, error)),
    }
}

/// The smallest page of SQLite, and so the shortest database; it takes some shorter files for empty ones.
const SHORTEST: u64 = 512;

/// Does not open the file: to close it again would take away the locks that another connection of this process has
/// on it. SQLite finds out by itself what is no database.
fn check(path: &Path) -> Result<(), OpenError> {
    let metadata = path.metadata().map_err(|error| unwritable(path, error))?;
    if !metadata.is_file() {
        return Err(OpenError::NotAFile(path.to_owned()));
    }
    if (1..SHORTEST).contains(&metadata.len()) {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "others than the owner may open the store; set its mode to 0600");
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = Connection::open_with_flags(path, flags)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    sql.set_prepared_statement_cache_capacity(STATEMENTS);
    // FULL flushes the log at every commit, so that what was answered survives a power loss.
    sql.pragma_update(None, "synchronous", "FULL")?;
    sql.pragma_update(None, "foreign_keys", true)?;
    sql.pragma_update(None, "trusted_schema", false)?;
    sql.pragma_update(None, "cell_size_check", true)?;
    Ok(sql)
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Whether closing the last connection leaves the log as it is, rather than to empty it into the file.
fn keep_log(sql: &Connection, keep: bool) -> rusqlite::Result<bool> {
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
}

fn use_log(sql: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        // SQLite does not wait for this lock itself when two processes make the file at once.
        match sql
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
        {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
            Ok(_) => return sql.pragma_update(None, "journal_size_limit", LOG_BYTES),
        }
    }
}

/// Migrates, all or nothing, and checks that the keys are the right ones.
fn prepare(path: &Path, params: &Params, tx: &mut SqliteTx) -> Result<(), OpenError> {
    let step = |error| explain(path, error);
    // What sealing replaces is overwritten, not only let go.
    let pragma = tx
        .sql
        .pragma_update(None, "secure_delete", !params.keys.is_empty());
    pragma.map_err(step)?;
    tx.sql.execute_batch("BEGIN IMMEDIATE").map_err(step)?;
    let prepared = prepare_in_transaction(path, tx);
    if prepared.is_err() && !tx.sql.is_autocommit() {
        // Closing the connection would do as much.
        let _ = tx.sql.execute_batch("ROLLBACK");
    }
    prepared
}

fn prepare_in_transaction(path: &Path, tx: &mut SqliteTx) -> Result<(), OpenError> {
    let step = |error| explain(path, error);
    let found = schema::version(&tx.sql).map_err(step)?;
    refuse_newer(path, &tx.sql)?;
    schema::migrate(&tx.sql).map_err(step)?;
    let mismatch = block_on(mismatch(tx)).map_err(|error| failed(path, error))?;
    match mismatch {
        None => {}
        Some(Mismatch::InClear) => return Err(OpenError::InClear(path.to_owned())),
        Some(Mismatch::KeyMissing(_)) if tx.seal.has_no_key() => {
            return Err(OpenError::KeyMissing(path.to_owned()));
        }
        Some(Mismatch::KeyMissing(_)) => return Err(OpenError::WrongKey(path.to_owned())),
    }
    if found < schema::COSTS_SINCE {
        block_on(fill_costs(tx)).map_err(|error| failed(path, error))?;
    }
    tx.sql.execute_batch("COMMIT").map_err(step)
}

fn refuse_newer(path: &Path, sql: &Connection) -> Result<(), OpenError> {
    let found = schema::version(sql).map_err(|error| explain(path, error))?;
    if found > schema::VERSION {
        return Err(OpenError::NewerSchema {
            path: path.to_owned(),
            found,
            known: schema::VERSION,
        });
    }
    Ok(())
}

/// Writes the file again and empties the log, so that neither keeps a secret from before it was sealed.
pub(super) fn wipe(path: &Path) -> rusqlite::Result<()> {
    let sql = connect(path)?;
    sql.execute_batch("VACUUM")?;
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Says what a fault of SQLite means for the operator.
fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::Locked(path.to_owned())
        }
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase(path.to_owned()),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            OpenError::NotWritable {
                path: path.to_owned(),
                source: error.into(),
            }
        }
        _ => failed(path, error),
    }
}

fn unwritable(path: &Path, error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::NotWritable {
                path: path.to_owned(),
                source: error.into(),
            }
        }
        _ => failed(path, error),
    }
}

pub(super) fn failed(path: &Path, error: impl Into<Box<dyn Error + Send + Sync>>) -> OpenError {
    OpenError::Failed {
        path: path.to_owned(),
        source: error.into(),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        match error {
            FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..) => Self::Broken("a column has a value of another type"),
            error => Self::Unavailable(Box::new(error)),
        }
    }
}
