//! Whether every name in the file is known and stands where it belongs.

use super::{
    SECTIONS,
    error::Problems,
    schema::SectionSchema,
    suggest::{nearest, nearest_key},
    tree::{Entry, Node, Table, Value},
};

/// Reports names that are no key, sections that are none, and sections written as something else.
pub(super) fn check(tree: &Table, problems: &mut Problems) {
    check_table(tree, "", problems);
}

fn check_table(table: &Table, prefix: &str, problems: &mut Problems) {
    for entry in &table.0 {
        if entry.name.contains('.') {
            // `"listen.address" = …` is one name with a dot in it, not the key that it looks like.
            let message = "unknown key; a dot between quotes is part of the name, write it bare";
            problems.add(&entry.place, &format!("{:?}", entry.name), message);
            continue;
        }
        let key = match prefix {
            "" => entry.name.clone(),
            _ => format!("{prefix}.{}", entry.name),
        };
        if let Some(list) = SECTIONS
            .iter()
            .find(|section| section.list && section.name == key)
        {
            check_list(list, entry, problems);
        } else if is_section(&key) {
            match &entry.node.value {
                Value::Table(table) => check_table(table, &key, problems),
                Value::List(_) => {
                    let message = format!("is written once; write [{key}], not [[{key}]]");
                    problems.add(&entry.place, &key, message);
                }
                _ => problems.add(
                    &entry.place,
                    &key,
                    format!("is a section; write [{key}] and its keys below"),
                ),
            }
        } else if !known_keys().any(|known| known == key) {
            problems.add(&entry.place, &key, unknown(&key, &entry.node));
        }
    }
}

fn check_list(list: &SectionSchema, entry: &Entry, problems: &mut Problems) {
    let name = list.name;
    let once_each =
        format!("is written any number of times; write [[{name}]] above each one's keys");
    let Value::List(items) = &entry.node.value else {
        problems.add(&entry.place, name, once_each);
        return;
    };
    for (index, item) in items.iter().enumerate() {
        let at = format!("{name}[{}]", index + 1);
        let Value::Table(table) = &item.value else {
            problems.add(&item.place, &at, once_each.clone());
            continue;
        };
        for entry in &table.0 {
            if list.keys.iter().all(|key| key.name != entry.name) {
                let key = format!("{name}.{}", entry.name);
                let message = unknown(&key, &entry.node);
                problems.add(&entry.place, &format!("{at}.{}", entry.name), message);
            }
        }
    }
}

/// Whether `key` is a section or holds one.
fn is_section(key: &str) -> bool {
    SECTIONS
        .iter()
        .filter(|section| !section.list)
        .any(|section| {
            section
                .name
                .strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

fn known_keys() -> impl Iterator<Item = String> {
    let sections = SECTIONS.iter().filter(|section| !section.list);
    sections.flat_map(|section| section.full_keys().map(|(key, _)| key))
}

fn unknown(key: &str, node: &Node) -> String {
    let is_table = match &node.value {
        Value::Table(_) => true,
        Value::List(items) => {
            matches!(items.first().map(|item| &item.value), Some(Value::Table(_)))
        }
        _ => false,
    };
    if is_table {
        let sections = SECTIONS.iter().map(|section| section.name);
        return match nearest(key, sections.clone()).or_else(|| nearest_key(key, sections)) {
            Some(section) => format!("unknown section, did you mean {}?", header(section)),
            None => "unknown section; see config.example.toml".to_owned(),
        };
    }
    let keys: Vec<_> = SECTIONS
        .iter()
        .flat_map(|section| section.full_keys().map(|(key, _)| key))
        .collect();
    match nearest_key(key, keys.iter().map(String::as_str)) {
        Some(near) => format!("unknown key, did you mean {near}?"),
        None => "unknown key; see config.example.toml".to_owned(),
    }
}

fn header(section: &str) -> String {
    let list = SECTIONS
        .iter()
        .any(|known| known.list && known.name == section);
    if list {
        format!("[[{section}]]")
    } else {
        format!("[{section}]")
    }
}
