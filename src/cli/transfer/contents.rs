//! The contents of an input: the first pass checks each record, the second hands them to the store.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    hash::{BuildHasher as _, RandomState},
    io,
    time::Duration,
};

use serde::Deserialize as _;
use serde_json::Value;

use super::{
    index::Index,
    input::Input,
    rows::{Format, Rows},
};
use crate::{
    base::text::names::Permission,
    cli::terminal::progress::Progress,
    operator::manage::{
        distinct_members,
        transfer::export_line::{Defaults, Head, LineError, VERSION, record},
    },
    provider::issue::callback,
    records::values::transfer::{Alike, ExportOrigin, MAX_PROBLEMS, Numbered, Rank, Record, name},
};

/// The result of the first pass over an input.
#[derive(Default)]
pub(super) struct Contents {
    /// The origin of the records, if the input names it.
    pub(super) origin: Option<ExportOrigin>,
    pub(super) problems: Problems,
    /// The records that are skipped, with their problems.
    pub(super) skipped: Problems,
    /// The names of the records.
    pub(super) index: Index,
    pub(super) warnings: ImportWarnings,
    /// The rank of the record of each row, in the order of the input; `None`: the row has no record to import.
    ranks: Vec<Option<Rank>>,
    /// The number of records of each rank.
    counts: BTreeMap<Rank, u64>,
    defaults: Defaults,
}

/// The most problems that are alike of which each has a line of its own.
pub(super) const SHOWN_ALIKE: u64 = 3;

/// The problems of an input.
#[derive(Default)]
pub(super) struct Problems {
    /// The first problems by their lines or rows.
    first: BTreeMap<(usize, u64), String>,
    /// The number of all.
    pub(super) count: u64,
    /// The numbers of those that are alike.
    pub(super) alike: Alike,
    /// The hashes of the names of records that cannot be read.
    unread: HashSet<u64>,
    random: RandomState,
    /// A line cannot be read at all.
    has_unnamed: bool,
}

impl Problems {
    pub(super) fn add(&mut self, line: usize, problem: String) {
        self.count += 1;
        if self.alike.add(&problem) > SHOWN_ALIKE {
            return;
        }
        self.first.insert((line, self.count), problem);
        if self.first.len() > MAX_PROBLEMS {
            self.first.pop_last();
        }
    }

    /// Counts problems that are not shown.
    pub(super) fn add_others(&mut self, count: u64) {
        self.count += count;
    }

    fn add_unread(&mut self, line: usize, name: Option<String>, error: &LineError) {
        let name = name.filter(|_| !matches!(error, LineError::SecondExport));
        let problem = match &name {
            Some(name) => format!("{name}: {error}"),
            None => error.to_string(),
        };
        self.add(line, problem);
        match name {
            Some(name) => drop(self.unread.insert(self.random.hash_one(name))),
            None => self.has_unnamed = true,
        }
    }

    /// Whether the record of this name may be on a line that cannot be read: one that names it is not reported again.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.has_unnamed
            || !self.unread.is_empty() && self.unread.contains(&self.random.hash_one(name))
    }

    /// The first problems, each with the number of its line or row.
    pub(super) fn first(&self) -> impl Iterator<Item = (usize, &str)> {
        let first = self.first.iter();
        first.map(|((line, _), problem)| (*line, problem.as_str()))
    }
}

/// Settings that are valid but unwise, each once: an import may be long.
#[derive(Default)]
pub(super) struct ImportWarnings {
    /// Permissions that the configuration may not declare.
    pub(super) permissions: BTreeSet<Permission>,
    /// The number of consumers with an http callback on another host.
    pub(super) unprotected: u64,
    /// The number of consumers with an asterisk in a callback.
    pub(super) asterisks: u64,
    /// The permissions that the configuration declares.
    declared: BTreeSet<Permission>,
}

impl ImportWarnings {
    pub(super) fn new(declared: impl Iterator<Item = Permission>) -> Self {
        Self {
            declared: declared.collect(),
            ..Self::default()
        }
    }

    fn note(&mut self, record: &Record) {
        let permissions = match record {
            Record::Consumer(consumer) => {
                let warnings = consumer.callbacks.iter();
                let warnings = warnings.map(|it| callback::check_registration(it).ok().flatten());
                let has = |warning| warnings.clone().any(|it| it == Some(warning));
                self.unprotected += u64::from(has(callback::PLAIN_HTTP));
                self.asterisks += u64::from(has(callback::ASTERISK));
                &consumer.permissions[..]
            }
            Record::AccessToken(token) => &token.permissions,
            _ => &[],
        };
        let declared = |permission: &&Permission| !self.declared.contains(*permission);
        for permission in permissions.iter().filter(declared) {
            if self.permissions.len() < MAX_PROBLEMS && !self.permissions.contains(permission) {
                self.permissions.insert(permission.clone());
            }
        }
    }
}

impl Contents {
    /// Reads an input and checks each of its records by itself.
    pub(super) fn check(
        input: &Input,
        format: Format<'_>,
        defaults: Defaults,
        warnings: ImportWarnings,
    ) -> io::Result<Self> {
        let mut contents = Self {
            defaults,
            warnings,
            ..Self::default()
        };
        contents.read(input, format)?;
        contents.skip_tokens(input, format)?;
        contents.find_repeated(input, format)?;
        Ok(contents)
    }

    /// Whether the input has no record.
    pub(super) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether the input has a consumer.
    pub(super) fn has_consumers(&self) -> bool {
        self.counts
            .get(&Rank::Consumer)
            .is_some_and(|count| *count > 0)
    }

    fn read(&mut self, input: &Input, format: Format<'_>) -> io::Result<()> {
        let mut rows = match Rows::new(input.reader()?, format)? {
            Ok(rows) => rows,
            Err(problem) => {
                self.problems.add(1, problem);
                return Ok(());
            }
        };
        let (mut last, mut announced) = (1, None);
        if let Rows::Lines(lines) = &mut rows {
            let Some(line) = lines.next()? else {
                self.problems.add(1, LineError::Empty.to_string());
                return Ok(());
            };
            match self.read_head(lines.text()) {
                Ok(head) => (last, announced) = (line, head.records),
                Err(error) => {
                    self.problems.add(line, error.to_string());
                    return Ok(());
                }
            }
        }
        let mut progress = Progress::new("records checked", input.length);
        while let Some(line) = rows.next()? {
            last = line;
            progress.at(self.ranks.len() as u64, rows.bytes());
            // Each of its lines would be a problem.
            if let Rows::Lines(lines) = &rows
                && matches!(lines.text(), b"{" | b"[")
            {
                self.problems
                    .add_unread(line, None, &LineError::SeveralLines);
                return Ok(());
            }
            self.add(line, &rows);
        }
        let found = self.ranks.len();
        if let Some(announced) = announced.filter(|announced| *announced != found) {
            let error = LineError::CutOff { found, announced };
            self.problems.add(last, error.to_string());
        }
        Ok(())
    }

    fn read_head(&mut self, text: &[u8]) -> Result<Head, LineError> {
        let not_an_export = || match text.trim_ascii_start().first() {
            Some(b'{') if text.len() == 1 => LineError::SeveralLines,
            Some(b'{') => LineError::NotAnExport,
            Some(b'[') => LineError::Array,
            _ => LineError::NotJson,
        };
        let mut first = distinct_members(text).map_err(|_| not_an_export())?;
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
                self.origin = Some(ExportOrigin {
                    store,
                    accepted_until,
                });
            }
            _ if head.version == VERSION => return Err(LineError::OriginMissing),
            // An older export, which does not name its origin. Its store may have accepted requests until just now.
            _ if head.records.is_some() => {
                self.origin = Some(ExportOrigin {
                    store: String::new(),
                    accepted_until: self.defaults.accepted_until,
                });
            }
            _ => {}
        }
        Ok(head)
    }

    /// Adds the record of a row, or its problem.
    fn add(&mut self, line: usize, rows: &Rows<'_>) {
        let read = rows.members();
        let rank = match read.and_then(|members| record(members, &self.defaults)) {
            Ok((record, _)) => {
                self.warnings.note(&record);
                let number = u32::try_from(self.ranks.len()).unwrap_or(u32::MAX);
                self.index.push(&record.name(), number);
                let rank = record.rank();
                *self.counts.entry(rank).or_default() += 1;
                Some(rank)
            }
            Err(error) => {
                let name = rows.name();
                // A line without a name may be a sign of another format.
                let problems = match self.defaults.skips_invalid && name.is_some() {
                    true => &mut self.skipped,
                    false => &mut self.problems,
                };
                problems.add_unread(line, name, &error);
                None
            }
        };
        self.ranks.push(rank);
    }

    /// Skips the access tokens that name a record which is skipped.
    fn skip_tokens(&mut self, input: &Input, format: Format<'_>) -> io::Result<()> {
        if self.skipped.count == 0 {
            return Ok(());
        }
        let mut rows = checked_rows(input, format)?;
        for rank in &mut self.ranks {
            let Some(line) = rows.next()? else { break };
            let Some(of) = rank.filter(|rank| *rank == Rank::AccessToken) else {
                continue;
            };
            let read = rows.members();
            let Ok((Record::AccessToken(token), _)) =
                read.and_then(|members| record(members, &self.defaults))
            else {
                continue;
            };
            let names = [
                name("consumer", token.consumer.as_str()),
                name("user", token.user.as_str()),
            ];
            if let Some(skipped) = names.iter().find(|name| self.skipped.may_have(name)) {
                let problem = format!(
                    "{}: names {skipped}, which is skipped",
                    Record::AccessToken(token).name()
                );
                self.skipped.add(line, problem);
                *rank = None;
                if let Some(count) = self.counts.get_mut(&of) {
                    *count -= 1;
                }
            }
        }
        Ok(())
    }

    /// Reports the records whose name an earlier one has.
    fn find_repeated(&mut self, input: &Input, format: Format<'_>) -> io::Result<()> {
        let Self { ranks, counts, .. } = self;
        // The first ones, which are shown, each with the record that has its name.
        let (mut shown, mut others) = (BTreeMap::new(), 0);
        self.index.find_repeated(|number, first| {
            let rank = ranks.get_mut(number as usize).and_then(Option::take);
            if let Some(count) = rank.and_then(|rank| counts.get_mut(&rank)) {
                *count -= 1;
            }
            shown.insert(number, first);
            if shown.len() > MAX_PROBLEMS {
                shown.pop_last();
                others += 1;
            }
        });
        self.problems.add_others(others);
        if shown.is_empty() {
            return Ok(());
        }
        let mut lines = BTreeMap::new();
        let wanted: BTreeSet<u32> = shown
            .iter()
            .flat_map(|(one, first)| [*one, *first])
            .collect();
        let mut rows = checked_rows(input, format)?;
        for number in 0_u32.. {
            let Some(line) = rows.next()? else { break };
            if wanted.contains(&number) {
                lines.insert(number, (line, rows.name().unwrap_or_default()));
            }
        }
        for (number, first) in shown {
            if let (Some((line, name)), Some((first, _))) = (lines.get(&number), lines.get(&first))
            {
                let error = LineError::Twice(format.unit(), *first);
                self.problems.add(*line, format!("{name}: {error}"));
            }
        }
        Ok(())
    }

    /// The records, in the order of their ranks: the second pass over the input. It is read once for each rank that it has
    /// records of, and a row of another rank is not parsed.
    pub(super) fn records<'a>(
        &'a self,
        input: &'a Input,
        format: Format<'a>,
    ) -> impl Iterator<Item = io::Result<Numbered>> + 'a {
        let total: u64 = self.counts.values().sum();
        let (mut done, mut ranks) = (0, self.counts.keys());
        let mut progress = Progress::new("records imported", total);
        // The rank of the records that are read now, the rows that follow, and the number of the next one.
        let mut current: Option<(Rank, Rows<'a>, usize)> = None;
        let mut next = move || -> io::Result<Option<Numbered>> {
            loop {
                let Some((rank, rows, number)) = &mut current else {
                    let Some(&rank) = ranks.next() else {
                        // Fewer: the file has become shorter.
                        return (done == total).then_some(None).ok_or_else(changed);
                    };
                    current = Some((rank, checked_rows(input, format)?, 0));
                    continue;
                };
                let Some(line) = rows.next()? else {
                    current = None;
                    continue;
                };
                let found = self.ranks.get(*number).copied().flatten();
                *number += 1;
                if found != Some(*rank) {
                    continue;
                }
                let members = rows.members().map_err(|_| changed())?;
                let read = record(members, &self.defaults).map_err(|_| changed())?;
                let (record, left_out) = read;
                if record.rank() != *rank {
                    return Err(changed());
                }
                done += 1;
                progress.at(done, done);
                return Ok(Some(Numbered {
                    line,
                    record,
                    left_out,
                }));
            }
        };
        std::iter::from_fn(move || next().transpose())
    }
}

/// The rows that the first pass has checked: those after the head.
fn checked_rows<'a>(input: &'a Input, format: Format<'a>) -> io::Result<Rows<'a>> {
    let mut rows = Rows::new(input.reader()?, format)?.map_err(|_| changed())?;
    if let Rows::Lines(lines) = &mut rows {
        lines.next()?;
    }
    Ok(rows)
}

fn changed() -> io::Error {
    io::Error::other("it was changed while it was read; import it again")
}
