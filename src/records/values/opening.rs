//! The purposes of opening a store, and why one cannot be opened.

use std::{error::Error, io, path::Path};

use rustix::fs::StatVfsMountFlags;
use thiserror::Error;

use super::{StoreError, error::is_denied};
use crate::base::network::tls::TlsFileError;

/// The purpose of opening a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// To serve from it: it is created or migrated.
    Serve,
    /// For a command, while other processes may serve from the store: it is created. A store of a server, which other
    /// machines use, is not migrated.
    Command,
    /// For a command that only reads or changes records: as above, but a store of a server is not created.
    Existing,
    /// To seal all secrets with the first key: as above, and secrets in clear are read.
    Reseal,
    /// To look at it: as above, and secrets in clear are read.
    Check,
}

impl Opening {
    /// Whether the store has to be there already.
    pub(in crate::records) const fn needs_store(self) -> bool {
        matches!(self, Self::Existing | Self::Reseal | Self::Check)
    }
}

/// Why a store cannot be opened. It names the location and the fix; nothing was changed.
#[derive(Debug)]
pub struct StoreOpenError {
    /// The file or the database.
    pub location: String,
    /// The problem.
    pub problem: OpenProblem,
}

impl std::fmt::Display for StoreOpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.problem {
            // It names a file of its own.
            OpenProblem::Tls(_) => self.problem.fmt(f),
            problem @ OpenProblem::NotWritable(_) => {
                let grant = grant(Path::new(&self.location));
                let location = &self.location;
                write!(f, "{location}: {problem} {grant}, or correct store.url")
            }
            problem => write!(f, "{}: {problem}", self.location),
        }
    }
}

/// How to let this process write a file and its directory, which may belong to another user: `by user 1; run chown 1 /a`.
/// No owner may write to a file system that is read-only.
pub fn grant(file: &Path) -> String {
    let user = rustix::process::geteuid().as_raw();
    let directory = file.parent().unwrap_or(file);
    let mount = rustix::fs::statvfs(directory);
    if mount.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        let directory = directory.display();
        return format!("while the file system of {directory} is read-only; mount it for writing");
    }
    let directory = directory.display();
    let mut text = format!("by user {user}; run chown {user} {directory}");
    if file.exists() {
        text += &format!(" {}", file.display());
    }
    text
}

impl Error for StoreOpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

/// The problem of a store that cannot be opened, and how to solve it.
#[derive(Debug, Error)]
pub enum OpenProblem {
    /// The directory of the file is missing.
    #[error("its directory does not exist; make it, or correct store.url")]
    DirectoryMissing,
    /// The path exists and is not a file.
    #[error("is not a file; correct store.url")]
    NotAFile,
    /// The file or its directory cannot be read and written.
    #[error("cannot be read and written")]
    NotWritable(#[source] Box<dyn Error + Send + Sync>),
    /// The file has other content.
    #[error("is not an SQLite database; move it away, or correct store.url")]
    NotADatabase,
    /// The file is an SQLite database, but not one of ours.
    #[error("is the database of another program; correct store.url")]
    OfAnotherProgram,
    /// Another process has the file locked for too long.
    #[error("is locked by another process; wait for it or end it, and try again")]
    Locked,
    /// A file of the connection's TLS.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// No server of the URL answers, lets us in and accepts writes.
    #[error("cannot be reached; see the cause, and correct store.url or start the server")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The encoding of the database lacks characters.
    #[error(
        "has the encoding {0}, which lacks characters that callers may send; use a database made with ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding(String),
    /// Transactions of one connection are in several sessions.
    #[error(
        "a pooler changes the session between transactions, which loses settings, prepared statements and notifications; name the server itself, or set the pooler to keep a session for each connection (pool_mode = session)"
    )]
    SessionChanges,
    /// A build before the first release has made the store.
    #[error(
        "was made by an unreleased build of countersign; export it with that build, move it away, and import the export into a new store"
    )]
    Unreleased,
    /// A newer version of countersign has migrated the store.
    #[error("has schema {found} and this version knows schema {known}; run the newer version")]
    NewerSchema {
        /// The schema of the store.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// The database needs a migration, which other processes on it must expect.
    #[error(
        "has schema {found} and this version needs schema {known}; start countersign serve of this version, which migrates it"
    )]
    OlderSchema {
        /// The schema of the store.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// The role of the URL may not make the tables.
    #[error(
        "the role of store.url may not make the tables; run {statement} as a superuser or the owner of the database"
    )]
    RightsMissing {
        /// The statement that gives the rights.
        statement: String,
    },
    /// The role of the URL may not use what another role has made.
    #[error(
        "the role of store.url may not use the store, which another role has made; use that role in store.url, or let it grant its rights"
    )]
    Denied(#[source] Box<dyn Error + Send + Sync>),
    /// There is no store in the database.
    #[error("has no store in it yet; countersign serve makes it")]
    Missing,
    /// The secrets are sealed.
    #[error("is encrypted; name its key in store.encryption_key_file")]
    KeyMissing,
    /// The secrets are in clear, and there is a key.
    #[error("has secrets that are not encrypted; encrypt them with countersign rekey")]
    InClear,
    /// The secrets are sealed with another key.
    #[error("is encrypted with another key; correct store.encryption_key_file")]
    WrongKey,
    /// A server that was reached fails.
    #[error("is reached, and does not serve the store; see the cause")]
    ServerFails(#[source] Box<dyn Error + Send + Sync>),
    /// Something else: the disk, the system, a damaged file.
    #[error("cannot be opened; see the cause, and restore a backup if the file is damaged")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl From<StoreError> for OpenProblem {
    fn from(error: StoreError) -> Self {
        match is_denied(&error) {
            true => Self::Denied(error.into()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<io::Error> for OpenProblem {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}
