//! The rows of an input: JSON Lines as `operator/manage/transfer/export_line.rs` describes them, or CSV whose columns are
//! mapped onto the same members.

use std::{
    borrow::Cow,
    io::{self, BufRead as _, BufReader, Read},
    rc::Rc,
};

use csv::{ErrorKind, StringRecord};
use serde_json::{Map, Value};

use super::quotes::{Misquoted, Quotes};
use crate::{
    operator::manage::{
        CONSUMER_FIELDS, FieldKind, USER_FIELDS, distinct_members,
        transfer::{
            export_line::{LineError, name_of},
            member_names,
        },
    },
    telemetry::log::lines::visible,
};

/// The format of an input.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format<'a> {
    /// JSON Lines, the first of which is the head.
    Lines,
    /// CSV with a header, whose rows are records of this kind.
    Csv(&'a str, &'a CsvArgs),
}

/// The options of CSV.
#[derive(Debug, clap::Args)]
pub(super) struct CsvArgs {
    /// The file is CSV with a header, and each row is one of these
    #[arg(long, value_name = "KIND", value_parser = ["consumer", "user", "token"])]
    csv: Option<String>,
    /// The column that holds each member, as in key=consumer_key,secret; other columns are left out [default: every
    /// column, under its own name]
    #[arg(long, value_name = "MEMBER=COLUMN", value_delimiter = ',', value_parser = mapping, requires = "csv")]
    map: Vec<Mapping>,
    /// The character between the cells of CSV; \t for a tab
    #[arg(long, value_name = "C", value_parser = delimiter, default_value = ",", requires = "csv")]
    delimiter: u8,
    /// A cell of CSV with this text is left out, as an empty one is; \N for MySQL
    #[arg(long, value_name = "TEXT", default_value = "", requires = "csv")]
    null: String,
    /// The meaning of a backslash in a cell of CSV
    #[arg(long, value_name = "MEANING", value_enum, requires = "csv")]
    backslashes: Option<Backslashes>,
}

impl CsvArgs {
    /// The format of the input.
    pub(super) fn format(&self) -> Format<'_> {
        match &self.csv {
            None => Format::Lines,
            Some(kind) => Format::Csv(kind, self),
        }
    }

    fn has_quotes(&self) -> bool {
        self.backslashes != Some(Backslashes::Escape)
    }
}

/// The meaning of a backslash in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Backslashes {
    /// It escapes what follows, and no cell is quoted, as mysql --batch writes
    Escape,
    /// It is itself, as psql --csv writes
    Literal,
}

impl Format<'_> {
    /// The unit in which messages count: a line of JSON Lines, or a row of CSV, whose first one is the header.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Lines => "line",
            Self::Csv(..) => "row",
        }
    }

    /// The place of a problem in an input of this name.
    pub(super) fn place(self, input: &str, number: usize) -> String {
        match self {
            Self::Lines => format!("{input}:{number}"),
            Self::Csv(..) => format!("{input}: row {number}"),
        }
    }
}

/// The rows of an input, one after the other.
pub(super) enum Rows<'a> {
    Lines(LineRows<'a>),
    Csv(Box<CsvRows<'a>>),
}

impl<'a> Rows<'a> {
    /// The rows of an input; the inner error is the problem of a header.
    pub(super) fn new(
        input: impl Read + 'a,
        format: Format<'a>,
    ) -> io::Result<Result<Self, String>> {
        match format {
            Format::Lines => Ok(Ok(Self::Lines(LineRows {
                input: BufReader::with_capacity(1 << 16, Box::new(input)),
                text: Vec::new(),
                number: 0,
                bytes: 0,
            }))),
            Format::Csv(kind, args) => {
                let rows = CsvRows::new(input, kind, args)?;
                Ok(rows.map(|rows| Self::Csv(Box::new(rows))))
            }
        }
    }

    /// Goes to the next row; returns its number in [`Format::unit`], or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Lines(rows) => rows.next(),
            Self::Csv(rows) => rows.next(),
        }
    }

    /// The members of the row.
    pub(super) fn members(&self) -> Result<Map<String, Value>, LineError> {
        match self {
            // Serde would accept a list as an object without the names of its members.
            Self::Lines(rows) => match rows.text().first() {
                Some(b'{') => Ok(distinct_members(rows.text())?),
                _ => Err(LineError::NotAnObject),
            },
            Self::Csv(rows) => rows.members(),
        }
    }

    /// The name of the row's record in messages, if it shows one although it cannot be read.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Lines(rows) => name_of(&serde_json::from_slice(rows.text()).ok()?),
            Self::Csv(rows) => rows.name(),
        }
    }

    /// The number of bytes that were read.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Lines(rows) => rows.bytes,
            Self::Csv(rows) => rows.reader.position().byte(),
        }
    }
}

/// U+FEFF in UTF-8, which some editors write at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest line of JSON, in bytes, with its end: a record takes a few hundred.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// JSON Lines; empty ones are left out.
pub(super) struct LineRows<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
    text: Vec<u8>,
    number: usize,
    bytes: u64,
}

impl LineRows<'_> {
    pub(super) fn next(&mut self) -> io::Result<Option<usize>> {
        loop {
            self.text.clear();
            let mut line = (&mut self.input).take(MAX_LINE_BYTES + 1);
            let read = line.read_until(b'\n', &mut self.text)?;
            if read == 0 {
                return Ok(None);
            }
            self.bytes += read as u64;
            self.number += 1;
            if self.number == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if read as u64 > MAX_LINE_BYTES {
                let problem = format!("line {} is longer than 1 MiB", self.number);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            if !self.text().is_empty() {
                return Ok(Some(self.number));
            }
        }
    }

    /// The line without white space around it.
    pub(super) fn text(&self) -> &[u8] {
        self.text.trim_ascii()
    }
}

/// The rows of CSV after the header.
pub(super) struct CsvRows<'a> {
    reader: csv::Reader<Box<dyn Read + 'a>>,
    /// The number of the row; that of the header is 1.
    number: usize,
    kind: &'a str,
    args: &'a CsvArgs,
    /// The places of bytes that follow a quoted cell.
    misquoted: Misquoted,
    /// Each member and the number of its column.
    columns: Vec<(String, usize)>,
    row: StringRecord,
    /// The problem of the row.
    problem: Option<LineError>,
}

impl<'a> CsvRows<'a> {
    fn new(
        input: impl Read + 'a,
        kind: &'a str,
        args: &'a CsvArgs,
    ) -> io::Result<Result<Self, String>> {
        let quotes = Quotes::new(input, args.delimiter);
        let misquoted = Rc::clone(&quotes.misquoted);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(args.delimiter)
            .quoting(args.has_quotes())
            .from_reader(Box::new(quotes) as Box<dyn Read>);
        let header = match reader.headers().map_err(LineError::from_csv) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error?.to_string())),
        };
        Ok(columns(header, kind, &args.map).map(|columns| Self {
            reader,
            number: 1,
            kind,
            args,
            misquoted,
            columns,
            row: StringRecord::new(),
            problem: None,
        }))
    }

    fn next(&mut self) -> io::Result<Option<usize>> {
        self.problem = match self.reader.read_record(&mut self.row) {
            Ok(false) => return Ok(None),
            Ok(true) => None,
            Err(error) => Some(LineError::from_csv(error)?),
        };
        let end = self.reader.position().byte();
        let mut misquoted = self.misquoted.borrow_mut();
        while misquoted.front().is_some_and(|place| *place < end) {
            misquoted.pop_front();
            if self.args.has_quotes() {
                self.problem = Some(LineError::Misquoted);
            }
        }
        drop(misquoted);
        self.number += 1;
        Ok(Some(self.number))
    }

    fn members(&self) -> Result<Map<String, Value>, LineError> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let mut members = Map::from_iter([("kind".to_owned(), self.kind.into())]);
        for (member, cell) in self.cells() {
            let cell = match self.args.backslashes {
                _ if !cell.contains('\\') => Cow::Borrowed(cell),
                None => return Err(LineError::Backslash(member.to_owned())),
                Some(Backslashes::Literal) => Cow::Borrowed(cell),
                Some(Backslashes::Escape) if cell == "\\N" => continue,
                Some(Backslashes::Escape) => Cow::Owned(unescaped(cell)),
            };
            members.insert(member.to_owned(), value(member, &cell)?);
        }
        Ok(members)
    }

    fn name(&self) -> Option<String> {
        if self.problem.is_some() {
            return None;
        }
        let cells = self.cells();
        let cells = cells.map(|(member, cell)| (member.to_owned(), cell.into()));
        name_of(
            &cells
                .chain([("kind".to_owned(), self.kind.into())])
                .collect(),
        )
    }

    /// The cells that hold something, each with its member.
    fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let cells = self.columns.iter().map(|(member, column)| {
            let cell = self.row.get(*column).unwrap_or_default();
            (member.as_str(), cell)
        });
        cells.filter(|(_, cell)| !cell.is_empty() && *cell != self.args.null)
    }
}

/// The text of a cell as MySQL escapes it.
fn unescaped(cell: &str) -> String {
    let mut text = String::new();
    let mut letters = cell.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            letter => letter,
        });
    }
    text
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

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [c] if c.is_ascii() && !b"\"\r\n".contains(c) => Ok(*c),
        _ => Err("write one ASCII character, or \\t for a tab"),
    }
}

/// Each member and the number of its column.
fn columns(
    header: &StringRecord,
    kind: &str,
    map: &[Mapping],
) -> Result<Vec<(String, usize)>, String> {
    let all: Vec<Mapping> = match map {
        [] => header
            .iter()
            .filter_map(|name| mapping(name).ok())
            .collect(),
        map => map.to_vec(),
    };
    let mut mapped: Vec<(String, usize)> = Vec::new();
    for (member, column) in all {
        let found = header
            .iter()
            .enumerate()
            .filter(|(_, name)| *name == column);
        let index = match found.map(|(index, _)| index).collect::<Vec<_>>()[..] {
            [] => {
                // Its cells are not shown: without a header they are those of a record, with its secret.
                let (count, delimiter) = (header.len(), delimiter_hint(header));
                return Err(format!(
                    "there is no column {column:?} in the header, which has {count}{delimiter}"
                ));
            }
            [_] if mapped.iter().any(|(known, _)| *known == member) => {
                return Err(format!("{member} is mapped twice; remove one of the two"));
            }
            [index] => index,
            _ => return Err(format!("there are two columns {column:?}; rename one")),
        };
        if let Some(hint) = member_names::hint_if_unknown(kind, &member) {
            let delimiter = delimiter_hint(header);
            if !delimiter.is_empty() {
                return Err(format!("the header has one column{delimiter}"));
            }
            return Err(match map {
                [] => format!(
                    "column {} of the header is no member of a {kind}{hint}; say with --map which column holds which member, and leave \
                     the others out",
                    index + 1
                ),
                _ => format!("a {kind} has no member {}{hint}", visible(&member)),
            });
        }
        mapped.push((member, index));
    }
    Ok(mapped)
}

/// The option for a header of one column that has the delimiter of another form in it; else empty.
fn delimiter_hint(header: &StringRecord) -> String {
    let known = [(';', ";"), ('\t', "\\t"), ('|', "|"), (',', ",")];
    let only = header.get(0).filter(|_| header.len() == 1);
    let found = known
        .iter()
        .find(|(it, _)| only.is_some_and(|only| only.contains(*it)));
    found.map_or_else(String::new, |(_, option)| {
        format!("; did you mean --delimiter '{option}'?")
    })
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

impl LineError {
    /// The problem of a row; the outer error is the file's.
    fn from_csv(error: csv::Error) -> io::Result<Self> {
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
