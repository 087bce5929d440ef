//! What the operator wrote, as a tree that knows where each value stands.

use std::{ops::Range, sync::Arc};

use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem};

/// The longest part of a value that an error line repeats, in characters.
const MAX_QUOTED: usize = 60;

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
    /// `false` for what came out of a file of its own: that may be a secret, put there by mistake.
    pub(super) quotable: bool,
}

/// A TOML value, as far as settings tell them apart.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    /// What no setting takes, by its name: a float, a date.
    Other(&'static str),
}

/// Names and their values, in the order of the names.
#[derive(Debug, Clone, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

/// A name in a table.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Where the name stands.
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn find(&self, name: &str) -> Option<&Node> {
        let entry = self.0.iter().find(|entry| entry.name == name)?;
        Some(&entry.node)
    }

    /// Finds a value by its whole key, `listen.tls.key` or, counted from 1, `operation[2].path`.
    pub(super) fn find_key(&self, key: &str) -> Option<&Node> {
        let (step, rest) = match key.split_once('.') {
            Some((step, rest)) => (step, Some(rest)),
            None => (key, None),
        };
        let node = match step.split_once('[') {
            None => self.find(step)?,
            Some((name, index)) => {
                let index: usize = index.strip_suffix(']')?.parse().ok()?;
                let Value::List(items) = &self.find(name)?.value else {
                    return None;
                };
                items.get(index.checked_sub(1)?)?
            }
        };
        match (rest, &node.value) {
            (None, _) => Some(node),
            (Some(rest), Value::Table(table)) => table.find_key(rest),
            (Some(_), _) => None,
        }
    }

    /// Puts a value under its key in place of what stood there; `false` if a step of the key is no table.
    pub(super) fn insert(&mut self, key: &str, node: Node) -> bool {
        let (step, rest) = match key.split_once('.') {
            Some((step, rest)) => (step, Some(rest)),
            None => (key, None),
        };
        let position = self.0.iter().position(|entry| entry.name == step);
        match (position, rest) {
            (Some(position), None) => {
                self.0[position].node = node;
                true
            }
            (Some(position), Some(rest)) => match &mut self.0[position].node.value {
                Value::Table(table) => table.insert(rest, node),
                _ => false,
            },
            (None, rest) => {
                let place = node.place.clone();
                let node = match rest {
                    None => node,
                    Some(rest) => {
                        let mut table = Table::default();
                        table.insert(rest, node);
                        Node {
                            value: Value::Table(table),
                            place: place.clone(),
                            quotable: true,
                        }
                    }
                };
                self.0.push(Entry {
                    name: step.to_owned(),
                    place,
                    node,
                });
                true
            }
        }
    }
}

impl Node {
    /// What an error line says was found.
    pub(super) fn found(&self) -> String {
        match &self.value {
            Value::Text(text) if self.quotable && !may_hold_password(text) => quote(text),
            Value::Text(_) => "a text that is not shown here".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(name) => (*name).to_owned(),
        }
    }

    /// Reads `text` as a TOML value, or takes it as a string if it is none.
    pub(super) fn from_variable(text: &str, place: &Place, quotable: bool) -> Self {
        let value = match DeValue::parse(text) {
            Ok(parsed) => convert(parsed.into_inner(), quotable, &|_| place.clone()),
            Err(_) => Value::Text(text.to_owned()),
        };
        Self {
            value,
            place: place.clone(),
            quotable,
        }
    }
}

/// Whether the text looks like a URL with user-info in it, perhaps a broken one.
fn may_hold_password(text: &str) -> bool {
    text.contains('@') && text.contains(['/', ':'])
}

/// The text in quotes, escaped, and shortened if it is long.
pub(super) fn quote(text: &str) -> String {
    if text.chars().count() <= MAX_QUOTED {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(MAX_QUOTED).collect();
    format!("{head:?}…")
}

/// Reads a whole file's text. A syntax error is told with its line.
pub(super) fn parse(text: &str, name: &Arc<str>) -> Result<Table, Problem> {
    let place_of = |span: Range<usize>| Place::line(name, line_of(text, span.start));
    match DeTable::parse(text) {
        Ok(table) => Ok(convert_table(table.into_inner(), true, &place_of)),
        Err(error) => {
            let place = error.span().map_or_else(|| Place::file(name), place_of);
            let words: Vec<_> = error.message().split_whitespace().collect();
            Err(Problem::without_key(
                &place,
                format!("not valid TOML: {}", words.join(" ")),
            ))
        }
    }
}

fn line_of(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks).map_or(u32::MAX, |breaks| breaks.saturating_add(1))
}

fn convert(value: DeValue<'_>, quotable: bool, place_of: &dyn Fn(Range<usize>) -> Place) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a number out of every range"), Value::Integer),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| Node {
                    place: place_of(item.span()),
                    value: convert(item.into_inner(), quotable, place_of),
                    quotable,
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, quotable, place_of)),
    }
}

fn convert_table(
    table: DeTable<'_>,
    quotable: bool,
    place_of: &dyn Fn(Range<usize>) -> Place,
) -> Table {
    let entries = table.into_iter().map(|(name, node)| Entry {
        place: place_of(name.span()),
        name: name.into_inner().into_owned(),
        node: Node {
            place: place_of(node.span()),
            value: convert(node.into_inner(), quotable, place_of),
            quotable,
        },
    });
    Table(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        parse(text, &Arc::from("t")).unwrap()
    }

    #[test]
    fn knows_the_line_of_every_value() {
        let tree = table("[a]\nb = 1\nc = [\n  2,\n  3,\n]\n[[d]]\ne = 1\n[[d]]\ne = 2\n");
        let line = |key: &str| tree.find_key(key).unwrap().place.to_string();
        assert_eq!(line("a.b"), "t:2");
        assert_eq!(line("a.c[2]"), "t:5");
        assert_eq!(line("d[2].e"), "t:10");
        assert!(tree.find_key("d[3].e").is_none());
        assert!(tree.find_key("d[0].e").is_none());
        assert!(tree.find_key("a.b.c").is_none());
    }

    #[test]
    fn inserts_below_what_is_there_and_beside_it() {
        let mut tree = table("[a]\nb = 1\n");
        let node = || Node::from_variable("2", &Place::Variable(Arc::from("V")), true);
        assert!(tree.insert("a.b", node()));
        assert!(tree.insert("a.c.d", node()));
        assert!(tree.insert("e.f", node()));
        assert!(!tree.insert("a.b.c", node()));
        for key in ["a.b", "a.c.d", "e.f"] {
            assert!(
                matches!(tree.find_key(key).unwrap().value, Value::Integer(2)),
                "{key}"
            );
        }
    }

    #[test]
    fn takes_what_is_no_toml_value_as_a_string() {
        let read = |text| Node::from_variable(text, &Place::Variable(Arc::from("V")), true).found();
        assert_eq!(read("300s"), "\"300s\"");
        assert_eq!(read("\"300s\""), "\"300s\"");
        assert_eq!(read("[::1]:80"), "\"[::1]:80\"");
        assert_eq!(read(""), "\"\"");
        assert_eq!(read("50_000"), "50000");
        assert_eq!(read("[\"a\"]"), "a list");
        assert_eq!(read("1\nb = 2"), "\"1\\nb = 2\"");
    }

    #[test]
    fn tells_a_syntax_error_on_one_line_with_its_line() {
        let problem = parse("[a]\nb = \n", &Arc::from("t"))
            .unwrap_err()
            .to_string();
        assert!(problem.starts_with("t:2: not valid TOML: "), "{problem}");
        assert_eq!(problem.lines().count(), 1);
    }
}
