//! `config.example.toml` and `docs/configuration.md`, written from the declarations, so that they can say nothing else.

use std::fmt::Write as _;

use super::*;
use crate::base::settings::{Unwritten, paragraph};

/// The longest line of a list, in characters.
const WIDTH: usize = 120;

const HEAD: &str = "\
#:schema config.schema.json
# The configuration of countersign: every key with its default and one line of why.
# Keys without a default, and keys whose default follows from others, are commented out and show an example. The one key
# that must be written is upstream.api_url, unless forward_auth.listen is set.
#
# Durations are \"500ms\", \"300s\", \"10m\", \"12h\", \"7d\"; sizes \"64B\", \"32KiB\", \"1MiB\"; rates \"10 per 15m\".
# Relative paths belong to the directory of this file, wherever countersign is started; those in variables too. If
# COUNTERSIGN_DATA is set, as in the container image, a relative store.url or nonce.path belongs to the directory that it names.
#
# Any key can also come from the environment, which overrides this file: COUNTERSIGN__LISTEN__ADDRESS=0.0.0.0:8080 sets
# listen.address, COUNTERSIGN__LISTEN__TLS__CERTIFICATE sets listen.tls.certificate. With _FILE after the name the value
# is the content of the file that the variable names. If a key's own name ends in _file, the variable sets that key, and
# no file is read for it: COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE is store.encryption_key_file.
# COUNTERSIGN__OPERATION and COUNTERSIGN__PERMISSION take the whole list: [{ path = \"/members/{id}\" }].
";

const PAGE_HEAD: &str = "\
# Configuration

Each key has its default, or after `#` an example. A change takes effect at SIGHUP; a key marked *restart* needs one.
Only `upstream.api_url` must be written, unless `forward_auth.listen` is set. [config.example.toml](../config.example.toml) is a whole configuration of the defaults.

An editor with a language server for TOML (Taplo; Even Better TOML in Visual Studio Code) checks keys by
[config.schema.json](../config.schema.json), which `#:schema` in the first line of the file names by a URL or a path, and `countersign check --schema` writes.

- Durations are `\"500ms\"`, `\"300s\"`, `\"10m\"`, `\"12h\"`, `\"7d\"`; sizes `\"64B\"`, `\"32KiB\"`, `\"1MiB\"`; rates `\"10 per 15m\"`.
- Relative paths belong to the directory of the configuration file, those of `store.url` and `nonce.path` to `COUNTERSIGN_DATA`, if it is set, as in the container image.
- An environment variable overrides the file: `COUNTERSIGN__LISTEN__ADDRESS=0.0.0.0:8080` sets `listen.address`. With
  `_FILE` after the name the value is the content of the file that the variable names, unless the key's own name ends in `_file`.
  `COUNTERSIGN__OPERATION` and `COUNTERSIGN__PERMISSION` take the whole list: `[{ path = \"/members/{id}\" }]`.
";

/// The text of `docs/configuration.md`.
pub(super) fn page() -> String {
    let mut text = PAGE_HEAD.to_owned();
    let mut written = "";
    for section in SECTIONS {
        let (name, about) = (section.name, paragraph(section.doc));
        let list = if section.list { " (a list)" } else { "" };
        if std::mem::replace(&mut written, name) != name {
            let _ = write!(text, "\n## {name}{list}\n\n{about}\n\n");
        }
        for key in section.keys {
            let (mark, value, note) = match key.unwritten {
                Unwritten::Default(value) => ("", value, None),
                Unwritten::Required { example, .. } => ("#", example, Some("required".to_owned())),
                Unwritten::Absent("none", example) => ("#", example, None),
                Unwritten::Absent(words, example) => {
                    let words = words.trim_start_matches("none: ");
                    ("#", example, Some(format!("default: {words}")))
                }
            };
            let value = shortened(&paragraph(&[value]).replace(",]", "]"));
            let fixed = (key.when == "restart").then(|| "*restart*".to_owned());
            let notes = Vec::from_iter(note.into_iter().chain(fixed)).join("; ");
            let notes = match notes.as_str() {
                "" => notes,
                _ => format!(" ({notes})"),
            };
            let _ = writeln!(
                text,
                "- `{mark}{} = {value}`{notes}. {}",
                key.name,
                paragraph(key.doc)
            );
        }
    }
    text
}

/// A list that `config.example.toml` has in several lines: its first items.
fn shortened(value: &str) -> String {
    if wrapped(value) == value {
        return value.to_owned();
    }
    let items = Vec::from_iter(value.split(", ").take(3)).join(", ");
    format!("{items}, …]")
}

/// The text of `config.example.toml`.
pub(super) fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut written = "";
    for section in SECTIONS {
        // There is no list by default, so all of it is commented out.
        let header = if section.list {
            format!("#[[{}]]", section.name)
        } else {
            format!("[{}]", section.name)
        };
        if std::mem::replace(&mut written, section.name) != section.name {
            text.push('\n');
            write_doc(&mut text, section.doc, "");
            text.push_str(&header);
            text.push('\n');
        }
        for key in section.keys {
            let (value, note, commented) = match key.unwritten {
                Unwritten::Default(value) => (value, String::new(), section.list),
                Unwritten::Required { example, .. } => {
                    (example, " Required.".to_owned(), section.list)
                }
                Unwritten::Absent(words, example) => (example, format!(" Default: {words}."), true),
            };
            write_doc(&mut text, key.doc, &note);
            let mark = if commented { "#" } else { "" };
            let _ = writeln!(text, "{mark}{} = {}", key.name, wrapped(value));
        }
    }
    text
}

fn write_doc(text: &mut String, doc: &[&str], note: &str) {
    for (index, line) in doc.iter().enumerate() {
        let note = if index + 1 == doc.len() { note } else { "" };
        let _ = writeln!(text, "#{line}{note}");
    }
}

/// A long list on several lines.
pub(super) fn wrapped(value: &str) -> String {
    let words = paragraph(&[value]);
    let Some(items) = words.strip_prefix('[').filter(|_| words.len() > 2 * WIDTH) else {
        return words;
    };
    let items = items
        .trim_end_matches(']')
        .trim_end_matches(',')
        .split(", ");
    let mut lines = vec!["   ".to_owned()];
    for item in items {
        if lines
            .last()
            .is_some_and(|line| line.len() + item.len() + 2 > WIDTH)
        {
            lines.push("   ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            let _ = write!(line, " {item},");
        }
    }
    format!("[\n{}\n]", lines.join("\n"))
}
