//! The effective values as the console shows them.

use super::*;
use crate::base::settings::without_password;

fn setting(config: &Config, key: &str) -> (String, String) {
    let mut settings = config.settings.iter();
    let found = settings.find(|setting| setting.key == key).unwrap();
    (found.value.clone(), found.source.clone())
}

#[test]
fn each_key_has_its_value_and_its_source() {
    let text = format!("{MINIMAL}limits.form_fields = 7\n[[permission]]\nname = 'a'");
    let variables = environment(&[("COUNTERSIGN__LOG__LEVEL", "debug")]);
    let config = parse(&text, "/etc/cs/config.toml", variables).unwrap();
    for (key, value, source) in [
        ("limits.form_fields", "7", "file"),
        ("log.level", "\"debug\"", "COUNTERSIGN__LOG__LEVEL"),
        ("listen.http2", "true", "default"),
        ("nonce.max_entries", "50000000", "default"),
        (
            "listen.workers",
            "the processors of the quota, at most 4",
            "default",
        ),
        ("store.url", "\"countersign.db\"", "default"),
        ("[[permission]]", "1 entries", "file"),
    ] {
        let expected = (value.to_owned(), source.to_owned());
        assert_eq!(setting(&config, key), expected, "{key}");
    }
    let keys = config
        .settings
        .iter()
        .filter(|one| !one.key.starts_with('['));
    let lists = SECTIONS.iter().filter(|section| section.list);
    let all = self::keys().count() - lists.map(|section| section.keys.len()).sum::<usize>();
    assert_eq!(keys.count(), all);
}

#[test]
fn no_password_of_a_url_is_in_it() {
    for (url, shown) in [
        ("postgres://me:hunter2@db/x", "postgres://…@db/x"),
        ("postgres://me:hun@ter2@db/x?a=b", "postgres://…@db/x?…"),
        (
            "postgres://me:hun@ter2@db/x?password=hun@ter3",
            "postgres://…?…",
        ),
        (
            "postgres://db/x?user=me&password=hunter2",
            "postgres://db/x?…",
        ),
        ("postgres://me:hun?ter2@db/x", "postgres://…?…"),
        ("postgres://db/x?password=hun@ter2", "postgres://…?…"),
    ] {
        let shown = format!("\"{shown}\"");
        let value = without_password(url.to_owned().into());
        assert_eq!(value.to_string(), shown, "{url}");
    }
    let text =
        format!("{MINIMAL}store.backend = 'postgres'\nstore.url = 'postgres://me:hunter2@db/x'");
    let config = read(&text);
    assert!(!format!("{:?}", config.settings).contains("hunter2"));
}

#[test]
fn a_reload_shows_what_the_process_still_runs_with() {
    let running = read(&format!("{MINIMAL}cache.max_entries = 5"));
    let mut changed = read(&format!(
        "{MINIMAL}cache.max_entries = 6\nlimits.form_fields = 9"
    ));
    changed.keep_fixed(&running);
    assert_eq!(setting(&changed, "cache.max_entries").0, "5");
    assert_eq!(setting(&changed, "limits.form_fields").0, "9");
}
