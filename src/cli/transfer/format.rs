//! The format of an export: JSON Lines in UTF-8, an object a line, each with its `kind`.
//!
//! | `kind` | members |
//! |---|---|
//! | `export` | the first line and no other: `version`; `records`, how many lines follow, if that is known; in version 2 also `store`, the random name of the store, and `accepted_until`, the last timestamp of a request that it may have accepted |
//! | `consumer` | `key`, `secret`, `name`; and `previous_secret` with `previous_secret_until`, `rsa_public_key` (PEM), `description`, `website`, `callbacks`, `permissions`, `dialect`, `rsa_only`, `enforce`, `enabled`, `created_at` |
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
//!
//! An export is of version 2. A file of another system is of version 1, and so are exports from before there was another.

mod line;

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, Write as _},
    os::unix::fs::FileExt as _,
    sync::Arc,
    time::Duration,
};

use base64::DecodeError;
use tempfile::SpooledTempFile;
use thiserror::Error;

pub use self::line::written as line;
use self::line::{ExportHead, RecordLine, identity};
use crate::{
    cli::output::Members,
    clock::UnixTime,
    issue::{
        callback::CallbackError,
        registration::{InvalidText, InvalidWebPage},
    },
    login::password::UnusableHash,
    oauth::rsa::InvalidRsaKey,
    store::transfer::{Numbered, Origin, Record, import_order},
};

/// The version of the format that is written. Version 1 does not say where the records are from.
const VERSION: u32 = 2;

/// The first line, for records whose number is not known.
pub(super) const HEAD: &str = r#"{"kind":"export","version":1}"#;

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
        "the first line of an export is {{\"kind\":\"export\",\"version\":1}}; write it in front"
    )]
    NotAnExport,
    #[error("a second export begins here; import one after the other")]
    SecondExport,
    #[error(
        "the export is of version {0} and this program reads {VERSION}; take another countersign"
    )]
    Version(u32),
    #[error(
        "the export does not say with store and accepted_until which requests its store may have accepted; take one as \
         countersign export wrote it"
    )]
    OriginMissing,
    #[error(
        "accepted_until is {0}, more than a day from now: correct the clock of this machine or of the one that made the \
         export, and export again"
    )]
    OriginAhead(UnixTime),
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
    #[error("website: {0}")]
    Website(#[from] InvalidWebPage),
    #[error("rsa_public_key: {0}")]
    RsaKey(#[from] InvalidRsaKey),
    #[error("password_hash {0}; leave it out and set a password")]
    PasswordHash(#[from] UnusableHash),
}

/// The first line of an export, with the number of records if that is known.
#[must_use]
pub fn head(records: Option<u64>, origin: Option<&Origin>) -> String {
    let head = Members::default().with("kind", "export");
    let head = match origin {
        None => head.with("version", 1),
        Some(origin) => head
            .with("version", VERSION)
            .with("store", &*origin.store)
            .with("accepted_until", origin.accepted_until),
    };
    match records {
        Some(records) => head.with("records", records).json_line(),
        None => head.json_line(),
    }
}

/// As [`head`], with blanks at the end, so that it can take the place of any other.
#[must_use]
pub fn padded_head(records: Option<u64>) -> String {
    let width = head(Some(u64::MAX), None).len() - 1;
    format!("{:width$}\n", head(records, None).trim_end())
}

/// A file that was read once: every line of it is right, and no record comes twice.
#[derive(Debug)]
pub struct Checked {
    file: Arc<File>,
    now: UnixTime,
    /// Where the records are from, for a file that names it, or for an export that should.
    pub origin: Option<Origin>,
    /// It is an export from before exports named where they are from.
    pub is_undated_export: bool,
    /// Where the records of each place in the import's order are.
    ranges: [Option<Range>; 4],
}

/// From the first record of a kind to behind the last.
#[derive(Debug, Clone)]
struct Range {
    start: u64,
    end: u64,
    /// The number of the line before the first.
    lines: usize,
}

/// Reads a whole file; a time of creation that is left out is `now`. `see` is called with each record.
///
/// # Errors
/// The outer error is the file's.
pub fn check(
    file: File,
    now: UnixTime,
    mut see: impl FnMut(&Record),
) -> io::Result<Result<Checked, FormatError>> {
    let mut checked = Checked {
        file: Arc::new(file),
        now,
        origin: None,
        is_undated_export: false,
        ranges: [const { None }; 4],
    };
    let mut lines = FileLines::new(&checked.file, 0, u64::MAX, 0);
    let (mut head, mut found, mut prints, mut last) = (None, 0, Prints::new(), 1);
    while let Some((number, text)) = lines.next()? {
        last = number;
        let record = match read_line(text, &mut head, now) {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(problem) => {
                let is_named = head.is_some() && !matches!(problem, LineError::SecondExport);
                return Ok(Err(FormatError {
                    line: number,
                    record: line::name_of(text).filter(|_| is_named),
                    problem,
                }));
            }
        };
        found += 1;
        prints.add(&record)?;
        see(&record);
        if let Some(range) = checked.ranges.get_mut(import_order(&record)) {
            let (start, end) = lines.place();
            let first = Range {
                start,
                end,
                lines: number - 1,
            };
            range.get_or_insert(first).end = end;
        }
    }
    let problem = match head.as_ref().map(|head| head.records) {
        None => Some(LineError::NotAnExport),
        Some(Some(announced)) if announced != found => Some(LineError::CutOff { found, announced }),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        return Ok(Err(FormatError {
            line: last,
            record: None,
            problem,
        }));
    }
    if let Some(head) = head {
        checked.is_undated_export = head.version < VERSION && head.records.is_some();
        checked.origin = head.origin();
    }
    let twice = prints.twice()?;
    if !twice.is_empty()
        && let Some(error) = checked.second_of(&twice, &prints)?
    {
        return Ok(Err(error));
    }
    Ok(Ok(checked))
}

/// Reads a line; `None`: it is the first.
fn read_line(
    text: &[u8],
    head: &mut Option<ExportHead>,
    now: UnixTime,
) -> Result<Option<Record>, LineError> {
    if head.is_none() {
        let first =
            serde_json::from_slice::<ExportHead>(text).map_err(|_| LineError::NotAnExport)?;
        if first.kind == "export" && !(1..=VERSION).contains(&first.version) {
            return Err(LineError::Version(first.version));
        }
        let names_origin = first.store.is_some() && first.accepted_until.is_some();
        if first.kind == "export" && first.version == VERSION && !names_origin {
            return Err(LineError::OriginMissing);
        }
        let day_ahead = now.after(Duration::from_secs(86_400));
        if let Some(until) = first.accepted_until.filter(|until| *until > day_ahead) {
            return Err(LineError::OriginAhead(until));
        }
        if first.kind != "export" || !first.other_members.is_empty() {
            return Err(LineError::NotAnExport);
        }
        *head = Some(first);
        return Ok(None);
    }
    // Serde would take a list for an object whose members have lost their names.
    if !text.starts_with(b"{") {
        return Err(LineError::NotAnObject);
    }
    let line = serde_json::from_slice::<RecordLine>(text)
        .map_err(|error| LineError::Json(line::explain(&error)))?;
    line.into_record(now).map(Some)
}

impl Checked {
    /// Hands all records on in the order of [`import_order`], until `take` returns an error.
    ///
    /// # Errors
    /// The file is another than it was, or cannot be read any more; the error of `take`.
    pub fn each(&self, mut take: impl FnMut(Numbered) -> io::Result<()>) -> io::Result<()> {
        for (order, range) in self.ranges.iter().enumerate() {
            let Some(range) = range else { continue };
            let mut lines = FileLines::new(&self.file, range.start, range.end, range.lines);
            while let Some((number, text)) = lines.next()? {
                let record = serde_json::from_slice::<RecordLine>(text)
                    .ok()
                    .and_then(|line| line.into_record(self.now).ok());
                let record = record.ok_or_else(|| io::Error::other("the file was changed"))?;
                if import_order(&record) == order {
                    take((number, record))?;
                }
            }
        }
        Ok(())
    }

    /// What messages call the record on a line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn name(&self, line: usize) -> io::Result<String> {
        let mut lines = FileLines::new(&self.file, 0, u64::MAX, 0);
        while let Some((number, text)) = lines.next()? {
            if number == line {
                return Ok(line::name_of(text).unwrap_or_default());
            }
        }
        Ok(String::new())
    }

    /// Finds the first record that comes a second time, among those with these hashes.
    fn second_of(&self, twice: &HashSet<u64>, prints: &Prints) -> io::Result<Option<FormatError>> {
        let mut places = HashMap::new();
        let mut found: Option<(usize, String, usize)> = None;
        self.each(|(number, record)| {
            if twice.contains(&prints.print(&record)) {
                let name = name(&record);
                match places.entry(name.clone()) {
                    Entry::Vacant(place) => drop(place.insert(number)),
                    Entry::Occupied(first)
                        if found.as_ref().is_none_or(|found| number < found.0) =>
                    {
                        found = Some((number, name, *first.get()));
                    }
                    Entry::Occupied(_) => {}
                }
            }
            Ok(())
        })?;
        Ok(found.map(|(line, name, first)| FormatError {
            line,
            record: Some(name),
            problem: LineError::Twice(first),
        }))
    }
}

/// What messages call a record: its kind and its key.
pub(super) fn name(record: &Record) -> String {
    let (kind, key) = identity(record);
    format!("{kind} {key:?}")
}

/// The lines of a part of a file, without those that are empty.
struct FileLines<'f> {
    input: BufReader<At<'f>>,
    end: u64,
    number: usize,
    /// Where the line begins that was read last, and where the next one does.
    begin: u64,
    next: u64,
    buffer: Vec<u8>,
}

/// Reads a file from its own position; other readers of the same file do not move it.
struct At<'f> {
    file: &'f File,
    place: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.place)?;
        self.place += count as u64;
        Ok(count)
    }
}

impl<'f> FileLines<'f> {
    fn new(file: &'f File, place: u64, end: u64, number: usize) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, At { file, place }),
            end,
            number,
            begin: place,
            next: place,
            buffer: Vec::new(),
        }
    }

    /// The next line and its number, counted from 1.
    fn next(&mut self) -> io::Result<Option<(usize, &[u8])>> {
        while self.next < self.end {
            self.buffer.clear();
            let count = self.input.read_until(b'\n', &mut self.buffer)?;
            if count == 0 {
                break;
            }
            self.begin = self.next;
            self.next += count as u64;
            self.number += 1;
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.buffer.trim_ascii())));
            }
        }
        Ok(None)
    }

    /// Where the line that was read last begins and ends.
    const fn place(&self) -> (u64, u64) {
        (self.begin, self.next)
    }
}

/// Hashes of all records of a file, on disk where they are many, to find those that come twice.
struct Prints {
    hasher: RandomState,
    file: BufWriter<SpooledTempFile>,
    count: u64,
}

/// Hashes that are in memory at once, of eight bytes each.
const PRINTS: u64 = 4 << 20;

impl Prints {
    fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            file: BufWriter::new(SpooledTempFile::new(1 << 20)),
            count: 0,
        }
    }

    fn print(&self, record: &Record) -> u64 {
        self.hasher.hash_one(identity(record))
    }

    fn add(&mut self, record: &Record) -> io::Result<()> {
        let print = self.print(record);
        self.count += 1;
        self.file.write_all(&print.to_ne_bytes())
    }

    /// The hashes that were added more than once.
    fn twice(&mut self) -> io::Result<HashSet<u64>> {
        self.file.flush()?;
        let parts = self.count / PRINTS + 1;
        let mut twice = HashSet::new();
        for part in 0..parts {
            let file = self.file.get_mut();
            file.rewind()?;
            let mut input = BufReader::with_capacity(1 << 16, file);
            let mut prints = Vec::new();
            for _ in 0..self.count {
                let mut print = [0; 8];
                input.read_exact(&mut print)?;
                let print = u64::from_ne_bytes(print);
                if print % parts == part {
                    prints.push(print);
                }
            }
            prints.sort_unstable();
            let equal = prints.windows(2).filter(|pair| pair.first() == pair.last());
            twice.extend(equal.filter_map(|pair| pair.first()));
        }
        Ok(twice)
    }
}

#[cfg(test)]
mod tests;
