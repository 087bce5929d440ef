//! Reads a file of records: JSON Lines as [`mod@super::line`] describes them, or CSV whose columns are mapped onto the
//! same members.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    io::{self, BufRead, Read},
    mem::take,
    time::Duration,
};

use csv::{ErrorKind, StringRecord};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::line::{Defaults, Head, LineError, VERSION, name_of, record};
use crate::{
    cli::progress::Progress,
    operator::manage::{CONSUMER_FIELDS, FieldKind, USER_FIELDS, distinct_members},
    records::store::transfer::{Numbered, Origin},
};

/// The contents of a file.
#[derive(Default)]
pub(super) struct Contents {
    records: Vec<Numbered>,
    /// The origin of the records, if the file names it.
    pub(super) origin: Option<Origin>,
    /// The problems, each with its line.
    pub(super) problems: Vec<(usize, String)>,
    /// The records of lines that cannot be read; a record that names one of them is not reported again.
    pub(super) unread: BTreeSet<String>,
    /// A line cannot be read at all.
    pub(super) has_unnamed: bool,
    /// The lines of the records.
    lines: HashMap<String, usize>,
    defaults: Defaults,
}

impl Contents {
    pub(super) fn new(defaults: Defaults) -> Self {
        Self {
            defaults,
            ..Self::default()
        }
    }

    /// Takes the records, after the last of them was read.
    pub(super) fn take_records(&mut self) -> Vec<Numbered> {
        // Millions of records have as many names here, which nothing needs any more.
        self.lines = HashMap::new();
        take(&mut self.records)
    }

    /// Reads JSON Lines.
    pub(super) fn read_lines(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let (mut head, mut number, mut last, mut found) = (None, 0, 1, 0);
        let mut line = Vec::new();
        let mut progress = Progress::new("lines read");
        loop {
            progress.at(number as u64);
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            number += 1;
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            last = number;
            if head.is_none() {
                match self.read_head(text) {
                    Ok(first) => head = Some(first),
                    Err(error) => {
                        self.problems.push((number, error.to_string()));
                        return Ok(());
                    }
                }
                continue;
            }
            found += 1;
            // Serde would accept a list as an object without the names of its members.
            let members = match text.first() {
                Some(b'{') => distinct_members(text).map_err(LineError::from),
                _ => Err(LineError::NotAnObject),
            };
            let named = || name_of(&serde_json::from_slice(text).ok()?);
            self.add(number, members, named);
        }
        let error = match head.map(|head| head.records) {
            None => LineError::NotAnExport,
            Some(Some(announced)) if announced != found => LineError::CutOff { found, announced },
            Some(_) => return Ok(()),
        };
        self.problems.push((last, error.to_string()));
        Ok(())
    }

    fn read_head(&mut self, text: &[u8]) -> Result<Head, LineError> {
        let mut first = distinct_members(text).map_err(|_| LineError::NotAnExport)?;
        if first.remove("kind") != Some("export".into()) {
            return Err(LineError::NotAnExport);
        }
        let version = first.get("version").and_then(Value::as_u64);
        if let Some(version) = version.filter(|version| *version > VERSION.into()) {
            return Err(LineError::Version(version));
        }
        let head = Head::deserialize(Value::Object(first)).map_err(|_| LineError::NotAnExport)?;
        let day_ahead = self.defaults.now.after(Duration::from_secs(86_400));
        match (head.store.clone(), head.accepted_until) {
            (_, Some(until)) if until > day_ahead => return Err(LineError::OriginAhead(until)),
            (Some(store), Some(accepted_until)) => {
                self.origin = Some(Origin {
                    store,
                    accepted_until,
                });
            }
            _ if head.version == VERSION => return Err(LineError::OriginMissing),
            // An older export, which does not name its origin. Its store may have accepted requests until just now.
            _ if head.records.is_some() => {
                self.origin = Some(Origin {
                    store: String::new(),
                    accepted_until: self.defaults.accepted_until,
                });
            }
            _ => {}
        }
        Ok(head)
    }

    /// Reads the rows of a CSV file with a header, records of one `kind`. Without a `map` all its columns are members. A cell
    /// that is empty or `null` is left out.
    pub(super) fn read_csv(
        &mut self,
        input: impl Read,
        map: &[Mapping],
        kind: &str,
        delimiter: u8,
        null: &str,
    ) -> io::Result<()> {
        let mut rows = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(input);
        let header = match rows.headers().map_err(LineError::of_csv) {
            Ok(header) => header,
            Err(error) => {
                self.problems.push((1, error?.to_string()));
                return Ok(());
            }
        };
        let columns = match columns(header, map) {
            Ok(columns) => columns,
            Err(problem) => {
                self.problems.push((1, problem));
                return Ok(());
            }
        };
        let mut row = StringRecord::new();
        let mut progress = Progress::new("lines read");
        loop {
            progress.at(rows.position().line());
            let line = match rows.read_record(&mut row) {
                Ok(false) => return Ok(()),
                Ok(true) => row.position().map_or(0, csv::Position::line),
                Err(error) => {
                    let line = error.position().map_or(1, csv::Position::line);
                    let error = LineError::of_csv(error)?;
                    self.has_unnamed = true;
                    self.problems.push((to_usize(line), error.to_string()));
                    continue;
                }
            };
            let mut members = Map::from_iter([("kind".to_owned(), kind.into())]);
            let mut read = Ok(());
            for (member, column) in &columns {
                let cell = row.get(*column).unwrap_or_default();
                if !cell.is_empty() && cell != null {
                    match value(member, cell) {
                        Ok(value) => drop(members.insert(member.clone(), value)),
                        Err(error) => read = Err(error),
                    }
                }
            }
            let name = name_of(&members);
            self.add(to_usize(line), read.map(|()| members), || name);
        }
    }

    /// Adds the record of a line, or its problem. Messages call a record that cannot be read `named`.
    fn add(
        &mut self,
        number: usize,
        members: Result<Map<String, Value>, LineError>,
        named: impl FnOnce() -> Option<String>,
    ) {
        match members.and_then(|members| record(members, &self.defaults)) {
            Ok(record) => match self.lines.entry(record.name()) {
                Entry::Vacant(entry) => {
                    entry.insert(number);
                    self.records.push((number, record));
                }
                Entry::Occupied(first) => {
                    let error = LineError::Twice(*first.get());
                    let problem = format!("{}: {error}", first.key());
                    self.problems.push((number, problem));
                }
            },
            Err(error) => {
                let name = named().filter(|_| !matches!(error, LineError::SecondExport));
                let problem = match &name {
                    Some(name) => format!("{name}: {error}"),
                    None => error.to_string(),
                };
                self.problems.push((number, problem));
                self.has_unnamed |= name.is_none();
                self.unread.extend(name);
            }
        }
    }
}

/// A member of a record and the column that holds it.
pub(super) type Mapping = (String, String);

/// Reads `key=consumer_key`, or `key` where both have one name.
pub(super) fn mapping(text: &str) -> Result<Mapping, &'static str> {
    let (member, column) = text.split_once('=').unwrap_or((text, text));
    if member.is_empty() || column.is_empty() {
        return Err("write MEMBER=COLUMN, as in key=consumer_key");
    }
    Ok((member.to_owned(), column.to_owned()))
}

/// Each member and the number of its column.
fn columns(header: &StringRecord, map: &[Mapping]) -> Result<Vec<(String, usize)>, String> {
    let all: Vec<Mapping> = match map {
        [] => header
            .iter()
            .filter_map(|name| mapping(name).ok())
            .collect(),
        map => map.to_vec(),
    };
    let mut members: Vec<(String, usize)> = Vec::new();
    for (member, column) in all {
        let found = header
            .iter()
            .enumerate()
            .filter(|(_, name)| *name == column);
        let index = match found.map(|(index, _)| index).collect::<Vec<_>>()[..] {
            [] => {
                let columns = header.iter().collect::<Vec<_>>().join(", ");
                let problem = format!("there is no column {column:?}; the columns are {columns}");
                return Err(problem);
            }
            [_] if members.iter().any(|(known, _)| *known == member) => {
                return Err(format!("{member} is mapped twice; remove one of the two"));
            }
            [index] => index,
            _ => return Err(format!("there are two columns {column:?}; rename one")),
        };
        members.push((member, index));
    }
    Ok(members)
}

/// A cell as the JSON value of its member.
fn value(member: &str, cell: &str) -> Result<Value, LineError> {
    let mut fields = CONSUMER_FIELDS.iter().chain(USER_FIELDS);
    let field = fields.find(|field| field.name == member);
    match field.map(|field| &field.kind) {
        Some(FieldKind::List(_)) => Ok(cell.split_whitespace().collect()),
        kind if member == "enabled" || matches!(kind, Some(FieldKind::Flag)) => {
            match &*cell.to_ascii_lowercase() {
                "true" | "t" | "yes" | "y" | "1" => Ok(true.into()),
                "false" | "f" | "no" | "n" | "0" => Ok(false.into()),
                _ => Err(LineError::Flag(member.to_owned(), cell.to_owned())),
            }
        }
        _ => Ok(cell.into()),
    }
}

fn to_usize(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

impl LineError {
    /// The problem of a row; the outer error is the file's.
    fn of_csv(error: csv::Error) -> io::Result<Self> {
        match *error.kind() {
            ErrorKind::UnequalLengths {
                expected_len: expected,
                len: found,
                ..
            } => Ok(Self::Cells { found, expected }),
            ErrorKind::Utf8 { .. } => Ok(Self::NotUtf8),
            _ => Err(error.into()),
        }
    }
}
