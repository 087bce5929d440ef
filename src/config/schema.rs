//! How sections of settings are declared: one line a key, from which everything else about the key is derived.
//!
//! [`section!`] makes the struct, reads it, and lists its keys; suggestions, names of environment variables and
//! `config.example.toml` come from that list.

use super::{
    error::{Place, Problems},
    setting::{Report, Setting},
    tree::{Node, Table, Value},
};

/// A key of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What it is for, line by line.
    pub(super) doc: &'static [&'static str],
    pub(super) unwritten: Unwritten,
}

/// What a key is when it is not written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unwritten {
    /// This TOML value.
    Value(&'static str),
    /// There is none, or it follows from something else: in words, with an example in TOML.
    Absent {
        words: &'static str,
        example: &'static str,
    },
    /// It must be written; an example in TOML, which also stands in for it once its absence is reported.
    Required { example: &'static str },
}

/// A section as declared.
#[derive(Debug, Clone, Copy)]
pub(super) struct SectionSchema {
    /// `listen.tls`, or `operation` for `[[operation]]`.
    pub(super) name: &'static str,
    pub(super) doc: &'static [&'static str],
    pub(super) keys: &'static [Key],
    /// `true`: written any number of times, as `[[name]]`.
    pub(super) list: bool,
}

impl SectionSchema {
    /// The whole key of each key: `listen.tls.certificate`.
    pub(super) fn full_keys(&self) -> impl Iterator<Item = (String, &'static Key)> {
        let name = self.name;
        self.keys
            .iter()
            .map(move |key| (format!("{name}.{}", key.name), key))
    }
}

/// A struct that holds a section.
pub(super) trait Section: Sized {
    const SCHEMA: SectionSchema;

    fn read(reader: &mut Reader<'_>) -> Self;
}

/// Reads the keys of one table; what is wrong is reported and a stand-in returned, so that reading goes on.
pub(super) struct Reader<'a> {
    /// `listen.tls`, or `operation[2]`.
    name: String,
    table: Option<&'a Table>,
    /// Where a missing key is missing.
    place: &'a Place,
    problems: &'a mut Problems,
}

/// Reads a section that is written once.
pub(super) fn read_section<S: Section>(tree: &Table, file: &Place, problems: &mut Problems) -> S {
    let table = match tree.find_key(S::SCHEMA.name).map(|node| &node.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    S::read(&mut Reader {
        name: S::SCHEMA.name.to_owned(),
        table,
        place: file,
        problems,
    })
}

/// Reads a section that is written any number of times.
pub(super) fn read_list<S: Section>(tree: &Table, problems: &mut Problems) -> Vec<S> {
    let Some(Value::List(items)) = tree.find(S::SCHEMA.name).map(|node| &node.value) else {
        return Vec::new();
    };
    let mut sections = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if let Value::Table(table) = &item.value {
            sections.push(S::read(&mut Reader {
                name: format!("{}[{}]", S::SCHEMA.name, index + 1),
                table: Some(table),
                place: &item.place,
                problems,
            }));
        }
    }
    sections
}

impl Reader<'_> {
    /// Reads a key that has a default or must be written.
    pub(super) fn value<T: Setting>(
        &mut self,
        name: &str,
        unwritten: Unwritten,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> T {
        let written = match self.table.and_then(|table| table.find(name)) {
            Some(node) => self.written(name, node, check),
            None => {
                if let Unwritten::Required { example } = unwritten {
                    let key = format!("{}.{name}", self.name);
                    let message =
                        format!("missing; write {name} = {example}, or what it is for you");
                    self.problems.add(self.place, &key, message);
                }
                None
            }
        };
        written.unwrap_or_else(|| stand_in(unwritten))
    }

    /// Reads a key that may be absent.
    pub(super) fn optional<T: Setting + Default>(
        &mut self,
        name: &str,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> T {
        self.table
            .and_then(|table| table.find(name))
            .and_then(|node| self.written(name, node, check))
            .unwrap_or_default()
    }

    /// Reads a section inside this one: `listen.tls` inside `listen`.
    pub(super) fn nested<S: Section>(&mut self) -> S {
        let step = S::SCHEMA.name.rsplit('.').next().unwrap_or_default();
        let table = match self.table.and_then(|table| table.find(step)) {
            Some(Node {
                value: Value::Table(table),
                ..
            }) => Some(table),
            _ => None,
        };
        S::read(&mut Reader {
            name: S::SCHEMA.name.to_owned(),
            table,
            place: self.place,
            problems: self.problems,
        })
    }

    fn written<T: Setting>(
        &mut self,
        name: &str,
        node: &Node,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Option<T> {
        let key = format!("{}.{name}", self.name);
        let mut report = Report {
            key: &key,
            problems: self.problems,
        };
        let value = T::read(node, &mut report)?;
        if let Err(message) = check(&value) {
            self.problems.add(&node.place, &key, message);
            return None;
        }
        Some(value)
    }
}

/// The value of a default, or of the example for what must be written.
#[expect(
    clippy::expect_used,
    reason = "defaults are constants of this program, and a test reads each of them"
)]
fn stand_in<T: Setting>(unwritten: Unwritten) -> T {
    let text = match unwritten {
        Unwritten::Value(text) | Unwritten::Required { example: text } => text,
        Unwritten::Absent { example, .. } => example,
    };
    let place = Place::Variable("default".into());
    let node = Node::from_variable(text, &place, true);
    let mut report = Report {
        key: "default",
        problems: &mut Problems::default(),
    };
    T::read(&node, &mut report).expect("a default is a value of its key's type")
}

/// The default of a key that has one, or stands in for it.
#[expect(
    clippy::expect_used,
    reason = "sections and keys are constants of this program, and a test reads each of them"
)]
pub(super) fn default_of<T: Setting>(section: &SectionSchema, name: &str) -> T {
    let key = section.keys.iter().find(|key| key.name == name);
    stand_in(key.expect("a key of that section").unwritten)
}

/// Declares a section: its struct, its keys, and how it is read.
///
/// A key is `name: Type = "TOML";`, or `= required "example";`, or `= absent "in words", "example";` (its type has a
/// `Default`, which is what absence means). `, check f` adds what else must hold: `f(&value)` is a
/// `Result<(), String>`.
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        $type:ident[$name:literal $(, $list:ident)?] {
            $(
                $(#[doc = $key_doc:literal])*
                $key:ident: $key_type:ty = $($default:ident)? $($text:literal),+ $(, check $check:expr)?;
            )*
        }
        $( with { $( $(#[$table_doc:meta])* $table:ident: $table_type:ty, )+ } )?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $type {
            $($(#[doc = $key_doc])* pub $key: $key_type,)*
            $($($(#[$table_doc])* pub $table: $table_type,)+)?
        }

        impl $crate::config::schema::Section for $type {
            const SCHEMA: $crate::config::schema::SectionSchema = $crate::config::schema::SectionSchema {
                name: $name,
                doc: &[$($doc),*],
                keys: &[$(
                    $crate::config::schema::Key {
                        name: stringify!($key),
                        doc: &[$($key_doc),*],
                        unwritten: $crate::config::schema::section!(@default $($default)? $($text),+),
                    },
                )*],
                list: $crate::config::schema::section!(@list $($list)?),
            };

            fn read(reader: &mut $crate::config::schema::Reader<'_>) -> Self {
                Self {
                    $($key: $crate::config::schema::section!(
                        @read reader, stringify!($key),
                        $crate::config::schema::section!(@check $key_type $(, $check)?),
                        $($default)? $($text),+
                    ),)*
                    $($($table: reader.nested(),)+)?
                }
            }
        }
    };

    (@list) => { false };
    (@list list) => { true };

    (@check $type:ty) => { |_: &$type| Ok(()) };
    (@check $type:ty, $check:expr) => { |value: &$type| ($check)(value) };

    (@default $text:literal) => { $crate::config::schema::Unwritten::Value($text) };
    (@default required $text:literal) => { $crate::config::schema::Unwritten::Required { example: $text } };
    (@default absent $words:literal, $example:literal) => {
        $crate::config::schema::Unwritten::Absent { words: $words, example: $example }
    };

    (@read $reader:ident, $name:expr, $check:expr, absent $($text:literal),+) => {
        $reader.optional($name, $check)
    };
    (@read $reader:ident, $name:expr, $check:expr, $($default:ident)? $($text:literal),+) => {
        $reader.value($name, $crate::config::schema::section!(@default $($default)? $($text),+), $check)
    };
}

pub(super) use section;
