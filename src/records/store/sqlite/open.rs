//! Opens the file: checks that it is ours, and prepares it before any thread starts.

use std::{
    fs::File,
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    ptr,
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, ffi};

use super::schema;
use crate::{
    base::file::new_file::create_new,
    records::values::{StoreError, error::DiskFull, opening::OpenProblem},
};

/// The time that one step waits for the lock of another process: less than callers wait for an answer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes to which the write-ahead log is cut back when it has been emptied into the file.
const LOG_BYTES: u32 = 16 << 20;
/// Statements kept ready by each connection: all there are.
const STATEMENTS: usize = 128;

/// Connections that read.
const READERS: usize = 5;

/// Makes or opens the file; returns the connection that writes and those that read.
pub(super) fn open(
    path: &Path,
    is_sealed: bool,
) -> Result<(Connection, Vec<Connection>), OpenProblem> {
    // A relative name could read as `:memory:` or as a URI.
    let path = &std::path::absolute(path)?;
    create_or_check(path)?;
    let has_log = log_of(path).metadata().is_ok_and(|log| log.len() > 0);
    let writer = connect(path)?;
    if writer.is_readonly("main")? {
        let source = io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
        return Err(OpenProblem::NotWritable(source.into()));
    }
    // Checked before anything is written: a file that is newer or not ours stays as it is, and so does a log that a
    // killed process has left next to it.
    keep_log(&writer, has_log)?;
    if schema::is_unreleased(&writer)? {
        return Err(OpenProblem::Unreleased);
    }
    if !schema::is_ours(&writer)? {
        return Err(OpenProblem::OfAnotherProgram);
    }
    let (found, known) = (schema::version(&writer)?, schema::STATEMENTS.schema.known());
    if found > known {
        return Err(OpenProblem::NewerSchema { found, known });
    }
    use_log(&writer)?;
    keep_log(&writer, false)?;
    // Secrets in clear that sealing replaces are overwritten, not only freed.
    writer.pragma_update(None, "secure_delete", is_sealed)?;
    let reader = |_| {
        let reader = connect(path)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(reader)
    };
    let readers = (0..READERS).map(reader).collect::<rusqlite::Result<_>>()?;
    Ok((writer, readers))
}

/// Makes an empty file that only its owner can read, before SQLite would make one that others can; its companions get
/// their mode and owner from it.
fn create_or_check(path: &Path) -> Result<(), OpenProblem> {
    let directory = path.parent().unwrap_or(path);
    match create_new(path) {
        Ok(_) => {
            tracing::info!(path = %path.display(), "the store is created");
            Ok(File::open(directory)?.sync_all()?)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(path),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(OpenProblem::DirectoryMissing)
        }
        Err(error) => Err(unwritable(error)),
    }
}

/// The smallest page of SQLite, and so the shortest database; it takes some shorter files for empty ones.
const SHORTEST: u64 = 512;

/// Does not open the file: closing it again would release the locks that another connection of this process has on it.
/// SQLite itself rejects a file that is not a database.
fn check(path: &Path) -> Result<(), OpenProblem> {
    let metadata = path.metadata().map_err(unwritable)?;
    if !metadata.is_file() {
        return Err(OpenProblem::NotAFile);
    }
    if (1..SHORTEST).contains(&metadata.len()) {
        return Err(OpenProblem::NotADatabase);
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "others than the owner may open the store; set its mode to 0600");
    }
    Ok(())
}

/// Lets SQLite allocate pages one by one, from its first connection on. By default each connection allocates room for 20 at
/// once, 87 KB, and at rest most use a few.
#[expect(unsafe_code, reason = "rusqlite has no safe function for it")]
pub(super) fn allocate_single_pages() {
    static CONFIGURED: Once = Once::new();
    // SAFETY: the arguments are those of this option. No other thread uses SQLite: each connection of the program is opened
    // after this call. If there is a connection already, SQLite refuses and changes nothing.
    CONFIGURED.call_once(|| unsafe {
        ffi::sqlite3_config(
            ffi::SQLITE_CONFIG_PAGECACHE,
            ptr::null_mut::<std::ffi::c_void>(),
            0,
            0,
        );
    });
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    allocate_single_pages();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = Connection::open_with_flags(path, flags)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    sql.set_prepared_statement_cache_capacity(STATEMENTS);
    // FULL flushes the log at every commit, so that acknowledged changes survive a power loss.
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

/// Whether closing the last connection leaves the log as it is, rather than emptying it into the file.
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

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

impl From<rusqlite::Error> for OpenProblem {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            _ if is_busy(&error) => Self::Locked,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::NotWritable(error.into())
            }
            _ => Self::Failed(error.into()),
        }
    }
}

fn unwritable(error: io::Error) -> OpenProblem {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenProblem::NotWritable(error.into())
        }
        _ => error.into(),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => DiskFull(error.into()).into(),
            _ => error.into(),
        })
    }
}
