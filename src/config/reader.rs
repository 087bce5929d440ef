//! Reads sections out of what the operator wrote: the file, with the environment over it.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::Arc};

use serde_path_to_error::Segment;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    environment::Variable,
    names::nearest,
    problem::{Position, Problem, Problems},
    section::{Section, Unwritten},
};

/// The longest part of a value that an error line repeats, in characters.
const MAX_QUOTED: usize = 60;

/// What the operator wrote, and what is wrong with it.
pub(super) struct Reader<'t> {
    name: Arc<str>,
    text: &'t str,
    pub(super) table: DeTable<'t>,
    /// The variables that are over the file, by the key that each sets.
    variables: BTreeMap<&'t str, &'t Variable>,
    pub(super) problems: Problems,
}

impl<'t> Reader<'t> {
    /// Takes a file's text, which problems call `name`, and puts `variables` over it.
    ///
    /// # Errors
    /// The file is not TOML.
    pub(super) fn new(
        text: &'t str,
        name: &str,
        variables: &'t [Variable],
        problems: Problems,
    ) -> Result<Self, Problem> {
        let mut reader = Self {
            name: Arc::from(name),
            text,
            table: DeTable::new(),
            variables: BTreeMap::new(),
            problems,
        };
        match DeTable::parse(text) {
            Ok(table) => reader.table = table.into_inner(),
            Err(error) => {
                let place = match error.span() {
                    Some(span) => reader.line(&span),
                    None => reader.file(),
                };
                let words: Vec<_> = error.message().split_whitespace().collect();
                let message = format!("not valid TOML: {}", words.join(" "));
                return Err(Problem::without_key(&place, message));
            }
        }
        for variable in variables {
            // A value that is not valid TOML is a string, so that `300s` needs no quotes.
            let value = DeValue::parse(&variable.text).unwrap_or_else(|_| {
                Spanned::new(0..0, DeValue::String(Cow::Borrowed(&variable.text)))
            });
            // If a part of the key is not a table in the file, check_names reports the file.
            if insert(&mut reader.table, &variable.key, value) {
                reader.variables.insert(&variable.key, variable);
            }
        }
        Ok(reader)
    }

    /// The file as a whole.
    pub(super) fn file(&self) -> Position {
        Position::File(Arc::clone(&self.name), None)
    }

    fn line(&self, span: &Range<usize>) -> Position {
        let before = self.text.as_bytes().get(..span.start);
        let before = before.unwrap_or(self.text.as_bytes());
        let breaks = before.iter().filter(|byte| **byte == b'\n').count();
        Position::File(Arc::clone(&self.name), Some(breaks + 1))
    }

    fn variable(&self, key: &str) -> Option<&'t Variable> {
        let list = key.split('[').next().unwrap_or_default();
        self.variables
            .get(key)
            .or_else(|| self.variables.get(list))
            .copied()
    }

    /// The place of `key`, at `span` if it is in the file.
    pub(super) fn place(&self, key: &str, span: &Range<usize>) -> Position {
        match self.variable(key) {
            Some(variable) => Position::Variable(Arc::from(variable.name.as_str())),
            None => self.line(span),
        }
    }

    /// What is written under a whole key, `listen.tls.key` or, counted from 1, `operation[2].path`.
    pub(super) fn get(&self, key: &str) -> Option<&Spanned<DeValue<'t>>> {
        let mut table = &self.table;
        let mut steps = key.split('.').peekable();
        loop {
            let step = steps.next()?;
            let (name, index) = step.split_once('[').unwrap_or((step, ""));
            let mut node = table.get(name)?;
            if let Some(index) = index.strip_suffix(']') {
                let index: usize = index.parse().ok()?;
                node = node.get_ref().get(index.checked_sub(1)?)?;
            }
            if steps.peek().is_none() {
                return Some(node);
            }
            table = node.get_ref().as_table()?;
        }
    }

    /// Adds a problem of a whole key.
    pub(super) fn problem(&mut self, key: &str, message: impl Into<String>) {
        let place = match self.get(key).map(Spanned::span) {
            Some(span) => self.place(key, &span),
            None => self.file(),
        };
        self.problems.add(&place, key, message);
    }

    /// Reads a section that is written once. `None` if it cannot be read even with defaults in place of wrong values.
    pub(super) fn section<S: Section>(&mut self) -> Option<S> {
        let name = S::SCHEMA.name;
        let written = self.get(name).and_then(|node| node.get_ref().as_table());
        let table = written.cloned().unwrap_or_default();
        let missing_at = self.file();
        let mut section: S = self.read(name, &table, &missing_at)?;
        section.read_inner(self)?;
        Some(section)
    }

    /// Reads a section that is written any number of times.
    pub(super) fn list<S: Section>(&mut self) -> Option<Vec<S>> {
        let name = S::SCHEMA.name;
        let items = self.get(name).and_then(|node| node.get_ref().as_array());
        let items = items.map(|items| items.to_vec()).unwrap_or_default();
        let mut sections = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if let DeValue::Table(table) = item.get_ref() {
                let name = format!("{name}[{}]", index + 1);
                let missing_at = self.place(&name, &item.span());
                sections.push(self.read(&name, table, &missing_at)?);
            }
        }
        Some(sections)
    }

    /// Reads the known keys of a table. A wrong or missing value is reported, and its default stands in for it, until the
    /// section can be read: so every wrong key is reported, and rules can look at the others.
    fn read<S: Section>(
        &mut self,
        name: &str,
        table: &DeTable<'_>,
        missing_at: &Position,
    ) -> Option<S> {
        let mut known = DeTable::new();
        for key in S::SCHEMA.keys {
            if let Some(value) = table.get(key.name) {
                known.insert(Spanned::new(0..0, key.name.into()), value.clone());
                continue;
            }
            if let Unwritten::Required(example) = key.unwritten {
                let message = format!(
                    "missing; write {} = {example}, or what it is for you",
                    key.name
                );
                self.problems
                    .add(missing_at, &format!("{name}.{}", key.name), message);
            }
            stand_in(&mut known, key.name, key.unwritten);
        }
        for _ in 0..=S::SCHEMA.keys.len() {
            let values = Spanned::new(0..0, DeValue::Table(known.clone()));
            let error = match serde_path_to_error::deserialize(ValueDeserializer::from(values)) {
                Ok(section) => return Some(section),
                Err(error) => error,
            };
            let key = match error.path().iter().next() {
                Some(Segment::Map { key }) => S::SCHEMA.keys.iter().find(|known| known.name == key),
                _ => None,
            };
            let Some(key) = key else {
                self.problems.add(missing_at, name, error.inner().message());
                return None;
            };
            self.mismatch(&format!("{name}.{}", key.name), &known, &error);
            stand_in(&mut known, key.name, key.unwritten);
        }
        None
    }

    /// Reports that a value is not what its key takes.
    fn mismatch(
        &mut self,
        key: &str,
        table: &DeTable<'_>,
        error: &serde_path_to_error::Error<toml::de::Error>,
    ) {
        let mut found = None;
        for segment in error.path() {
            found = match (segment, found) {
                (Segment::Map { key }, None) => table.get(key.as_str()),
                (Segment::Seq { index }, Some(list)) => Spanned::get_ref(list).get(*index),
                (_, found) => found,
            };
        }
        let Some(found) = found else {
            return self.problem(key, "cannot be read; see config.example.toml");
        };
        let hidden = self
            .variable(key)
            .is_some_and(|variable| variable.from_file);
        let place = self.place(key, &found.span());
        let message = describe(error.inner().message(), found.get_ref(), hidden);
        self.problems.add(&place, key, message);
    }
}

/// Puts the default, or the example of what must be written, in the place of a value.
fn stand_in(table: &mut DeTable<'_>, name: &'static str, unwritten: Unwritten) {
    table.remove(name);
    if let Unwritten::Default(text) | Unwritten::Required(text) = unwritten
        && let Ok(value) = DeValue::parse(text)
    {
        table.insert(Spanned::new(0..0, name.into()), value);
    }
}

/// Puts a value under its whole key; `false` if a part of the key is not a table.
fn insert<'t>(table: &mut DeTable<'t>, key: &'t str, value: Spanned<DeValue<'t>>) -> bool {
    let Some((step, rest)) = key.split_once('.') else {
        table.remove(key);
        table.insert(Spanned::new(0..0, key.into()), value);
        return true;
    };
    let section = table
        .entry(Spanned::new(0..0, step.into()))
        .or_insert(Spanned::new(0..0, DeValue::Table(DeTable::new())));
    match section.get_mut() {
        DeValue::Table(table) => insert(table, rest, value),
        _ => false,
    }
}

/// The message of an error about a value: `expected …, found …: why`. serde's own texts repeat the value, which may be a
/// secret, so only what they expected is taken from them.
fn describe(error: &str, found: &DeValue<'_>, hidden: bool) -> String {
    let of_serde = ["invalid ", "unknown variant "]
        .iter()
        .any(|start| error.starts_with(start));
    let expected = if of_serde {
        error
            .rsplit_once(", expected ")
            .map(|(_, expected)| expected)
    } else if error == "wanted string or table" {
        Some("a word in quotes")
    } else {
        error.strip_prefix("expected ")
    };
    let Some(expected) = expected else {
        return error.to_owned();
    };
    let mut words: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
    if !of_serde {
        words.clear();
    }
    let near = found.as_str().filter(|_| !hidden);
    let near = near.and_then(|text| nearest(&text.to_ascii_lowercase(), words.iter().copied()));
    let near = near.map(|word| format!("did you mean {word:?}?"));
    let (expected, reason) = match (&near, expected.split_once(": ")) {
        (Some(near), _) => (expected, near.as_str()),
        (None, Some((expected, reason))) => (expected, reason),
        (None, None) => (expected, ""),
    };
    let expected = match expected {
        "a nonzero u16" => "a whole number from 1 to 65535".into(),
        "a nonzero u32" => "a whole number from 1 to 4294967295".into(),
        "a nonzero u64" => "a whole number from 1 to 18446744073709551615".into(),
        "u16" | "u32" | "u64" => "a whole number".into(),
        "a boolean" => "true or false".into(),
        _ if words.is_empty() => Cow::Borrowed(expected),
        _ => listing(&words).into(),
    };
    let separator = if reason.is_empty() { "" } else { ": " };
    format!(
        "expected {expected}, found {}{separator}{reason}",
        shown(found, hidden)
    )
}

/// `"a", "b" or "c"`.
fn listing(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A value as an error line shows it: quoted, shortened if it is long; not at all if it may hold a password.
fn shown(value: &DeValue<'_>, hidden: bool) -> String {
    match value {
        // A URL with user-info, perhaps a broken one.
        DeValue::String(text) if hidden || text.contains('@') && text.contains(['/', ':']) => {
            "a text that is not shown here".to_owned()
        }
        DeValue::String(text) => match text.char_indices().nth(MAX_QUOTED) {
            None => format!("{text:?}"),
            Some((end, _)) => format!("{:?}…", &text[..end]),
        },
        DeValue::Integer(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Float(_) => "a number with a fraction".to_owned(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader<'t>(text: &'t str, variables: &'t [Variable]) -> Reader<'t> {
        Reader::new(text, "t", variables, Problems::default()).unwrap()
    }

    fn variable(key: &str, text: &str) -> Variable {
        Variable {
            name: "V".to_owned(),
            key: key.to_owned(),
            text: text.to_owned(),
            from_file: false,
        }
    }

    #[test]
    fn knows_the_line_of_every_value() {
        let text = "[a]\nb = 1\nc = [\n  2,\n  3,\n]\n[[d]]\ne = 1\n[[d]]\ne = 2\n";
        let reader = reader(text, &[]);
        let line = |key: &str| reader.line(&reader.get(key).unwrap().span()).to_string();
        assert_eq!(line("a.b"), "t:2");
        assert_eq!(line("a.c[2]"), "t:5");
        assert_eq!(line("d[2].e"), "t:10");
        assert!(reader.get("d[3].e").is_none());
        assert!(reader.get("d[0].e").is_none());
        assert!(reader.get("a.b.c").is_none());
    }

    #[test]
    fn inserts_below_what_is_there_and_beside_it() {
        let keys = ["a.b", "a.c.d", "e.f", "a.b.c"];
        let variables = keys.map(|key| variable(key, "2"));
        let reader = reader("[a]\nb = 1\n", &variables);
        for key in &keys[..3] {
            assert_eq!(
                shown(reader.get(key).unwrap().get_ref(), false),
                "2",
                "{key}"
            );
        }
        assert!(reader.variable("a.b.c").is_none());
    }

    #[test]
    fn takes_what_is_no_toml_value_as_a_string() {
        let read = |text| {
            let variables = [variable("a", text)];
            shown(reader("", &variables).get("a").unwrap().get_ref(), false)
        };
        assert_eq!(read("300s"), "\"300s\"");
        assert_eq!(read("\"300s\""), "\"300s\"");
        assert_eq!(read("[::1]:80"), "\"[::1]:80\"");
        assert_eq!(read(""), "\"\"");
        assert_eq!(read("50_000"), "50000");
        assert_eq!(read("[\"a\"]"), "a list");
        assert_eq!(read("1\nb = 2"), "\"1\\nb = 2\"");
    }

    #[test]
    fn reports_a_syntax_error_on_one_line_with_its_line() {
        let problem = Reader::new("[a]\nb = \n", "t", &[], Problems::default())
            .err()
            .unwrap();
        let problem = problem.to_string();
        assert!(problem.starts_with("t:2: not valid TOML: "), "{problem}");
        assert_eq!(problem.lines().count(), 1);
    }

    #[test]
    fn suggests_the_word_that_was_meant() {
        let error = "unknown variant `x`, expected one of `off`, `hint`, `full`";
        let described = |text: &str| describe(error, &DeValue::String(text.into()), false);
        for (text, hint) in [("Full", ": did you mean \"full\"?"), ("banana", "")] {
            let expected = format!("expected \"off\", \"hint\" or \"full\", found {text:?}{hint}");
            assert_eq!(described(text), expected);
        }
        let hidden = describe(error, &DeValue::String("ful".into()), true);
        assert!(!hidden.contains("ful\""), "{hidden}");
    }
}
