//! The format of an export: JSON Lines in UTF-8, an object a line, each with its `kind`.
//!
//! | `kind` | members |
//! |---|---|
//! | `export` | the first line and no other: `version`, which is 1; `records`, how many lines follow, if that is known |
//! | `consumer` | `key`, `secret`, `name`; and `previous_secret` with `previous_secret_until`, `rsa_public_key` (PEM), `callbacks`, `permissions`, `dialect`, `rsa_only`, `enforce`, `enabled`, `created_at` |
//! | `user` | `id`, `name`; and `display_name`, `password_hash` (argon2id in PHC form, bcrypt, PBKDF2, scrypt or phpass; see `import --help`), `enabled`, `created_at` |
//! | `token` | an access token: `token`, `token_secret`, `consumer` (its key), `user` (its id); and `permissions`, `issued_at`, `expires_at`, `last_used_at`, `revoked_at` |
//! | `removed_user` | `id`, never to be used again |
//! | `removed_token` | `token`, never to be used again |
//!
//! The members after "and" may be left out or null: lists are empty then, `enabled` is true, `rsa_only` and `enforce` are false,
//! `created_at` and `issued_at` are the time of the import, everything else is none. A secret that is not UTF-8 is
//! written in base64 under its name with `_base64` at the end. Times are RFC 3339, read to the second. An unknown member is an
//! error, and so is a repeated one: a mistyped `enabled` must not enable a consumer that should be disabled. Empty
//! lines mean nothing. The order of the lines means nothing either, but for the first.

mod line;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{self, BufRead},
};

use base64::DecodeError;
use thiserror::Error;

use self::line::{Head, Line, identity};
use crate::{
    cli::output::Members,
    clock::UnixTime,
    issue::{callback::CallbackError, registration::InvalidText},
    login::password::UnusableHash,
    oauth::rsa::InvalidRsaKey,
    store::transfer::Record,
};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The first line, for records whose number is not known.
pub(super) const HEAD: &str = r#"{"kind":"export","version":1}"#;

/// A record and the number of its line, counted from 1.
pub type Numbered = (usize, Record);

/// What is wrong with a file, and where.
#[derive(Debug, Error)]
#[error("{line}: {}{problem}", record.as_ref().map(|record| format!("{record}: ")).unwrap_or_default())]
pub struct FormatError {
    line: usize,
    /// Which record it is, if that could be seen.
    record: Option<String>,
    problem: LineError,
}

/// What is wrong with a line.
#[derive(Debug, Error)]
pub(crate) enum LineError {
    #[error("{0}")]
    Json(String),
    #[error("is not a JSON object")]
    NotAnObject,
    #[error(
        "the first line of an export is {{\"kind\":\"export\",\"version\":{VERSION}}}; write it in front"
    )]
    NotAnExport,
    #[error("a second export begins here; import one after the other")]
    SecondExport,
    #[error(
        "the export is of version {0} and this program reads {VERSION}; take another countersign"
    )]
    Version(u32),
    #[error(
        "the file ends after {found} of {announced} records, so it was cut off; take a whole one"
    )]
    CutOff { found: usize, announced: usize },
    #[error("stands on line {0} already; take one of the two out")]
    Twice(usize),
    #[error("{0} is missing or empty")]
    SecretMissing(&'static str),
    #[error("{0} and {0}_base64 are both there; leave one out")]
    SecretTwice(&'static str),
    #[error("{0}_base64: {1}")]
    Base64(&'static str, DecodeError),
    #[error("previous_secret and previous_secret_until need each other")]
    HalfPreviousSecret,
    #[error("rsa_only needs rsa_public_key")]
    CannotSign,
    #[error("{0}: {1}")]
    Text(&'static str, InvalidText),
    #[error("callback {0:?}: {1}")]
    Callback(String, CallbackError),
    #[error("rsa_public_key: {0}")]
    RsaKey(#[from] InvalidRsaKey),
    #[error("password_hash {0}; leave it out and set a password")]
    PasswordHash(#[from] UnusableHash),
}

/// Writes records as an export.
#[must_use]
pub fn write(records: &[Record]) -> String {
    let head = Members::default()
        .with("kind", "export")
        .with("version", VERSION)
        .with("records", records.len());
    let lines = records.iter().map(line::written);
    std::iter::once(head.json_line()).chain(lines).collect()
}

/// Reads an export; a time of creation that is left out is `now`.
///
/// # Errors
/// The outer error is the input's.
pub fn read(input: impl BufRead, now: UnixTime) -> io::Result<Result<Vec<Numbered>, FormatError>> {
    let mut reader = Reader::default();
    for (index, line) in input.split(b'\n').enumerate() {
        let line = line?;
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        reader.last = index + 1;
        if let Err(problem) = reader.take(text, now) {
            let is_named = reader.head.is_some() && !matches!(problem, LineError::SecondExport);
            return Ok(Err(FormatError {
                line: reader.last,
                record: line::name_of(text).filter(|_| is_named),
                problem,
            }));
        }
    }
    let line = reader.last.max(1);
    Ok(reader.finish().map_err(|problem| FormatError {
        line,
        record: None,
        problem,
    }))
}

/// What messages call a record: its kind and its key.
pub(super) fn name(record: &Record) -> String {
    let (kind, key) = identity(record);
    format!("{kind} {key:?}")
}

#[derive(Default)]
struct Reader {
    head: Option<Head>,
    records: Vec<Numbered>,
    /// The line of each record.
    places: HashMap<(&'static str, String), usize>,
    /// The number of the last line that is not empty.
    last: usize,
}

impl Reader {
    fn take(&mut self, text: &[u8], now: UnixTime) -> Result<(), LineError> {
        if self.head.is_none() {
            let head = serde_json::from_slice::<Head>(text).map_err(|_| LineError::NotAnExport)?;
            if head.kind == "export" && head.version != VERSION {
                return Err(LineError::Version(head.version));
            }
            if head.kind != "export" || !head.other_members.is_empty() {
                return Err(LineError::NotAnExport);
            }
            self.head = Some(head);
            return Ok(());
        }
        // Serde would take a list for an object whose members have lost their names.
        if !text.starts_with(b"{") {
            return Err(LineError::NotAnObject);
        }
        let line = serde_json::from_slice::<Line>(text)
            .map_err(|error| LineError::Json(line::explain(&error)))?;
        let record = line.into_record(now)?;
        let (kind, key) = identity(&record);
        match self.places.entry((kind, key.to_owned())) {
            Entry::Occupied(first) => return Err(LineError::Twice(*first.get())),
            Entry::Vacant(place) => place.insert(self.last),
        };
        self.records.push((self.last, record));
        Ok(())
    }

    fn finish(self) -> Result<Vec<Numbered>, LineError> {
        let head = self.head.ok_or(LineError::NotAnExport)?;
        let found = self.records.len();
        match head.records {
            Some(announced) if announced != found => Err(LineError::CutOff { found, announced }),
            _ => Ok(self.records),
        }
    }
}

#[cfg(test)]
mod tests;
