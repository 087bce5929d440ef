//! Unknown keys and sections, and the known ones that were most likely meant.

use strsim::damerau_levenshtein;
use toml::de::{DeTable, DeValue};

use super::{SECTIONS, reader::Reader, section::Schema};

impl Reader<'_> {
    /// Reports unknown keys, unknown sections, and sections that are written as values.
    pub(super) fn check_names(&mut self) {
        let table = self.table.clone();
        self.check_table(&table, "");
    }

    fn check_table(&mut self, table: &DeTable<'_>, section: &str) {
        for (name, value) in table {
            let (key, message) = if name.get_ref().contains('.') {
                // `"listen.address" = …` is one name with a dot in it, not the key that it looks like.
                let message =
                    "unknown key; a dot between quotes is part of the name, write it bare";
                (format!("{:?}", name.get_ref()), Some(message.to_owned()))
            } else if section.is_empty() {
                (name.get_ref().to_string(), None)
            } else {
                (format!("{section}.{}", name.get_ref()), None)
            };
            let message = match message {
                Some(message) => message,
                None if SECTIONS.iter().any(|list| list.list && list.name == key) => {
                    self.check_list(&key, name.span(), value.get_ref());
                    continue;
                }
                None if is_section(&key) => match value.get_ref() {
                    DeValue::Table(table) => {
                        self.check_table(table, &key);
                        continue;
                    }
                    DeValue::Array(_) => format!("is written once; write [{key}], not [[{key}]]"),
                    _ => format!("is a section; write [{key}] and its keys below"),
                },
                None if is_key(&key) => continue,
                None => unknown(&key, value.get_ref()),
            };
            self.problems
                .add(&self.place(&key, &name.span()), &key, message);
        }
    }

    fn check_list(&mut self, list: &str, span: std::ops::Range<usize>, value: &DeValue<'_>) {
        let once_each =
            format!("is written any number of times; write [[{list}]] above each one's keys");
        let DeValue::Array(items) = value else {
            self.problems.add(&self.place(list, &span), list, once_each);
            return;
        };
        for (index, item) in items.iter().enumerate() {
            let at = format!("{list}[{}]", index + 1);
            let DeValue::Table(table) = item.get_ref() else {
                self.problems
                    .add(&self.place(&at, &item.span()), &at, once_each.clone());
                continue;
            };
            for (name, value) in table {
                let key = format!("{list}.{}", name.get_ref());
                if !is_key(&key) {
                    let message = unknown(&key, value.get_ref());
                    let at = format!("{at}.{}", name.get_ref());
                    self.problems
                        .add(&self.place(&at, &name.span()), &at, message);
                }
            }
        }
    }
}

/// Whether `key` is a section or holds one.
fn is_section(key: &str) -> bool {
    let holds = |section: &Schema| {
        let rest = section.name.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    SECTIONS
        .iter()
        .any(|section| !section.list && holds(section))
}

fn is_key(key: &str) -> bool {
    SECTIONS
        .iter()
        .any(|section| section.full_keys().any(|known| known == key))
}

fn unknown(key: &str, value: &DeValue<'_>) -> String {
    let is_table = match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => items.first().is_some_and(|item| item.get_ref().is_table()),
        _ => false,
    };
    if is_table {
        let sections = SECTIONS.iter().map(|section| section.name);
        let near = nearest(key, sections.clone()).or_else(|| nearest_key(key, sections));
        let near = SECTIONS.iter().find(|section| Some(section.name) == near);
        return match near {
            Some(section) if section.list => {
                format!("unknown section, did you mean [[{}]]?", section.name)
            }
            Some(section) => format!("unknown section, did you mean [{}]?", section.name),
            None => "unknown section; see config.example.toml".to_owned(),
        };
    }
    let keys: Vec<_> = SECTIONS.iter().flat_map(Schema::full_keys).collect();
    match nearest_key(key, keys.iter().map(String::as_str)) {
        Some(near) => format!("unknown key, did you mean {near}?"),
        None => "unknown key; see config.example.toml".to_owned(),
    }
}

/// The candidate nearest to `text`, if it is near enough; of equally near ones the first.
pub(super) fn nearest<'a>(
    text: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (damerau_levenshtein(text, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= tolerance(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many typing mistakes are tolerated in a name: a third of its length, at least one.
fn tolerance(name: &str) -> usize {
    (name.len() / 3).max(1)
}

/// The known key that was most likely meant by `key`. A typing mistake in the last part and a wrong
/// section before a correct last part count the same, so that both are found.
pub(super) fn nearest_key<'a>(
    key: &str,
    keys: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let (section, name) = split(key);
    keys.into_iter()
        .filter_map(|candidate| {
            let (candidate_section, candidate_name) = split(candidate);
            let mistakes = damerau_levenshtein(name, candidate_name);
            let limit = if section == candidate_section {
                tolerance(candidate_name)
            } else {
                // In another section, allow one typing mistake only.
                tolerance(candidate_name).min(1)
            };
            let apart = damerau_levenshtein(section, candidate_section);
            (mistakes <= limit).then_some(((usize::from(apart > 0) + mistakes, apart), candidate))
        })
        .min_by_key(|(score, _)| *score)
        .map(|(_, candidate)| candidate)
}

fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &[
        "listen.address",
        "listen.tls.certificate",
        "upstream.tls.certificate",
        "service.realm",
        "store.url",
        "login.url",
    ];

    #[test]
    fn finds_mistakes_and_wrong_sections() {
        for (key, expected) in [
            ("listen.addres", Some("listen.address")),
            ("listen.adress", Some("listen.address")),
            ("listen.realm", Some("service.realm")),
            ("realm", Some("service.realm")),
            ("upstream.certificate", Some("upstream.tls.certificate")),
            ("listen.certificate", Some("listen.tls.certificate")),
            ("stor.url", Some("store.url")),
            ("listen.banana", None),
        ] {
            let keys = KEYS.iter().copied();
            assert_eq!(nearest_key(key, keys), expected, "{key}");
        }
    }
}
