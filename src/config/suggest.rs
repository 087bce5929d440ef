//! The nearest known name, for whoever mistyped one.

use strsim::damerau_levenshtein;

/// The candidate nearest to `text`, if it is near enough to have been meant. Of equally near ones the first.
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

/// How many slips a name of that length is forgiven: a third of it, and one at least.
fn tolerance(name: &str) -> usize {
    (name.len() / 3).max(1)
}

/// The known key that was most likely meant by `key`. A slip in the last part counts as much as the wrong section
/// in front of a right last part, so that both mistakes are found.
pub(super) fn nearest_key<'a>(
    key: &str,
    keys: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let (section, name) = split(key);
    keys.into_iter()
        .filter_map(|candidate| {
            let (candidate_section, candidate_name) = split(candidate);
            let slips = damerau_levenshtein(name, candidate_name);
            let limit = if section == candidate_section {
                tolerance(candidate_name)
            } else {
                // In another section only what is all but right is worth a guess.
                tolerance(candidate_name).min(1)
            };
            let apart = damerau_levenshtein(section, candidate_section);
            (slips <= limit).then_some(((usize::from(apart > 0) + slips, apart), candidate))
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
    fn finds_slips_and_wrong_sections() {
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
