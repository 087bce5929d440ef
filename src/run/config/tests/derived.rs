//! Defaults, values that follow from other keys, and keys that a reload cannot change.

use super::{declared::required, *};
use crate::base::rate::Rate;
use crate::base::settings::{DataPath, Directories};
use crate::records::nonce::settings::NonceScope;
use crate::request::policy::access::CallerKind;
use crate::run::config::derived::default_workers;
use crate::text::words;

#[test]
fn defaults_are_those_of_the_contract() {
    let config = read(MINIMAL);
    assert_eq!(config.signature.timestamp_window, Duration::from_secs(300));
    assert_eq!(config.limits.head_bytes, 32_768);
    assert_eq!(config.limits.connections.get(), 10_000);
    assert_eq!(config.tokens.access_ttl.0, None);
    let Rate { count, period } = config.login.max_failures;
    assert_eq!((count.get(), period), (10, Duration::from_secs(900)));
    assert_eq!(config.identity.user_header, "x-auth-user");
    assert_eq!(config.operations.forbidden_status, 404);
    assert!(
        !config
            .signature
            .methods
            .contains(crate::oauth::SignatureMethod::Plaintext)
    );
    for name in words("x-original-* x-http-method-override x-real-* remote-* x-ssl-*") {
        assert!(dropped(&config).contains(&name.to_owned()), "{name}");
    }
}

#[test]
fn described_body_is_verified_below_the_size_of_truncation() {
    for [text, bytes] in crate::text::rows(
        r#"
                                                                       | 1048576
        forward_auth.body_bytes = "65535B"                             | 65534
        forward_auth.body_bytes = "1B"                                 | 0
        forward_auth.body_bytes = "0B"                                 | 0
        forward_auth.body_bytes = "64KiB"\nlimits.form_bytes = "32KiB" | 32768
        forward_auth.body_bytes = "32KiB"\nlimits.form_bytes = "32KiB" | 32767
        "#,
    ) {
        let config = read(&format!("{MINIMAL}{text}"));
        assert_eq!(config.described_body_bytes().to_string(), bytes, "{text}");
    }
}

#[test]
fn every_relative_path_belongs_to_the_directory_of_the_file() {
    let types = SECTIONS.iter().flat_map(|section| {
        let keys = section.keys.iter();
        keys.map(move |key| (section, key))
    });
    let directory = Path::new("/etc/cs");
    let directories = Directories {
        file: directory,
        data: directory,
    };
    // A URL does not print.
    let mut paths: Vec<String> = types
        .filter(|(_, key)| {
            let resolved = (key.value_type.resolved)("relative.file".into(), directories);
            resolved == Ok("/etc/cs/relative.file".into()) && !key.name.ends_with("url")
        })
        .map(|(section, key)| {
            let (list, name) = (section.name, key.name);
            match section.list {
                true => {
                    let required = required(list, name);
                    format!("[[{list}]]\n{required}{name} = \"relative.file\"\n")
                }
                false => format!("{list}.{name} = \"relative.file\"\n"),
            }
        })
        .collect();
    paths.sort_by_key(|text| text.starts_with("[["));
    let text = format!("{MINIMAL}{}", paths.concat());
    let mut written = Written::read(&text, "c", no_environment(), directory).unwrap();
    let config = Config::read(&mut written).unwrap();
    let shown = format!("{config:?}");
    let resolved = shown.matches("\"/etc/cs/relative.file\"").count();
    assert_eq!(resolved, paths.len(), "{shown}");
    assert_eq!(
        config.store.url.sqlite_path(),
        Path::new("/etc/cs/countersign.db")
    );
    assert_eq!(
        config.nonce.path,
        Some(DataPath("/etc/cs/relative.file".into()))
    );
}

#[test]
fn derives_what_is_not_written() {
    let bound: SocketAddr = "127.0.0.1:4711".parse().unwrap();
    let config = read(MINIMAL);
    assert!((1..=4).contains(&config.workers().get()));
    for (processors, workers) in [(1, 1), (3, 3), (4, 4), (64, 4)] {
        let processors = NonZeroUsize::new(processors).unwrap();
        assert_eq!(default_workers(processors).get(), workers);
    }
    assert_eq!(config.base_url(bound).to_string(), "http://127.0.0.1:4711");
    let urls = config.public_api_urls(bound);
    assert_eq!(urls.len(), 1);
    assert_eq!(urls[0].to_string(), "http://127.0.0.1:4711");
    assert_eq!(config.nonce_scope(), NonceScope::Local);
    assert_eq!(
        config.nonce_path().as_deref(),
        Some(Path::new("/etc/cs/countersign.db.nonces"))
    );
    assert_eq!(config.unlisted(), [CallerKind::Consumer]);

    let text = "listen.tls.certificate = \"c\"\nlisten.tls.key = \"k\"\nlisten.workers = 2\nstore.url = \"sqlite:/d/x.db\"\n[[operation]]\npath = \"/\"";
    let config = read(&format!("{MINIMAL}{text}"));
    let bound: SocketAddr = "[::1]:443".parse().unwrap();
    assert_eq!(config.base_url(bound).to_string(), "https://[::1]");
    assert_eq!(config.workers().get(), 2);
    assert_eq!(
        config.nonce_path().as_deref(),
        Some(Path::new("/d/x.db.nonces"))
    );
    assert_eq!(config.unlisted(), []);
}

fn dropped(config: &Config) -> Vec<String> {
    let names = config.upstream.drop_headers.0.iter();
    names.map(|name| name.as_str().to_owned()).collect()
}
