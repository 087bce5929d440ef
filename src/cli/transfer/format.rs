//! The format of an export: JSON Lines in UTF-8, an object a line, each with its `kind`.
//!
//! | `kind` | members |
//! |---|---|
//! | `export` | the first line and no other: `version`, which is 1; `records`, how many lines follow, if that is known |
//! | `consumer` | `key`, `secret`, `name`; and `previous_secret` with `previous_secret_until`, `rsa_public_key` (PEM), `callbacks`, `permissions`, `dialect`, `enforce`, `enabled`, `created_at` |
//! | `user` | `id`, `name`; and `display_name`, `password_hash` (argon2id in PHC form, at most 128 MiB, 256 MiB times passes and 16 lanes, four different costs in a store), `enabled`, `created_at` |
//! | `token` | an access token: `token`, `token_secret`, `consumer` (its key), `user` (its id); and `permissions`, `issued_at`, `expires_at`, `last_used_at`, `revoked_at` |
//! | `removed_user` | `id`, never to be used again |
//! | `removed_token` | `token`, never to be used again |
//!
//! What stands behind "and" may be left out or null: lists are empty then, `enabled` is true, `enforce` false,
//! `created_at` and `issued_at` are the time of the import, everything else is none. A secret that is not UTF-8 stands
//! in base64 under its name with `_base64` at the end. Times are RFC 3339, read to the second. An unknown member is an
//! error, and so is one that stands twice: a mistyped `enabled` must not let in a consumer that should be out. Empty
//! lines mean nothing. The order of the lines means nothing either, but for the first.

mod line;

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{self, BufRead},
};

use base64::DecodeError;
use thiserror::Error;

use self::line::{ExportLine, JsonLine};
use crate::{
    clock::UnixTime,
    issue::{callback::CallbackError, registration::InvalidText},
    login::password::UnusableHash,
    oauth::rsa::InvalidRsaKey,
    store::transfer::Record,
};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// A record and the number of its line, counted from 1.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) record: Record,
}

/// What is wrong with a file, and where.
#[derive(Debug, Error)]
#[error("{line}: {}{problem}", record.as_ref().map(|record| format!("{record}: ")).unwrap_or_default())]
pub(super) struct FormatError {
    line: usize,
    /// Which record it is, if that could be seen.
    record: Option<String>,
    problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug, Error)]
enum Problem {
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
pub(super) fn write(records: &[Record]) -> String {
    let mut text = String::new();
    let head = JsonLine::Export(ExportLine {
        version: VERSION,
        records: Some(records.len()),
    });
    push(&mut text, &head);
    for record in records {
        push(&mut text, &JsonLine::from(record));
    }
    text
}

fn push(text: &mut String, line: &JsonLine) {
    // Strings, numbers and lists under fixed names: there is nothing in it that could not be written.
    text.push_str(&serde_json::to_string(line).unwrap_or_default());
    text.push('\n');
}

/// Reads an export; what has no time of its own gets `now`.
///
/// The outer error is the input's.
pub(super) fn read(
    input: impl BufRead,
    now: UnixTime,
) -> io::Result<Result<Vec<Line>, FormatError>> {
    let mut reader = Reader::default();
    for (index, line) in input.split(b'\n').enumerate() {
        if let Err(error) = reader.take(index + 1, &line?, now) {
            return Ok(Err(error));
        }
    }
    Ok(reader.finish())
}

/// What a record is called in messages: its kind and its key.
pub(super) fn name(record: &Record) -> String {
    let (kind, key) = identity(record);
    format!("{kind} {key:?}")
}

fn identity(record: &Record) -> (&'static str, &str) {
    match record {
        Record::Consumer(consumer) => ("consumer", consumer.key.as_str()),
        Record::User(user) => ("user", user.id.as_str()),
        Record::AccessToken(token) => ("token", &token.token),
        Record::RemovedUser(id) => ("removed_user", id.as_str()),
        Record::RemovedToken(token) => ("removed_token", token),
    }
}

#[derive(Default)]
struct Reader {
    announced: Option<ExportLine>,
    lines: Vec<Line>,
    /// On which line a record stands.
    places: HashMap<(&'static str, String), usize>,
    last: usize,
}

impl Reader {
    fn take(&mut self, number: usize, text: &[u8], now: UnixTime) -> Result<(), FormatError> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        self.last = number;
        let error = |problem| FormatError {
            line: number,
            record: None,
            problem,
        };
        // Serde would take a list for an object whose members have lost their names.
        if self.announced.is_some() && !text.starts_with(b"{") {
            return Err(error(Problem::NotAnObject));
        }
        let parsed = serde_json::from_slice::<JsonLine>(text);
        if self.announced.is_none() {
            return match parsed {
                Ok(JsonLine::Export(head)) if head.version == VERSION => {
                    self.announced = Some(head);
                    Ok(())
                }
                Ok(JsonLine::Export(head)) => Err(error(Problem::Version(head.version))),
                // A later version may have more members.
                Err(_) => Err(error(
                    line::version(text).map_or(Problem::NotAnExport, Problem::Version),
                )),
                Ok(_) => Err(error(Problem::NotAnExport)),
            };
        }
        let named = |problem| FormatError {
            record: line::called(text),
            ..error(problem)
        };
        let record = match parsed {
            Ok(JsonLine::Export(_)) => return Err(error(Problem::SecondExport)),
            Ok(line) => line.into_record(now).map_err(named)?,
            Err(json) => return Err(named(Problem::Json(line::explain(&json)))),
        };
        let (kind, key) = identity(&record);
        match self.places.entry((kind, key.to_owned())) {
            Entry::Occupied(first) => return Err(named(Problem::Twice(*first.get()))),
            Entry::Vacant(place) => place.insert(number),
        };
        self.lines.push(Line { number, record });
        Ok(())
    }

    fn finish(self) -> Result<Vec<Line>, FormatError> {
        let error = |problem| FormatError {
            line: self.last.max(1),
            record: None,
            problem,
        };
        let Some(head) = &self.announced else {
            return Err(error(Problem::NotAnExport));
        };
        let found = self.lines.len();
        match head.records {
            Some(announced) if announced != found => {
                Err(error(Problem::CutOff { found, announced }))
            }
            _ => Ok(self.lines),
        }
    }
}

#[cfg(test)]
mod tests;
