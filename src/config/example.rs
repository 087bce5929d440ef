//! `config.example.toml`, written from the declarations, so that it can say nothing else than they do.

use std::fmt::Write as _;

use super::{
    SECTIONS, available,
    schema::{Key, SectionSchema, Unwritten},
};

const HEAD: &str = "\
# The configuration of countersign: every key with its default and one line of why.
# Keys without a default, and keys whose default follows from others, are commented out and show an example. The one key
# that must be written is upstream.api_url.
#
# Durations are \"500ms\", \"300s\", \"10m\", \"12h\", \"7d\"; sizes \"64B\", \"32KiB\", \"1MiB\"; rates \"10 per 15m\".
# Relative paths are relative to the directory in which countersign is started.
#
# Any key can also come from the environment, which goes over this file: COUNTERSIGN__LISTEN__ADDRESS=0.0.0.0:8080 sets
# listen.address, COUNTERSIGN__LISTEN__TLS__CERTIFICATE sets listen.tls.certificate. With _FILE behind the name the value
# is the content of the file that the variable names. A key whose own name ends in _file wins over that reading:
# COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE is store.encryption_key_file.
# COUNTERSIGN__OPERATION and COUNTERSIGN__PERMISSION take the whole list: [{ path = \"/members/{id}\" }].
";

/// The text of `config.example.toml`.
#[must_use]
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    for section in SECTIONS {
        write_section(&mut text, section);
    }
    text
}

fn write_section(text: &mut String, section: &SectionSchema) {
    text.push('\n');
    write_doc(text, section.doc, "");
    let name = section.name;
    if section.list {
        // There is none by default, so all of it is commented out.
        let _ = writeln!(text, "#[[{name}]]");
    } else {
        let _ = writeln!(text, "[{name}]");
    }
    for key in section.keys {
        write_key(text, section, key);
    }
}

/// Writing to a `String` never fails, so the results are dropped.
fn write_key(text: &mut String, section: &SectionSchema, key: &Key) {
    let name = key.name;
    let mut note = String::new();
    let (value, commented) = match key.unwritten {
        Unwritten::Value(value) => (value, section.list),
        Unwritten::Required { example } => {
            note.push_str(" Required.");
            (example, section.list)
        }
        Unwritten::Absent { words, example } => {
            let _ = write!(note, " Default: {words}.");
            (example, true)
        }
    };
    if !available::is_available(&format!("{}.{name}", section.name)) {
        note.push_str(" Not yet available.");
    }
    write_doc(text, key.doc, &note);
    let mark = if commented { "#" } else { "" };
    let _ = writeln!(text, "{mark}{name} = {value}");
}

fn write_doc(text: &mut String, doc: &[&str], note: &str) {
    for (index, line) in doc.iter().enumerate() {
        let note = if index + 1 == doc.len() { note } else { "" };
        let _ = writeln!(text, "#{line}{note}");
    }
}
