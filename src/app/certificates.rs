//! Notices that files of certificates have changed.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::config::Config;

/// The state of the files of both sides' TLS at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    /// Those of `listen.tls`.
    pub(super) listener: Vec<Option<FileStamp>>,
    /// Those of `upstream.tls`.
    pub(super) upstream: Vec<Option<FileStamp>>,
}

/// Which file it is, when anything about it changed last, and how long it is. The time of the last change, unlike that
/// of the last modification, also tells of a file that was moved here with its old date, and of rights given later.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    file: (u64, u64),
    changed: (i64, i64),
    length: u64,
}

impl Stamps {
    /// Looks at the files; to be called before they are read, so that a change in between is noticed the next time.
    pub(super) fn of(config: &Config) -> Self {
        let (listener, upstream) = (&config.listen.tls, &config.upstream.tls);
        let served = listener.certificate.iter().chain(&listener.key);
        let shown = upstream.certificate.iter().chain(&upstream.key);
        Self {
            listener: served.chain(&listener.client_ca).map(stamp).collect(),
            upstream: shown.chain(&upstream.ca).map(stamp).collect(),
        }
    }
}

/// Links are followed: what they lead to may be swapped as a whole.
fn stamp(path: impl AsRef<Path>) -> Option<FileStamp> {
    let found = fs::metadata(path).ok()?;
    Some(FileStamp {
        file: (found.dev(), found.ino()),
        changed: (found.ctime(), found.ctime_nsec()),
        length: found.len(),
    })
}
