//! What a reload cannot change.

use super::*;

/// The keys that need a restart.
fn fixed() -> impl Iterator<Item = String> {
    SECTIONS.iter().flat_map(|section| {
        let keys = section.keys.iter().filter(|key| key.restart);
        keys.map(|key| format!("{}.{}", section.name, key.name))
    })
}

#[test]
fn what_needs_a_restart_is_named_and_put_back() {
    let text = |written: &str| format!("[upstream]\napi_url = 'http://127.0.0.1:9000'\n{written}");
    let read = |written: &str| parse(&text(written), "test", []).unwrap();
    let running = read("");
    // Another value of each fixed key that can be set at all.
    let others = [
        ("listen.address", "'127.0.0.1:9999'"),
        ("listen.workers", "7"),
        ("nonce.scope", "'local'"),
        ("nonce.max_entries", "17"),
        ("nonce.path", "'elsewhere.nonces'"),
        ("store.url", "'elsewhere.db'"),
        ("store.encryption_key_file", "'store.key'"),
        ("cache.max_entries", "17"),
        ("cache.ttl", "'17s'"),
        ("cache.negative_ttl", "'17s'"),
        ("cache.stale_if_error", "'17s'"),
        ("login.request", "'json'"),
        ("login.username_field", "'user'"),
        ("login.password_field", "'secret'"),
        ("login.id_field", "'user.id'"),
        ("login.name_field", "'user.name'"),
        ("login.display_name_field", "'user.full'"),
        ("login.success_field", "'success'"),
        ("login.timeout", "'17s'"),
        ("login.ca", "'ca.pem'"),
        ("admin.listen", "'127.0.0.1:9998'"),
        ("admin.probe_listen", "'127.0.0.1:9997'"),
        ("log.format", "'json'"),
    ];
    for key in fixed() {
        let Some((_, other)) = others.iter().find(|(name, _)| *name == key) else {
            let single = [
                "store.backend",
                "nonce.url",
                "store.lookup.consumer_sql",
                "store.lookup.token_sql",
                "login.backend",
                "login.url",
            ];
            assert!(single.contains(&key.as_str()), "{key}");
            continue;
        };
        let (section, name) = key.split_once('.').unwrap();
        let mut new = read(
            &format!("[{section}]\n{name} = {other}\n[log]\nlevel = 'warn'")
                .replace("[log]\nformat = 'json'\n[log]", "[log]\nformat = 'json'"),
        );
        assert_eq!(new.keep_fixed(&running), [key.as_str()]);
        assert_ne!(new, running);
        new.log.level = running.log.level.clone();
        assert_eq!(new, running, "{key}");
    }
    let kept: Vec<&str> = others.iter().map(|(key, _)| *key).collect();
    assert!(fixed().count() > kept.len());
    let mut new = read("[log]\nlevel = 'warn'");
    assert!(new.keep_fixed(&running).is_empty());
}

#[test]
fn queries_of_an_existing_system_need_a_restart() {
    let read = |sql: &str| {
        let text = format!(
            "[upstream]\napi_url = 'http://127.0.0.1:9000'\n[store]\nbackend = 'postgres'\n\
             url = 'postgres://u@127.0.0.1/d'\n[store.lookup]\ntoken_sql = '{sql}'"
        );
        parse(&text, "test", []).unwrap()
    };
    let (running, mut new) = (read("SELECT 1"), read("SELECT 2"));
    assert_eq!(new.keep_fixed(&running), ["store.lookup.token_sql"]);
    assert_eq!(new, running);
}

#[test]
fn a_listener_keeps_to_plain_http_or_to_tls() {
    let read = |written: &str| {
        let text = format!("[upstream]\napi_url = 'http://127.0.0.1:9000'\n{written}");
        parse(&text, "test", []).unwrap()
    };
    let pair = |name: &str| format!("[listen.tls]\ncertificate = '{name}.pem'\nkey = '{name}.key'");
    let (plain, tls) = (read(""), read(&pair("a")));
    for (running, written) in [(&plain, &tls), (&tls, &plain)] {
        let mut new = written.clone();
        assert_eq!(new.keep_fixed(running), ["listen.tls.certificate"]);
        assert_eq!(new, *running);
    }
    let mut new = read(&pair("b"));
    assert!(new.keep_fixed(&tls).is_empty());
    assert_eq!(new, read(&pair("b")));
}
